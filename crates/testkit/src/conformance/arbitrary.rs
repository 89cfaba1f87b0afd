//! Arbitrary parameters of a run, including hostile ones.

use std::ffi::OsString;
use std::fmt;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::strategy::Union;
use serde_json::json;
use teamster_core::text::excerpt;
use teamster_core::{ExecuteParams, PermissionMode, SubAgent, SystemPrompt, SystemPromptSupport};

use super::Suite;

/// Texts that some CLI may parse as something other than text. The flags and sub-commands of the tested CLI
/// are added to them.
const TRICKY: &[&str] = &[
    "-",
    "--",
    "---",
    "-h",
    "--help",
    "-v",
    "--version",
    "-p",
    "-x=y",
    "--model=evil",
    "--yolo",
    "-c",
    "--no-x",
    "-1",
    "--=",
    "-=",
    "=",
    "=x",
    "a=b",
    "-\u{2028}",
    "\u{2013}help",
    "/clear",
    "/help x",
    "//",
    "/",
    "@/etc/passwd",
    "@file.txt",
    "@",
    "#",
    "!ls",
    "resume",
    "exec",
    "mcp",
    "help",
    "fork",
    "review",
    "run",
    "update",
    "login",
    "doctor",
    "latest",
    "last",
    "true",
    "null",
    "0",
    "two words",
    " leading",
    "trailing ",
    "\n--help",
    "--help\n",
    "a\nb",
    "a\r\nb",
    "\t",
    "\"quoted\"",
    "'quoted'",
    "say \"hi\" now",
    "\"",
    "'",
    "\\",
    "\\\"",
    "$(id)",
    "`id`",
    "$HOME",
    "%s",
    "{}",
    "[]",
    "{\"a\":1}",
    "*",
    "~",
    "a,b",
    ",",
    ";",
    "|",
    "&",
    "<",
    ">",
    "\u{feff}x",
    "\u{2028}",
    "\u{1b}[31m",
    "é",
    "你好，世界",
    "🌍🚀",
    "e\u{301}",
];

/// Marker in every generated value of the caller's environment. It must never be visible.
pub(super) const SECRET: &str = "s3cr3t-v4lue";

/// A parameter other than the prompt. proptest shrinks a failing run to the fewest of them.
#[derive(Debug, Clone)]
pub(super) enum Ask {
    SessionId(String),
    Fork,
    NewSessionId(String),
    WorkingDirectory(PathBuf),
    AddDir(PathBuf),
    Skill(PathBuf),
    SubAgent(String),
    Hook(String),
    Env(String),
    Append(String),
    Replace(String),
    Model(String),
    Effort(String),
    Permission(PermissionMode),
    Allow(String),
    Deny(String),
    MaxTurns(u32),
    Budget(f64),
    Schema(String),
    Image,
    Retries(u32),
    SlashCommands,
}

/// A run with arbitrary parameters.
#[derive(Clone)]
pub(super) struct ArbitraryRun {
    pub prompt: String,
    pub rest: Vec<Ask>,
}

impl fmt::Debug for ArbitraryRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let prompt = excerpt(&self.prompt, 200);
        write!(f, "prompt {prompt:?}, {:?}", self.rest)
    }
}

impl ArbitraryRun {
    pub(super) fn only(ask: Ask) -> Self {
        Self {
            prompt: "hi".into(),
            rest: vec![ask],
        }
    }

    pub(super) fn params(&self, suite: &Suite) -> ExecuteParams {
        let mut params = suite.plain_params(&self.prompt);
        for ask in self.rest.iter().cloned() {
            match ask {
                Ask::SessionId(id) => params.session_id = Some(id),
                Ask::Fork => params.fork = true,
                Ask::NewSessionId(id) => params.new_session_id = Some(id),
                Ask::WorkingDirectory(path) => params.working_directory = Some(path),
                Ask::AddDir(path) => once(&mut params.add_dirs, path),
                Ask::Skill(path) => once(&mut params.skills, path),
                Ask::SubAgent(text) => {
                    once(
                        &mut params.sub_agents,
                        SubAgent::new("reviewer", &*text, &*text),
                    );
                }
                Ask::Hook(command) => {
                    let hook = json!({"hooks": [{"type": "command", "command": command}]});
                    params.hooks = Some(json!({"PreToolUse": [hook]}));
                }
                Ask::Env(value) => drop(params.env.insert("API_KEY".into(), value)),
                Ask::Append(text) => params.system_prompt = Some(SystemPrompt::Append(text)),
                Ask::Replace(text) => params.system_prompt = Some(SystemPrompt::Replace(text)),
                Ask::Model(model) => params.model = Some(model),
                Ask::Effort(effort) => params.effort = Some(effort),
                Ask::Permission(mode) => params.permission = mode,
                Ask::Allow(tool) => once(&mut params.allowed_tools, tool),
                Ask::Deny(tool) => once(&mut params.denied_tools, tool),
                Ask::MaxTurns(turns) => params.max_turns = Some(turns),
                Ask::Budget(usd) => params.max_budget_usd = Some(usd),
                Ask::Schema(title) => {
                    params.output_schema = Some(json!({"type": "object", "title": title}));
                }
                Ask::Image => params.images.push(suite.plain.image.clone()),
                Ask::Retries(retries) => params.cli_retries = Some(retries),
                Ask::SlashCommands => params.slash_commands = true,
            }
        }
        // Core refuses parameters that no provider can honour, and tests that itself.
        params.fork &= params.session_id.is_some();
        if params.session_id.is_some() && !params.fork {
            params.new_session_id = None;
        }
        params
    }
}

/// Adds an item unless it is already there. A list with a duplicate is equivalent to one without, and some
/// CLIs store such a list as the keys of an object.
fn once<T: PartialEq>(list: &mut Vec<T>, item: T) {
    if !list.contains(&item) {
        list.push(item);
    }
}

/// Generates a short hostile text.
fn tricky(words: &[String]) -> BoxedStrategy<String> {
    let word = select(words.to_vec());
    prop_oneof![
        4 => word.clone(),
        1 => (word.clone(), any::<String>()).prop_map(|(word, text)| format!("{word} {text}")),
        1 => (word.clone(), word).prop_map(|(one, two)| format!("{one}={two}")),
        1 => "-.{0,20}",
        1 => any::<String>(),
    ]
    .prop_filter("no argument can hold a NUL byte", |text| {
        !text.contains('\0')
    })
    .boxed()
}

/// Generates the valid value or a hostile text.
fn value(plain: &'static str, words: &[String]) -> BoxedStrategy<String> {
    prop_oneof![Just(plain.to_owned()), tricky(words)].boxed()
}

fn path(words: &[String]) -> BoxedStrategy<PathBuf> {
    prop_oneof![
        1 => Just(PathBuf::from("/tmp")),
        2 => tricky(words).prop_map(PathBuf::from),
        1 => vec(1_u8.., 1..20).prop_map(|bytes| PathBuf::from(OsString::from_vec(bytes))),
    ]
    .boxed()
}

/// Generates a hostile prompt of up to 200 KB that is not blank.
pub(super) fn prompt(words: &[String]) -> BoxedStrategy<String> {
    let large = (tricky(words), 1_usize..20_000, "[ -~é🌍\n]{1,10}")
        .prop_map(|(head, times, filler)| format!("{head}{}", filler.repeat(times)));
    prop_oneof![
        12 => tricky(words),
        1 => any::<String>().prop_map(|text| format!("{text}\0{text}x")),
        1 => large.prop_map(|mut text| {
            text.truncate(text.floor_char_boundary(200_000));
            text
        }),
    ]
    .prop_filter("a prompt is not blank", |text| !text.trim().is_empty())
    .boxed()
}

impl Suite {
    /// Returns the tricky texts, including the words of this CLI.
    pub(super) fn words(&self) -> Vec<String> {
        let model = self.command_line.as_ref().map(|line| line.model.words());
        let own = model.unwrap_or_default().into_iter();
        let own = own.flat_map(|word| [word.to_owned(), format!("{word}=x")]);
        TRICKY.iter().map(ToString::to_string).chain(own).collect()
    }

    /// Generates any run that this provider supports.
    pub(super) fn asked(&self) -> BoxedStrategy<ArbitraryRun> {
        let words = self.words();
        (prompt(&words), vec(self.ask(&words), 0..6))
            .prop_map(|(prompt, rest)| ArbitraryRun { prompt, rest })
            .boxed()
    }

    /// Returns each parameter that can hold a text, with this text.
    pub(super) fn each_with(&self, text: &str) -> Vec<Ask> {
        let can = self.provider.capabilities();
        let (append, replace) = takes(can.system_prompt);
        let text = || text.to_owned();
        let all = [
            (can.resume, Ask::SessionId(text())),
            (can.new_session_id, Ask::NewSessionId(text())),
            (true, Ask::WorkingDirectory(text().into())),
            (can.add_dirs, Ask::AddDir(text().into())),
            (can.skills, Ask::Skill(Path::new("/").join(text()))),
            (can.sub_agents, Ask::SubAgent(text())),
            (can.hooks, Ask::Hook(text())),
            (append, Ask::Append(text())),
            (replace, Ask::Replace(text())),
            (can.model, Ask::Model(text())),
            (can.effort, Ask::Effort(text())),
            (can.allowed_tools, Ask::Allow(text())),
            (can.denied_tools, Ask::Deny(text())),
            (can.output_schema, Ask::Schema(text())),
        ];
        let honoured = all.into_iter().filter(|(can, _)| *can);
        honoured.map(|(_, ask)| ask).collect()
    }

    fn ask(&self, words: &[String]) -> Union<BoxedStrategy<Ask>> {
        let can = self.provider.capabilities();
        let plain = &self.plain;
        let text = || tricky(words);
        let large = (text(), 1_usize..100).prop_map(|(text, times)| text.repeat(times * 10));
        let system = prop_oneof![9 => text(), 1 => large].boxed();
        let modes = can.permission_modes;
        let (append, replace) = takes(can.system_prompt);
        let session_id = value(plain.session_id, words).prop_map(Ask::SessionId);
        let new_session_id = value(plain.new_session_id, words).prop_map(Ask::NewSessionId);
        let all = [
            (can.resume, session_id.boxed()),
            (can.fork, Just(Ask::Fork).boxed()),
            (can.new_session_id, new_session_id.boxed()),
            (true, path(words).prop_map(Ask::WorkingDirectory).boxed()),
            (can.add_dirs, path(words).prop_map(Ask::AddDir).boxed()),
            // The engine makes them absolute.
            (
                can.skills,
                path(words)
                    .prop_map(|path| Ask::Skill(Path::new("/").join(path)))
                    .boxed(),
            ),
            (can.sub_agents, text().prop_map(Ask::SubAgent).boxed()),
            (can.hooks, text().prop_map(Ask::Hook).boxed()),
            (
                true,
                text()
                    .prop_map(|t| Ask::Env(format!("{t}{SECRET}")))
                    .boxed(),
            ),
            (append, system.clone().prop_map(Ask::Append).boxed()),
            (replace, system.prop_map(Ask::Replace).boxed()),
            (
                can.model,
                value(plain.model, words).prop_map(Ask::Model).boxed(),
            ),
            (
                can.effort,
                value(plain.effort, words).prop_map(Ask::Effort).boxed(),
            ),
            (true, select(modes).prop_map(Ask::Permission).boxed()),
            (
                can.allowed_tools,
                value(plain.tool, words).prop_map(Ask::Allow).boxed(),
            ),
            (
                can.denied_tools,
                value(plain.tool, words).prop_map(Ask::Deny).boxed(),
            ),
            (can.max_turns, any::<u32>().prop_map(Ask::MaxTurns).boxed()),
            (
                can.max_budget_usd,
                (0.001..1e6).prop_map(Ask::Budget).boxed(),
            ),
            (can.output_schema, text().prop_map(Ask::Schema).boxed()),
            (can.images, Just(Ask::Image).boxed()),
            (can.cli_retries, any::<u32>().prop_map(Ask::Retries).boxed()),
            (can.slash_commands, Just(Ask::SlashCommands).boxed()),
        ];
        let honoured = all.into_iter().filter(|(can, _)| *can);
        Union::new(honoured.map(|(_, ask)| ask))
    }
}

/// Returns whether a system prompt may be appended, and whether it may replace the CLI's own.
pub(super) fn takes(can: SystemPromptSupport) -> (bool, bool) {
    use SystemPromptSupport as Can;
    let append = matches!(can, Can::Append | Can::AppendAndReplace);
    let replace = matches!(can, Can::Replace | Can::AppendAndReplace);
    (append, replace)
}
