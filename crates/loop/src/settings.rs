//! Settings of a loop, from its environment and the agent's `.env`.
//!
//! The settings of the supervisor are in `supervisor/config.rs`.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use serde::Deserialize;
use teamster_core::{AgentError, CliInfo, ErrorDetail};

use crate::instructions::instruction_files;
use crate::machine::Pace;

/// Smallest allowed `LOG_MAX_BYTES`. A smaller log would not hold a tick.
const SMALLEST_LOG: u64 = 64 << 10;

/// Error in the settings of a loop.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{name}: {problem}")]
#[non_exhaustive]
pub struct SettingsError {
    /// The variable, such as `MIN_SLEEP`, or the path of the file.
    pub name: String,
    /// The problem with its value.
    pub problem: String,
}

impl SettingsError {
    /// Creates an error about this variable or file.
    pub fn new(name: impl Into<String>, problem: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            problem: problem.into(),
        }
    }
}

/// The variable or file becomes the parameter of the error.
impl From<SettingsError> for AgentError {
    fn from(error: SettingsError) -> Self {
        Self::refused(error.name, error.problem)
    }
}

/// Settings of a loop.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Settings {
    /// `RUNTIME`: the agent, such as `claude`.
    pub agent: &'static CliInfo,
    /// Instruction files of the agent, those of its own CLI first.
    pub instructions: Vec<&'static str>,
    /// `ADAPTER`: whether the agent's process is kept between ticks. Default: as the provider prefers
    /// ([`LoopSupport::keeps_process`](teamster_core::provider::LoopSupport)).
    pub adapter: Option<AdapterKind>,
    /// `MIN_SLEEP`, `IDLE_STEP`, `MAX_SLEEP`, `CLEAR_MIN_GAP`.
    pub pace: Pace,
    /// `TIMEOUT_SECS`: time limit of a turn. Default: 600 s.
    pub turn_limit: Duration,
    /// `CHROME`: gives the agent a browser, if its CLI has one. Default: off.
    pub chrome: bool,
    /// `COPILOT_MODEL` and so on: the runtime's name in capitals and `_MODEL`. `ACP_MODEL` for an ACP command.
    pub model: Option<String>,
    /// `COPILOT_REASONING` and so on: reasoning effort, as the CLI names it.
    pub reasoning: Option<String>,
    /// `FULL_PROMPT_FILE`: a file whose text replaces the full prompt.
    pub full_prompt: Option<PathBuf>,
    /// `LIGHT_PROMPT_FILE`: a file whose text replaces the short prompt.
    pub light_prompt: Option<PathBuf>,
    /// `KEEP_SESSION`: the next loop resumes the session after a clean exit too. Default: off.
    pub keep_session: bool,
    /// `RETRIES`: retries of a tick within its time limit, for each agent. Default: 0.
    pub retries: u32,
    /// `MAX_WAIT`: longest wait of a tick for a limit of the service to reset, in seconds. Default: 300 s with
    /// retries, 0 without.
    pub max_wait: Option<Duration>,
    /// `FALLBACK`: agents that run a tick when the agent cannot, each as `AGENT` or `AGENT:MODEL`.
    pub fallback: Vec<String>,
    /// `MAX_TOKENS`, `MAX_BUDGET_USD`, `MAX_TURNS`: limits of one tick, all its attempts together.
    pub budget: TickBudget,
    /// `TICK_LOGS`: number of ticks whose logs are kept. Default: 100; 0 keeps none.
    pub tick_logs: usize,
    /// `LOG_MAX_BYTES`: size at which the log is rotated; the previous one is kept. Default: 10 MiB.
    pub log_max_bytes: u64,
}

teamster_core::setters! {
    Settings {
        set agent: &'static CliInfo,
        set instructions: Vec<&'static str>,
        some adapter: AdapterKind,
        set pace: Pace,
        set turn_limit: Duration,
        set chrome: bool,
        some_into model: String,
        some_into reasoning: String,
        some_into full_prompt: PathBuf,
        some_into light_prompt: PathBuf,
        set keep_session: bool,
        set retries: u32,
        some max_wait: Duration,
        set fallback: Vec<String>,
        set budget: TickBudget,
        set tick_logs: usize,
        set log_max_bytes: u64,
    }
}

/// Limits of one tick.
#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
#[non_exhaustive]
pub struct TickBudget {
    /// `MAX_TOKENS`: tokens.
    pub tokens: Option<u64>,
    /// `MAX_BUDGET_USD`: cost in USD.
    pub usd: Option<f64>,
    /// `MAX_TURNS`: turns of the agent.
    pub turns: Option<u32>,
}

/// Lifetime of an agent's process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum AdapterKind {
    /// One process for all ticks.
    Hot,
    /// A process for each tick, which resumes the session.
    Cold,
}

impl AdapterKind {
    /// Returns the name, as in the settings.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Hot => "hot",
            Self::Cold => "cold",
        }
    }
}

impl fmt::Display for AdapterKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Settings {
    /// Returns the default settings for an agent.
    pub fn new(agent: &'static CliInfo) -> Self {
        Self {
            agent,
            instructions: instruction_files(Some(agent), None),
            adapter: None,
            pace: Pace::default(),
            turn_limit: Duration::from_mins(10),
            chrome: false,
            model: None,
            reasoning: None,
            full_prompt: None,
            light_prompt: None,
            keep_session: false,
            retries: 0,
            max_wait: None,
            fallback: Vec::new(),
            budget: TickBudget::default(),
            tick_logs: 100,
            log_max_bytes: 10 << 20,
        }
    }

    /// Reads the settings. The environment takes precedence over the agent's `.env` in `file`. An empty
    /// variable counts as unset. `agent_of` returns the agent of a name, or the default agent for `None`, or
    /// the reason that the name is unknown.
    ///
    /// # Errors
    ///
    /// Fails with the variable's name if a value is invalid.
    pub fn read(
        environment: &dyn Fn(&str) -> Option<String>,
        file: &BTreeMap<String, String>,
        agent_of: &dyn Fn(Option<&str>) -> Result<&'static CliInfo, String>,
    ) -> Result<Self, SettingsError> {
        let variable = |name: &str| {
            let set = |value: &String| !value.trim().is_empty();
            let value = environment(name).filter(set);
            let value = value.or_else(|| file.get(name).cloned().filter(set))?;
            Some(value.trim().to_owned())
        };
        let name = variable("RUNTIME").map(|name| match name.split_once(':') {
            // The text after `acp:` is a command.
            Some(_) => name,
            None => name.to_lowercase(),
        });
        let agent = agent_of(name.as_deref());
        let agent = agent.map_err(|why| SettingsError::new("RUNTIME", why))?;
        let mut settings = Self::new(agent);
        settings.instructions = instruction_files(Some(agent), agent_of(None).ok());
        settings.adapter = match variable("ADAPTER").map(|it| it.to_lowercase()).as_deref() {
            None => None,
            Some("hot") => Some(AdapterKind::Hot),
            Some("cold") => Some(AdapterKind::Cold),
            Some(other) => {
                let problem = format!("expected `hot` or `cold`, not `{other}`");
                return Err(SettingsError::new("ADAPTER", problem));
            }
        };
        let pace = &mut settings.pace;
        for (name, seconds) in [
            ("MIN_SLEEP", &mut pace.min_sleep),
            ("IDLE_STEP", &mut pace.idle_step),
            ("MAX_SLEEP", &mut pace.max_sleep),
            ("CLEAR_MIN_GAP", &mut pace.clear_min_gap),
        ] {
            number(name, variable(name), "of seconds", seconds)?;
        }
        let mut seconds = settings.turn_limit.as_secs();
        number(
            "TIMEOUT_SECS",
            variable("TIMEOUT_SECS"),
            "of seconds",
            &mut seconds,
        )?;
        if seconds == 0 {
            let problem = "expected at least 1 second";
            return Err(SettingsError::new("TIMEOUT_SECS", problem));
        }
        settings.turn_limit = Duration::from_secs(seconds);
        number(
            "LOG_MAX_BYTES",
            variable("LOG_MAX_BYTES"),
            "of bytes",
            &mut settings.log_max_bytes,
        )?;
        if settings.log_max_bytes < SMALLEST_LOG {
            let problem = format!(
                "expected at least {SMALLEST_LOG} bytes, not `{}`",
                settings.log_max_bytes
            );
            return Err(SettingsError::new("LOG_MAX_BYTES", problem));
        }
        number("RETRIES", variable("RETRIES"), "", &mut settings.retries)?;
        number(
            "TICK_LOGS",
            variable("TICK_LOGS"),
            "",
            &mut settings.tick_logs,
        )?;
        settings.max_wait = optional("MAX_WAIT", &variable, "of seconds")?.map(Duration::from_secs);
        settings.budget = TickBudget {
            tokens: optional("MAX_TOKENS", &variable, "of tokens")?,
            usd: usd("MAX_BUDGET_USD", variable("MAX_BUDGET_USD"))?,
            turns: optional("MAX_TURNS", &variable, "of turns")?,
        };
        if let Some(names) = variable("FALLBACK") {
            let names = names
                .split(',')
                .map(str::trim)
                .filter(|name| !name.is_empty());
            settings.fallback = names.map(str::to_owned).collect();
        }
        // Other loops take any other value for "no", and agents with such a value must keep working.
        settings.chrome = variable("CHROME").as_deref() == Some("1");
        settings.keep_session = variable("KEEP_SESSION").as_deref() == Some("1");
        let prefix = settings.prefix();
        settings.model = variable(&format!("{prefix}_MODEL"));
        settings.reasoning = variable(&format!("{prefix}_REASONING"));
        settings.full_prompt = variable("FULL_PROMPT_FILE").map(PathBuf::from);
        settings.light_prompt = variable("LIGHT_PROMPT_FILE").map(PathBuf::from);
        Ok(settings)
    }

    /// Returns the runtime's name for display. For an ACP command this is the program alone: its arguments may
    /// be secret.
    pub fn name(&self) -> &str {
        self.agent.id.split_whitespace().next().unwrap_or_default()
    }

    /// Returns the prefix of the runtime's own variables.
    fn prefix(&self) -> String {
        let name = self.agent.id.split(':').next().unwrap_or_default();
        name.to_uppercase()
    }

    /// Returns the error's message with the variable or file in place of the parameter that it sets.
    pub fn explain(&self, error: &AgentError) -> String {
        let Some(ErrorDetail::Parameter {
            name,
            item,
            problem,
            ..
        }) = error.detail.as_deref()
        else {
            return error.message.clone();
        };
        match (name.as_str(), item) {
            ("model", _) => format!("{}_MODEL: {problem}", self.prefix()),
            ("effort", _) => format!("{}_REASONING: {problem}", self.prefix()),
            ("mcp_servers", Some(server)) => format!(".mcp.json: {server}: {problem}"),
            ("mcp_servers", None) => format!(".mcp.json: {problem}"),
            ("budget.tokens", _) => format!("MAX_TOKENS: {problem}"),
            ("budget.usd", _) if self.adapter_kind() == AdapterKind::Hot => {
                format!("MAX_BUDGET_USD: {problem}, or try ADAPTER=cold")
            }
            ("budget.usd", _) => format!("MAX_BUDGET_USD: {problem}"),
            ("budget.turns", _) => format!("MAX_TURNS: {problem}"),
            // No setting sets these.
            ("permission" | "record_to", _) => problem.clone(),
            _ => error.message.clone(),
        }
    }

    /// Returns the adapter of the agent: the setting, or the default of its provider.
    pub fn adapter_kind(&self) -> AdapterKind {
        let usual = if self.agent.agent_loop.keeps_process {
            AdapterKind::Hot
        } else {
            AdapterKind::Cold
        };
        self.adapter.unwrap_or(usual)
    }
}

fn number<T: FromStr>(
    name: &str,
    value: Option<String>,
    expected: &str,
    number: &mut T,
) -> Result<(), SettingsError> {
    if let Some(value) = value {
        *number = value.parse().map_err(|_| {
            let expected = if expected.is_empty() {
                "whole number"
            } else {
                &format!("whole number {expected}")
            };
            invalid_value(name, expected, &value)
        })?;
    }
    Ok(())
}

/// Parses an optional number. 0 is invalid except for `MAX_WAIT`.
fn optional<T: FromStr + Default + PartialEq>(
    name: &str,
    variable: &dyn Fn(&str) -> Option<String>,
    expected: &str,
) -> Result<Option<T>, SettingsError> {
    let Some(value) = variable(name) else {
        return Ok(None);
    };
    let mut found = T::default();
    number(name, Some(value.clone()), expected, &mut found)?;
    if found == T::default() && name != "MAX_WAIT" {
        let expected = format!("number {expected} of at least 1");
        return Err(invalid_value(name, &expected, &value));
    }
    Ok(Some(found))
}

fn usd(name: &str, value: Option<String>) -> Result<Option<f64>, SettingsError> {
    let Some(value) = value else { return Ok(None) };
    let usd = value.parse::<f64>().ok();
    match usd.filter(|usd| usd.is_finite() && *usd > 0.0) {
        Some(usd) => Ok(Some(usd)),
        None => Err(invalid_value(name, "number of dollars above 0", &value)),
    }
}

fn invalid_value(name: &str, expected: &str, value: &str) -> SettingsError {
    let value = teamster_core::text::excerpt(value, 40);
    SettingsError::new(name, format!("expected a {expected}, not `{value}`"))
}

#[cfg(test)]
mod tests;
