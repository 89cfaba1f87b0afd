//! The driver of one run, from its acceptance to its end.

mod attempt;
mod budget;
mod caught;
mod end;
mod errors;
mod report;
mod slot;

use std::collections::HashSet;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use teamster_core::time::millis;
use teamster_core::{AbortHandle, AgentError, ErrorCode, ErrorKind, ExecuteParams, Id};
use tokio::time::{Instant, sleep};

use crate::account::{Account, Ended};
use crate::estimate::Estimator;
use crate::events::Sender;
use crate::log::{Part, View};
use crate::merge::Merge;
use crate::observer::Accepted;
use crate::plan::{AttemptState, Next, Plan, PlanCandidate, Sessions};
use crate::registry::{Registration, Registry, Update};
use crate::request::{Budget, Candidate, Closing, OnEvent};
use crate::shared_budget::Share;
use crate::{OrchestratorConfig, RunObserver, RunRequest, SharedHolds};
use budget::shared_spent;
use caught::observed;
use errors::{explained, late, without_session};
use slot::Stopped;

/// Drives one run.
pub(crate) struct Driver {
    run_id: Id,
    registry: Registry,
    config: Arc<OrchestratorConfig>,
    abort: AbortHandle,
    sender: Sender,
    on_event: Option<OnEvent>,
    /// Set once the run is accepted.
    observer: Option<Arc<dyn RunObserver>>,
    holds: Option<Arc<dyn SharedHolds>>,
    closing: Option<Closing>,
    account: Account,
    estimator: Estimator,
    merge: Merge,
    /// The consumer's view of the log.
    view: View,
    /// Events that follow from the agents' events are wanted.
    derives: bool,
    /// True once the end of the run was reported.
    ended: bool,
    /// Parts not yet sent to the consumer of the log.
    parts: Vec<Part>,
    /// The number and the time of the log's last entry.
    seq: u64,
    at_ms: u64,
    accepted: Instant,
    accepted_ms: u64,
    budget: Budget,
    /// What the run has used of a budget that it shares with others.
    share: Option<Share>,
    /// True once the time of the budget is over and the run was aborted for it.
    out_of_time: Arc<AtomicBool>,
    told_session: Option<Id>,
    /// The sessions that this run knows to exist, with their providers.
    sessions: HashSet<(String, Id)>,
}

/// Result of a run's attempts.
enum Course {
    Success,
    Error(AgentError),
    Aborted,
}

impl Driver {
    pub(crate) fn new(
        run_id: Id,
        registry: Registry,
        config: Arc<OrchestratorConfig>,
        abort: AbortHandle,
        sender: Sender,
        request: &RunRequest,
        view: View,
    ) -> Self {
        let derives = view == View::Lifecycle || request.on_event.is_some();
        let side_effects = request.retry.side_effects.clone();
        Self {
            account: Account::new(run_id.clone(), side_effects, derives),
            estimator: Estimator::new(config.prices.clone()),
            merge: Merge::new(request.may_repeat()),
            view,
            derives,
            ended: false,
            parts: Vec::new(),
            seq: 0,
            at_ms: 0,
            accepted_ms: (config.clock)(),
            run_id,
            registry,
            config,
            abort,
            sender,
            on_event: request.on_event.clone(),
            observer: None,
            holds: request.holds.clone(),
            closing: request.closing.clone(),
            accepted: Instant::now(),
            budget: request.budget.clone(),
            share: request.budget.shared.clone().map(Share::new),
            out_of_time: Arc::default(),
            told_session: None,
            sessions: HashSet::new(),
        }
    }

    pub(crate) async fn drive(mut self, request: RunRequest) {
        let Some(first) = request.candidates.first() else {
            let error = AgentError::refused("candidates", "at least one is needed");
            return self.end(Course::Error(error), None).await;
        };
        let provider = first.provider().to_owned();
        let now_ms = self.elapsed_ms();
        let capabilities = first.runtime.capabilities();
        (self.account).begin(&provider, &first.params, false, capabilities, now_ms);
        if let Err(error) = request.check_ahead() {
            return self.end(Course::Error(error), None).await;
        }
        let registered = (self.registry)
            .register(
                self.run_id.clone(),
                provider.clone(),
                first.params.model.clone(),
                self.abort.clone(),
            )
            .await;
        let registration = match registered {
            Ok(registration) => registration,
            Err(refused) => {
                let error = AgentError::invalid_params(refused.to_string()).about("run_id");
                return self.end(Course::Error(error), None).await;
            }
        };
        // Another run may have the id of a refused one, so an observer must not get its log.
        self.observer.clone_from(&request.observer);
        if let Some(observer) = self.observer.clone() {
            let accepted =
                Accepted::new(&self.run_id, &provider, &first.params).at_ms(self.accepted_ms);
            observed(observer.accepted(accepted), &self.abort).await;
        }
        let timer = self.time_budget();
        let course = self.attempts(&request, &registration).await;
        if let Some(timer) = timer {
            timer.abort();
        }
        self.end(course, Some(registration)).await;
    }

    /// Makes one attempt after the other and returns the result of the run.
    async fn attempts(&mut self, request: &RunRequest, registration: &Registration) -> Course {
        let who = request.candidates.iter().map(who).collect();
        let mut plan = Plan::new(request.retry.clone(), who);
        let mut resume = false;
        let mut failed = None;
        loop {
            let index = plan.current();
            let candidate = &request.candidates[index];
            let slot = match self.slot(candidate, request, &plan, registration).await {
                Ok(slot) => Ok(slot),
                Err(Stopped::Held(error)) => Err(error),
                Err(Stopped::Aborted) => return self.stopped(),
                Err(Stopped::Spent(error)) => return Course::Error(error),
                Err(Stopped::Late(most)) => return Course::Error(late(failed, most)),
                Err(Stopped::Gone(why)) => {
                    return Course::Error(AgentError::new(ErrorCode::Io, ErrorKind::Internal, why));
                }
            };
            let attempted = slot.is_ok();
            let mut own_session = false;
            let ended = match &slot {
                Ok(_) => {
                    let params = self.params(candidate, resume, request);
                    own_session = resume || params.session_id != candidate.params.session_id;
                    self.attempt(candidate, params, resume, registration).await
                }
                Err(error) => Ended {
                    error: Some(error.clone()),
                    aborted: false,
                },
            };
            let Some(mut error) = ended.error else {
                return Course::Success;
            };
            if error.code == ErrorCode::BudgetExceeded {
                return Course::Error(error);
            }
            if ended.aborted || self.abort.is_aborted() {
                return self.stopped();
            }
            let lost = (failed.as_ref())
                .filter(|_| own_session && error.kind == ErrorKind::SessionNotFound)
                .map(|first| mem::replace(&mut error, first.clone()));
            if lost.is_some() {
                self.forget_session(candidate.provider());
            }
            let standing = AttemptState {
                error: &error,
                attempted,
                session: self.account.session(),
                changed: self.account.changed(),
                elapsed: self.accepted.elapsed(),
                now_ms: (self.config.clock)(),
            };
            let step = match &lost {
                Some(_) => plan.after_lost_session(standing),
                None => plan.after(standing),
            };
            if attempted {
                let again = match &step {
                    Next::Try {
                        candidate, delay, ..
                    } if *candidate == index => Some(*delay),
                    _ => None,
                };
                self.hold(candidate, &error, again).await;
            }
            // Dropped after the hold is registered. Otherwise the next run in the queue would start before it.
            drop(slot);
            let (next, delay) = match step {
                Next::End(why) => {
                    let why = match lost {
                        Some(lost) => Some(without_session(&lost, why)),
                        None => why,
                    };
                    return Course::Error(explained(error, why));
                }
                Next::Try {
                    candidate,
                    delay,
                    resume: resumed,
                } => {
                    resume = resumed;
                    (candidate, delay)
                }
            };
            if let Some(error) = self.over_budget() {
                return Course::Error(error);
            }
            self.announce(request, index, next, &error, delay, resume)
                .await;
            self.coming(&request.candidates[next], resume, registration);
            if !self.wait(delay, registration).await {
                return self.stopped();
            }
            failed = Some(error);
        }
    }

    /// Builds the parameters of an attempt.
    fn params(&self, candidate: &Candidate, resume: bool, request: &RunRequest) -> ExecuteParams {
        let mut params = candidate.for_agent();
        params.cancel = self.abort.token();
        params.env.extend(self.variables());
        let session = self.account.session();
        if resume {
            params.prompt = self.continuation(request);
            params.session_id = session.map(ToString::to_string);
            params.new_session_id = None;
            params.fork = false;
            params.slash_commands = false;
            params.images = Vec::new();
        } else if let Some(new) = &params.new_session_id
            && (self.sessions).contains(&(candidate.provider().to_owned(), new.as_str().into()))
        {
            // An earlier attempt created the session, and a CLI refuses to create it twice.
            params.session_id = params.new_session_id.take();
            params.fork = false;
        }
        let capabilities = candidate.runtime.capabilities();
        let spent = self.account.spent();
        self.budget.prepare(capabilities, &mut params);
        if let Some(turns) = self.budget.turns.filter(|_| capabilities.max_turns) {
            let left = turns.saturating_sub(spent.turns);
            params.max_turns = Some(params.max_turns.map_or(left, |own| own.min(left)));
        }
        if let Some(left) = self.usd_left().filter(|_| capabilities.max_budget_usd) {
            params.max_budget_usd = Some(params.max_budget_usd.map_or(left, |own| own.min(left)));
        }
        params
    }

    /// Returns the variables that the observer has for the agents.
    fn variables(&self) -> Vec<(String, String)> {
        let variables = self.observer.as_ref().map(|observer| {
            let variables = || observer.variables(&self.run_id);
            catch_unwind(AssertUnwindSafe(variables)).unwrap_or_default()
        });
        variables.unwrap_or_default()
    }

    /// Forgets the session of the last attempt, which no longer exists.
    fn forget_session(&mut self, provider: &str) {
        if let Some(session) = self.account.session() {
            (self.sessions).remove(&(provider.to_owned(), session.clone()));
        }
        self.account.forget_session();
    }

    /// Builds the prompt that resumes the session. It lists the interrupted calls, because some CLIs forget them.
    fn continuation(&self, request: &RunRequest) -> String {
        let text = request.retry.side_effects.continuation.clone();
        let calls = self.account.cut_off();
        if calls.is_empty() {
            return text;
        }
        let calls = calls.join("\n- ");
        format!(
            "{text}\n\nThese calls were cut off, and may have had their effect all the same:\n- {calls}"
        )
    }

    /// Updates the registry with the coming attempt.
    fn coming(&self, candidate: &Candidate, resume: bool, registration: &Registration) {
        registration.update(Update::Attempt {
            attempt: self.account.attempt(),
            provider: candidate.provider().to_owned(),
            model: candidate.params.model.clone(),
            session_id: (self.account.session()).filter(|_| resume).cloned(),
        });
    }

    /// Waits before the next attempt, or until no attempt can begin. Returns `false` if the run was stopped meanwhile.
    async fn wait(&self, delay: Duration, registration: &Registration) -> bool {
        if !delay.is_zero() {
            let until_ms = (self.config.clock)().saturating_add(millis(delay));
            registration.update(Update::WaitingUntil(until_ms));
        }
        tokio::select! {
            biased;
            () = self.abort.aborted() => false,
            _ = shared_spent(self.share.as_ref()) => true,
            () = sleep(delay) => true,
        }
    }

    fn stopped(&self) -> Course {
        if self.out_of_time() {
            Course::Error(self.time_is_over())
        } else {
            Course::Aborted
        }
    }

    fn elapsed_ms(&self) -> u64 {
        millis(self.accepted.elapsed())
    }
}

fn who(candidate: &Candidate) -> PlanCandidate {
    PlanCandidate {
        // Another account does not have the session, unless it is brought there.
        sessions: if candidate.shares_sessions {
            Sessions::OfProvider(candidate.provider().to_owned())
        } else {
            Sessions::OfGroup(candidate.group().to_owned())
        },
        can_resume: candidate.runtime.capabilities().resume,
    }
}
