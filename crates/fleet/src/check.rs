//! Checks of a fleet's server, its streams and the permissions of this user.

use std::net::IpAddr;
use std::time::Duration;

use async_nats::ServerInfo;
use async_nats::connection::State;
use async_nats::jetstream::stream;
use serde::Deserialize;
use teamster_api::ServiceError;

use crate::Fleet;
use crate::clock;
use crate::layout::{FleetLimits, streams};
use crate::roles::{FleetRole, USER_INFO, covers};
use crate::setup::refuse_foreign;

/// The oldest version of the server with which no lost write is known.
const OLDEST: (i64, i64, i64) = (2, 14, 0);
/// The size that a message must be allowed to have, in bytes.
const MESSAGE: usize = 1 << 20;
/// Time in which the server must answer about this user.
const ANSWER: Duration = Duration::from_secs(2);
/// The number of permissions that are listed.
const SHOWN: usize = 3;
/// The number of copies with which a disk may fail.
const COPIES: usize = 3;

/// A check of a fleet's server.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finding {
    /// What was checked, such as `TM_LOG`.
    pub what: String,
    /// The result.
    pub verdict: FindingVerdict,
    /// What was found.
    pub detail: String,
    /// What to do about it.
    pub next: Option<String>,
}

/// The result of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum FindingVerdict {
    /// As it should be.
    Good,
    /// Works, but not as safely as it could, or cannot be seen from here.
    Warning,
    /// The fleet cannot work like this.
    Bad,
}

impl Finding {
    fn new(what: &str, verdict: FindingVerdict, detail: impl Into<String>, next: &str) -> Self {
        Self {
            what: what.to_owned(),
            verdict,
            detail: detail.into(),
            next: (!next.is_empty()).then(|| next.to_owned()),
        }
    }

    fn good(what: &str, detail: impl Into<String>) -> Self {
        Self::new(what, FindingVerdict::Good, detail, "")
    }

    fn warning(what: &str, detail: impl Into<String>, next: &str) -> Self {
        Self::new(what, FindingVerdict::Warning, detail, next)
    }

    fn bad(what: &str, detail: impl Into<String>, next: &str) -> Self {
        Self::new(what, FindingVerdict::Bad, detail, next)
    }
}

/// The server's report about a user.
#[derive(Debug, Default, Deserialize)]
struct UserInfo {
    data: User,
}

#[derive(Debug, Default, Deserialize)]
struct User {
    #[serde(default)]
    user: String,
    /// Without it, the user may do everything.
    permissions: Option<Permissions>,
}

#[derive(Debug, Default, Clone, Deserialize)]
struct Permissions {
    publish: Option<Subjects>,
    subscribe: Option<Subjects>,
    responses: Option<serde_json::Value>,
}

#[derive(Debug, Default, Clone, Deserialize)]
struct Subjects {
    /// Without it, all that is not denied.
    allow: Option<Vec<String>>,
    #[serde(default)]
    deny: Vec<String>,
}

impl Subjects {
    /// Returns those of the wanted patterns that are not allowed.
    fn lacks(subjects: Option<&Self>, wanted: Vec<String>) -> Vec<String> {
        let Some(subjects) = subjects else {
            return Vec::new();
        };
        let mut lacking = wanted;
        lacking.retain(|wanted| {
            let is_allowed = (subjects.allow.as_ref()).is_none_or(|allow| covers(allow, wanted));
            !is_allowed || covers(&subjects.deny, wanted)
        });
        lacking
    }
}

impl Permissions {
    /// Returns the roles that these permissions make with this name. An operator has that one alone: it may do everything.
    fn roles(&self, name: &str) -> Vec<FleetRole> {
        let mut roles = FleetRole::ALL.to_vec();
        roles.retain(|role| self.lacks(*role, name).is_empty());
        if roles.contains(&FleetRole::Operator) {
            return vec![FleetRole::Operator];
        }
        roles
    }

    /// Returns what a role needs and this user may not do.
    fn lacks(&self, role: FleetRole, name: &str) -> Vec<String> {
        let mut lacking = Subjects::lacks(self.publish.as_ref(), role.publishes(name));
        lacking.extend(Subjects::lacks(
            self.subscribe.as_ref(),
            role.subscribes(name),
        ));
        if role.answers() && self.responses.is_none() && self.publish.is_some() {
            lacking.push("allow_responses".to_owned());
        }
        lacking
    }
}

impl Fleet {
    /// Checks the server and the streams of the fleet, and what this user may do.
    ///
    /// # Errors
    ///
    /// Fails without a connection to the server.
    pub async fn check(&self) -> Result<Vec<Finding>, ServiceError> {
        if self.client.connection_state() != State::Connected {
            let message = "the connection to the fleet's server is lost: try again when it is back";
            return Err(ServiceError::unreachable(message));
        }
        let server = self.client.server_info();
        let mut findings = vec![version(&server, self.too_old().is_none())];
        if server.max_payload < MESSAGE {
            findings.push(Finding::bad(
                "max_payload",
                format!("a message may have {} bytes only", server.max_payload),
                &format!("set `max_payload` of the server to at least {MESSAGE}"),
            ));
        }
        findings.extend(connection(&server));
        let user = self.user_info().await;
        findings.push(match self.read_clock().await {
            Some(ahead) => clock_finding(None, Some(ahead)),
            None => Finding::warning(
                "clock",
                "the server's time cannot be seen by this user",
                &format!("let the operator permit {USER_INFO}"),
            ),
        });
        findings.extend(self.clocks_of_workers().await);
        let may_see_streams = match &user {
            Some(user) => {
                findings.push(self.permissions(user));
                may_see_streams(&user.data)
            }
            None => true,
        };
        if may_see_streams {
            self.check_streams(&mut findings).await;
        } else {
            findings.push(Finding::good(
                "streams",
                "not looked at: this user may not see their settings",
            ));
        }
        findings.push(Finding::warning(
            "sync_interval",
            "cannot be seen by a client, and without it a power failure can lose acknowledged writes",
            "set `sync_interval: always` in the server's `jetstream` block",
        ));
        findings.push(Finding::warning(
            "encryption",
            "of the server's disk cannot be seen by a client, and prompts and logs are on it",
            "set `key` in the server's `jetstream` block",
        ));
        Ok(findings)
    }

    /// Returns the error of a server that is not new enough.
    pub(crate) fn too_old(&self) -> Option<String> {
        let (major, minor, patch) = OLDEST;
        if self.client.is_server_compatible(major, minor, patch) {
            return None;
        }
        let version = self.client.server_info().version;
        Some(format!(
            "the server has version {version}, which can lose acknowledged writes: use {major}.{minor} or newer"
        ))
    }

    /// Returns findings about the workers whose clocks are wrong. Without the right to read their presence, there are none.
    async fn clocks_of_workers(&self) -> Vec<Finding> {
        let workers = self.workers().await.unwrap_or_default().into_iter();
        let wrong = workers.filter(|worker| worker.clock_ms.is_some());
        wrong
            .map(|worker| clock_finding(Some(&worker.worker), worker.clock_ms))
            .collect()
    }

    /// Returns what the server reports about this user. One that may not ask has none.
    async fn user_info(&self) -> Option<UserInfo> {
        let asked = self.client.request(USER_INFO, bytes::Bytes::new());
        let asked = self.unless_refused(USER_INFO, tokio::time::timeout(ANSWER, asked));
        match asked.await {
            Ok(Ok(Ok(answer))) => serde_json::from_slice(&answer.payload).ok(),
            _ => None,
        }
    }

    fn permissions(&self, info: &UserInfo) -> Finding {
        let name = &*self.owner;
        let permissions = info.data.permissions.as_ref();
        let operator = [FleetRole::Operator];
        let roles = permissions.map_or(operator.to_vec(), |may| may.roles(name));
        let (Some(permissions), false) = (permissions, roles == operator) else {
            return Finding::warning(
                "permissions",
                "of an operator: this user may do everything, and so read all prompts",
                "submit runs as a submitter; each user has one role (submitter, worker, watcher or operator)",
            );
        };
        if let Some(roles) = in_words(&roles) {
            let detail = format!("of {roles} with the name {name}");
            return Finding::good("permissions", detail);
        }
        let user = &*info.data.user;
        if let Some(roles) = in_words(&permissions.roles(user)) {
            let detail = format!("of {roles} with the name {user}, and not {name}");
            let next = format!("use the owner {user}, or the user {name}");
            return Finding::bad("permissions", detail, &next);
        }
        let lacking = FleetRole::ALL.map(|role| (role, permissions.lacks(role, name)));
        let nearest = (lacking.iter())
            .filter(|(role, _)| *role != FleetRole::Operator)
            .min_by_key(|(_, lacking)| lacking.len());
        let detail = nearest.map_or_else(String::new, |(role, lacking)| {
            let mut shown = lacking[..lacking.len().min(SHOWN)].join(", ");
            if lacking.len() > SHOWN {
                shown = format!("{shown} and {} more", lacking.len() - SHOWN);
            }
            format!(
                "of none of the roles with the name {name}; to be a {role}, the user {user} lacks {shown}"
            )
        });
        let next = "use the name of the user as owner, or let the operator give this user the permissions of its role";
        Finding::bad("permissions", detail, next)
    }

    async fn check_streams(&self, findings: &mut Vec<Finding>) {
        for wanted in streams(&FleetLimits::default(), 1) {
            let name = &*wanted.name;
            findings.push(match self.look_at(name).await {
                Ok(None) => {
                    let next = "an operator makes it (`init`)";
                    Finding::bad(name, "is missing", next)
                }
                Ok(Some(found)) => stream_finding(&found, &wanted),
                Err(error) => {
                    findings.push(Finding::bad("jetstream", error.message, ""));
                    return;
                }
            });
        }
    }
}

/// Returns these roles as a part of a sentence; `None` if there are none.
fn in_words(roles: &[FleetRole]) -> Option<String> {
    let names: Vec<_> = roles.iter().map(|role| format!("a {role}")).collect();
    (!names.is_empty()).then(|| names.join(" and "))
}

fn version(server: &ServerInfo, is_new_enough: bool) -> Finding {
    if is_new_enough {
        return Finding::good("version", &*server.version);
    }
    let (major, minor, _) = OLDEST;
    let detail = format!("{} can lose acknowledged writes", server.version);
    let next = format!("use {major}.{minor} or newer");
    Finding::bad("version", detail, &next)
}

/// Checks how this machine reaches the server.
fn connection(server: &ServerInfo) -> Vec<Finding> {
    let mut findings = Vec::new();
    let is_near = (server.client_ip.parse::<IpAddr>()).is_ok_and(|ip| ip.is_loopback());
    if !server.tls_required && !is_near {
        findings.push(Finding::warning(
            "tls",
            "the server takes connections without TLS: prompts and passwords may be read on the way",
            "give the server a certificate, and use `tls://` or `wss://`",
        ));
    }
    if !server.auth_required {
        findings.push(Finding::warning(
            "login",
            "the server takes everyone who reaches it",
            "give the server users with roles",
        ));
    }
    findings
}

/// Checks the clock of a worker, or else that of this machine, which is so far ahead of the server's, in milliseconds.
fn clock_finding(worker: Option<&str>, ahead: Option<i64>) -> Finding {
    let (what, effect) = match worker {
        Some(worker) => (
            format!("clock of {worker}"),
            "the times in its logs are wrong",
        ),
        None => ("clock".to_owned(), "ages of runs are shown wrong here"),
    };
    match ahead.and_then(clock::reported) {
        None => Finding::good(&what, "agrees with that of the server"),
        Some(ahead) => Finding::warning(
            &what,
            format!("is {}: {effect}", clock::in_words(ahead)),
            "synchronize it with a time server",
        ),
    }
}

fn may_see_streams(user: &User) -> bool {
    let wanted = vec!["$JS.API.STREAM.INFO.*".to_owned()];
    let permissions = user.permissions.as_ref();
    permissions.is_none_or(|may| Subjects::lacks(may.publish.as_ref(), wanted).is_empty())
}

fn stream_finding(found: &stream::Info, wanted: &stream::Config) -> Finding {
    let name = &*wanted.name;
    if let Err(error) = refuse_foreign(&found.config, wanted) {
        return Finding::bad(name, error.message, "");
    }
    let copies = found.config.num_replicas;
    let away: Vec<_> = (found.cluster.iter())
        .flat_map(|cluster| &cluster.replicas)
        .filter(|peer| peer.offline || !peer.current)
        .map(|peer| &*peer.name)
        .collect();
    if !away.is_empty() {
        return Finding::warning(
            name,
            format!(
                "{} of {copies} copies are not up to date: {}",
                away.len(),
                away.join(", ")
            ),
            "look at these servers, and do not change the members of the cluster until they are back",
        );
    }
    if copies < COPIES {
        return Finding::warning(
            name,
            "has one copy: a disk that fails loses it",
            "use three servers, and run `init` with three copies",
        );
    }
    Finding::good(name, format!("{copies} copies"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn all_roles_of_a_user_are_named() {
        let may = |roles: &[FleetRole]| {
            let subjects = |of: fn(FleetRole, &str) -> Vec<String>| Subjects {
                allow: Some(roles.iter().flat_map(|role| of(*role, "w1")).collect()),
                deny: Vec::new(),
            };
            Permissions {
                publish: Some(subjects(FleetRole::publishes)),
                subscribe: Some(subjects(FleetRole::subscribes)),
                responses: Some(json!({})),
            }
        };
        let words = |roles| in_words(&may(roles).roles("w1"));
        // Before, it was a watcher alone.
        let both = words(&[FleetRole::Worker, FleetRole::Watcher]);
        assert_eq!(both.as_deref(), Some("a worker and a watcher"));
        let one = words(&[FleetRole::Submitter]);
        assert_eq!(one.as_deref(), Some("a submitter"));
        assert_eq!(words(&[]), None);
        let all = may(&[FleetRole::Operator, FleetRole::Worker]).roles("w1");
        assert_eq!(all, [FleetRole::Operator]);
    }

    #[test]
    fn a_clock_that_is_wrong_is_named_with_what_to_do() {
        let off = clock_finding(Some("w1"), Some(-3_600_000));
        assert_eq!(off.what, "clock of w1");
        assert_eq!(off.verdict, FindingVerdict::Warning);
        assert_eq!(
            off.detail,
            "is 3600 s behind that of the server: the times in its logs are wrong"
        );
        assert_eq!(
            off.next.as_deref(),
            Some("synchronize it with a time server")
        );
        // This machine writes no logs of the fleet.
        let own = clock_finding(None, Some(3_600_000));
        assert_eq!(own.what, "clock");
        assert_eq!(
            own.detail,
            "is 3600 s ahead of that of the server: ages of runs are shown wrong here"
        );
        let near = clock_finding(None, Some(5_000));
        assert_eq!(near.verdict, FindingVerdict::Good);
    }
}
