//! Calls that are repeated while the service cannot be reached.

use std::time::Duration;

use teamster_api::ServiceError;
use tokio::time::{Instant, sleep};

/// Time without the service after which a call fails.
const LIMIT: Duration = Duration::from_mins(10);
/// The first and the longest pause between two attempts.
const PAUSES: [Duration; 2] = [Duration::from_millis(100), Duration::from_secs(5)];

/// Makes a call, and repeats it while the service cannot be reached. Only for calls of which a second one changes nothing:
/// the answer to the first may be what was lost.
pub(super) async fn repeated<T, F>(call: impl Fn() -> F) -> Result<T, ServiceError>
where
    F: Future<Output = Result<T, ServiceError>>,
{
    let until = Instant::now() + LIMIT;
    let mut pause = PAUSES[0];
    loop {
        match call().await {
            Err(error) if is_break(&error) && Instant::now() < until => {
                sleep(pause).await;
                pause = (pause * 2).min(PAUSES[1]);
            }
            result => return result,
        }
    }
}

/// Returns whether the session has done what it was asked to, rather than refused it. Fails if the service could not be
/// reached.
pub(super) fn is_done<T>(reply: Result<T, ServiceError>) -> Result<bool, ServiceError> {
    match reply {
        Ok(_) => Ok(true),
        Err(error) if is_break(&error) => Err(error),
        Err(_) => Ok(false),
    }
}

/// Returns whether the answer may be what was lost.
pub(super) fn is_break(error: &ServiceError) -> bool {
    error.code.is_none() && error.retryable
}
