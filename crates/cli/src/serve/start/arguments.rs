//! Converts a request body to the equivalent command line.
//!
//! Values are joined with their flags (`--flag=value`), so that no value is parsed as a flag.

use std::ffi::OsString;
use std::path::Path;

use teamster_server::{BackendError, RunSpec, SessionSpec, Worktree};

use crate::args::{Cli, Command};
use crate::serve::backend::one_line;
use crate::words;

/// Returns the arguments of `teamster run --detach`.
pub(super) fn run_arguments(
    run_id: &str,
    request: &RunSpec,
) -> Result<Vec<OsString>, BackendError> {
    let mut args = Arguments::of("run", &request.provider)?;
    args.0.push("-".into());
    args.add("run-id", Some(run_id));
    args.add("stdin", Some("ignore"));
    args.add("permission", Some(request.permission));
    args.add("model", request.model.as_ref());
    args.add("effort", request.effort.as_ref());
    args.add("resume", request.session_id.as_ref());
    args.add("session-key", request.session_key.as_ref());
    if request.new_session {
        args.0.push("--new".into());
    }
    args.add("system-prompt", request.system_prompt.as_ref());
    args.add(
        "append-system-prompt",
        request.append_system_prompt.as_ref(),
    );
    args.add("allow-tool", &request.allowed_tools);
    args.add("deny-tool", &request.denied_tools);
    args.add("fallback", &request.fallback);
    args.add("max-turns", request.max_turns);
    args.add("max-budget-usd", request.max_budget_usd);
    args.add("max-tokens", request.max_tokens);
    args.add("max-time", request.max_time_ms.map(time));
    args.add(
        "retries",
        Some(request.retries).filter(|retries| *retries > 0),
    );
    args.add("max-wait", request.max_wait_ms.map(time));
    args.add("ask-timeout", request.ask_timeout_ms.map(time));
    args.add("output-schema", request.output_schema.as_ref());
    args.place(
        request.fork,
        request.worktree.as_ref(),
        request.working_directory.as_deref(),
    );
    args.checked(|command| matches!(command, Command::Run(_)))
}

/// Returns the arguments of `teamster chat --detach`.
pub(super) fn session_arguments(request: &SessionSpec) -> Result<Vec<OsString>, BackendError> {
    let mut args = Arguments::of("chat", &request.provider)?;
    args.add("permission", Some(request.permission));
    args.add("model", request.model.as_ref());
    args.add("effort", request.effort.as_ref());
    args.add("resume", request.session_id.as_ref());
    args.add("system-prompt", request.system_prompt.as_ref());
    args.add(
        "append-system-prompt",
        request.append_system_prompt.as_ref(),
    );
    args.add("allow-tool", &request.allowed_tools);
    args.add("deny-tool", &request.denied_tools);
    args.add("fallback", &request.fallback);
    args.add("max-budget-usd", request.max_budget_usd);
    args.add("max-tokens", request.max_tokens);
    args.add("max-time", request.max_time_ms.map(time));
    args.add(
        "retries",
        Some(request.retries).filter(|retries| *retries > 0),
    );
    args.add("max-wait", request.max_wait_ms.map(time));
    args.add("ask-timeout", request.ask_timeout_ms.map(time));
    args.add("end-idle", request.end_idle_ms.map(time));
    args.place(
        request.fork,
        request.worktree.as_ref(),
        request.working_directory.as_deref(),
    );
    args.checked(|command| matches!(command, Command::Chat(_)))
}

struct Arguments(Vec<OsString>);

impl Arguments {
    /// Starts the arguments of a command for this agent.
    fn of(command: &str, provider: &str) -> Result<Self, BackendError> {
        if crate::providers().get(provider).is_none() {
            let known = crate::providers().all();
            let known: Vec<_> = known.iter().map(|provider| provider.info().id).collect();
            return Err(BackendError::Invalid(format!(
                "provider: no agent `{}`; available: {}",
                words::one_line(provider),
                known.join(", ")
            )));
        }
        let args = ["teamster", command, provider, "--detach"];
        Ok(Self(args.map(OsString::from).to_vec()))
    }

    /// Adds the flag once for each value.
    fn add(&mut self, flag: &str, values: impl IntoIterator<Item = impl ToString>) {
        let values = values.into_iter();
        self.0
            .extend(values.map(|value| format!("--{flag}={}", value.to_string()).into()));
    }

    fn place(&mut self, fork: bool, worktree: Option<&Worktree>, directory: Option<&Path>) {
        if fork {
            self.0.push("--fork".into());
        }
        match worktree {
            Some(Worktree::Branch(branch)) => self.add("worktree", Some(branch)),
            Some(Worktree::Switch(true)) => self.0.push("--worktree".into()),
            Some(Worktree::Switch(false)) | None => {}
        }
        if let Some(directory) = directory {
            let mut arg = OsString::from("--cwd=");
            arg.push(directory);
            self.0.push(arg);
        }
    }

    /// Returns the arguments if they parse as this command.
    fn checked(self, is: impl Fn(&Command) -> bool) -> Result<Vec<OsString>, BackendError> {
        match Cli::read(self.0.clone()) {
            Ok(cli) if is(&cli.command) => Ok(self.0),
            Ok(_) => Err(BackendError::Failed("no such command".to_owned())),
            Err(error) => Err(BackendError::Invalid(one_line(&error))),
        }
    }
}

fn time(ms: u64) -> String {
    if ms == 0 {
        "0".to_owned()
    } else {
        format!("{ms}ms")
    }
}
