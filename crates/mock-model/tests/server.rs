//! The server over HTTP.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod breaks;
mod client;

use std::time::{Duration, Instant};

use client::{Connection, ask, conversation, script, server};
use serde_json::{Value, json};
use teamster_mock_model::{Cli, MockModel, MockModelSettings, Protocol};

const HELLO: &str = "[[turn]]\nparts = [{ text = [\"Hel\", \"lo\"] }]\n";

#[tokio::test]
async fn a_streamed_answer_is_complete_and_its_request_is_kept() {
    let model = server(HELLO).await;
    let answer = ask(&model, &conversation(0, true)).await;
    assert_eq!((answer.status, answer.complete), (200, true));
    assert!(answer.head.contains("content-type: text/event-stream"));
    assert!(
        answer.body.starts_with("event: message_start\n"),
        "{answer:?}"
    );
    assert!(answer.body.contains("\"text\":\"Hel\"}"), "{answer:?}");
    assert!(answer.body.ends_with("{\"type\":\"message_stop\"}\n\n"));
    let requests = model.requests();
    let [request] = requests.as_slice() else {
        panic!("{requests:?}");
    };
    assert_eq!(request.method, "POST");
    assert_eq!(request.path, "/v1/messages?beta=true");
    assert_eq!(request.protocol, Some(Protocol::Anthropic));
    assert_eq!(request.cli, Some(Cli::Claude));
    assert_eq!(request.model.as_deref(), Some("m"));
    assert_eq!((request.turn, request.attempt), (Some(0), Some(0)));
    assert_eq!(
        (request.status, &request.body),
        (200, &conversation(0, true))
    );
}

#[tokio::test]
async fn a_connection_serves_one_request_after_another() {
    let model = server(&format!("{HELLO}[[turn]]\nparts = [{{ text = \"Bye\" }}]")).await;
    let mut connection = Connection::to(&model).await;
    for (turn, stream, text) in [(0, true, "Hel"), (1, false, "Bye"), (1, true, "Bye")] {
        connection.ask(&conversation(turn, stream)).await;
        let answer = connection.answer().await.unwrap();
        assert_eq!((answer.status, answer.complete), (200, true));
        assert!(answer.body.contains(text), "{answer:?}");
    }
    connection.send("HEAD", "/", b"").await;
    let (status, _) = connection.head().await.unwrap();
    assert_eq!(status, 200);
    connection.send("GET", "/v1/models", b"").await;
    let answer = connection.answer().await.unwrap();
    assert_eq!(answer.json()["data"][0]["id"], "mock-model");
    let turns: Vec<_> = model.requests().iter().map(|seen| seen.turn).collect();
    assert_eq!(turns, [Some(0), Some(1), Some(1), None, None]);
}

#[tokio::test]
async fn first_requests_fail_and_a_later_one_does_not() {
    let text = format!(
        "[[turn]]\ntimes = 2\nerror = {{ kind = \"rate_limit\", headers = {{ retry-after = \"7\" }} }}\n{HELLO}"
    );
    let model = server(&text).await;
    for attempt in 0..2 {
        let answer = ask(&model, &conversation(0, true)).await;
        assert_eq!(answer.status, 429, "{attempt}");
        assert!(answer.head.contains("retry-after: 7"), "{answer:?}");
        assert_eq!(answer.json()["error"]["type"], "rate_limit_error");
    }
    assert_eq!(ask(&model, &conversation(0, true)).await.status, 200);
    let seen: Vec<_> = model
        .requests()
        .iter()
        .map(|r| (r.attempt, r.status))
        .collect();
    assert_eq!(seen, [(Some(0), 429), (Some(1), 429), (Some(2), 200)]);
}

#[tokio::test]
async fn error_has_the_status_body_and_type_of_the_script() {
    let text = r#"
        [[turn]]
        error = { kind = "server", status = 502, body = "<html>", headers = { content-type = "text/html" } }
    "#;
    let answer = ask(&server(text).await, &conversation(0, true)).await;
    assert_eq!((answer.status, answer.body.as_str()), (502, "<html>"));
    assert!(answer.head.contains("content-type: text/html"));
    assert!(!answer.head.contains("application/json"));
}

#[tokio::test]
async fn the_end_of_a_script_is_reported() {
    let model = server(HELLO).await;
    let answer = ask(&model, &conversation(1, true)).await;
    assert_eq!(answer.status, 400);
    assert_eq!(
        answer.json()["error"]["message"],
        "mock model: the script has no more turns (it has 1)"
    );
}

#[tokio::test]
async fn a_helper_and_a_count_of_tokens_are_no_turns() {
    let model = server(HELLO).await;
    let mut title = conversation(0, false);
    title["output_config"] = json!({"format": {"type": "json_schema", "schema": {
        "type": "object", "properties": {"title": {"type": "string"}}, "required": ["title"],
    }}});
    let answer = ask(&model, &title).await;
    let text = answer.json()["content"][0]["text"].clone();
    let text: Value = serde_json::from_str(text.as_str().unwrap()).unwrap();
    assert!(text["title"].is_string());
    let mut connection = Connection::to(&model).await;
    let body = conversation(0, false).to_string();
    connection
        .send(
            "POST",
            "/v1/messages/count_tokens?beta=true",
            body.as_bytes(),
        )
        .await;
    let answer = connection.answer().await.unwrap();
    assert!(answer.json()["input_tokens"].as_u64().unwrap() > 0);
    assert!(model.requests().iter().all(|seen| seen.turn.is_none()));
}

#[tokio::test]
async fn other_requests_are_reported_as_such() {
    let model = server(HELLO).await;
    let mut connection = Connection::to(&model).await;
    for (method, path) in [
        ("GET", "/nothing"),
        ("GET", "/v1/messages"),
        ("POST", "/api/event"),
    ] {
        connection.send(method, path, b"{}").await;
        let answer = connection.answer().await.unwrap();
        assert_eq!(answer.status, 404, "{method} {path}");
        assert_eq!(answer.json()["error"]["type"], "not_found_error");
    }
    let seen = model.requests();
    assert!(seen.iter().all(|r| r.status == 404 && r.protocol.is_none()));
}

#[tokio::test]
async fn a_body_that_is_no_json_uses_up_no_attempt() {
    let model = server(&format!("[[turn]]\ntimes = 1\nerror = \"server\"\n{HELLO}")).await;
    let mut connection = Connection::to(&model).await;
    connection
        .send("POST", "/v1/messages", b"{\"model\":")
        .await;
    let answer = connection.answer().await.unwrap();
    assert_eq!(answer.status, 400);
    assert_eq!(
        answer.json()["error"]["message"],
        "mock model: the body of the request is not JSON"
    );
    let seen = model.requests();
    assert_eq!(
        (seen[0].status, seen[0].turn, &seen[0].body),
        (400, None, &Value::Null)
    );
    // The connection stays open.
    connection.ask(&conversation(0, true)).await;
    assert_eq!(connection.answer().await.unwrap().status, 500);
}

#[tokio::test]
async fn a_large_request_is_read_and_one_that_is_too_large_is_not() {
    let model = server(HELLO).await;
    let mut body = conversation(0, true);
    body["system"] = "x".repeat(10 * 1024 * 1024).into();
    assert_eq!(ask(&model, &body).await.status, 200);
    let mut connection = Connection::to(&model).await;
    let head = "POST /v1/messages HTTP/1.1\r\nhost: x\r\ncontent-length: 99999999999\r\n\r\n";
    connection.write(head.as_bytes()).await;
    let piece = vec![b' '; 1024 * 1024];
    for _ in 0..65 {
        connection.write(&piece).await;
    }
    let answer = connection.answer().await.unwrap();
    assert_eq!(answer.status, 413);
    assert!(answer.body.contains("larger than 64 MiB"), "{answer:?}");
}

#[tokio::test]
async fn answer_is_not_sent_before_the_delay() {
    let model = server(&format!(
        "[[turn]]\ndelay_ms = 150\n{}",
        &HELLO["[[turn]]\n".len()..]
    ))
    .await;
    let start = Instant::now();
    let mut connection = Connection::to(&model).await;
    connection.ask(&conversation(0, true)).await;
    connection.head().await.unwrap();
    assert!(start.elapsed() >= Duration::from_millis(150));
}

#[tokio::test]
async fn text_comes_in_the_pieces_and_the_time_of_the_script() {
    let text = "[[turn]]\nparts = [{ text = [\"a\", \"b\"] }, { pause_ms = 60 }, { text = \"c\" }]";
    let mut settings = MockModelSettings::default();
    settings.pace = Duration::from_millis(40);
    let model = MockModel::start_with(script(text), settings).await.unwrap();
    let start = Instant::now();
    let mut connection = Connection::to(&model).await;
    connection.ask(&conversation(0, true)).await;
    connection.head().await.unwrap();
    let mut when = Vec::new();
    while let Some(chunk) = connection.chunk().await {
        if chunk.is_empty() {
            break;
        }
        for _ in 0..chunk.matches("text_delta").count() {
            when.push(start.elapsed());
        }
    }
    let [_, b, c] = when.as_slice() else {
        panic!("{when:?}");
    };
    // A busy machine makes things late, never early.
    assert!(*b >= Duration::from_millis(40), "{when:?}");
    assert!(*c >= Duration::from_millis(140), "{when:?}");
}

#[tokio::test]
async fn a_port_that_is_taken_is_named() {
    let model = server(HELLO).await;
    let mut settings = MockModelSettings::default();
    settings.port = model.address().port();
    let error = MockModel::start_with(script(HELLO), settings)
        .await
        .unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::AddrInUse);
    assert!(
        error.to_string().contains(&model.address().to_string()),
        "{error}"
    );
}

#[tokio::test]
async fn requests_can_be_waited_for_and_are_not_in_the_debug_form() {
    let model = server(HELLO).await;
    let mut body = conversation(0, true);
    body["system"] = "a secret".into();
    let ((), answer) = tokio::join!(model.wait_for_requests(1), ask(&model, &body));
    assert_eq!(answer.status, 200);
    assert_eq!(model.requests()[0].body["system"], "a secret");
    let debug = format!("{model:?}");
    assert!(debug.contains("requests: 1"), "{debug}");
    assert!(!debug.contains("secret"), "{debug}");
}
