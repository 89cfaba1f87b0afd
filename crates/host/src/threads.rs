//! Threads of the program.

use std::io;
use std::sync::{Arc, RwLock};
use std::time::Duration;

use teamster_process::with_advice;

/// The time for which idle threads for blocking work are kept: longer than any run.
const KEEP_ALIVE: Duration = Duration::from_hours(24 * 365);

/// Creates a Tokio runtime with this many worker threads, whose threads stay.
///
/// # Errors
///
/// Fails if the system refuses the threads or the file descriptors that it needs.
pub fn runtime(workers: usize) -> io::Result<tokio::runtime::Runtime> {
    let runtime = runtime_for(workers, KEEP_ALIVE)?;
    // If the system refuses further threads later, blocking work waits for this one.
    runtime.spawn_blocking(|| ());
    Ok(runtime)
}

/// Creates a Tokio runtime with this many worker threads, which keeps idle threads for blocking work so long.
///
/// # Errors
///
/// As [`runtime`].
pub fn runtime_for(workers: usize, keep_alive: Duration) -> io::Result<tokio::runtime::Runtime> {
    /// The file descriptors that a runtime needs. It panics if none is left for its signals.
    const DESCRIPTORS: usize = 8;
    let free: io::Result<Vec<_>> = (0..DESCRIPTORS)
        .map(|_| std::fs::File::open("/dev/null"))
        .collect();
    drop(free.map_err(with_advice)?);
    // A runtime panics if the system refuses one of its threads.
    check_threads(workers + 1).map_err(with_advice)?;
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(workers)
        .thread_keep_alive(keep_alive)
        .enable_all()
        .build()
}

/// Checks that the system allows this many further threads.
fn check_threads(count: usize) -> io::Result<()> {
    let gate = Arc::new(RwLock::new(()));
    let closed = gate.write();
    let threads: Vec<_> = (0..count)
        .map(|_| {
            let gate = gate.clone();
            std::thread::Builder::new().spawn(move || drop(gate.read()))
        })
        .collect();
    drop(closed);
    for thread in threads {
        // A panic is impossible.
        let _ = thread?.join();
    }
    Ok(())
}
