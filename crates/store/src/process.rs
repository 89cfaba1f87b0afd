//! Which process writes a run, and whether it is still there.
//!
//! On Linux that is known for the processes of this machine since its start, and is certain; elsewhere only
//! the heartbeat tells.

/// This process, as other processes can recognise it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Writer {
    /// Name of the machine, for a person.
    pub(crate) host: String,
    /// What a process id belongs to: a start of a machine, and the namespace there. Containers may have
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
            space: os::space(),
            pid,
            started: match os::started(pid) {
                Seen::Started(started) => Some(started),
                Seen::Nothing | Seen::Hidden => None,
            },
        }
    }

    /// What can be told of this process from `here`.
    pub(crate) fn presence(&self, here: &Self) -> Presence {
        // One that is in another space cannot be seen from here, and one without a start not be told
        // from its successors.
        if self.space.is_none() || self.space != here.space || self.started.is_none() {
            return Presence::Unseen;
        }
        match os::started(self.pid) {
            Seen::Started(started) if self.started == Some(started) => Presence::Here,
            Seen::Hidden => Presence::Unseen,
            Seen::Started(_) | Seen::Nothing => Presence::Gone,
        }
    }
}

/// What is known of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Presence {
    /// It is there, certainly, be it that it was stopped or that its machine slept.
    Here,
    /// It is gone, certainly.
    Gone,
    /// It cannot be looked at.
    Unseen,
}

/// What is seen of a process id.
enum Seen {
    /// A process that was started then.
    Started(u64),
    /// No process.
    Nothing,
    /// It cannot be looked at.
    Hidden,
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

#[cfg(target_os = "linux")]
mod os {
    use std::fs;

    use nix::errno::Errno;
    use nix::sys::signal::kill;
    use nix::unistd::Pid;

    use super::Seen;

    pub(super) fn space() -> Option<String> {
        // A /proc of another namespace has other numbers for the same processes.
        let itself = fs::read_link("/proc/self").ok()?;
        if itself.to_str()?.parse() != Ok(std::process::id()) {
            return None;
        }
        let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
        let namespace = fs::read_link("/proc/self/ns/pid").ok()?;
        Some(format!("{} {}", boot.trim(), namespace.display()))
    }

    /// When a process was started, in clock ticks since the machine was. A process that has ended but was
    /// not waited for is gone.
    pub(super) fn started(pid: u32) -> Seen {
        let Ok(stat) = fs::read_to_string(format!("/proc/{pid}/stat")) else {
            // Those of other users may be left out of /proc (`hidepid`).
            let found = i32::try_from(pid).map(|pid| kill(Pid::from_raw(pid), None));
            return match found {
                Ok(Err(Errno::ESRCH)) | Err(_) => Seen::Nothing,
                Ok(_) => Seen::Hidden,
            };
        };
        match read(&stat) {
            Some(started) => Seen::Started(started),
            None => Seen::Nothing,
        }
    }

    fn read(stat: &str) -> Option<u64> {
        // The name may have spaces and brackets in it. Behind it the state is first, and the start the
        // 20th (proc_pid_stat(5)).
        let (_, fields) = stat.rsplit_once(')')?;
        let mut fields = fields.split_ascii_whitespace();
        if matches!(fields.next()?, "Z" | "X" | "x") {
            return None;
        }
        fields.nth(18)?.parse().ok()
    }
}

#[cfg(not(target_os = "linux"))]
mod os {
    pub(super) fn space() -> Option<String> {
        None
    }

    pub(super) fn started(_pid: u32) -> super::Seen {
        super::Seen::Hidden
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn a_process_is_gone_when_it_has_ended_and_not_before() {
        let here = Writer::this();
        assert_eq!(here.presence(&here), Presence::Here);

        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let there = Writer {
            pid: child.id(),
            started: match os::started(child.id()) {
                Seen::Started(started) => Some(started),
                _ => None,
            },
            ..here.clone()
        };
        assert!(there.started.is_some());
        assert_eq!(there.presence(&here), Presence::Here);
        // One that was stopped is there.
        let pid = nix::unistd::Pid::from_raw(i32::try_from(child.id()).unwrap());
        nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGSTOP).unwrap();
        assert_eq!(there.presence(&here), Presence::Here);
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(there.presence(&here), Presence::Gone);
    }

    #[test]
    fn another_process_of_the_same_id_is_not_taken_for_it() {
        let here = Writer::this();
        let before = Writer {
            started: here.started.map(|started| started - 1),
            ..here.clone()
        };
        assert_eq!(before.presence(&here), Presence::Gone);
    }

    #[test]
    fn nothing_is_said_of_processes_that_cannot_be_seen() {
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
            assert_eq!(there.presence(&here), Presence::Unseen, "{there:?}");
        }
    }
}
