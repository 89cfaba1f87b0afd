//! The store, two machines, a submitter, and what can happen to them.

mod janitor;
mod label;
mod machines;
mod persons;
mod store;
mod submitter;

use std::hash::{Hash, Hasher};

use super::super::{
    Carrier, Change, Effect, Folder, Head, Next, Outcome, Seen, State, Submission, Tag, Tail,
};
use super::explore::{Found, Model};
pub(super) use label::Label;
use label::{What, on, text};

/// What may happen beside the usual.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Kind {
    /// A person cancels the run before it is started.
    Cancel,
    /// The submitter repeats its request.
    Repeat,
    /// A person cancels a started run whose machine is not there, before the agent starts.
    Stop,
    /// A fault: the start of the runner is refused on this machine, and not the next time.
    RefusedStart,
    /// The queue has hints of other runs.
    Others,
    /// A fault: the queue is full.
    Full,
    /// A fault: the disk of a machine is full.
    FullDisk,
    /// A fault: the store loses an acknowledged change of the record.
    StoreLoses,
    /// A person gives a started run up whose machine is not there. As a fault, its worker is only asleep.
    GiveUp,
    /// The same, and the run is to be resubmitted then.
    Rerun,
    /// A fault: the record is gone for good, without a marker.
    Gone,
    /// The queue is that of machines: a new hint takes the place of the run's old one, which is not delivered any more.
    Replaced,
}

/// A part of the protocol that can be taken out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Part {
    /// Changes expect a revision.
    Expected,
    /// The first message of the log expects that there is none.
    Witness,
    /// A folder begins once.
    Begun,
    /// After silence, the record is read.
    ReadAfterSilence,
    /// After a refusal, the record is read.
    ReadAfterRefusal,
    /// The janitor publishes hints again.
    HintAgain,
    /// The janitor knows the run's own hints from those of others.
    OwnHints,
    /// A run that the queue has refused is cancelled.
    Withdraw,
    /// That no agent is started is on the disk before it is reported.
    RefusalKept,
    /// A worker that is back changes the record before the agent starts, so it knows of the wish to stop.
    Resume,
    /// The janitor ends a run whose log has its end.
    EndAgain,
    /// The log of a run that was given up gets an end of its own.
    Fence,
    /// A worker that is back stops the agent of a run that was given up.
    StopGivenUp,
    /// The janitor resubmits a run.
    RerunAgain,
    /// A record that is gone is not taken for a stale read.
    Patience,
}

/// What the janitor knows about a claiming process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Presence {
    /// Nothing: it may take any process for absent at any moment.
    Unknown,
    /// This process.
    Instance,
    /// Any process of the worker.
    Name,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Power {
    Up,
    Down,
    Gone,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Host {
    power: Power,
    /// How often its worker was killed.
    kills: u8,
    has_pulled: bool,
    carrier: Option<Carrier>,
    disk: Option<Folder>,
    /// Runners that were spawned and have not begun.
    spawned: u8,
    /// The worker knows that no agent is started.
    is_refused: bool,
    running: bool,
    ended: bool,
    /// Hints that were pulled and not acknowledged.
    unacknowledged: u8,
}

impl Host {
    /// Does what concerns this machine alone, which no other step can tell from what comes after it.
    fn advanced(&self, mut carrier: Carrier) -> Option<Carrier> {
        loop {
            carrier = match carrier.next() {
                Next::Do(Effect::Look) => carrier.on(Outcome::Folder(self.disk)),
                Next::Over(_) => return None,
                Next::Do(_) => return Some(carrier),
            };
        }
    }
}

/// A request under way for which nothing waits any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Late {
    Change(Change),
    Hint,
    Witness(Tag),
    Rerun,
}

/// The answer to a request.
#[derive(Debug, Clone, Copy)]
enum Answer {
    Stored(u64),
    Refused,
    Silence,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Submitter {
    Works(Submission),
    Acknowledged,
    Gone,
}

/// The state of everything.
#[derive(Debug, Clone)]
pub(super) struct World {
    record: Seen,
    /// What a stale read returns.
    older: Seen,
    /// The last message of the log.
    log: Option<Tail>,
    queue: u8,
    late: Vec<Late>,
    hosts: [Host; 2],
    submitter: Submitter,
    repeated: bool,
    started: u8,
    /// A person was shown that the agent was not started.
    cancelled: bool,
    /// Records of the run that was resubmitted.
    reruns: u8,
    /// The record was lost.
    is_gone: bool,
    /// The log had its end, and got another entry.
    continued: bool,
    /// The run was refused, or its log has the end of a run for which no agent was started.
    refused: bool,
    hands: u8,
    faults: u8,
    rules: Rules,
}

impl Hash for World {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        // Without the rules, which are the same in all states.
        (self.record, self.older, self.log, self.queue, &self.late).hash(hasher);
        (self.hosts, self.submitter, self.repeated, self.started).hash(hasher);
        (self.cancelled, self.refused, self.hands, self.faults).hash(hasher);
        (self.reruns, self.is_gone, self.continued).hash(hasher);
    }
}

/// What does not change.
#[derive(Debug, Clone, Copy)]
struct Rules {
    faults: u8,
    hands: u8,
    presence: Presence,
    cancel: bool,
    stop: bool,
    refused_start: bool,
    others: bool,
    full: bool,
    full_disk: bool,
    repeat: bool,
    store_loses: bool,
    give_up: bool,
    rerun: bool,
    gone: bool,
    replaced: bool,
    without: Option<Part>,
}

/// Steps from a state, and the states after them.
type Steps = Vec<(Label, World)>;

impl Model for World {
    type Label = Label;

    fn steps(&self) -> Steps {
        let mut steps = Vec::new();
        self.submit(&mut steps);
        self.arrive_late(&mut steps);
        self.repair(&mut steps);
        for at in 0..2 {
            self.carry(at, &mut steps);
            self.run(at, &mut steps);
            self.lose(at, &mut steps);
        }
        self.persons_and_stores(&mut steps);
        steps
    }

    fn faults(&self) -> u8 {
        self.faults
    }

    fn violation(&self) -> Option<Found> {
        let is_lost = (self.record.head).is_some_and(|head| head.state == State::Lost);
        let is_left = |host: &Host| host.running && host.carrier.is_none();
        if self.started > 1 || self.reruns > 1 {
            Some(Found::Twice)
        } else if is_lost
            && (self.hosts.iter()).any(|host| host.power == Power::Up && is_left(host))
        {
            Some(Found::Unwatched)
        } else if self.continued {
            Some(Found::Continued)
        } else if (self.cancelled || self.refused) && self.started > 0 {
            Some(Found::Untrue)
        } else {
            None
        }
    }

    fn is_named(&self) -> bool {
        let all_gone = self.hosts.iter().all(|host| host.power == Power::Gone);
        let Some(head) = self.record.head else {
            // Not acknowledged, or lost: then no slot may be taken.
            let is_free = self.hosts.iter().all(|host| host.carrier.is_none());
            return is_free && (self.is_gone || self.submitter == Submitter::Gone);
        };
        match head.state {
            // It waits, and the reason is shown: no worker.
            State::Queued => all_gone,
            // Only in the model is a claim handed on a limited number of times.
            State::Claimed => {
                self.hands >= self.rules.hands && self.rules.presence == Presence::Unknown
            }
            // Shown as unknown: its machine does not report. What has ended is not.
            State::Started => {
                !self
                    .log
                    .is_some_and(|tail| tail.is_end && head.is_of(tail.nonce))
                    && (0..2)
                        .any(|at| self.hosts[at].power == Power::Gone && self.claimed_by(head, at))
            }
            // Its readers have an end.
            State::Lost => {
                (self.reruns > 0 || !self.rules.rerun) && self.log.is_some_and(|tail| tail.is_end)
            }
            _ => true,
        }
    }
}

impl World {
    pub(super) fn new(faults: u8) -> Self {
        let host = Host {
            power: Power::Up,
            kills: 0,
            has_pulled: false,
            carrier: None,
            disk: None,
            spawned: 0,
            is_refused: false,
            running: false,
            ended: false,
            unacknowledged: 0,
        };
        Self {
            record: Seen::NOTHING,
            older: Seen::NOTHING,
            log: None,
            queue: 0,
            late: Vec::new(),
            hosts: [host; 2],
            submitter: Submitter::Works(Submission::new()),
            repeated: false,
            started: 0,
            cancelled: false,
            reruns: 0,
            is_gone: false,
            continued: false,
            refused: false,
            hands: 0,
            faults: 0,
            rules: Rules {
                faults,
                hands: 1,
                presence: Presence::Unknown,
                cancel: false,
                stop: false,
                refused_start: false,
                others: false,
                full: false,
                full_disk: false,
                repeat: false,
                store_loses: false,
                give_up: false,
                rerun: false,
                gone: false,
                replaced: false,
                without: None,
            },
        }
    }

    pub(super) fn with(mut self, kind: Kind) -> Self {
        match kind {
            Kind::Cancel => self.rules.cancel = true,
            Kind::Stop => self.rules.stop = true,
            Kind::RefusedStart => self.rules.refused_start = true,
            Kind::Full => self.rules.full = true,
            Kind::FullDisk => self.rules.full_disk = true,
            Kind::Others => self.rules.others = true,
            Kind::Repeat => self.rules.repeat = true,
            Kind::StoreLoses => self.rules.store_loses = true,
            Kind::GiveUp => self.rules.give_up = true,
            Kind::Rerun => (self.rules.give_up, self.rules.rerun) = (true, true),
            Kind::Gone => self.rules.gone = true,
            Kind::Replaced => self.rules.replaced = true,
        }
        self
    }

    pub(super) fn without(mut self, part: Part) -> Self {
        self.rules.without = Some(part);
        self
    }

    pub(super) fn presence(mut self, presence: Presence) -> Self {
        self.rules.presence = presence;
        // A claim is handed on once for each process that is gone.
        self.rules.hands = self.rules.faults;
        self
    }

    fn lacks(&self, part: Part) -> bool {
        self.rules.without == Some(part)
    }

    fn claimed_by(&self, head: Head, at: usize) -> bool {
        let instance = head.claim.map(|claim| claim.instance);
        (0..=self.hosts[at].kills).any(|kills| instance == Some(instance_of(at, kills)))
    }

    fn fault(&self) -> Option<Self> {
        (self.faults < self.rules.faults).then(|| {
            let mut after = self.clone();
            after.faults += 1;
            after
        })
    }

    fn host(&self, at: usize, change: impl FnOnce(&mut Host)) -> Self {
        let mut after = self.clone();
        change(&mut after.hosts[at]);
        after
    }
}

fn instance_of(at: usize, kills: u8) -> Tag {
    Tag::of(100 * (at as u128 + 1) + u128::from(kills))
}
