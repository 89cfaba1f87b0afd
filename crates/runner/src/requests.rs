//! Pending requests of the agent, which any client can answer.

use std::collections::{BTreeSet, HashSet, VecDeque};
use std::future::pending;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use teamster_api::{Answer, PendingRequest, RefusalCode};
use teamster_core::sync::lock;
use teamster_core::time::{epoch_ms, millis};
use teamster_core::{
    AgentEvent, Decision, Id, PermissionAnswer, PermissionEvent, PermissionPolicy,
    PermissionRequest,
};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{sleep, timeout};

use crate::old_text::old_text;

/// Number of settled requests that are remembered, to distinguish a late answer from a wrong id.
const MAX_SETTLED: usize = 1000;
/// Number of decisions that wait for their event. Some CLIs print none.
const MAX_DECIDED: usize = 100;
/// Time that the event of a request waits for that of its tool call. Some agents report no call of a sub-agent.
const CALL_LIMIT: Duration = Duration::from_secs(2);
/// Reason that a withdrawn request needs no answer.
const WITHDRAWN: &str = "the agent withdrew it";

/// Pending requests of a run. Clones share their state.
#[derive(Debug, Clone, Default)]
pub struct Requests {
    shared: Arc<Mutex<Shared>>,
}

#[derive(Debug, Default)]
struct Shared {
    run_id: String,
    last: u64,
    waiting: Vec<WaitingRequest>,
    /// Ids of settled requests, each with the reason.
    settled: VecDeque<(String, String)>,
    /// Decisions whose event has not arrived.
    decided: Vec<DecidedRequest>,
    events: Option<mpsc::UnboundedSender<AgentEvent>>,
    /// Tool calls that the log has, and that have not ended.
    calls: HashSet<Id>,
    /// Events of requests whose tool call is still on its way to the log.
    early: Vec<PermissionEvent>,
    /// Providers whose policy creates requests.
    asks: BTreeSet<String>,
    /// The run's working directory.
    directory: Option<PathBuf>,
}

#[derive(Debug)]
struct WaitingRequest {
    request: PendingRequest,
    reply: oneshot::Sender<Answer>,
}

#[derive(Debug)]
struct DecidedRequest {
    request_id: String,
    tool_name: String,
    tool_id: Option<Id>,
    timed_out: bool,
}

/// Pending requests of a run, and the events about them for its log. Its runner takes both.
#[derive(Debug)]
pub struct RequestChannel {
    pub(crate) requests: Requests,
    pub(crate) events: mpsc::UnboundedReceiver<AgentEvent>,
}

impl RequestChannel {
    /// Creates the channel of the run with this id.
    pub fn new(run_id: impl Into<String>) -> Self {
        let (sender, events) = mpsc::unbounded_channel();
        let requests = Requests::default();
        {
            let mut shared = lock(&requests.shared);
            shared.run_id = run_id.into();
            shared.events = Some(sender);
        }
        Self { requests, events }
    }

    /// Sets the run's working directory. A request to write a file in it as a whole has the file's current text
    /// ([`PendingRequest::old_text`]).
    #[must_use]
    pub fn in_directory(self, directory: Option<PathBuf>) -> Self {
        lock(&self.requests.shared).directory = directory;
        self
    }

    /// Creates a channel without requests.
    pub(crate) fn none() -> Self {
        Self {
            requests: Requests::default(),
            events: mpsc::unbounded_channel().1,
        }
    }

    /// Returns the requests, for the policies of the run's agents.
    pub fn requests(&self) -> Requests {
        self.requests.clone()
    }

    /// Returns the next event about a request.
    pub async fn next(&mut self) -> Option<AgentEvent> {
        self.events.recv().await
    }
}

impl Requests {
    /// Returns a policy for this provider that creates requests here and denies them after `limit` without an answer.
    pub fn policy(&self, provider: &str, limit: Option<Duration>) -> PermissionPolicy {
        self.policy_for(provider, limit, true)
    }

    /// Returns a policy as [`policy`](Self::policy) does, for a provider of which no reason of a denial reaches the model
    /// ([`denial_reason`](teamster_core::SessionCapabilities::denial_reason)).
    pub fn policy_without_reasons(
        &self,
        provider: &str,
        limit: Option<Duration>,
    ) -> PermissionPolicy {
        self.policy_for(provider, limit, false)
    }

    fn policy_for(
        &self,
        provider: &str,
        limit: Option<Duration>,
        takes_reason: bool,
    ) -> PermissionPolicy {
        let requests = self.clone();
        lock(&self.shared).asks.insert(provider.to_owned());
        PermissionPolicy::ask(move |request| requests.clone().ask(request, limit, takes_reason))
    }

    /// Returns the pending requests, oldest first.
    pub fn pending(&self) -> Vec<PendingRequest> {
        let mut shared = lock(&self.shared);
        shared.drop_withdrawn();
        shared.waiting.iter().map(|it| it.request.clone()).collect()
    }

    /// Answers a request. The first answer counts.
    ///
    /// # Errors
    ///
    /// Refused with a code and a message for people if the request is unknown or settled, or the answer does
    /// not fit.
    pub fn answer(&self, id: &str, answer: Answer) -> Result<(), (RefusalCode, String)> {
        let mut shared = lock(&self.shared);
        shared.drop_withdrawn();
        let Some(index) = shared.position(id) else {
            let settled = shared.settled.iter().find(|(settled, _)| settled == id);
            return Err(match settled {
                Some((_, why)) => (
                    RefusalCode::AlreadyAnswered,
                    format!("request {id} is already settled: {why}"),
                ),
                None => (
                    RefusalCode::UnknownRequest,
                    format!("no pending request {id}"),
                ),
            });
        };
        if let Some(why) = mismatch(&shared.waiting[index].request, &answer) {
            return Err((RefusalCode::InvalidAnswer, why));
        }
        let why = match &answer {
            Answer::Deny { .. } => "it was denied",
            Answer::AllowWith { .. } => "it was answered",
            _ => "it was allowed",
        };
        let waiting = shared.waiting.remove(index);
        if waiting.reply.send(answer).is_err() {
            shared.settle(id, WITHDRAWN);
            return Err((
                RefusalCode::AlreadyAnswered,
                format!("request {id} is already settled: {WITHDRAWN}"),
            ));
        }
        shared.settle(id, why);
        Ok(())
    }

    /// Marks an event of this provider about a request with the request's id. `None` if the event repeats a written one.
    /// Requests of a provider without a [`policy`](Self::policy) are answered elsewhere.
    #[doc(hidden)]
    pub fn mark(&self, provider: &str, mut event: AgentEvent) -> Option<AgentEvent> {
        let permission = match &mut event {
            AgentEvent::ToolUse(call) => {
                lock(&self.shared).called(&call.tool_id);
                return Some(event);
            }
            AgentEvent::ToolResult(result) => {
                lock(&self.shared).calls.remove(&result.tool_id);
                return Some(event);
            }
            AgentEvent::Permission(permission) => permission,
            _ => return Some(event),
        };
        let mut shared = lock(&self.shared);
        let is_asked = shared.asks.contains(provider) && shared.events.is_some();
        if !is_asked || permission.request_id.is_some() {
            drop(shared);
            return Some(event);
        }
        match permission.decision {
            // The request has an own event with its id.
            Decision::Requested => {
                if let Some(tool_id) = &permission.tool_id {
                    shared.called(tool_id);
                }
                return None;
            }
            Decision::Allowed | Decision::Denied => {
                let of_it = |it: &DecidedRequest| {
                    it.tool_name == permission.tool_name && it.tool_id == permission.tool_id
                };
                if let Some(index) = shared.decided.iter().position(of_it) {
                    let decided = shared.decided.remove(index);
                    permission.request_id = Some(decided.request_id);
                    permission.timed_out = decided.timed_out;
                }
            }
            _ => {}
        }
        drop(shared);
        Some(event)
    }

    async fn ask(
        self,
        mut request: PermissionRequest,
        limit: Option<Duration>,
        takes_reason: bool,
    ) -> PermissionAnswer {
        let directory = lock(&self.shared).directory.clone();
        if let Some(directory) = directory {
            request.old_text = old_text(&request, directory).await;
        }
        let (reply, answer) = oneshot::channel();
        let (id, mut decided, is_early) = {
            let mut shared = lock(&self.shared);
            shared.last += 1;
            let id = format!("{}/{}", shared.run_id, shared.last);
            let mut event = PermissionEvent::new(request.tool_name.clone(), Decision::Requested);
            event.tool_id.clone_from(&request.tool_id);
            event.reason.clone_from(&request.message);
            event.request_id = Some(id.clone());
            let decided = DecidedRequest {
                request_id: id.clone(),
                tool_name: request.tool_name.clone(),
                tool_id: request.tool_id.clone(),
                timed_out: false,
            };
            let mut pending = PendingRequest::new(id.clone(), &shared.run_id, request);
            pending.takes_reason = takes_reason;
            pending.expires_at_ms = limit.map(|limit| epoch_ms().saturating_add(millis(limit)));
            shared.waiting.push(WaitingRequest {
                request: pending,
                reply,
            });
            let is_early = (event.tool_id.as_ref()).is_some_and(|id| !shared.calls.contains(id));
            if is_early {
                shared.early.push(event);
            } else {
                shared.send(event);
            }
            (id, decided, is_early)
        };
        let mut answer = pin!(async move {
            match limit {
                Some(limit) => timeout(limit, answer).await.ok(),
                None => Some(answer.await),
            }
        });
        let is_late = async {
            if is_early {
                sleep(CALL_LIMIT).await;
            } else {
                pending::<()>().await;
            }
        };
        let answered = tokio::select! {
            biased;
            answered = &mut answer => answered,
            () = is_late => {
                lock(&self.shared).send_early(&id);
                answer.await
            }
        };
        let mut shared = lock(&self.shared);
        shared.send_early(&id);
        shared.waiting.retain(|it| it.request.request_id != id);
        if shared.decided.len() == MAX_DECIDED {
            shared.decided.remove(0);
        }
        decided.timed_out = answered.is_none();
        shared.decided.push(decided);
        match (answered, limit) {
            (Some(Ok(answer)), _) => answer.into(),
            (None, Some(limit)) => {
                let limit = format!("{limit:?}");
                shared.settle(
                    &id,
                    format!("it was denied after {limit} without an answer"),
                );
                PermissionAnswer::deny(format!("no answer within {limit}"))
            }
            _ => PermissionAnswer::Deny(None),
        }
    }
}

impl Shared {
    fn position(&self, id: &str) -> Option<usize> {
        self.waiting
            .iter()
            .position(|it| it.request.request_id == id)
    }

    /// Notes that the log has a tool call, or an agent's own event about it: the event of its request can follow.
    fn called(&mut self, tool_id: &Id) {
        if self.asks.is_empty() {
            return;
        }
        self.calls.insert(Arc::clone(tool_id));
        self.drop_withdrawn();
        let of_it = |event: &PermissionEvent| event.tool_id.as_ref() == Some(tool_id);
        while let Some(index) = self.early.iter().position(of_it) {
            let event = self.early.remove(index);
            self.send(event);
        }
    }

    /// Sends the event of this request if it still waits for its tool call.
    fn send_early(&mut self, request_id: &str) {
        let of_it = |event: &PermissionEvent| event.request_id.as_deref() == Some(request_id);
        if let Some(index) = self.early.iter().position(of_it) {
            let event = self.early.remove(index);
            self.send(event);
        }
    }

    fn send(&self, event: PermissionEvent) {
        if let Some(events) = &self.events {
            // The receiver lives as long as the run.
            let _ = events.send(AgentEvent::Permission(Box::new(event)));
        }
    }

    fn drop_withdrawn(&mut self) {
        let closed = |it: &&WaitingRequest| it.reply.is_closed();
        let withdrawn = self.waiting.iter().filter(closed);
        let withdrawn: Vec<_> = withdrawn.map(|it| it.request.request_id.clone()).collect();
        for id in withdrawn {
            self.waiting.retain(|it| it.request.request_id != id);
            self.early
                .retain(|event| event.request_id.as_ref() != Some(&id));
            self.settle(&id, WITHDRAWN);
        }
    }

    fn settle(&mut self, id: &str, why: impl Into<String>) {
        if self.settled.len() >= MAX_SETTLED {
            self.settled.pop_front();
        }
        self.settled.push_back((id.to_owned(), why.into()));
    }
}

/// Returns why the answer does not fit the request.
fn mismatch(request: &PendingRequest, answer: &Answer) -> Option<String> {
    match answer {
        Answer::AllowWith { .. } if !request.takes_input => {
            Some("this request takes only allow or deny".to_owned())
        }
        Answer::Allow | Answer::AllowAlways if request.schema.is_some() => Some(
            "this is a question: answer it with the text, with a JSON object of all fields, or with deny"
                .to_owned(),
        ),
        Answer::Deny { reason: Some(_) } if !request.takes_reason => {
            Some("a reason would not reach this agent: deny without one".to_owned())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests;
