//! Totals of earlier runs in the CLI's record of a session.
//!
//! Versions before 1.0.102 do not record single requests, but the session's totals at the end of each run. The usage
//! of a run is their increase.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

/// Prefix of a line with totals.
const SHUTDOWN: &[u8] = br#"{"type":"session.shutdown","#;

/// Returns the line with the totals of a session after its last run. `None` if the record cannot be read or has no
/// totals.
pub(crate) fn last_shutdown(path: &Path) -> Option<String> {
    let mut file = BufReader::new(File::open(path).ok()?);
    let (mut line, mut last) = (Vec::new(), Vec::new());
    while file.read_until(b'\n', &mut line).ok()? > 0 {
        if line.starts_with(SHUTDOWN) {
            std::mem::swap(&mut line, &mut last);
        }
        line.clear();
    }
    String::from_utf8(last).ok().filter(|line| !line.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shutdown(output: u64) -> String {
        format!(
            r#"{{"type":"session.shutdown","data":{{"modelMetrics":{{"m":{{"usage":{{"outputTokens":{output}}}}}}}}}}}"#
        )
    }

    #[test]
    fn the_last_totals_count() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("events.jsonl");
        assert!(last_shutdown(&path).is_none());
        std::fs::write(&path, "{\"type\":\"session.start\"}\n").unwrap();
        assert!(last_shutdown(&path).is_none());
        let (first, second) = (shutdown(3), shutdown(7));
        let text = format!("{first}\n{second}\n{{\"type\":\"session.resume\"}}\n");
        std::fs::write(&path, text).unwrap();
        assert_eq!(last_shutdown(&path), Some(second + "\n"));
    }
}
