//! The one warning of a process about telemetry that is not sent.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A function that gets warnings.
pub(crate) type OnWarning = Arc<dyn Fn(&str) + Send + Sync>;

/// Reports the first problem. Clones share it.
#[derive(Clone)]
pub(crate) struct Warning {
    call: OnWarning,
    is_given: Arc<AtomicBool>,
}

impl Warning {
    pub(crate) fn new(call: OnWarning) -> Self {
        Self {
            call,
            is_given: Arc::default(),
        }
    }

    /// Reports a problem, unless one was reported.
    pub(crate) fn give(&self, problem: impl fmt::Display) {
        if !self.is_given.swap(true, Ordering::Relaxed) {
            (self.call)(&format!("telemetry is not sent: {problem}"));
        }
    }
}

teamster_core::debug_fields!(Warning { is_given });
