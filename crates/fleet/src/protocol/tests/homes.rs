//! Two runs of one conversation, and two workers that may be killed at any moment. Their agents go on then.

use std::fmt::{self, Display};

use super::super::{Conversation, Home, LastRun, SeenHome, Settle, settle};
use super::explore::{Found, Model};

/// State of a run's record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Record {
    /// Perhaps for one worker.
    Queued(Option<usize>),
    /// By this process of a worker.
    Claimed(usize, u8),
    Started(usize),
    Ended,
}

/// How far a worker is with a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Stage {
    Nothing,
    /// The revision of its record is known.
    Pulled(u8),
    Store(u8, u64),
    Claim(u8),
    Start(u8),
    Follow,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Worker {
    is_up: bool,
    kills: u8,
    stages: [Stage; 2],
    /// The run that the process has under way.
    busy: Option<usize>,
    /// The agents that work.
    agents: [bool; 2],
}

/// A request under way for which nothing waits any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Late {
    Entry(u64, Home<usize>),
    Claim {
        run: usize,
        expected: u8,
        worker: usize,
        kills: u8,
    },
}

/// A part of the protocol that can be taken out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum HomePart {
    /// Entries expect a revision.
    Expected,
    /// A worker has one run of a conversation under way.
    OneAtATime,
    /// A conversation is moved only after its last run.
    OverBeforeMove,
    /// The run's own record is read after the entry.
    OwnRun,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Homes {
    entry: SeenHome<usize>,
    older: SeenHome<usize>,
    records: [(u8, Record); 2],
    wants: [Conversation; 2],
    workers: [Worker; 2],
    late: Vec<Late>,
    /// Where the conversation began or was begun again.
    place: Option<usize>,
    found: Option<Found>,
    faults: u8,
    limit: u8,
    without: Option<HomePart>,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Label(&'static str, usize, usize);

impl Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(what, worker, run) = self;
        write!(f, "worker {worker}, run {run}: {what}")
    }
}

type Steps = Vec<(Label, Homes)>;

impl Homes {
    pub(super) fn new(limit: u8, second: Conversation) -> Self {
        let worker = Worker {
            is_up: true,
            kills: 0,
            stages: [Stage::Nothing; 2],
            busy: None,
            agents: [false; 2],
        };
        let none = SeenHome {
            revision: 0,
            home: None,
        };
        Self {
            entry: none,
            older: none,
            records: [(1, Record::Queued(None)); 2],
            wants: [Conversation::Key, second],
            workers: [worker; 2],
            late: Vec::new(),
            place: None,
            found: None,
            faults: 0,
            limit,
            without: None,
        }
    }

    pub(super) fn without(mut self, part: HomePart) -> Self {
        self.without = Some(part);
        self
    }

    fn fault(&self) -> Option<Self> {
        (self.faults < self.limit).then(|| Self {
            faults: self.faults + 1,
            ..self.clone()
        })
    }

    fn lacks(&self, part: HomePart) -> bool {
        self.without == Some(part)
    }

    fn at(&self, worker: usize, run: usize, stage: Stage) -> Self {
        let mut after = self.clone();
        after.workers[worker].stages[run] = stage;
        if stage == Stage::Nothing && after.workers[worker].busy == Some(run) {
            after.workers[worker].busy = None;
        }
        after
    }

    fn set(&mut self, run: usize, record: Record) -> u8 {
        self.records[run] = (self.records[run].0 + 1, record);
        self.records[run].0
    }

    fn apply(&mut self, late: Late) -> bool {
        match late {
            Late::Entry(expected, home) => {
                let fits = self.entry.revision == expected || self.lacks(HomePart::Expected);
                if fits {
                    self.older = self.entry;
                    self.entry = SeenHome {
                        revision: self.entry.revision + 1,
                        home: Some(home),
                    };
                }
                fits
            }
            Late::Claim {
                run,
                expected,
                worker,
                kills,
            } => {
                let fits = self.records[run].0 == expected;
                if fits {
                    self.set(run, Record::Claimed(worker, kills));
                }
                fits
            }
        }
    }

    fn begin(&mut self, worker: usize, run: usize) {
        if self
            .workers
            .iter()
            .any(|worker| worker.agents.contains(&true))
        {
            self.found = Some(Found::Together);
        } else if self.place.is_some_and(|place| place != worker)
            && self.wants[run] != Conversation::NewSession
        {
            self.found = Some(Found::Apart);
        }
        self.place = Some(worker);
        self.workers[worker].agents[run] = true;
    }

    /// All that can come of a request of a worker, which continues in one of these stages.
    fn request(
        &self,
        (at, run): (usize, usize),
        late: Late,
        done: Stage,
        refused: Stage,
        steps: &mut Steps,
    ) {
        let mut after = self.clone();
        let next = if after.apply(late) { done } else { refused };
        steps.push((Label("request", at, run), after.at(at, run, next)));
        if let Some(lost) = self.fault() {
            let mut delayed = lost.clone();
            delayed.late.push(late);
            steps.push((
                Label("request, delayed", at, run),
                delayed.at(at, run, refused),
            ));
            let mut lost = lost;
            lost.apply(late);
            steps.push((
                Label("request, answer lost", at, run),
                lost.at(at, run, refused),
            ));
        }
    }

    fn last(&self, home: Option<Home<usize>>) -> LastRun {
        home.map_or(LastRun::Over, |home| self.state(home.run))
    }

    fn state(&self, run: usize) -> LastRun {
        match self.records[run].1 {
            Record::Ended => LastRun::Over,
            Record::Queued(_) => LastRun::Queued,
            _ => LastRun::Live,
        }
    }

    fn decide(&self, at: usize, run: usize, revision: u8, steps: &mut Steps) {
        let mut reads = vec![("reads the entry", self.entry, self.clone())];
        if self.older != self.entry
            && let Some(stale) = self.fault()
        {
            reads.push(("reads an older entry", self.older, stale));
        }
        for (what, seen, world) in reads {
            let is_gone = seen
                .home
                .is_some_and(|home| !self.workers[home.worker].is_up);
            let mut beliefs = vec![(is_gone, world.clone())];
            if !is_gone
                && self.wants[run] == Conversation::NewSession
                && let Some(wrong) = world.fault()
            {
                beliefs.push((true, wrong));
            }
            for (is_absent, mut world) in beliefs {
                let last = if self.lacks(HomePart::OverBeforeMove) {
                    LastRun::Over
                } else {
                    self.last(seen.home)
                };
                let own = if self.lacks(HomePart::OwnRun) {
                    LastRun::Queued
                } else {
                    self.state(run)
                };
                let stage = match settle(&seen, &at, &run, self.wants[run], own, last, is_absent) {
                    Settle::Take(expected) => Stage::Store(revision, expected),
                    Settle::Forward(other) => {
                        if world.records[run].0 == revision {
                            world.set(run, Record::Queued(Some(other)));
                        }
                        Stage::Nothing
                    }
                    Settle::Busy(_) | Settle::Unknown | Settle::Taken => Stage::Nothing,
                };
                steps.push((Label(what, at, run), world.at(at, run, stage)));
            }
        }
    }

    fn work(&self, at: usize, run: usize, steps: &mut Steps) {
        let worker = &self.workers[at];
        let (revision, record) = self.records[run];
        match worker.stages[run] {
            Stage::Nothing => {
                let is_free = worker.busy.is_none() || self.lacks(HomePart::OneAtATime);
                if let Record::Queued(place) = record
                    && is_free
                    && place.is_none_or(|place| place == at)
                {
                    let mut after = self.at(at, run, Stage::Pulled(revision));
                    after.workers[at].busy = Some(run);
                    steps.push((Label("pulls", at, run), after));
                }
            }
            Stage::Pulled(revision) => self.decide(at, run, revision, steps),
            Stage::Store(revision, expected) => {
                let late = Late::Entry(expected, Home { worker: at, run });
                let (done, again) = (Stage::Claim(revision), Stage::Pulled(revision));
                self.request((at, run), late, done, again, steps);
            }
            Stage::Claim(expected) => {
                let late = Late::Claim {
                    run,
                    expected,
                    worker: at,
                    kills: worker.kills,
                };
                self.request(
                    (at, run),
                    late,
                    Stage::Start(expected + 1),
                    Stage::Nothing,
                    steps,
                );
            }
            Stage::Start(expected) => {
                let stage = if revision == expected {
                    Stage::Follow
                } else {
                    Stage::Nothing
                };
                let mut after = self.at(at, run, stage);
                if stage == Stage::Follow {
                    after.set(run, Record::Started(at));
                    after.begin(at, run);
                }
                steps.push((Label("starts", at, run), after));
            }
            Stage::Follow if !worker.agents[run] => {
                let mut after = self.at(at, run, Stage::Nothing);
                after.set(run, Record::Ended);
                steps.push((Label("ends the record", at, run), after));
            }
            Stage::Follow => {}
        }
    }
}

impl Model for Homes {
    type Label = Label;

    fn steps(&self) -> Steps {
        let mut steps = Vec::new();
        for (index, late) in self.late.iter().enumerate() {
            let mut after = self.clone();
            after.late.remove(index);
            after.apply(*late);
            steps.push((Label("a late request arrives", index, 0), after));
        }
        for at in 0..2 {
            let worker = &self.workers[at];
            if worker.is_up {
                if let Some(mut killed) = self.fault() {
                    let killed_worker = &mut killed.workers[at];
                    killed_worker.is_up = false;
                    killed_worker.kills += 1;
                    killed_worker.stages = [Stage::Nothing; 2];
                    killed_worker.busy = None;
                    steps.push((Label("the worker is killed", at, 0), killed));
                }
            } else {
                let mut back = self.clone();
                let returned = &mut back.workers[at];
                returned.is_up = true;
                for run in 0..2 {
                    if self.records[run].1 == Record::Started(at) {
                        returned.stages[run] = Stage::Follow;
                        returned.busy = Some(run);
                    }
                }
                steps.push((Label("the worker is back", at, 0), back));
            }
            for run in 0..2 {
                if worker.agents[run] {
                    let mut after = self.clone();
                    after.workers[at].agents[run] = false;
                    steps.push((Label("the agent ends", at, run), after));
                }
                if worker.is_up {
                    self.work(at, run, &mut steps);
                }
                let (_, record) = self.records[run];
                if let Record::Claimed(by, kills) = record
                    && by == at
                    && (!worker.is_up
                        || worker.kills != kills
                        || !matches!(worker.stages[run], Stage::Start(_)))
                {
                    let mut after = self.clone();
                    after.set(run, Record::Queued(None));
                    steps.push((Label("the claim is handed on", at, run), after));
                }
            }
        }
        steps
    }

    fn faults(&self) -> u8 {
        self.faults
    }

    fn violation(&self) -> Option<Found> {
        self.found
    }

    fn is_named(&self) -> bool {
        self.records
            .iter()
            .all(|(_, record)| *record == Record::Ended)
    }
}
