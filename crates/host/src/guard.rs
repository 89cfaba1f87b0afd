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
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use teamster_process::{
    Descendants, InheritedMark, ProcessIdentity, leftovers, sweep_leftovers, sweep_private_files,
};

use teamster_providers::Providers;

use crate::{Host, changed_files, memory};

/// The first argument of a guard. The owner's process id and, if set, its inherited mark follow.
pub(crate) const ARGUMENT: &str = "--teamster-guard";
/// The interval at which the guard looks for new descendants of its owner, in milliseconds. Paused while the owner
/// is idle.
const WATCH_MS: u16 = 250;
/// The owner's reports: its agent waits for a prompt (`IDLE`), or works (`BUSY`).
const IDLE: u8 = b'r';
const BUSY: u8 = b'w';
/// The time limit of the cleanup: the owner and killed processes take a moment to disappear.
const CLEANUP_LIMIT: Duration = Duration::from_secs(3);
const PAUSE: Duration = Duration::from_millis(20);
/// The time for which the undo is repeated: the kernel closes the owner's files, and so releases its locks, one by
/// one, and may close the pipe first.
const SETTLE: Duration = Duration::from_millis(500);

/// A running guard process. Drop it at the regular end of the program, when no process is left.
pub struct Guard {
    process: Child,
    /// Cleans up after earlier runs in this directory whose guards were killed as well.
    sweep: Option<JoinHandle<()>>,
}

impl Guard {
    /// Starts a guard. `directory` is the agent's working directory, where a killed run may leave a changed
    /// configuration file. A failure is not an error: runs work without a guard, but leave more behind when killed. Neither
    /// is a host without a program.
    pub fn start(host: &Host, directory: Option<&Path>) -> Option<Self> {
        let mut guard = Self::watch(host, directory)?;
        let directory = directory.filter(|it| it.is_dir());
        let directory = directory.unwrap_or(Path::new(".")).to_owned();
        // The run does not wait for this.
        let sweep = std::thread::Builder::new().spawn(move || drop(sweep_leftovers(&directory)));
        guard.sweep = sweep.ok();
        Some(guard)
    }

    /// Starts a guard that leaves the processes of earlier runs alone.
    pub fn watch(host: &Host, directory: Option<&Path>) -> Option<Self> {
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
        Some(Self {
            process,
            sweep: None,
        })
    }

    /// Returns the guard's process id.
    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    /// Reports to the guard whether the agent waits for a prompt. An idle session costs no CPU time, because the guard
    /// stops looking for descendants.
    pub(crate) fn report_idle(&self, is_idle: bool) {
        if let Some(mut pipe) = self.process.stdin.as_ref() {
            // The guard may be gone, or its pipe full.
            let _ = pipe.write_all(&[if is_idle { IDLE } else { BUSY }]);
        }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        if let Some(sweep) = self.sweep.take() {
            // A panic was already printed.
            let _ = sweep.join();
        }
        // The guard may already be gone.
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
    let owner_process = ProcessIdentity::of(owner);
    let mut descendants = Descendants::of(owner);
    let pipe = std::io::stdin();
    let mut is_idle = false;
    while let Some(reported) = wait(&pipe, is_idle) {
        let rest_begins = reported && !is_idle;
        is_idle = reported;
        descendants.look();
        if rest_begins {
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

/// Waits for a report of the owner, for at most [`WATCH_MS`] unless the owner is idle. Returns `true` if it is idle
/// now, and `None` once it has ended.
fn wait(pipe: &Stdin, is_idle: bool) -> Option<bool> {
    let limit = if is_idle {
        PollTimeout::NONE
    } else {
        PollTimeout::from(WATCH_MS)
    };
    let mut pipes = [PollFd::new(pipe.as_fd(), PollFlags::POLLIN)];
    match poll(&mut pipes, limit) {
        Ok(0) | Err(nix::Error::EINTR) => return Some(is_idle),
        Ok(_) => {}
        Err(_) => return None,
    }
    let mut reports = [0; 64];
    match nix::unistd::read(pipe, &mut reports) {
        Ok(0) => None,
        Ok(count) => Some(reports[count - 1] == IDLE),
        Err(nix::Error::EINTR) => Some(is_idle),
        Err(_) => None,
    }
}

fn undo(providers: &Providers) {
    if let Ok(directory) = std::env::current_dir() {
        changed_files::restore(providers, &directory);
    }
    sweep_private_files();
}
