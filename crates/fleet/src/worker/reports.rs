//! What a worker reports about itself: its presence, its agents and its clock.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use async_nats::jetstream::message::PublishMessage;
use teamster_api::{MachineService, ProblemCode, ServiceError};
use teamster_core::sync::lock;
use teamster_host::login_mark;
use tokio::sync::mpsc;
use tokio::time::sleep;

use super::Shared;
use crate::clock;
use crate::large::IN_FILE;
use crate::names::{WORKERS, presence};
use crate::presence::{LOGGED_OUT, NOT_ALLOWED, PRESENT, PresentAgent, PresentWorker};
use crate::records::PAUSE;

/// Interval in which a worker reports its presence.
const REPORT_EVERY: Duration = Duration::from_secs(10);
/// How often a report is tried before the next one.
const REPORTS: u32 = 5;
/// Interval in which a worker looks for the versions of its agents.
const VERSIONS_EVERY: Duration = Duration::from_hours(1);
/// The number of reports after which a worker reads what agents are held back.
const READ_HOLDS: u64 = 3;
/// The number of reports after which a worker looks whether its fleet was brought up to date.
const LOOK_AT_LAYOUT: u64 = 30;

impl Shared {
    /// Finds out which agents this machine has.
    pub(super) async fn examine(&self) -> Result<(), ServiceError> {
        if let Some(agents) = &self.known_agents {
            lock(&self.agents).clone_from(agents);
            return Ok(());
        }
        let agents = self.machine.agents().await?;
        let salt = self.fleet.salt().await?;
        let machine = self.machine_tag.to_string();
        *lock(&self.agents) = agents
            .into_iter()
            .map(|agent| {
                let facts = agent.facts;
                let allowed = self.config.policy.agents.as_ref();
                let problem = if allowed.is_some_and(|allowed| !allowed.contains(&facts.id)) {
                    Some(NOT_ALLOWED)
                } else if !facts.usable {
                    Some("is not installed, or cannot be used")
                } else if facts.login.state == "no" {
                    Some(LOGGED_OUT)
                } else {
                    None
                };
                let login = login_mark(&salt, &machine, &facts.id, &facts.login);
                let mut present = PresentAgent::new(facts.id);
                present.ready = problem.is_none();
                present.login = Some(login);
                present.version = facts.version;
                present.problem = problem.map(str::to_owned);
                present
            })
            .collect();
        Ok(())
    }

    /// Reports the versions of the agents, which are started for that, also after an update of one.
    pub(super) async fn keep_versions(self: Arc<Self>) {
        while self.known_agents.is_none() {
            // Without them, runs are carried out as well.
            if let Ok(agents) = self.with_versions.agents().await {
                let mut known = lock(&self.agents);
                for agent in known.iter_mut() {
                    let mut found = agents.iter().map(|report| &report.facts);
                    let facts = found.find(|facts| facts.id == agent.id);
                    agent.version = facts.and_then(|facts| facts.version.clone());
                }
            }
            // The next one is soon.
            let _ = self.report().await;
            sleep(VERSIONS_EVERY).await;
        }
    }

    /// Returns how far the clock of this machine is ahead of the server's, in milliseconds, if it is wrong. The person who
    /// looks after the worker gets a notice when it becomes so.
    async fn clock_ms(&self) -> Option<i64> {
        let ahead = self.fleet.clock_ahead().await;
        let was_wrong = self.is_clock_wrong.swap(ahead.is_some(), Ordering::Relaxed);
        if let Some(ahead) = ahead
            && !was_wrong
        {
            let text = format!(
                "the clock of this machine is {}: the times in its logs are wrong; synchronize it with a time server",
                clock::in_words(ahead)
            );
            (self.on_notice)(text);
        }
        ahead
    }

    /// Returns the agents that can be used.
    pub(super) fn ready_agents(&self) -> Vec<String> {
        let agents = lock(&self.agents);
        let ready = agents.iter().filter(|agent| agent.ready);
        ready.map(|agent| agent.id.clone()).collect()
    }

    /// Reports that this worker is there, unless another machine has its name.
    pub(super) async fn report(&self) -> Result<(), ServiceError> {
        let clock_ms = self.clock_ms().await;
        let present = PresentWorker {
            worker: self.config.name.clone(),
            instance: self.instance,
            machine: self.machine_tag,
            pools: self.config.policy.pools.clone(),
            agents: lock(&self.agents).clone(),
            slots: self.config.policy.slots,
            running: lock(&self.busy).len(),
            drains: self.drains.load(Ordering::Relaxed),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            permissions: self.config.policy.permissions.clone(),
            spec_version: IN_FILE,
            clock_ms,
        };
        let json = serde_json::to_vec(&present).unwrap_or_default();
        let subject = presence(&self.config.name);
        for _ in 0..REPORTS {
            let known = *lock(&self.reported);
            let expected = match known {
                Some(number) => number,
                None => self.last_report(&subject).await?,
            };
            let message = PublishMessage::build()
                .payload(json.clone().into())
                .ttl(PRESENT);
            let message = message.expected_last_subject_sequence(expected);
            let stored = self.fleet.publish(&subject, message).await;
            *lock(&self.reported) = stored;
            if stored.is_some() {
                return Ok(());
            }
            // Its answer is late, or what was read is not the newest.
            sleep(PAUSE).await;
        }
        Err(self
            .fleet
            .failed(&subject, "the worker's presence was not stored"))
    }

    /// Returns the number of the last report under this name. Fails with [`ProblemCode::InvalidParams`] if it is that
    /// of another machine.
    pub(super) async fn last_report(&self, subject: &str) -> Result<u64, ServiceError> {
        let Some(last) = self.fleet.last(WORKERS, subject).await? else {
            return Ok(0);
        };
        let present: Option<PresentWorker> = serde_json::from_slice(&last.payload).ok();
        let machine = present.map(|present| present.machine);
        if machine.is_some_and(|machine| machine != self.machine_tag) {
            let message = format!(
                "another machine, or another state directory, is the worker {}: give this one another name; if the other \
                 one is gone, start this one {} s later",
                self.config.name,
                PRESENT.as_secs()
            );
            return Err(ServiceError::new(ProblemCode::InvalidParams, message));
        }
        Ok(last.sequence)
    }

    /// Reports until another machine has taken the name, which is sent. The next process waits for the end of that.
    pub(super) async fn keep_reporting(self: Arc<Self>, displaced: mpsc::Sender<ServiceError>) {
        for number in 1_u64.. {
            sleep(REPORT_EVERY).await;
            // The next one may succeed.
            if let Err(error) = self.report().await
                && error.code == Some(ProblemCode::InvalidParams)
            {
                let _ = displaced.send(error).await;
                return;
            }
            // Each claim looks for a hold of its agent, too.
            if number.is_multiple_of(READ_HOLDS) {
                self.read_holds().await;
            }
            if number.is_multiple_of(LOOK_AT_LAYOUT)
                && let Err(error) = self.fleet.check_layout().await
                && error.code == Some(ProblemCode::Unsupported)
            {
                (self.on_notice)(error.message);
            }
        }
    }
}
