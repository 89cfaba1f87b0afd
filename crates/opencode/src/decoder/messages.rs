//! The printed parts. The CLI may print a part a second time after it has changed.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use teamster_core::Id;

use super::wire::Part;

/// All parts so far, by id.
#[derive(Debug, Default)]
pub(super) struct Parts(HashMap<Box<str>, Printed>);

#[derive(Debug)]
enum Printed {
    /// Text or reasoning: its length, and a hash of it.
    Text { bytes: usize, hash: u64 },
    /// A tool call that has not ended, with its id once it was emitted.
    Begun(Option<Id>),
    /// A part that does not change any more.
    Whole(u64),
}

/// New content of a part.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum News {
    All,
    /// The text from this position on.
    From(usize),
    /// The result of this call.
    Result(Id),
    Nothing,
}

impl Parts {
    /// Returns the new content of this part, or `None` if it contradicts its earlier lines.
    pub(super) fn news(&mut self, kind: &str, part: &Part<'_>) -> Option<News> {
        let ended = part.state.as_ref().is_none_or(|state| !state.is_open());
        let Some(id) = part.id.as_deref() else {
            // Without an id, the end of the call cannot be distinguished from another call.
            return Some(if ended { News::All } else { News::Nothing });
        };
        let Some(before) = self.0.get_mut(id) else {
            self.0.insert(id.into(), Printed::of(kind, part, ended));
            return Some(if ended || part.is_running() {
                News::All
            } else {
                News::Nothing
            });
        };
        let now = Printed::of(kind, part, ended);
        let news = match (&*before, &now) {
            (Printed::Text { bytes, hash }, Printed::Text { .. }) => {
                let text = part.text.as_deref()?;
                if hash_of(&(kind, text.get(..*bytes)?)) != *hash {
                    return None;
                }
                match *bytes {
                    bytes if bytes == text.len() => News::Nothing,
                    bytes => News::From(bytes),
                }
            }
            (Printed::Begun(Some(call)), Printed::Whole(_)) => News::Result(call.clone()),
            (Printed::Begun(None), Printed::Whole(_)) => News::All,
            (Printed::Begun(None), Printed::Begun(_)) if part.is_running() => News::All,
            (Printed::Begun(_), Printed::Begun(_)) => return Some(News::Nothing),
            // The output was removed from the conversation, long after the call.
            (Printed::Whole(_), _) if part.is_compacted() => return Some(News::Nothing),
            (Printed::Whole(before), Printed::Whole(now)) if before == now => News::Nothing,
            _ => return None,
        };
        *before = now;
        Some(news)
    }

    /// Records that an unfinished call was emitted.
    pub(super) fn begun(&mut self, part: &str, call: Id) {
        self.0.insert(part.into(), Printed::Begun(Some(call)));
    }
}

impl Printed {
    fn of(kind: &str, part: &Part<'_>, ended: bool) -> Self {
        match (&part.text, &part.state) {
            (Some(text), _) if matches!(kind, "text" | "reasoning") => Self::Text {
                bytes: text.len(),
                hash: hash_of(&(kind, text.as_ref())),
            },
            _ if !ended => Self::Begun(None),
            (_, Some(state)) if kind == "tool_use" => Self::Whole(hash_of(&(
                state.status.as_deref(),
                state.output.as_deref(),
                state.error.as_deref(),
            ))),
            _ => Self::Whole(hash_of(&(
                kind,
                part.reason.as_deref(),
                part.tokens.map(|tokens| (tokens.input, tokens.output)),
            ))),
        }
    }
}

fn hash_of(what: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    what.hash(&mut hasher);
    hasher.finish()
}
