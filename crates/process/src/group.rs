//! Process group of a helper process.

use std::io;
use std::time::Duration;

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use tokio::process::{Child, Command};
use tokio::time::timeout;

/// The process group of a helper, such as a version query or a probed server. Dropping this kills (SIGKILL) the
/// remaining processes of the group.
///
/// Runs and sessions have stronger guarantees: see the docs of the crate.
#[derive(Debug)]
pub struct ProcessGroup(Option<Pid>);

impl ProcessGroup {
    /// Starts the command as the leader of its own group.
    ///
    /// # Errors
    ///
    /// Fails if the process cannot be started.
    pub fn spawn(command: &mut Command) -> io::Result<(Child, Self)> {
        let child = command.process_group(0).kill_on_drop(true).spawn()?;
        let id = child.id().and_then(|pid| i32::try_from(pid).ok());
        Ok((child, Self(id.map(Pid::from_raw))))
    }

    /// Kills all processes of the group. It is not an error if none is left.
    pub fn kill(&self) {
        self.send(Signal::SIGKILL);
    }

    /// Ends the group: SIGTERM, then SIGKILL when its leader has exited or `grace` is over. Returns when the leader has
    /// exited, or another `grace` later if it hangs in the kernel.
    pub async fn end(&self, leader: &mut Child, grace: Duration) {
        self.send(Signal::SIGTERM);
        let _ = timeout(grace, leader.wait()).await;
        self.kill();
        let _ = timeout(grace, leader.wait()).await;
    }

    fn send(&self, signal: Signal) {
        if let Some(id) = self.0 {
            // The id of a group is not reused while any of its processes is left.
            let _ = killpg(id, signal);
        }
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        self.kill();
    }
}
