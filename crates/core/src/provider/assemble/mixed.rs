//! Lines that are not one JSON object.

use super::RunAssembler;
use crate::provider::{Events, mixed_line};
use crate::text::{excerpt, visible};
use crate::{NoticeLevel, NoticeSource};

/// Limit of the excerpt of text in a notice, in bytes.
const NOTICE_BYTES: usize = 4096;

impl RunAssembler {
    /// Processes a line that does not begin with `{`: decodes the JSON objects in it, and emits notices for the rest.
    pub(super) fn mixed_line(&mut self, line: &[u8], out: &mut Events) {
        if !self.decode_objects(line, out) {
            let text = String::from_utf8_lossy(line);
            out.malformed += u64::from(self.beside(&text, out));
        }
    }

    /// Processes a line that the decoder took for malformed; its notice is the last event. Replaces that if there are
    /// objects in the line.
    pub(super) fn malformed_line(&mut self, line: &[u8], out: &mut Events) {
        let notice = out.items.pop();
        out.malformed -= 1;
        if !self.decode_objects(line, out) {
            let from = out.items.len();
            out.items.extend(notice);
            out.malformed += 1;
            self.check(from, Some(line), out);
        }
    }

    /// Decodes the objects of a line, and emits notices for what is between them. Returns `false` if there are no
    /// objects of the CLI; then nothing was emitted.
    fn decode_objects(&mut self, line: &[u8], out: &mut Events) -> bool {
        let text = String::from_utf8_lossy(line);
        let mut objects = mixed_line::objects(&text);
        let mut done = 0;
        let mut other_text = false;
        for found in objects.by_ref() {
            let json = found.json.as_bytes();
            let mut events = Events::new();
            self.decoder.line(json, &mut events);
            if events.malformed > 0 || (events.unknown > 0 && !found.is_message) {
                // The JSON of another program.
                continue;
            }
            other_text |= self.beside(&text[done..found.at.start], out);
            done = found.at.end;
            let from = out.items.len();
            out.append(events);
            self.check(from, Some(json), out);
        }
        if done == 0 {
            return false;
        }
        if let Some(at) = objects.broken().filter(|at| *at >= done) {
            // Only the decoder knows what a message that was cut off means.
            other_text |= self.beside(&text[done..at], out);
            let from = out.items.len();
            self.decoder.line(&text.as_bytes()[at..], out);
            self.check(from, None, out);
        } else {
            other_text |= self.beside(&text[done..], out);
        }
        out.malformed += u64::from(other_text);
        true
    }

    /// Emits a notice for text that is not of the CLI. Returns whether the text is visible.
    fn beside(&mut self, text: &str, out: &mut Events) -> bool {
        let seen = visible(text);
        if seen.is_empty() {
            return false;
        }
        self.decoder.plain_line(seen.as_bytes());
        let from = out.items.len();
        let message = excerpt(&seen, NOTICE_BYTES);
        out.notice(NoticeLevel::Info, NoticeSource::Stdout, message);
        self.check(from, None, out);
        true
    }
}
