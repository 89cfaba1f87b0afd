//! Finding and listing runs.

use std::cmp::Reverse;
use std::sync::Arc;

use teamster_api::history::{ForgetRuns, Forgotten};
use teamster_api::{ProblemCode, RunInfo, RunList, RunQuery, RunSummary, ServiceError};

use super::FleetRuns;
use crate::names::{FILE, LOG, RunKey, records_of};
use crate::protocol::{Seen, State};
use crate::record::Record;
use crate::records::{Found, not_found};

/// The number of machines that are asked at once.
const AT_ONCE: usize = 32;

impl FleetRuns {
    /// Returns all records of the owner, newest first.
    pub(super) async fn all(&self) -> Result<Vec<(RunKey, Seen, Record)>, ServiceError> {
        let found = self.fleet.records(&records_of(&self.fleet.owner)).await?;
        Ok(newest_first(found))
    }

    pub(super) async fn resolved(&self, prefix: &str) -> Result<RunInfo, ServiceError> {
        if teamster_api::is_run_id(prefix)
            && let Some(record) = self.fleet.read(&self.key(prefix)).await?.record
        {
            return Ok(record.info(prefix));
        }
        let all = self.all().await?;
        // A resubmitted run has the id of the first one and a number, which is given too.
        let (wanted, number) = resubmission(prefix);
        let is_match = |run: &str| {
            let (first, of_run) = resubmission(run);
            first.starts_with(wanted) && of_run == number
        };
        let mut matches = all
            .iter()
            .filter(|(key, ..)| !prefix.is_empty() && is_match(&key.run));
        match (matches.next(), matches.next()) {
            (Some((key, _, record)), None) => Ok(record.info(&key.run)),
            // It may be a whole id that another program was given a moment ago.
            (None, _) if teamster_api::is_run_id(prefix) => {
                let (_, record) = self.fleet.find(&self.key(prefix)).await?;
                Ok(record.info(prefix))
            }
            (None, _) => Err(not_found(prefix)),
            (Some(_), Some(_)) => Err(ServiceError::new(
                ProblemCode::RunIdAmbiguous,
                format!("\"{prefix}\" matches several runs"),
            )),
        }
    }

    pub(super) async fn page(&self, query: RunQuery) -> Result<RunList, ServiceError> {
        let before = query.before()?;
        let mut all = self.all().await?;
        all.retain(|(key, _, record)| {
            let order = (record.times.queued, &key.run);
            before
                .as_ref()
                .is_none_or(|before| order < (before.started_at, &before.run_id))
                && query.selects(&record.info(&key.run))
                && !(query.live && record.state.is_final())
        });
        let mut page = RunList::new(Vec::new());
        for records in all.chunks(AT_ONCE) {
            for mut summary in self.summaries(records).await {
                let prompt = || {
                    let mut records = records.iter();
                    let (.., record) = records.find(|(key, ..)| key.run == summary.info.run_id)?;
                    record.prompt()
                };
                let title = summary.info.title.as_deref();
                if !query.shows(&summary) || !query.has_text(title, prompt) {
                    continue;
                }
                if !(query.live || query.live_status) && summary.live.is_some() {
                    Arc::make_mut(&mut summary).live = None;
                }
                if !page.add(summary, query.page_size()) {
                    return Ok(page);
                }
            }
        }
        Ok(page)
    }

    /// Returns the summaries of these runs, with the reasons why they wait. Asks their machines at once, because one may
    /// not answer.
    pub(super) async fn summaries(
        &self,
        records: &[(RunKey, Seen, Record)],
    ) -> Vec<Arc<RunSummary>> {
        let tasks: Vec<_> = records
            .iter()
            .map(|(key, _, record)| {
                let (runs, key, record) = (self.clone(), key.clone(), record.clone());
                tokio::spawn(async move { runs.summary_of(&key, record).await })
            })
            .collect();
        let mut summaries = Vec::with_capacity(tasks.len());
        for task in tasks {
            summaries.extend(task.await.ok());
        }
        let is_queued = |(_, _, record): &&(_, _, Record)| record.state == State::Queued;
        let mut queued = records.iter().filter(is_queued).peekable();
        if queued.peek().is_some()
            && let Ok(known) = self.fleet.known().await
        {
            for (key, _, record) in queued {
                let mut summaries = summaries.iter_mut();
                if let Some(summary) = summaries.find(|summary| summary.info.run_id == key.run) {
                    Arc::make_mut(summary).queue = Some(known.why(key, record));
                }
            }
        }
        summaries
    }

    pub(super) async fn forget_runs(&self, request: ForgetRuns) -> Result<Forgotten, ServiceError> {
        if request.logs_only || request.logs_over.is_some() {
            let message =
                "a fleet keeps the copies of logs for 7 days: runs are deleted with their logs";
            return Err(ServiceError::new(ProblemCode::Unsupported, message));
        }
        let mut chosen = Vec::new();
        for id in &request.ids {
            let run = self.resolved(id).await?.run_id;
            let key = self.key(&run);
            let (seen, record) = self.fleet.find(&key).await?;
            if !record.state.is_final() {
                let message = format!("run {run} has not ended: stop it first");
                return Err(ServiceError::new(ProblemCode::RunLive, message));
            }
            chosen.push((key, seen));
        }
        if let Some(age) = request.older_than_ms {
            let oldest = self.fleet.now().await.saturating_sub(age);
            let all = self.all().await?.into_iter();
            chosen.extend(all.filter_map(|(key, seen, record)| {
                let is_old = record.times.ended.is_some_and(|ended| ended < oldest);
                (record.state.is_final() && is_old).then_some((key, seen))
            }));
        }
        let mut forgotten = Forgotten::default();
        let mut may_purge = true;
        for (key, seen) in chosen {
            // One that was changed meanwhile is another's to decide about.
            if !self.fleet.delete(&key, seen.revision).await {
                if let Some(refusal) = self.fleet.refusal(&key.record()) {
                    return Err(refusal);
                }
                continue;
            }
            forgotten.runs += 1;
            if may_purge {
                match self.fleet.purge(LOG, &key.log()).await {
                    Ok(()) => forgotten.logs += 1,
                    // Logs of this user go by their age.
                    Err(error) => may_purge = error.code != Some(ProblemCode::InsufficientScope),
                }
            }
            let files = format!("{}.>", key.files());
            if !may_purge || self.fleet.purge(FILE, &files).await.is_err() {
                // The whole log is one of them. What is left after a failure goes by its age, too.
                let _ = self.fleet.empty_files(&key).await;
            }
        }
        Ok(forgotten)
    }
}

pub(super) fn newest_first(found: Vec<(RunKey, Found)>) -> Vec<(RunKey, Seen, Record)> {
    let all = found.into_iter();
    let all = all.filter_map(|(key, found)| Some((key, found.seen, found.record?)));
    let mut all: Vec<_> = all.collect();
    all.sort_by_key(|(key, _, record)| Reverse((record.times.queued, key.run.clone())));
    all
}

/// Returns the id of a run without the number of a resubmitted one, and that number.
fn resubmission(id: &str) -> (&str, Option<&str>) {
    match id.rsplit_once('~') {
        Some((first, number)) => (first, Some(number)),
        None => (id, None),
    }
}
