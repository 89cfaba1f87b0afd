//! Rendering of a run's result, one field per line.

use teamster_core::RunResult;

use super::quote::name;
use super::render::{Line, or_dash, usage_words, usd, word};
use super::{IdKind, Redactor};

/// Renders the fields on the line of `done` itself.
pub(super) fn status(result: &RunResult, line: &mut Line) {
    line.word(word(&result.status));
    line.named("aborted", result.aborted.then_some(true));
    line.named("exit", result.exit_code);
    line.named("signal", result.exit_signal.as_ref());
}

/// Renders the other fields, one per line.
pub(super) fn fields(result: &RunResult, redactor: &mut Redactor, out: &mut String) {
    let mut field = |name: &str, write: &mut dyn FnMut(&mut Line)| {
        let mut line = Line::new(&format!("  {name}"), redactor);
        write(&mut line);
        line.end(out);
    };
    field("text", &mut |line| line.quoted(&result.text));
    field("final", &mut |line| match &result.final_message {
        Some(message) if *message == result.text => line.word("= text"),
        Some(message) => line.quoted(message),
        None => line.word("-"),
    });
    field("session", &mut |line| {
        line.id_or_dash(IdKind::Session, result.session_id.as_ref());
    });
    field("model", &mut |line| {
        line.word(or_dash(result.model.as_deref(), name));
    });
    field("turns", &mut |line| {
        line.word(or_dash(result.num_turns, |turns| turns.to_string()));
        line.named("stop", result.stop_reason.as_deref().map(name));
    });
    field("usage", &mut |line| {
        line.word(or_dash(result.usage.as_ref(), usage_words));
    });
    if let Some(usage) = &result.session_usage {
        field("in session", &mut |line| line.word(usage_words(usage)));
    }
    for (model, it) in &result.usage_by_model {
        field("by model", &mut |line| {
            line.word(name(model));
            line.word(usage_words(&it.usage));
            line.named("cost", it.cost_usd.map(usd));
            line.named("window", it.context_window);
            line.named("maxOutput", it.max_output_tokens);
        });
    }
    field("cost", &mut |line| {
        line.word(or_dash(result.total_cost_usd, usd));
        line.word(result.cost_source.as_ref().map(word).unwrap_or_default());
    });
    field("time", &mut |line| {
        let total = line.redactor().duration(result.duration_ms);
        line.word(total);
        let api = result.api_duration_ms;
        let api = api.map(|ms| line.redactor().duration(ms));
        line.named("api", api);
    });
    if let Some(stderr) = &result.stderr {
        field("stderr", &mut |line| line.quoted(stderr));
    }
    for error in &result.errors {
        field("error", &mut |line| line.error(error));
    }
    for denial in &result.permission_denials {
        field("denied", &mut |line| {
            line.word(name(&denial.tool_name));
            line.id_or_dash(IdKind::Tool, denial.tool_id.as_ref());
            line.quoted_if_some(denial.reason.as_deref());
        });
    }
    if !result.open_tool_ids.is_empty() {
        field("open tools", &mut |line| {
            for id in &result.open_tool_ids {
                line.id(IdKind::Tool, id);
            }
        });
    }
    if let Some(value) = &result.structured_output {
        field("structured", &mut |line| line.json(value));
    }
    field("lines", &mut |line| {
        let counts = &result.diagnostics;
        line.word(counts.lines.to_string());
        line.named("malformed", Some(counts.malformed));
        line.named("oversize", Some(counts.oversize));
        line.named("unknown", Some(counts.unknown));
    });
}
