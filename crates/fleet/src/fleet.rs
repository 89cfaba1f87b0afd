//! The connection to the server of a fleet.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use async_nats::jetstream::context::ContextBuilder;
use async_nats::jetstream::{self, Context};
use async_nats::{Client, ConnectOptions, Event, ServerAddr, ServerError};
use percent_encoding::percent_decode_str;
use teamster_api::{ProblemCode, ServiceError};
use teamster_core::sync::lock;
use tokio::sync::watch;

use crate::clock::Reading;
use crate::login::{not_an_address, not_connected, with_authority, with_credentials};
use crate::names::token;
use crate::presence::PresentAt;
use crate::roles::inbox;
use crate::setup::no_jetstream;
use crate::why::Known;

/// Time in which the server must answer a request.
const ANSWER: Duration = Duration::from_secs(5);
/// Time in which the first connection must be made.
const CONNECT: Duration = Duration::from_secs(10);
/// The number of refusals that are remembered.
const REMEMBERED: usize = 64;
/// Time for which a refusal is remembered: an operator may permit the request meanwhile.
const REMEMBERED_FOR: Duration = Duration::from_secs(10);

/// The number of subjects of which the last write is remembered.
const WRITTEN: usize = 4096;

/// Time for which what is known of the workers is shown.
const KNOWN_FOR: Duration = Duration::from_secs(1);

/// How a program reaches its fleet.
#[derive(Clone)]
#[non_exhaustive]
pub struct FleetOptions {
    /// Servers, such as `nats://127.0.0.1:4222`, `tls://…` or `wss://…`, separated by commas. The first with a user and a
    /// password has the login for all.
    pub url: String,
    /// A file of credentials that only its owner can read: a JWT and a seed, or the seed of an nkey (`SU…`) alone.
    pub credentials: Option<PathBuf>,
    /// A file in PEM with the certificate of the authority that signs those of the servers. Default: the authorities that
    /// this machine trusts.
    pub ca: Option<PathBuf>,
    /// The owner of the runs, which is a part of all their subjects: letters, digits, `-` and `_`.
    pub owner: String,
    /// The prefix of the subjects of answers, which permissions of others must not have. It begins with `_INBOX`: workers
    /// answer to no others. Default: `_INBOX_OWNER`.
    pub inbox: Option<String>,
}

impl FleetOptions {
    /// Creates the options of this owner at these servers.
    pub fn new(url: impl Into<String>, owner: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            credentials: None,
            ca: None,
            owner: owner.into(),
            inbox: None,
        }
    }
}

// Without the URL, which may have a password.
teamster_core::debug_fields!(FleetOptions { owner });

/// What is known of the workers, and since when.
type KnownAt = (Instant, Arc<Known>);

/// Numbers of the last messages that this process has stored, by their subjects.
#[derive(Default)]
pub(crate) struct Written(HashMap<String, u64>);

impl Written {
    /// Adds a message. The answers to two may come in the other order.
    pub(crate) fn add(&mut self, subject: &str, number: u64) {
        if self.0.len() == WRITTEN && !self.0.contains_key(subject) {
            self.0.clear();
        }
        let last = self.0.entry(subject.to_owned()).or_default();
        *last = number.max(*last);
    }

    fn newer(&self, subject: &str, read: Option<u64>) -> Option<u64> {
        let number = self.0.get(subject).copied();
        number.filter(|number| read.is_none_or(|read| read < *number))
    }

    /// Returns whether a message with this prefix of its subject has a higher number.
    pub(crate) fn has_newer(&self, prefix: &str, number: u64) -> bool {
        let mut all = self.0.iter();
        all.any(|(subject, last)| subject.starts_with(prefix) && *last > number)
    }

    /// Forgets those messages, which are not there.
    pub(crate) fn forget_newer(&mut self, prefix: &str, number: u64) {
        self.0
            .retain(|subject, last| !subject.starts_with(prefix) || *last <= number);
    }

    /// Forgets a message that is not there, unless there is a newer one.
    pub(crate) fn forget(&mut self, subject: &str, number: u64) {
        if self.0.get(subject) == Some(&number) {
            self.0.remove(subject);
        }
    }
}

/// A connection to a fleet. Clones share it. It is made again by itself. Every call fails if the server does not answer.
#[derive(Clone)]
pub struct Fleet {
    pub(crate) client: Client,
    pub(crate) jetstream: Context,
    pub(crate) owner: String,
    refusals: Arc<Mutex<VecDeque<(Instant, String)>>>,
    /// Changes with each refusal.
    refused: watch::Receiver<()>,
    known: Arc<Mutex<Option<KnownAt>>>,
    pub(crate) present: Arc<tokio::sync::Mutex<Option<PresentAt>>>,
    /// The prefix of the subjects of answers.
    inbox: Arc<str>,
    pub(crate) written: Arc<Mutex<Written>>,
    /// The last look at the server's time.
    pub(crate) clock: Arc<Mutex<Option<Reading>>>,
}

teamster_core::debug_fields!(Fleet { owner });

impl Fleet {
    /// Connects to a fleet.
    ///
    /// # Errors
    ///
    /// Fails if the owner cannot be in a subject, the files of credentials and of the authority cannot be used, or no server can be reached.
    pub async fn connect(options: FleetOptions) -> Result<Self, ServiceError> {
        let owner = token("owner", &options.owner)?;
        let refusals = Arc::new(Mutex::new(VecDeque::new()));
        let remembered = refusals.clone();
        let (news, refused) = watch::channel(());
        let mut connect = ConnectOptions::new()
            .name(format!("teamster {owner}"))
            .connection_timeout(CONNECT)
            .request_timeout(Some(ANSWER))
            .event_callback(move |event| {
                // A request that is not permitted gets no answer, only this.
                if let Event::ServerError(ServerError::Other(error)) = event {
                    let mut refusals = lock(&remembered);
                    if refusals.len() == REMEMBERED {
                        refusals.pop_front();
                    }
                    refusals.push_back((Instant::now(), error));
                    news.send_replace(());
                }
                std::future::ready(())
            });
        let inbox = options.inbox.unwrap_or_else(|| inbox(&owner));
        if !inbox.starts_with("_INBOX") {
            let message = "the inbox: expected a prefix that begins with `_INBOX`";
            return Err(ServiceError::new(ProblemCode::InvalidParams, message));
        }
        connect = connect.custom_inbox_prefix(&inbox);
        if let Some(file) = &options.credentials {
            connect = with_credentials(connect, file)?;
        }
        if let Some(file) = &options.ca {
            connect = with_authority(connect, file)?;
        }
        let mut servers = Vec::new();
        let mut has_login = false;
        for server in options.url.split(',') {
            let server: ServerAddr = server.trim().parse().map_err(|_| not_an_address())?;
            if options.ca.is_some() && server.scheme() == "ws" {
                let message = "the certificate of an authority (`ca`) is for TLS: use `wss://`";
                return Err(ServiceError::new(ProblemCode::InvalidParams, message));
            }
            // The library ignores what a URL has of a login.
            let user = server.username().filter(|_| !has_login);
            has_login |= user.is_some();
            connect = match (user, server.password()) {
                (Some(user), Some(password)) => {
                    connect.user_and_password(percent_decoded(user), percent_decoded(password))
                }
                (Some(token), None) => connect.token(percent_decoded(token)),
                (None, _) => connect,
            };
            servers.push(server);
        }
        let client = connect.connect(servers).await;
        let client = client.map_err(|error| not_connected(&error))?;
        let jetstream = ContextBuilder::new()
            .timeout(ANSWER)
            .ack_timeout(ANSWER)
            .build(client.clone());
        Ok(Self {
            client,
            jetstream,
            owner,
            refusals,
            refused,
            known: Arc::default(),
            present: Arc::default(),
            inbox: inbox.into(),
            written: Arc::default(),
            clock: Arc::default(),
        })
    }

    /// Returns what is known of the workers. It may be a second old: each read takes consumers of the server.
    pub(crate) async fn known(&self) -> Result<Arc<Known>, ServiceError> {
        let known = lock(&self.known).clone();
        if let Some((_, known)) = known.filter(|(at, _)| at.elapsed() < KNOWN_FOR) {
            return Ok(known);
        }
        let known = Arc::new(Known::read(self).await?);
        *lock(&self.known) = Some((Instant::now(), known.clone()));
        Ok(known)
    }

    /// Returns the owner of the runs.
    pub fn owner(&self) -> &str {
        &self.owner
    }

    /// Returns a handle of a stream, without a request.
    pub(crate) async fn stream(
        &self,
        name: &str,
    ) -> Result<jetstream::stream::Stream<()>, ServiceError> {
        let stream = self.jetstream.get_stream_no_info(name).await;
        stream.map_err(|error| ServiceError::unreachable(error.to_string()))
    }

    /// Returns the error of a request about this subject that had no answer, if the server has refused it.
    pub(crate) fn refusal(&self, subject: &str) -> Option<ServiceError> {
        self.refusal_within(subject, REMEMBERED_FOR)
    }

    /// Waits for what becomes of a request about this subject. A refusal ends that at once: it comes as an event, and the
    /// request would wait for its answer until its time is over.
    pub(crate) async fn unless_refused<T>(
        &self,
        subject: &str,
        request: impl Future<Output = T>,
    ) -> Result<T, ServiceError> {
        let began = Instant::now();
        let mut refused = self.refused.clone();
        refused.mark_unchanged();
        tokio::pin!(request);
        loop {
            tokio::select! {
                biased;
                done = &mut request => return Ok(done),
                Ok(()) = refused.changed() => {
                    if let Some(refusal) = self.refusal_within(subject, began.elapsed()) {
                        return Err(refusal);
                    }
                }
            }
        }
    }

    fn refusal_within(&self, subject: &str, time: Duration) -> Option<ServiceError> {
        let refusals = lock(&self.refusals);
        let mut newest = refusals.iter().rev();
        let (_, refusal) = newest.find(|(at, text)| {
            at.elapsed() <= time && (names_subject(text, subject) || self.is_deaf(text))
        })?;
        let next = if self.is_deaf(refusal) {
            "use the name of the user of these credentials, or ask the operator of the fleet"
        } else {
            "ask the operator of the fleet"
        };
        let message = format!("the server does not permit this: {refusal}; {next}");
        Some(ServiceError::new(ProblemCode::InsufficientScope, message))
    }

    /// Returns whether a refusal is about the answers to this program, so that none can arrive.
    fn is_deaf(&self, refusal: &str) -> bool {
        refusal.contains("Subscription") && refusal.contains(&format!("\"{}.", self.inbox))
    }

    /// Returns the number of a newer message of a subject than the one that was read, if this process has stored one.
    pub(crate) fn newer(&self, subject: &str, read: Option<u64>) -> Option<u64> {
        lock(&self.written).newer(subject, read)
    }

    /// Returns whether streams may have copies, of which one that answers may be behind.
    pub(crate) fn is_cluster(&self) -> bool {
        self.client.server_info().cluster.is_some()
    }

    /// Returns the error of a request about this subject that failed.
    pub(crate) fn failed(&self, subject: &str, error: impl fmt::Display) -> ServiceError {
        let text = error.to_string();
        let has_jetstream = self.client.server_info().jetstream;
        if text.contains("jetstream not enabled")
            || text.contains("JetStream resource does not exist")
            || !has_jetstream && text.contains("no responders")
        {
            return no_jetstream();
        }
        self.refusal(subject).unwrap_or_else(|| {
            let old = match self.too_old() {
                Some(old) => format!("; {old}"),
                None => String::new(),
            };
            ServiceError::unreachable(format!("the fleet's server does not answer: {text}{old}"))
        })
    }
}

/// Returns what a part of an address stands for.
fn percent_decoded(text: &str) -> String {
    percent_decode_str(text).decode_utf8_lossy().into_owned()
}

/// Returns whether an error names this subject, and not only a longer one.
fn names_subject(text: &str, subject: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"-_=.".contains(&byte);
    text.match_indices(subject).any(|(at, _)| {
        let after = text.as_bytes().get(at + subject.len());
        !after.is_some_and(|byte| is_part(*byte))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_in_addresses_may_have_any_character() {
        assert_eq!(percent_decoded("a%40b%"), "a@b%");
        assert_eq!(percent_decoded("50%+9"), "50%+9");
        let server: ServerAddr = "nats://a:x%3Ay@h:1".parse().unwrap();
        let password = server.password().map(percent_decoded);
        assert_eq!(password.as_deref(), Some("x:y"));
    }

    #[test]
    fn newest_stored_message_is_known_until_it_is_forgotten() {
        let mut written = Written::default();
        written.add("a", 7);
        written.add("a", 5);
        assert_eq!(written.newer("a", Some(6)), Some(7));
        assert_eq!(written.newer("a", Some(7)), None);
        assert_eq!(written.newer("b", None), None);
        written.forget("a", 6);
        assert_eq!(written.newer("a", None), Some(7));
        written.forget("a", 7);
        assert_eq!(written.newer("a", None), None);
    }

    #[test]
    fn stored_messages_of_a_prefix_are_known_until_forgotten() {
        let mut written = Written::default();
        written.add("runs.ann.a", 7);
        written.add("runs.bob.a", 9);
        assert!(written.has_newer("runs.ann.", 6));
        assert!(!written.has_newer("runs.ann.", 7));
        written.forget_newer("runs.ann.", 6);
        assert!(!written.has_newer("runs.ann.", 0));
        assert!(written.has_newer("runs.bob.", 8));
    }

    #[test]
    fn a_refusal_is_about_the_whole_subject() {
        let text = "Permissions Violation for Publish to \"tm.work.ann.fix-10\"";
        assert!(names_subject(text, "tm.work.ann.fix-10"));
        assert!(!names_subject(text, "tm.work.ann.fix-1"));
        assert!(!names_subject(text, "tm.work.ann"));
    }
}
