//! The way of a run on one machine.

use super::{Change, Claim, Head, Seen, Settled, State, Step, Tag};

/// What a machine's disk has of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Folder {
    /// The claim for which it was made.
    pub nonce: Tag,
    /// The revision of that claim's record.
    pub revision: u64,
    /// Whether the agent was started, which is written down before it is.
    pub has_begun: bool,
    /// Whether it was written down that no agent is started.
    pub is_refused: bool,
}

/// Why no agent is started for a run whose record is `started`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Reason {
    /// A person has wanted the run to stop.
    Stopped,
    /// The start has failed.
    Failed,
}

/// What a [`Carrier`] needs next. Each has the [`Outcome`]s that fit it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Effect {
    /// Look at the folder: `Folder`.
    Look,
    /// Read the record: `Record`.
    Read,
    /// Check that the run can be carried out here, without starting anything: `Ready`, `NotReady` or `Elsewhere`.
    Preflight,
    /// Change the record: `Stored` or `NotStored`.
    Change(Change),
    /// Acknowledge the hint, whether or not that arrives: `Done`.
    Acknowledge,
    /// Leave the hint to other workers: `Done`.
    Release,
    /// Make the folder of a claim, durably, in place of an older one: `Done`, or `NotStored`.
    MakeFolder {
        /// The claim.
        nonce: Tag,
        /// The revision of its record.
        revision: u64,
    },
    /// Remove the folder: `Done`.
    DropFolder,
    /// Publish the first message of the log, which expects that there is none: `Stored` or `NotStored`.
    Witness(Tag),
    /// Read the last message of the log: `Witness`.
    ReadWitness,
    /// Start the runner, unless it has begun: `Done`, or `Refused`. A runner begins once in the life of a folder.
    Spawn,
    /// Write into the folder, durably, that no agent is started, unless the runner has begun: `Done`.
    Refuse(Reason),
    /// Copy the log to its end, or the reason why no agent was started: `Finished`, `NeverBegun`, `Fenced` or `Vanished`.
    Follow,
    /// Stop the agent if it still runs, and wait for its end and for that of a runner that may still begin: `Done`.
    Stop,
}

/// What has come of an [`Effect`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Outcome {
    /// It is done.
    Done,
    /// What the disk has.
    Folder(Option<Folder>),
    /// What was read.
    Record(Seen),
    /// The run can be carried out here, by a claim with this new nonce.
    Ready(Tag),
    /// The run cannot be carried out here.
    NotReady,
    /// The run is for another worker, which its record names.
    Elsewhere,
    /// The change was made; the new revision. For the log, its number.
    Stored(u64),
    /// The change was refused, or there was no answer.
    NotStored,
    /// The claim of the log's last message; `None` if there is no message.
    Witness(Option<Tag>),
    /// No runner was started, and none will be by this attempt.
    Refused,
    /// The log has its end, and all of it was copied.
    Finished,
    /// The runner has ended before the agent was started.
    NeverBegun,
    /// The log has messages of another claim, or was ended because the run was given up.
    Fenced,
    /// The agent was started, and its log is gone from the disk.
    Vanished,
}

/// How the way of a run on a machine has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Verdict {
    /// There is no folder.
    Nothing,
    /// The record is not queued: the hint was of no use.
    NotQueued,
    /// The run cannot be carried out here.
    NotReady,
    /// The run is for another worker.
    Elsewhere,
    /// Another claim was first.
    Taken,
    /// The claim was handed on, or the run cancelled, before the start.
    HandedOn,
    /// The record is another claim's, but the run has begun here.
    NotMine,
    /// The record and a witness contradict each other.
    Conflict,
    /// The run has begun, and its log is gone; or a person has given it up, and its agent was stopped.
    Lost,
    /// The run has ended.
    Ended,
}

/// What comes next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// Do this.
    Do(Effect),
    /// Nothing more.
    Over(Verdict),
}

/// The way of a run on one machine: from a hint to the end, or from the folder that a killed worker has left.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Carrier {
    instance: Tag,
    /// Whether there is a hint that is not acknowledged.
    from_hint: bool,
    /// Whether a record that was read has the wish to stop.
    stop: bool,
    stage: Stage,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Stage {
    Look,
    Read(Option<Folder>),
    Preflight(Seen),
    Release,
    Change(Change),
    Settle(Change),
    Acknowledge(Then),
    MakeFolder(Claim, u64),
    DropFolder,
    Witness(Claim, u64),
    ReadWitness(Claim, u64),
    /// Before the start: whether there is one.
    Decide(Claim, u64),
    Spawn(Claim, u64),
    Refuse(Reason, Claim, u64),
    Follow(Claim, u64),
    Stop,
    /// What the record and the folder say is to be found out again: another one has changed the record of a run that may
    /// have begun here.
    Again,
    Over(Verdict),
}

/// What comes after an acknowledgement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Then {
    MakeFolder(Claim, u64),
    Over(Verdict),
}

impl Carrier {
    /// Begins with a hint that the worker with this instance has pulled.
    pub fn pulled(instance: Tag) -> Self {
        Self {
            instance,
            from_hint: true,
            stop: false,
            stage: Stage::Look,
        }
    }

    /// Begins with a folder that the worker with this instance has found when it was started.
    pub fn returned(instance: Tag) -> Self {
        Self {
            from_hint: false,
            ..Self::pulled(instance)
        }
    }

    /// Returns what is to be done next.
    pub fn next(self) -> Next {
        Next::Do(match self.stage {
            Stage::Look | Stage::Decide(..) | Stage::Again => Effect::Look,
            Stage::Read(_) | Stage::Settle(_) => Effect::Read,
            Stage::Preflight(_) => Effect::Preflight,
            Stage::Release => Effect::Release,
            Stage::Change(change) => Effect::Change(change),
            Stage::Acknowledge(_) => Effect::Acknowledge,
            Stage::MakeFolder(claim, revision) => Effect::MakeFolder {
                nonce: claim.nonce,
                revision,
            },
            Stage::DropFolder => Effect::DropFolder,
            Stage::Witness(claim, _) => Effect::Witness(claim.nonce),
            Stage::ReadWitness(..) => Effect::ReadWitness,
            Stage::Spawn(..) => Effect::Spawn,
            Stage::Refuse(reason, ..) => Effect::Refuse(reason),
            Stage::Follow(..) => Effect::Follow,
            Stage::Stop => Effect::Stop,
            Stage::Over(verdict) => return Next::Over(verdict),
        })
    }

    /// Continues with the outcome of what [`next`](Self::next) has named. One that does not fit it changes nothing.
    #[must_use]
    pub fn on(mut self, outcome: Outcome) -> Self {
        if let Outcome::Record(seen) = outcome {
            self.stop |= seen.stop;
        }
        let stage = match (self.stage, outcome) {
            (Stage::Look, Outcome::Folder(None)) if !self.from_hint => {
                Stage::Over(Verdict::Nothing)
            }
            (Stage::Look, Outcome::Folder(folder)) => Stage::Read(folder),
            (Stage::Read(folder), Outcome::Record(seen)) => match folder {
                Some(folder) if !self.from_hint => self.returned_record(folder, seen),
                folder => self.pulled_record(folder, seen),
            },
            (Stage::Preflight(seen), Outcome::Ready(nonce)) => {
                let claim = Claim {
                    instance: self.instance,
                    nonce,
                };
                Change::claim(seen, claim).map_or(self.stage, Stage::Change)
            }
            (Stage::Preflight(_), Outcome::NotReady) => Stage::Release,
            (Stage::Preflight(_), Outcome::Elsewhere) => self.acknowledge(Verdict::Elsewhere),
            (Stage::Release, Outcome::Done) => Stage::Over(Verdict::NotReady),
            (Stage::Change(change), Outcome::Stored(revision)) => self.changed(change, revision),
            (Stage::Change(change), Outcome::NotStored) => Stage::Settle(change),
            (Stage::Settle(change), Outcome::Record(seen)) => match change.settle(seen) {
                Settled::Done(revision) => self.changed(change, revision),
                Settled::Again(change) => Stage::Change(change),
                Settled::Another => self.refused(change),
            },
            (Stage::Acknowledge(Then::MakeFolder(claim, revision)), Outcome::Done) => {
                self.from_hint = false;
                Stage::MakeFolder(claim, revision)
            }
            (Stage::Acknowledge(Then::Over(verdict)), Outcome::Done) => Stage::Over(verdict),
            (Stage::MakeFolder(claim, revision), Outcome::Done) => {
                Stage::Change(Change::start(revision, claim))
            }
            (Stage::MakeFolder(claim, revision), Outcome::NotStored) => {
                let claimed = Seen {
                    revision,
                    head: Some(Head::claimed(State::Claimed, claim)),
                    ..Seen::NOTHING
                };
                Change::hand_on(claimed).map_or(self.stage, Stage::Change)
            }
            (Stage::DropFolder, Outcome::Done) => Stage::Over(Verdict::HandedOn),
            (Stage::Witness(claim, revision), Outcome::Stored(_)) => Stage::Decide(claim, revision),
            (Stage::Follow(claim, revision), Outcome::NeverBegun) => {
                Stage::Change(Change::resume(revision, claim))
            }
            (Stage::Witness(claim, revision), Outcome::NotStored) => {
                Stage::ReadWitness(claim, revision)
            }
            (Stage::ReadWitness(claim, revision), Outcome::Witness(last)) => match last {
                None => Stage::Witness(claim, revision),
                Some(nonce) if nonce == claim.nonce => Stage::Decide(claim, revision),
                Some(_) => Stage::Change(Change::conflict(revision, claim)),
            },
            (Stage::Decide(claim, revision), Outcome::Folder(folder)) => match folder {
                Some(folder) if !folder.has_begun && !folder.is_refused => {
                    if self.stop {
                        Stage::Refuse(Reason::Stopped, claim, revision)
                    } else {
                        Stage::Spawn(claim, revision)
                    }
                }
                _ => Stage::Follow(claim, revision),
            },
            (Stage::Spawn(claim, revision), Outcome::Refused) => {
                Stage::Refuse(Reason::Failed, claim, revision)
            }
            (Stage::Spawn(claim, revision) | Stage::Refuse(_, claim, revision), Outcome::Done) => {
                Stage::Follow(claim, revision)
            }
            (Stage::Follow(claim, revision), Outcome::Finished) => {
                Stage::Change(Change::end(revision, claim))
            }
            (Stage::Follow(claim, revision), Outcome::Vanished) => {
                Stage::Change(Change::lost(revision, claim))
            }
            (Stage::Follow(..), Outcome::Fenced) => Stage::Again,
            (Stage::Stop, Outcome::Done) => Stage::Over(Verdict::Lost),
            (stage, _) => stage,
        };
        match stage {
            Stage::Again => Self::returned(self.instance),
            stage => Self { stage, ..self },
        }
    }

    fn pulled_record(self, folder: Option<Folder>, seen: Seen) -> Stage {
        let is_queued = seen.head.is_some_and(|head| head.state == State::Queued);
        match folder {
            // It was started here, and the record has forgotten that.
            Some(folder) if is_queued && folder.has_begun => {
                let claim = Claim {
                    instance: self.instance,
                    nonce: folder.nonce,
                };
                Stage::Change(Change::conflict(seen.revision, claim))
            }
            _ if is_queued => Stage::Preflight(seen),
            // A stale read: the record is older than its hint.
            _ if seen == Seen::NOTHING => Stage::Release,
            _ => self.acknowledge(Verdict::NotQueued),
        }
    }

    fn changed(self, change: Change, revision: u64) -> Stage {
        match (change.step, change.head.claim) {
            (Step::Claim, Some(claim)) => Stage::Acknowledge(Then::MakeFolder(claim, revision)),
            (Step::Start | Step::Resume, Some(claim)) => Stage::Witness(claim, revision),
            (Step::End, _) => Stage::Over(Verdict::Ended),
            (Step::HandOn, _) => Stage::Over(Verdict::HandedOn),
            (Step::GiveUp, _) => Stage::Over(Verdict::Lost),
            _ => self.acknowledge(Verdict::Conflict),
        }
    }

    fn refused(self, change: Change) -> Stage {
        match change.step {
            Step::Start => Stage::DropFolder,
            Step::Resume | Step::End | Step::GiveUp => Stage::Again,
            Step::Conflict if !self.from_hint => Stage::Again,
            Step::HandOn => Stage::Over(Verdict::HandedOn),
            _ => self.acknowledge(Verdict::Taken),
        }
    }

    fn acknowledge(self, verdict: Verdict) -> Stage {
        if self.from_hint {
            Stage::Acknowledge(Then::Over(verdict))
        } else {
            Stage::Over(verdict)
        }
    }

    /// Decides what a worker does with a folder that it finds when it is started.
    fn returned_record(self, folder: Folder, seen: Seen) -> Stage {
        // Older than the claim: a stale read.
        if seen.revision < folder.revision {
            return Stage::Read(Some(folder));
        }
        let is_decided = folder.has_begun || folder.is_refused;
        match seen.head {
            Some(Head {
                state,
                claim: Some(claim),
            }) if claim.nonce == folder.nonce => match state {
                State::Claimed => Stage::Change(Change::start(seen.revision, claim)),
                State::Started if is_decided => Stage::Witness(claim, seen.revision),
                State::Started => {
                    let claim = Claim {
                        instance: self.instance,
                        ..claim
                    };
                    Stage::Change(Change::resume(seen.revision, claim))
                }
                State::Ended => Stage::Over(Verdict::Ended),
                // A runner may have begun since the folder was looked at.
                State::Lost => Stage::Stop,
                _ if folder.has_begun => Stage::Over(Verdict::Conflict),
                _ => Stage::DropFolder,
            },
            _ if folder.has_begun => Stage::Over(Verdict::NotMine),
            _ => Stage::DropFolder,
        }
    }
}
