//! Limit of the output that is read after the decision to stop a process.

/// Limit of what is decoded of it, in bytes. A CLI that is stopped ends its turn in far less; one that floods would
/// fill the memory of its reader until it is killed.
pub(crate) const LAST_OUTPUT_BYTES: u64 = 8 << 20;

/// Counter of the output after the decision to stop, or to interrupt a turn.
#[derive(Debug, Default)]
pub(crate) struct LastOutput {
    stopping: bool,
    /// Bytes since the decision.
    bytes: u64,
}

impl LastOutput {
    /// Begins to count: the process is about to be stopped.
    pub(crate) fn stop(&mut self) {
        self.stopping = true;
        self.bytes = 0;
    }

    /// Counts output that was read while the process was being stopped or its turn interrupted, and forgets it at any
    /// other time. Returns how much of it is to be decoded: all of it or, beyond the limit, none.
    pub(crate) fn read(&mut self, bytes: usize, interrupting: bool) -> usize {
        if !(self.stopping || interrupting) {
            self.bytes = 0;
            return bytes;
        }
        self.bytes += bytes as u64;
        if self.lost().is_some() { 0 } else { bytes }
    }

    /// Returns whether a turn that is being interrupted has printed more than the limit. Its process is then stopped.
    pub(crate) fn is_flood(&self) -> bool {
        !self.stopping && self.bytes > LAST_OUTPUT_BYTES
    }

    /// Returns the number of bytes after the decision to stop, if not all of them were decoded.
    pub(crate) fn lost(&self) -> Option<u64> {
        (self.stopping && self.bytes > LAST_OUTPUT_BYTES).then_some(self.bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: usize = 8 << 20;

    #[test]
    fn output_counts_from_the_decision_on() {
        let mut output = LastOutput::default();
        assert_eq!(output.read(LIMIT + 1, false), LIMIT + 1);
        assert!(!output.is_flood());
        output.stop();
        assert_eq!(output.read(LIMIT, false), LIMIT);
        assert_eq!(output.lost(), None);
        assert_eq!(output.read(1, false), 0);
        assert_eq!(output.read(5, false), 0);
        assert_eq!(output.lost(), Some(LAST_OUTPUT_BYTES + 6));
    }

    #[test]
    fn an_interrupted_turn_may_print_as_much() {
        let mut output = LastOutput::default();
        assert_eq!(output.read(LIMIT, true), LIMIT);
        assert_eq!(output.read(1, false), 1, "its turn has ended");
        output.read(LIMIT, true);
        assert!(!output.is_flood());
        assert_eq!(output.read(1, true), 1, "it ends in the middle of no line");
        assert!(output.is_flood());
        output.stop();
        assert_eq!(output.read(1, true), 1);
    }
}
