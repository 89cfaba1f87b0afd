//! A service whose runs are played in memory.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use async_stream::stream;
use futures_core::stream::BoxStream;
use teamster_api::history::{ForgetRuns, Forgotten};
use teamster_api::{
    Accepted, AppliedChanges, Change, Command, DiffQuery, DiscardedChanges, FileList, FileManifest,
    KeptSpec, LogLine, NEW_RUN_ID_RULE, ProblemCode, Reply, RunInfo, RunList, RunQuery, RunService,
    RunSummary, RunView, ServiceError, Spec, WorkspaceDiff, either, is_new_run_id, is_owned_run_id,
};
use teamster_core::sync::lock;
use teamster_core::{AgentError, AgentEvent, PermissionRequest};
use tokio::sync::watch;

use super::play::MemoryRun;

/// Steps of an agent in a run of a [`MemoryService`].
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Step {
    /// Emits an event.
    Emit(AgentEvent),
    /// Asks for permission, and waits for the answer.
    Ask(PermissionRequest),
    /// Writes a new file of one line, with this path and text.
    Write(String, String),
    /// Waits until the run is stopped.
    Hang,
    /// Fails.
    Fail(AgentError),
}

/// Runs and sessions that are played in memory. Clones share them.
///
/// Needs a Tokio runtime. What the agent does follows from the prompt.
#[derive(Clone)]
pub struct MemoryService {
    shared: Arc<Shared>,
}

pub(super) type Script = dyn Fn(&str) -> Vec<Step> + Send + Sync;

struct Shared {
    script: Arc<Script>,
    agents: Vec<String>,
    warnings: Mutex<Vec<String>>,
    runs: Mutex<BTreeMap<String, Arc<MemoryRun>>>,
    /// The number of changes of any run.
    changes: watch::Sender<u64>,
    /// MCP servers of a spec are refused.
    refuses_servers: AtomicBool,
    /// Ids have an owner, as those of a worker's machine.
    has_owners: AtomicBool,
    /// Files that runs take along, by run and name.
    uploads: Mutex<BTreeMap<(String, String), Upload>>,
}

/// A file with the parts that are there.
struct Upload {
    manifest: FileManifest,
    parts: BTreeMap<u32, Vec<u8>>,
}

teamster_core::debug_fields!(MemoryService {});

impl MemoryService {
    /// Creates a service with these agents. `script` returns what an agent does for a prompt.
    pub fn new(
        agents: impl IntoIterator<Item = impl Into<String>>,
        script: impl Fn(&str) -> Vec<Step> + Send + Sync + 'static,
    ) -> Self {
        Self {
            shared: Arc::new(Shared {
                script: Arc::new(script),
                agents: agents.into_iter().map(Into::into).collect(),
                warnings: Mutex::default(),
                runs: Mutex::default(),
                changes: watch::Sender::new(0),
                refuses_servers: AtomicBool::new(false),
                has_owners: AtomicBool::new(false),
                uploads: Mutex::default(),
            }),
        }
    }

    /// Sets the warnings of each start from now on.
    pub fn set_warnings(&self, warnings: impl IntoIterator<Item = impl Into<String>>) {
        *lock(&self.shared.warnings) = warnings.into_iter().map(Into::into).collect();
    }

    /// Refuses the MCP servers that a spec brings along, as a server does whose owner allows none.
    pub fn refuse_servers(&self) {
        self.shared.refuses_servers.store(true, Ordering::Relaxed);
    }

    /// Takes ids that have an owner, and no others, as the machine of a worker does.
    pub fn have_owners(&self) {
        self.shared.has_owners.store(true, Ordering::Relaxed);
    }

    /// Returns the spec that a run or session was started with.
    pub fn spec(&self, id: &str) -> Option<Spec> {
        let runs = lock(&self.shared.runs);
        runs.get(id).map(|run| run.spec.clone())
    }

    fn run(&self, id: &str) -> Result<Arc<MemoryRun>, ServiceError> {
        let found = lock(&self.shared.runs).get(id).cloned();
        found.ok_or_else(|| not_found(id))
    }

    /// Returns all runs, newest first.
    fn all(&self) -> Vec<Arc<MemoryRun>> {
        let mut runs: Vec<_> = lock(&self.shared.runs).values().cloned().collect();
        runs.sort_by_key(|run| std::cmp::Reverse(order(run)));
        runs
    }

    /// Refuses a spec that is wrong, or whose agent there is not.
    fn check_spec(&self, spec: &Spec) -> Result<(), ServiceError> {
        spec.check_one_machine()?;
        let trusted = either!(spec, spec => &spec.trusted);
        if !trusted.mcp_servers.is_empty() && self.shared.refuses_servers.load(Ordering::Relaxed) {
            return Err(AgentError::refused("mcp_servers", "they are not allowed").into());
        }
        if !self.shared.agents.iter().any(|it| it == spec.provider()) {
            let agents = self.shared.agents.join(", ");
            return Err(AgentError::refused(
                "provider",
                format!("unknown agent \"{}\"; available: {agents}", spec.provider()),
            )
            .into());
        }
        Ok(())
    }

    fn begin(&self, id: &str, spec: Spec) -> Result<Accepted, ServiceError> {
        let is_id = if self.shared.has_owners.load(Ordering::Relaxed) {
            is_owned_run_id(id)
        } else {
            is_new_run_id(id)
        };
        if !is_id {
            let detail = format!("\"{id}\" cannot be the id of a run: {NEW_RUN_ID_RULE}");
            return Err(ServiceError::new(ProblemCode::InvalidParams, detail));
        }
        self.check_spec(&spec)?;
        let mut runs = lock(&self.shared.runs);
        if let Some(known) = runs.get(id) {
            return known.started(&spec);
        }
        let changes = self.shared.changes.clone();
        let accepted = Accepted::new(lock(&self.shared.warnings).clone());
        let script = self.shared.script.clone();
        let run = MemoryRun::new(id, spec, accepted.clone(), script, changes);
        runs.insert(id.to_owned(), run.clone());
        drop(runs);
        lock(&self.shared.uploads).retain(|(run, _), _| run != id);
        run.begin();
        Ok(accepted)
    }

    fn resolved(&self, prefix: &str) -> Result<RunInfo, ServiceError> {
        let runs = lock(&self.shared.runs);
        if let Some(run) = runs.get(prefix) {
            return Ok(run.info.clone());
        }
        let mut matches = runs
            .values()
            .filter(|run| run.info.run_id.starts_with(prefix));
        match (matches.next(), matches.next()) {
            (Some(only), None) => Ok(only.info.clone()),
            (None, _) => Err(not_found(prefix)),
            (Some(_), Some(_)) => Err(ServiceError::new(
                ProblemCode::RunIdAmbiguous,
                format!("\"{prefix}\" matches several runs"),
            )),
        }
    }

    fn page(&self, query: &RunQuery) -> Result<RunList, ServiceError> {
        let before = query.before()?;
        let mut page = RunList::new(Vec::new());
        for run in self.all() {
            let (at, id) = order(&run);
            if before
                .as_ref()
                .is_some_and(|before| (at, &id) >= (before.started_at, &before.run_id))
                || !query.selects(&run.info)
            {
                continue;
            }
            let summary = run.summary(query.live || query.live_status);
            let title = summary.info.title.as_deref();
            if !query.shows(&summary) || !query.has_text(title, || run.prompt()) {
                continue;
            }
            if !page.add(Arc::new(summary), query.page_size()) {
                break;
            }
        }
        Ok(page)
    }

    fn delete(&self, request: &ForgetRuns) -> Result<Forgotten, ServiceError> {
        let mut chosen = Vec::new();
        for id in &request.ids {
            let id = self.resolved(id)?.run_id;
            if !self.run(&id)?.has_ended() {
                return Err(ServiceError::new(
                    ProblemCode::RunLive,
                    format!("run {id} has not ended: stop it first"),
                ));
            }
            chosen.push(id);
        }
        let mut forgotten = Forgotten::default();
        let mut runs = lock(&self.shared.runs);
        for id in chosen {
            if runs.remove(&id).is_some() {
                forgotten.logs += 1;
            }
        }
        drop(runs);
        self.shared.changes.send_modify(|count| *count += 1);
        Ok(forgotten)
    }

    fn offered(&self, id: &str, manifest: FileManifest) -> Result<Vec<u32>, ServiceError> {
        manifest.check()?;
        if self.run(id).is_ok() {
            return Err(exists(id));
        }
        let mut uploads = lock(&self.shared.uploads);
        let key = (id.to_owned(), manifest.name.clone());
        let upload = uploads.entry(key).or_insert_with(|| Upload {
            manifest: manifest.clone(),
            parts: BTreeMap::new(),
        });
        upload.manifest = manifest;
        let manifest = &upload.manifest;
        (upload.parts).retain(|number, part| manifest.check_part(*number, part).is_ok());
        let all = 0..u32::try_from(manifest.parts.len()).unwrap_or(u32::MAX);
        Ok(all
            .filter(|number| !upload.parts.contains_key(number))
            .collect())
    }

    fn part(&self, id: &str, name: &str, number: u32, part: Vec<u8>) -> Result<(), ServiceError> {
        let mut uploads = lock(&self.shared.uploads);
        let upload = uploads.get_mut(&(id.to_owned(), name.to_owned()));
        let upload = upload.ok_or_else(|| {
            let message = format!("the file \"{name}\" was not declared for this run");
            ServiceError::new(ProblemCode::FileNotFound, message)
        })?;
        upload.manifest.check_part(number, &part)?;
        upload.parts.insert(number, part);
        Ok(())
    }

    fn summaries(&self) -> Vec<Arc<RunSummary>> {
        let runs = self.all();
        runs.iter()
            .map(|run| Arc::new(run.summary(false)))
            .collect()
    }
}

/// Returns the sort key of a run. Lists are in descending order.
fn order(run: &MemoryRun) -> (u64, String) {
    (run.info.accepted_at_ms, run.info.run_id.clone())
}

pub(super) fn exists(id: &str) -> ServiceError {
    ServiceError::new(
        ProblemCode::RunExists,
        format!("a run \"{id}\" exists already: give every run an id of its own"),
    )
}

fn part(content: &[u8], name: &str, number: u32) -> Result<Vec<u8>, ServiceError> {
    let manifest = FileManifest::of(name, content);
    let Some((start, size)) = manifest.range(number) else {
        let message = format!("\"{name}\" has no part {number}");
        return Err(ServiceError::new(ProblemCode::FileNotFound, message));
    };
    let content = content
        .iter()
        .skip(usize::try_from(start).unwrap_or(usize::MAX));
    Ok(content
        .take(usize::try_from(size).unwrap_or(usize::MAX))
        .copied()
        .collect())
}

fn not_found(id: &str) -> ServiceError {
    ServiceError::new(ProblemCode::RunNotFound, format!("no run \"{id}\""))
}

#[async_trait::async_trait]
impl RunService for MemoryService {
    async fn start(&self, id: &str, spec: Spec) -> Result<Accepted, ServiceError> {
        self.begin(id, spec)
    }

    async fn started(&self, id: &str, spec: Spec) -> Result<Accepted, ServiceError> {
        self.run(id)?.started(&spec)
    }

    async fn check(&self, spec: &Spec) -> Result<(), ServiceError> {
        self.check_spec(spec)
    }

    async fn resolve(&self, prefix: &str) -> Result<RunInfo, ServiceError> {
        self.resolved(prefix)
    }

    async fn show(&self, id: &str) -> Result<RunView, ServiceError> {
        Ok(self.run(id)?.view())
    }

    async fn list(&self, query: RunQuery) -> Result<RunList, ServiceError> {
        self.page(&query)
    }

    fn follow(&self, id: &str, after: u64) -> BoxStream<'static, Result<LogLine, ServiceError>> {
        let run = self.run(id);
        Box::pin(stream! {
            let run = match run {
                Ok(run) => run,
                Err(error) => {
                    yield Err(error);
                    return;
                }
            };
            let mut changed = run.changed.subscribe();
            let mut next = after;
            loop {
                changed.borrow_and_update();
                let (lines, ended) = run.lines_after(next);
                for line in lines {
                    next = line.seq();
                    yield Ok(line);
                }
                // The run itself keeps the sender.
                if ended || changed.changed().await.is_err() {
                    return;
                }
            }
        })
    }

    fn changes(&self) -> BoxStream<'static, Result<Change, ServiceError>> {
        let service = self.clone();
        Box::pin(stream! {
            let mut changed = service.shared.changes.subscribe();
            changed.borrow_and_update();
            let mut known = service.summaries();
            yield Ok(Change::Snapshot { runs: known.clone(), agents: None });
            // The service itself keeps the sender.
            while changed.changed().await.is_ok() {
                changed.borrow_and_update();
                let now = service.summaries();
                for run in &now {
                    if !known.contains(run) {
                        yield Ok(Change::Run { run: run.clone() });
                    }
                }
                for old in &known {
                    if now.iter().all(|run| run.info.run_id != old.info.run_id) {
                        yield Ok(Change::Gone { run_id: old.info.run_id.clone() });
                    }
                }
                known = now;
            }
        })
    }

    async fn send(&self, id: &str, command: Command) -> Result<Reply, ServiceError> {
        self.run(id)?.send(command)
    }

    async fn diff(&self, id: &str, query: DiffQuery) -> Result<WorkspaceDiff, ServiceError> {
        self.run(id)?.diff(&query)
    }

    async fn files(&self, id: &str) -> Result<FileList, ServiceError> {
        self.run(id)?.files()
    }

    async fn manifest(&self, id: &str, name: &str) -> Result<FileManifest, ServiceError> {
        Ok(FileManifest::of(name, &self.run(id)?.file(name)?))
    }

    async fn read_part(&self, id: &str, name: &str, number: u32) -> Result<Vec<u8>, ServiceError> {
        part(&self.run(id)?.file(name)?, name, number)
    }

    async fn offer(&self, id: &str, manifest: FileManifest) -> Result<Vec<u32>, ServiceError> {
        self.offered(id, manifest)
    }

    async fn write_part(
        &self,
        id: &str,
        name: &str,
        number: u32,
        content: Vec<u8>,
    ) -> Result<(), ServiceError> {
        self.part(id, name, number, content)
    }

    async fn withdraw(&self, id: &str) -> Result<(), ServiceError> {
        if self.run(id).is_ok() {
            return Err(exists(id));
        }
        lock(&self.shared.uploads).retain(|(run, _), _| run != id);
        Ok(())
    }

    async fn apply(&self, id: &str) -> Result<AppliedChanges, ServiceError> {
        self.run(id)?.apply()
    }

    async fn discard(&self, id: &str) -> Result<DiscardedChanges, ServiceError> {
        self.run(id)?.discard()
    }

    async fn rename(&self, id: &str, title: Option<String>) -> Result<(), ServiceError> {
        self.run(id)?.rename(title.as_deref())
    }

    async fn spec(&self, id: &str) -> Result<KeptSpec, ServiceError> {
        Ok(self.run(id)?.kept())
    }

    async fn forget(&self, request: ForgetRuns) -> Result<Forgotten, ServiceError> {
        self.delete(&request)
    }
}
