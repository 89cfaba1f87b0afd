//! Qwen Code, run with `qwen --acp`.
//!
//! Qwen Code is a fork of Gemini CLI, but its ACP output differs. The tool's name and each request's tokens are in
//! `_meta`.

use serde_json::Value;
use teamster_acp::{
    Dialect, During, Figures, ModeSwitch, RpcError, Tool, ToolCall, ToolEnd, TurnSoFar,
};
use teamster_core::provider::{Args, CredentialFile, Credentials, FileLocation, Sign};
use teamster_core::{
    AgentError, Capabilities, CliInfo, ErrorKind, ExecuteParams, PermissionMode, ToolKind, Usage,
};

use crate::agent::{NamedAgent, capabilities};
use crate::mcp_name::Servers;

/// Qwen Code.
pub const QWEN: NamedAgent = NamedAgent {
    info: &INFO,
    capabilities: &CAPABILITIES,
    args,
    dialect: |params| {
        Box::new(QwenDialect {
            servers: Servers::of(params),
            usage: None,
        })
    },
};

static INFO: CliInfo = {
    let mut info = CliInfo::new("qwen", "Qwen Code", "qwen");
    info.tested_versions = &["0.24.4"];
    info.oldest_version = Some("0.24.4");
    info.install = "npm install -g @qwen-code/qwen-code";
    info.login = "run `qwen` and choose a service, or set OPENAI_API_KEY in the environment";
    info.credentials = {
        const fn in_home(path: &'static str, pointer: &'static [&'static str]) -> CredentialFile {
            CredentialFile {
                location: FileLocation::User {
                    variable: "QWEN_HOME",
                    folder: ".qwen",
                    path,
                },
                sign: Sign::Json(pointer),
            }
        }
        let mut places = Credentials::in_places(
            &["OPENAI_API_KEY"],
            &[
                in_home("oauth_creds.json", &["/access_token", "/refresh_token"]),
                in_home("settings.json", &["/security/auth/apiKey"]),
            ],
        );
        // Each service in the settings can have its own variable for the key.
        places.may_be_elsewhere = true;
        places
    };
    info.instructions = &["QWEN.md", "AGENTS.md"];
    info
};

static CAPABILITIES: Capabilities = {
    let mut can = capabilities();
    can.mcp.transports = &["stdio", "http", "sse"];
    can.usage = true;
    can
};

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
        PermissionMode::Default => "default",
        PermissionMode::AcceptEdits => "auto-edit",
        PermissionMode::Bypass => "yolo",
        _ => return None,
    })
}

#[derive(Debug)]
struct QwenDialect {
    servers: Servers,
    /// Usage of the active turn.
    usage: Option<Usage>,
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
        tool.mcp = self.servers.tool(&tool.name, "mcp__");
        if tool.mcp.is_some() {
            tool.kind = ToolKind::Mcp;
        }
        tool
    }

    /// Uses the raw output of a shell command: the displayed text adds lines around it.
    fn tool_end(&mut self, call: &ToolCall, _: &Tool) -> ToolEnd {
        let mut end = call.plain_end();
        if let Some(output) = call.output.as_ref()
            && output["type"] == "shell_result"
            && let Some(text) = output["output"].as_str()
        {
            text.clone_into(&mut end.output);
        }
        end
    }

    fn meta(&mut self, meta: &Value) {
        let tokens = &meta["usage"];
        let number = |name: &str| tokens[name].as_u64();
        let Some(input) = number("inputTokens") else {
            return;
        };
        // The input tokens include the cached ones.
        let cached = number("cachedReadTokens");
        let usage = Usage::default()
            .input_tokens(Some(input.saturating_sub(cached.unwrap_or(0))))
            .output_tokens(number("outputTokens"))
            .cache_read_tokens(cached)
            .reasoning_tokens(number("thoughtTokens"));
        self.usage = Some(self.usage.map_or(usage, |sum| sum.plus(usage)));
    }

    fn figures(&mut self, _: &Value, _: &TurnSoFar) -> Figures {
        let mut figures = Figures::default();
        figures.usage = self.usage.take();
        figures
    }

    /// Service errors begin with the HTTP status.
    fn error(&self, error: &RpcError, during: During) -> AgentError {
        let mut plain = error.plain(during);
        let status = plain.message.split(' ').next();
        let status = status.and_then(|word| word.parse::<u16>().ok());
        let kind = status.and_then(ErrorKind::of_http_status);
        if let Some(kind) = kind.filter(|_| plain.kind == ErrorKind::Internal) {
            plain.kind = kind;
            plain.retryable = kind.is_retryable();
        }
        plain
    }

    fn mode(&self, wanted: PermissionMode) -> Result<ModeSwitch, AgentError> {
        match mode(wanted) {
            Some(mode) => Ok(ModeSwitch::Mode(mode.to_owned())),
            None => Err(AgentError::refused(
                "permission",
                format!("Qwen Code cannot be brought to {}", wanted.as_str()),
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_of_the_service_is_known_by_its_status() {
        let dialect = (QWEN.dialect)(&ExecuteParams::default());
        let kind = |details: &str| {
            let mut error = RpcError::new(-32603, "Internal error");
            error.data = Some(serde_json::json!({"details": details}));
            let error = dialect.error(&error, During::Prompt);
            (error.kind, error.retryable)
        };
        // As the CLI printed it.
        let missing =
            "404 The model `no-such-model` does not exist or you do not have access to it.";
        assert_eq!(Some(kind(missing).0), ErrorKind::of_http_status(404));
        let server = "500 The server had an error while processing your request. Sorry about that!";
        assert!(kind(server).1);
        assert_eq!(kind("it rained"), (ErrorKind::Internal, false));
    }
}
