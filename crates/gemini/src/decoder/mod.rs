//! From the lines of `gemini --output-format=stream-json` to events.

use teamster_core::{Decoder, Events, Exit, RunSummary};

/// Decodes the output of one run.
#[derive(Debug, Default)]
pub struct GeminiDecoder;

impl GeminiDecoder {
    /// A decoder for one run.
    pub fn new() -> Self {
        Self
    }
}

impl Decoder for GeminiDecoder {
    fn line(&mut self, line: &[u8], out: &mut Events) {
        out.unknown(line);
    }

    fn finish(&mut self, _: &Exit, _: &mut Events) -> RunSummary {
        RunSummary::default()
    }
}
