//! Leftovers: processes whose owner died.

use std::fmt::Write as _;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::os;

/// Time limit of a sweep: killed processes may start others before they die, and an owner takes a moment to exit.
const SWEEP_LIMIT: Duration = Duration::from_secs(2);
/// Interval of the looks of a sweep.
const PAUSE: Duration = Duration::from_millis(5);

/// A process of a run whose owner died without stopping it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Leftover {
    /// Its process id.
    pub pid: u32,
    /// Its command line, arguments separated by spaces. May hold a prompt.
    pub command: String,
    /// Id of its run: the innermost one whose owner is dead.
    pub run_id: String,
    /// All of its runs whose owner is dead.
    run_ids: Vec<String>,
    pub(crate) start_time: u64,
}

impl Leftover {
    /// Creates a fake process for tests. [`kill`](Self::kill) never signals the process with this id.
    pub fn new(pid: u32, command: impl Into<String>, run_id: impl Into<String>) -> Self {
        let run_id = run_id.into();
        Self {
            pid,
            command: command.into(),
            run_ids: vec![run_id.clone()],
            run_id,
            start_time: 0,
        }
    }

    fn of(orphan: os::Orphan) -> Self {
        Self {
            pid: orphan.process.pid,
            command: orphan.command,
            run_id: orphan.run_ids.last().cloned().unwrap_or_default(),
            run_ids: orphan.run_ids,
            start_time: orphan.process.start_time,
        }
    }

    /// Returns whether one of its runs whose owner is dead, also an outer one, has an id that begins with this. The id of
    /// a run begins with its owner: `PID-START_TIME-`.
    pub fn is_of(&self, owner: &str) -> bool {
        self.run_ids.iter().any(|id| id.starts_with(owner))
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
/// another PID namespace, such as that of a container, are not listed. Those that own runs themselves are first: ended
/// in this order, they start no others.
///
/// Linux only; empty elsewhere.
pub fn leftovers() -> Vec<Leftover> {
    let orphans = os::orphans().orphans.into_iter();
    orphans.map(Leftover::of).collect()
}

/// Ends (SIGKILL) the leftovers of killed runs that worked in this directory, and returns them. Leftovers of runs
/// that keep background work and of runs in other directories are not affected. Repeats that until none is found, and
/// waits for owners that are exiting, for 2 s at most.
///
/// There are none if the owner exited normally. The program's guard process calls this when a run starts, because
/// owner and guard may have been killed together.
///
/// Linux only; no effect elsewhere.
pub fn sweep_leftovers(directory: &Path) -> Vec<Leftover> {
    let Some(hash) = directory_hash(directory) else {
        return Vec::new();
    };
    let is_here = |id: &String| id.split('-').nth(3) == Some(&hash);
    let until = Instant::now() + SWEEP_LIMIT;
    let mut all = Vec::new();
    loop {
        let os::Orphans { orphans, dying } = os::orphans();
        let left = orphans.into_iter().map(Leftover::of);
        let left: Vec<_> = left.filter(|it| it.run_ids.iter().any(is_here)).collect();
        for left in &left {
            // The process may have ended meanwhile.
            let _ = left.kill();
        }
        let is_done = left.is_empty() && !dying.iter().any(is_here);
        all.extend(left);
        if is_done || Instant::now() >= until {
            all.sort_by_key(|left| (left.pid, left.start_time));
            all.dedup();
            return all;
        }
        sleep(PAUSE);
    }
}

/// Returns a short hash of a directory for a run's mark. It is the same for all processes and versions. `None` if the
/// directory does not exist.
pub(crate) fn directory_hash(directory: &Path) -> Option<String> {
    let directory = directory.canonicalize().ok()?;
    // FNV-1a.
    let hash = directory
        .as_os_str()
        .as_bytes()
        .iter()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
        });
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = write!(text, "{hash:016x}");
    Some(text)
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

    /// Records the current descendants, and returns the processor time that they and the process have used. What ended ones
    /// have used may be missing, so it can decrease. `None` where it cannot be read.
    pub fn processor_time(&mut self) -> Option<Duration> {
        self.look();
        let all = self.known.iter().map(|process| process.pid);
        let used = all.chain([self.root]).filter_map(os::processor_ticks);
        let used = used.reduce(|sum, ticks| sum + ticks)?;
        Some(Duration::from_millis(used * os::TICK_MS))
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
    use std::time::{Duration, Instant};

    use super::*;

    fn wait_until(mut condition: impl FnMut() -> bool) {
        let deadline = Instant::now() + Duration::from_mins(1);
        while !condition() {
            assert!(Instant::now() < deadline, "it should have happened by now");
            std::thread::yield_now();
        }
    }

    #[test]
    fn directory_has_the_same_hash_by_any_of_its_names() {
        let temp = tempfile::tempdir().unwrap();
        let link = temp.path().join("link");
        let real = temp.path().join("real");
        std::fs::create_dir(&real).unwrap();
        std::os::unix::fs::symlink(&real, &link).unwrap();
        assert_eq!(directory_hash(&link), directory_hash(&real));
        assert_ne!(directory_hash(&real), directory_hash(temp.path()));
        assert_eq!(directory_hash(Path::new("/")).unwrap(), "af63a24c860189fe");
        assert_eq!(directory_hash(Path::new("/nowhere/at/all")), None);
    }

    /// The owner of the outer run is dead. The inner `teamster`, whose run is in another directory, starts its agent again
    /// if that ends first.
    #[test]
    fn inner_teamster_is_ended_first_with_its_descendants() {
        let dir = tempfile::tempdir().unwrap();
        let (pids, again) = (dir.path().join("pids"), dir.path().join("again"));
        let script = "start=$(cut -d ' ' -f 22 /proc/$$/stat)
            inner=\"$TEAMSTER_RUN_ID,$$-$start-1-elsewhere\"
            while :; do
                TEAMSTER_RUN_ID=$inner sh -c 'echo $$ > \"$1\"; exec sleep 1000' sh \"$1\"
                echo again > \"$2\"
            done";
        let hash = directory_hash(dir.path()).unwrap();
        let mut inner = Command::new("sh")
            .args(["-c", script, "sh"])
            .args([&pids, &again])
            // No process with this id started so early.
            .env("TEAMSTER_RUN_ID", format!("4194303-1-1-{hash}"))
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        wait_until(|| std::fs::read_to_string(&pids).is_ok_and(|it| it.ends_with('\n')));
        let agent: u32 = std::fs::read_to_string(&pids)
            .unwrap()
            .trim()
            .parse()
            .unwrap();
        let swept: Vec<u32> = sweep_leftovers(dir.path())
            .iter()
            .map(|it| it.pid)
            .collect();
        assert!(
            swept.contains(&inner.id()) && swept.contains(&agent),
            "{swept:?}"
        );
        inner.wait().unwrap();
        assert!(crate::ProcessIdentity::of(agent).is_none());
        assert!(!again.exists());
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
        wait_until(|| !descendants.kill());
        assert!(!sleep.is_running());
    }
}
