//! A repository that is submitted for a run.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex};

use teamster_api::{ProblemCode, RunHandle, RunService, RunSpec, Workspace};
use teamster_core::RunStatus;
use teamster_host::{Host, LocalRuns};
use teamster_providers::Providers;
use teamster_workspace::{Progress, submit};

use super::is_own_process_of;

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
    const NAME: &str = "upload::a_run_works_in_the_repository_that_was_submitted_for_it";
    if !is_own_process_of(NAME, "#!/bin/sh\n") {
        return;
    }
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
        });
        let refused = service.start("run4", spec.into()).await.unwrap_err();
        assert_eq!(refused.code, Some(ProblemCode::InvalidParams));
        assert!(refused.message.contains("submit the run again"), "{refused}");
        let missing = service.show("run4").await.unwrap_err();
        assert_eq!(missing.code, Some(ProblemCode::RunNotFound));
    });
}
