//! Sessions as tasks of this process, as an editor has them.

use std::collections::HashMap;
use std::mem;
use std::sync::{Arc, Mutex};

use teamster_api::{Accepted, Command, Reply, ServiceError, SessionSpec, Trusted};
use teamster_core::sync::lock;
use teamster_core::{AgentError, Stopping};
use teamster_runner::SessionControl;
use tokio::task::JoinHandle;

use super::check::check;
use super::fitted::Offered;
use crate::start::report_log;
use crate::{Answers, Host, KeptHistory, SessionRunOptions, Warning, state};

/// Sessions that are tasks of this process and share a history, for [`LocalRuns::with_sessions_here`]. Clones share them.
///
/// They have folders with logs, as other sessions do, and end with this process. Their prompts can have images. What a
/// spec has beyond what is [required](Self::requires) is left out for an agent that does not take it, with a warning, and
/// so is a fallback without the permission mode of the session.
///
/// [`LocalRuns::with_sessions_here`]: crate::LocalRuns::with_sessions_here
#[derive(Clone)]
pub struct SessionTasks {
    history: Arc<KeptHistory>,
    required: Trusted,
    start_over: Arc<dyn Fn(&SessionSpec) -> String + Send + Sync>,
    live: Arc<Mutex<HashMap<String, Task>>>,
}

struct Task {
    control: SessionControl,
    work: JoinHandle<()>,
}

teamster_core::debug_fields!(SessionTasks {});

impl SessionTasks {
    /// Creates the sessions of this history. If it has a conversation, each session that resumes no other one continues it;
    /// `start_over` returns how the user starts it over, for an error.
    pub fn new(
        history: Arc<KeptHistory>,
        start_over: impl Fn(&SessionSpec) -> String + Send + Sync + 'static,
    ) -> Self {
        Self {
            history,
            required: Trusted::default(),
            start_over: Arc::new(start_over),
            live: Arc::default(),
        }
    }

    /// Sets the MCP servers and directories that every agent must take: they are refused instead of left out.
    #[must_use]
    pub fn requires(mut self, required: Trusted) -> Self {
        self.required = required;
        self
    }

    /// Starts a session, and returns its warnings once it is accepted.
    pub(super) async fn start(
        &self,
        host: &Host,
        id: &str,
        spec: SessionSpec,
    ) -> Result<Accepted, AgentError> {
        check(host, &spec.clone().into())?;
        let runs = state::runs()?;
        let mut options = SessionRunOptions::new(id, Answers::Clients);
        options.is_detached = true;
        options.history = Some(self.history.clone());
        options.start_over = Some((self.start_over)(&spec));
        let offered = Offered::new(&spec, &self.required);
        let fitted = offered.clone();
        options.fit = Some(Box::new(move |info, can, params| {
            fitted.fit(info, can, params)
        }));
        let mut prepared = host.prepare_session(spec, options).await?;
        let left_out = offered.left_out().into_iter().map(Warning::new);
        prepared.common.warnings.extend(left_out);
        let run = prepared.accept(&runs)?;
        let (important, others) = prepared.common.take_warnings();
        let session = prepared.detached(run, None);
        let control = session.control();
        let (host, tasks, id) = (host.clone(), self.clone(), id.to_owned());
        // Locked until the task is in the map, from which it removes itself.
        let mut live = lock(&self.live);
        let of_task = id.clone();
        let work = tokio::spawn(async move {
            report_log(&host, &session.work().await);
            lock(&tasks.live).remove(&of_task);
        });
        live.insert(id, Task { control, work });
        Ok(Accepted::with_important(important, others))
    }

    /// Returns the control of a live session, if the command is one that it carries out.
    pub(super) fn control(&self, id: &str, command: &Command) -> Option<SessionControl> {
        match command {
            Command::Send { .. }
            | Command::Steer { .. }
            | Command::Interrupt { .. }
            | Command::Clear
            | Command::SetModel { .. }
            | Command::SetPermission { .. } => {
                let live = lock(&self.live);
                live.get(id).map(|task| task.control.clone())
            }
            _ => None,
        }
    }

    /// Ends the sessions, waits for their ends and closes the history. Returns warnings.
    pub async fn end(&self) -> Vec<Warning> {
        let live = mem::take(&mut *lock(&self.live));
        for task in live.values() {
            task.control.end(Stopping::Graceful);
        }
        for task in live.into_values() {
            // A panic was reported, and the others are awaited.
            let _ = task.work.await;
        }
        self.history.close().await
    }
}

/// Carries out a command in this process.
pub(super) async fn carry_out(
    control: &SessionControl,
    command: Command,
) -> Result<Reply, ServiceError> {
    replied(control.carry_out(command).await)
}

/// Returns a refusal as the error that it is.
pub(super) fn replied(reply: Reply) -> Result<Reply, ServiceError> {
    match reply {
        Reply::Refused { code, message } => Err((code, message).into()),
        reply => Ok(reply),
    }
}
