//! Files of Git LFS.

use std::fs;
use std::path::Path;
use std::process::Command;

use teamster_workspace::{
    Kept, Mirror, NewWorktree, Origin, SILENCE, Source, Target, Wait, Worktree,
};
use tempfile::TempDir;

use super::repository::{Repository, git};

const POINTER: &str = "version https://git-lfs.github.com/spec/v1\n";

pub(crate) fn is_installed() -> bool {
    let version = Command::new("git").args(["lfs", "version"]).output();
    version.unwrap().status.success()
}

/// Runs git in a directory with these settings of the user.
fn git_with(settings: &Path, directory: &Path, args: &[&str]) -> String {
    let output = Command::new("git")
        .arg("-C")
        .arg(directory)
        .args(["-c", "user.name=A", "-c", "user.email=a@b"])
        .args(args)
        .env("GIT_CONFIG_GLOBAL", settings)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{args:?}: {said}");
    String::from_utf8_lossy(&output.stdout)
        .trim_end()
        .to_owned()
}

/// Uploads a repository, and makes a worktree of it.
fn uploaded(repository: &Repository, folder: &TempDir) -> Worktree {
    let packing = tempfile::tempdir().unwrap();
    let source = Source::find(repository.path()).unwrap();
    let taken = source.take(packing.path()).unwrap();
    let bundle = taken.pack(&[]).unwrap();
    let mirrors = folder.path().join("mirrors");
    let wait = Wait::new(SILENCE, &|text| panic!("{text}"));
    let mirror = Mirror::open(&mirrors, source.root(), wait).unwrap();
    mirror.receive("r", &taken.base, bundle.as_deref()).unwrap();
    let mut wanted = NewWorktree::of(mirror.path());
    wanted.from = Some(taken.base.clone());
    wanted.origin = Origin::Uploaded;
    let root = folder.path().join("worktrees");
    let made = Worktree::create(&root, "r", &wanted).unwrap();
    made.of_upload(source.head())
}

/// A stand-in takes the place of git-lfs: its clean filter makes pointers, and its smudge filter fails.
#[test]
fn the_content_of_an_upload_and_of_its_result_is_never_only_a_pointer() {
    let folder = tempfile::tempdir().unwrap();
    let settings = folder.path().join("settings");
    let filter = format!(
        "[alias]\n\tlfs = !true\n[filter \"lfs\"]\n\trequired = true\n\tsmudge = \"cat >/dev/null; exit 1\"\n\tclean = \"cat \
         >/dev/null; printf '{}'\"\n",
        POINTER.trim_end().replace(' ', "\\\\040")
    );
    fs::write(&settings, filter).unwrap();
    let repository = Repository::new();
    repository.write(".gitattributes", "*.bin filter=lfs -text\n");
    repository.write("old.bin", &format!("{POINTER}oid sha256:0\nsize 1\n"));
    repository.commit("large");
    // As `git lfs install --local` leaves it.
    let included = settings.to_str().unwrap();
    repository.git(["config", "include.path", included]);
    repository.write("changed.bin", "content\n");
    let mut made = uploaded(&repository, &folder);
    let warnings = made.take_warnings().join("; ");
    assert!(
        warnings.contains("1 file of Git LFS have no content, only pointers: the content of what is committed is not"),
        "{warnings}"
    );
    made.start().unwrap();
    let there = made.directory().to_owned();
    assert_eq!(
        fs::read_to_string(there.join("changed.bin")).unwrap(),
        "content\n"
    );
    // The machine has git-lfs, too.
    fs::write(there.join("new.bin"), "of the agent\n").unwrap();
    git_with(&settings, &there, &["add", "new.bin"]);
    git_with(
        &settings,
        &there,
        &["commit", "--quiet", "-m", "of the agent"],
    );
    fs::write(there.join("more.bin"), "not committed\n").unwrap();
    let result = made.finish().result;
    let (head, wip) = (result.head.unwrap(), result.wip.unwrap());
    let mirror = there.as_path();
    let content = |commit: &str, name: &str| git(mirror, ["show", &format!("{commit}:{name}")]);
    assert_eq!(content(&head, "new.bin"), "of the agent");
    assert_eq!(content(&wip, "more.bin"), "not committed");
    assert!(content(&head, "old.bin").starts_with(POINTER.trim_end()));
}

/// With git-lfs itself.
#[test]
fn git_lfs_checks_files_out_and_keeps_what_is_not_committed() {
    if !is_installed() {
        eprintln!("skipped: git-lfs is not installed");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let repository = Repository::new();
    repository.git(["lfs", "install", "--local"]);
    repository.git(["lfs", "track", "*.bin"]);
    repository.write("big.bin", &"content\n".repeat(1000));
    repository.commit("large");
    let pointer = repository.git(["show", "HEAD:big.bin"]);
    assert!(pointer.starts_with(POINTER.trim_end()), "{pointer}");
    let root = folder.path().join("worktrees");
    let wanted = NewWorktree::of(repository.path());
    let mut made = Worktree::create(&root, "r", &wanted).unwrap();
    assert_eq!(made.take_warnings(), [""; 0]);
    made.start().unwrap();
    let there = made.directory().to_owned();
    assert_eq!(fs::metadata(there.join("big.bin")).unwrap().len(), 8000);
    fs::write(there.join("new.bin"), "committed\n").unwrap();
    git(&there, ["add", "new.bin"]);
    git(&there, ["commit", "--quiet", "-m", "of the agent"]);
    fs::write(there.join("big.bin"), "changed\n").unwrap();
    let result = made.finish().result;
    assert_eq!((result.commits, result.files_changed), (Some(1), Some(2)));
    // A pointer in git, whose content the repository has.
    let wip = format!("{}:big.bin", result.wip.unwrap());
    assert!(
        repository
            .git(["show", &wip])
            .starts_with(POINTER.trim_end())
    );
    let patch = folder.path().join("patch");
    let kept = Kept::find(&root, "r").unwrap().unwrap();
    kept.write_patch(&patch).unwrap();
    let target = Target::find(repository.path()).unwrap();
    assert_eq!(target.apply(&patch, false).unwrap(), 2);
    let read = |name: &str| fs::read_to_string(repository.path().join(name)).unwrap();
    assert_eq!(
        (&*read("new.bin"), &*read("big.bin")),
        ("committed\n", "changed\n")
    );
}
