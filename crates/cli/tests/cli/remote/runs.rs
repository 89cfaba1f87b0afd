//! Runs, what they wait for, their history, and what they used.

use std::fs;

use nix::sys::signal::Signal;
use teamster_testkit::proc::wait_until;

use super::{Machine, timeless};
use crate::cli::chat::Agent;
use crate::cli::{Claude, LIMIT, Running, run, run_id};

fn machine(claude: &Claude) -> Machine {
    Machine::new(claude.path("").as_path(), &claude.path("claude"))
}

/// Starts a run from elsewhere; its id.
fn detach(machine: &Machine, args: &[&str]) -> String {
    let args = [&["run", "-d", "claude"], args].concat();
    run(&mut machine.remote(args)).quiet().id()
}

#[test]
fn an_attached_run_looks_the_same() {
    // Without pieces of messages, which a log joins.
    let claude = Claude::plays("tool_shell_ok_nopartial", 0);
    let machine = machine(&claude);
    let folder = claude.path("work");
    fs::create_dir(&folder).unwrap();
    let cwd = folder.to_str().unwrap();
    for more in [
        &[][..],
        &["--quiet"],
        &["--verbose"],
        &["--json"],
        &["--retries", "1", "--max-wait", "off"],
    ] {
        let args = [&["run", "claude", "hello", "--cwd", cwd], more].concat();
        let ended = machine.same(args).ok();
        assert!(!ended.stdout.is_empty());
    }
    // The prompt is read here, and the answer is written here.
    let prompt = claude.path("prompt.md");
    fs::write(&prompt, "hello").unwrap();
    let answer = claude.path("answer.txt");
    let args = [
        "run",
        "claude",
        "--quiet",
        "--prompt-file",
        prompt.to_str().unwrap(),
        "--output",
        answer.to_str().unwrap(),
    ];
    let ended = run(&mut machine.remote(args)).ok();
    assert_eq!(fs::read_to_string(answer).unwrap(), ended.stdout);
}

#[test]
fn a_run_that_fails_has_the_same_error_and_exit_code() {
    let claude = Claude::plays("error_401", 1);
    let machine = machine(&claude);
    let ended = machine.same(["run", "claude", "hello"]);
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    let id = detach(&machine, &["hello"]);
    let waited = machine.same(["wait", &id]);
    assert_eq!(waited.code, Some(1), "{}", waited.stderr);
    waited.stderr_begins("error: ");
}

#[test]
fn a_detached_run_is_shown_waited_for_and_listed_the_same() {
    let claude = Claude::plays("text", 0);
    let machine = machine(&claude);
    let id = detach(&machine, &["hello"]);
    machine.same(["wait", &id]).ok();
    let local = run(&mut machine.local(["attach", &id, "--json"]));
    let remote = run(&mut machine.remote(["attach", &id, "--json"]));
    assert_eq!((remote.code, remote.stdout), (local.code, local.stdout));
    for more in [
        &[][..],
        &["--quiet"],
        &["--verbose"],
        &["--after", "3", "--json"],
    ] {
        machine.same([&["attach", &id], more].concat());
    }
    machine.same(["cancel", &id]);
    machine.same(["attach", "unknown"]);
    machine.same(["runs", "list", "--live"]);
    machine.same(["requests"]);
    machine.same(["requests", "--json"]);

    // Its row is written after the end of its log.
    let listed = || run(&mut machine.local(["runs", "list", "--status", "success"])).stdout;
    assert!(wait_until(LIMIT, || listed().contains(&id[..13])));
    let shown = machine.same(["runs", "list"]);
    shown.stdout_has(&id[..13]);
    for args in [
        &["runs", "list", "--json", "--status", "success"][..],
        &["runs", "list", "--json", "--limit", "1", "--since", "1h"],
        &["runs", "list", "--status", "error"],
        &["runs", "show", &id],
        &["runs", "show", &id, "--json"],
        &["usage", "--by", "model"],
        &["usage", "--by", "session", "--models", "--csv"],
        &["usage", "--json", "--since", "2026-01-01"],
        &["usage", "--provider", "codex"],
        &["usage", "--limits"],
        &["usage", "--limits", "--json"],
    ] {
        // Where the store is differs.
        let (local, remote) = (
            run(&mut machine.local(args.iter().copied())),
            run(&mut machine.remote(args.iter().copied())),
        );
        assert_eq!(
            timeless(&remote.stdout),
            timeless(&local.stdout),
            "{args:?}"
        );
        assert_eq!(remote.code, local.code, "{args:?}: {}", remote.stderr);
    }
    run(&mut machine.remote(["runs", "show", "unknown"])).fails(1, "no run \"unknown\"");

    let forgotten = run(&mut machine.remote(["runs", "forget", &id])).ok();
    let stdout = &*forgotten.stdout;
    let size = stdout.strip_prefix("1 run forgotten, 1 log deleted (");
    assert!(size.is_some_and(|it| it.ends_with(" KiB)\n")), "{stdout}");
    assert!(machine.store.exists());
    machine.same(["attach", &id]);
    let again = run(&mut machine.remote(["runs", "forget", &id]));
    assert_eq!(again.code, Some(1), "{}", again.stdout);
}

#[test]
fn a_request_is_listed_and_answered_the_same() {
    let agent = Agent::new();
    let machine = Machine::new(agent.path("").as_path(), &agent.path("claude"));
    let id = detach(&machine, &["write"]);
    assert!(wait_until(LIMIT, || {
        !run(&mut machine.remote(["requests", "--json"]))
            .stdout
            .is_empty()
    }));
    let listed = machine.same(["requests"]);
    listed.stdout_has(&format!("{}/1", &id[..13]));
    machine.same(["requests", &id, "--json"]);
    let live = machine.same(["runs", "list", "--live"]);
    live.stdout_has("an answer: Write");
    machine.same(["answer", &id, "perhaps"]);
    machine.same(["answer", &format!("{id}/7"), "allow"]);
    run(&mut machine.remote(["answer", &id, "allow"])).ok();
    machine.same(["wait", &id]).ok();
    let late = machine.same(["answer", &format!("{id}/1"), "allow"]);
    late.stderr_has("has ended");
}

#[test]
fn ctrl_c_stops_an_attached_run_and_cancel_a_detached_one() {
    let claude = Claude::silent();
    let machine = machine(&claude);
    let mut running = Running::start(&mut machine.remote(["run", "claude", "x", "--json"]));
    // The agent's text has come here.
    let id = run_id(&running.until(r#""type":"text""#));
    running.signal(Signal::SIGINT);
    let ended = running.end();
    assert_eq!(ended.code, Some(130), "{}", ended.stderr);
    assert_eq!(machine.served.ended(&id)["status"], "aborted");

    let id = detach(&machine, &["x"]);
    run(&mut machine.remote(["cancel", &id])).ok();
    assert_eq!(machine.served.ended(&id)["status"], "aborted");
    assert_eq!(machine.same(["wait", &id]).code, Some(130));
}
