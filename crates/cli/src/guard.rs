//! Ends what a run started when `teamster` itself is killed.
//!
//! The kernel ends the agent's CLI with us, but not the commands that the CLI has running, which
//! are in sessions of their own. So a second process of this program holds the other end of a pipe
//! whose closing it cannot miss, and then looks for what is left.

use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

/// The first argument of a process that is a guard; the second is the process id of its owner.
pub(crate) const ARGUMENT: &str = "--teamster-guard";
/// How long the guard looks: its owner takes a moment to disappear, and so does what it ends.
const LOOK_FOR: Duration = Duration::from_secs(3);
const PAUSE: Duration = Duration::from_millis(20);
/// How long the undo is repeated: the kernel closes the files of the owner, and so gives up its
/// locks, one after the other, and the pipe may be among the first.
const SETTLE: Duration = Duration::from_millis(500);

/// A guard that is there while this lives. Dropped at the usual end, when nothing is left to end.
pub(crate) struct Guard(Child);

impl Guard {
    /// Without one a run is as good; only being killed leaves more behind. So failing is no error.
    /// `directory` is where the agent works: a killed run may have left a configuration file changed
    /// there.
    pub(crate) fn start(directory: Option<&Path>) -> Option<Self> {
        if !cfg!(target_os = "linux") {
            // Nothing left behind could be found.
            return None;
        }
        let mut command = Command::new(std::env::current_exe().ok()?);
        command
            .args([ARGUMENT, &std::process::id().to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        if let Some(directory) = directory.filter(|it| it.is_dir()) {
            command.current_dir(directory);
        }
        // Ctrl-C at the terminal is not meant for it.
        command.process_group(0);
        command.spawn().ok().map(Self)
    }
}

impl Guard {
    /// Its process id.
    pub(crate) fn pid(&self) -> u32 {
        self.0.id()
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        // Already gone is no error.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Waits for the end of the process with the id given, ends what it left behind, and undoes what it
/// changed.
pub(crate) fn main(owner: Option<&str>) -> ExitCode {
    let Some(owner) = owner.and_then(|pid| pid.parse::<u32>().ok()) else {
        return ExitCode::from(crate::exit_code::USAGE);
    };
    // Nothing is ever written: this returns when the owner is gone, however it went.
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
    let runs = format!("{owner}-");
    let start = Instant::now();
    // Beside the search, because another process may hold it up for some seconds. The user's next run
    // of the CLI must not find what this one put into his files. Without a thread the end does it.
    let undoing = std::thread::Builder::new().spawn(move || {
        while start.elapsed() < SETTLE {
            undo();
            std::thread::sleep(PAUSE);
        }
    });
    let until = start + LOOK_FOR;
    let mut found = false;
    while Instant::now() < until {
        let mut left = teamster::process::leftovers();
        left.retain(|process| process.run_id.starts_with(&runs));
        if found && left.is_empty() {
            break;
        }
        found |= !left.is_empty();
        for process in left {
            let _ = process.kill();
        }
        std::thread::sleep(PAUSE);
    }
    if let Ok(undoing) = undoing {
        let _ = undoing.join();
    }
    // Once more: a process that was ended may have written until then.
    undo();
    ExitCode::SUCCESS
}

fn undo() {
    if let Ok(directory) = std::env::current_dir() {
        crate::mcp::restore_quietly(&directory);
    }
    teamster::process::sweep_private_files();
}
