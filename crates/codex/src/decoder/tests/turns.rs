//! Turns: errors, retries, usage and the end of the run.

use serde_json::json;
use teamster_core::provider::{Activity, Events, Stop};
use teamster_core::{AgentEvent, ErrorCode, ErrorKind, RunStatus, Usage};

use super::super::{Baseline, Totals};
use super::*;
use crate::wire::Object;

fn usage(input: u64, cached: u64, output: u64) -> Usage {
    Usage::default()
        .input_tokens(input)
        .output_tokens(output)
        .cache_read_tokens(cached)
        .cache_write_tokens(0)
        .reasoning_tokens(0)
}

fn after(total: Baseline) -> CodexDecoder {
    CodexDecoder {
        turns: super::super::Turns::new(total),
        ..CodexDecoder::default()
    }
}

fn known(input: u64, cached: u64, output: u64) -> Baseline {
    let line = end(input, cached, output);
    let line = Object::parse(&line).unwrap();
    Baseline::Known(Totals::of(&line.object("usage").unwrap()))
}

#[test]
fn an_error_line_is_a_retry_and_not_the_end() {
    let (events, result) = turn_of(&[
        error("Reconnecting... 2/5 (exceeded retry limit, last status: 429 Too Many Requests)"),
        message(0, "Recovered."),
    ]);
    let AgentEvent::Retry(retry) = &events[1] else {
        panic!("{events:?}")
    };
    assert_eq!((retry.attempt, retry.max_attempts), (2, Some(5)));
    assert_eq!(retry.error.kind, ErrorKind::RateLimit);
    assert_eq!(
        retry.error.message,
        "exceeded retry limit, last status: 429 Too Many Requests"
    );
    assert_eq!(result.status, RunStatus::Completed);
    assert!(result.errors.is_empty());
}

#[test]
fn waiting_for_the_network_is_a_retry_without_a_last_attempt() {
    let waiting =
        error("Reconnecting... waiting for network (Connection failed: error sending request)");
    let (events, _) = turn_of(&[waiting.clone(), waiting]);
    let AgentEvent::Retry(retry) = &events[2] else {
        panic!("{events:?}")
    };
    assert_eq!((retry.attempt, retry.max_attempts), (2, None));
    assert_eq!(retry.error.kind, ErrorKind::Network);
}

#[test]
fn a_retry_that_is_not_explained_is_of_the_connection() {
    for line in ["Reconnecting... 1/5", "Reconnecting... 1/5 (something new)"] {
        let (events, _) = turn_of(&[error(line)]);
        let AgentEvent::Retry(retry) = &events[1] else {
            panic!("{events:?}")
        };
        assert_eq!((retry.attempt, retry.max_attempts), (1, Some(5)));
        assert_eq!(retry.error.kind, ErrorKind::Network);
        assert!(retry.error.retryable);
    }
}

#[test]
fn the_last_error_line_and_the_failed_turn_are_one_error() {
    let reason = "unexpected status 401 Unauthorized: Incorrect API key provided";
    let (events, result) = run_with(
        CodexDecoder::new(),
        &[thread(), turn(), error(reason), failed(reason)],
        exit(1),
    );
    assert_eq!(names(&events), ["session", "error", "turn_end", "done"]);
    assert_eq!(result.status, RunStatus::Failed);
    assert_eq!(result.errors.len(), 1);
    assert_eq!(result.errors[0].kind, ErrorKind::Auth);
    assert_eq!(result.errors[0].code, ErrorCode::CliError);
    assert_eq!(result.usage, None);
}

#[test]
fn an_error_line_in_a_continued_turn_is_a_notice() {
    let (events, result) = turn_of(&[error("something odd"), message(0, "Done.")]);
    assert_eq!(
        names(&events),
        ["session", "text", "notice", "turn_end", "done"]
    );
    assert_eq!(result.status, RunStatus::Completed);
}

#[test]
fn an_error_line_after_which_nothing_comes_is_the_error() {
    let (_, result) = run_with(
        CodexDecoder::new(),
        &[thread(), turn(), error("Invalid prompt: flagged.")],
        exit(1),
    );
    assert_eq!(result.status, RunStatus::Failed);
    assert_eq!(result.errors.len(), 1);
    assert_eq!(result.errors[0].kind, ErrorKind::Invalid);
}

#[test]
fn an_error_that_is_a_mere_text_is_its_message() {
    let line = json!({"type": "turn.failed", "error": "Quota exceeded."}).to_string();
    let (_, result) = run(&[thread(), turn(), line]);
    assert_eq!(result.errors[0].message, "Quota exceeded.");
    assert_eq!(result.errors[0].kind, ErrorKind::Quota);
}

#[test]
fn a_failed_turn_without_a_word_is_an_error_all_the_same() {
    let line = json!({"type": "turn.failed"}).to_string();
    let (_, result) = run(&[thread(), turn(), line]);
    assert_eq!(result.status, RunStatus::Failed);
    assert_eq!(result.errors.len(), 1);
}

#[test]
fn an_answer_that_was_cut_off_is_failed_with_the_reason() {
    let reason = "Incomplete response returned, reason: max_output_tokens";
    let (_, result) = run_with(
        CodexDecoder::new(),
        &[
            thread(),
            turn(),
            message(0, "This is"),
            error(reason),
            failed(reason),
        ],
        exit(1),
    );
    assert_eq!(result.status, RunStatus::Failed);
    assert_eq!(result.text, "This is");
    assert_eq!(result.stop_reason.as_deref(), Some("max_output_tokens"));
    assert_eq!(result.errors[0].kind, ErrorKind::Invalid);
}

/// The recorded sequence: the answer comes three times, and the last one ends the turn.
#[test]
fn an_answer_that_a_filter_stopped_is_failed_with_the_reason() {
    let reason = "stream disconnected before completion: Incomplete response returned, reason: content_filter";
    let (events, result) = run_with(
        CodexDecoder::new(),
        &[
            thread(),
            turn(),
            message(0, "I cannot."),
            error(&format!("Reconnecting... 1/1 ({reason})")),
            message(1, "I cannot."),
            error(reason),
            failed(reason),
        ],
        exit(1),
    );
    assert_eq!(
        names(&events),
        ["session", "text", "retry", "error", "turn_end", "done"]
    );
    assert_eq!(result.text, "I cannot.");
    assert_eq!(result.stop_reason.as_deref(), Some("content_filter"));
    assert_eq!(result.errors[0].kind, ErrorKind::Invalid);
}

#[test]
fn service_error_without_a_message_is_an_error() {
    let (events, result) = run(&[thread(), turn(), error(""), failed("")]);
    assert_eq!(names(&events), ["session", "error", "turn_end", "done"]);
    assert!(
        result.errors[0].message.contains("without a reason"),
        "{result:?}"
    );
}

#[test]
fn a_limit_of_the_plan_is_a_quota() {
    let reason = "You’ve hit your usage limit. Upgrade to Pro or try again at 9:44 PM.";
    let (_, result) = run(&[thread(), turn(), error(reason), failed(reason)]);
    assert_eq!(result.errors[0].kind, ErrorKind::Quota);
    // The message has neither a day nor a time zone.
    assert_eq!(result.errors[0].resets_at_ms, None);
}

#[test]
fn warnings_of_the_cli_are_notices() {
    let warning = item(
        "completed",
        &json!({"id": "item_0", "type": "error", "message": "Model metadata not found."}),
    );
    let (events, result) = run(&[thread(), warning, turn(), end(10, 0, 1)]);
    assert_eq!(names(&events), ["session", "notice", "turn_end", "done"]);
    assert_eq!(result.status, RunStatus::Completed);
}

#[test]
fn cached_tokens_are_subtracted_from_the_input() {
    let line = json!({"type": "turn.completed", "usage": {"input_tokens": 50000,
        "cached_input_tokens": 48000, "cache_write_input_tokens": 1500, "output_tokens": 700,
        "reasoning_output_tokens": 500}});
    let (_, result) = run(&[thread(), turn(), line.to_string()]);
    let expected = Usage::default()
        .input_tokens(500)
        .output_tokens(700)
        .cache_read_tokens(48_000)
        .cache_write_tokens(1500)
        .reasoning_tokens(500);
    assert_eq!(result.usage, Some(expected));
    assert_eq!(result.session_usage, Some(expected));
}

#[test]
fn run_usage_is_the_difference_of_the_session_totals() {
    let lines = [thread(), turn(), message(0, "x"), end(2500, 1000, 22)];
    let (events, result) = run_with(after(known(1000, 0, 10)), &lines, exit(0));
    assert_eq!(result.usage, Some(usage(500, 1000, 12)));
    assert_eq!(result.session_usage, Some(usage(1500, 1000, 22)));
    let turn_end = events.iter().find_map(|event| match event {
        AgentEvent::TurnEnd(turn_end) => turn_end.usage,
        _ => None,
    });
    assert_eq!(turn_end, Some(usage(500, 1000, 12)));
}

#[test]
fn without_a_known_total_before_a_resumed_run_has_no_usage() {
    let lines = [thread(), turn(), message(0, "x"), end(2500, 1000, 22)];
    let decoder = CodexDecoder::for_run(&resuming(THREAD));
    let (_, result) = run_with(decoder, &lines, exit(0));
    assert_eq!(result.usage, None);
    assert_eq!(result.session_usage, Some(usage(1500, 1000, 22)));

    // A smaller total cannot be of the same session.
    let (_, result) = run_with(after(known(9999, 0, 10)), &lines, exit(0));
    assert_eq!(result.usage, None);
}

#[test]
fn no_difference_at_all_is_no_figure() {
    let lines = [thread(), turn(), message(0, "x"), end(2500, 1000, 22)];
    let (events, result) = run_with(after(known(2500, 1000, 22)), &lines, exit(0));
    assert_eq!(result.usage, None);
    assert_eq!(result.session_usage, Some(usage(1500, 1000, 22)));
    let has_usage =
        |event: &AgentEvent| matches!(event, AgentEvent::TurnEnd(t) if t.usage.is_some());
    assert!(!events.iter().any(has_usage));
}

#[test]
fn session_resumed_by_extra_arguments_has_an_unknown_total() {
    let lines = [thread(), turn(), message(0, "x"), end(2500, 1000, 22)];
    for (args, expected) in [
        (&["resume", "--last"][..], None),
        (&["-c", "a=b", "fork", "--last"], None),
        (&["--profile", "resume"], Some(usage(1500, 1000, 22))),
    ] {
        let mut params = ExecuteParams::new("go on");
        params.extra_args = args.iter().map(ToString::to_string).collect();
        let (_, result) = run_with(CodexDecoder::for_run(&params), &lines, exit(0));
        assert_eq!(result.status, RunStatus::Completed);
        assert_eq!(result.usage, expected, "{args:?}");
        assert_eq!(result.session_usage, Some(usage(1500, 1000, 22)));
    }
}

#[test]
fn each_turn_of_one_process_has_its_own_part() {
    let lines = [
        thread(),
        turn(),
        end(1000, 0, 10),
        turn(),
        message(0, "more"),
        end(2500, 1000, 22),
    ];
    let (events, result) = run(&lines);
    let turns: Vec<_> = events
        .iter()
        .filter_map(|event| match event {
            AgentEvent::TurnEnd(turn_end) => turn_end.usage,
            _ => None,
        })
        .collect();
    assert_eq!(turns, [usage(1000, 0, 10), usage(500, 1000, 12)]);
    assert_eq!(result.usage, Some(usage(1500, 1000, 22)));
}

#[test]
fn zeros_all_over_and_missing_figures_are_absent() {
    let (_, result) = run(&[thread(), turn(), end(0, 0, 0)]);
    assert_eq!((result.usage, result.session_usage), (None, None));
    let line =
        json!({"type": "turn.completed", "usage": {"input_tokens": 7, "output_tokens": "x"}});
    let (_, result) = run(&[thread(), turn(), line.to_string()]);
    let expected = Usage::default().input_tokens(7);
    assert_eq!(result.usage, Some(expected));
    let line = json!({"type": "turn.completed"}).to_string();
    let (_, result) = run(&[thread(), turn(), line]);
    assert_eq!((result.status, result.usage), (RunStatus::Completed, None));
}

#[test]
fn a_prompt_that_never_reached_the_model_is_a_failure() {
    let (_, new) = run(&[thread(), turn(), end(0, 0, 0)]);
    let lines = [thread(), turn(), end(1000, 0, 10)];
    let (_, resumed) = run_with(after(known(1000, 0, 10)), &lines, exit(0));
    for result in [new, resumed] {
        assert_eq!(result.status, RunStatus::Failed);
        assert_eq!(result.errors[0].kind, ErrorKind::Permission);
        assert_eq!(result.errors[0].code, ErrorCode::CliError);
    }
    // A review reports no figures.
    let (_, result) = run(&[thread(), turn(), message(0, "x"), end(0, 0, 0)]);
    assert_eq!(result.status, RunStatus::Completed);
}

#[test]
fn a_new_session_in_place_of_the_one_to_resume_is_a_failure() {
    let other = "01a1ffd6-37c2-74d0-b127-8a2638a2e18a";
    let lines = [thread(), turn(), message(0, "hi"), end(1000, 0, 10)];
    let decoder = CodexDecoder::for_run(&resuming(other));
    let (_, result) = run_with(decoder, &lines, exit(0));
    assert_eq!(result.status, RunStatus::Failed);
    assert_eq!(result.errors[0].kind, ErrorKind::SessionNotFound);
    assert_eq!(result.session_id.as_deref(), Some(THREAD));
    assert_eq!(result.usage, Some(usage(1000, 0, 10)));

    // A fork has a new id, and the case of an id does not matter.
    let mut fork = resuming(other);
    fork.fork = true;
    for params in [fork, resuming(&THREAD.to_uppercase())] {
        let (_, result) = run_with(CodexDecoder::for_run(&params), &lines, exit(0));
        assert_eq!(result.status, RunStatus::Completed);
    }
}

#[test]
fn no_end_of_the_turn_is_never_success() {
    let lines = [thread(), turn(), message(0, "Hello")];
    let (_, result) = run_with(CodexDecoder::new(), &lines, exit(0));
    assert_eq!(result.status, RunStatus::Incomplete);
    assert_eq!(result.errors[0].code, ErrorCode::StreamEndedEarly);

    // The output after a SIGINT from outside.
    let (_, result) = run_with(CodexDecoder::new(), &lines, exit(1));
    assert_eq!(result.status, RunStatus::Failed);
    assert_eq!(result.errors[0].code, ErrorCode::CliExitError);
}

#[test]
fn stderr_without_a_word_of_failure_is_no_evidence() {
    let killed = Exit {
        signal: Some("SIGKILL".into()),
        stderr: "Reading additional input from stdin...\n".into(),
        ..Exit::default()
    };
    let (_, result) = run_with(CodexDecoder::new(), &[thread(), turn()], killed);
    assert_eq!(result.errors[0].code, ErrorCode::CliExitError);
    assert!(result.errors[0].message.contains("SIGKILL"));

    let refused = Exit {
        stderr: "Reading additional input from stdin...\nNot inside a trusted directory and --skip-git-repo-check was not specified.\n".into(),
        ..exit(1)
    };
    let (_, result) = run_with(CodexDecoder::new(), &[], refused);
    assert_eq!(result.errors[0].code, ErrorCode::CliStderr);
    assert_eq!(result.errors[0].kind, ErrorKind::Permission);
    assert!(result.errors[0].message.starts_with("Not inside"));
}

#[test]
fn prompt_refused_after_the_session_began_is_a_failure() {
    let refused = Exit {
        stderr: "Error: turn/start: turn/start failed: Input exceeds the maximum length of 1048576 characters. (code -32602)\n".into(),
        ..exit(1)
    };
    let (_, result) = run_with(CodexDecoder::new(), &[thread()], refused);
    assert_eq!(result.status, RunStatus::Failed);
    assert_eq!(result.errors[0].kind, ErrorKind::Invalid);
}

#[test]
fn a_run_that_was_stopped_has_no_other_error() {
    let stopped = Exit {
        stop: Some(Stop::Aborted),
        ..exit(1)
    };
    let lines = [thread(), turn(), command(0, "started", "in_progress", None)];
    let (_, result) = run_with(CodexDecoder::new(), &lines, stopped);
    assert_eq!(result.status, RunStatus::Aborted);
    assert_eq!(result.errors.len(), 1);
    assert_eq!(result.open_tool_ids.len(), 1);
}

#[test]
fn a_process_that_lingers_after_its_turn_has_ended_well() {
    let stopped = Exit {
        signal: Some("SIGTERM".into()),
        stop: Some(Stop::Lingering),
        ..Exit::default()
    };
    let lines = [thread(), turn(), message(0, "Hello"), end(10, 0, 1)];
    let (_, result) = run_with(CodexDecoder::new(), &lines, stopped);
    assert_eq!(result.status, RunStatus::Completed);
    assert!(result.errors.is_empty());
}

#[test]
fn the_engine_waits_during_another_turn() {
    let mut decoder = CodexDecoder::new();
    let mut out = Events::new();
    let mut push = |line: String| {
        decoder.line(line.as_bytes(), &mut out);
        decoder.activity()
    };
    assert_eq!(push(turn()), Activity::None);
    assert_eq!(push(end(10, 0, 1)), Activity::None);
    assert_eq!(push(turn()), Activity::Turn);
    let (_, result) = run(&[thread(), turn(), end(10, 0, 1), turn()]);
    assert_eq!(result.status, RunStatus::Incomplete);
}

#[test]
fn an_answer_in_the_shape_of_a_schema_is_read_as_json() {
    let mut params = ExecuteParams::new("x");
    params.output_schema = Some(json!({"type": "object"}));
    let answer = |text: &str| {
        let lines = [
            thread(),
            turn(),
            message(0, "so: "),
            message(1, text),
            end(1, 0, 1),
        ];
        let (_, result) = run_with(CodexDecoder::for_run(&params), &lines, exit(0));
        result.structured_output
    };
    assert_eq!(answer("{\"a\": 1}"), Some(json!({"a": 1})));
    assert_eq!(answer("no JSON"), None);
    // The decoder has no prompt.
    let (_, result) = turn_of(&[message(0, "{\"a\": 1}")]);
    assert_eq!(result.structured_output, None);
}

#[test]
fn lines_of_other_types_and_no_json_are_not_lost() {
    let (events, result) = turn_of(&[
        json!({"type": "thread.compacted"}).to_string(),
        json!({"x": 1}).to_string(),
        json!({"type": "item.completed"}).to_string(),
        "{\"type\":\"error\"".into(),
        "WARNING: no JSON".into(),
    ]);
    assert_eq!(
        names(&events),
        [
            "session", "unknown", "unknown", "unknown", "notice", "notice", "turn_end", "done"
        ]
    );
    assert_eq!(
        (result.diagnostics.unknown, result.diagnostics.malformed),
        (3, 2)
    );
}

#[test]
fn the_model_is_the_requested_one() {
    let mut params = ExecuteParams::new("hi");
    params.model = Some("gpt-5.5".into());
    let lines = [thread(), turn(), end(10, 0, 1)];
    let (events, result) = run_with(CodexDecoder::for_run(&params), &lines, exit(0));
    let AgentEvent::SessionStarted(session) = &events[0] else {
        panic!("{events:?}");
    };
    assert_eq!(session.model.as_deref(), Some("gpt-5.5"));
    assert_eq!(result.model.as_deref(), Some("gpt-5.5"));
}
