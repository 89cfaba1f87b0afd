//! Discarding what a run has left.

use std::fs;

use teamster_workspace::{DiscardError, Kept, NewWorktree, Worktree, WorktreeKey};

use super::ended::{Ended, Run, worktrees};
use super::repository::{Repository, files_of, git};

fn discard(ended: &Ended) -> Result<Option<String>, DiscardError> {
    ended.kept().discard(&worktrees(&ended.root), None)
}

/// All refs of the user's repository.
fn refs(ended: &Ended) -> String {
    ended
        .repository
        .git(["for-each-ref", "--format=%(refname)"])
}

#[test]
fn the_worktree_its_branch_and_its_commits_go_and_nothing_else() {
    let run = Run::new();
    run.repository.write("own", "of the user\n");
    let (files, status) = (
        files_of(run.repository.path(), |name| !name.starts_with(".git")),
        run.repository.git(["status", "--porcelain"]),
    );
    run.write("a.txt", "two\n");
    run.commit("second");
    run.write("new", "new\n");
    let ended = run.end();
    assert!(
        refs(&ended).contains("refs/teamster/r/wip"),
        "{}",
        refs(&ended)
    );

    assert_eq!(discard(&ended).unwrap().as_deref(), Some("teamster/r"));

    assert_eq!(refs(&ended), "refs/heads/main");
    assert!(!worktrees(&ended.root).join("r").exists());
    let listed = ended.repository.git(["worktree", "list", "--porcelain"]);
    assert_eq!(listed.matches("worktree ").count(), 1, "{listed}");
    assert!(Kept::find(&worktrees(&ended.root), "r").unwrap().is_none());
    assert_eq!(
        files_of(ended.repository.path(), |name| !name.starts_with(".git")),
        files
    );
    assert_eq!(ended.repository.git(["status", "--porcelain"]), status);
}

#[test]
fn a_worktree_that_was_changed_since_is_kept() {
    let run = Run::new();
    run.write("a.txt", "two\n");
    let path = run.path();
    let ended = run.end();
    let before = refs(&ended);
    let is_kept = || {
        let refused = discard(&ended).unwrap_err();
        assert!(
            matches!(&refused, DiscardError::Changed(at) if *at == path),
            "{refused:?}"
        );
        assert_eq!(refs(&ended), before);
        assert!(path.join("a.txt").exists());
    };
    fs::write(path.join("later"), "by hand\n").unwrap();
    is_kept();
    fs::remove_file(path.join("later")).unwrap();
    git(&path, ["commit", "--quiet", "--all", "-m", "by hand"]);
    is_kept();
    git(&path, ["reset", "--quiet", "--mixed", "HEAD^"]);
    assert!(discard(&ended).unwrap().is_some());
}

#[test]
fn branches_of_the_user_stay() {
    // The agent has moved on to a branch of the user's.
    let repository = Repository::new();
    repository.git(["branch", "topic"]);
    let run = Run::in_repository(repository);
    run.git(["switch", "--quiet", "topic"]);
    run.write("a.txt", "two\n");
    let topic = run.commit("second");
    let ended = run.end();
    assert_eq!(discard(&ended).unwrap().as_deref(), Some("teamster/r"));
    assert_eq!(refs(&ended), "refs/heads/main\nrefs/heads/topic");
    assert_eq!(ended.repository.git(["rev-parse", "topic"]), topic);

    // The user works on that of the run.
    let run = Run::new();
    run.write("a.txt", "two\n");
    let head = run.commit("second");
    run.git(["switch", "--quiet", "--detach"]);
    let ended = run.end();
    ended.repository.git(["switch", "--quiet", "teamster/r"]);
    assert_eq!(discard(&ended).unwrap(), None);
    assert_eq!(ended.repository.git(["rev-parse", "HEAD"]), head);
    assert_eq!(ended.repository.git(["status", "--porcelain"]), "");
}

#[test]
fn worktree_used_by_others_is_kept() {
    let run = Run::new();
    run.write("a.txt", "two\n");
    let live = Kept::find(&worktrees(&run.root), "r").unwrap().unwrap();
    let refused = live.discard(&worktrees(&run.root), None).unwrap_err();
    assert!(matches!(refused, DiscardError::InUse), "{refused:?}");

    let (repository, root) = (Repository::new(), tempfile::tempdir().unwrap());
    let key = WorktreeKey::new("a1", "k");
    let wanted = NewWorktree::of(repository.path());
    let mut keyed = Worktree::of_key(&worktrees(&root), "k", &wanted, &key).unwrap();
    keyed.start().unwrap();
    fs::write(keyed.directory().join("a.txt"), "two\n").unwrap();
    let path = keyed.directory().to_owned();
    keyed.finish();
    let kept = Kept::find(&worktrees(&root), "k").unwrap().unwrap();
    let refused = kept.discard(&worktrees(&root), None).unwrap_err();
    assert!(matches!(refused, DiscardError::OfKey), "{refused:?}");
    assert!(path.join("a.txt").exists());

    let mut empty = Worktree::empty(&worktrees(&root), "e").unwrap();
    empty.start().unwrap();
    fs::write(empty.directory().join("a"), "a").unwrap();
    empty.finish();
    let kept = Kept::find(&worktrees(&root), "e").unwrap().unwrap();
    let refused = kept.discard(&worktrees(&root), None).unwrap_err();
    assert!(matches!(refused, DiscardError::Directory(_)), "{refused:?}");
}

/// By hand, and by a discard that was cut off.
#[test]
fn worktree_that_was_removed_is_forgotten_by_git() {
    for removed in ["directory", "folder", "by git"] {
        let run = Run::new();
        run.write("a.txt", "two\n");
        run.commit("second");
        let path = run.path();
        let ended = run.end();
        match removed {
            "directory" => fs::remove_dir_all(&path).unwrap(),
            "folder" => fs::remove_dir_all(path.parent().unwrap()).unwrap(),
            _ => {
                let remove = ["worktree", "remove", "--force", path.to_str().unwrap()];
                ended.repository.git(remove);
            }
        }
        let branch = discard(&ended).unwrap();
        assert_eq!(branch.as_deref(), Some("teamster/r"), "{removed}");
        assert_eq!(refs(&ended), "refs/heads/main", "{removed}");
        assert!(!worktrees(&ended.root).join("r").exists(), "{removed}");
        let listed = ended.repository.git(["worktree", "list", "--porcelain"]);
        assert_eq!(listed.matches("worktree ").count(), 1, "{listed}");
    }
}

#[test]
fn work_in_a_nested_repository_after_the_end_is_kept() {
    let run = Run::new();
    run.write("a.txt", "two\n");
    let path = run.path();
    let ended = run.end();
    let nested = path.join("nested");
    fs::create_dir(&nested).unwrap();
    git(&nested, ["init", "--quiet"]);
    fs::write(nested.join("own"), "by hand\n").unwrap();
    let refused = discard(&ended).unwrap_err();
    assert!(matches!(&refused, DiscardError::Changed(_)), "{refused:?}");
    assert!(nested.join("own").exists());
}
