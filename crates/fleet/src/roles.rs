//! What users of the server may do, by their role: one table for the server's configuration, the checks and the tests.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Write as _};

use teamster_api::ServiceError;

use crate::names::{
    FILE, HOLDS, HOST, LOG, PRESENCES, REFUSALS, RUNS, SESSIONS, WORK, WORKERS, presence, token,
};

/// The request with which a user learns its own permissions and the server's time.
pub(crate) const USER_INFO: &str = "$SYS.REQ.USER.INFO";

/// What a user of the server is in a fleet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FleetRole {
    /// Submits runs under its own name as owner, and reads and controls them; none of others.
    Submitter,
    /// Carries out the runs of all owners, under the name of its worker.
    Worker,
    /// Reads the runs of all owners.
    Watcher,
    /// Makes the streams, and may do everything.
    Operator,
}

impl FleetRole {
    /// All roles.
    pub const ALL: [Self; 4] = [Self::Submitter, Self::Worker, Self::Watcher, Self::Operator];

    /// Returns the subjects to which a user with this name must be allowed to publish.
    pub(crate) fn publishes(self, name: &str) -> Vec<String> {
        let own = |prefix: &str| format!("{prefix}.{name}.>");
        let mut subjects = vec![USER_INFO.to_owned(), "$JS.API.INFO".to_owned()];
        match self {
            Self::Submitter => {
                let (runs, logs, files) = (own("$KV.tm_runs"), own("tm.log"), own("tm.file"));
                subjects.extend([runs.clone(), files.clone()]);
                subjects.extend(["tm.work.>".to_owned(), own("tm.host.*")]);
                subjects.extend([own("tm.ctl"), own("tm.late.*"), own("tm.watch")]);
                subjects.extend(reading(RUNS, &runs));
                subjects.extend(reading(LOG, &logs));
                subjects.extend(reading(FILE, &files));
                subjects.extend(reading(SESSIONS, &own("$KV.tm_sessions")));
                subjects.extend(reading(WORKERS, &format!("{PRESENCES}*")));
                // Why workers leave a run of this owner to others.
                subjects.extend(reading(WORKERS, &format!("{REFUSALS}{name}.>")));
                subjects.extend(reading(HOLDS, "$KV.tm_holds.>"));
            }
            Self::Worker => {
                subjects.extend([
                    "$KV.tm_runs.>".to_owned(),
                    presence(name),
                    format!("{REFUSALS}*.*.{name}"),
                    // The right to repair.
                    "$KV.tm_workers.=care".to_owned(),
                ]);
                let all = [
                    "$KV.tm_sessions.>",
                    "$KV.tm_holds.>",
                    "tm.work.>",
                    "tm.host.>",
                    "tm.log.>",
                    "tm.file.>",
                ];
                subjects.extend(all.map(str::to_owned));
                for stream in ALL_STREAMS {
                    subjects.extend(reading(stream, ">"));
                }
                for queue in [WORK, HOST] {
                    subjects.push(format!("$JS.ACK.{queue}.>"));
                    subjects.push(format!("$JS.API.STREAM.INFO.{queue}"));
                    subjects.push(format!("$JS.API.STREAM.MSG.GET.{queue}"));
                }
                // Hints for one machine are removed by their numbers.
                subjects.push(format!("$JS.API.STREAM.MSG.DELETE.{HOST}"));
            }
            Self::Watcher => {
                // Without the sessions: the salt of the logins is there.
                for stream in [RUNS, LOG, FILE, WORKERS, HOLDS] {
                    subjects.extend(reading(stream, ">"));
                }
                subjects.push("tm.watch.>".to_owned());
                subjects.push("$JS.API.STREAM.INFO.*".to_owned());
            }
            Self::Operator => return vec![">".to_owned()],
        }
        subjects
    }

    /// Returns the subjects to which a user with this name must be allowed to subscribe.
    pub(crate) fn subscribes(self, name: &str) -> Vec<String> {
        let inbox = format!("{}.>", inbox(name));
        match self {
            Self::Submitter | Self::Watcher => vec![inbox],
            Self::Worker => vec![
                inbox,
                "tm.ctl.*.*".to_owned(),
                "tm.watch.*.*".to_owned(),
                format!("tm.late.{name}.>"),
                format!("tm.drain.{name}"),
            ],
            Self::Operator => vec![">".to_owned()],
        }
    }

    /// Returns whether a user may answer requests, whose subjects others choose.
    pub(crate) fn answers(self) -> bool {
        self == Self::Worker
    }
}

impl fmt::Display for FleetRole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Submitter => "submitter",
            Self::Worker => "worker",
            Self::Watcher => "watcher",
            Self::Operator => "operator",
        })
    }
}

const ALL_STREAMS: [&str; 8] = [RUNS, LOG, FILE, WORKERS, SESSIONS, HOLDS, WORK, HOST];

/// The prefix of the subjects of answers to a user, which no other one may read.
pub(crate) fn inbox(name: &str) -> String {
    format!("_INBOX_{name}")
}

/// The requests that read these subjects of a stream. `STREAM.MSG.GET` is not among them: its subject is in its body,
/// where permissions cannot see it.
fn reading(stream: &str, subjects: &str) -> [String; 5] {
    [
        format!("$JS.API.DIRECT.GET.{stream}.{subjects}"),
        format!("$JS.API.CONSUMER.CREATE.{stream}.*.{subjects}"),
        // Of consumers with random names.
        format!("$JS.API.CONSUMER.MSG.NEXT.{stream}.*"),
        // After the connection was lost: whether the consumer still waits.
        format!("$JS.API.CONSUMER.INFO.{stream}.*"),
        format!("$JS.API.CONSUMER.DELETE.{stream}.*"),
    ]
}

/// A user of the server.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FleetUser {
    /// Name of the user: the owner of its runs, or the name of the worker.
    pub name: String,
    /// What the user is.
    pub role: FleetRole,
    /// How the user proves its name.
    pub login: FleetLogin,
}

/// How a user proves its name.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum FleetLogin {
    /// The public key (`U…`) of a pair that `nk -gen user` makes.
    Nkey(String),
    /// A password, or its bcrypt hash, which `nats server passwd` makes.
    Password(String),
}

impl fmt::Debug for FleetLogin {
    /// Without the password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Nkey(_) => "Nkey",
            Self::Password(_) => "Password",
        })
    }
}

impl FleetUser {
    /// Creates a user.
    ///
    /// # Errors
    ///
    /// Fails if the name cannot be in a subject.
    pub fn new(
        name: impl Into<String>,
        role: FleetRole,
        login: FleetLogin,
    ) -> Result<Self, ServiceError> {
        let name = token("name", &name.into())?;
        Ok(Self { name, role, login })
    }
}

/// Returns the block `accounts` of the server's configuration: the account of the streams, with the workers and the
/// operators, and one for each other name, into which it imports the subjects of its role. Users of one name, such as two
/// keys of a person, share that.
///
/// A server answers to any subject that a request names, with its own rights. In an account of its own, who asks gets the
/// answer there, and cannot let the server write into a stream. Users of another `account` do not see anything of these.
pub fn server_accounts(account: &str, users: &[FleetUser]) -> String {
    let (inside, outside): (Vec<_>, Vec<_>) = users
        .iter()
        .partition(|user| matches!(user.role, FleetRole::Worker | FleetRole::Operator));
    let mut accounts: BTreeMap<String, Vec<&FleetUser>> = BTreeMap::new();
    let mut exports: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for user in outside {
        let own = quoted(&format!("{account}_{}", user.name));
        for subject in imported(user) {
            exports.entry(subject).or_default().insert(own.clone());
        }
        accounts.entry(own).or_default().push(user);
    }
    let mut text = format!("accounts {{\n  {account} {{\n    jetstream: enabled\n");
    add_users(&mut text, &inside);
    text.push_str("    exports: [\n");
    for (subject, users) in exports {
        // A request for messages has several answers.
        let several = if subject.contains(".MSG.NEXT.") {
            "response_type: Stream, "
        } else {
            ""
        };
        // Writing into a string does not fail.
        let _ = writeln!(
            text,
            "      {{ service: {}, {several}accounts: [{}] }}",
            quoted(&subject),
            users.into_iter().collect::<Vec<_>>().join(", ")
        );
    }
    text.push_str("    ]\n  }\n");
    for (own, users) in accounts {
        let _ = writeln!(text, "  {own} {{");
        add_users(&mut text, &users);
        text.push_str("    imports: [\n");
        let subjects: BTreeSet<_> = users.into_iter().flat_map(imported).collect();
        for subject in subjects {
            let subject = quoted(&subject);
            let _ = writeln!(
                text,
                "      {{ service: {{ account: {account}, subject: {subject} }} }}"
            );
        }
        text.push_str("    ]\n  }\n");
    }
    text.push_str("}\n");
    text
}

/// Returns what the account of a user has of the account of the streams. What is about the user itself is in each.
fn imported(user: &FleetUser) -> BTreeSet<String> {
    let mut subjects: BTreeSet<_> = user.role.publishes(&user.name).into_iter().collect();
    subjects.remove(USER_INFO);
    subjects
}

/// Adds the users of an account, with their permissions.
fn add_users(text: &mut String, users: &[&FleetUser]) {
    text.push_str("    users: [\n");
    for user in users {
        let login = match &user.login {
            FleetLogin::Nkey(key) => format!("nkey: {}", quoted(key)),
            FleetLogin::Password(password) => {
                format!(
                    "user: {}, password: {}",
                    quoted(&user.name),
                    quoted(password)
                )
            }
        };
        // Writing into a string does not fail.
        let _ = writeln!(text, "      # {}: {}", user.name, user.role);
        let _ = writeln!(text, "      {{ {login}, permissions: {{");
        let list = |subjects: Vec<String>| {
            let subjects: Vec<_> = subjects.iter().map(|subject| quoted(subject)).collect();
            subjects.join(",\n          ")
        };
        let publish = list(user.role.publishes(&user.name));
        let subscribe = list(user.role.subscribes(&user.name));
        let _ = writeln!(text, "        publish: [\n          {publish}\n        ]");
        let _ = writeln!(
            text,
            "        subscribe: [\n          {subscribe}\n        ]"
        );
        if user.role.answers() {
            let _ = writeln!(text, "        allow_responses: true");
        }
        let _ = writeln!(text, "      }} }}");
    }
    text.push_str("    ]\n");
}

/// A string of the server's configuration.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

/// Returns whether one of these patterns has all subjects of another pattern.
pub(crate) fn covers(patterns: &[String], wanted: &str) -> bool {
    patterns.iter().any(|pattern| has_all(pattern, wanted))
}

fn has_all(pattern: &str, wanted: &str) -> bool {
    let (mut pattern, mut wanted) = (pattern.split('.'), wanted.split('.'));
    loop {
        return match (pattern.next(), wanted.next()) {
            (Some(">"), Some(_)) | (None, None) => true,
            (Some("*"), Some(token)) if token != ">" => continue,
            (Some(one), Some(other)) if one == other => continue,
            _ => false,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_have_the_subjects_of_narrower_ones() {
        for (pattern, wanted, expected) in [
            (">", "a.>", true),
            ("a.>", "a.b.c", true),
            ("a.>", "a", false),
            ("a.*", "a.b", true),
            ("a.*", "a.*", true),
            ("a.*", "a.>", false),
            ("a.b", "a.*", false),
            ("a.*.c.>", "a.b.c.d", true),
            ("a.b", "a.b.c", false),
        ] {
            assert_eq!(has_all(pattern, wanted), expected, "{pattern} {wanted}");
        }
    }

    #[test]
    fn submitter_may_not_read_by_a_subject_in_a_request_body() {
        for role in [FleetRole::Submitter, FleetRole::Watcher] {
            let may = role.publishes("ann");
            for request in [
                "$JS.API.STREAM.MSG.GET.KV_tm_runs",
                "$JS.API.DIRECT.GET.KV_tm_runs",
                "$JS.API.CONSUMER.CREATE.KV_tm_runs",
                "$JS.API.CONSUMER.CREATE.KV_tm_runs.x",
                "$JS.API.STREAM.UPDATE.KV_tm_runs",
            ] {
                assert!(!covers(&may, request), "{role} {request}");
            }
        }
        let may = FleetRole::Submitter.publishes("ann");
        assert!(covers(&may, "$JS.API.DIRECT.GET.TM_LOG.tm.log.ann.r1"));
        assert!(!covers(&may, "$JS.API.DIRECT.GET.TM_LOG.tm.log.bob.r1"));
        assert!(!covers(&may, "$JS.API.STREAM.INFO.TM_FILE"));
    }

    #[test]
    fn users_of_one_name_share_its_account() {
        let user = |role, key: &str| {
            FleetUser::new("ann", role, FleetLogin::Nkey(key.to_owned())).unwrap()
        };
        let config = server_accounts(
            "TEAM",
            &[
                user(FleetRole::Submitter, "U1"),
                user(FleetRole::Submitter, "U2"),
                user(FleetRole::Watcher, "U3"),
            ],
        );
        // Before, there was an account for each, and the server took the last one.
        assert_eq!(config.matches("  \"TEAM_ann\" {").count(), 1, "{config}");
        assert!(!config.contains("\"TEAM_ann\", \"TEAM_ann\""), "{config}");
        let (_, own) = config.split_once("  \"TEAM_ann\" {").unwrap();
        for key in ["U1", "U2", "U3"] {
            assert!(own.contains(&format!("nkey: \"{key}\"")), "{own}");
        }
        let imports = |subject: &str| {
            let line = format!("service: {{ account: TEAM, subject: \"{subject}\" }}");
            own.matches(&line).count()
        };
        // What both roles have, and what one of them has.
        assert_eq!(imports("$JS.API.INFO"), 1);
        assert_eq!(imports("$KV.tm_runs.ann.>"), 1);
        assert_eq!(imports("tm.watch.>"), 1);
    }

    #[test]
    fn secrets_of_users_are_not_shown() {
        let login = FleetLogin::Password("hunter2".to_owned());
        let user = FleetUser::new("ann", FleetRole::Submitter, login).unwrap();
        assert!(!format!("{user:?}").contains("hunter2"));
        let config = server_accounts("TEAM", &[user]);
        assert!(
            config.contains("user: \"ann\", password: \"hunter2\""),
            "{config}"
        );
        let refused = FleetUser::new("a.b", FleetRole::Watcher, FleetLogin::Nkey("U".to_owned()));
        assert_eq!(refused.unwrap_err().parameter.as_deref(), Some("name"));
    }
}
