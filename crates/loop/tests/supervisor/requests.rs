//! Requests over the socket, and changes of the configuration.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use serde_json::{Value, json};
use teamster_api::agents::{AgentState, Command, ErrorCode, Event, Selection};
use teamster_loop::supervisor::Error;
use teamster_testkit::proc::{is_alive, wait_gone};

use crate::supervisor::LIMIT;
use crate::supervisor::company::{Company, GOOD, of, settings};

#[test]
fn only_this_user_can_reach_it() {
    let company = Company::new([("a", GOOD)]);
    let supervisor = company.supervise();
    let mode = |name: &str| {
        let path = company.own(name);
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    };
    assert_eq!(mode("supervisor.sock"), 0o600);
    assert_eq!(mode("supervisor.json"), 0o600);
    assert_eq!(mode("supervisor.lock"), 0o600);
    assert_eq!(mode(""), 0o700);
    supervisor.end();
}

#[test]
fn the_second_supervisor_is_refused() {
    let company = Company::new([("a", GOOD)]);
    let supervisor = company.supervise();
    let pid = company.running("a");
    let error = company.supervise_with(&settings()).err().unwrap();
    assert!(
        matches!(error, Error::AlreadyRunning { pid: Some(pid), .. } if pid == std::process::id()),
        "{error}"
    );
    assert!(error.to_string().contains("already running in "), "{error}");
    assert_eq!(company.running("a"), pid);
    supervisor.end();
    assert_eq!(company.starts("a"), [pid]);
}

#[test]
fn garbage_is_answered_and_does_no_harm() {
    let company = Company::new([("a", GOOD)]);
    let supervisor = company.supervise();
    let pid = company.running("a");
    let connect = || {
        let stream = UnixStream::connect(company.own("supervisor.sock")).unwrap();
        stream.set_read_timeout(Some(LIMIT)).unwrap();
        stream
    };
    let code = |line: &str| {
        let answer: Value = serde_json::from_str(line).unwrap();
        assert_eq!(answer["result"], "error", "{line}");
        answer["code"].as_str().unwrap().to_owned()
    };

    let mut stream = connect();
    let mut answers = BufReader::new(stream.try_clone().unwrap()).lines();
    for (request, expected) in [
        (&b"hello\n"[..], "bad_request"),
        (b"\xff\xfe\0\n", "bad_request"),
        (b"[]\n", "bad_request"),
        (b"{\"version\":1}\n", "bad_request"),
        (b"{\"version\":1,\"command\":\"explode\"}\n", "bad_request"),
        (b"{\"version\":1,\"command\":\"stop\"}\n", "bad_request"),
        (
            b"{\"version\":99,\"command\":\"explode\"}\n",
            "unsupported_version",
        ),
        (
            b"{\"version\":1,\"command\":\"stop\",\"agents\":[\"a\",\"x\"]}\n",
            "unknown_agent",
        ),
    ] {
        stream.write_all(request).unwrap();
        let answer = answers.next().unwrap().unwrap();
        assert_eq!(
            code(&answer),
            expected,
            "{}",
            String::from_utf8_lossy(request)
        );
    }
    // The same connection still serves requests, even two in one packet and blank lines.
    let status = b"{\"version\":1,\"command\":\"status\"}\n";
    stream
        .write_all(&[status, &b"\r\n\n"[..], status].concat())
        .unwrap();
    for _ in 0..2 {
        let answer: Value = serde_json::from_str(&answers.next().unwrap().unwrap()).unwrap();
        assert_eq!(
            (&answer["result"], &answer["agents"][0]["pid"]),
            (&json!("ok"), &json!(pid))
        );
    }

    // An incomplete request, and an endless one.
    connect().write_all(b"{\"version\":1,\"comm").unwrap();
    let mut endless = connect();
    let written = (0..64).try_for_each(|_| endless.write_all(&[b'x'; 4096]));
    // The connection may be closed before all is written.
    drop(written);
    let mut answer = String::new();
    // Unread data turns the close into a reset.
    let _ = BufReader::new(endless).read_to_string(&mut answer);
    assert_eq!(code(answer.lines().next().unwrap()), "bad_request");

    let silent: Vec<_> = (0..20).map(|_| connect()).collect();
    assert_eq!(company.running("a"), pid);
    drop(silent);
    supervisor.end();
    assert_eq!(company.starts("a"), [pid]);
}

#[test]
fn invalid_requests_are_refused_with_a_code() {
    let company = Company::new([("a", GOOD), ("b", GOOD)]);
    let refused = |command: Command| match company.ask(command).unwrap_err() {
        Error::Refused { code, message } => (code, message),
        other => panic!("{other}"),
    };
    let error = company.ask(Command::Status).unwrap_err();
    assert!(matches!(error, Error::NotRunning { .. }), "{error}");

    let supervisor = company.supervise();
    let (code, message) = refused(Command::Start(of("c")));
    assert_eq!(code, ErrorCode::UnknownAgent);
    assert_eq!(message, "unknown agent \"c\"; available: a, b");
    company.ask(Command::Stop(of("b"))).unwrap();
    company.wait("b", |it| it.state == AgentState::Stopped);
    let (code, message) = refused(Command::Wake(of("b")));
    assert_eq!(code, ErrorCode::NotRunning);
    assert_eq!(message, "b is not running");
    // With `all` the running agents are woken.
    company.ask(Command::Wake(Selection::all())).unwrap();
    supervisor.end();
}

#[test]
fn a_wake_of_a_starting_agent_is_refused() {
    let company = Company::new([("a", "trap '' TERM\nwhile :; do sleep 0.02; done\n")]);
    let mut settings = settings();
    settings.policy.grace = Duration::from_hours(1);
    let supervisor = company.supervise_with(&settings).unwrap();
    company.running("a");
    company.ask(Command::Restart(of("a"))).unwrap();
    let error = company.ask(Command::Wake(of("a"))).unwrap_err();
    assert_eq!(error.to_string(), "a is starting and begins with a tick");
    supervisor.handle.end();
    supervisor.end();
}

#[test]
fn a_dropped_supervisor_releases_its_lock_and_socket() {
    let company = Company::new([("a", GOOD)]);
    let supervisor = company.supervise();
    let pid = company.running("a");
    supervisor.abort();
    let error = company.ask(Command::Status).unwrap_err();
    assert!(matches!(error, Error::NotRunning { .. }), "{error}");
    let supervisor = company.supervise();
    assert_eq!(company.running("a"), pid);
    supervisor.end();
    assert_eq!(company.starts("a"), [pid]);
}

#[test]
fn the_configuration_is_read_again() {
    let company = Company::new([("stays", GOOD), ("changes", GOOD), ("goes", GOOD)]);
    company.add("comes", GOOD);
    let supervisor = company.supervise();
    let before = ["stays", "changes", "goes"].map(|id| company.running(id));

    company.configure(&json!({"agents": "nonsense"}));
    let error = company.ask(Command::Reload).unwrap_err();
    assert!(
        matches!(
            error,
            Error::Refused {
                code: ErrorCode::BadConfig,
                ..
            }
        ),
        "{error}"
    );
    supervisor.handle.reload();
    supervisor.event(
        |it| matches!(it, Event::Warning { message } if message.ends_with("; nothing is changed")),
    );
    assert_eq!(
        ["stays", "changes", "goes"].map(|id| company.running(id)),
        before
    );

    company.configure(&json!({"agents": [
        {"id": "comes"},
        {"id": "stays", "alias": "@stays"},
        {"id": "changes", "runtime": "claude"},
    ]}));
    supervisor.handle.reload();
    supervisor.event(|it| matches!(it, Event::Reloaded { agents: 3 }));
    company.running("comes");
    assert_eq!(company.running("stays"), before[0]);
    assert_eq!(company.agent("stays").alias.as_deref(), Some("@stays"));
    company.wait("changes", |it| it.pid.is_some_and(|pid| pid != before[1]));
    assert!(wait_gone(before[2], LIMIT));
    let status = company.ask(Command::Status).unwrap();
    assert!(status.agents.iter().all(|it| !it.removed));
    let ids: Vec<_> = status.agents.iter().map(|it| &*it.id).collect();
    assert_eq!(ids[..3], ["comes", "stays", "changes"]);
    supervisor.end();
    assert!(!is_alive(before[0]));
    assert_eq!(company.state()["agents"].get("goes"), None);
}

#[test]
fn a_folder_with_a_long_path_has_its_socket_elsewhere() {
    let company = Company::new([]);
    let deep = company.folder(&"x".repeat(150));
    fs::create_dir_all(&deep).unwrap();
    let config = deep.join("agents.config.json");
    fs::write(&config, r#"{"agents": []}"#).unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        use teamster_loop::supervisor::{Client, Supervisor};

        let supervisor = Supervisor::open(&config, settings()).unwrap();
        let handle = supervisor.handle();
        let task = tokio::spawn(supervisor.run(drop));
        let mut client = Client::connect(&config).await.unwrap();
        let status = client.ask(Command::Status).await.unwrap();
        assert_eq!(status.agents, []);
        let state = fs::read(deep.join(".teamster/supervisor.json")).unwrap();
        let state: Value = serde_json::from_slice(&state).unwrap();
        let socket = std::path::PathBuf::from(state["socket"].as_str().unwrap());
        assert!(socket.exists() && !socket.starts_with(&deep));
        let folder = socket.parent().unwrap().to_owned();
        let mode = fs::metadata(&folder).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
        handle.end();
        task.await.unwrap();
        assert!(!socket.exists());
        fs::remove_dir(folder).unwrap();
    });
}
