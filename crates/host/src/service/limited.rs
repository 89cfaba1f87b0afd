//! Work with a limit of time: replies of runners, and the disk.

use std::time::Duration;

use teamster_api::{ProblemCode, ServiceError};
use teamster_runner::{RunFolder, RunsError};
use tokio::sync::Semaphore;
use tokio::time::timeout;

/// The time limit of a runner's reply.
const RUNNER_LIMIT: Duration = Duration::from_secs(15);
/// The time limit of work with the disk.
const DISK_LIMIT: Duration = Duration::from_secs(10);

/// Awaits a runner's reply, with a time limit.
pub(crate) async fn runner_reply<T>(
    run: &RunFolder,
    reply: impl Future<Output = Result<T, RunsError>>,
) -> Result<T, ServiceError> {
    match timeout(RUNNER_LIMIT, reply).await {
        Ok(reply) => Ok(reply?),
        Err(_) => Err(ServiceError::new(
            ProblemCode::RunnerNotResponding,
            format!(
                "the runner of run {} did not reply within {RUNNER_LIMIT:?}",
                run.id()
            ),
        )),
    }
}

/// Runs blocking work, such as disk access, on the blocking thread pool. Gives up after [`DISK_LIMIT`]; the work
/// itself continues, and has its place until it is done.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ServiceError> + Send + 'static,
) -> Result<T, ServiceError> {
    /// Places for work with the disk. A disk that hangs keeps these, and not all threads of the pool.
    static PERMITS: Semaphore = Semaphore::const_new(128);
    let done = timeout(DISK_LIMIT, async {
        let permit = PERMITS.acquire().await;
        tokio::task::spawn_blocking(move || {
            let _permit = permit;
            work()
        })
        .await
    });
    match done.await {
        Ok(Ok(done)) => done,
        Ok(Err(error)) => Err(ServiceError::new(ProblemCode::Internal, error.to_string())),
        Err(_) => Err(ServiceError::new(
            ProblemCode::Internal,
            format!("the disk did not reply within {DISK_LIMIT:?}"),
        )),
    }
}

/// Runs blocking work that may take long, such as with git or with a large file.
pub(crate) async fn unlimited<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ServiceError> + Send + 'static,
) -> Result<T, ServiceError> {
    /// Places for such work: it may take processes, processors and the disk.
    static PERMITS: Semaphore = Semaphore::const_new(8);
    let permit = PERMITS.acquire().await;
    let done = tokio::task::spawn_blocking(move || {
        let _permit = permit;
        work()
    });
    done.await
        .map_err(|error| ServiceError::new(ProblemCode::Internal, error.to_string()))?
}
