//! Processes of tests: checks for their end, and programs to run.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use nix::sys::signal::{self, Signal};
use nix::unistd::Pid;
pub use teamster_fakes::write_program;
use teamster_process::ProcessIdentity;

/// Interval at which a condition is checked.
const POLL: Duration = Duration::from_millis(2);

/// Returns whether the process is alive.
///
/// A zombie counts as gone: it holds no pipe, uses no memory and only waits to be reaped. Without `/proc` a
/// zombie cannot be distinguished and counts as alive.
pub fn is_alive(pid: u32) -> bool {
    ProcessIdentity::of(pid).is_some()
}

/// Waits until the process is gone (see [`is_alive`]), for at most `limit`. Returns whether it is gone.
pub fn wait_gone(pid: u32, limit: Duration) -> bool {
    wait_until(limit, || !is_alive(pid))
}

/// Waits until the condition holds, for at most `limit`. Returns whether it holds.
pub fn wait_until(limit: Duration, mut condition: impl FnMut() -> bool) -> bool {
    let start = Instant::now();
    loop {
        if condition() {
            return true;
        }
        if start.elapsed() >= limit {
            return false;
        }
        std::thread::sleep(POLL);
    }
}

/// Waits until the file holds a process id, for at most `limit`. Returns the id, or `None`.
pub fn wait_pid_file(path: &Path, limit: Duration) -> Option<u32> {
    let mut pid = None;
    wait_until(limit, || {
        pid = fs::read_to_string(path)
            .ok()
            .and_then(|text| text.trim().parse().ok());
        pid.is_some()
    });
    pid
}

/// Kills a process (`SIGKILL`) when dropped, so that a failed assertion leaves nothing running.
#[derive(Debug)]
pub struct KillOnDrop(u32);

impl KillOnDrop {
    /// Creates a guard for the process with this id, which need not be a child.
    pub fn new(pid: u32) -> Self {
        Self(pid)
    }

    /// Returns the process id.
    pub fn pid(&self) -> u32 {
        self.0
    }
}

impl Drop for KillOnDrop {
    fn drop(&mut self) {
        if let Some(pid) = to_pid(self.0) {
            // An error means that the process is already gone.
            let _ = signal::kill(pid, Signal::SIGKILL);
        }
    }
}

/// Converts a process id. Zero would address this process's group, and no process has a number beyond `i32`.
fn to_pid(pid: u32) -> Option<Pid> {
    i32::try_from(pid)
        .ok()
        .filter(|&pid| pid > 0)
        .map(Pid::from_raw)
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn this_process_is_alive() {
        assert!(is_alive(std::process::id()));
    }

    #[test]
    fn impossible_ids_are_not_alive() {
        assert!(!is_alive(0));
        assert!(!is_alive(u32::MAX));
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_zombie_is_gone() {
        let mut child = Command::new("true").spawn().unwrap();
        assert!(wait_gone(child.id(), Duration::from_secs(10)));
        // It is a zombie here.
        assert!(child.wait().unwrap().success());
    }

    #[test]
    fn a_dropped_guard_kills() {
        let mut child = Command::new("sleep").arg("100").spawn().unwrap();
        drop(KillOnDrop::new(child.id()));
        assert!(!child.wait().unwrap().success());
    }

    #[test]
    fn waiting_gives_up_in_the_end() {
        assert!(!wait_until(Duration::from_millis(5), || false));
    }
}
