//! `agents.config.json`: which agents there are.

use std::collections::HashMap;
use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use teamster_core::provider::COMMON_INSTRUCTIONS;
use teamster_mcp::config::is_slip;

use super::state_folder::real;
use crate::instructions::has_instructions;

/// The name of the file where none is given.
pub const FILE_NAME: &str = "agents.config.json";
/// The environment variable that names the file.
pub const FILE_VARIABLE: &str = "AGENTS_CONFIG";

/// The agents of a company.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Config {
    /// The file that it was read from, absolute.
    pub file: PathBuf,
    /// What the company is called.
    pub company_name: Option<String>,
    /// In the order of the file. No two have the same id or the same directory.
    pub agents: Vec<AgentConfig>,
    /// Fields that are not known but look like slips of known ones, for a person.
    pub warnings: Vec<String>,
}

/// One agent.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct AgentConfig {
    /// By what it is named. It is the name of a folder.
    pub id: String,
    /// By what its colleagues call it, such as `@pm-bot`.
    pub alias: Option<String>,
    /// What it is there for.
    pub role: Option<String>,
    /// The adapter of its loop. Without one the loop's own default holds.
    pub runtime: Option<String>,
    /// Whether it has a browser. A loop whose runtime has none reports it.
    pub chrome: bool,
    /// Where it works, absolute.
    pub working_dir: PathBuf,
    /// Its instructions file, relative to `working_dir`.
    pub instructions_file: Option<PathBuf>,
}

impl AgentConfig {
    /// The variables that its loop gets beside those of the supervisor.
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

    /// Whether two loops of these are started in the same way.
    pub(crate) fn starts_like(&self, other: &Self) -> bool {
        real(&self.working_dir) == real(&other.working_dir)
            && self.environment() == other.environment()
    }

    /// Why it cannot be started as things are on the disk. `files` are those that it may have its instructions
    /// in, the right one first.
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

/// Why an agent cannot be started as things are on the disk.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Obstacle {
    #[error("runtime: {0}")]
    Runtime(String),
    #[error("{} is no directory", .0.display())]
    NotADirectory(PathBuf),
    #[error("the directory {} is missing: create it, or name another one as `workingDir`", .0.display())]
    NoDirectory(PathBuf),
    #[error("cannot look at {}: {error}", directory.display())]
    Unreadable { directory: PathBuf, error: String },
    #[error(
        "the instructions file {} is missing in {}: write it, or name another one as `instructionsFile`",
        .0.display(), .1.display()
    )]
    NoInstructions(PathBuf, PathBuf),
}

/// Why a configuration cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{}{}: {message}", file.display(), Line(*line))]
#[non_exhaustive]
pub struct ConfigError {
    /// The file.
    pub file: PathBuf,
    /// Where in it, counted from 1.
    pub line: Option<usize>,
    /// What is wrong, and what to write.
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

/// The file as it is written. What else is in it is for others.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", expecting = "an object")]
struct Written<'a> {
    company_name: Option<String>,
    agents_root: Option<PathBuf>,
    // As they stand, so that errors can name their lines.
    #[serde(borrow)]
    agents: Vec<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", expecting = "an object")]
struct WrittenAgent {
    id: String,
    alias: Option<String>,
    role: Option<String>,
    runtime: Option<String>,
    chrome: Option<bool>,
    working_dir: Option<PathBuf>,
    instructions_file: Option<PathBuf>,
}

impl Config {
    /// Reads the file.
    pub fn read(file: &Path) -> Result<Self, ConfigError> {
        let wrong = |message: String| ConfigError {
            file: file.to_owned(),
            line: None,
            message,
        };
        let text = fs::read_to_string(file).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => wrong(format!(
                "there is no such file: name one, or write one such as {}",
                r#"{"agents": [{"id": "helper"}]}"#
            )),
            _ => wrong(format!("cannot read it: {error}")),
        })?;
        let absolute = std::path::absolute(file)
            .map_err(|error| wrong(format!("cannot find its directory: {error}")))?;
        Self::parse(&text, absolute)
    }

    /// The configuration in the text of this file, which has an absolute path.
    fn parse(text: &str, file: PathBuf) -> Result<Self, ConfigError> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let wrong = |line: Option<usize>, message: String| ConfigError {
            file: file.clone(),
            line,
            message,
        };
        let written: Written<'_> = serde_json::from_str(text)
            .map_err(|error| wrong(line(&error, 0), explain(&error, ROOT)))?;
        let mut warnings = slips(text, 1, &ROOT_FIELDS);
        let folder = file.parent().unwrap_or(Path::new("/"));
        let root = written.agents_root.unwrap_or_else(|| "agents".into());
        let root = tidy(&folder.join(root));
        let mut agents: Vec<AgentConfig> = Vec::new();
        let mut ids: HashMap<String, usize> = HashMap::new();
        let mut directories: HashMap<PathBuf, usize> = HashMap::new();
        for raw in written.agents {
            let raw = raw.get();
            // It is a part of the text.
            let offset = (raw.as_ptr() as usize).saturating_sub(text.as_ptr() as usize);
            let before = text.get(..offset).unwrap_or_default().matches('\n').count();
            let agent: WrittenAgent = serde_json::from_str(raw)
                .map_err(|error| wrong(line(&error, before), explain(&error, AGENT)))?;
            let here = before + 1;
            warnings.extend(slips(raw, here, &AGENT_FIELDS));
            if let Some(why) = unfit(&agent.id) {
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
                        "the id {:?} is that of the agent in line {other} too: give this one another",
                        agent.id
                    ),
                ));
            }
            let working_dir = match &agent.working_dir {
                Some(directory) => tidy(&folder.join(directory)),
                None => root.join(&agent.id),
            };
            if let Some(other) = directories.insert(real(&working_dir), here) {
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
        Ok(Self {
            file,
            company_name: written.company_name,
            agents,
            warnings,
        })
    }

    /// The agent of this id.
    pub fn agent(&self, id: &str) -> Option<&AgentConfig> {
        self.agents.iter().find(|agent| agent.id == id)
    }
}

/// The fields of the file, and those of an agent.
const ROOT_FIELDS: [&str; 3] = ["companyName", "agentsRoot", "agents"];
const AGENT_FIELDS: [&str; 7] = [
    "id",
    "alias",
    "role",
    "runtime",
    "chrome",
    "workingDir",
    "instructionsFile",
];

/// Fields of an object that are most likely meant to be known ones. Others belong to other programs.
fn slips(object: &str, line: usize, known: &[&str]) -> Vec<String> {
    /// So many letters in common at the start, and the longer name is that of the shorter one.
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
            extends || is_slip(name, known)
        };
        let meant = known.iter().find(is_meant)?;
        Some(format!(
            "line {line}: the field {name:?} is not known; is {meant:?} meant?"
        ))
    });
    warnings.collect()
}

/// What to write where the whole file has the wrong form.
const ROOT: &str = r#"write an object such as {"agents": [{"id": "helper"}]}"#;
/// The same for an agent.
const AGENT: &str =
    r#"write an agent such as {"id": "pm-bot", "alias": "@pm-bot", "role": "Product Manager"}"#;

fn line(error: &serde_json::Error, before: usize) -> Option<usize> {
    (error.line() > 0).then(|| before + error.line())
}

fn explain(error: &serde_json::Error, form: &str) -> String {
    let text = error.to_string();
    // Errors name lines by our own count, from the beginning of the file.
    let text = text.split(" at line ").next().unwrap_or(&text);
    if error.is_data() {
        format!("{text}: {form}")
    } else {
        format!("this is no JSON: {text}")
    }
}

/// Without `.` in the middle. `..` stays: the folder before it may be a link.
fn tidy(path: &Path) -> PathBuf {
    path.components().collect()
}

/// Why this cannot be an id. It is the name of a folder, and a word on command lines.
fn unfit(id: &str) -> Option<&'static str> {
    match id {
        "" => Some("is empty"),
        "." | ".." => Some("is no name of a folder"),
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
