//! Rendering of a run's result, one field per line.

use teamster_core::{Diagnostics, ModelUsage, PermissionDenial, RunResult};

use super::quote::name;
use super::render::{Line, usage_words, usd, word};
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
    let RunResult {
        status: _,
        text,
        final_message,
        session_id,
        model,
        duration_ms,
        api_duration_ms,
        usage,
        session_usage,
        usage_by_model,
        total_cost_usd,
        cost_source,
        num_turns,
        stop_reason,
        aborted: _,
        exit_code: _,
        exit_signal: _,
        stderr,
        errors,
        permission_denials,
        open_tool_ids,
        structured_output,
        diagnostics,
        ..
    } = result;
    let mut field = |name: &str, write: &mut dyn FnMut(&mut Line)| {
        let mut line = Line::new(&format!("  {name}"), redactor);
        write(&mut line);
        line.end(out);
    };
    field("text", &mut |line| line.quoted(text));
    field("final", &mut |line| match final_message {
        Some(message) if message == text => line.word("= text"),
        Some(message) => line.quoted(message),
        None => line.word("-"),
    });
    field("session", &mut |line| {
        line.id_or_dash(IdKind::Session, session_id.as_ref());
    });
    field("model", &mut |line| line.word(or_dash(model.as_deref())));
    field("turns", &mut |line| {
        let turns = num_turns.map_or_else(|| "-".to_owned(), |turns| turns.to_string());
        line.word(turns);
        line.named("stop", stop_reason.as_deref().map(name));
    });
    field("usage", &mut |line| {
        line.word(usage.as_ref().map_or_else(|| "-".to_owned(), usage_words));
    });
    if let Some(usage) = session_usage {
        field("in session", &mut |line| line.word(usage_words(usage)));
    }
    for (model, model_usage) in usage_by_model {
        let ModelUsage {
            usage,
            cost_usd,
            context_window,
            max_output_tokens,
            ..
        } = model_usage;
        field("by model", &mut |line| {
            line.word(name(model));
            line.word(usage_words(usage));
            line.named("cost", cost_usd.map(usd));
            line.named("window", *context_window);
            line.named("maxOutput", *max_output_tokens);
        });
    }
    field("cost", &mut |line| {
        line.word(total_cost_usd.map_or_else(|| "-".to_owned(), usd));
        line.word(cost_source.as_ref().map(word).unwrap_or_default());
    });
    field("time", &mut |line| {
        let total = line.redactor().duration(*duration_ms);
        line.word(total);
        let api = api_duration_ms.map(|ms| line.redactor().duration(ms));
        line.named("api", api);
    });
    if let Some(stderr) = stderr {
        field("stderr", &mut |line| line.quoted(stderr));
    }
    for error in errors {
        field("error", &mut |line| line.error(error));
    }
    for PermissionDenial {
        tool_name,
        tool_id,
        reason,
        ..
    } in permission_denials
    {
        field("denied", &mut |line| {
            line.word(name(tool_name));
            line.id_or_dash(IdKind::Tool, tool_id.as_ref());
            line.quoted_if_some(reason.as_deref());
        });
    }
    if !open_tool_ids.is_empty() {
        field("open tools", &mut |line| {
            for id in open_tool_ids {
                line.id(IdKind::Tool, id);
            }
        });
    }
    if let Some(value) = structured_output {
        field("structured", &mut |line| line.json(value));
    }
    let Diagnostics {
        lines,
        malformed,
        oversize,
        unknown,
        ..
    } = diagnostics;
    field("lines", &mut |line| {
        line.word(lines.to_string());
        line.named("malformed", Some(malformed));
        line.named("oversize", Some(oversize));
        line.named("unknown", Some(unknown));
    });
}

fn or_dash(text: Option<&str>) -> String {
    text.map_or_else(|| "-".to_owned(), name)
}
