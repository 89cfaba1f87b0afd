//! Uploads and mirrors with settings of the user's, and beside other processes.

use std::cell::RefCell;
use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::Command;
use std::sync::mpsc;
use std::time::Duration;

use teamster_api::DiffQuery;
use teamster_workspace::{
    Kept, Mirror, NewWorktree, Origin, SILENCE, Source, Wait, Worktree, set_git_silence,
};

use super::{Way, at_once};
use crate::it::repository::Repository;

/// Runs the test with this name again, in a process that has these settings alone, and returns `None`. In that process,
/// returns the path of a file for notes.
fn alone(name: &str, settings: &str) -> Option<PathBuf> {
    const INNER: &str = "TEAMSTER_TEST_INNER";
    if let Some(note) = std::env::var_os(INNER) {
        return Some(note.into());
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("settings");
    fs::write(&file, settings).unwrap();
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", &format!("it::upload::settings::{name}")])
        .env(INNER, folder.path().join("note"))
        .env("GIT_CONFIG_GLOBAL", file)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let ran = String::from_utf8_lossy(&output.stdout).contains("1 passed");
    assert!(ran, "{output:?}");
    None
}

#[test]
fn uploads_need_no_repository_that_git_finds_by_itself() {
    let settings = "[safe]\n\tbareRepository = explicit\n";
    if alone(
        "uploads_need_no_repository_that_git_finds_by_itself",
        settings,
    )
    .is_none()
    {
        return;
    }
    let repository = Repository::new();
    repository.write("a.txt", "two\n");
    let way = Way::new();
    let source = Source::find(repository.path()).unwrap();
    let packed = way.pack(&source).unwrap();
    let mirror = way.receive(&source, "run1", &packed).unwrap();
    let root = tempfile::tempdir().unwrap();
    let root = root.path().join("worktrees");
    let mut wanted = NewWorktree::of(mirror.path());
    wanted.from = Some(packed.base.clone());
    wanted.origin = Origin::Uploaded;
    let mut made = Worktree::create(&root, "run1", &wanted).unwrap();
    drop(mirror);
    made.start().unwrap();
    fs::write(made.directory().join("a.txt"), "three\n").unwrap();
    let result = made.finish().result;
    assert_eq!((result.error, result.files_changed), (None, Some(1)));
    let folder = root.join("run1");
    let mut kept = Kept::find(&root, "run1").unwrap().unwrap();
    assert!(kept.write_bundle(&folder.join("bundle")).unwrap());
    fs::remove_dir_all(folder).unwrap();
    // Without its folder, from the bare repository.
    assert_eq!(kept.diff(&DiffQuery::default()).unwrap().files_changed, 1);
    let error = kept.push("nowhere", None, SILENCE).unwrap_err().to_string();
    assert!(error.contains("nowhere"), "{error}");
    kept.forget(None).unwrap();

    let bare = way.mirrors().join("other.git");
    let to = bare.to_str().unwrap();
    let clone = ["clone", "--quiet", "--bare", ".", to];
    Command::new("git")
        .args(clone)
        .current_dir(repository.path())
        .output()
        .unwrap();
    let error = Worktree::create(&root, "run2", &NewWorktree::of(&bare)).unwrap_err();
    assert!(error.to_string().contains("safe.bareRepository"), "{error}");
}

#[test]
fn a_repository_does_not_choose_where_its_large_files_come_from() {
    // A stand-in of git-lfs, which shows what that would ask.
    let settings = "[alias]\n\tlfs = !true\n[filter \"lfs\"]\n\trequired = true\n\tclean = cat\n\tsmudge = \"git config \
        --get-regexp '^lfs[.].*url' >> $TEAMSTER_TEST_INNER; cat\"\n";
    let name = "a_repository_does_not_choose_where_its_large_files_come_from";
    let Some(note) = alone(name, settings) else {
        return;
    };
    let repository = Repository::new();
    repository.write(".gitattributes", "*.bin filter=lfs\n");
    repository.write(".lfsconfig", "[lfs]\n\turl = https://evil.example/\n");
    repository.write("a.bin", "x\n");
    let commit = repository.commit("large");
    let root = tempfile::tempdir().unwrap();
    let url = format!("file://{}", repository.path().display());
    let mirrors = root.path().join("mirrors");
    let mirror = Mirror::of_url(&mirrors, &url, &commit, "r", at_once()).unwrap();
    let mut wanted = NewWorktree::of(mirror.path());
    wanted.from = Some(commit);
    wanted.origin = Origin::Fetched;
    let made = Worktree::create(&root.path().join("worktrees"), "r", &wanted).unwrap();
    assert!(made.directory().join("a.bin").exists());
    let asked = fs::read_to_string(note).unwrap();
    assert_eq!(asked, format!("lfs.url {url}\nlfs.pushurl {url}\n"));
}

#[test]
fn mirror_of_another_process_is_awaited_with_notice_and_limit() {
    let way = Way::new();
    let name = "0".repeat(40);
    // As a process does that is stopped: it does not note that it works.
    let mut held = fs::File::create(way.mirrors().join(format!("{name}.lock"))).unwrap();
    held.lock().unwrap();
    write!(held, "{}", std::process::id()).unwrap();
    let notices = RefCell::new(Vec::new());
    let notice = |text| notices.borrow_mut().push(text);
    let wait = Wait::new(Duration::from_millis(200), &notice);
    let error = Mirror::open(way.mirrors(), &name, wait).unwrap_err();
    let process = format!("process {}", std::process::id());
    assert_eq!(
        error.to_string(),
        format!(
            "{process} works on the mirror of the repository, and has made no progress for 0.2 s: wait until it has ended, \
             or end it"
        )
    );
    drop(held);
    let held = Mirror::open(way.mirrors(), &name, wait).unwrap();
    // One that works for longer than the silence is waited for.
    let silence = Duration::from_secs(3);
    let (opened, is_opened) = mpsc::channel();
    std::thread::scope(|scope| {
        let mirrors = way.mirrors();
        scope.spawn(|| {
            let wait = Wait::new(silence, &|_| ());
            opened
                .send(Mirror::open(mirrors, &name, wait).map(drop))
                .unwrap();
        });
        let early = is_opened.recv_timeout(2 * silence);
        assert!(early.is_err(), "{early:?}");
        drop(held);
        is_opened.recv().unwrap().unwrap();
    });
}

#[test]
fn a_hanging_filter_takes_no_files_out_of_a_snapshot() {
    let repository = Repository::new();
    repository.write(".gitattributes", "*.slow filter=x\n");
    repository.commit("attributes");
    repository.git(["config", "filter.x.clean", "sleep 1000"]);
    repository.write("staged", "1\n");
    repository.git(["add", "staged"]);
    repository.write("b.slow", "1\n");
    repository.write("c", "1\n");
    set_git_silence(Duration::from_secs(2));
    let folder = tempfile::tempdir().unwrap();
    let source = Source::find(repository.path()).unwrap();
    let error = source.take(folder.path()).unwrap_err();
    let error = format!("{error:#}");
    assert!(error.contains("git did nothing for 2 s"), "{error}");
}
