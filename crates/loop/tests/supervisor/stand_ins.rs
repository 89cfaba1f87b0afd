//! Programs that tests start: this test program in other roles. As plain tests they do nothing.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use teamster_loop::supervisor::{Supervisor, SupervisorSettings};
use tokio::signal::unix::{SignalKind, signal};

const ROLE: &str = "TEAMSTER_TEST_ROLE";
const CONFIG: &str = "TEAMSTER_TEST_CONFIG";

/// Returns settings with a loop that records its wakes.
pub(crate) fn wakeable() -> SupervisorSettings {
    let program = std::env::current_exe().unwrap();
    let mut settings = SupervisorSettings::new(
        "/usr/bin/env",
        [
            format!("{ROLE}=loop"),
            program.display().to_string(),
            "--exact".into(),
            "supervisor::stand_ins::a_loop".into(),
        ],
    );
    settings.policy.first_delay = Duration::from_millis(50);
    settings
}

/// Returns a supervisor process, whose loops are `loop.sh` in the agents' directories.
pub(crate) fn supervisor(config: PathBuf) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", "supervisor::stand_ins::a_supervisor"])
        .env(ROLE, "supervisor")
        .env(CONFIG, config)
        .stdout(std::process::Stdio::null());
    command
}

fn is(role: &str) -> bool {
    std::env::var(ROLE).is_ok_and(|it| it == role)
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Runtime::new().unwrap()
}

#[test]
fn a_loop() {
    if !is("loop") {
        return;
    }
    let write_line = |text: &str| {
        let mut file = OpenOptions::new()
            .create(true)
            .append(true)
            .open("output")
            .unwrap();
        writeln!(file, "{text}").unwrap();
    };
    let starts = OpenOptions::new().create(true).append(true).open("starts");
    writeln!(starts.unwrap(), "{}", std::process::id()).unwrap();
    runtime().block_on(async {
        let mut wake = signal(SignalKind::user_defined1()).unwrap();
        let mut end = signal(SignalKind::terminate()).unwrap();
        for name in ["RUNTIME", "CHROME"] {
            write_line(&format!(
                "{name}={}",
                std::env::var(name).unwrap_or_default()
            ));
        }
        // In the group of the loop, without a handler for SIGUSR1.
        let mut child = Command::new("sleep").arg("1000").spawn().unwrap();
        write_line(&format!("child {}", child.id()));
        write_line("ready");
        loop {
            tokio::select! {
                _ = wake.recv() => write_line("woken"),
                _ = end.recv() => break,
            }
        }
        // The child is in the group that got SIGTERM.
        child.wait().unwrap();
    });
    write_line("ended");
}

#[test]
fn a_supervisor() {
    if !is("supervisor") {
        return;
    }
    let config = PathBuf::from(std::env::var_os(CONFIG).unwrap());
    runtime().block_on(async {
        let supervisor = Supervisor::open(&config, crate::supervisor::company::settings()).unwrap();
        let handle = supervisor.handle();
        tokio::spawn(async move {
            signal(SignalKind::terminate()).unwrap().recv().await;
            handle.end();
        });
        supervisor.run(drop).await;
    });
}
