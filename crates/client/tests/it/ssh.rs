//! A server behind `ssh`, whose place a script takes: it carries bytes between the client and a server in this process.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use teamster_api::{ProblemCode, RunHandle, RunService};
use teamster_client::{Client, ClientErrorKind};
use teamster_core::{AgentEvent, Stopping};
use teamster_server::{Server, ServerConfig, Tokens};
use teamster_testkit::proc::is_alive;
use teamster_testkit::run_service::{Behavior, MemoryService, Subject, contract};
use tempfile::TempDir;
use tokio::net::unix::pipe;
use tokio::time::{interval, timeout};

use crate::contract::{Machine, Over, script};
use crate::fake::LIMIT;

/// The number of connections that a bridge can carry, one after the other.
const CONNECTIONS: usize = 2;

/// A folder with a script in the place of `ssh`.
struct Stand {
    folder: TempDir,
}

impl Stand {
    fn new(text: &str) -> Self {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("ssh");
        let text = format!("#!/bin/sh\ncd {}\n{text}", folder.path().display());
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
        Self { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn client(&self) -> Client {
        let client = Client::new("ssh:me@box", Some("a token of another server")).unwrap();
        client.with_ssh_command(self.path("ssh").display().to_string())
    }

    /// A script that prints what a login shell may print, then carries bytes to a server of these runs.
    fn bridge(runs: &MemoryService) -> Self {
        let bridge = Self::new(
            "echo $$ $* >> started; n=$(wc -l < started); n=$((n))\n\
             printf 'Welcome!\\n$ '; exec 3> in$n; cat out$n & exec cat >&3",
        );
        for n in 1..=CONNECTIONS {
            let [input, output] = ["in", "out"].map(|name| bridge.path(&format!("{name}{n}")));
            let made = Command::new("mkfifo").args([&input, &output]).status();
            assert!(made.unwrap().success());
            let config = ServerConfig::new(Tokens::at(bridge.folder.path()));
            let server = Server::new(config, Arc::new(runs.clone()), Arc::new(Machine));
            let open = pipe::OpenOptions::new();
            let input = open.open_receiver(input).unwrap();
            tokio::spawn(async move {
                // As soon as the script reads it. By then it has opened the other one.
                let output = loop {
                    match open.open_sender(&output) {
                        Ok(output) => break output,
                        Err(_) => moment().await,
                    }
                };
                // The client may be gone.
                let _ = server.serve_stream(tokio::io::join(input, output)).await;
            });
        }
        bridge
    }

    /// Returns the process and the arguments of each connection.
    fn started(&self) -> Vec<(u32, String)> {
        let text = fs::read_to_string(self.path("started")).unwrap_or_default();
        let lines = text.lines().filter_map(|line| line.split_once(' '));
        lines
            .map(|(pid, arguments)| (pid.parse().unwrap(), arguments.to_owned()))
            .collect()
    }
}

/// Lets a moment pass before something is looked at again.
async fn moment() {
    let mut ticks = interval(Duration::from_millis(5));
    // The first one is at once.
    ticks.tick().await;
    ticks.tick().await;
}

/// Waits for the end of a process. Tasks go on meanwhile.
async fn gone(pid: u32) {
    let end = async {
        while is_alive(pid) {
            moment().await;
        }
    };
    assert!(timeout(LIMIT, end).await.is_ok(), "{pid} is left");
}

fn runs() -> MemoryService {
    MemoryService::new(["mock"], script)
}

#[tokio::test]
async fn ssh_connection_keeps_the_contract() {
    let bridge = Stand::bridge(&runs());
    contract(&Over(bridge.client())).await;
    let started = bridge.started();
    let arguments: Vec<_> = started.iter().map(|(_, arguments)| &**arguments).collect();
    assert_eq!(
        arguments,
        [
            "-T -o BatchMode=yes me@box teamster serve --stdio --allow-bypass --allow-commands --allow-mcp --allow-push --allow-env '*' --allow-in '*'"
        ]
    );
    gone(started[0].0).await;
}

#[tokio::test]
async fn log_and_commands_continue_on_another_connection() {
    let runs = runs();
    let bridge = Stand::bridge(&runs);
    // A person may be requested to enter a passphrase at first, but not in the middle of the output.
    let client = bridge.client().with_questions(true);
    let subject = Over(client.clone());
    let service: Arc<dyn RunService> = Arc::new(client);
    let run = RunHandle::start(service, "r", subject.run(Behavior::Hangs)).await;
    let run = run.unwrap();
    let mut log = run.follow(0);
    let mut last = 0;
    while last == 0 {
        let line = timeout(LIMIT, log.next()).await.unwrap().unwrap().unwrap();
        if matches!(line.type_name().as_ref(), "text") {
            last = line.seq();
        }
    }
    let (pid, arguments) = bridge.started().remove(0);
    assert!(!arguments.contains("BatchMode"), "{arguments}");
    let killed = Command::new("kill")
        .args(["-KILL", &pid.to_string()])
        .status();
    assert!(killed.unwrap().success());
    gone(pid).await;

    // Its response is lost if it is sent before the loss is seen.
    let cancelled = async {
        while run.cancel(Stopping::Graceful).await.is_err() {
            moment().await;
        }
    };
    timeout(LIMIT, cancelled).await.unwrap();
    let mut ended = false;
    while let Some(line) = timeout(LIMIT, log.next()).await.unwrap() {
        let line = line.unwrap();
        assert_eq!(line.seq(), last + 1);
        last = line.seq();
        ended = line.is_end();
    }
    assert!(ended);
    let started = bridge.started();
    assert_eq!(started.len(), 2);
    assert!(started[1].1.contains("BatchMode=yes"), "{started:?}");
}

#[tokio::test]
async fn slow_readers_of_long_logs_do_not_hold_up_other_requests() {
    let text = "x".repeat(100_000);
    let runs = MemoryService::new(["mock"], move |_: &str| {
        let text = AgentEvent::Text(teamster_core::Text::new(&*text));
        let step = || teamster_testkit::run_service::Step::Emit(text.clone());
        std::iter::repeat_with(step).take(400).collect()
    });
    let bridge = Stand::bridge(&runs);
    let client = bridge.client();
    let subject = Over(client.clone());
    let service: Arc<dyn RunService> = Arc::new(client.clone());
    let run = RunHandle::start(service, "r", subject.run(Behavior::Answers)).await;
    timeout(LIMIT, run.unwrap().result())
        .await
        .unwrap()
        .unwrap();
    // Each reads one entry of 40 MB, and its buffers fill.
    let mut slow: Vec<_> = (0..8).map(|_| client.follow("r", 0)).collect();
    for log in &mut slow {
        timeout(LIMIT, log.next()).await.unwrap().unwrap().unwrap();
    }
    let shown = timeout(LIMIT, client.show("r")).await.unwrap();
    assert_eq!(shown.unwrap().summary.info.run_id, "r");
    drop(slow);
    assert_eq!(bridge.started().len(), 1);
}

#[tokio::test]
async fn connection_obstacle_is_in_the_error() {
    let flood = "yes 'spam' | head -c 200000";
    for (text, kind, words) in [
        (
            "echo 'sh: 1: teamster: not found' >&2; exit 127",
            ClientErrorKind::NoProgram,
            &["teamster was not found (sh: 1: teamster: not found)"][..],
        ),
        (
            "echo \"error: unexpected argument '--stdio' found\" >&2; echo 'try --help' >&2; exit 2",
            ClientErrorKind::NoProgram,
            &["cannot serve over ssh (error: unexpected argument '--stdio' found)"],
        ),
        (
            "echo 'teamster-stdio 2 9.9.9'; exec cat",
            ClientErrorKind::NoProgram,
            &[
                "its teamster 9.9.9 speaks version 2 of the protocol",
                "here version 1",
            ],
        ),
        (
            "echo debug >&2; printf '\\033[31mPermission denied (publickey).\\r\\n' >&2; exit 255",
            ClientErrorKind::LoginFailed,
            &["cannot reach ssh:me@box: [31mPermission denied (publickey)."],
        ),
        (
            "exit 3",
            ClientErrorKind::Unreachable,
            &["ssh ended with the exit status 3"],
        ),
        (
            "echo 'This account is closed.'",
            ClientErrorKind::Unexpected,
            &["printed \"This account is closed.\" and no greeting"],
        ),
        (flood, ClientErrorKind::Unexpected, &["printed \"spam"]),
    ] {
        let stand = Stand::new(text);
        let error = timeout(LIMIT, stand.client().requests()).await.unwrap();
        let error = error.expect_err(text);
        assert_eq!(error.kind, kind, "{text}: {error}");
        let message = error.to_string();
        for word in words {
            assert!(message.contains(word), "{text}: {message}");
        }
        assert!(!message.contains(char::is_control), "{message:?}");
    }
}

#[tokio::test]
async fn requests_that_wait_for_a_login_share_its_failure() {
    let stand = Stand::new(
        "echo $$ >> started; cat gate >/dev/null; echo 'Permission denied (password).' >&2; exit 255",
    );
    let gate = stand.path("gate");
    assert!(
        Command::new("mkfifo")
            .arg(&gate)
            .status()
            .unwrap()
            .success()
    );
    let client = stand.client();
    let attempts = || {
        let text = fs::read_to_string(stand.path("started")).unwrap_or_default();
        text.lines().count()
    };
    // All wait before the login is answered.
    let answer = async {
        loop {
            match pipe::OpenOptions::new().open_sender(&gate) {
                Ok(_closed) => return,
                Err(_) => moment().await,
            }
        }
    };
    let requests = async {
        let (a, b, c) = tokio::join!(client.requests(), client.show("r"), client.requests());
        [a.unwrap_err(), b.unwrap_err(), c.unwrap_err()]
    };
    let (errors, ()) = timeout(LIMIT, Box::pin(async { tokio::join!(requests, answer) }))
        .await
        .unwrap();
    for error in errors {
        assert_eq!(error.kind, ClientErrorKind::LoginFailed, "{error}");
    }
    assert_eq!(attempts(), 1);
}

#[tokio::test]
async fn garbage_behind_the_greeting_is_an_error() {
    let stand =
        Stand::new("echo 'teamster-stdio 1 0.1.0'; echo 'HTTP/1.1 400 Bad Request'; exec cat");
    let client = stand.client().with_reconnect_limit(Duration::ZERO);
    let error = timeout(LIMIT, client.requests())
        .await
        .unwrap()
        .unwrap_err();
    assert_eq!(error.kind, ClientErrorKind::Disconnected, "{error}");
}

/// A call that is given up leaves no process, however it hangs.
#[tokio::test]
async fn a_connection_that_is_given_up_leaves_no_process() {
    let stand = Stand::new("echo $$ > pid; exec sleep 1000");
    let client = stand.client();
    let pid = async {
        loop {
            let pid = fs::read_to_string(stand.path("pid")).unwrap_or_default();
            if let Ok(pid) = pid.trim().parse() {
                return pid;
            }
            moment().await;
        }
    };
    let pid = tokio::select! {
        pid = pid => pid,
        result = client.requests() => panic!("{result:?}"),
    };
    gone(pid).await;
}

#[tokio::test]
async fn a_prompt_waits_for_the_end_of_another_turn() {
    let bridge = Stand::bridge(&runs());
    let client = bridge.client();
    let subject = Over(client.clone());
    let service: Arc<dyn RunService> = Arc::new(client.clone());
    let session = RunHandle::start(service, "s", subject.session().unwrap()).await;
    let session = session.unwrap();
    let (first, _) = session.say("hang").await.unwrap();
    let busy = client.say("s", "next", None, None).await.unwrap_err();
    assert_eq!(busy.code, Some(ProblemCode::SessionBusy));
    let queued = client.queue("s", "next", None, Some("key"));
    let (queued, interrupted) = tokio::join!(queued, session.interrupt(Stopping::Graceful));
    interrupted.unwrap();
    let queued = queued.unwrap();
    assert_eq!((&*first, &*queued.run_id), ("s.1", "s.2"));
    let again = client.queue("s", "next", None, Some("key")).await.unwrap();
    assert_eq!((&*again.run_id, again.known), ("s.2", true));
    session.cancel(Stopping::Graceful).await.unwrap();
    let ended = client.queue("s", "late", None, None).await.unwrap_err();
    let code = ended.code;
    assert!(
        matches!(
            code,
            Some(ProblemCode::RunEnded | ProblemCode::SessionEnding)
        ),
        "{ended}"
    );
}
