//! Playback of any output as that of a session, through the code of live sessions.

use teamster_core::provider::{Exit, SessionAssembler};
use teamster_core::{PermissionAnswer, SessionOptions, SessionProvider, Turn};
use teamster_process::RuntimeConfig;
use teamster_process::framing::{Frame, LineBuf};

use crate::replay::Replay;

/// Plays output to a session of this provider: turn after turn, as each one ends, until the output does. Requests for
/// permission are allowed and denied in turn. Returns the turns, with the lines that their events came from.
pub fn play_turns(provider: &dyn SessionProvider, stdout: &[u8]) -> Vec<Replay> {
    let options = SessionOptions::default();
    let mut play = Play {
        session: SessionAssembler::new(provider.protocol(&options)).include_native(true),
        entries: Vec::new(),
        turns: Vec::new(),
        answers: 0,
    };
    play.session.begin(Turn::new("hi"));
    play.settle();
    let mut lines = LineBuf::new(RuntimeConfig::default().max_line_bytes);
    lines.extend(stdout);
    while let Some(frame) = lines.next() {
        play.frame(&frame);
    }
    if let Some(frame) = lines.finish() {
        play.frame(&frame);
    }
    if play.session.turn().is_some() {
        play.session.finish(Exit::default(), 0);
        play.turn_ended();
    }
    play.turns
}

struct Play {
    session: SessionAssembler,
    /// Entries of the turn in progress.
    entries: Vec<teamster_core::LogEntry>,
    turns: Vec<Replay>,
    answers: usize,
}

impl Play {
    fn frame(&mut self, frame: &Frame<'_>) {
        match frame {
            Frame::Line(line) => self.session.line(line),
            Frame::Oversize { bytes, head } => self.session.oversize_line(*bytes, head),
        }
        self.settle();
    }

    /// Does what the engine does after each call.
    fn settle(&mut self) {
        loop {
            let asked = self.session.outbox(|outbox| {
                outbox.take_input();
                outbox.take_answers();
                outbox.take_withdrawn();
                outbox.take_requests()
            });
            if asked.is_empty() {
                break;
            }
            for request in asked {
                self.answers += 1;
                let answer = if self.answers.is_multiple_of(2) {
                    PermissionAnswer::Allow
                } else {
                    PermissionAnswer::deny("no")
                };
                self.session.answer(&request, answer);
            }
        }
        self.entries.extend(self.session.out().drain_entries(0));
        if self.session.awaited_silence().is_some() {
            self.session.silence();
            self.entries.extend(self.session.out().drain_entries(0));
        }
        if self.session.is_over() {
            self.session.end_turn(0);
            self.turn_ended();
            self.session.begin(Turn::new("go on"));
            self.entries.extend(self.session.out().drain_entries(0));
        }
    }

    fn turn_ended(&mut self) {
        self.entries.extend(self.session.out().drain_entries(0));
        self.turns
            .push(Replay::new(std::mem::take(&mut self.entries)));
    }
}
