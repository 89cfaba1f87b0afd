//! Playback of a recorded run through the same pipeline as a real one.

use std::io::Write;
use std::time::Duration;

use anyhow::Context;
use teamster_core::time::epoch_ms;
use teamster_testkit::fake_agent::{Posing, Script};

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
        .write_all(script_of(RECORDING, args.speed).to_toml()?.as_bytes())
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
    let player = Posing {
        provider: claude,
        args: vec![crate::global::FAKE_AGENT.into()],
        script: script.path().to_owned(),
    };
    let runtime = teamster::process::CliRuntime::with_config(player, config);
    crate::drive::agent(args.output, view, || runtime.execute(params))
}

/// Returns a script that prints the recording with pauses similar to those of a real run.
fn script_of(recording: &str, speed: f64) -> Script {
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
        let script = script_of(RECORDING, 0.0);
        let lines = RECORDING.lines().count();
        assert_eq!(
            script.to_toml().unwrap().matches("[step.line]").count(),
            lines
        );
        assert!(
            script_of(RECORDING, 1.0)
                .to_toml()
                .unwrap()
                .contains("ms = 700")
        );
    }
}
