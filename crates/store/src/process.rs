//! Identity of the process that writes a run, and a check whether it is alive.
//!
//! On Linux the check is reliable for processes of this machine since its boot. Elsewhere only the heartbeat shows
//! whether a run is alive.

pub(crate) use teamster_process::Presence;
use teamster_process::{ProcessIdentity, process_space};

/// Identity of a process that other processes can check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Writer {
    /// Name of the machine, for display.
    pub(crate) host: String,
    /// Scope of process ids: a boot of a machine and a namespace. Containers may share the name of their host but not
    /// its process ids.
    pub(crate) space: Option<String>,
    pub(crate) pid: u32,
    /// Start time of the process, in the kernel's own unit, because process ids are reused.
    pub(crate) started: Option<u64>,
}

impl Writer {
    /// Returns the identity of this process.
    pub(crate) fn this() -> Self {
        let pid = std::process::id();
        Self {
            host: host(),
            space: process_space(),
            pid,
            started: ProcessIdentity::of(pid).and_then(ProcessIdentity::start_time),
        }
    }

    /// Checks whether the process is alive, as seen from `here`.
    pub(crate) fn presence(&self, here: &Self) -> Presence {
        // In another space the same id means another process.
        if self.space.is_none() || self.space != here.space {
            return Presence::Unknown;
        }
        ProcessIdentity::new(self.pid, self.started).presence()
    }
}

fn host() -> String {
    let name = nix::unistd::gethostname().ok();
    name.map(|name| name.to_string_lossy().into_owned())
        .filter(|name| !name.is_empty())
        .unwrap_or_else(|| "localhost".to_owned())
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::process::Command;
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn a_process_is_gone_when_it_has_ended_and_not_before() {
        let here = Writer::this();
        assert_eq!(here.presence(&here), Presence::Running);

        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let there = Writer {
            pid: child.id(),
            started: ProcessIdentity::of(child.id()).and_then(ProcessIdentity::start_time),
            ..here.clone()
        };
        assert!(there.started.is_some());
        assert_eq!(there.presence(&here), Presence::Running);
        // A stopped process is still running.
        let pid = nix::unistd::Pid::from_raw(i32::try_from(child.id()).unwrap());
        nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGSTOP).unwrap();
        assert_eq!(there.presence(&here), Presence::Running);
        child.kill().unwrap();
        // A zombie has ended too.
        let deadline = Instant::now() + Duration::from_mins(1);
        while there.presence(&here) == Presence::Running {
            assert!(Instant::now() < deadline, "it should have ended by now");
            std::thread::yield_now();
        }
        assert_eq!(there.presence(&here), Presence::Ended);
        child.wait().unwrap();
        assert_eq!(there.presence(&here), Presence::Ended);
    }

    #[test]
    fn another_process_of_the_same_id_is_not_taken_for_it() {
        let here = Writer::this();
        let before = Writer {
            started: here.started.map(|started| started - 1),
            ..here.clone()
        };
        assert_eq!(before.presence(&here), Presence::Ended);
    }

    #[test]
    fn processes_that_cannot_be_seen_are_unknown() {
        let here = Writer::this();
        for there in [
            Writer {
                space: Some("elsewhere".into()),
                started: Some(1),
                ..here.clone()
            },
            Writer {
                started: None,
                ..here.clone()
            },
        ] {
            assert_eq!(there.presence(&here), Presence::Unknown, "{there:?}");
        }
    }
}
