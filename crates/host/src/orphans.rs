//! Ends processes that left the agent's process tree and cleared their environment, and with it the run's mark.
//!
//! The kernel makes an orphaned process a child of the nearest ancestor that is a child subreaper. A program that
//! runs one agent can become one; a library in a process with other children cannot.

#[cfg(target_os = "linux")]
mod adopted {
    use std::thread::sleep;
    use std::time::{Duration, Instant};

    use nix::sys::prctl::set_child_subreaper;
    use nix::sys::signal::{Signal, kill};
    use nix::sys::wait::{WaitPidFlag, waitpid};
    use nix::unistd::Pid;
    use teamster_process::children;

    /// The time limit for killed processes to disappear. Only a process that hangs in the kernel takes longer.
    const PATIENCE: Duration = Duration::from_secs(2);
    const PAUSE: Duration = Duration::from_millis(5);

    /// Makes this process the parent of its orphaned descendants.
    pub fn adopt() {
        // Runs work without it, but processes that cleared their environment may stay.
        let _ = set_child_subreaper(true);
    }

    /// Kills all children of this process except `but`.
    pub fn end(but: Option<u32>) {
        let until = Instant::now() + PATIENCE;
        loop {
            let mut children = children();
            children.retain(|pid| Some(*pid) != but);
            if children.is_empty() || Instant::now() >= until {
                return;
            }
            for pid in children
                .into_iter()
                .filter_map(|pid| i32::try_from(pid).ok())
            {
                let pid = Pid::from_raw(pid);
                // The child may be gone already. It stays a child until it is reaped.
                let _ = kill(pid, Signal::SIGKILL);
                let _ = waitpid(pid, Some(WaitPidFlag::WNOHANG));
            }
            sleep(PAUSE);
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod adopted {
    /// Does nothing on this platform.
    pub fn adopt() {}

    /// Does nothing on this platform.
    pub fn end(_: Option<u32>) {}
}

pub use adopted::{adopt, end};
