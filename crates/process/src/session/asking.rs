//! Pending permission requests of the CLI.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::{Context, Poll};

use teamster_core::{PermissionAnswer, PermissionPolicy, PermissionRequest, SessionFuture};

/// Requests that wait for an answer.
pub(crate) struct Asking {
    policy: PermissionPolicy,
    asked: Vec<PendingRequest>,
}

struct PendingRequest {
    request: PermissionRequest,
    answer: SessionFuture<'static, PermissionAnswer>,
}

impl Asking {
    pub(crate) fn new(policy: PermissionPolicy) -> Self {
        Self {
            policy,
            asked: Vec::new(),
        }
    }

    /// Asks the policy. Returns the answer if it is known at once; otherwise [`poll`](Self::poll) returns it later.
    pub(crate) fn ask(
        &mut self,
        request: PermissionRequest,
    ) -> Option<(PermissionRequest, PermissionAnswer)> {
        if let PermissionPolicy::Ask(ask) = &self.policy {
            let ask = ask.clone();
            let asking = request.clone();
            // The callback is called in `poll`, where a panic is caught.
            let answer = Box::pin(async move { ask(asking).await });
            self.asked.push(PendingRequest { request, answer });
            return None;
        }
        let answer = self.policy.answer(&request)?;
        Some((request, answer))
    }

    /// Returns the answers that are ready.
    pub(crate) fn poll(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Vec<(PermissionRequest, PermissionAnswer)> {
        let mut answered = Vec::new();
        let mut index = 0;
        while index < self.asked.len() {
            let future = self.asked[index].answer.as_mut();
            let answer = match catch_unwind(AssertUnwindSafe(|| future.poll(cx))) {
                Ok(Poll::Pending) => {
                    index += 1;
                    continue;
                }
                Ok(Poll::Ready(answer)) => answer,
                Err(_) => PermissionAnswer::deny("the permission handler panicked"),
            };
            answered.push((self.asked.remove(index).request, answer));
        }
        answered
    }

    /// Removes a request that needs no answer any more.
    pub(crate) fn withdraw(&mut self, id: u64) {
        self.asked.retain(|asked| asked.request.id != id);
    }

    /// Removes all requests.
    pub(crate) fn withdraw_all(&mut self) {
        self.asked.clear();
    }

    /// Returns whether no request is open.
    pub(crate) fn is_empty(&self) -> bool {
        self.asked.is_empty()
    }
}
