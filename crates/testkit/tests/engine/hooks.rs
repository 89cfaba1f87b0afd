//! Provider hooks beyond the arguments.

use std::fs;
use std::os::unix::fs::symlink;

use teamster_core::{AgentEvent, RunStatus};
use teamster_testkit::fake_agent::{Report, Script};
use teamster_testkit::proc;

use crate::engine::{END, Scratch, Story, agent, next, shell};

#[tokio::test]
async fn records_of_the_run_reach_the_decoder() {
    let scratch = Scratch::new();
    let record = scratch.path("record");
    fs::write(&record, "{\"figure\":1}\n").unwrap();
    let script = format!(
        "echo '{{\"figure\":2}}' >> {0}; echo '{{\"other\":3}}' >> {0}; echo '{{\"t\":\"x\"}}'; echo '{END}'; echo '{{\"figure\":4}}' >> {0}",
        record.display()
    );
    let run = shell(&script).record(&record);
    let story = run
        .params(|params| params.session_id = Some("s".into()))
        .finish()
        .await;
    assert_eq!(story.result.status, RunStatus::Completed);
    assert_eq!(story.notices(), [r#"{"figure":2}"#, r#"{"figure":4}"#]);
    // `usage` is only emitted on request.
    assert!(story.events.iter().all(|it| it.type_name() != "usage"));
}

#[tokio::test]
async fn records_of_a_killed_cli_are_read_too() {
    let scratch = Scratch::new();
    let record = scratch.path("record");
    let script = format!(
        "echo '{{\"s\":\"new\"}}'; echo '{{\"figure\":1}}' > {}; kill -KILL $$",
        record.display()
    );
    let story = shell(&script).record(&record).finish().await;
    assert_eq!(story.result.exit_signal.as_deref(), Some("SIGKILL"));
    assert_eq!(story.notices(), [r#"{"figure":1}"#]);
}

#[tokio::test]
async fn records_are_reported_during_the_run() {
    for resumed in [true, false] {
        let scratch = Scratch::new();
        let (record, seen) = (scratch.path("record"), scratch.path("seen"));
        fs::write(&record, "{\"figure\":1}\n").unwrap();
        if !resumed {
            fs::remove_file(&record).unwrap();
        }
        let script = format!(
            "echo '{{\"s\":\"s\"}}'; echo '{{\"t\":\"x\"}}'; echo '{{\"figure\":2}}' >> {0}; \
             until [ -e {1} ]; do sleep 0.02; done; \
             echo '{{\"figure\":3}}' >> {0}; until [ -e {1}2 ]; do sleep 0.02; done; \
             echo '{{\"figure\":4}}' >> {0}; echo '{END}'",
            record.display(),
            seen.display()
        );
        let run = shell(&script).record(&record).params(|params| {
            params.usage_updates = true;
            params.session_id = resumed.then(|| "s".into());
        });
        let mut stream = run.start();
        let mut figures = Vec::new();
        let mut events = Vec::new();
        loop {
            let event = next(&mut stream).await;
            let done = matches!(event, AgentEvent::Done(_));
            if let AgentEvent::Usage(report) = &event {
                let name = ["seen", "seen2"][figures.len()];
                figures.push(report.usage.output_tokens.unwrap());
                fs::write(scratch.path(name), "").unwrap();
            }
            events.push(event);
            if done {
                break;
            }
        }
        assert_eq!(figures, [2, 3]);
        let story = Story::of(events);
        assert_eq!(story.result.status, RunStatus::Completed);
        let all = [r#"{"figure":2}"#, r#"{"figure":3}"#, r#"{"figure":4}"#];
        assert_eq!(story.notices(), all, "resumed: {resumed}");
    }
}

#[tokio::test]
async fn the_native_program_runs_in_the_launchers_place() {
    let scratch = Scratch::new();
    let (report, launcher, link) = (
        scratch.path("report"),
        scratch.path("launcher"),
        scratch.path("cli"),
    );
    proc::write_program(&launcher, "#!/bin/sh\nexit 9\n").unwrap();
    symlink(&launcher, &link).unwrap();
    let mut run = agent(&Script::new().report(&report).line(END));
    let native = run.config.program.replace(link).unwrap();
    // The first path does not exist, so the second is used.
    run.provider.native = vec![scratch.path("no-such-file"), native.clone()];
    assert_eq!(run.clone().finish().await.result.exit_code, Some(0));
    assert_eq!(
        Report::read(&report).unwrap().argv[0],
        native.display().to_string()
    );
    // Without any of them the launcher is used.
    run.provider.native.pop();
    assert_eq!(run.finish().await.result.exit_code, Some(9));
}

#[tokio::test]
async fn session_has_an_id_from_the_start_if_the_cli_reports_it_late() {
    async fn ids(change: impl Fn(crate::engine::Run) -> crate::engine::Run) -> Vec<String> {
        let scratch = Scratch::new();
        let report = scratch.path("report");
        let script = Script::new().report(&report);
        let mut run = agent(&script.line(r#"{"t":"x"}"#).line(END));
        run.provider.choose_session_id = true;
        assert_eq!(
            change(run).finish().await.result.status,
            RunStatus::Completed
        );
        Report::read(&report).unwrap().argv.split_off(1)
    }
    let first = ids(|run| run).await;
    let second = ids(|run| run).await;
    assert!(teamster_core::provider::is_uuid(&first[0]), "{first:?}");
    assert_ne!(first, second);
    let chosen = |run: crate::engine::Run| run.params(|p| p.new_session_id = Some("mine".into()));
    assert_eq!(ids(chosen).await, ["mine"]);
    let resumed = |run: crate::engine::Run| run.params(|p| p.session_id = Some("old".into()));
    assert_eq!(ids(resumed).await, [""; 0]);
}
