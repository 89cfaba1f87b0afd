//! Tests of leases without failures, and of refused ones.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::time::{Duration, Instant};

use serde_json::json;
use teamster_core::provider::ConfigFormat;
use teamster_mcp_config::lease::disk::Disk;
use teamster_mcp_config::lease::{Lease, Released, pending, restore, restore_on};

use crate::lease::agent::{Agent, Answer};
use crate::lease::support::{WORLDS, World, definition};

#[test]
fn a_lease_puts_servers_in_and_leaves_no_trace() {
    for name in WORLDS {
        let world = World::new(name);
        let before = world.servers();
        let lease = Lease::acquire(&world.edit(&["ours", "too"])).unwrap();
        let mut expected = before.clone();
        expected.extend(["ours".to_owned(), "too".to_owned()]);
        expected.sort();
        assert_eq!(world.servers(), expected, "{name}");
        assert_eq!(lease.release().unwrap(), Released::Restored, "{name}");
        world.assert_as_before("after the release");
        assert_eq!(restore(&world.file).unwrap(), Released::Nothing);
    }
}

#[test]
fn dropping_a_lease_ends_it() {
    let world = World::new("no folder");
    let lease = Lease::acquire(&world.edit(&["ours"])).unwrap();
    assert_eq!(world.servers(), ["ours"]);
    drop(lease);
    world.assert_as_before("after the drop");
}

#[test]
fn the_last_of_several_leases_restores_in_any_order() {
    for name in WORLDS {
        for order in [
            [0, 1, 2],
            [0, 2, 1],
            [1, 0, 2],
            [1, 2, 0],
            [2, 0, 1],
            [2, 1, 0],
        ] {
            let world = World::new(name);
            let mut leases: Vec<_> = ["a", "b", "c"]
                .iter()
                .map(|own| Some(Lease::acquire(&world.edit(&[own, "shared"])).unwrap()))
                .collect();
            for (i, at) in order.into_iter().enumerate() {
                let released = leases[at].take().unwrap().release().unwrap();
                let last = i == 2;
                let expected = if last {
                    Released::Restored
                } else {
                    Released::Shared
                };
                assert_eq!(released, expected, "{name} {order:?}");
                let servers = world.servers();
                for (j, own) in ["a", "b", "c"].iter().enumerate() {
                    let there = servers.iter().any(|server| server == own);
                    assert_eq!(there, leases[j].is_some(), "{name} {order:?} {own}");
                }
                assert_eq!(servers.contains(&"shared".to_owned()), !last, "{name}");
            }
            world.assert_as_before("after the last");
        }
    }
}

#[test]
fn a_name_of_the_users_is_refused_and_nothing_is_touched() {
    for name in ["plain", "toml", "jsonc", "link"] {
        let world = World::new(name);
        let error = Lease::acquire(&world.edit(&["ours", "mine"])).unwrap_err();
        let text = error.to_string();
        assert!(
            text.contains("already has a server `mine`; choose another name"),
            "{text}"
        );
        assert!(text.contains(&*world.file.to_string_lossy()), "{text}");
        world.assert_as_before("after the refusal");
    }
}

#[test]
fn a_name_of_another_run_is_shared_only_with_the_same_settings() {
    let world = World::new("plain");
    let first = Lease::acquire(&world.edit(&["ours"])).unwrap();
    let mut other = world.edit(&["ours"]);
    other.entries[0].1 = json!({"command": "secret-thing"});
    let error = Lease::acquire(&other).unwrap_err().to_string();
    assert!(error.contains("another run has a server `ours`"), "{error}");
    assert!(!error.contains("secret-thing"), "{error}");
    let second = Lease::acquire(&world.edit(&["ours"])).unwrap();
    assert_eq!(first.release().unwrap(), Released::Shared);
    assert_eq!(world.servers(), ["mine", "ours"]);
    assert_eq!(second.release().unwrap(), Released::Restored);
    world.assert_as_before("after both");
}

#[test]
fn two_entries_of_one_lease_cannot_share_a_name() {
    let world = World::new("plain");
    let mut edit = world.edit(&["ours", "ours"]);
    edit.entries[1].1 = json!({"command": "x"});
    let error = Lease::acquire(&edit).unwrap_err().to_string();
    assert!(
        error.contains("two servers have the name `ours`"),
        "{error}"
    );
    world.assert_as_before("after the refusal");
}

#[test]
fn invalid_text_is_refused_and_not_shown() {
    for text in [
        "{ \"key\": \"hunter2\" ",
        "hunter2",
        "[1]",
        "{\"mcpServers\": [\"hunter2\"]}",
    ] {
        let world = World::with_text(text, ConfigFormat::Json);
        let error = Lease::acquire(&world.edit(&["ours"]))
            .unwrap_err()
            .to_string();
        assert!(!error.contains("hunter2"), "{error}");
        world.assert_as_before(text);
    }
    let world = World::with_text("key = hunter2\n", ConfigFormat::Toml);
    let error = Lease::acquire(&world.edit(&["ours"]))
        .unwrap_err()
        .to_string();
    assert!(!error.contains("hunter2"), "{error}");
    world.assert_as_before("after the refusal");
    let world = World::new("no file");
    fs::create_dir(&world.file).unwrap();
    let error = Lease::acquire(&world.edit(&["ours"]))
        .unwrap_err()
        .to_string();
    assert!(error.contains("not a regular file"), "{error}");
    fs::remove_dir(&world.file).unwrap();
    nix::unistd::mkfifo(&world.file, nix::sys::stat::Mode::S_IRWXU).unwrap();
    let error = Lease::acquire(&world.edit(&["ours"]))
        .unwrap_err()
        .to_string();
    assert!(error.contains("not a regular file"), "{error}");
    fs::remove_file(&world.file).unwrap();
    fs::write(&world.file, b"{\"a\": \"\xff\"}").unwrap();
    let error = Lease::acquire(&world.edit(&["ours"]))
        .unwrap_err()
        .to_string();
    assert!(error.contains("not UTF-8"), "{error}");
    fs::remove_file(&world.file).unwrap();
    world.assert_as_before("after the refusals");
}

#[test]
fn debug_output_has_no_file_content() {
    let world = World::new("plain");
    let first = Lease::acquire(&world.edit(&["ours"])).unwrap();
    let shown = format!("{first:?}");
    assert!(shown.contains("settings.json"), "{shown}");
    assert!(!shown.contains("dark"), "{shown}");
    assert!(!shown.contains("/bin/"), "{shown}");
}

#[test]
fn link_to_a_device_is_refused_before_any_change() {
    let mut world = World::new("no file");
    std::os::unix::fs::symlink("/dev/null", &world.file).unwrap();
    world.remember();
    let disk = Disk::with_hook(|step, _| panic!("{step:?}"));
    let error = Lease::acquire_on(&disk, &world.edit(&["ours"])).unwrap_err();
    assert!(error.to_string().contains("not a regular file"), "{error}");
    world.assert_as_before("after the refusal");
}

#[test]
fn the_journal_is_private_and_git_does_not_see_it() {
    let world = World::new("plain");
    let lease = Lease::acquire(&world.edit(&["ours"])).unwrap();
    let folder = world.file.with_file_name(".teamster-lease-settings.json");
    assert_eq!(fs::metadata(&folder).unwrap().mode() & 0o7777, 0o700);
    assert_eq!(
        fs::read_to_string(folder.join(".gitignore")).unwrap(),
        "*\n"
    );
    let mut names: Vec<_> = fs::read_dir(&folder)
        .unwrap()
        .map(|found| found.unwrap())
        .map(|found| {
            (
                found.file_name().into_string().unwrap(),
                found.metadata().unwrap(),
            )
        })
        .filter(|(name, _)| name != "original")
        .map(|(name, meta)| {
            assert_eq!(meta.permissions().mode() & 0o7777, 0o600, "{name}");
            name
        })
        .collect();
    names.sort();
    assert!(names[1].starts_with("holder-"), "{names:?}");
    names.remove(1);
    assert_eq!(names, [".gitignore", "journal.json", "lock"]);
    // The original is the same file under another name.
    let original = fs::metadata(folder.join("original")).unwrap();
    assert_eq!(original.nlink(), 1);
    lease.release().unwrap();
    assert_eq!(fs::metadata(&world.file).unwrap().ino(), original.ino());
    world.assert_as_before("after the release");
}

#[test]
fn pending_leases_are_reported_by_file_and_say_who_lives() {
    let world = World::new("link");
    assert_eq!(pending(&world.file).unwrap(), None);
    let lease = Lease::acquire(&world.edit(&["ours"])).unwrap();
    let mut agent = Agent::start(0, true);
    let answer = agent.order("acquire", &world.file, false, "other");
    assert_eq!(answer, Answer::Ok("acquired".to_owned()));
    let found = pending(&world.file).unwrap().unwrap();
    assert_eq!((found.running, found.servers.len()), (2, 2));
    assert!(found.file.ends_with("dotfiles/gemini.json"));
    assert_eq!(found.file, lease.file());
    assert_eq!(restore(&world.file).unwrap(), Released::Shared);
    assert_eq!(world.servers(), ["mine", "other", "ours"]);
    lease.release().unwrap();
    agent.kill();
    let found = pending(&world.file).unwrap().unwrap();
    assert_eq!(
        (found.running, found.servers),
        (0, vec!["other".to_owned()])
    );
    assert_eq!(restore(&world.file).unwrap(), Released::Restored);
    world.assert_as_before("after the restore");
    assert_eq!(pending(&world.file).unwrap(), None);
}

#[test]
fn a_run_that_was_killed_is_undone_by_the_next_lease() {
    for name in WORLDS {
        let world = World::new(name);
        let toml = world.format == ConfigFormat::Toml;
        let mut agent = Agent::start(0, true);
        agent.order("acquire", &world.file, toml, "dead");
        agent.kill();
        assert!(world.servers().contains(&"dead".to_owned()), "{name}");
        let lease = Lease::acquire(&world.edit(&["ours"])).unwrap();
        assert!(!world.servers().contains(&"dead".to_owned()), "{name}");
        assert_eq!(lease.release().unwrap(), Released::Restored);
        world.assert_as_before("after the next lease");
    }
}

#[test]
fn a_run_that_was_killed_beside_another_is_undone_by_that() {
    let world = World::new("plain");
    let lease = Lease::acquire(&world.edit(&["ours"])).unwrap();
    let mut agent = Agent::start(0, true);
    agent.order("acquire", &world.file, false, "dead");
    agent.kill();
    // The next lease removes its server while the first run is still active.
    let next = Lease::acquire(&world.edit(&["next"])).unwrap();
    assert_eq!(world.servers(), ["mine", "next", "ours"]);
    next.release().unwrap();
    assert_eq!(lease.release().unwrap(), Released::Restored);
    world.assert_as_before("after both");
}

#[test]
fn a_journal_that_is_not_ours_is_left_alone() {
    let texts = [
        "",
        "{\"teamster_lease\": 1, \"file\":",
        "{\"teamster_lease\": 2}",
        "{\"teamster_lease\": 1, \"hunter2\": 1}",
        "[]",
    ];
    for text in texts {
        let mut world = World::new("plain");
        let folder = world.file.with_file_name(".teamster-lease-settings.json");
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join("lock"), "").unwrap();
        fs::write(folder.join("journal.json"), text).unwrap();
        world.remember();
        let error = Lease::acquire(&world.edit(&["ours"]))
            .unwrap_err()
            .to_string();
        let why = match text {
            "{\"teamster_lease\": 2}" => "journal.json is of another version of teamster",
            _ => "journal.json cannot be read",
        };
        assert!(error.contains(why), "{error}");
        assert!(!error.contains("hunter2"), "{error}");
        restore(&world.file).unwrap_err();
        world.assert_as_before(text);
    }
    // A journal folder of another file, under the name of ours.
    let world = World::new("plain");
    let lease = Lease::acquire(&world.edit(&["ours"])).unwrap();
    let folder = world.file.with_file_name(".teamster-lease-settings.json");
    let copy = world.root.path().join(".teamster-lease-other");
    fs::create_dir(&copy).unwrap();
    fs::copy(folder.join("journal.json"), copy.join("journal.json")).unwrap();
    let error = restore(&world.root.path().join("other"))
        .unwrap_err()
        .to_string();
    assert!(error.contains("belongs to another file"), "{error}");
    fs::remove_dir_all(copy).unwrap();
    lease.release().unwrap();
    world.assert_as_before("after all");
}

#[test]
fn a_folder_of_the_journals_name_that_is_none_is_left_alone() {
    let mut world = World::new("plain");
    let elsewhere = world.root.path().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    fs::write(elsewhere.join("original"), "precious").unwrap();
    let folder = world.file.with_file_name(".teamster-lease-settings.json");
    std::os::unix::fs::symlink(&elsewhere, &folder).unwrap();
    world.remember();
    let error = Lease::acquire(&world.edit(&["ours"]))
        .unwrap_err()
        .to_string();
    assert!(error.contains("is not a directory: remove it"), "{error}");
    restore(&world.file).unwrap_err();
    world.assert_as_before("after the refusals");
}

#[test]
fn half_made_folders_and_drafts_are_swept() {
    for files in [
        &[][..],
        &["lock"],
        &["lock", "new", "journal.tmp", "original", "holder-x"],
    ] {
        let world = World::new("plain");
        let folder = world.file.with_file_name(".teamster-lease-settings.json");
        let make = || {
            fs::create_dir(&folder).unwrap();
            for name in files {
                fs::write(folder.join(name), "x").unwrap();
            }
        };
        make();
        assert_eq!(restore(&world.file).unwrap(), Released::Nothing);
        world.assert_as_before("after the restore");
        make();
        Lease::acquire(&world.edit(&["ours"]))
            .unwrap()
            .release()
            .unwrap();
        world.assert_as_before("after a lease");
    }
}

#[test]
fn foreign_files_beside_the_journal_stay() {
    let world = World::new("plain");
    let original = world.text();
    let folder = world.file.with_file_name(".teamster-lease-settings.json");
    let lease = Lease::acquire(&world.edit(&["ours"])).unwrap();
    fs::write(folder.join("note"), "mine").unwrap();
    assert_eq!(lease.release().unwrap(), Released::Restored);
    for _ in 0..2 {
        assert_eq!(world.text(), original);
        let list = fs::read_dir(&folder).unwrap();
        let names: Vec<_> = list.map(|found| found.unwrap().file_name()).collect();
        assert_eq!(names, ["note"]);
        assert_eq!(restore(&world.file).unwrap(), Released::Nothing);
        Lease::acquire(&world.edit(&["ours"]))
            .unwrap()
            .release()
            .unwrap();
    }
}

#[test]
fn a_lock_that_others_keep_is_awaited_and_reported() {
    let mut world = World::new("plain");
    let lease = Lease::acquire(&world.edit(&["ours"])).unwrap();
    world.remember();
    let folder = world.file.with_file_name(".teamster-lease-settings.json");
    let lock = fs::File::open(folder.join("lock")).unwrap();
    lock.lock().unwrap();
    let patience = Duration::from_millis(100);
    let disk = Disk::default().with_patience(patience);
    let start = Instant::now();
    let acquired = Lease::acquire_on(&disk, &world.edit(&["other"])).unwrap_err();
    let between = Instant::now();
    let restored = restore_on(&disk, &world.file).unwrap_err();
    for error in [acquired.to_string(), restored.to_string()] {
        assert!(
            error.contains("other runs have been changing it"),
            "{error}"
        );
    }
    // Others have that time.
    assert!(between - start >= patience && between.elapsed() >= patience);
    world.assert_as_before("after the refusal");
    lock.unlock().unwrap();
    lease.release().unwrap();
    assert_eq!(definition("mine")["command"], "/bin/mine");
    assert_eq!(world.servers(), ["mine"]);
}

#[test]
fn same_file_is_restored_although_its_text_was_there_before() {
    let world = World::new("plain");
    let nothing = Lease::acquire(&world.edit(&[])).unwrap();
    let lease = Lease::acquire(&world.edit(&["ours"])).unwrap();
    assert_eq!(lease.release().unwrap(), Released::Shared);
    assert_eq!(world.servers(), ["mine"]);
    assert_eq!(nothing.release().unwrap(), Released::Restored);
    world.assert_as_before("after both");
}

#[test]
fn a_lease_without_servers_changes_nothing() {
    for name in ["plain", "no folder", "empty"] {
        let world = World::new(name);
        let text = world.text();
        let lease = Lease::acquire(&world.edit(&[])).unwrap();
        assert_eq!(world.text(), text);
        assert_eq!(lease.release().unwrap(), Released::Restored);
        world.assert_as_before("after the release");
    }
}

#[test]
fn initial_content_of_a_new_file_is_removed_with_it() {
    const SCHEMA: &str = "{\n  \"$schema\": \"https://example.com/config.json\"\n}\n";
    let world = World::new("no folder");
    let mut edit = world.edit(&["ours"]);
    edit.new_file = SCHEMA;
    // Unchanged, and as formatted by an editor.
    for format in [
        None,
        Some("{\"$schema\":\"https://example.com/config.json\",\"mcpServers\":"),
    ] {
        let lease = Lease::acquire(&edit).unwrap();
        assert_eq!(world.servers(), ["ours"]);
        let text = world.text().unwrap();
        assert!(text.starts_with("{\n  \"$schema\": "), "{text}");
        if let Some(begin) = format {
            let servers = json!({"ours": definition("ours")});
            fs::write(&world.file, format!("{begin}{servers}}}")).unwrap();
        }
        lease.release().unwrap();
        world.assert_as_before("after the release");
    }
    // With content of the user in it, the file stays.
    let lease = Lease::acquire(&edit).unwrap();
    let text = world.text().unwrap().replacen('{', "{ \"theme\": 1,", 1);
    fs::write(&world.file, text).unwrap();
    assert_eq!(lease.release().unwrap(), Released::Cleaned);
    let expected = SCHEMA.replacen('{', "{ \"theme\": 1,", 1);
    assert_eq!(world.text().unwrap(), expected);
}
