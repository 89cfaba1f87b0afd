//! `teamster doctor`.

use serde_json::Value;
use snapbox::{assert_data_eq, str};
use teamster_testkit::fake_agent::Script;

use crate::{Claude, run, teamster};

/// What is said about Claude Code, which comes first. The machine may have other CLIs, and
/// processes of other runs.
fn about_claude(stdout: &str) -> String {
    let lines = stdout.lines().enumerate();
    let of_claude = lines.take_while(|(i, line)| *i == 0 || line.starts_with(' '));
    let lines: Vec<_> = of_claude.map(|(_, line)| format!("{line}\n")).collect();
    lines.concat()
}

#[test]
fn a_usable_cli() {
    let claude = Claude::new(&Script::new());
    let ended = run(teamster(["doctor"]).env("PATH", claude.dir.path()));
    // The program is a shell script, which needs no PATH.
    assert_eq!((ended.code, &*ended.stderr), (Some(0), ""));
    assert_data_eq!(
        about_claude(&ended.stdout).replace(claude.dir.path().to_str().unwrap(), "DIR"),
        str![[r#"
✓ Claude Code  2.1.197
    program  DIR/claude
    tested   with 2.1.197, 2.1.330

"#]]
    );
    assert!(!claude.path("report.json").exists(), "an agent was started");
}

#[test]
fn a_link_and_an_unknown_version() {
    let claude = Claude::new(&Script::new());
    claude.program("echo '9.0.0 (Claude Code)'");
    std::os::unix::fs::symlink(claude.path("claude"), claude.path("link")).unwrap();
    let ended = run(teamster(["doctor"])
        .env("PATH", claude.dir.path())
        .env("TEAMSTER_CLAUDE_BIN", claude.path("link")));
    assert_eq!(ended.code, Some(0));
    assert_data_eq!(
        about_claude(&ended.stdout).replace(claude.dir.path().to_str().unwrap(), "DIR"),
        str![[r#"
✓ Claude Code  9.0.0
    program  DIR/link
    that is  DIR/claude
    tested   with [..]
    warning  this version is another one: it will most likely work, new kinds of output are shown as unknown

"#]]
    );
}

#[test]
fn a_bare_name_is_searched_as_a_run_searches_it() {
    let claude = Claude::new(&Script::new());
    let elsewhere = tempfile::tempdir().unwrap();
    let ended = run(teamster(["doctor", "--json"])
        .current_dir(elsewhere.path())
        .env("PATH", claude.dir.path())
        .env("TEAMSTER_CLAUDE_BIN", "claude"));
    assert_eq!(ended.code, Some(0), "{}", ended.stdout);
    let report: Value = serde_json::from_str(&ended.stdout).unwrap();
    let found = &report["providers"][0]["path"];
    assert_eq!(*found, claude.path("claude").to_str().unwrap());
}

#[test]
fn a_missing_cli() {
    let empty = tempfile::tempdir().unwrap();
    let ended = run(teamster(["doctor"]).env("PATH", empty.path()));
    assert_eq!((ended.code, &*ended.stderr), (Some(3), ""));
    assert_data_eq!(
        about_claude(&ended.stdout).replace(empty.path().to_str().unwrap(), "DIR"),
        str![[r#"
✗ Claude Code  not found
    problem  the program `claude` was not found: searched DIR
    install  npm install -g @anthropic-ai/claude-code
    tested   with 2.1.197, 2.1.330

"#]]
    );
}

#[test]
fn a_broken_cli() {
    let claude = Claude::new(&Script::new());
    claude.program("echo 'library not found' >&2; exit 127");
    let ended = run(teamster(["doctor", "--json"]).env("PATH", claude.dir.path()));
    assert_eq!(ended.code, Some(3));
    let report: Value = serde_json::from_str(&ended.stdout).unwrap();
    let provider = &report["providers"][0];
    assert_eq!(provider["usable"], false);
    assert_eq!(
        provider["problem"],
        "does not tell its version (exit status: 127): library not found"
    );
    assert!(report["leftovers"].is_array());
}

#[test]
fn the_same_as_json() {
    let claude = Claude::new(&Script::new());
    let ended = run(teamster(["doctor", "--json"]).env("PATH", claude.dir.path()));
    assert_eq!((ended.code, &*ended.stderr), (Some(0), ""));
    let report: Value = serde_json::from_str(&ended.stdout).unwrap();
    let provider = &report["providers"][0];
    assert_eq!(provider["id"], "claude");
    assert_eq!(provider["usable"], true);
    assert_eq!(provider["version"], "2.1.197");
    assert_eq!(provider["tested"], true);
    assert_eq!(provider["path"], claude.path("claude").to_str().unwrap());
}

/// Kills the process that would end what a killed `teamster` leaves behind.
#[cfg(target_os = "linux")]
pub(crate) fn end_guard_of(owner: u32) {
    use nix::sys::signal::{Signal, kill};
    use nix::unistd::Pid;

    let mark = format!("--teamster-guard\0{owner}\0");
    let guard = std::fs::read_dir("/proc").unwrap().find_map(|entry| {
        let pid: i32 = entry.ok()?.file_name().to_str()?.parse().ok()?;
        let command = std::fs::read_to_string(format!("/proc/{pid}/cmdline")).ok()?;
        command.ends_with(&mark).then_some(pid)
    });
    kill(Pid::from_raw(guard.unwrap()), Signal::SIGKILL).unwrap();
}

#[test]
#[cfg(target_os = "linux")]
fn a_process_that_a_killed_run_left_is_listed_without_its_arguments() {
    use crate::{LIMIT, Running};
    use nix::sys::signal::Signal;
    use teamster_testkit::fake_agent::{Spawn, SpawnKind};
    use teamster_testkit::proc::{KillOnDrop, wait_pid_file, wait_until};

    let claude = Claude::new(&Script::new());
    let pid_file = claude.path("stray.pid");
    // In a session of its own, out of reach of what ends with its parent.
    let script = Script::new()
        .spawn(Spawn::new(SpawnKind::Setsid).pid_file(&pid_file))
        .forever();
    std::fs::write(claude.path("script.toml"), script.to_toml().unwrap()).unwrap();
    // Another run in its directory would end what it leaves.
    let mut killed = Running::start(claude.run(["x", "--json"]).current_dir(claude.dir.path()));
    let stray = KillOnDrop::new(wait_pid_file(&pid_file, LIMIT).unwrap());
    end_guard_of(killed.child.id());
    killed.signal(Signal::SIGKILL);
    killed.wait();

    let mut found = None;
    assert!(wait_until(LIMIT, || {
        let ended = run(teamster(["doctor", "--json"]).env("PATH", claude.dir.path()));
        let report: Value = serde_json::from_str(&ended.stdout).unwrap();
        found = report["leftovers"]
            .as_array()
            .unwrap()
            .iter()
            .find(|left| left["pid"] == stray.pid())
            .cloned();
        found.is_some()
    }));
    let found = found.unwrap();
    assert_eq!(found["killed"], false);
    assert!(
        found["program"].as_str().unwrap().ends_with("teamster"),
        "{found}"
    );
}

/// In a process namespace of its own, because `--kill-leftovers` ends whatever it finds.
#[test]
#[cfg(target_os = "linux")]
fn leftovers_are_ended_when_asked() {
    use crate::TEAMSTER;
    use std::process::Command;
    use teamster_testkit::fake_agent::{Spawn, SpawnKind};

    let unshare = |args: &[&str]| {
        let mut command = Command::new("unshare");
        command.args([
            "--user",
            "--map-root-user",
            "--pid",
            "--fork",
            "--mount-proc",
        ]);
        command.args(args);
        command
    };
    if !unshare(&["true"])
        .status()
        .is_ok_and(|status| status.success())
    {
        eprintln!("not tested: this system gives no process namespaces to its users");
        return;
    }
    let claude = Claude::new(&Script::new());
    let script = Script::new()
        .spawn(Spawn::new(SpawnKind::Setsid).pid_file(claude.path("stray.pid")))
        .forever();
    std::fs::write(claude.path("script.toml"), script.to_toml().unwrap()).unwrap();
    let script = "\
        \"$0\" run claude x --json >/dev/null 2>&1 & run=$!
        while ! [ -s stray.pid ]; do kill -0 $run || exit 9; done
        for p in /proc/[0-9]*; do
            if grep -q -- --teamster-guard $p/cmdline; then kill -KILL ${p#/proc/}; fi
        done 2>/dev/null
        kill -KILL $run; wait $run
        \"$0\" doctor --json --kill-leftovers; \"$0\" doctor --json";
    let ended = run(unshare(&["sh", "-c", script, TEAMSTER])
        .current_dir(claude.dir.path())
        .env("TEAMSTER_CLAUDE_BIN", claude.path("claude")));
    let reports: Vec<Value> = serde_json::Deserializer::from_str(&ended.stdout)
        .into_iter()
        .collect::<Result<_, _>>()
        .unwrap();
    let [first, second] = &*reports else {
        panic!("{}{}", ended.stdout, ended.stderr);
    };
    let killed = first["leftovers"].as_array().unwrap();
    assert!(!killed.is_empty());
    assert!(killed.iter().all(|left| left["killed"] == true), "{first}");
    assert_eq!(second["leftovers"], Value::Array(Vec::new()));
}
