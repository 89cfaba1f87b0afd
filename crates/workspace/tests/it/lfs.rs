//! Files of Git LFS.

use std::cell::RefCell;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime};

use teamster_workspace::{
    Incoming, Kept, Mirror, NewWorktree, Origin, SILENCE, Source, Target, Wait, Worktree,
};
use tempfile::TempDir;

use super::repository::{Repository, git};

const POINTER: &str = "version https://git-lfs.github.com/spec/v1\n";

pub(crate) fn is_installed() -> bool {
    let version = Command::new("git").args(["lfs", "version"]).output();
    version.unwrap().status.success()
}

/// A stand-in that does what git-lfs does for files, without a server.
const STAND_IN: &str = r#"set -eu
storage=$(git config lfs.storage || echo "$(git rev-parse --git-common-dir)/lfs")
file=$(mktemp)
trap 'rm -f "$file"' EXIT
cat >"$file"
if [ "$1" = clean ]; then
  if [ ! -s "$file" ] || grep -q "^version https://git-lfs" "$file"; then cat "$file"; exit; fi
  oid=$(sha256sum <"$file" | cut -c 1-64)
  folder=$storage/objects/$(echo "$oid" | cut -c 1-2)/$(echo "$oid" | cut -c 3-4)
  mkdir -p "$folder"
  cp "$file" "$folder/$oid"
  printf 'version https://git-lfs.github.com/spec/v1\noid sha256:%s\nsize %s\n' "$oid" "$(wc -c <"$file" | tr -d ' ')"
else
  oid=$(sed -n 's/^oid sha256://p' "$file")
  if [ -z "$oid" ]; then cat "$file"; exit; fi
  cat "$storage/objects/$(echo "$oid" | cut -c 1-2)/$(echo "$oid" | cut -c 3-4)/$oid"
fi
"#;

/// A repository with a large file of each of these names, whose settings name a git-lfs.
fn repository(settings: &TempDir, is_real: bool, names: &[&str]) -> Repository {
    let repository = Repository::new();
    if is_real {
        repository.git(["lfs", "install", "--local"]);
    } else {
        let program = settings.path().join("git-lfs");
        fs::write(&program, STAND_IN).unwrap();
        let program = program.to_str().unwrap();
        repository.git(["config", "alias.lfs", "!true"]);
        repository.git(["config", "filter.lfs.required", "true"]);
        for what in ["clean", "smudge"] {
            let run = format!("sh {program} {what}");
            repository.git(["config", &format!("filter.lfs.{what}"), &run]);
        }
    }
    repository.write(
        ".gitattributes",
        "*.bin filter=lfs diff=lfs merge=lfs -text\n",
    );
    for name in names {
        repository.write(name, &format!("content of {name}\n").repeat(100));
    }
    repository.commit("large");
    repository
}

/// A machine that takes uploads, and the warnings of those who made them.
struct Machine(TempDir, RefCell<Vec<String>>);

impl Machine {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap(), RefCell::default())
    }

    /// Uploads a repository, and makes a worktree of it. Returns also how much content was sent beside commits, in bytes.
    fn upload(&self, repository: &Repository, id: &str) -> (Worktree, u64) {
        let packing = tempfile::tempdir().unwrap();
        let source = Source::find(repository.path()).unwrap();
        let mut taken = source.take(packing.path()).unwrap();
        let mirrors = self.0.path().join("mirrors");
        let known = Mirror::known(&mirrors, source.root(), &taken.offers).unwrap();
        let bundle = taken.pack(&known).unwrap();
        self.1.borrow_mut().append(&mut taken.warnings);
        let mirror = self.mirror(repository);
        mirror.receive(id, &taken.base, bundle.as_deref()).unwrap();
        let included = taken.included.as_ref();
        let files = included.map(|it| mirror.receive_large_files(&it.bundle).unwrap());
        let mut wanted = NewWorktree::of(mirror.path());
        wanted.from = Some(taken.base.clone());
        wanted.origin = Origin::Uploaded;
        let mut made = Worktree::create(&self.root(), id, &wanted).unwrap();
        if let (Some(included), Some(files)) = (included, files) {
            made.include(files.bundle(), &included.commit).unwrap();
        }
        let sent = included.map_or(0, |it| fs::metadata(&it.bundle).unwrap().len());
        (made.of_upload(source.head()), sent)
    }

    /// Lets the machine have git-lfs itself, as in the settings of its user.
    fn with_git_lfs(self, repository: &Repository) -> Self {
        let text = "[filter \"lfs\"]\n\tclean = git-lfs clean -- %f\n\tsmudge = git-lfs smudge -- %f\n\tprocess = git-lfs \
                    filter-process\n\trequired = true\n";
        self.with_settings(repository, text)
    }

    fn mirror(&self, repository: &Repository) -> Mirror {
        let source = Source::find(repository.path()).unwrap();
        let wait = Wait::new(SILENCE, &|text| panic!("{text}"));
        Mirror::open(&self.0.path().join("mirrors"), source.root(), wait).unwrap()
    }

    fn with_settings(self, repository: &Repository, text: &str) -> Self {
        let settings = self.0.path().join("settings");
        fs::write(&settings, text).unwrap();
        let mirror = self.mirror(repository);
        git(
            mirror.path(),
            ["config", "include.path", settings.to_str().unwrap()],
        );
        self
    }

    fn root(&self) -> PathBuf {
        self.0.path().join("worktrees")
    }
}

fn read(folder: &Path, name: &str) -> String {
    fs::read_to_string(folder.join(name)).unwrap()
}

#[test]
fn large_files_go_with_an_upload_and_return_with_its_result() {
    for is_real in [false, true] {
        if is_real && !is_installed() {
            eprintln!("skipped: git-lfs is not installed");
            continue;
        }
        goes_along_and_comes_back(is_real);
    }
}

fn goes_along_and_comes_back(is_real: bool) {
    let settings = tempfile::tempdir().unwrap();
    let repository = repository(&settings, is_real, &["old.bin", "sub/changed.bin"]);
    let base = repository.git(["rev-parse", "HEAD"]);
    repository.write("sub/changed.bin", "changed\n");
    repository.write("untracked.bin", "untracked\n");
    let before = repository.files();
    let machine = Machine::new();
    let machine = if is_real {
        machine.with_git_lfs(&repository)
    } else {
        machine
    };
    let (mut made, _) = machine.upload(&repository, "r");
    assert_eq!(repository.files(), before);
    assert_eq!(made.take_warnings(), [""; 0]);
    made.start().unwrap();
    let there = made.directory().to_owned();
    let content = "content of old.bin\n".repeat(100);
    assert_eq!(read(&there, "old.bin"), content);
    assert_eq!(read(&there, "sub/changed.bin"), "changed\n");
    assert_eq!(read(&there, "untracked.bin"), "untracked\n");
    assert_eq!(git(&there, ["status", "--porcelain"]), "");

    // The agent writes one as it was, and others.
    fs::write(there.join("old.bin"), &content).unwrap();
    fs::write(there.join("new.bin"), "of the agent\n").unwrap();
    let author = ["-c", "user.name=A", "-c", "user.email=a@b"];
    git(&there, ["add", "--all"]);
    git(
        &there,
        author.iter().chain(&["commit", "--quiet", "-m", "new"]),
    );
    fs::write(there.join("more.bin"), "not committed\n").unwrap();
    fs::write(there.join("empty.bin"), "").unwrap();
    let result = made.finish().result;
    assert_eq!((result.commits, result.files_changed), (Some(1), Some(3)));
    let (head, wip) = (result.head.unwrap(), result.wip.unwrap());
    assert!(git(&there, ["show", &format!("{head}:new.bin")]).starts_with(POINTER.trim_end()));
    assert_eq!(git(&there, ["show", &format!("{wip}:empty.bin")]), "");

    // Into the files, with its content from the bundle.
    let kept = Kept::find(&machine.root(), "r").unwrap().unwrap();
    let [patch, bundle] = ["patch", "bundle"].map(|name| machine.0.path().join(name));
    kept.write_patch(&patch).unwrap();
    assert!(kept.write_bundle(&bundle).unwrap());
    let target = Target::find(repository.path()).unwrap();
    assert!(target.lacks_large_files(&patch).unwrap());
    target.take_large_files(&bundle).unwrap();
    assert!(!target.lacks_large_files(&patch).unwrap());
    assert_eq!(target.apply(&patch).unwrap(), 3);
    assert_eq!(read(repository.path(), "new.bin"), "of the agent\n");
    assert_eq!(read(repository.path(), "more.bin"), "not committed\n");
    for name in ["new.bin", "more.bin", "empty.bin"] {
        fs::remove_file(repository.path().join(name)).unwrap();
    }

    // As a branch, in another clone that has the first commits alone.
    fs::remove_dir_all(repository.path().join(".git/lfs")).unwrap();
    let mut incoming = Incoming::new("r", &base, &head);
    incoming.wip = Some(&wip);
    target.fetch(Some(&bundle), incoming, "brought").unwrap();
    repository.git([
        "checkout",
        "--quiet",
        "brought",
        "--",
        "new.bin",
        "sub/changed.bin",
    ]);
    assert_eq!(read(repository.path(), "new.bin"), "of the agent\n");
    assert_eq!(read(repository.path(), "sub/changed.bin"), "changed\n");
}

#[test]
fn a_machine_gets_the_content_of_a_large_file_once() {
    let settings = tempfile::tempdir().unwrap();
    let repository = repository(&settings, false, &[]);
    let words = |seed: u64| -> String {
        // What no compression makes much smaller.
        let words = (0..40_000_u64).map(|it| (it + seed).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40);
        words.map(|word| word.to_string()).collect()
    };
    repository.write("a.bin", &words(0));
    repository.commit("a");
    let machine = Machine::new();
    let (_first, sent) = machine.upload(&repository, "first");
    assert!(sent > 100_000, "{sent}");
    let (mut second, sent) = machine.upload(&repository, "second");
    assert!(sent < 1000, "{sent}");
    assert_eq!(second.take_warnings(), [""; 0]);
    assert_eq!(read(second.directory(), "a.bin"), words(0));
    repository.write("b.bin", "small\n");
    let (third, sent) = machine.upload(&repository, "third");
    assert!(sent < 2000, "{sent}");
    assert_eq!(read(third.directory(), "a.bin"), words(0));
    assert_eq!(read(third.directory(), "b.bin"), "small\n");
}

/// The place of the only content that a store has.
fn only_content(store: &Path) -> PathBuf {
    let mut at = store.join("objects");
    while at.is_dir() {
        let mut inside = fs::read_dir(&at).unwrap();
        at = inside.next().unwrap().unwrap().path();
        assert!(inside.next().is_none());
    }
    at
}

#[test]
fn content_that_a_machine_has_lost_is_sent_again() {
    let settings = tempfile::tempdir().unwrap();
    let repository = repository(&settings, false, &["a.bin"]);
    let machine = Machine::new();
    machine.upload(&repository, "first");
    let source = Source::find(repository.path()).unwrap();
    let mirrors = machine.0.path().join("mirrors");
    let store = mirrors.join(format!("{}.git/lfs", source.root()));
    // As a power failure leaves a file that was not flushed.
    fs::write(only_content(&store), "").unwrap();
    // What a killed process has left, and what another one is writing.
    let [old, new] = ["teamster-old", "teamster-new"].map(|name| store.join("tmp").join(name));
    for draft in [&old, &new] {
        fs::write(draft, "x").unwrap();
    }
    let two_days_ago = SystemTime::now() - Duration::from_hours(48);
    let file = File::options().write(true).open(&old).unwrap();
    file.set_modified(two_days_ago).unwrap();
    let (mut second, _) = machine.upload(&repository, "second");
    assert_eq!(second.take_warnings(), [""; 0]);
    let content = "content of a.bin\n".repeat(100);
    assert_eq!(read(second.directory(), "a.bin"), content);
    assert_eq!((old.exists(), new.exists()), (false, true));
}

#[test]
fn damaged_and_huge_content_is_left_out_and_named() {
    let settings = tempfile::tempdir().unwrap();
    let repository = repository(&settings, false, &["a.bin"]);
    let there = only_content(&repository.path().join(".git/lfs"));
    fs::write(&there, "damaged").unwrap();
    // The file itself, which git may read again, has none.
    let pointer = repository.git(["show", "HEAD:a.bin"]);
    repository.write("a.bin", &format!("{pointer}\n"));
    let upload = |id: &str| {
        let machine = Machine::new();
        let (mut made, sent) = machine.upload(&repository, id);
        assert!(sent < 10_000, "{sent}");
        assert!(read(made.directory(), "a.bin").starts_with(POINTER));
        assert_eq!(made.take_warnings().len(), 1);
        machine.1.take().join("; ")
    };
    let warnings = upload("damaged");
    assert!(
        warnings.contains("which is damaged: remove ")
            && warnings.contains(there.to_str().unwrap()),
        "{warnings}"
    );
    // A file without blocks.
    let file = File::options().write(true).open(&there).unwrap();
    file.set_len(5 << 30).unwrap();
    let warnings = upload("huge");
    assert_eq!(
        warnings,
        "not uploaded: the content of 1 file of Git LFS, 5120.0 MiB beyond the limit of 4096.0 MiB in one upload"
    );
}

#[test]
fn run_without_large_files_does_not_affect_its_mirror() {
    let settings = tempfile::tempdir().unwrap();
    let repository = repository(&settings, false, &["a.bin"]);
    let machine = Machine::new();
    let (mut with, _) = machine.upload(&repository, "with");
    with.start().unwrap();
    let there = with.directory().to_owned();
    assert_eq!(read(&there, "a.bin"), "content of a.bin\n".repeat(100));

    fs::remove_file(repository.path().join(".gitattributes")).unwrap();
    fs::remove_file(repository.path().join("a.bin")).unwrap();
    repository.commit("without");
    let (without, _) = machine.upload(&repository, "without");
    assert_eq!(git(without.directory(), ["status", "--porcelain"]), "");
    fs::write(there.join("new.bin"), "of the agent\n").unwrap();
    fs::write(there.join("a.bin"), "changed\n").unwrap();
    let wip = with.finish().result.wip.unwrap();
    for name in ["new.bin", "a.bin"] {
        let written = git(&there, ["show", &format!("{wip}:{name}")]);
        assert!(written.starts_with(POINTER.trim_end()), "{written}");
    }
    let mirror = machine.mirror(&repository);
    let is_bare = ["rev-parse", "--is-bare-repository"];
    assert_eq!(git(mirror.path(), is_bare), "true");
}

#[test]
fn large_file_without_content_stays_a_pointer_and_is_named() {
    let settings = tempfile::tempdir().unwrap();
    let repository = repository(&settings, false, &["a.bin", "b.bin"]);
    let pointer = repository.git(["show", "HEAD:a.bin"]);
    fs::remove_dir_all(repository.path().join(".git/lfs")).unwrap();
    // As git-lfs leaves it where the server does not have it.
    repository.write("a.bin", &format!("{pointer}\n"));
    repository.write("b.bin", "changed\n");
    let machine = Machine::new();
    let (mut made, _) = machine.upload(&repository, "r");
    let warnings = made.take_warnings().join("; ");
    assert!(
        warnings.contains(
            "1 file of Git LFS: only pointers, no content: it was not where the repository was"
        ),
        "{warnings}"
    );
    let there = made.directory();
    assert_eq!(read(there, "a.bin").trim_end(), pointer);
    assert_eq!(read(there, "b.bin"), "changed\n");
    assert_eq!(git(there, ["status", "--porcelain"]), "");
}

#[test]
fn git_lfs_on_a_machine_that_takes_uploads_asks_no_server() {
    let settings = tempfile::tempdir().unwrap();
    let repository = repository(&settings, false, &["a.bin"]);
    let pointer = repository.git(["show", "HEAD:a.bin"]);
    fs::remove_dir_all(repository.path().join(".git/lfs")).unwrap();
    repository.write("a.bin", &format!("{pointer}\n"));
    // A git-lfs that is there, and a process of it that leaves files as they are.
    let process = r"printf '0016git-filter-server\\n000eversion=2\\n00000000'; cat >/dev/null";
    let text = format!("[alias]\n\tlfs = !true\n[filter \"lfs\"]\n\tprocess = \"{process}\"\n");
    let machine = Machine::new().with_settings(&repository, &text);
    let (made, _) = machine.upload(&repository, "r");
    let setting = |name| git(made.directory(), ["config", "--get", name]);
    assert!(setting("lfs.url").starts_with("file:///"));
    assert_eq!(setting("lfs.pushurl"), setting("lfs.url"));
}

/// Where git has the content of large files, without git-lfs, they are as they are.
#[test]
fn content_that_git_has_is_never_replaced_by_a_pointer() {
    let repository = Repository::new();
    repository.write(".gitattributes", "*.bin filter=lfs -text\n");
    repository.write("old.bin", &format!("{POINTER}oid sha256:0\nsize 1\n"));
    repository.commit("large");
    repository.write("changed.bin", "content\n");
    let machine = Machine::new();
    let (mut made, _) = machine.upload(&repository, "r");
    let warnings = made.take_warnings().join("; ");
    assert!(
        warnings.contains("1 file of Git LFS: only pointers, no content: git has that of 1 other"),
        "{warnings}"
    );
    made.start().unwrap();
    let there = made.directory().to_owned();
    assert_eq!(read(&there, "changed.bin"), "content\n");
    fs::write(there.join("more.bin"), "not committed\n").unwrap();
    let wip = made.finish().result.wip.unwrap();
    assert_eq!(
        git(&there, ["show", &format!("{wip}:more.bin")]),
        "not committed"
    );
    assert!(git(&there, ["show", &format!("{wip}:old.bin")]).starts_with(POINTER.trim_end()));
}

#[test]
fn content_that_is_not_what_its_hash_names_is_refused() {
    let settings = tempfile::tempdir().unwrap();
    let repository = repository(&settings, false, &["a.bin"]);
    let object = repository.git(["rev-parse", ":a.txt"]);
    let name = "0".repeat(64);
    // Made by hand: one file with another's name.
    repository.git(["read-tree", "--empty"]);
    let entry = format!("100644,{object},{name}");
    repository.git(["update-index", "--add", "--cacheinfo", &entry]);
    let tree = repository.git(["write-tree"]);
    let commit = repository.git(["commit-tree", &tree, "-m", "x"]);
    repository.git(["update-ref", "refs/teamster-large/content", &commit]);
    let bundle = repository.path().join("bundle");
    repository.git([
        "bundle",
        "create",
        "--quiet",
        bundle.to_str().unwrap(),
        "refs/teamster-large/content",
        "main",
    ]);
    let target = Target::find(repository.path()).unwrap();
    let error = target.take_large_files(&bundle).unwrap_err().to_string();
    assert!(error.contains("is damaged"), "{error}");
    assert!(!repository.path().join(".git/lfs/objects/00/00").exists());
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
    assert_eq!(target.apply(&patch).unwrap(), 2);
    let read = |name: &str| fs::read_to_string(repository.path().join(name)).unwrap();
    assert_eq!(
        (&*read("new.bin"), &*read("big.bin")),
        ("committed\n", "changed\n")
    );
}
