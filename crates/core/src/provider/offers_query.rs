//! A process of a CLI that is only asked what a session would offer.

use serde_json::Value;

use crate::provider::{
    DecodedResult, Decoder, Events, Exit, Launch, Outbox, SessionCommand, SessionProtocol,
};
use crate::{Id, Offers, TurnEnd};

/// A process of a CLI that is only asked what a session would offer. It makes no request to a model, leaves no session
/// behind, and starts neither hooks nor MCP servers.
#[non_exhaustive]
pub struct OffersQuery {
    /// The launch. The engine keeps stdin open.
    pub launch: Launch,
    /// The questions and the reader of the answers.
    pub protocol: OffersProtocol,
}

impl OffersQuery {
    /// Creates a query of this process.
    pub fn new(launch: Launch, protocol: OffersProtocol) -> Self {
        Self { launch, protocol }
    }
}

/// Returns what a line offers, if it is an answer.
type Read = Box<dyn FnMut(&[u8]) -> Option<Offers> + Send>;

/// The protocol of such a process. Its turns send no prompt: each ends when all answers are there.
pub struct OffersProtocol {
    outbox: Outbox,
    read: Read,
    /// The number of answers that are still to come.
    missing: usize,
    /// A turn waits for the answers.
    is_asked: bool,
}

impl OffersProtocol {
    /// Creates a protocol that writes these messages. `read` returns what a line offers if it is one of the `answers`, which
    /// may be nothing.
    pub fn new(
        messages: &[Value],
        answers: usize,
        read: impl FnMut(&[u8]) -> Option<Offers> + Send + 'static,
    ) -> Self {
        let mut outbox = Outbox::new();
        for message in messages {
            outbox.write(message);
        }
        Self {
            outbox,
            read: Box::new(read),
            missing: answers,
            is_asked: false,
        }
    }

    fn end_if_answered(&mut self, out: &mut Events) {
        if self.missing == 0 && std::mem::take(&mut self.is_asked) {
            out.push(TurnEnd::new(false));
        }
    }
}

impl Decoder for OffersProtocol {
    fn line(&mut self, line: &[u8], out: &mut Events) {
        if self.missing > 0
            && let Some(offers) = (self.read)(line)
        {
            self.missing -= 1;
            if !offers.is_empty() {
                out.push(offers);
            }
        }
        self.end_if_answered(out);
    }

    fn finish(&mut self, _: &Exit, _: &mut Events) -> DecodedResult {
        DecodedResult {
            ended_with_error: (self.missing == 0).then_some(false),
            ..DecodedResult::default()
        }
    }
}

impl SessionProtocol for OffersProtocol {
    fn outbox(&mut self) -> &mut Outbox {
        &mut self.outbox
    }

    fn command(&mut self, command: SessionCommand, out: &mut Events) {
        match command {
            SessionCommand::Turn(_) => {
                self.is_asked = true;
                self.end_if_answered(out);
            }
            // The end of its input is enough to make a CLI exit.
            other => self
                .outbox
                .refuse(&other, "the CLI is only asked what it offers"),
        }
    }

    fn interrupted(&self) -> bool {
        false
    }

    fn session_id(&self) -> Option<Id> {
        None
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::provider::SessionAssembler;
    use crate::{AgentEvent, SlashCommand, Turn};

    /// Made by hand: a line that is an answer has a name, or none.
    fn query(answers: usize) -> SessionAssembler {
        let read = |line: &[u8]| {
            let line: Value = serde_json::from_slice(line).ok()?;
            let names = line.get("names")?.as_array()?;
            let mut offers = Offers::new();
            if let Some(name) = names.first().and_then(Value::as_str) {
                offers = offers.commands(vec![SlashCommand::new(name)]);
            }
            Some(offers)
        };
        let protocol = OffersProtocol::new(&[json!({"ask": 1})], answers, read);
        SessionAssembler::new(Box::new(protocol))
    }

    fn events(session: &mut SessionAssembler) -> Vec<AgentEvent> {
        session.out().drain().collect()
    }

    #[test]
    fn a_turn_ends_with_the_last_answer() {
        let mut session = query(2);
        assert_eq!(session.outbox(Outbox::take_input), b"{\"ask\":1}\n");
        session.begin(Turn::new("-"));
        assert_eq!(
            session.outbox(Outbox::take_input),
            b"",
            "the prompt is not sent"
        );
        session.line(b"{\"names\":[\"review\"]}");
        session.line(b"{\"other\":1}");
        assert!(!session.is_over());
        // One that the CLI has refused.
        session.line(b"{\"names\":[]}");
        assert!(session.is_over());
        let offers = Offers::new().commands(vec![SlashCommand::new("review")]);
        let first = events(&mut session).into_iter().next();
        assert_eq!(first, Some(offers.into()));
    }

    #[test]
    fn answers_before_the_turn_are_those_of_the_turn() {
        let mut session = query(1);
        session.line(b"{\"names\":[\"review\"]}");
        assert!(!session.is_over());
        session.begin(Turn::new("-"));
        assert!(session.is_over());
        assert!(matches!(events(&mut session)[0], AgentEvent::Offers(_)));
    }
}
