//! Ends what the engine cannot find: a process that left the agent's tree and threw away its
//! environment, and with that the mark of the run.
//!
//! Of a process whose parent ends, the kernel makes a child of the nearest ancestor that requested
//! it. A program that runs one agent can ask; a library in a process with other children cannot.

#[cfg(target_os = "linux")]
mod adopted {
    use std::thread::sleep;
    use std::time::{Duration, Instant};

    use nix::sys::prctl::set_child_subreaper;
    use nix::sys::signal::{Signal, kill};
    use nix::sys::wait::{WaitPidFlag, waitpid};
    use nix::unistd::Pid;
    use teamster::process::children;

    /// How long killed processes may take to disappear. Only one that hangs in the kernel takes
    /// longer.
    const PATIENCE: Duration = Duration::from_secs(2);
    const PAUSE: Duration = Duration::from_millis(5);

    /// Makes this process the parent of orphans from now on.
    pub(crate) fn adopt() {
        // Without it a run is as good; only what hides itself is left.
        let _ = set_child_subreaper(true);
    }

    /// The run is over: ends all our children but one.
    pub(crate) fn end(but: Option<u32>) {
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
                // Already gone is no error; one that has ended is a child until it is waited for.
                let _ = kill(pid, Signal::SIGKILL);
                let _ = waitpid(pid, Some(WaitPidFlag::WNOHANG));
            }
            sleep(PAUSE);
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod adopted {
    /// There is no such thing here.
    pub(crate) fn adopt() {}

    /// See [`adopt`].
    pub(crate) fn end(_: Option<u32>) {}
}

pub(crate) use adopted::{adopt, end};
