//! Limits of the system: processes and threads (`ulimit -u`), sizes of files (`ulimit -f`).

use std::fs;
use std::os::unix::fs::{MetadataExt, chown};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use serde_json::json;
use teamster_testkit::fake_agent::Script;
use teamster_testkit::proc::wait_until;

use crate::cli::{Claude, Ended, LIMIT, TEAMSTER, run};

/// A user without other processes: the limit of processes counts those of a user, and root has none.
const NOBODY: u32 = 65534;

/// A CLI that prints a message of this many words.
fn talks(words: usize) -> Claude {
    let claude = Claude::new(&Script::new());
    let text = "word ".repeat(words);
    let lines = [
        json!({"type": "system", "subtype": "init", "session_id": "s", "model": "opus"}),
        json!({"type": "assistant", "session_id": "s", "message":
            {"id": "m", "role": "assistant", "content": [{"type": "text", "text": text}]}}),
        json!({"type": "result", "subtype": "success", "is_error": false, "session_id": "s", "num_turns": 1,
            "result": text, "usage": {"input_tokens": 1, "output_tokens": 1}}),
    ];
    let lines: String = lines.iter().map(|line| line.to_string() + "\n").collect();
    fs::write(claude.path("lines"), lines).unwrap();
    claude.program(&format!(
        "exec /bin/cat '{}'",
        claude.path("lines").display()
    ));
    claude
}

/// Runs the program below a limit, such as `--nproc=5`.
fn limited(claude: &Claude, program: &Path, limit: &str, args: &[&str]) -> Command {
    let mut command = Command::new("prlimit");
    command
        .args([limit, "timeout", "60"])
        .arg(program)
        .args(args)
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .env("HOME", claude.path(""))
        .env("XDG_STATE_HOME", claude.path("state"))
        .env("TEAMSTER_STORE", "off")
        .env("TMPDIR", claude.path(""))
        .env("TEAMSTER_CLAUDE_BIN", claude.path("claude"))
        .current_dir(claude.path(""))
        .stdin(std::process::Stdio::null());
    command
}

fn give(path: &Path) {
    for entry in fs::read_dir(path).unwrap() {
        let entry = entry.unwrap();
        chown(entry.path(), Some(NOBODY), Some(NOBODY)).unwrap();
        if entry.file_type().unwrap().is_dir() {
            give(&entry.path());
        }
    }
    chown(path, Some(NOBODY), Some(NOBODY)).unwrap();
}

fn of_nobody() -> usize {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let of_nobody = processes.filter(|entry| {
        let is_process = entry.file_name().to_string_lossy().parse::<u32>().is_ok();
        is_process && entry.metadata().is_ok_and(|it| it.uid() == NOBODY)
    });
    of_nobody.count()
}

#[test]
fn process_and_thread_limits_give_an_error_without_leftovers() {
    if !nix::unistd::geteuid().is_root() || of_nobody() > 0 {
        eprintln!("not tested: this user cannot become one without processes");
        return;
    }
    let claude = talks(3);
    let program = claude.path("teamster");
    fs::hard_link(TEAMSTER, &program)
        .or_else(|_| fs::copy(TEAMSTER, &program).map(drop))
        .unwrap();
    fs::create_dir(claude.path("state")).unwrap();
    give(&claude.path(""));
    let mut codes = Vec::new();
    for args in [
        &["run", "claude", "x"][..],
        &["run", "claude", "x", "--detach"],
        &["doctor"],
    ] {
        // One is `timeout`, which counts as well.
        for limit in 2..=14 {
            let limit = format!("--nproc={limit}");
            let ended: Ended = run(limited(&claude, &program, &limit, args)
                .uid(NOBODY)
                .gid(NOBODY));
            let when = format!("{args:?} {limit}: {:?} {}", ended.code, ended.stderr);
            assert!(ended.code.is_some_and(|code| code < 100), "{when}");
            assert!(!ended.stderr.contains("panicked"), "{when}");
            if ended.code != Some(0) && args[0] == "run" {
                assert!(ended.stderr.contains("ulimit -u"), "{when}");
            }
            codes.push(ended.code);
            assert!(wait_until(LIMIT, || of_nobody() == 0), "{when}");
        }
    }
    // The lowest is too low, the highest is not.
    assert_ne!(codes[0], Some(0));
    assert_eq!(codes[12], Some(0));
}

#[test]
fn a_file_that_may_not_grow_is_an_error_and_no_end_by_a_signal() {
    let claude = talks(20_000);
    let out = fs::File::create(claude.path("out")).unwrap();
    let mut command = limited(
        &claude,
        Path::new(TEAMSTER),
        "--fsize=4096",
        &["run", "claude", "x"],
    );
    let output = command
        .stdout(out)
        .stderr(std::process::Stdio::piped())
        .output()
        .unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(
        output
            .status
            .code()
            .is_some_and(|code| (1..100).contains(&code)),
        "{:?}: {stderr}",
        output.status
    );
    assert!(stderr.contains("File too large"), "{stderr}");

    // The log of a detached run: the run is stopped, and its log gets an end without the limit.
    let started = run(&mut limited(
        &claude,
        Path::new(TEAMSTER),
        "--fsize=4096",
        &["run", "claude", "x", "--detach"],
    ))
    .ok();
    let id = started.stdout.trim();
    let waited = run(&mut limited(
        &claude,
        Path::new(TEAMSTER),
        "--fsize=unlimited",
        &["wait", id],
    ));
    assert!(
        matches!(waited.code, Some(1 | 5)),
        "{:?}: {}",
        waited.code,
        waited.stderr
    );
}
