//! Runs: start, list, follow, answer and stop them.

use std::sync::Arc;

use hyper::Method;
use serde::{Deserialize, Serialize};
use serde_json::json;
use teamster_api::{
    Answer, KeptSpec, LogLine, PendingRequest, RunList, RunQuery, RunSpec, RunSummary, RunView,
    SessionSpec, StartedRun, with_field_names,
};
use teamster_core::Stopping;

use crate::Client;
use crate::call::Call;
use crate::error::ClientError;
use crate::follow::Follow;
use crate::http::Http;

/// The response to a list of requests.
#[derive(Deserialize)]
struct Requests {
    requests: Vec<PendingRequest>,
}

/// The time limit of the response to a start, as a multiple of that of another one.
const START_LIMIT: u32 = 10;

impl Client {
    /// Starts a run. `key` is any text of your own for this run: a repeated call with the same key and run starts
    /// nothing and returns the existing run.
    ///
    /// If the connection breaks, the request is repeated by itself, and the run still starts once.
    pub async fn start(&self, spec: &RunSpec, key: &str) -> Result<StartedRun, ClientError> {
        let call = Call::post(&["runs"], spec)?.with_key(key)?;
        Ok(self.started(&call).await?.0)
    }

    /// Starts a session, which waits for its first prompt. `key` is as for [`start`](Self::start).
    pub async fn open(&self, spec: &SessionSpec, key: &str) -> Result<StartedRun, ClientError> {
        let call = Call::post(&["sessions"], spec)?.with_key(key)?;
        Ok(self.started(&call).await?.0)
    }

    /// Sends the request of a start. Returns what was started, and whether an earlier request has started it.
    pub(crate) async fn started(&self, call: &Call) -> Result<(StartedRun, bool), ClientError> {
        // A large worktree is made, or a repository fetched, before the server responds.
        let mut http = Http::clone(&self.http);
        http.limits.response *= START_LIMIT;
        let http = Arc::new(http);
        let (mut started, existed): (StartedRun, bool) = http.once(call).await?;
        let warnings = started.warnings.iter_mut();
        for warning in warnings.chain(&mut started.important) {
            *warning = with_field_names(warning);
        }
        Ok((started, existed))
    }

    /// Returns the run or session with this id or unique prefix of one, with its result once it has ended.
    ///
    /// # Errors
    ///
    /// Fails if the server has no such run, or cannot be reached.
    pub async fn show(&self, id: &str) -> Result<RunView, ClientError> {
        self.http.json(&Call::get(&["runs", id])?).await
    }

    /// Returns a page of runs and sessions, newest first. Its `next` is the cursor of the next page.
    pub async fn runs(&self, query: &RunQuery) -> Result<RunList, ClientError> {
        let call = Call::get(&["runs"])?.with_query(query)?;
        self.http.json(&call).await
    }

    /// Returns all runs and sessions of all pages, newest first, at most `limit`.
    pub async fn all_runs(
        &self,
        mut query: RunQuery,
        limit: usize,
    ) -> Result<Vec<RunSummary>, ClientError> {
        let mut runs: Vec<RunSummary> = Vec::new();
        loop {
            query.limit = Some((limit - runs.len()).min(LARGEST_PAGE));
            let page = self.runs(&query).await?;
            runs.extend(page.runs.iter().map(|run| (**run).clone()));
            runs.truncate(limit);
            if page.next.is_none() || runs.len() == limit {
                return Ok(runs);
            }
            query.cursor = page.next;
        }
    }

    /// Gives a run another title; with `None`, the one that it had at its start.
    ///
    /// # Errors
    ///
    /// Fails if the server has no such run or refuses the title, or cannot be reached.
    pub async fn rename(&self, id: &str, title: Option<&str>) -> Result<(), ClientError> {
        let call = Call::new(Method::PATCH, &["runs", id])?;
        let call = call.with_body(&json!({ "title": title }))?;
        self.http.bytes(&call).await.map(drop)
    }

    /// Returns the spec of a run, without what was withheld from it or is not for strangers.
    ///
    /// # Errors
    ///
    /// Fails if the server has no such run or has kept no spec of it, or cannot be reached.
    pub async fn spec(&self, id: &str) -> Result<KeptSpec, ClientError> {
        self.http.json(&Call::get(&["runs", id, "spec"])?).await
    }

    /// Returns the pending requests of all runs.
    pub async fn requests(&self) -> Result<Vec<PendingRequest>, ClientError> {
        let list: Requests = self.http.json(&Call::get(&["requests"])?).await?;
        Ok(list.requests)
    }

    /// Follows the log of a run or session behind the entry with the number `after`; 0 is the beginning. `id` is the
    /// whole id, which [`show`](Self::show) finds for a prefix.
    ///
    /// To be called in a Tokio runtime: a task reads the log.
    pub fn follow(&self, id: &str, after: u64) -> Follow {
        Follow::new(self.http.clone(), id, after)
    }

    /// Waits for the end of a run or session and returns the last entry of its log; `None` if the log ended without
    /// one.
    ///
    /// # Errors
    ///
    /// Fails if the server has no such run, or cannot be reached for too long.
    pub async fn wait(&self, id: &str) -> Result<Option<LogLine>, ClientError> {
        let run = self.show(id).await?.summary;
        let mut follow = self.follow(&run.info.run_id, run.seq.saturating_sub(1));
        let mut last = None;
        while let Some(line) = follow.next().await? {
            last = Some(line);
        }
        Ok(last.filter(LogLine::is_end))
    }

    /// Stops a run or ends a session. Returns as soon as its runner has the command.
    ///
    /// # Errors
    ///
    /// Fails if the run has ended, or the server cannot be reached.
    pub async fn cancel(&self, id: &str, stopping: Stopping) -> Result<(), ClientError> {
        let kill = stopping.is_kill();
        self.command(&["runs", id, "cancel"], &json!({ "kill": kill }))
            .await
    }

    /// Answers a request. Its id is that of its run, a slash and a number. The first answer counts.
    ///
    /// # Errors
    ///
    /// Fails if the request does not exist or was answered before, or the server cannot be reached.
    pub async fn answer(&self, request_id: &str, answer: &Answer) -> Result<(), ClientError> {
        let Some((run, number)) = request_id.rsplit_once('/') else {
            let message = format!("{request_id:?} is not the id of a request, which is RUN/NUMBER");
            return Err(ClientError::argument("request_id", message));
        };
        self.command(&["requests", run, number], answer).await
    }

    /// Sends a command whose response does not matter.
    pub(crate) async fn command(
        &self,
        segments: &[&str],
        body: &impl Serialize,
    ) -> Result<(), ClientError> {
        let call = Call::post(segments, body)?;
        self.http.bytes(&call).await.map(drop)
    }
}

/// The maximum number of items in a page.
pub(crate) const LARGEST_PAGE: usize = 1000;
