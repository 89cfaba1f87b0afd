//! The copy of a log of three entries: a copier that may be killed at any moment, and a reader that is there from the
//! beginning.

use std::fmt::{self, Display};
use std::hash::Hash;

use super::super::{Copier, CopyEffect, Tag, Tail};
use super::explore::{Found, Model};

/// The number of the last entry.
const LAST: u64 = 3;
/// The claim.
const NONCE: Tag = Tag::of(7);

/// A frame of the entries from one number to before another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Frame {
    expected: u64,
    from: u64,
    next: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Copies {
    /// The last messages of the log, if any are left: the newest, and the previous one.
    tails: [Option<Tail>; 2],
    /// The number of the newest message.
    number: u64,
    copier: Option<Copier>,
    late: Vec<Frame>,
    /// The number of the entry that the reader has next.
    read: u64,
    has_gap: bool,
    /// The log was ended because the run was given up.
    is_given_up: bool,
    /// After that, it got another entry.
    is_continued: bool,
    faults: u8,
    limit: u8,
    /// Silence is taken for success, and no message expects another one.
    is_careless: bool,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Label {
    Text(&'static str),
    Frame(Frame, &'static str),
}

impl Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::Frame(frame, how) => write!(f, "{frame:?}{how}"),
        }
    }
}

impl Copies {
    /// Begins with the witness.
    pub(super) fn new(limit: u8) -> Self {
        let witness = Tail {
            number: 1,
            nonce: NONCE,
            next: 1,
            is_end: false,
        };
        Self {
            tails: [Some(witness), None],
            number: 1,
            copier: Some(Copier::new(NONCE)),
            late: Vec::new(),
            read: 1,
            has_gap: false,
            is_given_up: false,
            is_continued: false,
            faults: 0,
            limit,
            is_careless: false,
        }
    }

    pub(super) fn careless(mut self) -> Self {
        self.is_careless = true;
        self
    }

    fn fault(&self) -> Option<Self> {
        (self.faults < self.limit).then(|| Self {
            faults: self.faults + 1,
            ..self.clone()
        })
    }

    /// Stores a frame if it comes after the expected message. Returns its number.
    fn store(&mut self, frame: Frame) -> Option<u64> {
        let last = self.tails[0].map_or(0, |tail| tail.number);
        if last != frame.expected && !self.is_careless {
            return None;
        }
        self.number += 1;
        let tail = Tail {
            number: self.number,
            nonce: NONCE,
            next: frame.next,
            is_end: frame.next > LAST,
        };
        self.tails = [Some(tail), self.tails[0]];
        self.is_continued |= self.is_given_up;
        self.has_gap |= frame.from > self.read;
        self.read = self.read.max(frame.next);
        Some(self.number)
    }

    fn publish(&self, copier: Copier, frame: Frame, steps: &mut Vec<(Label, Self)>) {
        let mut after = self.clone();
        let (how, copier_after) = match after.store(frame) {
            Some(number) => ("", copier.published(number, frame.next)),
            None => (": refused", copier.not_published()),
        };
        after.copier = Some(copier_after);
        steps.push((Label::Frame(frame, how), after));
        let Some(mut lost) = self.fault() else {
            return;
        };
        lost.copier = Some(if self.is_careless {
            copier.published(self.number + 1, frame.next)
        } else {
            copier.not_published()
        });
        let mut delayed = lost.clone();
        lost.store(frame);
        steps.push((Label::Frame(frame, ", answer lost"), lost));
        delayed.late.push(frame);
        steps.push((Label::Frame(frame, ", delayed"), delayed));
    }
}

impl Model for Copies {
    type Label = Label;

    fn steps(&self) -> Vec<(Label, Self)> {
        let mut steps = Vec::new();
        match self.copier {
            None => {
                let mut after = self.clone();
                after.copier = Some(Copier::new(NONCE));
                steps.push((Label::Text("a copier is back"), after));
            }
            Some(copier) => match copier.next() {
                CopyEffect::ReadTail => {
                    let mut after = self.clone();
                    after.copier = Some(copier.tail(self.tails[0]));
                    steps.push((Label::Text("reads the last message"), after));
                    if let Some(mut stale) = self.fault() {
                        stale.copier = Some(copier.tail(self.tails[1]));
                        steps.push((Label::Text("reads an older one"), stale));
                    }
                }
                CopyEffect::Publish { expected, from } => {
                    for next in from + 1..=LAST + 1 {
                        let frame = Frame {
                            expected,
                            from,
                            next,
                        };
                        self.publish(copier, frame, &mut steps);
                    }
                }
                CopyEffect::Stop => {}
            },
        }
        for (index, frame) in self.late.iter().enumerate() {
            let mut after = self.clone();
            after.late.remove(index);
            after.store(*frame);
            steps.push((Label::Frame(*frame, " arrives late"), after));
        }
        if let Some(mut killed) = self.fault() {
            killed.copier = None;
            steps.push((Label::Text("the copier is killed"), killed));
        }
        if !self.is_given_up {
            let mut after = self.clone();
            after.is_given_up = true;
            after.number += 1;
            let end = Tail {
                number: after.number,
                nonce: Tag::GIVEN_UP,
                next: LAST + 1,
                is_end: true,
            };
            after.tails = [Some(end), after.tails[0]];
            steps.push((Label::Text("the run is given up"), after));
        }
        // That of a run that was given up is long gone then, and the record is final.
        if !self.is_given_up
            && let Some(mut aged) = self.fault()
        {
            aged.tails = [None, None];
            steps.push((Label::Text("the log ages out"), aged));
        }
        steps
    }

    fn faults(&self) -> u8 {
        self.faults
    }

    fn violation(&self) -> Option<Found> {
        if self.is_continued {
            return Some(Found::Continued);
        }
        self.has_gap.then_some(Found::Gap)
    }

    fn is_named(&self) -> bool {
        self.read == LAST + 1 || self.is_given_up
    }
}
