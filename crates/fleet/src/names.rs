//! Names of streams and subjects, and what of users' names can be in them.
//!
//! A subject consists of tokens between dots, and permissions of NATS users are patterns of them. So an owner, a pool and
//! a worker are refused unless they are one plain token. A run's id may have dots and colons, and a file any name: these
//! are escaped.

use std::fmt::Write as _;

use teamster_api::is_owned_run_id;
use teamster_api::{ServiceError, is_run_id, is_turn_id};
use teamster_core::AgentError;
use teamster_core::text::one_line;

/// Stream of the hints that a run waits.
pub(crate) const WORK: &str = "TM_WORK";
/// Stream of the hints for one machine.
pub(crate) const HOST: &str = "TM_HOST";
/// Stream of the copies of logs.
pub(crate) const LOG: &str = "TM_LOG";
/// Stream of the files that runs take along and bring back.
pub(crate) const FILE: &str = "TM_FILE";
/// Stream of the records of runs.
pub(crate) const RUNS: &str = "KV_tm_runs";
/// Stream of the presence of workers.
pub(crate) const WORKERS: &str = "KV_tm_workers";
/// Stream of the machines of sessions.
pub(crate) const SESSIONS: &str = "KV_tm_sessions";
/// Stream of the limits that agents have reported.
pub(crate) const HOLDS: &str = "KV_tm_holds";

/// Maximum length of an owner, a pool or a worker.
const LONGEST: usize = 64;

/// The class of all work, until there are others.
const CLASS: &str = "n";

/// Returns `name` if it can be a token: letters, digits, `-` and `_`. Refuses others by the name of the parameter.
pub(crate) fn token(parameter: &str, name: &str) -> Result<String, ServiceError> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
    if !name.is_empty() && name.len() <= LONGEST && name.bytes().all(is_plain) {
        return Ok(name.to_owned());
    }
    let problem = format!(
        "\"{}\" cannot be in a subject: use up to {LONGEST} letters, digits, `-` and `_`",
        one_line(name)
    );
    Err(AgentError::refused(parameter, problem).into())
}

/// Escapes what a token of a subject cannot have: each such byte becomes `=` and two hexadecimal digits.
pub(crate) fn escape(name: &str) -> String {
    let mut token = String::with_capacity(name.len());
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_".contains(&byte) {
            token.push(char::from(byte));
        } else {
            // Writing into a string does not fail.
            let _ = write!(token, "={byte:02X}");
        }
    }
    token
}

/// Returns the name that was [escaped](escape); `None` if it was none.
pub(crate) fn unescape(token: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(token.len());
    let mut rest = token.as_bytes();
    while let [byte, tail @ ..] = rest {
        if *byte == b'=' {
            let digits = std::str::from_utf8(tail.get(..2)?).ok()?;
            bytes.push(u8::from_str_radix(digits, 16).ok()?);
            rest = &tail[2..];
        } else {
            bytes.push(*byte);
            rest = tail;
        }
    }
    String::from_utf8(bytes).ok()
}

/// A run of an owner, as part of a subject.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct RunKey {
    pub(crate) owner: String,
    pub(crate) run: String,
}

impl RunKey {
    pub(crate) fn new(owner: &str, run: &str) -> Self {
        Self {
            owner: owner.to_owned(),
            run: run.to_owned(),
        }
    }

    /// Reads the key `<owner>.<run>`.
    pub(crate) fn parse(key: &str) -> Option<Self> {
        let (owner, run) = key.split_once('.')?;
        let is_id = |run: &String| is_run_id(run) && !run.contains('@') && !is_turn_id(run);
        let run = unescape(run).filter(is_id)?;
        token("owner", owner).ok().map(|owner| Self { owner, run })
    }

    /// Reads the subject of a record.
    pub(crate) fn of_record(subject: &str) -> Option<Self> {
        Self::parse(subject.strip_prefix("$KV.tm_runs.")?)
    }

    pub(crate) fn of_log(subject: &str) -> Option<Self> {
        Self::parse(subject.strip_prefix("tm.log.")?)
    }

    /// The id of the run on the machine that carries it out: none that a person or another owner can have there. It is the
    /// name of a folder.
    pub(crate) fn local(&self) -> String {
        format!("{}@{}", self.owner, self.run)
    }

    /// Reads the [local id](Self::local).
    pub(crate) fn of_local(local: &str) -> Option<Self> {
        let (owner, run) = local.split_once('@')?;
        is_owned_run_id(local).then(|| Self::new(owner, run))
    }

    /// The text of a hint.
    pub(crate) fn key(&self) -> String {
        format!("{}.{}", self.owner, escape(&self.run))
    }

    pub(crate) fn record(&self) -> String {
        format!("$KV.tm_runs.{}", self.key())
    }

    pub(crate) fn log(&self) -> String {
        format!("tm.log.{}", self.key())
    }

    /// The subject of requests to the run's machine.
    pub(crate) fn control(&self) -> String {
        format!("tm.ctl.{}", self.key())
    }

    /// The subject on which readers of the run's log say that they are there.
    pub(crate) fn watch(&self) -> String {
        format!("tm.watch.{}", self.key())
    }

    /// The subject of requests about the run after its end, to the worker that had it.
    pub(crate) fn late_control(&self, worker: &str) -> String {
        format!("tm.late.{worker}.{}", self.key())
    }

    /// The prefix of the subjects of the run's files.
    pub(crate) fn files(&self) -> String {
        format!("tm.file.{}", self.key())
    }
}

/// The prefix of the subjects of requests about runs that a worker had.
pub(crate) fn late_controls(worker: &str) -> String {
    format!("tm.late.{worker}.")
}

/// The subjects of the records of an owner's runs.
pub(crate) fn records_of(owner: &str) -> String {
    format!("$KV.tm_runs.{owner}.>")
}

/// The subjects of the logs of an owner's runs.
pub(crate) fn logs_of(owner: &str) -> String {
    format!("tm.log.{owner}.>")
}

/// The start of the subjects of the presence of workers.
///
/// Permissions see the filter of a reader as it is, and `*` allows `>`. So what is for all has a first part of its own.
pub(crate) const PRESENCES: &str = "$KV.tm_workers.=here.";

/// The subject of a worker's presence.
pub(crate) fn presence(worker: &str) -> String {
    format!("{PRESENCES}{worker}")
}

/// The start of the subjects of what workers have refused.
pub(crate) const REFUSALS: &str = "$KV.tm_workers.=why.";

/// The subject of the reason why a worker has refused a run.
pub(crate) fn refusal(worker: &str, key: &RunKey) -> String {
    format!("{REFUSALS}{}.{worker}", key.key())
}

/// The subject of requests to a worker to take no more runs.
pub(crate) fn drain(worker: &str) -> String {
    format!("tm.drain.{worker}")
}

/// The start of the subjects of hints for pools.
pub(crate) const WORK_SUBJECTS: &str = "tm.work.";
/// The start of the subjects of hints for machines.
pub(crate) const HOST_SUBJECTS: &str = "tm.host.";

/// The subject of hints for workers of a pool with this agent.
pub(crate) fn work(pool: &str, provider: &str) -> String {
    format!("{WORK_SUBJECTS}{pool}.{}.{CLASS}", escape(provider))
}

/// The subject of the hint for one machine that this run waits for it.
pub(crate) fn host(worker: &str, key: &RunKey) -> String {
    format!("{HOST_SUBJECTS}{worker}.{}", key.key())
}

/// The subjects of the hints for one machine.
pub(crate) fn hosts(worker: &str) -> String {
    format!("{HOST_SUBJECTS}{worker}.>")
}

/// The consumer of these hints, and the subjects that it has.
pub(crate) fn work_consumer(pool: &str, provider: &str) -> (String, String) {
    let provider = escape(provider);
    let mut name = format!("{pool}_{provider}");
    // Where the pool ends.
    if name.matches('_').count() > 1 {
        name = format!("{}_{name}", pool.len());
    }
    (name, format!("tm.work.{pool}.{provider}.*"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owners_pools_and_workers_are_one_plain_token() {
        for name in ["ann", "build-1", "GPU_2"] {
            assert_eq!(token("owner", name).unwrap(), name);
        }
        for name in ["", "a.b", "jürgen", "a b", "*", ">", "$KV", &"x".repeat(65)] {
            let refused = token("owner", name).unwrap_err();
            assert_eq!(refused.parameter.as_deref(), Some("owner"), "{name}");
            assert!(refused.message.contains("cannot be in a subject"));
        }
    }

    #[test]
    fn ids_with_dots_and_files_with_any_name_are_one_token() {
        for (name, escaped) in [
            ("r-1_b", "r-1_b"),
            ("a.b:c", "a=2Eb=3Ac"),
            ("ä b/>*", "=C3=A4=20b=2F=3E=2A"),
            ("=", "=3D"),
        ] {
            assert_eq!(escape(name), escaped);
            assert_eq!(unescape(escaped).as_deref(), Some(name));
        }
        for broken in ["=", "=4", "=ZZ", "=FF"] {
            assert_eq!(unescape(broken), None, "{broken}");
        }
        let key = RunKey::new("ann", "a.b:c");
        assert_eq!(key.record(), "$KV.tm_runs.ann.a=2Eb=3Ac");
        assert_eq!(RunKey::of_record(&key.record()), Some(key));
        for foreign in [
            "$KV.tm_runs.ann",
            "$KV.tm_runs.a b.r",
            "$KV.tm_runs.ann.=",
            "$KV.x.a.b",
        ] {
            assert_eq!(RunKey::of_record(foreign), None, "{foreign}");
        }
    }

    #[test]
    fn each_pool_and_agent_has_a_queue_of_its_own() {
        assert_eq!(work("default", "claude"), "tm.work.default.claude.n");
        let (name, subjects) = work_consumer("default", "my agent");
        assert_eq!(name, "default_my=20agent");
        assert_eq!(subjects, "tm.work.default.my=20agent.*");
        let names = [("a_b", "c"), ("a", "b_c"), ("a", "b c"), ("a", "b-20c")]
            .map(|(pool, agent)| work_consumer(pool, agent).0);
        let different: std::collections::BTreeSet<_> = names.iter().collect();
        assert_eq!(different.len(), names.len(), "{names:?}");
    }
}
