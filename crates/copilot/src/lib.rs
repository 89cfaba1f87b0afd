//! GitHub Copilot CLI (`copilot`) as a `teamster` provider.
//!
//! How its output maps to events, where each figure comes from and what is known about its faults
//! is in `docs/providers/copilot.md`.
#![warn(missing_docs)]

mod decoder;
mod launch;

use teamster_core::{
    AgentError, Capabilities, CliInfo, CliProvider, Decoder, ExecuteParams, Launch,
};

pub use decoder::CopilotDecoder;

/// GitHub Copilot CLI, run with `copilot --output-format json`.
#[derive(Debug, Clone, Copy, Default)]
pub struct Copilot;

static INFO: CliInfo = CliInfo {
    id: "copilot",
    name: "GitHub Copilot CLI",
    program: "copilot",
    version_args: &["--version"],
    tested_versions: &["1.0.102"],
    install: "npm install -g @github/copilot",
    login: "log in with `copilot` and then /login, or set COPILOT_GITHUB_TOKEN in the environment",
    choose_session_id: true,
};

static CAPABILITIES: Capabilities = Capabilities::none();

impl CliProvider for Copilot {
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
        Box::new(CopilotDecoder::new())
    }
}
