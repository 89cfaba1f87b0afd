//! Processes and programs of tests: questions that prove that one is gone, and scripts to run.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

use nix::sys::signal::{self, Signal};
use nix::unistd::Pid;
use teamster_process::ProcessIdentity;

/// How often a condition is looked at while waiting for it.
const POLL: Duration = Duration::from_millis(2);

/// Whether the process runs.
///
/// A zombie counts as gone: it holds no pipe, uses no memory and only waits for its parent to ask
/// how it ended. Where `/proc` does not exist a zombie cannot be distinguished and counts as alive.
pub fn is_alive(pid: u32) -> bool {
    ProcessIdentity::of(pid).is_some()
}

/// Waits until the process is gone (see [`is_alive`]), at most for `limit`; whether it is.
pub fn wait_gone(pid: u32, limit: Duration) -> bool {
    wait_until(limit, || !is_alive(pid))
}

/// Waits until the condition holds, at most for `limit`; whether it does.
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

/// Waits until the file holds a process id, at most for `limit`.
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

/// Writes a program, such as a script for the shell, that everyone may execute.
pub fn write_program(path: &Path, text: impl AsRef<[u8]>) -> io::Result<()> {
    fs::write(path, text)?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o755))
}

/// Kills a process (`SIGKILL`) when dropped, so that a failed assertion leaves nothing running.
#[derive(Debug)]
pub struct KillOnDrop(u32);

impl KillOnDrop {
    /// Guards the process with this id, which need not be a child.
    pub fn new(pid: u32) -> Self {
        Self(pid)
    }

    /// The process id.
    pub fn pid(&self) -> u32 {
        self.0
    }
}

impl Drop for KillOnDrop {
    fn drop(&mut self) {
        if let Some(pid) = to_pid(self.0) {
            // Already gone is as good.
            let _ = signal::kill(pid, Signal::SIGKILL);
        }
    }
}

/// Zero would mean "my whole group" and a number beyond `i32` cannot be a process.
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
        // It is not reaped yet.
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
