//! Turns: errors, retries, usage and the end of the run.

use serde_json::json;
use teamster_core::provider::{Activity, Events};
use teamster_core::{AgentEvent, ErrorCode, ErrorKind, RunStatus, TurnEnd, Usage};
use teamster_testkit::events::payloads;

use super::*;
use crate::totals::{Baseline, Totals};
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
fn an_error_line_in_a_continued_turn_is_a_notice() {
    let (events, result) = turn_of(&[error("something odd"), message(0, "Done.")]);
    assert_types(&events, "session text notice turn_end done");
    assert_eq!(result.status, RunStatus::Completed);
}

#[test]
fn an_error_line_after_which_nothing_comes_is_the_error() {
    let (_, result) = decode(
        CodexDecoder::new(),
        &[thread(), turn(), error("Invalid prompt: flagged.")],
        Exit::new(1),
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
fn service_error_without_a_message_is_an_error() {
    let (events, result) = run(&[thread(), turn(), error(""), failed("")]);
    assert_types(&events, "session error turn_end done");
    assert!(
        result.errors[0].message.contains("without a reason"),
        "{result:?}"
    );
}

#[test]
fn run_usage_is_the_difference_of_the_session_totals() {
    let lines = [thread(), turn(), message(0, "x"), end(2500, 1000, 22)];
    let (events, result) = decode(after(known(1000, 0, 10)), &lines, Exit::new(0));
    assert_eq!(result.usage, Some(usage(500, 1000, 12)));
    assert_eq!(result.session_usage, Some(usage(1500, 1000, 22)));
    let turn_end = payloads::<TurnEnd>(&events).find_map(|turn_end| turn_end.usage);
    assert_eq!(turn_end, Some(usage(500, 1000, 12)));
}

#[test]
fn without_a_known_total_before_a_resumed_run_has_no_usage() {
    let lines = [thread(), turn(), message(0, "x"), end(2500, 1000, 22)];
    let decoder = CodexDecoder::for_run(&resuming(THREAD));
    let (_, result) = decode(decoder, &lines, Exit::new(0));
    assert_eq!(result.usage, None);
    assert_eq!(result.session_usage, Some(usage(1500, 1000, 22)));

    // A smaller total cannot be of the same session.
    let (_, result) = decode(after(known(9999, 0, 10)), &lines, Exit::new(0));
    assert_eq!(result.usage, None);
}

#[test]
fn no_difference_at_all_is_no_figure() {
    let lines = [thread(), turn(), message(0, "x"), end(2500, 1000, 22)];
    let (events, result) = decode(after(known(2500, 1000, 22)), &lines, Exit::new(0));
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
        let (_, result) = decode(CodexDecoder::for_run(&params), &lines, Exit::new(0));
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
    let turns: Vec<_> = payloads::<TurnEnd>(&events)
        .filter_map(|turn_end| turn_end.usage)
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
    let (_, resumed) = decode(after(known(1000, 0, 10)), &lines, Exit::new(0));
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
    let (_, result) = decode(decoder, &lines, Exit::new(0));
    assert_eq!(result.status, RunStatus::Failed);
    assert_eq!(result.errors[0].kind, ErrorKind::SessionNotFound);
    assert_eq!(result.session_id.as_deref(), Some(THREAD));
    assert_eq!(result.usage, Some(usage(1000, 0, 10)));

    // A fork has a new id, and the case of an id does not matter.
    let mut fork = resuming(other);
    fork.fork = true;
    for params in [fork, resuming(&THREAD.to_uppercase())] {
        let (_, result) = decode(CodexDecoder::for_run(&params), &lines, Exit::new(0));
        assert_eq!(result.status, RunStatus::Completed);
    }
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
        let (_, result) = decode(CodexDecoder::for_run(&params), &lines, Exit::new(0));
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
    assert_types(
        &events,
        "session unknown unknown unknown notice notice turn_end done",
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
    let (events, result) = decode(CodexDecoder::for_run(&params), &lines, Exit::new(0));
    let AgentEvent::SessionStarted(session) = &events[0] else {
        panic!("{events:?}");
    };
    assert_eq!(session.model.as_deref(), Some("gpt-5.5"));
    assert_eq!(result.model.as_deref(), Some("gpt-5.5"));
}
