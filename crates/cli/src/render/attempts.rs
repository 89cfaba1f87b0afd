//! The attempts of a run: the current agent, and the lines about what another attempt does to the text so far.

use std::fmt::Write;

use teamster::{CliInfo, Retry};
use teamster_api::{Next, RunEvent};

use super::line::Line;
use super::narrator::INDENT;
use crate::words;

/// The attempts of a run, of each turn of a session.
#[derive(Debug, Clone)]
pub(super) struct Attempts {
    first: &'static CliInfo,
    current: &'static CliInfo,
    /// The next attempt, from its announcement to its beginning. The agent events between the two follow from the
    /// announcement.
    next: Option<Next>,
    /// Set once the main agent has printed text in this attempt.
    pub(super) has_printed: bool,
}

impl Attempts {
    pub(super) fn new(first: &'static CliInfo) -> Self {
        Self {
            first,
            current: first,
            next: None,
            has_printed: false,
        }
    }

    /// Updates the state from an event of the run.
    pub(super) fn event(&mut self, event: &RunEvent) {
        match event {
            RunEvent::Start { provider, .. } | RunEvent::Attempt { provider, .. } => {
                self.set_agent(provider);
                (self.next, self.has_printed) = (None, false);
            }
            RunEvent::Retry { next, .. } | RunEvent::Fallback { next, .. } => {
                self.set_agent(&next.provider);
                self.next = Some(next.clone());
            }
            _ => {}
        }
    }

    /// Sets the current CLI. An unknown id is ignored.
    fn set_agent(&mut self, id: &str) {
        if self.current.id != id
            && let Some(provider) = crate::global::providers().get(id)
        {
            self.current = provider.info();
        }
    }

    /// Returns the current CLI.
    pub(super) fn agent(&self) -> &'static CliInfo {
        self.current
    }

    /// Returns the flag or variable that sets the program of the current CLI.
    pub(super) fn bin(&self) -> String {
        if self.current.id == self.first.id {
            "--bin".to_owned()
        } else {
            self.current.program_variable()
        }
    }

    /// Returns the line about a shown message that is retracted. `None` if the next attempt retracts it, whose own line
    /// reports that.
    pub(super) fn retraction(&self) -> Option<Line> {
        let line = Line::aside("(that message was retracted; the agent retries)");
        self.next.is_none().then_some(line)
    }

    /// Returns the line of a retry: one of the CLI, or the next attempt.
    pub(super) fn retry(&self, retry: &Retry) -> Line {
        let mut body = format!("retrying ({}", retry.attempt);
        if let Some(max) = retry.max_attempts {
            let _ = write!(body, " of {max}");
        }
        body.push(')');
        if let Some(ms) = retry.delay_ms {
            let _ = write!(body, " in {}", words::duration_ms(ms));
        }
        let _ = write!(body, ": {}", words::one_line(&retry.error.message));
        if let Some(next) = &self.next
            && next.resumes.is_none()
            && self.has_printed
        {
            body.push_str(" (the text so far is discarded)");
        }
        Line::aside(body).indented(INDENT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::tests::{attempt, fallback};

    #[test]
    fn the_current_agent_is_that_of_the_last_event_that_names_one() {
        let claude = crate::global::providers().get("claude").unwrap().info();
        let mut attempts = Attempts::new(claude);
        let mut after = |event| {
            attempts.event(&event);
            (attempts.agent().id, attempts.bin())
        };
        let codex = ("codex", "TEAMSTER_CODEX_BIN".to_owned());
        assert_eq!(after(attempt("claude")), ("claude", "--bin".to_owned()));
        assert_eq!(after(fallback("codex")), codex);
        assert_eq!(after(attempt("codex")), codex);
        // Of a newer version.
        assert_eq!(after(fallback("another")), codex);
    }
}
