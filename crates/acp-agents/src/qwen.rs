//! Qwen Code, run with `qwen --acp`.
//!
//! Qwen Code is a fork of Gemini CLI, but its ACP output differs. The tool's name and each request's tokens are in
//! `_meta`.

mod tokens;

use std::borrow::Cow;
use std::collections::HashSet;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};
use teamster_acp::{
    Announcement, Approve, Choice, Chunk, Dialect, Figures, HeldText, ModeSwitch, NextUpdate,
    PermissionOption, Question, RequestKind, RpcError, Tool, ToolCall, ToolEnd, TurnSoFar,
};
use teamster_core::provider::{
    Args, CredentialFile, Credentials, FileLocation, RecordFiles, Sign, form_names,
};
use teamster_core::text::without_colors;
use teamster_core::{
    AgentError, Capabilities, CliInfo, ErrorKind, ExecuteParams, PermissionMode, ToolKind, Usage,
};

use crate::agent::{ASKING, HooksFile, NamedAgent, capabilities, is_plain};
use crate::mcp_name::Servers;
use crate::words::known_by;
use tokens::{Counted, Source};

/// Its words about the model's answers. The second is the JavaScript engine's.
const PHRASES: &[(&str, ErrorKind)] = &[
    ("ended with empty response", ErrorKind::Protocol),
    ("in JSON at position", ErrorKind::Protocol),
];

/// JSON-RPC error code of an internal error.
const INTERNAL: i64 = -32603;

/// Qwen Code.
pub const QWEN: NamedAgent = NamedAgent {
    info: &INFO,
    capabilities: &CAPABILITIES,
    args,
    hooks_file: Some(HooksFile {
        variable: "QWEN_CODE_SYSTEM_DEFAULTS_PATH",
        default: system_defaults,
    }),
    dialect: |params| {
        Box::new(QwenDialect {
            servers: Servers::of(params),
            projects: params
                .cli_folder("QWEN_HOME", ".qwen")
                .map(|it| it.join("projects")),
            own: Counted::default(),
            of_agents: Counted::default(),
            background: HashSet::new(),
            blocked: Vec::new(),
        })
    },
};

static INFO: CliInfo = {
    let mut info = CliInfo::new("qwen", "Qwen Code", "qwen");
    info.tested_versions = &["0.24.0", "0.24.2", "0.24.3", "0.24.4"];
    info.oldest_version = Some("0.24.0");
    info.install = "npm install -g @qwen-code/qwen-code";
    info.login = "run `qwen` and choose a service, or set OPENAI_API_KEY in the environment";
    info.credentials = {
        const fn in_home(path: &'static str, pointer: &'static [&'static str]) -> CredentialFile {
            CredentialFile {
                location: FileLocation::user("QWEN_HOME", ".qwen", path),
                sign: Sign::Json(pointer),
            }
        }
        let mut credentials = Credentials::in_locations(
            &["OPENAI_API_KEY"],
            &[
                in_home("oauth_creds.json", &["/access_token", "/refresh_token"]),
                in_home("settings.json", &["/security/auth/apiKey"]),
            ],
        );
        // Each service in the settings can have its own variable for the key.
        credentials.may_be_elsewhere = true;
        credentials
    };
    info.instructions = &["QWEN.md", "AGENTS.md"];
    info
};

static CAPABILITIES: Capabilities = {
    let mut can = capabilities();
    can.mcp.transports = &["stdio", "http", "sse"];
    can.usage = true;
    can.permission_modes = ASKING;
    can.hooks = true;
    can
};

/// Returns the machine's file with defaults for the user's settings, by the source of 0.24.4.
fn system_defaults(params: &ExecuteParams) -> PathBuf {
    let folder = match params.path_in_variable("QWEN_CODE_SYSTEM_SETTINGS_PATH") {
        Some(settings) => settings.parent().map(Path::to_path_buf).unwrap_or_default(),
        None if cfg!(target_os = "macos") => "/Library/Application Support/QwenCode".into(),
        None => "/etc/qwen-code".into(),
    };
    folder.join("system-defaults.json")
}

/// Sets the approval mode explicitly. By default, another model decides which tools need permission.
fn args(params: &ExecuteParams) -> Args {
    let mut args = Args::new();
    args.add("--acp");
    args.value(
        "--approval-mode",
        mode(params.permission).unwrap_or("default"),
    );
    args
}

fn mode(mode: PermissionMode) -> Option<&'static str> {
    Some(match mode {
        // Read-only: it asks before each tool with side effects, and the answers allow none.
        PermissionMode::Default | PermissionMode::ReadOnly => "default",
        PermissionMode::AcceptEdits => "auto-edit",
        PermissionMode::Bypass => "yolo",
        _ => return None,
    })
}

/// Source of the agent's report that work in the background has ended.
const REPORT: &str = "background_task_completed";
/// Source of that report once more, at the beginning of the turn about it.
const NOTIFICATION: &str = "background_notification";
/// Beginning of the text of a turn about such work that failed.
const NOTIFICATION_ERROR: &str = "[notification error] ";
/// Beginning of its message, as one of the agent, before the end of a call that a hook has blocked. Behind it are the
/// tool and the hook's reason, which is the call's output.
const CALL_BLOCKED: &str = "\u{2717} **PreToolUse blocked**: ";
/// Beginning of such a message about a prompt, which ends the turn.
const PROMPT_BLOCKED: &str = "\u{2717} **UserPromptSubmit blocked**: ";
/// Beginning of the lines on stderr about its own speed, as of 0.24.4.
const PERFORMANCE: &str = "[perf] ";
/// Tool that starts a sub-agent. The CLI prints it as a tool of another kind.
const AGENT: &str = "agent";
/// Tool that asks the user.
const ASK_USER: &str = "ask_user_question";

#[derive(Debug)]
struct QwenDialect {
    servers: Servers,
    /// The folder of the CLI's projects.
    projects: Option<PathBuf>,
    /// Usage of the main agent in the active turn, and of its sub-agents. What these use after a turn is in the next one.
    own: Counted,
    of_agents: Counted,
    /// Ids of calls and commands in the background, of whose end no turn has been about.
    background: HashSet<String>,
    /// Reasons of hooks that blocked calls whose end is still to come.
    blocked: Vec<String>,
}

impl QwenDialect {
    fn counted(&mut self, of_agent: bool) -> &mut Counted {
        if of_agent {
            &mut self.of_agents
        } else {
            &mut self.own
        }
    }
}

impl Dialect for QwenDialect {
    fn name(&self) -> &'static str {
        "Qwen Code"
    }

    fn tool(&mut self, call: &ToolCall) -> Tool {
        let mut tool = call.plain();
        if let Some(name) = call
            .meta
            .as_ref()
            .and_then(|meta| meta["toolName"].as_str())
        {
            name.clone_into(&mut tool.name);
        }
        if tool.name == AGENT {
            tool.kind = ToolKind::Task;
        }
        tool.mcp = self.servers.tool(&tool.name, "mcp__");
        if tool.mcp.is_some() {
            tool.kind = ToolKind::Mcp;
        }
        tool
    }

    /// Uses the raw output of a shell command: the displayed text adds lines around it. The raw output of an edit is
    /// both versions of the file.
    fn tool_end(&mut self, call: &ToolCall, _: &Tool) -> ToolEnd {
        let mut end = call.plain_end();
        let shown = call.text();
        if let Some(output) = call.output.as_ref() {
            if output["type"] == "shell_result"
                && let Some(text) = output["output"].as_str()
            {
                text.clone_into(&mut end.output);
            }
            if let Some(text) = edited(output).filter(|_| shown.is_empty()) {
                end.output = text;
            }
            if output["executionMode"] == "background" {
                self.background.insert(call.id.clone());
            }
        }
        let blocked = self.blocked.iter().position(|reason| *reason == shown);
        end.denied = blocked.map(|at| self.blocked.remove(at));
        if let Some(id) = background_shell(&shown) {
            self.background.insert(id.to_owned());
        }
        end
    }

    fn meta(&mut self, meta: &Value) {
        if meta["source"] == NOTIFICATION {
            let task = &meta["backgroundTask"];
            for id in ["toolUseId", "taskId"] {
                self.background
                    .remove(task[id].as_str().unwrap_or_default());
            }
        }
        let tokens = &meta["usage"];
        let number = |name: &str| tokens[name].as_u64();
        let Some(input) = number("inputTokens") else {
            return;
        };
        let usage = usage(
            input,
            number("outputTokens"),
            number("cachedReadTokens"),
            number("thoughtTokens"),
        );
        let of_agent = meta["parentToolCallId"].is_string();
        self.counted(of_agent).add(Source::Printed, usage);
    }

    /// What the agent reports about itself is marked.
    fn chunk(&self, text: &str, meta: &Value, _: &TurnSoFar) -> Chunk {
        match meta["source"].as_str() {
            // It is printed a second time with the turn about it.
            Some(NOTIFICATION) => Chunk::Noise,
            Some(REPORT) => Chunk::Notice(None),
            Some("background_notification_response") => Chunk::Answer,
            _ if text.starts_with(NOTIFICATION_ERROR) && meta["backgroundTurn"].is_object() => {
                Chunk::Hold
            }
            _ if text.starts_with(CALL_BLOCKED) => Chunk::Hold,
            _ if meta["qwenDiscreteMessage"] == true || text.starts_with(PROMPT_BLOCKED) => {
                Chunk::Notice(None)
            }
            _ => Chunk::Answer,
        }
    }

    fn held_text(&mut self, text: &str, _: NextUpdate<'_>, _: &TurnSoFar) -> HeldText {
        if let Some((_, reason)) = text
            .strip_prefix(CALL_BLOCKED)
            .and_then(|rest| rest.split_once(" - "))
        {
            self.blocked.push(reason.to_owned());
            return HeldText::Noise;
        }
        match text.strip_prefix(NOTIFICATION_ERROR) {
            Some(message) => HeldText::Failure(
                self.error(&RpcError::new(INTERNAL, message), RequestKind::Prompt),
            ),
            None => HeldText::Answer,
        }
    }

    fn announces(&self, method: &str) -> Option<Announcement> {
        match method {
            "_qwencode/start_turn" => Some(Announcement::Begin),
            "_qwencode/end_turn" => Some(Announcement::End),
            _ => None,
        }
    }

    fn works_in_background(&self) -> bool {
        !self.background.is_empty()
    }

    fn question(
        &self,
        call: &ToolCall,
        request: &Value,
        options: &[PermissionOption],
    ) -> Option<Question> {
        let name = request["_meta"]["toolName"].as_str();
        if name.or(call.name.as_deref()) != Some(ASK_USER) {
            return Question::of_options(request, options);
        }
        let questions = questions(request);
        let texts = questions.iter().filter_map(|it| it["question"].as_str());
        let message = texts.collect::<Vec<_>>().join("\n");
        let fields = questions
            .iter()
            .map(|question| (title(question), labels(question)));
        Some(Question::new(message, fields))
    }

    /// The answers are beside the option that submits them, each by the number of its question.
    fn choice(
        &self,
        request: &Value,
        answer: &Value,
        options: &[PermissionOption],
    ) -> Option<Choice> {
        if request["_meta"]["toolName"] != ASK_USER {
            return Choice::of_answer(answer, options);
        }
        let submit = options.iter().find(|option| option.kind == "allow_once")?;
        let names = form_names(questions(request).iter().map(title));
        let answers: Map<String, Value> = (names.iter().enumerate())
            .filter_map(|(at, name)| Some((at.to_string(), answer.get(name)?.clone())))
            .collect();
        if answers.is_empty() {
            return None;
        }
        let mut choice = Choice::new(&*submit.id);
        choice.fields.insert("answers".to_owned(), answers.into());
        Some(choice)
    }

    fn record_files(&self, session: &str) -> Option<RecordFiles> {
        let projects = self.projects.as_ref().filter(|_| is_plain(session))?;
        let paths = vec![
            format!("*/chats/{session}.jsonl"),
            format!("*/subagents/{session}/agent-*.jsonl"),
        ];
        Some(RecordFiles::new(projects, paths, &["\"usageMetadata\""]))
    }

    fn record_line(&mut self, line: &str) {
        let line: Value = serde_json::from_str(line).unwrap_or_default();
        let tokens = &line["usageMetadata"];
        let number = |name: &str| tokens[name].as_u64();
        if let Some(input) = number("promptTokenCount").filter(|_| line["type"] == "assistant") {
            let usage = usage(
                input,
                // It prints a missing count as 0.
                number("candidatesTokenCount").or(Some(0)),
                number("cachedContentTokenCount"),
                number("thoughtsTokenCount"),
            );
            let of_agent = line["isSidechain"] == true;
            self.counted(of_agent).add(Source::Recorded, usage);
        }
    }

    fn figures(&mut self, _: &Value, _: &TurnSoFar) -> Figures {
        let mut figures = Figures::default();
        let all = [self.own.take(), self.of_agents.take()];
        figures.usage = all.into_iter().flatten().reduce(Usage::plus);
        figures
    }

    /// Service errors begin with the HTTP status.
    fn error(&self, error: &RpcError, during: RequestKind) -> AgentError {
        let plain = error.plain(during);
        let status = plain.message.split(' ').next();
        let status = status.and_then(|word| word.parse::<u16>().ok());
        let kind = status.and_then(ErrorKind::of_http_status);
        let kind = kind.or_else(|| ErrorKind::by_patterns(&plain.message, PHRASES));
        // The word of Node.js for an answer that broke off.
        let is_cut = plain.message == "terminated";
        let kind = kind.or(is_cut.then_some(ErrorKind::Network));
        known_by(plain, kind)
    }

    /// Leaves out the lines about the CLI's own speed, which explain no failure.
    fn stderr_evidence<'a>(&self, stderr: &'a str) -> Cow<'a, str> {
        let plain = without_colors(stderr);
        if !plain.contains(PERFORMANCE) {
            return plain;
        }
        let lines = plain.lines().filter(|it| !it.starts_with(PERFORMANCE));
        Cow::Owned(lines.collect::<Vec<_>>().join("\n"))
    }

    fn mode(&self, wanted: PermissionMode) -> Result<ModeSwitch, AgentError> {
        match mode(wanted) {
            Some(mode) => {
                let approve = Approve::of_asking(wanted).unwrap_or_default();
                Ok(ModeSwitch::ModeAndAnswers(mode.to_owned(), approve))
            }
            None => Err(AgentError::refused(
                "permission",
                format!("Qwen Code cannot be set to {}", wanted.as_str()),
            )),
        }
    }
}

/// Creates the usage of a request. The input includes what came from a cache.
fn usage(input: u64, output: Option<u64>, cached: Option<u64>, thoughts: Option<u64>) -> Usage {
    Usage::default()
        .input_tokens(Some(input.saturating_sub(cached.unwrap_or(0))))
        .output_tokens(output)
        .cache_read_tokens(cached)
        .reasoning_tokens(thoughts)
}

/// Returns an edit in words, from its raw output.
fn edited(output: &Value) -> Option<String> {
    let path = output["filePath"]
        .as_str()
        .or_else(|| output["fileName"].as_str())?;
    output.get("fileDiff")?;
    let lines = |name: &str| output["diffStat"][name].as_u64().unwrap_or(0);
    let (added, removed) = (lines("model_added_lines"), lines("model_removed_lines"));
    Some(format!("{path}: {added} lines added, {removed} removed"))
}

/// Returns the id of a command in the background from the result of the call that began it.
fn background_shell(text: &str) -> Option<&str> {
    let mut lines = text.strip_prefix("Background shell started.\n")?.lines();
    lines
        .find_map(|line| line.strip_prefix("id: "))
        .map(str::trim)
}

fn questions(request: &Value) -> &[Value] {
    let questions = request["rawInput"]["questions"].as_array();
    questions.map(Vec::as_slice).unwrap_or_default()
}

fn title(question: &Value) -> &str {
    let header = question["header"]
        .as_str()
        .filter(|header| !header.is_empty());
    header
        .or_else(|| question["question"].as_str())
        .unwrap_or_default()
}

fn labels(question: &Value) -> Vec<&str> {
    let options = question["options"].as_array().into_iter().flatten();
    options
        .filter_map(|option| option["label"].as_str())
        .collect()
}

#[cfg(test)]
mod tests;
