//! The store: sessions by key, and run history.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use nix::fcntl::{FcntlArg, fcntl};
use nix::libc;
use nix::sys::signal::Signal;
use serde_json::Value;
use teamster_testkit::fake_agent::{Script, Step};
use teamster_testkit::proc::wait_until;

use crate::cli::{Claude, Ended, LIMIT, Running, recording, run, teamster};

/// Sets the store in this agent's folder.
fn with_store<'a>(claude: &Claude, command: &'a mut Command) -> &'a mut Command {
    command.env("TEAMSTER_STORE", claude.path("state/store.db"))
}

/// Runs `teamster run claude` with the store.
fn agent(claude: &Claude, args: &[&str]) -> Ended {
    run(with_store(claude, &mut claude.run(args.iter().copied())))
}

/// Runs `teamster runs` with the store.
fn runs(claude: &Claude, args: &[&str]) -> Ended {
    let mut command = teamster(["runs"]);
    run(with_store(claude, command.args(args)))
}

fn listed(claude: &Claude) -> Vec<Value> {
    let ended = runs(claude, &["list", "--json"]).quiet();
    ended.json_lines()
}

#[test]
fn every_run_is_in_the_history() {
    let claude = Claude::plays("tool_shell_ok", 0);
    let mut first = claude.run(["a question\nand a private matter", "--run-id=first"]);
    let first = with_store(&claude, &mut first);
    run(first.env("TEAMSTER_KEEP_PROMPTS", "off")).ok();
    let failed = Claude::plays("conformance_unauthorized", 1);
    let ended = run(with_store(&claude, &mut failed.run(["again"])));
    assert_eq!(ended.code, Some(1));

    let list = listed(&claude);
    assert_eq!(list.len(), 2);
    assert_eq!(list[0]["status"], "error");
    assert_eq!(list[0]["error"]["kind"], "auth");
    assert_eq!(list[1]["status"], "success");
    assert_eq!(list[1]["runId"], "first");
    assert_eq!(list[1]["provider"], "claude");
    assert!(list[1]["usage"]["outputTokens"].as_u64().unwrap() > 0);
    assert!(list[1]["costUsd"].as_f64().unwrap() > 0.0);

    let table = runs(&claude, &["list"]).ok();
    assert!(table.stdout.starts_with("RUN "), "{}", table.stdout);
    assert_eq!(table.stdout.lines().count(), 3, "{}", table.stdout);
    for status in ["completed", "success"] {
        let only = runs(&claude, &["list", "--status", status]);
        assert_eq!(only.stdout.lines().count(), 2, "{}", only.stdout);
        only.stdout_has("  completed  ");
    }

    let shown = runs(&claude, &["show", "fir"]).ok();
    shown.stdout_has("completed");
    shown.stdout_has("prompt        not kept (sha256 ");
    let store = fs::read(claude.path("state/store.db")).unwrap();
    let wal = fs::read(claude.path("state/store.db-wal")).unwrap_or_default();
    for bytes in [store, wal] {
        assert!(!String::from_utf8_lossy(&bytes).contains("private"));
    }
    let mode = |name| {
        fs::metadata(claude.path(name))
            .unwrap()
            .permissions()
            .mode()
            & 0o777
    };
    assert_eq!((mode("state"), mode("state/store.db")), (0o700, 0o600));
}

#[test]
fn prompt_of_an_attached_run_is_shown() {
    let claude = Claude::plays("text", 0);
    agent(&claude, &["Fix it\nplease", "--run-id=attached"]).ok();
    let shown = runs(&claude, &["show", "attached"]);
    shown.stdout_has("prompt        Fix it please\n");
    let shown = runs(&claude, &["show", "attached", "--json"]).json();
    assert_eq!(shown["prompt"], "Fix it\nplease");
    assert_eq!(listed(&claude)[0].get("prompt"), None);
}

#[test]
fn missing_runs_and_stores_are_reported() {
    let claude = Claude::plays("text", 0);
    for args in [
        &["list"][..],
        &["show", "nothing"],
        &["forget", "--older-than=0"],
    ] {
        let named = runs(&claude, args);
        assert_eq!((named.code, &*named.stdout), (Some(1), ""), "{args:?}");
        named.stderr_has("no store");
    }
    let ours = |command: &str| {
        let state = claude.path("state");
        let mut command = teamster(["runs", command]);
        command.env("XDG_STATE_HOME", state);
        run(command.env_remove("TEAMSTER_STORE"))
    };
    let list = ours("list");
    list.only_says(0, "no store");
    // Listing does not create the store.
    assert!(!claude.path("state").exists());

    agent(&claude, &["x"]);
    runs(&claude, &["list", "--status=error"]).only_says(0, "no such runs");
    runs(&claude, &["show", "nothing"]).fails(1, "teamster runs list");
    assert_eq!(runs(&claude, &["forget", "--older-than=0"]).code, Some(0));
    runs(&claude, &["list"]).only_says(0, "no runs yet");
    run(&mut teamster(["runs", "list"])).fails(1, "TEAMSTER_STORE");
}

#[test]
fn a_key_resumes_its_session() {
    let claude = Claude::plays("text", 0);
    agent(&claude, &["x", "--session-key=slack:U42"]).ok();
    let argv = claude.report().argv;
    assert!(
        !argv.iter().any(|arg| arg.starts_with("--resume")),
        "{argv:?}"
    );
    let session = listed(&claude)[0]["sessionId"].as_str().unwrap().to_owned();

    fs::remove_file(claude.path("report.json")).unwrap();
    agent(&claude, &["x", "--session-key=slack:U42"]).ok();
    let argv = claude.report().argv.join(" ");
    assert!(argv.contains(&format!("--resume={session}")), "{argv}");

    fs::remove_file(claude.path("report.json")).unwrap();
    agent(&claude, &["x", "--session-key=slack:U43"]).ok();
    let argv = claude.report().argv.join(" ");
    assert!(!argv.contains("--resume"), "{argv}");

    agent(&claude, &["x", "--session-key=slack:U42", "--cwd=/"]).only_says(2, "belongs to");
}

#[test]
fn a_key_needs_a_store() {
    let claude = Claude::plays("text", 0);
    run(claude
        .run(["x", "--session-key=slack"])
        .env("TEAMSTER_STORE", "off"))
    .fails(2, "--session-key");
    let empty = agent(&claude, &["x", "--session-key=_"]);
    assert_eq!(empty.code, Some(2));
    assert!(!claude.path("report.json").exists());
}

#[test]
fn a_session_that_is_gone_is_forgotten() {
    let claude = Claude::plays("text", 0);
    agent(&claude, &["x", "--session-key=k"]);
    let gone = Claude::plays("conformance_unknown_session", 1);
    run(with_store(&claude, &mut gone.run(["x", "--session-key=k"])))
        .fails(1, "to start a new one");
    fs::remove_file(claude.path("report.json")).unwrap();
    agent(&claude, &["x", "--session-key=k"]);
    let argv = claude.report().argv.join(" ");
    assert!(!argv.contains("--resume"), "{argv}");
}

#[test]
fn a_store_that_cannot_be_used_costs_only_the_history() {
    let claude = Claude::plays("text", 0);
    fs::write(claude.path("state"), "a file").unwrap();
    let ended = agent(&claude, &["x"]).ok();
    ended.stdout_has("Hello");
    ended.stderr_has("TEAMSTER_STORE=off");
    // The user named the store, so the failure is reported also with -q.
    let quiet = agent(&claude, &["x", "-q"]).ok();
    quiet.stderr_has("TEAMSTER_STORE=off");
    run(claude
        .run(["x", "-q"])
        .env("XDG_STATE_HOME", claude.path("state")))
    .quiet();
    for args in [
        &["x", "--session-key=k"][..],
        &["x", "--session-key=k", "--json"],
        &["x", "--session-key=k", "--json", "--lifecycle"],
    ] {
        let keyed = agent(&claude, args);
        assert_eq!((keyed.code, &*keyed.stdout), (Some(2), ""));
        keyed.stderr_begins("error: ");
    }
}

/// The write lock of an SQLite store, held until it is dropped.
struct WriteLock(#[expect(dead_code, reason = "closed in the end")] File);

impl WriteLock {
    /// Locks the store in this agent's folder.
    fn on(claude: &Claude) -> Self {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .open(claude.path("state/store.db-shm"))
            .unwrap();
        // WAL_WRITE_LOCK: https://sqlite.org/walformat.html#locks
        let lock = libc::flock {
            l_type: libc::F_WRLCK.try_into().unwrap(),
            l_whence: libc::SEEK_SET.try_into().unwrap(),
            l_start: 120,
            l_len: 1,
            l_pid: 0,
        };
        fcntl(&file, FcntlArg::F_SETLKW(&lock)).unwrap();
        Self(file)
    }
}

#[test]
fn a_conversation_that_cannot_be_stored_is_not_started() {
    let other = Claude::new(&Script::new().play(recording("text")).step(Step::Forever {}));
    let mut command = other.run(["x", "--json"]);
    let claude = Claude::plays("text", 0);
    let mut running = Running::start(with_store(&claude, &mut command));
    assert!(running.line().contains("session"));
    let lock = WriteLock::on(&claude);
    let ended = agent(&claude, &["x", "--session-key=k"]);
    assert_eq!(
        (ended.code, &*ended.stdout),
        (Some(2), ""),
        "{}",
        ended.stderr
    );
    let expected = "error: --session-key: the conversation could not be stored";
    ended.stderr_has(expected);
    assert!(!claude.path("report.json").exists());
    drop(lock);
    agent(&claude, &["x", "--session-key=k"]).ok();
    running.signal(Signal::SIGKILL);
    running.wait();
}

#[test]
fn a_run_without_a_store_warns() {
    let claude = Claude::plays("text", 0);
    let lost = |command: &mut Command| {
        let ended = run(command).ok();
        ended
            .stderr
            .contains("warning: this run is not in the history")
    };
    assert!(lost(claude.run(["x"]).env_remove("TEAMSTER_STORE")));
    assert!(!lost(
        claude.run(["x", "--quiet"]).env_remove("TEAMSTER_STORE")
    ));
    assert!(!lost(claude.run(["x"]).env("TEAMSTER_STORE", "off")));
}

#[test]
fn a_killed_process_leaves_an_interrupted_run() {
    let claude = Claude::new(&Script::new().play(recording("text")).step(Step::Forever {}));
    let mut command = claude.run(["x", "--json"]);
    let mut running = Running::start(with_store(&claude, &mut command));
    assert!(running.line().contains("session"));
    let status = || listed(&claude)[0]["status"].as_str().unwrap().to_owned();
    assert_eq!(status(), "running");
    running.signal(Signal::SIGKILL);
    running.wait();
    assert!(wait_until(LIMIT, || status() == "interrupted"));
    let run = &listed(&claude)[0];
    assert!(run["sessionId"].is_string(), "{run}");
    assert!(run.get("error").is_none(), "{run}");
}

#[test]
fn an_invalid_run_id_is_refused_before_the_start() {
    let claude = Claude::plays("text", 0);
    let long = format!("--run-id={}", "x".repeat(501));
    for id in ["--run-id=", "--run-id=a\u{1b}[2J", "--run-id=a\nb", &long] {
        for store in ["", "off"] {
            let mut command = claude.run(["x", "--json", id]);
            let ended = run(command.env("TEAMSTER_STORE", store));
            assert_eq!((ended.code, &*ended.stdout), (Some(2), ""), "{id:?}");
            assert!(!ended.stderr.contains('\u{1b}'), "{:?}", ended.stderr);
        }
    }
    assert!(!claude.path("report.json").exists());

    agent(&claude, &["x", "--run-id=once"]).ok();
    fs::remove_file(claude.path("report.json")).unwrap();
    for args in [
        &["x", "--run-id=once"][..],
        &["x", "--run-id=once", "--json"],
    ] {
        agent(&claude, args).only_says(2, "--run-id");
    }
    assert!(!claude.path("report.json").exists());
    agent(&claude, &["x", "--run-id=onc"]).ok();
}

#[test]
fn old_runs_can_be_forgotten() {
    let claude = Claude::plays("text", 0);
    agent(&claude, &["x"]);
    agent(&claude, &["x"]);
    let forget = |age: &str| runs(&claude, &["forget", "--older-than", age]);
    let none = forget("1d");
    assert_eq!((none.code, &*none.stdout), (Some(0), "0 runs forgotten\n"));
    assert_eq!(listed(&claude).len(), 2);
    let all = forget("0");
    assert_eq!((all.code, &*all.stdout), (Some(0), "2 runs forgotten\n"));
    assert!(listed(&claude).is_empty());
    assert_eq!(runs(&claude, &["forget"]).code, Some(2));
    assert_eq!(forget("off").code, Some(2));
}

#[test]
fn a_run_is_forgotten_by_its_id() {
    let claude = Claude::plays("text", 0);
    for id in ["one", "two", "three"] {
        let id = format!("--run-id={id}");
        agent(&claude, &["x", "-q", &id]).ok();
    }
    // An unknown id deletes nothing.
    runs(&claude, &["forget", "one", "four"]).only_says(1, "no run \"four\"");
    assert_eq!(listed(&claude).len(), 3);
    let ended = runs(&claude, &["forget", "one", "tw"]);
    assert_eq!(
        (ended.code, &*ended.stdout),
        (Some(0), "2 runs forgotten\n")
    );
    let left = listed(&claude);
    assert_eq!((left.len(), &left[0]["runId"]), (1, &Value::from("three")));
    assert_eq!(
        runs(&claude, &["forget", "three", "--older-than=0"]).code,
        Some(2)
    );
}

#[test]
fn control_characters_in_the_history_are_removed() {
    let claude = Claude::plays("text", 0);
    let directory = claude.path("d\u{202e}\u{1b}[2Jir");
    fs::create_dir(&directory).unwrap();
    let store = directory.join("s\u{9b}.db");
    let mut command = claude.run(["x", "--run-id=a\u{202e}b", "--model=m\u{202e}"]);
    command
        .env("TEAMSTER_STORE", &store)
        .current_dir(&directory);
    run(&mut command).ok();
    let hidden = |c: char| matches!(c, '\u{202e}' | '\u{9b}' | '\u{1b}');
    for args in [
        &["list"][..],
        &["list", "--status=error"],
        &["show", "a"],
        &["show", "no\u{1b}\u{202e}"],
    ] {
        let mut command = teamster(["runs"]);
        let ended = run(command.args(args).env("TEAMSTER_STORE", &store));
        assert!(!ended.stdout.contains(hidden), "{:?}", ended.stdout);
        assert!(!ended.stderr.contains(hidden), "{:?}", ended.stderr);
    }
}

#[test]
fn a_run_leaves_its_journal_to_the_next_command() {
    let claude = Claude::plays("text", 0);
    for _ in 0..2 {
        agent(&claude, &["x"]).ok();
        assert!(claude.path("state/store.db-wal").exists());
    }
    let listed = runs(&claude, &["list"]);
    assert_eq!(listed.stdout.lines().count(), 3, "{}", listed.stdout);
    // SQLite removes the WAL file when the last connection is closed.
    assert!(!claude.path("state/store.db-wal").exists());
    let listed = runs(&claude, &["list"]);
    assert_eq!(listed.stdout.lines().count(), 3, "{}", listed.stdout);
}
