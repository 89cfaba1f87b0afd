//! A process that is asked something, in a process group of its own.

use std::io;
use std::time::Duration;

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use tokio::process::{Child, Command};
use tokio::time::timeout;

/// The process group of a helper: a version query, a probed server. What is
/// left of the group is killed (SIGKILL) when this is dropped.
///
/// Runs and sessions have more than this: see the crate's page.
#[derive(Debug)]
pub struct ProcessGroup(Option<Pid>);

impl ProcessGroup {
    /// Starts the command as the leader of a group of its own.
    pub fn spawn(command: &mut Command) -> io::Result<(Child, Self)> {
        let child = command.process_group(0).kill_on_drop(true).spawn()?;
        let id = child.id().and_then(|pid| i32::try_from(pid).ok());
        Ok((child, Self(id.map(Pid::from_raw))))
    }

    /// Kills all processes of the group. That none is left is no error.
    pub fn kill(&self) {
        self.send(Signal::SIGKILL);
    }

    /// Ends the group: SIGTERM, then SIGKILL when its leader has ended or `grace` is over. Returns when the
    /// leader is gone, or another `grace` later if it hangs in the kernel.
    pub async fn end(&self, leader: &mut Child, grace: Duration) {
        self.send(Signal::SIGTERM);
        let _ = timeout(grace, leader.wait()).await;
        self.kill();
        let _ = timeout(grace, leader.wait()).await;
    }

    fn send(&self, signal: Signal) {
        if let Some(id) = self.0 {
            // As long as anything is left of the group its id is its own.
            let _ = killpg(id, signal);
        }
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        self.kill();
    }
}
