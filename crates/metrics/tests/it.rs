//! The figures of runs, from changes of a service.
#![expect(clippy::unwrap_used, reason = "a test")]

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use async_stream::stream;
use futures_core::stream::BoxStream;
use teamster_api::history::{ForgetRuns, Forgotten};
use teamster_api::{
    Accepted, Change, Command, FleetAgent, FleetHold, FleetQueue, FleetStatus, FleetWorker,
    LogLine, PendingRequest, ProblemCode, Reply, RunInfo, RunList, RunQuery, RunService,
    RunSummary, RunView, ServiceError, Spec, ViewState,
};
use teamster_core::{CostSource, PermissionRequest, RunStatus, ToolKind, Usage};
use teamster_metrics::{Metrics, WorkerFigures};
use tokio::sync::mpsc;

/// A service whose changes are sent by a test.
#[derive(Default)]
struct Scripted {
    changes: Mutex<Vec<mpsc::UnboundedReceiver<Change>>>,
    known: Mutex<HashMap<String, RunSummary>>,
    /// The number of calls beside `changes`.
    calls: AtomicUsize,
}

impl Scripted {
    /// Adds a stream of changes. It ends with an error when the sender is dropped.
    fn stream(&self) -> mpsc::UnboundedSender<Change> {
        let (sender, receiver) = mpsc::unbounded_channel();
        self.changes.lock().unwrap().insert(0, receiver);
        sender
    }

    fn unexpected<T>(&self) -> Result<T, ServiceError> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        Err(ServiceError::unreachable("unexpected"))
    }
}

#[async_trait::async_trait]
impl RunService for Scripted {
    async fn start(&self, _: &str, _: Spec) -> Result<Accepted, ServiceError> {
        self.unexpected()
    }

    async fn resolve(&self, _: &str) -> Result<RunInfo, ServiceError> {
        self.unexpected()
    }

    async fn show(&self, id: &str) -> Result<RunView, ServiceError> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        let known = self.known.lock().unwrap().get(id).cloned();
        let missing = || ServiceError::new(ProblemCode::RunNotFound, "no such run");
        Ok(RunView::new(Arc::new(known.ok_or_else(missing)?), None))
    }

    async fn list(&self, _: RunQuery) -> Result<RunList, ServiceError> {
        self.unexpected()
    }

    fn follow(&self, _: &str, _: u64) -> BoxStream<'static, Result<LogLine, ServiceError>> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        Box::pin(stream! { yield Err(ServiceError::unreachable("unexpected")); })
    }

    fn changes(&self) -> BoxStream<'static, Result<Change, ServiceError>> {
        let next = self.changes.lock().unwrap().pop();
        Box::pin(stream! {
            let Some(mut changes) = next else {
                std::future::pending::<()>().await;
                return;
            };
            while let Some(change) = changes.recv().await {
                yield Ok(change);
            }
            yield Err(ServiceError::unreachable("the connection is broken"));
        })
    }

    async fn send(&self, _: &str, _: Command) -> Result<Reply, ServiceError> {
        self.unexpected()
    }

    async fn forget(&self, _: ForgetRuns) -> Result<Forgotten, ServiceError> {
        self.unexpected()
    }
}

fn run(id: &str, agent: &str, state: ViewState) -> RunSummary {
    RunSummary::new(RunInfo::new(id, agent), state)
}

#[track_caller]
fn has(text: &str, line: &str) {
    assert!(text.contains(line), "{text}");
}

fn changed(run: &RunSummary) -> Change {
    Change::Run {
        run: Arc::new(run.clone()),
    }
}

fn snapshot(runs: Vec<RunSummary>) -> Change {
    let runs = runs.into_iter().map(Arc::new).collect();
    Change::Snapshot { runs, agents: None }
}

/// A run that has ended, with all that is counted of one.
fn ended(id: &str, agent: &str) -> RunSummary {
    let mut run = run(id, agent, ViewState::Ended);
    run.status = Some(RunStatus::Completed);
    run.duration_ms = Some(1500);
    run.attempts = Some(3);
    let mut usage = Usage::default();
    usage.input_tokens = Some(100);
    usage.output_tokens = Some(20);
    usage.cache_read_tokens = Some(7);
    usage.cache_write_tokens = Some(3);
    run.usage = Some(usage);
    run.cost_usd = Some(0.25);
    run.cost_source = Some(CostSource::Estimated);
    run
}

/// Figures that follow a service, and the text once it has this line.
struct Followed {
    service: Arc<Scripted>,
    metrics: Metrics,
}

impl Followed {
    fn new() -> (Self, mpsc::UnboundedSender<Change>) {
        let service = Arc::new(Scripted::default());
        let sender = service.stream();
        let metrics = Metrics::new("1.2.3");
        let (runs, follower) = (service.clone(), metrics.clone());
        tokio::spawn(async move { follower.follow(&*runs).await });
        (Self { service, metrics }, sender)
    }

    /// Waits until the figures have this line. Time is paused, so it passes at once.
    async fn until(&self, line: &str) -> String {
        for _ in 0..10_000 {
            let text = self.metrics.text();
            if text.lines().any(|it| it == line) {
                return text;
            }
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
        panic!("no {line} in {}", self.metrics.text());
    }
}

#[tokio::test(start_paused = true)]
async fn each_run_is_counted_once_from_its_start_to_its_end() {
    let (figures, changes) = Followed::new();
    // What was before is shown, and not counted.
    let mut before = run("before", "claude", ViewState::Running);
    before.usage = ended("", "").usage;
    changes
        .send(snapshot(vec![before, ended("old", "claude")]))
        .unwrap();
    figures.metrics.loaded().await;
    let text = figures.metrics.text();
    has(
        &text,
        "teamster_runs{agent=\"claude\",state=\"running\"} 1\n",
    );
    for absent in ["started", "ended", "tokens", "cost"] {
        assert!(
            !text
                .lines()
                .any(|line| line.starts_with("teamster") && line.contains(absent)),
            "{text}"
        );
    }

    let mut waits = run("new", "claude", ViewState::Waiting);
    let request = PermissionRequest::new(1, "Bash", ToolKind::Execute, serde_json::json!({}));
    waits.requests = vec![PendingRequest::new("new/1", "new", request)];
    changes.send(changed(&waits)).unwrap();
    let text = figures
        .until("teamster_requests_waiting{agent=\"claude\"} 1")
        .await;
    has(&text, "teamster_runs_started_total{agent=\"claude\"} 1\n");

    // A late change of an ended run counts nothing again.
    let end = ended("new", "claude");
    for _ in 0..2 {
        changes.send(changed(&end)).unwrap();
    }
    let mut failed = run("quick", "claude", ViewState::Ended);
    failed.status = Some(RunStatus::Failed);
    changes.send(changed(&failed)).unwrap();
    let text = figures
        .until("teamster_runs_ended_total{agent=\"claude\",status=\"failed\"} 1")
        .await;
    for line in [
        "teamster_runs_started_total{agent=\"claude\"} 2",
        "teamster_runs_ended_total{agent=\"claude\",status=\"completed\"} 1",
        "teamster_run_duration_seconds_total{agent=\"claude\"} 1.5",
        "teamster_run_retries_total{agent=\"claude\"} 2",
        "teamster_tokens_total{agent=\"claude\",kind=\"input\"} 100",
        "teamster_tokens_total{agent=\"claude\",kind=\"output\"} 20",
        "teamster_tokens_total{agent=\"claude\",kind=\"cache_read\"} 7",
        "teamster_tokens_total{agent=\"claude\",kind=\"cache_write\"} 3",
        "teamster_cost_usd_total{agent=\"claude\",source=\"estimated\"} 0.25",
        "teamster_requests_waiting{agent=\"claude\"} 0",
        "teamster_runs{agent=\"claude\",state=\"waiting\"} 0",
        "teamster_runs{agent=\"claude\",state=\"running\"} 1",
    ] {
        assert!(text.lines().any(|it| it == line), "{line}: {text}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_broken_connection_loses_no_end_and_counts_none_twice() {
    let (figures, changes) = Followed::new();
    let live = |id: &str| run(id, "codex", ViewState::Running);
    changes
        .send(snapshot(vec![live("a"), live("b"), live("c")]))
        .unwrap();
    figures
        .until("teamster_runs{agent=\"codex\",state=\"running\"} 3")
        .await;
    let again = figures.service.stream();
    drop(changes);
    figures.until("teamster_runs_current 0").await;
    // Meanwhile `a` has ended, `b` too, with many newer ones, and `c` was deleted. `old` is among the newest again.
    let mut old = ended("old", "codex");
    old.info.accepted_at_ms = 1;
    figures
        .service
        .known
        .lock()
        .unwrap()
        .insert("b".to_owned(), ended("b", "codex"));
    again
        .send(snapshot(vec![ended("a", "codex"), old, live("d")]))
        .unwrap();
    let text = figures
        .until("teamster_runs_ended_total{agent=\"codex\",status=\"completed\"} 2")
        .await;
    has(
        &text,
        "teamster_runs{agent=\"codex\",state=\"running\"} 1\n",
    );
    has(&text, "teamster_runs_started_total{agent=\"codex\"} 1\n");
    // A run that is no longer among the newest when it ends.
    figures
        .service
        .known
        .lock()
        .unwrap()
        .insert("d".to_owned(), ended("d", "codex"));
    again
        .send(Change::Gone {
            run_id: "d".to_owned(),
        })
        .unwrap();
    let text = figures
        .until("teamster_runs_ended_total{agent=\"codex\",status=\"completed\"} 3")
        .await;
    has(
        &text,
        "teamster_runs{agent=\"codex\",state=\"running\"} 0\n",
    );
}

#[tokio::test(start_paused = true)]
async fn a_request_reads_nothing_however_many_runs_there_are() {
    let (figures, changes) = Followed::new();
    let runs = (0..10_000).map(|n| run(&format!("r{n}"), "claude", ViewState::Running));
    changes.send(snapshot(runs.collect())).unwrap();
    figures
        .until("teamster_runs{agent=\"claude\",state=\"running\"} 10000")
        .await;
    for _ in 0..100 {
        assert!(figures.metrics.text().lines().count() < 20);
    }
    assert_eq!(figures.service.calls.load(Ordering::Relaxed), 0);
}

#[tokio::test(start_paused = true)]
async fn labels_have_no_commands_and_a_bounded_number_of_values() {
    let (figures, changes) = Followed::new();
    changes
        .send(snapshot(vec![run(
            "c",
            "cmd:deploy --token hunter2",
            ViewState::Running,
        )]))
        .unwrap();
    for n in 0..200 {
        changes
            .send(changed(&run(
                &format!("{n}"),
                &format!("agent{n}"),
                ViewState::Running,
            )))
            .unwrap();
    }
    // One value is that of the command.
    let text = figures
        .until("teamster_runs{agent=\"other\",state=\"running\"} 137")
        .await;
    has(&text, "teamster_runs{agent=\"cmd\",state=\"running\"} 1\n");
    assert!(!text.contains("hunter2"), "{text}");
    let mut status = FleetStatus::default();
    status.queues = (0..200).map(|n| queue(&format!("pool{n}"), 2)).collect();
    figures.metrics.set_fleet(Some(&status));
    let text = figures.metrics.text();
    let pools = text
        .lines()
        .filter(|line| line.starts_with("teamster_fleet_queued_runs{"));
    assert_eq!(pools.count(), 65);
    has(&text, "teamster_fleet_queued_runs{pool=\"other\"} 272\n");
}

fn queue(pool: &str, waiting: u64) -> FleetQueue {
    let mut queue = FleetQueue::default();
    queue.pool = Some(pool.to_owned());
    queue.waiting = waiting;
    queue
}

fn worker(pools: &[&str], slots: u64, running: u64, draining: bool) -> FleetWorker {
    let mut worker = FleetWorker::default();
    "w".clone_into(&mut worker.name);
    worker.pools = pools.iter().map(|&pool| pool.to_owned()).collect();
    worker.agents = vec![FleetAgent::default()];
    (worker.slots, worker.running, worker.draining) = (slots, running, draining);
    worker
}

#[test]
fn a_fleet_is_counted_by_its_pools() {
    let metrics = Metrics::new("1.2.3");
    let mut status = FleetStatus::default();
    // The second one carries out a run of a session beyond its slots.
    status.workers = vec![
        worker(&["a", "b"], 4, 1, false),
        worker(&["a"], 2, 3, false),
        worker(&["b"], 8, 8, true),
    ];
    let mut waits = queue("b", 5);
    waits.oldest_at = Some(teamster_core::time::epoch_ms() - 90_500);
    let mut machine = FleetQueue::default();
    (machine.machine, machine.waiting) = (Some("w".to_owned()), 2);
    status.queues = vec![waits, machine];
    let mut hold = FleetHold::default();
    hold.agent = "claude".to_owned();
    status.holds = vec![hold.clone(), hold];
    metrics.set_fleet(Some(&status));
    let text = metrics.text();
    for line in [
        "teamster_fleet_workers{pool=\"a\"} 2",
        "teamster_fleet_workers{pool=\"b\"} 1",
        "teamster_fleet_workers_draining{pool=\"b\"} 1",
        "teamster_fleet_slots{pool=\"a\"} 6",
        "teamster_fleet_slots_used{pool=\"a\"} 3",
        "teamster_fleet_queued_runs{pool=\"a\"} 0",
        "teamster_fleet_queued_for_machines_runs 2",
        "teamster_fleet_queued_runs{pool=\"b\"} 5",
        "teamster_fleet_oldest_wait_seconds{pool=\"b\"} 90",
        "teamster_fleet_holds{agent=\"claude\"} 2",
    ] {
        assert!(text.lines().any(|it| it == line), "{line}: {text}");
    }
    // What is not known is absent.
    metrics.set_fleet(None);
    assert!(
        !metrics
            .text()
            .lines()
            .any(|line| line.starts_with("teamster_fleet"))
    );
}

/// Type and labels of each figure.
type Figures = BTreeMap<String, (String, BTreeSet<String>)>;

#[tokio::test(start_paused = true)]
async fn the_page_lists_all_figures() {
    let (figures, changes) = Followed::new();
    let mut waits = run("new", "claude", ViewState::Waiting);
    let request = PermissionRequest::new(1, "Bash", ToolKind::Execute, serde_json::json!({}));
    waits.requests = vec![PendingRequest::new("new/1", "new", request)];
    changes.send(snapshot(Vec::new())).unwrap();
    changes.send(changed(&waits)).unwrap();
    changes.send(changed(&ended("new", "claude"))).unwrap();
    let mut status = FleetStatus::default();
    status.workers = vec![worker(&["a"], 1, 0, false)];
    let mut hold = FleetHold::default();
    hold.agent = "claude".to_owned();
    status.holds = vec![hold];
    figures.metrics.set_fleet(Some(&status));
    figures.metrics.set_worker(WorkerFigures::default());
    let text = figures
        .until("teamster_runs_started_total{agent=\"claude\"} 1")
        .await;
    let mut shown = Figures::new();
    for line in text.lines() {
        if let Some(of) = line.strip_prefix("# TYPE ") {
            let (name, kind) = of.split_once(' ').unwrap();
            shown.insert(name.to_owned(), (kind.to_owned(), BTreeSet::new()));
        } else if let Some((name, labels)) = line.split_once('{') {
            let labels = labels.split_once('}').unwrap().0;
            let names = labels
                .split(',')
                .map(|label| label.split_once('=').unwrap().0.to_owned());
            shown.get_mut(name).unwrap().1.extend(names);
        }
    }
    assert!(
        shown
            .keys()
            .all(|name| text.contains(&format!("# HELP {name} "))),
        "{text}"
    );

    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/metrics.md");
    let page = std::fs::read_to_string(page).unwrap();
    let documented: Figures = (page.lines())
        .filter_map(|line| line.strip_prefix("| `teamster_"))
        .map(|row| {
            let cells: Vec<_> = row.split('|').map(str::trim).collect();
            let name = format!("teamster_{}", cells[0].trim_end_matches('`'));
            let labels = cells[2].split('`').skip(1).step_by(2).map(str::to_owned);
            (name, (cells[1].to_owned(), labels.collect()))
        })
        .collect();
    assert_eq!(shown, documented);
}

#[tokio::test(start_paused = true)]
async fn figures_as_data_are_those_of_the_text() {
    let (figures, changes) = Followed::new();
    changes.send(snapshot(Vec::new())).unwrap();
    figures.metrics.loaded().await;
    changes.send(changed(&ended("a", "claude"))).unwrap();
    let text = figures
        .until("teamster_runs_ended_total{agent=\"claude\",status=\"completed\"} 1")
        .await;
    let all = figures.metrics.figures();
    let mut lines = BTreeSet::new();
    for figure in &all {
        let total = if figure.is_counter { "_total" } else { "" };
        for (labels, value) in &figure.values {
            let labels: Vec<_> = (labels.iter())
                .map(|(name, value)| format!("{name}=\"{value}\""))
                .collect();
            let labels = match &*labels {
                [] => String::new(),
                some => format!("{{{}}}", some.join(",")),
            };
            lines.insert(format!("{}{total}{labels} {value}", figure.name));
        }
    }
    let of_text: BTreeSet<_> = (text.lines())
        .filter(|line| line.starts_with("teamster"))
        .map(str::to_owned)
        .collect();
    assert_eq!(lines, of_text);
    assert!(all.iter().all(|figure| !figure.help.is_empty()));
}

#[test]
fn figures_of_a_fleet_that_is_gone_have_no_values() {
    let metrics = Metrics::new("1.2.3");
    let workers = || {
        let all = metrics.figures();
        let mut all = all.into_iter();
        let workers = all.find(|figure| figure.name == "teamster_fleet_workers");
        workers.unwrap().values
    };
    let mut status = FleetStatus::default();
    status.workers = vec![worker(&["default"], 4, 1, false)];
    metrics.set_fleet(Some(&status));
    assert_eq!(workers(), [(vec![("pool", "default".to_owned())], 1.0)]);
    metrics.set_fleet(None);
    assert_eq!(workers(), []);
}
