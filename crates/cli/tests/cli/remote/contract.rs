//! Runs of a server keep the contract of all services of runs: over HTTP, each with its runner.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use teamster_client::Client;
use teamster_testkit::run_service::{CLAUDE, ScriptedClaude, contract};
use tokio::runtime::Runtime;

use super::Machine;
use crate::cli::{run, teamster};

#[test]
fn runs_of_a_server_keep_the_contract() {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("claude");
    fs::write(&program, CLAUDE).unwrap();
    fs::set_permissions(&program, Permissions::from_mode(0o755)).unwrap();
    let machine = Machine::new(folder.path(), &program);
    let url = format!("http://{}", machine.served.address);
    let client = Client::new(&url, Some(&machine.served.token)).unwrap();
    let repository = folder.path().join("repository");
    fs::create_dir(&repository).unwrap();
    git(&repository, &["init", "--quiet"]);
    let commit = ["commit", "--quiet", "--allow-empty", "--message", "x"];
    git(&repository, &commit);
    let service = ScriptedClaude::new(Arc::new(client)).with_repository(&repository);
    Runtime::new().unwrap().block_on(contract(&service));
    // From another machine, in a clone.
    let clone = folder.path().join("clone");
    git(
        &repository,
        &["clone", "--quiet", ".", &clone.display().to_string()],
    );
    let runs = |args: &[&str]| {
        let mut command = teamster([&["--remote", &url, "runs"], args].concat());
        command.env("TEAMSTER_REMOTE_TOKEN", &machine.served.token);
        let ended = run(command
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .current_dir(&clone));
        assert_eq!(ended.code, Some(0), "{args:?}: {}", ended.stderr);
        ended
    };
    let patch = runs(&["diff", "contract-writes"]).stdout;
    assert!(patch.contains("\n+new\n"), "{patch}");
    runs(&["apply", "contract-writes"]);
    assert_eq!(fs::read_to_string(clone.join("new.txt")).unwrap(), "new\n");
    runs(&["fetch", "contract-writes", "fix"]);
    let wip = [
        "rev-parse",
        "--verify",
        "--quiet",
        "refs/teamster/contract-writes/wip",
    ];
    git(&clone, &wip);
    let output = folder.path().join("copies");
    runs(&[
        "files",
        "contract-writes",
        "--output",
        &output.display().to_string(),
    ]);
    assert_eq!(fs::read_to_string(output.join("new.txt")).unwrap(), "new\n");
}

fn git(directory: &Path, args: &[&str]) {
    let status = Command::new("git")
        .args(["-c", "user.name=A", "-c", "user.email=a@example.org"])
        .args(args)
        .current_dir(directory)
        .status();
    assert!(status.unwrap().success(), "{args:?}");
}
