//! Playback of a recorded run through the same pipeline as a real one.

use std::io::Write;

use anyhow::Context;
use teamster_core::time::epoch_ms;

use super::args::DemoArgs;

/// Recorded output of Claude Code.
///
/// It is a copy of the fixture `claude/2.1.197/demo`, so that this package builds outside its repository. A test
/// compares the two.
const RECORDING: &str = include_str!("../../../demo/recording.ndjson");

/// Plays the recording and returns the exit code.
pub(super) fn main(args: &DemoArgs) -> anyhow::Result<u8> {
    use teamster::AgentRuntime;

    let claude = crate::global::providers()
        .get("claude")
        .context("the provider claude is not built in")?;
    let mut script = tempfile::Builder::new()
        .prefix("teamster-demo-")
        .suffix(".toml")
        .tempfile()
        .context("cannot make a temporary file")?;
    script
        .write_all(player::script(RECORDING, args.speed).to_toml()?.as_bytes())
        .context("cannot write a temporary file")?;

    let mut config = teamster_host::params::base_config();
    let program = crate::global::program().context("cannot find the program itself")?;
    config.program = Some(program.to_owned());
    let info = claude.info();
    let version = info.tested_versions.first().unwrap_or(&"");
    let name = info.name;
    super::remark(
        args,
        &format!("A recorded run of {name} {version}, played without CLI, key and network.\n"),
    );
    let view = crate::drive::View {
        agent: info,
        verbose: args.output.verbose,
        quiet: args.output.quiet,
        // The working directory of the recorded run.
        directory: Some("/tmp/ws".into()),
        resume: None,
        permission: None,
        asks: false,
        mcp: None,
        clock: epoch_ms,
    };
    let mut params = teamster::ExecuteParams::new(
        "Write a short poem about pipes into poem.txt, then count its words.",
    );
    params.include_native = args.output.native;
    let player = player::Player {
        provider: claude,
        script: script.path().to_owned(),
    };
    let runtime = teamster::process::CliRuntime::with_config(player, config);
    crate::drive::agent(args.output, view, || runtime.execute(params))
}

mod player {
    use std::path::PathBuf;
    use std::sync::Arc;
    use std::time::Duration;

    use teamster::{AgentError, Capabilities, CliInfo, CliProvider, ExecuteParams};
    use teamster_core::provider::{Decoder, Launch};
    use teamster_testkit::fake_agent::{SCRIPT_ENV, Script};

    /// A provider whose CLI is the fake agent of this program.
    pub(super) struct Player {
        /// The provider whose output is played.
        pub(super) provider: Arc<dyn CliProvider>,
        /// The script of the fake agent.
        pub(super) script: PathBuf,
    }

    impl CliProvider for Player {
        fn info(&self) -> &'static CliInfo {
            self.provider.info()
        }

        fn capabilities(&self) -> &Capabilities {
            self.provider.capabilities()
        }

        fn launch(&self, _: &ExecuteParams) -> Result<Launch, AgentError> {
            Ok(Launch {
                args: vec![crate::global::FAKE_AGENT.into()],
                env: vec![(SCRIPT_ENV.to_owned(), format!("@{}", self.script.display()))],
                ..Launch::default()
            })
        }

        fn decoder(&self, params: &ExecuteParams) -> Box<dyn Decoder> {
            self.provider.decoder(params)
        }
    }

    /// Returns a script that prints the recording with pauses similar to those of a real run.
    pub(super) fn script(recording: &str, speed: f64) -> Script {
        recording.lines().fold(Script::new(), |script, line| {
            let script = match pause(line, speed) {
                Duration::ZERO => script,
                pause => script.sleep(pause),
            };
            script.line(line)
        })
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
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_recording_is_the_fixture() {
        let fixture = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../fixtures/claude/2.1.197/demo/stdout.ndjson"
        );
        // The fixture exists only in the repository.
        if let Ok(fixture) = std::fs::read_to_string(fixture) {
            assert!(
                fixture == RECORDING,
                "copy the fixture to demo/recording.ndjson"
            );
        }
    }

    #[test]
    fn the_whole_recording_is_played() {
        let script = player::script(RECORDING, 0.0);
        let lines = RECORDING.lines().count();
        assert_eq!(
            script.to_toml().unwrap().matches("[step.line]").count(),
            lines
        );
        assert!(
            player::script(RECORDING, 1.0)
                .to_toml()
                .unwrap()
                .contains("ms = 700")
        );
    }
}
