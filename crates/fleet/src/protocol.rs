//! What keeps a run from starting twice: decisions without I/O.
//!
//! A run has one record, which is changed by comparing and setting its revision ([`Change`]). A message of the work queue
//! is only a hint that there is a record. [`Submission`] makes a run, [`Carrier`] carries it out on a machine, and
//! [`care`] repairs what killed processes have left. Each of them names the next [`Effect`], and is given its
//! [`Outcome`]. The tests of this module try all interleavings of two machines with faults between the effects; the
//! worker executes the same code.
//!
//! Neither silence nor a refusal is an answer: a request may be applied although its answer is lost, or much later. The
//! record is read then, and [`Change::settle`] decides. A read may be stale as well.

mod care;
mod carrier;
mod change;
mod copier;
mod home;
mod submission;
#[cfg(test)]
mod tests;

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

pub use care::{Care, Known, care};
pub use carrier::{Carrier, Effect, Folder, Next, Outcome, Reason, Verdict};
pub use change::{Change, Settled, Step};
pub use copier::{Copier, CopyEffect, Tail};
pub use home::{Conversation, Home, LastRun, SeenHome, Settle, settle};
pub use submission::{Submission, SubmitEffect};

/// A random number that names a claim or a process once and for all. Its text is 32 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Tag(u128);

impl Tag {
    /// What the end of a log has in place of a claim if a person has given its run up.
    pub const GIVEN_UP: Self = Self(0);

    /// Creates a random one.
    pub fn random() -> Self {
        Self(uuid::Uuid::new_v4().as_u128())
    }

    /// Creates the one with this number.
    pub const fn of(number: u128) -> Self {
        Self(number)
    }
}

impl fmt::Display for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl fmt::Debug for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:x}", self.0)
    }
}

impl From<Tag> for String {
    fn from(tag: Tag) -> Self {
        tag.to_string()
    }
}

impl FromStr for Tag {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let is_tag = text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        u128::from_str_radix(text, 16)
            .ok()
            .filter(|_| is_tag)
            .map(Self)
            .ok_or_else(|| "expected 32 hexadecimal digits".to_owned())
    }
}

impl TryFrom<String> for Tag {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

/// State of a record.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum State {
    /// The run waits for a worker.
    #[default]
    Queued,
    /// A worker prepares the run. Nothing was started.
    Claimed,
    /// The run may have been started. It is never started again.
    Started,
    /// The run has ended, and its log is complete.
    Ended,
    /// The run was cancelled before it was started.
    Cancelled,
    /// The record and a witness contradict each other, as after a store has lost a write. Nothing more is started.
    Conflict,
    /// A person has given the run up, because its machine is gone.
    Lost,
}

impl State {
    /// Returns whether the record will not change any more.
    pub fn is_final(self) -> bool {
        !matches!(self, Self::Queued | Self::Claimed | Self::Started)
    }
}

/// A worker's claim to a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Claim {
    /// The worker's process: the name of a worker comes back, a process does not.
    pub instance: Tag,
    /// The claim itself, which folders and logs have too.
    pub nonce: Tag,
}

/// What decisions need of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Head {
    /// The state.
    pub state: State,
    /// The claim. A queued or cancelled run has none.
    pub claim: Option<Claim>,
}

impl Head {
    /// The head of a run that waits for a worker.
    pub const QUEUED: Self = Self {
        state: State::Queued,
        claim: None,
    };

    pub(crate) fn claimed(state: State, claim: Claim) -> Self {
        Self {
            state,
            claim: Some(claim),
        }
    }

    /// Returns whether the record is of the claim with this nonce.
    pub fn is_of(&self, nonce: Tag) -> bool {
        self.claim.is_some_and(|claim| claim.nonce == nonce)
    }
}

/// A record as it was read, which may be an older state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Seen {
    /// The revision; 0 if there never was a record.
    pub revision: u64,
    /// The head; `None` if there is no record, or no more.
    pub head: Option<Head>,
    /// Whether a person wants the run to stop. That wish is never taken back.
    pub stop: bool,
}

impl Seen {
    /// What is read where there is no record.
    pub const NOTHING: Self = Self {
        revision: 0,
        head: None,
        stop: false,
    };

    /// What takes the place of [`NOTHING`](Self::NOTHING) if it was read for a long time where a record was: the record is
    /// gone, and its marker too.
    pub const GONE: Self = Self {
        revision: u64::MAX,
        ..Self::NOTHING
    };
}
