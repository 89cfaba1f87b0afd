//! A process that is known by more than its id: ids are used again.

use std::io;
use std::path::PathBuf;

use nix::errno::Errno;
use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::{Pid, getpgid};

use crate::os;

/// Whether a process exists, as seen from this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Presence {
    /// It runs, be it stopped (`SIGSTOP`) or not.
    Running,
    /// It has ended. A zombie, which its parent has not waited for, has ended too.
    Ended,
    /// The system does not show it.
    Unknown,
}

/// A signal for a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ProcessSignal {
    /// `SIGTERM`: end in order.
    Terminate,
    /// `SIGKILL`: end at once.
    Kill,
    /// `SIGUSR1`: what the program makes of it.
    User1,
}

impl ProcessSignal {
    fn native(self) -> Signal {
        match self {
            Self::Terminate => Signal::SIGTERM,
            Self::Kill => Signal::SIGKILL,
            Self::User1 => Signal::SIGUSR1,
        }
    }
}

/// A process, by its id and the time at which it started, so that a later process with the same id is not
/// taken for it.
///
/// Linux has that time. Elsewhere it is not known, and any process with the id is taken for the one that
/// is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ProcessIdentity {
    pid: u32,
    start_time: Option<u64>,
}

impl ProcessIdentity {
    /// One that was written down: its id, and its start in clock ticks since the machine's.
    pub fn new(pid: u32, start_time: Option<u64>) -> Self {
        Self { pid, start_time }
    }

    /// The process that has this id now; `None` if none runs. One that has ended and was not waited for does
    /// not run.
    pub fn of(pid: u32) -> Option<Self> {
        let found = Self {
            pid,
            start_time: os::start_time(pid),
        };
        found.is_running().then_some(found)
    }

    /// Its id.
    pub fn pid(self) -> u32 {
        self.pid
    }

    /// When it started, in clock ticks since the machine's start; `None` where that is not known.
    pub fn start_time(self) -> Option<u64> {
        self.start_time
    }

    /// The id of its parent; `None` where that is not known.
    pub fn parent(self) -> Option<u32> {
        os::parent(self.pid).filter(|_| self.is_running())
    }

    /// Whether it runs. One that has ended and was not waited for does not.
    pub fn is_running(self) -> bool {
        if cfg!(target_os = "linux") {
            self.start_time.is_some_and(|start_time| {
                os::is_running(os::Process {
                    pid: self.pid,
                    start_time,
                })
            })
        } else {
            self.native()
                .is_some_and(|pid| !matches!(kill(pid, None), Err(Errno::ESRCH)))
        }
    }

    /// Whether it runs, where that is certain.
    pub fn presence(self) -> Presence {
        if self.start_time.is_none() || os::is_hidden(self.pid) {
            Presence::Unknown
        } else if self.is_running() {
            Presence::Running
        } else {
            Presence::Ended
        }
    }

    /// Sends a signal to it alone. That it is gone is no error.
    pub fn signal(self, signal: ProcessSignal) -> io::Result<()> {
        match self.native().filter(|_| self.is_running()) {
            Some(pid) => done(kill(pid, signal.native())),
            None => Ok(()),
        }
    }

    /// Sends a signal to its process group, if it is the leader of one, else to it alone. If it is gone, what
    /// is left of its group gets the signal. That nothing is left is no error.
    pub fn signal_group(self, signal: ProcessSignal) -> io::Result<()> {
        let Some(pid) = self.native() else {
            return Ok(());
        };
        if cfg!(target_os = "linux")
            && let Some(now) = os::start_time(self.pid)
            && Some(now) != self.start_time
        {
            // A stranger by now. While a process of the group lives, no other gets its id.
            return Ok(());
        }
        match getpgid(Some(pid)) {
            Ok(group) if group != pid => self.signal(signal),
            // Without a leader the group has its id still.
            Ok(_) | Err(Errno::ESRCH) => done(killpg(pid, signal.native())),
            Err(error) => Err(error.into()),
        }
    }

    /// When it started, in milliseconds since the Unix epoch, to about a second; `None` where that is not
    /// known.
    pub fn started_at_ms(self) -> Option<u64> {
        os::boot_time_ms()?.checked_add(self.start_time?.checked_mul(os::TICK_MS)?)
    }

    /// The directory that it is in now; `None` where that is not known.
    pub fn directory(self) -> Option<PathBuf> {
        let directory = os::directory(self.pid)?;
        self.is_running().then_some(directory)
    }

    /// Its id as the system takes it. 0 would be our own group and 1 is never one of ours.
    fn native(self) -> Option<Pid> {
        let pid = i32::try_from(self.pid).ok().filter(|pid| *pid > 1)?;
        Some(Pid::from_raw(pid))
    }
}

/// The ids of this process's own children. One that has ended is a child until it is waited for.
///
/// Linux only; elsewhere none is known.
pub fn children() -> Vec<u32> {
    os::own_children()
}

/// The scope of process ids and start times: one boot of one machine and one namespace of process
/// ids. `None` where that is not known.
pub fn process_space() -> Option<String> {
    os::process_space()
}

fn done(result: nix::Result<()>) -> io::Result<()> {
    match result {
        Ok(()) | Err(Errno::ESRCH) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use std::os::unix::process::{CommandExt, ExitStatusExt};
    use std::process::{Child, Command};
    use std::time::{SystemTime, UNIX_EPOCH};

    use super::*;

    struct Sleep(Child);

    impl Sleep {
        fn start(group: bool) -> (Self, ProcessIdentity) {
            let mut command = Command::new("sleep");
            command.arg("60");
            if group {
                command.process_group(0);
            }
            let sleep = Self(command.spawn().unwrap());
            let identity = ProcessIdentity::of(sleep.0.id()).unwrap();
            (sleep, identity)
        }
    }

    impl Drop for Sleep {
        fn drop(&mut self) {
            // Gone already in a test that passed.
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }

    #[test]
    fn a_process_is_known_until_it_ends_and_a_zombie_is_gone() {
        let (mut sleep, identity) = Sleep::start(false);
        assert!(identity.is_running());
        assert_eq!(ProcessIdentity::of(identity.pid()), Some(identity));
        assert_eq!(identity.presence(), Presence::Running);
        let undated = ProcessIdentity::new(identity.pid(), None);
        assert_eq!(undated.presence(), Presence::Unknown);
        identity.signal(ProcessSignal::Kill).unwrap();
        while identity.is_running() {
            std::thread::yield_now();
        }
        assert_eq!(ProcessIdentity::of(identity.pid()), None);
        assert_eq!(identity.presence(), Presence::Ended);
        assert_eq!(sleep.0.wait().unwrap().signal(), Some(9));
        // No process is left: no error.
        identity.signal(ProcessSignal::Terminate).unwrap();
        identity.signal_group(ProcessSignal::Terminate).unwrap();
    }

    #[test]
    fn a_later_process_with_the_same_id_gets_no_signal() {
        let (mut sleep, identity) = Sleep::start(true);
        for start_time in [
            identity.start_time().map(|it| it - 1),
            identity.start_time().map(|it| it + 1),
            None,
        ] {
            let other = ProcessIdentity::new(identity.pid(), start_time);
            assert!(!other.is_running());
            other.signal(ProcessSignal::Kill).unwrap();
            other.signal_group(ProcessSignal::Kill).unwrap();
        }
        assert!(identity.is_running());
        assert!(sleep.0.try_wait().unwrap().is_none());
    }

    #[test]
    fn ids_that_mean_more_than_one_process_mean_none() {
        for pid in [0, 1, u32::MAX] {
            let identity = ProcessIdentity::new(pid, os::start_time(pid));
            // Would end this very test.
            identity.signal(ProcessSignal::Kill).unwrap();
            identity.signal_group(ProcessSignal::Kill).unwrap();
        }
    }

    #[test]
    fn a_group_outlives_its_leader() {
        let mut leader = Command::new("sh")
            .args(["-c", "sleep 60 & echo $!"])
            .process_group(0)
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let identity = ProcessIdentity::new(leader.id(), os::start_time(leader.id()));
        let mut out = String::new();
        let mut stdout = leader.stdout.take().unwrap();
        while !out.ends_with('\n') {
            let mut byte = [0];
            io::Read::read_exact(&mut stdout, &mut byte).unwrap();
            out.push(byte[0].into());
        }
        leader.wait().unwrap();
        let member = ProcessIdentity::of(out.trim().parse().unwrap()).unwrap();
        assert!(!identity.is_running() && member.is_running());
        identity.signal_group(ProcessSignal::Kill).unwrap();
        while member.is_running() {
            std::thread::yield_now();
        }
    }

    #[test]
    fn where_and_when_it_started() {
        let (_sleep, identity) = Sleep::start(false);
        assert_eq!(identity.directory(), std::env::current_dir().ok());
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        let started = identity.started_at_ms().unwrap();
        let apart = now.as_millis().abs_diff(started.into());
        assert!(apart < 30_000, "{apart}");
        assert!(process_space().is_some());
    }
}
