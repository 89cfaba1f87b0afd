//! Changes that this crate makes on disk. A test can end the process before each of them.

#[cfg(not(feature = "test-hooks"))]
pub(crate) fn before_change() {}

/// Marks a change that is about to be made. The process may abort here, as if it were killed.
#[cfg(feature = "test-hooks")]
pub(crate) fn before_change() {
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicU64, Ordering};

    /// Variable with the number of the change before which this process aborts, from 1.
    const KILL_AT: &str = "TEAMSTER_TEST_KILL_AT_CHANGE";

    static AT: OnceLock<Option<u64>> = OnceLock::new();
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let at = *AT.get_or_init(|| std::env::var(KILL_AT).ok()?.parse().ok());
    if at == Some(COUNT.fetch_add(1, Ordering::SeqCst) + 1) {
        // Nothing is dropped. The kernel closes open files.
        std::process::abort();
    }
}
