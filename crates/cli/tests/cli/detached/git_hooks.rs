//! Agents that are started by git, which binds its hooks to a repository by variables.

use std::fs;

use super::worktree::Repository;
use crate::cli::{TEAMSTER, program, run, teamster};

#[test]
fn an_agent_in_a_worktree_is_not_bound_to_the_repository_of_a_hook() {
    let repository = Repository::new();
    let (git_dir, index) = (
        repository.path().join(".git"),
        repository.path().join(".git/index"),
    );
    let both = [("GIT_DIR", &*git_dir), ("GIT_INDEX_FILE", &*index)];
    let agent = repository.committer();
    // An index alone is what git sets in a main worktree.
    for (branch, variables, detach) in [
        ("attached", &both[..], None),
        ("detached", &both[..], Some("--detach")),
        ("index", &both[1..], None),
    ] {
        let worktree = format!("--worktree={branch}");
        let mut args = vec!["run", &agent, "x", &worktree];
        args.extend(detach);
        let ended = repository.command_with(&args, variables);
        assert_eq!(ended.code, Some(0), "{branch}: {}", ended.stderr);
        if detach.is_some() {
            let waited = repository.command(&["wait", ended.stdout.trim_end()]);
            assert_eq!(waited.code, Some(0), "{}", waited.stderr);
        }
        assert_eq!(repository.last(branch), "Of the agent\n", "{branch}");
        assert_eq!(repository.last("main"), "First\n", "{branch}");
        assert_eq!(repository.git(&["status", "--porcelain"]), "", "{branch}");
    }

    // A session, whose agent prints what it has of them.
    let mut command = teamster(["chat", "claude", "--worktree=session"]);
    repository.agent.environment(&mut command);
    let input = repository.agent.path("message");
    fs::write(&input, "more\n").unwrap();
    let ended = run(command
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .envs(both)
        .env("GIT_CONFIG_PARAMETERS", "'core.bare'='true'")
        .current_dir(repository.path())
        .stdin(fs::File::open(input).unwrap()));
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let passed = fs::read_to_string(repository.agent.path("git")).unwrap();
    assert_eq!(passed, "");
}

#[test]
fn a_hook_starts_an_agent_that_commits_in_its_worktree() {
    let repository = Repository::new();
    let hook = repository.path().join(".git/hooks/post-commit");
    fs::create_dir_all(hook.parent().unwrap()).unwrap();
    program(
        &hook,
        &format!(
            "rm .git/hooks/post-commit; XDG_STATE_HOME='{}' TEAMSTER_STORE=off \
             exec '{TEAMSTER}' run '{}' x --worktree=hook",
            repository.agent.path("state").display(),
            repository.committer(),
        ),
    );
    fs::write(repository.path().join("second"), "2\n").unwrap();
    repository.git(&["add", "."]);
    repository.git(&["commit", "-q", "-m", "Second"]);
    assert!(!hook.exists());
    assert_eq!(repository.last("hook"), "Of the agent\n");
    assert_eq!(repository.last("main"), "Second\n");
    assert_eq!(repository.git(&["status", "--porcelain"]), "");
}

#[test]
fn an_agent_is_bound_to_the_repository_of_a_hook_only_in_its_directory() {
    let repository = Repository::new();
    let other = repository.agent.path("other");
    fs::create_dir(&other).unwrap();
    repository.git(&["init", "-q", other.to_str().unwrap()]);
    let index = repository.path().join(".git/index.lock");
    let variables = [("GIT_INDEX_FILE", &*index)];
    let agent = "cmd:printenv GIT_INDEX_FILE";
    // A hook before a commit: the index has what will be committed.
    let ended = repository.command_with(&["run", agent, "x"], &variables);
    assert_eq!(ended.stdout.trim_end(), index.to_str().unwrap());
    let same = repository.command_with(&["run", agent, "x", "-C", "sub"], &variables);
    assert_eq!(same.stdout.trim_end(), index.to_str().unwrap());
    let args = ["run", agent, "x", "-C", other.to_str().unwrap()];
    let ended = repository.command_with(&args, &variables);
    assert_eq!(ended.stdout, "");
}
