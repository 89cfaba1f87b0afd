//! Agents that are configured by a command.
//!
//! Their facts must live as long as the program, so they are leaked, once for each agent.

use std::collections::HashMap;
use std::sync::{LazyLock, Mutex};

use crate::sync::lock;
use crate::{AgentError, CliInfo};

/// Limit of leaked agents. A program that reaches it has a bug.
const MOST: usize = 1000;

static KNOWN: LazyLock<Mutex<HashMap<String, &'static CliInfo>>> = LazyLock::new(Mutex::default);

impl CliInfo {
    /// Returns the facts of a CLI of which only the command is known. Returns the same reference for the same id and
    /// program.
    ///
    /// # Errors
    ///
    /// Fails with [`InvalidParams`](crate::ErrorCode::InvalidParams) after 1000 ids.
    pub fn of_command(id: &str, name: &str, program: &str) -> Result<&'static Self, AgentError> {
        // No holder of the lock can panic.
        let mut known = lock(&KNOWN);
        if let Some(info) = known.get(id).filter(|info| info.program == program) {
            return Ok(info);
        }
        if known.len() >= MOST {
            return Err(AgentError::invalid_params(format!(
                "a process knows at most {MOST} agents by their commands; use one of them, or another process"
            )));
        }
        let mut info = Self::new(leaked(id), leaked(name), leaked(program));
        info.login = "log in with the agent's own program";
        let info: &'static Self = Box::leak(Box::new(info));
        known.insert(id.to_owned(), info);
        Ok(info)
    }
}

fn leaked(text: &str) -> &'static str {
    Box::leak(text.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_of_a_command_are_kept_once() {
        let of = |program| CliInfo::of_command("made-up-agent", "Made-up", program).unwrap();
        let first = of("made-up");
        assert_eq!(
            (first.id, first.name, first.program),
            ("made-up-agent", "Made-up", "made-up")
        );
        assert!(std::ptr::eq(first, of("made-up")));
        // Another program of the same id has facts of its own.
        let other = of("other");
        assert_eq!(other.program, "other");
        assert!(std::ptr::eq(other, of("other")));
    }
}
