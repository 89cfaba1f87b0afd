//! What the account knows.

use std::mem;

use teamster_core::{Id, TextLedger, UsageLedger};

use super::Account;
use super::spent::Spent;
use crate::Attempt;

impl Account {
    /// Why nothing may be started over, if so. Known after the end of an attempt.
    pub(crate) fn changed(&self) -> Option<&str> {
        self.changed.as_deref()
    }

    /// What the last attempt may have done without knowing it: its calls that can change things and had
    /// no result yet.
    pub(crate) fn cut_off(&self) -> &[String] {
        &self.cut_off
    }

    /// The session of the attempt that goes on, or of the last: also one that was only asked for.
    pub(crate) fn session(&self) -> Option<&Id> {
        self.now.session.as_ref()
    }

    /// The session of the last attempt turned out to be gone.
    pub(crate) fn forget_session(&mut self) {
        self.now.session = None;
        self.now.session_exists = false;
    }

    /// The same, if it is known to exist.
    pub(crate) fn known_session(&self) -> Option<&Id> {
        self.session().filter(|_| self.now.session_exists)
    }

    /// The provider of the attempt that goes on, or of the last.
    pub(crate) fn provider(&self) -> &str {
        &self.now.provider
    }

    /// The model of the attempt that goes on, or of the last.
    pub(crate) fn model(&self) -> Option<&str> {
        self.now.model.as_deref()
    }

    /// Whether a tool is running.
    pub(crate) fn in_tool(&self) -> bool {
        self.tools.open().len() > self.now.open_before
    }

    /// What has been used so far, the attempt that goes on included.
    pub(crate) fn spent_so_far(&self) -> Spent {
        self.spent.plus(self.now.spent())
    }

    /// How many turns the attempt that goes on has had without a word of what they used.
    pub(crate) fn silent_turns(&self) -> u32 {
        match self.now.used.usage {
            Some(usage) if !usage.is_empty() => 0,
            _ => self.now.turns,
        }
    }

    /// What the attempt that goes on has used, or the last.
    pub(crate) fn used(&self) -> UsageLedger {
        self.now.used
    }

    /// What the finished attempts have used.
    pub(crate) fn spent(&self) -> Spent {
        self.spent
    }

    /// What the agents have said, as far as it stands: at the end of the run.
    pub(crate) fn take_said(&mut self) -> TextLedger {
        mem::take(&mut self.said)
    }

    /// The calls that have not ended: at the end of the run.
    pub(crate) fn take_open(&mut self) -> Vec<Id> {
        mem::take(&mut self.tools).into_open()
    }

    /// The attempts that are over.
    pub(crate) fn attempts(&self) -> &[Attempt] {
        &self.log
    }
}
