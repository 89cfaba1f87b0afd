//! A stand-in for Claude Code that acts as an agent in a loop, with one process for many turns or one for each.
//!
//! The program is the fake agent with a [`Plan`] in the environment variable [`PLAN_ENV`] instead of a
//! script. The variable holds the plan in TOML, or `@` and the path of a file with it. The output is
//! hand-made after recorded runs.
//!
//! In a turn the stand-in touches flags under `.orchestrator`, writes the files that agents write, starts
//! processes, dies or hangs, as planned or by chance. The chances are deterministic for a plan. A separate
//! log ([`witness`]) records the events, so that a test can compare them with its observations.
//!
//! ```
//! use teamster_fakes::stand_in::{Act, Plan};
//!
//! let plan = Plan::new("/tmp/state")
//!     .seed(7)
//!     .turn([Act::DidWork])
//!     .turn([Act::ClearSession, Act::Die])
//!     .chance(Act::DidWork, 0.5);
//! assert_eq!(Plan::parse(&plan.to_toml()?)?, plan);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod act;
mod chance;
mod claude;
mod input;
mod lines;
mod plan;
mod signals;
mod state;
pub mod witness;

use std::ffi::{OsStr, OsString};
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::process::ExitCode;

pub use act::Act;
pub use chance::Chance;
pub use plan::{PLAN_ENV, Plan, PlanError};

use crate::fake_agent::FakeAgent;
use state::State;

/// Exit code if the plan is invalid or cannot be executed.
const PLAN_FAILED: u8 = 2;

/// Exit code of a stand-in, or the reason why it cannot continue.
type Ending = Result<u8, String>;

/// Executes a plan. `value` is that of [`PLAN_ENV`]; the arguments are those of the replaced program.
pub(crate) fn run(agent: &FakeAgent, value: &OsStr, args: Vec<OsString>) -> ExitCode {
    match play(agent, value, args) {
        Ok(code) => ExitCode::from(code),
        Err(message) => {
            // Without stderr the error cannot be reported.
            let _ = writeln!(io::stderr().lock(), "teamster-fake-agent: {message}");
            ExitCode::from(PLAN_FAILED)
        }
    }
}

fn play(agent: &FakeAgent, value: &OsStr, args: Vec<OsString>) -> Ending {
    let plan = match value.as_bytes().strip_prefix(b"@") {
        Some(path) => Plan::load(OsStr::from_bytes(path)),
        None => Plan::parse(&value.to_string_lossy()),
    }
    .map_err(|error| format!("{PLAN_ENV}: {error}"))?;
    let args: Vec<String> = args
        .into_iter()
        .map(|arg| arg.to_string_lossy().into_owned())
        .collect();
    if args.first().is_some_and(|arg| arg == "--version") {
        return match writeln!(io::stdout(), "2.1.197 (Claude Code)") {
            Ok(()) => Ok(0),
            Err(error) => Err(error.to_string()),
        };
    }
    claude::run(State::open(agent, plan, args)?)
}

/// Returns the value of a flag, either joined to it or as the next word.
fn flag<'a>(args: &'a [String], name: &str) -> Option<&'a str> {
    let mut words = args.iter();
    while let Some(word) = words.next() {
        if word == name {
            return words.next().map(String::as_str);
        }
        let value = word
            .strip_prefix(name)
            .and_then(|rest| rest.strip_prefix('='));
        if value.is_some() {
            return value;
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flag_has_its_value_in_one_word_or_in_the_next() {
        let args: Vec<String> = ["-p", "--resume=a=b", "--model", "x", "--resumed", "no"]
            .map(str::to_owned)
            .into();
        assert_eq!(flag(&args, "--resume"), Some("a=b"));
        assert_eq!(flag(&args, "--model"), Some("x"));
        assert_eq!(flag(&args, "--session-id"), None);
        assert_eq!(flag(&args[..3], "--model"), None);
    }
}
