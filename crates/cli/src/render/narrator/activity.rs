//! The agent's activity, as the spinner shows it.

use std::time::Duration;

use teamster::{AgentEvent, CliInfo};
use teamster_core::ToolLedger;
use teamster_core::time::millis;

use super::ShownTool;
use crate::words;

/// The agent's activity and its beginning.
#[derive(Debug)]
pub(super) struct Activity {
    state: State,
    since: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Starting,
    Waiting,
    Thinking,
    Retrying,
    Ending,
    Stopping,
}

impl Activity {
    /// Creates the activity of an agent that is being started.
    pub(super) fn starting() -> Self {
        Self {
            state: State::Starting,
            since: Duration::ZERO,
        }
    }

    /// Creates the activity of an agent that has been started before.
    pub(super) fn waiting() -> Self {
        Self {
            state: State::Waiting,
            since: Duration::ZERO,
        }
    }

    /// Marks the run as being stopped.
    pub(super) fn stop(&mut self) {
        self.state = State::Stopping;
    }

    pub(super) fn event(&mut self, event: &AgentEvent, now: Duration) {
        let state = match event {
            AgentEvent::Thinking(_) => State::Thinking,
            AgentEvent::Retry(_) => State::Retrying,
            AgentEvent::TurnEnd(_) => State::Ending,
            // These events do not change the activity.
            AgentEvent::Notice(_)
            | AgentEvent::Offers(_)
            | AgentEvent::ToolOutput(_)
            | AgentEvent::Context(_)
            | AgentEvent::PermissionMode(_)
            | AgentEvent::RateLimit(_)
            | AgentEvent::Unknown(_) => return,
            _ => State::Waiting,
        };
        if self.state != State::Stopping && (self.state != state || state == State::Waiting) {
            self.state = state;
            self.since = now;
        }
    }

    /// Returns the text of the spinner.
    pub(super) fn text(
        &self,
        agent: &CliInfo,
        tools: &ToolLedger<ShownTool>,
        now: Duration,
    ) -> String {
        let elapsed = |since: Duration| {
            let ms = millis(now.saturating_sub(since));
            // Short times are omitted: they would flicker.
            if ms < 2000 {
                String::new()
            } else {
                format!("  {}", words::duration_ms(ms))
            }
        };
        match (self.state, tools.open().next_back()) {
            (State::Stopping, _) => format!("stopping {}", agent.name),
            (_, Some((_, tool))) => {
                let more = tools.open().len() - 1;
                let more = if more == 0 {
                    String::new()
                } else {
                    format!("  (and {more} more)")
                };
                // The time comes before the summary: long lines are cut at the end.
                format!(
                    "{}{}  {}{more}",
                    tool.name,
                    elapsed(tool.since),
                    tool.summary
                )
            }
            (state, None) => {
                let what = match state {
                    State::Thinking => "thinking".to_owned(),
                    State::Starting => format!("starting {}", agent.name),
                    State::Ending => format!("waiting for {} to end", agent.name),
                    State::Retrying => "waiting to retry".to_owned(),
                    _ => "waiting for the model".to_owned(),
                };
                format!("{what}{}", elapsed(self.since))
            }
        }
    }
}
