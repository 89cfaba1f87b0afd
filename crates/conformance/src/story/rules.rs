//! Rules that hold for every played run, in any scenario.

use std::collections::BTreeSet;

use serde_json::Value;
use teamster::{AgentEvent, Decision, Id, PermissionEvent, RunResult, RunStatus, Usage};
use teamster_core::provider::grammar;

use crate::conversation::Answer;
use crate::played::{Played, SessionUsage};

/// Returns how the events of a run are not a stream as the grammar has it. That is never by the CLI.
pub(super) fn ungrammatical(played: &Played) -> Option<String> {
    // A turn that is reported as a part of another has an end of its own.
    let is_one = played.unasked == 0;
    let violation = grammar::check(&played.events).err().filter(|_| is_one)?;
    Some(violation.to_string())
}

/// Returns the rules that a run breaks, each with what it did.
pub(super) fn broken(played: &Played) -> Vec<Value> {
    let result = &played.result;
    let mut broken = Vec::new();
    if let Some(of_model) = &played.texts_of_model {
        broken.extend(foreign_texts(&played.events, of_model));
    }
    if result.status == RunStatus::Completed && !played.is_in_background {
        let open = result.open_tool_ids.iter();
        broken.extend(open.map(|id| format!("it completed, and the call {id} is open")));
    }
    let live = played.events.iter().rev().find_map(|event| match event {
        AgentEvent::Usage(report) => Some(report.usage),
        _ => None,
    });
    if let (Some(live), Some(end)) = (live, result.usage)
        && played.unasked == 0
    {
        for (name, live, end) in figures(live, end) {
            if live > end {
                broken.push(format!(
                    "{name}: {live} during the run, and {end} at its end"
                ));
            }
        }
    }
    let has_end = matches!(result.status, RunStatus::Completed | RunStatus::Incomplete);
    if let Some(usage) = result.usage.filter(|_| has_end)
        && !played.is_in_background
    {
        let answers = played.requests.iter().filter_map(Answer::of);
        broken.extend(not_of_the_answers(&answers.collect::<Vec<_>>(), usage));
    }
    broken.extend(unreported(&played.denials_by_cli, result));
    if let Some(session) = &played.usage_of_session {
        broken.extend(not_of_the_session(session));
    }
    if result.status == RunStatus::Completed {
        let open = unanswered(&played.events).into_iter();
        broken.extend(
            open.map(|tool| format!("it completed, and the request for {tool} has no answer")),
        );
    }
    broken.into_iter().map(Value::from).collect()
}

/// Returns the sums of tokens that are not those of the model's answers.
fn not_of_the_answers(answers: &[Answer], usage: Usage) -> Vec<String> {
    let sums = |least: bool| {
        let counted = answers.iter().filter(|answer| answer.counts || !least);
        counted.fold((0, 0), |(input, output), Answer { tokens, .. }| {
            let all = tokens.input + tokens.cache_read + tokens.cache_write;
            (input + all, output + tokens.output)
        })
    };
    let (least, most) = (sums(true), sums(false));
    let cached =
        usage.cache_read_tokens.unwrap_or_default() + usage.cache_write_tokens.unwrap_or_default();
    let input = usage.input_tokens.map(|input| input + cached);
    let mut wrong = Vec::new();
    for (name, of_run, least, most) in [
        ("input with cache", input, least.0, most.0),
        ("output", usage.output_tokens, least.1, most.1),
    ] {
        let of_run = of_run.filter(|it| !(least..=most).contains(it));
        wrong.extend(of_run.map(|it| {
            format!("{name}: {it} in the run, and the model's answers used {least} to {most}")
        }));
    }
    wrong
}

/// Returns the figures of the CLI's files that are not those of the session's runs and of the model's answers. Files that
/// have no number of requests are not compared with the answers.
fn not_of_the_session(session: &SessionUsage) -> Vec<String> {
    let mut wrong = Vec::new();
    for (name, files, runs) in figures(session.files, session.runs) {
        if files != runs {
            wrong.push(format!(
                "{name}: {files} in the CLI's files, and {runs} in the run"
            ));
        }
    }
    let (requests, answers) = (session.requests, &session.answers);
    if requests > 0 && !answers.contains(&requests) {
        let (least, most) = (answers.start(), answers.end());
        wrong.push(format!(
            "requests: {requests} in the CLI's files, and the model gave {least} to {most} answers"
        ));
    }
    wrong
}

/// Returns the calls that the CLI itself lists as denied, and the run does not.
fn unreported(by_cli: &BTreeSet<String>, result: &RunResult) -> Vec<String> {
    let denials = &result.permission_denials;
    let is_reported = |id: &str| denials.iter().any(|it| it.tool_id.as_deref() == Some(id));
    let unreported = by_cli.iter().filter(|id| !is_reported(id));
    unreported
        .map(|id| format!("the CLI lists the call {id} as denied, and the run does not"))
        .collect()
}

/// Returns the tools of requests for permission that were neither allowed nor denied.
fn unanswered(events: &[AgentEvent]) -> Vec<&str> {
    let mut open: Vec<&PermissionEvent> = Vec::new();
    for event in events {
        let AgentEvent::Permission(event) = event else {
            continue;
        };
        if event.decision == Decision::Requested {
            open.push(event);
            continue;
        }
        let is_it =
            |it: &&PermissionEvent| it.tool_name == event.tool_name && it.tool_id == event.tool_id;
        if let Some(at) = open.iter().position(is_it) {
            open.remove(at);
        }
    }
    open.into_iter().map(|it| it.tool_name.as_str()).collect()
}

/// Returns the texts of agents that the model did not write. A call, its result and the end of a turn end a message:
/// some have no ids.
fn foreign_texts(events: &[AgentEvent], of_model: &str) -> Vec<String> {
    let mut messages: Vec<(Option<Id>, Option<Id>, String)> = Vec::new();
    let mut open = 0;
    for event in events {
        match event {
            AgentEvent::Text(text) => {
                let mut growing = messages.iter_mut().skip(open);
                let known = growing.find(|(id, parent, _)| {
                    *id == text.message_id && *parent == text.parent_tool_id
                });
                match known {
                    Some((_, _, whole)) => whole.push_str(&text.text),
                    None => messages.push((
                        text.message_id.clone(),
                        text.parent_tool_id.clone(),
                        text.text.clone(),
                    )),
                }
            }
            AgentEvent::Retract(retract) => {
                for (id, _, text) in &mut messages {
                    if id.as_ref() == Some(&retract.message_id) {
                        text.clear();
                    }
                }
            }
            AgentEvent::ToolUse(_) | AgentEvent::ToolResult(_) | AgentEvent::TurnEnd(_) => {
                open = messages.len();
            }
            _ => {}
        }
    }
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let of_model = words(of_model);
    let texts = messages.iter().map(|(_, _, text)| words(text));
    let foreign = texts.filter(|text| !of_model.contains(text.as_str()));
    foreign
        .map(|text| {
            let start: String = text.chars().take(80).collect();
            format!("a text that is not the model's: {start:?}")
        })
        .collect()
}

/// Returns the figures of both sides by name. A figure of 0 is equivalent to none.
fn figures(one: Usage, other: Usage) -> [(&'static str, u64, u64); 4] {
    let pair = |name, pick: fn(Usage) -> Option<u64>| {
        (
            name,
            pick(one).unwrap_or_default(),
            pick(other).unwrap_or_default(),
        )
    };
    [
        pair("input", |usage| usage.input_tokens),
        pair("output", |usage| usage.output_tokens),
        pair("cache_read", |usage| usage.cache_read_tokens),
        pair("cache_write", |usage| usage.cache_write_tokens),
    ]
}

#[cfg(test)]
mod tests {
    //! Made-up events.

    use teamster::{PermissionDenial, Retract, Text, ToolKind, ToolUse};
    use teamster_mock_model::Tokens;

    use super::*;

    fn text(id: &str, text: &str) -> AgentEvent {
        AgentEvent::Text(Text::new(text).message_id(Some(id.into())))
    }

    #[test]
    fn texts_around_a_call_are_two_messages() {
        let call = ToolUse::new("sh", Id::from("c"), ToolKind::Execute, Value::Null);
        let events = [
            AgentEvent::Text(Text::new("I look.")),
            AgentEvent::ToolUse(Box::new(call)),
            AgentEvent::Text(Text::new("There.")),
        ];
        assert!(foreign_texts(&events, "I look.\nThere.").is_empty());
        let joined = foreign_texts(&[events[0].clone(), events[2].clone()], "I look.\nThere.");
        assert_eq!(joined.len(), 1);
    }

    #[test]
    fn a_text_is_a_piece_of_what_the_model_wrote() {
        let model = "I look at the files.\nThere are none.";
        let of_model = [
            text("a", "I look "),
            text("a", "at the files."),
            text("b", "There are"),
            text("c", "gone"),
            AgentEvent::Retract(Retract::new(Id::from("c"))),
        ];
        assert!(foreign_texts(&of_model, model).is_empty());
        let other = [text("a", "Compacting…")];
        assert_eq!(
            foreign_texts(&other, model),
            ["a text that is not the model's: \"Compacting…\""]
        );
    }

    #[test]
    fn a_request_is_answered_by_a_decision_for_the_same_call() {
        let decided = |id: &str, decision| {
            let event = PermissionEvent::new("sh", decision).tool_id(Some(Id::from(id)));
            AgentEvent::Permission(Box::new(event))
        };
        let events = [
            decided("a", Decision::Requested),
            decided("b", Decision::Requested),
            decided("b", Decision::Denied),
        ];
        assert_eq!(unanswered(&events), ["sh"]);
        assert!(unanswered(&events[1..]).is_empty());
    }

    #[test]
    fn tokens_of_a_run_are_those_of_the_answers() {
        let answer = |input, counts| {
            let mut tokens = Tokens::default();
            (tokens.input, tokens.output) = (input, 20);
            tokens.cache_read = 5;
            Answer { tokens, counts }
        };
        let answers = [answer(100, true), answer(200, true), answer(50, false)];
        let wrong = |input: u64, cached: u64, output: u64| {
            let usage = Usage::default().input_tokens(input);
            let usage = usage.cache_read_tokens(cached).output_tokens(output);
            not_of_the_answers(&answers, usage)
        };
        assert!(wrong(300, 10, 40).is_empty());
        assert!(wrong(350, 15, 60).is_empty(), "with the title");
        assert_eq!(
            wrong(200, 5, 61),
            [
                "input with cache: 205 in the run, and the model's answers used 310 to 365",
                "output: 61 in the run, and the model's answers used 40 to 60"
            ]
        );
        assert!(not_of_the_answers(&answers, Usage::default()).is_empty());
    }

    #[test]
    fn requests_in_the_files_are_the_answers_of_the_model() {
        let wrong = |requests, input| {
            let runs = Usage::default().input_tokens(300);
            not_of_the_session(&SessionUsage {
                files: Usage::default().input_tokens(input),
                runs,
                requests,
                answers: 2..=3,
            })
        };
        assert!(wrong(2, 300).is_empty());
        assert!(wrong(3, 300).is_empty(), "with the title");
        assert!(wrong(0, 300).is_empty(), "without a number of requests");
        assert_eq!(
            wrong(1, 200),
            [
                "input: 200 in the CLI's files, and 300 in the run",
                "requests: 1 in the CLI's files, and the model gave 2 to 3 answers"
            ]
        );
        assert_eq!(wrong(4, 300).len(), 1);
    }

    #[test]
    fn denials_that_the_cli_lists_are_reported() {
        let denial = |id: &str| PermissionDenial::new("sh").tool_id(Some(Id::from(id)));
        let result = RunResult::default().permission_denials(vec![denial("a"), denial("b")]);
        let by_cli =
            |ids: &[&str]| -> BTreeSet<String> { ids.iter().map(|id| (*id).to_owned()).collect() };
        assert!(unreported(&by_cli(&["a"]), &result).is_empty());
        assert_eq!(
            unreported(&by_cli(&["a", "c"]), &result),
            ["the CLI lists the call c as denied, and the run does not"]
        );
    }

    #[test]
    fn no_figure_is_the_same_as_0() {
        let mut used = Usage::default();
        used.input_tokens = Some(5);
        used.output_tokens = Some(0);
        let pairs = figures(used, Usage::default());
        assert_eq!(pairs[0], ("input", 5, 0));
        assert_eq!(pairs[1], ("output", 0, 0));
    }
}
