//! A server that is killed and started again: watchers go on behind the last entry that they have.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;

use nix::sys::signal::Signal;

use super::Machine;
use crate::cli::serve::client::Served;
use crate::cli::{Claude, Running, run, teamster};

#[test]
fn a_watcher_goes_on_where_it_was_when_the_server_was_killed() {
    let claude = Claude::silent();
    let mut machine = Machine::new(claude.path("").as_path(), &claude.path("claude"));
    let started = run(&mut machine.remote(["run", "-d", "claude", "x"]));
    let id = started.stdout.trim_end().to_owned();

    let mut watcher = Running::start(&mut machine.remote(["attach", &id, "--json"]));
    // The connection is there.
    let mut seen = watcher.until(r#""type":"text""#);
    machine.served.running.signal(Signal::SIGKILL);
    machine.served.running.wait();
    let address = machine.served.address.clone();
    let environment = machine.environment.clone();
    machine.served = Served::start_at(&address, &machine.state, |command| {
        command.envs(environment.clone());
    });
    run(&mut machine.remote(["cancel", &id])).ok();
    let ended = watcher.end();
    assert_eq!((ended.code, &*ended.stderr), (Some(130), ""));
    seen += &ended.stdout;
    let log = machine
        .state
        .join(format!("teamster/runs/{id}/events.ndjson"));
    assert_eq!(seen, fs::read_to_string(log).unwrap());
}

#[test]
fn a_log_that_breaks_off_names_the_command_that_goes_on() {
    // Made by hand: a run, and the problem of a server whose runner does not reply.
    let run_view = r#"{"runId":"r","kind":"run","provider":"claude","acceptedAt":1,"state":"running","seq":1,"requests":[]}"#;
    let problem = r#"{"type":"about:blank","title":"","status":503,"code":"RUNNER_NOT_RESPONDING","detail":"no reply"}"#;
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let server = std::thread::spawn(move || {
        loop {
            let (mut stream, _) = listener.accept().unwrap();
            let mut head = [0; 4096];
            let length = stream.read(&mut head).unwrap();
            let is_log = String::from_utf8_lossy(&head[..length]).contains("/events");
            let (status, media, body) = if is_log {
                (
                    "503 Service Unavailable",
                    "application/problem+json",
                    problem,
                )
            } else {
                ("200 OK", "application/json", run_view)
            };
            let length = body.len();
            write!(
                stream,
                "HTTP/1.1 {status}\r\nContent-Type: {media}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
            )
            .unwrap();
            if is_log {
                return;
            }
        }
    });
    let mut command = teamster(["--remote", &url, "attach", "r", "--after", "3"]);
    let ended = run(command.env("TEAMSTER_REMOTE_TOKEN", "tms_0123456789abcdef"));
    server.join().unwrap();
    assert_eq!((ended.code, &*ended.stdout), (Some(1), ""));
    let expected = format!(
        "error: no reply; the run continues: resume with `teamster --remote {url} attach r --after 3`\n"
    );
    assert!(ended.stderr.ends_with(&expected), "{}", ended.stderr);
}
