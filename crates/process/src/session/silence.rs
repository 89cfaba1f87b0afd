//! The silence of a CLI that may print more of a turn after it has reported its end.

use teamster_core::AgentEvent;
use teamster_core::provider::SessionAssembler;
use tokio::time::Instant;

use crate::watchdog::deadline;

/// Last time at which the CLI printed something of a turn, while the protocol waits for its silence.
#[derive(Debug, Default)]
pub(super) struct Silence(Option<Instant>);

impl Silence {
    /// Follows a line. `before` is the number of the turn's events before it.
    pub(super) fn follow(&mut self, assembler: &mut SessionAssembler, before: usize) {
        let new = assembler.out().as_slice().get(before..);
        // Other lines, such as regular notifications, must not delay the end of the turn forever.
        if new.is_some_and(|new| new.iter().any(is_of_the_agent)) {
            self.0 = None;
        }
        self.settle(assembler);
    }

    /// Begins or ends the wait, as the protocol wants it.
    pub(super) fn settle(&mut self, assembler: &SessionAssembler) {
        if assembler.awaited_silence().is_none() {
            self.0 = None;
        } else if self.0.is_none() {
            self.0 = Some(Instant::now());
        }
    }

    pub(super) fn is_awaited(&self) -> bool {
        self.0.is_some()
    }

    /// Returns the time at which the CLI has been silent for long enough.
    pub(super) fn deadline(&self, assembler: &SessionAssembler) -> Option<Instant> {
        deadline(self.0?, assembler.awaited_silence()?)
    }

    /// Reports the silence to the protocol, once it has lasted long enough. Returns whether it has.
    pub(super) fn poll(&mut self, assembler: &mut SessionAssembler) -> bool {
        let is_over = (self.deadline(assembler)).is_some_and(|until| Instant::now() >= until);
        if is_over {
            self.0 = None;
            assembler.silence();
        }
        is_over
    }
}

/// Returns whether the agent itself caused an event, not only the process.
fn is_of_the_agent(event: &AgentEvent) -> bool {
    !matches!(
        event,
        AgentEvent::Unknown(_)
            | AgentEvent::Notice(_)
            | AgentEvent::SessionStarted(_)
            | AgentEvent::Offers(_)
            | AgentEvent::Context(_)
            | AgentEvent::PermissionMode(_)
    )
}

#[cfg(test)]
mod tests {
    use teamster_core::{ContextUse, NoticeLevel, NoticeSource, Offers, SessionStarted, Text};

    use super::*;

    #[test]
    fn reports_about_a_session_do_not_delay_the_end_of_a_turn() {
        assert!(is_of_the_agent(&AgentEvent::Text(Text::new("a"))));
        assert!(!is_of_the_agent(&Offers::new().into()));
        assert!(!is_of_the_agent(&ContextUse::new(1, 2).into()));
        let notice = AgentEvent::notice(NoticeLevel::Info, NoticeSource::Stdout, "a");
        assert!(!is_of_the_agent(&notice));
        let started = AgentEvent::SessionStarted(Box::new(SessionStarted::new("s")));
        assert!(!is_of_the_agent(&started));
    }
}
