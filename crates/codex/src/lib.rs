//! Codex (`codex`) as a `teamster` provider.
//!
//! How its output maps to events, where each figure comes from and what is known about its faults
//! is in `docs/providers/codex.md`.
#![warn(missing_docs)]

mod decoder;
mod launch;

use teamster_core::{
    AgentError, Capabilities, CliInfo, CliProvider, Decoder, ExecuteParams, Launch,
};

pub use decoder::CodexDecoder;

/// Codex, run with `codex exec --json`.
#[derive(Debug, Clone, Copy, Default)]
pub struct Codex;

static INFO: CliInfo = CliInfo {
    id: "codex",
    name: "Codex",
    program: "codex",
    version_args: &["--version"],
    tested_versions: &["0.169.0"],
    install: "npm install -g @openai/codex",
    login: "log in with `codex login`, or set OPENAI_API_KEY and run `codex login --with-api-key`",
    choose_session_id: false,
};

static CAPABILITIES: Capabilities = Capabilities::none();

impl CliProvider for Codex {
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
        Box::new(CodexDecoder::new())
    }
}
