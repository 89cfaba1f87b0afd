//! Earlier sessions, found, listed and removed by their logs.
//!
//! A thread of an editor has one log per process. All but the first log name the first one (`continues`). A session
//! of `teamster chat --detach` is a thread too.

use std::collections::BTreeMap;
use std::path::Path;

use jiff::Timestamp;
use teamster::{AgentError, AgentEvent, ErrorCode, ErrorKind};
use teamster_acp_server::{Found, SessionPage, SessionSummary};
use teamster_api::{RunEvent, RunKind, RunLogEntry};
use teamster_runner::{RunFolder, Runs, RunsError};

/// Maximum number of sessions in a page.
const PAGE: usize = 50;
/// Maximum number of log entries searched for the first prompt of a session.
const MAX_SEARCHED: usize = 50;

/// The logs of a thread, oldest first. There is at least one.
pub(super) struct Thread {
    logs: Vec<RunFolder>,
}

/// Returns the logs of a thread; `None` if there are none.
pub(super) fn thread(runs: &Runs, session_id: &str) -> Result<Option<Thread>, AgentError> {
    let mut logs: Vec<_> = (sessions(runs)?.into_iter())
        .filter(|log| root(log) == session_id)
        .collect();
    // `sessions` returns the newest first.
    logs.reverse();
    Ok((!logs.is_empty()).then_some(Thread { logs }))
}

impl Thread {
    /// Returns the last provider and its session id.
    pub(super) fn last_session(&self) -> Option<(String, String)> {
        self.logs.iter().rev().find_map(|log| {
            let mut provider = log.info().provider.clone();
            let mut session = None;
            each_entry(log, |entry| {
                match entry {
                    RunLogEntry::Run(entry) => match entry.event {
                        RunEvent::Start { provider: it, .. } => provider = it,
                        RunEvent::Fallback { next, .. } => provider = next.provider,
                        _ => {}
                    },
                    RunLogEntry::Agent(entry) => {
                        if let AgentEvent::Session(it) = entry.event {
                            session = Some((provider.clone(), it.session_id.to_string()));
                        }
                    }
                    _ => {}
                }
                true
            });
            session
        })
    }
}

/// Returns a session and the entries of its turns.
pub(super) fn find(
    runs: &Runs,
    agent: Option<&str>,
    session_id: &str,
) -> Result<Found, AgentError> {
    let unknown =
        |problem: String| AgentError::new(ErrorCode::CliError, ErrorKind::SessionNotFound, problem);
    let Some(thread) = thread(runs, session_id)? else {
        let id = crate::words::one_line(session_id);
        return Err(unknown(format!(
            "there is no session {id}, or its log was removed"
        )));
    };
    let newest = thread.logs.last().map(|log| log.info().clone());
    let first = thread.logs.first().map(|log| log.info().provider.clone());
    let first = first.unwrap_or_default();
    if let Some(agent) = agent.filter(|agent| *agent != first) {
        return Err(unknown(format!(
            "session {session_id} belongs to {first}, not to {agent}: use `teamster acp {first}`"
        )));
    }
    // A fallback may have taken over.
    let last = thread.last_session();
    let provider = last.map_or(first, |(provider, _)| provider);
    let mut entries = Vec::new();
    for log in &thread.logs {
        each_entry(log, |entry| {
            entries.push(entry);
            true
        });
    }
    Ok(Found::new(
        provider,
        newest.and_then(|it| it.model),
        entries,
    ))
}

/// Returns a page of the sessions that have a prompt, the last used first.
pub(super) fn list(
    runs: &Runs,
    agent: Option<&str>,
    cwd: Option<&Path>,
    cursor: Option<&str>,
) -> Result<SessionPage, AgentError> {
    let from = match cursor.map(str::parse::<usize>).transpose() {
        Ok(from) => from.unwrap_or_default(),
        Err(_) => {
            let problem = "not a cursor of an earlier page";
            return Err(AgentError::refused("cursor", problem));
        }
    };
    // By thread id: the time of the newest change, and the logs, newest first.
    let mut threads: BTreeMap<String, (u64, Vec<RunFolder>)> = BTreeMap::new();
    for log in sessions(runs)? {
        let thread = threads.entry(root(&log).to_owned()).or_default();
        thread.0 = thread.0.max(log.changed_at().unwrap_or_default());
        thread.1.push(log);
    }
    let is_selected = |(_, (_, logs)): &(String, (u64, Vec<RunFolder>))| {
        let of_agent = agent.is_none_or(|agent| logs.iter().any(|it| it.info().provider == agent));
        let is_here = cwd.is_none_or(|cwd| {
            let is_it = |it: &RunFolder| it.info().directory.as_deref() == Some(cwd);
            logs.iter().any(is_it)
        });
        of_agent && is_here
    };
    let mut selected: Vec<_> = threads.into_iter().filter(is_selected).collect();
    selected.sort_by(|(a, (a_at, _)), (b, (b_at, _))| (b_at, b).cmp(&(a_at, a)));
    let mut page = Vec::new();
    for (index, (session_id, (changed_at, logs))) in selected.iter().enumerate().skip(from) {
        if page.len() == PAGE {
            return Ok(SessionPage::new(page, Some(index.to_string())));
        }
        // The last one is the oldest.
        let Some(first) = logs.last() else {
            continue;
        };
        let Some(prompt) = first_prompt(first) else {
            continue;
        };
        let directory = first.info().directory.clone().unwrap_or_default();
        let provider = first.info().provider.clone();
        let mut summary = SessionSummary::new(session_id.clone(), directory, provider);
        summary.first_prompt = Some(prompt);
        let changed_at = i64::try_from(*changed_at).ok();
        let changed_at = changed_at.and_then(|ms| Timestamp::from_millisecond(ms).ok());
        summary.updated_at = changed_at.map(|at| at.to_string());
        page.push(summary);
    }
    Ok(SessionPage::new(page, None))
}

/// Removes the logs of a session.
pub(super) fn forget(runs: &Runs, session_id: &str) -> Result<(), AgentError> {
    for log in thread(runs, session_id)?
        .map(|thread| thread.logs)
        .unwrap_or_default()
    {
        let id = log.id().to_owned();
        if !log.remove().map_err(|error| failed(&error))? {
            let problem = format!("session {id} is in use by another process");
            return Err(AgentError::session_in_use("session_id", problem));
        }
    }
    Ok(())
}

/// Returns the logs of all sessions, newest first.
fn sessions(runs: &Runs) -> Result<Vec<RunFolder>, AgentError> {
    let mut logs = runs.list().map_err(|error| failed(&error))?;
    logs.retain(|log| log.info().kind == RunKind::Session);
    Ok(logs)
}

/// Returns the id of a log's thread.
fn root(log: &RunFolder) -> &str {
    log.info().continues.as_deref().unwrap_or(log.id())
}

fn first_prompt(log: &RunFolder) -> Option<String> {
    let mut found = None;
    let mut searched = 0;
    each_entry(log, |entry| {
        searched += 1;
        if let RunLogEntry::Run(entry) = entry
            && let RunEvent::UserMessage { text, .. } = entry.event
        {
            found = Some(text);
        }
        found.is_none() && searched < MAX_SEARCHED
    });
    found
}

/// Calls `see` with each readable entry of a log until it returns `false`. The end of the log is left out: it has the
/// sums of the turns, which the turns have too.
fn each_entry(log: &RunFolder, mut see: impl FnMut(RunLogEntry) -> bool) {
    let Ok(mut reader) = log.log(0) else {
        return;
    };
    while let Ok(Some(line)) = reader.next_line() {
        if !line.is_end()
            && let Ok(entry) = line.entry()
            && !see(entry)
        {
            return;
        }
    }
}

fn failed(error: &RunsError) -> AgentError {
    AgentError::new(ErrorCode::Io, ErrorKind::Internal, error.to_string())
}
