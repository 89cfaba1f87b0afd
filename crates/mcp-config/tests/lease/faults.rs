//! Tests of disks that refuse an operation. The error is reported, nothing is damaged, and all changes can be undone.

use std::fs;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use teamster_mcp_config::lease::disk::{Disk, Step};
use teamster_mcp_config::lease::{Lease, LeaseError, Released, restore};

use crate::lease::support::{WORLDS, World};

/// ENOSPC, EROFS, EIO, EDQUOT: errors of a full, a read-only and a broken disk, and of a quota. EACCES: error of a
/// folder whose mode was changed meanwhile.
const ERRORS: [i32; 5] = [28, 30, 5, 122, 13];

/// The operations that fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fails {
    Once,
    FromThenOn,
}

/// Creates a disk that fails, with a counter of its operations.
fn bad_disk(at: usize, fails: Fails, error: i32, links: bool) -> (Disk, Arc<AtomicUsize>) {
    let count = Arc::new(AtomicUsize::new(0));
    let asked = Arc::clone(&count);
    let disk = Disk::with_hook(move |step, _| {
        let now = asked.fetch_add(1, Ordering::Relaxed) + 1;
        if now == at || now > at && fails == Fails::FromThenOn {
            return Err(io::Error::from_raw_os_error(error));
        }
        if step == Step::LinkOriginal && !links {
            return Err(io::ErrorKind::Unsupported.into());
        }
        Ok(())
    });
    (disk, count)
}

fn assert_helpful(error: &LeaseError) {
    let text = error.to_string();
    assert!(text.contains("os error"), "{text}");
    assert!(text.contains("cannot "), "{text}");
}

/// Asserts that the file has all of the user's servers.
fn assert_complete(world: &World, users: &[String], when: &str) {
    let servers = world.servers();
    assert!(users.iter().all(|user| servers.contains(user)), "{when}");
}

#[test]
fn an_error_at_any_operation_is_reported_and_undone() {
    let mut failed = 0;
    for name in WORLDS {
        for fails in [Fails::Once, Fails::FromThenOn] {
            for links in [true, false] {
                for at in 1.. {
                    let error = ERRORS[at % ERRORS.len()];
                    // A refused link alone is not an error, but the reason for a copy.
                    let (disk, count) = bad_disk(at, fails, error, links);
                    let world = World::new(name);
                    let users = world.servers();
                    let when = format!("{name}: {fails:?} at {at}, error {error}");
                    let ended =
                        Lease::acquire_on(&disk, &world.edit(&["ours"])).and_then(Lease::release);
                    if count.load(Ordering::Relaxed) < at {
                        assert_eq!(ended.unwrap(), Released::Restored, "{when}");
                        break;
                    }
                    failed += 1;
                    match ended {
                        Err(error) => assert_helpful(&error),
                        // The only error with another result: EACCES for a hard link.
                        Ok(_) => assert!(fails == Fails::Once && error == 13, "{when}"),
                    }
                    assert_complete(&world, &users, &when);
                    restore(&world.file).unwrap();
                    if links && error != 13 {
                        world.assert_as_before(&when);
                    } else {
                        world.assert_copied_as_before(&when);
                    }
                }
            }
        }
    }
    println!("{failed} errors");
    assert!(failed > 1_000, "{failed}");
}

#[test]
fn file_system_that_cannot_link_the_file_gets_a_copy() {
    for kind in [
        io::ErrorKind::PermissionDenied,
        io::ErrorKind::Unsupported,
        io::ErrorKind::CrossesDevices,
        io::ErrorKind::TooManyLinks,
        io::ErrorKind::InvalidInput,
    ] {
        let disk = Disk::with_hook(move |step, _| match step {
            Step::LinkOriginal => Err(kind.into()),
            _ => Ok(()),
        });
        let world = World::new("plain");
        let lease = Lease::acquire_on(&disk, &world.edit(&["ours"])).unwrap();
        assert_eq!(lease.release().unwrap(), Released::Restored, "{kind}");
        world.assert_copied_as_before(&kind.to_string());
    }
}

#[test]
fn an_acquisition_that_fails_once_leaves_nothing_behind() {
    for name in WORLDS {
        for at in 1.. {
            let error = ERRORS[at % 4];
            let (disk, count) = bad_disk(at, Fails::Once, error, true);
            let world = World::new(name);
            let lease = Lease::acquire_on(&disk, &world.edit(&["ours"]));
            if count.load(Ordering::Relaxed) < at {
                assert!(lease.is_ok(), "{name}");
                break;
            }
            assert_helpful(&lease.unwrap_err());
            world.assert_as_before(&format!("error {error} at {at}"));
        }
    }
}

#[test]
fn a_release_that_fails_can_be_finished_by_a_lease_or_a_restore() {
    for name in WORLDS {
        for fails in [Fails::Once, Fails::FromThenOn] {
            let mut reached = false;
            for at in 1.. {
                let world = World::new(name);
                let (disk, count) = bad_disk(at, fails, 28, true);
                let Ok(lease) = Lease::acquire_on(&disk, &world.edit(&["ours"])) else {
                    continue;
                };
                let released = lease.release();
                if count.load(Ordering::Relaxed) < at {
                    break;
                }
                reached = true;
                let error = released.unwrap_err().to_string();
                assert!(error.contains("make room on the disk"), "{error}");
                let step = format!("after that, restore {}", world.file.display());
                assert!(error.contains(&step), "{error}");
                let next = Lease::acquire(&world.edit(&["ours"])).unwrap();
                next.release().unwrap();
                world.assert_as_before(&format!("{fails:?} at {at}"));
            }
            assert!(reached, "{name}");
        }
    }
}

#[test]
fn an_error_beside_another_lease_does_that_no_harm() {
    for name in ["no folders", "plain", "two names", "toml"] {
        for fails in [Fails::Once, Fails::FromThenOn] {
            for at in 1.. {
                let world = World::new(name);
                let when = format!("{name}: {fails:?} at {at}");
                let first = Lease::acquire(&world.edit(&["first"])).unwrap();
                let (disk, count) = bad_disk(at, fails, 28, true);
                let acquired = Lease::acquire_on(&disk, &world.edit(&["ours"]));
                if acquired.is_err() && fails == Fails::Once {
                    assert!(!world.servers().contains(&"ours".to_owned()), "{when}");
                }
                let ended = acquired.and_then(Lease::release);
                let done = count.load(Ordering::Relaxed) < at;
                assert_eq!(ended.is_ok(), done, "{when}");
                assert!(world.servers().contains(&"first".to_owned()), "{when}");
                // The next lease can use the name.
                let again = Lease::acquire(&world.edit(&["ours"])).unwrap();
                assert_eq!(again.release().unwrap(), Released::Shared, "{when}");
                assert!(!world.servers().contains(&"ours".to_owned()), "{when}");
                assert_eq!(first.release().unwrap(), Released::Restored, "{when}");
                world.assert_as_before(&when);
                if done {
                    break;
                }
            }
        }
    }
}

#[test]
fn a_restore_that_fails_can_be_repeated() {
    for name in ["plain", "no folder", "link", "toml"] {
        for fails in [Fails::Once, Fails::FromThenOn] {
            for at in 1.. {
                let world = World::new(name);
                let (dead, _) = bad_disk(usize::MAX, Fails::Once, 5, true);
                let lease = Lease::acquire_on(&dead, &world.edit(&["ours"])).unwrap();
                // As if the process had been killed: there is no holder, and nothing was undone.
                let copy = World::new(name);
                copy.take_over(&world);
                drop(lease);
                let (disk, count) = bad_disk(at, fails, 28, true);
                let restored = teamster_mcp_config::lease::restore_on(&disk, &copy.file);
                let done = count.load(Ordering::Relaxed) < at;
                assert_eq!(restored.is_ok(), done, "{name} {fails:?} {at}");
                restore(&copy.file).unwrap();
                copy.assert_copied_as_before(&format!("{fails:?} {at}"));
                if done {
                    break;
                }
            }
        }
    }
}

#[test]
fn a_mounted_file_that_cannot_be_replaced_is_named() {
    let world = World::new("plain");
    let disk = Disk::with_hook(|step, _| match step {
        Step::ReplaceFile => Err(io::Error::from_raw_os_error(16)),
        _ => Ok(()),
    });
    let error = Lease::acquire_on(&disk, &world.edit(&["ours"])).unwrap_err();
    let text = error.to_string();
    assert!(text.contains("a file that is mounted by itself"), "{text}");
    world.assert_as_before("after the refusal");
}

#[test]
fn journal_is_on_disk_before_the_change_and_removed_after_it() {
    let world = World::new("no folder");
    let steps = Arc::new(std::sync::Mutex::new(Vec::new()));
    let seen = Arc::clone(&steps);
    let disk = Disk::with_hook(move |step, moment| {
        if moment == teamster_mcp_config::lease::disk::Moment::Before {
            seen.lock().unwrap().push(step);
        }
        Ok(())
    });
    let lease = Lease::acquire_on(&disk, &world.edit(&["ours"])).unwrap();
    let acquired = std::mem::take(&mut *steps.lock().unwrap());
    assert_eq!(
        acquired,
        [
            Step::MakeJournalFolder,
            Step::CreateLock,
            Step::CreateIgnore,
            Step::WriteIgnore,
            Step::CreateHolder,
            Step::CreateJournal,
            Step::WriteJournal,
            Step::SyncJournal,
            Step::RenameJournal,
            Step::SyncJournalFolder,
            Step::SyncPlace,
            Step::MakeFolder,
            Step::CreateNew,
            Step::WriteNew,
            Step::SyncNew,
            Step::ReplaceFile,
            Step::SyncFolder,
        ]
    );
    lease.release().unwrap();
    assert_eq!(
        *steps.lock().unwrap(),
        [
            Step::RemoveFile,
            Step::SyncFolder,
            Step::RemoveFolder,
            Step::RemoveJournal,
            Step::RemoveHolder,
            Step::RemoveIgnore,
            Step::RemoveLock,
            Step::RemoveJournalFolder,
        ]
    );
    assert!(fs::metadata(world.file.parent().unwrap()).is_err());
    world.assert_as_before("after the release");
}
