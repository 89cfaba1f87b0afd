mod settings;

use std::ffi::OsStr;
use std::fs;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime};

use teamster_workspace::{
    Kept, Mirror, NewWorktree, Origin, SILENCE, Source, Wait, Worktree, remove_forgotten,
};
use tempfile::TempDir;

use super::repository::{Repository, files_of, git};

/// Folders of a submitter and of a machine.
struct Way {
    packing: TempDir,
    mirrors: TempDir,
}

fn at_once() -> Wait<'static> {
    Wait::new(SILENCE, &|text| panic!("{text}"))
}

/// What is sent.
#[derive(Debug)]
struct Packed {
    base: String,
    bundle: Option<PathBuf>,
    uncommitted: usize,
    warnings: Vec<String>,
}

impl Way {
    fn new() -> Self {
        Self {
            packing: tempfile::tempdir().unwrap(),
            mirrors: tempfile::tempdir().unwrap(),
        }
    }

    fn mirrors(&self) -> &Path {
        self.mirrors.path()
    }

    /// Packs what the machine does not have.
    fn pack(&self, source: &Source) -> anyhow::Result<Packed> {
        let folder = tempfile::tempdir_in(self.packing.path())?.keep();
        let mut taken = source.take(&folder)?;
        let known = Mirror::known(self.mirrors(), source.root(), &taken.offers)?;
        let bundle = taken.pack(&known)?;
        Ok(Packed {
            base: taken.base,
            bundle,
            uncommitted: taken.uncommitted,
            warnings: taken.warnings,
        })
    }

    fn receive(&self, source: &Source, id: &str, packed: &Packed) -> anyhow::Result<Mirror> {
        let mirror = Mirror::open(self.mirrors(), source.root(), at_once())?;
        mirror.receive(id, &packed.base, packed.bundle.as_deref())?;
        Ok(mirror)
    }
}

#[test]
fn uploaded_files_are_equal_and_the_repository_is_unchanged() {
    let repository = Repository::new();
    repository.write(".gitignore", "ignored\n");
    repository.write("gone.txt", "gone\n");
    repository.commit("second");
    repository.write("a.txt", "staged\n");
    repository.git(["add", "a.txt"]);
    repository.write("a.txt", "staged, then changed\n");
    fs::remove_file(repository.path().join("gone.txt")).unwrap();
    repository.write("ignored", "secret\n");
    repository.write("new\n\"name\"", "new\n");
    repository.write(OsStr::from_bytes(b"bytes\xff"), "bytes\n");
    repository.write("run.sh", "#!/bin/sh\n");
    let run = repository.path().join("run.sh");
    fs::set_permissions(run, fs::Permissions::from_mode(0o755)).unwrap();
    symlink("/etc/passwd", repository.path().join("link")).unwrap();
    let before = repository.files();

    let way = Way::new();
    let source = Source::find(&repository.path().join("sub")).unwrap();
    assert_eq!(source.subdirectory(), Path::new("sub"));
    assert_eq!(source.branch(), Some("main"));
    let packed = way.pack(&source).unwrap();
    assert_eq!(packed.uncommitted, 6);
    assert_eq!(packed.warnings, Vec::<String>::new());
    assert_eq!(repository.files(), before);

    let mirror = way.receive(&source, "run1", &packed).unwrap();
    assert_eq!(
        git(mirror.path(), ["rev-parse", &format!("{}^", packed.base)]),
        source.head()
    );
    let tree = tempfile::tempdir().unwrap();
    let path = tree.path().join("w");
    let add = ["worktree", "add", "--quiet", path.to_str().unwrap()];
    git(mirror.path(), add.into_iter().chain([&*packed.base]));
    let except = |names: &'static [&str]| {
        move |path: &Path| !names.contains(&path.to_str().unwrap_or_default())
    };
    assert_eq!(
        files_of(&path, except(&[".git"])),
        files_of(repository.path(), except(&[".git", "ignored"])),
    );
}

#[test]
fn submodules_come_along_with_what_is_not_committed_in_them() {
    let (deep, lib) = (Repository::new(), Repository::new());
    let add = |to: &Repository, from: &Repository, name: &str| {
        let from = from.path().to_str().unwrap().to_owned();
        let allow = "protocol.file.allow=always";
        // A name that looks like a setting.
        let setting = format!("{name}=x");
        let add = [
            "submodule",
            "--quiet",
            "add",
            "--name",
            &setting,
            &from,
            name,
        ];
        to.git(["-c", allow].into_iter().chain(add));
        to.commit("with a submodule");
    };
    add(&lib, &deep, "deep er");
    let repository = Repository::new();
    add(&repository, &lib, "lib");
    let update = ["submodule", "--quiet", "update", "--init", "--recursive"];
    repository.git(
        ["-c", "protocol.file.allow=always"]
            .into_iter()
            .chain(update),
    );
    repository.write("lib/a.txt", "changed\n");
    repository.write("lib/deep er/new.txt", "new\n");
    let before = repository.files();

    let way = Way::new();
    let source = Source::find(repository.path()).unwrap();
    let packed = way.pack(&source).unwrap();
    assert_eq!(repository.files(), before);
    assert_eq!(packed.warnings, Vec::<String>::new());
    let mirror = way.receive(&source, "run1", &packed).unwrap();
    let root = tempfile::tempdir().unwrap();
    let mut wanted = NewWorktree::of(mirror.path());
    wanted.from = Some(packed.base.clone());
    wanted.origin = Origin::Uploaded;
    let mut made = Worktree::create(root.path(), "run1", &wanted).unwrap();
    assert_eq!(made.take_warnings(), Vec::<String>::new());
    let of_git = |path: &Path| path.file_name() != Some(OsStr::new(".git"));
    assert_eq!(
        files_of(made.directory(), of_git),
        files_of(repository.path(), of_git)
    );
    assert_eq!(git(made.directory(), ["status", "--porcelain"]), "");
    assert_eq!(
        git(
            &made.directory().join("lib"),
            ["remote", "get-url", "origin"]
        ),
        lib.path().to_str().unwrap()
    );
    // Nothing was changed: the worktree goes.
    let report = made.finish().report;
    assert!(report.contains("removed"), "{report}");
    let again = way.pack(&source).unwrap();
    assert_eq!((again.base, again.bundle), (packed.base, None));
}

#[test]
fn the_next_upload_brings_only_what_is_new() {
    let repository = Repository::new();
    // Random, so that it cannot be compressed.
    let large: String = (0..4000).map(|_| uuid()).collect();
    repository.write("large", &large);
    repository.commit("large");
    let way = Way::new();
    let source = Source::find(repository.path()).unwrap();
    let first = way.pack(&source).unwrap();
    way.receive(&source, "run1", &first).unwrap();

    repository.write("a.txt", "two\n");
    let source = Source::find(repository.path()).unwrap();
    let second = way.pack(&source).unwrap();
    let bytes = |packed: &Packed| fs::metadata(packed.bundle.as_ref().unwrap()).unwrap().len();
    assert!(bytes(&first) > 60_000, "{}", bytes(&first));
    assert!(bytes(&second) < 1_000, "{}", bytes(&second));
    let mirror = way.receive(&source, "run2", &second).unwrap();
    assert_eq!(
        git(mirror.path(), ["show", &format!("{}:a.txt", second.base)]),
        "two"
    );
    drop(mirror);

    repository.git(["checkout", "--quiet", "--", "a.txt"]);
    let source = Source::find(repository.path()).unwrap();
    let third = way.pack(&source).unwrap();
    assert_eq!(
        (third.bundle.as_deref(), &*third.base),
        (None, source.head())
    );
    way.receive(&source, "run3", &third).unwrap();
}

#[test]
fn a_bundle_that_was_tampered_with_changes_nothing() {
    let repository = Repository::new();
    repository.write("a.txt", "two\n");
    let way = Way::new();
    let source = Source::find(repository.path()).unwrap();
    let packed = way.pack(&source).unwrap();
    let bundle = packed.bundle.clone().unwrap();
    let whole = fs::read(&bundle).unwrap();
    let mirror = Mirror::open(way.mirrors(), source.root(), at_once()).unwrap();
    let refs = || git(mirror.path(), ["for-each-ref"]);
    for at in [0, whole.len() / 2, whole.len() - 1] {
        let mut changed = whole.clone();
        changed[at] ^= 1;
        fs::write(&bundle, &changed).unwrap();
        let error = mirror
            .receive("run1", &packed.base, Some(&bundle))
            .unwrap_err();
        assert!(format!("{error:#}").contains("upload"), "{error:#}");
        assert_eq!(refs(), "");
    }
    fs::write(&bundle, &whole[..whole.len() - 30]).unwrap();
    mirror
        .receive("run1", &packed.base, Some(&bundle))
        .unwrap_err();
    let other = "0".repeat(40);
    fs::write(&bundle, &whole).unwrap();
    mirror.receive("run1", &other, Some(&bundle)).unwrap_err();
    assert_eq!(refs(), "");
    mirror.receive("run1", &packed.base, Some(&bundle)).unwrap();
}

#[test]
fn kept_work_of_a_run_goes_with_it_for_any_id() {
    let repository = Repository::new();
    let way = Way::new();
    let source = Source::find(repository.path()).unwrap();
    let packed = way.pack(&source).unwrap();
    let root = tempfile::tempdir().unwrap();
    let root = root.path().join("worktrees");
    let finished = |directory: &Path, id: &str, origin: Origin| {
        let mut wanted = NewWorktree::of(directory);
        wanted.from = Some(packed.base.clone());
        wanted.origin = origin;
        let mut made = Worktree::create(&root, id, &wanted).unwrap();
        made.start().unwrap();
        fs::write(made.directory().join("new"), "new").unwrap();
        git(made.directory(), ["add", "new"]);
        let commit = "-c user.name=A -c user.email=a@b commit -qm new";
        git(made.directory(), commit.split(' '));
        made.finish();
    };
    finished(repository.path(), "own", Origin::User);
    let ids = ["a:b", "a..b", "x.lock", "latest", "runs"];
    let mut path = PathBuf::new();
    for id in ids {
        let mirror = way.receive(&source, id, &packed).unwrap();
        path = mirror.path().to_owned();
        finished(&path, id, Origin::Uploaded);
    }
    // One that has left nothing.
    way.receive(&source, "nothing", &packed).unwrap();
    remove_forgotten(&root, way.mirrors());
    let refs = || git(&path, ["for-each-ref", "--format=%(refname)"]);
    // Each has a branch, its head, and the commit that it began at; and there is the latest upload.
    assert_eq!(refs().lines().count(), 3 * ids.len() + 1, "{}", refs());
    // What cannot be read is not known to be forgotten.
    let broken = root.with_extension("results").join("latest/workspace.json");
    let whole = fs::read(&broken).unwrap();
    fs::write(&broken, "{").unwrap();
    remove_forgotten(&root, way.mirrors());
    assert_eq!(refs().lines().count(), 3 * ids.len() + 1, "{}", refs());
    fs::write(&broken, whole).unwrap();
    for (number, id) in ids.iter().enumerate() {
        let kept = Kept::find(&root, id).unwrap().unwrap();
        kept.forget(Some(way.mirrors())).unwrap();
        remove_forgotten(&root, way.mirrors());
        let left = ids.len() - number - 1;
        assert_eq!(refs().lines().count(), 3 * left + 1, "{id}: {}", refs());
        let trees = git(&path, ["worktree", "list"]);
        assert_eq!(trees.lines().count(), left + 1, "{id}: {trees}");
        assert!(!root.join(id).exists(), "{id}");
    }
    // In a repository of the user, the worktree and its branch stay.
    let kept = Kept::find(&root, "own").unwrap().unwrap();
    kept.forget(Some(way.mirrors())).unwrap();
    remove_forgotten(&root, way.mirrors());
    let refs = repository.git(["for-each-ref", "--format=%(refname)"]);
    assert_eq!(refs, "refs/heads/main\nrefs/heads/teamster/own");
    assert!(root.join("own").exists());

    // A mirror that is not used stays for a while.
    let used = path.join("teamster-used");
    let ago = |days: u64| SystemTime::now() - Duration::from_hours(24 * days);
    for (days, exists) in [(80, true), (100, false)] {
        let file = fs::File::options().write(true).open(&used).unwrap();
        file.set_modified(ago(days)).unwrap();
        remove_forgotten(&root, way.mirrors());
        assert_eq!(path.exists(), exists, "{days}");
    }
}

#[test]
fn commits_that_no_ref_keeps_are_not_known() {
    let repository = Repository::new();
    let way = Way::new();
    let source = Source::find(repository.path()).unwrap();
    let packed = way.pack(&source).unwrap();
    let mirror = way.receive(&source, "run1", &packed).unwrap();
    let offers = [source.head().to_owned()];
    let known = || Mirror::known(way.mirrors(), source.root(), &offers).unwrap();
    assert_eq!(known(), [source.head()]);
    mirror.forget("run1").unwrap();
    assert_eq!(known(), [source.head()]);
    git(
        mirror.path(),
        ["update-ref", "-d", "refs/teamster-mirror/latest"],
    );
    assert_eq!(known(), Vec::<String>::new());
    let error = mirror.receive("run2", source.head(), None).unwrap_err();
    assert!(
        format!("{error:#}").contains("submit the run again"),
        "{error:#}"
    );
}

#[test]
fn files_that_cannot_be_uploaded_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let error = |path: &Path| format!("{:#}", Source::find(path).unwrap_err());
    assert!(error(folder.path()).contains("is not in a git repository"));
    git(folder.path(), ["init", "--quiet"]);
    assert!(error(folder.path()).contains("has no commit yet"));

    let repository = Repository::new();
    repository.commit_empty("second");
    let shallow = tempfile::tempdir().unwrap();
    let url = format!("file://{}", repository.path().display());
    git(shallow.path(), ["clone", "--quiet", "--depth=1", &url, "."]);
    assert!(error(shallow.path()).contains("git fetch --unshallow"));
    let partial = tempfile::tempdir().unwrap();
    repository.git(["config", "uploadpack.allowFilter", "true"]);
    let clone = ["clone", "--quiet", "--filter=blob:none", &url, "."];
    git(partial.path(), clone);
    assert!(error(partial.path()).contains("--refetch"));

    repository.write("big", &"x".repeat(5000));
    repository.write("small", "x");
    let source = Source::find(repository.path()).unwrap();
    source.check_uncommitted(10_000).unwrap();
    let refused = source.check_uncommitted(4000).unwrap_err().to_string();
    assert!(refused.contains("big (0.0 MiB), small"), "{refused}");
}

/// Returns 32 random letters.
fn uuid() -> String {
    let mut bytes = [0; 16];
    let mut random = fs::File::open("/dev/urandom").unwrap();
    random.read_exact(&mut bytes).unwrap();
    format!("{:032x}", u128::from_le_bytes(bytes))
}

#[test]
fn included_files_come_along_as_they_are_and_in_no_commit() {
    let repository = Repository::new();
    repository.write(".gitignore", "*.env\nkeys/\nlink*\nignored\n");
    repository.write(".gitattributes", "*.env text eol=crlf filter=x\n");
    repository.write(".worktreeinclude", "*.env\nkeys/\nlink*\na.txt\nloose\n");
    repository.commit("include");
    repository.git(["config", "filter.x.clean", "sed s/1/2/"]);
    repository.write("a.env", "A=1\n\r\n");
    repository.write("sub/\"b\n\\\".env", "B=1\n");
    repository.write(OsStr::from_bytes(b"\xff.env"), "odd\n");
    repository.write("keys/run", "#!/bin/sh\n");
    let run = repository.path().join("keys/run");
    fs::set_permissions(run, fs::Permissions::from_mode(0o755)).unwrap();
    repository.write("ignored", "no\n");
    repository.write("loose", "not ignored\n");
    symlink("a.txt", repository.path().join("link")).unwrap();
    symlink("/etc/passwd", repository.path().join("link-out")).unwrap();
    let before = repository.files();

    let way = Way::new();
    let source = Source::find(repository.path()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let mut taken = source.take(folder.path()).unwrap();
    assert!(repository.files() == before, "something was changed");
    let included = taken.included.as_ref().unwrap();
    assert_eq!(included.files, 6);
    let limit = source.check_uncommitted(20).unwrap_err().to_string();
    assert!(limit.contains("a.env"), "{limit}");
    // Again, it is the same commit.
    let again = tempfile::tempdir().unwrap();
    let mut same = source.take(again.path()).unwrap();
    for taken in [&mut taken, &mut same] {
        taken.pack(&[]).unwrap();
    }
    let included = taken.included.as_ref().unwrap();
    let same = same.included.unwrap();
    assert_eq!(same.commit, included.commit);
    let bytes = |bundle: &Path| fs::read(bundle).unwrap();
    assert!(
        bytes(&same.bundle) == bytes(&included.bundle),
        "another bundle"
    );

    let packed = way.pack(&source).unwrap();
    let mirror = way.receive(&source, "run1", &packed).unwrap();
    let root = tempfile::tempdir().unwrap();
    let mut wanted = NewWorktree::of(mirror.path());
    wanted.from = Some(packed.base.clone());
    wanted.origin = Origin::Uploaded;
    let mut made = Worktree::create(root.path(), "run1", &wanted).unwrap();
    let wrong = made.include(&included.bundle, &"0".repeat(40));
    assert!(wrong.unwrap_err().to_string().contains("does not contain"));
    made.include(&included.bundle, &included.commit).unwrap();
    let warnings = made.take_warnings().join("\n");
    assert!(
        warnings.contains("link-out (a link that leads out of the repository)"),
        "{warnings}"
    );
    let there = made.directory().to_owned();
    for (name, mode) in [
        ("a.env", 0o600),
        ("sub/\"b\n\\\".env", 0o600),
        ("keys/run", 0o700),
    ] {
        assert_eq!(
            fs::read(there.join(name)).unwrap(),
            fs::read(repository.path().join(name)).unwrap(),
            "{name}"
        );
        let about = fs::metadata(there.join(name)).unwrap();
        assert_eq!(about.permissions().mode() & 0o777, mode, "{name}");
    }
    assert!(there.join(OsStr::from_bytes(b"\xff.env")).exists());
    assert_eq!(
        fs::read_link(there.join("link")).unwrap(),
        Path::new("a.txt")
    );
    assert!(
        !there.join("ignored").exists() && fs::symlink_metadata(there.join("link-out")).is_err()
    );
    assert_eq!(git(&there, ["status", "--porcelain"]), "");
    // Neither in the mirror.
    let missing = Command::new("git")
        .args(["cat-file", "-e", &included.commit])
        .current_dir(mirror.path())
        .output();
    assert!(!missing.unwrap().status.success());
    let folder: Vec<_> = fs::read_dir(root.path().join("run1")).unwrap().collect();
    assert_eq!(folder.len(), 3, "{folder:?}");
}
