//! Traits for running agents, and for providers of CLIs.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::provider::{Decoder, Launch};
use crate::{AgentError, Capabilities, CliInfo, EventStream, ExecuteParams};

/// Runs an agent.
pub trait AgentRuntime: Send + Sync {
    /// Returns the provider's name, such as `claude`.
    fn id(&self) -> &str;

    /// Returns the provider's capabilities.
    fn capabilities(&self) -> &Capabilities;

    /// Checks whether these parameters are supported, as far as possible without starting anything.
    ///
    /// [`execute`](Self::execute) refuses unsupported parameters as well, so this is only for callers that need to
    /// know in advance.
    ///
    /// # Errors
    ///
    /// Fails with the error of an unsupported parameter.
    fn check(&self, params: &ExecuteParams) -> Result<(), AgentError> {
        let _ = params;
        Ok(())
    }

    /// Runs an agent. Never fails: all errors are events of the stream.
    ///
    /// Nothing happens before the stream is polled. Dropping it stops the run. A Tokio runtime that polls it MUST
    /// have its I/O and time drivers enabled (`enable_all`). Outside of Tokio any executor works.
    fn execute(&self, params: ExecuteParams) -> EventStream;
}

/// A shared runtime of any provider.
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
}

/// Provider of one CLI: describes its launch and decodes its output. The engine does the rest.
pub trait CliProvider: Send + Sync + 'static {
    /// Returns static facts about the CLI.
    fn info(&self) -> &'static CliInfo;

    /// Returns the provider's capabilities.
    fn capabilities(&self) -> &Capabilities;

    /// Returns the candidate paths of the CLI's native program, given the path of the launcher that was found on
    /// `PATH`, without symbolic links. The first one that exists is run instead of the launcher.
    ///
    /// Some CLIs install a script that starts the real program and does not forward signals.
    fn native_programs(&self, launcher: &Path) -> Vec<PathBuf> {
        let _ = launcher;
        Vec::new()
    }

    /// Returns the launch for these parameters. Reads at most the files that the parameters name, and opens no image:
    /// the engine checks that the files can be read, and what a pipe has can be read once.
    ///
    /// # Errors
    ///
    /// Fails if a parameter is not supported.
    fn launch(&self, params: &ExecuteParams) -> Result<Launch, AgentError>;

    /// Returns whether [`launch`](Self::launch) needs the bytes of this image file. The engine then reads it first, on
    /// a thread where that may block, so `launch` sees an [image in memory](crate::Image::in_memory). By default files
    /// stay files.
    fn reads_image(&self, file: &Path) -> bool {
        let _ = file;
        false
    }

    /// Extracts parameters from a recorded command line of this CLI, so that the decoder of a replay has the
    /// parameters of the recorded run. `params.env` is that of the recording. Variables that would make the decoder
    /// read files of this machine MUST be overridden there.
    fn recorded_params(&self, argv: &[String], params: &mut ExecuteParams) {
        let _ = (argv, params);
    }

    /// Creates a decoder for one run. It may read the CLI's file of the resumed session, to learn the initial
    /// figures; without it those figures are absent.
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

    fn reads_image(&self, file: &Path) -> bool {
        (**self).reads_image(file)
    }

    fn decoder(&self, params: &ExecuteParams) -> Box<dyn Decoder> {
        (**self).decoder(params)
    }
}
