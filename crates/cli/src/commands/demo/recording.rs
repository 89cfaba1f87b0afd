//! Playback of a recorded run through the same pipeline as a real one.

use std::io::Write;

use anyhow::Context;
use teamster_fakes::fake_agent::{FakeCliProvider, Script};

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
        .write_all(
            Script::of_recording(RECORDING, args.speed)
                .to_toml()?
                .as_bytes(),
        )
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
    let mut view = crate::drive::View::new(info, args.output);
    // The working directory of the recorded run.
    view.directory = Some("/tmp/ws".into());
    let mut params = teamster::ExecuteParams::new(
        "Write a short poem about pipes into poem.txt, then count its words.",
    );
    params.include_native = args.output.native;
    let player = FakeCliProvider {
        provider: claude,
        args: vec![crate::global::FAKE_AGENT.into()],
        script: script.path().to_owned(),
    };
    let runtime = teamster::process::CliRuntime::with_config(player, config);
    crate::drive::agent(args.output, view, || runtime.execute(params))
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
        let script = Script::of_recording(RECORDING, 0.0);
        let lines = RECORDING.lines().count();
        assert_eq!(
            script.to_toml().unwrap().matches("[step.line]").count(),
            lines
        );
        assert!(
            Script::of_recording(RECORDING, 1.0)
                .to_toml()
                .unwrap()
                .contains("ms = 700")
        );
    }
}
