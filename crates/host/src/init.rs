//! The beginning of a program whose runs have processes of their own.

use std::env;
use std::ffi::OsString;
use std::process::ExitCode;

use teamster_core::{AgentError, RunResult};

use crate::{Host, guard, runner};

/// Role of this process.
#[derive(Debug)]
#[must_use = "a runner or guard has done its work: its program ends"]
#[non_exhaustive]
pub enum Role {
    /// The program itself. Its runners and guards are this program too.
    Program(Host),
    /// The runner of a run or session, which has ended with this result, or was refused.
    Runner(Box<Result<RunResult, AgentError>>),
    /// A guard, which has done its work.
    Guard(ExitCode),
}

/// Finds out what this process was started as, and does the work of a runner or guard.
///
/// It is called first in `main`, before there is another thread or an open file: a runner closes the descriptors that it
/// has inherited. A program that never calls it starts no process of its own: it is not started by mistake.
///
/// # Errors
///
/// Fails if the user's own agents ([`Host::with_own_agents`]) cannot be used.
pub fn init(host: Host) -> Result<Role, AgentError> {
    let mut args = env::args_os().skip(1);
    match args.next() {
        Some(first) if first == guard::ARGUMENT => {
            let args: Vec<OsString> = args.collect();
            Ok(Role::Guard(guard::main(&args, host.providers())))
        }
        Some(first) if first == runner::ARGUMENT => {
            Ok(Role::Runner(Box::new(runner::main(host.into_started()))))
        }
        _ => host.into_started().map(Role::Program),
    }
}
