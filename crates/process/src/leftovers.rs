//! Leftovers: processes whose owner died.

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
    /// Id of its run: the last one in its `TEAMSTER_RUN_ID`.
    pub run_id: String,
    pub(crate) start_time: u64,
}

impl Leftover {
    /// Creates a fake process for tests. [`kill`](Self::kill) never signals the process with this id.
    pub fn new(pid: u32, command: impl Into<String>, run_id: impl Into<String>) -> Self {
        Self {
            pid,
            command: command.into(),
            run_id: run_id.into(),
            start_time: 0,
        }
    }

    /// Ends the process with SIGKILL, if it is still the same one. It is not an error if it has ended.
    ///
    /// # Errors
    ///
    /// Fails if this process lacks the permission.
    pub fn kill(&self) -> io::Result<()> {
        os::kill_process(os::Process {
            pid: self.pid,
            start_time: self.start_time,
        })
    }
}

/// Returns the processes that carry the mark of a run whose owner, a process that used this crate, is dead. Those in
/// another PID namespace, such as that of a container, are not listed.
///
/// Linux only; empty elsewhere.
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

/// Ends (SIGKILL) the leftovers of killed runs that worked in this directory, and returns them. Leftovers of runs
/// that keep background work and of runs in other directories are not affected.
///
/// There are none if the owner exited normally. The program's guard process calls this before each run, because
/// owner and guard may have been killed together.
///
/// Linux only; no effect elsewhere.
pub fn sweep_leftovers(directory: &Path) -> Vec<Leftover> {
    let Some(place) = place(directory) else {
        return Vec::new();
    };
    let mut left = leftovers();
    left.retain(|left| left.run_id.split('-').nth(3) == Some(&place));
    for left in &left {
        // The process may have ended meanwhile.
        let _ = left.kill();
    }
    left
}

/// Returns a short hash of a directory for a run's mark. It is the same for all processes and versions. `None` if the
/// directory does not exist.
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

/// The descendants of a process, recorded while it lives. After its end, nothing leads to descendants that left its
/// group and session and cleared their environment.
#[derive(Debug)]
pub struct Descendants {
    root: u32,
    known: Vec<os::Process>,
}

impl Descendants {
    /// Creates an empty record for the process with this id, which MUST be alive.
    pub fn of(root: u32) -> Self {
        let known = Vec::new();
        Self { root, known }
    }

    /// Records the current descendants, except the caller.
    pub fn look(&mut self) {
        self.known.retain(|process| os::is_running(*process));
        os::add_children(&[self.root], &mut self.known);
    }

    /// Ends (SIGKILL) the recorded descendants and their descendants after the end of the process. Returns whether any
    /// were left.
    pub fn kill(&mut self) -> bool {
        self.known.retain(|process| os::is_running(*process));
        os::add_children(&[], &mut self.known);
        for process in &self.known {
            // The process may have ended meanwhile.
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
