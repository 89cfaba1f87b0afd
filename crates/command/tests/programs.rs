//! Runs of real programs.
#![cfg(test)]

use std::fs;
use std::path::Path;
use std::process::Command;

use teamster_command::{CommandRuntime, CommandSettings, TextCommand};
use teamster_core::provider::LOCAL_GIT_VARIABLES;
use teamster_core::{
    AgentEvent, AgentRuntime, ChangeKind, ErrorKind, ExecuteParams, PermissionMode, RunResult,
    RunStatus,
};
use teamster_process::CliRuntime;

fn git(directory: &Path, args: &[&str]) {
    let mut command = Command::new("git");
    // A hook of this project's own repository may run the tests.
    for name in LOCAL_GIT_VARIABLES {
        command.env_remove(name);
    }
    let command = command.args(["-c", "user.name=a", "-c", "user.email=a@b"]);
    let status = command.args(args).current_dir(directory).status().unwrap();
    assert!(status.success(), "git {args:?}");
}

async fn run(command: &str, directory: &Path) -> (Vec<(String, ChangeKind)>, Vec<AgentEvent>) {
    let runtime = CommandRuntime::new(CliRuntime::new(TextCommand::new(command).unwrap()));
    let params = ExecuteParams::new("hello\nthere")
        .working_directory(directory)
        .permission(PermissionMode::Bypass);
    let mut stream = runtime.execute(params);
    let (mut changes, mut events) = (Vec::new(), Vec::new());
    while let Some(event) = stream.next().await {
        if let AgentEvent::FileChange(change) = &event {
            changes.push((change.path.clone(), change.change));
        }
        events.push(event);
    }
    (changes, events)
}

#[tokio::test]
async fn files_that_a_program_changes_are_reported_committed_or_not() {
    let folder = tempfile::tempdir().unwrap();
    let directory = folder.path();
    git(directory, &["init", "-q"]);
    for name in ["old.txt", "gone.txt", "same.txt", "committed.txt"] {
        fs::write(directory.join(name), "1\n").unwrap();
    }
    git(directory, &["add", "-A"]);
    git(directory, &["commit", "-qm", "x"]);
    // Changed before the run, and not by the program.
    fs::write(directory.join("same.txt"), "2\n").unwrap();
    let script = "cat; echo 2 >> old.txt; rm gone.txt; echo 1 > \"a new.txt\"; echo 2 > committed.txt; \
        git -c user.name=a -c user.email=a@b commit -qm y committed.txt";
    let (changes, events) = run(&format!("sh -c '{script}'"), directory).await;
    assert_eq!(
        changes,
        [
            ("a new.txt".to_owned(), ChangeKind::Add),
            ("committed.txt".to_owned(), ChangeKind::Update),
            ("gone.txt".to_owned(), ChangeKind::Delete),
            ("old.txt".to_owned(), ChangeKind::Update),
        ]
    );
    let Some(AgentEvent::Done(done)) = events.last() else {
        panic!("{events:#?}");
    };
    assert_eq!(done.result.status, RunStatus::Completed);
    assert_eq!(done.result.text, "hello\nthere");
}

#[tokio::test]
async fn binary_output_fails_and_is_not_printed() {
    let folder = tempfile::tempdir().unwrap();
    let (_, events) = run("head -c 4096 /bin/sh", folder.path()).await;
    let Some(AgentEvent::Done(done)) = events.last() else {
        panic!("{events:#?}");
    };
    assert_eq!(done.result.status, RunStatus::Failed);
    assert_eq!(done.result.errors[0].kind, ErrorKind::Protocol);
    assert!(!format!("{events:?}").contains("\\0"), "{events:#?}");
}

#[tokio::test]
async fn outside_of_a_work_tree_nothing_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let (changes, events) = run("sh -c 'echo 1 > x; exit 3'", folder.path()).await;
    assert_eq!(changes, []);
    let Some(AgentEvent::Done(done)) = events.last() else {
        panic!("{events:#?}");
    };
    assert_eq!(
        (done.result.status, done.result.exit_code),
        (RunStatus::Failed, Some(3))
    );
}

/// Runs Aider's entry on recorded output. The output is that of the real Aider with a mock model on loopback. The
/// entry is the one in the documentation of text commands.
async fn aider(recording: &str) -> RunResult {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/aider-0.86.2");
    let file = fs::read_to_string(folder.join("agents.toml")).unwrap();
    let entry = file.split_once("[aider]").unwrap().1;
    let mut settings: CommandSettings = toml::from_str(entry).unwrap();
    settings.command = "cat stdout.txt".to_owned();
    let program = TextCommand::with_settings("aider", settings).unwrap();
    let params = ExecuteParams::new("hello")
        .working_directory(folder.join(recording))
        .permission(PermissionMode::Bypass);
    CommandRuntime::new(CliRuntime::new(program))
        .execute(params)
        .await
}

#[tokio::test]
async fn recorded_runs_of_aider_are_read_by_its_entry() {
    let result = aider("edit").await;
    assert_eq!(result.status, RunStatus::Completed);
    assert!(result.text.starts_with("Fixed."), "{}", result.text);
    assert!(result.text.contains("Applied edit to hello.txt"));
    let usage = result.usage.unwrap();
    assert_eq!(
        (usage.input_tokens, usage.output_tokens),
        (Some(1200), Some(34))
    );

    // The exit code is 0 despite the errors.
    for (recording, kind) in [
        ("error_401", ErrorKind::Auth),
        ("connection_refused", ErrorKind::Overloaded),
    ] {
        let result = aider(recording).await;
        assert_eq!(result.status, RunStatus::Failed, "{recording}");
        assert_eq!(result.errors[0].kind, kind, "{recording}");
    }
}
