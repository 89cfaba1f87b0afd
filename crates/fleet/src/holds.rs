//! Limits that agents have reported: they hold an agent back on all machines with the same login.

use std::time::Duration;

use async_nats::jetstream::Message;
use async_nats::jetstream::message::PublishMessage;
use serde::{Deserialize, Serialize};
use teamster_api::ServiceError;
use teamster_core::time::millis;

use crate::Fleet;
use crate::names::HOLDS;
use crate::names::{SESSIONS, escape};
use crate::records::{PATIENCE, PAUSE};
use tokio::time::{Instant, sleep};

/// The longest time for which a report holds an agent back: a later one renews it.
const LONGEST: Duration = Duration::from_hours(8 * 24);
/// The subject of the fleet's salt. No owner can have this name, so only workers can read it.
const SALT: &str = "$KV.tm_sessions.=fleet.salt";

/// Length of the salt: that of two UUIDs, in bytes.
const SALT_BYTES: usize = 32;
/// How often an entry is written that another worker has changed meanwhile.
const TRIES: u32 = 3;

/// An agent that is held back, because its login has reached a limit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Hold {
    /// Id of the agent.
    pub provider: String,
    /// Mark of the login, from which neither the account nor the key can be read.
    pub login: String,
    /// Name of the limit, such as `five_hour`, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<String>,
    /// The end, in milliseconds since the Unix epoch.
    pub until: u64,
}

impl Fleet {
    /// Returns the agents that are held back now.
    pub async fn holds(&self) -> Result<Vec<Hold>, ServiceError> {
        let read = |message: &Message| serde_json::from_slice(&message.payload).ok();
        let holds = self.last_of_each(HOLDS, "$KV.tm_holds.>", false, read);
        let mut holds: Vec<Hold> = holds.await?;
        let now = self.now().await;
        holds.retain(|hold| hold.until > now);
        Ok(holds)
    }
}

fn subject(provider: &str, login: &str) -> String {
    format!("$KV.tm_holds.{}.{login}", escape(provider))
}

/// What workers do with holds.
impl Fleet {
    /// Holds an agent back, unless it is held back for longer. Without an answer, the next report does it.
    pub(crate) async fn hold(&self, hold: &Hold) {
        let subject = subject(&hold.provider, &hold.login);
        let Some(left) = hold
            .until
            .checked_sub(self.now().await)
            .filter(|left| *left > 0)
        else {
            return;
        };
        // Rounded up: the server counts seconds.
        let seconds = left.min(millis(LONGEST)).div_ceil(1000);
        let json = serde_json::to_vec(hold).unwrap_or_default();
        for _ in 0..TRIES {
            let Ok(last) = self.last(HOLDS, &subject).await else {
                return;
            };
            let known = last.as_ref();
            let known = known.and_then(|it| serde_json::from_slice::<Hold>(&it.payload).ok());
            if known.is_some_and(|known| known.until >= hold.until) {
                return;
            }
            let message = PublishMessage::build()
                .payload(json.clone().into())
                .expected_last_subject_sequence(last.map_or(0, |message| message.sequence))
                .ttl(Duration::from_secs(seconds));
            if self.publish(&subject, message).await.is_some() {
                return;
            }
        }
    }

    pub(crate) async fn hold_of(
        &self,
        provider: &str,
        login: &str,
    ) -> Result<Option<Hold>, ServiceError> {
        let message = self.last(HOLDS, &subject(provider, login)).await?;
        Ok(message.and_then(|message| serde_json::from_slice(&message.payload).ok()))
    }

    /// Returns the fleet's salt, which the first worker makes.
    pub(crate) async fn salt(&self) -> Result<Vec<u8>, ServiceError> {
        let until = Instant::now() + PATIENCE;
        while Instant::now() < until {
            let last = self.last(SESSIONS, SALT).await?;
            let expected = last.as_ref().map_or(0, |message| message.sequence);
            if let Some(message) = last.filter(|message| message.payload.len() == SALT_BYTES) {
                return Ok(message.payload.to_vec());
            }
            let salt = [uuid::Uuid::new_v4(), uuid::Uuid::new_v4()];
            let salt: Vec<u8> = salt.iter().flat_map(|part| *part.as_bytes()).collect();
            let message = PublishMessage::build()
                .payload(salt.into())
                .expected_last_subject_sequence(expected);
            if self.publish(SALT, message).await.is_none() {
                // Another worker was first, and the copy that was read is behind; or there was no answer.
                if let Some(refusal) = self.refusal(SALT) {
                    return Err(refusal);
                }
                sleep(PAUSE).await;
            }
        }
        Err(self.failed(SALT, "the fleet's salt was not stored"))
    }
}
