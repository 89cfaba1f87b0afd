//! What a run has said and called so far.

use std::collections::HashMap;

use crate::Id;

/// The text of the main agent, with what can still be retracted.
#[derive(Default)]
pub(super) struct TextSoFar {
    pub(super) text: String,
    /// Message and end of each run of text of one message.
    pieces: Vec<(Option<Id>, usize)>,
    /// A tool was called or has ended since the last text.
    pub(super) interrupted: bool,
}

impl TextSoFar {
    pub(super) fn push(&mut self, message: Option<&Id>, text: &str) {
        self.text.push_str(text);
        let end = self.text.len();
        match self.pieces.last_mut() {
            Some((last, last_end))
                if last.as_ref() == message && (message.is_some() || !self.interrupted) =>
            {
                *last_end = end;
            }
            _ => self.pieces.push((message.cloned(), end)),
        }
        self.interrupted = false;
    }

    pub(super) fn retract(&mut self, message: &Id) {
        let (text, pieces) = (&self.text, &self.pieces);
        if !pieces.iter().any(|(id, _)| id.as_ref() == Some(message)) {
            return;
        }
        let mut kept = Self::default();
        let mut start = 0;
        for (id, end) in pieces {
            if id.as_ref() != Some(message) {
                kept.text.push_str(&text[start..*end]);
                kept.pieces.push((id.clone(), kept.text.len()));
            }
            start = *end;
        }
        *self = kept;
    }

    pub(super) fn last_message(&self) -> Option<String> {
        let (last, _) = self.pieces.last()?;
        let mut message = String::new();
        let mut start = 0;
        for (index, (id, end)) in self.pieces.iter().enumerate() {
            if id == last && (id.is_some() || index + 1 == self.pieces.len()) {
                message.push_str(&self.text[start..*end]);
            }
            start = *end;
        }
        Some(message)
    }
}

/// The tools that were called.
#[derive(Default)]
pub(super) struct Tools {
    pub(super) by_id: HashMap<Id, String>,
    pub(super) open: Vec<Id>,
}

impl Tools {
    pub(super) fn start(&mut self, id: &Id, name: &str) -> bool {
        if self.by_id.contains_key(id) {
            return false;
        }
        self.by_id.insert(id.clone(), name.to_owned());
        self.open.push(id.clone());
        true
    }

    pub(super) fn end(&mut self, id: &Id) -> bool {
        match self.open.iter().position(|open| open == id) {
            Some(index) => {
                self.open.remove(index);
                true
            }
            None => false,
        }
    }

    pub(super) fn open_names(&self) -> Vec<String> {
        self.open
            .iter()
            .filter_map(|id| self.by_id.get(id).cloned())
            .collect()
    }
}
