//! `agents.config.json`: the agents of a supervisor.

mod schedule;

use std::collections::HashMap;
use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use teamster_core::provider::COMMON_INSTRUCTIONS;
use teamster_mcp_config::config::is_typo_of;

use super::state_folder::resolve_links;
use crate::instructions::has_instructions;
use schedule::RawSchedule;
pub use schedule::{Missed, ScheduleConfig, When};

/// Default name of the file.
pub const FILE_NAME: &str = "agents.config.json";
/// Environment variable with the path of the file.
pub const FILE_VARIABLE: &str = "AGENTS_CONFIG";

/// Configuration of the agents of a company.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Config {
    /// Absolute path of the file.
    pub file: PathBuf,
    /// Name of the company.
    pub company_name: Option<String>,
    /// Agents in the order of the file. Ids and directories are unique.
    pub agents: Vec<AgentConfig>,
    /// Runs that start at times. Their ids are unique.
    pub schedules: Vec<ScheduleConfig>,
    /// Warnings about unknown fields that look like misspelled known ones, for people.
    pub warnings: Vec<String>,
}

/// Configuration of an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct AgentConfig {
    /// Id of the agent, which is also the default name of its folder.
    pub id: String,
    /// Name that other agents use for it, such as `@pm-bot`.
    pub alias: Option<String>,
    /// Role of the agent, for people.
    pub role: Option<String>,
    /// Runtime of its loop. Default: as the loop's own settings have it.
    pub runtime: Option<String>,
    /// Gives the agent a browser. A loop whose runtime has none logs a warning. Default: false.
    pub chrome: bool,
    /// Absolute path of its working directory.
    pub working_dir: PathBuf,
    /// Instructions file, relative to `working_dir`.
    pub instructions_file: Option<PathBuf>,
}

impl AgentConfig {
    /// Returns the variables that its loop gets in addition to the supervisor's environment.
    pub fn environment(&self) -> Vec<(&'static str, String)> {
        let mut variables = Vec::new();
        if let Some(runtime) = &self.runtime {
            variables.push(("RUNTIME", runtime.clone()));
        }
        if self.chrome {
            variables.push(("CHROME", "1".to_owned()));
        }
        variables
    }

    /// Returns whether both configurations start the same loop.
    pub(crate) fn starts_like(&self, other: &Self) -> bool {
        resolve_links(&self.working_dir) == resolve_links(&other.working_dir)
            && self.environment() == other.environment()
    }

    /// Returns why the agent cannot be started, judged by the files on disk. `files` are its possible
    /// instruction files, the preferred one first.
    pub(crate) fn obstacle(&self, files: &[&str]) -> Option<Obstacle> {
        let directory = self.working_dir.clone();
        match fs::metadata(&directory) {
            Ok(found) if found.is_dir() => {}
            Ok(_) => return Some(Obstacle::NotADirectory(directory)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Some(Obstacle::NoDirectory(directory));
            }
            Err(error) => {
                let error = error.to_string();
                return Some(Obstacle::Unreadable { directory, error });
            }
        }
        let own = self.instructions_file.as_deref();
        if own.is_some_and(|file| directory.join(file).is_file())
            || has_instructions(&directory, files)
        {
            return None;
        }
        let usual = files.first().map(Path::new);
        let file = own.or(usual).unwrap_or(Path::new(COMMON_INSTRUCTIONS));
        Some(Obstacle::NoInstructions(file.to_owned(), directory))
    }
}

/// Reason that an agent cannot be started.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Obstacle {
    #[error("runtime: {0}")]
    Runtime(String),
    #[error("{} is not a directory", .0.display())]
    NotADirectory(PathBuf),
    #[error("the directory {} is missing: create it, or name another one as `workingDir`", .0.display())]
    NoDirectory(PathBuf),
    #[error("cannot access {}: {error}", directory.display())]
    Unreadable { directory: PathBuf, error: String },
    #[error(
        "the instructions file {} is missing in {}: write it, or name another one as `instructionsFile`",
        .0.display(), .1.display()
    )]
    NoInstructions(PathBuf, PathBuf),
}

/// Error of a configuration.
#[derive(Debug, thiserror::Error)]
#[error("{}{}: {message}", file.display(), Line(*line))]
#[non_exhaustive]
pub struct ConfigError {
    /// The file.
    pub file: PathBuf,
    /// Line in the file, from 1.
    pub line: Option<usize>,
    /// The problem, and a fix.
    pub message: String,
}

struct Line(Option<usize>);

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(line) => write!(f, ":{line}"),
            None => Ok(()),
        }
    }
}

/// Content of the file. Unknown fields belong to other programs.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", expecting = "an object", bound = "'de: 'a")]
struct RawConfig<'a> {
    company_name: Option<String>,
    agents_root: Option<PathBuf>,
    // Raw text, so that errors can name lines.
    agents: Vec<&'a RawValue>,
    #[serde(default)]
    schedules: Vec<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", expecting = "an object")]
struct RawAgent {
    id: String,
    alias: Option<String>,
    role: Option<String>,
    runtime: Option<String>,
    chrome: Option<bool>,
    working_dir: Option<PathBuf>,
    instructions_file: Option<PathBuf>,
}

impl Config {
    /// Reads a configuration.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be read or parsed, or if two agents share an id or a directory.
    pub fn read(file: &Path) -> Result<Self, ConfigError> {
        let wrong = |message: String| ConfigError {
            file: file.to_owned(),
            line: None,
            message,
        };
        let text = fs::read_to_string(file).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => wrong(format!(
                "there is no such file: give another path, or create one such as {}",
                r#"{"agents": [{"id": "helper"}]}"#
            )),
            _ => wrong(format!("cannot read it: {error}")),
        })?;
        let absolute = std::path::absolute(file)
            .map_err(|error| wrong(format!("cannot find its directory: {error}")))?;
        Self::parse(&text, absolute)
    }

    /// Parses the text of a configuration. `file` is an absolute path.
    fn parse(text: &str, file: PathBuf) -> Result<Self, ConfigError> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let wrong = |line: Option<usize>, message: String| ConfigError {
            file: file.clone(),
            line,
            message,
        };
        let parsed: RawConfig<'_> = serde_json::from_str(text)
            .map_err(|error| wrong(line(&error, 0), explain(&error, ROOT)))?;
        let mut warnings = misspelled_fields(text, 1, &ROOT_FIELDS);
        let folder = file.parent().unwrap_or(Path::new("/"));
        let root = parsed.agents_root.unwrap_or_else(|| "agents".into());
        let root = without_dots(&folder.join(root));
        let mut agents: Vec<AgentConfig> = Vec::new();
        let mut ids: HashMap<String, usize> = HashMap::new();
        let mut directories: HashMap<PathBuf, usize> = HashMap::new();
        for raw in parsed.agents {
            let raw = raw.get();
            let before = lines_before(text, raw);
            let agent: RawAgent = serde_json::from_str(raw)
                .map_err(|error| wrong(line(&error, before), explain(&error, AGENT)))?;
            let here = before + 1;
            warnings.extend(misspelled_fields(raw, here, &AGENT_FIELDS));
            if let Some(why) = invalid_id(&agent.id) {
                let id = &agent.id;
                return Err(wrong(
                    Some(here),
                    format!("the id {id:?} {why}: write a name such as \"pm-bot\""),
                ));
            }
            if let Some(other) = ids.insert(agent.id.clone(), here) {
                return Err(wrong(
                    Some(here),
                    format!(
                        "the id {:?} is used by the agent in line {other} too: choose another",
                        agent.id
                    ),
                ));
            }
            let working_dir = match &agent.working_dir {
                Some(directory) => without_dots(&folder.join(directory)),
                None => root.join(&agent.id),
            };
            if let Some(other) = directories.insert(resolve_links(&working_dir), here) {
                return Err(wrong(
                    Some(here),
                    format!(
                        "the agent {:?} would work in the same directory as the one in line {other}: \
                         give it another `workingDir`",
                        agent.id
                    ),
                ));
            }
            agents.push(AgentConfig {
                id: agent.id,
                alias: agent.alias,
                role: agent.role,
                runtime: agent.runtime.filter(|runtime| !runtime.is_empty()),
                chrome: agent.chrome.unwrap_or_default(),
                working_dir,
                instructions_file: agent.instructions_file,
            });
        }
        let mut schedules: Vec<ScheduleConfig> = Vec::new();
        for raw in parsed.schedules {
            let before = lines_before(text, raw.get());
            let schedule: RawSchedule = serde_json::from_str(raw.get())
                .map_err(|error| wrong(line(&error, before), explain(&error, SCHEDULE)))?;
            let here = Some(before + 1);
            let id = schedule.id.clone();
            if let Some(why) = invalid_id(&id) {
                let message = format!("the id {id:?} {why}: write a name such as \"nightly\"");
                return Err(wrong(here, message));
            }
            if schedules.iter().any(|other| other.id == id) {
                let message = format!("another schedule has the id {id:?} too: choose another");
                return Err(wrong(here, message));
            }
            let schedule = ScheduleConfig::of(schedule, folder)
                .map_err(|problem| wrong(here, format!("schedule {id:?}: {problem}")))?;
            schedules.push(schedule);
        }
        Ok(Self {
            file,
            company_name: parsed.company_name,
            agents,
            schedules,
            warnings,
        })
    }

    /// Returns the agent with this id.
    pub fn agent(&self, id: &str) -> Option<&AgentConfig> {
        self.agents.iter().find(|agent| agent.id == id)
    }
}

/// Fields of the file and of an agent.
/// `triggers` are those of the server.
const ROOT_FIELDS: [&str; 5] = [
    "companyName",
    "agentsRoot",
    "agents",
    "schedules",
    "triggers",
];
const AGENT_FIELDS: [&str; 7] = [
    "id",
    "alias",
    "role",
    "runtime",
    "chrome",
    "workingDir",
    "instructionsFile",
];

/// Returns warnings about fields of an object that are probably misspelled. Other unknown fields belong to
/// other programs.
fn misspelled_fields(object: &str, line: usize, known: &[&str]) -> Vec<String> {
    /// Length of a common prefix from which a longer name is taken for the shorter one.
    const ENOUGH: usize = 5;
    let fields: Map<String, Value> = serde_json::from_str(object).unwrap_or_default();
    let names = fields.keys().filter(|name| !known.contains(&name.as_str()));
    let warnings = names.filter_map(|name| {
        let lower = name.to_lowercase();
        let is_meant = |known: &&&str| {
            let other = known.to_lowercase();
            let shorter = lower.len().min(other.len());
            let extends =
                shorter >= ENOUGH && (lower.starts_with(&other) || other.starts_with(&lower));
            extends || is_typo_of(name, known)
        };
        let meant = known.iter().find(is_meant)?;
        Some(format!(
            "line {line}: unknown field {name:?}; did you mean {meant:?}?"
        ))
    });
    warnings.collect()
}

/// Hint for a file of the wrong form.
const ROOT: &str = r#"write an object such as {"agents": [{"id": "helper"}]}"#;
/// Hint for an agent of the wrong form.
const AGENT: &str =
    r#"write an agent such as {"id": "pm-bot", "alias": "@pm-bot", "role": "Product Manager"}"#;

/// Hint for a schedule of the wrong form.
const SCHEDULE: &str = r#"write a schedule such as {"id": "nightly", "cron": "0 2 * * 1-5", "run": {"provider": "claude", "prompt": "…"}}"#;

/// Returns the number of line ends before `part`, which is a part of `text`.
fn lines_before(text: &str, part: &str) -> usize {
    let offset = (part.as_ptr() as usize).saturating_sub(text.as_ptr() as usize);
    text.get(..offset).unwrap_or_default().matches('\n').count()
}

fn line(error: &serde_json::Error, before: usize) -> Option<usize> {
    (error.line() > 0).then(|| before + error.line())
}

fn explain(error: &serde_json::Error, form: &str) -> String {
    let text = error.to_string();
    // The line is added by the caller, relative to the whole file.
    let text = text.split(" at line ").next().unwrap_or(&text);
    if error.is_data() {
        format!("{text}: {form}")
    } else {
        format!("invalid JSON: {text}")
    }
}

/// Removes `.` components. `..` is kept: the folder before it may be a link.
fn without_dots(path: &Path) -> PathBuf {
    path.components().collect()
}

/// Returns why this text cannot be an id. An id is the name of a folder and an argument on command lines.
fn invalid_id(id: &str) -> Option<&'static str> {
    match id {
        "" => Some("is empty"),
        "." | ".." => Some("is not a valid name of a folder"),
        _ if id.starts_with('-') => Some("would be read as an option"),
        _ if id.contains(['/', '\\']) => Some("has a path separator in it"),
        _ if id.chars().any(|c| c.is_whitespace() || c.is_control()) => {
            Some("has a space or a control character in it")
        }
        _ if id.len() > 100 => Some("is longer than 100 bytes"),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
