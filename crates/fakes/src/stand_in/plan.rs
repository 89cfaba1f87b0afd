//! Plan of a stand-in.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::act::Act;
use crate::write_program;

/// The environment variable that holds the plan, or `@` and the path of a file with it.
pub const PLAN_ENV: &str = "TEAMSTER_FAKE_PLAN";

/// Actions of a stand-in in its turns.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Plan {
    /// Folder for data that outlives a process: the log, sessions, counters. It is outside of the agent's
    /// folder.
    pub state: PathBuf,
    /// Seed of the chances. Default: 0.
    #[serde(default)]
    pub seed: u64,
    /// Text that marks a full prompt. Any other prompt is a light one.
    #[serde(default = "full_mark")]
    pub full_mark: String,
    /// Range of the duration of a turn, in milliseconds.
    #[serde(default = "turn_ms")]
    pub turn_ms: [u64; 2],
    /// True if `/clear` resets the running totals of Claude Code, as since 2.1.330. In 2.1.197 they continue.
    #[serde(default)]
    pub totals_restart: bool,
    /// Maximum lifetime of a process, in seconds. `SIGALRM` ends it then.
    #[serde(default = "life_limit_seconds")]
    pub life_limit_seconds: u32,
    /// Actions of the first turns. Turns are counted from 0 over all processes.
    #[serde(default)]
    pub turns: Vec<Vec<Act>>,
    /// Actions of the later turns, with their probabilities.
    #[serde(default)]
    pub chances: BTreeMap<Act, f64>,
}

/// Error of reading or writing a plan.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PlanError {
    /// The text is not a plan.
    #[error("the plan is wrong: {0}")]
    Parse(Box<toml::de::Error>),
    /// The plan has no TOML form, for example because of a path that is not UTF-8.
    #[error("the plan cannot be written as TOML: {0}")]
    Write(Box<toml::ser::Error>),
    /// The plan's file cannot be read or written.
    #[error("the plan {}: {error}", path.display())]
    File {
        /// Path of the file.
        path: PathBuf,
        /// The system's error.
        error: std::io::Error,
    },
}

impl Plan {
    /// Creates a plan whose turns only answer.
    pub fn new(state: impl Into<PathBuf>) -> Self {
        Self {
            state: state.into(),
            seed: 0,
            full_mark: full_mark(),
            turn_ms: turn_ms(),
            totals_restart: false,
            life_limit_seconds: life_limit_seconds(),
            turns: Vec::new(),
            chances: BTreeMap::new(),
        }
    }

    /// Sets the seed of the chances.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Adds the actions of the next planned turn.
    #[must_use]
    pub fn turn(mut self, acts: impl IntoIterator<Item = Act>) -> Self {
        self.turns.push(acts.into_iter().collect());
        self
    }

    /// Adds an action to each unplanned turn, with this probability from 0 to 1.
    #[must_use]
    pub fn chance(mut self, act: Act, probability: f64) -> Self {
        self.chances.insert(act, probability);
        self
    }

    /// Reads a plan from TOML.
    ///
    /// # Errors
    ///
    /// The text is not a plan.
    pub fn parse(toml: &str) -> Result<Self, PlanError> {
        toml::from_str(toml).map_err(|error| PlanError::Parse(Box::new(error)))
    }

    /// Reads a plan from a TOML file.
    ///
    /// # Errors
    ///
    /// The file cannot be read or is not a plan.
    pub fn load(path: impl AsRef<Path>) -> Result<Self, PlanError> {
        let path = path.as_ref();
        let toml = fs::read_to_string(path).map_err(|error| PlanError::File {
            path: path.to_owned(),
            error,
        })?;
        Self::parse(&toml)
    }

    /// Returns the plan as TOML.
    ///
    /// # Errors
    ///
    /// The plan has no TOML form.
    pub fn to_toml(&self) -> Result<String, PlanError> {
        toml::to_string(self).map_err(|error| PlanError::Write(Box::new(error)))
    }

    /// Writes the program `claude` into a folder, for the `PATH` of a program under test. It
    /// executes this plan.
    ///
    /// `command` is the shell command of the fake agent. The program gets the plan in a file next to it, and
    /// no other settings.
    ///
    /// # Errors
    ///
    /// A file cannot be written.
    pub fn install(&self, folder: &Path, command: &str) -> Result<PathBuf, PlanError> {
        let program = folder.join("claude");
        let plan = folder.join("claude.toml");
        let toml = self.to_toml()?;
        let script = format!(
            "#!/bin/sh\n{PLAN_ENV}='@{}' exec {command} \"$@\"\n",
            plan.display()
        );
        let write = || {
            fs::create_dir_all(folder)?;
            fs::write(&plan, toml)?;
            write_program(&program, script)
        };
        write().map_err(|error| PlanError::File {
            path: program.clone(),
            error,
        })?;
        Ok(program)
    }

    /// Returns the path of the log ([`witness`](super::witness)).
    pub fn witness(&self) -> PathBuf {
        self.state.join("witness.jsonl")
    }
}

fn full_mark() -> String {
    "./MEMORY.md".to_owned()
}

fn turn_ms() -> [u64; 2] {
    [5, 20]
}

fn life_limit_seconds() -> u32 {
    3600
}
