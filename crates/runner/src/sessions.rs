//! Locks that give each session of a provider one writer, across processes.
//!
//! A CLI that resumes a session while another process uses it fails to answer, loses turns or mixes them.
//! Therefore a session is locked while a run or a live session uses it.

mod one_writer;

use std::fmt::Write as _;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use serde::{Deserialize, Serialize};
use teamster_core::sync::lock;
use teamster_core::text::excerpt;
use teamster_core::{AgentError, AgentEvent, ExecuteParams};
use teamster_process::make_private_folder;

use crate::step::{Step, before};
pub use one_writer::OneWriter;

/// Maximum length of the name of a lock file, in bytes.
const NAME_BYTES: usize = 200;

/// Holder of a session.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
#[non_exhaustive]
pub struct SessionHolder {
    /// Id of the detached run, if the holder is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_id: Option<String>,
    /// Directory of the agent, if the holder is an agent loop.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<PathBuf>,
    /// Process id of the holder.
    pub pid: u32,
}

/// Locks of sessions, in a folder of the user. Clones share reservations.
#[derive(Debug, Clone)]
pub struct SessionLocks {
    folder: Arc<Path>,
    holder: SessionHolder,
    /// Number that clones share, and no other locks of this process.
    owner: u64,
}

impl SessionLocks {
    /// Uses the locks in this folder, which is created with the first lock.
    pub fn at(folder: impl Into<PathBuf>) -> Self {
        Self {
            folder: folder.into().into(),
            holder: SessionHolder {
                pid: std::process::id(),
                ..SessionHolder::default()
            },
            owner: OWNERS.fetch_add(1, Ordering::Relaxed),
        }
    }

    /// Names a detached run as the holder in errors of other processes.
    #[must_use]
    pub fn held_by_run(mut self, run_id: Option<String>) -> Self {
        self.holder.run_id = run_id;
        self
    }

    /// Names the loop of the agent in this directory as the holder in errors of other processes.
    #[must_use]
    pub fn held_by_agent(mut self, directory: impl Into<PathBuf>) -> Self {
        self.holder.agent = Some(directory.into());
        self
    }

    /// Returns a writer for sessions of this provider.
    pub fn writer(&self, provider: &str) -> SessionWriter {
        SessionWriter {
            locks: self.clone(),
            provider: provider.to_owned(),
            held: Vec::new(),
        }
    }

    /// Locks a session. Returns `None` without a lock if the folder cannot be used. Fails with the holder's name if the
    /// session is in use.
    fn lock(&self, provider: &str, session_id: &str) -> Result<Option<SessionLock>, AgentError> {
        let path = self.folder.join(file_name(provider, session_id));
        let is_own = |it: &mut Reserved| it.owner == self.owner && it.lock.path == path;
        if let Some(reserved) = lock(&RESERVED).extract_if(.., is_own).next() {
            return Ok(Some(reserved.lock));
        }
        match self.try_lock(&path) {
            Ok(Ok(file)) => Ok(Some(SessionLock {
                session_id: session_id.to_owned(),
                path,
                file,
            })),
            Ok(Err(holder)) => Err(in_use(session_id, &holder)),
            Err(_) => Ok(None),
        }
    }

    /// Returns the locked file, or the holder.
    fn try_lock(&self, path: &Path) -> io::Result<Result<File, SessionHolder>> {
        make_private_folder(&self.folder)?;
        loop {
            before(Step::CreateSessionLock);
            let mut file = OpenOptions::new()
                .read(true)
                .write(true)
                .create(true)
                .truncate(false)
                .mode(0o600)
                .open(path)?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => {
                    let mut text = String::new();
                    file.read_to_string(&mut text)?;
                    // The file is empty between the lock and the write of the holder.
                    return Ok(Err(serde_json::from_str(&text).unwrap_or_default()));
                }
                Err(TryLockError::Error(error)) => return Err(error),
            }
            // The previous holder may have removed this file: then the next process opens another one.
            let own = file.metadata()?;
            let is_there = fs::metadata(path)
                .is_ok_and(|there| (own.dev(), own.ino()) == (there.dev(), there.ino()));
            if is_there {
                before(Step::NameSessionHolder);
                // ext4 writes a file that was truncated to the disk when it is closed, even if it was empty.
                if own.len() > 0 {
                    file.set_len(0)?;
                }
                file.write_all(&serde_json::to_vec(&self.holder)?)?;
                return Ok(Ok(file));
            }
        }
    }
}

#[derive(Debug)]
struct SessionLock {
    session_id: String,
    path: PathBuf,
    file: File,
}

impl Drop for SessionLock {
    fn drop(&mut self) {
        before(Step::RemoveSessionLock);
        // While the lock is held, the file at this path is this one.
        let _ = fs::remove_file(&self.path);
        // Unlock explicitly: a child process that is being started may still have the file open.
        let _ = self.file.unlock();
    }
}

/// Lock of a run that has not begun.
struct Reserved {
    /// [`SessionLocks::owner`]
    owner: u64,
    lock: SessionLock,
}

/// Locks of this process for runs that have not begun.
static RESERVED: Mutex<Vec<Reserved>> = Mutex::new(Vec::new());
static OWNERS: AtomicU64 = AtomicU64::new(0);

/// Locks of a run that is about to begin. The next writer of the same [`SessionLocks`] for one of its sessions takes the
/// lock over. Those that none has taken are released on drop.
#[derive(Debug)]
pub struct SessionReservation {
    owner: u64,
    paths: Vec<PathBuf>,
}

impl Drop for SessionReservation {
    fn drop(&mut self) {
        let is_own =
            |it: &mut Reserved| it.owner == self.owner && self.paths.contains(&it.lock.path);
        let released: Vec<_> = lock(&RESERVED).extract_if(.., is_own).collect();
        drop(released);
    }
}

/// Sessions that one run or live session has locked. They are released on drop.
#[derive(Debug)]
pub struct SessionWriter {
    locks: SessionLocks,
    provider: String,
    held: Vec<SessionLock>,
}

impl SessionWriter {
    /// Locks the session that these parameters resume, if any. A fork only reads its session and needs no lock.
    ///
    /// # Errors
    ///
    /// Fails with the holder's name if the session is in use.
    pub fn begin(&mut self, params: &ExecuteParams) -> Result<(), AgentError> {
        match &params.session_id {
            Some(id) if !params.fork => self.hold(id),
            _ => Ok(()),
        }
    }

    /// Locks a session that an event reports as begun.
    pub fn see(&mut self, event: &AgentEvent) {
        if let AgentEvent::SessionStarted(session) = event {
            // The session is in use already, so a failed lock changes nothing.
            let _ = self.hold(&session.session_id);
        }
    }

    /// Locks this session and releases all others; with `None` releases all.
    ///
    /// # Errors
    ///
    /// Fails with the holder's name if the session is in use. Then no session is locked.
    pub fn follow(&mut self, session_id: Option<&str>) -> Result<(), AgentError> {
        (self.held).retain(|held| Some(&*held.session_id) == session_id);
        session_id.map_or(Ok(()), |id| self.hold(id))
    }

    /// Keeps the locks for the run that begins next with a clone of these [`SessionLocks`]. Without this, another process could take a session
    /// after it was found to be free.
    #[must_use]
    pub fn reserve(self) -> SessionReservation {
        let owner = self.locks.owner;
        let paths = self.held.iter().map(|it| it.path.clone()).collect();
        let reserved = self.held.into_iter().map(|lock| Reserved { owner, lock });
        lock(&RESERVED).extend(reserved);
        SessionReservation { owner, paths }
    }

    /// Releases all sessions and switches to another provider.
    pub(crate) fn switch(&mut self, provider: &str) {
        self.held.clear();
        provider.clone_into(&mut self.provider);
    }

    fn hold(&mut self, session_id: &str) -> Result<(), AgentError> {
        if self.held.iter().all(|held| held.session_id != session_id) {
            self.held
                .extend(self.locks.lock(&self.provider, session_id)?);
        }
        Ok(())
    }
}

fn in_use(session_id: &str, holder: &SessionHolder) -> AgentError {
    let (who, step) = match (&holder.run_id, &holder.agent) {
        (Some(run), _) => (
            format!("run {run}"),
            "wait for its end, or stop it".to_owned(),
        ),
        (None, Some(agent)) => (
            format!(
                "the agent loop in {}",
                excerpt(&agent.to_string_lossy(), 500)
            ),
            "end the loop first".to_owned(),
        ),
        (None, None) => (
            format!("process {}", holder.pid),
            "wait for its end".to_owned(),
        ),
    };
    let session_id = excerpt(session_id, 100);
    let error = AgentError::session_in_use(
        "session_id",
        format!("{who} works with session {session_id}: {step}"),
    );
    match &holder.run_id {
        Some(run) => error.held_by(run),
        None => error,
    }
}

/// Returns the name of a session's lock file. Ids come from CLIs, so unusual bytes are percent-encoded.
fn file_name(provider: &str, session_id: &str) -> String {
    let mut name = String::new();
    for byte in provider.bytes().chain(*b".").chain(session_id.bytes()) {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' => name.push(byte.into()),
            b'.' if !name.is_empty() => name.push('.'),
            // Writing to a string cannot fail.
            _ => _ = write!(name, "%{byte:02x}"),
        }
    }
    name.truncate(NAME_BYTES);
    name + ".lock"
}

#[cfg(test)]
mod tests {
    use teamster_core::ErrorCode;

    use super::*;

    fn resuming(id: &str) -> ExecuteParams {
        let mut params = ExecuteParams::new("x");
        params.session_id = Some(id.to_owned());
        params
    }

    #[test]
    fn a_session_has_one_writer_until_that_is_dropped() {
        let dir = tempfile::tempdir().unwrap();
        let locks = SessionLocks::at(dir.path().join("sessions"));
        let run = locks.clone().held_by_run(Some("r".to_owned()));
        let mut first = run.writer("claude");
        first.begin(&resuming("s")).unwrap();
        // The holder can lock its session again.
        first.begin(&resuming("s")).unwrap();

        let mut second = locks.writer("claude");
        let error = second.begin(&resuming("s")).unwrap_err();
        assert_eq!(error.code, ErrorCode::SessionInUse);
        assert!(
            error.message.contains("run r works with session s"),
            "{error}"
        );
        assert_eq!(error.holder(), Some("r"));
        let mut fork = resuming("s");
        fork.fork = true;
        second.begin(&fork).unwrap();
        second.begin(&resuming("t")).unwrap();
        locks.writer("codex").begin(&resuming("s")).unwrap();

        drop(first);
        second.begin(&resuming("s")).unwrap();
        let error = run.writer("claude").begin(&resuming("t")).unwrap_err();
        let process = format!("process {}", std::process::id());
        assert!(error.message.contains(&process), "{error}");
        assert_eq!(error.holder(), None);
        drop(second);
        assert_eq!(
            fs::read_dir(dir.path().join("sessions")).unwrap().count(),
            0
        );
    }

    #[test]
    fn a_session_stays_locked_from_the_check_to_the_run() {
        let dir = tempfile::tempdir().unwrap();
        let locks = SessionLocks::at(dir.path());
        let file = dir.path().join(file_name("claude", "s"));
        // As another process would take it.
        let is_free = || File::open(&file).is_ok_and(|file| file.try_lock().is_ok());
        for begins in [true, false] {
            let mut check = locks.writer("claude");
            check.begin(&resuming("s")).unwrap();
            let reservation = check.reserve();
            assert!(file.exists() && !is_free());
            let mut run = locks.writer("claude");
            if begins {
                run.begin(&resuming("s")).unwrap();
                assert!(locks.writer("claude").begin(&resuming("s")).is_err());
            }
            drop(reservation);
            assert_eq!(file.exists() && !is_free(), begins);
            drop(run);
            assert!(!file.exists());
        }
    }

    #[test]
    fn a_reservation_is_taken_over_by_its_own_run_only() {
        let dir = tempfile::tempdir().unwrap();
        let locks = || SessionLocks::at(dir.path()).held_by_run(Some("r".to_owned()));
        let (own, other) = (locks(), locks());
        let mut check = own.writer("claude");
        check.begin(&resuming("s")).unwrap();
        let reservation = check.reserve();
        let error = other.writer("claude").begin(&resuming("s")).unwrap_err();
        assert!(error.message.contains("run r works with"), "{error}");
        own.writer("claude").begin(&resuming("s")).unwrap();
        drop(reservation);
        other.writer("claude").begin(&resuming("s")).unwrap();
    }

    #[test]
    fn a_loop_follows_its_session_from_one_to_the_next() {
        let dir = tempfile::tempdir().unwrap();
        let locks = SessionLocks::at(dir.path());
        let mut agent = locks
            .clone()
            .held_by_agent("/agents/triage")
            .writer("claude");
        let mut other = locks.writer("claude");
        agent.follow(Some("s")).unwrap();
        let error = other.begin(&resuming("s")).unwrap_err();
        assert_eq!(
            error.message,
            "session_id: the agent loop in /agents/triage works with session s: end the loop first"
        );
        agent.follow(Some("t")).unwrap();
        other.begin(&resuming("s")).unwrap();
        assert!(other.begin(&resuming("t")).is_err());
        // After the error no session is locked.
        assert!(agent.follow(Some("s")).is_err());
        other.begin(&resuming("t")).unwrap();
        drop(other);
        agent.follow(Some("s")).unwrap();
        agent.follow(None).unwrap();
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn many_that_want_a_session_have_it_one_after_the_other() {
        let dir = tempfile::tempdir().unwrap();
        let locks = SessionLocks::at(dir.path());
        let inside = std::sync::atomic::AtomicU32::new(0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let mut had = 0;
                    while had < 50 {
                        let mut writer = locks.writer("claude");
                        if writer.begin(&resuming("s")).is_ok() {
                            use std::sync::atomic::Ordering::SeqCst;
                            assert_eq!(inside.fetch_add(1, SeqCst), 0);
                            inside.fetch_sub(1, SeqCst);
                            had += 1;
                        }
                    }
                });
            }
        });
    }

    #[test]
    fn names_of_files() {
        assert_eq!(file_name("claude", "a-b_1"), "claude.a-b_1.lock");
        assert_eq!(file_name("acp:x y", "../é"), "acp%3ax%20y...%2f%c3%a9.lock");
        assert!(file_name("claude", &"x".repeat(5000)).len() < 255);
    }
}
