//! The worker: what carries runs of the fleet out on this machine.

mod bring;
mod care;
mod carry;
mod control;
mod copy;
mod drain;
mod figures;
mod folder;
mod hold;
mod home;
mod location;
mod outside;
mod policy;
mod pull;
mod refusals;
mod reports;
mod secrets;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs::File;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_nats::jetstream::message::PublishMessage;
use teamster_api::{ProblemCode, RunService, ServiceError};
use teamster_core::sync::lock;
use teamster_host::{Host, LocalMachine, LocalRuns, state};
use teamster_metrics::Metrics;
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::names::{RunKey, presence, token};
use crate::presence::PresentAgent;
use crate::protocol::{Carrier, Effect, Tag};
use crate::{Fleet, Hold};
use carry::Carry;
use control::Control;
use folder::{Folders, is_damaged};
pub use policy::WorkerPolicy;
use refusals::Refusals;
use secrets::Secrets;

/// The folder of workers in the user's state directory.
const FOLDER: &str = "teamster/fleet";
/// The folder of the directories of conversations that name none.
const CONVERSATIONS: &str = "teamster/fleet-conversations";

/// Pause after an error of this machine or of the server.
const RETRY: Duration = Duration::from_secs(1);

/// What a worker offers.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct WorkerConfig {
    /// Name of the worker, which is the same after a restart: letters, digits, `-` and `_`.
    pub name: String,
    /// What runs may do on it.
    pub policy: WorkerPolicy,
    /// Time after which the runs are interrupted that a worker still has when it ends. Default: none, they go on to their
    /// end.
    pub drain_timeout: Option<Duration>,
    /// The address at which it has figures for Prometheus, at `/metrics` and without a token. Default: none.
    pub metrics: Option<SocketAddr>,
}

impl WorkerConfig {
    /// Creates the configuration of a worker with this name and the default policy.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            policy: WorkerPolicy::default(),
            drain_timeout: None,
            metrics: None,
        }
    }
}

/// A worker. Its runs are ordinary detached runs of this machine: they outlive it, and the next worker with its name and
/// state directory continues them.
#[derive(Debug)]
pub struct Worker {
    shared: Shared,
    /// Held for the life of the worker.
    _lock: File,
}

/// What all parts of a worker need.
struct Shared {
    on_notice: Box<dyn Fn(String) + Send + Sync>,
    before_effect: Box<dyn Fn(Effect) + Send + Sync>,
    /// Pause between two looks for runs that need a repair.
    repairs_every: Duration,
    fleet: Fleet,
    runs: Arc<dyn RunService>,
    machine: LocalMachine,
    /// The same, which starts agents to find their versions.
    with_versions: LocalMachine,
    /// In place of those that are found.
    known_agents: Option<Vec<PresentAgent>>,
    config: WorkerConfig,
    /// Figures that are also used elsewhere.
    figures: Option<Metrics>,
    /// This process.
    instance: Tag,
    /// The state directory.
    machine_tag: Tag,
    /// The number of the last report; `None` if it is to be read first.
    reported: Mutex<Option<u64>>,
    folders: Folders,
    /// The disk of the folders ignores the case of names.
    ignores_case: bool,
    slots: Arc<Semaphore>,
    /// The runs that are carried out.
    busy: Mutex<BTreeSet<RunKey>>,
    /// The numbers of the last log entries that the fleet has of them.
    copied: Mutex<BTreeMap<RunKey, u64>>,
    /// The folder of the directories of conversations.
    conversations_folder: PathBuf,
    /// The conversations of which runs are under way.
    conversations: Mutex<home::Conversations>,
    refusals: Refusals,
    /// The agents that are held back, as they were read last.
    holds: Mutex<Vec<Hold>>,
    agents: Mutex<Vec<PresentAgent>>,
    drains: AtomicBool,
    /// What is still carried out is to be interrupted.
    interrupts: AtomicBool,
    /// The clock of this machine differs from the server's.
    is_clock_wrong: AtomicBool,
}

teamster_core::debug_fields!(Shared { config });

impl Worker {
    /// Creates a worker of this host, which MUST have a program for runners ([`Host::program`]) if its runs are to outlive
    /// it. Blocks for a moment.
    ///
    /// # Errors
    ///
    /// Fails if a name cannot be in a subject, without a state directory, and if another process is this worker.
    pub fn new(fleet: &Fleet, host: &Host, mut config: WorkerConfig) -> Result<Self, ServiceError> {
        config.name = token("name", &config.name)?;
        for pool in &config.policy.pools {
            token("pool", pool)?;
        }
        for directory in &mut config.policy.directories {
            *directory = directory.canonicalize().map_err(|error| {
                let message = format!("the directory {}: {error}", directory.display());
                ServiceError::new(ProblemCode::InvalidParams, message)
            })?;
        }
        // A file that cannot be used is reported before a run needs it.
        Secrets::read(config.policy.secrets.as_deref())?;
        let no_state = || {
            let message = "no directory for the state of a worker: set XDG_STATE_HOME or HOME to an absolute path";
            ServiceError::new(ProblemCode::InvalidParams, message)
        };
        let root = state::file(FOLDER).ok_or_else(no_state)?;
        let conversations = state::file(CONVERSATIONS).ok_or_else(no_state)?;
        let folders = Folders::at(root.join(&config.name));
        let lock = folders.lock().map_err(|error| unwritable(&error))?;
        let (lock, machine_tag) = lock.ok_or_else(|| {
            let message = format!(
                "another process is the worker {}: give this one another name",
                config.name
            );
            ServiceError::new(ProblemCode::InvalidParams, message)
        })?;
        let shared = Shared {
            on_notice: Box::new(|_| ()),
            before_effect: Box::new(|_| ()),
            repairs_every: care::EVERY,
            fleet: fleet.clone(),
            runs: Arc::new(LocalRuns::new(host)?.of_owners()),
            known_agents: None,
            machine: LocalMachine::new(host).without_versions(None),
            // An agent that no run may have is not started.
            with_versions: LocalMachine::new(host).with_agents(config.policy.agents.clone()),
            instance: Tag::random(),
            machine_tag,
            reported: Mutex::default(),
            ignores_case: folders.ignores_case(),
            folders,
            slots: Arc::new(Semaphore::new(config.policy.slots)),
            busy: Mutex::default(),
            copied: Mutex::default(),
            conversations_folder: conversations.join(&config.name),
            conversations: Mutex::default(),
            refusals: Refusals::default(),
            holds: Mutex::default(),
            agents: Mutex::default(),
            drains: AtomicBool::new(false),
            interrupts: AtomicBool::new(false),
            is_clock_wrong: AtomicBool::new(false),
            config,
            figures: None,
        };
        Ok(Self {
            shared,
            _lock: lock,
        })
    }

    /// Sets the function that is called with what a person who looks after the worker should know, such as why a run is
    /// not carried out here. Default: it is dropped.
    #[must_use]
    pub fn on_notice(mut self, notice: impl Fn(String) + Send + Sync + 'static) -> Self {
        self.shared.on_notice = Box::new(notice);
        self
    }

    /// Sets a function that is called before each effect, for tests that kill the worker there.
    #[doc(hidden)]
    #[must_use]
    pub fn before_effect(mut self, call: impl Fn(Effect) + Send + Sync + 'static) -> Self {
        self.shared.before_effect = Box::new(call);
        self
    }

    /// Sets figures that are also used elsewhere: they are kept up while the worker runs. Default: its own, if it has
    /// [`metrics`](WorkerConfig::metrics).
    #[must_use]
    pub fn figures(mut self, figures: Metrics) -> Self {
        self.shared.figures = Some(figures);
        self
    }

    /// Sets the pause between two looks for runs that need a repair, for tests that wait for several. Default: 10 s.
    #[doc(hidden)]
    #[must_use]
    pub fn repairs_every(mut self, pause: Duration) -> Self {
        self.shared.repairs_every = pause;
        self
    }

    /// Sets what carries the runs out, with its agents, for simulations.
    #[doc(hidden)]
    #[must_use]
    pub fn with_runs(mut self, runs: Arc<dyn RunService>, agents: Vec<PresentAgent>) -> Self {
        self.shared.runs = runs;
        self.shared.known_agents = Some(agents);
        self
    }

    /// Takes runs until `drain` resolves or [`Fleet::drain`] asks for it, then carries those to their end that it has
    /// taken. After the time of [`WorkerConfig::drain_timeout`], they are interrupted: they end as aborted.
    ///
    /// Dropping the future ends the worker at once. Its runs go on, and the next worker follows them.
    ///
    /// # Errors
    ///
    /// Fails if the agents of this machine cannot be examined, the server does not permit what a worker does, the streams
    /// are not those of this version, or another machine has this worker's name: at the beginning, or later, when this one
    /// did not report for a while.
    pub async fn run(self, drain: impl Future<Output = ()>) -> Result<(), ServiceError> {
        let shared = Arc::new(self.shared);
        shared.fleet.check_layout().await?;
        shared.examine().await?;
        if shared.ready_agents().is_empty() {
            let text = "no agent of this machine is installed and logged in: nothing can be carried out here";
            (shared.on_notice)(text.to_owned());
        }
        // Before anything is claimed: a claim of a process that is absent is handed on.
        shared.report().await?;
        shared.read_holds().await;
        let mut tasks = JoinSet::new();
        let listener = figures::listen(&shared).await?;
        tasks.spawn(figures::keep_up(shared.clone(), listener));
        let (displace, mut displaced) = mpsc::channel(1);
        tasks.spawn(shared.clone().keep_reporting(displace));
        tasks.spawn(shared.clone().keep_versions());
        tasks.spawn(care::keep_caring(shared.clone()));
        let mut carries = JoinSet::new();
        let returned = shared.folders.keys().map_err(|error| unwritable(&error))?;
        for key in returned {
            if shared.take(&key) {
                let carrier = Carrier::returned(shared.instance);
                let carry = Carry::new(shared.clone(), key, carrier, None);
                carries.spawn(carry.carry_out(shared.slots.clone().try_acquire_owned().ok()));
            }
        }
        let _late = Control::listen_late(&shared).await?;
        let mut requested = drain::listen(&shared, &mut tasks).await?;
        let mut pulled = pull::start(&shared, &mut tasks).await?;
        tokio::pin!(drain);
        loop {
            tokio::select! {
                () = &mut drain => break,
                Some(()) = requested.recv() => break,
                Some(error) = displaced.recv() => return Err(error),
                Some(hint) = pulled.recv() => {
                    let carrier = Carrier::pulled(shared.instance);
                    let carry = Carry::new(shared.clone(), hint.key, carrier, Some(hint.message));
                    carries.spawn(carry.carry_out(Some(hint.permit)));
                }
                Some(_) = carries.join_next() => {}
            }
        }
        shared.drains.store(true, Ordering::Relaxed);
        pulled.close();
        while let Ok(hint) = pulled.try_recv() {
            hint.release(&shared).await;
        }
        // At once, so that a person sees it.
        let _ = shared.report().await;
        drain::finish(&shared, &mut carries).await;
        tasks.shutdown().await;
        // At once, and not only when its time has passed. Another machine may have taken the name meanwhile.
        let subject = presence(&shared.config.name);
        if let Ok(number) = shared.last_report(&subject).await {
            let gone = PublishMessage::build().header("KV-Operation", "DEL");
            let gone = gone.expected_last_subject_sequence(number);
            shared.fleet.publish(&subject, gone).await;
        }
        Ok(())
    }
}

impl Shared {
    /// Marks a run as carried out here. Returns `false` if it is already.
    fn take(&self, key: &RunKey) -> bool {
        lock(&self.busy).insert(key.clone())
    }

    /// Reports something about a run to the person who looks after the worker.
    fn notice(&self, key: &RunKey, text: impl fmt::Display) {
        (self.on_notice)(format!("run {} of {}: {text}", key.run, key.owner));
    }

    /// Reports that the state of a run cannot be read, and waits for a moment.
    async fn unreadable(&self, key: &RunKey, error: &impl fmt::Display) {
        self.notice(key, format!("its state cannot be read: {error}"));
        sleep(RETRY).await;
    }

    /// Reads from a run's folder until that succeeds. The error is that of a damaged file.
    async fn until_read<T>(
        &self,
        key: &RunKey,
        read: impl Fn(&Folders, &RunKey) -> std::io::Result<T>,
    ) -> std::io::Result<T> {
        loop {
            match read(&self.folders, key) {
                Err(error) if !is_damaged(&error) => self.unreadable(key, &error).await,
                done => return done,
            }
        }
    }

    /// Does something on the disk of this machine until it succeeds: a full disk may have space again.
    async fn until_done(
        self: &Arc<Self>,
        key: &RunKey,
        work: impl Fn(&Self, &RunKey) -> std::io::Result<()> + Send + Sync + 'static,
    ) {
        let work = Arc::new(work);
        loop {
            let (shared, of, work) = (self.clone(), key.clone(), work.clone());
            let done = tokio::task::spawn_blocking(move || work(&shared, &of)).await;
            match done {
                Ok(Ok(())) => return,
                Ok(Err(error)) => {
                    let text = format!("its state cannot be written: {error}");
                    self.notice(key, text);
                }
                Err(_) => {}
            }
            sleep(RETRY).await;
        }
    }

    fn let_go(&self, key: &RunKey) {
        lock(&self.busy).remove(key);
        lock(&self.copied).remove(key);
    }

    /// Returns the number of the last log entry of a run that the fleet has.
    fn copied(&self, key: &RunKey) -> u64 {
        lock(&self.copied).get(key).copied().unwrap_or_default()
    }

    /// Returns whether a run may work in this directory.
    fn allows(&self, directory: &Path) -> bool {
        let Ok(directory) = directory.canonicalize() else {
            return false;
        };
        let mut allowed = self.config.policy.directories.iter();
        allowed.any(|root| directory.starts_with(root))
    }
}

/// The error of a state directory that cannot be used.
fn unwritable(error: &std::io::Error) -> ServiceError {
    let message = format!("the worker cannot keep its state: {error}");
    ServiceError::new(ProblemCode::Internal, message)
}
