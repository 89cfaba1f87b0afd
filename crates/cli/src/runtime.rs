//! The runtimes that commands wait in.

use anyhow::Context;
use teamster_host::threads;

/// Creates a runtime with two worker threads. They read what the agent prints while the main thread waits for a slow
/// reader of stdout.
pub(crate) fn tokio_runtime() -> anyhow::Result<tokio::runtime::Runtime> {
    threads::runtime(2).context("cannot start the runtime")
}

/// Runs a command on a runtime of its own. At its end, no thread of that runtime is waited for: a terminal, a file or a server
/// may block it.
pub(crate) fn wait_only_for<T>(
    command: impl Future<Output = anyhow::Result<T>>,
) -> anyhow::Result<T> {
    let runtime = tokio_runtime()?;
    let ended = runtime.block_on(command);
    runtime.shutdown_background();
    ended
}

/// Creates the runtime of a server, which has many threads for a moment.
pub(crate) fn server_runtime() -> anyhow::Result<tokio::runtime::Runtime> {
    let threads = threads::runtime_for(2, std::time::Duration::from_secs(10));
    threads.context("cannot start the runtime")
}
