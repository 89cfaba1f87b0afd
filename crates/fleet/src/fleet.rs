//! The connection to the server of a fleet.

use std::collections::VecDeque;
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use async_nats::jetstream::context::ContextBuilder;
use async_nats::jetstream::{self, Context};
use async_nats::{
    Client, ConnectError, ConnectErrorKind, ConnectOptions, Event, ServerAddr, ServerError,
};
use teamster_api::{ProblemCode, ServiceError};
use teamster_core::sync::lock;

use crate::names::token;
use crate::why::Known;

/// Time in which the server must answer a request.
const ANSWER: Duration = Duration::from_secs(5);
/// Time in which the first connection must be made.
const CONNECT: Duration = Duration::from_secs(10);
/// The number of refusals that are remembered.
const REMEMBERED: usize = 64;
/// Time for which a refusal is remembered: an operator may permit the request meanwhile.
const REMEMBERED_FOR: Duration = Duration::from_secs(10);

/// Time for which what is known of the workers is shown.
const KNOWN_FOR: Duration = Duration::from_secs(1);

/// How a program reaches its fleet.
#[derive(Clone)]
#[non_exhaustive]
pub struct FleetOptions {
    /// Servers, such as `nats://127.0.0.1:4222`, `tls://…` or `wss://…`, separated by commas.
    pub url: String,
    /// A file of credentials: a JWT and a seed.
    pub credentials: Option<PathBuf>,
    /// The owner of the runs, which is a part of all their subjects: letters, digits, `-` and `_`.
    pub owner: String,
    /// The prefix of the subjects of answers, if permissions require one. Default: `_INBOX`.
    pub inbox: Option<String>,
}

impl FleetOptions {
    /// Creates the options of this owner at these servers.
    pub fn new(url: impl Into<String>, owner: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            credentials: None,
            owner: owner.into(),
            inbox: None,
        }
    }
}

impl fmt::Debug for FleetOptions {
    /// Without the URL, which may have a password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FleetOptions")
            .field("owner", &self.owner)
            .finish_non_exhaustive()
    }
}

/// A connection to a fleet. Clones share it. It is made again by itself.
#[derive(Clone)]
pub struct Fleet {
    pub(crate) client: Client,
    pub(crate) jetstream: Context,
    pub(crate) owner: String,
    refusals: Arc<Mutex<VecDeque<(Instant, String)>>>,
    known: Arc<Mutex<Option<(Instant, Arc<Known>)>>>,
}

impl fmt::Debug for Fleet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fleet")
            .field("owner", &self.owner)
            .finish_non_exhaustive()
    }
}

impl Fleet {
    /// Connects to a fleet.
    ///
    /// # Errors
    ///
    /// Fails if the owner cannot be in a subject, the credentials cannot be read, or no server can be reached.
    pub async fn connect(options: FleetOptions) -> Result<Self, ServiceError> {
        let owner = token("owner", &options.owner)?;
        let refusals = Arc::new(Mutex::new(VecDeque::new()));
        let remembered = refusals.clone();
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
                }
                std::future::ready(())
            });
        if let Some(inbox) = options.inbox {
            connect = connect.custom_inbox_prefix(inbox);
        }
        if let Some(file) = &options.credentials {
            connect = connect.credentials_file(file).await.map_err(|error| {
                let message = format!("the credentials {} cannot be read: {error}", file.display());
                ServiceError::new(ProblemCode::InvalidParams, message)
            })?;
        }
        let mut servers = Vec::new();
        for server in options.url.split(',') {
            let server: ServerAddr = server.trim().parse().map_err(|_| not_an_address())?;
            // The library ignores what a URL has of a login.
            connect = match (server.username(), server.password()) {
                (Some(user), Some(password)) => {
                    connect.user_and_password(user.to_owned(), password.to_owned())
                }
                (Some(token), None) => connect.token(token.to_owned()),
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
            known: Arc::default(),
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
        let refusals = lock(&self.refusals);
        let mut newest = refusals.iter().rev();
        let (_, refusal) = newest
            .find(|(at, text)| at.elapsed() < REMEMBERED_FOR && names_subject(text, subject))?;
        let message =
            format!("the server does not permit this: {refusal}; ask the operator of the fleet");
        Some(ServiceError::new(ProblemCode::InsufficientScope, message))
    }

    /// Returns the error of a request about this subject that failed.
    pub(crate) fn failed(&self, subject: &str, error: impl fmt::Display) -> ServiceError {
        self.refusal(subject).unwrap_or_else(|| {
            ServiceError::unreachable(format!("the fleet's server does not answer: {error}"))
        })
    }
}

/// The error of an address that is none, which may have a password.
fn not_an_address() -> ServiceError {
    let message = "expected the address of the fleet's server, such as `tls://nats.example`";
    ServiceError::new(ProblemCode::InvalidParams, message)
}

/// The error of a server that could not be reached, or refuses the connection.
fn not_connected(error: &ConnectError) -> ServiceError {
    match error.kind() {
        ConnectErrorKind::Authentication | ConnectErrorKind::AuthorizationViolation => {
            let message = "the fleet's server refuses the credentials: check their file, or ask the operator of the fleet";
            ServiceError::new(ProblemCode::Unauthorized, message)
        }
        ConnectErrorKind::ServerParse => not_an_address(),
        ConnectErrorKind::Tls => ServiceError::unreachable(format!(
            "the fleet's server has no certificate that is trusted here: {error}; check its address, and the \
             certificates of this machine"
        )),
        _ => ServiceError::unreachable(format!(
            "the fleet's server cannot be reached: {error}; check its address and that it runs"
        )),
    }
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
    fn a_refusal_is_about_the_whole_subject() {
        let text = "Permissions Violation for Publish to \"tm.work.ann.fix-10\"";
        assert!(names_subject(text, "tm.work.ann.fix-10"));
        assert!(!names_subject(text, "tm.work.ann.fix-1"));
        assert!(!names_subject(text, "tm.work.ann"));
    }
}
