//! Cline, run with `cline --acp`.

use serde_json::Value;
use teamster_acp::{Approve, Dialect, ModeSwitch, Tool, ToolCall, ToolEnd};
use teamster_core::provider::{Args, CredentialFile, Credentials, FileLocation, Sign};
use teamster_core::{AgentError, Capabilities, CliInfo, PermissionMode, ToolKind};

use crate::agent::{NamedAgent, capabilities};
use crate::mcp_name::Servers;

/// Cline.
pub const CLINE: NamedAgent = NamedAgent {
    info: &INFO,
    capabilities: &CAPABILITIES,
    args: |_| {
        let mut args = Args::new();
        args.add("--acp");
        args
    },
    dialect: |params| {
        Box::new(ClineDialect {
            servers: Servers::of(params),
        })
    },
};

static INFO: CliInfo = {
    let mut info = CliInfo::new("cline", "Cline", "cline");
    info.tested_versions = &["3.0.65"];
    info.oldest_version = Some("3.0.65");
    info.install = "npm install -g cline";
    info.login = "log in with `cline auth`; with a key of another service set CLINE_PROVIDER and \
                  CLINE_API_KEY in the environment";
    info.credentials = Credentials::in_places(
        &["CLINE_API_KEY"],
        &[CredentialFile {
            location: FileLocation::User {
                variable: "CLINE_DIR",
                folder: ".cline",
                path: "data/settings/providers.json",
            },
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
    can
};

#[derive(Debug)]
struct ClineDialect {
    servers: Servers,
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
        if matches!(tool.name.as_str(), "editor" | "apply_patch") {
            tool.kind = ToolKind::Edit;
        }
        tool.mcp = self.servers.tool(&tool.name, "");
        if tool.mcp.is_some() {
            tool.kind = ToolKind::Mcp;
        }
        tool
    }

    /// The status is `completed` even if the call failed.
    fn tool_end(&mut self, call: &ToolCall, _: &Tool) -> ToolEnd {
        let mut end = call.plain_end();
        let results: Vec<&Value> = match &call.output {
            Some(Value::Array(results)) => results.iter().collect(),
            Some(result) => vec![result],
            None => Vec::new(),
        };
        let texts: Option<Vec<&str>> = results.iter().map(|it| it["result"].as_str()).collect();
        if let Some(texts) = texts.filter(|texts| !texts.is_empty()) {
            end.output = texts.join("\n");
        }
        if results.iter().any(|result| result["success"] == false) {
            end.is_error = Some(true);
        }
        end
    }

    fn mode(&self, mode: PermissionMode) -> Result<ModeSwitch, AgentError> {
        Approve::of(mode).map(ModeSwitch::Answers).ok_or_else(|| {
            AgentError::refused(
                "permission",
                format!("Cline cannot be brought to {}", mode.as_str()),
            )
        })
    }
}
