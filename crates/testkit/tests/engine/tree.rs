//! No process of a run is alive after `done`, in any process group or session.

use std::fs;
use std::time::Duration;

use teamster_core::RunStatus;
use teamster_process::leftovers;
use teamster_testkit::fake_agent::{Script, Signal, Spawn, SpawnKind};
use teamster_testkit::proc;

use crate::engine::{END, LIMIT, LONG, Run, Scratch, Story, agent, helper, next};

/// Relations of a process to the agent: a child in its group, in another one, in another session, and outside its tree.
const KINDS: [SpawnKind; 4] = [
    SpawnKind::Child,
    SpawnKind::Group,
    SpawnKind::Setsid,
    SpawnKind::Daemon,
];

/// Returns a process that ignores all signals that can be ignored.
fn stubborn(scratch: &Scratch, kind: SpawnKind) -> Spawn {
    Spawn::new(kind).pid_file(scratch.path("stray")).script(
        Script::new()
            .ignore([Signal::Term, Signal::Int, Signal::Hup])
            .forever(),
    )
}

/// Stops a run whose agent has started this process, and checks that the process is gone at `done`.
async fn abort_ends(spawn: Spawn, scratch: &Scratch) {
    let case = format!("{spawn:?}");
    let script = Script::new().spawn(spawn).line(r#"{"u":"1"}"#).forever();
    let mut stream = agent(&script)
        .config(|config| config.term_grace = Duration::from_millis(100))
        .start();
    next(&mut stream).await;
    let stray = scratch.pid("stray");
    stream.abort();
    let mut events = Vec::new();
    while let Some(event) = stream.next().await {
        if event.type_name() == "done" {
            assert!(!proc::is_alive(stray.pid()), "{case}");
        }
        events.push(event);
    }
    assert_eq!(events.last().unwrap().type_name(), "done");
}

#[tokio::test]
async fn abort_ends_a_grandchild_wherever_it_is() {
    for kind in KINDS {
        let scratch = Scratch::new();
        abort_ends(stubborn(&scratch, kind), &scratch).await;
    }
    let scratch = Scratch::new();
    abort_ends(stubborn(&scratch, SpawnKind::Setsid).clear_env(), &scratch).await;
}

#[tokio::test]
async fn a_stray_gets_sigterm_and_its_grace_too() {
    let scratch = Scratch::new();
    let cleaned = scratch.path("cleaned");
    let tool = Spawn::new(SpawnKind::Setsid)
        .pid_file(scratch.path("stray"))
        .script(
            Script::new()
                .on_signal(
                    Signal::Term,
                    Script::new()
                        .sleep(Duration::from_millis(100))
                        .touch(&cleaned)
                        .exit(0),
                )
                .forever(),
        );
    let mut stream = agent(&Script::new().spawn(tool).line(r#"{"u":"1"}"#).forever())
        .config(|config| config.term_grace = LONG)
        .start();
    next(&mut stream).await;
    stream.abort();
    stream.result().await;
    assert!(cleaned.exists());
    assert!(!proc::is_alive(scratch.pid("stray").pid()));
}

/// Prepares a run that succeeds and has started this process.
fn leaving(spawn: Spawn) -> Run {
    let script = Script::new()
        .spawn(spawn.hold_pipes(false))
        .line(r#"{"u":"1"}"#)
        .line(r#"{"r":"1"}"#)
        .line(END);
    agent(&script)
}

async fn left_behind(scratch: &Scratch, run: Run) -> (Story, proc::KillOnDrop) {
    let story = run.finish().await;
    assert_eq!(story.result.status, RunStatus::Completed);
    assert_eq!(story.result.exit_code, Some(0));
    (story, scratch.pid("stray"))
}

#[tokio::test]
async fn a_normal_end_leaves_nothing_behind_either() {
    for kind in KINDS {
        let scratch = Scratch::new();
        let (_, stray) = left_behind(&scratch, leaving(stubborn(&scratch, kind))).await;
        assert!(!proc::is_alive(stray.pid()), "{kind:?}");
    }
    // Only its group identifies its owner.
    let scratch = Scratch::new();
    let spawn = stubborn(&scratch, SpawnKind::Child).clear_env();
    let (_, stray) = left_behind(&scratch, leaving(spawn)).await;
    assert!(!proc::is_alive(stray.pid()));
}

#[tokio::test]
async fn a_long_run_leaves_nothing_behind_either() {
    // Long enough that the whole process table is scanned.
    let scratch = Scratch::new();
    let script = Script::new()
        .spawn(stubborn(&scratch, SpawnKind::Daemon).hold_pipes(false))
        .sleep(Duration::from_millis(2100))
        .line(END);
    let (_, stray) = left_behind(&scratch, agent(&script)).await;
    assert!(!proc::is_alive(stray.pid()));
}

#[tokio::test]
async fn tool_without_environment_that_outlives_the_turn_is_ended() {
    let scratch = Scratch::new();
    // The agent lives for a moment after its result, as real ones do.
    let script = Script::new()
        .spawn(
            stubborn(&scratch, SpawnKind::Setsid)
                .clear_env()
                .hold_pipes(false),
        )
        .line(r#"{"u":"1"}"#)
        .line(r#"{"r":"1"}"#)
        .line(END)
        .sleep(Duration::from_millis(300));
    let (_, stray) = left_behind(&scratch, agent(&script)).await;
    assert!(!proc::is_alive(stray.pid()));
}

#[tokio::test]
async fn background_work_is_left_running_if_requested() {
    for kind in [SpawnKind::Child, SpawnKind::Setsid] {
        let scratch = Scratch::new();
        let run = leaving(stubborn(&scratch, kind)).params(|params| params.keep_background = true);
        let (_, stray) = left_behind(&scratch, run).await;
        assert!(proc::is_alive(stray.pid()), "{kind:?}");
    }
}

#[tokio::test]
async fn background_work_survives_a_lingering_agent_but_no_abort() {
    let scratch = Scratch::new();
    let script = |end: &str| {
        Script::new()
            .spawn(stubborn(&scratch, SpawnKind::Child).hold_pipes(false))
            .line(r#"{"t":"x"}"#)
            .line(end)
            .ignore([Signal::Term])
            .forever()
    };
    let kept = |script: &Script| {
        agent(script)
            .config(|config| {
                config.exit_grace = Some(Duration::from_millis(100));
                config.term_grace = Duration::from_millis(100);
            })
            .params(|params| params.keep_background = true)
    };
    let story = kept(&script(END)).finish().await;
    assert_eq!(story.result.status, RunStatus::Completed);
    assert_eq!(story.result.exit_signal.as_deref(), Some("SIGKILL"));
    let stray = scratch.pid("stray");
    assert!(proc::is_alive(stray.pid()));
    fs::remove_file(scratch.path("stray")).unwrap();

    let mut stream = kept(&script(r#"{"t":"y"}"#)).start();
    next(&mut stream).await;
    stream.abort();
    finish_aborted(stream).await;
    assert!(!proc::is_alive(scratch.pid("stray").pid()));
}

async fn finish_aborted(stream: teamster_core::EventStream) {
    let result = tokio::time::timeout(LIMIT, stream.result()).await.unwrap();
    assert_eq!(result.status, RunStatus::Aborted);
}

#[tokio::test]
async fn runs_at_the_same_time_do_not_end_each_other() {
    let scratch = Scratch::new();
    let go = scratch.path("go");
    let waiting = Script::new()
        .spawn(stubborn(&scratch, SpawnKind::Setsid).hold_pipes(false))
        .line(r#"{"t":"x"}"#)
        .wait_for_file(&go)
        .line(END);
    let mut stream = agent(&waiting).start();
    next(&mut stream).await;
    let stray = scratch.pid("stray");
    agent(&Script::new().line(END)).finish().await;
    assert!(proc::is_alive(stray.pid()));
    fs::write(go, "").unwrap();
    let result = tokio::time::timeout(LIMIT, stream.result()).await.unwrap();
    assert_eq!(result.status, RunStatus::Completed);
    assert!(!proc::is_alive(stray.pid()));
}

#[test]
fn agents_die_with_a_host_that_is_killed_if_it_wants_that() {
    let scratch = Scratch::new();
    let mut host = helper::role("host that takes its agents along", &scratch.path(""))
        .spawn()
        .unwrap();
    let agent = scratch.pid("agent");
    let tool = scratch.pid("tool");
    host.kill().unwrap();
    host.wait().unwrap();
    assert!(proc::wait_gone(agent.pid(), LIMIT));
    // The kernel does not report the agent's child, but it can be found.
    end_leftover(host.id(), &tool);
}

#[test]
fn agents_of_a_host_that_was_killed_are_found_and_ended() {
    let scratch = Scratch::new();
    let mut host = helper::role("host", &scratch.path("")).spawn().unwrap();
    let agent = scratch.pid("agent");
    let tool = scratch.pid("tool");
    let is_left = |pid| leftovers().iter().any(|left| left.pid == pid);
    assert!(!is_left(agent.pid()), "its host is alive");
    host.kill().unwrap();
    host.wait().unwrap();
    assert!(proc::is_alive(agent.pid()));
    end_leftover(host.id(), &agent);
    end_leftover(host.id(), &tool);
    assert!(!is_left(agent.pid()) && !is_left(tool.pid()));
}

#[test]
fn a_host_that_is_a_zombie_is_dead() {
    let scratch = Scratch::new();
    let mut host = helper::role("host", &scratch.path("")).spawn().unwrap();
    let agent = scratch.pid("agent");
    let tool = scratch.pid("tool");
    host.kill().unwrap();
    assert!(proc::wait_gone(host.id(), LIMIT));
    end_leftover(host.id(), &agent);
    end_leftover(host.id(), &tool);
    host.wait().unwrap();
}

/// Finds and ends a leftover of a host.
fn end_leftover(host: u32, process: &proc::KillOnDrop) {
    let find = || {
        let mut all = leftovers().into_iter();
        all.find(|left| left.pid == process.pid())
    };
    // Threads of a killed host may outlive its main thread for a moment.
    assert!(proc::wait_until(LIMIT, || find().is_some()));
    let left = find().expect("its host is dead");
    assert!(left.run_id.starts_with(&format!("{host}-")));
    assert!(left.command.contains("teamster-fake-agent"), "{left:?}");
    left.kill().unwrap();
    assert!(proc::wait_gone(process.pid(), LIMIT));
    left.kill().unwrap();
}

#[tokio::test]
async fn processes_of_a_nested_run_are_ended_too() {
    // A `teamster` that the agent starts marks its own processes like this.
    let scratch = Scratch::new();
    let pid_file = scratch.path("pid");
    let script = format!(
        "TEAMSTER_RUN_ID=\"$TEAMSTER_RUN_ID,1-1-1\" setsid sleep 600 </dev/null >/dev/null 2>&1 &
        echo $! > {}; echo '{END}'",
        pid_file.display()
    );
    let story = agent(&Script::new())
        .config(|config| config.program = Some("/bin/sh".into()))
        .launch(move |launch| launch.args = vec!["-c".into(), script.clone().into()])
        .finish()
        .await;
    assert_eq!(story.result.status, RunStatus::Completed);
    let pid = fs::read_to_string(pid_file).unwrap();
    assert!(!proc::is_alive(pid.trim().parse().unwrap()));
}
