//! Executor of the tasks of runs.

use std::io;
use std::sync::Mutex;

use teamster_core::provider::RunAssembler;
use teamster_core::sync::lock;
use teamster_core::{AbortHandle, AgentError, ErrorCode, ErrorKind};
use tokio::runtime::{Builder, Handle};

use crate::trace::in_span;

pub(crate) fn engine_of_run() -> Result<Handle, AgentError> {
    engine().map_err(|error| {
        let message = format!("no asynchronous runtime could be started for the run: {error}");
        AgentError::new(ErrorCode::Io, ErrorKind::Internal, message)
    })
}

/// Does work with files on a blocking thread. An abort does not wait for its end.
pub(crate) async fn blocking<T: Send + 'static>(
    abort: &AbortHandle,
    work: impl FnOnce() -> Result<T, AgentError> + Send + 'static,
) -> Result<T, AgentError> {
    let task = engine_of_run()?.spawn_blocking(in_span(work));
    tokio::select! {
        biased;
        done = task => done.unwrap_or_else(|error| {
            let message = format!("the files of the run could not be prepared: {error}");
            Err(AgentError::new(ErrorCode::Io, ErrorKind::Internal, message))
        }),
        () = abort.aborted() => Err(RunAssembler::aborted_error()),
    }
}

/// Returns the caller's Tokio runtime, or else one of this crate's own, whose thread lives as long as the process.
///
/// # Errors
///
/// Fails if the own runtime or its thread cannot be created.
pub fn engine() -> io::Result<Handle> {
    static OWN: Mutex<Option<Handle>> = Mutex::new(None);

    if let Ok(handle) = Handle::try_current() {
        return Ok(handle);
    }
    let mut own = lock(&OWN);
    if let Some(handle) = &*own {
        return Ok(handle.clone());
    }
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let handle = runtime.handle().clone();
    std::thread::Builder::new()
        .name("teamster-engine".into())
        .spawn(move || runtime.block_on(std::future::pending::<()>()))?;
    *own = Some(handle.clone());
    Ok(handle)
}
