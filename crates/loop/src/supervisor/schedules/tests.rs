//! Schedules on paused time, with runs in memory.

use std::fs;

use serde_json::json;
use teamster_testkit::run_service::{MemoryService, Step};
use tempfile::TempDir;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use super::super::config::Config;
use super::*;
use crate::clock::TokioClock;

/// A supervisor's folder, with runs of a service in memory.
struct Folder {
    dir: TempDir,
    service: MemoryService,
    clock: Arc<dyn Clock>,
}

/// Schedules that run, and what they report.
struct Running {
    _schedules: Schedules,
    events: UnboundedReceiver<Event>,
}

impl Folder {
    /// `agent` returns what the agent of a run does.
    fn new(now: &str, agent: impl Fn() -> Vec<Step> + Send + Sync + 'static) -> Self {
        Self {
            dir: tempfile::tempdir().unwrap(),
            service: MemoryService::new(["claude"], move |_| agent()),
            clock: Arc::new(TokioClock::new(now.parse().unwrap())),
        }
    }

    fn start(&self, schedule: &serde_json::Value) -> Running {
        let config = json!({"agents": [], "schedules": [schedule]}).to_string();
        let file = self.dir.path().join("agents.config.json");
        fs::write(&file, config).unwrap();
        let config = Config::read(&file).unwrap();
        let (sender, events) = unbounded_channel();
        let schedules = Schedules::start(
            &config.schedules,
            Some(Arc::new(self.service.clone())),
            self.clock.clone(),
            &file,
            &self.dir.path().join("schedules.json"),
            sender,
        );
        Running {
            _schedules: schedules,
            events,
        }
    }

    fn now(&self) -> String {
        let second = self.clock.now().round(jiff::Unit::Second).unwrap();
        second.to_string()
    }
}

impl Running {
    /// Returns the run that starts next.
    async fn run(&mut self) -> String {
        match self.events.recv().await.unwrap() {
            Event::Scheduled { run, .. } => run,
            event => panic!("{event}"),
        }
    }

    async fn warning(&mut self) -> String {
        match self.events.recv().await.unwrap() {
            Event::Warning { message } => message,
            event => panic!("{event}"),
        }
    }
}

fn nightly(missed: &str) -> serde_json::Value {
    json!({
        "id": "nightly", "cron": "0 2 * * 1-5", "timeZone": "Europe/Berlin", "missed": missed,
        "run": {"provider": "claude", "prompt": "Look at the issues"},
    })
}

#[tokio::test(start_paused = true)]
async fn run_starts_at_the_times_of_its_zone() {
    // A Friday, in winter: 02:00 in Berlin is 01:00 in UTC.
    let folder = Folder::new("2026-11-27T00:30:00Z", Vec::new);
    let mut running = folder.start(&nightly("skip"));
    let first = running.run().await;
    assert_eq!(folder.now(), "2026-11-27T01:00:00Z");
    let second = running.run().await;
    assert_eq!(folder.now(), "2026-11-30T01:00:00Z");
    assert_ne!(first, second);
    let Some(Spec::Run(spec)) = folder.service.spec(&second) else {
        panic!("no such run");
    };
    assert_eq!(spec.prompt, "Look at the issues");
    assert_eq!(spec.title.as_deref(), Some("nightly"));
}

#[tokio::test(start_paused = true)]
async fn interval_begins_when_the_schedule_is_seen() {
    let folder = Folder::new("2026-11-27T00:00:00Z", Vec::new);
    let mut running = folder.start(&json!({
        "id": "poll", "every": "90m", "run": {"provider": "claude", "prompt": "x"},
    }));
    for expected in ["2026-11-27T01:30:00Z", "2026-11-27T03:00:00Z"] {
        running.run().await;
        assert_eq!(folder.now(), expected);
    }
}

#[tokio::test(start_paused = true)]
async fn missed_time_is_skipped_or_made_up_for_once() {
    for (missed, is_run) in [("skip", false), ("run", true)] {
        let folder = Folder::new("2026-11-23T00:30:00Z", Vec::new);
        let mut running = folder.start(&nightly(missed));
        running.run().await;
        drop(running);
        // Without a supervisor for two nights.
        tokio::time::sleep(Duration::from_hours(50)).await;
        let mut running = folder.start(&nightly(missed));
        if is_run {
            running.run().await;
            assert_eq!(folder.now(), "2026-11-25T03:00:00Z");
        } else {
            let warning = running.warning().await;
            assert!(
                warning.contains("2026-11-24T01:00:00Z was missed"),
                "{warning}"
            );
        }
        running.run().await;
        assert_eq!(folder.now(), "2026-11-26T01:00:00Z", "{missed}");
    }
}

#[tokio::test(start_paused = true)]
async fn run_that_goes_on_keeps_the_next_one_from_starting() {
    let folder = Folder::new("2026-11-23T00:30:00Z", || vec![Step::Hang]);
    let mut running = folder.start(&nightly("run"));
    let first = running.run().await;
    let warning = running.warning().await;
    assert!(
        warning.contains(&format!("run {first} has not ended")),
        "{warning}"
    );
    // Also by another supervisor.
    drop(running);
    let mut running = folder.start(&nightly("run"));
    assert!(running.warning().await.contains(&first));
}

#[tokio::test(start_paused = true)]
async fn time_that_a_killed_supervisor_has_not_saved_starts_one_run() {
    let folder = Folder::new("2026-11-23T00:30:00Z", Vec::new);
    let mut running = folder.start(&nightly("run"));
    let saved = || fs::read(folder.dir.path().join("schedules.json")).unwrap();
    tokio::time::sleep(Duration::from_mins(1)).await;
    let before = saved();
    let first = running.run().await;
    drop(running);
    fs::write(folder.dir.path().join("schedules.json"), before).unwrap();
    let again = folder.start(&nightly("run")).run().await;
    assert_eq!(again, first);
}

#[tokio::test(start_paused = true)]
async fn clock_that_was_ahead_does_not_stop_a_schedule() {
    let folder = Folder::new("2026-11-23T00:30:00Z", Vec::new);
    let file = folder.dir.path().join("schedules.json");
    let when = "0 2 * * 1-5 Europe/Berlin";
    let handled = json!({"nightly": {"when": when, "at": "2027-01-01T00:00:00Z"}});
    fs::write(file, handled.to_string()).unwrap();
    folder.start(&nightly("skip")).run().await;
    assert_eq!(folder.now(), "2026-11-23T01:00:00Z");
}

#[tokio::test(start_paused = true)]
async fn changed_times_count_from_when_they_are_first_seen() {
    let folder = Folder::new("2026-11-23T00:30:00Z", Vec::new);
    let mut schedule = nightly("run");
    folder.start(&schedule).run().await;
    tokio::time::sleep(Duration::from_hours(2)).await;
    // 03:00 of the same night has passed.
    schedule["cron"] = json!("0 3 * * *");
    folder.start(&schedule).run().await;
    assert_eq!(folder.now(), "2026-11-24T02:00:00Z");
}

#[tokio::test(start_paused = true)]
async fn refused_run_is_a_warning_and_the_next_time_counts() {
    let folder = Folder::new("2026-11-23T00:30:00Z", Vec::new);
    let mut schedule = nightly("skip");
    schedule["run"]["provider"] = json!("no-such-agent");
    let mut running = folder.start(&schedule);
    for expected in [
        "as it is now, it cannot start: ",
        "not started: ",
        "not started: ",
    ] {
        let warning = running.warning().await;
        let expected = format!("schedule nightly: {expected}");
        assert!(warning.starts_with(&expected), "{warning}");
    }
    assert_eq!(folder.now(), "2026-11-24T01:00:00Z");
}
