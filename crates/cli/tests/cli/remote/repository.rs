//! `--repo DIR`: a repository of this machine for a run on another one.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use serde_json::json;

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
            .current_dir(directory))
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
    let ended = two
        .remote(&sub, &["run", &committer, "x", "--repo", "."])
        .ok();
    for part in [
        "repository submitted: ",
        ", with 2 files not committed",
        "branch teamster/",
        ": 1 commit of run ",
    ] {
        ended.stderr_has(part);
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
    let files = ["--artifact", "agent.txt"];
    let run = ["run", "-d", &committer, "x", "--repo", ".."];
    let started = two.remote(&sub, &[&run[..], &files].concat()).ok();
    let id = started.stdout.trim();
    two.remote(&sub, &["wait", id]).ok();
    two.remote(&sub, &["runs", "fetch", id, "fetched"]).ok();
    let files = repository.git(&["show", "--stat=80", "--format=", "fetched"]);
    assert!(files.contains(" agent.txt"), "{files}");
    two.remote(&sub, &["runs", "diff", id]).stdout_has("\n+1\n");
    let output = two.there.path().join("copies");
    let copied = ["runs", "files", id, "--output", output.to_str().unwrap()];
    two.remote(&sub, &copied).ok();
    assert_eq!(fs::read_to_string(output.join("agent.txt")).unwrap(), "1\n");
}

#[test]
fn large_files_go_along_and_come_back_with_the_changes() {
    let two = Two::new(&["--allow-commands"]);
    let repository = &two.repository;
    let objects = repository.path().join(".git/lfs/objects");
    // That of `large content` and a line end, and of `made`.
    let oids = [
        "ca27f3a1fa46b52b9b770c0f09ec44d48b0f6a1e6b0c8955b8ac1976b6d6c3cb",
        "9ccbd3f1b19a1cdfd8d7c6ae48e9e822e2345f5be1a6187b19e41486c6941004",
    ];
    let object = |oid: &str| objects.join(&oid[..2]).join(&oid[2..4]).join(oid);
    fs::create_dir_all(object(oids[0]).parent().unwrap()).unwrap();
    fs::write(object(oids[0]), "large content\n").unwrap();
    let pointer = |oid: &str, size: usize| {
        format!("version https://git-lfs.github.com/spec/v1\noid sha256:{oid}\nsize {size}\n")
    };
    let files = [
        (".gitattributes", "*.bin filter=lfs -text\n"),
        ("big.bin", &*pointer(oids[0], 14)),
    ];
    for (name, text) in files {
        fs::write(repository.path().join(name), text).unwrap();
    }
    repository.git(&["add", "--all"]);
    repository.git(&["commit", "-q", "-m", "Large"]);
    let agent =
        "cmd:sh -c 'cat big.bin > seen; echo made > new.bin; git status --porcelain >> seen'";
    let started = two
        .remote(
            &repository.path(),
            &["run", "-d", agent, "x", "--repo", "."],
        )
        .ok();
    let id = started.stdout.trim();
    two.remote(&repository.path(), &["wait", id]).ok();
    assert!(!object(oids[1]).exists());
    two.remote(&repository.path(), &["runs", "apply", id]).ok();
    let read = |path: &Path| fs::read_to_string(path).unwrap();
    let seen = read(&repository.path().join("seen"));
    assert_eq!(seen, "large content\n?? new.bin\n?? seen\n");
    assert_eq!(read(&object(oids[1])), "made\n");
    // A pointer, as the other one: there is no git-lfs here.
    assert_eq!(
        read(&repository.path().join("new.bin")),
        pointer(oids[1], 5)
    );
}

#[test]
fn directory_without_a_repository_is_refused_before_the_start() {
    let two = Two::new(&["--allow-commands"]);
    let folder = tempfile::tempdir().unwrap();
    let refused = two.remote(folder.path(), &["run", "cmd:cat", "x", "--repo", "."]);
    refused.fails(2, "not in a git repository");
    two.remote(folder.path(), &["requests"]).ok();
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
    refused.stderr_has(sent);
    let uploads = two.there.path().join("state/teamster/uploads");
    assert_eq!(fs::read_dir(uploads).unwrap().count(), 0);
    // Here, there is nothing to submit it to.
    two.repository
        .command(&["run", "cmd:cat", "x", "--repo", "."])
        .fails(2, "with --remote");
}

#[test]
fn variables_go_along_where_the_server_allows_them() {
    let two = Two::new(&["--allow-commands", "--allow-env", "COLOR"]);
    let folder = tempfile::tempdir().unwrap();
    let agent = "cmd:sh -c 'echo \"it is $COLOR\"'";
    let with = |variable: &str| two.remote(folder.path(), &["run", agent, "x", "--env", variable]);
    let allowed = with("COLOR=green");
    assert_eq!((allowed.code, &*allowed.stdout), (Some(0), "it is green\n"));
    with("PATH=/").fails(2, "set PATH");
}

#[test]
fn a_push_goes_out_where_the_server_allows_it() {
    let two = Two::new(&["--allow-commands", "--allow-push"]);
    let repository = &two.repository;
    let remote = two.there.path().join("remote.git").display().to_string();
    repository.git(&["init", "-q", "--bare", &remote]);
    repository.git(&["remote", "add", "origin", &remote]);
    let folder = tempfile::tempdir().unwrap();
    let path = repository.path().display().to_string();
    let committer = repository.committer();
    let pushed = |place: &[&str], branch: &str| {
        let push = format!("origin:{branch}");
        let run = ["run", &*committer, "x", "--push", &push];
        let ended = two.remote(folder.path(), &[&run, place].concat()).ok();
        let said = format!("pushed to {push}");
        ended.stderr_has(&said);
    };
    let log = |branch: &str| {
        let git_dir = format!("--git-dir={remote}");
        repository.git(&[&git_dir, "log", "--format=%s", branch])
    };
    pushed(&["--worktree", "--cwd", &path], "fix");
    assert_eq!(log("fix"), "Of the agent\nFirst\n");
    // From the mirror of a repository, too.
    repository.git(&["push", "-q", "origin", "main"]);
    let url = format!("file://{remote}");
    pushed(&["--repo", &url, "--worktree-from", "main"], "port");
    assert_eq!(log("port"), "Of the agent\nFirst\n");

    let args = ["run", &*committer, "x", "--repo", ".", "--push", "origin"];
    let refused = two.remote(&repository.path(), &args);
    assert_eq!(refused.code, Some(2), "{}", refused.stderr);
    let problem = "push the branch that comes back";
    refused.stderr_has(problem);
}

#[test]
fn an_apply_over_http_reports_what_a_killed_one_had_left() {
    let two = Two::new(&["--allow-commands"]);
    let repository = &two.repository;
    let top = repository.path();
    let path = top.display().to_string();
    let committer = repository.committer();
    let args = ["run", "-d", &committer, "x", "--worktree", "--cwd", &path];
    let started = two.remote(two.there.path(), &args).ok();
    let id = started.stdout.trim();
    two.remote(two.there.path(), &["wait", id]).ok();
    // As a process leaves it that is killed between two moves of `sub/file`.
    let folder = top.join(".git/teamster-apply");
    let stamp = |path: &Path| {
        let about = fs::symlink_metadata(path).unwrap();
        let modified = [about.mtime(), about.mtime_nsec()];
        json!({"inode": about.ino(), "bytes": about.len(), "modified": modified})
    };
    for name in ["before/sub", "after/sub"] {
        fs::create_dir_all(folder.join(name)).unwrap();
    }
    fs::write(folder.join("after/sub/file"), "of another run\n").unwrap();
    let before = stamp(&top.join("sub/file"));
    let after = stamp(&folder.join("after/sub/file"));
    let journal =
        json!({"files": [{"path": "sub/file", "before": before, "after": after}], "folders": []});
    fs::write(folder.join("journal.json"), journal.to_string()).unwrap();
    fs::rename(top.join("sub/file"), folder.join("before/sub/file")).unwrap();

    let apply = format!("/v1/runs/{id}/apply");
    let applied = two.served.post(&apply, &json!({})).json();
    assert_eq!(applied["filesChanged"], 1, "{applied}");
    let warnings = applied["warnings"].as_array().unwrap();
    let [warning] = &warnings[..] else {
        panic!("{applied}");
    };
    let warning = warning.as_str().unwrap();
    assert!(
        warning.contains("the files are as they were before"),
        "{warning}"
    );
    assert_eq!(fs::read_to_string(top.join("sub/file")).unwrap(), "one\n");
    assert!(!folder.exists());
}
