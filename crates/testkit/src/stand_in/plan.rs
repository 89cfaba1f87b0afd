//! Plan of a stand-in.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::act::Act;
use crate::proc;

/// The environment variable that holds the plan, or `@` and the path of a file with it.
pub const PLAN_ENV: &str = "TEAMSTER_FAKE_PLAN";

/// Which CLI is stood in for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum StandIn {
    /// Claude Code, kept for many turns: `claude -p --input-format stream-json …`.
    Claude,
    /// GitHub Copilot CLI, one process a turn: `copilot --prompt=… --output-format=json …`.
    Copilot,
}

/// Actions of a stand-in in its turns.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Plan {
    /// Which CLI it stands in for.
    pub cli: StandIn,
    /// A folder for what outlives a process: the witness, sessions, counters. Outside of the agent's.
    pub state: PathBuf,
    /// Which chances.
    #[serde(default)]
    pub seed: u64,
    /// A prompt with this in it is a full one, any other a light one.
    #[serde(default = "full_mark")]
    pub full_mark: String,
    /// How long a turn takes, in milliseconds: between these two.
    #[serde(default = "turn_ms")]
    pub turn_ms: [u64; 2],
    /// After `/clear` the running totals of Claude Code start over, as they do since 2.1.330. In 2.1.197
    /// they go on.
    #[serde(default)]
    pub totals_restart: bool,
    /// How long a process lives at most, in seconds; `SIGALRM` ends it then.
    #[serde(default = "life_limit_seconds")]
    pub life_limit_seconds: u32,
    /// Actions of the first turns, in any process. Turns are counted from 0 over all
    /// processes.
    #[serde(default)]
    pub turns: Vec<Vec<Act>>,
    /// Actions of the turns after those, with their probabilities.
    #[serde(default)]
    pub chances: BTreeMap<Act, f64>,
}

/// Error of reading or writing a plan.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PlanError {
    /// The text is no plan.
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
    /// A plan to answer and do nothing else.
    pub fn new(cli: StandIn, state: impl Into<PathBuf>) -> Self {
        Self {
            cli,
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

    /// With these chances.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// In the next turn that is planned, this is done.
    #[must_use]
    pub fn turn(mut self, acts: impl IntoIterator<Item = Act>) -> Self {
        self.turns.push(acts.into_iter().collect());
        self
    }

    /// In each turn that is not planned, this is done with such a probability, from 0 to 1.
    #[must_use]
    pub fn chance(mut self, act: Act, probability: f64) -> Self {
        self.chances.insert(act, probability);
        self
    }

    /// Reads a plan from TOML.
    ///
    /// # Errors
    ///
    /// The text is no plan.
    pub fn parse(toml: &str) -> Result<Self, PlanError> {
        toml::from_str(toml).map_err(|error| PlanError::Parse(Box::new(error)))
    }

    /// Reads a plan from a TOML file.
    ///
    /// # Errors
    ///
    /// The file cannot be read, or is no plan.
    pub fn load(path: impl AsRef<Path>) -> Result<Self, PlanError> {
        let path = path.as_ref();
        let toml = fs::read_to_string(path).map_err(|error| PlanError::File {
            path: path.to_owned(),
            error,
        })?;
        Self::parse(&toml)
    }

    /// The plan as TOML.
    ///
    /// # Errors
    ///
    /// It has no such form.
    pub fn to_toml(&self) -> Result<String, PlanError> {
        toml::to_string(self).map_err(|error| PlanError::Write(Box::new(error)))
    }

    /// Puts a program of the CLI's name into a folder, which plays this plan: for the `PATH` of a test that is
    /// tested. `command` is that of the fake agent, for a shell. What it is given for its own settings is
    /// only the plan, in a file beside it.
    ///
    /// # Errors
    ///
    /// A file cannot be written.
    pub fn install(&self, folder: &Path, command: &str) -> Result<PathBuf, PlanError> {
        let name = match self.cli {
            StandIn::Claude => "claude",
            StandIn::Copilot => "copilot",
        };
        let program = folder.join(name);
        let plan = folder.join(format!("{name}.toml"));
        let toml = self.to_toml()?;
        let script = format!(
            "#!/bin/sh\n{PLAN_ENV}='@{}' exec {command} \"$@\"\n",
            plan.display()
        );
        let write = || {
            fs::create_dir_all(folder)?;
            fs::write(&plan, toml)?;
            proc::write_program(&program, script)
        };
        write().map_err(|error| PlanError::File {
            path: program.clone(),
            error,
        })?;
        Ok(program)
    }

    /// The file with the log of events ([`witness`](super::witness)).
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
