//! The wait for a slot, and holds on the account of a candidate.

use std::pin::pin;
use std::time::Duration;

use teamster_core::time::millis;
use teamster_core::{AgentError, ErrorKind, Id};
use tokio::sync::mpsc;
use tokio::time::sleep;

use super::Driver;
use super::attempt::until;
use super::budget::shared_spent;
use super::errors::on_hold;
use crate::plan::{Plan, wanted_wait};
use crate::registry::{Key, Registration, Slot};
use crate::{Candidate, Held, Permit, RunRequest, SharedHolds, shared_holds};

/// Time after which the wait for an account is reported. Its holds are read again then.
const REPORTED_AFTER: Duration = Duration::from_millis(200);

impl Driver {
    /// Waits for a slot for an attempt, until no process holds the candidate's account back.
    pub(super) async fn slot(
        &mut self,
        candidate: &Candidate,
        request: &RunRequest,
        plan: &Plan,
        registration: &Registration,
    ) -> Result<AttemptSlot, Stopped> {
        loop {
            let slot = self
                .own_slot(candidate, request, plan, registration)
                .await?;
            let Some(shared) = self.holds.clone() else {
                return Ok(AttemptSlot {
                    _slot: slot,
                    _permit: None,
                });
            };
            if self.is_held(&*shared, candidate).await? {
                continue;
            }
            let (permit, waited) = self.permit(&*shared, candidate, request).await?;
            // The account may have reached a limit meanwhile.
            if waited && self.is_held(&*shared, candidate).await? {
                continue;
            }
            return Ok(AttemptSlot {
                _slot: slot,
                _permit: permit,
            });
        }
    }

    /// Adds the holds of other processes on the candidate's account to this orchestrator's. Returns whether one holds the
    /// candidate back.
    async fn is_held(
        &self,
        shared: &dyn SharedHolds,
        candidate: &Candidate,
    ) -> Result<bool, Stopped> {
        let holds = tokio::select! {
            biased;
            () = self.abort.aborted() => return Err(Stopped::Aborted),
            error = shared_spent(self.share.as_ref()) => return Err(Stopped::Spent(error)),
            holds = shared_holds::holds_on(shared, candidate) => holds,
        };
        let now_ms = (self.config.clock)();
        let key = key(candidate);
        let mut is_held = false;
        for held in holds.into_iter().filter(|held| held.until_ms > now_ms) {
            let on = held.key();
            is_held |= on.holds_back(&key);
            self.registry.hold(on, held.until_ms, held.reason);
        }
        Ok(is_held)
    }

    /// Waits until the candidate's account may be used. Returns also whether that was reported.
    async fn permit(
        &mut self,
        shared: &dyn SharedHolds,
        candidate: &Candidate,
        request: &RunRequest,
    ) -> Result<(Option<Permit>, bool), Stopped> {
        let most = request.retry.max_elapsed.unwrap_or(Duration::MAX);
        let latest = self.accepted.checked_add(most);
        let mut permit = pin!(shared_holds::may_start(shared, candidate));
        let mut is_reported = false;
        loop {
            tokio::select! {
                biased;
                () = self.abort.aborted() => return Err(Stopped::Aborted),
                error = shared_spent(self.share.as_ref()) => return Err(Stopped::Spent(error)),
                permit = &mut permit => return Ok((permit, is_reported)),
                () = until(latest) => return Err(Stopped::Late(most)),
                () = sleep(REPORTED_AFTER), if !is_reported => {}
            }
            is_reported = true;
            self.report_wait(candidate, None).await;
        }
    }

    /// Waits for a slot of this orchestrator.
    async fn own_slot(
        &mut self,
        candidate: &Candidate,
        request: &RunRequest,
        plan: &Plan,
        registration: &Registration,
    ) -> Result<Slot, Stopped> {
        let (waits, mut waiting) = mpsc::unbounded_channel();
        let slot = registration.slot(key(candidate), &request.queue, waits);
        let most = request.retry.max_elapsed.unwrap_or(Duration::MAX);
        let latest = self.accepted.checked_add(most);
        let mut reported = None;
        tokio::pin!(slot);
        loop {
            let held = tokio::select! {
                biased;
                () = self.abort.aborted() => return Err(Stopped::Aborted),
                error = shared_spent(self.share.as_ref()) => return Err(Stopped::Spent(error)),
                slot = &mut slot => return slot.map_err(|gone| Stopped::Gone(gone.to_string())),
                Some(held) = waiting.recv() => held,
                () = until(latest) => return Err(Stopped::Late(most)),
            };
            if let Some(held) = &held {
                let left = held.until_ms.saturating_sub((self.config.clock)());
                let error = on_hold(candidate.group(), held);
                if !plan.wait_for_hold(&error, Duration::from_millis(left)) {
                    return Err(Stopped::Held(error));
                }
            }
            // The end of a hold is not reported, because the wait for room continues.
            let until_ms = held.as_ref().map(|held| held.until_ms);
            if reported.is_none() || (until_ms.is_some() && reported != Some(until_ms)) {
                reported = Some(until_ms);
                self.report_wait(candidate, held).await;
            }
        }
    }

    /// Puts the candidate's group on hold after a limit was met: until the limit resets, or for the delay of this run's
    /// retry.
    pub(super) async fn hold(
        &self,
        candidate: &Candidate,
        error: &AgentError,
        again: Option<Duration>,
    ) {
        let default = match error.kind {
            ErrorKind::RateLimit => again.unwrap_or(self.config.rate_limit_hold),
            ErrorKind::Quota => self.config.quota_hold,
            _ => return,
        };
        let now_ms = (self.config.clock)();
        let named = wanted_wait(error, now_ms);
        let wanted = named.unwrap_or(default);
        let until_ms = now_ms.saturating_add(millis(wanted));
        #[cfg(feature = "tracing")]
        tracing::info!(
            target: "teamster::orchestrator",
            group = candidate.group(),
            wait = ?wanted,
            "hold"
        );
        let key = key(candidate);
        let held = Held {
            provider: key.group.to_string(),
            model: key.model.map(|model| model.to_string()),
            until_ms,
            reason: error.clone(),
        };
        // First, because other processes may be slow to know.
        let reason = held.reason.clone();
        self.registry.hold(held.key(), until_ms, reason);
        // What is only assumed holds back the runs of this process alone.
        if let Some(shared) = self.holds.as_ref().filter(|_| named.is_some()) {
            shared_holds::add(&**shared, candidate, &held).await;
        }
    }
}

/// Permission to make an attempt. Dropping it passes it on.
pub(super) struct AttemptSlot {
    _slot: Slot,
    _permit: Option<Permit>,
}

/// Reason why no slot was granted.
pub(super) enum Stopped {
    /// The run was stopped.
    Aborted,
    /// The budget that the run shares with others is spent.
    Spent(AgentError),
    /// The provider is on hold, and the run does not wait for that.
    Held(AgentError),
    /// The time in which attempts may begin is over.
    Late(Duration),
    /// The registry is gone.
    Gone(String),
}

fn key(candidate: &Candidate) -> Key {
    Key {
        group: candidate.group().into(),
        model: candidate.params.model.as_deref().map(Id::from),
    }
}
