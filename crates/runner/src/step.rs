//! Changes that this crate makes on disk. A test can end the process before each of them.

use std::fs::File;
use std::io;

macro_rules! steps {
    ($($name:ident,)*) => {
        /// Change on disk.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[allow(missing_docs)] // The names say it.
        pub enum Step { $($name,)* }

        #[cfg(feature = "test-hooks")]
        impl Step {
            /// All changes.
            pub const ALL: &[Self] = &[$(Self::$name,)*];
        }
    };
}

steps! {
    MakeDraft,
    CreateLock,
    CreateSocket,
    WriteInfo,
    SyncInfo,
    WriteSpec,
    CreateLog,
    SyncDraft,
    RenameDraft,
    SyncRuns,
    WriteLog,
    WriteLogRest,
    CreateCopy,
    WriteCopy,
    SyncCopy,
    ReplaceLog,
    CutLog,
    SyncLog,
    RemoveSocket,
    RenameRemoved,
    RemoveFolder,
    CreateSessionLock,
    NameSessionHolder,
    RemoveSessionLock,
}

/// Marks a change that is about to be made.
#[cfg(not(feature = "test-hooks"))]
pub(crate) fn before(_: Step) {}

#[cfg(feature = "test-hooks")]
pub(crate) use hooks::before;

/// Syncs a file or a folder, so that it survives a power failure.
pub(crate) fn sync(step: Step, file: &File) -> io::Result<()> {
    before(step);
    file.sync_data()
}

#[cfg(feature = "test-hooks")]
mod hooks {
    use std::env;
    use std::io::{self, Write};
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::Step;

    /// Variable with the number of the step before which this process aborts, from 1.
    const KILL_AT: &str = "TEAMSTER_TEST_KILL_AT";

    /// Marks a change that is about to be made. The process may abort here, as if it were killed.
    pub(crate) fn before(step: Step) {
        static AT: OnceLock<Option<u64>> = OnceLock::new();
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let Some(at) = *AT.get_or_init(|| env::var(KILL_AT).ok()?.parse().ok()) else {
            return;
        };
        if COUNT.fetch_add(1, Ordering::SeqCst) + 1 == at {
            // Nothing is dropped. The kernel closes open files.
            let _ = writeln!(io::stdout(), "killed at {step:?}");
            std::process::abort();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::OwnedFd;

    // That every step is reached is asserted by the tests that kill a process before each.
    #[test]
    fn a_synced_file_was_synced() {
        let folder = tempfile::tempdir().unwrap();
        sync(Step::SyncRuns, &File::open(folder.path()).unwrap()).unwrap();
        // A pipe cannot be synced.
        let (_reader, writer) = io::pipe().unwrap();
        let pipe = File::from(OwnedFd::from(writer));
        assert!(sync(Step::SyncLog, &pipe).is_err());
    }
}
