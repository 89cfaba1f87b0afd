//! Process that holds a lock: the loop of a directory, started by any program, or a supervisor.

use std::fs::{self, File, TryLockError};
use std::path::Path;

use teamster_core::time::epoch_ms_of;
use teamster_process::ProcessIdentity;

use super::last_start::TOLERANCE_MS;
use crate::ORCHESTRATOR;
use crate::folder::LOCK;

/// Returns the loop in this directory and its start time in milliseconds, from the lock file. `None` unless the
/// process is in the directory and started before the file was written. The lock itself is not tried: that
/// could refuse a loop that is starting.
pub(crate) fn running(working_dir: &Path) -> Option<(ProcessIdentity, u64)> {
    let (process, began) = named_in(&working_dir.join(ORCHESTRATOR).join(LOCK))?;
    let there = process.directory()? == fs::canonicalize(working_dir).ok()?;
    there.then_some((process, began))
}

/// Returns the supervisor that holds this lock file, and its start time in milliseconds.
pub(crate) fn supervisor(lock: &Path) -> Option<(ProcessIdentity, u64)> {
    let named = named_in(lock)?;
    let held = File::open(lock).ok()?.try_lock_shared();
    matches!(held, Err(TryLockError::WouldBlock)).then_some(named)
}

/// Returns the process that a lock file names, and its start time in milliseconds. `None` unless it started before the
/// file was written.
fn named_in(file: &Path) -> Option<(ProcessIdentity, u64)> {
    let found = fs::metadata(file).ok().filter(fs::Metadata::is_file)?;
    let written = epoch_ms_of(found.modified().ok()?);
    let pid = fs::read_to_string(file).ok()?.trim().parse().ok()?;
    let process = ProcessIdentity::of(pid)?;
    let began = process.started_at_ms()?;
    (began <= written.saturating_add(TOLERANCE_MS)).then_some((process, began.min(written)))
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::fs::File;
    use std::process::Command;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::thread;
    use std::time::{Duration, SystemTime};

    use super::super::socket::Lock;
    use super::*;

    #[test]
    fn clients_that_look_for_a_supervisor_do_not_block_its_start() {
        let dir = tempfile::tempdir().unwrap();
        let lock = dir.path().join("lock");
        // The file names this process, which is running.
        drop(Lock::take(&lock).unwrap().unwrap());
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    while !is_over.load(Ordering::Relaxed) {
                        supervisor(&lock);
                    }
                });
            }
            let refused = (0..100).filter(|_| Lock::take(&lock).unwrap().is_err());
            let refused = refused.count();
            is_over.store(true, Ordering::Relaxed);
            assert_eq!(refused, 0);
        });
    }

    #[test]
    fn lock_holder_is_found_only_if_it_is_older_than_the_lock() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(running(dir.path()), None);
        fs::create_dir(dir.path().join(ORCHESTRATOR)).unwrap();
        let lock = dir.path().join(ORCHESTRATOR).join(LOCK);
        let mut child = Command::new("sleep")
            .arg("60")
            .current_dir(dir.path())
            .spawn()
            .unwrap();
        fs::write(&lock, format!("{}\n", child.id())).unwrap();
        let identity = ProcessIdentity::of(child.id());
        assert_eq!(running(dir.path()).map(|(it, _)| it), identity);

        // The id was reused by another process.
        let hour = Duration::from_hours(1);
        let file = File::options().write(true).open(&lock).unwrap();
        file.set_modified(SystemTime::now() - hour).unwrap();
        assert_eq!(running(dir.path()), None);
        // The process is in another directory.
        fs::write(&lock, std::process::id().to_string()).unwrap();
        assert_eq!(running(dir.path()), None);

        fs::write(&lock, child.id().to_string()).unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(running(dir.path()), None);
    }
}
