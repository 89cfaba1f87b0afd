//! Tests of ownership, folder permissions and disk limits.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};

use nix::unistd::geteuid;
use teamster_mcp_config::lease::disk::Disk;
use teamster_mcp_config::lease::{Lease, Released, restore};

use crate::lease::agent::{Agent, Answer};
use crate::lease::support::World;

/// A user id that is not root and owns nothing.
const NOBODY: u32 = 65_534;

fn is_root() -> bool {
    if !geteuid().is_root() {
        println!("skipped: only root can do this");
    }
    geteuid().is_root()
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

/// Starts an agent without root privileges, in a world that it owns.
fn agent_without_an_owner(world: &mut World) -> Agent {
    set_mode(world.root.path(), 0o755);
    let dir = world.file.parent().unwrap();
    chown(dir, Some(NOBODY), Some(NOBODY)).unwrap();
    if world.file.exists() {
        chown(&world.file, Some(NOBODY), Some(NOBODY)).unwrap();
    }
    world.remember();
    let mut agent = Agent::start(0, true);
    let answer = agent.order("user", &world.file, false, "");
    assert_eq!(answer, Answer::Ok("changed".to_owned()));
    agent
}

fn error_of(answer: Answer) -> String {
    match answer {
        Answer::Error(error) => error,
        other => panic!("{other:?}"),
    }
}

fn ok(what: &str) -> Answer {
    Answer::Ok(what.to_owned())
}

#[test]
fn a_file_of_another_owner_keeps_its_owner_and_mode() {
    if !is_root() {
        return;
    }
    let no_links = Disk::with_hook(|step, _| match step {
        teamster_mcp_config::lease::disk::Step::LinkOriginal => {
            Err(std::io::ErrorKind::Unsupported.into())
        }
        _ => Ok(()),
    });
    for (disk, linked) in [(Disk::default(), true), (no_links, false)] {
        let mut world = World::new("plain");
        chown(&world.file, Some(1234), Some(2345)).unwrap();
        set_mode(&world.file, 0o640);
        world.remember();
        let lease = Lease::acquire_on(&disk, &world.edit(&["ours"])).unwrap();
        let meta = fs::metadata(&world.file).unwrap();
        assert_eq!(
            (meta.uid(), meta.gid(), meta.mode() & 0o7777),
            (1234, 2345, 0o640)
        );
        assert_eq!(lease.release().unwrap(), Released::Restored);
        if linked {
            world.assert_as_before("after the release");
        } else {
            world.assert_copied_as_before("after the release");
        }
    }
}

#[test]
fn hard_link_keeps_the_original_and_is_restored() {
    let world = World::new("two names");
    let original = world.text();
    let second = world.file.with_file_name("second");
    let lease = Lease::acquire(&world.edit(&["ours"])).unwrap();
    assert_eq!(fs::read_to_string(&second).ok(), original);
    assert_ne!(world.text(), original);
    // An edit through that name changes the original.
    let edited = original.unwrap().replace("dark", "light");
    fs::write(&second, &edited).unwrap();
    lease.release().unwrap();
    assert_eq!(world.text().unwrap(), edited);
    let inode = |path: &Path| fs::metadata(path).unwrap().ino();
    assert_eq!(inode(&world.file), inode(&second));
    world.assert_no_litter("after the release");
}

#[test]
fn folder_without_write_access_is_named_and_unchanged() {
    if !is_root() {
        return;
    }
    for name in ["plain", "read-only", "no file"] {
        let mut world = World::new(name);
        let dir = world.file.parent().unwrap().to_owned();
        let mut agent = agent_without_an_owner(&mut world);
        for mode in [0o555, 0o600, 0o000] {
            set_mode(&dir, mode);
            let answer = agent.order("acquire", &world.file, false, "ours");
            let error = error_of(answer);
            assert!(
                error.contains("ermission denied"),
                "{name} {mode:o}: {error}"
            );
            set_mode(&dir, 0o755);
            world.assert_as_before(&format!("{mode:o}"));
        }
        assert_eq!(
            agent.order("acquire", &world.file, false, "ours"),
            ok("acquired")
        );
        let merged = world.text();
        set_mode(&dir, 0o555);
        let error = error_of(agent.order("release", &world.file, false, "ours"));
        assert!(error.contains("must be allowed to write"), "{error}");
        assert_eq!(world.text(), merged);
        let error = error_of(agent.order("restore", &world.file, false, ""));
        assert!(error.contains("must be allowed to write"), "{error}");
        set_mode(&dir, 0o755);
        assert_eq!(
            agent.order("restore", &world.file, false, ""),
            ok("Restored")
        );
        world.assert_as_before("after the restore");
        agent.end();
    }
}

#[test]
fn a_file_whose_owner_cannot_be_kept_is_refused() {
    if !is_root() {
        return;
    }
    let mut world = World::new("plain");
    let mut agent = agent_without_an_owner(&mut world);
    chown(&world.file, Some(0), Some(0)).unwrap();
    world.remember();
    let error = error_of(agent.order("acquire", &world.file, false, "ours"));
    assert!(error.contains("give files their owner"), "{error}");
    world.assert_as_before("after the refusal");
    agent.end();
}

/// Starts an agent with its own mounts, which this script creates in the folder `$D`. Returns the agent and the path of
/// that folder in this process, or `None` if this machine does not allow it.
fn agent_with_mounts(dir: &Path, script: &str) -> Option<(Agent, PathBuf)> {
    let script = format!("D={}; {script} && exec \"$0\" \"$@\"", dir.display());
    let mut agent = Agent::start_by("unshare", &["-m", "sh", "-c", &script]);
    match agent.try_order("restore", &dir.join("nothing")) {
        Some(answer) => {
            assert_eq!(answer, ok("Nothing"));
            let root = PathBuf::from(format!("/proc/{}/root", agent.id()));
            Some((agent, root.join(dir.strip_prefix("/").unwrap())))
        }
        None => {
            println!("skipped: no mounts for us");
            None
        }
    }
}

#[test]
fn full_disk_is_named_and_undo_needs_no_space() {
    let world = World::new("plain");
    let dir = world.root.path().join("disk");
    fs::create_dir(&dir).unwrap();
    let mount = "mount -t tmpfs -o size=256k,mode=755 tmpfs \"$D\"";
    let Some((mut agent, seen)) = agent_with_mounts(&dir, mount) else {
        return;
    };
    let (file, seen_file) = (dir.join("settings.json"), seen.join("settings.json"));
    fs::copy(&world.file, &seen_file).unwrap();
    let original = fs::read_to_string(&seen_file).unwrap();
    let inode = fs::metadata(&seen_file).unwrap().ino();
    let ballast = seen.join("ballast");
    let names = || {
        let list = fs::read_dir(&seen).unwrap();
        let mut names: Vec<_> = list.map(|found| found.unwrap().file_name()).collect();
        names.sort();
        names
    };
    let fill = || {
        fs::write(&ballast, vec![0; 512 * 1024]).unwrap_err();
        assert_eq!(fs::metadata(&ballast).unwrap().len() % 4096, 0);
    };
    // With no space left at all, and then with one or two more pages each time.
    let mut refused = 0;
    for pages in 0..8 {
        fill();
        let full = fs::metadata(&ballast).unwrap().len();
        let ballast_file = fs::OpenOptions::new().write(true).open(&ballast).unwrap();
        ballast_file.set_len(full - pages * 4096).unwrap();
        match agent.order("acquire", &file, false, "ours") {
            Answer::Error(error) => {
                refused += 1;
                assert!(error.contains("make room on the disk"), "{error}");
                assert_eq!(names(), ["ballast", "settings.json"]);
            }
            answer => {
                assert_eq!(answer, ok("acquired"));
                fill();
                assert_eq!(agent.order("release", &file, false, "ours"), ok("Restored"));
            }
        }
        assert_eq!(fs::read_to_string(&seen_file).unwrap(), original);
        assert_eq!(fs::metadata(&seen_file).unwrap().ino(), inode);
        assert_eq!(names(), ["ballast", "settings.json"]);
        // Removing the file would not free its pages while a program that is being started has it open.
        ballast_file.set_len(0).unwrap();
        fs::remove_file(&ballast).unwrap();
    }
    assert!((1..8).contains(&refused), "{refused}");
    agent.end();
}

#[test]
fn a_file_that_is_mounted_by_itself_is_named_and_left_alone() {
    let world = World::new("plain");
    let dir = world.file.parent().unwrap();
    let mount = "mount --bind \"$D/../other\" \"$D/settings.json\"";
    fs::write(world.root.path().join("other"), "{}").unwrap();
    let Some((mut agent, seen)) = agent_with_mounts(dir, mount) else {
        return;
    };
    let error = error_of(agent.order("acquire", &world.file, false, "ours"));
    assert!(
        error.contains("a file that is mounted by itself"),
        "{error}"
    );
    let text = fs::read_to_string(seen.join("settings.json")).unwrap();
    assert_eq!(text, "{}");
    agent.end();
    world.assert_no_litter("after the refusal");
    assert_eq!(restore(&world.file).unwrap(), Released::Nothing);
}

#[test]
fn a_file_system_that_is_read_only_is_named() {
    let world = World::new("plain");
    let dir = world.file.parent().unwrap();
    let mount = "mount --bind \"$D\" \"$D\" && mount -o remount,bind,ro \"$D\"";
    let Some((mut agent, _)) = agent_with_mounts(dir, mount) else {
        return;
    };
    let error = error_of(agent.order("acquire", &world.file, false, "ours"));
    assert!(error.contains("must be writable"), "{error}");
    agent.end();
    world.assert_as_before("after the refusal");
}

#[test]
fn a_file_in_a_lower_layer_of_a_container_comes_back() {
    let world = World::new("plain");
    let dir = world.root.path().join("layers");
    let low = dir.join("low");
    fs::create_dir_all(&low).unwrap();
    fs::copy(&world.file, low.join("settings.json")).unwrap();
    set_mode(&low.join("settings.json"), 0o640);
    let mount = "mkdir \"$D\"/up \"$D\"/work \"$D\"/all && mount -t overlay overlay \
                 -o lowerdir=\"$D\"/low,upperdir=\"$D\"/up,workdir=\"$D\"/work \"$D\"/all";
    let Some((mut agent, seen)) = agent_with_mounts(&dir, mount) else {
        return;
    };
    let (file, seen) = (dir.join("all/settings.json"), seen.join("all"));
    let look = || {
        let list = fs::read_dir(&seen).unwrap();
        let names: Vec<_> = list.map(|found| found.unwrap().file_name()).collect();
        let meta = fs::metadata(seen.join("settings.json")).unwrap();
        let text = fs::read_to_string(seen.join("settings.json")).unwrap();
        (
            names,
            text,
            meta.mode(),
            meta.uid(),
            meta.modified().unwrap(),
        )
    };
    let before = look();
    for name in ["first", "second"] {
        assert_eq!(agent.order("acquire", &file, false, name), ok("acquired"));
        assert!(look().1.contains(&format!("/bin/{name}")));
        assert_eq!(agent.order("release", &file, false, name), ok("Restored"));
        assert_eq!(look(), before, "{name}");
    }
    agent.end();
    assert!(fs::read_to_string(low.join("settings.json")).unwrap() == before.1);
}
