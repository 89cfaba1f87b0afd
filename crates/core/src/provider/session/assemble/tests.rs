//! Tests of the session assembler with an imaginary CLI.

use super::*;
use crate::{
    AgentError, Decision, ErrorCode, ExecuteParams, NoticeLevel, NoticeSource, Offers,
    PermissionEvent, RunStatus, Text, ToolKind, ToolUse, TurnEnd,
};

/// A protocol with the lines `{"say":"…"}`, `{"end":bool}`, `{"cut":true}`, `{"note":"…"}`, `{"offer":"…"}` and
/// `{"ask":"…"}`.
#[derive(Default)]
struct Toy {
    outbox: Outbox,
    ended: Option<bool>,
    cut: bool,
    prompts: usize,
}

impl Decoder for Toy {
    fn line(&mut self, line: &[u8], out: &mut Events) {
        let line: serde_json::Value = serde_json::from_slice(line).unwrap();
        if let Some(text) = line["say"].as_str() {
            out.push(Text::new(text));
        } else if let Some(failed) = line["end"].as_bool() {
            self.ended = Some(failed);
            self.cut = line["cut"] == true;
            out.push(TurnEnd::new(failed));
        } else if let Some(text) = line["note"].as_str() {
            out.notice(NoticeLevel::Info, NoticeSource::Stdout, text);
        } else if let Some(effort) = line["offer"].as_str() {
            out.push(Offers::new().efforts(vec![effort.to_owned()]));
        } else if let Some(name) = line["ask"].as_str() {
            out.push(ToolUse::new(
                name,
                "t1",
                ToolKind::Edit,
                serde_json::json!({}),
            ));
        }
    }

    fn finish(&mut self, _: &Exit, _: &mut Events) -> DecodedResult {
        DecodedResult {
            ended_with_error: self.ended.take(),
            num_turns: u32::try_from(self.prompts).ok(),
            ..DecodedResult::default()
        }
    }
}

impl SessionProtocol for Toy {
    fn outbox(&mut self) -> &mut Outbox {
        &mut self.outbox
    }

    fn command(&mut self, command: SessionCommand, out: &mut Events) {
        match command {
            SessionCommand::Turn(turn) if turn.prompt.is_empty() => {
                out.error(AgentError::invalid_params("an empty prompt"));
                self.ended = Some(true);
                out.push(TurnEnd::new(true));
            }
            SessionCommand::Turn(turn) => {
                self.prompts += 1;
                self.outbox.write(&turn.prompt);
            }
            SessionCommand::SetModel(id, model) => self.outbox.answer(
                id,
                if model == "x" {
                    Ok(())
                } else {
                    Err(AgentError::invalid_params("no such model"))
                },
            ),
            _ => {}
        }
    }

    fn awaited_silence(&self) -> Option<Duration> {
        (self.prompts > 0).then_some(Duration::from_secs(2))
    }

    fn silence(&mut self, out: &mut Events) {
        self.line(br#"{"end":false}"#, out);
    }

    fn interrupted(&self) -> bool {
        self.cut
    }

    fn session_id(&self) -> Option<Id> {
        None
    }
}

fn session() -> SessionAssembler {
    SessionAssembler::new(Box::new(Toy::default()))
}

fn lines(session: &mut SessionAssembler, lines: &[&str]) {
    for line in lines {
        session.line(line.as_bytes());
    }
}

fn taken(session: &mut SessionAssembler) -> Vec<AgentEvent> {
    session.out().drain().collect()
}

fn names(events: &[AgentEvent]) -> Vec<&str> {
    events.iter().map(AgentEvent::type_name).collect()
}

fn result(events: &[AgentEvent]) -> &crate::RunResult {
    match events.last() {
        Some(AgentEvent::Done(done)) => &done.result,
        other => panic!("{other:?}"),
    }
}

#[test]
fn each_turn_has_its_own_text_and_end() {
    let mut session = session();
    assert_eq!(session.phase(), Phase::Idle);
    session.begin(Turn::new("one"));
    assert_eq!(session.outbox(Outbox::take_input), b"\"one\"\n");
    assert_eq!(session.phase(), Phase::Startup);
    lines(&mut session, &[r#"{"say":"a"}"#, r#"{"end":false}"#]);
    assert!(session.is_over());
    session.end_turn(7);
    let events = taken(&mut session);
    assert_eq!(names(&events).join(" "), "text turn_end done");
    assert_eq!(result(&events).text, "a");
    assert_eq!(result(&events).status, RunStatus::Completed);
    assert_eq!(result(&events).duration_ms, 7);
    assert_eq!(session.turn(), None);

    session.begin(Turn::new("two"));
    assert_eq!(session.phase(), Phase::Model, "it has started long ago");
    assert!(!session.is_over());
    lines(&mut session, &[r#"{"say":"b"}"#, r#"{"end":true}"#]);
    session.end_turn(0);
    let events = taken(&mut session);
    assert_eq!(result(&events).text, "b");
    assert_eq!(result(&events).status, RunStatus::Failed);
    assert_eq!(result(&events).diagnostics.lines, 2);
}

#[test]
fn silence_can_end_a_turn_and_is_nothing_of_the_next_one() {
    let mut session = session();
    assert_eq!(session.awaited_silence(), None);
    session.begin(Turn::new("one"));
    assert_eq!(session.awaited_silence(), Some(Duration::from_secs(2)));
    lines(&mut session, &[r#"{"say":"a"}"#]);
    assert!(!session.is_over());
    session.silence();
    assert!(session.is_over());
    session.end_turn(0);
    assert_eq!(names(&taken(&mut session)), ["text", "turn_end", "done"]);
    session.silence();
    session.begin(Turn::new("two"));
    assert!(!session.is_over());
    assert_eq!(names(&taken(&mut session)), [""; 0]);
}

#[test]
fn an_interrupted_turn_is_aborted() {
    let mut session = session();
    session.begin(Turn::new("one"));
    lines(&mut session, &[r#"{"end":true,"cut":true}"#]);
    session.end_turn(0);
    let events = taken(&mut session);
    assert_eq!(names(&events).join(" "), "turn_end error done");
    assert_eq!(result(&events).status, RunStatus::Aborted);
    assert_eq!(result(&events).exit_code, None);
}

#[test]
fn a_turn_that_is_interrupted_because_of_a_wrong_key_has_failed() {
    let mut session = session();
    session.begin(Turn::new("one"));
    assert_eq!(session.interruption(), Stop::Aborted);
    let wrong = AgentError::new(ErrorCode::CliError, ErrorKind::Auth, "wrong key");
    let retry = crate::Retry::new(1, wrong);
    session.runtime_event(AgentEvent::Retry(Box::new(retry)));
    assert!(session.hopeless().is_some());
    lines(&mut session, &[r#"{"end":true,"cut":true}"#]);
    session.end_turn(0);
    let events = taken(&mut session);
    assert_eq!(names(&events).join(" "), "retry turn_end error done");
    assert_eq!(result(&events).status, RunStatus::Failed);
    assert_eq!(result(&events).errors[0].kind, ErrorKind::Auth);
}

#[test]
fn a_process_that_ends_in_a_turn_takes_it_along() {
    let mut session = session();
    session.begin(Turn::new("one"));
    lines(&mut session, &[r#"{"say":"a"}"#]);
    session.finish(Exit::new(3), 0);
    let events = taken(&mut session);
    assert_eq!(names(&events).join(" "), "text error done");
    assert_eq!(result(&events).errors[0].code, ErrorCode::CliExitError);
    assert_eq!(result(&events).exit_code, Some(3));
}

#[test]
fn a_turn_can_fail_before_it_has_begun() {
    let mut session = session();
    session.begin(Turn::new(""));
    assert!(session.is_over());
    session.end_turn(0);
    assert_eq!(names(&taken(&mut session)), ["error", "turn_end", "done"]);
}

#[test]
fn output_between_two_turns_is_reported_with_the_next_one() {
    let mut session = session();
    lines(
        &mut session,
        &[r#"{"note":"x"}"#, r#"{"end":false}"#, "not JSON"],
    );
    assert_eq!(session.turn(), None);
    assert!(session.out().is_empty());
    session.begin(Turn::new("one"));
    lines(&mut session, &[r#"{"say":"a"}"#, r#"{"end":false}"#]);
    session.end_turn(0);
    let events = taken(&mut session);
    assert_eq!(names(&events).join(" "), "notice notice text turn_end done");
}

#[test]
fn turn_without_output_fails_unless_its_prompt_is_a_command() {
    for (slash_commands, prompt, expected) in [
        (false, "one", RunStatus::Failed),
        (false, "/one", RunStatus::Failed),
        (true, "one", RunStatus::Failed),
        (true, "/one", RunStatus::Completed),
    ] {
        let mut params = ExecuteParams::new("");
        params.slash_commands = slash_commands;
        let mut session = session().may_be_silent(params.commands());
        session.begin(Turn::new(prompt));
        lines(&mut session, &[r#"{"end":false}"#]);
        session.end_turn(0);
        let events = taken(&mut session);
        let result = result(&events);
        assert_eq!(result.status, expected, "{slash_commands} {prompt}");
        let kinds: Vec<_> = result.errors.iter().map(|error| error.kind).collect();
        let failed = expected == RunStatus::Failed;
        assert_eq!(kinds, Vec::from_iter(failed.then_some(ErrorKind::Protocol)));
    }
}

#[test]
fn a_turn_that_was_not_requested_is_a_turn() {
    let mut session = session();
    lines(
        &mut session,
        &[r#"{"note":"x"}"#, r#"{"say":"by the way"}"#],
    );
    assert_eq!(session.turn(), Some(TurnOrigin::Unasked));
    lines(&mut session, &[r#"{"end":false}"#]);
    assert!(session.is_over());
    session.end_turn(0);
    let events = taken(&mut session);
    assert_eq!(names(&events).join(" "), "notice text turn_end done");
    assert_eq!(result(&events).text, "by the way");
}

#[test]
fn the_last_of_what_is_offered_between_turns_is_kept() {
    let mut session = session();
    for _ in 0..HEAD {
        lines(&mut session, &[r#"{"note":"x"}"#]);
    }
    lines(&mut session, &[r#"{"offer":"low"}"#, r#"{"offer":"high"}"#]);
    session.begin(Turn::new("one"));
    let events = taken(&mut session);
    assert_eq!(events.len(), HEAD + 1);
    let high = Offers::new().efforts(vec!["high".to_owned()]);
    assert_eq!(events.last(), Some(&AgentEvent::from(high)));
}

#[test]
fn events_between_turns_are_kept_up_to_the_limit() {
    for of_the_engine in [false, true] {
        let mut session = session();
        for _ in 0..=HEAD {
            if of_the_engine {
                let event = AgentEvent::notice(NoticeLevel::Info, NoticeSource::Runtime, "x");
                session.runtime_event(event);
            } else {
                lines(&mut session, &[r#"{"note":"x"}"#]);
            }
        }
        session.begin(Turn::new("one"));
        assert_eq!(taken(&mut session).len(), HEAD, "{of_the_engine}");
    }
}

#[test]
fn a_line_lost_between_turns_is_reported_with_the_next_one() {
    let mut session = session();
    session.oversize_line(300, b"{");
    // There is no turn of which it could be.
    session.lost_output(5);
    assert_eq!(session.turn(), None);
    session.begin(Turn::new("one"));
    assert_eq!(names(&taken(&mut session)), ["notice"]);
    assert_eq!(session.phase(), Phase::Model);
    session.lost_output(5);
    assert_eq!(names(&taken(&mut session)), ["notice"]);
}

#[test]
fn a_command_is_settled_also_between_turns() {
    let mut session = session();
    session.command(SessionCommand::SetModel(
        crate::provider::CommandId::new(4),
        "x".into(),
    ));
    session.command(SessionCommand::SetModel(
        crate::provider::CommandId::new(5),
        "y".into(),
    ));
    let settled = session.outbox(Outbox::take_answers);
    assert_eq!(settled[0], (crate::provider::CommandId::new(4), Ok(())));
    assert!(settled[1].1.is_err());
}

#[test]
fn a_denial_is_reported_once_though_two_know_of_it() {
    let mut session = session();
    session.begin(Turn::new("one"));
    lines(&mut session, &[r#"{"ask":"Write"}"#]);
    let denied = || {
        AgentEvent::Permission(Box::new(
            PermissionEvent::new("Write", Decision::Denied).tool_id("t1"),
        ))
    };
    session.runtime_event(denied());
    session.runtime_event(denied());
    let exit = Exit::default();
    session.finish(exit, 0);
    let events = taken(&mut session);
    assert_eq!(names(&events).join(" "), "tool_use permission error done");
    assert_eq!(result(&events).permission_denials.len(), 1);
}
