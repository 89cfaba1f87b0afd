//! A mark of processes that survives a cleared environment.

use crate::os;

/// A mark that all descendants of a process inherit, even if they clear their environment, leave their group and
/// session, and lose their parents.
///
/// It is the soft limit of file locks (`RLIMIT_LOCKS`), which no Linux kernel since 2.4 uses, and which `fork` and
/// `exec` keep. A process loses the mark by setting that limit. A nested `teamster` does, for its own mark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InheritedMark(u64);

impl InheritedMark {
    /// Marks the calling process and all processes that it starts from now on. `None` outside Linux, and if the hard
    /// limit is too low.
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

    /// Returns `None`: this system has no such limit.
    #[cfg(not(target_os = "linux"))]
    pub fn set() -> Option<Self> {
        None
    }

    /// Creates the mark of another process from its number.
    pub fn from_number(number: u64) -> Self {
        Self(number)
    }

    /// Returns the number of the mark.
    pub fn number(self) -> u64 {
        self.0
    }

    /// Ends (SIGKILL) the processes with this mark, except the caller. Returns whether there were any.
    pub fn kill_all(self) -> bool {
        let marked = os::limited_to(self.0);
        for process in &marked {
            // The process may have ended meanwhile.
            let _ = os::kill_process(*process);
        }
        !marked.is_empty()
    }
}
