//! Accessors of the ledger.

use std::mem;

use teamster_core::{Attempt, Id, TextLedger, UsageLedger};

use super::Account;
use super::spent::Spent;

impl Account {
    /// Returns the reason why the run must not start over. Known after the end of an attempt.
    pub(crate) fn changed(&self) -> Option<&str> {
        self.changed.as_deref()
    }

    /// Returns the calls of the last attempt that can change things and had no result. They may have run unnoticed.
    pub(crate) fn cut_off(&self) -> &[String] {
        &self.cut_off
    }

    /// Returns the session of the current or last attempt, including one that was only requested.
    pub(crate) fn session(&self) -> Option<&Id> {
        self.now.session.as_ref()
    }

    /// Forgets the session of the last attempt, which no longer exists.
    pub(crate) fn forget_session(&mut self) {
        self.now.session = None;
        self.now.session_exists = false;
    }

    /// Returns the session of the current or last attempt if it is known to exist.
    pub(crate) fn known_session(&self) -> Option<&Id> {
        self.session().filter(|_| self.now.session_exists)
    }

    /// Returns the provider of the current or last attempt.
    pub(crate) fn provider(&self) -> &str {
        &self.now.provider
    }

    /// Returns the model of the current or last attempt.
    pub(crate) fn model(&self) -> Option<&str> {
        self.now.model.as_deref()
    }

    /// Returns whether a tool of the current attempt is running.
    pub(crate) fn in_tool(&self) -> bool {
        self.tools.open().len() > self.now.open_before
    }

    /// Returns the usage so far, including the current attempt.
    pub(crate) fn spent_so_far(&self) -> Spent {
        self.spent.plus(self.now.spent())
    }

    /// Returns the number of turns of the current attempt, or 0 if it has reported usage.
    pub(crate) fn silent_turns(&self) -> u32 {
        match self.now.used.usage {
            Some(usage) if !usage.is_empty() => 0,
            _ => self.now.turns,
        }
    }

    /// Returns the usage of the current or last attempt.
    pub(crate) fn used(&self) -> UsageLedger {
        self.now.used
    }

    /// Returns the usage of the finished attempts.
    pub(crate) fn spent(&self) -> Spent {
        self.spent
    }

    /// Takes the text that was not retracted, at the end of the run.
    pub(crate) fn take_text(&mut self) -> TextLedger {
        mem::take(&mut self.text)
    }

    /// Takes the calls that have not ended, at the end of the run.
    pub(crate) fn take_open(&mut self) -> Vec<Id> {
        mem::take(&mut self.tools).into_open()
    }

    pub(crate) fn attempts(&self) -> &[Attempt] {
        &self.log
    }
}
