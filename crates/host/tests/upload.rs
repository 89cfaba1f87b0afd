//! A repository that is submitted for a run.

use std::fs::{self, File};
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use teamster_api::{
    BUNDLE, DiffQuery, FileManifest, INCLUDED, ProblemCode, RunHandle, RunService, RunSpec,
    Workspace, Worktree,
};
use teamster_core::RunStatus;
use teamster_host::{Host, LocalRuns, state};
use teamster_providers::Providers;
use teamster_testkit::proc::wait_until;
use teamster_workspace::{Progress, submit};

fn git(directory: &Path, args: &[&str]) -> String {
    let output = Command::new("git")
        .arg("-C")
        .arg(directory)
        .args(["-c", "user.name=A", "-c", "user.email=a@b"])
        .args(args)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

#[test]
fn a_run_works_in_the_repository_that_was_submitted_for_it() {
    in_own_process!("#!/bin/sh\n");
    let folder = tempfile::tempdir().unwrap();
    let repository = folder.path().join("a repository");
    let sub = repository.join("sub");
    fs::create_dir_all(&sub).unwrap();
    git(&repository, &["init", "--quiet", "--initial-branch=main"]);
    fs::write(sub.join("a.txt"), "one\n").unwrap();
    fs::write(repository.join(".gitignore"), ".env\n").unwrap();
    fs::write(repository.join(".worktreeinclude"), ".env\n").unwrap();
    git(&repository, &["add", "."]);
    git(&repository, &["commit", "--quiet", "-m", "first"]);
    fs::write(sub.join("a.txt"), "uncommitted\n").unwrap();
    fs::write(sub.join(".env"), "A=1\n").unwrap();

    let host = Host::new(Providers::builtin());
    let service: Arc<dyn RunService> = Arc::new(LocalRuns::new(&host).unwrap());
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let steps = Mutex::new(Vec::new());
        let note = |step| steps.lock().unwrap().push(step);
        let submitted = submit(&service, "run1", &sub, &note).await.unwrap();
        assert_eq!((submitted.uncommitted, submitted.included), (1, 1));
        assert!(submitted.sent > 0);
        let steps = steps.into_inner().unwrap();
        assert_eq!(steps.first(), Some(&Progress::Packing));
        let is_end = |step: &Progress| matches!(step, Progress::Sending { sent, total, .. } if sent == total);
        assert!(is_end(steps.last().unwrap()), "{steps:?}");

        let script = "cmd:sh -c 'pwd; cat a.txt .env; git log --format=%s; git status --porcelain; echo two > b.txt'";
        let mut spec = RunSpec::new(script, "x");
        spec.workspace = Some(submitted.workspace.clone());
        let run = RunHandle::start(service.clone(), "run1", spec.clone()).await.unwrap();
        let result = run.result().await.unwrap();
        assert_eq!(result.status, RunStatus::Completed, "{result:?}");
        let text = result.text;
        let lines: Vec<_> = text.lines().collect();
        assert!(lines[0].ends_with("/worktrees/run1/a repository/sub"), "{text}");
        assert_eq!(lines[1..], ["uncommitted", "A=1", "Uncommitted changes", "first"], "{text}");

        // Nothing has to be sent again.
        let again = submit(&service, "run2", &sub, &|_| ()).await.unwrap();
        let Workspace::Upload { head, .. } = &again.workspace else {
            panic!("{again:?}");
        };
        assert_eq!(head.as_deref(), Some(&*git(&repository, &["rev-parse", "HEAD"])));
        // Of what cannot be used, nothing stays.
        let mirror = state::file("teamster/repositories").unwrap();
        let mirror = mirror.join(format!("{}.git", git(&repository, &["rev-list", "--max-parents=0", "HEAD"])));
        let kept = || git(&mirror, &["for-each-ref", "refs/teamster-mirror/runs/"]);
        let before = kept();
        let damaged = submit(&service, "run7", &sub, &|_| ()).await.unwrap();
        service.offer("run7", FileManifest::of(INCLUDED, b"x")).await.unwrap();
        service.write_part("run7", INCLUDED, 0, b"x".to_vec()).await.unwrap();
        spec.workspace = Some(damaged.workspace);
        service.start("run7", spec.clone().into()).await.unwrap_err();
        assert_eq!(kept(), before);
        git(&repository, &["checkout", "--quiet", "--", "."]);
        let clean = submit(&service, "run3", &sub, &|_| ()).await.unwrap();
        assert_eq!(clean.uncommitted, 0);
        // They are no part of what the machine keeps.
        fs::remove_file(sub.join(".env")).unwrap();
        let clean = submit(&service, "run5", &sub, &|_| ()).await.unwrap();
        assert_eq!((clean.sent, clean.included), (0, 0));
        // Not without them.
        let unsent = submitted.workspace.clone();
        spec.workspace = Some(unsent);
        let refused = service.start("run6", spec.clone().into()).await.unwrap_err();
        assert!(refused.message.contains("\"included\" of the run was not uploaded"), "{refused}");

        // Without its upload, a run is refused, and nothing is left of it.
        let Workspace::Upload { repository, subdirectory, name, .. } = submitted.workspace else {
            unreachable!();
        };
        spec.workspace = Some(Workspace::Upload {
            repository,
            commit: "0".repeat(40),
            head: None,
            included: None,
            name,
            subdirectory,
            submitted_from: None,
            stays: false,
        });
        let refused = service.start("run4", spec.into()).await.unwrap_err();
        assert_eq!(refused.code, Some(ProblemCode::InvalidParams));
        assert!(refused.message.contains("submit the run again"), "{refused}");
        let missing = service.show("run4").await.unwrap_err();
        assert_eq!(missing.code, Some(ProblemCode::RunNotFound));
    });
}

/// Makes something as old as this.
fn age(path: &Path, hours: u64) {
    let changed = SystemTime::now() - Duration::from_hours(hours);
    File::open(path).unwrap().set_modified(changed).unwrap();
}

#[test]
fn changes_outlive_log_limits_and_any_age_in_a_repository() {
    const LIMIT: Duration = Duration::from_mins(1);
    in_own_process!("#!/bin/sh\n", &[("TEAMSTER_LOGS_SIZE", "1K")]);
    let folder = tempfile::tempdir().unwrap();
    let repository = folder.path();
    git(repository, &["init", "--quiet", "--initial-branch=main"]);
    fs::write(repository.join("a.txt"), "one\n").unwrap();
    git(repository, &["add", "."]);
    git(repository, &["commit", "--quiet", "-m", "first"]);
    let host = Host::new(Providers::builtin());
    let service: Arc<dyn RunService> = Arc::new(LocalRuns::new(&host).unwrap());
    // Its end waits for what removes logs.
    let in_runtime = |work: &dyn Fn(&tokio::runtime::Runtime)| {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        work(&runtime);
    };
    let run = async |id: &str, spec: RunSpec| {
        let run = RunHandle::start(service.clone(), id, spec).await.unwrap();
        let result = run.result().await.unwrap();
        assert_eq!(result.status, RunStatus::Completed, "{result:?}");
    };
    let ended = |runtime: &tokio::runtime::Runtime, id: &str, gone: &Path| {
        runtime.block_on(run(id, RunSpec::new("cmd:true", "x")));
        assert!(wait_until(LIMIT, || !gone.exists()), "{}", gone.display());
    };
    let changed = |runtime: &tokio::runtime::Runtime, id: &str| {
        let diff = runtime.block_on(service.diff(id, DiffQuery::default()));
        diff.map(|diff| diff.files_changed)
            .map_err(|error| error.code)
    };
    let logs = state::file("teamster/runs").unwrap();
    let results = state::file("teamster/worktrees.results").unwrap();
    in_runtime(&|runtime| {
        runtime.block_on(async {
            let writes = || RunSpec::new("cmd:sh -c 'echo two > b.txt'", "x");
            let submitted = submit(&service, "sent", repository, &|_| ()).await.unwrap();
            let mut sent = writes();
            sent.workspace = Some(submitted.workspace);
            run("sent", sent).await;
            let mut own = writes();
            own.working_directory = Some(repository.to_owned());
            own.worktree = Some(Worktree::Switch(true));
            run("own", own).await;
        });
        for id in ["sent", "own"] {
            age(&logs.join(id).join("events.ndjson"), 2);
        }
        ended(runtime, "next", &logs.join("sent"));
    });
    in_runtime(&|runtime| {
        assert!(!logs.join("own").exists());
        assert_eq!(changed(runtime, "sent"), Ok(1));
        assert_eq!(changed(runtime, "own"), Ok(1));
        for id in ["sent", "own"] {
            age(&results.join(id), 100 * 24);
        }
        ended(runtime, "last", &results.join("sent"));
    });
    in_runtime(&|runtime| {
        assert_eq!(changed(runtime, "own"), Ok(1));
        assert_eq!(
            changed(runtime, "sent"),
            Err(Some(ProblemCode::RunNotFound))
        );
    });
}

#[test]
fn upload_stays_while_the_start_of_its_run_is_uncertain() {
    in_own_process!("#!/bin/sh\n");
    let service = LocalRuns::new(&Host::new(Providers::builtin())).unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        // Also this starts nothing.
        let spec = RunSpec::new("cmd:true", "x");
        let none = service.started("r", spec.into()).await.unwrap_err();
        assert_eq!(none.code, Some(ProblemCode::RunNotFound));
        let offer = || service.offer("r", FileManifest::of(BUNDLE, b"x"));
        assert_eq!(offer().await.unwrap(), [0]);
        let part = || service.write_part("r", BUNDLE, 0, b"x".to_vec());
        part().await.unwrap();
        let run = state::file("teamster/runs/r").unwrap();
        fs::create_dir_all(&run).unwrap();
        // As of a later version.
        fs::write(run.join("run.json"), "{}").unwrap();
        for refused in [service.withdraw("r").await, offer().await.map(drop)] {
            assert_ne!(refused.unwrap_err().code, Some(ProblemCode::RunExists));
        }
        fs::remove_dir_all(run).unwrap();
        // It is complete.
        assert_eq!(offer().await.unwrap(), Vec::<u32>::new());
        service.withdraw("r").await.unwrap();
        assert_eq!(offer().await.unwrap(), [0]);
    });
}
