//! A fleet keeps the contract of all services of runs, with one worker that is a task of this process.

use std::env;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use teamster_fleet::{FleetLimits, Worker, WorkerConfig};
use teamster_host::Host;
use teamster_providers::Providers;
use teamster_testkit::run_service::{CLAUDE, ScriptedClaude, contract};

use super::machine::runs_of;
use super::server::Server;

/// Lets a command find a shell script as Claude Code, and keep its runs in a folder.
pub(crate) fn with_agent(command: &mut Command, folder: &Path, script: &str) {
    let agent = folder.join("claude");
    fs::write(&agent, script).unwrap();
    fs::set_permissions(&agent, fs::Permissions::from_mode(0o755)).unwrap();
    agent_variables(command, folder);
}

/// Lets a command find the program `claude` of a folder as Claude Code, and keep its runs in the folder.
pub(crate) fn agent_variables(command: &mut Command, folder: &Path) {
    command
        .env("TEAMSTER_CLAUDE_BIN", folder.join("claude"))
        // A login, which the script does not need.
        .env("ANTHROPIC_API_KEY", "made-up")
        .env("XDG_STATE_HOME", folder.join("state"))
        .env("XDG_CONFIG_HOME", folder)
        .env("TEAMSTER_STORE", "off");
}

pub(crate) fn limits() -> FleetLimits {
    let mut limits = FleetLimits::default();
    limits.log_bytes = Some(64 << 20);
    limits.file_bytes = Some(64 << 20);
    limits
}

/// Runs this test again in a process whose variables are those of an agent, unless it is that process.
fn is_own_process(test: &str) -> bool {
    const OWN: &str = "TEAMSTER_FLEET_TEST";
    if env::var_os(OWN).is_some() {
        return true;
    }
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new(env::current_exe().unwrap());
    with_agent(&mut command, folder.path(), CLAUDE);
    command.env(OWN, "1").args(["--exact", test, "--nocapture"]);
    let output = command.current_dir(&folder).output().unwrap();
    let text = format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(
        output.status.success() && text.contains("1 passed"),
        "{text}"
    );
    false
}

/// Runs a line of git's in a repository. Returns its output.
pub(crate) fn git(folder: &Path, line: &str) -> Vec<u8> {
    let mut git = Command::new("git");
    git.current_dir(folder);
    git.args(["-c", "user.name=a", "-c", "user.email=a@b"]);
    let output = git.args(line.split(' ')).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    output.stdout
}

/// Makes a repository with one commit in this folder.
pub(crate) fn repository(folder: &Path) -> PathBuf {
    let folder = folder.join("repository");
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("README.md"), "old\n").unwrap();
    for line in ["init -q", "add .", "commit -qm one"] {
        git(&folder, line);
    }
    folder
}

#[test]
fn a_fleet_keeps_the_contract() {
    let server = server_or_skip!();
    drop(server);
    if !is_own_process("contract::a_fleet_keeps_the_contract") {
        return;
    }
    let server = Server::start().unwrap();
    let repository = repository(&env::current_dir().unwrap());
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let (fleet, runs) = runs_of(&server, "ann").await;
        fleet.init(&limits()).await.unwrap();
        let host = Host::new(Providers::builtin());
        let mut config = WorkerConfig::new("w1");
        config.policy.slots = 8;
        config.policy.directories = vec![repository.clone()];
        let worker = Worker::new(&fleet, &host, config).unwrap();
        let worker = worker.on_notice(|text| eprintln!("{text}"));
        let working = tokio::spawn(worker.run(std::future::pending()));
        let subject = ScriptedClaude::new(runs).with_repository(repository);
        tokio::select! {
            () = async {
                while fleet.workers().await.unwrap().is_empty() {}
                contract(&subject).await;
            } => {}
            ended = working => panic!("the worker has ended: {ended:?}"),
        }
    });
}
