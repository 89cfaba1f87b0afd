//! The changes of a run as data, as a patch and as a bundle.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};

use teamster_api::{DiffQuery, DiffStatus, WorkspaceDiff};
use teamster_workspace::Kept;

use super::ended::{Run, worktree, worktrees};
use super::repository::{Repository, git};

#[test]
fn the_diff_has_what_git_sees() {
    let repository = Repository::new();
    repository.write("old name", &"a line\n".repeat(20));
    repository.write("mode", "x\n");
    repository.write("crlf", "a\r\nb\r\n");
    repository.write("gone", "gone\n");
    repository.commit("second");
    let run = Run::in_repository(repository);
    run.git(["mv", "old name", "new name"]);
    run.commit("renamed");
    fs::set_permissions(run.path().join("mode"), fs::Permissions::from_mode(0o755)).unwrap();
    run.write("crlf", "a\r\nc\r\n");
    run.write("binary", [0, 1, 2]);
    run.write(OsStr::from_bytes(b"\xff\n\""), "odd");
    fs::remove_file(run.path().join("gone")).unwrap();
    fs::remove_file(run.path().join("a.txt")).unwrap();
    symlink("target", run.path().join("a.txt")).unwrap();
    let ended = run.end();
    let diff = ended.diff();
    let about: Vec<_> = (diff.files.iter())
        .map(|it| (&*it.path, it.status, it.binary, it.hunks.len()))
        .collect();
    assert_eq!(
        about,
        [
            ("a.txt", DiffStatus::Type, false, 2),
            ("binary", DiffStatus::Added, true, 0),
            ("crlf", DiffStatus::Modified, false, 1),
            ("gone", DiffStatus::Deleted, false, 1),
            ("mode", DiffStatus::Mode, false, 0),
            ("new name", DiffStatus::Renamed, false, 0),
            ("\u{fffd}\n\"", DiffStatus::Added, false, 1),
        ]
    );
    assert_eq!(diff.files[6].raw_path.as_deref(), Some("%FF%0A\""));
    assert_eq!(diff.files[5].old_path.as_deref(), Some("old name"));
    assert_eq!(diff.files[4].new_mode.as_deref(), Some("100755"));
    let lines: Vec<_> = diff.files[2].hunks[0]
        .lines
        .iter()
        .map(|it| &*it.text)
        .collect();
    assert_eq!(lines, ["a\r", "b\r", "c\r"]);
    assert!(diff.files[6].hunks[0].lines[0].no_newline);
    let figures = [diff.files_changed, diff.insertions, diff.deletions].map(Some);
    assert_eq!(figures, ended.figures()[1..]);

    // A selection of paths, read as they are.
    let mut query = DiffQuery::default();
    query.stat = true;
    query.paths = vec!["gone".to_owned(), "c*".to_owned()];
    let selected = ended.kept().diff(&query).unwrap();
    let paths: Vec<_> = selected
        .files
        .iter()
        .map(|it| (&*it.path, it.hunks.len()))
        .collect();
    assert_eq!(paths, [("gone", 0)]);
}

#[test]
fn a_diff_does_not_depend_on_settings_and_runs_nothing() {
    let run = Run::new();
    let witness = run.root.path().join("witness");
    let program = format!("touch {}; false", witness.display());
    for (name, value) in [
        ("diff.external", &*program),
        ("diff.noprefix", "true"),
        ("diff.mnemonicPrefix", "true"),
        ("color.diff", "always"),
        ("core.pager", &program),
        ("diff.x.textconv", &program),
        ("core.quotePath", "false"),
    ] {
        run.repository.git(["config", name, value]);
    }
    run.write(".gitattributes", "*.txt diff=x\n");
    run.write("a.txt", "two\n");
    let ended = run.end();
    let diff = ended.diff();
    assert_eq!(diff.files.len(), 2);
    assert_eq!(diff.files[1].hunks[0].lines.len(), 2);
    assert!(!witness.exists());
}

#[test]
fn many_files_and_a_large_hunk_are_cut_and_counted() {
    let run = Run::new();
    for number in 0..300 {
        run.write(format!("many/{number:03}"), "x\n");
    }
    run.write("large", "0123456789abcde\n".repeat(128 * 1024));
    let ended = run.end();
    assert_eq!(
        ended.figures()[1..],
        [Some(301), Some(300 + 128 * 1024), Some(0)]
    );
    let diff = ended.diff();
    assert_eq!(diff.files.len(), 301);
    let large = &diff.files[0];
    assert!(diff.truncated && large.truncated);
    assert_eq!(large.hunks[0].new_lines, 128 * 1024);
    let kept: usize = large.hunks[0]
        .lines
        .iter()
        .map(|it| it.text.len() + 2)
        .sum();
    assert!(kept <= 512 * 1024 && kept > 500 * 1024, "{kept}");
    assert_eq!(diff.files[300].hunks[0].lines[0].text, "x");
    let json = serde_json::to_string(&diff).unwrap();
    assert_eq!(serde_json::from_str::<WorkspaceDiff>(&json).unwrap(), diff);
}

#[test]
fn the_changes_of_a_live_run_are_those_so_far() {
    let run = Run::new();
    run.write("new", "new\n");
    let index = fs::read(
        run.path()
            .join(run.git(["rev-parse", "--git-path", "index"])),
    )
    .unwrap();
    let kept = Kept::find(&worktrees(&run.root), "r").unwrap().unwrap();
    assert!(kept.result().is_none());
    let before = run.repository.files();
    let diff = kept.diff(&DiffQuery::default()).unwrap();
    assert_eq!((&*diff.files[0].path, diff.insertions), ("new", 1));
    let path = run
        .path()
        .join(run.git(["rev-parse", "--git-path", "index"]));
    assert_eq!(fs::read(path).unwrap(), index);
    // Neither a ref nor an object.
    assert!(run.repository.files() == before, "something was written");
    let record = worktrees(&run.root).with_extension("results").join("r");
    assert_eq!(fs::read_dir(record).unwrap().count(), 1);
}

#[test]
fn a_patch_and_a_bundle_bring_all_of_it_to_another_clone() {
    let run = Run::new();
    let other = tempfile::tempdir().unwrap();
    let clone = other.path().join("clone");
    let source = run.repository.path().to_str().unwrap();
    git(
        other.path(),
        ["clone", "--quiet", source, clone.to_str().unwrap()],
    );
    run.write("a.txt", "two\n");
    run.commit("second");
    run.write("binary", [0, 1, 2]);
    run.write("crlf", "a\r\n");
    run.write(OsStr::from_bytes(b"\xff\n\""), "odd");
    let ended = run.end();
    let wip = ended.result.wip.clone().unwrap();
    let patch = other.path().join("patch");
    ended.kept().write_patch(&patch).unwrap();
    git(&clone, ["apply", "--index", patch.to_str().unwrap()]);
    let tree = ended
        .repository
        .git(["rev-parse", &format!("{wip}^{{tree}}")]);
    assert_eq!(git(&clone, ["write-tree"]), tree);

    let bundle = other.path().join("bundle");
    assert!(ended.kept().write_bundle(&bundle).unwrap());
    let bundle = bundle.to_str().unwrap();
    git(&clone, ["bundle", "verify", "--quiet", bundle]);
    git(
        &clone,
        ["fetch", "--quiet", bundle, "refs/teamster/r/*:refs/got/*"],
    );
    assert_eq!(git(&clone, ["rev-parse", "refs/got/wip"]), wip);
    assert_eq!(
        Some(git(&clone, ["rev-parse", "refs/got/head"])),
        ended.result.head
    );
}

#[test]
fn the_result_outlives_the_worktree_until_the_run_is_forgotten() {
    let run = Run::new();
    run.write("new", "new\n");
    let path = run.path();
    let ended = run.end();
    ended
        .repository
        .git(["worktree", "remove", "--force", path.to_str().unwrap()]);
    // The next worktree cleans up after killed processes.
    worktree(&ended.root, &ended.repository, "next").finish();
    assert_eq!(ended.diff().files[0].path, "new");
    assert_eq!(ended.kept().directory(), None);
    assert_eq!(ended.repository.git(["branch", "--list", "teamster/*"]), "");
    ended.kept().forget(None).unwrap();
    assert_eq!(ended.repository.git(["for-each-ref", "refs/teamster"]), "");
    assert!(!worktrees(&ended.root).join("r").exists());

    // The worktree of a run that is forgotten stays, with its branch.
    let run = Run::new();
    run.write("new", "new\n");
    let path = run.path();
    let ended = run.end();
    ended.kept().forget(None).unwrap();
    assert!(path.join("new").exists());
    assert_eq!(ended.repository.git(["for-each-ref", "refs/teamster"]), "");
    assert_eq!(
        ended.repository.git(["branch", "--list", "teamster/*"]),
        "+ teamster/r"
    );
}
