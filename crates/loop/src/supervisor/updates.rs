//! Changes of agents, for subscribers and on the disk.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use serde::Serialize;
use tokio::sync::mpsc;

use super::event::Event;
use super::protocol::{AgentStatus, Change, Update};
use crate::folder::append_json_lines_within;
use teamster_core::time::epoch_ms;

/// The interval at which files of loops are checked for changes.
const LOOK: Duration = Duration::from_secs(1);
/// How many subscribers there may be. They keep their connections.
const MOST: usize = 16;
/// How many updates may wait for a subscriber before its connection is closed.
pub(crate) const WAITING: usize = 256;
/// The size at which the history is rotated, in bytes; the last is kept beside it.
const LONGEST_HISTORY: u64 = 1 << 20;

/// Updates of a subscriber, each a line.
pub(crate) type Lines = mpsc::Sender<Arc<str>>;

/// One line of the history.
#[derive(Serialize)]
struct Entry<'a> {
    ts: String,
    #[serde(flatten)]
    event: &'a Event,
}

/// The subscribers to updates.
#[derive(Debug)]
pub(crate) struct Updates {
    history: PathBuf,
    subscribers: Vec<Lines>,
    /// How the agents were when that was looked at last.
    last: HashMap<String, AgentStatus>,
    next_look: Option<Instant>,
}

impl Updates {
    /// Whether there is a subscriber.
    pub(super) fn is_watched(&self) -> bool {
        !self.subscribers.is_empty()
    }

    pub(crate) fn new(history: PathBuf) -> Self {
        Self {
            history,
            subscribers: Vec::new(),
            last: HashMap::new(),
            next_look: None,
        }
    }

    /// When it is looked for changes next, if there is a subscriber.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.next_look.filter(|_| !self.subscribers.is_empty())
    }

    pub(crate) fn event(&mut self, event: &Event) {
        let entry = Entry {
            ts: crate::clock::stamp(Timestamp::now()).to_string(),
            event,
        };
        // A history that cannot be written stops nothing.
        let _ = append_json_lines_within(&self.history, &[entry], LONGEST_HISTORY);
        let happened = event.clone();
        let at_ms = epoch_ms();
        self.send(Change::Event { at_ms, happened });
    }

    /// Waits a moment for subscribers to get what was sent last.
    pub(crate) async fn flush(&self) {
        const PAUSE: Duration = Duration::from_millis(5);
        const PATIENCE: Duration = Duration::from_millis(500);
        let until = Instant::now() + PATIENCE;
        let waits = |it: &Lines| !it.is_closed() && it.capacity() < it.max_capacity();
        while self.subscribers.iter().any(waits) && Instant::now() < until {
            tokio::time::sleep(PAUSE).await;
        }
    }

    fn send(&mut self, change: Change) {
        if self.subscribers.is_empty() {
            return;
        }
        // All of it can be written as JSON.
        let Ok(line) = serde_json::to_string(&Update::new(change)) else {
            return;
        };
        let line: Arc<str> = format!("{line}\n").into();
        // One that does not read is not waited for.
        self.subscribers
            .retain(|it| it.try_send(Arc::clone(&line)).is_ok());
    }

    /// Adds a subscriber that knows how the agents are now.
    pub(super) fn subscribe(
        &mut self,
        lines: Lines,
        agents: Vec<AgentStatus>,
    ) -> Result<(), String> {
        self.subscribers.retain(|it| !it.is_closed());
        if self.subscribers.len() >= MOST {
            return Err(format!("there are {MOST} subscribers already"));
        }
        self.changes(agents);
        self.subscribers.push(lines);
        Ok(())
    }

    pub(super) fn changes(&mut self, agents: Vec<AgentStatus>) {
        self.next_look = Some(Instant::now() + LOOK);
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

/// Whether nothing has changed. When it is started again is computed from two clocks each time.
fn is_same(before: &AgentStatus, now: &AgentStatus) -> bool {
    let retry = (before.retry_at_ms, now.retry_at_ms);
    let is_same_retry = match retry {
        (Some(before), Some(now)) => before.abs_diff(now) < 1000,
        (before, now) => before == now,
    };
    let before = AgentStatus {
        retry_at_ms: now.retry_at_ms,
        ..before.clone()
    };
    is_same_retry && before == *now
}
