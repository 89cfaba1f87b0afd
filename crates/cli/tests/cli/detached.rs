//! Runs that outlive the terminal: `run --detach`, `attach`, `wait`, `cancel`.

mod cut_off;
mod git_hooks;
mod hanging;
mod kept_spec;
mod killed;
mod live;
mod other_program;
mod requests;
mod results;
mod retention;
mod sessions;
mod setup;
mod submodules;
mod workspace;
pub(super) mod worktree;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use nix::sys::signal::Signal;
use nix::unistd::Pid;
use serde_json::{Value, json};
use teamster::{AgentEvent, RunStatus};
use teamster_testkit::proc::{KillOnDrop, is_alive, wait_gone, wait_until};

use crate::cli::{Claude, Ended, LIMIT, Running, done, events, run, teamster};

/// A command with a place for detached runs.
fn with_state<'a>(command: &'a mut Command, claude: &Claude) -> &'a mut Command {
    command.env("XDG_STATE_HOME", claude.path("state"))
}

fn runs_folder(claude: &Claude) -> PathBuf {
    claude.path("state").join("teamster/runs")
}

/// Starts a detached run that never asks; its id.
fn detach<'a>(claude: &Claude, args: impl IntoIterator<Item = &'a str>) -> String {
    let mut command = claude.run(args);
    let command = with_state(&mut command, claude).args(["--detach", "--ask-timeout", "0"]);
    run(command).quiet().id()
}

fn about<'a>(claude: &Claude, args: impl IntoIterator<Item = &'a str>) -> Ended {
    run(with_state(&mut teamster(args), claude))
}

/// The numbers of a log's entries are those from 1 on, without gaps.
fn assert_no_gaps(log: &str) {
    for (line, expected) in log.lines().zip(1_u64..) {
        let line: Value = serde_json::from_str(line).unwrap();
        assert_eq!(line["seq"], expected, "{line}");
    }
}

fn log_file(claude: &Claude, id: &str) -> PathBuf {
    runs_folder(claude).join(id).join("events.ndjson")
}

#[test]
fn the_log_is_the_run_for_every_reader() {
    let claude = Claude::plays("text", 0);
    let attached = run(&mut claude.run(["x"]));
    let id = detach(&claude, ["x"]);
    let shown = about(&claude, ["attach", &id]);
    assert_eq!(shown.stdout, attached.stdout);
    assert_eq!(shown.code, Some(0));
    let last = |text: &str| text.lines().last().unwrap_or_default().to_owned();
    assert!(last(&shown.stderr).contains("--resume"), "{}", shown.stderr);
    shown.stderr_begins("> x\n");

    about(&claude, ["wait", &id]).ok();
    // By the beginning of its id, which is enough as long as it is the only one.
    let log = about(&claude, ["attach", &id[..8], "--json"]).quiet();
    assert_no_gaps(&log.stdout);
    assert!(
        log.stdout
            .lines()
            .next()
            .unwrap()
            .contains(r#""type":"run:start""#)
    );
    assert_eq!(done(&log.stdout).status, RunStatus::Completed);
    assert_eq!(
        log.stdout,
        fs::read_to_string(log_file(&claude, &id)).unwrap()
    );

    let lines: Vec<_> = log.stdout.lines().collect();
    let after = about(&claude, ["attach", &id, "--json", "--after", "3"]);
    assert_eq!(after.stdout.lines().collect::<Vec<_>>(), lines[3..]);
    let after_end = lines.len().to_string();
    let nothing = about(&claude, ["attach", &id, "--json", "--after", &after_end]);
    assert_eq!((nothing.code, &*nothing.stdout), (Some(0), ""));
}

// Other systems refuse such a name.
#[cfg(target_os = "linux")]
#[test]
fn directory_without_utf8_name_takes_runs() {
    use std::os::unix::ffi::OsStrExt;

    let claude = Claude::plays("text", 0);
    let odd = claude.dir.path().join(std::ffi::OsStr::from_bytes(b"\xff"));
    fs::create_dir(&odd).unwrap();
    let with_history = |command: &mut Command| {
        run(with_state(command, &claude).env("TEAMSTER_STORE", claude.path("history.db")))
    };
    let mut command = claude.run(["x", "--detach", "--ask-timeout", "0"]);
    let started = with_history(command.current_dir(&odd)).quiet();
    let id = started.stdout.trim_end();
    with_history(&mut teamster(["wait", id])).ok();
    let log = with_history(&mut teamster(["attach", id, "--json"])).stdout;
    assert_eq!(done(&log).status, RunStatus::Completed);
    let listed = with_history(&mut teamster(["runs", "list", "--json"])).json();
    let directory = listed["workingDirectory"].as_str().unwrap();
    assert!(directory.ends_with("/\u{fffd}"), "{listed}");
}

#[test]
fn log_has_every_event_of_a_burst() {
    let claude = Claude::plays("text", 0);
    let mut lines =
        vec![json!({"type": "system", "subtype": "init", "session_id": "s", "model": "opus"})];
    lines.extend((0..3000).map(|number| {
        let content = [json!({"type": "text", "text": format!("{number} ")})];
        let message = json!({"id": format!("m{number}"), "role": "assistant", "content": content});
        json!({"type": "assistant", "session_id": "s", "message": message})
    }));
    lines.push(json!({"type": "result", "subtype": "success", "is_error": false, "session_id": "s", "num_turns": 1,
        "result": "2999 ", "usage": {"input_tokens": 1, "output_tokens": 1}}));
    let lines: String = (lines.iter().map(|line| line.to_string() + "\n")).collect();
    fs::write(claude.path("burst"), lines).unwrap();
    claude.program(&format!("exec cat '{}'", claude.path("burst").display()));
    let expected: String = (0..3000).map(|number| number.to_string() + " ").collect();
    // More come at once than the log takes at once.
    for _ in 0..3 {
        let id = detach(&claude, ["x"]);
        about(&claude, ["wait", &id]).ok();
        let log = fs::read_to_string(log_file(&claude, &id)).unwrap();
        assert_no_gaps(&log);
        assert_eq!(done(&log).text, expected);
        let text: String = events(&log)
            .iter()
            .filter_map(|event| match event {
                AgentEvent::Text(text) => Some(&*text.text),
                _ => None,
            })
            .collect();
        assert_eq!(text, expected);
    }
}

#[test]
fn a_lock_of_the_caller_is_not_held_by_the_run() {
    use nix::fcntl::{FcntlArg, FdFlag, fcntl};

    let claude = Claude::silent();
    let lock = || fs::File::create(claude.path("lock")).unwrap();
    let held = lock();
    held.lock().unwrap();
    fcntl(&held, FcntlArg::F_SETFD(FdFlag::empty())).unwrap();
    let id = detach(&claude, ["x"]);
    drop(held);
    assert!(lock().try_lock().is_ok(), "the runner of {id} holds it");
    about(&claude, ["cancel", &id]).ok();
}

#[test]
fn only_the_user_can_read_it() {
    use std::os::unix::fs::PermissionsExt;

    let claude = Claude::silent();
    let id = detach(&claude, ["x"]);
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let folder = runs_folder(&claude).join(&id);
    assert_eq!((mode(&runs_folder(&claude)), mode(&folder)), (0o700, 0o700));
    for file in fs::read_dir(&folder).unwrap() {
        let path = file.unwrap().path();
        assert_eq!(mode(&path), 0o600, "{}", path.display());
    }
    about(&claude, ["cancel", &id]).ok();
}

#[test]
#[cfg(target_os = "linux")]
fn runner_has_its_own_session_and_no_prompt_in_its_arguments() {
    let claude = Claude::silent();
    let secret = "SECRET-OF-THE-PROMPT";
    let id = detach(&claude, [secret]);
    let report = claude.report();
    let agent = KillOnDrop::new(report.pid);
    let runner = report.ppid;
    let arguments = fs::read_to_string(format!("/proc/{runner}/cmdline")).unwrap();
    assert!(arguments.contains("--teamster-runner"), "{arguments:?}");
    assert!(!arguments.contains(secret), "{arguments:?}");
    let session = |pid: u32| nix::unistd::getsid(Some(Pid::from_raw(pid.cast_signed()))).unwrap();
    assert_eq!(session(runner).as_raw().cast_unsigned(), runner);
    // Nothing of the terminal is open in it.
    for descriptor in 0..3 {
        let file = fs::read_link(format!("/proc/{runner}/fd/{descriptor}")).unwrap();
        let own = file.starts_with(runs_folder(&claude)) || file == Path::new("/dev/null");
        assert!(own, "{}", file.display());
    }
    about(&claude, ["cancel", &id]).ok();
    assert!(wait_gone(agent.pid(), LIMIT));
}

#[test]
fn attach_follows_and_ctrl_c_ends_only_the_view() {
    let claude = Claude::silent();
    let id = detach(&claude, ["x"]);
    let agent = KillOnDrop::new(claude.report().pid);
    let mut view = teamster(["attach", &id, "--json"]);
    let mut view = Running::start(with_state(&mut view, &claude));
    assert!(view.line().contains(r#""type":"run:start""#));
    view.signal(Signal::SIGINT);
    let ended = view.end();
    assert_eq!(ended.code, Some(130));
    let (short, _) = id.split_at(13);
    ended.stderr_has(&format!("`teamster cancel {short}`"));
    assert!(is_alive(agent.pid()));

    let mut view = teamster(["attach", &id, "--json"]);
    let mut view = Running::start(with_state(&mut view, &claude));
    view.line();
    let mut waiting = Running::start(with_state(&mut teamster(["wait", &id]), &claude));
    about(&claude, ["cancel", &id]).ok();
    let ended = view.end();
    assert_eq!(ended.code, Some(130));
    assert_eq!(done(&ended.stdout).status, RunStatus::Aborted);
    assert_eq!(waiting.end().code, Some(130));
    assert!(wait_gone(agent.pid(), LIMIT));
}

#[test]
fn runs_that_are_not_there_or_not_meant() {
    let claude = Claude::plays("text", 0);
    about(&claude, ["attach", "nope"]).only_says(1, "no run \"nope\" has a log");
    for id in ["..", "a/b", ""] {
        assert_eq!(about(&claude, ["wait", id]).code, Some(1), "{id}");
    }
    detach(&claude, ["x", "--run-id", "nightly-1"]);
    detach(&claude, ["x", "--run-id", "nightly-2"]);
    about(&claude, ["wait", "night"]).fails(1, "nightly-1, nightly-2");
    about(&claude, ["wait", "nightly-1", "nightly-2"]).ok();
    about(&claude, ["cancel", "nightly-1"]).fails(1, "has ended");
}

#[test]
fn a_run_that_has_ended_does_not_keep_cancel_from_the_next_one() {
    let claude = Claude::silent();
    let ids = [(); 2].map(|()| detach(&claude, ["x"]));
    about(&claude, ["cancel", &ids[0]]).ok();
    about(&claude, ["cancel", &ids[0], &ids[1]]).fails(1, "has ended");
    assert_eq!(about(&claude, ["wait", &ids[1]]).code, Some(130));
}

#[test]
fn run_that_cannot_begin_is_an_error_of_the_command() {
    let claude = Claude::plays("text", 0);
    let command = |args: &[&str]| {
        let ended = run(with_state(&mut claude.run(args.iter().copied()), &claude).arg("-d"));
        assert_eq!(ended.stdout, "", "{args:?}");
        (ended.code, ended.stderr)
    };
    let (code, error) = command(&["x", "--image", "x.bmp"]);
    assert_eq!(code, Some(2));
    assert!(error.contains("x.bmp is not an image"), "{error}");
    let (code, error) = command(&["x", "--run-id", "a/b"]);
    assert_eq!(code, Some(2));
    assert!(error.contains("cannot be the id"), "{error}");
    let (code, error) = command(&[" "]);
    assert_eq!(code, Some(2));
    assert!(error.contains("the prompt is empty"), "{error}");
    assert_eq!(command(&["x", "--json"]).0, Some(2));
    for (args, problem) in [
        (
            ["run", "codex", "x", "--max-turns=3"],
            "--max-turns: Codex has no way to honour it",
        ),
        (
            ["run", "pi", "x", "--permission=plan"],
            "--permission: Pi has no mode plan",
        ),
    ] {
        let ended = about(&claude, args.into_iter().chain(["--detach"]));
        assert_eq!((ended.code, &*ended.stdout), (Some(2), ""), "{args:?}");
        ended.stderr_has(problem);
        assert_eq!(about(&claude, args).code, Some(2), "{args:?}");
    }
    // Nothing is left of them.
    let left = fs::read_dir(runs_folder(&claude)).map_or(0, Iterator::count);
    assert_eq!(left, 0);

    detach(&claude, ["x", "--run-id", "one"]);
    let (code, error) = command(&["x", "--run-id", "one"]);
    assert_eq!(code, Some(2));
    assert!(error.contains("exists already"), "{error}");

    let mut nowhere = claude.run(["x", "--detach"]);
    run(nowhere.env_remove("HOME").env_remove("XDG_STATE_HOME")).fails(2, "XDG_STATE_HOME");
}

#[test]
fn an_incomplete_history_is_reported_also_to_a_quiet_user() {
    let claude = Claude::plays("text", 0);
    let store = "/proc/none/store.db";
    let mut command = claude.run(["x", "--detach", "--quiet", "--store", store]);
    let ended = run(with_state(&mut command, &claude)).ok();
    let warning = "warning: the history of this run is incomplete: ";
    ended.stderr_begins(warning);
    assert_eq!(ended.stderr.lines().count(), 1, "{}", ended.stderr);
}

#[test]
fn running_runs_are_listed_until_they_end() {
    let claude = Claude::silent();
    about(&claude, ["runs", "list", "--live"]).only_says(0, "no detached run");

    let id = detach(&claude, ["x"]);
    let agent = KillOnDrop::new(claude.report().pid);
    let table = about(&claude, ["runs", "list", "--live"]);
    table.stdout_has(&id[..13]);
    let live = || -> Value {
        let json = about(&claude, ["runs", "list", "--live", "--json"]);
        json.json()
    };
    let first = live();
    assert_eq!(
        (&first["runId"], &first["provider"], &first["kind"]),
        (&id.clone().into(), &"claude".into(), &"run".into())
    );
    // The state of a run is known a moment before its first entries are in the log.
    assert!(wait_until(LIMIT, || live()["seq"].as_u64() > Some(0)));

    about(&claude, ["cancel", &id]).ok();
    assert!(wait_gone(agent.pid(), LIMIT));
    assert_eq!(about(&claude, ["runs", "list", "--live"]).stdout, "");
}

#[test]
fn logs_of_ended_runs_are_deleted_by_id_age_and_size() {
    let claude = Claude::plays("text", 0);
    for id in ["one", "two", "three", "four"] {
        detach(&claude, ["x", "--run-id", id]);
        about(&claude, ["wait", id]).ok();
        // Its runner cleans up for a moment after the end of the log.
        assert!(wait_until(LIMIT, || !runs_folder(&claude)
            .join(id)
            .join("control.sock")
            .exists()));
    }
    let forget = |args: &[&str]| {
        let args = ["runs", "forget"].into_iter().chain(args.iter().copied());
        about(&claude, args)
    };
    let left = || {
        let ids = ["one", "two", "three", "four"].into_iter();
        ids.filter(|id| log_file(&claude, id).exists())
            .collect::<Vec<_>>()
    };
    let ended = forget(&["one"]).ok();
    ended.stdout_has("1 log deleted");
    assert_eq!(left(), ["two", "three", "four"]);
    assert_eq!(about(&claude, ["attach", "one"]).code, Some(1));

    // Room for one log and a half: the newest stays.
    let bytes = fs::metadata(log_file(&claude, "four")).unwrap().len();
    let most = (bytes * 3 / 2).to_string();
    let ended = forget(&["--logs-over", &most]);
    ended.stdout_has("2 logs deleted");
    assert_eq!(left(), ["four"]);
    assert_eq!(forget(&["--logs-over", "much"]).code, Some(2));

    forget(&["--older-than", "1d"]).ok();
    assert_eq!(left(), ["four"]);
    let ended = forget(&["--older-than", "0"]);
    ended.stdout_has("1 log deleted");
    assert_eq!(left(), Vec::<&str>::new());
}
