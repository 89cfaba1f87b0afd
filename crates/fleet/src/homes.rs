//! Where conversations are: an entry for each key and for each session of an owner.

use std::path::PathBuf;
use std::time::Duration;

use async_nats::jetstream::message::PublishMessage;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use teamster_api::{ProblemCode, ServiceError, Spec};
use teamster_core::AgentError;

use crate::Fleet;
use crate::names::{RunKey, SESSIONS};
use crate::presence::Reports;
use crate::protocol::{Conversation, Home, LastRun, SeenHome, State, Tag};

/// Time for which an entry is kept after its last run.
const HOME_AGE: Duration = Duration::from_hours(90 * 24);

/// The subject of a conversation's entry. Neither the key nor the id of the session can be read from it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ConversationKey(String);

/// An entry, as the bucket has it. Fields are only added.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
    version: u32,
    worker: String,
    /// The random number of that worker's state directory.
    machine: Tag,
    run: String,
    /// Where a session began on the worker's machine. The key of a conversation has none.
    directory: Option<PathBuf>,
}

/// An entry as it was read.
#[derive(Debug)]
pub(crate) struct FoundHome {
    pub(crate) seen: SeenHome<String>,
    /// The number of the worker's state directory, if it is known: another one with the worker's name is another machine.
    pub(crate) machine: Option<Tag>,
    /// Where the session began.
    pub(crate) directory: Option<PathBuf>,
}

impl ConversationKey {
    fn new(owner: &str, kind: char, parts: &[&str]) -> Self {
        let mut digest = Sha256::new();
        for part in parts {
            digest.update((part.len() as u64).to_le_bytes());
            digest.update(part);
        }
        Self(format!(
            "$KV.tm_sessions.{owner}.{kind}.{:x}",
            digest.finalize()
        ))
    }

    /// Returns the conversation that a run continues or begins by name; `None` for a run of its own.
    pub(crate) fn of(owner: &str, spec: &Spec) -> Option<(Self, Conversation)> {
        let (key, session, is_new) = match spec {
            Spec::Run(spec) => (&spec.session_key, &spec.session_id, spec.new_session),
            Spec::Session(spec) => (&spec.session_key, &spec.session_id, false),
        };
        if let Some(key) = key {
            let wants = if is_new {
                Conversation::NewSession
            } else {
                Conversation::Key
            };
            return Some((Self::new(owner, 'k', &[key]), wants));
        }
        let session = session.as_deref()?;
        let key = Self::of_session(owner, spec.provider(), session);
        Some((key, Conversation::Session))
    }

    pub(crate) fn subject(&self) -> &str {
        &self.0
    }

    /// Returns the name of the folder of a conversation that names none.
    pub(crate) fn folder(&self) -> &str {
        // With the owner: two owners may have one key.
        self.0.strip_prefix("$KV.tm_sessions.").unwrap_or(&self.0)
    }

    /// Returns the entry of an agent's session.
    pub(crate) fn of_session(owner: &str, provider: &str, session: &str) -> Self {
        Self::new(owner, 's', &[provider, session])
    }
}

/// Returns the key of a conversation on a machine, where the keys of two owners must not be the same.
pub(crate) fn local_key(owner: &str, key: &str) -> String {
    format!("fleet:{owner}:{:x}", Sha256::digest(key))
}

impl Fleet {
    pub(crate) async fn home(&self, key: &ConversationKey) -> Result<FoundHome, ServiceError> {
        let message = self.last(SESSIONS, &key.0).await?;
        let mut found = FoundHome {
            seen: SeenHome {
                revision: message.as_ref().map_or(0, |message| message.sequence),
                home: None,
            },
            machine: None,
            directory: None,
        };
        // A marker of one whose time has passed has no content.
        let entry = message.and_then(|message| serde_json::from_slice(&message.payload).ok());
        if let Some(entry) = entry {
            let Entry {
                version: _,
                worker,
                machine,
                run,
                directory,
            } = entry;
            found.seen.home = Some(Home { worker, run });
            (found.machine, found.directory) = (Some(machine), directory);
        }
        Ok(found)
    }

    /// Writes an entry if its revision is the expected one. Returns whether that is certain.
    pub(crate) async fn take_home(
        &self,
        key: &ConversationKey,
        home: Home<String>,
        machine: Tag,
        directory: Option<PathBuf>,
        expected: u64,
    ) -> bool {
        let entry = Entry {
            version: 1,
            worker: home.worker,
            machine,
            run: home.run,
            directory,
        };
        let json = serde_json::to_vec(&entry).unwrap_or_default();
        let message = PublishMessage::build()
            .payload(json.into())
            .expected_last_subject_sequence(expected)
            .ttl(HOME_AGE);
        self.publish(&key.0, message).await.is_some()
    }

    /// Returns what is known of the last run of a conversation.
    pub(crate) async fn last_run(
        &self,
        owner: &str,
        seen: &SeenHome<String>,
    ) -> Result<LastRun, ServiceError> {
        let Some(home) = &seen.home else {
            return Ok(LastRun::Over);
        };
        self.state_of(&RunKey::new(owner, &home.run)).await
    }

    pub(crate) async fn state_of(&self, key: &RunKey) -> Result<LastRun, ServiceError> {
        let found = self.read(key).await?;
        Ok(match found.seen.head.map(|head| head.state) {
            None => LastRun::Over,
            Some(State::Queued) => LastRun::Queued,
            Some(state) if state.is_final() => LastRun::Over,
            Some(_) => LastRun::Live,
        })
    }

    /// Decides where a new run of this owner waits: for the returned worker, or for any of its pool.
    pub(crate) async fn place(
        &self,
        spec: &Spec,
        named: Option<String>,
    ) -> Result<Option<String>, ServiceError> {
        let Some((key, wants)) = ConversationKey::of(&self.owner, spec) else {
            return Ok(named);
        };
        let found = self.home(&key).await?;
        let Some(home) = &found.seen.home else {
            if wants == Conversation::Session {
                return Err(unknown_session());
            }
            return Ok(named);
        };
        let worker = &home.worker;
        if self.reports(worker, found.machine).await? == Reports::Yes {
            if named.is_some_and(|named| named != *worker) {
                let problem = format!("the conversation is on worker {worker}: omit the machine");
                return Err(AgentError::refused("placement", problem).into());
            }
            return Ok(Some(worker.clone()));
        }
        if wants != Conversation::NewSession {
            let message = format!(
                "worker {worker}, which has this conversation, does not report, or is another machine now, and it is not \
                 continued elsewhere: try again when it is back, or {}",
                instead_of(wants)
            );
            return Err(ServiceError::new(ProblemCode::RunnerNotResponding, message));
        }
        if self.last_run(&self.owner, &found.seen).await? != LastRun::Over {
            let message = format!(
                "run {} of this conversation has not ended, and its worker {worker} does not report: cancel it or give \
                 it up first, or use another `session_key`",
                home.run
            );
            return Err(ServiceError::new(ProblemCode::SessionInUse, message));
        }
        Ok(named)
    }
}

/// Returns what a person can do in place of continuing a conversation whose machine cannot be reached.
pub(crate) fn instead_of(wants: Conversation) -> &'static str {
    match wants {
        Conversation::Session => "start a run without `session_id`",
        _ => "use another `session_key`, or begin it again with `new_session`",
    }
}

/// The error of a session that no run of the owner has had.
pub(crate) fn unknown_session() -> ServiceError {
    let message = "no run of this fleet has had this session: resume it on its machine, or start a run without `session_id`";
    ServiceError::new(ProblemCode::SessionNotFound, message)
}

#[cfg(test)]
mod tests {
    use teamster_api::RunSpec;

    use super::*;

    fn of(owner: &str, change: fn(&mut RunSpec)) -> Option<(String, Conversation)> {
        let mut spec = RunSpec::new("claude", "x");
        change(&mut spec);
        let of = ConversationKey::of(owner, &spec.into());
        of.map(|(key, wants)| (key.0, wants))
    }

    #[test]
    fn conversations_of_two_owners_and_agents_are_kept_apart() {
        assert_eq!(of("ann", |_| ()), None);
        let (key, wants) = of("ann", |spec| spec.session_key = Some("a:b".into())).unwrap();
        assert_eq!(wants, Conversation::Key);
        assert!(key.starts_with("$KV.tm_sessions.ann.k."), "{key}");
        assert!(!key.contains("a:b"));
        let (bobs, _) = of("bob", |spec| spec.session_key = Some("a:b".into())).unwrap();
        assert_ne!(key, bobs);
        let (session, wants) = of("ann", |spec| spec.session_id = Some("a:b".into())).unwrap();
        assert_eq!(wants, Conversation::Session);
        assert_ne!(key, session);
        assert_eq!(
            ConversationKey::of_session("ann", "claude", "a:b").0,
            session
        );
        assert_ne!(
            ConversationKey::of_session("ann", "codex", "a:b").0,
            session
        );
        let again = of("ann", |spec| {
            spec.session_key = Some("a:b".into());
            spec.new_session = true;
        });
        assert_eq!(again, Some((key, Conversation::NewSession)));
    }

    #[test]
    fn two_owners_of_one_key_have_two_folders() {
        let folder = |owner: &str| {
            ConversationKey::new(owner, 'k', &["a:b"])
                .folder()
                .to_owned()
        };
        assert_ne!(folder("ann"), folder("bob"));
        assert!(folder("ann").starts_with("ann.k."), "{}", folder("ann"));
        assert!(!folder("ann").contains('/'));
    }

    #[test]
    fn a_key_on_a_machine_has_its_owner_and_is_a_valid_one() {
        let key = local_key("ann", "slack:U42:9");
        assert_ne!(key, local_key("bob", "slack:U42:9"));
        assert!(teamster_api::session_key_parts(&key).is_ok());
    }
}
