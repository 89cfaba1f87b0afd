//! What a run leaves in its worktree, and how one takes it.

mod end;
mod killed;

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::requests::log;
use super::worktree::Repository;
use crate::cli::{Ended, run, run_id};

/// An agent that commits one file, and leaves another one, as the argument of `teamster run`.
fn worker(repository: &Repository) -> String {
    let git = "git -c user.email=a@example.com -c user.name=A";
    let script = format!(
        "echo two >> sub/file && {git} commit -qam 'Of the agent' && echo new > new.txt && mkdir -p out && echo report \
         > out/report.html && echo secret > out/.hidden && echo done"
    );
    repository.script("worker", &script)
}

/// Runs a command with a history.
fn command(repository: &Repository, args: &[&str]) -> Ended {
    command_with(repository, args, &[])
}

fn command_with(repository: &Repository, args: &[&str], variables: &[(&str, &Path)]) -> Ended {
    let store = repository.agent.path("store.db");
    let all = [&[("TEAMSTER_STORE", &*store)], variables].concat();
    repository.command_with(args, &all)
}

/// Returns the result in the `done` of a run's events.
fn done(events: &str) -> Value {
    let last = events.lines().last().unwrap();
    let last: Value = serde_json::from_str(last).unwrap();
    assert_eq!(last["type"], "done", "{last}");
    last["result"].clone()
}

/// Runs the worker attached, and returns the id of the run and what `done` has of its workspace.
fn attached(repository: &Repository, args: &[&str]) -> (String, Value) {
    let worker = worker(repository);
    let run = ["run", &*worker, "x", "--json", "--worktree"];
    let ended = command(repository, &[&run[..], args].concat()).ok();
    (
        run_id(&ended.stdout),
        done(&ended.stdout)["workspace"].clone(),
    )
}

#[test]
fn an_attached_run_has_its_workspace_in_done_and_in_the_history() {
    let repository = Repository::new();
    let (id, workspace) = attached(&repository, &[]);
    let base = repository.git(&["rev-parse", "HEAD"]);
    assert_eq!(workspace["kind"], "worktree");
    assert_eq!(workspace["base"], base.trim_end());
    assert_eq!(workspace["branch"], format!("teamster/{id}"));
    for (name, value) in [
        ("commits", 1),
        ("filesChanged", 4),
        ("insertions", 4),
        ("deletions", 0),
    ] {
        assert_eq!(workspace[name], value, "{name}: {workspace}");
    }
    assert_eq!(workspace["dirty"], true);
    let wip = repository.git(&["rev-parse", &format!("refs/teamster/{id}/wip")]);
    assert_eq!(workspace["wip"], wip.trim_end());

    let shown = command(&repository, &["runs", "show", &id, "--json"])
        .ok()
        .json();
    assert_eq!(shown["workspace"], workspace);
    let shown = command(&repository, &["runs", "show", &id]).ok();
    let line = "changes       4 files in 1 commit, +4 -0, not all committed";
    shown.stdout_has(line);

    let open = command(&repository, &["runs", "open", &id]).ok();
    assert_eq!(open.stdout.trim_end(), workspace["directory"]);
    let patch = command(&repository, &["runs", "diff", &id]).ok();
    assert!(
        patch.stdout.starts_with("diff --git a/new.txt b/new.txt\n"),
        "{}",
        patch.stdout
    );
    let stat = command(&repository, &["runs", "diff", &id, "--stat"]).ok();
    assert!(
        stat.stdout
            .ends_with(" 4 files changed, 4 insertions, 0 deletions\n"),
        "{}",
        stat.stdout
    );
    let json = command(&repository, &["runs", "diff", &id, "--json", "--", "sub"])
        .ok()
        .json();
    assert_eq!(json["files"][0]["path"], "sub/file");
    assert_eq!(json["filesChanged"], 1);
    assert_eq!(json["files"][0]["hunks"][0]["lines"][1]["kind"], "added");

    command(&repository, &["runs", "forget", &id]).ok();
    assert_eq!(repository.git(&["for-each-ref", "refs/teamster"]), "");
    assert!(
        PathBuf::from(workspace["directory"].as_str().unwrap())
            .join("new.txt")
            .exists()
    );
}

#[test]
fn detached_run_and_session_log_their_workspace() {
    let repository = Repository::new();
    let worker = worker(&repository);
    let id = &command(&repository, &["run", "-d", &worker, "x", "--worktree=fix"]).id();
    command(&repository, &["wait", id]).ok();
    let workspace = done(&log(&repository.agent, id))["workspace"].clone();
    assert_eq!(
        (&workspace["commits"], &workspace["branch"]),
        (&1.into(), &"fix".into())
    );
    let shown = command(&repository, &["runs", "show", id, "--json"])
        .ok()
        .json();
    assert_eq!(shown["workspace"], workspace);

    let session = &command(&repository, &["chat", "--detach", "claude", "--worktree"]).id();
    command(&repository, &["say", session, "touch"]).ok();
    command(&repository, &["cancel", session]).ok();
    command(&repository, &["wait", session]).ok();
    let workspace = done(&log(&repository.agent, session))["workspace"].clone();
    assert_eq!(
        (&workspace["filesChanged"], &workspace["dirty"]),
        (&1.into(), &true.into())
    );
    let stat = command(&repository, &["runs", "diff", session, "--stat"]).ok();
    stat.stdout_has("touched");
}

#[test]
fn a_run_that_fails_or_is_stopped_keeps_what_it_has_done() {
    let repository = Repository::new();
    let failing = repository.script("failing", "echo new > new.txt; exit 3");
    let ended = command(&repository, &["run", &failing, "x", "--json", "--worktree"]);
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    let result = done(&ended.stdout);
    assert_eq!(result["status"], "failed");
    assert_eq!(result["workspace"]["filesChanged"], 1);
    assert!(result["workspace"]["wip"].is_string(), "{result}");

    let args = ["run", "-d", "claude", "touch-and-wait", "--worktree"];
    let id = &command(&repository, &args).id();
    assert!(teamster_testkit::proc::wait_until(
        crate::cli::LIMIT,
        || {
            let so_far = command(&repository, &["runs", "diff", id, "--stat"]);
            so_far.stdout.contains("touched")
        }
    ));
    command(&repository, &["runs", "apply", id]).fails(1, "has not ended: `teamster wait");
    command(&repository, &["cancel", id]).ok();
    assert_eq!(command(&repository, &["wait", id]).code, Some(130));
    let result = done(&log(&repository.agent, id));
    assert_eq!(result["workspace"]["filesChanged"], 1, "{result}");
}

#[test]
fn changes_are_applied_here_or_not_at_all() {
    let repository = Repository::new();
    let (id, _) = attached(&repository, &[]);
    fs::write(repository.path().join("sub/file"), "mine\n").unwrap();
    command(&repository, &["runs", "apply", &id]).fails(
        1,
        "nothing was changed:\n  sub/file: patch does not apply\n",
    );
    assert!(!repository.path().join("new.txt").exists());
    fs::write(repository.path().join("sub/file"), "one\n").unwrap();
    let applied = command(&repository, &["runs", "apply", &id]).ok();
    assert_eq!(applied.stderr, "applied the changes to 4 files\n");
    assert_eq!(
        fs::read_to_string(repository.path().join("sub/file")).unwrap(),
        "one\ntwo\n"
    );
    let status = repository.git(&["status", "--porcelain"]);
    assert_eq!(status, " M sub/file\n?? new.txt\n?? out/\n");
}

#[test]
fn changes_apply_where_large_files_cannot_be_read() {
    let repository = Repository::new();
    // Of `large`.
    let oid = "d35c416a85b807e9b5384915d6ebb4a9f7352713efd89857b45a242f473728a9";
    let place = format!(".git/lfs/objects/{}/{}", &oid[..2], &oid[2..4]);
    let place = repository.path().join(place);
    fs::create_dir_all(&place).unwrap();
    fs::write(place.join(oid), "large").unwrap();
    let script = format!(
        "printf 'version https://git-lfs.github.com/spec/v1\\noid sha256:{oid}\\nsize 5\\n' > large.bin"
    );
    let agent = repository.script("pointing", &script);
    let id = &command(&repository, &["run", "-d", &agent, "x", "--worktree"]).id();
    command(&repository, &["wait", id]).ok();
    // The same files with another history.
    let other = repository.agent.path("other");
    let git = |args: &[&str]| repository.git(&[&["-C", other.to_str().unwrap()], args].concat());
    fs::create_dir_all(other.join("sub")).unwrap();
    fs::write(other.join("sub/file"), "one\n").unwrap();
    git(&["init", "-q", "-b", "main"]);
    git(&["add", "."]);
    git(&["commit", "-q", "-m", "Another"]);
    let mut apply = repository.prepare(&["runs", "apply", id]);
    let applied = run(apply.current_dir(&other)).ok();
    applied.stderr_has("large files of Git LFS stay pointers: ");
    let last = "applied the changes to 1 file\n";
    assert!(applied.stderr.ends_with(last), "{}", applied.stderr);
    assert!(other.join("large.bin").is_file());
}

#[test]
fn commits_become_a_branch_here() {
    let repository = Repository::new();
    let (id, workspace) = attached(&repository, &[]);
    // That of the run is there already, and checked out in its worktree.
    command(&repository, &["runs", "fetch", &id]).ok();
    let fetched = command(&repository, &["runs", "fetch", &id, "fix"]).ok();
    fetched.stderr_has("branch fix: 1 commit of run");
    fetched.stderr_has("git cherry-pick --no-commit");
    assert_eq!(
        repository.git(&["rev-parse", "fix"]).trim_end(),
        workspace["head"]
    );
    let main = command(&repository, &["runs", "fetch", &id, "main"]);
    main.fails(1, "the branch main is checked out in");
    repository.git(&["branch", "other", "HEAD"]);
    repository.git(&["checkout", "-q", "other"]);
    repository.git(&["commit", "-q", "--allow-empty", "-m", "Mine"]);
    repository.git(&["checkout", "-q", "main"]);
    command(&repository, &["runs", "fetch", &id, "other"]).fails(1, "name another branch");
}

#[test]
fn a_run_without_a_worktree_or_without_changes_says_so() {
    let repository = Repository::new();
    let idle = repository.script("idle", "echo done");
    for (args, refused) in [(&[][..], true), (&["--worktree"], false)] {
        let args = [&["run", &*idle, "x", "--json"], args].concat();
        let ended = command(&repository, &args).ok();
        let id = run_id(&ended.stdout);
        let diff = command(&repository, &["runs", "diff", &id]);
        assert_eq!(
            (diff.code, &*diff.stdout),
            (Some(u8::from(refused).into()), "")
        );
        let apply = command(&repository, &["runs", "apply", &id]);
        assert_eq!(
            apply.code,
            Some(u8::from(refused).into()),
            "{}",
            apply.stderr
        );
        let said = if refused {
            "has no worktree, so"
        } else {
            "the run has changed nothing"
        };
        apply.stderr_has(said);
    }
}

#[test]
fn changes_that_are_not_kept_any_more_are_not_called_none() {
    let repository = Repository::new();
    let (id, workspace) = attached(&repository, &[]);
    // As the retention leaves it: the history has the run.
    let results = repository.agent.path("state/teamster/worktrees.results");
    fs::remove_dir_all(results.join(&id)).unwrap();
    for what in ["apply", "fetch", "diff"] {
        let refused = command(&repository, &["runs", what, &id]);
        let said = &refused.stderr;
        assert_eq!(refused.code, Some(1), "{what}: {said}");
        assert!(said.contains("are not kept any more"), "{what}: {said}");
        let branch = workspace["branch"].as_str().unwrap();
        assert!(said.contains(branch), "{what}: {said}");
    }
}

#[test]
fn files_are_collected_at_the_end_before_a_worktree_is_removed() {
    let repository = Repository::new();
    fs::write(repository.path().join(".gitignore"), "*\n").unwrap();
    repository.git(&["add", "-f", ".gitignore"]);
    repository.git(&["commit", "-q", "-m", "Ignored"]);
    let script = "mkdir out && echo report > out/report.html && ln -s /etc/passwd out/passwd.html && echo done";
    let reporter = repository.script("reporter", script);
    for detach in [false, true] {
        let mut args = vec![
            "run",
            &*reporter,
            "x",
            "--worktree",
            "--artifact",
            "out/*.html",
        ];
        args.push(if detach { "--detach" } else { "--json" });
        let ended = command(&repository, &args).ok();
        let id = if detach {
            command(&repository, &["wait", ended.stdout.trim_end()]).ok();
            ended.stdout.trim_end().to_owned()
        } else {
            run_id(&ended.stdout)
        };
        let listed = command(&repository, &["runs", "files", &id]).ok();
        listed.stdout_has("out/report.html");
        assert!(!listed.stdout.contains("passwd"), "{}", listed.stdout);
        listed.stderr_has("out/passwd.html: it is a symbolic link");
        let folder = repository.agent.path(&format!("copies-{detach}"));
        let output = folder.display().to_string();
        let copy = ["runs", "files", &id, "--output", &output];
        command(&repository, &copy).ok();
        assert_eq!(
            fs::read_to_string(folder.join("out/report.html")).unwrap(),
            "report\n"
        );
        command(&repository, &copy).fails(1, "exists already");
        command(&repository, &["runs", "forget", &id]).ok();
        let results = repository
            .agent
            .path("state")
            .join("teamster/worktrees.results")
            .join(&id);
        assert!(!results.exists());
    }
    command(&repository, &["run", &reporter, "x", "--artifact", "../*"]).fails(2, "--artifact");
}
