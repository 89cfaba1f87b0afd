//! Ends what a run started when `teamster` itself is killed.
//!
//! The kernel ends the agent's CLI with us, but not the commands that the CLI has running, which
//! are in sessions of their own. So a second process of this program holds the other end of a pipe
//! whose closing it cannot miss, and then looks for what is left: what carries the mark of a run, what
//! it has seen below its owner, and what carries the owner's own mark, because a process can throw away its
//! environment and with it the mark of the run.

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
use teamster::process::{
    Descendants, InheritedMark, leftovers, sweep_leftovers, sweep_private_files,
};

/// The first argument of a process that is a guard; then come the process id of its owner, and the mark of
/// what that starts, if there is one.
pub(crate) const ARGUMENT: &str = "--teamster-guard";
/// How often the guard looks what its owner has started, in milliseconds. Not while that rests.
const WATCH_MS: u16 = 250;
/// What the owner writes when its agent waits for a prompt, and when it works.
const RESTS: u8 = b'r';
const WORKS: u8 = b'w';
/// How long the guard looks: its owner takes a moment to disappear, and so does what it ends.
const LOOK_FOR: Duration = Duration::from_secs(3);
const PAUSE: Duration = Duration::from_millis(20);
/// How long the undo is repeated: the kernel closes the files of the owner, and so gives up its
/// locks, one after the other, and the pipe may be among the first.
const SETTLE: Duration = Duration::from_millis(500);

/// A guard that is there while this lives. Dropped at the usual end, when nothing is left to end.
pub(crate) struct Guard {
    process: Child,
    /// Ends what a run here has left whose guard was killed with it.
    sweep: Option<JoinHandle<()>>,
}

impl Guard {
    /// Without one a run is as good; only being killed leaves more behind. So failing is no error.
    /// `directory` is where the agent works: a killed run may have left a configuration file changed
    /// there.
    pub(crate) fn start(directory: Option<&Path>) -> Option<Self> {
        if !cfg!(target_os = "linux") {
            // Nothing left behind could be found.
            return None;
        }
        let mut command = Command::new(crate::program().ok()?);
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
        // Ctrl-C at the terminal is not meant for it.
        command.process_group(0);
        let process = command.spawn().ok()?;
        if let Some(pipe) = &process.stdin {
            // A guard that is stopped holds up nothing: without this it looks more often than needed.
            let _ = fcntl(pipe, FcntlArg::F_SETFL(OFlag::O_NONBLOCK));
        }
        let directory = directory.unwrap_or(Path::new(".")).to_owned();
        // It takes some milliseconds, which the run need not wait for.
        let sweep = std::thread::Builder::new().spawn(move || drop(sweep_leftovers(&directory)));
        Some(Self {
            process,
            sweep: sweep.ok(),
        })
    }
}

impl Guard {
    /// Its process id.
    pub(crate) fn pid(&self) -> u32 {
        self.process.id()
    }

    /// Reports whether the agent waits for a prompt. Until it works again the guard looks at nothing, so that a
    /// session at rest costs no processor time.
    pub(crate) fn rests(&self, rests: bool) {
        if let Some(mut pipe) = self.process.stdin.as_ref() {
            // A guard that is gone or does not read needs no report.
            let _ = pipe.write_all(&[if rests { RESTS } else { WORKS }]);
        }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        if let Some(sweep) = self.sweep.take() {
            // A panic in there was shown.
            let _ = sweep.join();
        }
        // Already gone is no error.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Waits for the end of the owner, ends what it left behind, and undoes what it changed: `restore` does that
/// with the configuration files of a directory.
pub(crate) fn main(args: &[OsString], restore: fn(&Path)) -> ExitCode {
    let number = |at: usize| args.get(at)?.to_str()?.parse::<u64>().ok();
    let Some(owner) = number(0).and_then(|pid| u32::try_from(pid).ok()) else {
        return ExitCode::from(crate::exit_code::USAGE);
    };
    let mark = number(1).map(InheritedMark::from_number);
    let mut descendants = Descendants::of(owner);
    let pipe = std::io::stdin();
    let mut rests = false;
    while let Some(reported) = wait(&pipe, rests) {
        rests = reported;
        descendants.look();
    }
    let runs = format!("{owner}-");
    let start = Instant::now();
    // Beside the search, because another process may hold it up for some seconds. The user's next run
    // of the CLI must not find what this one put into his files. Without a thread the end does it.
    let undoing = std::thread::Builder::new().spawn(move || {
        while start.elapsed() < SETTLE {
            undo(restore);
            std::thread::sleep(PAUSE);
        }
    });
    let until = start + LOOK_FOR;
    let mut found = false;
    while Instant::now() < until {
        let mut left = leftovers();
        left.retain(|process| process.run_id.starts_with(&runs));
        let marked = mark.is_some_and(InheritedMark::kill_all);
        let any = descendants.kill() || marked || !left.is_empty();
        if found && !any {
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
    // Once more: a process that was ended may have written until then.
    undo(restore);
    ExitCode::SUCCESS
}

/// Waits for a report of the owner; for a moment only, unless that rests. Whether it rests now; `None` once it has
/// ended, however that came.
fn wait(pipe: &Stdin, rests: bool) -> Option<bool> {
    let limit = if rests {
        PollTimeout::NONE
    } else {
        PollTimeout::from(WATCH_MS)
    };
    let mut pipes = [PollFd::new(pipe.as_fd(), PollFlags::POLLIN)];
    match poll(&mut pipes, limit) {
        Ok(0) | Err(nix::Error::EINTR) => return Some(rests),
        Ok(_) => {}
        Err(_) => return None,
    }
    let mut reports = [0; 64];
    match nix::unistd::read(pipe, &mut reports) {
        Ok(0) => None,
        Ok(count) => Some(reports[count - 1] == RESTS),
        Err(nix::Error::EINTR) => Some(rests),
        Err(_) => None,
    }
}

fn undo(restore: fn(&Path)) {
    if let Ok(directory) = std::env::current_dir() {
        restore(&directory);
    }
    sweep_private_files();
}
