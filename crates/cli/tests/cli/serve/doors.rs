//! Where the server listens beside TCP, and the agents of a supervisor.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::Path;

use nix::sys::signal::Signal;
use serde_json::json;

use super::client::Served;
use crate::cli::{Claude, Running, teamster};

/// The response of a server at this socket to a request without a token.
fn ask(socket: &Path, head: &str) -> String {
    let mut stream = UnixStream::connect(socket).unwrap();
    let head = format!("{head} HTTP/1.1\r\nHost: anything\r\nConnection: close\r\n\r\n");
    stream.write_all(head.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn a_unix_socket_is_for_its_owner_who_needs_no_token() {
    let claude = Claude::plays("text", 0);
    let socket = claude.path("api.sock");
    let address = format!("unix:{}", socket.display());
    let serve = || {
        let mut command = teamster(["serve", "--listen", &address]);
        Running::start(command.env("XDG_STATE_HOME", claude.path("state")))
    };
    let mut running = serve();
    assert_eq!(running.line().trim_end(), address);
    assert_eq!(
        fs::metadata(&socket).unwrap().permissions().mode() & 0o777,
        0o600
    );
    let answer = ask(&socket, "GET /v1/runs");
    assert!(
        answer.starts_with("HTTP/1.1 200") && answer.ends_with("{\"runs\":[]}"),
        "{answer}"
    );
    // Another one does not take it away.
    serve().end().fails(1, "is in use");
    // What a server that was killed has left is replaced; one that ends removes it.
    running.signal(Signal::SIGKILL);
    running.wait();
    assert!(socket.exists());
    let mut running = serve();
    assert_eq!(running.line().trim_end(), address);
    assert!(ask(&socket, "GET /healthz").starts_with("HTTP/1.1 200"));
    running.signal(Signal::SIGTERM);
    running.end().ok();
    assert!(!socket.exists());
    // A file that is no socket is left alone.
    fs::write(&socket, "mine").unwrap();
    let ended = serve().end();
    assert_eq!(
        (ended.code, fs::read_to_string(&socket).unwrap()),
        (Some(1), "mine".to_owned())
    );
    ended.stderr_has("not a socket");
}

#[test]
fn a_port_that_is_taken_is_an_error() {
    let claude = Claude::plays("text", 0);
    let served = Served::of(&claude, &[]);
    super::about(&claude, ["serve", "--listen", &served.address]).only_says(1, "is in use");
    for wrong in ["127.0.0.1", "unix:", "example.com:80"] {
        assert_eq!(
            super::about(&claude, ["serve", "--listen", wrong]).code,
            Some(2),
            "{wrong}"
        );
    }
}

#[test]
fn agents_are_those_of_the_configuration() {
    let claude = Claude::plays("text", 0);
    let served = Served::of(&claude, &[]);
    assert_eq!(served.get("/v1/agents").json()["agents"], json!([]));
    served
        .request("POST", "/v1/agents/qa/stop")
        .send()
        .is_problem(404, "AGENT_NOT_FOUND");
    served.end();
    let file = claude.path("agents.config.json");
    fs::create_dir_all(claude.path("agents/qa")).unwrap();
    fs::write(&file, r#"{"agents": [{"id": "qa"}]}"#).unwrap();
    let served = Served::of(&claude, &["--agents", file.to_str().unwrap()]);
    let agents = served.get("/v1/agents").json();
    assert_eq!(
        (&agents["agents"][0]["id"], &agents["agents"][0]["state"]),
        (&"qa".into(), &"stopped".into())
    );
    served
        .request("POST", "/v1/agents/qa/stop")
        .send()
        .is_problem(503, "SUPERVISOR_NOT_RUNNING");
    served
        .get("/v1/agents/other/log")
        .is_problem(404, "AGENT_NOT_FOUND");
    assert_eq!(served.get("/v1/agents/qa/log").body, "");
    let log = teamster::agent_loop::supervisor::log_path(&claude.path("agents/qa"));
    fs::create_dir_all(log.parent().unwrap()).unwrap();
    fs::write(log, format!("{}\none\ntwo\n", "x".repeat(300_000))).unwrap();
    assert_eq!(served.get("/v1/agents/qa/log").body, "one\ntwo\n");
    let last = served.get("/v1/agents/qa/log?lines=1");
    assert_eq!(last.body, "two\n");
    assert_eq!(
        last.header("content-type"),
        Some("text/plain; charset=utf-8")
    );
    served
        .request("POST", "/v1/agents/qa/dance")
        .send()
        .is_problem(404, "NOT_FOUND");
}
