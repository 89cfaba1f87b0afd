//! Driver of the loop: performs the actions of the [machine](crate::machine).

mod account;
mod context;
mod cut_off;
mod failure;
mod files;
pub(crate) mod heartbeat;
mod rest;
mod turn;

use std::collections::BTreeMap;
use std::sync::Arc;

use teamster_api::agents::{Prompt, SleepFile, TickResult};
use teamster_core::{AgentError, Id, RunStatus};
use teamster_orchestrator::Orchestrator;
use teamster_runner::{SessionLocks, SessionWriter};
use teamster_usage::TickMeter;
use teamster_usage::prices::PriceList;
use uuid::Uuid;

use crate::adapter::{Adapter, tick_end};
use crate::clock::Clock;
use crate::control::Control;
use crate::folder::{AgentFolder, Flag};
use crate::log::Log;
use crate::machine::{Action, Input, Machine, StartReason, TickEnd};
use crate::prompts::Prompts;
use crate::session_file::SessionFile;
use crate::settings::{AdapterKind, Settings};
use crate::tick_record::{TickBegin, record_of};
use crate::tick_run::TickOptions;
use account::UnaskedTurn;
use cut_off::CutOffTick;
use failure::{TickFailure, failure_of};
use heartbeat::{Heartbeat, write_heartbeats};
use turn::TickOutcome;

/// Pause before the next attempt to lock a session that is in use, in milliseconds.
const IN_USE_PAUSE_MS: u64 = 10_000;

/// Runs ticks in the directory of an agent until it is asked to end.
pub struct AgentLoop {
    folder: AgentFolder,
    settings: Settings,
    prompts: Prompts,
    adapter: Box<dyn Adapter>,
    clock: Arc<dyn Clock>,
    control: Control,
    log: Log,
    machine: Machine,
    meter: Option<TickMeter>,
    prices: PriceList,
    options: TickOptions,
    /// Lock that keeps other processes from the agent's session.
    writer: Option<SessionWriter>,
    /// Orchestrator of the ticks, created with the first one.
    orchestrator: Option<Orchestrator>,
    /// The turn in progress that the agent began by itself.
    unasked_turn: Option<UnaskedTurn>,
    ticks: u64,
    ticks_limit: Option<u64>,
    /// The tick in progress.
    current: Option<TickBegin>,
    /// A cut-off tick of an earlier loop that has no record yet.
    cut_off_tick: Option<CutOffTick>,
    /// The session file has `written_session`.
    written: bool,
    written_session: Option<Id>,
    /// Flags that could not be taken, ignored until the next tick.
    stuck: Vec<Flag>,
    /// Variables of the agent's `.env`. Set, the parameters are read again before each process start.
    variables: Option<BTreeMap<String, String>>,
    /// Warnings about the parameters that the log has.
    logged: Vec<String>,
    /// Failure of the last tick, or of a start since then.
    failure: Option<TickFailure>,
    /// Set when the agent's directory is no longer usable.
    lost: Option<AgentError>,
}

teamster_core::setters! {
    AgentLoop {
        /// Checks the files of the agent's [parameters](crate::params) before each process start, and logs settings
        /// without effect. `variables` are those of the agent's `.env`.
        some variables: BTreeMap<String, String>,
        /// Reads the usage of ticks from the CLI's own files too.
        set meter: Option<TickMeter>,
        /// Estimates costs with these prices. Default: the built-in table.
        set prices: PriceList,
        /// Sets retries, budget, fallbacks and logs of the ticks. Default: one attempt, no limit but its time, no
        /// log.
        set options as tick_options: TickOptions,
        /// Ends the loop after this many ticks.
        set ticks_limit: Option<u64>,
    }
}

impl AgentLoop {
    /// Creates a loop in this directory. If an earlier loop was cut off there, its session and flags are kept;
    /// otherwise existing flags are stale and removed. Flags that cannot be removed are logged.
    pub fn new(
        folder: AgentFolder,
        settings: Settings,
        prompts: Prompts,
        adapter: Box<dyn Adapter>,
        clock: Arc<dyn Clock>,
        control: Control,
        log: Log,
    ) -> Self {
        let cut_off = (folder.read_json::<SessionFile>(SessionFile::NAME))
            .filter(|file| file.runtime == settings.name());
        let in_the_way = match &cut_off {
            Some(file) => {
                log.line(format!(
                    "an earlier loop (pid {}) {}; {}",
                    file.pid,
                    if file.ended { "ended" } else { "was cut off" },
                    match &file.session_id {
                        Some(id) => format!("its session {id} continues"),
                        None => "it had no session".to_owned(),
                    }
                ));
                folder.restore_taken_flags()
            }
            None => folder.remove_stale(),
        };
        for error in in_the_way {
            log.line(error);
        }
        let cut_off_tick = cut_off.as_ref().and_then(CutOffTick::of);
        let recovered = cut_off.and_then(|file| file.session_id);
        let recovered = recovered.as_deref().map(Id::from);
        let mut pace = settings.pace;
        if !adapter.clears_in_session() {
            pace.clear_min_gap = 0;
        }
        let machine = Machine::new(pace, recovered.clone());
        Self {
            folder,
            settings,
            prompts,
            adapter,
            clock,
            control,
            log,
            machine,
            meter: None,
            prices: PriceList::default(),
            options: TickOptions::default(),
            writer: None,
            orchestrator: None,
            unasked_turn: None,
            ticks: 0,
            ticks_limit: None,
            current: None,
            cut_off_tick,
            written: false,
            written_session: recovered,
            stuck: Vec::new(),
            variables: None,
            logged: Vec::new(),
            failure: None,
            lost: None,
        }
    }

    /// Locks the agent's session while the loop uses it. The loop waits for a session that another process
    /// holds. Default: no locks.
    #[must_use]
    pub fn session_locks(mut self, locks: Option<SessionLocks>) -> Self {
        self.writer = locks.map(|locks| {
            let locks = locks.held_by_agent(self.folder.directory());
            locks.writer(self.settings.agent.id)
        });
        self
    }

    /// Runs the loop until it is stopped or has run its ticks, then ends the agent. Returns the error of the
    /// last tick, if it failed.
    ///
    /// # Errors
    ///
    /// Fails if the agent refuses the settings at the first start, or if the agent's directory is lost.
    pub async fn run(mut self) -> Result<Option<AgentError>, AgentError> {
        self.meter = (self.meter.take()).map(|meter| meter.prices(self.prices.clone()));
        self.end_leftovers().await;
        self.record_cut_off_tick().await;
        let heartbeats = write_heartbeats(self.clock.clone(), self.folder.path(Heartbeat::NAME));
        let ended = tokio::select! {
            biased;
            ended = self.run_actions() => ended,
            never = heartbeats => match never {},
        };
        self.finish_unasked_turns(true).await;
        let over = || "all requested ticks are done".to_owned();
        let why = match (&ended, self.control.reason()) {
            (Err(_), _) => "the agent cannot be started".to_owned(),
            (Ok(()), reason) => reason.map_or_else(over, str::to_owned),
        };
        self.log.line(format!("ending the agent: {why}"));
        self.adapter.end().await;
        // After a failed start the file stays for the next loop. Without the lock it belongs to another loop.
        if ended.is_ok() && self.folder.is_locked() {
            if self.settings.keep_session {
                self.keep_session();
            } else {
                self.log_file_error(SessionFile::NAME, self.folder.remove(SessionFile::NAME));
            }
        }
        self.log.line("agent-loop exit");
        if let Some(lost) = self.lost {
            return Err(lost);
        }
        let stop_requested = self.control.is_stopping();
        ended.map(|()| {
            let failure = self.failure.filter(|_| !stop_requested);
            failure.map(|it| it.error)
        })
    }

    async fn run_actions(&mut self) -> Result<(), AgentError> {
        loop {
            let input = self.observe();
            let action = self.machine.next(&input);
            if !matches!(action, Action::Sleep(_) | Action::End) {
                // The action may discard unasked turns. A reset interrupts them.
                self.finish_unasked_turns(action == Action::Reset).await;
                if self.control.is_stopping() {
                    continue;
                }
            }
            match action {
                Action::Start { resume, why } => self.start(resume, why).await?,
                Action::Clear => self.clear().await,
                Action::Reset => self.reset().await,
                Action::Tick(prompt) => self.tick(prompt).await,
                Action::Sleep(sleep) => self.sleep(sleep).await,
                Action::End => return Ok(()),
            }
        }
    }

    fn observe(&self) -> Input {
        let over = self.ticks_limit.is_some_and(|limit| self.ticks >= limit);
        Input {
            now: self.clock.elapsed(),
            stop: over || self.control.is_stopping(),
            woken: self.control.take_wake(),
            alive: self.adapter.is_alive(),
            session: self.adapter.session(),
            clear: self.is_set(Flag::ClearSession),
            reset: self.is_set(Flag::ResetSession),
        }
    }

    async fn start(&mut self, resume: Option<Id>, why: StartReason) -> Result<(), AgentError> {
        let runtime = self.settings.name();
        let reason = match why {
            StartReason::First => String::new(),
            StartReason::Recovered => " after an earlier loop was cut off".to_owned(),
            StartReason::Died => " because its process is gone".to_owned(),
            StartReason::GivenUp => {
                " with a new session: the old one failed twice in a row".to_owned()
            }
            StartReason::Unusable => " with a new session: the old one cannot continue".to_owned(),
            StartReason::Reset => " with a new session, as reset-session requests".to_owned(),
            StartReason::NotCleared => " with a new session, for an empty context".to_owned(),
        };
        self.log.line(match &resume {
            Some(id) => format!("starting {runtime}{reason}, resuming session {id}"),
            None => format!("starting {runtime}{reason}"),
        });
        self.write_session_settings();
        self.refresh_params();
        self.adapter.end().await;
        let locked = self.lock_session(resume.as_ref()).map_err(|mut error| {
            error.retry_after_ms = Some(IN_USE_PAUSE_MS);
            error
        });
        match locked.and_then(|()| self.adapter.begin(resume.clone())) {
            Ok(()) => {
                self.machine.started();
                self.save_session(resume);
                Ok(())
            }
            Err(error) => self.not_started(error, why),
        }
    }

    fn not_started(&mut self, mut error: AgentError, why: StartReason) -> Result<(), AgentError> {
        let runtime = self.settings.name();
        error.message = self.settings.explain(&error);
        let message = &error.message;
        match (error.retry_after_ms, why) {
            (Some(ms), _) => {
                self.log
                    .line(format!("{runtime} cannot be started yet: {message}"));
                self.machine.start_later(ms.div_ceil(1000));
            }
            (None, StartReason::First) => return Err(error),
            (None, StartReason::Recovered) => {
                self.log
                    .line(format!("cannot resume the session: {message}"));
                self.machine.start_without_session();
            }
            (None, _) => {
                self.log
                    .line(format!("{runtime} cannot be started: {message}"));
                self.machine.start_failed();
                self.failure = Some(TickFailure::new(error, self.clock.now()));
            }
        }
        Ok(())
    }

    /// Returns whether the loop is stopping or the process has ended. A new process needs the full prompt.
    fn has_ended(&self) -> bool {
        self.control.is_stopping() || !self.adapter.is_alive()
    }

    async fn tick(&mut self, prompt: Prompt) {
        self.mark().await;
        self.mend();
        if self.has_ended() {
            return;
        }
        self.retry_stuck_flags();
        if self.settings.adapter_kind() == AdapterKind::Cold {
            self.refresh_params();
        }
        let number = self.ticks + 1;
        let now = self.clock.elapsed();
        let run_id = Uuid::now_v7().to_string();
        let begin = TickBegin {
            tick: number,
            prompt,
            begin: self.clock.now(),
            run_id: Some(run_id.clone()),
        };
        self.save_current_tick(Some(begin.clone()));
        if let (true, Some(left)) = (
            self.is_set(Flag::ClearSession),
            self.machine.clear_held_back(now),
        ) {
            self.log.line(format!(
                "clear-session: delayed for {left} s by CLEAR_MIN_GAP"
            ));
        }
        let reason = format!("tick {number} ({})", prompt.as_str());
        self.write_sleep(SleepFile::tick(
            self.machine.current_sleep(),
            reason,
            self.clock.now(),
        ));
        // The writes may have taken long.
        if self.has_ended() {
            return self.save_current_tick(None);
        }
        self.ticks = number;
        self.log
            .line(format!("tick {number} begin ({} prompt)", prompt.as_str()));
        let TickOutcome {
            result,
            overran,
            stopped,
            fallback,
        } = self.run_turn(prompt, &run_id).await;
        if fallback.is_none() {
            self.adapter.tick_ended(&result);
        }
        self.mend();
        // A stop has ended the agent. The next loop may resume its session.
        let session =
            (self.adapter.session()).or_else(|| self.written_session.clone().filter(|_| stopped));
        self.save_session(session.clone());
        let took = self.clock.elapsed().saturating_sub(now).as_secs_f64();
        // By `teamster cancel`. It is reported as stopped, also if the agent had to be killed.
        let cancelled = result.status == RunStatus::Aborted && !overran && !stopped;
        let end = match tick_end(&result, overran || cancelled, self.adapter.is_alive()) {
            // The failure is that of the fallback's session.
            TickEnd::Unusable | TickEnd::Refused if fallback.is_some() => TickEnd::Failed,
            end => end,
        };
        let failure = failure_of(&result, end).filter(|_| !stopped && !cancelled);
        self.failure = failure.map(|error| TickFailure::new(error, self.clock.now()));
        let why = match &self.failure {
            Some(failure) => format!(": {}", failure.error.message),
            None => String::new(),
        };
        self.log.line(match end {
            _ if stopped || cancelled => format!("tick {number} aborted after {took:.1} s"),
            TickEnd::Completed => format!("tick {number} ok in {took:.1} s"),
            TickEnd::Failed | TickEnd::Refused => {
                format!("tick {number} failed after {took:.1} s{why}")
            }
            TickEnd::TimedOut => format!("tick {number} interrupted after {took:.1} s"),
            TickEnd::Stuck => {
                format!("tick {number} interrupted after {took:.1} s; the process ignored the interrupt and was ended")
            }
            TickEnd::Died if self.failure.as_ref().is_some_and(TickFailure::is_start_failure) => {
                format!("tick {number}: the agent cannot be started{why}")
            }
            TickEnd::Died => format!("tick {number}: the agent died after {took:.1} s{why}"),
            TickEnd::Unusable => format!("tick {number}: the session is unusable{why}"),
        });
        let flags = Flag::ALL.into_iter().filter(|flag| self.is_set(*flag));
        let flags = flags.map(|flag| flag.file_name().to_owned()).collect();
        let used = self
            .account(&result, session.as_ref(), fallback.as_deref())
            .await;
        let ended = if stopped || cancelled {
            TickResult::Stopped
        } else {
            end.into()
        };
        let tick_error = self.failure.as_ref().map(TickFailure::to_tick_error);
        let mut record = record_of(
            begin,
            std::process::id(),
            self.clock.now(),
            ended,
            session.as_deref(),
            &used,
        );
        record.flags = flags;
        record.error_kind = tick_error.as_ref().map(|error| error.kind);
        record.error = tick_error.map(|error| error.message);
        self.write_tick(record);
        self.save_current_tick(None);
        if stopped {
            return;
        }
        let session = match end {
            // A session without a resumable id continues while its process is alive.
            TickEnd::Refused => session.or_else(|| result.session_id.clone()),
            _ => session,
        };
        let did_work = self.is_set(Flag::DidWork);
        if self.machine.tick_ended(end, did_work, session) && self.take(Flag::DidWork) {
            let seconds = self.machine.current_sleep();
            self.write_sleep(SleepFile::sleeping(
                seconds,
                "work done".to_owned(),
                self.clock.now(),
            ));
            self.done(Flag::DidWork);
        }
        if fallback.is_some() {
            self.machine.ran_on_fallback();
        }
        if end != TickEnd::Completed
            && let Some(seconds) = self.seconds_until_reset(&result)
        {
            self.machine.hold_off(seconds);
        }
    }
}
