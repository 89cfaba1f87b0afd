//! Agents that are named by a command.
//!
//! What is known of them has to live as long as the program does, so it is kept here and made once for each.

use std::collections::HashMap;
use std::sync::{LazyLock, Mutex};

use crate::sync::lock;
use crate::{AgentError, CliInfo};

/// So many commands are never forgotten. Who names more has made a mistake.
const MOST: usize = 1000;

static KNOWN: LazyLock<Mutex<HashMap<String, &'static CliInfo>>> = LazyLock::new(Mutex::default);

impl CliInfo {
    /// A CLI of which nothing is known but its command: the same for the same id.
    ///
    /// # Errors
    ///
    /// [`InvalidParams`](crate::ErrorCode::InvalidParams) after 1000 ids.
    pub fn of_command(id: &str, name: &str, program: &str) -> Result<&'static Self, AgentError> {
        // No holder of the lock can panic.
        let mut known = lock(&KNOWN);
        if let Some(info) = known.get(id).filter(|info| info.program == program) {
            return Ok(info);
        }
        if known.len() >= MOST {
            return Err(AgentError::invalid_params(format!(
                "there are {MOST} agents that were named by a command; no more are taken"
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
