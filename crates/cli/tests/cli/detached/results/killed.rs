//! Runs whose runner is killed at a step of their workspace: what is left is what git and the list of runs show.

use std::collections::BTreeSet;
use std::fs;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use teamster_testkit::proc::{wait_gone, wait_until};

use super::command;
use crate::cli::detached::worktree::Repository;
use crate::cli::{LIMIT, program};

/// Starts a run that hangs at a step, and kills its runner there. Returns the id of the run.
fn killed_at(repository: &Repository, step: &str) -> String {
    let path = |name: &str| repository.agent.path(name).display().to_string();
    let hang = format!(
        "echo $PPID > {0}.new; mv {0}.new {0}; exec sleep 1000",
        path("runner")
    );
    let git = "git -c user.email=a@example.com -c user.name=A";
    let works =
        format!("echo two >> sub/file; {git} commit -qam 'Of the agent'; echo new > new.txt");
    let script = match step {
        "agent" => format!("{works}; {hang}"),
        // The push hangs, which is no child of the runner.
        _ => format!("{works}; echo $PPID > {}", path("parent")),
    };
    let agent = repository.script(step, &script);
    let mut args = vec!["run", "-d", &agent, "x", "--worktree"];
    match step {
        "setup" => args.extend(["--setup", &hang]),
        "push" => args.extend(["--push", "hung:fix"]),
        _ => {}
    }
    let id = command(repository, &args).id();
    let note = repository.agent.path("runner");
    assert!(wait_until(LIMIT, || note.exists()), "{step}");
    let hung: u32 = fs::read_to_string(&note).unwrap().trim().parse().unwrap();
    let runner = match step {
        "push" => fs::read_to_string(repository.agent.path("parent")).unwrap(),
        _ => hung.to_string(),
    };
    let runner: u32 = runner.trim().parse().unwrap();
    kill(Pid::from_raw(runner.cast_signed()), Signal::SIGKILL).unwrap();
    assert!(wait_gone(runner, LIMIT), "{step}");
    fs::remove_file(note).unwrap();
    id
}

#[test]
fn killed_run_leaves_what_git_and_the_list_of_runs_show() {
    let repository = Repository::new();
    // A push that hangs: its transport notes the program that has started it.
    let note = repository.agent.path("runner").display().to_string();
    let script = repository.agent.path("transport");
    // Complete or not there.
    let hang = format!("echo $PPID > {note}.new; mv {note}.new {note}; exec sleep 1000");
    program(&script, &hang);
    repository.git(&[
        "remote",
        "add",
        "hung",
        &format!("ext::{}", script.display()),
    ]);
    repository.git(&["config", "protocol.ext.allow", "always"]);
    let users = || {
        let refs = [
            "for-each-ref",
            "--format=%(refname) %(objectname)",
            "refs/heads/main",
        ];
        (
            repository.git(&["status", "--porcelain"]),
            repository.git(&refs),
        )
    };
    let before = users();
    let steps = ["setup", "agent", "push"].map(|step| (step, killed_at(&repository, step)));
    // The next run with a workspace keeps what they have left.
    let next = command(
        &repository,
        &["run", "cmd:true", "x", "--worktree", "--quiet"],
    )
    .ok();
    assert_eq!(next.stdout, "");
    assert_eq!(users(), before);

    let listed = command(&repository, &["runs", "list", "--json"]).ok();
    let (runs, listed) = (listed.json_lines(), listed.stdout);
    let run = |id: &str| runs.iter().find(|run| run["runId"] == *id);
    let mut expected = BTreeSet::new();
    for (step, id) in &steps {
        assert_eq!(command(&repository, &["wait", id]).code, Some(5), "{step}");
        assert!(
            run(id).is_some_and(|run| run["status"] != "running"),
            "{step}: {listed}"
        );
        let wip = format!("refs/teamster/{id}/wip");
        let refs = repository.git(&["for-each-ref", "--format=%(refname)", &wip]);
        if *step == "setup" {
            // No agent was in it.
            assert_eq!(refs, "", "{step}");
            continue;
        }
        expected.insert(id.clone());
        assert_eq!(refs.trim(), wip, "{step}");
        let shown = command(&repository, &["runs", "show", id, "--json"])
            .ok()
            .stdout;
        assert!(!shown.contains("\"pushed\""), "{step}: {shown}");
        let diff = command(&repository, &["runs", "diff", id]).ok().stdout;
        assert!(
            diff.contains("+two") && diff.contains("+new"),
            "{step}: {diff}"
        );
        command(&repository, &["runs", "fetch", id, &format!("of-{step}")]).ok();
        assert_eq!(
            repository.last(&format!("of-{step}")).trim(),
            "Of the agent"
        );
    }
    let folders: BTreeSet<_> = (repository.left().iter())
        .map(|it| it.file_name().unwrap().to_str().unwrap().to_owned())
        .collect();
    assert_eq!(folders, expected);
    let worktrees = repository.git(&["worktree", "list", "--porcelain"]);
    let paths = worktrees
        .lines()
        .filter_map(|it| it.strip_prefix("worktree "));
    let by_git: BTreeSet<_> = paths
        .filter_map(|path| expected.iter().find(|id| path.contains(&***id)).cloned())
        .collect();
    assert_eq!(by_git, expected);
    assert_eq!(worktrees.matches("worktree ").count(), 3, "{worktrees}");
}
