//! Advice where the system refuses more open files, processes or threads.

use std::io;

/// Adds advice to the errors for too many open files, processes or threads.
pub fn with_advice(error: io::Error) -> io::Error {
    match error.raw_os_error() {
        Some(nix::libc::EMFILE) => {
            io::Error::other(format!("{error}; raise the limit with `ulimit -n`"))
        }
        Some(nix::libc::EAGAIN) => io::Error::other(format!(
            "{error}; the limit of processes and threads is reached (`ulimit -u`, or `pids.max` of the container)"
        )),
        _ => error,
    }
}
