//! Ids of runs, by which their processes are found.

use std::fmt;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::os;

/// Returns a mark for processes that a program starts by itself, as an environment variable and its value.
/// [`leftovers`](crate::leftovers()) finds marked processes after the death of this process.
///
/// ```
/// let (variable, value) = teamster_process::run_mark();
/// std::process::Command::new("true").env(variable, value).status()?;
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn run_mark() -> (&'static str, String) {
    (os::RUN_ID_VAR, RunId::new(None).within_ours())
}

/// Mark of the processes of one run: owner's process id, owner's start time, counter, and the directory
/// ([`directory_hash`](crate::leftovers::directory_hash)) unless background processes may outlive the owner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RunId(String);

impl RunId {
    /// Returns the value of the variable: the ids of the enclosing runs, then this one. Ending an enclosing run ends
    /// this one with all of its processes.
    pub(crate) fn within_ours(&self) -> String {
        /// Limit of nested runs. It bounds values from outside.
        const LEVELS: usize = 8;
        let outer = std::env::var(os::RUN_ID_VAR).unwrap_or_default();
        let mut ids: Vec<&str> = outer.split(',').filter(|id| !id.is_empty()).collect();
        ids.push(&self.0);
        ids[ids.len().saturating_sub(LEVELS)..].join(",")
    }

    pub(crate) fn new(directory: Option<String>) -> Self {
        static OWNER: OnceLock<String> = OnceLock::new();
        static COUNTER: AtomicU64 = AtomicU64::new(1);
        let owner = OWNER.get_or_init(|| {
            let pid = std::process::id();
            format!("{pid}-{}", os::start_time(pid).unwrap_or(0))
        });
        let count = COUNTER.fetch_add(1, Ordering::Relaxed);
        Self(match directory {
            Some(directory) => format!("{owner}-{count}-{directory}"),
            None => format!("{owner}-{count}"),
        })
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
