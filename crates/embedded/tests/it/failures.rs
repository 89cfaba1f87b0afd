//! Failures of services.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use teamster_core::{AgentError, AgentEvent, ErrorCode, ErrorKind, RunStatus, Timeouts};

use crate::stage::{MODELS, Stage, assert_completed};

#[tokio::test(flavor = "multi_thread")]
async fn an_http_error_is_known_by_its_kind_over_every_protocol() {
    use ErrorKind::{Auth, ContextWindow, Invalid, ModelNotFound, Overloaded, Quota, RateLimit};
    for (word, kind) in [
        ("authentication", Auth),
        ("permission", Auth),
        ("rate_limit", RateLimit),
        ("quota", Quota),
        ("server", Overloaded),
        ("overloaded", Overloaded),
        ("unknown_model", ModelNotFound),
        ("context_too_long", ContextWindow),
        ("invalid_request", Invalid),
    ] {
        for model in MODELS {
            let stage = Stage::new(&format!("[[turn]]\nerror = \"{word}\"")).await;
            let mut params = stage.params(model, "Go on.");
            params.cli_retries = Some(0);
            let (result, _) = stage.play(params).await;
            let error = result.error().unwrap();
            assert_eq!(result.status, RunStatus::Failed, "{model} {word}");
            assert_eq!(
                (error.code, error.kind),
                (ErrorCode::CliError, kind),
                "{model} {word}: {error}"
            );
            assert_eq!(error.retryable, kind.is_retryable(), "{model} {word}");
            assert!(error.message.contains("(HTTP "), "{model} {word}: {error}");
            // The service may echo the key, if there is one.
            let has_key = !model.starts_with("ollama/") && !model.starts_with("openai-compatible/");
            assert!(
                !has_key || !error.message.contains("sk-mock-000"),
                "{model} {word}: {error}"
            );
            assert!(result.session_id.is_some(), "{model} {word}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn request_is_repeated_after_its_delay_without_the_half_answer() {
    let limited = "error = { kind = \"rate_limit\", headers = { retry-after-ms = \"40\" } }";
    let cut = "parts = [{ text = [\"This will \", \"be cut\"] }, \"cut\"]";
    let odd = "parts = [{ text = \"odd\" }, { raw = \"data: {\\\"oops\\n\\n\" }]";
    let failed = "parts = [{ text = \"half\" }, { error = \"overloaded\" }]";
    for model in MODELS {
        for (first, kind, withdrawn) in [
            (limited, ErrorKind::RateLimit, false),
            (cut, ErrorKind::Network, true),
            (odd, ErrorKind::Protocol, true),
            (failed, ErrorKind::Overloaded, true),
        ] {
            let script =
                format!("[[turn]]\ntimes = 1\n{first}\n[[turn]]\nparts = [{{ text = \"Well.\" }}]");
            let stage = Stage::new(&script).await;
            let (result, events) = stage.play(stage.params(model, "Try again.")).await;
            assert_completed(&result, &format!("{model} {first}"));
            assert_eq!(result.text, "Well.", "{model} {first}");
            assert!(result.errors.is_empty(), "{model} {first}");
            let retry = events.iter().find_map(|event| match event {
                AgentEvent::Retry(retry) => Some(retry),
                _ => None,
            });
            let retry = retry.unwrap();
            assert_eq!(
                (retry.attempt, retry.error.kind),
                (1, kind),
                "{model} {first}"
            );
            if kind == ErrorKind::RateLimit {
                assert_eq!(retry.delay_ms, Some(40), "{model}");
            }
            let retracted = events
                .iter()
                .any(|event| matches!(event, AgentEvent::Retract(_)));
            assert_eq!(retracted, withdrawn, "{model} {first}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_requested_delay_is_not_waited_for() {
    let stage = Stage::new(
        "[[turn]]\nerror = { kind = \"rate_limit\", headers = { retry-after = \"3600\" } }",
    )
    .await;
    let (result, _) = stage.run("Go on.").await;
    let error = result.error().unwrap();
    assert_eq!(error.retry_after_ms, Some(3_600_000));
    assert_eq!(stage.model.requests().len(), 1);
}

// Made by hand, after the services' messages.
#[tokio::test(flavor = "multi_thread")]
async fn a_time_in_the_message_is_waited_for_like_a_header() {
    for (status, message, kind) in [
        (
            429,
            "Rate limit reached for x. Please try again in 7m12s.",
            ErrorKind::RateLimit,
        ),
        (
            400,
            "You have reached your specified API usage limits. You will regain access on 2227-01-01 at 00:00 UTC.",
            ErrorKind::Quota,
        ),
    ] {
        let stage = Stage::new(&format!(
            "[[turn]]\nerror = {{ kind = \"rate_limit\", status = {status}, body = '{{\"error\":{{\"message\":\"{message}\"}}}}' }}"
        ))
        .await;
        let before = teamster_core::time::epoch_ms();
        let (result, _) = stage.run("Go on.").await;
        let error = result.error().unwrap();
        assert_eq!(error.kind, kind, "{error}");
        assert!(error.resets_at_ms.unwrap() >= before + 432_000, "{error:?}");
        assert_eq!(stage.model.requests().len(), 1, "{error}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn half_an_answer_stays_when_there_is_no_further_attempt() {
    let stage =
        Stage::new("[[turn]]\nparts = [{ text = [\"This will \", \"be cut\"] }, \"cut\"]").await;
    let (result, _) = stage.run("Go on.").await;
    assert_eq!(result.status, RunStatus::Failed);
    assert_eq!(result.text, "This will be cut");
    assert_eq!(result.error().unwrap().kind, ErrorKind::Network);
    assert_eq!(stage.model.requests().len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn missing_service_is_an_error_with_its_address() {
    let stage = Stage::new("[[turn]]\nparts = [{ text = \"Nobody hears this.\" }]").await;
    let mut params = stage.params(MODELS[1], "Is anybody there?");
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://me:secret@{}/v1", free.local_addr().unwrap());
    drop(free);
    params.env.insert("OPENAI_BASE_URL".into(), url);
    let (result, events) = stage.play(params).await;
    let error = result.error().unwrap();
    assert_eq!((error.kind, error.retryable), (ErrorKind::Network, true));
    assert!(
        error.message.starts_with("cannot reach http://127.0.0.1:"),
        "{error}"
    );
    assert!(error.message.contains("Connection refused"), "{error}");
    assert!(!error.message.contains("secret"), "{error}");
    assert!(
        events
            .iter()
            .any(|event| matches!(event, AgentEvent::Retry(_)))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cut_or_refused_answer_is_an_error_with_the_next_step() {
    for model in MODELS {
        for (stop, word) in [("max_tokens", "--max-tokens"), ("refusal", "refused")] {
            let script = format!("[[turn]]\nparts = [{{ text = \"Half\" }}]\nstop = \"{stop}\"");
            let stage = Stage::new(&script).await;
            let (result, _) = stage.play(stage.params(model, "Tell all.")).await;
            assert_eq!(result.status, RunStatus::Failed, "{model} {stop}");
            let error = result.error().unwrap();
            assert_eq!(error.kind, ErrorKind::Invalid, "{model} {stop}");
            assert!(error.message.contains(word), "{model} {stop}: {error}");
            assert_eq!(result.text, "Half", "{model} {stop}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_silent_model_hits_the_limit() {
    let stage = Stage::new("[[turn]]\nparts = [{ text = \"This goes \" }, \"stall\"]").await;
    let mut params = stage.params(MODELS[1], "Say something.");
    params.timeouts = Timeouts::default().idle(Duration::from_millis(300));
    let (result, _) = stage.play(params).await;
    assert_eq!(result.status, RunStatus::TimedOut);
    let error = result.error().unwrap();
    assert_eq!(error.code, ErrorCode::WatchdogTimeout);
    assert_eq!(error.message, "the model sent nothing for 300ms");
    assert_eq!(result.text, "This goes ");
}

#[tokio::test(flavor = "multi_thread")]
async fn limits_of_answers_and_of_costs_hold() {
    let script =
        "[[turn]]\nparts = [{ shell = \"true\" }]\nusage = { input = 400, output = 100 }\n"
            .repeat(5);
    let stage = Stage::new(&script).await;
    let mut params = stage.params(MODELS[1], "Go on.");
    params.max_turns = Some(2);
    let (result, _) = stage.play(params).await;
    assert_eq!(result.error().unwrap().kind, ErrorKind::MaxTurns);
    assert_eq!(result.num_turns, Some(2));

    let stage = Stage::new(&script).await;
    let mut params = stage.params(MODELS[1], "Go on.");
    params.max_budget_usd = Some(0.9);
    let (result, _) = stage.play(params).await;
    let error = result.error().unwrap();
    assert_eq!(error.kind, ErrorKind::Budget);
    assert!(error.budget().is_some());
    assert_eq!(result.num_turns, Some(2), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_empty_answer_is_no_end() {
    let work = "[[turn]]\nparts = [{ shell = \"echo x > made\" }]\n";
    let empty = "[[turn]]\nparts = []\n";
    for model in MODELS {
        let once = empty.replacen("[[turn]]", "[[turn]]\ntimes = 1", 1);
        let script = format!("{work}{once}[[turn]]\nparts = [{{ text = \"Done.\" }}]");
        let stage = Stage::new(&script).await;
        let (result, _) = stage.play(stage.params(model, "Make it.")).await;
        assert_completed(&result, model);
        assert_eq!(result.text, "Done.", "{model}");
        assert!(
            stage
                .request(2)
                .to_string()
                .contains("That answer was empty."),
            "{model}"
        );

        let stage = Stage::new(&format!("{work}{empty}")).await;
        let (result, _) = stage.play(stage.params(model, "Make it.")).await;
        assert_eq!(result.status, RunStatus::Failed, "{model}");
        let error = result.error().unwrap();
        assert_eq!(
            (error.kind, error.retryable),
            (ErrorKind::Protocol, true),
            "{model}"
        );
        assert!(
            error.message.contains("answered twice with nothing"),
            "{model}: {error}"
        );
        assert_eq!(stage.model.requests().len(), 3, "{model}");
    }
}

/// A service that answers each request with this head and body. Returns its address, and counts the requests.
fn service(head: &'static str, body: &'static str) -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    let count = Arc::new(AtomicUsize::new(0));
    let counter = count.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            let (mut line, mut length) = (String::new(), 0);
            while reader.read_line(&mut line).unwrap() > 2 {
                if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                    length = value.trim().parse().unwrap();
                }
                line.clear();
            }
            reader.read_exact(&mut vec![0; length]).unwrap();
            counter.fetch_add(1, Ordering::SeqCst);
            stream
                .write_all(format!("HTTP/1.1 {head}\r\nconnection: close\r\n\r\n{body}").as_bytes())
                .unwrap();
        }
    });
    (url, count)
}

/// Plays a run with a service that answers each request with this head and body. Returns the error, the service's address
/// and the number of requests.
async fn failure(head: &'static str, body: &'static str) -> (AgentError, String, usize) {
    let stage = Stage::new("[[turn]]\nparts = [{ text = \"x\" }]").await;
    let (url, count) = service(head, body);
    let mut params = stage.params(MODELS[4], "Hi");
    params.cli_retries = Some(3);
    params
        .env
        .insert("OPENAI_COMPATIBLE_BASE_URL".into(), url.clone());
    let (result, _) = stage.play(params).await;
    let error = result.error().unwrap().clone();
    (error, url, count.load(Ordering::SeqCst))
}

#[tokio::test(flavor = "multi_thread")]
async fn page_instead_of_an_answer_is_an_error_with_its_address() {
    let (error, url, count) = failure(
        "200 OK\r\ncontent-type: text/html",
        "<html><body>Sign in to the network</body></html>",
    )
    .await;
    assert_eq!((error.kind, error.retryable), (ErrorKind::Protocol, false));
    assert!(error.message.contains("Sign in to the network"), "{error}");
    let origin = format!("(from {url}/chat/completions, content-type: text/html)");
    assert!(error.message.ends_with(&origin), "{error}");
    assert_eq!(count, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redirect_is_an_error_with_the_address_to_set() {
    let (error, url, count) = failure(
        "308 Permanent Redirect\r\nlocation: http://127.0.0.1:9/v2/chat/completions",
        "",
    )
    .await;
    assert_eq!((error.kind, error.retryable), (ErrorKind::Invalid, false));
    assert_eq!(
        error.message,
        format!(
            "the service has moved to http://127.0.0.1:9/v2: set OPENAI_COMPATIBLE_BASE_URL to that \
             (HTTP 308 from {url}/chat/completions)"
        )
    );
    assert_eq!(count, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_without_the_service_is_an_error_with_its_variable() {
    let (error, url, count) = failure("404 Not Found", "{\"detail\":\"Not Found\"}").await;
    assert_eq!((error.kind, error.retryable), (ErrorKind::Invalid, false));
    assert_eq!(
        error.message,
        format!(
            "Not Found: the service is not at this address; correct OPENAI_COMPATIBLE_BASE_URL \
             (HTTP 404 from {url}/chat/completions)"
        )
    );
    assert_eq!(count, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_conversation_that_does_not_fit_is_compacted_once() {
    let work = "[[turn]]\nparts = [{ shell = \"seq 1 9000\" }]\n";
    let full = "error = \"context_too_long\"\n";
    for model in MODELS {
        let done = "[[turn]]\nparts = [{ text = \"Done.\" }]";
        let stage = Stage::new(&format!("{work}[[turn]]\ntimes = 1\n{full}{done}")).await;
        let (result, events) = stage.play(stage.params(model, "Count.")).await;
        assert_completed(&result, model);
        assert_eq!(result.text, "Done.", "{model}");
        let notices = events.iter().filter(|event| match event {
            AgentEvent::Notice(notice) => notice.message.contains("it was compacted from"),
            _ => false,
        });
        assert_eq!(notices.count(), 1, "{model}");
        let length = |number| stage.request(number).to_string().len();
        assert!(
            length(2) + 30_000 < length(1),
            "{model}: {} {}",
            length(1),
            length(2)
        );
        assert!(stage.request(2).to_string().contains("Count."), "{model}");

        let stage = Stage::new(&format!("{work}[[turn]]\n{full}")).await;
        let (result, _) = stage.play(stage.params(model, "Count.")).await;
        assert_eq!(
            result.error().unwrap().kind,
            ErrorKind::ContextWindow,
            "{model}"
        );
        assert_eq!(stage.model.requests().len(), 3, "{model}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn half_an_answer_that_does_not_fit_is_not_part_of_the_session() {
    let script = "[[turn]]\nparts = [{ shell = \"seq 1 9000\" }]\n\
        [[turn]]\ntimes = 1\nparts = [{ text = \"Halfway\" }, { error = \"context_too_long\" }]\n\
        [[turn]]\nparts = [{ text = \"Done.\" }]";
    let stage = Stage::new(script).await;
    let (result, events) = stage.play(stage.params(MODELS[0], "Count.")).await;
    assert_eq!(result.text, "Done.", "{:?}", result.errors);
    let retracted = events
        .iter()
        .any(|event| matches!(event, AgentEvent::Retract(_)));
    assert!(retracted, "{events:?}");
    assert!(!stage.request(2).to_string().contains("Halfway"));
    let id = result.session_id.unwrap();
    let file = stage.state().join(format!("{id}.ndjson"));
    let session = std::fs::read_to_string(file).unwrap();
    assert!(
        session.contains("Done.") && !session.contains("Halfway"),
        "{session}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pause_without_an_answer_is_an_empty_answer() {
    let pause = r#"data: {"type": "message_delta", "delta": {"stop_reason": "pause_turn"}}"#;
    let script = format!("[[turn]]\nparts = [{{ raw = '''{pause}\n\n''' }}, \"cut\"]");
    let stage = Stage::new(&script).await;
    let mut params = stage.params(MODELS[0], "Hi");
    params.max_turns = Some(5);
    let (result, _) = stage.play(params).await;
    let error = result.error().unwrap();
    assert!(
        error.message.contains("answered twice with nothing"),
        "{error}"
    );
    assert_eq!(stage.model.requests().len(), 2);
}
