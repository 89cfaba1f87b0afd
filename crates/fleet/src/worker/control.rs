//! Answers to requests about a run of this machine.

use std::sync::Arc;
use std::time::Duration;

use async_nats::Subject;
use futures_core::future::BoxFuture;
use teamster_api::{ProblemCode, ServiceError};
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use super::outside::Outside;
use super::{Shared, bring};
use crate::names::{RunKey, late_controls};
use crate::records::{PAUSE, next, not_found};
use crate::wire::{Answered, Asked, Question, internal};

/// Time in which a runner must accept its run.
const STARTS: Duration = Duration::from_secs(15);

/// The number of requests that are answered at once.
const AT_ONCE: usize = 64;

/// Returns whether this is the inbox of a request, or what stands for one of another account. Who asks chooses the subject
/// of the answer, and a worker may publish more than that user. And a consumer delivers to any subject, also for one who
/// may not publish there.
pub(super) fn is_inbox(reply: &Subject) -> bool {
    reply.starts_with("_INBOX") || reply.starts_with("_R_.")
}

/// Listens for requests about a run, until this is dropped. Those that have arrived are answered.
#[derive(Debug)]
pub(super) struct Control {
    /// Dropped at the end.
    _listens: oneshot::Sender<()>,
}

impl Control {
    /// Begins to listen for requests about a live run. From then on, they reach this machine.
    pub(super) async fn listen(shared: &Arc<Shared>, key: &RunKey) -> Result<Self, ServiceError> {
        let key = key.clone();
        Self::on(shared, key.control(), move |_, _| {
            let key = key.clone();
            Box::pin(async move { Some(key) })
        })
        .await
    }

    /// Begins to listen for requests about runs that have ended here.
    pub(super) async fn listen_late(shared: &Arc<Shared>) -> Result<Self, ServiceError> {
        let prefix = late_controls(&shared.config.name);
        let subjects = format!("{prefix}>");
        Self::on(shared, subjects, move |shared, subject| {
            let key = subject.strip_prefix(&prefix).and_then(RunKey::parse);
            Box::pin(async move {
                let key = key?;
                let found = shared.fleet.read(&key).await.ok()?;
                let record = found.record?;
                // Another machine may have had the name.
                let is_here = record.worker_machine == Some(shared.machine_tag);
                (record.worker? == shared.config.name && is_here).then_some(key)
            })
        })
        .await
    }

    async fn on(
        shared: &Arc<Shared>,
        subjects: String,
        run_of: impl Fn(Arc<Shared>, &str) -> BoxFuture<'static, Option<RunKey>> + Send + 'static,
    ) -> Result<Self, ServiceError> {
        let client = shared.fleet.client.clone();
        let subscribed = client.subscribe(subjects.clone()).await;
        let mut requests = subscribed.map_err(|error| shared.fleet.failed(&subjects, error))?;
        // The server has it before the record is changed.
        let flushed = client.flush().await;
        flushed.map_err(|error| shared.fleet.failed(&subjects, error))?;
        let shared = shared.clone();
        let (listens, mut ends) = oneshot::channel();
        tokio::spawn(async move {
            let mut answers = JoinSet::new();
            let mut has_ended = false;
            loop {
                let request = tokio::select! {
                    request = next(&mut requests) => request,
                    _ = &mut ends, if !has_ended => {
                        // What the server has sent until then still comes.
                        has_ended = true;
                        if requests.drain().await.is_err() {
                            break;
                        }
                        continue;
                    }
                };
                let Some(request) = request else { break };
                while answers.try_join_next().is_some() {}
                let Some(reply) = request.reply.clone().filter(is_inbox) else {
                    continue;
                };
                // Each may wait for its agent.
                while answers.len() >= AT_ONCE {
                    answers.join_next().await;
                }
                let run = run_of(shared.clone(), &request.subject);
                let shared = shared.clone();
                answers.spawn(async move {
                    let answer = match run.await {
                        Some(key) => answer(&shared, &key, &request.payload).await,
                        None => Err(not_found(&request.subject)),
                    };
                    let answer =
                        answer.unwrap_or_else(|error| Answered::Failed(Box::new(error.into())));
                    let client = &shared.fleet.client;
                    let message = message(answer, client.server_info().max_payload);
                    // Without an answer, the other side asks again.
                    let _ = client.publish(reply, message.into()).await;
                });
            }
            while answers.join_next().await.is_some() {}
        });
        Ok(Self { _listens: listens })
    }
}

/// Returns the message of an answer. One that would have more than `most` bytes is without the texts of files, which only
/// help to understand a request, or else it is an error.
fn message(mut answer: Answered, most: usize) -> Vec<u8> {
    let json = |answer: &Answered| serde_json::to_vec(answer).unwrap_or_default();
    let mut message = json(&answer);
    if message.len() > most && answer.leave_out_files() {
        message = json(&answer);
    }
    if message.len() > most {
        let problem = "the answer is too large for the fleet's server: ask for less, or read it on the machine of the run";
        let error = ServiceError::new(ProblemCode::BodyTooLarge, problem);
        message = json(&Answered::Failed(Box::new(error.into())));
    }
    message
}

/// Returns the answer, with the names that the run has outside.
async fn answer(shared: &Shared, key: &RunKey, payload: &[u8]) -> Result<Answered, ServiceError> {
    let asked: Asked = serde_json::from_slice(payload).map_err(|error| internal(&error))?;
    let outside = Outside::of(key).with_clock(&shared.fleet).await;
    let answered = answer_here(shared, key, &outside, asked.question).await;
    answered.map_err(|error| outside.error(error))
}

async fn answer_here(
    shared: &Shared,
    key: &RunKey,
    outside: &Outside,
    question: Question,
) -> Result<Answered, ServiceError> {
    let run = &*key.local();
    Ok(match question {
        Question::Show => {
            let mut view = shared.runs.show(run).await?;
            // The fleet has it, and it may be larger than a message.
            view.prompt = None;
            Answered::View(Box::new(outside.view(view)))
        }
        Question::Command(command) => {
            shared.config.policy.check_command(&command)?;
            let command = outside.command(command);
            let until = Instant::now() + STARTS;
            let reply = loop {
                match shared.runs.send(run, command.clone()).await {
                    // Its runner is being started.
                    Err(error)
                        if error.code == Some(ProblemCode::RunNotFound)
                            && Instant::now() < until =>
                    {
                        sleep(PAUSE).await;
                    }
                    // Not even then: its workspace is being made.
                    Err(error) if error.code == Some(ProblemCode::RunNotFound) => {
                        let message = format!("the agent of run {run} is not started yet");
                        return Err(ServiceError::new(ProblemCode::RunnerNotResponding, message));
                    }
                    reply => break reply?,
                }
            };
            Answered::Reply(Box::new(outside.reply(reply)))
        }
        Question::Diff(query) => Answered::Diff(Box::new(shared.runs.diff(run, query).await?)),
        Question::Apply => Answered::Applied(Box::new(shared.runs.apply(run).await?)),
        Question::Discard => {
            let discarded = shared.runs.discard(run).await?;
            bring::forget_changes(shared, key).await?;
            Answered::Discarded(Box::new(discarded))
        }
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use teamster_api::{PendingRequest, Reply, RunInfo, RunSummary, RunView, ViewState};
    use teamster_core::{PermissionRequest, ToolKind};

    use super::*;

    #[test]
    fn too_large_answer_has_requests_without_texts_of_files() {
        let input = json!({"path": "a", "content": "new".repeat(200)});
        let mut request = PermissionRequest::new(1, "write", ToolKind::Edit, input);
        request.old_text = Some("old\n".repeat(1000));
        let requests = vec![PendingRequest::new("r/1", "r", request)];
        let mut summary = RunSummary::new(RunInfo::new("r", "claude"), ViewState::Waiting);
        summary.requests.clone_from(&requests);
        let view = Answered::View(Box::new(RunView::new(Arc::new(summary), None)));
        let reply = Answered::Reply(Box::new(Reply::Requests { requests }));
        for (answer, place) in [(view, "/view/requests/0"), (reply, "/reply/requests/0")] {
            let read = |most| {
                let message = message(answer.clone(), most);
                assert!(message.len() <= most);
                serde_json::from_slice::<Value>(&message).unwrap()
            };
            let text = |answer: &Value| answer.pointer(place).map(|it| it["oldText"].is_string());
            assert_eq!(text(&read(10_000)), Some(true));
            assert_eq!(text(&read(2_000)), Some(false));
            assert_eq!(read(500)["failed"]["code"], "BODY_TOO_LARGE");
        }
    }
}
