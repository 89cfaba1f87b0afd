//! Usage figures from the session's record.

use serde_json::{Value, json};
use teamster_core::provider::Exit;
use teamster_core::{AgentEvent, ExecuteParams, RunResult, RunStatus};
use teamster_testkit::events::tokens;

use super::super::CopilotDecoder;
use super::{SESSION, assert_types, decode, line, message, result, run};

fn recorded(agent: Option<&str>, usage: &Value) -> String {
    let mut line = json!({"type": "session.usage_record", "data": {"usage": usage}, "id": "x"});
    if let Some(agent) = agent {
        line["agentId"] = json!(agent);
    }
    line.to_string()
}

fn run_with(record: Vec<String>, lines: &[String]) -> RunResult {
    let exit = Exit {
        code: Some(0),
        record,
        ..Exit::default()
    };
    decode(CopilotDecoder::new(), lines, exit).1
}

fn call(finish_reason: &str) -> Value {
    json!({"model": "gpt", "inputTokens": 9608, "outputTokens": 21, "cacheReadTokens": 4096,
           "cacheWriteTokens": 512, "reasoningTokens": 7, "duration": 100, "cost": 0.0,
           "finishReason": finish_reason, "contentFilterTriggered": false})
}

#[test]
fn sub_agent_requests_count_but_do_not_end_the_answer() {
    let mut inner = call("length");
    inner["model"] = json!("small");
    let record = vec![
        recorded(None, &call("tool_calls")),
        recorded(None, &call("stop")),
        recorded(Some("A"), &inner),
    ];
    let done = run_with(record, &[message("a", "x"), result(0)]);
    assert_eq!(done.status, RunStatus::Completed);
    assert_eq!(done.stop_reason.as_deref(), Some("stop"));
    assert_eq!(done.usage.unwrap().output_tokens, Some(63));
    assert_eq!(done.usage_by_model["small"].usage.output_tokens, Some(21));
}

/// Returns the totals of a session, as versions before 1.0.102 record them at the end of each run.
fn shutdown(input: u64, output: u64) -> String {
    json!({"type": "session.shutdown", "data": {"modelMetrics": {"gpt": {"requests": {"count": 2},
           "usage": {"inputTokens": input, "outputTokens": output, "cacheReadTokens": 40,
                     "cacheWriteTokens": 0, "reasoningTokens": 0}}}}})
    .to_string()
}

#[test]
fn usage_without_single_requests_is_the_increase_of_the_totals() {
    let start = json!({"type": "session.start", "data": {}}).to_string();
    let of_new = run_with(vec![start, shutdown(140, 9)], &[result(0)]);
    let usage = of_new.usage.unwrap();
    assert_eq!(tokens(Some(usage)), Some((100, 9)));
    assert_eq!(
        (usage.cache_read_tokens, usage.reasoning_tokens),
        (Some(40), None)
    );
    assert_eq!(of_new.usage_by_model["gpt"].usage, usage);

    let dir = tempfile::tempdir().unwrap();
    let mut params = ExecuteParams::new("x");
    params
        .env
        .insert("COPILOT_HOME".into(), dir.path().to_str().unwrap().into());
    params.session_id = Some(SESSION.into());
    let resumed = |params: &ExecuteParams| {
        let exit = Exit {
            code: Some(0),
            record: vec![shutdown(200, 20)],
            ..Exit::default()
        };
        decode(CopilotDecoder::for_run(params), &[result(0)], exit).1
    };
    // The earlier usage is unknown.
    assert_eq!(resumed(&params).usage, None);
    let record = dir.path().join("session-state").join(SESSION);
    std::fs::create_dir_all(&record).unwrap();
    std::fs::write(record.join("events.jsonl"), shutdown(140, 9)).unwrap();
    assert_eq!(tokens(resumed(&params).usage), Some((60, 11)));
    // A version that records requests has both.
    let both = vec![recorded(None, &call("stop")), shutdown(200, 20)];
    assert_eq!(
        run_with(both, &[result(0)]).usage.unwrap().output_tokens,
        Some(21)
    );
}

#[test]
fn no_record_means_no_figures_and_not_0() {
    let done = run_with(Vec::new(), &[message("a", "x"), result(0)]);
    assert_eq!((done.usage, done.stop_reason), (None, None));
    assert!(done.usage_by_model.is_empty());
    let broken = vec!["{".to_owned(), recorded(None, &json!([]))];
    assert_eq!(run_with(broken, &[result(0)]).usage, None);
}

#[test]
fn words_about_the_record_are_no_figures() {
    let text = message("a", "see session.usage_record");
    let record = vec![recorded(None, &call("stop")), text];
    let done = run_with(record, &[message("a", "x"), result(0)]);
    assert_eq!(done.stop_reason.as_deref(), Some("stop"));
    assert_eq!(done.usage.unwrap().output_tokens, Some(21));
}

#[test]
fn figures_that_are_missing_are_absent() {
    let done = run_with(
        vec![recorded(
            None,
            &json!({"model": "m", "outputTokens": 3, "inputTokens": "many"}),
        )],
        &[message("a", "x"), result(0)],
    );
    let usage = done.usage.unwrap();
    assert_eq!((usage.input_tokens, usage.output_tokens), (None, Some(3)));
    assert_eq!(usage.cache_read_tokens, None);
}

#[test]
fn cut_off_or_blocked_answer_fails_with_exit_code_0() {
    // Recorded: `length` and `content_filter`.
    let record = vec![
        recorded(None, &call("stop")),
        recorded(None, &call("refusal")),
    ];
    let done = run_with(record, &[message("a", "x"), result(0)]);
    assert_eq!(done.status, RunStatus::Failed);
    assert!(done.errors[0].message.contains("refused"));
    assert_eq!(done.stop_reason.as_deref(), Some("refusal"));
    // The model continued and finished.
    let record = vec![
        recorded(None, &call("length")),
        recorded(None, &call("stop")),
    ];
    let done = run_with(record, &[message("a", "x"), result(0)]);
    assert_eq!(done.status, RunStatus::Completed);
    // A run that failed anyway has one error.
    let done = run_with(vec![recorded(None, &call("length"))], &[result(1)]);
    assert_eq!(done.errors.len(), 1);
}

#[test]
fn figures_that_a_version_prints_are_shown_as_they_come() {
    let printed = || line("assistant.usage", &call("stop"));
    let (events, done) = run(&[printed(), printed(), message("a", "x"), result(0)]);
    assert_types(&events[..3], "usage usage text");
    let AgentEvent::Usage(report) = &events[1] else {
        panic!("{events:?}")
    };
    assert_eq!(report.usage.output_tokens, Some(42));
    assert_eq!(done.usage.unwrap().input_tokens, Some(10_000));
}

#[test]
fn the_state_of_a_quota_is_a_rate_limit() {
    let (events, _) = run(&[line(
        "session.quota_observation",
        &json!({"observation": {"accessState": "allowed", "quotaId": "premium",
                "entitledQuantity": 300, "availableQuantity": 75}}),
    )]);
    let AgentEvent::RateLimit(limit) = &events[0] else {
        panic!("{events:?}")
    };
    assert_eq!(
        (limit.status.as_str(), limit.kind.as_deref()),
        ("allowed", Some("premium"))
    );
    assert_eq!(limit.utilization, Some(0.75));
}

/// Made by hand: JavaScript cuts a text inside a character.
#[test]
fn half_a_character_loses_no_totals() {
    let start = json!({"type": "session.start", "data": {}}).to_string();
    let shutdown = shutdown(140, 9).replace("gpt", "\\ud83d");
    let done = run_with(vec![start, shutdown], &[result(0)]);
    let usage = done.usage_by_model["\u{fffd}"].usage;
    assert_eq!(usage.output_tokens, Some(9));
}
