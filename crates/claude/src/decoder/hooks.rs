//! User hooks that end a turn.

use teamster_core::text::excerpt;
use teamster_core::{AgentError, ErrorCode, ErrorKind};

use super::NOTICE_BYTES;
use super::wire::ResultLine;

/// Text before the prompt in the message of a hook that blocked it.
const PROMPT: &str = "\n\nOriginal prompt:";

/// Returns the error of a turn that a hook ended before the agent was done. The CLI reports such a turn as a success.
/// `blocked` is the reason if a hook blocked the prompt.
pub(super) fn stopped(line: &ResultLine<'_>, blocked: Option<String>) -> Option<AgentError> {
    let message = match blocked {
        // Errors must not contain the prompt.
        Some(words) => {
            let words = words.split_once(PROMPT).map_or(&*words, |(words, _)| words);
            excerpt(words.trim(), NOTICE_BYTES)
        }
        None if line.terminal_reason.as_deref() == Some("hook_stopped") => {
            "a hook stopped the run before the agent was done; see the hooks in the settings of \
             Claude Code"
                .to_owned()
        }
        None => return None,
    };
    let code = ErrorCode::CliError;
    Some(AgentError::new(code, ErrorKind::Permission, message))
}
