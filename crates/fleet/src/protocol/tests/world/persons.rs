//! What persons do, and what happens to the store.

use super::super::super::{Change, State};
use super::{Host, Power, Steps, World, text};

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
}
