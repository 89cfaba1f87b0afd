//! Requests of the agent that wait for an answer of anybody who may give one.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use teamster_core::sync::lock;
use teamster_core::time::{epoch_ms, millis};
use teamster_core::{
    AgentEvent, Decision, Permission, PermissionAnswer, PermissionPolicy, PermissionRequest,
};
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

use crate::RefusalCode;
use crate::protocol::{Answer, PendingRequest};

/// How many answered requests are remembered, to tell a late answer from a wrong id.
const REMEMBERED: usize = 1000;

/// The requests of a run. Clones are the same.
#[derive(Debug, Clone, Default)]
pub struct Requests {
    shared: Arc<Mutex<Shared>>,
}

#[derive(Debug, Default)]
struct Shared {
    last: u64,
    waiting: Vec<Waiting>,
    answered: Vec<String>,
    /// Decisions whose event has not come yet.
    decided: Vec<Decided>,
    events: Option<mpsc::UnboundedSender<AgentEvent>>,
}

#[derive(Debug)]
struct Waiting {
    request: PendingRequest,
    /// A reason for a denial reaches the model.
    takes_reason: bool,
    reply: oneshot::Sender<Answer>,
}

#[derive(Debug)]
struct Decided {
    request_id: String,
    tool_name: String,
    tool_id: Option<teamster_core::Id>,
}

impl Requests {
    /// A policy that asks here, and denies what was not answered within `limit`. Events about the requests of
    /// this run go to the receiver.
    pub fn policy(
        &self,
        run_id: &str,
        limit: Option<Duration>,
        takes_reason: bool,
    ) -> (PermissionPolicy, mpsc::UnboundedReceiver<AgentEvent>) {
        let (events, receiver) = mpsc::unbounded_channel();
        lock(&self.shared).events = Some(events);
        let requests = self.clone();
        let run_id = run_id.to_owned();
        let policy = PermissionPolicy::ask(move |request| {
            requests
                .clone()
                .ask(run_id.clone(), request, limit, takes_reason)
        });
        (policy, receiver)
    }

    /// The requests that wait, in the order in which they came.
    pub fn pending(&self) -> Vec<PendingRequest> {
        let mut shared = lock(&self.shared);
        // The agent may have withdrawn its question.
        shared.waiting.retain(|waiting| !waiting.reply.is_closed());
        shared.waiting.iter().map(|it| it.request.clone()).collect()
    }

    /// Answers a request; the first answer counts.
    pub(crate) fn answer(&self, id: &str, answer: Answer) -> Result<(), (RefusalCode, String)> {
        let mut shared = lock(&self.shared);
        let Some(index) = shared
            .waiting
            .iter()
            .position(|it| it.request.request_id == id)
        else {
            return Err(if shared.answered.iter().any(|it| it == id) {
                (
                    RefusalCode::AlreadyAnswered,
                    format!("request {id} was answered already"),
                )
            } else {
                (
                    RefusalCode::UnknownRequest,
                    format!("no request {id} waits for an answer"),
                )
            });
        };
        let waiting = &shared.waiting[index];
        if let Some(why) = unfit(&waiting.request, &answer, waiting.takes_reason) {
            return Err((RefusalCode::InvalidAnswer, why));
        }
        let waiting = shared.waiting.remove(index);
        shared.remember(id);
        if waiting.reply.send(answer).is_err() {
            return Err((
                RefusalCode::AlreadyAnswered,
                format!("request {id} needs no answer any more"),
            ));
        }
        Ok(())
    }

    /// Marks an event about a request with the request's id. `None` if the event says what was said already.
    pub fn mark(&self, mut event: AgentEvent) -> Option<AgentEvent> {
        let AgentEvent::Permission(permission) = &mut event else {
            return Some(event);
        };
        let mut shared = lock(&self.shared);
        if shared.events.is_none() || permission.request_id.is_some() {
            drop(shared);
            return Some(event);
        }
        match permission.decision {
            // The request has an event of its own, with its id.
            Decision::Requested => return None,
            Decision::Allowed | Decision::Denied => {
                let of_it = |it: &Decided| {
                    it.tool_name == permission.tool_name && it.tool_id == permission.tool_id
                };
                if let Some(index) = shared.decided.iter().position(of_it) {
                    permission.request_id = Some(shared.decided.remove(index).request_id);
                }
            }
            _ => {}
        }
        drop(shared);
        Some(event)
    }

    async fn ask(
        self,
        run_id: String,
        request: PermissionRequest,
        limit: Option<Duration>,
        takes_reason: bool,
    ) -> PermissionAnswer {
        let (reply, answer) = oneshot::channel();
        let (id, decided) = {
            let mut shared = lock(&self.shared);
            shared.last += 1;
            let id = format!("{run_id}/{}", shared.last);
            let mut event = Permission::new(request.tool_name.clone(), Decision::Requested);
            event.tool_id.clone_from(&request.tool_id);
            event.reason.clone_from(&request.message);
            event.request_id = Some(id.clone());
            let decided = Decided {
                request_id: id.clone(),
                tool_name: request.tool_name.clone(),
                tool_id: request.tool_id.clone(),
            };
            let mut pending = PendingRequest::new(id.clone(), &run_id, request);
            pending.expires_at = limit.map(|limit| epoch_ms().saturating_add(millis(limit)));
            shared.waiting.push(Waiting {
                request: pending,
                takes_reason,
                reply,
            });
            if let Some(events) = &shared.events {
                // The receiver lives as long as the run.
                let _ = events.send(AgentEvent::Permission(Box::new(event)));
            }
            (id, decided)
        };
        let answered = match limit {
            Some(limit) => timeout(limit, answer).await.ok(),
            None => Some(answer.await),
        };
        let mut shared = lock(&self.shared);
        shared.waiting.retain(|it| it.request.request_id != id);
        shared.remember(&id);
        shared.decided.push(decided);
        match (answered, limit) {
            (Some(Ok(answer)), _) => answer.into(),
            (None, Some(limit)) => {
                let seconds = limit.as_secs();
                PermissionAnswer::Deny(Some(format!("not answered within {seconds} s")))
            }
            _ => PermissionAnswer::Deny(None),
        }
    }
}

impl Shared {
    fn remember(&mut self, id: &str) {
        if self.answered.iter().any(|it| it == id) {
            return;
        }
        if self.answered.len() >= REMEMBERED {
            self.answered.remove(0);
        }
        self.answered.push(id.to_owned());
    }
}

/// Why the answer does not fit the request.
fn unfit(request: &PendingRequest, answer: &Answer, takes_reason: bool) -> Option<String> {
    match answer {
        Answer::AllowWith { .. } if !request.takes_input => {
            Some("this request takes allow or deny, and no text".to_owned())
        }
        Answer::Allow | Answer::AllowAlways if request.schema.is_some() => Some(
            "this is a question: answer it with the text, with a JSON object of all fields, or with deny"
                .to_owned(),
        ),
        Answer::Deny { reason: Some(_) } if !takes_reason => {
            Some("a reason would not reach this agent: deny without one".to_owned())
        }
        _ => None,
    }
}
