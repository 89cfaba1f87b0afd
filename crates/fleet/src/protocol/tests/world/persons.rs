//! What persons do, and what happens to the store.

use super::super::super::{Change, State};
use super::{Host, Power, Seen, Steps, World, text};

impl World {
    pub(super) fn persons_and_stores(&self, steps: &mut Steps) {
        if self.rules.cancel
            && !self.cancelled
            && let Some(change) = Change::cancel(self.record)
        {
            let mut after = self.clone();
            if after.apply(change).is_some() {
                after.cancelled = true;
                steps.push((text("cancelled, never started"), after));
            }
        }
        // Of a worker that is there, the cancel goes to it.
        let is_there = |host: &Host| host.power == Power::Up && host.carrier.is_some();
        if self.rules.stop
            && !self.record.stop
            && self.started == 0
            && self
                .record
                .head
                .is_some_and(|head| head.state == State::Started)
            && !self
                .hosts
                .iter()
                .any(|host| is_there(host) || host.spawned > 0)
        {
            let mut after = self.clone();
            after.older = after.record;
            after.record.revision += 1;
            after.record.stop = true;
            after.cancelled = true;
            steps.push((text("cancelled while the machine is not there"), after));
        }
        self.give_up(steps);
        if self.rules.gone
            && self
                .record
                .head
                .is_some_and(|head| head.state == State::Started)
            && let Some(mut gone) = self.fault()
        {
            (gone.record, gone.older) = (Seen::NOTHING, Seen::NOTHING);
            gone.is_gone = true;
            steps.push((text("the record is gone"), gone));
        }
        if self.rules.store_loses
            && self
                .record
                .head
                .is_some_and(|head| head.state == State::Started)
            && let Some(mut lost) = self.fault()
        {
            lost.record = self.older;
            steps.push((text("STORE loses the change to started"), lost));
        }
        if self.log.is_some()
            && !self.rules.store_loses
            && let Some(mut aged) = self.fault()
        {
            aged.log = None;
            steps.push((text("the log ages out"), aged));
        }
    }

    /// A person gives the run up.
    fn give_up(&self, steps: &mut Steps) {
        let Some(change) = Change::give_up(self.record).filter(|_| self.rules.give_up) else {
            return;
        };
        let at = (0..2).find(|at| self.claimed_by(change.head, *at));
        let is_up = at.is_some_and(|at| self.hosts[at].power == Power::Up);
        // A worker that is asleep is taken for absent.
        let Some(mut after) = (if is_up {
            self.fault()
        } else {
            Some(self.clone())
        }) else {
            return;
        };
        if after.apply(change).is_some() {
            // Of a runner that is under way, or a worker that is asleep, it is not known.
            let is_under_way = self.hosts.iter().any(|host| host.spawned > 0);
            after.cancelled |= self.started == 0 && !is_up && !is_under_way;
            steps.push((text("given up"), after));
        }
    }
}
