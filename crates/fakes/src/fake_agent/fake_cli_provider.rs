//! The fake agent as the CLI of a provider.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use teamster_core::provider::{Decoder, Launch};
use teamster_core::{AgentError, Capabilities, CliInfo, CliProvider, ExecuteParams};

use super::{SCRIPT_ENV, Script};

/// A provider whose CLI is the fake agent, which prints what the real one would.
pub struct FakeCliProvider {
    /// The provider whose output is played.
    pub provider: Arc<dyn CliProvider>,
    /// The arguments of the program that make it the fake agent.
    pub args: Vec<OsString>,
    /// The file with the script of the fake agent.
    pub script: PathBuf,
}

impl CliProvider for FakeCliProvider {
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

impl Script {
    /// Returns a script that prints recorded output with pauses similar to those of a real run, at this speed; 0 is without
    /// pauses.
    pub fn of_recording(recording: &str, speed: f64) -> Self {
        recording.lines().fold(Self::new(), |script, line| {
            let script = match pause(line, speed) {
                Duration::ZERO => script,
                pause => script.sleep(pause),
            };
            script.line(line)
        })
    }
}

/// Returns the pause before a line.
fn pause(line: &str, speed: f64) -> Duration {
    let millis = if line.contains(r#""type":"message_start""#) {
        // Time of the model.
        700.0
    } else if line.contains(r#""type":"tool_result""#) {
        // Time of the tool.
        450.0
    } else if line.contains(r#""type":"content_block_delta""#) {
        25.0
    } else {
        0.0
    };
    // Speed 0 means no pauses: the division fails, as it does for a speed that is too small.
    Duration::try_from_secs_f64(millis / 1000.0 / speed).unwrap_or_default()
}
