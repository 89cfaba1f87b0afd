//! Changes of agents, for subscribers and the history file.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use serde::Serialize;
use tokio::sync::mpsc;

use crate::folder::append_json_lines_within;
use teamster_api::agents::{AgentStatus, Change, Event, Update};
use teamster_core::time::epoch_ms;

/// Interval at which the files of loops are checked for changes.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);
/// Maximum number of subscribers. Subscribers keep their connections.
const MAX_SUBSCRIBERS: usize = 16;
/// Number of queued updates after which the connection of a subscriber is closed.
pub(crate) const QUEUE_CAPACITY: usize = 256;
/// Size at which the history is rotated, in bytes. The previous one is kept with the suffix `.1`.
const LONGEST_HISTORY: u64 = 1 << 20;

/// Sender of update lines to a subscriber.
pub(crate) type Lines = mpsc::Sender<Arc<str>>;

/// Line of the history.
#[derive(Serialize)]
struct Entry<'a> {
    ts: String,
    #[serde(flatten)]
    event: &'a Event,
}

/// Subscribers to updates.
#[derive(Debug)]
pub(crate) struct Updates {
    history: PathBuf,
    subscribers: Vec<Lines>,
    /// Status of the agents at the last check.
    last: HashMap<String, AgentStatus>,
    next_check: Option<Instant>,
}

impl Updates {
    pub(super) fn is_watched(&self) -> bool {
        !self.subscribers.is_empty()
    }

    pub(crate) fn new(history: PathBuf) -> Self {
        Self {
            history,
            subscribers: Vec::new(),
            last: HashMap::new(),
            next_check: None,
        }
    }

    /// Returns the time of the next check for changes, if there is a subscriber.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.next_check.filter(|_| !self.subscribers.is_empty())
    }

    pub(crate) fn event(&mut self, event: &Event) {
        let entry = Entry {
            ts: crate::clock::stamp(Timestamp::now()).to_string(),
            event,
        };
        // Write errors of the history are ignored.
        let _ = append_json_lines_within(&self.history, &[entry], LONGEST_HISTORY);
        let happened = event.clone();
        let at_ms = epoch_ms();
        self.send(Change::Event { at_ms, happened });
    }

    /// Waits up to 500 ms until the subscribers have received all updates.
    pub(crate) async fn flush(&self) {
        const PAUSE: Duration = Duration::from_millis(5);
        const FLUSH_LIMIT: Duration = Duration::from_millis(500);
        let until = Instant::now() + FLUSH_LIMIT;
        let waits = |it: &Lines| !it.is_closed() && it.capacity() < it.max_capacity();
        while self.subscribers.iter().any(waits) && Instant::now() < until {
            tokio::time::sleep(PAUSE).await;
        }
    }

    fn send(&mut self, change: Change) {
        if self.subscribers.is_empty() {
            return;
        }
        // Serialization cannot fail.
        let Ok(line) = serde_json::to_string(&Update::new(change)) else {
            return;
        };
        let line: Arc<str> = format!("{line}\n").into();
        // A subscriber that does not read is dropped.
        self.subscribers
            .retain(|it| it.try_send(Arc::clone(&line)).is_ok());
    }

    /// Adds a subscriber that has the current status of the agents.
    pub(super) fn subscribe(
        &mut self,
        lines: Lines,
        agents: Vec<AgentStatus>,
    ) -> Result<(), String> {
        self.subscribers.retain(|it| !it.is_closed());
        if self.subscribers.len() >= MAX_SUBSCRIBERS {
            return Err(format!("there are {MAX_SUBSCRIBERS} subscribers already"));
        }
        self.changes(agents);
        self.subscribers.push(lines);
        Ok(())
    }

    pub(super) fn changes(&mut self, agents: Vec<AgentStatus>) {
        self.next_check = Some(Instant::now() + CHECK_INTERVAL);
        let mut last = HashMap::new();
        for agent in agents {
            let id = agent.id.clone();
            let before = self.last.remove(&id);
            if before.is_none_or(|before| !is_same(&before, &agent)) {
                let status = Box::new(agent.clone());
                self.send(Change::Agent { status });
            }
            last.insert(id, agent);
        }
        for id in std::mem::replace(&mut self.last, last).into_keys() {
            self.send(Change::Gone { id });
        }
    }
}

/// Returns whether the status is unchanged. `retry_at_ms` may differ by less than 1 s, because it is computed
/// from two clocks.
fn is_same(before: &AgentStatus, now: &AgentStatus) -> bool {
    let retry = (before.retry_at_ms, now.retry_at_ms);
    let is_same_retry = match retry {
        (Some(before), Some(now)) => before.abs_diff(now) < 1000,
        (before, now) => before == now,
    };
    let mut before = before.clone();
    before.retry_at_ms = now.retry_at_ms;
    is_same_retry && before == *now
}
