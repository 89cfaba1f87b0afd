//! Processes that a dead owner left behind.

use std::fmt::Write as _;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use crate::os;

/// A process of a run whose owner died without stopping it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Leftover {
    /// Its process id.
    pub pid: u32,
    /// Its command line, arguments separated by spaces. May hold a prompt.
    pub command: String,
    /// The run that it belongs to: the last id in its `TEAMSTER_RUN_ID`.
    pub run_id: String,
    pub(crate) start_time: u64,
}

impl Leftover {
    /// A made-up process for tests: [`kill`](Self::kill) never signals the process with this id.
    pub fn new(pid: u32, command: impl Into<String>, run_id: impl Into<String>) -> Self {
        Self {
            pid,
            command: command.into(),
            run_id: run_id.into(),
            start_time: 0,
        }
    }

    /// Ends it with SIGKILL, if it is still the same process. Already gone is no error.
    pub fn kill(&self) -> io::Result<()> {
        os::kill_process(os::Process {
            pid: self.pid,
            start_time: self.start_time,
        })
    }
}

/// The processes which carry the mark of a run whose owner, a process that used this crate, no
/// longer lives. Those in another process namespace (of a container, say) are not listed.
///
/// Linux only; elsewhere there are none.
pub fn leftovers() -> Vec<Leftover> {
    let orphans = os::orphans().into_iter();
    let leftover = |orphan: os::Orphan| Leftover {
        pid: orphan.process.pid,
        command: orphan.command,
        run_id: orphan.run_id,
        start_time: orphan.process.start_time,
    };
    orphans.map(leftover).collect()
}

/// Ends (SIGKILL) what killed runs have left that worked in this directory; what that was. Those that were
/// asked to keep work in the background are left alone, and so are those in other directories.
///
/// Nothing is left if the owner came to its end in order. The program's guard process does this before each
/// run, because owner and guard may have been killed together.
///
/// Linux only; elsewhere nothing is found.
pub fn sweep_leftovers(directory: &Path) -> Vec<Leftover> {
    let Some(place) = place(directory) else {
        return Vec::new();
    };
    let mut left = leftovers();
    left.retain(|left| left.run_id.split('-').nth(3) == Some(&place));
    for left in &left {
        // It may be gone by now.
        let _ = left.kill();
    }
    left
}

/// A directory as a part of a run's mark: short, and the same for all processes and versions. `None` for one
/// that is not there.
pub(crate) fn place(directory: &Path) -> Option<String> {
    let directory = directory.canonicalize().ok()?;
    // FNV-1a.
    let hash = directory
        .as_os_str()
        .as_bytes()
        .iter()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
        });
    let mut place = String::new();
    // Writing to a string cannot fail.
    let _ = write!(place, "{hash:016x}");
    Some(place)
}

/// The descendants of a process, remembered while it lives: once it has ended, nothing leads from it to those
/// that left its group and session and threw away their environment.
#[derive(Debug)]
pub struct Descendants {
    root: u32,
    known: Vec<os::Process>,
}

impl Descendants {
    /// Of the process with this id, which must live; nothing is known of them yet.
    pub fn of(root: u32) -> Self {
        let known = Vec::new();
        Self { root, known }
    }

    /// Remembers those that there are now, but not the caller.
    pub fn look(&mut self) {
        self.known.retain(|process| os::is_running(*process));
        os::add_children(&[self.root], &mut self.known);
    }

    /// The process has ended: ends (SIGKILL) those that are known, and their descendants. Whether any was left.
    pub fn kill(&mut self) -> bool {
        self.known.retain(|process| os::is_running(*process));
        os::add_children(&[], &mut self.known);
        for process in &self.known {
            // It may be gone by now.
            let _ = os::kill_process(*process);
        }
        !self.known.is_empty()
    }
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn a_place_is_the_same_by_any_of_its_names() {
        let temp = tempfile::tempdir().unwrap();
        let link = temp.path().join("link");
        let real = temp.path().join("real");
        std::fs::create_dir(&real).unwrap();
        std::os::unix::fs::symlink(&real, &link).unwrap();
        assert_eq!(place(&link), place(&real));
        assert_ne!(place(&real), place(temp.path()));
        assert_eq!(place(Path::new("/")).unwrap(), "af63a24c860189fe");
        assert_eq!(place(Path::new("/nowhere/at/all")), None);
    }

    #[test]
    fn descendants_are_known_after_their_parents_are_gone() {
        let mut child = Command::new("sh")
            .args(["-c", "env -i setsid sleep 60 & echo $!; read go"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut out = String::new();
        let mut stdout = child.stdout.take().unwrap();
        while !out.ends_with('\n') {
            let mut byte = [0];
            io::Read::read_exact(&mut stdout, &mut byte).unwrap();
            out.push(byte[0].into());
        }
        let sleep = out.trim().parse().unwrap();
        let sleep = crate::ProcessIdentity::of(sleep).unwrap();
        let mut descendants = Descendants::of(child.id());
        descendants.look();
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(sleep.is_running());
        while descendants.kill() {
            std::thread::yield_now();
        }
        assert!(!sleep.is_running());
    }
}
