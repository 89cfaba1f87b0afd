//! An index of runs that caches what it read from their logs.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use teamster_api::{
    KeptSpec, LiveState, LiveStatus, ProblemCode, RunSummary, RunView, ServiceError, ViewState,
};
use teamster_core::sync::lock;
use teamster_core::{AgentError, RunResult};
use teamster_process::ProcessIdentity;
use teamster_runner::{RunFolder, RunState, Runs, RunsError, client};
use tokio::time::Instant;

use super::limited::blocking;
use super::progress::{Progress, apply_result, attempts};

/// The number of runs that a list examines at once.
pub(crate) const AT_ONCE: usize = 32;

/// The time for which lists do not ask a runner that did not answer, unless its log grows.
const SILENCE: Duration = Duration::from_secs(30);

/// All runs, with cached data from their logs.
#[derive(Debug)]
pub(crate) struct Index {
    /// An error without a state directory.
    runs: Result<Runs, AgentError>,
    known: Mutex<HashMap<String, Arc<CachedRun>>>,
    /// The changes of titles that what is cached has ([`Runs::title_changes`]).
    titles: Mutex<Option<Vec<u8>>>,
}

#[derive(Debug)]
struct CachedRun {
    folder: RunFolder,
    progress: Mutex<Progress>,
    silence: Mutex<Option<Silence>>,
    /// The log was read once.
    is_read: AtomicBool,
    /// The log is being read and its reader was given up. A log on a disk that hangs delays only the first request.
    is_stuck: AtomicBool,
}

/// A runner that did not answer.
#[derive(Debug, Clone)]
struct Silence {
    status: LiveStatus,
    until: Instant,
    /// The time of the last write to the log.
    changed_at_ms: Option<u64>,
    /// The process was stopped (`SIGSTOP`).
    is_stopped: bool,
}

impl Index {
    pub(crate) fn new(runs: Result<Runs, AgentError>) -> Self {
        Self {
            runs,
            known: Mutex::default(),
            titles: Mutex::default(),
        }
    }

    fn runs(&self) -> Result<Runs, ServiceError> {
        Ok(self.runs.clone()?)
    }

    /// Returns the run with this id or unique id prefix.
    pub(crate) async fn find(&self, id: &str) -> Result<RunFolder, ServiceError> {
        let (runs, id) = (self.runs()?, id.to_owned());
        blocking(move || Ok(runs.find(&id)?)).await
    }

    /// Returns the run with exactly this id.
    pub(crate) async fn get(self: &Arc<Self>, id: &str) -> Result<RunFolder, ServiceError> {
        let run = self.get_if_there(id).await?;
        Ok(run.ok_or_else(|| RunsError::NotFound { id: id.to_owned() })?)
    }

    /// Returns the run with exactly this id, or `None`.
    pub(crate) async fn get_if_there(
        self: &Arc<Self>,
        id: &str,
    ) -> Result<Option<RunFolder>, ServiceError> {
        let (index, runs, id) = (self.clone(), self.runs()?, id.to_owned());
        blocking(move || {
            index.notice_titles(&runs);
            Ok(runs.get(&id)?)
        })
        .await
    }

    /// Returns the run's summary, with its live status unless it has ended.
    pub(crate) async fn live_summary(
        &self,
        folder: RunFolder,
    ) -> Result<Arc<RunSummary>, ServiceError> {
        let summary = self.summary(folder.clone()).await?;
        if summary.state == ViewState::Ended {
            return Ok(summary);
        }
        if summary.live.is_some() {
            return Ok(summary);
        }
        let mut summary = Arc::unwrap_or_clone(summary);
        // No live status if the run just ended, or its runner has another version.
        summary.live = self.known(folder).live_status().await;
        Ok(Arc::new(summary))
    }

    /// Returns the summaries of these runs, with their live status if `live` is set. Asks all runners at once, because
    /// one may not answer.
    pub(crate) async fn summaries(
        self: &Arc<Self>,
        folders: &[RunFolder],
        live: bool,
    ) -> Vec<Arc<RunSummary>> {
        let summaries: Vec<_> = (folders.iter().cloned())
            .map(|folder| match self.known(folder.clone()).ended() {
                Some(ended) => Ok(ended),
                None => {
                    let index = self.clone();
                    Err(tokio::spawn(async move {
                        if live {
                            index.live_summary(folder).await
                        } else {
                            index.summary(folder).await
                        }
                    }))
                }
            })
            .collect();
        let mut found = Vec::new();
        for summary in summaries {
            match summary {
                Ok(ended) => found.push(ended),
                // Skip a run that was just removed or is damaged.
                Err(task) => found.extend(task.await.ok().and_then(Result::ok)),
            }
        }
        found
    }

    /// Returns the run's summary with its live status or its result.
    pub(crate) async fn live_view(&self, folder: RunFolder) -> Result<RunView, ServiceError> {
        let summary = self.live_summary(folder.clone()).await?;
        if summary.state == ViewState::Ended {
            return self.view(folder).await;
        }
        with_prompt(summary, folder).await
    }

    /// Returns the run's summary with its prompt only.
    pub(crate) async fn outline(&self, folder: RunFolder) -> Result<RunView, ServiceError> {
        let mut summary = self.summary(folder.clone()).await?;
        // A runner that did not answer may be noted.
        if summary.live.is_some() {
            Arc::make_mut(&mut summary).live = None;
        }
        with_prompt(summary, folder).await
    }

    /// Returns the run's summary with its result.
    pub(crate) async fn view(&self, folder: RunFolder) -> Result<RunView, ServiceError> {
        let known = self.known(folder);
        let summary = known.summary().await?;
        let has_ended = summary.state == ViewState::Ended;
        let (prompt, result) = blocking(move || {
            let result = if has_ended { known.result()? } else { None };
            Ok((prompt(&known.folder), result))
        })
        .await?;
        let mut view = RunView::new(summary, result);
        view.prompt = prompt;
        Ok(view)
    }

    /// Returns the newest runs and those that are live, newest first, without reading the others.
    pub(crate) async fn recent(&self, most: usize) -> Result<Vec<RunFolder>, ServiceError> {
        let runs = self.runs()?;
        blocking(move || Ok(runs.recent(most)?)).await
    }

    /// Leaves out what a list of the newest runs and the live ones needs not read: runs that are known to have ended, and of
    /// those that were never read, and are none of the newest, all but `most`.
    pub(crate) fn to_read(&self, folders: &mut Vec<RunFolder>, newest: usize, most: usize) {
        let known = lock(&self.known);
        let (mut index, mut unread) = (0, 0);
        folders.retain(|folder| {
            index += 1;
            let Some(run) = known.get(folder.id()).filter(|_| index > newest) else {
                return true;
            };
            if run.is_read.load(Ordering::Relaxed) {
                return run.ended().is_none();
            }
            unread += 1;
            unread <= most
        });
    }

    /// Returns all runs, newest first.
    pub(crate) async fn folders(self: &Arc<Self>) -> Result<Vec<RunFolder>, ServiceError> {
        let (index, runs) = (self.clone(), self.runs()?);
        let ids = blocking(move || {
            index.notice_titles(&runs);
            Ok(runs.ids()?)
        })
        .await?;
        let (mut folders, new) = {
            let mut known = lock(&self.known);
            let mut by_id = HashMap::new();
            let mut new = Vec::new();
            for id in ids {
                match known.remove(&id) {
                    Some(run) => {
                        by_id.insert(id, run);
                    }
                    None => new.push(id),
                }
            }
            let folders: Vec<_> = by_id.values().map(|run| run.folder.clone()).collect();
            // The remaining ones were removed from the disk.
            *known = by_id;
            (folders, new)
        };
        if !new.is_empty() {
            let runs = self.runs()?;
            let new = blocking(move || {
                // Skip a run that was just removed or has a newer format.
                Ok(new
                    .iter()
                    .filter_map(|id| runs.get(id).ok().flatten())
                    .collect::<Vec<_>>())
            })
            .await?;
            for folder in new {
                self.known(folder.clone());
                folders.push(folder);
            }
        }
        folders.sort_by(|a, b| order(b).cmp(&order(a)));
        Ok(folders)
    }

    pub(crate) async fn summary(&self, folder: RunFolder) -> Result<Arc<RunSummary>, ServiceError> {
        self.known(folder).summary().await
    }

    /// Reads the titles of ended runs again if a person has changed one.
    fn notice_titles(&self, runs: &Runs) {
        // Before the titles, so that a change after it is noticed the next time.
        let changes = runs.title_changes();
        if *lock(&self.titles) == changes {
            return;
        }
        let known: Vec<_> = lock(&self.known).values().cloned().collect();
        let mut has_all = true;
        for run in known {
            has_all &= run.read_title();
        }
        if has_all {
            *lock(&self.titles) = changes;
        }
    }

    pub(crate) async fn spec(self: &Arc<Self>, id: &str) -> Result<KeptSpec, ServiceError> {
        let run = self.get(id).await?;
        blocking(move || {
            let none = || {
                let detail = format!("the spec of run {} was not kept", run.id());
                ServiceError::new(ProblemCode::Unsupported, detail)
            };
            run.spec()?.ok_or_else(none)
        })
        .await
    }

    fn known(&self, folder: RunFolder) -> Arc<CachedRun> {
        let mut known = lock(&self.known);
        // Another run may have taken the id of a removed one.
        if let Some(run) = known.get(folder.id())
            && run.folder.info() == folder.info()
        {
            return run.clone();
        }
        let id = folder.id().to_owned();
        let run = Arc::new(CachedRun {
            folder,
            progress: Mutex::default(),
            silence: Mutex::default(),
            is_read: AtomicBool::new(false),
            is_stuck: AtomicBool::new(false),
        });
        known.insert(id, run.clone());
        run
    }
}

/// Returns the sort key of a run. Lists are in descending order.
pub(crate) fn order(run: &RunFolder) -> (u64, &str) {
    (run.info().accepted_at_ms, run.id())
}

impl CachedRun {
    async fn summary(self: &Arc<Self>) -> Result<Arc<RunSummary>, ServiceError> {
        // Fast path: the summary of an ended run is final.
        if let Some(ended) = self.ended() {
            return Ok(ended);
        }
        // The mark may be set just after the read has ended.
        if self.is_stuck.load(Ordering::Relaxed) && self.progress.try_lock().is_err() {
            let detail = format!("the log of run {} is still being read", self.folder.id());
            return Err(ServiceError::new(ProblemCode::Internal, detail));
        }
        self.is_read.store(true, Ordering::Relaxed);
        let known = self.clone();
        let read = blocking(move || {
            let read = known.read();
            known.is_stuck.store(false, Ordering::Relaxed);
            read
        })
        .await;
        // Without the lock, a read that was given up is still in progress.
        if read.is_err() && self.progress.try_lock().is_err() {
            self.is_stuck.store(true, Ordering::Relaxed);
        }
        let (summary, has_requests) = read?;
        if !has_requests {
            return Ok(summary);
        }
        let mut summary = Arc::unwrap_or_clone(summary);
        if let Some(status) = self.silence() {
            summary.live = Some(status);
            return Ok(Arc::new(summary));
        }
        match client::requests(&self.folder).await {
            Ok(requests) => summary.requests = requests,
            // Without asking it again, which takes as long.
            Err(RunsError::NotAnswering { pid, .. }) => {
                let status = self.folder.status_without_answer(pid);
                self.note(&status);
                summary.live = Some(status);
            }
            Err(error) => return Err(error.into()),
        }
        if !summary.requests.is_empty() {
            summary.state = ViewState::Waiting;
        }
        Ok(Arc::new(summary))
    }

    /// Returns the final summary of an ended run, if it is known.
    fn ended(&self) -> Option<Arc<RunSummary>> {
        self.progress.try_lock().ok()?.ended.clone()
    }

    /// Reads the title of an ended run. Returns `false` while its log is being read.
    fn read_title(&self) -> bool {
        let Ok(mut progress) = self.progress.try_lock() else {
            return false;
        };
        if let Some(ended) = &mut progress.ended {
            let title = self.folder.title();
            if ended.info.title != title {
                Arc::make_mut(ended).info.title = title;
            }
        }
        true
    }

    /// Returns the live status. `None` if the run just ended, or its runner has another version.
    async fn live_status(&self) -> Option<LiveStatus> {
        if let Some(status) = self.silence() {
            return Some(status);
        }
        let status = client::status(&self.folder).await.ok()?;
        self.note(&status);
        Some(status)
    }

    /// Notes whether the runner answered.
    fn note(&self, status: &LiveStatus) {
        *lock(&self.silence) = (status.state == LiveState::NotAnswering).then(|| Silence {
            status: status.clone(),
            until: Instant::now() + SILENCE,
            changed_at_ms: self.folder.changed_at_ms(),
            is_stopped: self
                .folder
                .runner()
                .is_some_and(ProcessIdentity::is_stopped),
        });
    }

    /// Returns the status of a runner that did not answer a moment ago.
    fn silence(&self) -> Option<LiveStatus> {
        let silence = lock(&self.silence).clone()?;
        let runner = self.folder.runner();
        let is_recent = Instant::now() < silence.until
            && self.folder.changed_at_ms() == silence.changed_at_ms
            && runner.map(ProcessIdentity::pid) == silence.status.pid
            && runner.is_some_and(ProcessIdentity::is_stopped) == silence.is_stopped;
        is_recent.then_some(silence.status)
    }

    /// Reads new log entries. Returns the summary, and `true` if the runner must be queried for requests.
    fn read(&self) -> Result<(Arc<RunSummary>, bool), ServiceError> {
        let mut progress = lock(&self.progress);
        if let Some(ended) = &progress.ended {
            return Ok((ended.clone(), false));
        }
        if self.folder.settle()? == RunState::Ended {
            let last = self.folder.last_line()?;
            let mut summary = self.summary_of(&progress, ViewState::Ended);
            if let Some(line) = last {
                summary.seq = line.seq();
                summary.attempts = attempts(&line);
                if let Some(result) = line.result() {
                    apply_result(&mut summary, &result);
                }
            }
            let summary = Arc::new(summary);
            progress.ended = Some(summary.clone());
            return Ok((summary, false));
        }
        let mut log = self.folder.log(progress.seq)?;
        while let Some(line) = log.next_line()? {
            progress.apply(&line);
        }
        let summary = self.summary_of(&progress, ViewState::Running);
        Ok((Arc::new(summary), !progress.open_requests.is_empty()))
    }

    fn summary_of(&self, progress: &Progress, state: ViewState) -> RunSummary {
        let mut summary = RunSummary::new(self.folder.info().clone(), state);
        summary.info.title = self.folder.title();
        summary.seq = progress.seq;
        summary.changed_at_ms = self.folder.changed_at_ms();
        summary.session_id.clone_from(&progress.session_id);
        summary.usage = progress.used.usage;
        summary.cost_usd = progress.used.cost_usd;
        summary.cost_source = progress.used.cost_source();
        summary
    }

    fn result(&self) -> Result<Option<Box<RunResult>>, ServiceError> {
        Ok(self.folder.last_line()?.and_then(|line| line.result()))
    }
}

async fn with_prompt(summary: Arc<RunSummary>, folder: RunFolder) -> Result<RunView, ServiceError> {
    let mut view = RunView::new(summary, None);
    view.prompt = blocking(move || Ok(prompt(&folder))).await?;
    Ok(view)
}

/// Returns the prompt of a run. A spec that cannot be read does not keep the rest from being shown.
pub(crate) fn prompt(folder: &RunFolder) -> Option<String> {
    let spec = folder.spec().ok()??;
    spec.prompt().map(str::to_owned)
}

/// Rejects commands to an ended run, whose runner still accepts them for a moment.
pub(crate) async fn not_ended(run: &RunFolder) -> Result<(), ServiceError> {
    let folder = run.clone();
    if blocking(move || Ok(folder.settle()?)).await? == RunState::Ended {
        let id = run.id().to_owned();
        return Err(RunsError::Ended { id }.into());
    }
    Ok(())
}
