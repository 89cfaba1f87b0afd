//! One turn, from its prompt to its end.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use teamster_api::agents::Prompt;
use teamster_api::{RunEvent, RunInfo, RunKind, RunLogEntry};
use teamster_core::{
    AbortHandle, AgentError, AgentEvent, EventStream, ExecuteParams, NoticeLevel, PermissionMode,
    RunResult, RunStatus, SharedRuntime,
};
use teamster_orchestrator::{Orchestrator, OrchestratorConfig, RunLog, RunRequest};
use teamster_runner::RunRecorder;
use tokio::sync::mpsc;

use super::AgentLoop;
use crate::settings::AdapterKind;
use crate::tick_run::TickRuntime;

pub(super) struct TickOutcome {
    pub(super) result: RunResult,
    pub(super) overran: bool,
    pub(super) stopped: bool,
    /// The provider that ran it in the agent's place.
    pub(super) fallback: Option<String>,
}

impl AgentLoop {
    /// Returns the orchestrator of the ticks. It is created with the first tick, because it needs a Tokio
    /// runtime.
    fn orchestrator(&mut self) -> Result<Orchestrator, AgentError> {
        if let Some(orchestrator) = &self.orchestrator {
            return Ok(orchestrator.clone());
        }
        let clock = self.clock.clone();
        let mut config = OrchestratorConfig::default().prices(self.prices.clone());
        config.clock =
            Arc::new(move || u64::try_from(clock.now().as_millisecond()).unwrap_or_default());
        if self.options.fallbacks.is_empty() {
            // The sleep between ticks suffices where the service gives no delay.
            config.rate_limit_hold = Duration::ZERO;
            config.quota_hold = Duration::ZERO;
        }
        let orchestrator = Orchestrator::new(config)?;
        self.orchestrator = Some(orchestrator.clone());
        Ok(orchestrator)
    }

    /// Releases a hold on the provider, because the user requested the next tick.
    ///
    /// Takes `&mut self` because adapters are not `Sync`.
    pub(super) async fn release_hold(&mut self) {
        if let Some(orchestrator) = &mut self.orchestrator {
            orchestrator.release(self.settings.name()).await;
        }
    }

    /// Returns the parameters of a tick for the history and the fallbacks. The adapter has those of its
    /// process.
    fn tick_params(&self, text: &str) -> ExecuteParams {
        let mut params = ExecuteParams::new(text);
        params.working_directory = Some(self.folder.directory().to_owned());
        params.permission = PermissionMode::Bypass;
        params.model.clone_from(&self.settings.model);
        params.effort.clone_from(&self.settings.reasoning);
        params.session_id = self.adapter.session().as_deref().map(str::to_owned);
        params
    }

    fn request(&self, prompt: Prompt, run_id: &str, runtime: SharedRuntime) -> RunRequest {
        let params = self.tick_params(self.prompts.text(prompt));
        let runtime = TickRuntime::new(self.settings.name(), runtime);
        let mut request = RunRequest::new(Arc::new(runtime), params).id(run_id);
        for candidate in &self.options.fallbacks {
            let mut candidate = candidate.clone();
            // A fallback has a new conversation, so it needs the full prompt.
            self.prompts
                .text(Prompt::Full)
                .clone_into(&mut candidate.params.prompt);
            request = request.fallback(candidate);
        }
        request.retry = self.options.retry.clone();
        request.budget = self.options.budget.clone();
        request.observer.clone_from(&self.options.observer);
        request.holds.clone_from(&self.options.holds);
        request
    }

    /// Begins the log of a tick. A failure is logged and does not stop the tick.
    fn begin_log(&mut self, run_id: &str, abort: AbortHandle) -> Option<RunRecorder> {
        let directory = self.folder.directory().to_owned();
        let logs = self.options.logs.as_mut()?;
        let mut info = RunInfo::new(run_id, self.settings.name());
        info.kind = RunKind::Tick;
        info.model.clone_from(&self.settings.model);
        info.directory = Some(directory.clone());
        let room = logs.make_room(&directory);
        let begun = logs.begin(&info, abort);
        if let Err(error) = room {
            self.log
                .line(format!("cannot remove the log of an earlier tick: {error}"));
        }
        begun
            .map_err(|error| {
                self.log
                    .line(format!("cannot create the log of this tick: {error}"));
            })
            .ok()
    }

    /// Runs a turn to its end or its time limit.
    pub(super) async fn run_turn(&mut self, prompt: Prompt, run_id: &str) -> TickOutcome {
        let mut outcome = TickOutcome {
            result: RunResult::default(),
            overran: false,
            stopped: false,
            fallback: None,
        };
        let begun = self.orchestrator();
        let begun = begun.and_then(|orchestrator| Ok((orchestrator, self.adapter.runtime()?)));
        let (orchestrator, runtime) = match begun {
            Ok(begun) => begun,
            Err(error) => {
                outcome.result.errors.push(error);
                return outcome;
            }
        };
        if self.options.fallbacks.is_empty() {
            // The sleep covered the limit of the service, as far as the settings allow.
            self.release_hold().await;
        }
        let mut run = orchestrator.start_log(self.request(prompt, run_id, runtime));
        let abort = run.abort_handle();
        let mut recorder = self.begin_log(run_id, abort.clone());
        // A cold adapter's process ends with the tick, so its text is logged.
        let is_cold = self.settings.adapter_kind() == AdapterKind::Cold;
        let clock = self.clock.clone();
        let mut limit = clock.sleep(self.settings.turn_limit);
        let control = self.control.clone();
        let (news, mut of_loop) = mpsc::unbounded_channel();
        let mut see = move |entry: &RunLogEntry| {
            if is_of_loop(entry) {
                // The receiver lives as long as this.
                let _ = news.send(entry.clone());
            }
        };
        let mut result = {
            let mut record = pin!(record(&mut run, recorder.as_mut(), &mut see));
            loop {
                tokio::select! {
                    biased;
                    () = control.stopping() => {
                        outcome.stopped = true;
                        abort.abort();
                        let (result, ()) = tokio::join!(record, self.adapter.end());
                        break result;
                    }
                    () = &mut limit, if !outcome.overran => {
                        let seconds = self.settings.turn_limit.as_secs();
                        self.log.line(format!("the turn exceeds TIMEOUT_SECS ({seconds} s): interrupting it"));
                        outcome.overran = true;
                        abort.abort();
                    }
                    Some(entry) = of_loop.recv() => self.see(&entry, &mut outcome),
                    result = &mut record => break result,
                }
            }
        };
        while let Ok(entry) = of_loop.try_recv() {
            self.see(&entry, &mut outcome);
        }
        if let Some(recorder) = recorder
            && let Err(error) = recorder.end(&mut result).await
        {
            self.log
                .line(format!("the log of this tick is incomplete: {error}"));
        }
        if is_cold || outcome.fallback.is_some() {
            for message in result.messages() {
                self.log.lines("> ", &message.text);
            }
        }
        outcome.result = result;
        outcome
    }

    fn see(&mut self, entry: &RunLogEntry, outcome: &mut TickOutcome) {
        match entry {
            RunLogEntry::Agent(entry) => self.event(&entry.event, outcome.fallback.is_none()),
            RunLogEntry::Run(entry) => self.run_event(&entry.event, outcome),
            _ => {}
        }
    }

    /// Logs an event of an agent; `own` is false for a fallback.
    fn event(&mut self, event: &AgentEvent, own: bool) {
        let runtime = self.settings.name();
        match event {
            AgentEvent::SessionStarted(session) if own => {
                let id = session.session_id.clone();
                if self.written_session.as_ref() != Some(&id) {
                    self.log.line(format!("session_id={id}"));
                }
                self.save_session(Some(id));
            }
            AgentEvent::Notice(notice) if notice.level != NoticeLevel::Info => {
                self.log.line(format!("{runtime}: {}", notice.message));
            }
            AgentEvent::Retry(retry) => {
                let message = &retry.error.message;
                self.log
                    .line(format!("{runtime} retries ({}): {message}", retry.attempt));
            }
            _ => {}
        }
    }

    fn run_event(&self, event: &RunEvent, outcome: &mut TickOutcome) {
        match event {
            RunEvent::Retry {
                reason,
                delay_ms,
                next,
                ..
            } => self.log.line(format!(
                "attempt {} in {:.1} s: {}",
                next.attempt,
                Duration::from_millis(*delay_ms).as_secs_f64(),
                reason.message
            )),
            RunEvent::Fallback { reason, next, .. } => {
                let provider = next.provider.clone();
                self.log
                    .line(format!("falling back to {provider}: {}", reason.message));
                outcome.fallback = Some(provider);
            }
            RunEvent::Hold {
                reason: Some(reason),
                ..
            } => self.log.line(format!(
                "waiting for a service limit to reset: {}",
                reason.message
            )),
            _ => {}
        }
    }
}

fn is_of_loop(entry: &RunLogEntry) -> bool {
    match entry {
        RunLogEntry::Agent(entry) => matches!(
            entry.event,
            AgentEvent::SessionStarted(_) | AgentEvent::Notice(_) | AgentEvent::Retry(_)
        ),
        RunLogEntry::Run(entry) => matches!(
            entry.event,
            RunEvent::Retry { .. } | RunEvent::Fallback { .. } | RunEvent::Hold { .. }
        ),
        _ => false,
    }
}

/// Reads a run to its end and writes its log, if it has one. `see` is called with each entry.
async fn record(
    run: &mut RunLog,
    recorder: Option<&mut RunRecorder>,
    see: &mut (dyn FnMut(&RunLogEntry) + Send),
) -> RunResult {
    if let Some(recorder) = recorder {
        return recorder.record(run, see).await;
    }
    let mut result = RunResult::default().status(RunStatus::Incomplete);
    while let Some(entry) = run.next().await {
        see(&entry);
        if let RunLogEntry::Agent(entry) = entry
            && let AgentEvent::Done(done) = entry.event
        {
            result = *done.result;
        }
        // A CLI may print without pause.
        tokio::task::coop::consume_budget().await;
    }
    result
}

/// Reads the stream of a turn to its end. Cancel-safe.
pub(super) async fn result_of(stream: &mut EventStream) -> RunResult {
    loop {
        tokio::task::coop::consume_budget().await;
        match stream.next().await {
            Some(AgentEvent::Done(done)) => return *done.result,
            Some(_) => {}
            None => return RunResult::default().status(RunStatus::Incomplete),
        }
    }
}
