//! Starts the runners of detached runs and sessions.

use std::io;

use anyhow::{anyhow, bail};
use teamster::{AgentError, ErrorKind, RunResult};
use teamster_api::{Launch, Launched};

use crate::{exit_code, hints};

/// Starts a runner, waits until it accepts the run and prints the run's id. Returns the exit code.
pub(crate) fn launch(launch: &Launch, quiet: bool) -> anyhow::Result<u8> {
    match crate::global::host().launch_blocking(launch) {
        Ok(Launched::Accepted {
            warnings,
            important,
            ..
        }) => {
            let warnings = warnings.iter().filter(|_| !quiet);
            let shown = important.iter().chain(warnings);
            let shown: Vec<_> = shown.map(|it| hints::warning(it)).collect();
            crate::report::warn(&shown);
            exit_code::of_printed(io::Write::write_fmt(
                &mut io::stdout(),
                format_args!("{}\n", launch.id),
            ))
        }
        Ok(Launched::Refused { error, .. }) | Err(error) => Ok(refused(error)),
        Ok(_) => bail!("the runner has another version"),
    }
}

/// Prints the reason why nothing was started, and returns the exit code.
pub(crate) fn refused(error: AgentError) -> u8 {
    let code = match error.kind {
        ErrorKind::Internal => exit_code::AGENT_ERROR,
        _ => exit_code::USAGE,
    };
    // Without a parameter, words in the text are no names of parameters.
    let error = match error.parameter() {
        Some(_) => hints::usage(error),
        None => anyhow!(error.message),
    };
    crate::report::fail(&error);
    code
}

/// Returns the exit code of a runner.
pub(crate) fn exit_code(ended: &Result<RunResult, AgentError>) -> u8 {
    // The starting process has got the reason of a refusal.
    ended.as_ref().map_or(exit_code::USAGE, exit_code::of)
}
