//! Limits of this process.

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::signal::{SigHandler, Signal, signal};

/// Raises the limit of file descriptors to this one, as far as that is allowed. On an error it stays.
pub fn raise_descriptors(limit: u64) {
    if let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE) {
        let limit = hard.min(limit);
        if soft < limit {
            let _ = setrlimit(Resource::RLIMIT_NOFILE, limit, hard);
        }
    }
}

/// Makes writes beyond the limit of file sizes (`ulimit -f`) fail, where the default would end this process.
///
/// It is a handler that does nothing, because child processes would inherit an ignored signal.
pub fn survive_file_limit() {
    extern "C" fn nothing(_: nix::libc::c_int) {}

    // SAFETY: the handler does nothing, so it is safe at any time.
    #[expect(unsafe_code, reason = "the only way to set a signal handler")]
    // Without it, only the error is lost.
    let _ = unsafe { signal(Signal::SIGXFSZ, SigHandler::Handler(nothing)) };
}
