//! The fake agent as the CLI of a provider.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use teamster_core::provider::{Decoder, Launch};
use teamster_core::{AgentError, Capabilities, CliInfo, CliProvider, ExecuteParams};

use super::SCRIPT_ENV;

/// A provider whose CLI is the fake agent, which prints what the real one would.
pub struct Posing {
    /// The provider whose output is played.
    pub provider: Arc<dyn CliProvider>,
    /// The arguments of the program that make it the fake agent.
    pub args: Vec<OsString>,
    /// The file with the script of the fake agent.
    pub script: PathBuf,
}

impl CliProvider for Posing {
    fn info(&self) -> &'static CliInfo {
        self.provider.info()
    }

    fn capabilities(&self) -> &Capabilities {
        self.provider.capabilities()
    }

    fn launch(&self, _: &ExecuteParams) -> Result<Launch, AgentError> {
        Ok(Launch {
            args: self.args.clone(),
            env: vec![(SCRIPT_ENV.to_owned(), format!("@{}", self.script.display()))],
            ..Launch::default()
        })
    }

    fn decoder(&self, params: &ExecuteParams) -> Box<dyn Decoder> {
        self.provider.decoder(params)
    }
}
