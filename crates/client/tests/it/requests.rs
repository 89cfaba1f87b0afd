//! What each call sends.

use teamster_api::history::RunState;
use teamster_api::usage::UsageQuery;
use teamster_api::{Answer, Command, ProblemCode, RunQuery, RunService, RunSpec, ViewState};
use teamster_client::{Client, HistoryQuery};

use crate::calls;
use crate::fake::{Fake, Reply, text, view};

/// Returns the first line of a request, and its body.
fn sent(request: &str) -> String {
    let (head, body) = request.split_once("\r\n\r\n").unwrap();
    let line = head.lines().next().unwrap().trim_end_matches(" HTTP/1.1");
    format!("{line} {body}").trim_end().to_owned()
}

#[tokio::test]
async fn each_call_sends_its_request() {
    let mut found = Vec::new();
    for (name, call) in calls::all() {
        let fake = Fake::steps([Reply::problem(404, "NOT_FOUND")]).await;
        assert!(call(fake.client()).await.is_err(), "{name}");
        let requests = fake.requests();
        assert!(
            requests[0].contains("authorization: Bearer secret\r\n"),
            "{name}"
        );
        let has_body = requests[0].contains("content-type: application/json\r\n");
        assert_eq!(has_body, sent(&requests[0]).contains('{'), "{name}");
        found.extend(requests.iter().map(|request| sent(request)));
    }
    assert_eq!(
        found,
        [
            r#"POST /v1/runs {"provider":"claude","prompt":"x"}"#,
            r#"POST /v1/sessions {"provider":"claude"}"#,
            "GET /v1/runs/a",
            "GET /v1/runs",
            "GET /v1/runs?limit=3",
            "GET /v1/requests",
            "GET /v1/runs/a/events?after=0",
            "GET /v1/runs/a",
            r#"POST /v1/runs/a/cancel {"kill":true}"#,
            r#"POST /v1/requests/a/1 {"decision":"allow"}"#,
            r#"POST /v1/sessions/a/turns {"prompt":"x","from":"me"}"#,
            r#"POST /v1/sessions/a/turns {"prompt":"x","queue":true}"#,
            r#"POST /v1/sessions/a/steer {"text":"x"}"#,
            r#"POST /v1/sessions/a/interrupt {"kill":false}"#,
            "POST /v1/sessions/a/clear {}",
            r#"PATCH /v1/sessions/a {"model":"opus"}"#,
            "GET /v1/events",
            "GET /v1/history",
            "GET /v1/history/a",
            "POST /v1/history/forget {}",
            "GET /v1/usage",
            "GET /v1/limits",
            "GET /v1/providers",
            "GET /v1/agents",
            r#"POST /v1/agents/wake {"agents":["a"]}"#,
            "GET /v1/agents/a/log?lines=5",
        ]
    );
}

#[tokio::test]
async fn requests_have_the_place_in_a_trace_that_is_set() {
    let fake = Fake::steps([Reply::problem(404, "NOT_FOUND")]).await;
    let parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let client = fake.client().with_trace(parent, Some("no\nheader"));
    client.runs(&RunQuery::default()).await.unwrap_err();
    let request = &fake.requests()[0];
    assert!(
        request.contains(&format!("traceparent: {parent}\r\n")),
        "{request}"
    );
    assert!(!request.contains("tracestate"), "{request}");
}

#[tokio::test]
async fn a_query_has_what_is_set() {
    let fake = Fake::steps([Reply::problem(404, "NOT_FOUND")]).await;
    let client = fake.client();
    let mut runs = RunQuery::default();
    (runs.state, runs.live, runs.since) = (Some(ViewState::Waiting), true, Some(5));
    client.runs(&runs).await.unwrap_err();
    let mut history = HistoryQuery::default();
    history.directory = Some("/code/a b".into());
    history.status = Some(RunState::Success);
    client.history(&history).await.unwrap_err();
    let mut usage = UsageQuery::default();
    usage.since = Some("2026-11-01T00:00:00Z".to_owned());
    usage.models = true;
    client.usage(&usage).await.unwrap_err();
    let requests = fake.requests();
    let found: Vec<_> = requests.iter().map(|request| sent(request)).collect();
    assert_eq!(
        found,
        [
            "GET /v1/runs?state=waiting&live=true&since=5",
            "GET /v1/history?status=success&directory=%2Fcode%2Fa%20b",
            "GET /v1/usage?since=2026%2D11%2D01T00%3A00%3A00Z&models=true",
        ]
    );
}

#[tokio::test]
async fn lists_follow_their_cursors_up_to_the_limit() {
    let page = |next: Option<&str>| {
        let run: serde_json::Value = serde_json::from_str(&view(0)).unwrap();
        let mut page = serde_json::json!({"runs": [run, run]});
        if let Some(next) = next {
            page["next"] = next.into();
        }
        Reply::json(200, &page.to_string())
    };
    for (limit, expected) in [
        (
            usize::MAX,
            &[
                "GET /v1/runs?limit=1000",
                "GET /v1/runs?limit=1000&cursor=c%2F1",
            ][..],
        ),
        (
            3,
            &["GET /v1/runs?limit=3", "GET /v1/runs?limit=1&cursor=c%2F1"],
        ),
        (2, &["GET /v1/runs?limit=2"]),
    ] {
        let fake = Fake::steps([page(Some("c/1")), page(None)]).await;
        let runs = fake
            .client()
            .all_runs(RunQuery::default(), limit)
            .await
            .unwrap();
        assert_eq!(runs.len(), limit.min(4));
        let requests = fake.requests();
        let found: Vec<_> = requests.iter().map(|request| sent(request)).collect();
        assert_eq!(found, expected);
    }
}

#[tokio::test]
async fn unsendable_request_is_an_error_before_sending() {
    let fake = Fake::steps([Reply::json(200, &view(0))]).await;
    let client = fake.client();
    let spec = RunSpec::new("claude", "x");
    for key in ["", "a\nb", "ü"] {
        let error = client.start(&spec, key).await.unwrap_err();
        assert_eq!(error.parameter.as_deref(), Some("key"), "{error}");
    }
    for id in ["", ".", ".."] {
        assert_eq!(
            client.show(id).await.unwrap_err().parameter.as_deref(),
            Some("id")
        );
        let error = client.follow(id, 0).next().await.unwrap_err();
        assert_eq!(error.parameter.as_deref(), Some("id"));
        let request = format!("{id}/1");
        let error = client.answer(&request, &Answer::Allow).await.unwrap_err();
        assert_eq!(error.parameter.as_deref(), Some("id"));
    }
    let error = client.answer("1", &Answer::Allow).await.unwrap_err();
    assert_eq!(error.parameter.as_deref(), Some("request_id"));
    assert!(fake.requests().is_empty());
    client.show("a/b ü?").await.unwrap();
    assert_eq!(sent(&fake.requests()[0]), "GET /v1/runs/a%2Fb%20%C3%BC%3F");
}

#[tokio::test]
async fn a_server_may_be_below_a_path_or_at_a_socket() {
    let fake = Fake::steps([Reply::json(200, &view(0))]).await;
    let below = Client::new(&format!("{}/teamster/", fake.url), Some("secret\n")).unwrap();
    below.show("a").await.unwrap();
    let request = &fake.requests()[0];
    assert_eq!(sent(request), "GET /teamster/v1/runs/a");
    assert!(
        request.contains("authorization: Bearer secret\r\n"),
        "{request}"
    );

    let folder = tempfile::tempdir().unwrap();
    let fake = Fake::unix(&folder.path().join("s"), |_, _| {
        Reply::stream(&[text(1)]).open()
    });
    let client = Client::new(&fake.url, None).unwrap();
    let line = client.follow("a", 0).next().await.unwrap().unwrap();
    assert_eq!(line.seq(), 1);
    assert!(!fake.requests()[0].contains("authorization"));
}

#[tokio::test]
async fn unknown_status_is_not_that_of_an_ended_run() {
    for (state, code) in [
        ("running", ProblemCode::Unsupported),
        ("ended", ProblemCode::RunEnded),
    ] {
        let view = view(7).replace("running", state);
        let fake = Fake::steps([Reply::json(200, &view)]).await;
        let refused = fake.client().send("a", Command::Status).await.unwrap_err();
        assert_eq!(refused.code, Some(code), "{refused}");
    }
}
