//! A `teamster` provider for Magpie, a CLI that does not exist.
//!
//! It shows that a provider needs one crate and one registration: no other code in the workspace knows it.
#![warn(missing_docs)]

mod decoder;
mod launch;

use teamster_core::provider::{CredentialFile, Credentials, Decoder, FileLocation, Launch, Sign};
use teamster_core::{
    AgentError, Capabilities, CliInfo, CliProvider, ExecuteParams, PermissionMode,
};

pub use decoder::MagpieDecoder;

/// Provider that runs `magpie ask`.
#[derive(Debug, Clone, Copy, Default)]
pub struct Magpie;

static INFO: CliInfo = {
    let mut info = CliInfo::new("magpie", "Magpie", "magpie");
    info.tested_versions = &["1.0"];
    info.install = "cargo install magpie";
    info.login = "set MAGPIE_KEY in the environment";
    info.credentials = Credentials::in_locations(
        &["MAGPIE_KEY"],
        &[CredentialFile {
            location: FileLocation::user("MAGPIE_HOME", ".magpie", "login.json"),
            sign: Sign::Json(&["/key"]),
        }],
    );
    info.instructions = &["MAGPIE.md"];
    info.agent_loop.keeps_process = false;
    info.agent_loop.model = Some("patient");
    info
};

static CAPABILITIES: Capabilities = {
    let mut can = Capabilities::none();
    can.resume = true;
    can.model = true;
    can.permission_modes = &[PermissionMode::Default, PermissionMode::Bypass];
    can.prompt_on_stdin = true;
    can.text_deltas = true;
    can.usage = true;
    can.announces_tools = true;
    can
};

impl CliProvider for Magpie {
    fn info(&self) -> &'static CliInfo {
        &INFO
    }

    fn capabilities(&self) -> &Capabilities {
        &CAPABILITIES
    }

    fn launch(&self, params: &ExecuteParams) -> Result<Launch, AgentError> {
        launch::launch(params)
    }

    fn decoder(&self, params: &ExecuteParams) -> Box<dyn Decoder> {
        Box::new(MagpieDecoder::for_run(params))
    }
}
