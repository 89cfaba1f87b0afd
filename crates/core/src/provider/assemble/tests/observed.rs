//! What the assembler takes from single events, and what it changes in them.

use super::*;
use crate::{Plan, RateLimit, Retry};

/// A decoder with this activity and this summary; its lines are nothing.
struct Fixed(Activity, DecodedResult);

impl Decoder for Fixed {
    fn line(&mut self, _: &[u8], _: &mut Events) {}

    fn activity(&self) -> Activity {
        self.0
    }

    fn finish(&mut self, _: &Exit, _: &mut Events) -> DecodedResult {
        self.1.clone()
    }
}

fn fixed(activity: Activity) -> RunAssembler {
    RunAssembler::new(Box::new(Fixed(activity, DecodedResult::default())))
}

fn push(assembler: &mut RunAssembler, event: impl Into<AgentEvent>) -> AgentEvent {
    let mut out = Events::new();
    let event = event.into();
    assembler.events(&mut out, |out| out.push(event));
    out.drain().next().unwrap()
}

fn call(id: &str) -> ToolUse {
    ToolUse::new("Bash", id, ToolKind::Execute, Value::Null)
}

fn retry(kind: ErrorKind) -> Retry {
    Retry::new(1, AgentError::new(ErrorCode::CliError, kind, "no"))
}

#[test]
fn an_error_that_cannot_heal_is_one_until_something_comes() {
    let wrong_key = || retry(ErrorKind::Auth);
    let mut left_to_the_cli = wrong_key();
    left_to_the_cli.error.retryable = true;
    let error = AgentError::new(ErrorCode::CliError, ErrorKind::Auth, "gave up");
    let notice = AgentEvent::notice(NoticeLevel::Info, NoticeSource::Stdout, "x");
    for (name, event, remains) in [
        ("text", Text::new("a").into(), false),
        ("reasoning", Thinking::new("a").into(), false),
        ("call", call("1").into(), false),
        ("error", AgentEvent::error(error), false),
        ("retryable", left_to_the_cli.into(), false),
        ("other retry", retry(ErrorKind::Overloaded).into(), true),
        ("notice", notice, true),
    ] {
        for stopping in [false, true] {
            let mut assembler = fixed(Activity::None);
            push(&mut assembler, retry(ErrorKind::Overloaded));
            assert_eq!(assembler.hopeless(), None);
            push(&mut assembler, wrong_key());
            assert_eq!(
                assembler.hopeless().unwrap().message,
                "no; the CLI's own retries were cut short, as they would fail too"
            );
            if stopping {
                assembler.stop_requested();
            }
            push(&mut assembler, event.clone());
            // What comes while the CLI is stopped for it changes nothing, except another report of it.
            let expected = remains || (stopping && name != "retryable");
            assert_eq!(
                assembler.hopeless().is_some(),
                expected,
                "{name} {stopping}"
            );
        }
    }
}

#[test]
fn the_phase_is_by_the_activity_after_the_end_of_the_turn() {
    use Phase::{Background, Ended, Model, Tools};
    for (activity, in_turn, after) in [
        (Activity::None, Model, Ended),
        (Activity::Background, Model, Background),
        (Activity::Waiting, Background, Background),
        (Activity::Turn, Model, Model),
    ] {
        let mut assembler = fixed(activity).started();
        assert_eq!(assembler.phase(), in_turn, "{activity:?}");
        push(&mut assembler, TurnEnd::new(false));
        assert_eq!(assembler.phase(), after, "{activity:?}");
        assert_eq!(assembler.has_ended(), after == Ended, "{activity:?}");
    }
    let mut assembler = fixed(Activity::Background).started();
    for id in ["1", "2"] {
        push(&mut assembler, call(id));
    }
    assert_eq!(assembler.phase(), Tools(vec!["Bash".into(), "Bash".into()]));
    assert!(assembler.used_tools());
}

#[test]
fn only_output_of_the_main_agent_continues_a_turn() {
    for (name, event, continues) in [
        ("text", AgentEvent::from(Text::new("a")), true),
        ("reasoning", Thinking::new("a").into(), true),
        ("call", call("1").into(), true),
        ("session", SessionStarted::new("s").into(), true),
        (
            "text of a sub-agent",
            Text::new("a").parent_tool_id("t").into(),
            false,
        ),
        (
            "reasoning of one",
            Thinking::new("a").parent_tool_id("t").into(),
            false,
        ),
        ("call of one", call("1").parent_tool_id("t").into(), false),
        ("plan", Plan::new([]).into(), false),
    ] {
        let mut assembler = fixed(Activity::None).started();
        push(&mut assembler, TurnEnd::new(false));
        push(&mut assembler, event);
        assert_eq!(assembler.has_ended(), !continues, "{name}");
    }
}

#[test]
fn the_time_in_the_message_of_a_limit_is_added_to_its_error() {
    let mut assembler = fixed(Activity::None).reset_time(|message| message.parse().ok());
    let mut complete = |error: AgentError| match push(&mut assembler, error) {
        AgentEvent::Error(event) => event.error.resets_at_ms,
        other => panic!("{other:?}"),
    };
    let error = |kind| AgentError::new(ErrorCode::CliError, kind, "70");
    assert_eq!(complete(error(ErrorKind::Quota)), Some(70));
    assert_eq!(complete(error(ErrorKind::RateLimit)), Some(70));
    assert_eq!(complete(error(ErrorKind::Overloaded)), None);
    // The CLI has reported it already.
    let mut known = error(ErrorKind::Quota);
    known.resets_at_ms = Some(5);
    assert_eq!(complete(known), Some(5));
    let mut known = error(ErrorKind::Quota);
    known.retry_after_ms = Some(5);
    assert_eq!(complete(known), None);
}

#[test]
fn a_figure_is_kept_from_zero_to_the_limit_of_whole_numbers() {
    let limit = 1e15;
    for (figure, is_kept) in [
        (limit - 1.0, true),
        (0.0, true),
        (limit, false),
        (-0.5, false),
        (f64::NAN, false),
    ] {
        let limit = RateLimit::new("allowed").utilization(figure);
        let AgentEvent::RateLimit(limit) = push(&mut fixed(Activity::None), limit) else {
            panic!("no limit");
        };
        assert_eq!(limit.utilization.is_some(), is_kept, "{figure}");
    }
}

#[test]
fn retries_and_lines_that_were_lost_do_not_show_secrets() {
    let mut assembler = fixed(Activity::None).hide(Secrets::default().and("sk-secret"));
    let mut refused = retry(ErrorKind::Overloaded);
    refused.error.message = "sk-secret is busy".into();
    let AgentEvent::Retry(refused) = push(&mut assembler, refused) else {
        panic!("no retry");
    };
    assert_eq!(refused.error.message, "… is busy");
    let mut out = Events::new();
    assembler.oversize_line(300, b"{\"key\":\"sk-secret\"", &mut out);
    let AgentEvent::Notice(notice) = &out.as_slice()[0] else {
        panic!("{out:?}");
    };
    assert_eq!(
        notice.message,
        "a line of 300 bytes was longer than the limit and is lost; it began with: {\"key\":\"…\""
    );
}

#[test]
fn output_that_was_lost_is_counted() {
    let mut assembler = fixed(Activity::None);
    let mut out = Events::new();
    assembler.oversize_line(300, b"{", &mut out);
    assembler.lost_output(70, &mut out);
    assembler.finish(exit(0, ""), 0, &mut out);
    let events: Vec<_> = out.drain().collect();
    let names: Vec<_> = events.iter().map(AgentEvent::type_name).collect();
    assert_eq!(names, ["notice", "notice", "error", "done"]);
    let Some(AgentEvent::Done(done)) = events.last() else {
        panic!("{events:?}");
    };
    let found = &done.result.diagnostics;
    assert_eq!((found.lines, found.oversize, found.malformed), (1, 1, 1));
}

#[test]
fn any_part_of_the_summary_is_an_answer() {
    let success = || DecodedResult {
        ended_with_error: Some(false),
        ..DecodedResult::default()
    };
    let answer = |text: &str| DecodedResult {
        final_message: Some(text.into()),
        ..success()
    };
    let form = DecodedResult {
        structured_output: Some(Value::Null),
        ..success()
    };
    let no_turn = DecodedResult {
        num_turns: Some(0),
        ..success()
    };
    for (summary, stop, message) in [
        (answer("yes"), None, None),
        (form, None, None),
        (answer(" \n"), None, Some("the CLI reported success, but")),
        (
            no_turn,
            None,
            Some("the CLI reported success without asking"),
        ),
        (
            success(),
            Some(Stop::Lingering),
            Some("the CLI reported success, but"),
        ),
        // Its end has an error of its own.
        (success(), Some(Stop::Aborted), Some("the run was stopped")),
    ] {
        let decoder = Fixed(Activity::None, summary);
        let mut out = Events::new();
        let exit = Exit {
            stop,
            ..exit(0, "")
        };
        RunAssembler::new(Box::new(decoder)).finish(exit, 0, &mut out);
        let events: Vec<_> = out.drain().collect();
        let Some(AgentEvent::Done(done)) = events.last() else {
            panic!("{events:?}");
        };
        let errors = &done.result.errors;
        let found = errors.first().map(|error| error.message.as_str());
        assert_eq!(errors.len(), usize::from(message.is_some()), "{errors:?}");
        assert!(
            found
                .unwrap_or_default()
                .starts_with(message.unwrap_or_default())
        );
    }
}

#[test]
fn a_run_that_could_not_begin_is_aborted_or_has_failed() {
    for (kind, status) in [
        (ErrorKind::Aborted, RunStatus::Aborted),
        (ErrorKind::Auth, RunStatus::Failed),
    ] {
        let error = AgentError::new(ErrorCode::CliError, kind, "no");
        let events = RunAssembler::refuse(error.clone());
        grammar::check(&events).unwrap();
        let AgentEvent::Done(done) = &events[1] else {
            panic!("{events:?}");
        };
        assert_eq!(done.result.status, status);
        assert_eq!(done.result.aborted, status == RunStatus::Aborted);
        assert_eq!(done.result.errors, [error]);
    }
}
