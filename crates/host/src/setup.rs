//! Set-up of a workspace: shell commands that run before its agent, with the agent's environment.
//!
//! They run as an attempt of the engine does, so that they are stopped with the run and leave no process behind. Their
//! output becomes notices of the run.

mod session;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use teamster_api::Trusted;
use teamster_command::{CommandSettings, TextCommand};
use teamster_core::provider::RunAssembler;
use teamster_core::text::{excerpt, visible};
use teamster_core::{
    AbortHandle, AgentError, AgentEvent, AgentRuntime, Capabilities, ErrorCode, ErrorKind,
    EventStream, ExecuteParams, ImageSource, LogEntry, NoticeLevel, NoticeSource, RunResult,
    SessionRuntime, SharedRuntime, Timeouts,
};
use teamster_process::CliRuntime;
use teamster_workspace::{PROJECT_FILE, Project, Trust, Worktree};
use tokio::sync::{Mutex, watch};
use tokio::time::{Instant, sleep_until};

use crate::text::error_chain;
use crate::{params, state};

/// The list of trusted set-ups in the state directory.
const TRUST: &str = "teamster/trust.json";
/// The variable that brings the commands to their shell.
const SCRIPT: &str = "TEAMSTER_SETUP_SCRIPT";
/// Default limit of time.
const LIMIT: Duration = Duration::from_mins(10);
/// Largest size of a line that becomes a notice, in bytes. The rest of the line is left out.
const LINE: usize = 2000;
/// A time that is far away.
const NEVER: Duration = Duration::from_hours(100 * 365 * 24);

/// Returns the list of the set-ups that the user trusts.
///
/// # Errors
///
/// Fails without a state directory.
pub fn trust() -> Result<Trust, AgentError> {
    let file = state::file(TRUST).ok_or_else(|| {
        AgentError::refused(
            "setup",
            "no directory for what is trusted: set XDG_STATE_HOME or HOME to an absolute path",
        )
    })?;
    Ok(Trust::at(file))
}

/// The set-up of a workspace. All agents of a run or session share it, and it runs before the first of them.
pub(crate) struct Setup {
    commands: Vec<String>,
    directory: PathBuf,
    limit: Option<Duration>,
    /// The environment of the agent.
    trusted: Trusted,
    /// The file whose existence means that it was done.
    marker: Option<PathBuf>,
    is_done: Mutex<bool>,
    /// The set-up in progress.
    running: watch::Sender<Option<AbortHandle>>,
}

impl Setup {
    /// Returns the set-up of a workspace, if there is one to do. `directory` is the agent's. Fails if the repository's
    /// own set-up is not trusted, or cannot be read.
    pub(crate) fn of(
        trusted: &Trusted,
        directory: Option<&Path>,
        worktree: Option<&Worktree>,
    ) -> Result<Option<Arc<Self>>, AgentError> {
        let refused = |problem: String| AgentError::refused("setup", problem);
        let marker = worktree.map(Worktree::set_up_marker);
        if marker.as_ref().is_some_and(|it| it.exists()) {
            return Ok(None);
        }
        let (commands, directory) = match (trusted.setup.as_deref(), worktree) {
            (Some("off"), _) | (None, None) => return Ok(None),
            (Some(command), _) if command.trim().is_empty() => {
                return Err(refused("expected a shell command, or `off`".to_owned()));
            }
            (Some(command), _) => (vec![command.to_owned()], directory.map(Path::to_owned)),
            (None, Some(worktree)) if worktree.has_repository() => {
                let root = worktree.root();
                if root.join(PROJECT_FILE).symlink_metadata().is_err() {
                    return Ok(None);
                }
                let project = Project::of_worktree(root).map_err(|it| refused(error_chain(&it)))?;
                let Some(project) = project.filter(|it| !it.setup.is_empty()) else {
                    return Ok(None);
                };
                let is_trusted = trust()?.trusts(&project);
                if !is_trusted.map_err(|error| refused(error_chain(&error)))? {
                    // The item lets a program name its own command for this.
                    let problem = format!(
                        "the commands of {} at {} are not trusted on this machine: look at them, and trust them there",
                        project.repository.display(),
                        worktree.base()
                    );
                    return Err(AgentError::refused_item("setup", PROJECT_FILE, problem));
                }
                (project.setup, Some(root.to_owned()))
            }
            (None, Some(_)) => return Ok(None),
        };
        let directory = params::absolute(directory.as_deref())
            .ok_or_else(|| refused("set a working directory: this process has none".to_owned()))?;
        let limit = match trusted.setup_timeout_ms {
            None => Some(LIMIT),
            Some(0) => None,
            Some(ms) => Some(Duration::from_millis(ms)),
        };
        Ok(Some(Arc::new(Self {
            commands,
            directory,
            limit,
            trusted: trusted.clone(),
            marker,
            is_done: Mutex::new(false),
            running: watch::Sender::new(None),
        })))
    }

    /// Wraps a runtime whose first run sets the workspace up.
    pub(crate) fn before(self: &Arc<Self>, runtime: SharedRuntime) -> SharedRuntime {
        Arc::new(SetUpRuns {
            runtime,
            setup: self.clone(),
        })
    }

    /// Wraps a runtime whose sessions set the workspace up in their first turn.
    pub(crate) fn before_session(
        self: &Arc<Self>,
        runtime: Arc<dyn SessionRuntime>,
    ) -> Arc<dyn SessionRuntime> {
        Arc::new(SetUpRuns {
            runtime,
            setup: self.clone(),
        })
    }

    /// Stops the set-up in progress.
    pub(crate) fn stop(&self) {
        if let Some(running) = &*self.running.borrow() {
            running.abort();
        }
    }

    /// Returns the stream that sets the workspace up, unless that was done, and continues with these events. If it fails,
    /// they are never polled.
    fn then(self: &Arc<Self>, events: EventStream) -> EventStream {
        let (setup, stopped) = (self.clone(), events.abort_handle());
        events.after(async_stream::try_stream! {
            let mut is_done = setup.is_done.lock().await;
            if !*is_done {
                let mut run = setup.start()?;
                for command in &setup.commands {
                    let line = format!("set-up: {}", excerpt(command, LINE));
                    yield vec![LogEntry::from(notice(line))];
                }
                let mut lines = Lines::default();
                let result = loop {
                    match run.next(&stopped).await {
                        Some(AgentEvent::Text(text)) => for line in lines.add(&text.text) {
                            yield vec![LogEntry::from(notice(line))];
                        },
                        Some(AgentEvent::Done(done)) => break Some(done.result),
                        Some(_) => {}
                        None => break None,
                    }
                };
                if let Some(line) = lines.rest() {
                    yield vec![LogEntry::from(notice(line))];
                }
                setup.judge(result.as_deref(), &run, &stopped)?;
                *is_done = true;
            }
        })
    }

    fn start(&self) -> Result<Running<'_>, AgentError> {
        // In a variable: every user of the machine could read an argument, and placeholders in it would be replaced.
        let shell = format!(
            "sh -c 'script=${SCRIPT}; unset {SCRIPT}; exec sh -ec \"$script\" </dev/null 2>&1'"
        );
        let command = TextCommand::with_settings("set-up", CommandSettings::new(shell))?;
        let config = params::agent_config(&self.trusted, command_info(&command))?;
        let mut wanted = ExecuteParams::new("set up");
        wanted.working_directory = Some(self.directory.clone());
        wanted.env = self.trusted.env.clone();
        wanted
            .env
            .insert(SCRIPT.to_owned(), self.commands.join("\n"));
        wanted.timeouts = Timeouts::default()
            .startup(Duration::MAX)
            .idle(Duration::MAX)
            .tool(Duration::MAX);
        let events = CliRuntime::with_config(command, config).execute(wanted);
        self.running.send_replace(Some(events.abort_handle()));
        let now = Instant::now();
        Ok(Running {
            setup: self,
            events,
            until: now + self.limit.unwrap_or(NEVER),
            is_late: false,
            is_stopped: false,
            is_killed: false,
        })
    }

    /// Returns the error of a set-up that has ended, unless it succeeded; then that is written down.
    fn judge(
        &self,
        result: Option<&RunResult>,
        run: &Running<'_>,
        stopped: &AbortHandle,
    ) -> Result<(), AgentError> {
        let failed = |problem: String| {
            let message = format!("the workspace could not be set up: {problem}");
            Err(AgentError::new(
                ErrorCode::SetupFailed,
                ErrorKind::Setup,
                message,
            ))
        };
        if stopped.is_aborted() {
            return Err(RunAssembler::aborted_error());
        }
        if run.is_late {
            let seconds = self.limit.unwrap_or_default().as_secs_f64();
            return failed(format!(
                "it took longer than {seconds} s: raise `setup_timeout_ms`"
            ));
        }
        let Some(result) = result else {
            return failed("it ended without a result".to_owned());
        };
        let what = match &*self.commands {
            [one] => format!("`{}`", excerpt(one.trim(), 200)),
            _ => format!("a command in {PROJECT_FILE}"),
        };
        match (result.exit_code, result.errors.first()) {
            (Some(0), _) => {}
            (Some(code), _) => return failed(format!("{what} failed with exit code {code}")),
            (None, Some(error)) => return failed(error.message.clone()),
            (None, None) => return failed(format!("{what} was stopped")),
        }
        if let Some(marker) = &self.marker
            && let Err(error) = File::create(marker)
        {
            return failed(format!("cannot write {}: {error}", marker.display()));
        }
        Ok(())
    }
}

fn command_info(command: &TextCommand) -> &'static teamster_core::CliInfo {
    teamster_core::CliProvider::info(command)
}

/// A set-up in progress.
struct Running<'a> {
    setup: &'a Setup,
    events: EventStream,
    until: Instant,
    is_late: bool,
    is_stopped: bool,
    is_killed: bool,
}

impl Running<'_> {
    /// Returns the next event. Stops the set-up when its time is over, or when its run is stopped.
    async fn next(&mut self, run: &AbortHandle) -> Option<AgentEvent> {
        let own = self.events.abort_handle();
        loop {
            tokio::select! {
                biased;
                event = self.events.next() => return event,
                () = run.killed(), if !self.is_killed => {
                    self.is_killed = true;
                    own.kill();
                }
                () = run.aborted(), if !self.is_stopped => {
                    self.is_stopped = true;
                    own.abort();
                }
                () = sleep_until(self.until), if !self.is_late => {
                    self.is_late = true;
                    own.abort();
                }
            }
        }
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.setup.running.send_replace(None);
    }
}

/// Lines of a text that comes in pieces.
#[derive(Default)]
struct Lines {
    begun: String,
}

impl Lines {
    /// Adds a piece, and returns the lines that it completes.
    fn add(&mut self, text: &str) -> Vec<String> {
        let mut complete = Vec::new();
        for piece in text.split_inclusive('\n') {
            if self.begun.len() < LINE {
                self.begun.push_str(piece.trim_end_matches(['\n', '\r']));
            }
            if piece.ends_with('\n') {
                complete.extend(self.rest());
            }
        }
        complete
    }

    /// Returns the line that is not complete, if there is one.
    fn rest(&mut self) -> Option<String> {
        let line = std::mem::take(&mut self.begun);
        (!line.trim().is_empty()).then(|| excerpt(&visible(&line), LINE))
    }
}

fn notice(text: String) -> AgentEvent {
    AgentEvent::notice(NoticeLevel::Info, NoticeSource::Runtime, text)
}

/// A runtime whose first run, or first turn of a session, sets the workspace up.
struct SetUpRuns<R: ?Sized> {
    runtime: Arc<R>,
    setup: Arc<Setup>,
}

impl<R: AgentRuntime + ?Sized> AgentRuntime for SetUpRuns<R> {
    fn id(&self) -> &str {
        self.runtime.id()
    }

    fn capabilities(&self) -> &Capabilities {
        self.runtime.capabilities()
    }

    fn check(&self, params: &ExecuteParams) -> Result<(), AgentError> {
        let mut params = params.clone();
        for image in &mut params.images {
            // The set-up may make the file. The run looks for it afterwards.
            image.source = ImageSource::Bytes(Vec::new());
        }
        self.runtime.check(&params)
    }

    fn execute(&self, params: ExecuteParams) -> EventStream {
        self.setup.then(self.runtime.execute(params))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_whole_and_short() {
        let mut lines = Lines::default();
        assert_eq!(lines.add("a"), [""; 0]);
        assert_eq!(lines.add("b\r\n\nc\nd"), ["ab", "c"]);
        assert_eq!(lines.rest().as_deref(), Some("d"));
        assert_eq!(lines.rest(), None);
        lines.add(&"x".repeat(LINE));
        lines.add(&"y".repeat(LINE));
        assert!(lines.rest().unwrap().len() <= LINE + 3);
    }
}
