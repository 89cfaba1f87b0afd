//! One attempt, from the start of the agent to the end of its stream.

use std::future::{pending, poll_fn};
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use teamster_core::provider::RunAssembler;
use teamster_core::sync::caught;
use teamster_core::time::millis;
use teamster_core::{
    AbortHandle, AgentError, AgentEvent, AgentRuntime, BudgetKind, ErrorKind, ExecuteParams,
    LogEntry, RunEvent,
};
use tokio::time::{Instant, sleep_until};

use super::Driver;
use super::budget::{budget_error, over, shared_spent, unheld, unpriced};
use super::caught::observed;
use crate::account::{Ended, broken_off};
use crate::events::BYTES;
use crate::registry::{Registration, Update};
use crate::request::Candidate;
use crate::{RunPhase, SharedBudget};

/// Number of turns without usage figures after which none are expected. The CLI's version may be too old, or the
/// service does not count.
const SILENT_TURNS: u32 = 10;

/// Number of events after which a batch is sent to the consumer. Long events count as several, as in its queue. Events
/// that arrived together stay together.
const TOGETHER: usize = 64;

const YEAR: Duration = Duration::from_hours(24 * 365);

impl Driver {
    /// Makes an attempt. When it returns, the attempt's tools have ended and the ledger is up to date.
    pub(super) async fn attempt(
        &mut self,
        candidate: &Candidate,
        params: ExecuteParams,
        resumed: bool,
        registration: &Registration,
    ) -> Ended {
        let own = &candidate.params;
        let less_turns = params.max_turns != own.max_turns;
        let less_usd = params.max_budget_usd != own.max_budget_usd;
        self.account.begin(
            candidate.provider(),
            &params,
            resumed,
            candidate.runtime.capabilities(),
            self.elapsed_ms(),
        );
        (self.account).with_account(candidate.account.as_deref());
        self.estimator.begin(
            candidate.provider(),
            params.model.as_deref(),
            candidate.runtime.capabilities(),
        );
        registration.update(Update::Attempt {
            attempt: self.account.attempt(),
            provider: candidate.provider().to_owned(),
            model: params.model.clone(),
            session_id: self.account.session().cloned(),
        });
        let mut out = Vec::new();
        self.account.attempt_begins(&mut out);
        self.emit(&mut out).await;
        let stop = self.watch(candidate, params, registration).await;
        let result = self.merge.result();
        let cut_off = result.is_none();
        let begun = !matches!(stop, Stop::NotBegun);

        let mut ended = self
            .account
            .end(result, begun, millis(self.accepted.elapsed()), &mut out);
        if let Some(share) = &mut self.share {
            share.count(&self.account.spent());
        }
        self.emit(&mut out).await;
        if let Some(session) = self.account.known_session() {
            (self.sessions).insert((candidate.provider().to_owned(), session.clone()));
        }
        self.tell_session(candidate.provider(), registration).await;
        if ended.error.is_none() {
            // A completed attempt may still exceed the budget.
            ended.error = (self.without_price(candidate))
                .or_else(|| over(&self.budget, &self.account.spent()));
        }
        let Some(error) = &mut ended.error else {
            return ended;
        };
        match (stop, error.kind) {
            (Stop::Budget(budget), _) => {
                *error = budget;
                ended.aborted = false;
            }
            (Stop::Panicked | Stop::NotBegun, _) => {
                *error = broken_off("the runtime panicked")
                    .kind(ErrorKind::Internal)
                    .retryable(false);
            }
            (Stop::None, ErrorKind::Aborted) if self.out_of_time() => *error = self.time_is_over(),
            (Stop::None, _) if cut_off && self.abort.is_aborted() => {
                *error = if self.out_of_time() {
                    self.time_is_over()
                } else {
                    RunAssembler::aborted_error()
                };
            }
            // These limits of the CLI were derived from the budget.
            (_, ErrorKind::MaxTurns) if less_turns => {
                *error = budget_error(BudgetKind::Turns, self.budget.turns.map(f64::from));
            }
            (_, ErrorKind::Budget) if less_usd => {
                *error = self.usd_is_spent();
            }
            _ => {}
        }
        self.account.blame(error);
        ended
    }

    /// Reads the agent's events to their end.
    async fn watch(
        &mut self,
        candidate: &Candidate,
        params: ExecuteParams,
        registration: &Registration,
    ) -> Stop {
        let runtime = &candidate.runtime;
        let execute = || runtime.execute(params);
        let Ok(mut stream) = catch_unwind(AssertUnwindSafe(execute)) else {
            return Stop::NotBegun;
        };
        let handle = stream.abort_handle();
        let mut watch = Watch::default();
        let mut killed = false;
        loop {
            let seen = {
                let next = pin!(caught(stream.next_batch()));
                tokio::select! {
                    biased;
                    () = self.abort.killed(), if !killed => {
                        killed = true;
                        Seen::Abort
                    }
                    () = self.abort.aborted(), if watch.deadline.is_none() => Seen::Abort,
                    () = until(watch.deadline) => return watch.stop,
                    error = shared_spent(self.share.as_ref()), if watch.deadline.is_none() => {
                        Seen::Spent(error)
                    }
                    batch = next => Seen::Batch(batch),
                    () = self.sender.start_wanted(), if !self.account.has_started() => Seen::StartWanted,
                }
            };
            let batch = match seen {
                Seen::Abort => {
                    if killed {
                        handle.kill();
                    }
                    handle.abort();
                    watch.deadline.get_or_insert_with(|| self.patience());
                    registration.update(Update::Phase(RunPhase::Stopping));
                    continue;
                }
                Seen::Spent(error) => {
                    watch.stop = Stop::Budget(error);
                    handle.abort();
                    watch.deadline = Some(self.patience());
                    registration.update(Update::Phase(RunPhase::Stopping));
                    continue;
                }
                Seen::StartWanted => {
                    let mut out = Vec::new();
                    self.account.start(&mut out);
                    self.emit(&mut out).await;
                    continue;
                }
                Seen::Batch(None) => return Stop::Panicked,
                Seen::Batch(Some(batch)) if batch.is_empty() => return watch.stop,
                Seen::Batch(Some(batch)) => batch,
            };
            let mut next = Some(batch);
            let mut count = 0;
            // Batches that are ready now are reported together.
            while let Some(batch) = next.take() {
                let room = |entry: &LogEntry| 1 + entry.approximate_bytes() / BYTES;
                count += batch.iter().map(room).sum::<usize>();
                self.take(batch, &mut watch, candidate, &handle, registration)
                    .await;
                let goes_on = !watch.is_over
                    && watch.deadline.is_none()
                    && count < TOGETHER
                    && !self.abort.is_aborted();
                if goes_on {
                    // The end of the stream and a panic are seen again at the next poll.
                    next = at_once(caught(stream.next_batch()))
                        .await
                        .flatten()
                        .filter(|batch| !batch.is_empty());
                }
            }
            self.send_parts().await;
            if watch.is_over {
                return watch.stop;
            }
        }
    }

    /// Processes a batch of the attempt's events.
    async fn take(
        &mut self,
        mut batch: Vec<LogEntry>,
        watch: &mut Watch,
        candidate: &Candidate,
        stream: &AbortHandle,
        registration: &Registration,
    ) {
        let now_ms = self.elapsed_ms();
        let limited = self.budget.is_limited();
        let mut out = Vec::new();
        if self.view.has_agents() && !self.derives && !limited && watch.began {
            // Most events are passed on unchanged.
            let mut passed = 0;
            for entry in &mut batch {
                let event = &mut entry.event;
                if let AgentEvent::Text(text) = event
                    && self.merge.goes_on(text)
                {
                    self.account.more_text(&text.text);
                } else if !self.merge.passes(event) || is_session(event) {
                    break;
                } else {
                    self.observe(event, now_ms, &mut out);
                }
                passed += 1;
            }
            let rest = batch.split_off(passed);
            self.add(mem::replace(&mut batch, rest));
            if watch.deadline.is_none() {
                self.phase(&mut watch.running, registration);
            }
        }
        let mut entries = Vec::new();
        for mut entry in batch {
            let at_ms = entry.at_ms;
            let is_news = is_session(&entry.event) || !mem::replace(&mut watch.began, true);
            self.observe(&mut entry.event, now_ms, &mut out);
            if let Some(share) = &mut self.share {
                share.count(&self.account.spent_so_far());
            }
            if let AgentEvent::Done(done) = &mut entry.event {
                watch.is_over = true;
                // The ledger has it.
                done.result.text = String::new();
                done.result.pieces = Vec::new();
            }
            self.merge.add(entry, &mut entries);
            if !out.is_empty() {
                self.report_with(at_ms, &mut entries, &mut out);
            }
            if watch.deadline.is_none() && !watch.is_over {
                self.phase(&mut watch.running, registration);
                if limited && let Some(error) = self.over_now(candidate) {
                    watch.stop = Stop::Budget(error);
                    stream.abort();
                    watch.deadline = Some(self.patience());
                    registration.update(Update::Phase(RunPhase::Stopping));
                }
            }
            if is_news {
                self.add(mem::take(&mut entries));
                self.send_parts().await;
                self.tell_session(candidate.provider(), registration).await;
            }
        }
        self.add(entries);
    }

    /// Records an event under the ids that it has in the run's log.
    fn observe(&mut self, event: &mut AgentEvent, now_ms: u64, out: &mut Vec<RunEvent>) {
        self.estimator.event(event);
        self.merge.rename(event);
        self.account.event(event, now_ms, out);
        self.merge.observe(event);
    }
}

/// Event that a watched attempt has waited for.
enum Seen {
    /// The run is to be stopped.
    Abort,
    /// The budget that the run shares with others is spent.
    Spent(AgentError),
    /// The consumer of the log wants the start of the run.
    StartWanted,
    /// The agent's next events: empty at the end of the stream, `None` after a panic.
    Batch(Option<Vec<LogEntry>>),
}

/// State of a watched attempt.
#[derive(Default)]
struct Watch {
    /// True once the attempt has emitted an event.
    began: bool,
    /// True once the attempt has emitted its result.
    is_over: bool,
    stop: Stop,
    /// Time by which the runtime must have ended the attempt.
    deadline: Option<Instant>,
    running: Option<RunPhase>,
}

fn is_session(event: &AgentEvent) -> bool {
    matches!(event, AgentEvent::SessionStarted(_))
}

impl Driver {
    /// Updates the phase of the run after an event.
    fn phase(&self, running: &mut Option<RunPhase>, registration: &Registration) {
        let phase = if self.account.in_tool() {
            RunPhase::InTool
        } else {
            RunPhase::Running
        };
        if *running != Some(phase) {
            *running = Some(phase);
            registration.update(Update::Phase(phase));
        }
    }

    /// Returns an error if the attempt exceeds the remaining budget.
    fn over_now(&self, candidate: &Candidate) -> Option<AgentError> {
        let most = self.budget.turns;
        let turns = most.filter(|_| !candidate.runtime.capabilities().max_turns);
        if turns.is_some_and(|most| self.account.spent_so_far().turns > most) {
            return Some(budget_error(BudgetKind::Turns, most.map(f64::from)));
        }
        let shared = self.budget.shared.as_ref();
        let counted = shared.filter(|_| candidate.runtime.capabilities().live_usage);
        let counted = counted.and_then(SharedBudget::token_limit);
        if let Some(most) = self.budget.tokens.or(counted)
            && self.account.silent_turns() > SILENT_TURNS
        {
            return Some(unheld(candidate.provider(), most));
        }
        (self.without_price(candidate)).or_else(|| over(&self.budget, &self.account.spent_so_far()))
    }

    /// Returns an error if the budget is in USD and the agent has used tokens whose price is unknown.
    fn without_price(&self, candidate: &Candidate) -> Option<AgentError> {
        let shared = self
            .budget
            .shared
            .as_ref()
            .and_then(SharedBudget::usd_limit);
        let most = self.budget.usd.or(shared);
        let most = most.filter(|_| self.estimator.is_unpriced())?;
        Some(unpriced(candidate.provider(), self.estimator.model(), most))
    }

    /// Returns the deadline of a runtime that was asked to stop.
    fn patience(&self) -> Instant {
        let now = Instant::now();
        // Replace a time that the clock cannot represent by a year.
        (now.checked_add(self.config.abort_grace)).unwrap_or_else(|| now + YEAR)
    }

    /// Returns whether the run's session is new. A session that was only requested may never exist.
    fn has_new_session(&self) -> bool {
        let session = self.account.known_session();
        session.is_some() && session != self.told_session.as_ref()
    }

    /// Reports a new session to the registry and the observer.
    async fn tell_session(&mut self, provider: &str, registration: &Registration) {
        if !self.has_new_session() {
            return;
        }
        let Some(session) = self.account.known_session().cloned() else {
            return;
        };
        registration.update(Update::Session {
            session_id: session.clone(),
            model: self.account.model().map(str::to_owned),
        });
        if let Some(observer) = self.observer.clone() {
            observed(
                observer.session(&self.run_id, provider, &session),
                &self.abort,
            )
            .await;
        }
        self.told_session = Some(session);
    }
}

/// Reason why the run itself stopped an attempt.
#[derive(Default)]
enum Stop {
    #[default]
    None,
    Budget(AgentError),
    Panicked,
    /// The runtime panicked before it returned a stream.
    NotBegun,
}

/// Returns the output of the future if it is ready now.
async fn at_once<T>(future: impl Future<Output = T>) -> Option<T> {
    let mut future = pin!(future);
    poll_fn(|cx| {
        Poll::Ready(match future.as_mut().poll(cx) {
            Poll::Ready(value) => Some(value),
            Poll::Pending => None,
        })
    })
    .await
}

/// Waits until the deadline, or forever without one.
pub(super) async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => sleep_until(deadline).await,
        None => pending().await,
    }
}
