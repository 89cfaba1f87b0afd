//! Which process writes a run, and whether it is still there.
//!
//! On Linux that is known for the processes of this machine since its start, and is certain; elsewhere only
//! the heartbeat shows it.

pub(crate) use teamster_process::Presence;
use teamster_process::{ProcessIdentity, process_space};

/// This process, as other processes can recognise it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Writer {
    /// Name of the machine, for a person.
    pub(crate) host: String,
    /// Scope of a process id: a boot of a machine, and the namespace there. Containers may have
    /// the name of their host but not its process ids.
    pub(crate) space: Option<String>,
    pub(crate) pid: u32,
    /// When the process was started, in the kernel's own unit: process ids are used again.
    pub(crate) started: Option<u64>,
}

impl Writer {
    /// This process.
    pub(crate) fn this() -> Self {
        let pid = std::process::id();
        Self {
            host: host(),
            space: process_space(),
            pid,
            started: ProcessIdentity::of(pid).and_then(ProcessIdentity::start_time),
        }
    }

    /// Whether this process exists, as seen from `here`.
    pub(crate) fn presence(&self, here: &Self) -> Presence {
        // A process id of another space means another process.
        if self.space.is_none() || self.space != here.space {
            return Presence::Unknown;
        }
        ProcessIdentity::new(self.pid, self.started).presence()
    }
}

fn host() -> String {
    #[cfg(unix)]
    let name = nix::unistd::gethostname()
        .ok()
        .map(|name| name.to_string_lossy().into_owned());
    #[cfg(not(unix))]
    let name = std::env::var("COMPUTERNAME").ok();
    name.filter(|name| !name.is_empty())
        .unwrap_or_else(|| "localhost".to_owned())
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::process::Command;

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
        // One that was stopped is there.
        let pid = nix::unistd::Pid::from_raw(i32::try_from(child.id()).unwrap());
        nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGSTOP).unwrap();
        assert_eq!(there.presence(&here), Presence::Running);
        child.kill().unwrap();
        // A zombie has ended too.
        while there.presence(&here) == Presence::Running {
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
