//! Traits for running agents, and for providers of CLIs.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::provider::{Decoder, Launch};
use crate::{AgentError, Capabilities, CliInfo, EventStream, ExecuteParams};

/// Runs an agent.
pub trait AgentRuntime: Send + Sync {
    /// The provider's name, such as `claude`.
    fn id(&self) -> &str;

    /// Its capabilities.
    fn capabilities(&self) -> &Capabilities;

    /// Whether it could honour these parameters, as far as that can be known without starting anything.
    /// A run that it could not is refused too, so this is only for those who want to know before.
    fn check(&self, params: &ExecuteParams) -> Result<(), AgentError> {
        let _ = params;
        Ok(())
    }

    /// Runs an agent. Never fails: all errors are events of the stream.
    ///
    /// Nothing happens before the stream is polled; dropping it stops the run. A Tokio runtime that
    /// polls it must have its drivers on (`enable_all`); outside of Tokio any executor will do.
    fn execute(&self, params: ExecuteParams) -> EventStream;

    /// Like [`execute`](Self::execute), for a caller that keeps the `text` events itself: the result may lack
    /// [`text`](crate::RunResult::text), and `final_message` where it only repeats that. So a long answer is
    /// not in memory twice.
    fn execute_without_text(&self, params: ExecuteParams) -> EventStream {
        self.execute(params)
    }
}

/// A runtime of any provider.
pub type SharedRuntime = Arc<dyn AgentRuntime>;

impl<R: AgentRuntime + ?Sized> AgentRuntime for Arc<R> {
    fn id(&self) -> &str {
        (**self).id()
    }

    fn capabilities(&self) -> &Capabilities {
        (**self).capabilities()
    }

    fn check(&self, params: &ExecuteParams) -> Result<(), AgentError> {
        (**self).check(params)
    }

    fn execute(&self, params: ExecuteParams) -> EventStream {
        (**self).execute(params)
    }

    fn execute_without_text(&self, params: ExecuteParams) -> EventStream {
        (**self).execute_without_text(params)
    }
}

/// Provider of one CLI: launches it and reads its output. The engine does the rest.
pub trait CliProvider: Send + Sync + 'static {
    /// Static facts about the CLI.
    fn info(&self) -> &'static CliInfo;

    /// Its capabilities.
    fn capabilities(&self) -> &Capabilities;

    /// Where the CLI's own program may be, beside the launcher that was found on `PATH` (its path
    /// without symbolic links). Some CLIs install a script that starts the real program and loses
    /// signals on the way. The first that exists is run in the launcher's place.
    fn native_programs(&self, launcher: &Path) -> Vec<PathBuf> {
        let _ = launcher;
        Vec::new()
    }

    /// How to start it for these parameters, or why that cannot be. Reads at most the files that
    /// the parameters name.
    fn launch(&self, params: &ExecuteParams) -> Result<Launch, AgentError>;

    /// Extracts parameters from a recorded command line of this CLI, for the decoder of a replay, which
    /// then knows what that of the live run knew. Their `env` is that of the recording; what would
    /// make the decoder look at this machine has to be overridden there.
    fn recorded_params(&self, argv: &[String], params: &mut ExecuteParams) {
        let _ = (argv, params);
    }

    /// A new decoder for one run. It may read the CLI's file of the resumed session, to
    /// learn the initial figures; without it those figures are absent. without it those figures are absent.
    fn decoder(&self, params: &ExecuteParams) -> Box<dyn Decoder>;
}

impl<P: CliProvider + ?Sized> CliProvider for Arc<P> {
    fn info(&self) -> &'static CliInfo {
        (**self).info()
    }

    fn capabilities(&self) -> &Capabilities {
        (**self).capabilities()
    }

    fn native_programs(&self, launcher: &Path) -> Vec<PathBuf> {
        (**self).native_programs(launcher)
    }

    fn recorded_params(&self, argv: &[String], params: &mut ExecuteParams) {
        (**self).recorded_params(argv, params);
    }

    fn launch(&self, params: &ExecuteParams) -> Result<Launch, AgentError> {
        (**self).launch(params)
    }

    fn decoder(&self, params: &ExecuteParams) -> Box<dyn Decoder> {
        (**self).decoder(params)
    }
}
