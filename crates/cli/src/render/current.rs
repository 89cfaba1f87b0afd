//! The current CLI of a run and the state of the previous attempt's text.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};

use teamster::CliInfo;
use teamster::orchestrator::{Next, RunEvent};

/// The current CLI of a run. Clones share the state.
#[derive(Debug, Clone)]
pub(crate) struct Current {
    clis: Arc<[&'static CliInfo]>,
    now: Arc<AtomicUsize>,
    previous_text: Arc<AtomicU8>,
}

/// State of the previous attempt's text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PreviousText {
    /// The text is kept: the next attempt resumes the session.
    Kept,
    /// The text is discarded: the prompt is sent again.
    Discarded,
}

const KEPT: u8 = 1;
const DISCARDED: u8 = 2;

impl Current {
    /// Starts with `first`; `others` are the fallbacks.
    pub(crate) fn new(first: &'static CliInfo, others: &[&'static CliInfo]) -> Self {
        Self {
            clis: std::iter::once(first)
                .chain(others.iter().copied())
                .collect(),
            now: Arc::default(),
            previous_text: Arc::default(),
        }
    }

    /// Returns the current CLI.
    pub(crate) fn info(&self) -> &'static CliInfo {
        self.clis[self.now.load(Ordering::Relaxed)]
    }

    /// Returns the flag or variable that sets the CLI's program.
    pub(crate) fn bin(&self) -> String {
        let info = self.info();
        if info.id == self.clis[0].id {
            "--bin".to_owned()
        } else {
            info.program_variable()
        }
    }

    /// Updates the state from an event of the run. MUST be called before the agent's events that follow it are shown.
    pub(crate) fn observe(&self, event: &RunEvent) {
        match event {
            RunEvent::Retry { next, .. } => self.announce(next),
            RunEvent::Fallback { next, .. } => {
                self.set(&next.provider);
                self.announce(next);
            }
            _ => {}
        }
    }

    fn announce(&self, next: &Next) {
        let previous_text = if next.resumes.is_some() {
            KEPT
        } else {
            DISCARDED
        };
        self.previous_text.store(previous_text, Ordering::Relaxed);
    }

    /// Sets the current CLI. An unknown id is ignored.
    fn set(&self, id: &str) {
        if let Some(index) = self.clis.iter().position(|cli| cli.id == id) {
            self.now.store(index, Ordering::Relaxed);
        }
    }

    /// Returns the state of the text so far if another attempt was announced; `None` for the CLI's own retries and
    /// retractions.
    pub(crate) fn previous_text(&self) -> Option<PreviousText> {
        match self.previous_text.load(Ordering::Relaxed) {
            KEPT => Some(PreviousText::Kept),
            DISCARDED => Some(PreviousText::Discarded),
            _ => None,
        }
    }

    /// Returns [`Self::previous_text`] and clears it.
    pub(crate) fn take_previous_text(&self) -> Option<PreviousText> {
        let previous_text = self.previous_text();
        self.previous_text.store(0, Ordering::Relaxed);
        previous_text
    }
}

impl From<&'static CliInfo> for Current {
    fn from(only: &'static CliInfo) -> Self {
        Self::new(only, &[])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::testing::{fallback, retried};

    #[test]
    fn clones_share_the_current_cli() {
        let info = |name| crate::providers().get(name).unwrap().info();
        let current = Current::new(info("claude"), &[info("codex")]);
        let seen = current.clone();
        assert_eq!((seen.info().id, &*seen.bin()), ("claude", "--bin"));
        current.observe(&fallback("codex"));
        assert_eq!(
            (seen.info().id, &*seen.bin()),
            ("codex", "TEAMSTER_CODEX_BIN")
        );
        current.observe(&fallback("gemini"));
        assert_eq!(seen.info().id, "codex");
    }

    #[test]
    fn previous_text_is_kept_or_discarded() {
        let current = Current::from(crate::providers().get("claude").unwrap().info());
        assert_eq!(current.previous_text(), None);
        current.observe(&retried(Some("s-1")));
        assert_eq!(current.previous_text(), Some(PreviousText::Kept));
        assert_eq!(current.take_previous_text(), Some(PreviousText::Kept));
        assert_eq!(current.take_previous_text(), None);
        current.observe(&retried(None));
        assert_eq!(current.take_previous_text(), Some(PreviousText::Discarded));
    }
}
