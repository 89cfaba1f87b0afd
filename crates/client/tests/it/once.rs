//! Starts and prompts with a key, which are repeated and happen once; and the delay that a server asks for.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use teamster_api::{ProblemCode, RunService, RunSpec};
use teamster_client::ClientErrorKind;
use teamster_core::Stopping;

use crate::fake::{Fake, LIMIT, Reply, head, text, view};

fn spec() -> RunSpec {
    RunSpec::new("claude", "x")
}

#[tokio::test]
async fn a_start_whose_response_is_cut_is_repeated_with_the_same_key() {
    let cut = head(201, "application/json", "Content-Length: 99\r\n") + "{";
    let fake = Fake::steps([Reply::raw(cut), Reply::json(201, &view(0))]).await;
    let run = fake.client().start(&spec(), "nightly 1").await.unwrap();
    assert_eq!(run.view.summary.info.run_id, "a");
    let requests = fake.requests();
    assert_eq!(requests.len(), 2);
    assert_eq!(requests[0], requests[1]);
    assert!(
        requests[0].contains("idempotency-key: nightly 1\r\n"),
        "{}",
        requests[0]
    );
}

#[tokio::test]
async fn the_warnings_of_a_start_name_fields_as_rust_does() {
    let mut started: Value = serde_json::from_str(&view(0)).unwrap();
    started["warnings"] = json!(["`fallback` codex ignores `maxBudgetUsd`"]);
    let fake = Fake::steps([Reply::json(201, &started.to_string())]).await;
    let expected = ["`fallback` codex ignores `max_budget_usd`"];
    let client = fake.client();
    let by_key = client.start(&spec(), "key").await.unwrap();
    assert_eq!(by_key.warnings, expected);
    let accepted = RunService::start(&client, "a", spec().into()).await;
    assert_eq!(accepted.unwrap().warnings, expected);
}

#[tokio::test]
async fn a_request_without_a_key_is_sent_once() {
    let fake = Fake::steps([Reply::raw("")]).await;
    let client = fake.client();
    for error in [
        client.say("a", "x", None, None).await.unwrap_err(),
        client.cancel("a", Stopping::Graceful).await.unwrap_err(),
        client.show("a").await.unwrap_err(),
    ] {
        assert_eq!(
            (error.kind, error.retryable),
            (ClientErrorKind::Disconnected, true)
        );
    }
    assert_eq!(fake.requests().len(), 3);
}

#[tokio::test]
async fn a_refusal_is_not_repeated() {
    let fake = Fake::steps([Reply::problem(422, "INVALID_PARAMS")]).await;
    let error = fake.client().start(&spec(), "key").await.unwrap_err();
    assert_eq!(error.code, Some(ProblemCode::InvalidParams));
    assert_eq!(
        (error.to_string(), error.retryable),
        ("because of INVALID_PARAMS".to_owned(), false)
    );
    assert_eq!(fake.requests().len(), 1);
    // Only the caller knows how long a runner may take.
    let fake = Fake::steps([Reply::problem(503, "RUNNER_NOT_RESPONDING")]).await;
    let said = fake.client().say("a", "x", None, Some("key")).await;
    assert!(said.unwrap_err().retryable);
    assert_eq!(fake.requests().len(), 1);
}

#[tokio::test]
async fn a_prompt_that_waited_in_vain_is_sent_again() {
    let busy = Reply::problem(409, "SESSION_BUSY");
    let turn = Reply::json(201, r#"{"runId":"a.2","seq":7}"#);
    let fake = Fake::steps([busy.clone(), busy.clone(), turn]).await;
    let turn = fake.client().queue("a", "x", None, None).await.unwrap();
    assert_eq!((&*turn.run_id, turn.seq), ("a.2", 7));
    let requests = fake.requests();
    assert_eq!(requests.len(), 3);
    let body = r#"{"prompt":"x","queue":true}"#;
    assert!(requests[0].ends_with(body), "{}", requests[0]);
    // Only if that was wanted.
    let fake = Fake::steps([busy]).await;
    let error = fake.client().say("a", "x", None, None).await.unwrap_err();
    assert_eq!(error.code, Some(ProblemCode::SessionBusy));
    assert_eq!(fake.requests().len(), 1);
}

#[tokio::test]
async fn a_delay_that_the_server_asks_for_is_kept() {
    let busy = Reply::refusal(503, "TOO_MANY_CONNECTIONS", "Retry-After: 1\r\n");
    let limited = Reply::with(429, "text/html", "Retry-After: 1\r\n", "<html>");
    for refused in [busy, limited] {
        let begin = Instant::now();
        let fake = Fake::steps([refused.clone(), Reply::json(201, &view(0))]).await;
        let client = fake.client().with_reconnect_limit(LIMIT);
        client.start(&spec(), "key").await.unwrap();
        assert!(
            begin.elapsed() >= Duration::from_secs(1),
            "{:?}",
            begin.elapsed()
        );
        assert_eq!(fake.requests().len(), 2);

        let begin = Instant::now();
        let fake = Fake::steps([refused, Reply::stream(&[text(1)]).open()]).await;
        let client = fake.client().with_reconnect_limit(LIMIT);
        let line = client.follow("a", 0).next().await.unwrap().unwrap();
        assert_eq!(line.seq(), 1);
        assert!(
            begin.elapsed() >= Duration::from_secs(1),
            "{:?}",
            begin.elapsed()
        );
        assert_eq!(fake.requests().len(), 2);
    }
}

#[tokio::test]
async fn a_delay_that_is_too_long_is_an_error_at_once() {
    let away = Reply::with(503, "text/html", "Retry-After: 3600\r\n", "<html>");
    let fake = Fake::steps([away]).await;
    let client = fake.client().with_reconnect_limit(LIMIT);
    let hour = Some(Duration::from_hours(1));
    let begin = Instant::now();
    for error in [
        client.start(&spec(), "key").await.unwrap_err(),
        client.follow("a", 0).next().await.unwrap_err(),
        client.limits().await.unwrap_err(),
    ] {
        assert_eq!(
            (error.retry_after, error.retryable),
            (hour, true),
            "{error}"
        );
    }
    assert!(begin.elapsed() < LIMIT);
    assert_eq!(fake.requests().len(), 3);
}

#[tokio::test]
async fn only_429_and_503_ask_for_a_delay() {
    let fake = Fake::steps([Reply::with(502, "text/html", "Retry-After: 3600\r\n", "")]).await;
    assert_eq!(fake.client().limits().await.unwrap_err().retry_after, None);
}
