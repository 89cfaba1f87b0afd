//! `teamster run`: its output, the arguments of the CLI, and the exit codes.

use std::fs;
use std::io::Write;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::json;
use snapbox::{assert_data_eq, str};
use teamster::{ErrorCode, ErrorKind, LogEntry, RunStatus};
use teamster_testkit::fake_agent::Script;

use crate::cli::{Claude, done, ended, recording, run, teamster};

#[test]
fn text_goes_to_stdout_and_the_rest_to_stderr() {
    let ended = run(&mut Claude::plays("tool_parallel", 0).run(["hello"])).ok();
    assert_eq!(ended.stdout, "Two calls.\n\nBoth ran.\n");
    assert_data_eq!(
        ended.stderr,
        str![[r#"
Claude Code · claude-opus-4-8[1m] · session 4e7c1419-faa6-4b9e-a712-01520d2026c2
  ✓ Bash  echo one  [..]s
  ✓ Bash  echo two  [..]s
✓ completed · 3 turns · tokens 24 in, 50 out · $0.0014 · [..]s
  resume with: teamster run claude --resume 4e7c1419-faa6-4b9e-a712-01520d2026c2 PROMPT

"#]]
    );
}

#[test]
fn the_last_message_goes_to_a_file_as_well() {
    let claude = Claude::plays("tool_parallel", 0);
    let file = claude.path("answer.txt");
    fs::write(&file, "of an earlier run, and longer").unwrap();
    let name = file.to_str().unwrap();
    let ended = run(&mut claude.run(["hello", "-o", name]));
    assert_eq!(
        (ended.code, &*ended.stdout),
        (Some(0), "Two calls.\n\nBoth ran.\n")
    );
    assert_eq!(fs::read_to_string(&file).unwrap(), "Both ran.\n");
    let ended = run(&mut claude.run(["hello", "--json", "--output", name]));
    assert_eq!(done(&ended.stdout).status, RunStatus::Completed);
    assert_eq!(fs::read_to_string(&file).unwrap(), "Both ran.\n");
}

#[test]
fn run_without_an_answer_keeps_the_last_message_file() {
    let claude = Claude::plays("error_401", 1);
    let [old, new] = ["old.txt", "new.txt"].map(|name| claude.path(name));
    fs::write(&old, "of an earlier run\n").unwrap();
    for file in [&old, &new] {
        let ended = run(&mut claude.run(["hello", "-q", "-o", file.to_str().unwrap()]));
        assert_eq!(ended.code, Some(1), "{}", ended.stderr);
        let warning = "warning: --output: nothing was written: the run has no answer\n";
        assert!(ended.stderr.ends_with(warning), "{}", ended.stderr);
    }
    assert_eq!(fs::read_to_string(&old).unwrap(), "of an earlier run\n");
    assert!(!new.exists());
    let hidden = fs::read_dir(claude.dir.path()).unwrap().flatten();
    let hidden: Vec<_> = hidden
        .map(|entry| entry.file_name().into_string().unwrap())
        .filter(|name| name.contains("teamster-output"))
        .collect();
    assert_eq!(hidden, [""; 0]);
}

#[test]
fn a_link_to_the_file_and_its_permissions_stay() {
    let claude = Claude::plays("tool_parallel", 0);
    let [file, link] = ["answer.txt", "link.txt"].map(|name| claude.path(name));
    fs::write(&file, "of an earlier run\n").unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
    symlink(&file, &link).unwrap();
    run(&mut claude.run(["hello", "-q", "-o", link.to_str().unwrap()])).ok();
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(fs::read_to_string(&file).unwrap(), "Both ran.\n");
    let mode = fs::metadata(&file).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o640);
    // A device is written in place.
    let ended = run(&mut claude.run(["hello", "-q", "-o", "/dev/stderr"]));
    assert_eq!((ended.code, &*ended.stderr), (Some(0), "Both ran.\n"));
}

#[test]
fn unwritable_file_is_an_error_before_the_start() {
    let claude = Claude::plays("text", 0);
    let ended = run(&mut claude.run(["hello", "-o", "/nowhere/answer.txt"]));
    assert_eq!((ended.code, &*ended.stdout), (Some(2), ""));
    let error = "error: --output: cannot write to /nowhere/answer.txt: No such file";
    ended.stderr_begins(error);
    assert!(!claude.path("report.json").exists());
}

#[test]
fn session_is_an_alias_of_resume() {
    let claude = Claude::plays("text", 0);
    run(&mut claude.run(["hello", "--session", "4e7c1419-faa6-4b9e-a712-01520d2026c2"]));
    let argv = claude.report().argv.join(" ");
    assert!(argv.contains("--resume=4e7c1419"), "{argv}");
}

#[test]
fn json_is_the_log_and_nothing_else() {
    let ended = run(&mut Claude::plays("tool_parallel", 0).run(["hello", "--json"])).quiet();
    let result = done(&ended.stdout);
    assert_eq!(result.status, RunStatus::Completed);
    assert_eq!(result.final_message.as_deref(), Some("Both ran."));
    let lines = ended.json_lines();
    for (line, seq) in lines.iter().zip(1..) {
        assert_eq!((&line["seq"], &line["attempt"]), (&json!(seq), &json!(1)));
        assert!(line["atMs"].as_u64() > Some(1_700_000_000_000), "{line}");
        assert_eq!(line["runId"], lines[0]["runId"], "{line}");
        assert!(line.get("native").is_none(), "{line}");
    }
    let types: Vec<_> = (lines.iter())
        .map(|line| line["type"].as_str().unwrap())
        .collect();
    assert_eq!(types[..3], ["run:start", "run:attempt", "session"]);
    assert_eq!(types[types.len() - 2..], ["run:end", "done"]);
    assert_eq!(types.iter().filter(|name| **name == "tool_use").count(), 2);
}

#[test]
fn native_adds_the_lines_of_the_cli() {
    let ended = run(&mut Claude::plays("text", 0).run(["hello", "--json", "--native"]));
    let first = ended.stdout.lines().nth(2).unwrap();
    let entry: LogEntry = serde_json::from_str(first).unwrap();
    assert_eq!(entry.event.type_name(), "session");
    let native = entry.native.unwrap();
    assert!(
        native.get().starts_with(r#"{"type":"system""#),
        "{native:?}"
    );
    assert!(first.contains(r#","native":{"type":"system""#), "{first}");
}

#[test]
fn options_reach_the_cli() {
    let claude = Claude::plays("text", 0);
    let work = tempfile::tempdir().unwrap();
    run(claude
        .run([
            "the prompt",
            "--model=some-model",
            "--max-turns=3",
            "--env=GIVEN=value",
            "--env=TAKEN",
            "--cwd",
            work.path().to_str().unwrap(),
            "--quiet",
            "--",
            "--some-flag",
            "its-value",
        ])
        .env("TAKEN", "from our own"))
    .ok();
    let report = claude.report();
    let args = report.argv.join(" ");
    for part in ["the prompt", "some-model", "3", "--some-flag its-value"] {
        assert!(args.contains(part), "{part}: {args}");
    }
    assert_eq!(report.env["GIVEN"], "value");
    assert_eq!(report.env["TAKEN"], "from our own");
    let work = work.path().canonicalize().unwrap();
    assert_eq!(report.cwd, work.to_str().unwrap());
}

#[test]
fn a_prompt_comes_from_stdin_or_a_file() {
    let claude = Claude::plays("text", 0);
    let mut child = claude
        .run(["-", "--quiet"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(b"asked on stdin").unwrap();
    drop(stdin);
    ended(child.wait_with_output().unwrap()).ok();
    assert!(claude.report().argv.join(" ").contains("asked on stdin"));

    let claude = Claude::plays("text", 0);
    let file = claude.path("prompt.md");
    fs::write(&file, "asked in a file").unwrap();
    run(&mut claude.run(["--quiet", "--prompt-file", file.to_str().unwrap()])).ok();
    assert!(claude.report().argv.join(" ").contains("asked in a file"));
}

#[test]
fn an_invalid_parameter_is_2_and_named_by_its_flag() {
    let claude = Claude::plays("text", 0);
    let ended = run(&mut claude.run(["x", "--session-id", "nope"]));
    assert_eq!((ended.code, &*ended.stdout), (Some(2), ""));
    ended.stderr_begins("error: --session-id: ");
    let ended = run(&mut claude.run(["x", "--session-id", "nope", "--json"]));
    let message = &done(&ended.stdout).errors[0].message;
    assert!(message.starts_with("new_session_id: "), "{message}");
    assert!(!claude.path("report.json").exists(), "an agent was started");
}

#[test]
fn too_large_prompt_exits_with_2_without_advice() {
    let claude = Claude::plays("text", 0);
    let file = claude.path("prompt.md");
    fs::write(&file, "x".repeat(11 << 20)).unwrap();
    let file = file.to_str().unwrap();
    let ended = run(&mut claude.run(["--prompt-file", file]));
    ended.fails(2, "put the rest in a file");
    assert!(!ended.stderr.contains("next:"), "{}", ended.stderr);
}

#[test]
fn an_error_of_the_agent_is_1() {
    let claude = Claude::plays("error_401", 1);
    let ended = run(&mut claude.run(["x"]));
    assert_eq!((ended.code, &*ended.stdout), (Some(1), ""));
    assert_data_eq!(
        ended.stderr,
        str![[r#"
Claude Code · claude-opus-4-8[1m] · session 1adb7e0d-5ce2-40d6-b326-30f64c949f6b
  retrying (1 of 2) in 0.6s: authentication_failed (HTTP 401)
  retrying (2 of 2) in 1.2s: authentication_failed (HTTP 401)
error: Invalid API key · Fix external API key
  next: log in with `claude` and then /login, or set ANTHROPIC_API_KEY in the environment
✗ failed · 1 turn · tokens 0 in, 0 out · $0.00 · [..]s

"#]]
    );
    let json = run(&mut claude.run(["x", "--json"]));
    assert_eq!(json.code, Some(1));
    assert_eq!(done(&json.stdout).errors[0].kind, ErrorKind::Auth);
}

#[test]
fn a_wrong_command_line_is_2_and_starts_nothing() {
    let claude = Claude::plays("text", 0);
    for wrong in [
        vec![],
        vec![""],
        vec!["x", "--prompt-file", "y"],
        vec!["x", "--max-turns", "many"],
        vec!["x", "--idle-timeout", "soon"],
        vec!["x", "--image", "picture.bmp"],
        vec!["x", "--output-schema", "{"],
        vec!["x", "--fork"],
        vec!["x", "--native"],
        vec!["x", "--quiet", "--json"],
        vec!["x", "--system-prompt", "a", "--append-system-prompt", "b"],
        vec!["x", "--env", "NOT_IN_THE_ENVIRONMENT"],
        vec!["--prompt-file", "/no/such/file"],
    ] {
        let ended = run(&mut claude.run(wrong.iter().copied()));
        assert_eq!((ended.code, &*ended.stdout), (Some(2), ""), "{wrong:?}");
        ended.stderr_begins("error: ");
    }
    assert!(!claude.path("report.json").exists());
}

#[test]
fn a_missing_cli_is_3_with_the_way_to_install_it() {
    let empty = tempfile::tempdir().unwrap();
    let ended = run(teamster(["run", "claude", "the secret prompt"]).env("PATH", empty.path()));
    assert_eq!((ended.code, &*ended.stdout), (Some(3), ""));
    assert_data_eq!(
        ended.stderr.replace(empty.path().to_str().unwrap(), "DIR"),
        str![[r#"
error: the program `claude` was not found: searched DIR; to install Claude Code: npm install -g @anthropic-ai/claude-code
  next: if it is installed, set its path with --bin; `teamster doctor` lists the agents that it finds
✗ failed · 0.0s

"#]]
    );
    assert!(!ended.stderr.contains("secret"));

    let ended = run(&mut teamster([
        "run",
        "claude",
        "x",
        "--bin",
        "/no/such/cli",
        "--json",
    ]));
    assert_eq!((ended.code, &*ended.stderr), (Some(3), ""));
    assert_eq!(done(&ended.stdout).errors[0].code, ErrorCode::CliNotFound);
}

#[test]
fn a_limit_of_time_is_4() {
    let claude = Claude::new(&Script::new().forever());
    let ended = run(&mut claude.run(["x", "--startup-timeout", "200ms"]));
    ended.only_says(4, "--startup-timeout");
    ended.stderr_has("✗ timed out");

    let claude = Claude::silent();
    let ended = run(&mut claude.run(["x", "--idle-timeout", "200ms", "--json"]));
    assert_eq!(ended.code, Some(4));
    let result = done(&ended.stdout);
    assert_eq!(result.status, RunStatus::TimedOut);
    assert_eq!(result.errors[0].code, ErrorCode::WatchdogTimeout);
}

#[test]
fn output_that_breaks_off_is_5() {
    let claude = Claude::new(&Script::new().play(recording("text").last(6)).exit(0));
    run(&mut claude.run(["x"])).fails(5, "✗ incomplete");
}

#[test]
fn an_unknown_session_is_reported_with_the_likely_reason() {
    let claude = Claude::plays("resume_unknown", 1);
    let ended = run(&mut claude.run(["x", "--resume", "11111111-2222-4333-8444-555555555555"]));
    ended.fails(1, "--cwd");
    assert!(!ended.stderr.contains("resume with"), "{}", ended.stderr);
}

/// Runs `teamster run` in the agent's folder, from a shell that has executed `shell` before.
#[cfg(target_os = "linux")]
fn run_after(claude: &Claude, shell: &str) -> crate::cli::Ended {
    run_after_in(&claude.run(["x"]), claude.dir.path(), shell)
}

#[cfg(target_os = "linux")]
fn run_after_in(program: &Command, directory: &Path, shell: &str) -> crate::cli::Ended {
    let mut command = Command::new("sh");
    command
        .env_clear()
        .args(["-c", &format!("{shell} && exec \"$0\" \"$@\"")])
        .arg(program.get_program())
        .args(program.get_args())
        .current_dir(directory);
    for (name, value) in program.get_envs() {
        command.env(name, value.unwrap_or_default());
    }
    run(&mut command)
}

#[test]
#[cfg(target_os = "linux")]
fn too_few_descriptors_are_an_error_with_advice() {
    let claude = Claude::plays("text", 0);
    for limit in 5..=9 {
        let ended = run_after(&claude, &format!("ulimit -n {limit}"));
        assert_eq!(ended.code, Some(1), "{limit}: {}", ended.stderr);
        assert!(
            ended
                .stderr
                .starts_with("error: cannot start the runtime: Too many open files"),
            "{limit}: {}",
            ended.stderr
        );
        ended.stderr_has("`ulimit -n`");
    }
}

#[test]
#[cfg(target_os = "linux")]
fn a_deleted_directory_is_reported() {
    let claude = Claude::plays("text", 0);
    run_after(&claude, "mkdir gone && cd gone && rmdir ../gone")
        .fails(2, "the current directory was deleted");
    assert!(!claude.path("report.json").exists());
    for args in [["loop", "."], ["mcp", "check"], ["agents", "status"]] {
        let directory = tempfile::tempdir().unwrap();
        let gone = "mkdir gone && cd gone && rmdir ../gone";
        let ended = run_after_in(&teamster(args), directory.path(), gone);
        let messages = ended
            .stderr
            .matches("the current directory was deleted; change to another one");
        assert_eq!(messages.count(), 1, "{args:?}: {}", ended.stderr);
        assert_ne!(ended.code, Some(0), "{args:?}");
    }
}
