//! Frames: what a log got since the last acknowledgement, as messages.

use std::io::Read;

use async_nats::HeaderMap;
use async_nats::jetstream::message::PublishMessage;
use bytes::Bytes;
use ruzstd::decoding::StreamingDecoder;
use ruzstd::encoding::{CompressionLevel, compress_to_vec};
use teamster_api::{LogLine, ProblemCode, ServiceError};

use crate::protocol::{Tag, Tail};

/// Largest payload of a message, in bytes. The server allows 1 MiB with headers.
const PART_BYTES: usize = 900 * 1024;
/// Largest content of a frame, in bytes: more than any entry that an agent can write.
const CONTENT_BYTES: u64 = 1 << 30;
const VERSION: &str = "1";

/// A message of a log. An entry that is too large for one message is in several parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Frame {
    pub(crate) nonce: Tag,
    /// The number of the first entry.
    pub(crate) from: u64,
    /// The number of the entry after the last one.
    pub(crate) next: u64,
    /// The number of this part, from 0.
    pub(crate) part: u32,
    pub(crate) parts: u32,
    /// Changes with each change of what is shown of the run beside its log.
    pub(crate) state: String,
    /// The frame has the last entry of the log.
    ends: bool,
    payload: Bytes,
}

impl Frame {
    /// Reads a message. Returns `None` if it is no frame.
    pub(crate) fn read(headers: &HeaderMap, payload: &Bytes) -> Option<Self> {
        let text = |name: &str| headers.get(name).map(async_nats::HeaderValue::as_str);
        let number = |name: &str| text(name)?.parse().ok();
        Some(Self {
            nonce: text("Tm-Nonce")?.parse().ok()?,
            from: number("Tm-From")?,
            next: number("Tm-Next")?,
            part: u32::try_from(number("Tm-Part")?).ok()?,
            parts: u32::try_from(number("Tm-Parts")?).ok()?,
            state: text("Tm-State").unwrap_or_default().to_owned(),
            ends: text("Tm-End").is_some(),
            payload: payload.clone(),
        })
    }

    /// What a copier needs of the last message of a log, which has this number.
    pub(crate) fn tail(&self, number: u64) -> Tail {
        let is_whole = self.part + 1 == self.parts;
        Tail {
            number,
            nonce: self.nonce,
            next: if is_whole { self.next } else { self.from },
            is_end: is_whole && self.ends,
        }
    }
}

/// What a worker does with frames.
impl Frame {
    /// The first message of a log, which has no entry.
    pub(crate) fn witness(nonce: Tag) -> Self {
        Self {
            nonce,
            from: 1,
            next: 1,
            part: 0,
            parts: 1,
            state: String::new(),
            ends: false,
            payload: Bytes::new(),
        }
    }

    /// The messages of these entries. There MUST be at least one.
    pub(crate) fn of(nonce: Tag, lines: &[LogLine], state: &str) -> Vec<Self> {
        let (Some(first), Some(last)) = (lines.first(), lines.last()) else {
            return Vec::new();
        };
        let mut content = Vec::new();
        for line in lines {
            content.extend_from_slice(line.json());
            content.push(b'\n');
        }
        let packed = Bytes::from(compress_to_vec(&*content, CompressionLevel::Fastest));
        let parts = packed.len().div_ceil(PART_BYTES).max(1);
        (0..parts)
            .map(|part| Self {
                nonce,
                from: first.seq(),
                next: last.seq().saturating_add(1),
                part: u32::try_from(part).unwrap_or(u32::MAX),
                parts: u32::try_from(parts).unwrap_or(u32::MAX),
                state: state.to_owned(),
                ends: last.is_end(),
                payload: packed.slice(part * PART_BYTES..packed.len().min((part + 1) * PART_BYTES)),
            })
            .collect()
    }

    /// Returns the message, after the one with this number.
    pub(crate) fn message(&self, expected: u64) -> PublishMessage {
        let message = PublishMessage::build()
            .payload(self.payload.clone())
            .header("Tm-Version", VERSION)
            .header("Tm-Nonce", &*self.nonce.to_string())
            .header("Tm-From", &*self.from.to_string())
            .header("Tm-Next", &*self.next.to_string())
            .header("Tm-Part", &*self.part.to_string())
            .header("Tm-Parts", &*self.parts.to_string())
            .header("Tm-State", &*self.state)
            .expected_last_subject_sequence(expected);
        if self.ends {
            message.header("Tm-End", "1")
        } else {
            message
        }
    }
}

/// Puts frames together, in the order of their messages.
#[derive(Debug, Default)]
pub(crate) struct Frames {
    parts: Vec<Bytes>,
}

impl Frames {
    /// Adds a message. Returns the lines that are complete with it. Fails if a frame cannot be unpacked.
    pub(crate) fn add(&mut self, frame: Frame, run: &str) -> Result<Vec<LogLine>, ServiceError> {
        // A copier that was killed between parts begins its frame again.
        if frame.part == 0 {
            self.parts.clear();
        }
        if frame.part as usize != self.parts.len() || frame.from == frame.next {
            return Ok(Vec::new());
        }
        self.parts.push(frame.payload);
        if frame.part + 1 < frame.parts {
            return Ok(Vec::new());
        }
        let packed = self.parts.concat();
        self.parts.clear();
        let damaged = |error: String| {
            let message = format!(
                "entries {} to {} of the log cannot be unpacked: {error}",
                frame.from,
                frame.next - 1
            );
            ServiceError::new(ProblemCode::Internal, message)
        };
        let decoder =
            StreamingDecoder::new(&*packed).map_err(|error| damaged(error.to_string()))?;
        let mut content = Vec::new();
        let read = decoder.take(CONTENT_BYTES).read_to_end(&mut content);
        read.map_err(|error| damaged(error.to_string()))?;
        let lines = content.split(|byte| *byte == b'\n');
        Ok(lines
            .filter_map(|line| LogLine::from_json(line.to_vec(), run))
            .collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(seq: u64, text: &str) -> LogLine {
        let json = format!(r#"{{"seq":{seq},"atMs":1,"attempt":1,"type":"text","text":"{text}"}}"#);
        LogLine::from_json(json.into_bytes(), "r").unwrap()
    }

    /// Sends frames through messages.
    fn sent(frames: &[Frame]) -> Vec<Frame> {
        let read = |frame: &Frame| {
            let message = frame.message(7).outbound_message("tm.log.a.r");
            Frame::read(&message.headers.unwrap(), &message.payload).unwrap()
        };
        frames.iter().map(read).collect()
    }

    #[test]
    fn lines_arrive_byte_for_byte() {
        let lines = [line(3, "a"), line(4, "äöü")];
        let frames = sent(&Frame::of(Tag::of(9), &lines, "s"));
        let [frame] = &*frames else {
            panic!("{frames:?}");
        };
        assert_eq!((frame.from, frame.next, &*frame.state), (3, 5, "s"));
        assert_eq!(
            frame.tail(8),
            Tail {
                number: 8,
                nonce: Tag::of(9),
                next: 5,
                is_end: false,
            }
        );
        let end = r#"{"seq":5,"atMs":1,"attempt":1,"type":"done","result":{}}"#;
        let end = LogLine::from_json(end.into(), "r").unwrap();
        assert!(sent(&Frame::of(Tag::of(9), &[end], ""))[0].tail(9).is_end);
        let read = Frames::default().add(frame.clone(), "r").unwrap();
        assert_eq!(read, lines);
        let witness = sent(&[Frame::witness(Tag::of(9))]).remove(0);
        assert_eq!(witness.tail(1).next, 1);
        assert_eq!(Frames::default().add(witness, "r").unwrap(), []);
    }

    #[test]
    fn a_large_entry_has_parts_and_one_that_broke_off_is_sent_again() {
        // Half of it remains when it is compressed.
        let mut state = 1_u64;
        let noise: String = (0..3_000_000)
            .map(|_| {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1);
                char::from(b'a' + u8::try_from(state >> 60).unwrap())
            })
            .collect();
        let large = line(1, &noise);
        let frames = sent(&Frame::of(Tag::of(9), std::slice::from_ref(&large), ""));
        assert!(frames.len() > 1, "{}", frames.len());
        assert!(frames.iter().all(|frame| frame.payload.len() <= PART_BYTES));
        // Only the last part ends the frame.
        assert_eq!(frames[0].tail(4).next, 1);
        assert_eq!(frames[frames.len() - 1].tail(5).next, 2);
        let mut all = Frames::default();
        assert_eq!(all.add(frames[0].clone(), "r").unwrap(), []);
        let mut read = Vec::new();
        for frame in &frames {
            read.extend(all.add(frame.clone(), "r").unwrap());
        }
        assert_eq!(read, [large]);
    }
}
