//! Processes that a dead owner left behind.

use std::io;

use crate::os;

/// A process of a run whose owner died without stopping it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Leftover {
    /// Its process id.
    pub pid: u32,
    /// Its command line, arguments separated by spaces. May hold a prompt.
    pub command: String,
    /// The run that it belongs to: the last id in its `TEAMSTER_RUN_ID`.
    pub run_id: String,
    pub(crate) start_time: u64,
}

impl Leftover {
    /// Ends it with SIGKILL, if it is still the same process. Already gone is no error.
    pub fn kill(&self) -> io::Result<()> {
        os::kill_process(os::Process {
            pid: self.pid,
            start_time: self.start_time,
        })
    }
}

/// The processes which carry the mark of a run whose owner, a process that used this crate, no
/// longer lives. Those in another process namespace (of a container, say) are not listed.
///
/// Linux only; elsewhere there are none.
pub fn leftovers() -> Vec<Leftover> {
    os::leftovers()
}
