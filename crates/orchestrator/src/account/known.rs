//! Accessors of the account.

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

    /// Calls of the last attempt that may have run unnoticed: those that can change things and had
    /// no result yet.
    pub(crate) fn cut_off(&self) -> &[String] {
        &self.cut_off
    }

    /// The session of the current or last attempt: also one that was only requested.
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

    /// The provider of the current or last attempt.
    pub(crate) fn provider(&self) -> &str {
        &self.now.provider
    }

    /// The model of the current or last attempt.
    pub(crate) fn model(&self) -> Option<&str> {
        self.now.model.as_deref()
    }

    /// Whether a tool is running.
    pub(crate) fn in_tool(&self) -> bool {
        self.tools.open().len() > self.now.open_before
    }

    /// Usage so far, the current attempt included.
    pub(crate) fn spent_so_far(&self) -> Spent {
        self.spent.plus(self.now.spent())
    }

    /// Turns of the current attempt without reported usage.
    pub(crate) fn silent_turns(&self) -> u32 {
        match self.now.used.usage {
            Some(usage) if !usage.is_empty() => 0,
            _ => self.now.turns,
        }
    }

    /// Usage of the current or last attempt.
    pub(crate) fn used(&self) -> UsageLedger {
        self.now.used
    }

    /// Usage of the finished attempts.
    pub(crate) fn spent(&self) -> Spent {
        self.spent
    }

    /// Takes the text that was not withdrawn, at the end of the run.
    pub(crate) fn take_text(&mut self) -> TextLedger {
        mem::take(&mut self.text)
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
