//! Validation of scripts.

use hyper::header::{CONNECTION, CONTENT_LENGTH, HeaderName, HeaderValue, TRANSFER_ENCODING};

use super::{HttpError, Part, Script, Turn};

/// Error in a script.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ScriptError {
    /// The file cannot be read.
    #[error("{path}: {error}")]
    Unreadable {
        /// Path of the file.
        path: String,
        /// The system's error.
        error: std::io::Error,
    },
    /// The text is not TOML or not a script. The message has the line and the column.
    #[error("{0}")]
    Form(String),
    /// A turn is invalid.
    #[error("turn {turn}: {what}")]
    Turn {
        /// Number of the `[[turn]]`, from 1.
        turn: usize,
        /// The problem.
        what: String,
    },
    /// The script has no turn.
    #[error("a script needs at least one `[[turn]]`")]
    Empty,
}

impl ScriptError {
    /// Creates the error of the TOML parser, with long lines shortened.
    pub(super) fn form(error: &toml::de::Error) -> Self {
        const LONGEST: usize = 400;
        let cut = |line: &str| match line.char_indices().nth(LONGEST) {
            Some((at, _)) => format!("{}…", line[..at].trim_end()),
            None => line.to_owned(),
        };
        let text = error.to_string();
        let lines: Vec<_> = text.lines().map(cut).collect();
        Self::Form(lines.join("\n"))
    }
}

impl Script {
    pub(super) fn check(&self) -> Result<(), ScriptError> {
        check(&self.turns)?;
        for agent in &self.agents {
            if agent.prompt.is_empty() {
                return Err(ScriptError::Form(
                    "the `prompt` of an `[[agent]]` must not be empty".to_owned(),
                ));
            }
            check(&agent.turns)?;
        }
        Ok(())
    }
}

/// Checks the turns of one conversation.
fn check(turns: &[Turn]) -> Result<(), ScriptError> {
    let Some(last) = turns.last() else {
        return Err(ScriptError::Empty);
    };
    for (at, turn) in turns.iter().enumerate() {
        turn.check()
            .map_err(|what| ScriptError::Turn { turn: at + 1, what })?;
    }
    if last.times.is_some() {
        return Err(ScriptError::Turn {
            turn: turns.len(),
            what: "`times` needs a `[[turn]]` after it for the requests that follow".to_owned(),
        });
    }
    Ok(())
}

impl Turn {
    fn check(&self) -> Result<(), String> {
        if self.times == Some(0) {
            return Err("`times = 0` would never be answered".to_owned());
        }
        if self.usage.reasoning > self.usage.output {
            return Err("`reasoning` is a part of `output`, and cannot be more".to_owned());
        }
        if let Some(error) = &self.error {
            if !self.parts.is_empty() || self.stop.is_some() {
                return Err("it has an `error`, and also `parts` or `stop`".to_owned());
            }
            error.check()?;
        }
        let ends = |part: &Part| matches!(part, Part::Stall | Part::Cut | Part::Error(_));
        if let Some(end) = self.parts.iter().position(ends)
            && end + 1 != self.parts.len()
        {
            return Err("nothing can come after `stall`, `cut` or `error`".to_owned());
        }
        for part in &self.parts {
            if let Part::Mcp { arguments, .. } = part
                && !arguments.is_object()
            {
                return Err("`arguments` of an MCP tool are a table".to_owned());
            }
        }
        Ok(())
    }
}

impl HttpError {
    fn check(&self) -> Result<(), String> {
        // A status below 200 is not a final answer. 200 is allowed: some proxies answer so with a page of
        // their own.
        if let Some(status) = self.status
            && !(200..=599).contains(&status)
        {
            return Err(format!("`status` is from 200 to 599, not {status}"));
        }
        if self.body.is_some() && self.message.is_some() {
            return Err("the `body` of an error is in place of its `message`".to_owned());
        }
        for (name, value) in &self.headers {
            let Ok(parsed) = HeaderName::try_from(name) else {
                return Err(format!("`{name}` is not a header name"));
            };
            if HeaderValue::try_from(value).is_err() {
                return Err(format!("the header `{name}` cannot have this value"));
            }
            if [CONNECTION, CONTENT_LENGTH, TRANSFER_ENCODING].contains(&parsed) {
                return Err(format!("the header `{name}` is the server's to write"));
            }
        }
        Ok(())
    }
}
