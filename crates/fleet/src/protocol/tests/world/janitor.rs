//! What any worker does for what others have left.

use super::super::super::{Care, Known, Tag, care};
use super::{Label, Late, Part, Power, Presence, Steps, What, World, instance_of, text};

impl World {
    pub(super) fn repair(&self, steps: &mut Steps) {
        let is_absent =
            self.record
                .head
                .is_some_and(|head| match self.rules.presence {
                    Presence::Unknown => true,
                    Presence::Instance => (0..2).all(|at| {
                        let host = &self.hosts[at];
                        let instance = instance_of(at, host.kills);
                        host.power != Power::Up
                            || head.claim.is_none_or(|claim| claim.instance != instance)
                    }),
                    Presence::Name => (0..2)
                        .all(|at| self.hosts[at].power != Power::Up || !self.claimed_by(head, at)),
                });
        // What is with a worker is in the queue as well, for the server.
        let pulled: u8 = self.hosts.iter().map(|host| host.unacknowledged).sum();
        let has_hint = self.queue + pulled > 0 || self.rules.others && self.lacks(Part::OwnHints);
        let known = Known {
            is_absent,
            has_hint,
            tail: self.log,
            wants_rerun: self.rules.rerun && self.reruns == 0,
        };
        match care(self.record, known) {
            Some(Care::HandOn(change)) if self.hands < self.rules.hands => {
                let mut after = self.clone();
                if after.apply(change).is_some() {
                    after.hands += 1;
                    // A janitor that is killed in between leaves the hint to the next.
                    steps.push((text("janitor hands on"), after));
                }
            }
            Some(Care::Hint) if !self.lacks(Part::HintAgain) => {
                let mut after = self.clone();
                after.publish_hint();
                steps.push((text("janitor: hint again"), after));
            }
            Some(Care::End(change)) if !self.lacks(Part::EndAgain) => {
                for (how, _, after) in self.request(Late::Change(change)) {
                    steps.push((Label(What::Text("janitor ends"), how), after));
                }
            }
            Some(Care::Fence(expected)) if !self.lacks(Part::Fence) => {
                let mut after = self.clone();
                after.publish_log(expected, Tag::GIVEN_UP, true);
                steps.push((text("janitor ends the log of what was given up"), after));
            }
            Some(Care::Rerun) if !self.lacks(Part::RerunAgain) => {
                for (how, _, after) in self.request(Late::Rerun) {
                    steps.push((Label(What::Text("janitor resubmits it"), how), after));
                }
            }
            _ => {}
        }
    }
}
