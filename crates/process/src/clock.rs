//! Times of a process.

use tokio::time::Instant;

/// Times of a run's events.
pub(crate) struct Clock {
    pub(crate) started: Instant,
    pub(crate) line: Instant,
    pub(crate) read: Instant,
    /// A line was read.
    pub(crate) has_line: bool,
    /// End of the last absence, from which the time limits count.
    pub(crate) back: Instant,
    /// Number of chunks since the last yield to other tasks.
    pub(crate) chunks: u32,
    /// Time at which the CLI reported its end or closed its event stream.
    pub(crate) ended: Option<Instant>,
}

impl Clock {
    pub(crate) fn start() -> Self {
        let now = Instant::now();
        Self {
            started: now,
            line: now,
            read: now,
            has_line: false,
            back: now,
            chunks: 0,
            ended: None,
        }
    }
}
