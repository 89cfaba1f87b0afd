//! Configuration of a session's reader.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use teamster_core::provider::SessionAssembler;
use tokio::sync::mpsc;

use super::shared::{Command, Known};
use crate::guard::Panicked;

/// Configuration of a session's reader.
pub(crate) struct Setting {
    pub(crate) assembler: SessionAssembler,
    pub(crate) panicked: Panicked,
    pub(crate) commands: mpsc::UnboundedReceiver<Command>,
    pub(crate) known: Arc<Known>,
    pub(crate) interruptible: bool,
    pub(crate) idle: Option<Duration>,
    /// True if an earlier process began the session.
    pub(crate) restarted: bool,
    pub(crate) interrupt_grace: Duration,
    pub(crate) queue_memory_bytes: usize,
    pub(crate) spill_dir: Option<PathBuf>,
    pub(crate) spill_limit_bytes: u64,
}
