//! Agents that are started by git, which binds its hooks to a repository by variables.

use std::fs;

use super::worktree::Repository;
use crate::cli::{TEAMSTER, program, run};

#[test]
fn agent_in_a_worktree_is_not_bound_to_the_repository_of_a_hook() {
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
            repository.command(&["wait", ended.stdout.trim_end()]).ok();
        }
        assert_eq!(repository.last(branch), "Of the agent\n", "{branch}");
        assert_eq!(repository.last("main"), "First\n", "{branch}");
        assert_eq!(repository.git(&["status", "--porcelain"]), "", "{branch}");
    }

    // A session, whose agent prints what it has of them.
    let mut command = repository.prepare(&["chat", "claude", "--worktree=session"]);
    let input = repository.agent.path("message");
    fs::write(&input, "more\n").unwrap();
    run(command
        .envs(both)
        .env("GIT_CONFIG_PARAMETERS", "'core.bare'='true'")
        .stdin(fs::File::open(input).unwrap()))
    .ok();
    let passed = fs::read_to_string(repository.agent.path("git")).unwrap();
    assert_eq!(passed, "");
}

#[test]
fn agent_is_bound_to_the_repository_of_a_hook_in_its_directory() {
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

/// Every kind of workspace, from a hook of a linked worktree with all variables of git that bind to it.
#[test]
fn no_workspace_is_bound_to_the_repository_of_a_hook() {
    let repository = Repository::new();
    repository.git(&["worktree", "add", "-q", "../linked"]);
    let linked = repository.agent.path("linked");
    let here = repository.agent.path("here-is");
    let origin = format!("file://{}", repository.path().display());
    fs::write(repository.path().join(".worktreeinclude"), ".env\n").unwrap();
    fs::write(repository.path().join(".git/info/exclude"), ".env\n").unwrap();
    fs::write(linked.join(".worktreeinclude"), ".env\n").unwrap();
    fs::write(linked.join(".env"), "A=1\n").unwrap();
    let hook = repository.path().join(".git/hooks/post-commit");
    fs::create_dir_all(hook.parent().unwrap()).unwrap();
    let committer = repository.committer();
    let setup = format!(
        "printf '%s %s\\n' \"$(git rev-parse --show-toplevel 2>&1 | head -1)\" \"${{GIT_DIR-}}${{GIT_INDEX_FILE-}}${{GIT_WORK_TREE-}}${{GIT_PREFIX+set}}\" >> '{}'",
        here.display()
    );
    let setup = setup.replace('\'', r"'\''");
    let runs = [
        "--worktree=of-commit --worktree-from HEAD~1",
        &format!("--repo {origin}"),
        "--empty-dir",
    ]
    .map(|options| {
        let agent = if options.contains("empty") {
            "cmd:touch new"
        } else {
            &committer
        };
        format!("'{TEAMSTER}' run '{agent}' x {options} --setup '{setup}' || exit 1\n")
    })
    .concat();
    program(
        &hook,
        &format!(
            "rm \"$0\"\nexport GIT_WORK_TREE=\"$PWD\" GIT_OBJECT_DIRECTORY='{objects}' GIT_COMMON_DIR='{common}' \
             GIT_PREFIX=sub/\n\
             export XDG_STATE_HOME='{state}' TEAMSTER_STORE=off\n\
             env | grep ^GIT_ > '{seen}'\n{runs}touch '{done}'\n",
            objects = repository.path().join(".git/objects").display(),
            common = repository.path().join(".git").display(),
            state = repository.agent.path("state").display(),
            seen = repository.agent.path("seen").display(),
            done = repository.agent.path("done").display(),
        ),
    );
    fs::write(linked.join("second"), "2\n").unwrap();
    let linked_text = linked.to_str().unwrap();
    repository.git(&["-C", linked_text, "add", "second"]);
    repository.git(&["-C", linked_text, "commit", "-qm", "Second"]);
    assert!(repository.agent.path("done").exists());
    let seen = fs::read_to_string(repository.agent.path("seen")).unwrap();
    for name in [
        "GIT_DIR=",
        "GIT_INDEX_FILE=",
        "GIT_WORK_TREE=",
        "GIT_OBJECT_DIRECTORY=",
        "GIT_COMMON_DIR=",
        "GIT_PREFIX=sub/",
    ] {
        assert!(seen.contains(name), "{seen}");
    }
    // Only what the hook's own repository has of the worktrees has changed.
    assert_eq!(repository.last("linked"), "Second\n");
    assert_eq!(repository.last("main"), "First\n");
    assert_eq!(repository.last("of-commit"), "Of the agent\n");
    let status = repository.git(&["-C", linked_text, "status", "--porcelain"]);
    assert_eq!(status, "?? .worktreeinclude\n");
    let tops = fs::read_to_string(here).unwrap();
    let tops: Vec<_> = tops.lines().collect();
    let left = repository.left();
    let is_of = |top: &&&str| {
        left.iter()
            .any(|it| top.trim_end().starts_with(it.to_str().unwrap()))
    };
    assert_eq!(
        (tops.len(), tops.iter().take(2).filter(is_of).count()),
        (3, 2),
        "{tops:?}"
    );
    assert!(
        tops[2].starts_with("fatal: not a git repository"),
        "{tops:?}"
    );
    let included = left
        .iter()
        .filter(|it| it.join("linked/.env").exists())
        .count();
    assert_eq!(included, 1, "{left:?}");
    assert_eq!(left.len(), 3);
}
