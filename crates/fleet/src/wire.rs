//! Requests to the machine of a live run, and their answers.

use std::sync::Arc;
use std::time::Duration;

use async_nats::Request;
use async_nats::client::RequestErrorKind;
use serde::{Deserialize, Serialize};
use teamster_api::{
    AppliedChanges, Command, DiffQuery, DiscardedChanges, ProblemCode, Reply, RunView,
    ServiceError, WorkspaceDiff,
};
use teamster_core::time::millis;
use teamster_core::{AgentError, ErrorKind};

use crate::Fleet;
use crate::names::RunKey;

/// Version of these messages.
const VERSION: u32 = 1;
/// Time in which a machine must answer a command: an agent may need a while to be interrupted.
const ANSWER: Duration = Duration::from_secs(20);
/// Time in which a machine must answer what it knows itself.
const LOOK: Duration = Duration::from_secs(5);

/// A request.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Asked {
    version: u32,
    pub(crate) question: Question,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Question {
    /// The run's state.
    Show,
    /// Carry this out.
    Command(Command),
    /// The changes so far.
    Diff(DiffQuery),
    /// Apply the changes of an ended run to the files of the machine.
    Apply,
    /// Discard the changes of an ended run.
    Discard,
}

/// An answer.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Answered {
    View(Box<RunView>),
    Reply(Box<Reply>),
    Diff(Box<WorkspaceDiff>),
    Applied(Box<AppliedChanges>),
    Discarded(Box<DiscardedChanges>),
    Failed(Box<Failure>),
}

impl Answered {
    /// Leaves out the texts of files in requests. Returns whether there were any.
    pub(crate) fn leave_out_files(&mut self) -> bool {
        let requests = match self {
            Self::View(view) => &mut Arc::make_mut(&mut view.summary).requests,
            Self::Reply(reply) => match &mut **reply {
                Reply::Requests { requests } => requests,
                _ => return false,
            },
            _ => return false,
        };
        let texts = requests.iter_mut().filter_map(|it| it.old_text.take());
        texts.count() > 0
    }
}

/// An error of a service as data, without the processes of its machine.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Failure {
    code: Option<ProblemCode>,
    kind: Option<ErrorKind>,
    parameter: Option<String>,
    agent_error: Option<Box<AgentError>>,
    run_id: Option<String>,
    message: String,
    retryable: bool,
    /// In milliseconds.
    retry_after: Option<u64>,
}

impl From<ServiceError> for Failure {
    fn from(error: ServiceError) -> Self {
        Self {
            code: error.code,
            kind: error.kind,
            parameter: error.parameter,
            agent_error: error.agent_error,
            run_id: error.run_id,
            message: error.message,
            retryable: error.retryable,
            retry_after: error.retry_after.map(millis),
        }
    }
}

impl From<Failure> for ServiceError {
    fn from(failure: Failure) -> Self {
        let mut error = Self::unreachable(failure.message);
        error.code = failure.code;
        error.kind = failure.kind;
        error.parameter = failure.parameter;
        error.agent_error = failure.agent_error;
        error.run_id = failure.run_id;
        error.retryable = failure.retryable;
        error.retry_after = failure.retry_after.map(Duration::from_millis);
        error
    }
}

impl Fleet {
    /// Asks the machine of a live run. Returns `None` if none listens, which is known at once.
    pub(crate) async fn ask(
        &self,
        key: &RunKey,
        question: Question,
    ) -> Result<Option<Answered>, ServiceError> {
        self.ask_at(key.control(), key, question).await
    }

    /// Asks the worker that had a run. Returns `None` if it is not there.
    pub(crate) async fn ask_late(
        &self,
        worker: &str,
        key: &RunKey,
        question: Question,
    ) -> Result<Option<Answered>, ServiceError> {
        self.ask_at(key.late_control(worker), key, question).await
    }

    async fn ask_at(
        &self,
        subject: String,
        key: &RunKey,
        question: Question,
    ) -> Result<Option<Answered>, ServiceError> {
        let limit = match question {
            Question::Show => LOOK,
            _ => ANSWER,
        };
        let asked = Asked {
            version: VERSION,
            question,
        };
        let payload = serde_json::to_vec(&asked).map_err(|error| internal(&error))?;
        let request = Request::new().payload(payload.into()).timeout(Some(limit));
        let sent = self.client.send_request(subject.clone(), request);
        match self.unless_refused(&subject, sent).await? {
            Ok(message) => match serde_json::from_slice(&message.payload) {
                Ok(Answered::Failed(failure)) => Err((*failure).into()),
                Ok(answered) => Ok(Some(answered)),
                Err(error) => Err(internal(&error)),
            },
            Err(error) => match error.kind() {
                RequestErrorKind::NoResponders => Ok(None),
                RequestErrorKind::MaxPayloadExceeded => Err(ServiceError::new(
                    ProblemCode::BodyTooLarge,
                    "the message is too large for the fleet's server: leave images out",
                )),
                _ => Err(self.refusal(&subject).unwrap_or_else(|| {
                    let message =
                        format!("the machine of run {} does not answer: {error}", key.run);
                    ServiceError::new(ProblemCode::RunnerNotResponding, message)
                })),
            },
        }
    }
}

/// The error of a message that this version cannot read.
pub(crate) fn internal(error: &serde_json::Error) -> ServiceError {
    let message = format!("a message of another version of teamster: {error}");
    ServiceError::new(ProblemCode::Internal, message)
}
