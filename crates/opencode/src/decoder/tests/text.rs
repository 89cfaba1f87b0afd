//! Text is emitted once: broken attempts, compactions, repeated parts.

use serde_json::json;
use teamster_core::provider::Exit;
use teamster_core::{AgentEvent, ErrorKind, ExecuteParams, Retract, RunStatus};
use teamster_testkit::events::payloads;

use super::super::{OpenCodeDecoder, Withheld};
use super::{SESSION, assert_types, bash, decode, error, finish, line, names, run, say, start};

#[test]
fn text_of_a_finished_step_of_the_same_message_stays() {
    let (_, result) = run(&[
        start("m"),
        say("m", "Kept."),
        finish("m", "tool-calls"),
        start("m"),
        say("m", "Stale."),
        start("m"),
        say("m", "Fresh."),
        finish("m", "stop"),
    ]);
    assert_eq!(result.text, "Kept.Fresh.");
}

#[test]
fn a_step_that_never_ends_is_no_try_of_another_message() {
    let (events, result) = run(&[start("a"), say("a", "A"), start("b"), finish("b", "stop")]);
    assert_eq!(result.text, "A");
    assert!(!names(&events).contains(&"retry"));
}

#[test]
fn a_part_that_is_printed_again_is_the_same_part() {
    let text = say("m", "Once.");
    let end = finish("m", "stop");
    let (events, result) = run(&[start("m"), text.clone(), text, end.clone(), end]);
    assert_eq!(result.text, "Once.");
    assert_eq!(result.usage.unwrap().input_tokens, Some(100));
    assert_eq!(result.num_turns, Some(1));
    assert_eq!(result.diagnostics.unknown, 0);
    assert_types(&events, "session text usage turn_end done");
}

fn go_on() -> String {
    let fields = json!({"type": "text", "synthetic": true, "text": "Continue if you have next steps",
        "metadata": {"compaction_continue": true}});
    line("text", "user", &fields)
}

#[test]
fn the_summary_after_a_context_that_was_too_long_is_no_answer() {
    let too_long = json!({"message": "prompt is too long: 250000 tokens > 200000 maximum"});
    let lines = [
        error("ContextOverflowError", &too_long),
        start("s"),
        say("s", "## Goal"),
        finish("s", "stop"),
    ];
    // Without a continuation, the error is the end.
    let (_, result) = decode(OpenCodeDecoder::new(), &lines[..1], Exit::new(1));
    assert_eq!(result.status, RunStatus::Failed);
    assert_eq!(result.errors[0].kind, ErrorKind::ContextWindow);

    // The summary alone is no answer either.
    let (_, result) = decode(OpenCodeDecoder::new(), &lines, Exit::new(1));
    assert_eq!(result.text, "");
    assert_eq!(result.status, RunStatus::Failed);
    assert_eq!(result.errors[0].kind, ErrorKind::ContextWindow);
}

#[test]
fn a_summary_without_an_error_before_it_is_retracted() {
    let (events, result) = run(&[
        start("a"),
        say("a", "Working."),
        bash("a", "t1"),
        finish("a", "tool-calls"),
        start("s"),
        say("s", "## Goal"),
        finish("s", "stop"),
        go_on(),
        start("b"),
        say("b", "The answer."),
        finish("b", "stop"),
    ]);
    assert_eq!(result.text, "Working.The answer.");
    let retracted: Vec<_> = payloads::<Retract>(&events)
        .map(|e| &*e.message_id)
        .collect();
    assert_eq!(retracted, ["s"]);
}

#[test]
fn messages_of_the_cli_in_the_models_place_are_no_text() {
    let fields = json!({"type": "text", "synthetic": true, "text": "Summarize the task"});
    let (events, result) = run(&[
        start("a"),
        say("a", "A"),
        finish("a", "tool-calls"),
        line("text", "user", &fields),
        start("b"),
        finish("b", "stop"),
    ]);
    assert_eq!(result.text, "A");
    assert!(names(&events).contains(&"notice"));
}

#[test]
fn the_session_is_reported_once_with_the_requested_model() {
    let mut params = ExecuteParams::new("hi");
    params.model = Some("mocka/m1".into());
    let decoder = OpenCodeDecoder::with(&params, Vec::new(), Withheld::default());
    let (events, result) = decode(decoder, &[start("m"), finish("m", "stop")], Exit::new(0));
    let AgentEvent::SessionStarted(session) = &events[0] else {
        panic!("{events:?}")
    };
    assert_eq!(&*session.session_id, SESSION);
    assert_eq!(session.model.as_deref(), Some("mocka/m1"));
    assert_eq!(result.model.as_deref(), Some("mocka/m1"));
    assert_types(&events[1..], "usage turn_end done");
}

#[test]
fn reasoning_is_thinking_and_its_tokens_are_output() {
    let tokens = json!({"total": 137, "input": 100, "output": 3, "reasoning": 17,
        "cache": {"write": 5, "read": 12}});
    let (events, result) = run(&[
        start("m"),
        line(
            "reasoning",
            "m",
            &json!({"type": "reasoning", "text": "Hm."}),
        ),
        line("reasoning", "m", &json!({"type": "reasoning", "text": ""})),
        say("m", "Yes."),
        line(
            "step_finish",
            "m",
            &json!({"reason": "stop", "tokens": tokens, "cost": 0.5}),
        ),
    ]);
    assert_types(&events, "session thinking text usage turn_end done");
    let usage = result.usage.unwrap();
    assert_eq!(usage.input_tokens, Some(100));
    assert_eq!(usage.output_tokens, Some(20));
    assert_eq!(usage.reasoning_tokens, Some(17));
    assert_eq!(usage.cache_read_tokens, Some(12));
    assert_eq!(usage.cache_write_tokens, Some(5));
    assert_eq!(result.total_cost_usd, Some(0.5));
}

#[test]
fn figures_are_summed_over_the_steps_and_noughts_are_no_figures() {
    let nothing = json!({"total": 0, "input": 0, "output": 0, "reasoning": 0,
        "cache": {"write": 0, "read": 0}});
    let step = |message: &str| {
        let fields = json!({"reason": "tool-calls", "tokens": nothing, "cost": 0});
        line("step_finish", message, &fields)
    };
    let (events, result) = run(&[start("a"), step("a"), start("b"), finish("b", "stop")]);
    assert_eq!(result.usage.unwrap().input_tokens, Some(100));
    assert_eq!(result.num_turns, Some(2));
    assert_types(&events, "session usage turn_end done");
    let (_, result) = run(&[start("a"), step("a")]);
    assert_eq!((result.usage, result.total_cost_usd), (None, None));
}
