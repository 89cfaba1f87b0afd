//! Callbacks: messages about runs that finished, failed or need an answer, to webhooks and to browsers
//! ([`WebPush`]).
//!
//! Pending deliveries of a run are stored in a file, so they survive a restart of the server. A message may be
//! delivered twice, to a webhook with the same `webhook-id`.

mod delivery;
mod message;
mod records;
mod secret;
mod sessions;
mod targets;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use teamster_api::{Change, ProblemCode, RunHandle, RunService, RunSummary as Run, ViewState};
use teamster_core::sync::lock;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::feed::{changes, next};
use crate::outgoing::Poster;
use crate::token::hash;
use crate::web_push::{BROWSER, WebPush};
use crate::{ApiError, ServerConfig};
use delivery::Delivery;
use message::{Message, due};
use records::{Files, Record};
use secret::Secret;
use sessions::Sessions;
use targets::Targets;

/// The interval of checks when nothing changes.
const LOOK: Duration = Duration::from_mins(1);

/// The callbacks of a server.
pub(crate) struct Callbacks {
    files: Files,
    sender: UnboundedSender<Update>,
    receiver: std::sync::Mutex<Option<UnboundedReceiver<Update>>>,
    config: Arc<ServerConfig>,
    runs: Arc<dyn RunService>,
    /// The browsers; `None` if the server notifies none.
    web_push: Option<Arc<WebPush>>,
    /// Cancelled when the server ends.
    ending: CancellationToken,
}

#[derive(Debug)]
enum Update {
    /// A browser subscribed.
    Subscribed,
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

impl Callbacks {
    pub(crate) fn new(
        config: Arc<ServerConfig>,
        runs: Arc<dyn RunService>,
        web_push: Option<Arc<WebPush>>,
        ending: CancellationToken,
    ) -> Self {
        let (sender, receiver) = unbounded_channel();
        Self {
            files: Files::of(config.tokens.folder()),
            sender,
            receiver: std::sync::Mutex::new(Some(receiver)),
            config,
            runs,
            web_push,
            ending,
        }
    }

    /// Delivers to a browser that has subscribed from now on.
    pub(crate) fn begin_to_notify(&self) {
        // Without a receiver, the next server reads the file of the subscriptions.
        let _ = self.sender.send(Update::Subscribed);
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
        self.files.remove(run_id);
        let run_id = run_id.to_owned();
        // Without a receiver, the server is ending.
        let _ = self.sender.send(Update::Withdrawn { run_id });
    }

    /// Reports a problem to the host program.
    fn warn(&self, text: &str) {
        (self.config.on_warning)(text);
    }

    /// Notes that a message was delivered or given up.
    fn settle(&self, run_id: &str, url: &str, key: &str) {
        let (run_id, url, key) = (run_id.to_owned(), url.to_owned(), key.to_owned());
        // Without a receiver the server is ending; the next one delivers the message again.
        let _ = self.sender.send(Update::Settled { run_id, url, key });
    }

    fn save(&self, run_id: &str, record: &Record) -> Result<(), ApiError> {
        let saved = self.files.save(run_id, record);
        saved.map_err(|error| ApiError::new(ProblemCode::Internal, error.to_string()))
    }
}

/// Leaves what is not delivered to another server, once this one ends.
struct Leaving<'a>(&'a Callbacks);

impl Drop for Leaving<'_> {
    fn drop(&mut self) {
        self.0.files.leave();
    }
}

/// Delivers callbacks until the server ends.
pub(crate) async fn send_all(callbacks: Arc<Callbacks>) {
    let updates = lock(&callbacks.receiver).take();
    // Another listener of the same server already delivers them.
    let Some(mut updates) = updates else { return };
    let mut sender = Sender {
        records: HashMap::new(),
        seen: HashMap::new(),
        in_flight: HashMap::new(),
        sessions: Sessions::default(),
        targets: Targets::default(),
        looked_at: Instant::now(),
        poster: None,
        secret: None,
        callbacks: callbacks.clone(),
    };
    // Dropped before the targets are: another server that has one of them then knows what was sent there.
    let _leaving = Leaving(&callbacks);
    sender.take_over();
    // Do not poll runs before there is a callback or a browser.
    while sender.records.is_empty() && sender.targets_of_all().is_empty() {
        tokio::select! {
            Some(update) = updates.recv() => sender.apply(update),
            () = sleep(sender.targets.interval()) => sender.take_over(),
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
                    if sender.looked_at.elapsed() >= LOOK {
                        sender.take_over();
                    }
                    sender.watch_all(&runs);
                    sender.look_at_sessions(&runs).await;
                    sender.deliver_due(&runs).await;
                    tokio::select! {
                        () = callbacks.ending.cancelled() => return,
                        change = next(&mut changes) => match change {
                            Some(Ok(change)) => apply(&mut runs, change),
                            Some(Err(error)) => break error.message,
                            None => break "the changes of runs ended".to_owned(),
                        },
                        Some(update) = updates.recv() => sender.apply(update),
                        () = sleep(sender.targets.interval()) => {}
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
    /// The runs seen so far by each target of all runs.
    seen: HashMap<String, HashSet<String>>,
    /// The deliveries in progress of each run, by the address and the key of the message.
    in_flight: HashMap<String, HashMap<(String, String), CancellationToken>>,
    sessions: Sessions,
    targets: Targets,
    /// The time of the last look for servers that have ended.
    looked_at: Instant,
    /// Created for the first message.
    poster: Option<Poster>,
    /// Read for the first message to a webhook.
    secret: Option<Secret>,
    callbacks: Arc<Callbacks>,
}

impl Sender {
    fn apply(&mut self, update: Update) {
        match update {
            // The subscriptions are read where they are needed.
            Update::Subscribed => {}
            Update::Registered { run_id, url } => {
                self.records.entry(run_id).or_default().add(&url);
            }
            Update::Withdrawn { run_id } => {
                self.records.remove(&run_id);
            }
            Update::Settled { run_id, url, key } => {
                if let Some(in_flight) = self.in_flight.get_mut(&run_id) {
                    in_flight.remove(&(url.clone(), key.clone()));
                    if in_flight.is_empty() {
                        self.in_flight.remove(&run_id);
                    }
                }
                let Some(record) = self.records.get_mut(&run_id) else {
                    return;
                };
                record.settle(&url, &key);
                if record.is_complete() {
                    self.records.remove(&run_id);
                    self.callbacks.files.remove(&run_id);
                } else if let Err(problem) = self.callbacks.save(&run_id, record) {
                    self.callbacks.warn(&problem.0.detail);
                }
            }
        }
    }

    /// Takes over what is left of servers that have ended.
    fn take_over(&mut self) {
        self.looked_at = Instant::now();
        if let Err(error) = self.callbacks.files.take_over(&mut self.records) {
            self.callbacks.warn(&format!("callbacks: {error}"));
        }
    }

    /// Returns the targets that get the messages of all runs.
    fn targets_of_all(&mut self) -> Vec<String> {
        self.targets.now(&self.callbacks, self.seen.keys())
    }

    /// Adds the targets of all runs to each run that had not ended when they were first there.
    fn watch_all(&mut self, runs: &Runs) {
        let targets = self.targets_of_all();
        self.seen.retain(|target, _| targets.contains(target));
        if targets.iter().any(|it| !self.seen.contains_key(it)) {
            // A server that has ended may have sent there.
            self.take_over();
        }
        for target in targets {
            self.watch(runs, &target);
        }
    }

    fn watch(&mut self, runs: &Runs, target: &str) {
        let is_first = !self.seen.contains_key(target);
        let seen = self.seen.entry(target.to_owned()).or_default();
        for (id, run) in runs {
            if !seen.insert(id.clone()) || is_first && run.state == ViewState::Ended {
                continue;
            }
            let record = self.records.entry(id.clone()).or_default();
            if record.add(target)
                && let Err(problem) = self.callbacks.save(id, record)
            {
                self.callbacks.warn(&problem.0.detail);
            }
        }
    }

    /// Looks at sessions whose turns may have ended, if a browser is to be notified.
    async fn look_at_sessions(&mut self, runs: &Runs) {
        if self.seen.keys().any(|it| it.starts_with(BROWSER)) {
            self.sessions.look(&self.callbacks.runs, runs).await;
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
                        if self.callbacks.files.is_old(&id) {
                            self.records.remove(&id);
                            self.callbacks.files.remove(&id);
                        }
                        continue;
                    }
                    Err(_) => continue,
                },
            };
            let messages = due(&run, self.sessions.rested(&id));
            self.cancel_outdated(&id, &messages);
            for (key, message) in messages {
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

    /// Cancels what browsers have not got of requests that wait no more: it would replace what is newer.
    fn cancel_outdated(&self, run_id: &str, due: &[(String, Message)]) {
        let in_flight = self.in_flight.get(run_id).into_iter().flatten();
        for ((url, key), cancelled) in in_flight {
            if url.starts_with(BROWSER) && !due.iter().any(|(due, _)| due == key) {
                cancelled.cancel();
            }
        }
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
            if message.is_for_people() && !target.url.starts_with(BROWSER) {
                continue;
            }
            let own = (target.url.clone(), key.to_owned());
            let in_flight = self.in_flight.entry(run_id.to_owned()).or_default();
            if in_flight.contains_key(&own) {
                continue;
            }
            let cancelled = CancellationToken::new();
            in_flight.insert(own, cancelled.clone());
            let sent = if target.url.starts_with(BROWSER) {
                self.notify(target.url, run_id, key, message, cancelled)
            } else {
                self.call(target.url, run_id, key, message)
            };
            if let Err(error) = sent {
                self.callbacks.warn(&format!("callbacks: {error}"));
            }
        }
    }

    /// Delivers a message to a webhook.
    fn call(
        &mut self,
        url: String,
        run_id: &str,
        key: &str,
        message: &Message,
    ) -> Result<(), String> {
        let poster = self.poster()?;
        let secret = match self.secret.clone() {
            Some(secret) => secret,
            None => {
                let folder = self.callbacks.config.tokens.folder();
                let secret = Secret::read_or_make(folder).map_err(|error| error.to_string())?;
                self.secret.insert(secret).clone()
            }
        };
        let delivery = Delivery {
            id: format!("msg_{}", &hash(&format!("{run_id} {key} {url}"))[..32]),
            url,
            body: serde_json::to_vec(message).unwrap_or_default(),
            attempts: message.attempts(),
        };
        let callbacks = self.callbacks.clone();
        let (run_id, key) = (run_id.to_owned(), key.to_owned());
        tokio::spawn(async move {
            if let Err(error) = delivery.send(&poster, &secret).await {
                let run = &run_id;
                callbacks.warn(&format!("the callback of run {run} was given up: {error}"));
            }
            callbacks.settle(&run_id, &delivery.url, &key);
        });
        Ok(())
    }

    /// Delivers a message to a browser.
    fn notify(
        &mut self,
        url: String,
        run_id: &str,
        key: &str,
        message: &Message,
        cancelled: CancellationToken,
    ) -> Result<(), String> {
        let callbacks = self.callbacks.clone();
        let (Some(web_push), Some(notification)) =
            (callbacks.web_push.clone(), message.notification())
        else {
            // It is of no use to a person, or an earlier server notified browsers.
            callbacks.settle(run_id, &url, key);
            return Ok(());
        };
        let (poster, attempts) = (self.poster()?, message.attempts());
        let (run_id, key) = (run_id.to_owned(), key.to_owned());
        tokio::spawn(async move {
            let id = url.strip_prefix(BROWSER).unwrap_or_default();
            let sent = web_push.send(&poster, id, &notification, attempts);
            if let Some(Err(problem)) = cancelled.run_until_cancelled(sent).await {
                callbacks.warn(&format!("web push for run {run_id}: {problem}"));
            }
            callbacks.settle(&run_id, &url, &key);
        });
        Ok(())
    }

    fn poster(&mut self) -> Result<Poster, String> {
        if let Some(poster) = &self.poster {
            return Ok(poster.clone());
        }
        let poster = Poster::new(self.callbacks.config.allow_private_callbacks)?;
        Ok(self.poster.insert(poster).clone())
    }
}
