//! The text of a stream, as far as it was not retracted.

use teamster_core::Id;

/// What the main agent has said, in all attempts.
#[derive(Debug, Default)]
pub(super) struct Said {
    /// Runs of text of one message.
    pieces: Vec<(Option<Id>, String)>,
}

impl Said {
    pub(super) fn push(&mut self, message: Option<&Id>, text: &str) {
        match self.pieces.last_mut() {
            Some((last, piece)) if last.as_ref() == message => piece.push_str(text),
            _ => self.pieces.push((message.cloned(), text.to_owned())),
        }
    }

    pub(super) fn retract(&mut self, message: &Id) {
        self.pieces.retain(|(id, _)| id.as_ref() != Some(message));
    }

    pub(super) fn into_text(self) -> String {
        let mut pieces = self.pieces.into_iter().map(|(_, text)| text);
        // Mostly there is one, which is not copied.
        let mut text = pieces.next().unwrap_or_default();
        pieces.for_each(|piece| text.push_str(&piece));
        text
    }
}
