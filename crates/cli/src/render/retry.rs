//! The line of a retry.

use std::fmt::Write;

use teamster::Retry;

use super::line::Line;
use super::narrator::INDENT;
use crate::words;

/// Returns the line of a retry. `discarded` marks the text so far as discarded.
pub(super) fn retry_line(retry: &Retry, discarded: bool) -> Line {
    let mut body = format!("retrying ({}", retry.attempt);
    if let Some(max) = retry.max_attempts {
        let _ = write!(body, " of {max}");
    }
    body.push(')');
    if let Some(ms) = retry.delay_ms {
        let _ = write!(body, " in {}", words::duration_ms(ms));
    }
    let _ = write!(body, ": {}", words::one_line(&retry.error.message));
    if discarded {
        body.push_str(" (the text so far is discarded)");
    }
    Line::aside(body).indented(INDENT)
}
