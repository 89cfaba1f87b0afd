//! `teamster doctor`.

mod programs;

use serde_json::Value;
use snapbox::{assert_data_eq, str};
use teamster_testkit::fake_agent::Script;

use crate::cli::{Claude, LIMIT, Running, run, teamster};

/// Returns the part of the report that is about Claude Code.
///
/// The rest depends on the machine: other CLIs, and processes of other runs.
fn about_claude(stdout: &str) -> String {
    let lines = stdout
        .lines()
        .skip_while(|line| !line.contains("Claude Code"));
    let of_claude = lines.enumerate();
    let of_claude = of_claude.take_while(|(i, line)| *i == 0 || line.starts_with(' '));
    let lines: Vec<_> = of_claude.map(|(_, line)| format!("{line}\n")).collect();
    lines.concat()
}

#[test]
fn a_usable_cli() {
    let claude = Claude::new(&Script::new());
    let ended = run(teamster(["doctor"]).env("PATH", claude.dir.path()));
    // The program is a shell script that needs no other program from PATH.
    assert_eq!((ended.code, &*ended.stderr), (Some(0), ""));
    assert_data_eq!(
        about_claude(&ended.stdout).replace(claude.dir.path().to_str().unwrap(), "DIR"),
        str![[r#"
✗ Claude Code  2.1.197, not logged in
    program  DIR/claude
    login    no: [..]
    tested   with 2.1.197, [..]
    oldest   2.1.197

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
        .env("TEAMSTER_CLAUDE_BIN", claude.path("link")))
    .ok();
    assert_data_eq!(
        about_claude(&ended.stdout).replace(claude.dir.path().to_str().unwrap(), "DIR"),
        str![[r#"
✗ Claude Code  9.0.0, not logged in
    program  DIR/link
    target   DIR/claude
    login    no: [..]
    tested   with [..]
    oldest   2.1.197
    warning  untested version; should work, new event types show as `unknown`

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
    let report = ended.json();
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
✗ Claude Code  not found: npm install -g @anthropic-ai/claude-code

"#]]
    );
}

#[test]
fn a_cli_without_a_readable_version_is_a_problem() {
    for (program, problem) in [
        (
            "echo 'library not found' >&2; exit 127",
            "reports no version (exit status: 127): library not found",
        ),
        (
            "echo 'Welcome! 3 new features'",
            "reports no version but: Welcome! 3 new features",
        ),
    ] {
        let claude = Claude::new(&Script::new());
        claude.program(program);
        let ended = run(teamster(["doctor", "--json"]).env("PATH", claude.dir.path()));
        assert_eq!(ended.code, Some(3));
        let report = ended.json();
        let provider = &report["providers"][0];
        assert_eq!(provider["usable"], false);
        assert_eq!(provider["problem"], problem);
        assert!(report["leftovers"].is_array());
    }
}

#[test]
fn the_search_path_is_printed_once_and_no_secret() {
    let empty = tempfile::tempdir().unwrap();
    let ended = run(teamster(["doctor"])
        .env("PATH", empty.path())
        .env("GEMINI_API_KEY", "secret-value"));
    let path = empty.path().to_str().unwrap();
    assert_eq!(ended.stdout.matches(path).count(), 1, "{}", ended.stdout);
    let claude = Claude::new(&Script::new());
    let ended = run(teamster(["doctor", "--json"])
        .env("PATH", claude.dir.path())
        .env("ANTHROPIC_API_KEY", "secret-value"));
    let report = ended.json();
    let login = &report["providers"][0]["login"];
    assert_eq!(login["state"], "yes");
    assert_eq!(login["from"], "ANTHROPIC_API_KEY");
    assert!(!ended.stdout.contains("secret-value"));
}

/// Some CLIs start background processes with `--version`, such as a check for updates.
#[test]
#[cfg(target_os = "linux")]
fn background_processes_of_a_cli_are_ended() {
    use teamster_testkit::proc::{KillOnDrop, wait_gone, wait_pid_file};

    let claude = Claude::new(&Script::new());
    let (group, session) = (claude.path("group.pid"), claude.path("session.pid"));
    claude.program(&format!(
        "sleep 600 >/dev/null 2>&1 & echo $! >'{}'\n\
         setsid sh -c 'echo $$ >'\\''{}'\\''; exec sleep 600' >/dev/null 2>&1 &\n\
         while ! [ -s '{}' ]; do sleep 0.01; done\n\
         echo 2.1.197",
        group.display(),
        session.display(),
        session.display(),
    ));
    let path = format!("{}:/usr/bin:/bin", claude.dir.path().display());
    let ended = run(teamster(["doctor"]).env("PATH", path));
    assert_eq!(ended.code, Some(0), "{}", ended.stdout);
    for file in [&group, &session] {
        let left = KillOnDrop::new(wait_pid_file(file, LIMIT).unwrap());
        assert!(wait_gone(left.pid(), LIMIT));
    }
}

/// Kills the guard of a `teamster` process.
#[cfg(target_os = "linux")]
pub(crate) fn end_guard_of(owner: u32) {
    use nix::sys::signal::{Signal, kill};
    use nix::unistd::Pid;

    let mark = format!("--teamster-guard\0{owner}\0");
    let guard = std::fs::read_dir("/proc").unwrap().find_map(|entry| {
        let pid: i32 = entry.ok()?.file_name().to_str()?.parse().ok()?;
        let command = std::fs::read_to_string(format!("/proc/{pid}/cmdline")).ok()?;
        command.contains(&mark).then_some(pid)
    });
    kill(Pid::from_raw(guard.unwrap()), Signal::SIGKILL).unwrap();
}

#[test]
#[cfg(target_os = "linux")]
fn leftover_of_a_killed_run_is_listed_without_its_arguments() {
    use nix::sys::signal::Signal;
    use teamster_testkit::fake_agent::{Spawn, SpawnKind};
    use teamster_testkit::proc::{KillOnDrop, wait_pid_file, wait_until};

    let claude = Claude::new(&Script::new());
    let pid_file = claude.path("stray.pid");
    // In a session of its own, so that it does not end with its parent.
    let script = Script::new()
        .spawn(Spawn::new(SpawnKind::Setsid).pid_file(&pid_file))
        .forever();
    std::fs::write(claude.path("script.toml"), script.to_toml().unwrap()).unwrap();
    // In a directory of its own: another run in the same one would end the leftover.
    let mut killed = Running::start(claude.run(["x", "--json"]).current_dir(claude.dir.path()));
    let stray = KillOnDrop::new(wait_pid_file(&pid_file, LIMIT).unwrap());
    end_guard_of(killed.child.id());
    killed.signal(Signal::SIGKILL);
    killed.wait();

    let mut found = None;
    assert!(wait_until(LIMIT, || {
        let ended = run(teamster(["doctor", "--json"]).env("PATH", claude.dir.path()));
        let report = ended.json();
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

/// Runs in a process namespace, because `--kill-leftovers` ends all leftovers of the machine.
#[test]
#[cfg(target_os = "linux")]
fn kill_leftovers_ends_leftovers() {
    use crate::cli::TEAMSTER;
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

/// Returns the exit code and stdout of `doctor --try`.
fn probe(command: &str, limit: &str) -> (Option<i32>, String) {
    let ended = run(&mut teamster([
        "doctor", "--try", command, "--limit", limit,
    ]));
    assert_eq!(ended.stderr, "", "{command}");
    (ended.code, ended.stdout)
}

#[test]
fn an_acp_agent_is_tried() {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../acp/tests/agent.sh");
    let (code, output) = probe(&format!("acp:sh {script}"), "30s");
    assert_eq!(code, Some(0), "{output}");
    assert!(output.contains("works ("), "{output}");
    assert!(output.contains("can      load sessions"), "{output}");
    assert!(output.contains("next     teamster run"), "{output}");
}

#[test]
fn non_acp_program_is_distinct_from_a_hanging_or_missing_one() {
    let (code, output) = probe("acp:echo Welcome!", "30s");
    assert_eq!(code, Some(1), "{output}");
    assert!(output.contains("is not an ACP agent"), "{output}");
    assert!(output.contains("it printed \"Welcome!\""), "{output}");
    assert!(
        output.contains("exit code 0 before it answered `initialize`"),
        "{output}"
    );
    assert!(output.contains("--experimental-acp"), "{output}");

    let (code, output) = probe("acp:sleep 987", "1s");
    assert_eq!(code, Some(4), "{output}");
    assert!(
        output.contains("within 1 s; it printed nothing"),
        "{output}"
    );

    let (code, output) = probe("acp:no-such-agent --acp", "30s");
    assert_eq!(code, Some(3), "{output}");
    assert!(output.contains("`no-such-agent` was not found"), "{output}");

    // `cat` answers each request with the same request.
    let (code, output) = probe("acp:cat", "30s");
    assert_eq!(code, Some(1), "{output}");
    assert!(
        output.contains("refused `initialize`: Method not found"),
        "{output}"
    );

    run(&mut teamster(["doctor", "--try", "claude"])).fails(2, "by its command, after `acp:`");
}

#[test]
fn an_agent_that_needs_a_login_is_an_acp_agent() {
    let script = r#"read -r l; printf '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1,"authMethods":[{"id":"key","name":"Key"}]}}\n'; read -r l; printf '{"jsonrpc":"2.0","id":2,"error":{"code":-32000,"message":"Authentication required"}}\n'; read -r l"#;
    let command = format!("acp:sh -c '{}'", script.replace('\'', "'\\''"));
    let (code, output) = probe(&command, "30s");
    assert_eq!(code, Some(1), "{output}");
    assert!(output.contains("needs a login"), "{output}");
    assert!(output.contains("logins   key"), "{output}");
}

/// The CLI hangs in `--version`, and has started another process that cleared its environment.
#[test]
#[cfg(target_os = "linux")]
fn a_doctor_that_is_killed_or_interrupted_leaves_no_process() {
    use nix::sys::signal::Signal;
    use teamster_testkit::proc::{wait_gone, wait_pid_file};

    for signal in [Signal::SIGKILL, Signal::SIGINT] {
        let claude = Claude::new(&Script::new());
        let (own, child) = (claude.path("own.pid"), claude.path("child.pid"));
        claude.program(&format!(
            "env -i setsid sh -c 'echo $$ > {}; exec sleep 1000' </dev/null >/dev/null 2>&1 &\n\
             echo $$ > {}; exec sleep 1000",
            child.display(),
            own.display()
        ));
        let mut command = teamster(["doctor"]);
        let doctor = Running::start(command.env("TEAMSTER_CLAUDE_BIN", claude.path("claude")));
        let pids = [own, child].map(|file| wait_pid_file(&file, LIMIT).unwrap());
        doctor.signal(signal);
        for pid in pids {
            assert!(wait_gone(pid, LIMIT), "{signal}: {pid} is left");
        }
    }
}
