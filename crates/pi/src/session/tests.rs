//! Hand-made lines. A recorded conversation is in `tests/sessions.rs` of the crate.

use serde_json::{Value, json};
use teamster_core::provider::{CommandId, Outbox, SessionAssembler, SessionCommand, grammar};
use teamster_core::{
    AgentError, AgentEvent, ErrorKind, Image, ModelChoice, Offers, RunResult, RunStatus,
    SessionOptions, SessionProvider, SlashCommand, Turn,
};
use teamster_testkit::events::payloads;

use crate::Pi;

/// A session and the messages exchanged with it.
struct Talk {
    session: SessionAssembler,
}

impl Talk {
    fn new(change: impl FnOnce(&mut SessionOptions)) -> Self {
        let mut options = SessionOptions::default();
        change(&mut options);
        let session =
            SessionAssembler::new(Pi.protocol(&options)).may_be_silent(options.params.commands());
        Self { session }
    }

    /// Creates a session whose state is known.
    fn ready() -> Self {
        let mut talk = Self::new(|_| {});
        let asked = talk.written();
        assert_eq!(asked.len(), 1);
        assert_eq!(asked[0]["type"], "get_state");
        talk.answer(
            &asked[0],
            &json!({"data": {"sessionId": "s-1", "model": {"id": "m", "provider": "p"}}}),
        );
        talk
    }

    fn say(&mut self, line: &Value) {
        self.session.line(line.to_string().as_bytes());
    }

    fn answer(&mut self, command: &Value, more: &Value) {
        let mut line = json!({"id": command["id"], "type": "response",
            "command": command["type"], "success": true});
        for (name, value) in more.as_object().unwrap() {
            line[name] = value.clone();
        }
        self.say(&line);
    }

    fn written(&self) -> Vec<Value> {
        let written = self.session.outbox(Outbox::take_input);
        let lines = String::from_utf8(written).unwrap();
        let lines = lines
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).unwrap());
        // Only a test of what the session offers responds to these.
        let is_other = |line: &Value| {
            let kind = line["type"].as_str().unwrap_or_default();
            !kind.starts_with("get_available_")
        };
        lines.filter(is_other).collect()
    }

    fn settled(&self) -> Vec<(CommandId, Result<(), AgentError>)> {
        self.session.outbox(Outbox::take_answers)
    }

    /// Begins a turn, with the CLI's start of it.
    fn turn(&mut self) -> Value {
        self.session.begin(Turn::new("x"));
        let prompt = self.written().remove(0);
        self.answer(&prompt, &json!({}));
        self.say(&json!({"type": "agent_start"}));
        prompt
    }

    fn answered(&mut self, text: &str, stop: &str) {
        self.say(
            &json!({"type": "message_end", "message": {"role": "assistant", "model": "m",
            "content": [{"type": "text", "text": text}], "stopReason": stop,
            "usage": {"input": 5, "output": 1, "cost": {"total": 0.5}}}}),
        );
        self.say(&json!({"type": "agent_settled"}));
    }

    fn end(&mut self) -> (Vec<AgentEvent>, RunResult) {
        assert!(self.session.is_over());
        self.session.end_turn(0);
        let events: Vec<_> = self.session.out().drain().collect();
        assert_eq!(grammar::check(&events), Ok(()));
        let Some(AgentEvent::Done(done)) = events.last() else {
            panic!("{events:#?}");
        };
        let result = (*done.result).clone();
        (events, result)
    }
}

#[test]
fn each_turn_has_its_session_and_its_own_usage() {
    let mut talk = Talk::ready();
    for _ in 0..2 {
        let prompt = talk.turn();
        assert_eq!(prompt["type"], "prompt");
        assert_eq!(prompt["message"], "x");
        talk.answered("Hi.", "stop");
        let (events, result) = talk.end();
        let names: Vec<_> = events.iter().map(AgentEvent::type_name).collect();
        assert_eq!(names, ["session", "text", "usage", "turn_end", "done"]);
        assert_eq!(result.session_id.as_deref(), Some("s-1"));
        assert_eq!(result.usage.unwrap().input_tokens, Some(5));
        assert_eq!(result.total_cost_usd, Some(0.5));
        assert_eq!(result.status, RunStatus::Completed);
    }
}

#[test]
fn the_first_turn_may_begin_before_the_session_is_known() {
    let mut talk = Talk::new(|_| {});
    talk.session.begin(Turn::new("x"));
    let written = talk.written();
    assert_eq!(written.len(), 2);
    talk.answer(&written[0], &json!({"data": {"sessionId": "s-1"}}));
    talk.answer(&written[1], &json!({}));
    talk.say(&json!({"type": "agent_start"}));
    talk.answered("Hi.", "stop");
    let (events, _) = talk.end();
    assert_eq!(events[0].type_name(), "session");
}

#[test]
fn a_prompt_is_a_command_only_where_that_is_wanted() {
    for (wanted, message) in [(false, " /x"), (true, "/x")] {
        let mut talk = Talk::new(|options| options.params.slash_commands = wanted);
        talk.session.begin(Turn::new("/x"));
        assert_eq!(talk.written().pop().unwrap()["message"], message);
    }
    // A command of an extension has no answer: the CLI is asked whether it is working.
    let mut talk = Talk::new(|options| options.params.slash_commands = true);
    talk.session.begin(Turn::new("/x"));
    let prompt = talk.written().pop().unwrap();
    talk.answer(&prompt, &json!({}));
    let state = talk.written().remove(0);
    talk.answer(&state, &json!({"data": {"isStreaming": false}}));
    assert_eq!(talk.end().1.status, RunStatus::Completed);
}

#[test]
fn images_go_with_a_prompt() {
    let mut talk = Talk::ready();
    let image = Image::bytes("image/png", *b"abc");
    talk.session.begin(Turn::new("x").images([image]));
    assert_eq!(
        talk.written()[0]["images"],
        json!([{"type": "image", "data": "YWJj", "mimeType": "image/png"}])
    );
}

#[test]
fn a_message_in_a_turn_is_steering() {
    let mut talk = Talk::ready();
    talk.session
        .command(SessionCommand::Steer(CommandId::new(1), "too early".into()));
    assert!(talk.settled()[0].1.is_err());
    talk.turn();
    talk.session
        .command(SessionCommand::Steer(CommandId::new(2), "/stop".into()));
    let steer = talk.written().remove(0);
    assert_eq!(
        (&steer["type"], &steer["message"]),
        (&json!("steer"), &json!(" /stop"))
    );
    assert!(talk.settled().is_empty());
    talk.answer(&steer, &json!({}));
    assert_eq!(talk.settled(), [(CommandId::new(2), Ok(()))]);
    // The turn ends before the agent takes the message.
    talk.say(&json!({"type": "queue_update", "steering": [" /stop"], "followUp": []}));
    talk.answered("Hi.", "stop");
    assert_eq!(talk.written()[0]["type"], "clear_queue");
    let (events, _) = talk.end();
    assert!(events.iter().any(|event| event.type_name() == "notice"));
}

#[test]
fn an_interrupted_turn_is_aborted_also_if_it_had_not_begun() {
    let mut talk = Talk::ready();
    talk.turn();
    talk.session.command(SessionCommand::Interrupt);
    talk.session.command(SessionCommand::Interrupt);
    let written = talk.written();
    let types: Vec<_> = written.iter().map(|line| line["type"].clone()).collect();
    assert_eq!(types, ["clear_queue", "abort"]);
    talk.answered("", "aborted");
    let (_, result) = talk.end();
    assert_eq!(result.status, RunStatus::Aborted);

    talk.session.begin(Turn::new("x"));
    talk.session.command(SessionCommand::Interrupt);
    let written = talk.written();
    talk.answer(&written[2], &json!({}));
    talk.answer(&written[0], &json!({}));
    assert!(talk.written().is_empty() && !talk.session.is_over());
    talk.say(&json!({"type": "agent_start"}));
    assert_eq!(talk.written()[0]["type"], "abort");
    talk.answered("", "aborted");
    assert_eq!(talk.end().1.status, RunStatus::Aborted);
}

#[test]
fn a_turn_that_waits_for_a_retry_is_aborted() {
    // The lines of both versions after an abort. Before 1.1, the last one has no `aborted`.
    for settled in [
        json!({"type": "agent_settled"}),
        json!({"type": "agent_settled", "aborted": true}),
    ] {
        let mut talk = Talk::ready();
        talk.turn();
        talk.say(
            &json!({"type": "message_end", "message": {"role": "assistant", "content": [],
            "stopReason": "error", "errorMessage": "429 Slow down."}}),
        );
        talk.say(
            &json!({"type": "auto_retry_start", "attempt": 1, "maxAttempts": 3, "delayMs": 2000,
            "errorMessage": "429 Slow down."}),
        );
        talk.session.command(SessionCommand::Interrupt);
        talk.say(
            &json!({"type": "auto_retry_end", "success": false, "attempt": 1,
            "finalError": "Retry cancelled"}),
        );
        talk.say(&settled);
        let (_, result) = talk.end();
        assert_eq!(result.status, RunStatus::Aborted);
        assert_eq!(result.errors[0].kind, ErrorKind::Aborted);
        assert_eq!(result.errors[0].message, "the answer was aborted");
    }
}

#[test]
fn a_prompt_that_is_refused_is_a_failed_turn() {
    let mut talk = Talk::ready();
    talk.session.begin(Turn::new("x"));
    let prompt = talk.written().remove(0);
    talk.answer(
        &prompt,
        &json!({"success": false, "error": "No API key found for anthropic."}),
    );
    let (_, result) = talk.end();
    assert_eq!(result.status, RunStatus::Failed);
    assert_eq!(result.errors[0].kind, ErrorKind::Auth);
}

#[test]
fn a_prompt_that_an_extension_took_ends_its_turn() {
    let mut talk = Talk::ready();
    talk.session.begin(Turn::new("x"));
    let prompt = talk.written().remove(0);
    talk.answer(&prompt, &json!({"data": {"disposition": "handled"}}));
    let asked = talk.written().remove(0);
    assert_eq!(asked["type"], "get_state");
    assert!(!talk.session.is_over());
    talk.answer(&asked, &json!({"data": {"isStreaming": false}}));
    let (_, result) = talk.end();
    // Not a success: the agent has answered nothing.
    assert_eq!(result.status, RunStatus::Failed);
    assert_eq!(result.errors[0].kind, ErrorKind::Protocol);
}

#[test]
fn a_session_offers_the_commands_that_the_cli_lists() {
    let mut talk = Talk::new(|options| options.params.slash_commands = true);
    let asked = talk.written();
    assert_eq!(asked[1]["type"], "get_commands");
    talk.answer(&asked[0], &json!({"data": {"sessionId": "s-1"}}));
    let commands =
        json!([{"name": "skill:fix", "description": "Fix it", "source": "skill"}, {"name": "x"}]);
    talk.answer(&asked[1], &json!({"data": {"commands": commands}}));
    talk.turn();
    talk.answered("Hi.", "stop");
    let (events, _) = talk.end();
    let offers = events.into_iter().find_map(|event| match event {
        AgentEvent::Offers(offers) => offers.commands,
        _ => None,
    });
    assert_eq!(
        offers.unwrap(),
        [
            SlashCommand::new("skill:fix").description("Fix it"),
            SlashCommand::new("x")
        ]
    );

    // A version without this command has none.
    let mut talk = Talk::new(|options| options.params.slash_commands = true);
    let asked = talk.written();
    talk.answer(&asked[0], &json!({"data": {"sessionId": "s-1"}}));
    talk.answer(
        &asked[1],
        &json!({"success": false, "error": "Unknown command"}),
    );
    talk.turn();
    talk.answered("Hi.", "stop");
    let (events, _) = talk.end();
    let is_about_it =
        |event: &&AgentEvent| matches!(event, AgentEvent::Notice(_) | AgentEvent::Offers(_));
    assert_eq!(events.iter().find(is_about_it), None);
}

#[test]
fn models_and_levels_are_those_that_the_cli_lists() {
    let mut talk = Talk::ready();
    // Made by hand after the responses of 1.6.0, which have more models and fields.
    talk.say(
        &json!({"id": "get_available_models", "type": "response", "command": "get_available_models",
        "success": true, "data": {"models": [
            {"id": "claude-haiku-4-5", "name": "Claude Haiku 4.5", "provider": "anthropic"}, {"name": "none"}]}}),
    );
    talk.say(
        &json!({"id": "get_available_thinking_levels", "type": "response", "success": true,
        "command": "get_available_thinking_levels", "data": {"levels": ["low", "max"]}}),
    );
    talk.turn();
    talk.answered("Hi.", "stop");
    let (events, _) = talk.end();
    let offers = payloads::<Offers>(&events).next();
    let model = ModelChoice::new("anthropic/claude-haiku-4-5").name("Claude Haiku 4.5");
    let expected = Offers::new()
        .models(vec![model])
        .efforts(vec!["low".to_owned(), "max".to_owned()]);
    assert_eq!(*offers.unwrap(), expected);
}

#[test]
fn a_process_that_is_only_asked_begins_and_starts_nothing() {
    let mut options = SessionOptions::default();
    options.params.slash_commands = true;
    options.params.session_id = Some("s-1".to_owned());
    let query = Pi.offers_query(&options).unwrap().unwrap();
    let args: Vec<_> = query
        .launch
        .args
        .iter()
        .map(|it| it.to_str().unwrap())
        .collect();
    assert!(
        args.ends_with(&["--no-session", "--no-extensions"]),
        "{args:?}"
    );
    assert!(!args.contains(&"s-1"), "{args:?}");
    let mut session = SessionAssembler::new(Box::new(query.protocol));
    let written = String::from_utf8(session.outbox(Outbox::take_input)).unwrap();
    let asked: Vec<Value> = written
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(asked.len(), 3, "{written}");
    session.begin(Turn::new("-"));
    let data = [
        json!({"commands": [{"name": "fix"}]}),
        json!({"models": []}),
        json!({"levels": ["off"]}),
    ];
    for (asked, data) in asked.iter().zip(data) {
        assert!(!session.is_over());
        let line = json!({"id": asked["id"], "type": "response", "command": asked["type"],
            "success": true, "data": data});
        session.line(line.to_string().as_bytes());
    }
    assert!(session.is_over());
    let mut offers = Offers::new();
    for event in session.out().drain() {
        if let AgentEvent::Offers(change) = event {
            offers.update(&change);
        }
    }
    let expected = Offers::new()
        .commands(vec![SlashCommand::new("fix")])
        .efforts(vec!["off".to_owned()]);
    assert_eq!(offers, expected);
}

#[test]
fn a_cleared_session_has_another_id() {
    let mut talk = Talk::ready();
    talk.session
        .command(SessionCommand::Clear(CommandId::new(7)));
    let new = talk.written().remove(0);
    talk.answer(&new, &json!({"data": {"cancelled": false}}));
    assert!(talk.settled().is_empty());
    let state = talk.written().remove(0);
    talk.answer(&state, &json!({"data": {"sessionId": "s-2"}}));
    assert_eq!(talk.settled(), [(CommandId::new(7), Ok(()))]);
    talk.turn();
    talk.answered("Hi.", "stop");
    assert_eq!(talk.end().1.session_id.as_deref(), Some("s-2"));
}

#[test]
fn a_model_has_its_provider_with_it_or_that_of_the_model_before() {
    let mut talk = Talk::ready();
    for (model, provider, id) in [("a/b/c", "a", "b/c"), ("n", "p", "n")] {
        talk.session
            .command(SessionCommand::SetModel(CommandId::new(1), model.into()));
        let set = talk.written().remove(0);
        assert_eq!(
            (&set["provider"], &set["modelId"]),
            (&json!(provider), &json!(id))
        );
    }
}

/// Runs a turn in which an extension asks. Returns the question and the written answer.
fn asked(
    method: &str,
    more: &Value,
    answer: teamster_core::PermissionAnswer,
) -> (teamster_core::PermissionRequest, Value) {
    let mut talk = Talk::ready();
    talk.turn();
    let mut line = json!({"type": "extension_ui_request", "id": "u-1", "method": method,
        "title": "Which colour?"});
    for (name, value) in more.as_object().unwrap() {
        line[name] = value.clone();
    }
    talk.say(&line);
    assert!(talk.written().is_empty());
    let mut asked = talk.session.outbox(Outbox::take_requests);
    assert_eq!(asked.len(), 1);
    talk.session.answer(&asked[0], answer);
    let written = talk.written();
    assert_eq!(written.len(), 1);
    talk.answered("Hi.", "stop");
    talk.end();
    (asked.remove(0), written[0].clone())
}

// Made by hand: questions of version 1.6.0, shortened.
#[test]
fn an_extension_s_question_goes_to_the_caller() {
    use teamster_core::PermissionAnswer::{Allow, AllowWith, Deny};
    let answer = |fields: Value| {
        let mut line = json!({"type": "extension_ui_response", "id": "u-1"});
        for (name, value) in fields.as_object().unwrap() {
            line[name] = value.clone();
        }
        line
    };
    let options = json!({"options": ["Red", "Blue"]});
    let (question, written) = asked("select", &options, AllowWith(json!({"value": "Blue"})));
    assert_eq!(question.message.as_deref(), Some("Which colour?"));
    assert!(question.takes_input);
    let schema = question.schema.unwrap();
    assert_eq!(
        schema["properties"]["value"]["enum"],
        json!(["Red", "Blue"])
    );
    assert_eq!(written, answer(json!({"value": "Blue"})));
    let sure = json!({"message": "It is gone then."});
    let (question, written) = asked("confirm", &sure, AllowWith(json!({"confirmed": true})));
    assert_eq!(
        question.message.as_deref(),
        Some("Which colour?\nIt is gone then.")
    );
    assert_eq!(written, answer(json!({"confirmed": true})));
    let (_, written) = asked("input", &json!({}), AllowWith(json!({"value": "green"})));
    assert_eq!(written, answer(json!({"value": "green"})));
    for no in [Deny(None), Allow, AllowWith(json!({"other": 1}))] {
        let (_, written) = asked("editor", &json!({}), no);
        assert_eq!(written, answer(json!({"cancelled": true})));
    }
}

#[test]
fn question_ends_with_its_turn() {
    let question = json!({"type": "extension_ui_request", "id": "u-1", "method": "confirm",
        "title": "Delete all?"});
    let closed = json!({"type": "extension_ui_response", "id": "u-1", "cancelled": true});
    let mut talk = Talk::ready();
    talk.turn();
    talk.say(&question);
    talk.answered("Hi.", "stop");
    assert_eq!(talk.written(), std::slice::from_ref(&closed));
    talk.end();
    talk.say(&question);
    assert_eq!(talk.written(), [closed]);
    assert!(talk.session.turn().is_none());
}
