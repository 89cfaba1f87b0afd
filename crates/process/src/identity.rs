//! Identity of a process: its id and its start time, because ids are reused.

use std::io;
use std::path::PathBuf;

use nix::errno::Errno;
use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::{Pid, getpgid};

use crate::os;

/// Existence of a process, as seen from this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Presence {
    /// It runs, or is suspended (`SIGSTOP`).
    Running,
    /// It has ended. This includes a zombie, which its parent has not reaped.
    Ended,
    /// The system does not show the process.
    Unknown,
}

/// A signal for a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ProcessSignal {
    /// `SIGTERM`: requests a graceful exit.
    Terminate,
    /// `SIGKILL`: ends the process at once.
    Kill,
    /// `SIGUSR1`: its effect depends on the program.
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

/// A process, identified by its id and its start time, so that it is not confused with a later process with the same
/// id.
///
/// The start time is only known on Linux. Elsewhere any process with the id is taken for this one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ProcessIdentity {
    pid: u32,
    start_time: Option<u64>,
}

impl ProcessIdentity {
    /// Creates an identity from stored values: the id, and the start time in clock ticks since boot.
    pub fn new(pid: u32, start_time: Option<u64>) -> Self {
        Self { pid, start_time }
    }

    /// Returns the process that has this id now; `None` if none runs. A zombie does not run.
    pub fn of(pid: u32) -> Option<Self> {
        let found = Self {
            pid,
            start_time: os::start_time(pid),
        };
        found.is_running().then_some(found)
    }

    /// Returns the process id.
    pub fn pid(self) -> u32 {
        self.pid
    }

    /// Returns the start time in clock ticks since boot; `None` if it is unknown.
    pub fn start_time(self) -> Option<u64> {
        self.start_time
    }

    /// Returns the id of the parent; `None` if it is unknown.
    pub fn parent(self) -> Option<u32> {
        os::parent(self.pid).filter(|_| self.is_running())
    }

    /// Returns whether the process runs. A zombie does not run.
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

    /// Returns whether the process is stopped by a signal (`SIGSTOP`) or a debugger.
    ///
    /// Linux only; false elsewhere.
    pub fn is_stopped(self) -> bool {
        self.start_time.is_some_and(|start_time| {
            os::is_stopped(os::Process {
                pid: self.pid,
                start_time,
            })
        })
    }

    /// Returns whether the process runs, or [`Presence::Unknown`] if that is uncertain.
    pub fn presence(self) -> Presence {
        if self.start_time.is_none() || os::is_hidden(self.pid) {
            Presence::Unknown
        } else if self.is_running() {
            Presence::Running
        } else {
            Presence::Ended
        }
    }

    /// Sends a signal to this process only. It is not an error if the process has ended.
    ///
    /// # Errors
    ///
    /// Fails if this process lacks the permission.
    pub fn signal(self, signal: ProcessSignal) -> io::Result<()> {
        match self.native().filter(|_| self.is_running()) {
            Some(pid) => done(kill(pid, signal.native())),
            None => Ok(()),
        }
    }

    /// Sends a signal to its process group if it is the leader of one, else to this process only. If it has ended, the
    /// rest of its group gets the signal. It is not an error if none is left.
    ///
    /// # Errors
    ///
    /// Fails if this process lacks the permission.
    pub fn signal_group(self, signal: ProcessSignal) -> io::Result<()> {
        let Some(pid) = self.native() else {
            return Ok(());
        };
        if cfg!(target_os = "linux")
            && let Some(now) = os::start_time(self.pid)
            && Some(now) != self.start_time
        {
            // The id was reused. That cannot happen while a process of the group lives.
            return Ok(());
        }
        match getpgid(Some(pid)) {
            Ok(group) if group != pid => self.signal(signal),
            // A group keeps its id after the exit of its leader.
            Ok(_) | Err(Errno::ESRCH) => done(killpg(pid, signal.native())),
            Err(error) => Err(error.into()),
        }
    }

    /// Returns the start time in milliseconds since the Unix epoch, accurate to about a second. `None` if it is
    /// unknown.
    pub fn started_at_ms(self) -> Option<u64> {
        os::boot_time_ms()?.checked_add(self.start_time?.checked_mul(os::TICK_MS)?)
    }

    /// Returns the current working directory; `None` if it is unknown.
    pub fn directory(self) -> Option<PathBuf> {
        let directory = os::directory(self.pid)?;
        self.is_running().then_some(directory)
    }

    /// Returns the id for system calls. Excludes 0, which means the caller's own group, and 1, which is never ours.
    fn native(self) -> Option<Pid> {
        let pid = i32::try_from(self.pid).ok().filter(|pid| *pid > 1)?;
        Some(Pid::from_raw(pid))
    }
}

/// Returns the ids of this process's children. A child that has ended is included until it is reaped.
///
/// Linux only; empty elsewhere.
pub fn children() -> Vec<u32> {
    os::own_children()
}

/// Returns the scope of process ids and start times: one boot of one machine and one PID namespace. `None` if it is
/// unknown.
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
    use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

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
            // Fails in a test that passed, because the process has ended.
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }

    fn wait_for_end(process: ProcessIdentity) {
        let deadline = Instant::now() + Duration::from_mins(1);
        while process.is_running() {
            assert!(Instant::now() < deadline, "it should have ended by now");
            std::thread::yield_now();
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
        wait_for_end(identity);
        assert_eq!(ProcessIdentity::of(identity.pid()), None);
        assert_eq!(identity.presence(), Presence::Ended);
        assert_eq!(sleep.0.wait().unwrap().signal(), Some(9));
        // No error without a process.
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
            // These would end the test itself.
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
        wait_for_end(member);
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
