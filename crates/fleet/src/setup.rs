//! Making the streams of a fleet: what an operator does.

use std::time::Duration;

use async_nats::jetstream::context::{CreateStreamErrorKind, GetStreamErrorKind};
use async_nats::jetstream::{ErrorCode, stream};
use teamster_api::{ProblemCode, ServiceError};
use tokio::time::{Instant, sleep};

use crate::layout::{self, FleetLimits, differences, streams};
use crate::records::PAUSE;
use crate::{Fleet, names};

/// Time in which the streams must have leaders.
const ELECTION: Duration = Duration::from_mins(1);

impl Fleet {
    /// Makes the streams of the fleet, or brings those of an older version up to date, and waits until they can be used.
    /// It can be repeated: limits that are not given stay as they are.
    ///
    /// # Errors
    ///
    /// Fails, without changing a stream, if the server is too old, or if one exists that another program has made
    /// differently, or a newer version: by the names of the settings.
    pub async fn init(&self, limits: &FleetLimits) -> Result<(), ServiceError> {
        if let Some(old) = self.too_old() {
            return Err(ServiceError::new(ProblemCode::Unsupported, old));
        }
        let until = Instant::now() + ELECTION;
        let mut wanted = streams(limits, self.replicas(limits));
        let mut existing = Vec::new();
        for stream in &mut wanted {
            // A cluster that has just been started has no leader yet.
            let found = loop {
                match self.look_at(&stream.name).await {
                    Err(error) if error.retryable && Instant::now() < until => sleep(PAUSE).await,
                    found => break found?,
                }
            };
            if let Some(found) = &found {
                refuse_foreign(&found.config, stream)?;
                limits.keep(stream, &found.config);
            }
            existing.push(found);
        }
        for (stream, found) in wanted.iter().zip(existing) {
            loop {
                match self.make(stream, found.is_some()).await {
                    Err(error) if error.retryable && Instant::now() < until => sleep(PAUSE).await,
                    made => break made?,
                }
            }
        }
        for stream in &wanted {
            loop {
                match self.look_at(&stream.name).await {
                    Ok(Some(found)) if has_leader(&found) => break,
                    Err(error) if !error.retryable => return Err(error),
                    _ if Instant::now() > until => {
                        let message = format!(
                            "the stream {} has no leader: look at the servers of the cluster, and run this again",
                            stream.name
                        );
                        return Err(ServiceError::unreachable(message));
                    }
                    _ => sleep(PAUSE).await,
                }
            }
        }
        Ok(())
    }

    /// Refuses streams of another layout than that of this version, with [`ProblemCode::Unsupported`] and what to do
    /// about it.
    pub(crate) async fn check_layout(&self) -> Result<(), ServiceError> {
        let found = self.look_at(names::HOST).await?;
        let found = found.ok_or_else(|| not_made(names::HOST))?;
        let message = match layout::version(&found.config) {
            Some(version) if version > layout::VERSION => newer(names::HOST, version),
            Some(version) if version < layout::VERSION => format!(
                "the fleet has layout {version}, and this version of teamster needs layout {}: an operator brings it up to \
                 date with this version first",
                layout::VERSION
            ),
            _ => return Ok(()),
        };
        Err(ServiceError::new(ProblemCode::Unsupported, message))
    }

    /// Makes or changes a stream.
    async fn make(&self, stream: &stream::Config, is_there: bool) -> Result<(), ServiceError> {
        let failed = |error: &dyn std::fmt::Display, is_late: bool| {
            let mut message = format!("the stream {} cannot be made: {error}", stream.name);
            if message.contains("insufficient storage") {
                message.push_str(
                    "; choose lower limits, or give the server more space (`max_file_store`)",
                );
            }
            self.refusal(&stream.name).unwrap_or_else(|| {
                if is_late {
                    ServiceError::unreachable(message)
                } else {
                    ServiceError::new(ProblemCode::Internal, message)
                }
            })
        };
        let subject = format!(
            "STREAM.{}.{}",
            if is_there { "UPDATE" } else { "CREATE" },
            stream.name
        );
        let made = async {
            if is_there {
                self.jetstream.update_stream(stream).await.map(drop)
            } else {
                let made = self.jetstream.create_stream(stream.clone()).await;
                made.map(drop)
            }
        };
        let made = self.unless_refused(&subject, made).await?;
        made.map_err(|error| match error.kind() {
            CreateStreamErrorKind::JetStreamUnavailable => no_jetstream(),
            CreateStreamErrorKind::TimedOut => failed(&error, true),
            CreateStreamErrorKind::JetStream(cause) => failed(&error, is_election(&cause)),
            _ => failed(&error, false),
        })
    }

    fn replicas(&self, limits: &FleetLimits) -> usize {
        let usual = if self.is_cluster() { 3 } else { 1 };
        limits.replicas.unwrap_or(usual)
    }

    /// Returns what the server has of a stream.
    pub(crate) async fn look_at(&self, name: &str) -> Result<Option<stream::Info>, ServiceError> {
        let subject = format!("STREAM.INFO.{name}");
        let found = self.unless_refused(&subject, self.jetstream.get_stream(name));
        match found.await? {
            Ok(stream) => Ok(Some(stream.cached_info().clone())),
            Err(error) => match error.kind() {
                GetStreamErrorKind::JetStream(error)
                    if error.error_code() == ErrorCode::STREAM_NOT_FOUND =>
                {
                    Ok(None)
                }
                GetStreamErrorKind::JetStream(error)
                    if error.error_code() == ErrorCode::JETSTREAM_NOT_ENABLED
                        || error.error_code() == ErrorCode::JETSTREAM_NOT_ENABLED_FOR_ACCOUNT =>
                {
                    Err(no_jetstream())
                }
                _ => Err(self.failed(&subject, error)),
            },
        }
    }
}

/// Returns whether the error is of a cluster that elects leaders.
fn is_election(error: &async_nats::jetstream::Error) -> bool {
    [
        ErrorCode::CLUSTER_NOT_AVAILABLE,
        ErrorCode::CLUSTER_NOT_LEADER,
        ErrorCode::CLUSTER_NO_PEERS,
        ErrorCode::STREAM_NOT_FOUND,
    ]
    .contains(&error.error_code())
}

fn has_leader(found: &stream::Info) -> bool {
    // One that is alone has no cluster.
    let cluster = found.cluster.as_ref();
    cluster.is_none_or(|cluster| {
        cluster
            .leader
            .as_ref()
            .is_some_and(|leader| !leader.is_empty())
    })
}

/// The error of a server that keeps no messages.
pub(crate) fn no_jetstream() -> ServiceError {
    let message =
        "the server has no JetStream: start it with a `jetstream` block in its configuration";
    ServiceError::new(ProblemCode::Unsupported, message)
}

fn newer(name: &str, version: u32) -> String {
    format!(
        "the stream {name} was made by a newer version of teamster (layout {version}): install that one"
    )
}

/// Refuses a stream that this version cannot use.
pub(crate) fn refuse_foreign(
    found: &stream::Config,
    wanted: &stream::Config,
) -> Result<(), ServiceError> {
    let name = &found.name;
    let message = match layout::version(found) {
        Some(version) if version > layout::VERSION => newer(name, version),
        // The server does not change how a stream keeps messages.
        Some(version) if version < layout::VERSION && found.retention == wanted.retention => {
            return Ok(());
        }
        _ => {
            let differences = differences(found, wanted);
            if differences.is_empty() {
                return Ok(());
            }
            format!(
                "the stream {name} exists with other settings: {}; remove it, or use another account",
                differences.join(", ")
            )
        }
    };
    Err(ServiceError::new(ProblemCode::InvalidParams, message))
}

/// The error of a fleet whose streams were not made, or lack this one.
pub(crate) fn not_made(stream: &str) -> ServiceError {
    let message = format!("the fleet has no stream {stream}: an operator makes the streams first");
    ServiceError::new(ProblemCode::FleetNotInitialized, message)
}

#[cfg(test)]
mod tests {
    use async_nats::jetstream::stream::RetentionPolicy;

    use super::*;

    #[test]
    fn older_layout_is_accepted_unless_it_keeps_messages_otherwise() {
        for wanted in streams(&FleetLimits::default(), 1) {
            let mut found = wanted.clone();
            let older = (layout::VERSION - 1).to_string();
            found.metadata.insert(layout::VERSION_KEY.to_owned(), older);
            assert_eq!(refuse_foreign(&found, &wanted), Ok(()), "{}", found.name);
            found.retention = RetentionPolicy::Interest;
            let refused = refuse_foreign(&found, &wanted).err();
            let message = refused.map(|refused| refused.message).unwrap_or_default();
            assert!(
                message.contains("retention is Interest instead of"),
                "{message}"
            );
        }
    }
}
