//! Kimi Code, run with `kimi acp`.

mod record;

use std::path::PathBuf;

use serde_json::{Value, json};
use teamster_acp::{
    Approve, Chunk, Dialect, Figures, ModeSwitch, PermissionOption, Question, Tool, ToolCall,
    ToolEnd, TurnSoFar, file_change,
};
use teamster_core::provider::{
    Args, CredentialFile, Credentials, FileLocation, RecordFiles, Sign, mcp_content,
};
use teamster_core::{
    AgentError, Capabilities, ChangeKind, CliInfo, NoticeCode, PermissionMode, ToolKind,
};

use crate::agent::{NamedAgent, capabilities, is_plain};
use crate::mcp_name::Servers;
use record::Recorded;

/// Kimi Code.
pub const KIMI: NamedAgent = NamedAgent {
    info: &INFO,
    capabilities: &CAPABILITIES,
    args: |_| {
        let mut args = Args::new();
        args.add("acp");
        args
    },
    hooks_file: None,
    dialect: |params| {
        Box::new(KimiDialect {
            servers: Servers::of(params),
            sessions: params
                .cli_folder("KIMI_CODE_HOME", ".kimi-code")
                .map(|it| it.join("sessions")),
            record: Recorded::default(),
        })
    },
};

static INFO: CliInfo = {
    let mut info = CliInfo::new("kimi", "Kimi Code", "kimi");
    info.tested_versions = &["0.42.0", "0.43.1", "2.0.2", "2.1.0"];
    info.oldest_version = Some("0.42.0");
    info.install = "npm install -g @moonshot-ai/kimi-code";
    info.login = "log in with `kimi login`, or set KIMI_MODEL_NAME and KIMI_MODEL_API_KEY in the environment";
    info.credentials = Credentials::in_locations(
        &["KIMI_MODEL_API_KEY"],
        &[CredentialFile {
            location: FileLocation::user(
                "KIMI_CODE_HOME",
                ".kimi-code",
                "credentials/kimi-code.json",
            ),
            sign: Sign::Json(&["/refresh_token", "/access_token"]),
        }],
    );
    info
};

static CAPABILITIES: Capabilities = {
    let mut can = capabilities();
    can.effort = true;
    can.usage = true;
    can.mcp.transports = &["stdio", "http", "sse"];
    can
};

/// Name of the tool that starts a sub-agent.
const AGENT: &str = "Agent";
/// Beginning of the request for a command of a sub-agent, before the command.
const REQUESTED_COMMAND: &str = "Requesting approval to Running: ";
/// What the CLI prints of a compaction of the session, as of 2.1.0: each is a chunk of its own, without a mark.
const COMPACTION: [(&str, NoticeCode); 2] = [
    (
        "Compacting conversation context…",
        NoticeCode::CompactionStarted,
    ),
    (
        "Compaction is blocked by the current turn; retry when the turn is idle.",
        NoticeCode::CompactionFailed,
    ),
];
/// Beginning of the last of these, before its figures.
const COMPACTED: &str = "Compaction completed.\n- Messages compacted: ";
/// Prefix of the options of a question, of which there may be only one.
const CHOICE: &str = "q0_opt_";

#[derive(Debug)]
struct KimiDialect {
    servers: Servers,
    /// The folder of the CLI's sessions.
    sessions: Option<PathBuf>,
    record: Recorded,
}

impl Dialect for KimiDialect {
    fn name(&self) -> &'static str {
        "Kimi Code"
    }

    /// The first title is the tool's name. Until the call runs, its displayed content is the arguments, which grow
    /// piece by piece. A sub-agent's call is known only by its permission request, which has no arguments, but the command in words.
    fn tool(&mut self, call: &ToolCall) -> Tool {
        let mut tool = call.plain();
        if call.input.is_none() {
            let known = arguments(call).or_else(|| requested(call));
            tool.input = known.unwrap_or_else(|| json!({}));
        }
        tool.kind = kind(&tool.name).unwrap_or(tool.kind);
        tool.mcp = self.servers.tool(&tool.name, "mcp__");
        if tool.mcp.is_some() {
            tool.kind = ToolKind::Mcp;
        }
        tool
    }

    fn chunk(&self, text: &str, _: &Value, _: &TurnSoFar) -> Chunk {
        let of = |(words, code): &(&str, NoticeCode)| (text == *words).then_some(*code);
        let code = COMPACTION.iter().find_map(of);
        let ended = || text.starts_with(COMPACTED).then_some(NoticeCode::Compacted);
        match code.or_else(ended) {
            Some(code) => Chunk::Notice(Some(code)),
            None => Chunk::Answer,
        }
    }

    fn awaits_arguments(&self, call: &ToolCall) -> bool {
        call.input.is_none()
    }

    /// Only a sub-agent's calls are not announced before permission for them is requested.
    fn parent_of_request(&self, turn: &TurnSoFar) -> Option<String> {
        let is_agent = |call: &&ToolCall| call.tool.as_ref().is_some_and(|it| it.name == AGENT);
        let mut agents = turn.open_calls().filter(is_agent);
        agents.next_back().map(|call| call.id.clone())
    }

    fn tool_end(&mut self, call: &ToolCall, tool: &Tool) -> ToolEnd {
        let mut end = call.plain_end();
        if let Some(Value::Array(parts)) = &call.output {
            let blocks: Vec<Value> = parts.iter().map(block).collect();
            end.output = mcp_content(&blocks);
        }
        // The CLI does not tell whether a file that it wrote had been there.
        if tool.name == "Write" && end.is_error == Some(false) && end.effects.is_empty() {
            let path = (call.locations.first()).and_then(|location| location["path"].as_str());
            let path = path.or_else(|| tool.input["path"].as_str());
            let change = |path| file_change(path, ChangeKind::Update);
            end.effects.extend(path.map(change));
        }
        end
    }

    fn question(
        &self,
        _: &ToolCall,
        request: &Value,
        options: &[PermissionOption],
    ) -> Option<Question> {
        let is_choice = |option: &PermissionOption| option.id.starts_with(CHOICE);
        if options.iter().any(is_choice) {
            let choices = options.iter().filter(|option| is_choice(option));
            let names = choices.map(|option| option.name.as_str()).collect();
            return Some(Question::of_choices(request, names));
        }
        Question::of_options(request, options)
    }

    fn record_files(&self, session: &str) -> Option<RecordFiles> {
        let sessions = self.sessions.as_ref().filter(|_| is_plain(session))?;
        let paths = vec![format!("*/{session}/agents/*/wire.jsonl")];
        Some(RecordFiles::new(sessions, paths, record::LINES))
    }

    fn record_line(&mut self, line: &str) {
        self.record.line(line);
    }

    fn awaits_record(&self) -> bool {
        self.sessions.is_some() && !self.record.has_ended()
    }

    fn figures(&mut self, _: &Value, _: &TurnSoFar) -> Figures {
        let mut figures = Figures::default();
        figures.usage = self.record.take_usage();
        figures
    }

    /// A turn of which the model failed ends like one that went well.
    fn failure(&mut self, _: Option<&str>, _: &TurnSoFar) -> Option<AgentError> {
        self.record.take_failure()
    }

    fn turn_begins(&mut self, _: bool) {
        self.record = self.record.next();
    }

    fn mode(&self, mode: PermissionMode) -> Result<ModeSwitch, AgentError> {
        let answers = Approve::of(mode).map(ModeSwitch::Answers);
        answers.ok_or_else(|| {
            AgentError::refused(
                "permission",
                format!("Kimi Code cannot be set to {}", mode.as_str()),
            )
        })
    }
}

/// Returns the kind of a tool. A permission request has none, and the CLI counts searches as reads.
fn kind(name: &str) -> Option<ToolKind> {
    Some(match name {
        "Read" | "ReadMediaFile" => ToolKind::Read,
        "Glob" | "Grep" => ToolKind::Search,
        "Write" | "Edit" => ToolKind::Edit,
        "Bash" => ToolKind::Execute,
        "FetchURL" | "WebSearch" => ToolKind::Fetch,
        AGENT => ToolKind::Task,
        _ => return None,
    })
}

/// Converts a part of a result to a content block.
fn block(part: &Value) -> Value {
    let url = part["imageUrl"]["url"].as_str().unwrap_or_default();
    let data = url
        .strip_prefix("data:")
        .and_then(|it| it.split_once(";base64,"));
    match data {
        Some((media_type, data)) => json!({"type": "image", "mimeType": media_type, "data": data}),
        None if !url.is_empty() => json!({"type": "image", "uri": url}),
        None => part.clone(),
    }
}

/// Returns the displayed arguments, once they are complete.
fn arguments(call: &ToolCall) -> Option<Value> {
    let shown = serde_json::from_str::<Value>(&call.text()).ok();
    shown.filter(Value::is_object)
}

/// Returns the arguments in the words of a permission request.
fn requested(call: &ToolCall) -> Option<Value> {
    let text = call.text();
    let command = text.strip_prefix(REQUESTED_COMMAND)?;
    Some(json!({"command": command}))
}

#[cfg(test)]
mod tests;
