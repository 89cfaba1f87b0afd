//! Answers to requests about a run of this machine.

use std::sync::Arc;
use std::time::Duration;

use teamster_api::{ProblemCode, RunService, ServiceError};
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use super::Shared;
use crate::names::RunKey;
use crate::records::{PAUSE, next};
use crate::wire::{Answered, Asked, Question, internal};

/// Time in which a runner must accept its run.
const STARTS: Duration = Duration::from_secs(15);

/// Listens for requests about a run, until this is dropped. Those that have arrived are answered.
#[derive(Debug)]
pub(super) struct Control {
    /// Dropped at the end.
    _listens: oneshot::Sender<()>,
}

impl Control {
    /// Begins to listen. From then on, requests reach this machine.
    pub(super) async fn listen(shared: &Arc<Shared>, key: &RunKey) -> Result<Self, ServiceError> {
        let client = shared.fleet.client.clone();
        let subscribed = client.subscribe(key.control()).await;
        let mut requests =
            subscribed.map_err(|error| shared.fleet.failed(&key.control(), error))?;
        // The server has it before the record is changed.
        let flushed = client.flush().await;
        flushed.map_err(|error| shared.fleet.failed(&key.control(), error))?;
        let (shared, run) = (shared.clone(), key.run.clone());
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
                let Some(reply) = request.reply.clone() else {
                    continue;
                };
                let (shared, run) = (shared.clone(), run.clone());
                answers.spawn(async move {
                    let answer = answer(&shared, &run, &request.payload).await;
                    let answer =
                        answer.unwrap_or_else(|error| Answered::Failed(Box::new(error.into())));
                    let json = serde_json::to_vec(&answer).unwrap_or_default();
                    // Without an answer, the other side asks again.
                    let _ = shared.fleet.client.publish(reply, json.into()).await;
                });
            }
            while answers.join_next().await.is_some() {}
        });
        Ok(Self { _listens: listens })
    }
}

async fn answer(shared: &Shared, run: &str, payload: &[u8]) -> Result<Answered, ServiceError> {
    let asked: Asked = serde_json::from_slice(payload).map_err(|error| internal(&error))?;
    Ok(match asked.question {
        Question::Show => Answered::View(Box::new(shared.runs.show(run).await?)),
        Question::Command(command) => {
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
                    reply => break reply?,
                }
            };
            Answered::Reply(Box::new(reply))
        }
        Question::Diff(query) => Answered::Diff(Box::new(shared.runs.diff(run, query).await?)),
    })
}
