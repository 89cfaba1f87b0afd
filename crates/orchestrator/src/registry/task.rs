//! The task that owns the runs, the slots and the holds.

use std::collections::{BTreeMap, HashMap};
use std::future::pending;
use std::time::Duration;

use teamster_core::{AbortHandle, Id};
use tokio::sync::{mpsc, oneshot};

use super::schedule::{Held, Key, Schedule};
use super::{ActiveRun, Limits, RunPhase, Update};
use crate::Clock;

/// The longest sleep before the clock is looked at again. The clock of a hold's end may be put
/// forward, and advances while the machine sleeps; the clock of the sleep does not.
const LONGEST_SLEEP: Duration = Duration::from_mins(1);

#[derive(Debug)]
pub(super) enum Command {
    /// Answers whether the run's id was free.
    Register {
        number: u64,
        run: NewRun,
        reply: oneshot::Sender<bool>,
    },
    Update {
        number: u64,
        update: Update,
    },
    /// Answers when the slot is granted.
    Join {
        wanted: Wanted,
        reply: oneshot::Sender<()>,
    },
    /// Releases the number of a registration, a ticket or a slot.
    Drop(u64),
    Abort {
        run_id: Id,
        reply: oneshot::Sender<bool>,
    },
    AbortAll(oneshot::Sender<usize>),
    IsActive {
        run_id: Id,
        reply: oneshot::Sender<bool>,
    },
    Active(oneshot::Sender<Vec<ActiveRun>>),
    Hold(Held),
    /// Answers whether there was such a hold.
    Release {
        group: Id,
        reply: oneshot::Sender<bool>,
    },
    #[cfg(test)]
    Held {
        key: Key,
        reply: oneshot::Sender<Option<Held>>,
    },
    Holds(oneshot::Sender<Vec<Held>>),
    /// Answers whether no state of any run remains.
    #[cfg(test)]
    IsIdle(oneshot::Sender<bool>),
}

#[derive(Debug)]
pub(super) struct NewRun {
    pub(super) run_id: Id,
    pub(super) provider: String,
    pub(super) model: Option<String>,
    pub(super) abort: AbortHandle,
}

#[derive(Debug)]
pub(super) struct Wanted {
    pub(super) ticket: u64,
    /// The number of the run's registration.
    pub(super) run: u64,
    pub(super) group: Key,
    pub(super) queue: Id,
    /// Receives the reason of the wait.
    pub(super) waits: mpsc::UnboundedSender<Option<Held>>,
}

/// Executes commands until every sender is dropped.
pub(super) async fn run(
    limits: Limits,
    clock: Clock,
    mut commands: mpsc::UnboundedReceiver<Command>,
) {
    debug_assert!(limits.check().is_ok(), "limits are checked by the caller");
    let mut state = State {
        schedule: Schedule::new(limits),
        now_ms: clock(),
        clock,
        runs: BTreeMap::new(),
        by_id: HashMap::new(),
        waiters: HashMap::new(),
    };
    loop {
        let received = tokio::select! {
            biased;
            command = commands.recv() => match command {
                Some(command) => Some(command),
                None => return,
            },
            () = sleep(state.sleep()) => None,
        };
        // Done before a command too, so that no command sees an expired hold.
        state.look_at_clock();
        if let Some(command) = received {
            state.obey(command);
        }
    }
}

async fn sleep(duration: Option<Duration>) {
    match duration {
        Some(duration) => tokio::time::sleep(duration).await,
        None => pending().await,
    }
}

struct State {
    schedule: Schedule,
    clock: Clock,
    now_ms: u64,
    /// Runs by the number of their registration, which increases.
    runs: BTreeMap<u64, Run>,
    by_id: HashMap<Id, u64>,
    /// Waiters for a slot, by ticket.
    waiters: HashMap<u64, Waiter>,
}

struct Run {
    active: ActiveRun,
    abort: AbortHandle,
}

struct Waiter {
    run: u64,
    reply: oneshot::Sender<()>,
    waits: mpsc::UnboundedSender<Option<Held>>,
}

impl Run {
    fn set_phase(&mut self, phase: RunPhase, until_ms: Option<u64>, now_ms: u64) {
        // A run may be aborted without this task, and its agent keeps reporting while it stops.
        if self.abort.is_aborted() {
            self.active.set_phase(RunPhase::Stopping, None, now_ms);
        } else {
            self.active.set_phase(phase, until_ms, now_ms);
        }
    }

    fn update(&mut self, update: Update, now_ms: u64) {
        match update {
            Update::Phase(phase) => self.set_phase(phase, None, now_ms),
            Update::WaitingUntil(until) => {
                self.set_phase(RunPhase::Waiting, Some(until), now_ms);
            }
            Update::Attempt {
                attempt,
                provider,
                model,
                session_id,
            } => {
                self.active.attempt = attempt;
                self.active.provider = provider;
                self.active.model = model;
                self.active.session_id = session_id;
            }
            Update::Session { session_id, model } => {
                self.active.session_id = Some(session_id);
                if model.is_some() {
                    self.active.model = model;
                }
            }
        }
    }
}

impl State {
    /// Returns the time until the next expiry, or `None` if there is none.
    fn sleep(&self) -> Option<Duration> {
        let until = self.schedule.next_release()?;
        // `now_ms` may be outdated after a long command.
        let left = until.saturating_sub((self.clock)());
        Some(Duration::from_millis(left).min(LONGEST_SLEEP))
    }

    fn look_at_clock(&mut self) {
        self.now_ms = (self.clock)();
        let released = self.schedule.expire(self.now_ms);
        for key in &released {
            self.update_waiting(key);
        }
        if !released.is_empty() {
            self.grant();
        }
    }

    fn obey(&mut self, command: Command) {
        // An answer that no caller waits for has no effect: its guard releases what was granted.
        match command {
            Command::Register { number, run, reply } => {
                let _ = reply.send(self.register(number, run));
            }
            Command::Update { number, update } => {
                if let Some(run) = self.runs.get_mut(&number) {
                    run.update(update, self.now_ms);
                }
            }
            Command::Join { wanted, reply } => self.join(wanted, reply),
            Command::Drop(number) => self.remove(number),
            Command::Abort { run_id, reply } => {
                let _ = reply.send(self.abort(&run_id));
            }
            Command::AbortAll(reply) => {
                for run in self.runs.values_mut() {
                    abort(run, self.now_ms);
                }
                let _ = reply.send(self.runs.len());
            }
            Command::IsActive { run_id, reply } => {
                let _ = reply.send(self.by_id.contains_key(&run_id));
            }
            Command::Active(reply) => {
                let _ = reply.send(self.active());
            }
            Command::Hold(hold) => self.hold(hold),
            Command::Release { group, reply } => {
                let _ = reply.send(self.release(&group));
            }
            #[cfg(test)]
            Command::Held { key, reply } => {
                let _ = reply.send(self.schedule.held(&key).cloned());
            }
            Command::Holds(reply) => {
                let _ = reply.send(self.schedule.holds().cloned().collect());
            }
            #[cfg(test)]
            Command::IsIdle(reply) => {
                let _ = reply.send(
                    self.schedule.is_idle()
                        && self.runs.is_empty()
                        && self.by_id.is_empty()
                        && self.waiters.is_empty(),
                );
            }
        }
    }

    fn register(&mut self, number: u64, run: NewRun) -> bool {
        if self.by_id.contains_key(&run.run_id) {
            return false;
        }
        self.by_id.insert(run.run_id.clone(), number);
        let active = ActiveRun {
            run_id: run.run_id,
            provider: run.provider,
            model: run.model,
            session_id: None,
            attempt: 1,
            phase: RunPhase::Queued,
            since_ms: self.now_ms,
            until_ms: None,
            started_ms: self.now_ms,
        };
        let abort = run.abort;
        self.runs.insert(number, Run { active, abort });
        true
    }

    fn join(&mut self, wanted: Wanted, reply: oneshot::Sender<()>) {
        let Wanted {
            ticket,
            run,
            group,
            queue,
            waits,
        } = wanted;
        self.schedule.join(ticket, group.clone(), queue);
        self.waiters.insert(ticket, Waiter { run, reply, waits });
        self.grant();
        if self.schedule.waits(ticket) {
            self.tell_that_it_waits(ticket, &group);
        }
    }

    fn remove(&mut self, number: u64) {
        if let Some(run) = self.runs.remove(&number) {
            self.by_id.remove(&run.active.run_id);
        }
        self.waiters.remove(&number);
        if self.schedule.leave(number) {
            self.grant();
        }
    }

    fn abort(&mut self, run_id: &Id) -> bool {
        let number = self.by_id.get(run_id);
        match number.and_then(|number| self.runs.get_mut(number)) {
            Some(run) => {
                abort(run, self.now_ms);
                true
            }
            None => false,
        }
    }

    fn active(&mut self) -> Vec<ActiveRun> {
        let now_ms = self.now_ms;
        self.runs
            .values_mut()
            .map(|run| {
                let (phase, until_ms) = (run.active.phase, run.active.until_ms);
                run.set_phase(phase, until_ms, now_ms);
                run.active.clone()
            })
            .collect()
    }

    fn hold(&mut self, hold: Held) {
        let key = hold.key();
        if hold.until_ms > self.now_ms && self.schedule.hold(hold) {
            self.update_waiting(&key);
        }
    }

    fn release(&mut self, group: &Id) -> bool {
        let released = self.schedule.release(group);
        for key in &released {
            self.update_waiting(key);
        }
        self.grant();
        !released.is_empty()
    }

    /// Grants every slot that can be granted. Called after every change that may make room.
    fn grant(&mut self) {
        while let Some(ticket) = self.schedule.next() {
            let Some(waiter) = self.waiters.remove(&ticket) else {
                self.schedule.leave(ticket);
                continue;
            };
            // A waiter that is gone must not cost its queue the turn. If it leaves after this check, its guard
            // releases the slot.
            if waiter.reply.is_closed() {
                self.schedule.leave(ticket);
                continue;
            }
            self.schedule.grant(ticket);
            if let Some(run) = self.runs.get_mut(&waiter.run) {
                run.set_phase(RunPhase::Starting, None, self.now_ms);
            }
            let _ = waiter.reply.send(());
        }
    }

    /// Updates the phase of all runs to which this hold applies or applied.
    fn update_waiting(&mut self, hold: &Key) {
        for group in self.schedule.held_back_by(hold) {
            self.update_waiting_for(&group);
        }
    }

    fn update_waiting_for(&mut self, group: &Key) {
        let tickets: Vec<u64> = self.schedule.waiting_for(group).collect();
        for ticket in tickets {
            self.tell_that_it_waits(ticket, group);
        }
    }

    fn tell_that_it_waits(&mut self, ticket: u64, group: &Key) {
        let held = self.schedule.held(group);
        let until_ms = held.map(|held| held.until_ms);
        let phase = match until_ms {
            Some(_) => RunPhase::OnHold,
            None => RunPhase::Queued,
        };
        let Some(waiter) = self.waiters.get(&ticket) else {
            return;
        };
        let _ = waiter.waits.send(held.cloned());
        if let Some(run) = self.runs.get_mut(&waiter.run) {
            run.set_phase(phase, until_ms, self.now_ms);
        }
    }
}

fn abort(run: &mut Run, now_ms: u64) {
    run.abort.abort();
    run.set_phase(RunPhase::Stopping, None, now_ms);
}
