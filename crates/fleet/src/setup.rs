//! Making and checking the streams of a fleet: what an operator does.

use async_nats::jetstream::context::{CreateStreamErrorKind, GetStreamErrorKind};
use async_nats::jetstream::{ErrorCode, stream};
use teamster_api::{ProblemCode, ServiceError};

use crate::layout::{self, FleetLimits, differences, streams};
use crate::{Fleet, names};

/// The oldest version of the server with which no lost write is known.
const OLDEST: (i64, i64, i64) = (2, 14, 0);
/// The size that a message must be allowed to have, in bytes.
const MESSAGE: usize = 1 << 20;

/// A check of a fleet's server.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finding {
    /// What was checked, such as `TM_LOG`.
    pub what: String,
    /// The result.
    pub verdict: FindingVerdict,
    /// What was found, and what to do about it.
    pub detail: String,
}

/// The result of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum FindingVerdict {
    /// As it should be.
    Good,
    /// Works, but not as safely as it could, or cannot be seen from here.
    Warning,
    /// The fleet cannot work like this.
    Bad,
}

impl Fleet {
    /// Makes the streams of the fleet, or brings those of an older version up to date.
    ///
    /// # Errors
    ///
    /// Fails, without changing a stream, if one exists that another program has made differently, or a newer version: by
    /// the names of the settings.
    pub async fn init(&self, limits: &FleetLimits) -> Result<(), ServiceError> {
        let wanted = streams(limits, self.replicas(limits));
        let mut existing = Vec::new();
        for stream in &wanted {
            let found = self.settings(&stream.name).await?;
            if let Some(found) = &found {
                refuse_foreign(found, stream)?;
            }
            existing.push(found);
        }
        for (stream, found) in wanted.into_iter().zip(existing) {
            let name = stream.name.clone();
            let failed = |error: &dyn std::fmt::Display| {
                let mut message = format!("the stream {name} cannot be made: {error}");
                if message.contains("insufficient storage") {
                    message.push_str(
                        "; choose lower limits, or give the server more space (`max_file_store`)",
                    );
                }
                self.refusal(&name)
                    .unwrap_or_else(|| ServiceError::new(ProblemCode::Internal, message))
            };
            if found.is_some() {
                let updated = self.jetstream.update_stream(stream).await;
                updated.map_err(|error| failed(&error))?;
            } else {
                let made = self.jetstream.create_stream(stream).await;
                made.map_err(|error| match error.kind() {
                    CreateStreamErrorKind::JetStreamUnavailable => no_jetstream(),
                    _ => failed(&error),
                })?;
            }
        }
        Ok(())
    }

    /// Checks the server and the streams of the fleet.
    ///
    /// # Errors
    ///
    /// Fails if the server does not answer.
    pub async fn check(&self) -> Result<Vec<Finding>, ServiceError> {
        let mut findings = Vec::new();
        let mut add = |what: &str, verdict, detail: String| {
            findings.push(Finding {
                what: what.to_owned(),
                verdict,
                detail,
            });
        };
        let server = self.client.server_info();
        let (major, minor, patch) = OLDEST;
        if self.client.is_server_compatible(major, minor, patch) {
            add("version", FindingVerdict::Good, server.version.clone());
        } else {
            let detail = format!(
                "{} can lose acknowledged writes: use {major}.{minor} or newer",
                server.version
            );
            add("version", FindingVerdict::Bad, detail);
        }
        if server.max_payload < MESSAGE {
            let detail = format!(
                "a message may have {} bytes only: set `max_payload` to at least {MESSAGE}",
                server.max_payload
            );
            add("max_payload", FindingVerdict::Bad, detail);
        }
        let wanted = streams(&FleetLimits::default(), 1);
        for stream in &wanted {
            let Some(found) = self.settings(&stream.name).await? else {
                let detail = "is missing: an operator makes it (`init`)".to_owned();
                add(&stream.name, FindingVerdict::Bad, detail);
                continue;
            };
            match refuse_foreign(&found, stream) {
                Err(error) => add(&stream.name, FindingVerdict::Bad, error.message),
                Ok(()) if found.num_replicas < 3 => {
                    let detail =
                        "has one copy: a disk that fails loses it; use three servers".to_owned();
                    add(&stream.name, FindingVerdict::Warning, detail);
                }
                Ok(()) => {
                    let detail = format!("{} copies", found.num_replicas);
                    add(&stream.name, FindingVerdict::Good, detail);
                }
            }
        }
        let detail = "cannot be seen by a client: set `sync_interval: always` in the server's `jetstream` block, \
                      or a power failure can lose acknowledged writes";
        add("sync", FindingVerdict::Warning, detail.to_owned());
        Ok(findings)
    }

    fn replicas(&self, limits: &FleetLimits) -> usize {
        let is_cluster = self.client.server_info().cluster.is_some();
        limits.replicas.unwrap_or(if is_cluster { 3 } else { 1 })
    }

    /// Returns the error of a request that JetStream has not answered, because the server has none.
    pub(crate) fn no_jetstream(&self, error: &dyn std::fmt::Display) -> Option<ServiceError> {
        let text = error.to_string();
        let is_absent = text.contains("JetStream resource does not exist")
            || text.contains("jetstream not enabled");
        is_absent.then(no_jetstream)
    }

    pub(crate) async fn settings(
        &self,
        name: &str,
    ) -> Result<Option<stream::Config>, ServiceError> {
        match self.jetstream.get_stream(name).await {
            Ok(stream) => Ok(Some(stream.cached_info().config.clone())),
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
                _ => Err(self
                    .no_jetstream(&error)
                    .unwrap_or_else(|| self.failed(&format!("STREAM.INFO.{name}"), error))),
            },
        }
    }
}

fn no_jetstream() -> ServiceError {
    let message =
        "the server has no JetStream: start it with a `jetstream` block in its configuration";
    ServiceError::new(ProblemCode::Unsupported, message)
}

/// Refuses a stream that this version cannot use.
fn refuse_foreign(found: &stream::Config, wanted: &stream::Config) -> Result<(), ServiceError> {
    let name = &found.name;
    let message = match layout::version(found) {
        Some(version) if version > layout::VERSION => format!(
            "the stream {name} was made by a newer version of teamster (layout {version}): install that one"
        ),
        Some(version) if version < layout::VERSION => return Ok(()),
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

/// The error of a fleet whose streams were not made.
pub(crate) fn not_made() -> ServiceError {
    let message = format!(
        "the fleet has no stream {}: an operator makes the streams first",
        names::RUNS
    );
    ServiceError::new(ProblemCode::FleetNotInitialized, message)
}
