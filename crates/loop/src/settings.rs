//! The settings of a loop: variables of its environment, and of the agent's `.env`.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use derive_setters::Setters;
use serde::Deserialize;
use teamster_core::{AgentError, CliInfo, ErrorDetail};

use crate::instructions::instruction_files;
use crate::machine::Pace;

/// The smallest log, in bytes. In less there would not be a tick.
const SMALLEST_LOG: u64 = 64 << 10;

/// Why a loop cannot begin as it is set.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{name}: {problem}")]
#[non_exhaustive]
pub struct SettingsError {
    /// The variable, such as `MIN_SLEEP`, or the path of the file.
    pub name: String,
    /// What is wrong with it.
    pub problem: String,
}

impl SettingsError {
    /// What is wrong with this variable or file.
    pub fn new(name: impl Into<String>, problem: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            problem: problem.into(),
        }
    }
}

/// With the variable or the file as the parameter.
impl From<SettingsError> for AgentError {
    fn from(error: SettingsError) -> Self {
        Self::refused(error.name, error.problem)
    }
}

/// The settings of a loop.
#[derive(Debug, Clone, PartialEq, Setters)]
#[setters(strip_option)]
#[non_exhaustive]
pub struct Settings {
    /// `RUNTIME`: which agent, such as `claude`.
    pub agent: &'static CliInfo,
    /// The files that it may have its instructions in, those of its own CLI first.
    pub instructions: Vec<&'static str>,
    /// `ADAPTER`: whether its process stays. Unset, the agent decides ([`LoopSupport::keeps_process`](teamster_core::provider::LoopSupport)).
    pub adapter: Option<AdapterKind>,
    /// `MIN_SLEEP`, `IDLE_STEP`, `MAX_SLEEP`, `CLEAR_MIN_GAP`.
    pub pace: Pace,
    /// `TIMEOUT_SECS`: how long one turn may take. 600 s.
    pub turn_limit: Duration,
    /// `CHROME`: the agent gets a browser, if it has one.
    pub chrome: bool,
    /// `COPILOT_MODEL` and so on: the runtime's name in capitals before `_MODEL`, for a command `ACP`.
    #[setters(into)]
    pub model: Option<String>,
    /// `COPILOT_REASONING` and so on: how hard the model is to think, in the CLI's own word.
    #[setters(into)]
    pub reasoning: Option<String>,
    /// `FULL_PROMPT_FILE`: a file whose text replaces the full prompt.
    #[setters(into)]
    pub full_prompt: Option<PathBuf>,
    /// `LIGHT_PROMPT_FILE`: the same of the short prompt.
    #[setters(into)]
    pub light_prompt: Option<PathBuf>,
    /// `KEEP_SESSION`: the next loop continues the session after an end in order, too.
    pub keep_session: bool,
    /// `RETRIES`: how often a tick is tried again within its time, with each agent. 0.
    pub retries: u32,
    /// `MAX_WAIT`: how long a tick waits for a limit of the service to reset, in seconds. Unset, 300 s with
    /// retries, and not at all without.
    pub max_wait: Option<Duration>,
    /// `FALLBACK`: who plays a tick when the agent cannot, each as `AGENT` or `AGENT:MODEL`.
    pub fallback: Vec<String>,
    /// `MAX_TOKENS`, `MAX_BUDGET_USD`, `MAX_TURNS`: what one tick may use, all its attempts together.
    pub budget: TickBudget,
    /// `TICK_LOGS`: of so many ticks the logs are kept. 100; 0 keeps none.
    pub tick_logs: usize,
    /// `LOG_MAX_BYTES`: the size at which the log is rotated; the last is kept beside it. 10 MiB.
    pub log_max_bytes: u64,
}

/// What one tick may use.
#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
#[non_exhaustive]
pub struct TickBudget {
    /// `MAX_TOKENS`.
    pub tokens: Option<u64>,
    /// `MAX_BUDGET_USD`.
    pub usd: Option<f64>,
    /// `MAX_TURNS`.
    pub turns: Option<u32>,
}

/// Whether an agent's process stays from one tick to the next.
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
    /// Its name, as in the settings.
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
    /// The settings of an agent where no variable is set.
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

    /// Reads them: a variable of the environment goes before one of the agent's file. One that is empty is
    /// not set. `agent_of` gives the agent of a name, the usual one where none is
    /// set, or why there is none of this name.
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
            // What follows `acp:` is a command.
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
                let problem = format!("there is hot and cold, and not `{other}`");
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
            let problem = "no turn can be played in 0 seconds";
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
                "at least {SMALLEST_LOG} bytes are needed, there is `{}`",
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
        // Other loops take anything else for "no", and agents that say so should go on working.
        settings.chrome = variable("CHROME").as_deref() == Some("1");
        settings.keep_session = variable("KEEP_SESSION").as_deref() == Some("1");
        let prefix = settings.prefix();
        settings.model = variable(&format!("{prefix}_MODEL"));
        settings.reasoning = variable(&format!("{prefix}_REASONING"));
        settings.full_prompt = variable("FULL_PROMPT_FILE").map(PathBuf::from);
        settings.light_prompt = variable("LIGHT_PROMPT_FILE").map(PathBuf::from);
        Ok(settings)
    }

    /// The runtime for the eyes of others. Of a command this is the program: what it is given may be secret.
    pub fn name(&self) -> &str {
        self.agent.id.split_whitespace().next().unwrap_or_default()
    }

    /// What the names of its own variables begin with.
    fn prefix(&self) -> String {
        let name = self.agent.id.split(':').next().unwrap_or_default();
        name.to_uppercase()
    }

    /// What is wrong, by the variable or the file that sets it: the error names the parameter that this has
    /// become.
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
            ("budget.usd", _) => format!("MAX_BUDGET_USD: {problem}"),
            ("budget.turns", _) => format!("MAX_TURNS: {problem}"),
            // No setting has it.
            ("permission", _) => problem.clone(),
            _ => error.message.clone(),
        }
    }

    /// Whether the agent's process stays.
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
    what: &str,
    number: &mut T,
) -> Result<(), SettingsError> {
    if let Some(value) = value {
        *number = value.parse().map_err(|_| {
            let what = if what.is_empty() {
                "whole number"
            } else {
                &format!("whole number {what}")
            };
            unfit(name, what, &value)
        })?;
    }
    Ok(())
}

/// The same of one that has no default. None of nothing is a limit.
fn optional<T: FromStr + Default + PartialEq>(
    name: &str,
    variable: &dyn Fn(&str) -> Option<String>,
    what: &str,
) -> Result<Option<T>, SettingsError> {
    let Some(value) = variable(name) else {
        return Ok(None);
    };
    let mut found = T::default();
    number(name, Some(value.clone()), what, &mut found)?;
    if found == T::default() && name != "MAX_WAIT" {
        let what = format!("number {what} of at least 1");
        return Err(unfit(name, &what, &value));
    }
    Ok(Some(found))
}

fn usd(name: &str, value: Option<String>) -> Result<Option<f64>, SettingsError> {
    let Some(value) = value else { return Ok(None) };
    let usd = value.parse::<f64>().ok();
    match usd.filter(|usd| usd.is_finite() && *usd > 0.0) {
        Some(usd) => Ok(Some(usd)),
        None => Err(unfit(name, "number of dollars above 0", &value)),
    }
}

fn unfit(name: &str, what: &str, value: &str) -> SettingsError {
    let value = teamster_core::text::excerpt(value, 40);
    SettingsError::new(name, format!("a {what} is needed, there is `{value}`"))
}

#[cfg(test)]
mod tests;
