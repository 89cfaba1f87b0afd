//! What splits bytes: lines of output, and server-sent events of both clients.

use teamster_process::framing::{Frame, LineBuf};

use super::Target;
use crate::harness::{maybe_long, pieces};

// Modules of crates that do not export them: pure, and without others of their crate.
#[path = "../../../crates/client/src/sse.rs"]
#[allow(dead_code, reason = "a target asks for the events alone")]
mod client_sse;
#[path = "../../../crates/embedded/src/wire/sse.rs"]
#[allow(dead_code, reason = "a target asks for the events alone")]
mod embedded_sse;

pub fn targets() -> [Target; 2] {
    [
        Target::new("lines", &["fuzz/seeds/sse", "fuzz/seeds/editor"], |data| {
            let data = maybe_long(data);
            let limit = 1 + data.len() / 3;
            let whole = lines(&[&data], limit);
            assert_eq!(lines(&pieces(&data), limit), whole);
            let split = data.split(|byte| *byte == b'\n').map(<[u8]>::len);
            assert!(whole.len() <= split.count());
        }),
        Target::new("sse", &["fuzz/seeds/sse"], |data| {
            let data = maybe_long(data);
            assert_eq!(of_client(&pieces(&data)), of_client(&[&data]));
            assert_eq!(of_embedded(&pieces(&data)), of_embedded(&[&data]));
        }),
    ]
}

/// Returns the lines, those that are too long by their length.
fn lines(pieces: &[&[u8]], limit: usize) -> Vec<Result<Vec<u8>, u64>> {
    fn item(frame: Frame<'_>) -> Result<Vec<u8>, u64> {
        match frame {
            Frame::Line(line) => Ok(line.to_vec()),
            Frame::Oversize { bytes, .. } => Err(bytes),
        }
    }
    let mut buffer = LineBuf::new(limit);
    let mut lines = Vec::new();
    for piece in pieces {
        buffer.extend(piece);
        while let Some(frame) = buffer.next() {
            lines.push(item(frame));
        }
    }
    lines.extend(buffer.finish().map(item));
    lines
}

fn of_client(pieces: &[&[u8]]) -> Vec<client_sse::SseEvent> {
    let mut parser = client_sse::SseParser::default();
    let mut events = Vec::new();
    for piece in pieces {
        parser.push(piece);
        events.extend(std::iter::from_fn(|| parser.next()));
    }
    events
}

fn of_embedded(pieces: &[&[u8]]) -> (Vec<embedded_sse::SseEvent>, String) {
    let mut parser = embedded_sse::Sse::default();
    let mut events = Vec::new();
    for piece in pieces {
        parser.push(piece);
        events.extend(std::iter::from_fn(|| parser.next_event()));
    }
    let (last, rest) = parser.finish();
    events.extend(last);
    (events, rest)
}
