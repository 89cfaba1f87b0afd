//! Tools, errors, usage and the ends of turns.

use serde_json::{Value, json};
use teamster_core::provider::{Activity, Decoder, Events, Phase, RunAssembler};
use teamster_core::{AgentEvent, ErrorKind, Notice, NoticeCode, RunStatus};
use teamster_testkit::events::payloads;

use super::super::ClaudeDecoder;
use super::{SESSION, assert_types, complete, end, init, names, run, start, stream, user};

#[test]
fn overcome_error_is_a_notice_and_a_slash_command_is_text() {
    let synthetic = |error: Value| {
        json!({"type": "assistant", "message": {"id": "s", "model": "<synthetic>",
            "content": [{"type": "text", "text": "answer"}]}, "error": error, "session_id": SESSION})
        .to_string()
    };
    let (events, result) = run(&[
        init(),
        synthetic(json!("server_error")),
        start("b"),
        end(&json!({"result": "ok"})),
    ]);
    assert_types(&events, "session notice text turn_end done");
    assert_eq!(result.status, RunStatus::Completed);

    let (_, result) = run(&[
        init(),
        synthetic(Value::Null),
        end(&json!({"result": "answer"})),
    ]);
    assert_eq!(result.text, "answer");

    let (_, result) = run(&[
        init(),
        synthetic(json!("rate_limit")),
        end(&json!({"is_error": true, "result": "answer", "api_error_status": 429})),
    ]);
    assert_eq!((result.text.as_str(), result.errors.len()), ("", 1));
    assert_eq!(result.errors[0].kind, ErrorKind::RateLimit);
}

#[test]
fn a_limit_of_the_account_is_a_quota_with_its_reset() {
    let limit = json!({"type": "rate_limit_event", "rate_limit_info": {"status": "rejected",
        "resetsAt": 1_800_000_000, "rateLimitType": "five_hour", "utilization": 1.0}});
    let (events, result) = run(&[
        init(),
        limit.to_string(),
        end(&json!({"is_error": true, "result": "You've hit your limit", "api_error_status": 429})),
    ]);
    assert_types(&events, "session rate_limit error turn_end done");
    assert_eq!(result.errors[0].kind, ErrorKind::Quota);
    assert_eq!(result.errors[0].resets_at_ms, Some(1_800_000_000_000));
    assert!(!result.errors[0].retryable);
}

#[test]
fn totals_that_begin_again_are_carried_on() {
    let used = |tokens: u64| json!({"m": {"inputTokens": tokens}});
    let (events, result) = run(&[
        init(),
        end(&json!({"modelUsage": used(100), "total_cost_usd": 1.0})),
        end(&json!({"modelUsage": used(10), "total_cost_usd": 0.25})),
    ]);
    let AgentEvent::TurnEnd(second) = &events[2] else {
        panic!("{events:?}")
    };
    assert_eq!(second.usage.unwrap().input_tokens, Some(10));
    assert_eq!(second.cost_usd, Some(0.25));
    assert_eq!(result.usage.unwrap().input_tokens, Some(110));
    assert_eq!(result.total_cost_usd, Some(1.25));
}

#[test]
fn a_turn_that_broke_off_after_it_asked_the_model_was_not_free() {
    let nothing = json!({"is_error": true, "result": "lost", "total_cost_usd": 0.0,
        "usage": {"input_tokens": 0, "output_tokens": 0}, "modelUsage": {}});
    let (_, result) = run(&[init(), start("a"), end(&nothing)]);
    assert_eq!((result.usage, result.total_cost_usd), (None, None));
    // No request was sent.
    let (_, result) = run(&[init(), end(&nothing)]);
    assert_eq!(result.total_cost_usd, Some(0.0));
    assert_eq!(result.usage.unwrap().input_tokens, Some(0));
}

#[test]
fn the_end_of_a_turn_is_never_lost_for_one_odd_field() {
    let (_, result) = run(&[
        init(),
        end(
            &json!({"result": "ok", "errors": null, "permission_denials": null,
            "modelUsage": null, "api_error_status": "none", "usage": [], "num_turns": 1.5}),
        ),
    ]);
    assert_eq!(result.status, RunStatus::Completed);
    assert_eq!(result.text, "ok");
    assert_eq!(result.num_turns, None);
}

#[test]
fn the_answer_of_an_earlier_turn_is_not_that_of_a_failed_one() {
    let (_, result) = run(&[
        init(),
        end(&json!({"result": "one"})),
        complete("b", &json!({"type": "text", "text": "half"})),
        end(&json!({"is_error": true, "result": "lost"})),
    ]);
    assert_eq!(result.final_message.as_deref(), Some("half"));
}

#[test]
fn a_sub_agent_does_not_speak_for_the_main_agent() {
    let synthetic = json!({"type": "assistant", "message": {"id": "s", "model": "<synthetic>",
        "content": [{"type": "text", "text": "refused"}]}, "parent_tool_use_id": "t",
        "error": "rate_limit", "session_id": SESSION});
    let (events, result) = run(&[
        init(),
        synthetic.to_string(),
        end(&json!({"is_error": true, "result": "something new"})),
    ]);
    assert_eq!(names(&events)[1], "notice");
    assert_eq!(result.text, "");
    assert_eq!(result.errors[0].kind, ErrorKind::Internal);
}

#[test]
fn work_in_the_background_is_waited_for() {
    let mut decoder = ClaudeDecoder::new();
    let mut out = Events::new();
    let mut line = |line: Value| {
        decoder.line(line.to_string().as_bytes(), &mut out);
        decoder.activity()
    };
    let done = json!({"type": "result", "is_error": false});
    let started = json!({"type": "system", "subtype": "task_started", "task_id": "t"});
    let report = |status: &str| json!({"type": "system", "subtype": "task_notification", "task_id": "t", "status": status});
    assert_eq!(line(done.clone()), Activity::None);
    assert_eq!(line(started.clone()), Activity::Background);
    assert_eq!(line(done.clone()), Activity::Background);
    // The CLI informs the model in a separate turn.
    assert_eq!(line(report("completed")), Activity::Turn);
    assert_eq!(line(done.clone()), Activity::None);
    assert_eq!(line(started), Activity::Background);
    assert_eq!(line(report("stopped")), Activity::None);
}

#[test]
fn a_later_turn_without_an_end_is_no_success() {
    for next in [
        vec![init(), start("b")],
        vec![complete("b", &json!({"type": "text", "text": "half"}))],
    ] {
        let mut lines = vec![init(), end(&json!({"result": "one"}))];
        lines.extend(next);
        let (_, result) = run(&lines);
        assert_eq!(result.status, RunStatus::Incomplete);
        assert_eq!(result.errors.len(), 1);
    }
}

#[test]
fn a_second_turn_is_the_models_before_its_first_text() {
    let mut assembler = RunAssembler::new(Box::new(ClaudeDecoder::new()));
    let mut out = Events::new();
    for line in [init(), end(&json!({}))] {
        assembler.line(line.as_bytes(), &mut out);
    }
    assert_eq!(assembler.phase(), Phase::Ended);
    assembler.line(init().as_bytes(), &mut out);
    assert_eq!(assembler.phase(), Phase::Model);
}

#[test]
fn a_repeated_result_is_ignored() {
    let line = end(&json!({"result": "only here"}));
    let (_, result) = run(&[init(), line.clone(), line]);
    assert_eq!(result.text, "only here");
}

#[test]
fn a_result_without_its_flag_is_judged_by_its_subtype() {
    let bare = |fields: &str| format!(r#"{{"type":"result"{fields}}}"#);
    for (fields, status) in [
        ("", RunStatus::Failed),
        (r#","subtype":"error_during_execution""#, RunStatus::Failed),
        (r#","subtype":"success""#, RunStatus::Completed),
        (
            r#","subtype":"success","is_error":null"#,
            RunStatus::Completed,
        ),
        (r#","subtype":"success","is_error":true"#, RunStatus::Failed),
    ] {
        let (_, result) = run(&[init(), bare(fields)]);
        assert_eq!(result.status, status, "{fields}");
    }
}

#[test]
fn known_parts_of_a_line_are_used_and_the_rest_is_unknown() {
    let mixed = json!({"type": "assistant", "message": {"id": "a", "content": [
        {"type": "text", "text": "hi"}, {"type": "brand_new"}]}, "session_id": SESSION});
    let (events, result) = run(&[init(), mixed.to_string(), user(&json!([{"type": "image"}]))]);
    assert_types(&events[..4], "session text unknown unknown");
    assert_eq!(result.text, "hi");
}

#[test]
fn a_version_that_was_not_tested_is_reported_once() {
    let mut init: Value = serde_json::from_str(&init()).unwrap();
    init["claude_code_version"] = json!("9.9.9");
    let init = init.to_string();
    let (events, _) = run(&[init.clone(), end(&json!({})), init, end(&json!({}))]);
    let notices: Vec<_> = payloads::<Notice>(&events)
        .map(|n| (n.code, n.message.as_str()))
        .collect();
    let message =
        "Claude Code 9.9.9 is untested: it should work, new event types show as `unknown`";
    assert_eq!(notices, [(Some(NoticeCode::UntestedVersion), message)]);
}

#[test]
fn new_lines_are_unknown_and_never_dropped() {
    let new = [
        r#"{"type":"brand_new","x":1}"#.to_owned(),
        r#"{"type":"system","subtype":"brand_new"}"#.to_owned(),
        r#"{"no":"type"}"#.to_owned(),
        stream(&json!({"type": "brand_new"})),
        complete("a", &json!({"type": "brand_new"})),
    ];
    for line in new {
        let (events, result) = run(std::slice::from_ref(&line));
        let Some(AgentEvent::Unknown(unknown)) =
            events.iter().find(|e| matches!(e, AgentEvent::Unknown(_)))
        else {
            panic!("{line} was dropped: {events:?}");
        };
        assert_eq!(unknown.native.get(), line);
        assert_eq!(result.diagnostics.unknown, 1);
    }
}

// Made by hand: no version here prints such a result without `is_error`.
#[test]
fn result_with_an_error_as_subtype_fails_whatever_its_flag() {
    for (subtype, kind) in [
        ("error_max_turns", ErrorKind::MaxTurns),
        ("error_of_a_new_kind", ErrorKind::Internal),
    ] {
        let (_, result) = run(&[init(), end(&json!({"subtype": subtype}))]);
        assert_eq!(result.status, RunStatus::Failed, "{subtype}");
        assert_eq!(result.error().unwrap().kind, kind, "{subtype}");
    }
}
