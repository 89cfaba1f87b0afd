//! Tries an agent of the Agent Client Protocol: starts it, asks it who it is and for a session, and ends it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::Serialize;
use serde_json::Value;
use teamster_acp::{AcpAgent, Introduce, Introduction};
use teamster_core::text::one_line;
use teamster_core::time::millis;
use teamster_core::{
    AgentError, AgentEvent, ErrorCode, ErrorKind, EventStream, ExecuteParams, NoticeSource,
    RunResult, SessionOptions, SessionProvider, SessionRuntime, Turn,
};
use teamster_process::{CliRuntime, RuntimeConfig};

use crate::Providers;

/// An agent that has printed more lines than this that are no message will not print one.
const MOST_GARBAGE: usize = 10_000;

/// How long it may take to end a request that it does not answer.
const GRACE: Duration = Duration::from_millis(500);

/// The version of the protocol that is spoken here.
const VERSION: u64 = 1;

/// What came of it. The JSON form is that of `teamster doctor --try --json`.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct AcpProbed {
    /// The agent, as it was named.
    pub agent: String,
    /// Whether it can be used.
    pub verdict: Verdict,
    /// What is wrong, in a sentence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// What to do next.
    pub next: String,
    /// The name that it gives itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The version that it gives itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The capabilities that it announces: `agentCapabilities`.
    #[serde(skip_serializing_if = "Value::is_null")]
    pub capabilities: Value,
    /// The ways to log in that it announces: `authMethods`.
    #[serde(skip_serializing_if = "Value::is_null")]
    pub auth_methods: Value,
    /// The answer to `session/new`.
    #[serde(skip_serializing_if = "Value::is_null")]
    pub session: Value,
    /// The first line on stdout that was no message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub garbage: Option<String>,
    /// The end of stderr, if it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stderr: Option<String>,
    /// How long it took.
    pub duration_ms: u64,
}

impl AcpProbed {
    /// An agent that can be used or not, and what to do next.
    pub fn new(agent: impl Into<String>, verdict: Verdict, next: impl Into<String>) -> Self {
        Self {
            agent: agent.into(),
            verdict,
            problem: None,
            next: next.into(),
            name: None,
            version: None,
            capabilities: Value::Null,
            auth_methods: Value::Null,
            session: Value::Null,
            garbage: None,
            stderr: None,
            duration_ms: 0,
        }
    }
}

/// Whether an agent can be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Verdict {
    /// It has opened a session.
    Ready,
    /// It speaks the protocol, and wants a login first.
    LoginNeeded,
    /// It speaks the protocol, and opened no session.
    NoSession,
    /// It speaks another version of the protocol.
    OtherVersion,
    /// It does not speak the protocol.
    NotAnAgent,
    /// It did not answer in time.
    TimedOut,
    /// Its program cannot be started.
    NotStarted,
}

/// Tries the agent of this name or command (`acp:my-agent --acp`). An error is a name that cannot be tried;
/// nothing was started then. When this returns, nothing of the agent is alive.
///
/// ```no_run
/// use std::time::Duration;
/// use teamster::RuntimeConfig;
/// use teamster::acp_probe::{Verdict, probe};
///
/// # async fn example() -> Result<(), teamster::AgentError> {
/// let limit = Duration::from_secs(30);
/// let probed = probe("acp:my-agent --acp", RuntimeConfig::default(), limit).await?;
/// assert_eq!(probed.verdict, Verdict::Ready);
/// # Ok(())
/// # }
/// ```
pub async fn probe(
    name: &str,
    mut config: RuntimeConfig,
    limit: Duration,
) -> Result<AcpProbed, AgentError> {
    let agent = agent(name)?;
    let id = agent.info().id;
    let provider = Introduce::new(agent);
    let begun = Instant::now();
    let mut params = ExecuteParams::default();
    params.working_directory = std::env::current_dir().ok();
    // The limit is ours.
    params.timeouts.startup = Some(limit.saturating_mul(2));
    params.timeouts.idle = Some(limit.saturating_mul(2));
    config.interrupt_grace = config.interrupt_grace.min(GRACE);
    let runtime = CliRuntime::with_config(provider.clone(), config);
    let session = runtime.open(SessionOptions::new(params))?;
    let turn = read(session.send(Turn::new("-")));
    let result = tokio::time::timeout(limit, turn).await.ok().flatten();
    session.close().await;
    let seen = provider.seen();
    let next = format!("teamster run '{id}' \"What is in this directory?\"");
    let mut probed = AcpProbed::new(id, Verdict::Ready, next);
    probed.garbage.clone_from(&seen.garbage);
    probed.stderr = result.as_ref().and_then(|result| result.stderr.clone());
    probed.duration_ms = millis(begun.elapsed());
    judge(&mut probed, &seen, result.as_ref(), limit);
    if probed.verdict == Verdict::Ready {
        probed.stderr = None;
    }
    Ok(probed)
}

/// Reads to the end of the turn; `None` if the agent only prints what is no message.
async fn read(mut events: EventStream) -> Option<RunResult> {
    let mut garbage = 0;
    while let Some(event) = events.next().await {
        match event {
            AgentEvent::Done(done) => return Some(*done.result),
            AgentEvent::Notice(notice) if notice.source == NoticeSource::Stdout => garbage += 1,
            _ => {}
        }
        if garbage > MOST_GARBAGE {
            return None;
        }
    }
    None
}

fn agent(name: &str) -> Result<Arc<dyn SessionProvider>, AgentError> {
    if let Some(agent) = AcpAgent::named(name) {
        return Ok(Arc::new(agent?));
    }
    let known = Providers::builtin().all_with_sessions().into_iter();
    let mut talking = known.filter(SessionProvider::only_sessions);
    let wanted = crate::provider(name).map(|provider| provider.info().id);
    let found = talking.find(|provider| Some(provider.info().id) == wanted);
    found.ok_or_else(|| {
        AgentError::invalid_params(format!(
            "`{}` cannot be tried: name an ACP agent by its command, after `acp:`, as in `acp:my-agent --acp`",
            teamster_core::text::excerpt(name, 100)
        ))
    })
}

fn judge(probed: &mut AcpProbed, seen: &Introduction, result: Option<&RunResult>, limit: Duration) {
    let mut is = |verdict, problem: String, next: &str| {
        probed.verdict = verdict;
        probed.problem = Some(problem);
        next.clone_into(&mut probed.next);
    };
    let seconds = limit.as_secs_f64();
    match (&seen.initialized, &seen.session) {
        (None, _) => {
            let (verdict, problem) = no_agent(seen, result, seconds);
            let next = match verdict {
                Verdict::NotStarted => "install it, or give its full path",
                _ => {
                    "check the command: many agents speak the protocol only with a flag or a \
                     subcommand, such as `--acp`, `--experimental-acp` or `acp`"
                }
            };
            is(verdict, problem, next);
        }
        (Some(Err(error)), _) => is(
            Verdict::NotAnAgent,
            format!("it refused `initialize`: {}", error.message),
            "see the agent's own documentation",
        ),
        (Some(Ok(answer)), session) => {
            let text = |value: &Value| value.as_str().map(str::to_owned);
            let version = answer["protocolVersion"].as_u64();
            match session {
                _ if version.is_none() => is(
                    Verdict::NotAnAgent,
                    "its answer to `initialize` names no version of the protocol".to_owned(),
                    "see the agent's own documentation",
                ),
                _ if version != Some(VERSION) => is(
                    Verdict::OtherVersion,
                    format!(
                        "it speaks version {} of the protocol, and teamster version {VERSION}",
                        version.unwrap_or_default()
                    ),
                    "try another version of the agent",
                ),
                Some(Ok(_)) => {}
                Some(Err(error)) if error.kind == ErrorKind::Auth => is(
                    Verdict::LoginNeeded,
                    format!("it opens no session without a login: {}", error.message),
                    "log in with the agent's own program, or set its key in the environment",
                ),
                Some(Err(error)) => is(
                    Verdict::NoSession,
                    format!("it refused `session/new`: {}", error.message),
                    "see the agent's own documentation",
                ),
                None => {
                    let (verdict, problem) = match result {
                        None => (
                            Verdict::TimedOut,
                            format!("it did not answer `session/new` within {seconds} s"),
                        ),
                        Some(result) => (Verdict::NoSession, ended(result, "`session/new`")),
                    };
                    is(verdict, problem, "see its stderr");
                }
            }
            probed.name =
                text(&answer["agentInfo"]["title"]).or(text(&answer["agentInfo"]["name"]));
            probed.version = text(&answer["agentInfo"]["version"]);
            probed.capabilities = answer["agentCapabilities"].clone();
            probed.auth_methods = answer["authMethods"].clone();
            if let Some(Ok(session)) = session {
                probed.session = session.clone();
            }
        }
    }
}

/// Why a command is no agent.
fn no_agent(seen: &Introduction, result: Option<&RunResult>, seconds: f64) -> (Verdict, String) {
    let printed = seen.garbage.as_deref().map(one_line).map_or_else(
        || "printed nothing".to_owned(),
        |line| format!("printed {line:?}, which is no message of the protocol"),
    );
    let Some(result) = result else {
        if seen.lines > MOST_GARBAGE as u64 {
            return (Verdict::NotAnAgent, format!("it {printed}, and so on"));
        }
        return (
            Verdict::TimedOut,
            format!("it did not answer `initialize` within {seconds} s; it {printed}"),
        );
    };
    let error = result.errors.iter().find(|error| {
        matches!(
            error.code,
            ErrorCode::CliNotFound | ErrorCode::InvalidParams
        )
    });
    match error {
        Some(error) => (Verdict::NotStarted, error.message.clone()),
        None => (
            Verdict::NotAnAgent,
            format!("it {printed}, and {}", ended(result, "`initialize`")),
        ),
    }
}

fn ended(result: &RunResult, request: &str) -> String {
    match (result.exit_code, &result.exit_signal) {
        (_, Some(signal)) => format!("was ended by {signal} before it answered {request}"),
        (Some(code), None) => format!("ended with exit code {code} before it answered {request}"),
        (None, None) => format!("ended before it answered {request}"),
    }
}
