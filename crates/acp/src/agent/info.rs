//! What there is to know about agents that are named by a command.
//!
//! It has to live as long as the program does, so it is kept here and made once for each command.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{LazyLock, Mutex};

use teamster_core::sync::lock;
use teamster_core::{AgentError, CliInfo};

use super::AcpAgent;

/// So many commands are never forgotten. Who names more has made a mistake.
const MOST: usize = 1000;

static KNOWN: LazyLock<Mutex<HashMap<String, &'static CliInfo>>> = LazyLock::new(Mutex::default);

/// Of the agent that is started by these words, the first of which is the program.
pub(super) fn of(words: &[String]) -> Result<&'static CliInfo, AgentError> {
    let id = format!("{}{}", AcpAgent::PREFIX, shell_words::join(words));
    // Nobody who holds it can panic.
    let mut known = lock(&KNOWN);
    if let Some(info) = known.get(&id) {
        return Ok(info);
    }
    if known.len() >= MOST {
        return Err(AgentError::invalid_params(format!(
            "there are {MOST} agents that were named by a command; no more are taken"
        )));
    }
    let program = words.first().map_or("", String::as_str);
    let name = Path::new(program).file_name().unwrap_or_default();
    let mut info = CliInfo::new(
        leaked(&id),
        leaked(&name.to_string_lossy()),
        leaked(program),
    );
    info.login = "log in with the agent's own program";
    let info: &'static CliInfo = Box::leak(Box::new(info));
    known.insert(id, info);
    Ok(info)
}

fn leaked(text: &str) -> &'static str {
    Box::leak(text.into())
}
