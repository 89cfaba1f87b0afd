//! Earlier sessions, found, listed and removed by their logs.
//!
//! A thread of an editor has one log per process. All but the first log name the first one (`continues`). A session
//! that another client has started is a thread too.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use teamster_api::history::ForgetRuns;
use teamster_api::{
    LogStream, ProblemCode, RunEvent, RunHandle, RunKind, RunLogEntry, RunQuery, RunSummary,
    ServiceError, list_all, title_of,
};
use teamster_core::text::one_line;
use teamster_core::{AgentError, AgentEvent, ErrorCode, ErrorKind, Offers};
use tokio::time::{Instant, sleep, timeout};

use super::Shared;
use super::own::{self, OwnSession};
use crate::{Found, SessionPage, SessionSummary, Setup};

/// Maximum number of sessions in a page.
const PAGE: usize = 50;
/// Maximum number of log entries searched for the first prompt of a session.
const MAX_SEARCHED: usize = 50;
/// Maximum number of sessions whose offers are searched, in the same folder and elsewhere.
const MAX_TRIED: usize = 3;
/// Time limit for the search of what an earlier session offered.
const OFFERS_LIMIT: Duration = Duration::from_secs(1);
/// Number of logs that are read at once.
const AT_ONCE: usize = 16;

/// Time in which a session that was ended must be one that can be forgotten.
const END_LIMIT: Duration = Duration::from_secs(5);
const RETRY_INTERVAL: Duration = Duration::from_millis(50);

/// The sessions of a thread, oldest first. There is at least one.
pub(super) struct Thread {
    parts: Vec<Arc<RunSummary>>,
}

/// Returns the sessions of a thread; `None` if there are none.
pub(super) async fn thread(
    shared: &Shared,
    session_id: &str,
) -> Result<Option<Thread>, AgentError> {
    let parts = sessions(shared, Some(session_id)).await;
    let mut parts = parts.map_err(|error| shared.agent_error(error))?;
    // The service returns the newest first.
    parts.reverse();
    Ok((!parts.is_empty()).then_some(Thread { parts }))
}

impl Thread {
    /// Returns the last provider and its session id.
    pub(super) async fn last_session(
        &self,
        shared: &Shared,
    ) -> Result<Option<(String, String)>, AgentError> {
        for part in self.parts.iter().rev() {
            let mut provider = part.info.provider.clone();
            let mut session = None;
            let read = each_entry(shared, part, |entry| {
                match entry {
                    RunLogEntry::Run(entry) => match entry.event {
                        RunEvent::Start { provider: it, .. } => provider = it,
                        RunEvent::Fallback { next, .. } => provider = next.provider,
                        _ => {}
                    },
                    RunLogEntry::Agent(entry) => {
                        if let AgentEvent::SessionStarted(it) = entry.event {
                            session = Some((provider.clone(), it.session_id.to_string()));
                        }
                    }
                    _ => {}
                }
                true
            });
            read.await.map_err(|error| shared.agent_error(error))?;
            if session.is_some() {
                return Ok(session);
            }
        }
        Ok(None)
    }
}

fn unknown(problem: String) -> AgentError {
    AgentError::new(ErrorCode::CliError, ErrorKind::SessionNotFound, problem)
}

fn unknown_session(session_id: &str) -> AgentError {
    let id = one_line(session_id);
    unknown(format!("there is no session {id}, or its log was removed"))
}

/// Returns a session and the entries of its turns.
pub(super) async fn find(shared: &Shared, session_id: &str) -> Result<Found, AgentError> {
    let Some(thread) = thread(shared, session_id).await? else {
        if let Some(found) = own::find(shared, session_id).await {
            return Ok(found);
        }
        return Err(unknown_session(session_id));
    };
    let newest = thread.parts.last().and_then(|it| it.info.model.clone());
    let first = thread.parts.first().map(|it| it.info.provider.clone());
    let first = first.unwrap_or_default();
    if let Some(agent) = shared.agent().filter(|agent| *agent != first) {
        return Err(unknown(format!(
            "session {session_id} belongs to {first}, not to {agent}: open it with {first}"
        )));
    }
    // A fallback may have taken over.
    let last = thread.last_session(shared).await?;
    let provider = last.map_or(first, |(provider, _)| provider);
    let mut entries = Vec::new();
    for part in &thread.parts {
        let read = each_entry(shared, part, |entry| {
            entries.push(entry);
            true
        });
        read.await.map_err(|error| shared.agent_error(error))?;
    }
    let first = thread.parts.first();
    let mut title = first.and_then(|it| it.info.title.clone());
    if first.is_some_and(|it| continues_own(it)) {
        let prompts: Vec<_> = entries.iter().filter_map(prompt_of).collect();
        // Unless a person has given another, it is made of a prompt in the middle.
        let made = prompts.first().and_then(|it| title_of(it));
        title = title.filter(|it| Some(it) != made.as_ref());
        let mut all = own::before(shared, &provider, session_id, &prompts).await;
        all.append(&mut entries);
        entries = all;
    }
    let mut found = Found::new(provider, newest, entries);
    found.title = title;
    Ok(found)
}

/// Returns whether the first session of a thread continues one of the CLI's own, which has the same id.
fn continues_own(first: &RunSummary) -> bool {
    first.session_id.as_ref() == Some(&first.info.run_id)
}

fn prompt_of(entry: &RunLogEntry) -> Option<&str> {
    match entry {
        RunLogEntry::Run(entry) => match &entry.event {
            RunEvent::UserMessage { text, .. } => Some(text),
            _ => None,
        },
        _ => None,
    }
}

/// Returns what the newest session of this agent offered, preferably one in the same folder, else the commands on disk. Empty
/// if there is none that can be read soon.
pub(super) async fn offers(shared: &Shared, setup: &Setup) -> Offers {
    let found = timeout(OFFERS_LIMIT, find_offers(shared, setup)).await;
    let mut offers = found.unwrap_or_default();
    if offers.commands.is_none()
        && let (Some(files), Some(agent)) = (&shared.own, &setup.agent)
    {
        let commands = files.commands(agent, &setup.cwd).await;
        offers.commands = Some(commands).filter(|it| !it.is_empty());
    }
    offers
}

async fn find_offers(shared: &Shared, setup: &Setup) -> Offers {
    let agent = setup.agent.as_deref().unwrap_or_default();
    let all = sessions(shared, None).await.unwrap_or_default();
    let (here, elsewhere): (Vec<_>, Vec<_>) = (all.into_iter())
        .filter(|session| session.info.provider == agent)
        .partition(|session| folder(session) == Some(&*setup.cwd));
    let nearest = here
        .iter()
        .take(MAX_TRIED)
        .chain(elsewhere.iter().take(MAX_TRIED));
    for session in nearest {
        let mut offers = Offers::new();
        let mut searched = 0;
        let read = each_entry(shared, session, |entry| {
            searched += 1;
            if let RunLogEntry::Agent(entry) = entry
                && let AgentEvent::Offers(later) = entry.event
            {
                offers.update(&later);
            }
            searched < MAX_SEARCHED
        });
        // One that cannot be read leaves only itself out.
        if read.await.is_ok() && !offers.is_empty() {
            return offers;
        }
    }
    Offers::new()
}

/// Returns a page of the sessions that have a prompt, the last used first.
pub(super) async fn list(
    shared: &Arc<Shared>,
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
    let all = sessions(shared, None).await;
    // By thread id: the time of the newest change, and the sessions, newest first.
    let mut threads: BTreeMap<String, (u64, Vec<Arc<RunSummary>>)> = BTreeMap::new();
    for part in all.map_err(|error| shared.agent_error(error))? {
        let id = part.info.continues.as_ref().unwrap_or(&part.info.run_id);
        let thread = threads.entry(id.clone()).or_default();
        thread.0 = thread.0.max(part.changed_at_ms.unwrap_or_default());
        thread.1.push(part);
    }
    let is_selected = |(_, (_, parts)): &(String, (u64, Vec<Arc<RunSummary>>))| {
        let of_agent =
            (shared.agent()).is_none_or(|agent| parts.iter().any(|it| it.info.provider == agent));
        let is_here = cwd.is_none_or(|cwd| (parts.iter()).any(|it| folder(it) == Some(cwd)));
        of_agent && is_here
    };
    let own = own::list(shared, cwd, &threads).await;
    // A thread that continues one of them has its first prompt.
    let (continued, own): (Vec<_>, Vec<_>) =
        (own.into_iter()).partition(|it| threads.contains_key(&it.id));
    let first_of = |id: &str| {
        let own = continued.iter().find(|it| it.id == id);
        own.map(|it| it.first_prompt.clone())
    };
    let selected = threads.into_iter().filter(is_selected);
    let mut selected: Vec<_> = selected
        .map(|(id, (at, parts))| (at, first_of(&id), id, parts))
        .map(|(at, first, id, parts)| (at, id, Listed::Thread(parts, first)))
        .chain(
            own.into_iter()
                .map(|it| (it.changed_at_ms, it.id.clone(), Listed::Own(it))),
        )
        .collect();
    selected.sort_by(|(a_at, a, _), (b_at, b, _)| (b_at, b).cmp(&(a_at, a)));
    let mut page = Vec::new();
    let mut next = from;
    for chunk in selected.get(from..).unwrap_or_default().chunks(AT_ONCE) {
        let summaries = chunk.iter().map(|(_, id, listed)| {
            let (shared, id, listed) = (shared.clone(), id.clone(), listed.clone());
            tokio::spawn(async move { listed.summary(&shared, id).await })
        });
        let summaries: Vec<_> = summaries.collect();
        for ((changed_at_ms, ..), summary) in chunk.iter().zip(summaries) {
            if page.len() == PAGE {
                return Ok(SessionPage::new(page, Some(next.to_string())));
            }
            next += 1;
            // A log that cannot be read leaves only its own session out.
            let Some(mut summary) = summary.await.ok().flatten() else {
                continue;
            };
            let changed_at_ms = i64::try_from(*changed_at_ms).ok();
            let changed_at_ms = changed_at_ms.and_then(|ms| Timestamp::from_millisecond(ms).ok());
            summary.updated_at = changed_at_ms.map(|at| at.to_string());
            page.push(summary);
        }
    }
    Ok(SessionPage::new(page, None))
}

/// A session in a list.
#[derive(Clone)]
enum Listed {
    /// The sessions of a thread, newest first, and the first prompt of the CLI's own session that it continues.
    Thread(Vec<Arc<RunSummary>>, Option<String>),
    Own(OwnSession),
}

impl Listed {
    /// Returns the summary without its time; `None` for a session without a prompt.
    async fn summary(self, shared: &Shared, id: String) -> Option<SessionSummary> {
        let (mut summary, prompt) = match self {
            Self::Thread(parts, before) => {
                // The last one is the oldest.
                let first = parts.last()?;
                let prompt = first_prompt(shared, first).await.ok()??;
                let directory = folder(first).map(Path::to_owned).unwrap_or_default();
                let mut summary = SessionSummary::new(id, directory, first.info.provider.clone());
                // The title of the first log is made of its prompt, unless a person has given another.
                let title = first.info.title.clone();
                summary.title =
                    title.filter(|it| before.is_none() || Some(it) != title_of(&prompt).as_ref());
                (summary, before.unwrap_or(prompt))
            }
            Self::Own(it) => (
                SessionSummary::new(id, it.directory, it.agent),
                it.first_prompt,
            ),
        };
        summary.first_prompt = Some(prompt);
        Some(summary)
    }
}

/// Returns the folder of a session, as the editor knows it: the one that went along, else that of the agent.
fn folder(session: &RunSummary) -> Option<&Path> {
    let submitted = session.info.submitted_from.as_deref().map(Path::new);
    submitted.or(session.info.directory.as_deref())
}

/// Gives all sessions of a thread another title.
pub(super) async fn rename(
    shared: &Shared,
    session_id: &str,
    title: &str,
) -> Result<(), AgentError> {
    let Some(thread) = thread(shared, session_id).await? else {
        if own::find(shared, session_id).await.is_some() {
            let problem = "it is a session of the CLI's own, which has its title there";
            return Err(AgentError::refused("sessionId", problem));
        }
        return Err(unknown_session(session_id));
    };
    for part in &thread.parts {
        let renamed = shared
            .runs
            .rename(&part.info.run_id, Some(title.to_owned()));
        renamed.await.map_err(|error| shared.agent_error(error))?;
    }
    Ok(())
}

/// Removes the logs of a session.
pub(super) async fn forget(shared: &Shared, session_id: &str) -> Result<(), AgentError> {
    if thread(shared, session_id).await?.is_none() && own::find(shared, session_id).await.is_some()
    {
        let problem = "it is a session of the CLI's own, which is deleted there";
        return Err(AgentError::refused("sessionId", problem));
    }
    let until = Instant::now() + END_LIMIT;
    // What is left: a part of them may be gone after a try.
    while let Some(thread) = thread(shared, session_id).await? {
        let mut request = ForgetRuns::default();
        let ids = thread.parts.iter().map(|it| it.info.run_id.clone());
        request.ids = ids.collect();
        request.logs_only = true;
        match shared.runs.forget(request).await {
            Ok(_) => break,
            Err(error) if error.code == Some(ProblemCode::RunLive) => {
                // The thread's own process is about to end.
                if Instant::now() >= until {
                    let problem = format!("session {session_id} is in use by another process");
                    return Err(AgentError::session_in_use("session_id", problem));
                }
                sleep(RETRY_INTERVAL).await;
            }
            Err(error) => return Err(shared.agent_error(error)),
        }
    }
    Ok(())
}

/// Returns all sessions, or those of a thread, newest first.
async fn sessions(
    shared: &Shared,
    thread: Option<&str>,
) -> Result<Vec<Arc<RunSummary>>, ServiceError> {
    let mut query = RunQuery::default();
    query.kind = Some(RunKind::Session);
    query.thread = thread.map(str::to_owned);
    list_all(&*shared.runs, query).await
}

async fn first_prompt(shared: &Shared, first: &RunSummary) -> Result<Option<String>, ServiceError> {
    let mut found = None;
    let mut searched = 0;
    let read = each_entry(shared, first, |entry| {
        searched += 1;
        if let RunLogEntry::Run(entry) = entry
            && let RunEvent::UserMessage { text, .. } = entry.event
        {
            found = Some(text);
        }
        found.is_none() && searched < MAX_SEARCHED
    });
    read.await?;
    Ok(found)
}

/// Calls `see` with each readable entry of a log so far until it returns `false`. The end of the log is left out: it has
/// the sums of the turns, which the turns have too.
async fn each_entry(
    shared: &Shared,
    run: &RunSummary,
    mut see: impl FnMut(RunLogEntry) -> bool,
) -> Result<(), ServiceError> {
    // A log without entries may stay so for long.
    if run.seq == 0 {
        return Ok(());
    }
    let handle = RunHandle::new(shared.runs.clone(), &*run.info.run_id);
    let mut log: LogStream = handle.follow(0);
    while let Some(line) = log.next().await {
        let line = line?;
        if !line.is_end()
            && let Ok(entry) = line.entry()
            && !see(entry)
        {
            return Ok(());
        }
        if line.seq() >= run.seq {
            return Ok(());
        }
    }
    Ok(())
}
