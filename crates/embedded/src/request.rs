//! One answer of the model: a request, its stream, and the request again if it fails.

use std::future::Future;
use std::time::{Duration, Instant};

use teamster_core::time::millis;
use teamster_core::{
    AbortHandle, AgentError, AgentEvent, ErrorCode, Id, Retract, Retry, Text, Thinking,
};

use crate::emit::Emitter;
use crate::http::{Http, next_piece};
use crate::limits::Limits;
use crate::model::Target;
use crate::wire::{AnswerReader, Completed, Delta, Failure, ModelRequest};

/// The first wait before a request is made again; each further one is twice as long.
const FIRST_WAIT: Duration = Duration::from_millis(500);
const LONGEST_WAIT: Duration = Duration::from_secs(8);
/// A service that wants to be left alone for longer is not waited for: the caller may know another one.
const PATIENCE: Duration = Duration::from_mins(1);
/// How long the rest of a stream may take whose answer has come to its end.
const REST: Duration = Duration::from_secs(2);

/// Reason for a missing answer.
#[derive(Debug)]
pub(crate) enum NoAnswer {
    /// The caller wanted it.
    Aborted,
    /// A limit of time was reached.
    Late(AgentError),
    /// The service failed, and not for the first time.
    Failed(AgentError),
}

/// Parameters of a request.
pub(crate) struct Asking<'a> {
    pub(crate) http: &'a Http,
    pub(crate) target: &'a Target,
    pub(crate) limits: Limits,
    pub(crate) retries: u32,
    pub(crate) abort: &'a AbortHandle,
}

/// Progress of an answer.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    /// Its text, of the last attempt.
    pub(crate) text: String,
    /// Time spent in requests.
    pub(crate) spent: Duration,
    /// Something of an answer has come in this run.
    pub(crate) heard: bool,
}

impl Asking<'_> {
    /// Asks until there is an answer or no reason to ask again.
    pub(crate) async fn ask(
        &self,
        request: &ModelRequest<'_>,
        emit: &mut Emitter,
        progress: &mut Progress,
    ) -> Result<Completed, NoAnswer> {
        let mut attempt = 0;
        loop {
            let message = emit.next_message();
            let begun = Instant::now();
            progress.text.clear();
            let mut emitted = false;
            let answer = self
                .once(request, &message, emit, progress, &mut emitted)
                .await;
            progress.spent += begun.elapsed();
            let failure = match answer {
                Ok(completed) => return Ok(completed),
                Err(Broken::Stopped(why)) => return Err(why),
                Err(Broken::Failure(failure)) => failure,
            };
            let wait = failure.retry_after.unwrap_or_else(|| wait_before(attempt));
            let error = error(&failure);
            if !error.retryable || attempt >= self.retries || wait > PATIENCE {
                return Err(NoAnswer::Failed(error));
            }
            attempt += 1;
            if emitted {
                emit.event(AgentEvent::Retract(Retract::new(message))).await;
            }
            let retry = Retry::new(attempt, error)
                .max_attempts(self.retries)
                .delay_ms(millis(wait));
            emit.event(AgentEvent::Retry(Box::new(retry))).await;
            tokio::select! {
                () = tokio::time::sleep(wait) => {}
                () = self.abort.aborted() => return Err(NoAnswer::Aborted),
            }
        }
    }

    async fn once(
        &self,
        request: &ModelRequest<'_>,
        message: &Id,
        emit: &mut Emitter,
        progress: &mut Progress,
        emitted: &mut bool,
    ) -> Result<Completed, Broken> {
        let wire = self.target.wire().wire();
        let body = wire.encode(request).to_string().into_bytes();
        let post = self.http.post(self.target, body);
        let response = self.in_time(post, !progress.heard).await??;
        let mut body = response.into_body();
        let mut reader = AnswerReader::new(wire);
        let mut deltas = Vec::new();
        loop {
            let piece = if reader.has_ended() {
                // Figures may still come; some services leave the connection open after them.
                match tokio::time::timeout(REST, next_piece(&mut body)).await {
                    Ok(Some(Ok(piece))) => piece,
                    Ok(Some(Err(_)) | None) | Err(_) => break,
                }
            } else {
                match self.in_time(next_piece(&mut body), !progress.heard).await? {
                    Some(piece) => piece?,
                    None => break,
                }
            };
            progress.heard = true;
            let read = reader.bytes(&piece, &mut deltas);
            send(&mut deltas, message, emit, progress, emitted).await;
            read?;
        }
        let completed = reader.finish(&mut deltas);
        send(&mut deltas, message, emit, progress, emitted).await;
        Ok(completed?)
    }

    /// The output of a future, unless the run is aborted or the model sends nothing for too long.
    async fn in_time<F: Future>(&self, future: F, first: bool) -> Result<F::Output, Broken> {
        let limit = self.limits.of_model(first);
        tokio::select! {
            biased;
            () = self.abort.aborted() => Err(Broken::Stopped(NoAnswer::Aborted)),
            done = future => Ok(done),
            () = sleep(limit) => {
                Err(Broken::Stopped(NoAnswer::Late(self.limits.model_error(first))))
            }
        }
    }
}

enum Broken {
    Failure(Failure),
    Stopped(NoAnswer),
}

impl From<Failure> for Broken {
    fn from(failure: Failure) -> Self {
        Self::Failure(failure)
    }
}

/// Sleeps; forever if the limit is none.
pub(crate) async fn sleep(limit: Duration) {
    match tokio::time::Instant::now().checked_add(limit) {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

async fn send(
    deltas: &mut Vec<Delta>,
    message: &Id,
    emit: &mut Emitter,
    progress: &mut Progress,
    emitted: &mut bool,
) {
    for delta in deltas.drain(..) {
        *emitted = true;
        let event = match delta {
            Delta::Text(text) => {
                progress.text.push_str(&text);
                AgentEvent::Text(Text::new(text).message_id(message.clone()))
            }
            Delta::Reasoning(text) => {
                AgentEvent::Thinking(Thinking::new(text).message_id(message.clone()))
            }
        };
        emit.event(event).await;
    }
}

/// The failure of a service as an error of the run.
fn error(failure: &Failure) -> AgentError {
    AgentError::new(ErrorCode::CliError, failure.kind, failure.message.clone())
        .retry_after_ms(failure.retry_after.map(millis))
}

/// How long to wait before the request is made again for the `attempt`th time, from 0: a little more or less,
/// so that not all of many runs come back at once.
fn wait_before(attempt: u32) -> Duration {
    let wait = FIRST_WAIT.saturating_mul(2u32.saturating_pow(attempt));
    let wait = wait.min(LONGEST_WAIT);
    let nanos = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .map_or(0, |now| now.subsec_nanos());
    // From three quarters to five quarters.
    wait.mul_f64(0.75 + f64::from(nanos % 1000) / 2000.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_to_a_bound() {
        for (attempt, low, high) in [
            (0, 375, 625),
            (1, 750, 1250),
            (9, 6000, 10_000),
            (40, 6000, 10_000),
        ] {
            let wait = millis(wait_before(attempt));
            assert!((low..=high).contains(&wait), "{attempt}: {wait}");
        }
    }
}
