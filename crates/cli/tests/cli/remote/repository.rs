//! `--repo DIR`: a repository of this machine for a run on another one.

use std::fs;
use std::path::Path;
use std::process::Stdio;

use crate::cli::detached::worktree::Repository;
use crate::cli::serve::client::Served;
use crate::cli::{Ended, run, teamster};

/// A repository here, and a server whose machine has nothing of it.
struct Two {
    repository: Repository,
    served: Served,
    there: tempfile::TempDir,
}

impl Two {
    fn new(flags: &[&str]) -> Self {
        let there = tempfile::tempdir().unwrap();
        let served = Served::start(flags, &there.path().join("state"), |command| {
            command
                .env("HOME", there.path())
                .env("PATH", "/usr/local/bin:/usr/bin:/bin")
                .env("TEAMSTER_STORE", "off");
        });
        Self {
            repository: Repository::new(),
            served,
            there,
        }
    }

    fn remote(&self, directory: &Path, args: &[&str]) -> Ended {
        let mut command = teamster(args.iter().copied());
        run(command
            .env("TEAMSTER_REMOTE", format!("http://{}", self.served.address))
            .env("TEAMSTER_REMOTE_TOKEN", &self.served.token)
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .current_dir(directory)
            .stdin(Stdio::null()))
    }
}

#[test]
fn a_repository_goes_along_and_the_branch_comes_back() {
    let two = Two::new(&["--allow-commands"]);
    let repository = &two.repository;
    let sub = repository.path().join("sub");
    fs::write(sub.join("file"), "changed\n").unwrap();
    fs::write(sub.join("new"), "new\n").unwrap();
    let committer = repository.committer();
    let status = repository.git(&["status", "--porcelain"]);
    let ended = two.remote(&sub, &["run", &committer, "x", "--repo", "."]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    for part in [
        "repository submitted: ",
        ", with 2 files not committed",
        "branch teamster/",
        ": 1 commit of run ",
    ] {
        assert!(ended.stderr.contains(part), "{part}: {}", ended.stderr);
    }
    let branches = repository.git(&["branch", "--list", "--format=%(refname:short)"]);
    let branches: Vec<_> = branches.lines().collect();
    let ["main", branch] = branches[..] else {
        panic!("{branches:?}");
    };
    let log = repository.git(&["log", "--format=%s", branch]);
    assert_eq!(log, "Of the agent\nUncommitted changes\nFirst\n");
    let files = repository.git(&["show", "--stat=80", "--format=", branch]);
    assert!(files.contains("sub/agent.txt"), "{files}");
    // Nothing else here has changed.
    assert_eq!(repository.git(&["status", "--porcelain"]), status);
    assert_eq!(repository.git(&["log", "--format=%s", "main"]), "First\n");

    // Detached, the branch is fetched by hand.
    let started = two.remote(&sub, &["run", "-d", &committer, "x", "--repo", ".."]);
    assert_eq!(started.code, Some(0), "{}", started.stderr);
    let id = started.stdout.trim();
    assert_eq!(two.remote(&sub, &["wait", id]).code, Some(0));
    let fetched = two.remote(&sub, &["runs", "fetch", id, "fetched"]);
    assert_eq!(fetched.code, Some(0), "{}", fetched.stderr);
    let files = repository.git(&["show", "--stat=80", "--format=", "fetched"]);
    assert!(files.contains(" agent.txt"), "{files}");
}

#[test]
fn a_directory_without_a_repository_is_refused_before_anything_is_started() {
    let two = Two::new(&["--allow-commands"]);
    let folder = tempfile::tempdir().unwrap();
    let refused = two.remote(folder.path(), &["run", "cmd:cat", "x", "--repo", "."]);
    assert_eq!(refused.code, Some(2), "{}", refused.stderr);
    assert!(
        refused.stderr.contains("not in a git repository"),
        "{}",
        refused.stderr
    );
    let list = two.remote(folder.path(), &["requests"]);
    assert_eq!(list.code, Some(0), "{}", list.stderr);
    // What a refused run has sent does not count against the limit for a day.
    let args = [
        "run",
        "claude",
        "x",
        "--permission",
        "bypass",
        "--repo",
        ".",
    ];
    let refused = two.remote(&two.repository.path(), &args);
    assert_eq!(refused.code, Some(2), "{}", refused.stderr);
    let sent = "repository submitted: ";
    assert!(refused.stderr.contains(sent), "{}", refused.stderr);
    let uploads = two.there.path().join("state/teamster/uploads");
    assert_eq!(fs::read_dir(uploads).unwrap().count(), 0);
    // Here, there is nothing to submit it to.
    let here = two
        .repository
        .command(&["run", "cmd:cat", "x", "--repo", "."]);
    assert_eq!(here.code, Some(2), "{}", here.stderr);
    assert!(here.stderr.contains("with --remote"), "{}", here.stderr);
}

#[test]
fn variables_go_along_where_the_server_allows_them() {
    let two = Two::new(&["--allow-commands", "--allow-env", "COLOR"]);
    let folder = tempfile::tempdir().unwrap();
    let agent = "cmd:sh -c 'echo \"it is $COLOR\"'";
    let with = |variable: &str| two.remote(folder.path(), &["run", agent, "x", "--env", variable]);
    let allowed = with("COLOR=green");
    assert_eq!((allowed.code, &*allowed.stdout), (Some(0), "it is green\n"));
    let refused = with("PATH=/");
    assert_eq!(refused.code, Some(2), "{}", refused.stderr);
    assert!(refused.stderr.contains("set PATH"), "{}", refused.stderr);
}
