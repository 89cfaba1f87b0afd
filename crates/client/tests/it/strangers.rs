//! Servers that are not one of teamster: each call has an error of the right kind, soon.

use std::time::Duration;

use teamster_client::ClientErrorKind::{Disconnected, Refused, TimedOut, Unexpected, Unreachable};
use teamster_client::{Client, ClientErrorKind};
use tokio::time::timeout;

use crate::calls::{self, COMMANDS, STREAMS};
use crate::fake::{Fake, LIMIT, Reply, head};

/// Checks that each call but these fails with an error of this kind.
async fn each_fails(what: &str, reply: Reply, kind: ClientErrorKind, but: &[&str]) {
    let fake = Fake::steps([reply]).await;
    for (name, call) in calls::all() {
        if but.contains(&name) {
            continue;
        }
        // One that knows nothing of the server.
        let result = timeout(LIMIT, call(fake.client())).await;
        let result = result.unwrap_or_else(|_| panic!("{what}, {name}: it takes too long"));
        let Err(error) = result else {
            panic!("{what}, {name}: no error");
        };
        assert_eq!(error.kind, kind, "{what}, {name}: {error}");
        assert!(!error.to_string().contains("secret"), "{error}");
    }
}

#[tokio::test]
async fn each_call_at_another_program_has_an_error() {
    let html = || Reply::new(200, "text/html", "<!doctype html>");
    let cut = head(200, "application/json", "Content-Length: 99\r\n") + "{";
    let no_body = [&STREAMS[..], &COMMANDS, &["agent_log"]].concat();
    let not_text = [&STREAMS[..], &["agent_log"]].concat();
    for (what, reply, kind, but) in [
        ("an HTML page", html(), Unexpected, &[][..]),
        ("no media type", Reply::new(200, "", "{}"), Unexpected, &[]),
        (
            "a redirect",
            Reply::with(302, "text/html", "Location: http://127.0.0.1:9/\r\n", ""),
            Unexpected,
            &[],
        ),
        (
            "JSON of another program",
            Reply::json(200, r#"{"status":"ok"}"#),
            Unexpected,
            &no_body,
        ),
        (
            "JSON that is no object",
            Reply::json(200, "null"),
            Unexpected,
            &no_body,
        ),
        ("no JSON", Reply::json(200, "<html>"), Unexpected, &no_body),
        ("an empty body", Reply::json(200, ""), Unexpected, &no_body),
        (
            "a page that is not found",
            Reply::new(404, "text/html", "<html>"),
            Unexpected,
            &[],
        ),
        (
            "an error of another program",
            Reply::json(400, r#"{"code":5,"detail":{}}"#),
            Unexpected,
            &[],
        ),
        ("an empty error", Reply::json(403, ""), Unexpected, &[]),
        (
            "a proxy without a server",
            Reply::new(502, "text/html", "<html>"),
            Unexpected,
            &[],
        ),
        (
            "a code of a later version",
            Reply::problem(409, "NEW_CODE"),
            Refused,
            &[],
        ),
        (
            "a port of TLS",
            Reply::raw([21, 3, 1, 0, 2, 2, 70]),
            Unexpected,
            &[],
        ),
        (
            "another protocol",
            Reply::raw("SSH-2.0-OpenSSH_9.6\r\n"),
            Unexpected,
            &[],
        ),
        ("a port that closes", Reply::raw(""), Disconnected, &[]),
        (
            "a body that is cut",
            Reply::raw(cut),
            Disconnected,
            &not_text,
        ),
    ] {
        each_fails(what, reply, kind, but).await;
    }
}

#[tokio::test]
async fn each_call_has_a_limit_of_time() {
    let silent = Reply::raw("").open();
    let slow_body = head(200, "application/json", "Content-Length: 99\r\n") + "{";
    let slow_body = Reply::raw(slow_body).open();
    // Pages of a log, which replace a silent stream, wait longer.
    let not_json = [&STREAMS[..], &["agent_log"]].concat();
    for (reply, but) in [(silent, &["follow"][..]), (slow_body, &not_json)] {
        let fake = Fake::steps([reply]).await;
        for (name, call) in calls::all() {
            if but.contains(&name) {
                continue;
            }
            let client = fake.client().with_response_limit(Duration::from_millis(50));
            let error = timeout(LIMIT, call(client)).await.unwrap().unwrap_err();
            assert_eq!(error.kind, TimedOut, "{name}: {error}");
        }
    }
}

#[tokio::test]
async fn an_address_without_a_server_is_an_error_at_once() {
    // The port is free again as soon as the server is gone.
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    for url in [format!("http://{address}"), "unix:/no/such.sock".to_owned()] {
        for (name, call) in calls::all() {
            let client = Client::new(&url, Some("secret")).unwrap();
            let error = timeout(LIMIT, call(client)).await.unwrap().unwrap_err();
            assert_eq!(error.kind, Unreachable, "{url} {name}: {error}");
        }
    }
}
