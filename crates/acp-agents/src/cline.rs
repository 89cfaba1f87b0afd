//! Cline, run with `cline --acp`.

mod record;

use std::path::PathBuf;

use serde_json::Value;
use teamster_acp::{
    Approve, Dialect, Figures, ModeSwitch, RequestKind, RpcError, Tool, ToolCall, ToolEnd,
    TurnSoFar, file_change,
};
use teamster_core::provider::{Args, CredentialFile, Credentials, FileLocation, RecordFiles, Sign};
use teamster_core::{
    AgentError, AgentEvent, Capabilities, ChangeKind, CliInfo, ErrorKind, ExecuteParams,
    PermissionMode, ToolKind,
};

use crate::agent::{ASKING, NamedAgent, capabilities, is_plain};
use crate::mcp_name::Servers;
use crate::words::known_by;
use record::Recorded;

/// Its words about the model's answers.
const PHRASES: &[(&str, ErrorKind)] = &[
    ("Model returned empty response", ErrorKind::Protocol),
    ("JSON parsing failed", ErrorKind::Protocol),
    ("maximum output token limit", ErrorKind::Invalid),
];

/// Cline.
pub const CLINE: NamedAgent = NamedAgent {
    info: &INFO,
    capabilities: &CAPABILITIES,
    args: |_| {
        let mut args = Args::new();
        args.add("--acp");
        // The user may have configured otherwise. A session may be switched to a mode that denies.
        args.value("--auto-approve", "false");
        args
    },
    hooks_file: None,
    dialect: |params| {
        Box::new(ClineDialect {
            servers: Servers::of(params),
            sessions: sessions(params),
            recorded: Recorded::default(),
        })
    },
};

static INFO: CliInfo = {
    let mut info = CliInfo::new("cline", "Cline", "cline");
    info.tested_versions = &["3.0.57", "3.0.61", "3.0.62", "3.0.64", "3.0.65"];
    info.oldest_version = Some("3.0.57");
    info.install = "npm install -g cline";
    info.login = "log in with `cline auth`; with a key of another service set CLINE_PROVIDER and \
                  CLINE_API_KEY in the environment";
    info.credentials = Credentials::in_locations(
        &["CLINE_API_KEY"],
        &[CredentialFile {
            location: FileLocation::user("CLINE_DIR", ".cline", "data/settings/providers.json"),
            // As an ACP agent, Cline uses no other login of this file.
            sign: Sign::Json(&["/providers/cline", "/providers/openai-codex"]),
        }],
    );
    info.instructions = &["AGENTS.md", ".clinerules"];
    info
};

static CAPABILITIES: Capabilities = {
    let mut can = capabilities();
    // Cline accepts MCP servers but does not offer their tools to the model.
    can.mcp.transports = &[];
    can.mcp.deliveries = &[];
    can.permission_modes = ASKING;
    can.usage = true;
    can
};

/// Tool that starts a sub-agent. What comes between its call and its end is the sub-agent's.
const SUB_AGENT: &str = "spawn_agent";

#[derive(Debug)]
struct ClineDialect {
    servers: Servers,
    /// The folder of the CLI's sessions.
    sessions: Option<PathBuf>,
    /// The active turn in the session's files.
    recorded: Recorded,
}

/// Returns the folder of the CLI's sessions, as its variables have it.
fn sessions(params: &ExecuteParams) -> Option<PathBuf> {
    let data = || {
        let in_folder = || Some(params.cli_folder("CLINE_DIR", ".cline")?.join("data"));
        params.path_in_variable("CLINE_DATA_DIR").or_else(in_folder)
    };
    let sessions = params.path_in_variable("CLINE_SESSION_DATA_DIR");
    sessions.or_else(|| Some(data()?.join("sessions")))
}

impl Dialect for ClineDialect {
    fn name(&self) -> &'static str {
        "Cline"
    }

    /// The title is the tool's name, followed by a colon and the arguments.
    fn tool(&mut self, call: &ToolCall) -> Tool {
        let mut tool = call.plain();
        let title = call.first_title.as_str();
        title
            .split_once(": ")
            .map_or(title, |(name, _)| name)
            .clone_into(&mut tool.name);
        match tool.name.as_str() {
            "editor" | "apply_patch" => tool.kind = ToolKind::Edit,
            SUB_AGENT => {
                tool.kind = ToolKind::Task;
                tool.sub_agent = true;
            }
            _ => {}
        }
        tool.mcp = self.servers.tool(&tool.name, "");
        if tool.mcp.is_some() {
            tool.kind = ToolKind::Mcp;
        }
        tool
    }

    /// The status is `completed` even if the call failed.
    fn tool_end(&mut self, call: &ToolCall, tool: &Tool) -> ToolEnd {
        let mut end = call.plain_end();
        // The error of a call that was denied or did not begin is JSON in a text.
        let failed = match &call.output {
            Some(Value::String(text)) => serde_json::from_str::<Value>(text).ok(),
            _ => None,
        };
        let results: Vec<&Value> = match failed.as_ref().or(call.output.as_ref()) {
            Some(Value::Array(results)) => results.iter().collect(),
            Some(result) => vec![result],
            None => Vec::new(),
        };
        let text = |result: &&Value| {
            let said = |field: &str| result[field].as_str();
            let is_said = |text: &&str| !text.trim().is_empty();
            let error = said("error").filter(is_said);
            match (said("result").filter(is_said), error) {
                // What a failed command printed has the error at its beginning.
                (Some(output), Some(error)) if !output.contains(error) => {
                    Some(format!("{output}\n{error}"))
                }
                (Some(text), _) | (None, Some(text)) => Some(text.to_owned()),
                (None, None) => said("result").or_else(|| said("text")).map(str::to_owned),
            }
        };
        let texts: Option<Vec<String>> = results.iter().map(text).collect();
        if let Some(texts) = texts.filter(|texts| !texts.is_empty()) {
            end.output = texts.join("\n");
        }
        if results.iter().any(|result| result["success"] == false) {
            end.is_error = Some(true);
        }
        if end.is_error == Some(false) && tool.kind == ToolKind::Edit {
            end.effects = changes(&tool.input);
        }
        end
    }

    /// The files of sub-agents are in the folder of the session too. The CLI splits a sub-agent's id at the first
    /// separator, which may be part of the session's id.
    fn record_files(&self, session: &str) -> Option<RecordFiles> {
        let sessions = self.sessions.as_ref().filter(|_| is_plain(session))?;
        let begin = session.split("__").next().filter(|it| !it.is_empty());
        let folders = [Some(session), begin].into_iter().flatten();
        let paths = folders
            .map(|folder| format!("{folder}/*.messages.json"))
            .collect();
        Some(RecordFiles::new(sessions, paths, record::ANSWERS).in_list(record::MESSAGES))
    }

    fn record_line(&mut self, line: &str) {
        self.recorded.message(line);
    }

    fn error(&self, error: &RpcError, during: RequestKind) -> AgentError {
        let plain = error.plain(during);
        let kind = ErrorKind::by_patterns(&plain.message, PHRASES);
        known_by(plain, kind)
    }

    fn figures(&mut self, _: &Value, _: &TurnSoFar) -> Figures {
        std::mem::take(&mut self.recorded).into_figures()
    }

    fn repeats_denied(&self) -> bool {
        true
    }

    fn mode(&self, mode: PermissionMode) -> Result<ModeSwitch, AgentError> {
        Approve::of_asking(mode)
            .map(ModeSwitch::Answers)
            .ok_or_else(|| {
                AgentError::refused(
                    "permission",
                    format!("Cline cannot be set to {}", mode.as_str()),
                )
            })
    }
}

/// Returns the files that an edit changed, from its arguments: a patch, or the path and the texts of one edit.
fn changes(input: &Value) -> Vec<AgentEvent> {
    if let Some(patch) = input["input"].as_str() {
        let kinds = [
            ("*** Add File: ", ChangeKind::Add),
            ("*** Update File: ", ChangeKind::Update),
            ("*** Delete File: ", ChangeKind::Delete),
        ];
        let change = |line: &str| {
            let mut kinds = kinds.iter();
            kinds.find_map(|(mark, kind)| Some(file_change(line.strip_prefix(mark)?.trim(), *kind)))
        };
        return patch.lines().filter_map(change).collect();
    }
    let Some(path) = input["path"].as_str() else {
        return Vec::new();
    };
    let is_new = input["old_text"].is_null() && input["insert_line"].is_null();
    let kind = if is_new {
        ChangeKind::Add
    } else {
        ChangeKind::Update
    };
    vec![file_change(path, kind)]
}

#[cfg(test)]
mod tests;
