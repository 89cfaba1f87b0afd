//! Main task of the supervisor, which handles everything in sequence.

use std::future::{Future, pending};
use std::io;
use std::path::Path;
use std::pin::pin;
use std::time::{Duration, Instant};

use teamster_api::agents::{Event, LastError};
use teamster_core::time::epoch_ms;
use teamster_process::{ProcessIdentity, ProcessSignal};
use tokio::sync::mpsc;
use tokio::time::sleep_until;

use super::agent::{Action, Exit, Phase, UNUSABLE};
use super::config::Config;
use super::handle::{Handle, Message};
use super::last_start::LastStart;
use super::managed::ManagedAgent;
use super::process::{GatedLoop, Program, adopted_exit, child_exit, end_leftovers};
use super::schedules::Scheduler;
use super::socket::{Lock, Socket};
use super::state::{ProcessState, State};
use super::state_folder::{StateFolder, resolve_links};
use super::updates::Updates;
use super::{Error, SupervisorSettings};

/// Time limit for killed loops to disappear at the end. Only a process that hangs in the kernel takes longer.
const KILL_LIMIT: Duration = Duration::from_secs(10);
/// Interval at which the files of the agents are checked.
const FILE_CHECK_INTERVAL: Duration = Duration::from_secs(5);
const REQUEST_QUEUE: usize = 64;
/// Delay before a failed write of the state is retried.
const WRITE_RETRY_DELAY: Duration = Duration::from_secs(5);

/// Supervisor of the agents of one configuration.
#[derive(Debug)]
pub struct Supervisor {
    pub(super) settings: SupervisorSettings,
    pub(super) config: Config,
    /// Agents in the order of the configuration, then those that were removed from it.
    pub(super) agents: Vec<ManagedAgent>,
    /// The master switch.
    pub(super) enabled: bool,
    pub(super) ending: Option<Instant>,
    pub(super) started_at_ms: u64,
    pub(super) folder: StateFolder,
    pub(super) socket: Option<Socket>,
    /// State as it was written last.
    pub(super) written: Option<State>,
    /// Time and error of the last attempt to write the state, if it failed.
    pub(super) unwritten: Option<(Instant, io::Error)>,
    events: Vec<Event>,
    pub(super) updates: Updates,
    pub(super) scheduler: Scheduler,
    /// Time of the next check of the agents' files.
    next_file_check: Instant,
    sender: mpsc::UnboundedSender<Message>,
    messages: mpsc::UnboundedReceiver<Message>,
    // Declared last, so that it is released last.
    _lock: Lock,
}

impl Supervisor {
    /// Locks the configuration's folder, opens the socket and adopts running loops. No loop is started yet.
    ///
    /// MUST be called within a Tokio runtime with I/O and time.
    ///
    /// # Errors
    ///
    /// Fails if the configuration is invalid, another supervisor runs in the folder, or a file or the socket
    /// cannot be used.
    pub fn open(config: &Path, settings: SupervisorSettings) -> Result<Self, Error> {
        let config = Config::read(config)?;
        let folder = StateFolder::of(&config.file);
        (folder.create()).map_err(Error::disk("cannot use the folder", folder.path()))?;
        let lock = Lock::take(&folder.lock())
            .map_err(Error::disk("cannot lock", &folder.lock()))?
            .map_err(|pid| Error::AlreadyRunning {
                folder: folder.path().parent().unwrap_or(folder.path()).to_owned(),
                pid,
            })?;
        let path = folder.create_socket_folder().map_err(Error::disk(
            "cannot create a folder for the socket of",
            folder.path(),
        ))?;
        let socket = Socket::bind(path.clone()).map_err(Error::disk("cannot listen on", &path))?;
        let (sender, messages) = mpsc::unbounded_channel();
        let updates = Updates::new(folder.history());
        let mut supervisor = Self {
            settings,
            config,
            agents: Vec::new(),
            enabled: true,
            ending: None,
            started_at_ms: epoch_ms(),
            folder,
            socket: Some(socket),
            written: None,
            unwritten: None,
            events: Vec::new(),
            updates,
            scheduler: Scheduler::default(),
            next_file_check: Instant::now(),
            sender,
            messages,
            _lock: lock,
        };
        let state = supervisor.read_state()?;
        supervisor.take_over(&state);
        supervisor
            .write_state()
            .map_err(Error::disk("cannot write", &supervisor.folder.state()))?;
        Ok(supervisor)
    }

    /// Returns a handle that reloads or ends the supervisor.
    pub fn handle(&self) -> Handle {
        Handle::new(self.sender.clone())
    }

    /// Runs the supervisor until its [`Handle`] ends it. `report` is called with each event.
    pub async fn run(mut self, mut report: impl FnMut(Event)) {
        let (sender, mut requests) = mpsc::channel(REQUEST_QUEUE);
        let socket = self.socket.take();
        self.event(Event::Listening {
            agents: self.config.agents.len(),
            schedules: self.config.schedules.len(),
            socket: socket
                .as_ref()
                .map(|it| it.path().to_owned())
                .unwrap_or_default(),
        });
        self.warn_of_config();
        // Not spawned as a task: the socket must be closed before the lock is released.
        let mut listening = pin!(async move {
            if let Some(mut socket) = socket {
                socket.serve(sender).await;
            }
            pending::<()>().await;
        });
        let mut responses = Vec::new();
        loop {
            self.follow_schedules();
            self.perform_actions().await;
            self.check_last_start_files();
            self.agents
                .retain(|it| !it.removed || it.agent.process().is_some());
            self.save();
            responses.drain(..).for_each(|it| self.send(it));
            for event in std::mem::take(&mut self.events) {
                self.updates.event(&event);
                report(event);
            }
            self.send_changes();
            if self.has_ended() {
                self.updates.flush().await;
                break;
            }
            let due = self.due();
            tokio::select! {
                Some(message) = self.messages.recv() => self.handle_message(message),
                Some(event) = self.scheduler.events.recv() => self.event(event),
                Some(request) = requests.recv() => responses.push(self.accept_request(request)),
                () = &mut listening => {}
                () = wait_until(due) => {}
            }
        }
    }

    fn handle_message(&mut self, message: Message) {
        match message {
            Message::Exited(process, exit) => self.exited(process, exit),
            Message::Reload => {
                if let Err((_, message)) = self.reload() {
                    self.warn(message);
                }
            }
            Message::End => {
                let now = Instant::now();
                let again = self.ending.is_some();
                self.ending.get_or_insert(now);
                if !again {
                    self.event(Event::Ending);
                }
                if self.settings.keep_agents {
                    return;
                }
                for managed in &mut self.agents {
                    managed.agent.stop();
                    if again {
                        managed.agent.skip_grace(now);
                    }
                }
            }
        }
    }

    fn has_ended(&self) -> bool {
        let Some(since) = self.ending else {
            return false;
        };
        self.settings.keep_agents
            || self.agents.iter().all(|it| it.agent.process().is_none())
            || since.elapsed() > self.settings.policy.grace.saturating_add(KILL_LIMIT)
    }

    /// Returns the time of the next action without further input.
    fn due(&self) -> Option<Instant> {
        let end = self
            .ending
            .and_then(|it| it.checked_add(self.settings.policy.grace.saturating_add(KILL_LIMIT)));
        (0..self.agents.len())
            .filter(|index| !self.is_held(*index))
            .filter_map(|index| self.agents[index].agent.due())
            .chain(end)
            .chain(self.updates.due())
            .chain(Some(self.next_file_check))
            .chain(
                self.unwritten
                    .as_ref()
                    .map(|(tried, _)| *tried + WRITE_RETRY_DELAY),
            )
            .min()
    }

    /// Returns whether a due start is blocked by the loop of another agent in the same directory. The exit of
    /// that loop triggers a new check.
    fn is_held(&self, index: usize) -> bool {
        let managed = &self.agents[index];
        let due = managed.agent.starts_at();
        if due.is_none_or(|until| until > Instant::now()) {
            return false;
        }
        let directory = resolve_links(&managed.config.working_dir);
        let mut others = (0..).zip(&self.agents).filter(|(other, _)| *other != index);
        others.any(|(_, other)| other.may_be_in(&directory))
    }

    async fn perform_actions(&mut self) {
        if self.ending.is_some() && self.settings.keep_agents {
            return;
        }
        for index in 0..self.agents.len() {
            let failed = matches!(self.agents[index].agent.phase(), Phase::Failed { .. });
            while !self.is_held(index)
                && let Some(action) = self.agents[index].agent.poll(Instant::now())
            {
                let (process, signal) = match action {
                    Action::Start => {
                        self.start(index, failed).await;
                        continue;
                    }
                    Action::Terminate(process) => (process, ProcessSignal::Terminate),
                    Action::Kill(process) => (process, ProcessSignal::Kill),
                };
                if let Err(error) = process.signal_group(signal) {
                    let id = &self.agents[index].config.id;
                    let warning = format!("{id}: cannot signal pid {}: {error}", process.pid());
                    self.warn(warning);
                }
            }
        }
    }

    /// Starts a loop. `again`: an automatic retry after a failure.
    async fn start(&mut self, index: usize, again: bool) {
        let managed = &mut self.agents[index];
        let obstacle = self.settings.obstacle(&managed.config);
        if let Some(obstacle) = obstacle {
            managed.agent.not_started(true, Instant::now());
            if !(again && managed.obstacle.as_ref() == Some(&obstacle)) {
                self.report_problem(index, obstacle.to_string(), "");
            }
            self.agents[index].obstacle = Some(obstacle);
            return;
        }
        if let Some((process, started_at_ms)) = managed.started_elsewhere() {
            // Another program has started the loop.
            let process = managed.process_state(process, started_at_ms);
            self.adopt(index, process, 0);
            return;
        }
        let program = Program {
            path: self.settings.program.clone(),
            args: self.settings.args.clone(),
            config: self.config.file.clone(),
        };
        let gated = match GatedLoop::start(&program, &managed.config).await {
            Ok(gated) => gated,
            Err(error) => {
                managed.agent.not_started(false, Instant::now());
                self.report_problem(index, format!("not started: {error}"), "");
                return;
            }
        };
        let process = gated.identity;
        let started_at_ms = epoch_ms();
        managed.process = Some(managed.process_state(process, started_at_ms));
        managed.adopted = false;
        // The process is recorded before the loop begins: otherwise it would run unknown if this process were
        // killed. On an error the gated process is dropped and does not begin.
        if let Err(error) = self.write_state() {
            let managed = &mut self.agents[index];
            managed.process = None;
            managed.agent.not_started(false, Instant::now());
            let file = self.folder.state();
            let message = format!("not started: cannot write {}: {error}", file.display());
            self.report_problem(index, message, "");
            return;
        }
        let managed = &mut self.agents[index];
        let start = LastStart {
            epoch_ms: started_at_ms,
            pid: process.pid(),
        };
        let written = start.write(&managed.config.working_dir);
        managed.log(&format!("started, pid {}", process.pid()));
        managed.agent.started(process, Instant::now());
        let child = gated.release().await;
        self.watch(process, child_exit(child));
        let agent = self.agents[index].config.id.clone();
        if let Err(error) = written {
            let warning = format!("{agent}: cannot write last-start.json: {error}");
            self.warn(warning);
        }
        self.event(Event::Started {
            agent,
            pid: process.pid(),
        });
    }

    pub(super) fn adopt(&mut self, index: usize, process: ProcessState, restarts: u32) {
        let identity = process.identity();
        let managed = &mut self.agents[index];
        managed.adopt(process, restarts, Instant::now());
        let agent = managed.config.id.clone();
        self.watch(identity, adopted_exit(identity));
        self.event(Event::Adopted {
            agent,
            pid: identity.pid(),
        });
    }

    fn watch(&self, process: ProcessIdentity, exit: impl Future<Output = Exit> + Send + 'static) {
        let sender = self.sender.clone();
        tokio::spawn(async move {
            let exit = exit.await;
            // The supervisor may have ended.
            let _ = sender.send(Message::Exited(process, exit));
        });
    }

    fn exited(&mut self, process: ProcessIdentity, exit: Exit) {
        let found = (self.agents.iter()).position(|it| it.agent.process() == Some(process));
        let Some(index) = found else {
            return;
        };
        if let Err(error) = end_leftovers(process, exit) {
            let warning = format!(
                "cannot end the processes left by pid {}: {error}",
                process.pid()
            );
            self.warn(warning);
        }
        let now = Instant::now();
        let managed = &mut self.agents[index];
        let is_stopping = matches!(managed.agent.phase(), Phase::Stopping { .. });
        managed.agent.exited(process, exit, now);
        managed.process = None;
        if is_stopping {
            let killed = exit == Exit::Signal(9);
            let reason = if killed {
                "stopped; it had to be killed"
            } else {
                "stopped"
            };
            managed.reason = Some(reason.to_owned());
            managed.stopped_in_order = !killed;
            managed.log("stopped");
            let agent = managed.config.id.clone();
            self.event(Event::Stopped { agent });
        } else {
            let obstacle = self.settings.obstacle(&managed.config);
            let next = match managed.agent.phase() {
                Phase::Failed { .. } if obstacle.is_some() => {
                    managed.agent.recheck(now);
                    String::new()
                }
                Phase::Waiting { until } => {
                    let delay = until.saturating_duration_since(now).as_secs_f64();
                    format!("; restarting in {delay:.1}s")
                }
                _ => String::new(),
            };
            let obstacle = obstacle.filter(|_| exit == Exit::Code(UNUSABLE));
            let problem = match &obstacle {
                Some(obstacle) => obstacle.to_string(),
                None => managed.exit_reason(exit, process.pid()),
            };
            self.report_problem(index, problem, &next);
            self.agents[index].obstacle = obstacle;
        }
    }

    /// Reports a problem of a loop and the `next` attempt. Only the problem is kept in the status.
    fn report_problem(&mut self, index: usize, problem: String, next: &str) {
        let message = format!("{problem}{next}");
        let managed = &mut self.agents[index];
        managed.error = Some(LastError::new(&*problem, epoch_ms()));
        managed.reason = Some(problem);
        managed.stopped_in_order = false;
        managed.obstacle = None;
        managed.log(&message);
        let agent = managed.config.id.clone();
        self.event(Event::Trouble { agent, message });
    }

    /// Reports the warnings of the configuration.
    pub(super) fn warn_of_config(&mut self) {
        let file = self.config.file.display().to_string();
        for warning in self.config.warnings.clone() {
            self.warn(format!("{file}: {warning}"));
        }
    }

    pub(super) fn warn(&mut self, message: String) {
        self.event(Event::Warning { message });
    }

    pub(super) fn event(&mut self, event: Event) {
        self.events.push(event);
    }

    /// Returns whether an agent with this switch is to run.
    pub(super) fn is_wanted(&self, own: bool) -> bool {
        own && self.enabled && self.ending.is_none()
    }

    /// Makes `last-start.json` name the running loop: a failed second start by another program may have
    /// replaced it.
    fn check_last_start_files(&mut self) {
        let now = Instant::now();
        if now < self.next_file_check {
            return;
        }
        self.next_file_check = now + FILE_CHECK_INTERVAL;
        for managed in &self.agents {
            let process = managed.process.as_ref().filter(|_| !managed.removed);
            if let Some(process) = process {
                let start = LastStart {
                    epoch_ms: process.started_at_ms,
                    pid: process.pid,
                };
                // The next check retries a failed write.
                let _ = start.mend(&managed.config.working_dir);
            }
        }
    }

    fn save(&mut self) {
        match self.write_state() {
            Ok(()) => self.unwritten = None,
            Err(error) => {
                let file = self.folder.state();
                let warning = format!("cannot write {}: {error}", file.display());
                if self.unwritten.replace((Instant::now(), error)).is_none() {
                    self.warn(warning);
                }
            }
        }
    }
}

async fn wait_until(due: Option<Instant>) {
    match due {
        Some(due) => sleep_until(due.into()).await,
        None => pending().await,
    }
}
