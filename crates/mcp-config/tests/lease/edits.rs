//! Tests of edits by others during a lease. The edits are kept, and our entries are removed.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};
use teamster_core::provider::ConfigFormat;
use teamster_mcp_config::edit::{self, Clash};
use teamster_mcp_config::lease::disk::{Disk, Step};
use teamster_mcp_config::lease::{Lease, Released, pending, restore};

use crate::lease::support::{World, key};

/// An edit by a user or a CLI of a text with or without our servers.
type Edit = fn(&str) -> String;

const EDITS: &[(&str, Edit)] = &[
    ("a value changed", |text| text.replace("dark", "light")),
    ("a key added", |text| {
        text.replacen('{', "{ \"new\": [1, 2],", 1)
    }),
    ("a comment added", |text| format!("// mine\n{text}")),
    ("a server added", |text| {
        let entry = ("added".to_owned(), json!({"command": "added"}));
        edit::merge(
            text,
            ConfigFormat::Json,
            "mcpServers",
            &[entry],
            Clash::Refuse,
        )
        .unwrap()
    }),
    ("a server removed", |text| {
        let entry = ("mine".to_owned(), json!({"command": "mine"}));
        edit::remove(text, ConfigFormat::Json, "mcpServers", &[entry]).unwrap()
    }),
];

/// Writes as an editor does: replaces the old file by a new one.
fn save(path: &Path, text: &str) {
    let new = path.with_file_name("editor.tmp");
    fs::write(&new, text).unwrap();
    fs::rename(new, path).unwrap();
}

fn meaning(text: &str) -> Value {
    let text: String = text
        .lines()
        .filter(|line| !line.starts_with("//"))
        .collect();
    serde_json::from_str(&text).unwrap()
}

#[test]
fn an_edit_during_a_lease_stays_and_our_servers_go() {
    for (what, edit) in EDITS {
        for in_place in [true, false] {
            for leases in 1..=3 {
                let world = World::new("plain");
                let original = world.text().unwrap();
                let names = ["a", "b", "c"];
                let held: Vec<_> = names[..leases]
                    .iter()
                    .map(|name| Lease::acquire(&world.edit(&[name])).unwrap())
                    .collect();
                let text = edit(&world.text().unwrap());
                if in_place {
                    fs::write(&world.file, text).unwrap();
                } else {
                    save(&world.file, &text);
                }
                let when = format!("{what}, {leases} leases");
                for (i, lease) in held.into_iter().enumerate() {
                    let released = lease.release().unwrap();
                    let last = i + 1 == leases;
                    let expected = if last {
                        Released::Cleaned
                    } else {
                        Released::Shared
                    };
                    assert_eq!(released, expected, "{when}");
                    let servers = world.servers();
                    for (j, name) in names.iter().enumerate() {
                        let there = servers.iter().any(|server| server == name);
                        assert_eq!(there, j > i && j < leases, "{when}");
                    }
                }
                let (now, wanted) = (world.text().unwrap(), edit(&original));
                assert_eq!(meaning(&now), meaning(&wanted), "{when}");
                if *what != "a server added" {
                    assert_eq!(now, wanted, "{when}");
                }
                world.assert_no_litter(&when);
            }
        }
    }
}

#[test]
fn a_lease_after_an_edit_works_on_the_present_content() {
    let world = World::new("plain");
    let first = Lease::acquire(&world.edit(&["a"])).unwrap();
    save(&world.file, &world.text().unwrap().replace("dark", "light"));
    let second = Lease::acquire(&world.edit(&["b"])).unwrap();
    assert_eq!(world.servers(), ["a", "b", "mine"]);
    save(&world.file, &world.text().unwrap().replace("light", "grey"));
    assert_eq!(first.release().unwrap(), Released::Shared);
    assert_eq!(world.servers(), ["b", "mine"]);
    assert_eq!(second.release().unwrap(), Released::Cleaned);
    let before = World::new("plain").text().unwrap();
    assert_eq!(world.text().unwrap(), before.replace("dark", "grey"));
    world.assert_no_litter("after both");
}

#[test]
fn a_file_that_the_user_removes_stays_away() {
    for name in ["plain", "no file", "no folder"] {
        for leases in 1..=2 {
            let world = World::new(name);
            let mut held: Vec<_> = ["a", "b"][..leases]
                .iter()
                .map(|own| Lease::acquire(&world.edit(&[own])).unwrap())
                .collect();
            fs::remove_file(&world.file).unwrap();
            let last = held.pop().unwrap();
            for lease in held {
                assert_eq!(lease.release().unwrap(), Released::Shared);
                assert_eq!(world.text(), None);
            }
            let released = last.release().unwrap();
            if name == "plain" {
                assert_eq!(released, Released::Cleaned);
                assert_eq!(world.text(), None);
                world.assert_no_litter(name);
            } else {
                world.assert_as_before("after the release");
            }
        }
    }
}

#[test]
fn file_removed_during_a_lease_is_recreated_and_removed() {
    let world = World::new("plain");
    let first = Lease::acquire(&world.edit(&["a"])).unwrap();
    fs::remove_file(&world.file).unwrap();
    let second = Lease::acquire(&world.edit(&["b"])).unwrap();
    assert_eq!(world.servers(), ["a", "b"]);
    // An edit that only adds an empty line changes no entry.
    save(&world.file, &(world.text().unwrap() + "\n"));
    first.release().unwrap();
    assert_eq!(world.servers(), ["b"]);
    assert_eq!(second.release().unwrap(), Released::Cleaned);
    assert_eq!(world.text(), None);
    world.assert_no_litter("after both");
}

#[test]
fn our_folder_stays_while_in_use() {
    let world = World::new("no folders");
    let lease = Lease::acquire(&world.edit(&["a"])).unwrap();
    let folder = world.file.parent().unwrap();
    fs::write(folder.join("state.json"), "{}").unwrap();
    assert_eq!(lease.release().unwrap(), Released::Restored);
    let names: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|found| found.unwrap().file_name())
        .collect();
    assert_eq!(names, ["state.json"]);
    world.assert_no_litter("after the release");
    fs::remove_dir_all(world.root.path().join("project/a+b")).unwrap();
    world.assert_as_before("without it");
}

#[test]
fn a_removed_folder_is_no_obstacle() {
    for name in ["plain", "no folder", "link"] {
        let world = World::new(name);
        let lease = Lease::acquire(&world.edit(&["a"])).unwrap();
        let folder = lease.file().parent().unwrap().to_owned();
        fs::remove_dir_all(&folder).unwrap();
        lease.release().unwrap();
        assert!(!folder.exists());
        world.assert_no_litter(name);
        let lease = Lease::acquire(&world.edit(&["b"])).unwrap();
        assert_eq!(world.servers(), ["b"]);
        lease.release().unwrap();
        assert!(!folder.exists());
        world.assert_no_litter(name);
    }
}

#[test]
fn a_server_of_ours_that_the_user_changes_becomes_his() {
    let world = World::new("plain");
    let first = Lease::acquire(&world.edit(&["a"])).unwrap();
    let second = Lease::acquire(&world.edit(&["b"])).unwrap();
    let text = world.text().unwrap();
    save(&world.file, &text.replace("/bin/a", "/opt/a"));
    assert_eq!(second.release().unwrap(), Released::Shared);
    assert_eq!(world.servers(), ["a", "mine"]);
    // The changed entry blocks a run that needs another definition.
    let error = Lease::acquire(&world.edit(&["a"])).unwrap_err();
    assert!(
        error.to_string().contains("already has a server `a`"),
        "{error}"
    );
    assert_eq!(first.release().unwrap(), Released::Cleaned);
    assert_eq!(world.servers(), ["a", "mine"]);
    assert!(world.text().unwrap().contains("/opt/a"));
    world.assert_no_litter("after both");
}

#[test]
fn user_server_equal_to_one_of_an_ended_run_stays() {
    let world = World::new("plain");
    let edit = world.edit(&["a"]);
    let first = Lease::acquire(&edit).unwrap();
    let second = Lease::acquire(&world.edit(&["b"])).unwrap();
    first.release().unwrap();
    let text = world.text().unwrap();
    let own = edit::merge(
        &text,
        world.format,
        key(world.format),
        &edit.entries,
        Clash::Refuse,
    );
    save(&world.file, &own.unwrap());
    assert_eq!(second.release().unwrap(), Released::Cleaned);
    assert_eq!(world.servers(), ["a", "mine"]);
}

#[test]
fn unreadable_file_keeps_its_journal_until_it_is_readable() {
    let world = World::new("plain");
    let original = world.text().unwrap();
    let lease = Lease::acquire(&world.edit(&["hunter2"])).unwrap();
    let ours = world.text().unwrap();
    fs::write(&world.file, &ours[..ours.len() / 2]).unwrap();
    let error = lease.release().unwrap_err().to_string();
    assert!(error.contains("after that, restore "), "{error}");
    assert!(!error.contains("/bin/"), "{error}");
    assert_eq!(world.text().unwrap(), ours[..ours.len() / 2]);
    restore(&world.file).unwrap_err();
    let left = pending(&world.file).unwrap().unwrap();
    assert_eq!(
        (left.running, left.servers),
        (0, vec!["hunter2".to_owned()])
    );
    fs::write(&world.file, ours.replace("dark", "light")).unwrap();
    assert_eq!(restore(&world.file).unwrap(), Released::Cleaned);
    assert_eq!(world.text().unwrap(), original.replace("dark", "light"));
    world.assert_no_litter("after the restore");
}

#[test]
fn a_user_who_takes_our_servers_out_himself_is_left_with_that() {
    let world = World::new("plain");
    let original = world.text().unwrap();
    let lease = Lease::acquire(&world.edit(&["a"])).unwrap();
    save(&world.file, &original);
    assert_eq!(lease.release().unwrap(), Released::Restored);
    assert_eq!(world.text().unwrap(), original);
    world.assert_no_litter("after the release");
}

#[test]
fn a_file_of_our_making_that_is_empty_again_goes() {
    for (name, left) in [
        ("no folder", "{}"),
        ("no file", " {\n}\n"),
        ("toml, no folder", "\n"),
    ] {
        let world = World::new(name);
        let lease = Lease::acquire(&world.edit(&["a"])).unwrap();
        save(&world.file, left);
        assert_eq!(lease.release().unwrap(), Released::Cleaned);
        world.assert_as_before("after the release");
    }
    let world = World::new("no folder");
    let lease = Lease::acquire(&world.edit(&["a"])).unwrap();
    let text = world.text().unwrap().replacen('{', "{\"theme\": 1,", 1);
    save(&world.file, &text);
    assert_eq!(lease.release().unwrap(), Released::Cleaned);
    assert_eq!(meaning(&world.text().unwrap()), json!({"theme": 1}));
    world.assert_no_litter("after the release");
}

#[test]
fn a_file_that_was_there_stays_even_if_nothing_is_left_in_it() {
    let world = World::new("plain");
    let lease = Lease::acquire(&world.edit(&["a"])).unwrap();
    save(&world.file, "{}");
    assert_eq!(lease.release().unwrap(), Released::Cleaned);
    assert_eq!(world.text().unwrap(), "{}");
}

#[test]
fn an_empty_table_of_the_users_stays_and_one_of_ours_goes() {
    for (format, text) in [
        (
            ConfigFormat::Json,
            "{\"theme\": \"dark\", \"mcpServers\": {}}",
        ),
        (ConfigFormat::Json, "{\"theme\": \"dark\"}"),
        (ConfigFormat::Toml, "theme = \"dark\"\n\n[mcp_servers]\n"),
        (ConfigFormat::Toml, "theme = \"dark\"\n"),
    ] {
        let world = World::with_text(text, format);
        let lease = Lease::acquire(&world.edit(&["a"])).unwrap();
        save(&world.file, &world.text().unwrap().replace("dark", "light"));
        assert_eq!(lease.release().unwrap(), Released::Cleaned);
        assert_eq!(world.text().unwrap(), text.replace("dark", "light"));
    }
}

#[test]
fn a_lost_journal_is_made_up_for_by_the_lease_itself() {
    for name in ["plain", "no folder", "toml"] {
        for leases in 1..=2 {
            let world = World::new(name);
            let held: Vec<_> = ["a", "b"][..leases]
                .iter()
                .map(|own| Lease::acquire(&world.edit(&[own])).unwrap())
                .collect();
            // As `git clean -fdx` does.
            for path in world.look().into_keys() {
                if path
                    .file_name()
                    .unwrap()
                    .to_string_lossy()
                    .starts_with(".teamster")
                {
                    fs::remove_dir_all(world.root.path().join(path)).unwrap();
                }
            }
            for lease in held {
                lease.release().unwrap();
            }
            assert!(
                !world.servers().contains(&"a".to_owned()),
                "{name} {leases}"
            );
            assert!(
                !world.servers().contains(&"b".to_owned()),
                "{name} {leases}"
            );
            world.assert_no_litter(name);
            if name != "no folder" {
                assert_eq!(world.text(), World::new(name).text(), "{name} {leases}");
            } else if leases == 1 {
                world.assert_as_before("after the release");
            }
        }
    }
}

#[test]
fn a_file_that_has_become_a_link_is_left_alone() {
    let world = World::new("plain");
    let lease = Lease::acquire(&world.edit(&["a"])).unwrap();
    let moved = world.root.path().join("dotfile");
    fs::rename(&world.file, &moved).unwrap();
    symlink(&moved, &world.file).unwrap();
    let text = world.text();
    let error = lease.release().unwrap_err().to_string();
    assert!(error.contains("symbolic link"), "{error}");
    assert_eq!(world.text(), text);
    fs::remove_file(&world.file).unwrap();
    fs::rename(&moved, &world.file).unwrap();
    assert_eq!(restore(&world.file).unwrap(), Released::Restored);
    world.assert_as_before("after the restore");
}

#[test]
fn a_project_that_is_moved_after_a_crash_is_still_undone() {
    for name in ["plain", "no folder"] {
        let world = World::new(name);
        let mut agent = crate::lease::agent::Agent::start(0, true);
        agent.order("acquire", &world.file, false, "dead");
        agent.kill();
        let (old, new) = (
            world.root.path().join("project"),
            world.root.path().join("moved"),
        );
        fs::rename(&old, &new).unwrap();
        let file = new.join(world.file.strip_prefix(&old).unwrap());
        assert_eq!(restore(&file).unwrap(), Released::Restored);
        fs::rename(&new, &old).unwrap();
        world.assert_as_before("after the restore");
    }
}

/// Creates a disk on which the file is edited during our `nth` change of it.
fn disk_with_editor(at: Step, nth: usize, world: &World, edit: Edit) -> Disk {
    let file = world.file.clone();
    let count = AtomicUsize::new(0);
    Disk::with_hook(move |step, _| {
        if step == at && count.fetch_add(1, Ordering::Relaxed) + 1 == nth {
            save(&file, &edit(&fs::read_to_string(&file).unwrap()));
        }
        Ok(())
    })
}

#[test]
fn an_edit_in_the_middle_of_our_change_is_not_lost() {
    let light: Edit = |text| text.replace("dark", "light");
    for step in [
        Step::MakeJournalFolder,
        Step::LinkOriginal,
        Step::CreateJournal,
        Step::SyncNew,
    ] {
        let world = World::new("plain");
        let original = world.text().unwrap();
        let disk = disk_with_editor(step, 1, &world, light);
        let lease = Lease::acquire_on(&disk, &world.edit(&["a"])).unwrap();
        assert_eq!(world.servers(), ["a", "mine"]);
        assert!(world.text().unwrap().contains("light"), "{step:?}");
        assert_eq!(lease.release().unwrap(), Released::Restored);
        assert_eq!(world.text().unwrap(), light(&original));
        world.assert_no_litter("after the release");
    }
    // The second content is written over the first one, which is edited meanwhile.
    let world = World::new("plain");
    let original = world.text().unwrap();
    let first = Lease::acquire(&world.edit(&["a"])).unwrap();
    let disk = disk_with_editor(Step::SyncNew, 1, &world, light);
    let second = Lease::acquire_on(&disk, &world.edit(&["b"])).unwrap();
    assert_eq!(world.servers(), ["a", "b", "mine"]);
    assert!(world.text().unwrap().contains("light"));
    first.release().unwrap();
    assert_eq!(second.release().unwrap(), Released::Cleaned);
    assert_eq!(world.text().unwrap(), light(&original));
    // The content without our entries is written over one that is edited again.
    let disk = disk_with_editor(Step::SyncNew, 2, &world, light);
    let lease = Lease::acquire_on(&disk, &world.edit(&["a"])).unwrap();
    save(&world.file, &world.text().unwrap().replace("light", "dark"));
    assert_eq!(lease.release().unwrap(), Released::Cleaned);
    assert_eq!(world.text().unwrap(), light(&original));
    world.assert_no_litter("after all");
}

#[test]
fn a_folder_made_just_before_ours_is_not_ours() {
    let world = World::new("no folder");
    let folder = world.file.parent().unwrap().to_owned();
    let (made, count) = (folder.clone(), AtomicUsize::new(0));
    let disk = Disk::with_hook(move |step, _| {
        if step == Step::MakeFolder && count.fetch_add(1, Ordering::Relaxed) == 0 {
            fs::create_dir(&made).unwrap();
        }
        Ok(())
    });
    let lease = Lease::acquire_on(&disk, &world.edit(&["a"])).unwrap();
    assert_eq!(world.servers(), ["a"]);
    assert_eq!(lease.release().unwrap(), Released::Restored);
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
    fs::remove_dir(&folder).unwrap();
    world.assert_as_before("after the release");
}
