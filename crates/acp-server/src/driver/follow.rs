//! The log of a thread's session, as the editor gets it.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use teamster_api::{Command, LogLine, Reply, RunHandle, RunLogEntry};
use teamster_core::{AgentError, AgentEvent, ChangeKind, Decision, ErrorCode, ErrorKind, Id};
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::Shared;
use super::change::Mode;
use super::connection::Update;
use super::repeat::repeated;

/// Delay of a permission request whose tool call is not announced yet.
const ANNOUNCEMENT_DELAY: Duration = Duration::from_millis(300);
/// Maximum size of an added file whose content is shown, in bytes.
const MAX_FILE: u64 = 256 << 10;

/// Reader of a session's log for the editor.
pub(super) struct Follower {
    session_id: String,
    run: RunHandle,
    /// The folder of the agents' files, if they are on this machine.
    folder: Option<PathBuf>,
    updates: mpsc::Sender<Update>,
    /// The session's mode, which the agent may change.
    mode: Mode,
    /// Tool calls that the editor has got.
    announced: HashSet<Id>,
    /// Requests whose tool call is not announced yet. Usually it is the next entry.
    early: Vec<EarlyRequest>,
}

/// A permission request and its tool call.
struct EarlyRequest {
    request_id: String,
    tool_id: Option<Id>,
}

/// The editor has disconnected.
struct Gone;

impl Follower {
    pub(super) fn new(
        session_id: &str,
        run: RunHandle,
        folder: Option<PathBuf>,
        updates: mpsc::Sender<Update>,
        mode: Mode,
    ) -> Self {
        Self {
            session_id: session_id.to_owned(),
            run,
            folder,
            updates,
            mode,
            announced: HashSet::new(),
            early: Vec::new(),
        }
    }

    /// Reads the log to its end and reports its entries.
    pub(super) async fn work(mut self, shared: &Shared) {
        let end = self.report_all(shared).await;
        if let Ok(error) = end {
            let run = self.run.id().to_owned();
            let lost = Update::Lost(self.session_id, run, Box::new(error));
            // Fails only if the editor has disconnected.
            let _ = self.updates.send(lost).await;
        }
    }

    /// Returns the error for a turn that is in progress when the log ends.
    async fn report_all(&mut self, shared: &Shared) -> Result<AgentError, Gone> {
        let mut log = self.run.follow(0);
        loop {
            let next = if self.early.is_empty() {
                log.next().await
            } else {
                match timeout(ANNOUNCEMENT_DELAY, log.next()).await {
                    Ok(next) => next,
                    Err(_) => {
                        for early in std::mem::take(&mut self.early) {
                            self.forward(&early.request_id).await?;
                        }
                        continue;
                    }
                }
            };
            match next {
                Some(Ok(line)) if !line.is_end() => self.report(&line).await?,
                Some(Ok(line)) => {
                    let failure = line.result().and_then(|result| result.failure());
                    return Ok(failure.unwrap_or_else(ended));
                }
                Some(Err(error)) => return Ok(shared.agent_error(error)),
                None => return Ok(ended()),
            }
        }
    }

    async fn report(&mut self, line: &LogLine) -> Result<(), Gone> {
        let Ok(entry) = line.entry() else {
            return Ok(());
        };
        let mut request = None;
        let mut content = None;
        if let RunLogEntry::Agent(entry) = &entry {
            match &entry.event {
                AgentEvent::Permission(permission)
                    if permission.decision == Decision::Requested =>
                {
                    let tool_id = permission.tool_id.clone();
                    let request_id = permission.request_id.clone();
                    request = request_id.map(|request_id| EarlyRequest {
                        request_id,
                        tool_id,
                    });
                }
                AgentEvent::PermissionMode(change) => {
                    self.mode.set(Some(change.mode));
                }
                AgentEvent::ToolUse(tool) => {
                    self.announced.insert(tool.tool_id.clone());
                }
                AgentEvent::FileChange(change) if change.change == ChangeKind::Add => {
                    if let Some(folder) = &self.folder {
                        content = read_file(&folder.join(&change.path)).await;
                    }
                }
                _ => {}
            }
        }
        let entry = Update::Entry(self.session_id.clone(), Box::new(entry), content);
        self.send(entry).await?;
        self.early.extend(request);
        let announced = &self.announced;
        let is_known = |early: &mut EarlyRequest| {
            (early.tool_id.as_ref()).is_none_or(|id| announced.contains(id))
        };
        let known: Vec<_> = self.early.extract_if(.., is_known).collect();
        for early in known {
            self.forward(&early.request_id).await?;
        }
        Ok(())
    }

    /// Forwards a pending request to the editor.
    async fn forward(&self, request_id: &str) -> Result<(), Gone> {
        // After an error, the log has it too, or the request is not pending any more.
        let requests = repeated(|| self.run.send(Command::Requests)).await;
        let Ok(Reply::Requests { requests }) = requests else {
            return Ok(());
        };
        let mut pending = requests.into_iter();
        let Some(pending) = pending.find(|it| it.request_id == request_id) else {
            return Ok(());
        };
        let (session, request) = (self.session_id.clone(), request_id.to_owned());
        self.send(Update::Request(session, request, Box::new(pending.into())))
            .await
    }

    async fn send(&self, update: Update) -> Result<(), Gone> {
        self.updates.send(update).await.map_err(|_| Gone)
    }
}

fn ended() -> AgentError {
    let problem = "the session ended during the turn: the next prompt continues it";
    AgentError::new(ErrorCode::Interrupted, ErrorKind::Interrupted, problem)
}

/// Returns the text of a file; `None` if it is too large, not a regular file or not readable.
async fn read_file(path: &Path) -> Option<String> {
    let about = tokio::fs::metadata(path).await.ok()?;
    if !about.is_file() || about.len() > MAX_FILE {
        return None;
    }
    tokio::fs::read_to_string(path).await.ok()
}
