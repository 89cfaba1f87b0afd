//! The process of a server on stdio.

use std::ffi::{OsStr, OsString};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use teamster_core::{McpServer, McpTransport};
use teamster_process::{ProcessGroup, find_program, foreign_git_variables, run_mark};
use tokio::io::DuplexStream;
use tokio::process::{Child, ChildStdin, Command};
use tokio::time::timeout;

use crate::error::ClientError;
use crate::options::ConnectOptions;
use crate::output::Output;

/// Time that a server has to end after its stdin was closed, and again after SIGTERM.
pub(crate) const EXIT_GRACE: Duration = Duration::from_millis(1500);

/// A server on stdio.
pub(crate) struct Process {
    child: Child,
    group: ProcessGroup,
    pub(crate) output: Output,
}

impl Process {
    /// Starts the server. Returns its process, the messages from it, and its stdin.
    pub(crate) fn start(
        server: &McpServer,
        options: &ConnectOptions,
    ) -> Result<(Self, DuplexStream, ChildStdin), ClientError> {
        let McpTransport::Stdio {
            command,
            args,
            env,
            cwd,
        } = &server.transport
        else {
            return Err(ClientError::UnsupportedTransport);
        };
        let directory = match (&options.directory, cwd) {
            (Some(directory), Some(cwd)) => Some(directory.join(cwd)),
            (directory, cwd) => directory.clone().or_else(|| cwd.clone()),
        };
        if let Some(path) = &directory
            && !path.is_dir()
        {
            return Err(ClientError::NoDirectory { path: path.clone() });
        }
        let named = match &directory {
            // Such a path is relative to the server's working directory.
            Some(directory) if command.contains('/') => directory.join(command),
            _ => command.into(),
        };
        let mut environment = options.environment.clone();
        let of_git = directory.as_deref().map_or(&[][..], foreign_git_variables);
        for name in of_git.iter().map(OsStr::new) {
            // A value of the caller's own stays.
            if environment.get(name) == std::env::var_os(name).as_ref() {
                environment.remove(name);
            }
        }
        let (name, mark) = run_mark();
        let own = env.iter().map(|(name, value)| (&**name, &**value));
        let own = own.chain([(name, &*mark)]);
        environment.extend(own.map(|(name, value)| (OsString::from(name), value.into())));
        let path = environment.get(&OsString::from("PATH"));
        let program = find_program(&named.to_string_lossy(), path.map(OsString::as_os_str))
            .map_err(|error| ClientError::NoProgram(Box::new(error)))?;
        let mut command = Command::new(program);
        command
            .args(args)
            .env_clear()
            .envs(&environment)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        if let Some(directory) = directory {
            command.current_dir(directory);
        }
        let not_started = |error: std::io::Error| ClientError::NotStarted {
            kind: error.kind(),
            message: error.to_string(),
        };
        let (mut child, group) = ProcessGroup::spawn(&mut command).map_err(not_started)?;
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(stdin), Some(stdout), Some(stderr)) = pipes else {
            return Err(not_started(std::io::ErrorKind::BrokenPipe.into()));
        };
        let (output, messages) = Output::new(stdout, stderr);
        let process = Self {
            child,
            group,
            output,
        };
        Ok((process, messages, stdin))
    }

    /// Ends a server whose stdin is closed. Waits for its end only if it `answered`. Returns its status if it ended by
    /// itself.
    pub(crate) async fn end(&mut self, answered: bool) -> Option<ExitStatus> {
        if answered && let Ok(Ok(status)) = timeout(EXIT_GRACE, self.child.wait()).await {
            self.group.kill();
            return Some(status);
        }
        self.group.end(&mut self.child, EXIT_GRACE).await;
        None
    }
}
