//! Removal of a run's private files, even if the host is killed.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use teamster_core::RunStatus;
use teamster_core::provider::{PathLocation, PrivateFile};
use teamster_process::sweep_private_files;
use teamster_testkit::events::assert_types;
use teamster_testkit::fake_agent::{Report, Script};
use teamster_testkit::proc;

use crate::engine::{END, LIMIT, Run, Scratch, agent, helper, next, shell, wait_for};

/// Adds private files in `$SECRET_FILE` and `$OTHER_FILE`.
pub(crate) fn with_secret(run: Run) -> Run {
    run.launch(|launch| {
        for name in ["SECRET_FILE", "OTHER_FILE"] {
            launch.private_files.push(PrivateFile {
                location: PathLocation::Variable(name.into()),
                content: b"secret".to_vec(),
            });
        }
    })
}

/// Returns the folder of this report's `$SECRET_FILE`.
fn folder(report: &Report) -> PathBuf {
    let file = Path::new(&report.env["SECRET_FILE"]);
    assert_eq!(fs::read(file).unwrap(), b"secret");
    file.parent().unwrap().to_owned()
}

#[tokio::test]
async fn private_files_of_a_run_are_in_a_folder_of_this_user_only() {
    let scratch = Scratch::new();
    let script = Script::new()
        .report(scratch.path("report"))
        .line(r#"{"t":"x"}"#)
        .wait_for_file(scratch.path("go"))
        .line(END);
    let mut stream = with_secret(agent(&script)).start();
    next(&mut stream).await;
    let report = Report::read(scratch.path("report")).unwrap();
    let folder = folder(&report);
    assert_eq!(
        folder,
        Path::new(&report.env["OTHER_FILE"]).parent().unwrap()
    );
    assert_eq!(folder.parent().unwrap(), std::env::temp_dir());
    let mode = folder.metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o7777, 0o700);
    // Neither another run nor a sweep removes it from a live run.
    let other = with_secret(agent(&Script::new().line(END))).finish().await;
    assert_eq!(other.result.status, RunStatus::Completed);
    assert!(!sweep_private_files().contains(&folder));
    assert!(folder.exists());
    fs::write(scratch.path("go"), "").unwrap();
    assert_eq!(stream.result().await.status, RunStatus::Completed);
    assert!(!folder.exists());
}

#[tokio::test]
async fn the_cli_does_not_inherit_the_lifetime_lock() {
    let scratch = Scratch::new();
    let out = scratch.path("out");
    let script = format!("ls -l /proc/self/fd/ > {}; echo '{END}'", out.display());
    let story = with_secret(shell(&script)).finish().await;
    assert_eq!(story.result.status, RunStatus::Completed);
    let open = fs::read_to_string(out).unwrap();
    assert!(open.contains("pipe:"), "{open}");
    assert!(!open.contains("teamster-run-"), "{open}");
}

#[tokio::test]
async fn the_files_of_a_run_that_cannot_start_are_gone() {
    let scratch = Scratch::new();
    let program = scratch.path("cli");
    proc::write_program(&program, "#!/nowhere/node\n").unwrap();
    let mark = format!("secret of {}", scratch.path("").display());
    let run = shell("")
        .config(|config| config.program = Some(program))
        .launch(|launch| {
            launch.private_files.push(PrivateFile {
                location: PathLocation::Variable("SECRET_FILE".into()),
                content: mark.clone().into_bytes(),
            });
        });
    let story = run.finish().await;
    assert_types(&story.events, "error done");
    assert!(!is_anywhere(&mark));
}

/// Returns whether a private file of any run has this content.
fn is_anywhere(content: &str) -> bool {
    let folders = fs::read_dir(std::env::temp_dir()).unwrap().flatten();
    folders
        .filter(|folder| {
            folder
                .file_name()
                .to_string_lossy()
                .starts_with("teamster-run-")
        })
        .filter_map(|folder| fs::read_dir(folder.path()).ok())
        .flat_map(Iterator::flatten)
        .any(|file| fs::read(file.path()).is_ok_and(|found| found == content.as_bytes()))
}

/// Hosts an engine: an agent with private files, until this process is killed.
pub(crate) fn be_host(scratch: &Path) {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let script = Script::new()
        .report(scratch.join("report"))
        .line("{}")
        .forever();
    runtime.block_on(async {
        let mut stream = with_secret(agent(&script))
            .config(|config| config.die_with_parent = true)
            .start();
        next(&mut stream).await;
        fs::write(scratch.join("ready"), "").unwrap();
        stream.result().await;
    });
}

#[tokio::test]
async fn run_has_its_own_temporary_folder_unless_one_is_named() {
    let scratch = Scratch::new();
    let script = Script::new()
        .report(scratch.path("report"))
        .line(r#"{"t":"x"}"#)
        .wait_for_file(scratch.path("go"))
        .line(END);
    let mut stream = agent(&script)
        .launch(|launch| launch.private_tmp = true)
        .start();
    next(&mut stream).await;
    wait_for(&scratch.path("report")).await;
    let report = Report::read(scratch.path("report")).unwrap();
    let folder = PathBuf::from(&report.env["TMPDIR"]);
    assert_ne!(folder, std::env::temp_dir());
    let mode = fs::metadata(&folder).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
    fs::write(folder.join("left"), "x").unwrap();
    fs::write(scratch.path("go"), "").unwrap();
    assert_eq!(stream.result().await.status, RunStatus::Completed);
    assert!(!folder.exists());

    let script = Script::new().report(scratch.path("second")).line(END);
    let run = agent(&script).launch(|launch| launch.private_tmp = true);
    let callers = scratch.path("").to_str().unwrap().to_owned();
    run.params(|params| drop(params.env.insert("TMPDIR".into(), callers.clone())))
        .finish()
        .await;
    assert_eq!(
        Report::read(scratch.path("second")).unwrap().env["TMPDIR"],
        callers
    );
}

/// Plays one short run.
pub(crate) fn be_short() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let run = with_secret(agent(&Script::new().line(END)));
    let story = runtime.block_on(run.finish());
    assert_eq!(story.result.status, RunStatus::Completed);
}

/// Returns a process in this role with a separate folder for temporary files.
pub(crate) fn role(name: &str, scratch: &Scratch) -> Command {
    let mut command = helper::role(name, &scratch.path(""));
    command.env("TMPDIR", scratch.path("tmp"));
    command
}

async fn a_killed_run_is_cleaned_up_by(name: &str) {
    let scratch = Scratch::new();
    fs::create_dir(scratch.path("tmp")).unwrap();
    let host = helper::host(&mut role("host with private files", &scratch));
    wait_for(&scratch.path("ready")).await;
    let report = Report::read(scratch.path("report")).unwrap();
    let folder = folder(&report);
    assert_eq!(folder.parent().unwrap(), scratch.path("tmp"));
    assert!(role(name, &scratch).status().unwrap().success());
    assert!(folder.exists(), "its owner lives");
    drop(host);
    assert!(proc::wait_gone(report.pid, LIMIT));
    assert!(folder.exists());
    assert!(role(name, &scratch).status().unwrap().success());
    assert_eq!(fs::read_dir(scratch.path("tmp")).unwrap().count(), 0);
}

#[tokio::test]
async fn files_of_a_killed_run_are_removed_by_the_next() {
    a_killed_run_is_cleaned_up_by("run with private files").await;
}

#[tokio::test]
async fn files_of_a_killed_run_are_removed_by_a_sweep() {
    a_killed_run_is_cleaned_up_by("sweep").await;
}
