//! Runs that are stopped or killed, and their leftovers.

use std::fs;
use std::time::Duration;

use nix::sys::signal::Signal;
use teamster::RunStatus;
use teamster_testkit::fake_agent::{Script, Signal as FakeSignal, Spawn, SpawnKind, Text};
use teamster_testkit::proc::{KillOnDrop, is_alive, wait_gone, wait_pid_file, wait_until};

use crate::cli::doctor::end_guard_of;
use crate::cli::{Claude, LIMIT, Running, done, recording};

/// An agent that talks forever.
fn talker() -> Script {
    let line = r#"{"type":"talk","n":{n}}"#;
    let text = Text::from(line)
        .repeat(u64::MAX)
        .interval(Duration::from_millis(5));
    Script::new().line(text)
}

#[test]
fn sigint_and_sigterm_stop_the_run_cleanly() {
    for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP] {
        if is_ignored(signal) {
            eprintln!("not run with {signal}: these tests run where it is ignored");
            continue;
        }
        let claude = Claude::silent();
        let mut teamster = Running::start(&mut claude.run(["x", "--json"]));
        let first = teamster.line();
        assert!(first.contains(r#","type":"run:start","#), "{first}");
        let agent = KillOnDrop::new(claude.report().pid);
        teamster.signal(signal);
        let ended = teamster.end();
        assert_eq!((ended.code, &*ended.stderr), (Some(130), ""), "{signal}");
        assert_eq!(done(&ended.stdout).status, RunStatus::Aborted);
        assert!(wait_gone(agent.pid(), LIMIT));
    }
}

/// Returns whether the signal is ignored here. `teamster` inherits that and keeps it.
fn is_ignored(signal: Signal) -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.is_some_and(|mask| {
        u64::from_str_radix(mask.trim(), 16).unwrap() & (1 << (signal as u32 - 1)) != 0
    })
}

#[test]
#[cfg(target_os = "linux")]
fn a_sigint_that_was_ignored_at_the_start_stays_ignored() {
    let claude = Claude::new(&Script::new());
    let (ready, go) = (claude.path("ready"), claude.path("go"));
    let script = Script::new()
        .touch(&ready)
        .wait_for_file(&go)
        .play(recording("text"));
    fs::write(claude.path("script.toml"), script.to_toml().unwrap()).unwrap();
    let run = claude.run(["x", "--json"]);
    let mut command = std::process::Command::new("sh");
    command
        .env_clear()
        .args(["-c", r#"trap '' INT; exec "$0" "$@""#])
        .arg(run.get_program())
        .args(run.get_args());
    for (name, value) in run.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    if let Some(directory) = run.get_current_dir() {
        command.current_dir(directory);
    }
    let mut teamster = Running::start(&mut command);
    assert!(wait_until(LIMIT, || ready.exists()));
    teamster.signal(Signal::SIGINT);
    fs::write(go, "").unwrap();
    let ended = teamster.end().ok();
    assert_eq!(done(&ended.stdout).status, RunStatus::Completed);
}

#[test]
fn the_end_of_a_stopped_run_is_reported() {
    let claude = Claude::silent();
    let mut teamster = Running::start(&mut claude.run(["x"]));
    claude.report();
    teamster.signal(Signal::SIGINT);
    let ended = teamster.end();
    assert_eq!(ended.code, Some(130));
    ended.stderr_has("✗ stopped");
    assert!(!ended.stderr.contains("error"), "{}", ended.stderr);
}

#[test]
fn a_second_sigint_kills_a_deaf_agent() {
    let script = Script::new()
        .ignore([FakeSignal::Int, FakeSignal::Term])
        .play(recording("text").last(6))
        .forever();
    let claude = Claude::new(&script);
    let mut teamster = Running::start(&mut claude.run(["x", "--json"]));
    teamster.line();
    let agent = KillOnDrop::new(claude.report().pid);
    teamster.signal(Signal::SIGINT);
    // Pending signals of the same kind are merged, so the second one is of another kind.
    teamster.signal(Signal::SIGTERM);
    let ended = teamster.end();
    assert_eq!(ended.code, Some(130));
    assert_eq!(done(&ended.stdout).status, RunStatus::Aborted);
    assert!(wait_gone(agent.pid(), LIMIT));
}

#[test]
fn a_reader_that_goes_away_stops_the_run() {
    for args in [vec!["x", "--json"], vec!["x"]] {
        let script = if args.len() == 2 {
            talker()
        } else {
            Script::new().play(recording("multi_turn").delay(Duration::from_millis(20)))
        };
        let claude = Claude::new(&script);
        let mut teamster = Running::start(&mut claude.run(args.iter().copied()));
        teamster.line();
        let agent = KillOnDrop::new(claude.report().pid);
        teamster.close_stdout();
        let ended = teamster.end();
        assert_eq!(ended.code, Some(130), "{}", ended.stderr);
        assert!(!ended.stderr.contains("panick"), "{}", ended.stderr);
        assert!(wait_gone(agent.pid(), LIMIT));
    }
}

#[test]
fn a_reader_that_goes_away_stops_a_silent_agent() {
    for args in [&["x", "--json"][..], &["x"]] {
        let claude = Claude::silent();
        let mut teamster = Running::start(&mut claude.run(args.iter().copied()));
        let agent = KillOnDrop::new(claude.report().pid);
        if args.len() == 2 {
            teamster.line();
        }
        teamster.close_stdout();
        assert_eq!(teamster.end().code, Some(130));
        assert!(wait_gone(agent.pid(), LIMIT));
    }
}

/// Runs an agent whose output exceeds all pipe buffers, without a reader.
fn unread(script: Script) -> (Claude, Running) {
    let claude = Claude::new(&Script::new());
    let finished = claude.path("finished");
    let line = format!(
        r#"{{"type":"talk","n":{{n}},"text":"{}"}}"#,
        "x".repeat(1000)
    );
    let script = script
        .line(Text::from(&*line).repeat(8_000))
        .write_file(&finished, "")
        .forever();
    fs::write(claude.path("script.toml"), script.to_toml().unwrap()).unwrap();
    let teamster = Running::start(&mut claude.run(["x", "--json"]));
    assert!(
        wait_until(LIMIT, || finished.exists()),
        "the agent is stuck"
    );
    (claude, teamster)
}

#[test]
fn a_reader_that_does_not_read_never_holds_up_the_agent() {
    let (_claude, mut teamster) = unread(Script::new().ignore([FakeSignal::Int, FakeSignal::Term]));
    // Two signals end it at once, although its output is blocked.
    teamster.signal(Signal::SIGINT);
    teamster.signal(Signal::SIGTERM);
    assert_eq!(teamster.wait().code(), Some(130));
}

#[test]
fn single_unread_signal_stops_the_run() {
    let (_claude, mut teamster) = unread(Script::new());
    teamster.signal(Signal::SIGTERM);
    assert_eq!(teamster.wait().code(), Some(130));
}

#[test]
#[cfg(target_os = "linux")]
fn a_killed_teamster_leaves_no_agent_and_no_tool_of_it() {
    let place = tempfile::tempdir().unwrap();
    let pid_file = place.path().join("pid");
    // Like a command of the agent's shell tool.
    let tool = Spawn::new(SpawnKind::Setsid)
        .pid_file(&pid_file)
        .script(Script::new().ignore([FakeSignal::Term]).forever());
    let claude = Claude::new(&Script::new().spawn(tool).line("{}").forever());
    let mut teamster = Running::start(&mut claude.run(["x", "--json"]));
    teamster.line();
    let agent = KillOnDrop::new(claude.report().pid);
    let tool = KillOnDrop::new(wait_pid_file(&pid_file, LIMIT).unwrap());
    teamster.signal(Signal::SIGKILL);
    teamster.wait();
    assert!(wait_gone(agent.pid(), LIMIT));
    assert!(wait_gone(tool.pid(), LIMIT));
}

#[test]
#[cfg(target_os = "linux")]
fn a_killed_teamster_leaves_no_hidden_processes() {
    let place = tempfile::tempdir().unwrap();
    let kinds = [SpawnKind::Group, SpawnKind::Setsid, SpawnKind::Daemon];
    let files = kinds.map(|kind| place.path().join(format!("{kind:?}")));
    let mut script = Script::new();
    for (kind, file) in kinds.into_iter().zip(&files) {
        let tool = Spawn::new(kind).clear_env().pid_file(file);
        script = script.spawn(tool.script(Script::new().ignore([FakeSignal::Term]).forever()));
    }
    let claude = Claude::new(&script.line("{}").forever());
    let mut teamster = Running::start(&mut claude.run(["x", "--json"]));
    teamster.line();
    let tools = files.map(|file| KillOnDrop::new(wait_pid_file(&file, LIMIT).unwrap()));
    // At once: the guard may not have seen the processes.
    teamster.signal(Signal::SIGKILL);
    // `teamster` is a zombie until it is waited for.
    for tool in &tools {
        assert!(wait_gone(tool.pid(), LIMIT));
    }
    teamster.wait();
}

#[test]
#[cfg(target_os = "linux")]
fn leftovers_of_a_killed_run_and_guard_end_with_the_next_run() {
    let tool = |claude: &Claude| {
        let pid_file = claude.path("tool");
        let tool = Spawn::new(SpawnKind::Setsid).pid_file(&pid_file);
        let script = Script::new().spawn(tool).line("{}").forever();
        fs::write(claude.path("script.toml"), script.to_toml().unwrap()).unwrap();
        pid_file
    };
    let claude = Claude::new(&Script::new());
    let other = Claude::new(&Script::new());
    let [mine, others] = [&claude, &other].map(|claude| {
        let pid_file = tool(claude);
        let mut teamster =
            Running::start(claude.run(["x", "--json"]).current_dir(claude.dir.path()));
        teamster.line();
        let tool = KillOnDrop::new(wait_pid_file(&pid_file, LIMIT).unwrap());
        let pid = teamster.child.id();
        end_guard_of(pid);
        teamster.signal(Signal::SIGKILL);
        teamster.wait();
        tool
    });
    assert!(is_alive(mine.pid()) && is_alive(others.pid()));
    let script = Script::new().play(recording("text")).exit(0);
    fs::write(claude.path("script.toml"), script.to_toml().unwrap()).unwrap();
    let mut next = Running::start(claude.run(["x", "--json"]).current_dir(claude.dir.path()));
    assert!(wait_gone(mine.pid(), LIMIT));
    assert_eq!(next.wait().code(), Some(0));
    assert!(is_alive(others.pid()), "it works in another directory");
}
