//! Launch of Pi.

mod files;
pub(crate) mod mcp;
mod session;

use std::iter;

use teamster_core::provider::{Args, Launch, Stdin};
use teamster_core::{
    AgentError, ErrorKind, ExecuteParams, McpServer, PermissionMode, SystemPrompt,
};

use crate::{CAPABILITIES, INFO};

pub(crate) use files::base64;
pub(crate) use session::{launch_query, launch_session};

/// Largest prompt that goes to stdin, in bytes. The CLI has no known limit (200 KB were measured). This limit refuses
/// prompts that are too large for any model.
const LARGEST_STDIN_PROMPT: usize = 10 * 1024 * 1024;

/// Variables that the CLI sets for its own children and for the commands that it runs.
const NESTED_SESSION_VARIABLES: &[&str] = &[
    "PI_CODING_AGENT",
    "PI_SESSION_ID",
    "PI_SESSION_FILE",
    "PI_PROVIDER",
    "PI_MODEL",
    "PI_REASONING_LEVEL",
];

/// The CLI's names of reasoning efforts. It only warns about others.
const EFFORTS: [&str; 7] = ["off", "minimal", "low", "medium", "high", "xhigh", "max"];

/// Built-in tools that change nothing.
const READING: [&str; 4] = ["read", "grep", "find", "ls"];
/// Built-in tools that change files.
const EDITING: [&str; 2] = ["edit", "write"];
/// Tools that the CLI offers by default.
const USUAL: [&str; 4] = ["read", "bash", "edit", "write"];

pub(crate) fn launch(params: &ExecuteParams) -> Result<Launch, AgentError> {
    check(params)?;
    let mut args = Args::new();
    args.add("--mode");
    args.add("json");
    options(params, &mut args);
    args.add_all(&params.extra_args);
    for image in &params.images {
        files::attach(image, &mut args)?;
    }
    let stdin = prompt(params, &mut args)?;
    Ok(begin(args, stdin))
}

/// Builds the common part of the launches of runs and sessions.
fn begin(args: Args, stdin: Stdin) -> Launch {
    let (args, private_files) = args.into_parts();
    Launch {
        args,
        private_files,
        stdin,
        env_remove: NESTED_SESSION_VARIABLES.to_vec(),
        ..Launch::default()
    }
}

/// Adds the prompt as the last argument or on stdin.
fn prompt(params: &ExecuteParams, args: &mut Args) -> Result<Stdin, AgentError> {
    let prompt = &params.prompt;
    if params.prompt_on_stdin(prompt, &INFO, &CAPABILITIES, LARGEST_STDIN_PROMPT)? {
        let mut bytes = Vec::with_capacity(prompt.len() + 4);
        // The CLI may ask on stdin whether to fork a session of another directory: the empty line answers no. The CLI
        // trims the blanks around a prompt.
        if params.session_id.is_some() {
            bytes.push(b'\n');
        }
        // The CLI trims normal blanks, so only this one keeps the prompt from being read as a command.
        if !params.slash_commands && trimmed(prompt).starts_with('/') {
            bytes.extend("\u{200b}".as_bytes());
        }
        bytes.extend(prompt.as_bytes());
        // The CLI appends the words after `--` to stdin unchanged.
        let tail = tail(prompt);
        if !tail.is_empty() {
            args.add("--");
            args.add(tail);
        }
        return Ok(Stdin::Bytes(bytes));
    }
    args.add("--");
    args.add(as_word(prompt, params.slash_commands));
    Ok(Stdin::Closed)
}

/// Escapes the prompt as a word that is no file name, no command and no flag. The CLI also looks for these after
/// `--`.
fn as_word(prompt: &str, slash_commands: bool) -> String {
    let is_more = prompt.starts_with('@') || prompt == "--offline";
    if is_more || is_command(prompt, slash_commands) {
        format!(" {prompt}")
    } else {
        prompt.to_owned()
    }
}

/// Escapes a prompt of a session, or a message in a turn, so that it is not a command.
pub(crate) fn not_a_command(prompt: &str, slash_commands: bool) -> String {
    if is_command(prompt, slash_commands) {
        format!(" {prompt}")
    } else {
        prompt.to_owned()
    }
}

fn is_command(prompt: &str, slash_commands: bool) -> bool {
    !slash_commands && prompt.starts_with('/')
}

/// Trims the characters that JavaScript treats as blanks.
fn trimmed(text: &str) -> &str {
    text.trim_matches(is_blank)
}

fn is_blank(c: char) -> bool {
    c == '\u{feff}' || (c.is_whitespace() && c != '\u{85}')
}

/// Returns the blanks at the end of a prompt that go into the arguments.
fn tail(prompt: &str) -> &str {
    /// Longest kept tail in bytes. A longer one is dropped: it is no part of a text, and might not fit into an
    /// argument.
    const MOST: usize = 1000;
    let end = &prompt[prompt.trim_end_matches(is_blank).len()..];
    if end.len() > MOST { "" } else { end }
}

/// Adds options. A value is a separate word, which the CLI accepts with any first character. `check` refuses values
/// that begin with `-` nevertheless.
fn options(params: &ExecuteParams, args: &mut Args) {
    let mut option = |flag: &str, value: &str| {
        args.add(flag);
        args.add(value);
    };
    if let Some(id) = &params.session_id {
        option(if params.fork { "--fork" } else { "--session" }, id);
    }
    if let Some(id) = &params.new_session_id {
        option("--session-id", id);
    }
    if let Some(model) = &params.model {
        option("--model", model);
    }
    if let Some(effort) = &params.effort {
        option("--thinking", effort);
    }
    if let Some(tools) = tools(params) {
        option("--tools", &tools.join(","));
    }
    if !params.denied_tools.is_empty() {
        option("--exclude-tools", &params.denied_tools.join(","));
    }
    for skill in &params.skills {
        args.add("--skill");
        args.add(skill);
    }
    let withheld = Withheld::of(params);
    mcp::add(
        &params.mcp_servers,
        |server| !withheld.has_server(server),
        args,
    );
    // As a file, because a text that is the path of a file would be read as that file.
    let (flag, text) = match &params.system_prompt {
        Some(SystemPrompt::Append(text)) => ("--append-system-prompt", text),
        Some(SystemPrompt::Replace(text)) => ("--system-prompt", text),
        _ => return,
    };
    args.add(flag);
    args.private_file("", text.as_bytes());
}

/// Returns the only tools of the run, or `None` for the default tools. The CLI never asks for permission: a tool runs
/// or is not offered.
fn tools(params: &ExecuteParams) -> Option<Vec<String>> {
    let of_mode: Vec<&str> = match params.permission {
        PermissionMode::ReadOnly => READING.to_vec(),
        PermissionMode::AcceptEdits => READING.into_iter().chain(EDITING).collect(),
        _ if params.allowed_tools.is_empty() => return None,
        _ => USUAL.to_vec(),
    };
    let mut tools: Vec<String> = of_mode.into_iter().map(str::to_owned).collect();
    for tool in &params.allowed_tools {
        if !tools.contains(tool) {
            tools.push(tool.clone());
        }
    }
    // A list leaves out the tools of MCP servers, which no mode is about. A version before 1.0.4 takes this for a name.
    tools.push(mcp::ALL.to_owned());
    Some(tools)
}

/// Tools that the run's parameters withhold. Since 1.0.4, `*` in an entry stands for any characters.
#[derive(Debug, Clone, Default)]
pub(crate) struct Withheld {
    /// If set, all other tools are withheld.
    only: Option<Vec<String>>,
    denied: Vec<String>,
}

impl Withheld {
    pub(crate) fn of(params: &ExecuteParams) -> Self {
        let list = |text: &String| text.split(',').map(|name| name.trim().to_owned()).collect();
        let mut withheld = Self {
            only: tools(params),
            denied: params.denied_tools.clone(),
        };
        for (flag, value) in params
            .extra_args
            .iter()
            .zip(params.extra_args.iter().skip(1))
        {
            match flag.as_str() {
                "--tools" | "-t" => withheld.list(list(value)),
                "--exclude-tools" | "-xt" => withheld.denied = list(value),
                _ => {}
            }
        }
        withheld
    }

    /// Takes a list of the only tools, or since 1.1 one of changes of the default tools: `+name`, `-name`.
    fn list(&mut self, tools: Vec<String>) {
        if tools.iter().all(|tool| tool.starts_with(['+', '-'])) {
            let without = tools.iter().filter_map(|tool| tool.strip_prefix('-'));
            self.denied.extend(without.map(str::to_owned));
        } else {
            self.only = Some(tools);
        }
    }

    /// Returns whether the CLI has a tool of this name that the run withholds.
    pub(crate) fn has(&self, tool: &str) -> bool {
        let own = READING.iter().chain(&USUAL);
        let is_known = tool.starts_with(mcp::PREFIX) || own.into_iter().any(|name| *name == tool);
        let is_in = |list: &[String]| list.iter().any(|entry| fits(entry, tool));
        is_in(&self.denied) || (is_known && self.only.as_deref().is_some_and(|only| !is_in(only)))
    }

    /// Returns whether the run withholds all tools of a server.
    fn has_server(&self, server: &McpServer) -> bool {
        let all = mcp::all_tools(server);
        let names_any = |entry: &String| fits(entry, &all) || fits(&all, entry);
        let only = self.only.as_deref();
        self.denied.iter().any(|entry| fits(entry, &all))
            || only.is_some_and(|only| !only.iter().any(names_any))
    }
}

/// Returns whether a tool's name fits an entry of a list of tools.
fn fits(entry: &str, tool: &str) -> bool {
    let mut parts = entry.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = tool.strip_prefix(first) else {
        return false;
    };
    let Some(last) = parts.next_back() else {
        return rest.is_empty();
    };
    for part in parts {
        let Some((_, after)) = rest.split_once(part) else {
            return false;
        };
        rest = after;
    }
    rest.ends_with(last)
}

/// Refuses parameters that the CLI would refuse or misunderstand. The errors have the next step.
fn check(params: &ExecuteParams) -> Result<(), AgentError> {
    params.check(&INFO, &CAPABILITIES)?;
    if trimmed(&params.prompt).is_empty() {
        return invalid("prompt", "it is empty");
    }
    for (name, id) in [
        ("session_id", &params.session_id),
        ("new_session_id", &params.new_session_id),
    ] {
        if id.as_deref().is_some_and(|id| !is_session_id(id)) {
            let error = AgentError::refused(
                name,
                "not the id of a Pi session: use letters, digits, `.`, `_` and `-`, with a letter or a \
                 digit at both ends",
            );
            return Err(if name == "session_id" {
                error.kind(ErrorKind::SessionNotFound)
            } else {
                error
            });
        }
    }
    if let Some(model) = &params.model
        && (model.trim().is_empty() || model.starts_with('-'))
    {
        return invalid(
            "model",
            "not the name of a model; `pi --list-models` lists them",
        );
    }
    if let Some(effort) = &params.effort
        && !EFFORTS.contains(&effort.as_str())
    {
        let known = EFFORTS.join(", ");
        return invalid("effort", &format!("Pi knows {known}"));
    }
    for (name, tools) in [
        ("allowed_tools", &params.allowed_tools),
        ("denied_tools", &params.denied_tools),
    ] {
        let is_odd = |tool: &String| {
            tool.is_empty() || tool.contains(',') || tool.trim() != tool || tool.starts_with('-')
        };
        if tools.iter().any(is_odd) {
            return invalid(name, "Pi takes names of tools only, such as `bash`");
        }
    }
    if matches!(&params.system_prompt, Some(SystemPrompt::Append(text) | SystemPrompt::Replace(text))
        if text.is_empty())
    {
        return invalid("system_prompt", "it is empty; leave it out");
    }
    mcp::check(&params.mcp_servers)?;
    check_extra_args(params)
}

/// Refuses flags that would change the session or the output format, or end the run at once.
fn check_extra_args(params: &ExecuteParams) -> Result<(), AgentError> {
    const RESUME: &str = "use session_id to resume a session";
    const OUTPUT: &str = "teamster reads Pi's JSON";
    const WAYS: &[(&str, &str)] = &[
        ("--mode", OUTPUT),
        ("--print", OUTPUT),
        ("-p", OUTPUT),
        ("--export", OUTPUT),
        ("--list-models", OUTPUT),
        ("--help", OUTPUT),
        ("-h", OUTPUT),
        ("--version", OUTPUT),
        ("-v", OUTPUT),
        ("--continue", RESUME),
        ("-c", RESUME),
        ("--resume", RESUME),
        ("-r", RESUME),
        ("--session", RESUME),
        ("--fork", "use fork"),
        ("--session-id", "use new_session_id"),
        ("--", "what follows it would be prompts"),
    ];
    let first = |arg: &String| WAYS.iter().find(|(flag, _)| flag == arg);
    match params.extra_args.iter().find_map(first) {
        Some((flag, way)) => invalid("extra_args", &format!("{flag} cannot be used: {way}")),
        None => Ok(()),
    }
}

/// Returns whether the CLI takes this as the id of a session, not as the path of a file.
fn is_session_id(id: &str) -> bool {
    let is_edge = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    let bytes = id.as_bytes();
    let edges = iter::once(bytes.first()).chain([bytes.last()]);
    edges.into_iter().all(is_edge)
        && bytes
            .iter()
            .all(|b| b.is_ascii_alphanumeric() || b"._-".contains(b))
        && !id.to_ascii_lowercase().ends_with(".jsonl")
}

fn invalid<T>(parameter: &str, problem: &str) -> Result<T, AgentError> {
    Err(AgentError::refused(parameter, problem))
}

#[cfg(test)]
mod tests;
