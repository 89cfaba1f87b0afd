//! A mark that a process cannot throw away with its environment.

use crate::os;

/// A mark that all descendants of a process inherit, also those that clear their environment, leave their
/// group and session, and lose their parents.
///
/// It is the soft limit of file locks (`RLIMIT_LOCKS`), which no Linux kernel since 2.4 looks at, and which
/// `fork` and `exec` keep. A process loses it by setting that limit, as a `teamster` does for its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InheritedMark(u64);

impl InheritedMark {
    /// Marks the calling process and all that it starts from now on. `None` where that cannot be, which is
    /// so outside Linux and where the hard limit is too low.
    #[cfg(target_os = "linux")]
    pub fn set() -> Option<Self> {
        use std::hash::{BuildHasher, Hasher, RandomState};

        use nix::sys::resource::{Resource, getrlimit, setrlimit};

        let (_, hard) = getrlimit(Resource::RLIMIT_LOCKS).ok()?;
        let random = RandomState::new().build_hasher().finish() >> 33;
        let mark = (u64::from(std::process::id()) << 31) | random;
        setrlimit(Resource::RLIMIT_LOCKS, mark, hard).ok()?;
        Some(Self(mark))
    }

    /// Marks nothing: there is no such limit here.
    #[cfg(not(target_os = "linux"))]
    pub fn set() -> Option<Self> {
        None
    }

    /// The mark of this number, of another process.
    pub fn from_number(number: u64) -> Self {
        Self(number)
    }

    /// Its number.
    pub fn number(self) -> u64 {
        self.0
    }

    /// Ends (SIGKILL) the processes that carry it, but not the caller. Whether there was any.
    pub fn kill_all(self) -> bool {
        let marked = os::limited_to(self.0);
        for process in &marked {
            // It may be gone by now.
            let _ = os::kill_process(*process);
        }
        !marked.is_empty()
    }
}
