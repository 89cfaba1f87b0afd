//! What happens on the machines: a worker's way with a run, its runner, and their end.

use super::super::super::{Carrier, Change, Effect, Folder, Head, Next, Outcome, Seen, Step, Tag};
use super::{Answer, Label, Late, Part, Power, Steps, What, World, instance_of, on};

impl World {
    pub(super) fn lose(&self, at: usize, steps: &mut Steps) {
        let host = &self.hosts[at];
        if host.unacknowledged > 0 {
            let mut after = self.host(at, |host| host.unacknowledged = 0);
            after.queue = (after.queue + host.unacknowledged).min(2);
            // Of a worker that still works, it is a fault.
            if host.power == Power::Up && host.carrier.is_some() {
                if self.fault().is_some() {
                    after.faults += 1;
                    steps.push((on(at, "ack wait over"), after));
                }
            } else {
                steps.push((on(at, "ack wait over"), after));
            }
        }
        let Some(fault) = self.fault() else { return };
        if host.power == Power::Up {
            let killed = fault.host(at, |host| {
                host.power = Power::Down;
                host.kills += 1;
                host.carrier = None;
                host.is_refused = false;
            });
            steps.push((on(at, "worker is killed"), killed));
        }
        if host.power != Power::Gone {
            let gone = fault.host(at, |host| {
                host.power = Power::Gone;
                host.carrier = None;
                host.disk = None;
                host.spawned = 0;
                host.running = false;
            });
            steps.push((on(at, "machine is gone for good"), gone));
        }
    }

    pub(super) fn run(&self, at: usize, steps: &mut Steps) {
        let host = &self.hosts[at];
        if host.running {
            let after = self.host(at, |host| {
                host.running = false;
                host.ended = true;
            });
            steps.push((on(at, "agent ends"), after));
        }
        if host.spawned == 0 {
            return;
        }
        let can_begin = host.disk.is_some_and(|folder| !folder.has_begun)
            || host.disk.is_some() && self.lacks(Part::Begun);
        let mut after = self.host(at, |host| {
            host.spawned -= 1;
            if can_begin {
                host.running = true;
                if let Some(folder) = &mut host.disk {
                    folder.has_begun = true;
                }
            }
        });
        after.started += u8::from(can_begin);
        let what = if can_begin {
            "runner begins"
        } else {
            "second runner gives up"
        };
        steps.push((on(at, what), after));
        if let Some(fault) = self.fault() {
            let killed = fault.host(at, |host| host.spawned -= 1);
            steps.push((on(at, "runner is killed before it begins"), killed));
        }
    }

    pub(super) fn carry(&self, at: usize, steps: &mut Steps) {
        let host = &self.hosts[at];
        let instance = instance_of(at, host.kills);
        if host.power == Power::Down {
            let after = self.host(at, |host| {
                host.power = Power::Up;
                host.carrier = host.disk.and(host.advanced(Carrier::returned(instance)));
            });
            steps.push((on(at, "worker is back"), after));
        }
        if host.power != Power::Up {
            return;
        }
        let Some(carrier) = host.carrier else {
            // The machines are alike, so it is the first one that pulls first.
            let other = &self.hosts[0];
            let is_second = at == 1 && other.power == Power::Up && !other.has_pulled;
            if self.queue > 0 && !is_second {
                let mut after = self.host(at, |host| {
                    host.has_pulled = true;
                    host.unacknowledged += 1;
                    host.carrier = host.advanced(Carrier::pulled(instance));
                });
                after.queue -= 1;
                steps.push((on(at, "pulls"), after));
            }
            return;
        };
        let Next::Do(effect) = carrier.next() else {
            return;
        };
        let mut go = |how: &'static str, after: Self, outcome: Outcome| {
            let carrier = match (effect, outcome) {
                // Without the read after it.
                (Effect::Change(_), Outcome::Record(_)) => carrier.on(Outcome::NotStored),
                _ => carrier,
            };
            let after = after.host(at, |host| host.carrier = host.advanced(carrier.on(outcome)));
            steps.push((Label(What::Carrier(at, effect), how), after));
        };
        match effect {
            Effect::Look => {}
            Effect::Read => {
                for (how, seen, after) in self.reads() {
                    go(how, after, Outcome::Record(seen));
                }
            }
            Effect::Preflight => {
                // A nonce that no other claim has.
                let nonce = Tag::of(u128::from(self.record.revision) * 2 + at as u128 + 1);
                go("", self.clone(), Outcome::Ready(nonce));
            }
            Effect::Change(change) if change.step == Step::Resume && self.lacks(Part::Resume) => {
                go("", self.clone(), Outcome::Stored(self.record.revision));
            }
            Effect::Change(change) => self.change(change, &mut go),
            Effect::Acknowledge => {
                go(
                    "",
                    self.host(at, |host| host.unacknowledged = 0),
                    Outcome::Done,
                );
            }
            Effect::Release => {
                let mut after = self.host(at, |host| host.unacknowledged = 0);
                after.publish_hint();
                go("", after, Outcome::Done);
            }
            Effect::MakeFolder { nonce, revision } => {
                let folder = Folder {
                    nonce,
                    revision,
                    has_begun: false,
                    is_refused: false,
                };
                go(
                    "",
                    self.host(at, |host| host.disk = Some(folder)),
                    Outcome::Done,
                );
                if self.rules.full_disk
                    && let Some(full) = self.fault()
                {
                    go(": the disk is full", full, Outcome::NotStored);
                }
            }
            Effect::DropFolder => go("", self.host(at, |host| host.disk = None), Outcome::Done),
            Effect::Witness(nonce) => {
                for (how, answer, after) in self.request(Late::Witness(nonce)) {
                    let outcome = match answer {
                        Answer::Stored(number) => Outcome::Stored(number),
                        _ => Outcome::NotStored,
                    };
                    go(how, after, outcome);
                }
            }
            Effect::ReadWitness => go(
                "",
                self.clone(),
                Outcome::Witness(self.log.map(|tail| tail.nonce)),
            ),
            Effect::Spawn => {
                let spawns =
                    host.disk.is_some_and(|folder| !folder.has_begun) || self.lacks(Part::Begun);
                let after = self.host(at, |host| {
                    host.spawned = (host.spawned + u8::from(spawns)).min(2);
                });
                go("", after, Outcome::Done);
                if self.rules.refused_start
                    && host.spawned == 0
                    && host.disk.is_some_and(|folder| !folder.has_begun)
                    && let Some(refused) = self.fault()
                {
                    go(": refused", refused, Outcome::Refused);
                }
            }
            Effect::Refuse(_) => {
                let after = self.host(at, |host| {
                    if let Some(folder) = &mut host.disk
                        && !folder.has_begun
                    {
                        host.is_refused = true;
                        folder.is_refused = !self.lacks(Part::RefusalKept);
                    }
                });
                // Not while a runner may still begin.
                if host.spawned == 0 {
                    go("", after, Outcome::Done);
                }
            }
            // It waits for a runner that may still begin.
            Effect::Stop if host.spawned > 0 => {}
            Effect::Stop => {
                let after = self.host(at, |host| {
                    if !self.lacks(Part::StopGivenUp) {
                        host.ended |= host.running;
                        host.running = false;
                    }
                });
                go("", after, Outcome::Done);
            }
            Effect::Follow => {
                let never = host.disk.is_some_and(|folder| !folder.has_begun) && host.spawned == 0;
                let is_refused =
                    host.is_refused || host.disk.is_some_and(|folder| folder.is_refused);
                let Some(Folder { nonce, .. }) = host.disk else {
                    return;
                };
                if self.log.is_some_and(|tail| tail.nonce != nonce) {
                    go(": fenced", self.clone(), Outcome::Fenced);
                } else if is_refused || host.ended {
                    // The model of copies has what comes before the end.
                    let mut after = self.clone();
                    if !self.log.is_some_and(|tail| tail.is_end) {
                        let last = self.log.map_or(0, |tail| tail.number);
                        after.publish_log(last, nonce, true);
                    }
                    after.refused |= is_refused;
                    let how = if is_refused { ": no agent" } else { "" };
                    go(how, after, Outcome::Finished);
                } else if never {
                    go(": the runner is gone", self.clone(), Outcome::NeverBegun);
                }
            }
        }
    }

    fn change(&self, change: Change, go: &mut impl FnMut(&'static str, Self, Outcome)) {
        // What a carrier sees that takes silence for a refusal, and a refusal for the change of another one.
        let another = Outcome::Record(Seen {
            revision: u64::MAX,
            head: Some(Head::QUEUED),
            stop: false,
        });
        for (how, answer, after) in self.request(Late::Change(change)) {
            let outcome = match answer {
                Answer::Stored(revision) => Outcome::Stored(revision),
                Answer::Refused if self.lacks(Part::ReadAfterRefusal) => another,
                Answer::Silence if self.lacks(Part::ReadAfterSilence) => another,
                _ => Outcome::NotStored,
            };
            go(how, after, outcome);
        }
    }
}
