//! Run of a real CLI with a scripted model, in temporary folders.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::Context;
use teamster::process::native_program;
use teamster::{
    AgentEvent, AgentRuntime, CliInfo, EnvPolicy, ErrorKind, EventStream, ExecuteParams,
    PermissionMode, RunStatus, Timeouts,
};
use teamster_core::sync::lock;
use teamster_core::time::millis;
use teamster_host::params;
use teamster_mock_model::{Cli, MockModel, MockModelSettings, Part, PointedHome, Script};
use tokio::time::{Instant, sleep_until};

use super::args::DemoArgs;
use crate::runtime::tokio_runtime;
use crate::{drive, hints, mock_home, words};

const STORY: &str = include_str!("../../../demo/story.toml");

/// Limit until the model's first output.
const FIRST_OUTPUT_LIMIT: Duration = Duration::from_secs(30);
/// Limit of silence after that.
const SILENCE_LIMIT: Duration = Duration::from_secs(15);
/// Limit for printing the CLI's version.
const VERSION_LIMIT: Duration = Duration::from_secs(10);
/// Pause between two pieces of text at speed 1.
const PACE: Duration = Duration::from_millis(80);

/// Environment variables passed to the CLI.
const PASSED_VARIABLES: [&str; 6] = ["PATH", "LANG", "LC_ALL", "TERM", "TZ", "TMPDIR"];

/// Result of the demo.
pub(super) enum Outcome {
    /// The run was shown to its end, with this exit code.
    Finished(u8),
    /// The run failed before it was shown, with the reason.
    NotShown(String),
}

pub(super) fn main(args: &DemoArgs, cli: Cli) -> anyhow::Result<Outcome> {
    let provider = crate::global::providers()
        .get(cli.id())
        .context("this provider is not built in")?;
    let info = provider.info();
    let (_folder, folder) = mock_home::temporary_folder("teamster-demo-")?;
    let (home, work) = (folder.join("home"), folder.join("work"));
    for folder in [&home, &work] {
        std::fs::create_dir(folder).context("cannot make a temporary folder")?;
    }
    // The runtime of the mock model; `drive::agent` creates its own for the run.
    let runtime = tokio_runtime()?;
    let mut settings = MockModelSettings::default();
    settings.directory = Some(work.clone());
    settings.cli = Some(cli);
    settings.pace = scaled(PACE, args.speed);
    let model = runtime
        .block_on(MockModel::start_with(story(args.speed)?, settings))
        .context("cannot listen on 127.0.0.1")?;
    let pointed = PointedHome::new(model.url(), &home, [cli]);
    let mut pointed = pointed.context("cannot write into a temporary folder")?;
    let (_, pointing) = pointed.clis.remove(0);
    // The script is harmless.
    let env = pointing.environment_for_root(&home);

    let version = if info.program.is_empty() {
        env!("CARGO_PKG_VERSION").to_owned()
    } else {
        let found = match teamster_host::find_program(crate::global::host(), info) {
            Ok(found) => native_program(&*provider, found),
            Err(problem) => return Ok(Outcome::NotShown(format!("{problem}."))),
        };
        match runtime.block_on(version(&found, info, &env)) {
            Ok(version) => version,
            Err(problem) => return Ok(Outcome::NotShown(format!("{} {problem}.", info.name))),
        }
    };
    super::remark(
        args,
        &format!(
            "Running {} {version} with a scripted model on this machine. No key is needed; its home and folder are temporary.\n",
            info.name
        ),
    );

    let mut config = params::base_config();
    config.program = teamster_host::program_variable(info);
    config.env_policy = EnvPolicy::Clean {
        allow: PASSED_VARIABLES.map(str::to_owned).into(),
    };
    let mut request = ExecuteParams::new("Write a small poem into a file and count its words.");
    request.working_directory = Some(work.clone());
    request.env = env;
    request.model = pointing.model;
    request.extra_args = pointing.args;
    // The script is built in and harmless.
    request.permission = PermissionMode::Bypass;
    request.include_native = args.output.native;
    request.timeouts = Timeouts {
        startup: Some(FIRST_OUTPUT_LIMIT),
        idle: Some(SILENCE_LIMIT),
        tool: Some(SILENCE_LIMIT),
    };
    let mut view = drive::View::new(info, args.output);
    view.directory = Some(work.clone());
    let cli_runtime = crate::global::providers().runtime(info.id, config)?;
    let why = Arc::new(Mutex::new(None));
    let failed = Arc::clone(&why);
    let code = drive::agent(args.output, view, || {
        hold_until_output(cli_runtime.execute(request), failed)
    })?;
    let why = lock(&why).take();
    Ok(match why {
        Some(why) => Outcome::NotShown(format!("{} {version} failed: {why}.", info.name)),
        None => Outcome::Finished(code),
    })
}

/// Holds the events of a run back until the model's first output.
///
/// A run that fails before is stopped, emits no events, and its failure is stored in `why`.
fn hold_until_output(mut run: EventStream, why: Arc<Mutex<Option<String>>>) -> EventStream {
    let abort = run.abort_handle();
    let events = async_stream::stream! {
        let limit = Instant::now() + FIRST_OUTPUT_LIMIT;
        let mut held = Vec::new();
        let failure = loop {
            let entry = tokio::select! {
                entry = run.next_entry() => entry,
                () = sleep_until(limit) => {
                    break Some(format!(
                        "it printed nothing for {}",
                        words::duration_ms(millis(FIRST_OUTPUT_LIMIT))
                    ));
                }
            };
            let Some(entry) = entry else { break None };
            let found = examine(&entry.event);
            held.push(entry);
            match found {
                Evidence::None => {}
                Evidence::Works => break None,
                Evidence::Fails(why) => break Some(why),
            }
        };
        if let Some(failure) = failure {
            // The CLI must have ended before its folders are removed.
            run.abort();
            while run.next().await.is_some() {}
            *lock(&why) = Some(failure);
            return;
        }
        for entry in held {
            yield entry;
        }
        while let Some(entry) = run.next_entry().await {
            yield entry;
        }
    };
    EventStream::new(events, abort)
}

/// Evidence, from an event, of whether the CLI works with the scripted model.
enum Evidence {
    None,
    Works,
    Fails(String),
}

fn examine(event: &AgentEvent) -> Evidence {
    match event {
        AgentEvent::Text(_) | AgentEvent::Thinking(_) | AgentEvent::ToolUse(_) => Evidence::Works,
        // The script causes no errors.
        AgentEvent::Error(error) if error.error.kind != ErrorKind::Aborted => {
            Evidence::Fails(words::one_line(&hints::message(&error.error)))
        }
        AgentEvent::Retry(_) => Evidence::Fails("it retried its first request".to_owned()),
        AgentEvent::Done(done) if done.result.status == RunStatus::Aborted => Evidence::Works,
        AgentEvent::Done(_) => Evidence::Fails("it ended without output".to_owned()),
        _ => Evidence::None,
    }
}

/// Returns the version of a CLI, started with the environment of the run.
async fn version(
    program: &PathBuf,
    info: &CliInfo,
    env: &BTreeMap<String, String>,
) -> Result<String, String> {
    let mut command = tokio::process::Command::new(program);
    let passed = PASSED_VARIABLES
        .into_iter()
        .filter_map(|name| std::env::var_os(name).map(|value| (name, value)));
    command
        .args(info.version_args)
        .env_clear()
        .envs(passed)
        .envs(env);
    teamster::doctor::version_of(info, command, VERSION_LIMIT).await
}

/// Returns the script of the model at this speed.
fn story(speed: f64) -> anyhow::Result<Script> {
    let mut script: Script = STORY.parse().context("the story cannot be played")?;
    let scaled_ms = |ms: u64| millis(scaled(Duration::from_millis(ms), speed));
    for turn in &mut script.turns {
        turn.delay_ms = scaled_ms(turn.delay_ms);
        for part in &mut turn.parts {
            if let Part::PauseMs(ms) = part {
                *ms = scaled_ms(*ms);
            }
        }
    }
    Ok(script)
}

/// Divides a time by the speed; speed 0 means no pause.
fn scaled(time: Duration, speed: f64) -> Duration {
    Duration::try_from_secs_f64(time.as_secs_f64() / speed).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_story_is_scaled_by_the_speed() {
        assert_eq!(story(1.0).unwrap().turns[0].delay_ms, 400);
        assert_eq!(story(2.0).unwrap().turns[0].delay_ms, 200);
        assert_eq!(story(0.0).unwrap().turns[0].delay_ms, 0);
        assert_eq!(scaled(PACE, 0.0), Duration::ZERO);
    }
}
