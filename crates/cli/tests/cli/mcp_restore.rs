//! `teamster mcp restore`, and who else undoes what a killed run has left.

use std::fs;
use std::process::Command;

use nix::sys::signal::Signal;
use serde_json::Value;
use snapbox::{assert_data_eq, str};
use teamster_testkit::proc::{wait_pid_file, wait_until};

use crate::cli::doctor::end_guard_of;
use crate::cli::mcp_run::OpenCode;
use crate::cli::{LIMIT, Running, run, teamster};

const BEFORE: &str = "{ \"mcp\": {} } // mine\n";

/// A run that has changed `opencode.json` and is alive.
fn running() -> (OpenCode, Running) {
    let opencode = OpenCode::new("exec sleep 100");
    fs::write(opencode.path("work/opencode.json"), BEFORE).unwrap();
    let run = Running::start(
        &mut opencode.run(["--mcp=tracker=tracker-mcp", "--mcp-via=project-config"]),
    );
    wait_pid_file(&opencode.path("pid"), LIMIT).unwrap();
    (opencode, run)
}

/// The same, killed before anything was undone.
fn killed() -> OpenCode {
    let (opencode, mut run) = running();
    end_guard_of(run.child.id());
    run.signal(Signal::SIGKILL);
    run.wait();
    let pid = wait_pid_file(&opencode.path("pid"), LIMIT).unwrap();
    assert!(teamster_testkit::proc::wait_gone(pid, LIMIT));
    opencode
}

fn command(opencode: &OpenCode, args: &[&str]) -> Command {
    let mut command = teamster(args.iter().copied());
    command
        .current_dir(opencode.path("work"))
        .env("TMPDIR", opencode.dir.path())
        .env("HOME", opencode.dir.path());
    command
}

fn text(opencode: &OpenCode) -> String {
    fs::read_to_string(opencode.path("work/opencode.json")).unwrap()
}

#[test]
fn where_nothing_is_left_it_says_so() {
    let opencode = OpenCode::new("");
    let ended = run(&mut command(&opencode, &["mcp", "restore"])).quiet();
    assert_eq!(
        ended.stdout,
        "Nothing to undo: no file has servers of a killed run.\n"
    );
    let ended = run(&mut command(
        &opencode,
        &["mcp", "restore", "opencode.json"],
    ))
    .ok();
    assert_eq!(ended.stdout, "opencode.json: nothing to undo\n");
}

#[test]
fn leftover_of_a_killed_run_is_reported_and_undone() {
    let opencode = killed();
    assert!(text(&opencode).contains("tracker"));
    let file = opencode.path("work/opencode.json");

    let report = run(&mut command(&opencode, &["doctor", "--json"])).json();
    let file = file.canonicalize().unwrap();
    assert_eq!(report["changedFiles"][0]["file"], file.to_str().unwrap());
    assert_eq!(report["changedFiles"][0]["servers"][0], "tracker");
    let doctor = run(&mut command(&opencode, &["doctor"]));
    assert!(
        doctor
            .stdout
            .ends_with("Restore them with `teamster mcp restore`.\n"),
        "{}",
        doctor.stdout
    );

    let dry = run(&mut command(&opencode, &["mcp", "restore", "--dry-run"]));
    assert_eq!((dry.code, &*dry.stderr), (Some(5), ""));
    let here = file.parent().unwrap().to_str().unwrap();
    assert_data_eq!(
        dry.stdout.replace(here, "DIR"),
        str![[r#"
DIR/opencode.json: left by a killed run: tracker

"#]]
    );
    assert!(text(&opencode).contains("tracker"));

    let ended = run(&mut command(&opencode, &["mcp", "restore"])).quiet();
    assert_data_eq!(
        ended.stdout.replace(here, "DIR"),
        str![[r#"
DIR/opencode.json: restored, as it was before the run

"#]]
    );
    assert_eq!(text(&opencode), BEFORE);
    run(&mut command(&opencode, &["mcp", "restore", "--dry-run"])).ok();
}

#[test]
fn the_guard_restores_though_it_finds_no_process() {
    // Nothing that the guard could find.
    let opencode = OpenCode::new("exec env -i /bin/sleep 100");
    let temporary = opencode.path("temporary");
    fs::create_dir(&temporary).unwrap();
    fs::write(opencode.path("work/opencode.json"), BEFORE).unwrap();
    // Not in the directory in which teamster is.
    let work = opencode.path("work");
    let args = ["--mcp=a=TOKEN=sk-1 x", "--mcp-via=project-config", "--cwd"];
    let mut killed = opencode.run(args.into_iter().chain(work.to_str()));
    killed.current_dir(opencode.dir.path());
    let mut killed = Running::start(killed.env("TMPDIR", &temporary));
    wait_pid_file(&opencode.path("pid"), LIMIT).unwrap();
    let private_files = || fs::read_dir(&temporary).unwrap().count();
    assert_ne!((text(&opencode).as_str(), private_files()), (BEFORE, 0));
    killed.signal(Signal::SIGKILL);
    killed.wait();
    assert!(wait_until(LIMIT, || text(&opencode) == BEFORE && private_files() == 0));
}

#[test]
fn a_linked_file_has_the_name_that_the_user_knows_everywhere() {
    let opencode = OpenCode::new("exec sleep 100");
    let real = opencode.path("dotfiles.json");
    fs::write(&real, BEFORE).unwrap();
    let link = opencode.path("work/opencode.json");
    std::os::unix::fs::symlink(&real, &link).unwrap();
    let mut run = Running::start(&mut opencode.run(["--mcp=a=x", "--mcp-via=project-config"]));
    let pid = wait_pid_file(&opencode.path("pid"), LIMIT).unwrap();
    end_guard_of(run.child.id());
    run.signal(Signal::SIGKILL);
    run.wait();
    assert!(teamster_testkit::proc::wait_gone(pid, LIMIT));
    assert_ne!(fs::read_to_string(&real).unwrap(), BEFORE);

    // The folder of the test may be behind a link; the file's name stays.
    let known = link.parent().unwrap().canonicalize().unwrap();
    let known = known.join("opencode.json");
    let said = |args: &[&str]| crate::cli::run(&mut command(&opencode, args)).stdout;
    let report: Value = serde_json::from_str(&said(&["doctor", "--json"])).unwrap();
    assert_eq!(report["changedFiles"][0]["file"], known.to_str().unwrap());
    assert_eq!(report["changedFiles"].as_array().unwrap().len(), 1);
    let known = known.display();
    assert!(said(&["doctor"]).contains(&format!("    {known}\n")));
    assert_eq!(
        said(&["mcp", "restore", "--dry-run"]),
        format!("{known}: left by a killed run: a\n")
    );
    assert_eq!(
        said(&["mcp", "restore"]),
        format!("{known}: restored, as it was before the run\n")
    );
    assert!(link.is_symlink());
    assert_eq!(fs::read_to_string(&real).unwrap(), BEFORE);
}
