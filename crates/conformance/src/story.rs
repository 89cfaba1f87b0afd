//! Stories of runs, in facts that mean the same for every CLI.

mod calls;
mod rules;

use std::collections::BTreeMap;

use serde_json::{Value, json};
use teamster::{AgentEvent, NoticeLevel, PlanEntry, RunResult, ToolUse};
use teamster_mock_model::{Part, Turn};

use crate::played::{Played, Process};
use crate::scenario::Scenario;
pub(crate) use calls::in_place;
use calls::{described_call, scripted_call};

/// A story: its facts by name. Unknown facts are absent.
pub(crate) type Story = BTreeMap<String, Value>;

/// Value of a fact that can be anything.
pub(crate) const ANY: &str = "(any)";

/// Returns the story of a scenario's script, with the facts that the scenario adds.
pub(crate) fn expected(scenario: &Scenario, run: usize) -> Story {
    let mut story = Story::new();
    let answers = scenario.answers(run);
    let complete: Vec<_> = answers
        .iter()
        .copied()
        .filter(|turn| is_whole(turn))
        .collect();
    let pieces = |pick: fn(&Part) -> Option<String>| -> String {
        let parts = complete.iter().flat_map(|turn| &turn.parts);
        parts.filter_map(pick).collect()
    };
    let text = pieces(|part| match part {
        Part::Text(pieces) => Some(pieces.concat()),
        _ => None,
    });
    let thinking = pieces(|part| match part {
        Part::Thinking(pieces) => Some(pieces.concat()),
        _ => None,
    });
    let in_pieces = complete
        .iter()
        .flat_map(|turn| &turn.parts)
        .any(|part| matches!(part, Part::Text(pieces) if pieces.0.len() > 1));
    if !text.is_empty() {
        story.insert("text".into(), text.into());
        if in_pieces {
            story.insert("streamed".into(), true.into());
        }
    }
    if !thinking.is_empty() {
        story.insert("thinking".into(), thinking.into());
    }
    // Calls of a sub-agent are part of the run; its text is not.
    let agents = scenario.agent_answers(run);
    let calls: Vec<_> = answers
        .iter()
        .chain(&agents)
        .flat_map(|turn| &turn.parts)
        .filter(|part| part.is_call() || matches!(part, Part::ServiceSearch(_)))
        .collect();
    for (at, part) in calls.iter().enumerate() {
        story.insert(format!("tool{}", at + 1), scripted_call(part).into());
        story.insert(format!("tool{}.output", at + 1), ANY.into());
    }
    if !calls.is_empty() {
        story.insert("tools".into(), calls.len().into());
    }
    let agents = agents.into_iter().filter(|turn| is_whole(turn));
    let counted: Vec<_> = complete.iter().copied().chain(agents).collect();
    let sum = |pick: fn(&Turn) -> u64| counted.iter().map(|turn| pick(turn)).sum::<u64>();
    let mut figures = |name: &str, figure: u64| {
        if figure > 0 {
            story.insert(format!("usage.{name}"), figure.into());
        }
    };
    figures("input", sum(|turn| turn.usage.input));
    figures("output", sum(|turn| turn.usage.output));
    figures("cache_read", sum(|turn| turn.usage.cache_read));
    figures("cache_write", sum(|turn| turn.usage.cache_write));
    figures("reasoning", sum(|turn| turn.usage.reasoning));
    if !complete.is_empty() {
        story.insert("cost".into(), true.into());
    }
    let of_run = &scenario.test.run[run];
    let is_new = of_run.resume == crate::scenario::Resume::New || of_run.fork;
    story.insert("session".into(), if is_new { "new" } else { "same" }.into());
    story.insert("prompt".into(), true.into());
    if scenario.test.run[run].mcp.is_some() {
        story.insert("warned".into(), false.into());
    }
    if scenario.test.run[run].image {
        story.insert("image".into(), true.into());
    }
    for (name, value) in &scenario.test.run[run].story {
        insert(&mut story, name, value);
    }
    story
}

/// Returns the story of the scenario as a turn of a session, after another one.
pub(crate) fn expected_hot(scenario: &Scenario, run: usize) -> Story {
    let mut story = expected(scenario, run);
    if let Some(session) = story.get_mut("session") {
        *session = "same".into();
    }
    story.insert("process".into(), Process::Same.word().into());
    for (name, value) in &scenario.test.run[run].hot {
        insert(&mut story, name, value);
    }
    story
}

/// Adds a fact to a story, or removes it.
fn insert(story: &mut Story, name: &str, value: &Value) {
    match value {
        // TOML has no null.
        Value::String(absent) if absent == "(absent)" => story.remove(name),
        _ => story.insert(name.to_owned(), value.clone()),
    };
}

/// Returns whether an answer reaches its own end, so that it counts.
fn is_whole(turn: &Turn) -> bool {
    turn.error.is_none() && !turn.breaks_off()
}

/// Returns the story of a run. Tools are numbered as in the expected story, because the order of concurrent
/// calls is random.
pub(crate) fn actual(played: &Played, expected: &Story) -> Story {
    let mut story = Story::new();
    let result = &played.result;
    story.insert("status".into(), json!(result.status));
    if !result.text.is_empty() {
        story.insert("text".into(), result.text.clone().into());
    }
    let mut thinking = String::new();
    let mut texts = 0;
    let mut tools = Vec::new();
    let mut plan = None;
    for event in &played.events {
        match event {
            AgentEvent::Thinking(event) => thinking.push_str(&event.text),
            AgentEvent::Text(_) => texts += 1,
            AgentEvent::ToolUse(tool) => tools.push(&**tool),
            AgentEvent::Plan(event) => plan = Some(&event.entries),
            AgentEvent::Retry(_) => {
                story.insert("retried".into(), true.into());
            }
            _ => {}
        }
    }
    if let Some(entries) = plan {
        let entry = |entry: &PlanEntry| json!([entry.content, entry.status]);
        story.insert("plan".into(), entries.iter().map(entry).collect());
    }
    if let Some(structured) = &result.structured_output {
        story.insert("structured".into(), structured.clone());
    }
    if let Some(arrived) = played.image_arrived {
        story.insert("image".into(), arrived.into());
    }
    if let Some(arrived) = played.answered {
        story.insert("answered".into(), arrived.into());
    }
    if let Some(times) = played.remembered {
        story.insert("remembered".into(), times.into());
    }
    if played.sent_again {
        story.insert("retried".into(), true.into());
    }
    if !thinking.is_empty() {
        story.insert("thinking".into(), thinking.into());
    }
    if played.in_pieces && !result.text.is_empty() {
        story.insert("streamed".into(), (texts > played.messages).into());
    }
    if played.has_mcp {
        let warned = played.warned_before || warned(&played.events);
        story.insert("warned".into(), warned.into());
    }
    if !tools.is_empty() {
        story.insert("tools".into(), tools.len().into());
    }
    for (number, tool) in numbered(&tools, played, expected) {
        tell_tool(&mut story, number, tool, played);
        // For long output, the number of lines is compared if the story expects it.
        let lines = format!("tool{number}.lines");
        if expected.contains_key(&lines)
            && let Some(output) = story
                .get(&format!("tool{number}.output"))
                .and_then(Value::as_str)
        {
            story.insert(lines, output.lines().count().into());
        }
    }
    if !result.permission_denials.is_empty() {
        story.insert("denials".into(), result.permission_denials.len().into());
    }
    if let Some(error) = result.errors.last() {
        story.insert("error".into(), json!(error.kind));
        story.insert("error.code".into(), json!(error.code));
        story.insert("error.retryable".into(), error.retryable.into());
        if let Some(ms) = error.retry_after_ms {
            story.insert("error.retry_after_ms".into(), ms.into());
        }
    }
    tell_figures(&mut story, result);
    if let Some(session) = &result.session_id {
        let same = played.session_before.as_deref() == Some(&**session);
        story.insert("session".into(), if same { "same" } else { "new" }.into());
    }
    if let Some(process) = played.process {
        story.insert("process".into(), process.word().into());
    }
    if played.unasked > 0 {
        story.insert("unasked".into(), played.unasked.into());
    }
    if let Some(arrived) = played.prompt_arrived {
        story.insert("prompt".into(), arrived.into());
    }
    if !played.processes_left.is_empty() {
        story.insert("processes".into(), json!(played.processes_left));
    }
    let mut lines = |name: &str, count: u64| {
        if count > 0 {
            story.insert(name.into(), count.into());
        }
    };
    lines("unknown_lines", result.diagnostics.unknown);
    lines("other_lines", result.diagnostics.malformed);
    if let Some(violation) = rules::ungrammatical(played) {
        story.insert("grammar".into(), violation.into());
    }
    let broken = rules::broken(played);
    if !broken.is_empty() {
        story.insert("rules".into(), broken.into());
    }
    for (name, content) in &played.files {
        story.insert(format!("file.{name}"), content.clone().into());
    }
    story
}

/// Returns whether a warning named the MCP server.
pub(crate) fn warned(events: &[AgentEvent]) -> bool {
    events.iter().any(|event| match event {
        AgentEvent::Notice(notice) => {
            notice.level == NoticeLevel::Warning && notice.message.contains("tiny")
        }
        _ => false,
    })
}

/// Returns the calls, with the numbers of matching calls in the expected story.
fn numbered<'p>(
    tools: &[&'p ToolUse],
    played: &Played,
    expected: &Story,
) -> Vec<(usize, &'p ToolUse)> {
    let mut left: Vec<_> = tools.to_vec();
    let mut placed: Vec<Option<&ToolUse>> = Vec::new();
    for number in 1..=tools.len() {
        let wanted = expected.get(&format!("tool{number}"));
        let at = left.iter().position(|tool| {
            wanted.is_some_and(|wanted| *wanted == described_call(tool, &played.directory))
        });
        placed.push(at.map(|at| left.remove(at)));
    }
    let mut left = left.into_iter();
    placed
        .into_iter()
        .enumerate()
        .filter_map(|(at, tool)| Some((at + 1, tool.or_else(|| left.next())?)))
        .collect()
}

fn tell_figures(story: &mut Story, result: &RunResult) {
    let usage = result.usage.unwrap_or_default();
    for (name, figure) in [
        ("input", usage.input_tokens),
        ("output", usage.output_tokens),
        ("cache_read", usage.cache_read_tokens),
        ("cache_write", usage.cache_write_tokens),
        ("reasoning", usage.reasoning_tokens),
    ] {
        // A figure of 0 is equivalent to none.
        if let Some(figure @ 1..) = figure {
            story.insert(format!("usage.{name}"), figure.into());
        }
    }
    if result.total_cost_usd.is_some_and(|cost| cost > 0.0) {
        story.insert("cost".into(), true.into());
    }
}

fn tell_tool(story: &mut Story, number: usize, tool: &ToolUse, played: &Played) {
    story.insert(
        format!("tool{number}"),
        described_call(tool, &played.directory).into(),
    );
    let result = played.events.iter().find_map(|event| match event {
        AgentEvent::ToolResult(result) if result.tool_id == tool.tool_id => Some(result),
        _ => None,
    });
    if let Some(result) = result {
        let output = in_place(&result.output, &played.directory);
        story.insert(format!("tool{number}.output"), output.trim().into());
        // An explicit success is equivalent to no report.
        if result.is_error == Some(true) {
            story.insert(format!("tool{number}.failed"), true.into());
        }
    }
}
