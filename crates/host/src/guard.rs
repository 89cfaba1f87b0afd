//! A process that ends the processes of a run when `teamster` itself is killed.
//!
//! The kernel ends the agent's CLI together with its parent, but not the CLI's commands, which have their own
//! sessions. So a second process of this program, the guard, holds the other end of a pipe, which closes when its
//! owner ends. Then it kills the processes that carry the mark of a run, that it saw below its owner, or that carry
//! the owner's inherited mark. The last two find processes that cleared their environment and so lost the run's mark.

use std::ffi::OsString;
use std::io::{Stdin, Write};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use teamster_process::{
    Descendants, InheritedMark, ProcessIdentity, leftovers, sweep_leftovers, sweep_private_files,
};

use teamster_providers::Providers;

use crate::{Host, changed_files, memory};

/// The first argument of a guard. The owner's process id, its inherited mark, if set, and [`SWEEP`] follow.
pub(crate) const ARGUMENT: &str = "--teamster-guard";
/// The argument of a guard that ends the processes of earlier runs in its directory first.
const SWEEP: &str = "sweep";
/// The interval at which the guard looks for new descendants of its owner, in milliseconds. Paused while the owner
/// is idle.
const WATCH_MS: u16 = 250;
/// The owner's reports: its agent waits for a prompt (`IDLE`), or works (`BUSY`), or no process of it is left (`END`).
const IDLE: u8 = b'r';
const BUSY: u8 = b'w';
const END: u8 = b'e';
/// The time limit for a guard's own end, which its sweep may delay, in milliseconds.
const END_LIMIT_MS: u16 = 5000;
/// The time limit of the cleanup: the owner and killed processes take a moment to disappear.
const CLEANUP_LIMIT: Duration = Duration::from_secs(3);
const PAUSE: Duration = Duration::from_millis(20);
/// The time for which the undo is repeated: the kernel closes the owner's files, and so releases its locks, one by
/// one, and may close the pipe first.
const SETTLE: Duration = Duration::from_millis(500);

/// A running guard process. Drop it at the regular end of the program, when no process is left.
pub struct Guard {
    process: Child,
}

impl Guard {
    /// Starts a guard, which first cleans up after earlier runs in this directory whose guards were killed as well.
    /// `directory` is the agent's working directory, where a killed run may leave a changed configuration file. A failure
    /// is not an error: runs work without a guard, but leave more behind when killed. Neither is a host without a program.
    pub fn start(host: &Host, directory: Option<&Path>) -> Option<Self> {
        Self::spawn(host, directory, Some(SWEEP))
    }

    /// Starts a guard that leaves the processes of earlier runs alone.
    pub fn watch(host: &Host, directory: Option<&Path>) -> Option<Self> {
        Self::spawn(host, directory, None)
    }

    fn spawn(host: &Host, directory: Option<&Path>, sweep: Option<&str>) -> Option<Self> {
        if !cfg!(target_os = "linux") {
            // Without `/proc`, the guard cannot find processes.
            return None;
        }
        let mut command = Command::new(host.runner_program()?);
        command.args([ARGUMENT, &std::process::id().to_string()]);
        if let Some(mark) = InheritedMark::set() {
            command.arg(mark.number().to_string());
        }
        command
            .args(sweep)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let directory = directory.filter(|it| it.is_dir());
        if let Some(directory) = directory {
            command.current_dir(directory);
        }
        // Ctrl-C at the terminal must not reach the guard.
        command.process_group(0);
        let process = command.spawn().ok()?;
        if let Some(pipe) = &process.stdin {
            // A suspended guard must not block the owner's writes.
            let _ = fcntl(pipe, FcntlArg::F_SETFL(OFlag::O_NONBLOCK));
        }
        Some(Self { process })
    }

    /// Returns the guard's process id.
    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    /// Reports to the guard whether the agent waits for a prompt. An idle session costs no CPU time, because the guard
    /// stops looking for descendants.
    pub(crate) fn report_idle(&self, is_idle: bool) {
        // The guard may be gone, or its pipe full.
        let _ = self.report(if is_idle { IDLE } else { BUSY });
    }

    fn report(&self, report: u8) -> Option<()> {
        let mut pipe = self.process.stdin.as_ref()?;
        pipe.write_all(&[report]).ok()
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        if self.report(END).is_some()
            && let Some(pipe) = &self.process.stdin
        {
            // Without a condition, `poll` waits until the other end is closed.
            let mut pipes = [PollFd::new(pipe.as_fd(), PollFlags::empty())];
            let _ = poll(&mut pipes, PollTimeout::from(END_LIMIT_MS));
        }
        // For a guard that was suspended.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Runs the guard: waits for the end of the owner, kills remaining processes and undoes changes to files.
pub(crate) fn main(args: &[OsString], providers: &Providers) -> ExitCode {
    let number = |at: usize| args.get(at)?.to_str()?.parse::<u64>().ok();
    let Some(owner) = number(0).and_then(|pid| u32::try_from(pid).ok()) else {
        return ExitCode::from(2);
    };
    let mark = number(1).map(InheritedMark::from_number);
    // In a thread, because the owner may be killed meanwhile. Without a thread, the next run does it.
    let sweep = args
        .last()
        .is_some_and(|last| last == SWEEP)
        .then(|| std::thread::Builder::new().spawn(|| drop(sweep_leftovers(Path::new(".")))));
    let owner_process = ProcessIdentity::of(owner);
    let mut descendants = Descendants::of(owner);
    let pipe = std::io::stdin();
    let mut is_idle = false;
    loop {
        let was_idle = is_idle;
        match wait(&pipe, is_idle) {
            Wakeup::Interval => {}
            Wakeup::Report(END) => {
                if let Some(Ok(sweep)) = sweep {
                    // A panic was already printed.
                    let _ = sweep.join();
                }
                return ExitCode::SUCCESS;
            }
            Wakeup::Report(report) => is_idle = report == IDLE,
            Wakeup::OwnerEnded => break,
        }
        descendants.look();
        if is_idle && !was_idle {
            memory::release_code();
        }
    }
    let runs = format!("{owner}-");
    let start = Instant::now();
    // In a thread, because another process may block it for seconds, and the user's next run of the CLI must not
    // find this run's changes. Without a thread, the undo below does it.
    let of_thread = providers.clone();
    let undoing = std::thread::Builder::new().spawn(move || {
        while start.elapsed() < SETTLE {
            undo(&of_thread);
            std::thread::sleep(PAUSE);
        }
    });
    let until = start + CLEANUP_LIMIT;
    let mut found = false;
    while Instant::now() < until {
        let mut left = leftovers();
        left.retain(|process| process.is_of(&runs));
        let marked = mark.is_some_and(InheritedMark::kill_all);
        let any = descendants.kill() || marked || !left.is_empty();
        // Before its end, its marked processes do not count as left.
        let is_dying = owner_process.is_some_and(ProcessIdentity::is_running);
        if found && !any && !is_dying {
            break;
        }
        found |= any;
        for process in left {
            let _ = process.kill();
        }
        std::thread::sleep(PAUSE);
    }
    if let Ok(undoing) = undoing {
        let _ = undoing.join();
    }
    // Again: killed processes may have written until their end.
    undo(providers);
    ExitCode::SUCCESS
}

/// What ends a wait of the guard.
enum Wakeup {
    Interval,
    Report(u8),
    /// Without a report.
    OwnerEnded,
}

/// Waits for a report of the owner, for at most [`WATCH_MS`] unless the owner is idle.
fn wait(pipe: &Stdin, is_idle: bool) -> Wakeup {
    let limit = if is_idle {
        PollTimeout::NONE
    } else {
        PollTimeout::from(WATCH_MS)
    };
    let mut pipes = [PollFd::new(pipe.as_fd(), PollFlags::POLLIN)];
    match poll(&mut pipes, limit) {
        Ok(0) | Err(nix::Error::EINTR) => return Wakeup::Interval,
        Ok(_) => {}
        Err(_) => return Wakeup::OwnerEnded,
    }
    let mut reports = [0; 64];
    match nix::unistd::read(pipe, &mut reports) {
        Ok(0) => Wakeup::OwnerEnded,
        Ok(count) => Wakeup::Report(reports[count - 1]),
        Err(nix::Error::EINTR) => Wakeup::Interval,
        Err(_) => Wakeup::OwnerEnded,
    }
}

fn undo(providers: &Providers) {
    if let Ok(directory) = std::env::current_dir() {
        changed_files::restore(providers, &directory);
    }
    sweep_private_files();
}
