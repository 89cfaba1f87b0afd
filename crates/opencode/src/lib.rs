//! OpenCode (`opencode`) as a `teamster` provider.
//!
//! How its output maps to events, where each figure comes from and what is known about its faults
//! is in `docs/providers/opencode.md`.
#![warn(missing_docs)]

mod decoder;
mod launch;

use teamster_core::{
    AgentError, Capabilities, CliInfo, CliProvider, Decoder, ExecuteParams, Launch,
};

pub use decoder::OpenCodeDecoder;

/// OpenCode, run with `opencode run --format json`.
#[derive(Debug, Clone, Copy, Default)]
pub struct OpenCode;

static INFO: CliInfo = CliInfo {
    id: "opencode",
    name: "OpenCode",
    program: "opencode",
    version_args: &["--version"],
    tested_versions: &["1.18.33"],
    install: "npm install -g opencode-ai",
    login: "log in with `opencode auth login`, or set the model provider's key in the environment",
    choose_session_id: false,
};

static CAPABILITIES: Capabilities = Capabilities::none();

impl CliProvider for OpenCode {
    fn info(&self) -> &'static CliInfo {
        &INFO
    }

    fn capabilities(&self) -> &Capabilities {
        &CAPABILITIES
    }

    fn launch(&self, params: &ExecuteParams) -> Result<Launch, AgentError> {
        launch::launch(params)
    }

    fn decoder(&self, _: &ExecuteParams) -> Box<dyn Decoder> {
        Box::new(OpenCodeDecoder::new())
    }
}
