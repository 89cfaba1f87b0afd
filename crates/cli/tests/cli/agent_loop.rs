//! `teamster loop`, with a stand-in for Claude Code.

mod killed;
mod refused;
mod runs;
mod started;
mod ticks;

use std::fs;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::process::Command;

#[cfg(target_os = "linux")]
use nix::fcntl::{FcntlArg, fcntl};
use nix::sys::signal::Signal;
use serde_json::{Value, json};
use teamster::agent_loop::UsageRecord;
use teamster_api::agents::SleepFile;
use teamster_testkit::proc::{wait_gone, wait_until};
use teamster_testkit::stand_in::witness::{self, Kind, What};
use teamster_testkit::stand_in::{Act, Plan};
use tempfile::TempDir;

use crate::cli::{LIMIT, Running, TEAMSTER, program, recorded, run, teamster};

/// An agent in its directory, with a home and a CLI that are its own.
struct Agent {
    root: TempDir,
    plan: Plan,
}

impl Agent {
    /// One that follows its plan.
    fn new(plan: impl FnOnce(Plan) -> Plan) -> Self {
        let root = tempfile::tempdir().unwrap();
        let plan = plan(Plan::new(root.path().join("state")));
        for folder in ["agent", "home", "state"] {
            fs::create_dir(root.path().join(folder)).unwrap();
        }
        let command = format!("'{TEAMSTER}' fake-agent");
        plan.install(&root.path().join("bin"), &command).unwrap();
        Self { root, plan }
    }

    /// Installs a `copilot` that does this and plays a recorded run.
    fn copilot(&self, script: &str) {
        let played = recorded("copilot", "1.0.92", "conformance_text");
        let script = format!("{script}\nexec cat '{}'", played.display());
        program(&self.root.path().join("bin/copilot"), &script);
    }

    fn directory(&self) -> PathBuf {
        self.root.path().join("agent")
    }

    /// A file in `.orchestrator`.
    fn path(&self, name: &str) -> PathBuf {
        self.directory().join(".orchestrator").join(name)
    }

    /// The loop, with long sleeps.
    fn command(&self) -> Command {
        let path = self.root.path().join("bin");
        let mut command = teamster(["loop"]);
        command
            .arg(self.directory())
            .env("PATH", format!("{}:/usr/bin:/bin", path.display()))
            .env("HOME", self.root.path().join("home"))
            .env("IS_SANDBOX", "1")
            .env("MIN_SLEEP", "3600");
        command
    }

    fn seen(&self) -> Vec<What> {
        let seen = witness::read(self.plan.witness()).unwrap();
        seen.into_iter().map(|seen| seen.what).collect()
    }

    /// The prompts that came.
    fn prompts(&self) -> Vec<Kind> {
        let kind = |what| match what {
            What::Message { kind, .. } => Some(kind),
            _ => None,
        };
        self.seen().into_iter().filter_map(kind).collect()
    }

    fn pids(&self) -> Vec<u32> {
        let seen = witness::read(self.plan.witness()).unwrap();
        let starts = seen.iter().filter_map(|seen| match &seen.what {
            What::Start { .. } => Some(seen.pid),
            What::Child { child } => Some(*child),
            _ => None,
        });
        starts.collect()
    }

    fn sleeps(&self) -> bool {
        self.json("sleep.json")["state"] == "sleeping"
    }

    fn json(&self, name: &str) -> Value {
        let text = fs::read(self.path(name)).unwrap_or_else(|_| b"null".to_vec());
        serde_json::from_slice(&text).unwrap()
    }

    fn log(&self) -> String {
        fs::read_to_string(self.path("agent-loop.log")).unwrap()
    }

    fn waits_for(&self, what: &str, condition: impl FnMut() -> bool) {
        assert!(wait_until(LIMIT, condition), "{what}: {}", self.log());
    }

    fn nothing_is_left(&self) {
        for pid in self.pids() {
            assert!(wait_gone(pid, LIMIT), "{pid}: {}", self.log());
        }
    }
}

#[test]
fn a_tick_from_its_beginning_to_its_end() {
    let agent = Agent::new(|plan| plan.turn([Act::DidWork, Act::Tools, Act::Status]));
    fs::write(
        agent.directory().join(".env"),
        "# of mine\nMIN_SLEEP=7\nIDLE_STEP='5'\n",
    )
    .unwrap();
    fs::write(agent.directory().join(".mcp.json"), "{\"mcpServers\":{}}").unwrap();
    fs::create_dir(agent.path("")).unwrap();
    for stale in ["did-work", "clear-session", "reset-session", "tools.json"] {
        fs::write(agent.path(stale), "").unwrap();
    }
    let ended = run(agent
        .command()
        .env_remove("MIN_SLEEP")
        .args(["--ticks", "1"]))
    .ok();
    assert_eq!(ended.stderr, "");
    assert_eq!(ended.stdout, agent.log());

    assert_eq!(agent.prompts(), [Kind::Full]);
    let argv = agent.seen().into_iter().find_map(|what| match what {
        What::Start { argv, resumes, .. } => Some((argv, resumes)),
        _ => None,
    });
    let (argv, resumes) = argv.unwrap();
    assert_eq!(resumes, None);
    for words in [
        &["-p"][..],
        &["--verbose"],
        &["--input-format=stream-json"],
        &["--output-format=stream-json"],
        &["--include-partial-messages"],
        &["--permission-mode=bypassPermissions"],
        &["--model=opusplan"],
        &["--mcp-config", ".mcp.json", "--strict-mcp-config"],
        &["--settings", ".orchestrator/session-settings.json"],
    ] {
        assert!(
            argv.windows(words.len()).any(|found| found == words),
            "{words:?}: {argv:?}"
        );
    }

    assert_eq!(
        fs::read_to_string(agent.directory().join("MEMORY.md")).unwrap(),
        ""
    );
    assert!(agent.json("tools.json").is_object());
    let sleep: SleepFile = serde_json::from_value(agent.json("sleep.json")).unwrap();
    assert_eq!(sleep.current_sleep_seconds, 7);
    assert_eq!(sleep.sleep_until_epoch, Some(sleep.updated_at_epoch + 7));
    assert!(!agent.path("did-work").exists());
    let record: UsageRecord =
        serde_json::from_str(&fs::read_to_string(agent.path("usage.jsonl")).unwrap()).unwrap();
    let reported = agent.seen().into_iter().find_map(|what| match what {
        What::Result(reported) => Some(reported),
        _ => None,
    });
    let reported = reported.unwrap();
    assert_eq!(record.session_id.as_deref(), Some(&*reported.session));
    assert_eq!(record.input_tokens, reported.input_tokens);
    assert_eq!(record.output_tokens, reported.output_tokens);
    assert_eq!(record.cache_read_tokens, reported.cache_read_tokens);
    assert_eq!(json!(record.cost_source), "reported");
    agent.nothing_is_left();
}

#[test]
fn a_wake_ends_a_sleep_and_one_in_a_tick_is_remembered() {
    let agent = Agent::new(|mut plan| {
        plan.turn_ms = [400, 400];
        plan
    });
    let mut running = Running::start(&mut agent.command());
    agent.waits_for("the first sleep", || agent.sleeps());
    running.signal(Signal::SIGUSR1);
    agent.waits_for("the second tick", || agent.prompts().len() == 2);
    // In the tick: it is not disturbed, and the next one follows without a sleep.
    running.signal(Signal::SIGUSR1);
    agent.waits_for("the third tick", || agent.prompts().len() == 3);
    agent.waits_for("its end", || agent.sleeps());
    running.stop();
    assert_eq!(agent.prompts(), [Kind::Full, Kind::Light, Kind::Light]);
    let sleeps = agent.log().matches("sleeping ").count();
    assert_eq!(sleeps, 2, "{}", agent.log());
    assert!(agent.log().ends_with("agent-loop exit\n"));
    assert!(!agent.path("session.json").exists());
    agent.nothing_is_left();
}

#[test]
fn second_signal_does_not_wait_for_an_unresponsive_agent() {
    let agent = Agent::new(|plan| plan.turn([Act::Child, Act::Deaf]));
    let mut running = Running::start(&mut agent.command());
    agent.waits_for("the tick", || agent.pids().len() == 2);
    running.signal(Signal::SIGTERM);
    running.signal(Signal::SIGINT);
    assert_eq!(running.wait().code(), Some(130));
    agent.nothing_is_left();
}

#[test]
fn output_on_stdout_is_not_in_the_log_twice() {
    let agent = Agent::new(|plan| plan);
    fs::create_dir(agent.path("")).unwrap();
    let log = fs::OpenOptions::new()
        .create(true)
        .append(true)
        .open(agent.path("agent-loop.log"))
        .unwrap();
    let status = agent
        .command()
        .args(["--ticks", "1"])
        .stdout(log)
        .status()
        .unwrap();
    assert!(status.success());
    assert_eq!(agent.log().matches("agent-loop start").count(), 1);
}

#[test]
fn prompts_of_ones_own() {
    let agent = Agent::new(|plan| plan);
    fs::write(agent.directory().join("full.md"), "Do as ./MEMORY.md says.").unwrap();
    let mut command = agent.command();
    command
        .env("FULL_PROMPT_FILE", "full.md")
        .args(["--ticks", "1"]);
    run(&mut command).ok();
    let text = agent.seen().into_iter().find_map(|what| match what {
        What::Message { text, .. } => Some(text),
        _ => None,
    });
    assert_eq!(text.as_deref(), Some("Do as ./MEMORY.md says."));
}

#[test]
fn a_pipe_without_a_writer_is_not_waited_for() {
    let agent = Agent::new(|plan| plan);
    let pipe = agent.directory().join(".env");
    nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
    run(&mut agent.command()).fails(2, ".env: this is a pipe, and nothing has written to it");

    // A pipe that is filled late is read like a file; opening it to write waits for the reader.
    let mut command = agent.command();
    let mut running = Running::start(command.env_remove("MIN_SLEEP").args(["--ticks", "1"]));
    let mut writer = fs::OpenOptions::new().write(true).open(&pipe).unwrap();
    writer.write_all(b"MIN_SLEEP=7\n").unwrap();
    drop(writer);
    assert_eq!(running.wait().code(), Some(0));
    assert!(agent.log().contains(" min=7s "), "{}", agent.log());

    // The end is not waited for.
    let mut running = Running::start(&mut agent.command());
    let _writer = fs::OpenOptions::new().write(true).open(&pipe).unwrap();
    running.stop();
}

/// Lets the pipe to stdout hold as little as it can. Returns how many bytes that are.
#[cfg(target_os = "linux")]
fn small_pipe(running: &Running) -> i32 {
    let stdout = running.stdout.as_ref().unwrap().get_ref();
    fcntl(stdout, FcntlArg::F_SETPIPE_SZ(4096)).unwrap()
}

#[cfg(not(target_os = "linux"))]
fn small_pipe(_running: &Running) -> i32 {
    65_536
}

#[test]
fn a_loop_goes_on_and_ends_though_unread_what_it_prints() {
    let agent = Agent::new(|mut plan| {
        plan.turn_ms = [0, 1];
        plan
    });
    let mut command = agent.command();
    command.env("MIN_SLEEP", "0").env("IDLE_STEP", "0");
    let mut running = Running::start(&mut command);
    let holds = u64::try_from(small_pipe(&running)).unwrap();
    agent.waits_for("more than a pipe holds", || {
        fs::metadata(agent.path("agent-loop.log")).is_ok_and(|log| log.len() > 2 * holds)
    });
    running.stop();
    assert!(agent.log().ends_with("agent-loop exit\n"));
    agent.nothing_is_left();
}

#[test]
fn settings_at_their_limits_and_beside_them() {
    let agent = Agent::new(|plan| plan.turn([Act::DidWork]));
    let most = u64::MAX.to_string();
    let mut command = agent.command();
    for name in [
        "MIN_SLEEP",
        "IDLE_STEP",
        "MAX_SLEEP",
        "TIMEOUT_SECS",
        "CLEAR_MIN_GAP",
        "LOG_MAX_BYTES",
    ] {
        command.env(name, &most);
    }
    let mut running = Running::start(&mut command);
    agent.waits_for("the sleep", || agent.sleeps());
    assert_eq!(agent.json("sleep.json")["current_sleep_seconds"], u64::MAX);
    running.signal(Signal::SIGUSR1);
    agent.waits_for("the second tick", || agent.prompts().len() == 2);
    agent.waits_for("the second sleep", || agent.sleeps());
    running.stop();

    let no_text = std::ffi::OsStr::from_bytes(b"\xff");
    let ended = run(agent.command().env("MIN_SLEEP", no_text));
    assert_eq!(ended.code, Some(2));
    ended.stderr_begins("error: MIN_SLEEP: ");
}

#[test]
fn a_directory_with_an_odd_name() {
    let agent = Agent::new(|plan| plan.turn([Act::DidWork]));
    let odd = std::ffi::OsStr::from_bytes(b"it's an \"odd\" \xff$(name)\n");
    let odd = agent.root.path().join(odd);
    fs::rename(agent.directory(), &odd).unwrap();
    let link = agent.directory();
    std::os::unix::fs::symlink(&odd, &link).unwrap();
    // By a relative path, through a link, with a slash at its end.
    let mut command = teamster(["loop", "./agent/", "--ticks", "1"]);
    for (name, value) in agent.command().get_envs() {
        command.env(name, value.unwrap_or_default());
    }
    run(command.current_dir(agent.root.path())).ok();
    assert!(agent.log().contains("tick 1 ok"), "{}", agent.log());
    assert_eq!(agent.json("sleep.json")["reason"], "work done");
}

#[test]
fn agent_variables_and_command_arguments_are_not_reported() {
    let agent = Agent::new(|plan| plan);
    let env = "TOKEN=in-the-file\nMIN_SLEEP=7\n";
    fs::write(agent.directory().join(".env"), env).unwrap();
    let servers =
        r#"{"mcpServers": {"a": {"command": "serve", "env": {"KEY": "${TOKEN}"}, "odd": 1}}}"#;
    fs::write(agent.directory().join(".mcp.json"), servers).unwrap();
    let mut command = agent.command();
    command
        .env("RUNTIME", "acp:/nowhere/agent --token on-the-line")
        .args(["--ticks", "1"]);
    let ended = run(&mut command);
    // There is no such program.
    assert_eq!(ended.code, Some(3), "{}", ended.stderr);
    let reported = format!("{}{}{}", ended.stdout, ended.stderr, agent.log());
    assert!(
        reported.contains("starting acp:/nowhere/agent\n"),
        "{reported}"
    );
    for secret in ["in-the-file", "on-the-line"] {
        assert!(!reported.contains(secret), "{secret}: {reported}");
    }
}
