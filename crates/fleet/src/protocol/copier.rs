//! The copy of a log.

use super::Tag;

/// The last message of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Tail {
    /// Its number in the stream.
    pub number: u64,
    /// The claim that it is of.
    pub nonce: Tag,
    /// The number of the entry that comes next: of a frame whose parts are not all there, its first.
    pub next: u64,
    /// Whether it has the last entry of the log.
    pub is_end: bool,
}

/// What a [`Copier`] needs next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum CopyEffect {
    /// Read the last message, then call [`Copier::tail`].
    ReadTail,
    /// Publish the entries from this number on after the message with the expected number (0: there must be none), then
    /// call [`Copier::published`] or [`Copier::not_published`].
    Publish {
        /// The number of the message before.
        expected: u64,
        /// The number of the first entry.
        from: u64,
    },
    /// Stop: the log has messages of another claim.
    Stop,
}

/// The copy of a log, one message under way at a time. Each expects the previous one, so that no message of another
/// claim, and no late one, comes between.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Copier {
    nonce: Tag,
    next: u64,
    stage: Stage,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Stage {
    ReadTail,
    Publish(u64),
    Stop,
}

impl Copier {
    /// Begins or continues the copy of a claim's log.
    pub fn new(nonce: Tag) -> Self {
        Self {
            nonce,
            next: 1,
            stage: Stage::ReadTail,
        }
    }

    /// Returns what is to be done next.
    pub fn next(self) -> CopyEffect {
        match self.stage {
            Stage::ReadTail => CopyEffect::ReadTail,
            Stage::Publish(expected) => CopyEffect::Publish {
                expected,
                from: self.next,
            },
            Stage::Stop => CopyEffect::Stop,
        }
    }

    /// Continues with what was read. Without a message, all have aged out.
    #[must_use]
    pub fn tail(self, tail: Option<Tail>) -> Self {
        match tail {
            None => Self {
                stage: Stage::Publish(0),
                ..self
            },
            Some(tail) if tail.nonce == self.nonce => Self {
                next: tail.next,
                stage: Stage::Publish(tail.number),
                ..self
            },
            Some(_) => Self {
                stage: Stage::Stop,
                ..self
            },
        }
    }

    /// Continues after a message was stored with this number. `next` is the number of the next entry.
    #[must_use]
    pub fn published(self, number: u64, next: u64) -> Self {
        Self {
            next,
            stage: Stage::Publish(number),
            ..self
        }
    }

    /// Continues after a message that was refused or not answered.
    #[must_use]
    pub fn not_published(self) -> Self {
        Self {
            stage: Stage::ReadTail,
            ..self
        }
    }
}
