//! The store: the record, the log and the queue, and what happens to requests.

use super::super::super::{Change, Seen, Tag, Tail};
use super::{Answer, Label, Late, Part, Steps, What, World};

impl World {
    pub(super) fn apply(&mut self, change: Change) -> Option<u64> {
        if self.record.revision != change.expected && !self.lacks(Part::Expected) {
            return None;
        }
        self.older = self.record;
        self.record = Seen {
            revision: self.record.revision + 1,
            head: Some(change.head),
            stop: self.record.stop,
        };
        Some(self.record.revision)
    }

    pub(super) fn publish_hint(&mut self) {
        if self.rules.replaced {
            self.queue = 1;
            for host in &mut self.hosts {
                host.unacknowledged = 0;
            }
        } else {
            self.queue = (self.queue + 1).min(2);
        }
    }

    pub(super) fn publish_witness(&mut self, nonce: Tag) -> bool {
        self.publish_log(0, nonce, false)
    }

    /// Publishes an entry after the message with this number.
    pub(super) fn publish_log(&mut self, expected: u64, nonce: Tag, is_end: bool) -> bool {
        let last = self.log.map_or(0, |tail| tail.number);
        if last != expected {
            return false;
        }
        self.continued |= self.log.is_some_and(|tail| tail.is_end);
        self.log = Some(Tail {
            number: last + 1,
            nonce,
            next: 1 + u64::from(is_end),
            is_end,
        });
        true
    }

    pub(super) fn publish_rerun(&mut self) -> bool {
        let is_first = self.reruns == 0 || self.lacks(Part::Expected);
        self.reruns += u8::from(is_first);
        is_first
    }

    fn apply_late(&mut self, late: Late) {
        match late {
            Late::Change(change) => drop(self.apply(change)),
            Late::Hint => self.publish_hint(),
            Late::Witness(nonce) => drop(self.publish_witness(nonce)),
            Late::Rerun => drop(self.publish_rerun()),
        }
    }

    /// All that can happen to a request: the answer of the store, or silence, in which it was applied or will be.
    pub(super) fn request(&self, late: Late) -> Vec<(&'static str, Answer, Self)> {
        let mut after = self.clone();
        let stored = match late {
            Late::Change(change) => after.apply(change),
            Late::Hint => {
                after.publish_hint();
                Some(0)
            }
            Late::Witness(nonce) => {
                (after.publish_witness(nonce) || self.lacks(Part::Witness)).then_some(0)
            }
            Late::Rerun => after.publish_rerun().then_some(0),
        };
        let mut all = vec![match stored {
            Some(number) => ("", Answer::Stored(number), after),
            None => (": refused", Answer::Refused, after),
        }];
        if let Some(mut lost) = self.fault() {
            let mut delayed = lost.clone();
            lost.apply_late(late);
            all.push((", answer lost", Answer::Silence, lost));
            delayed.late.push(late);
            all.push((", delayed", Answer::Silence, delayed));
        }
        all
    }

    pub(super) fn arrive_late(&self, steps: &mut Steps) {
        for (index, late) in self.late.iter().enumerate() {
            let mut after = self.clone();
            after.late.remove(index);
            after.apply_late(*late);
            steps.push((Label(What::Late(*late), ""), after));
        }
    }

    /// What a read returns: the record, or an older one.
    pub(super) fn reads(&self) -> Vec<(&'static str, Seen, Self)> {
        let mut all = vec![("", self.record, self.clone())];
        if self.is_gone && !self.lacks(Part::Patience) {
            all[0].1 = Seen::GONE;
        }
        if self.older != self.record
            && let Some(stale) = self.fault()
        {
            all.push((" (stale)", self.older, stale));
        }
        all
    }
}
