//! What a trace prints.

use std::fmt;

use super::super::super::{Effect, SubmitEffect};
use super::Late;

/// What happens in a step: where, what, and how.
#[derive(Debug, Clone, Copy)]
pub(in super::super) struct Label(pub(super) What, pub(super) &'static str);

#[derive(Debug, Clone, Copy)]
pub(super) enum What {
    Text(&'static str),
    On(usize, &'static str),
    Carrier(usize, Effect),
    Submitter(SubmitEffect),
    Late(Late),
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            What::Text(text) => write!(f, "{text}"),
            What::On(at, text) => write!(f, "{at}: {text}"),
            What::Carrier(at, effect) => write!(f, "{at}: {effect:?}"),
            What::Submitter(effect) => write!(f, "submitter: {effect:?}"),
            What::Late(late) => write!(f, "late: {late:?}"),
        }?;
        f.write_str(self.1)
    }
}

pub(super) fn text(text: &'static str) -> Label {
    Label(What::Text(text), "")
}

pub(super) fn on(at: usize, text: &'static str) -> Label {
    Label(What::On(at, text), "")
}
