//! The order of waiters. Pure: the task measures the time and wakes waiters.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde::{Deserialize, Serialize};
use teamster_core::{AgentError, Id};

use super::Limits;

/// Scope of limits: a group that shares them, and a model within it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Key {
    pub(crate) group: Id,
    pub(crate) model: Option<Id>,
}

impl Key {
    /// Returns whether a hold on this key applies to the other: it has the same group, and the same model or none. An
    /// unnamed model may be the held one.
    pub(crate) fn holds_back(&self, other: &Self) -> bool {
        self.group == other.group && (other.model.is_none() || other.model == self.model)
    }
}

impl From<&str> for Key {
    fn from(group: &str) -> Self {
        Self {
            group: group.into(),
            model: None,
        }
    }
}

/// A hold on a provider, during which no attempt begins. It does not apply to other models than the one that met the
/// limit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Held {
    /// The provider, or the group of candidates.
    pub provider: String,
    /// The model that met the limit, if one was requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// End of the hold, in milliseconds since the Unix epoch.
    pub until_ms: u64,
    /// The error that caused the hold.
    pub reason: AgentError,
}

impl Held {
    /// Creates a hold on all models of a provider, until this time in milliseconds since the Unix epoch.
    pub fn new(provider: impl Into<String>, until_ms: u64, reason: AgentError) -> Self {
        Self {
            provider: provider.into(),
            model: None,
            until_ms,
            reason,
        }
    }

    pub(crate) fn key(&self) -> Key {
        Key {
            group: self.provider.as_str().into(),
            model: self.model.as_deref().map(Id::from),
        }
    }
}

/// Waiting and granted tickets, and the state that decides the next one.
///
/// A *group* is a limit's scope, here together with a model. A *queue* identifies a requester. A queue has a *line* of
/// tickets for each group. In a group the lines take turns: a line that was served moves behind all others. So while
/// a line waits, each other line of its group is served at most once. If the first lines of several groups could be
/// served, the queue that was served longest ago is next. Within one queue it is the oldest ticket.
///
/// Each group has turns of its own. With one turn for each queue, a queue that is served repeatedly for one group would
/// each time move to the end for another group, and would never be served there.
#[derive(Debug, Default)]
pub(super) struct Schedule {
    limits: Limits,
    groups: HashMap<Key, Group>,
    queues: HashMap<Id, Queue>,
    /// The last assigned turn. Lower turns are served first.
    next_turn: u64,
    waiting: HashMap<u64, Waiter>,
    granted: HashMap<u64, Key>,
    holds: BTreeMap<Key, Held>,
}

/// State of a group while it has running or waiting attempts.
#[derive(Debug, Default)]
struct Group {
    running: usize,
    /// The queues that have a line here, in order of their turns.
    lines: BTreeMap<u64, Id>,
}

/// State of a queue while it has a waiter.
#[derive(Debug)]
struct Queue {
    turn: u64,
    /// Lines with waiters, by group.
    lines: HashMap<Key, Line>,
}

#[derive(Debug)]
struct Line {
    /// The key in [`Group::lines`].
    turn: u64,
    tickets: BTreeSet<u64>,
}

#[derive(Debug)]
struct Waiter {
    group: Key,
    queue: Id,
}

impl Schedule {
    pub(super) fn new(limits: Limits) -> Self {
        Self {
            limits,
            ..Self::default()
        }
    }

    /// Adds a ticket to its line, which is ordered by ticket number.
    pub(super) fn join(&mut self, ticket: u64, group: Key, queue: Id) {
        let turn = self.turn();
        let lines = &mut self
            .queues
            .entry(queue.clone())
            .or_insert_with(|| Queue {
                turn,
                lines: HashMap::new(),
            })
            .lines;
        let turns = &mut self.groups.entry(group.clone()).or_default().lines;
        let line = lines.entry(group.clone()).or_insert_with(|| {
            turns.insert(turn, queue.clone());
            Line {
                turn,
                tickets: BTreeSet::new(),
            }
        });
        line.tickets.insert(ticket);
        self.waiting.insert(ticket, Waiter { group, queue });
    }

    /// Removes a waiting or granted ticket. Returns whether it was known.
    pub(super) fn leave(&mut self, ticket: u64) -> bool {
        if let Some(name) = self.granted.remove(&ticket) {
            if let Some(group) = self.groups.get_mut(&name) {
                group.running -= 1;
            }
            self.forget_if_idle(&name);
            return true;
        }
        self.take(ticket).is_some()
    }

    /// Returns the ticket to grant now.
    pub(super) fn next(&self) -> Option<u64> {
        let full = |limit: Option<usize>, count| limit.is_some_and(|limit| count >= limit);
        if full(self.limits.overall, self.granted.len()) {
            return None;
        }
        self.groups
            .iter()
            .filter(|(name, group)| {
                !group.lines.is_empty()
                    && self.held(name).is_none()
                    && !full(
                        self.limits.of_provider(&name.group),
                        self.running(&name.group),
                    )
            })
            .filter_map(|(name, group)| {
                let queue = self.queues.get(group.lines.values().next()?)?;
                let ticket = queue.lines.get(name)?.tickets.first()?;
                Some((queue.turn, *ticket))
            })
            .min()
            .map(|(_, ticket)| ticket)
    }

    /// Grants a waiting ticket and moves its queue behind the others.
    pub(super) fn grant(&mut self, ticket: u64) {
        let turn = self.turn();
        let Some(waiter) = self.take(ticket) else {
            return;
        };
        let group = self.groups.entry(waiter.group.clone()).or_default();
        group.running += 1;
        if let Some(queue) = self.queues.get_mut(&waiter.queue) {
            queue.turn = turn;
            if let Some(line) = queue.lines.get_mut(&waiter.group) {
                group.lines.remove(&line.turn);
                line.turn = turn;
                group.lines.insert(turn, waiter.queue);
            }
        }
        self.granted.insert(ticket, waiter.group);
    }

    pub(super) fn waits(&self, ticket: u64) -> bool {
        self.waiting.contains_key(&ticket)
    }

    /// Returns the tickets that wait for a group, in no particular order.
    pub(super) fn waiting_for(&self, name: &Key) -> impl Iterator<Item = u64> {
        let queues = self.groups.get(name).map(|group| group.lines.values());
        let lines = queues.into_iter().flatten();
        lines
            .filter_map(move |queue| self.queues.get(queue)?.lines.get(name))
            .flat_map(|line| line.tickets.iter().copied())
    }

    /// Adds a hold. Returns whether it is new or longer than the existing one.
    pub(super) fn hold(&mut self, hold: Held) -> bool {
        let key = hold.key();
        let known = self.holds.get(&key);
        if known.is_some_and(|known| known.until_ms >= hold.until_ms) {
            return false;
        }
        self.holds.insert(key, hold);
        true
    }

    /// Removes and returns the holds that have expired at `now_ms`.
    pub(super) fn expire(&mut self, now_ms: u64) -> Vec<Key> {
        self.holds
            .extract_if(.., |_, held| held.until_ms <= now_ms)
            .map(|(group, _)| group)
            .collect()
    }

    /// Removes and returns the holds of a group.
    pub(super) fn release(&mut self, group: &str) -> Vec<Key> {
        self.holds
            .extract_if(.., |key, _| *key.group == *group)
            .map(|(key, _)| key)
            .collect()
    }

    /// Returns the longest hold that applies to this key.
    pub(super) fn held(&self, who: &Key) -> Option<&Held> {
        self.holds
            .iter()
            .filter(|(key, _)| key.holds_back(who))
            .map(|(_, held)| held)
            .max_by_key(|held| held.until_ms)
    }

    /// Returns the keys with waiters to which a hold on this key applies.
    pub(super) fn held_back_by(&self, key: &Key) -> Vec<Key> {
        let waits = |(who, group): &(&Key, &Group)| !group.lines.is_empty() && key.holds_back(who);
        self.groups
            .iter()
            .filter(waits)
            .map(|(who, _)| who.clone())
            .collect()
    }

    /// Returns the number of running attempts of a group, over all models.
    fn running(&self, group: &Id) -> usize {
        let of_group = |(key, _): &(&Key, &Group)| key.group == *group;
        self.groups
            .iter()
            .filter(of_group)
            .map(|(_, group)| group.running)
            .sum()
    }

    pub(super) fn holds(&self) -> impl Iterator<Item = &Held> {
        self.holds.values()
    }

    /// Returns the end of the next hold with a waiter, in milliseconds since the Unix epoch.
    pub(super) fn next_release(&self) -> Option<u64> {
        self.holds
            .iter()
            .filter(|(key, _)| !self.held_back_by(key).is_empty())
            .map(|(_, held)| held.until_ms)
            .min()
    }

    fn turn(&mut self) -> u64 {
        self.next_turn += 1;
        self.next_turn
    }

    /// Removes a waiting ticket from its line.
    fn take(&mut self, ticket: u64) -> Option<Waiter> {
        let waiter = self.waiting.remove(&ticket)?;
        let queue = self.queues.get_mut(&waiter.queue)?;
        let line = queue.lines.get_mut(&waiter.group)?;
        line.tickets.remove(&ticket);
        if line.tickets.is_empty() {
            if let Some(group) = self.groups.get_mut(&waiter.group) {
                group.lines.remove(&line.turn);
            }
            queue.lines.remove(&waiter.group);
            if queue.lines.is_empty() {
                self.queues.remove(&waiter.queue);
            }
            self.forget_if_idle(&waiter.group);
        }
        Some(waiter)
    }

    fn forget_if_idle(&mut self, name: &Key) {
        let idle = |group: &Group| group.running == 0 && group.lines.is_empty();
        if self.groups.get(name).is_some_and(idle) {
            self.groups.remove(name);
        }
    }

    /// Returns whether no ticket waits or runs, and no state of former ones remains.
    #[cfg(test)]
    pub(super) fn is_idle(&self) -> bool {
        self.groups.is_empty()
            && self.queues.is_empty()
            && self.waiting.is_empty()
            && self.granted.is_empty()
    }
}
