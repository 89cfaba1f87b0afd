//! Checks of the events of recorded runs.

use teamster_core::{AgentEvent, ErrorKind, Id, RunResult, RunStatus};

use super::output::{is_completed, location};
use super::{Failures, Suite, Tool, Verdict};
use crate::replay::Replay;

/// Shorter texts may be repeated, such as a blank line or a word. In bytes.
const WORTH_A_LOOK: usize = 8;

impl Suite {
    /// Checks that no text is emitted twice: neither as deltas and then as a whole, nor as a repeated
    /// message. The answer must be part of the text.
    pub fn text_once(&self) -> Verdict {
        let mut wrong = Failures::of("text_once");
        for fixture in &self.fixtures {
            let replay = self.replay(fixture);
            let scenario = fixture.meta.scenario.as_str();
            match (
                repeated_text(&replay.events),
                self.repeats.contains(&scenario),
            ) {
                (Some(text), false) => {
                    let text = teamster_core::text::excerpt(&text, 60);
                    wrong.add(
                        location(fixture),
                        format!("this text is there twice: {text:?}"),
                    );
                }
                (None, true) => {
                    wrong.add(location(fixture), "listed in `repeats`, repeats nothing");
                }
                _ => {}
            }
            if let Some(result) = replay.result()
                && let Some(answer) = &result.final_message
                && !result.text.contains(answer.as_str())
            {
                let what = format!("the final message is no part of the text: {answer:?}");
                wrong.add(location(fixture), what);
            }
        }
        wrong.verdict()
    }

    /// Checks that the text of a run is that of the model.
    pub fn texts(&self) -> Verdict {
        let mut wrong = Failures::of("texts");
        if self.texts.is_empty() {
            wrong.add("the suite", "give at least one `text`");
        }
        for (scenario, expected) in &self.texts {
            self.each_named(scenario, &mut wrong, |result, _| {
                if result.text == *expected {
                    return Ok(());
                }
                Err(format!("expected {expected:?}, got {:?}", result.text))
            });
        }
        wrong.verdict()
    }

    /// Checks that known tool calls occur once, with their results. In a completed run, every call must have
    /// one.
    pub fn tools(&self) -> Verdict {
        let mut wrong = Failures::of("tools");
        if self.tools.is_empty() {
            wrong.add("the suite", "give at least one `tool`");
        }
        for (scenario, tool) in &self.tools {
            self.each_named(scenario, &mut wrong, |_, replay| has_tool(replay, tool));
        }
        for fixture in &self.fixtures {
            let replay = self.replay(fixture);
            let open = replay.result().map(|result| &result.open_tool_ids);
            if let Some(ids) = open.filter(|ids| !ids.is_empty())
                && is_completed(&replay)
            {
                wrong.add(
                    location(fixture),
                    format!("completed, without results for {ids:?}"),
                );
            }
        }
        wrong.verdict()
    }

    /// Checks the status of known runs.
    pub fn statuses(&self) -> Verdict {
        let mut wrong = Failures::of("statuses");
        if self.statuses.is_empty() {
            wrong.add("the suite", "give at least one `status`");
        }
        for (scenario, status, kind) in &self.statuses {
            self.each_named(scenario, &mut wrong, |result, _| {
                let is = (result.status, last_error(result));
                if is == (*status, *kind) {
                    return Ok(());
                }
                Err(format!("expected {:?}, got {is:?}", (status, kind)))
            });
        }
        wrong.verdict()
    }

    /// Checks the invariants of the end of any run: a failed run has an error, a completed one has none, and
    /// errors of the CLI do not use the engine's codes.
    pub fn truths(&self) -> Verdict {
        let mut wrong = Failures::of("truths");
        for fixture in &self.fixtures {
            let replay = self.replay(fixture);
            let Some(result) = replay.result() else {
                wrong.add(location(fixture), "there is no result");
                continue;
            };
            let completed = result.status == RunStatus::Completed;
            if completed && !result.errors.is_empty() {
                let errors = &result.errors;
                wrong.add(
                    location(fixture),
                    format!("completed, with errors: {errors:?}"),
                );
            }
            if result.status == RunStatus::Failed && result.errors.is_empty() {
                wrong.add(location(fixture), "failed, without an error");
            }
            let stopped = [RunStatus::Aborted, RunStatus::TimedOut];
            if stopped.contains(&result.status) && fixture.meta.stopped.is_none() {
                let status = result.status;
                wrong.add(
                    location(fixture),
                    format!("{status:?}, though it was not stopped"),
                );
            }
            if result.errors.iter().any(|error| error.message.is_empty()) {
                wrong.add(location(fixture), "an error without a message");
            }
        }
        wrong.verdict()
    }

    /// Checks that the capabilities about output (`text_deltas`, `final_text`, `thinking`, `usage`, `cost`)
    /// match the fixtures. A declared one must occur in at least one of them, any other in none. With
    /// `final_text`, none may have a `retract`.
    pub fn reports(&self) -> Verdict {
        let replays: Vec<_> = self.fixtures.iter().map(|f| self.replay(f)).collect();
        let results = || replays.iter().filter_map(Replay::result);
        let has_thinking = |replay: &Replay| {
            replay
                .events
                .iter()
                .any(|e| matches!(e, AgentEvent::Thinking(_)))
        };
        let can = self.provider.capabilities();
        let mut wrong = Failures::of("reports");
        for (name, declared, seen) in [
            (
                "text_deltas",
                can.text_deltas,
                replays.iter().any(has_deltas),
            ),
            (
                "final_text",
                can.final_text,
                can.final_text && !replays.iter().any(has_retract),
            ),
            ("thinking", can.thinking, replays.iter().any(has_thinking)),
            ("usage", can.usage, results().any(|r| r.usage.is_some())),
            (
                "cost",
                can.cost,
                results().any(|r| r.total_cost_usd.is_some()),
            ),
        ] {
            if declared != seen {
                wrong.add(
                    name,
                    format!("the capabilities declare {declared}, the fixtures show {seen}"),
                );
            }
        }
        wrong.verdict()
    }

    fn each_named(
        &self,
        scenario: &str,
        wrong: &mut Failures,
        check: impl Fn(&RunResult, &Replay) -> Result<(), String>,
    ) {
        let fixtures = self.named(scenario);
        if fixtures.is_empty() {
            wrong.add(scenario, "there is no fixture of this name");
        }
        for fixture in fixtures {
            let replay = self.replay(fixture);
            let checked = match replay.result() {
                Some(result) => check(result, &replay),
                None => Err("there is no result".into()),
            };
            wrong.add_if_err(location(fixture), checked);
        }
    }
}

fn last_error(result: &RunResult) -> Option<ErrorKind> {
    result.errors.last().map(|error| error.kind)
}

/// Returns whether any text is retracted.
fn has_retract(replay: &Replay) -> bool {
    let retract = |event: &AgentEvent| matches!(event, AgentEvent::Retract(_));
    replay.events.iter().any(retract)
}

fn has_deltas(replay: &Replay) -> bool {
    let texts = |event: &AgentEvent| match event {
        AgentEvent::Text(e) => Some(e.message_id.clone()),
        _ => None,
    };
    let pairs = replay.events.windows(2);
    pairs
        .filter_map(|pair| Some((texts(&pair[0])?, texts(&pair[1])?)))
        .any(|(one, two)| one == two)
}

/// Returns a text that repeats all text before it, either since the last tool call or end of a turn, or
/// within its message.
fn repeated_text(events: &[AgentEvent]) -> Option<String> {
    let mut texts: Vec<(Option<Id>, &str)> = Vec::new();
    for event in events {
        match event {
            AgentEvent::Text(e) if e.parent_tool_id.is_none() => {
                let last = texts.last().map(|(id, _)| id.clone());
                let message = texts.iter().filter(|(id, _)| Some(id) == last.as_ref());
                let repeats = is_made_of(&e.text, texts.iter()) || is_made_of(&e.text, message);
                if e.text.len() >= WORTH_A_LOOK && repeats {
                    return Some(e.text.clone());
                }
                texts.push((e.message_id.clone(), &e.text));
            }
            AgentEvent::Retract(e) => texts.retain(|(id, _)| id.as_ref() != Some(&e.message_id)),
            AgentEvent::ToolUse(_) | AgentEvent::TurnEnd(_) => texts.clear(),
            _ => {}
        }
    }
    None
}

fn is_made_of<'a>(mut text: &str, pieces: impl Iterator<Item = &'a (Option<Id>, &'a str)>) -> bool {
    for (_, piece) in pieces {
        match text.strip_prefix(piece) {
            Some(rest) => text = rest,
            None => return false,
        }
    }
    text.is_empty()
}

fn has_tool(replay: &Replay, tool: &Tool) -> Result<(), String> {
    let is_it = |event: &AgentEvent| match event {
        AgentEvent::ToolUse(e) => {
            // Unescaped, so that quotes and newlines in the input match.
            let texts = texts_of(&e.input);
            let is_it = e.kind == tool.kind && texts.iter().any(|text| text.contains(tool.input));
            is_it.then(|| e.tool_id.clone())
        }
        _ => None,
    };
    let ids: Vec<Id> = replay.events.iter().filter_map(is_it).collect();
    let [id] = ids.as_slice() else {
        let (kind, input, count) = (tool.kind, tool.input, ids.len());
        return Err(format!(
            "expected one call of kind {kind:?} with {input:?} in its input, there are {count}"
        ));
    };
    let results = replay.events.iter().filter_map(|event| match event {
        AgentEvent::ToolResult(e) if e.tool_id == *id => Some(e),
        _ => None,
    });
    let Some(result) = results.into_iter().next() else {
        return Err(format!("the call of {:?} has no result", tool.input));
    };
    if !result.output.contains(tool.output) {
        let (expected, output) = (tool.output, &result.output);
        return Err(format!(
            "expected {expected:?} in the output, which is {output:?}"
        ));
    }
    // Some CLIs do not report the success of a command.
    let as_expected = match tool.is_error {
        Some(false) => result.is_error != Some(true),
        expected => result.is_error == expected,
    };
    if !as_expected {
        let (expected, is) = (tool.is_error, result.is_error);
        return Err(format!("expected is_error {expected:?}, got {is:?}"));
    }
    Ok(())
}

fn texts_of(value: &serde_json::Value) -> Vec<&str> {
    use serde_json::Value;
    match value {
        Value::String(text) => vec![text],
        Value::Array(items) => items.iter().flat_map(texts_of).collect(),
        Value::Object(object) => object.values().flat_map(texts_of).collect(),
        _ => Vec::new(),
    }
}
