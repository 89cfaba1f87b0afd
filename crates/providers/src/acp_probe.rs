//! Probe of agents of the Agent Client Protocol: starts an agent, initializes it, opens a session, and ends it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::Serialize;
use serde_json::Value;
use teamster_acp::{AcpAgent, Probe, ProbeResponses};
use teamster_core::text::one_line;
use teamster_core::time::millis;
use teamster_core::{
    AgentError, AgentEvent, ErrorCode, ErrorKind, EventStream, ExecuteParams, NoticeSource,
    RunResult, SessionOptions, SessionProvider, SessionRuntime, Turn,
};
use teamster_process::{CliRuntime, RuntimeConfig};

use crate::Providers;

/// Number of lines without a message after which the agent is given up.
const MAX_GARBAGE_LINES: usize = 10_000;

/// Time that the agent may take to cancel an unanswered request.
const INTERRUPT_GRACE: Duration = Duration::from_millis(500);

/// Supported version of the protocol.
const VERSION: u64 = 1;

/// Result of a probe. Its JSON is that of `teamster doctor --try --json`.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct AcpProbed {
    /// Id of the agent, such as `acp:my-agent --acp`.
    pub agent: String,
    /// The verdict.
    pub verdict: Verdict,
    /// The problem, in a sentence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// Next step for the user.
    pub next: String,
    /// Name that the agent reports.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Version that the agent reports.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Capabilities that the agent reports: `agentCapabilities`.
    #[serde(skip_serializing_if = "Value::is_null")]
    pub capabilities: Value,
    /// Login methods that the agent reports: `authMethods`.
    #[serde(skip_serializing_if = "Value::is_null")]
    pub auth_methods: Value,
    /// Response to `session/new`.
    #[serde(skip_serializing_if = "Value::is_null")]
    pub session: Value,
    /// First line on stdout that was no message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub garbage: Option<String>,
    /// End of stderr, if the probe failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stderr: Option<String>,
    /// Duration of the probe, in milliseconds.
    pub duration_ms: u64,
}

impl AcpProbed {
    /// Creates a result without details.
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

    /// Returns the ids of the models that the session offers.
    pub fn models(&self) -> Vec<&str> {
        ids(&self.session["models"]["availableModels"], "modelId")
    }

    /// Returns the ids of the modes that the session offers.
    pub fn modes(&self) -> Vec<&str> {
        ids(&self.session["modes"]["availableModes"], "id")
    }

    /// Returns the ids of the login methods.
    pub fn logins(&self) -> Vec<&str> {
        ids(&self.auth_methods, "id")
    }
}

fn ids<'a>(list: &'a Value, key: &str) -> Vec<&'a str> {
    let items = list.as_array().into_iter().flatten();
    items.filter_map(|item| item[key].as_str()).collect()
}

/// Verdict of a probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Verdict {
    /// The agent opened a session.
    Ready,
    /// The agent speaks the protocol and requires a login.
    LoginNeeded,
    /// The agent speaks the protocol and opened no session.
    NoSession,
    /// The agent speaks another version of the protocol.
    OtherVersion,
    /// The program does not speak the protocol.
    NotAnAgent,
    /// The agent did not answer in time.
    TimedOut,
    /// The program cannot be started.
    NotStarted,
}

/// Probes the agent with this name or command (`acp:my-agent --acp`) for at most `limit`. When this returns,
/// all processes of the agent have ended.
///
/// # Errors
///
/// Fails without starting a process if the name cannot be probed.
///
/// ```no_run
/// use std::time::Duration;
/// use teamster_process::RuntimeConfig;
/// use teamster_providers::acp_probe::{Verdict, probe};
///
/// # async fn example() -> Result<(), teamster_core::AgentError> {
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
    let provider = Probe::new(agent);
    let begun = Instant::now();
    let mut params = ExecuteParams::default();
    params.working_directory = std::env::current_dir().ok();
    // The probe has its own time limit.
    params.timeouts.startup = Some(limit.saturating_mul(2));
    params.timeouts.idle = Some(limit.saturating_mul(2));
    config.interrupt_grace = config.interrupt_grace.min(INTERRUPT_GRACE);
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

/// Reads to the end of the turn. Returns `None` if the agent prints only lines that are no message.
async fn read(mut events: EventStream) -> Option<RunResult> {
    let mut garbage = 0;
    while let Some(event) = events.next().await {
        match event {
            AgentEvent::Done(done) => return Some(*done.result),
            AgentEvent::Notice(notice) if notice.source == NoticeSource::Stdout => garbage += 1,
            _ => {}
        }
        if garbage > MAX_GARBAGE_LINES {
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
    let mut candidates = known.filter(SessionProvider::only_sessions);
    let id = Providers::builtin()
        .get(name)
        .map(|provider| provider.info().id);
    let found = candidates.find(|provider| Some(provider.info().id) == id);
    found.ok_or_else(|| {
        AgentError::invalid_params(format!(
            "`{}` cannot be tried: name an ACP agent by its command, after `acp:`, as in `acp:my-agent --acp`",
            teamster_core::text::excerpt(name, 100)
        ))
    })
}

fn judge(
    probed: &mut AcpProbed,
    seen: &ProbeResponses,
    result: Option<&RunResult>,
    limit: Duration,
) {
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
                    "its response to `initialize` has no protocol version".to_owned(),
                    "see the agent's own documentation",
                ),
                _ if version != Some(VERSION) => is(
                    Verdict::OtherVersion,
                    format!(
                        "it speaks version {} of the protocol; teamster supports version {VERSION}",
                        version.unwrap_or_default()
                    ),
                    "try another version of the agent",
                ),
                Some(Ok(_)) => {}
                Some(Err(error)) if error.kind == ErrorKind::Auth => is(
                    Verdict::LoginNeeded,
                    format!("it requires a login: {}", error.message),
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

/// Returns the verdict for a program that did not answer `initialize`.
fn no_agent(seen: &ProbeResponses, result: Option<&RunResult>, seconds: f64) -> (Verdict, String) {
    let printed = seen.garbage.as_deref().map(one_line).map_or_else(
        || "printed nothing".to_owned(),
        |line| format!("printed {line:?}, which is not a message of the protocol"),
    );
    let Some(result) = result else {
        if seen.lines > MAX_GARBAGE_LINES as u64 {
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
