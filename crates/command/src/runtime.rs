//! Runs of a text program, with the files that they change.

use std::path::PathBuf;

use teamster_core::{
    AgentError, AgentEvent, AgentRuntime, Capabilities, EventStream, ExecuteParams, LogEntry,
};

use crate::changes::WorkTree;

/// A runtime that reports the changed files of a git work tree at the end of each run. It emits a `file_change` for
/// each file. It finds them by comparing `git status` before and after the run.
///
/// Changes that other programs make during the run are reported too.
///
/// ```no_run
/// use teamster_command::{CommandRuntime, TextCommand};
/// use teamster_core::{AgentRuntime, ExecuteParams};
/// use teamster_process::CliRuntime;
///
/// # async fn example() -> Result<(), teamster_core::AgentError> {
/// let agent = TextCommand::new("my-agent {prompt_file}")?;
/// let runtime = CommandRuntime::new(CliRuntime::new(agent));
/// let result = runtime.execute(ExecuteParams::new("Fix the typo")).result().await;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct CommandRuntime<R>(R);

impl<R: AgentRuntime> CommandRuntime<R> {
    /// Creates a runtime on top of this one.
    pub fn new(runtime: R) -> Self {
        Self(runtime)
    }
}

impl<R: AgentRuntime> AgentRuntime for CommandRuntime<R> {
    fn id(&self) -> &str {
        self.0.id()
    }

    fn capabilities(&self) -> &Capabilities {
        self.0.capabilities()
    }

    fn check(&self, params: &ExecuteParams) -> Result<(), AgentError> {
        self.0.check(params)
    }

    fn execute(&self, params: ExecuteParams) -> EventStream {
        if let Err(error) = self.check(&params) {
            return EventStream::refused(error);
        }
        let directory = params.working_directory.clone();
        let directory = directory.unwrap_or_else(|| PathBuf::from("."));
        let mut events = self.0.execute(params);
        let abort = events.abort_handle();
        let events = async_stream::stream! {
            let before = WorkTree::of(&directory).await;
            // Entries that must follow the file changes.
            let mut held: Vec<LogEntry> = Vec::new();
            while let Some(entry) = events.next_entry().await {
                if matches!(entry.event, AgentEvent::TurnEnd(_) | AgentEvent::Done(_)) {
                    held.push(entry);
                } else {
                    for entry in held.drain(..) {
                        yield entry;
                    }
                    yield entry;
                }
            }
            if let Some(before) = before {
                for change in before.changes().await {
                    yield AgentEvent::FileChange(Box::new(change)).into();
                }
            }
            for entry in held {
                yield entry;
            }
        };
        EventStream::new(events, abort)
    }
}
