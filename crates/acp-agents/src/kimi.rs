//! Kimi Code, run with `kimi acp`.

use serde_json::Value;
use teamster_acp::{Approve, Dialect, ModeSwitch, Tool, ToolCall};
use teamster_core::provider::{Args, CredentialFile, Credentials, FileLocation, Sign};
use teamster_core::{AgentError, Capabilities, CliInfo, PermissionMode, ToolKind};

use crate::agent::{NamedAgent, capabilities};
use crate::mcp_name::Servers;

/// Kimi Code.
pub const KIMI: NamedAgent = NamedAgent {
    info: &INFO,
    capabilities: &CAPABILITIES,
    args: |_| {
        let mut args = Args::new();
        args.add("acp");
        args
    },
    dialect: |params| {
        Box::new(KimiDialect {
            servers: Servers::of(params),
        })
    },
};

static INFO: CliInfo = {
    let mut info = CliInfo::new("kimi", "Kimi Code", "kimi");
    info.tested_versions = &["2.1.0"];
    info.oldest_version = Some("2.1.0");
    info.install = "npm install -g @moonshot-ai/kimi-code";
    info.login = "log in with `kimi login`, or set KIMI_MODEL_NAME and KIMI_MODEL_API_KEY in the environment";
    info.credentials = Credentials::in_places(
        &["KIMI_MODEL_API_KEY"],
        &[CredentialFile {
            location: FileLocation::User {
                variable: "KIMI_CODE_HOME",
                folder: ".kimi-code",
                path: "credentials/kimi-code.json",
            },
            sign: Sign::Json(&["/refresh_token", "/access_token"]),
        }],
    );
    info
};

static CAPABILITIES: Capabilities = {
    let mut can = capabilities();
    can.effort = true;
    can.mcp.transports = &["stdio", "http", "sse"];
    can
};

#[derive(Debug)]
struct KimiDialect {
    servers: Servers,
}

impl Dialect for KimiDialect {
    fn name(&self) -> &'static str {
        "Kimi Code"
    }

    /// The first title is the tool's name. Until the call runs, its displayed content is the arguments, which grow
    /// piece by piece.
    fn tool(&mut self, call: &ToolCall) -> Tool {
        let mut tool = call.plain();
        if call.input.is_none()
            && let Some(arguments) = arguments(call)
        {
            tool.input = arguments;
        }
        tool.mcp = self.servers.tool(&tool.name, "mcp__");
        if tool.mcp.is_some() {
            tool.kind = ToolKind::Mcp;
        }
        tool
    }

    fn awaits_arguments(&self, call: &ToolCall) -> bool {
        call.input.is_none()
    }

    fn mode(&self, mode: PermissionMode) -> Result<ModeSwitch, AgentError> {
        Approve::of(mode).map(ModeSwitch::Answers).ok_or_else(|| {
            AgentError::refused(
                "permission",
                format!("Kimi Code cannot be brought to {}", mode.as_str()),
            )
        })
    }
}

/// Returns the displayed arguments, once they are complete.
fn arguments(call: &ToolCall) -> Option<Value> {
    let shown = serde_json::from_str::<Value>(&call.text()).ok();
    shown.filter(Value::is_object)
}
