//! Callbacks: webhooks for runs that finished, failed or need an answer.
//!
//! Pending deliveries of a run are stored in a file, so they survive a restart of the server. A message may be
//! delivered twice, with the same `webhook-id`.

mod delivery;
mod post;
mod public_address;
mod secret;

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};
use teamster_api::{
    Change, PendingRequest, ProblemCode, RunHandle, RunService, RunSummary as Run, ViewState,
};
use teamster_core::RunStatus;
use teamster_core::time::epoch_ms;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use teamster_process::{FileMode, make_private_folder, replace_file};

use crate::feed::{changes, next};
use crate::token::hash;
use crate::{ApiError, ServerConfig};
use delivery::Delivery;
use post::Poster;
pub(crate) use post::check_target;
use secret::Secret;

/// The subfolder for pending deliveries in the server's folder.
const FOLDER: &str = "callbacks";
/// The time that a registered callback waits for its run to appear.
const START_LIMIT: Duration = Duration::from_hours(1);
/// The interval of checks when nothing changes.
const LOOK: Duration = Duration::from_mins(1);
/// The attempts to deliver the end of a run, over about an hour with exponential backoff.
const ATTEMPTS: usize = 10;
/// The attempts to deliver a request, over about two minutes: it may be answered by then.
const REQUEST_ATTEMPTS: usize = 5;

/// The callbacks of a server.
pub(crate) struct Callbacks {
    folder: PathBuf,
    sender: UnboundedSender<Update>,
    receiver: std::sync::Mutex<Option<UnboundedReceiver<Update>>>,
    config: Arc<ServerConfig>,
    runs: Arc<dyn RunService>,
    /// Cancelled when the server ends.
    ending: CancellationToken,
}

#[derive(Debug)]
enum Update {
    /// A run with its own callback will start.
    Registered { run_id: String, url: String },
    /// That run was not started.
    Withdrawn { run_id: String },
    /// A message was delivered or given up.
    Settled {
        run_id: String,
        url: String,
        key: String,
    },
}

/// The callback state of a run, as stored in its file.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
struct Record {
    targets: Vec<Target>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Target {
    url: String,
    /// The keys of messages that were delivered or given up.
    settled: Vec<String>,
}

/// The body of a callback.
#[derive(Debug, Clone, Serialize)]
struct Message {
    r#type: &'static str,
    /// The time of the first attempt, in milliseconds since the Unix epoch.
    #[serde(rename = "atMs")]
    at_ms: u64,
    run: Arc<Run>,
    #[serde(skip_serializing_if = "Option::is_none")]
    request: Option<PendingRequest>,
}

impl Record {
    fn add(&mut self, url: &str) -> bool {
        let is_new = self.targets.iter().all(|target| target.url != url);
        if is_new {
            self.targets.push(Target {
                url: url.to_owned(),
                settled: Vec::new(),
            });
        }
        is_new
    }

    fn settle(&mut self, url: &str, key: &str) {
        let target = self.targets.iter_mut().find(|target| target.url == url);
        if let Some(target) = target {
            target.settled.push(key.to_owned());
        }
    }

    fn is_complete(&self) -> bool {
        let sent = |target: &Target| target.settled.iter().any(|key| key == END);
        self.targets.iter().all(sent)
    }
}

/// The key of the message for the end of a run. Messages for requests have the request's id.
const END: &str = "end";

/// Returns the messages due for the run's current state, each with its key.
fn due(run: &Arc<Run>) -> Vec<(String, Message)> {
    let message = |r#type, request| Message {
        r#type,
        at_ms: epoch_ms(),
        run: run.clone(),
        request,
    };
    if run.state == ViewState::Ended {
        let kind = match run.status {
            Some(RunStatus::Completed) => "run.finished",
            _ => "run.failed",
        };
        return vec![(END.to_owned(), message(kind, None))];
    }
    let requests = run.requests.iter().cloned();
    let messages = requests.map(|request| {
        let key = request.request_id.clone();
        (key, message("run.needs_answer", Some(request)))
    });
    messages.collect()
}

impl Callbacks {
    pub(crate) fn new(
        config: Arc<ServerConfig>,
        runs: Arc<dyn RunService>,
        ending: CancellationToken,
    ) -> Self {
        let (sender, receiver) = unbounded_channel();
        Self {
            folder: config.tokens.folder().join(FOLDER),
            sender,
            receiver: std::sync::Mutex::new(Some(receiver)),
            config,
            runs,
            ending,
        }
    }

    /// Stores the callback of a run that is about to start.
    pub(crate) fn register(&self, run_id: &str, url: &str) -> Result<(), ApiError> {
        let mut record = Record::default();
        record.add(url);
        self.save(run_id, &record)?;
        // Without a receiver, the next server reads the file.
        let _ = self.sender.send(Update::Registered {
            run_id: run_id.to_owned(),
            url: url.to_owned(),
        });
        Ok(())
    }

    /// Removes the callback of a run that was not started.
    pub(crate) fn withdraw(&self, run_id: &str) {
        self.forget(run_id);
        let run_id = run_id.to_owned();
        // Without a receiver, the server is ending.
        let _ = self.sender.send(Update::Withdrawn { run_id });
    }

    /// Reports a problem to the host program.
    fn warn(&self, text: &str) {
        (self.config.on_warning)(text);
    }

    fn file(&self, run_id: &str) -> PathBuf {
        self.folder.join(format!("{run_id}.json"))
    }

    fn save(&self, run_id: &str, record: &Record) -> Result<(), ApiError> {
        let written = make_private_folder(&self.folder).and_then(|()| {
            let json = serde_json::to_vec(record)?;
            replace_file(&self.file(run_id), &json, FileMode::Private)
        });
        written.map_err(|error| {
            let detail = format!(
                "cannot store the callback in {}: {error}",
                self.folder.display()
            );
            ApiError::new(ProblemCode::Internal, detail)
        })
    }

    /// Reads the pending deliveries of earlier servers.
    fn load(&self) -> HashMap<String, Record> {
        let mut records = HashMap::new();
        for entry in fs::read_dir(&self.folder).into_iter().flatten().flatten() {
            let name = entry.file_name().into_string().unwrap_or_default();
            if let Some(run_id) = name.strip_suffix(".json")
                && let Some(record) = fs::read(entry.path())
                    .ok()
                    .and_then(|json| serde_json::from_slice(&json).ok())
            {
                records.insert(run_id.to_owned(), record);
            }
        }
        records
    }

    fn is_old(&self, run_id: &str) -> bool {
        let written = fs::metadata(self.file(run_id)).and_then(|about| about.modified());
        let age = written
            .ok()
            .and_then(|at| SystemTime::now().duration_since(at).ok());
        age.is_none_or(|age| age > START_LIMIT)
    }

    fn forget(&self, run_id: &str) {
        // The next server processes a file that could not be removed.
        let _ = fs::remove_file(self.file(run_id));
    }
}

/// Delivers callbacks until the server ends.
pub(crate) async fn send_all(callbacks: Arc<Callbacks>) {
    let updates = teamster_core::sync::lock(&callbacks.receiver).take();
    // Another listener of the same server already delivers them.
    let Some(mut updates) = updates else { return };
    let mut sender = Sender {
        records: callbacks.load(),
        seen: None,
        in_flight: HashSet::new(),
        client: None,
        callbacks: callbacks.clone(),
    };
    let global = callbacks.config.callback.clone();
    if sender.records.is_empty() && global.is_none() {
        // Do not poll runs before the first callback is registered.
        tokio::select! {
            update = updates.recv() => {
                if let Some(update) = update {
                    sender.apply(update);
                }
            }
            () = callbacks.ending.cancelled() => return,
        }
    }
    loop {
        let error = match changes(&*callbacks.runs).await {
            Err(problem) => problem.0.detail,
            Ok((found, mut changes)) => {
                let mut runs: Runs = found.into_iter().map(by_id).collect();
                loop {
                    // A run's own callback is registered before the run is there. It must be known first: the file of
                    // the run is replaced for the callback of all runs.
                    while let Ok(update) = updates.try_recv() {
                        sender.apply(update);
                    }
                    if let Some(url) = &global {
                        sender.watch_all(&runs, url);
                    }
                    sender.deliver_due(&runs).await;
                    tokio::select! {
                        () = callbacks.ending.cancelled() => return,
                        change = next(&mut changes) => match change {
                            Some(Ok(change)) => apply(&mut runs, change),
                            Some(Err(error)) => break error.message,
                            None => break "the changes of runs ended".to_owned(),
                        },
                        Some(update) = updates.recv() => sender.apply(update),
                        () = sleep(LOOK) => {}
                    }
                    // What came together is looked at together.
                    let failed = loop {
                        let change = tokio::select! {
                            biased;
                            change = next(&mut changes) => change,
                            () = std::future::ready(()) => None,
                        };
                        match change {
                            Some(Ok(change)) => apply(&mut runs, change),
                            Some(Err(error)) => break Some(error.message),
                            None => break None,
                        }
                    };
                    if let Some(error) = failed {
                        break error;
                    }
                }
            }
        };
        callbacks.warn(&format!("callbacks: {error}"));
        tokio::select! {
            () = sleep(LOOK) => {}
            () = callbacks.ending.cancelled() => return,
        }
    }
}

/// The newest runs and all that have not ended, by their ids.
type Runs = HashMap<String, Arc<Run>>;

fn by_id(run: Arc<Run>) -> (String, Arc<Run>) {
    (run.info.run_id.clone(), run)
}

/// Applies a change of runs.
fn apply(runs: &mut Runs, change: Change) {
    match change {
        Change::Run { run } => runs.extend([by_id(run)]),
        Change::Gone { run_id } => {
            runs.remove(&run_id);
        }
        Change::Snapshot { runs: found, .. } => *runs = found.into_iter().map(by_id).collect(),
        _ => {}
    }
}

/// Delivers the messages of all runs with callbacks.
struct Sender {
    records: HashMap<String, Record>,
    /// The runs seen so far, for the callback of all runs.
    seen: Option<HashSet<String>>,
    in_flight: HashSet<(String, String, String)>,
    /// Created for the first message.
    client: Option<Result<(Poster, Secret), String>>,
    callbacks: Arc<Callbacks>,
}

impl Sender {
    fn apply(&mut self, update: Update) {
        match update {
            Update::Registered { run_id, url } => {
                self.records.entry(run_id).or_default().add(&url);
            }
            Update::Withdrawn { run_id } => {
                self.records.remove(&run_id);
            }
            Update::Settled { run_id, url, key } => {
                self.in_flight
                    .remove(&(run_id.clone(), url.clone(), key.clone()));
                let Some(record) = self.records.get_mut(&run_id) else {
                    return;
                };
                record.settle(&url, &key);
                if record.is_complete() {
                    self.records.remove(&run_id);
                    self.callbacks.forget(&run_id);
                } else if let Err(problem) = self.callbacks.save(&run_id, record) {
                    self.callbacks.warn(&problem.0.detail);
                }
            }
        }
    }

    /// Adds the callback of all runs to each run that had not ended when this server started.
    fn watch_all(&mut self, runs: &Runs, url: &str) {
        let is_first = self.seen.is_none();
        let seen = self.seen.get_or_insert_default();
        for (id, run) in runs {
            if !seen.insert(id.clone()) || is_first && run.state == ViewState::Ended {
                continue;
            }
            let record = self.records.entry(id.clone()).or_default();
            if record.add(url)
                && let Err(problem) = self.callbacks.save(id, record)
            {
                self.callbacks.warn(&problem.0.detail);
            }
        }
    }

    /// Delivers due messages of all runs with callbacks.
    async fn deliver_due(&mut self, runs: &Runs) {
        let ids: Vec<_> = self.records.keys().cloned().collect();
        for id in ids {
            let run = match runs.get(&id).cloned() {
                Some(run) => run,
                None => match self.summary(&id).await {
                    Ok(run) => run,
                    Err(problem) if problem.0.code == ProblemCode::RunNotFound => {
                        if self.callbacks.is_old(&id) {
                            self.records.remove(&id);
                            self.callbacks.forget(&id);
                        }
                        continue;
                    }
                    Err(_) => continue,
                },
            };
            for (key, message) in due(&run) {
                self.send(&id, &key, &message);
            }
        }
    }

    async fn summary(&self, id: &str) -> Result<Arc<Run>, ApiError> {
        Ok(RunHandle::new(self.callbacks.runs.clone(), id)
            .outline()
            .await?
            .summary)
    }

    /// Starts the delivery of a message to all targets that lack it.
    fn send(&mut self, run_id: &str, key: &str, message: &Message) {
        let Some(record) = self.records.get(run_id) else {
            return;
        };
        for target in record.targets.clone() {
            if target.settled.iter().any(|settled| settled == key) {
                continue;
            }
            let own = (run_id.to_owned(), target.url.clone(), key.to_owned());
            if !self.in_flight.insert(own) {
                continue;
            }
            let config = &self.callbacks.config;
            let client = self.client.get_or_insert_with(|| {
                let secret = Secret::read_or_make(config.tokens.folder());
                let secret = secret.map_err(|error| error.to_string())?;
                Ok((Poster::new(config.allow_private_callbacks)?, secret))
            });
            let (poster, secret) = match client {
                Ok(client) => client.clone(),
                Err(error) => {
                    self.callbacks.warn(&format!("callbacks: {error}"));
                    continue;
                }
            };
            let attempts = if key == END {
                ATTEMPTS
            } else {
                REQUEST_ATTEMPTS
            };
            let delivery = Delivery {
                id: format!(
                    "msg_{}",
                    &hash(&format!("{run_id} {key} {}", target.url))[..32]
                ),
                url: target.url.clone(),
                body: serde_json::to_vec(message).unwrap_or_default(),
                attempts,
            };
            let (callbacks, run_id, key) =
                (self.callbacks.clone(), run_id.to_owned(), key.to_owned());
            tokio::spawn(async move {
                if let Err(error) = delivery.send(&poster, &secret).await {
                    let run = &run_id;
                    callbacks.warn(&format!("the callback of run {run} was given up: {error}"));
                }
                let url = target.url;
                // Without a receiver the server is ending; the next one delivers the message again.
                let _ = callbacks.sender.send(Update::Settled { run_id, url, key });
            });
        }
    }
}
