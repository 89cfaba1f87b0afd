//! A worktree that the sessions of a thread share.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use teamster_core::WorkspaceKind;
use teamster_workspace::{
    Kept, Mirror, NewWorktree, Origin, SILENCE, Source, Wait, Worktree, remove_forgotten,
};
use tempfile::TempDir;

use super::repository::{Repository, git};

/// A machine with the mirror of an uploaded repository.
struct Machine {
    folder: TempDir,
    base: String,
}

impl Machine {
    fn new() -> Self {
        let repository = Repository::new();
        let folder = tempfile::tempdir().unwrap();
        let packing = tempfile::tempdir().unwrap();
        let source = Source::find(repository.path()).unwrap();
        let mut taken = source.take(packing.path()).unwrap();
        let bundle = taken.pack(&[]).unwrap();
        let machine = Self {
            base: taken.base.clone(),
            folder,
        };
        let wait = Wait::new(SILENCE, &|text| panic!("{text}"));
        let mirror = Mirror::open(&machine.mirrors(), &taken.base, wait).unwrap();
        mirror
            .receive("first", &taken.base, bundle.as_deref())
            .unwrap();
        machine
    }

    fn mirrors(&self) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join("mirrors")
    }

    fn worktrees(&self) -> PathBuf {
        self.folder.path().join("worktrees")
    }

    /// The worktree of the first session, which was started.
    fn first(&self, id: &str, stays: bool) -> Worktree {
        let mut made = self.prepared(id, stays);
        made.start().unwrap();
        made
    }

    /// The same before it was started.
    fn prepared(&self, id: &str, stays: bool) -> Worktree {
        let mirror = self.mirrors().join(format!("{}.git", self.base));
        let mut wanted = NewWorktree::of(mirror);
        wanted.from = Some(self.base.clone());
        wanted.name = Some("project".to_owned());
        wanted.subdirectory = Some("sub".into());
        wanted.origin = Origin::Uploaded;
        let made = Worktree::create(&self.worktrees(), id, &wanted).unwrap();
        let made = made.of_upload(&*self.base);
        if stays { made.stay().unwrap() } else { made }
    }

    fn continued(&self, id: &str, first: &str) -> anyhow::Result<Worktree> {
        Worktree::of_session(&self.worktrees(), id, first)
    }
}

#[test]
fn sessions_that_continue_one_share_its_uploaded_worktree() {
    let machine = Machine::new();
    let first = machine.first("first", true);
    let directory = first.directory().to_owned();
    assert!(directory.ends_with("project/sub"));
    let ended = first.finish();
    assert!(
        ended.report.contains("for what continues the session"),
        "{}",
        ended.report
    );
    assert_eq!(ended.result.kind, WorkspaceKind::Upload);
    assert!(ended.result.directory.is_some());

    // Another process cleans up meanwhile.
    drop(Worktree::empty(&machine.worktrees(), "other").unwrap());
    let mut second = machine.continued("second", "first").unwrap();
    assert_eq!(second.directory(), directory);
    second.start().unwrap();
    fs::write(directory.join("new"), "of the second\n").unwrap();
    // A third one begins before that has ended.
    let mut third = machine.continued("third", "first").unwrap();
    third.start().unwrap();
    let second = second.finish().result;
    assert_eq!(second.kind, WorkspaceKind::Upload);
    assert_eq!(second.files_changed, Some(1));
    fs::write(directory.join("newer"), "of the third\n").unwrap();
    let third = third.finish().result;
    assert_eq!(
        (third.base, third.files_changed),
        (machine.base.clone(), Some(2))
    );
    // Both can be brought back.
    for id in ["second", "third"] {
        let kept = Kept::find(&machine.worktrees(), id).unwrap().unwrap();
        let bundle = machine.folder.path().join(id);
        assert!(kept.write_bundle(&bundle).unwrap(), "{id}");
    }

    // It goes with the last of them.
    let forget = |id: &str| {
        let kept = Kept::find(&machine.worktrees(), id).unwrap().unwrap();
        kept.forget(Some(&machine.mirrors())).unwrap();
        remove_forgotten(&machine.worktrees(), &machine.mirrors());
    };
    forget("first");
    forget("third");
    assert!(directory.join("newer").exists());
    forget("second");
    assert!(!machine.worktrees().join("first").exists());
    let mirror = machine.mirrors().join(format!("{}.git", machine.base));
    assert_eq!(git(&mirror, ["branch", "--list", "teamster/*"]), "");
    let gone = machine.continued("fourth", "first").unwrap_err();
    assert!(
        gone.to_string().contains("session first is gone"),
        "{gone:#}"
    );
}

#[test]
fn worktree_of_a_killed_session_continues_with_its_changes() {
    let machine = Machine::new();
    let first = machine.first("first", true);
    let directory = first.directory().to_owned();
    fs::write(directory.join("new"), "1\n").unwrap();
    // As if it were killed: nothing is finished, and its lock is free.
    let folder = machine.worktrees().join("first");
    fs::rename(folder.join("lock"), folder.join("old")).unwrap();
    fs::write(folder.join("lock"), "").unwrap();
    let second = machine.continued("second", "first").unwrap();
    let kept = Kept::find(&machine.worktrees(), "first").unwrap().unwrap();
    assert_eq!(kept.result().unwrap().files_changed, Some(1));
    assert_eq!(fs::read(directory.join("new")).unwrap(), b"1\n");
    drop((second, first));
    assert!(directory.join("new").exists());
}

#[test]
fn a_worktree_of_one_session_is_not_continued() {
    let machine = Machine::new();
    let first = machine.first("first", false);
    let refused = machine.continued("second", "first").unwrap_err();
    let problem = refused.to_string();
    assert!(problem.contains("belongs to it alone"), "{problem}");
    drop(first);
    assert!(!machine.worktrees().join("first").exists());
}

#[test]
fn a_worktree_with_changes_is_continued_however_old_it_is() {
    let machine = Machine::new();
    for (id, is_changed) in [("changed", true), ("same", false)] {
        let first = machine.first(id, true);
        if is_changed {
            fs::write(first.directory().join("new"), "1\n").unwrap();
        }
        first.finish();
        let description = machine.worktrees().join(id).join("worktree.json");
        let description = fs::File::options().write(true).open(description);
        let old = SystemTime::now() - Duration::from_hours(100 * 24);
        description.unwrap().set_modified(old).unwrap();
        // Another process cleans up.
        drop(Worktree::empty(&machine.worktrees(), "other").unwrap());
        let second = machine.continued("second", id);
        if !is_changed {
            let problem = second.unwrap_err().to_string();
            assert!(
                problem.contains("or none did for 90 days: begin a new one"),
                "{problem}"
            );
            continue;
        }
        let mut second = second.unwrap();
        second.start().unwrap();
        assert_eq!(fs::read(second.directory().join("new")).unwrap(), b"1\n");
        assert!(second.finish().result.directory.is_some());
    }
    // Not one that is gone.
    let damaged = machine.worktrees().join("changed/worktree.json");
    fs::write(damaged, "{").unwrap();
    let problem = machine.continued("third", "changed").unwrap_err();
    assert!(
        problem.to_string().contains("cannot read the description"),
        "{problem}"
    );
}

#[test]
fn session_that_fails_to_start_keeps_worktrees_of_others() {
    let machine = Machine::new();
    let first = machine.prepared("first", true);
    let mut second = machine.continued("second", "first").unwrap();
    let third = machine.continued("third", "first").unwrap();
    second.start().unwrap();
    drop(first);
    assert!(second.directory().is_dir());
    drop(third);
    assert!(second.directory().is_dir());
    // Without another one, nothing is left of it.
    let alone = machine.prepared("alone", true);
    let directory = alone.directory().to_owned();
    drop(alone);
    assert!(!directory.exists());
}
