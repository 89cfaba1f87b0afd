//! One answer of the model: a request, its stream, and retries.

use std::future::Future;
use std::time::{Duration, Instant};

use hyper::body::Incoming;
use hyper::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderName};
use teamster_core::time::{epoch_ms, millis};
use teamster_core::{
    AbortHandle, AgentError, ErrorCode, ErrorKind, Id, Retract, Retry, Text, Thinking,
};
use teamster_process::limit_reset_ms;

use crate::emit::Emitter;
use crate::http::{Http, next_piece};
use crate::limits::Limits;
use crate::model::Target;
use crate::wire::{AnswerReader, Completed, Delta, Failure, ModelRequest};

/// Delay before the first retry. Each further delay is twice as long.
const FIRST_WAIT: Duration = Duration::from_millis(500);
const LONGEST_WAIT: Duration = Duration::from_secs(8);
/// Maximum delay that a service may request. With a longer one, the request fails, because the caller may have a
/// fallback.
const LONGEST_DELAY: Duration = Duration::from_mins(1);
/// Time limit for the rest of a stream after the end of the answer.
const REST: Duration = Duration::from_secs(2);

/// Reason why there is no answer.
#[derive(Debug)]
pub(crate) enum NoAnswer {
    /// The caller aborted the run.
    Aborted,
    /// A time limit was reached.
    Late(AgentError),
    /// The service failed, with no retries left or none worthwhile.
    Failed(AgentError),
}

pub(crate) struct Asking<'a> {
    pub(crate) http: &'a Http,
    pub(crate) target: &'a Target,
    pub(crate) limits: Limits,
    pub(crate) retries: u32,
    pub(crate) abort: &'a AbortHandle,
}

#[derive(Debug, Default)]
pub(crate) struct Progress {
    /// Text of the last attempt.
    pub(crate) text: String,
    /// Total duration of requests.
    pub(crate) spent: Duration,
    /// True once a chunk of any answer was received in this run.
    pub(crate) heard: bool,
}

impl Asking<'_> {
    /// Sends the request, with retries.
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
            let error = error(&failure);
            let reset = error.resets_at_ms.map(|at| at.saturating_sub(epoch_ms()));
            let wait = failure.retry_after.or(reset.map(Duration::from_millis));
            let wait = wait.unwrap_or_else(|| wait_before(attempt));
            if !error.retryable || attempt >= self.retries || wait > LONGEST_DELAY {
                return Err(NoAnswer::Failed(error));
            }
            attempt += 1;
            if emitted {
                emit.event(Retract::new(message)).await;
            }
            let retry = Retry::new(attempt, error)
                .max_attempts(self.retries)
                .delay_ms(millis(wait));
            emit.event(retry).await;
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
        let (response, address) = self.in_time(post, !progress.heard).await??;
        let header = |name: HeaderName| {
            let value = response.headers().get(&name)?.to_str().ok()?;
            Some(format!(", {name}: {value}"))
        };
        // Origin of an unreadable answer, for its error.
        let origin = [
            Some(format!("from {address}")),
            header(CONTENT_TYPE),
            header(CONTENT_ENCODING),
        ];
        let origin: String = origin.into_iter().flatten().collect();
        let answer = self.read(response.into_body(), message, emit, progress, emitted);
        answer.await.map_err(|broken| match broken {
            Broken::Failure(mut failure) => {
                failure.message = format!("{} ({origin})", failure.message);
                Broken::Failure(failure)
            }
            stopped @ Broken::Stopped(_) => stopped,
        })
    }

    async fn read(
        &self,
        mut body: Incoming,
        message: &Id,
        emit: &mut Emitter,
        progress: &mut Progress,
        emitted: &mut bool,
    ) -> Result<Completed, Broken> {
        let mut reader = AnswerReader::new(self.target.wire().wire());
        let mut deltas = Vec::new();
        loop {
            let piece = if reader.has_ended() {
                // Usage may still follow. Some services then leave the connection open.
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

    /// Returns a future's output, unless the run is aborted or the model's time limit is reached.
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

/// Sleeps; forever if the limit has no deadline.
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
        let message = message.clone();
        match delta {
            Delta::Text(text) => {
                progress.text.push_str(&text);
                emit.event(Text::new(text).message_id(message)).await;
            }
            Delta::Reasoning(text) => emit.event(Thinking::new(text).message_id(message)).await,
        }
    }
}

/// Converts the failure of a service to an error of the run.
fn error(failure: &Failure) -> AgentError {
    let error = AgentError::new(ErrorCode::CliError, failure.kind, failure.message.clone());
    let retryable = error.retryable && !failure.is_final;
    let is_limit = matches!(failure.kind, ErrorKind::Quota | ErrorKind::RateLimit);
    let reset = (is_limit && failure.retry_after.is_none())
        .then(|| limit_reset_ms(&failure.message))
        .flatten();
    error
        .resets_at_ms(reset)
        .retryable(retryable)
        .retry_after_ms(failure.retry_after.map(millis))
}

/// Returns the delay before retry number `attempt`, counted from 0. Jitter keeps concurrent runs from retrying at the
/// same time.
fn wait_before(attempt: u32) -> Duration {
    let wait = FIRST_WAIT.saturating_mul(2u32.saturating_pow(attempt));
    let wait = wait.min(LONGEST_WAIT);
    let nanos = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .map_or(0, |now| now.subsec_nanos());
    // A factor from 0.75 to 1.25.
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
