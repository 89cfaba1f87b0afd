//! A run in a row of the history.

use sqlx::Row;
use sqlx::any::AnyRow;
use teamster_api::Attempt;
use teamster_api::history::{RunRecord, RunState};
use teamster_core::time::millis;
use teamster_core::{AgentError, ErrorCode, Usage};

use crate::column::{figure, from_word, optional_figure, path_from_column, printable, small, text};
use crate::process::{Presence, Writer};
use crate::run::LOST_AFTER;

const COLUMNS: &str = "run_id, prompt_hash, provider, model, session_id, conversation, \
    working_directory, status, started_at, ended_at, duration_ms, input_tokens, output_tokens, \
    cache_read_tokens, cache_write_tokens, reasoning_tokens, cost_usd, cost_source, num_turns, error_kind, \
    error_message, error_retryable, error, workspace, attempts, attempt_log, host, process_space, pid, \
    process_start, heartbeat_at, title";

/// Returns a query of runs: what is read of each, and `rest` of the statement.
pub(crate) fn select_runs(rest: &str) -> String {
    format!("SELECT {COLUMNS} FROM teamster_runs {rest}")
}

pub(super) fn read(row: &AnyRow, here: &Writer, now: u64) -> Result<RunRecord, sqlx::Error> {
    let optional = |column: &str| row.try_get::<Option<String>, _>(column);
    let writer = Writer {
        host: row.try_get("host")?,
        space: optional("process_space")?,
        pid: small(figure(row, "pid")?),
        started: optional_figure(row, "process_start")?,
    };
    let heartbeat_at = figure(row, "heartbeat_at")?;
    let stored = row.try_get::<String, _>("status")?;
    let mut status = RunState::from_name(&printable(&stored));
    // The heartbeat counts only if the process cannot be checked.
    let is_over = || match writer.presence(here) {
        Presence::Running => false,
        Presence::Ended => true,
        _ => is_lost(heartbeat_at, now),
    };
    if status == RunState::Running && is_over() {
        status = RunState::Interrupted;
    }
    let usage = Usage::default()
        .input_tokens(optional_figure(row, "input_tokens")?)
        .output_tokens(optional_figure(row, "output_tokens")?)
        .cache_read_tokens(optional_figure(row, "cache_read_tokens")?)
        .cache_write_tokens(optional_figure(row, "cache_write_tokens")?)
        .reasoning_tokens(optional_figure(row, "reasoning_tokens")?);
    let error = match optional("error_kind")? {
        None => None,
        Some(kind) => {
            let message = optional("error_message")?.unwrap_or_default();
            let retryable = optional_figure(row, "error_retryable")? == Some(1);
            let error = AgentError::new(ErrorCode::Unknown, from_word(kind)?, message);
            Some(error.retryable(retryable))
        }
    };
    // A log of a newer version that cannot be read is skipped, so that the run is still listed.
    let attempt_log: Vec<Attempt> = optional("attempt_log")?
        .and_then(|log| serde_json::from_str(&log).ok())
        .unwrap_or_default();
    let stored: Option<AgentError> =
        optional("error")?.and_then(|error| serde_json::from_str(&error).ok());
    let error = error.map(|error| whole(error, stored));
    let run_id: String = row.try_get("run_id")?;
    let provider: String = row.try_get("provider")?;
    let mut run = RunRecord::new(run_id, provider, status, figure(row, "started_at")?);
    run.title = optional("title")?;
    run.model = optional("model")?;
    run.session_id = optional("session_id")?;
    run.conversation = optional("conversation")?;
    run.working_directory = optional("working_directory")?.map(path_from_column);
    run.prompt_hash = row.try_get("prompt_hash")?;
    run.ended_at = optional_figure(row, "ended_at")?;
    run.duration_ms = optional_figure(row, "duration_ms")?;
    run.usage = Some(usage).filter(|usage| !usage.is_empty());
    run.cost_usd = row.try_get("cost_usd")?;
    run.cost_source = optional("cost_source")?.map(from_word).transpose()?;
    run.num_turns = optional_figure(row, "num_turns")?.map(small);
    run.error = error;
    // As with the attempts, that of a newer version may not be readable.
    run.workspace = optional("workspace")?.and_then(|text| serde_json::from_str(&text).ok());
    run.attempts = small(figure(row, "attempts")?);
    run.attempt_log = attempt_log;
    run.host = writer.host;
    run.pid = writer.pid;
    run.heartbeat_at = heartbeat_at;
    Ok(run)
}

/// Returns the error with its code and details, unless those are of another one.
fn whole(error: AgentError, stored: Option<AgentError>) -> AgentError {
    let same =
        |whole: &AgentError| whole.kind == error.kind && *text(&whole.message) == *error.message;
    match stored.filter(same) {
        Some(whole) => whole.message(error.message),
        None => error,
    }
}

fn is_lost(heartbeat_at: u64, now: u64) -> bool {
    now.saturating_sub(heartbeat_at) > millis(LOST_AFTER)
}
