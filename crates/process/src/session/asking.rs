//! Answers to permission requests of the CLI.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::{Context, Poll};

use teamster_core::{PermissionAnswer, PermissionPolicy, PermissionRequest, SessionFuture};

/// The questions that wait for their answer.
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

    /// Asks; the answer if there is one at once, and otherwise it comes from [`poll`](Self::poll).
    pub(crate) fn ask(
        &mut self,
        request: PermissionRequest,
    ) -> Option<(PermissionRequest, PermissionAnswer)> {
        if let PermissionPolicy::Ask(ask) = &self.policy {
            let ask = ask.clone();
            let asking = request.clone();
            // Not called before it is polled, where its panic is caught.
            let answer = Box::pin(async move { ask(asking).await });
            self.asked.push(PendingRequest { request, answer });
            return None;
        }
        let answer = self.policy.answer(&request)?;
        Some((request, answer))
    }

    /// The answers that have come.
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
                Err(_) => PermissionAnswer::Deny(Some("the one who was asked panicked".into())),
            };
            answered.push((self.asked.remove(index).request, answer));
        }
        answered
    }

    /// A question needs no answer any more.
    pub(crate) fn withdraw(&mut self, id: u64) {
        self.asked.retain(|asked| asked.request.id != id);
    }

    /// None of them does.
    pub(crate) fn withdraw_all(&mut self) {
        self.asked.clear();
    }

    /// Whether no request is open.
    pub(crate) fn is_empty(&self) -> bool {
        self.asked.is_empty()
    }
}
