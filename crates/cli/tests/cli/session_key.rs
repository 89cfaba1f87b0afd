//! Conversations by `--session-key`: how they begin, and start over.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use nix::sys::signal::Signal;
use teamster_testkit::proc::wait_until;
use tempfile::TempDir;

use crate::cli::{Ended, LIMIT, Running, program, run, teamster};

/// An agent that answers every prompt, in the session that it is given or in a new one, which it names late.
///
/// Made by hand: the least of Claude Code's output that makes a run.
const AGENT: &str = r#"
case "$*" in
  *--resume=*) id=${*#*--resume=}; id=${id%% *}; printf 'resumed %s\n' "$id" >> "$DIR/starts" ;;
  *) id=session-$$; printf 'begun %s\n' "$id" >> "$DIR/starts"; sleep 0.2 ;;
esac
printf '{"type":"system","subtype":"init","session_id":"%s","model":"opus"}\n' "$id"
printf '{"type":"assistant","session_id":"%s","message":{"id":"m","role":"assistant","content":[{"type":"text","text":"Hello."}]}}\n' "$id"
printf '{"type":"result","subtype":"success","is_error":false,"session_id":"%s","num_turns":1,"result":"Hello.","usage":{"input_tokens":10,"output_tokens":5}}\n' "$id"
"#;

struct Agent {
    dir: TempDir,
}

impl Agent {
    fn new() -> Self {
        let agent = Self {
            dir: tempfile::tempdir().unwrap(),
        };
        agent.install(AGENT);
        agent
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn install(&self, script: &str) {
        let directory = self.dir.path().display();
        program(
            &self.path("claude"),
            &format!("DIR='{directory}'\n{script}"),
        );
    }

    /// The sessions that were begun and resumed.
    fn starts(&self) -> Vec<String> {
        let starts = fs::read_to_string(self.path("starts")).unwrap_or_default();
        starts.lines().map(str::to_owned).collect()
    }

    fn environment(&self, command: &mut Command) {
        command
            .env("TEAMSTER_CLAUDE_BIN", self.path("claude"))
            .env("XDG_STATE_HOME", self.path("state"))
            .env("TEAMSTER_STORE", self.path("store.db"));
    }
}

/// A run of this agent with a store.
fn command<'a>(agent: &Agent, args: impl IntoIterator<Item = &'a str>) -> Command {
    let mut command = teamster(["run", "claude"]);
    agent.environment(command.args(args));
    command
}

fn started(agent: &Agent, args: &[&str]) -> Ended {
    run(&mut command(agent, args.iter().copied()))
}

/// Returns how many starts of the agent began a session.
fn begun(agent: &Agent) -> usize {
    let is_new = |start: &&String| start.starts_with("begun ");
    agent.starts().iter().filter(is_new).count()
}

#[test]
fn a_run_with_a_key_names_no_other_way_to_continue() {
    let agent = Agent::new();
    let plain = run(&mut command(&agent, ["x"]));
    plain.stderr_has("resume with: teamster run claude --resume session-");
    let keyed = run(&mut command(&agent, ["x", "--session-key", "me"])).ok();
    assert!(!keyed.stderr.contains("resume with"), "{}", keyed.stderr);
}

#[test]
fn many_first_messages_at_once_begin_one_session() {
    let agent = Agent::new();
    let mut attached = Vec::new();
    let mut detached = Vec::new();
    for number in 0..10 {
        let mut args = vec!["hello", "--session-key=slack:U42"];
        let runs = if number % 2 == 0 {
            &mut attached
        } else {
            args.extend(["--detach", "--ask-timeout=0"]);
            &mut detached
        };
        runs.push(Running::start(&mut command(&agent, args)));
    }
    for mut run in attached {
        // One that finds the session in use is refused.
        let ended = run.end();
        let is_refused = ended.stderr.contains("works with session");
        assert_eq!(ended.code == Some(0), !is_refused, "{}", ended.stderr);
    }
    for mut launch in detached {
        let ended = launch.end();
        if ended.code == Some(0) {
            let mut wait = teamster(["wait", ended.stdout.trim_end()]);
            agent.environment(&mut wait);
            run(&mut wait);
        } else {
            let is_refused = ended.stderr.contains("works with session");
            assert!(is_refused, "{}", ended.stderr);
        }
    }
    assert_eq!(begun(&agent), 1, "{:#?}", agent.starts());
}

#[test]
fn a_killed_or_failed_first_run_leaves_its_key_free() {
    let agent = Agent::new();
    let begun = agent.path("begun");
    agent.install(&format!(": > '{}'; exec sleep 600", begun.display()));
    let args = ["hello", "--session-key=k"];
    let mut first = Running::start(&mut command(&agent, args));
    assert!(wait_until(LIMIT, || begun.exists()));
    first.signal(Signal::SIGKILL);
    first.wait();
    // Its end is known at once, so this does not wait for the time limit of a session that another run begins.
    agent.install("exit 3");
    let failed = started(&agent, &args);
    assert_ne!(failed.code, Some(0), "{}", failed.stderr);
    assert!(
        !failed.stderr.contains("is beginning the session"),
        "{}",
        failed.stderr
    );
    agent.install(AGENT);
    started(&agent, &args).ok();
    assert_eq!(agent.starts().len(), 1);
}

#[test]
fn a_conversation_starts_over_with_new() {
    let agent = Agent::new();
    let key = "--session-key=k";
    for (args, sessions) in [
        (&["one", key][..], 1),
        (&["two", key], 1),
        (&["three", key, "--new"], 2),
        (&["four", key], 2),
    ] {
        started(&agent, args).ok();
        assert_eq!(begun(&agent), sessions, "{args:?}");
    }
    let starts = agent.starts();
    let session = |start: &String| start.split_once(' ').unwrap().1.to_owned();
    let sessions: Vec<_> = starts.iter().map(session).collect();
    assert_eq!((&sessions[0], &sessions[2]), (&sessions[1], &sessions[3]));
    assert_ne!(sessions[0], sessions[2]);
    started(&agent, &["x", "--new"]).fails(2, "--session-key");
}

#[test]
fn a_folder_that_is_gone_is_never_advised() {
    let agent = Agent::new();
    let folder = agent.path("folder");
    fs::create_dir(&folder).unwrap();
    let key = "--session-key=k";
    let cwd = format!("--cwd={}", folder.display());
    started(&agent, &["one", key, &cwd]).ok();
    let elsewhere = started(&agent, &["two", key]);
    assert_eq!(elsewhere.code, Some(2));
    let expected = format!("belongs to {}: run there", folder.display());
    elsewhere.stderr_has(&expected);

    fs::remove_dir_all(&folder).unwrap();
    let gone = started(&agent, &["two", key]);
    assert_eq!(gone.code, Some(2));
    let expected = format!(
        "error: the folder of the session of \"k:_:_\" is gone ({}): start the conversation over with --new, or use \
         another key\n",
        folder.display()
    );
    assert_eq!(gone.stderr, expected);
    started(&agent, &["two", key, "--new"]).ok();
    started(&agent, &["three", key]).ok();
    assert_eq!(begun(&agent), 2);
}

#[test]
fn a_run_whose_session_is_in_use_leaves_no_row() {
    let agent = Agent::new();
    agent.install(
        r#"printf '{"type":"system","subtype":"init","session_id":"session-1","model":"opus"}\n'; sleep 600"#,
    );
    let args = ["x", "--json", "--run-id=first", "--session-key=k"];
    let mut first = Running::start(&mut command(&agent, args));
    assert!(first.line().contains("session-1"));
    for (session, detach) in [
        ("--resume=session-1", &[][..]),
        ("--resume=session-1", &["--detach"]),
        ("--session-key=k", &[]),
        ("--session-key=k", &["--detach"]),
    ] {
        let second = started(
            &agent,
            &[&["x", session, "--run-id=second"], detach].concat(),
        );
        assert_eq!((second.code, &*second.stdout), (Some(2), ""));
        let (flag, _) = session.split_once('=').unwrap();
        let expected = format!("error: {flag}: process ");
        second.stderr_begins(&expected);
        second.stderr_has("works with session session-1");
    }
    let mut list = teamster(["runs", "list", "--json"]);
    agent.environment(&mut list);
    let list = run(&mut list).stdout;
    assert!(
        list.contains("\"first\"") && !list.contains("\"second\""),
        "{list}"
    );
    first.signal(Signal::SIGTERM);
    first.wait();
}
