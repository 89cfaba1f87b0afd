//! Tests of many processes that use the same files at the same time, some of which are killed.

use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use std::{env, fs};

use serde_json::{Value, json};
use teamster_core::provider::ConfigFormat;
use teamster_mcp_config::edit;
use teamster_mcp_config::lease::disk::{Disk, Step};
use teamster_mcp_config::lease::{Lease, Released, pending, restore};

use crate::lease::agent::{command, deadly_disk, die};
use crate::lease::support::{World, definition, edit_of, key};

/// Environment variable that makes this program one of the processes. Its value is the process's task.
const MARK: &str = "TEAMSTER_LEASE_TEST_WORKER";

/// Servers, of which each lease takes some.
const SHARED: [&str; 3] = ["alpha", "beta", "gamma"];

/// Pseudo-random numbers from a seed (xorshift).
struct Dice(u64);

impl Dice {
    fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % sides
    }

    /// Returns an index below `len`.
    fn pick(&mut self, len: usize) -> usize {
        usize::try_from(self.roll(len as u64)).unwrap()
    }
}

fn format_of(file: &Path) -> ConfigFormat {
    match file.extension() {
        Some(end) if end == "toml" => ConfigFormat::Toml,
        _ => ConfigFormat::Json,
    }
}

/// Asserts that the file can be parsed and has these servers with exactly these definitions: removing them by
/// definition removes them all.
fn assert_holds(file: &Path, names: &[&str]) {
    let text = fs::read_to_string(file).unwrap();
    let format = format_of(file);
    let there = edit::names(&text, format, key(format)).unwrap();
    for name in names {
        assert!(there.iter().any(|other| other == name), "{name}: {text}");
    }
    let entries: Vec<_> = names
        .iter()
        .filter(|name| **name != "mine")
        .map(|name| ((*name).to_owned(), definition(name)))
        .collect();
    let without = edit::remove(&text, format, key(format), &entries).unwrap();
    let left = edit::names(&without, format, key(format)).unwrap();
    assert_eq!(left.len() + entries.len(), there.len(), "{text}");
}

/// Runs one of the processes. Does nothing in the test program itself.
#[test]
fn worker_process() {
    let Ok(plan) = env::var(MARK) else {
        return;
    };
    let plan: Value = serde_json::from_str(&plan).unwrap();
    let seed = plan["seed"].as_u64().unwrap();
    let rounds = plan["rounds"].as_u64().unwrap();
    let files: Vec<(PathBuf, bool)> = serde_json::from_value(plan["files"].clone()).unwrap();
    let mut dice = Dice::new(seed);
    // Most processes die during a change or while they hold a lease.
    let at = match plan["kill"].as_bool() {
        Some(true) => 1 + dice.pick(usize::try_from(rounds * 60).unwrap()),
        _ => 0,
    };
    let disk = deadly_disk(at, dice.roll(4) != 0);
    let own = format!("own-{seed}");
    for _ in 0..rounds {
        let (file, has_mine) = &files[dice.pick(files.len())];
        let mut names: Vec<&str> = SHARED.into_iter().filter(|_| dice.roll(2) == 0).collect();
        names.push(&own);
        let lease = Lease::acquire_on(&disk, &edit_of(file, format_of(file), &names)).unwrap();
        let mut expected = names.clone();
        if *has_mine {
            expected.push("mine");
        }
        for _ in 0..=dice.roll(3) {
            assert_holds(file, &expected);
            thread::sleep(Duration::from_micros(dice.roll(2_000)));
        }
        if at != 0 && dice.roll(40) == 0 {
            die();
        }
        let released = lease.release().unwrap();
        assert!(
            [Released::Shared, Released::Restored].contains(&released),
            "{released:?}"
        );
    }
}

fn worker(seed: u64, rounds: u64, kill: bool, files: &[(PathBuf, bool)]) -> Child {
    let plan = json!({"seed": seed, "rounds": rounds, "kill": kill, "files": files});
    let mut command: Command = command("lease::interleaving::worker_process");
    command.env(MARK, plan.to_string()).spawn().unwrap()
}

/// Waits at most a minute for all processes. Returns the numbers of those that ended and of those that were killed.
fn wait_all(workers: Vec<Child>) -> (usize, usize) {
    let (mut ended, mut killed) = (0, 0);
    let until = Instant::now() + Duration::from_mins(1);
    for mut worker in workers {
        while worker.try_wait().unwrap().is_none() {
            assert!(Instant::now() < until, "a process does not end");
            thread::sleep(Duration::from_millis(2));
        }
        let output = worker.wait_with_output().unwrap();
        let printed = String::from_utf8_lossy(&output.stdout);
        match output.status.code() {
            Some(0) => ended += 1,
            None => killed += 1,
            Some(_) => panic!("{printed}"),
        }
    }
    (ended, killed)
}

/// Runs generations of processes on the same files. Returns the numbers of those that ended and that were killed.
fn storm(generations: u64, rounds: u64, kill: bool) -> (usize, usize) {
    let worlds = ["plain", "no folders", "toml", "link"].map(World::new);
    let files: Vec<_> = worlds
        .iter()
        .map(|world| (world.file.clone(), !world.servers().is_empty()))
        .collect();
    let (mut ended, mut killed) = (0, 0);
    for generation in 0..generations {
        let workers = (0..6)
            .map(|i| worker(generation * 6 + i, rounds, kill && i != 0, &files))
            .collect();
        let (well, dead) = wait_all(workers);
        ended += well;
        killed += dead;
        for world in &worlds {
            restore(&world.file).unwrap();
            // One of the processes may have kept only a copy.
            world.assert_copied_as_before(&format!("generation {generation}"));
        }
    }
    println!("{ended} processes ended, {killed} were killed");
    (ended, killed)
}

#[test]
fn concurrent_leases_leave_the_files_unchanged() {
    let (ended, killed) = storm(2, 25, false);
    assert_eq!((ended, killed), (12, 0));
}

#[test]
fn processes_that_are_killed_among_others_do_these_no_harm() {
    let (generations, rounds, least) = if crate::lease::soak() {
        (150, 25, 300)
    } else {
        (8, 12, 8)
    };
    let (ended, killed) = storm(generations, rounds, true);
    assert!(ended >= 8, "{ended}");
    assert!(killed >= least, "{killed}");
}

#[test]
fn shared_folder_is_removed_by_its_last_processes() {
    for seed in 0..4 {
        let world = World::new("no folders");
        let files = [(world.file.clone(), false)];
        let workers = (0..3)
            .map(|i| worker(seed * 10 + i, 30, false, &files))
            .collect();
        assert_eq!(wait_all(workers), (3, 0));
        // No process was killed, so no changes remain.
        world.assert_as_before("after all");
        assert_eq!(pending(&world.file).unwrap(), None);
    }
}

#[test]
fn threads_of_one_process_share_a_file_like_processes() {
    let world = World::new("no folder");
    thread::scope(|scope| {
        for name in ["a", "b", "c", "d"] {
            let world = &world;
            scope.spawn(move || {
                for _ in 0..25 {
                    let lease = Lease::acquire(&world.edit(&[name, "shared"])).unwrap();
                    assert_holds(&world.file, &[name, "shared"]);
                    lease.release().unwrap();
                }
            });
        }
    });
    world.assert_as_before("after all");
}

#[test]
fn child_programs_do_not_keep_a_lease_alive() {
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                let status = Command::new("true").status().unwrap();
                assert!(status.success());
            }
        });
        let world = World::new("plain");
        let broken = Disk::with_hook(|step, _| match step {
            Step::RestoreFile => Err(std::io::Error::from_raw_os_error(5)),
            _ => Ok(()),
        });
        let mut alive = Vec::new();
        for _ in 0..300 {
            let lease = Lease::acquire_on(&broken, &world.edit(&["ours"])).unwrap();
            lease.release().unwrap_err();
            alive.extend(pending(&world.file).unwrap().map(|found| found.running));
            restore(&world.file).unwrap();
        }
        done.store(true, Ordering::Relaxed);
        assert_eq!(alive, [0; 300]);
    });
}

#[test]
fn waiter_in_a_folder_of_another_lease_joins_it() {
    let world = World::new("no folder");
    let first = Lease::acquire(&world.edit(&["first"])).unwrap();
    // Left by a process that was killed before it checked the location again.
    let place = world.file.with_file_name(".teamster-lease-settings.json");
    fs::create_dir(&place).unwrap();
    let second = Lease::acquire(&world.edit(&["second"])).unwrap();
    assert!(!place.exists());
    assert_eq!(world.servers(), ["first", "second"]);
    assert_eq!(first.release().unwrap(), Released::Shared);
    assert_eq!(second.release().unwrap(), Released::Restored);
    world.assert_as_before("after both");
}

#[test]
fn a_place_for_a_folder_that_is_there_by_now_is_given_up() {
    let world = World::new("plain");
    // Left by a process that was killed when the folder `project` was missing.
    let old = world
        .root
        .path()
        .join(".teamster-lease-project+settings.json");
    fs::create_dir(&old).unwrap();
    fs::write(old.join("lock"), "").unwrap();
    let lease = Lease::acquire(&world.edit(&["ours"])).unwrap();
    assert!(!old.exists());
    assert!(
        world
            .file
            .with_file_name(".teamster-lease-settings.json")
            .exists()
    );
    lease.release().unwrap();
    world.assert_as_before("after the release");
}

#[test]
fn created_folder_is_removed_although_another_lease_begins() {
    for killed in [true, false] {
        let world = World::new("no folder");
        let place = world.file.with_file_name(".teamster-lease-settings.json");
        let count = AtomicUsize::new(0);
        let held = Mutex::new(None);
        let his = place.clone();
        let disk = Disk::with_hook(move |step, _| {
            if step == Step::RemoveFolder {
                match count.fetch_add(1, Ordering::Relaxed) {
                    0 => {
                        fs::create_dir(&his).unwrap();
                        let lock = fs::File::create_new(his.join("lock")).unwrap();
                        lock.lock().unwrap();
                        // The lock of a killed process is released.
                        if !killed {
                            *held.lock().unwrap() = Some(lock);
                        }
                    }
                    // The other process notices that the location is wrong and removes its folder.
                    2 if !killed => {
                        fs::remove_dir_all(&his).unwrap();
                        held.lock().unwrap().take();
                    }
                    _ => {}
                }
            }
            Ok(())
        });
        let lease = Lease::acquire_on(&disk, &world.edit(&["ours"])).unwrap();
        assert_eq!(lease.release().unwrap(), Released::Restored);
        world.assert_as_before("after the release");
    }
}
