//! Scenarios: a script for the model, and beside it what is run and what must come of it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use serde::Deserialize;
use serde_json::Value;
use teamster_mock_model::{Cli, Part, Script, Turn};

/// One scenario.
#[derive(Debug, Clone)]
pub(crate) struct Scenario {
    /// Its name, which is that of its file.
    pub(crate) name: String,
    pub(crate) script: Script,
    pub(crate) test: Test,
}

/// The table `[test]` of a script.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub(crate) struct Test {
    /// The runs, one after the other, in the same home and against the same model.
    pub(crate) run: Vec<Run>,
    /// Where the CLI is pointed at.
    #[serde(default)]
    pub(crate) service: Service,
    /// Files that are in the working directory before.
    #[serde(default)]
    pub(crate) files: BTreeMap<String, String>,
    /// Arguments for a CLI, by its id.
    #[serde(default)]
    pub(crate) args: BTreeMap<String, Vec<String>>,
    /// The model that a CLI is set to use in the place of its usual one, by the CLI's id: where it gives
    /// its tools to some models only.
    #[serde(default)]
    pub(crate) models: BTreeMap<String, String>,
    /// Which CLIs do not play it as turns of one process.
    #[serde(default)]
    pub(crate) cold_only: Vec<ColdOnly>,
    /// Whether a CLI spends most of its time waiting before it repeats a request. Such a scenario is played
    /// beside the others.
    #[serde(default)]
    pub(crate) waits: bool,
    /// Which CLIs have what it is about. All, if it is absent.
    pub(crate) only: Option<Only>,
}

/// A feature that not all CLIs have.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub(crate) struct Only {
    /// The CLIs that have it, each with the first version that does; `""` for all versions.
    pub(crate) providers: BTreeMap<String, String>,
    /// Why the others do not play it.
    pub(crate) why: String,
}

/// Restricts a scenario to runs with a process of their own.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub(crate) struct ColdOnly {
    /// Which CLIs do that; all, if none is named.
    #[serde(default)]
    pub(crate) providers: Vec<String>,
    /// Why.
    pub(crate) why: String,
}

/// The service that the CLI is pointed at.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Service {
    /// At the model that plays the script.
    #[default]
    Model,
    /// At a port without a listener; in a session after its first turn.
    Nobody,
}

/// One run of a CLI.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub(crate) struct Run {
    /// The prompt.
    pub(crate) prompt: String,
    /// Repetitions of the prompt, for a long one.
    #[serde(default = "one")]
    pub(crate) prompt_times: usize,
    /// Which session is resumed.
    #[serde(default)]
    pub(crate) resume: Resume,
    /// The permission mode.
    #[serde(default)]
    pub(crate) permission: Permission,
    /// How often the CLI itself repeats a request, where that can be set.
    pub(crate) cli_retries: Option<u32>,
    /// The MCP server `tiny`: arguments of the test server, such as its faults.
    pub(crate) mcp: Option<Vec<String>>,
    /// The caller's answer to a question of an MCP server, in a session.
    pub(crate) answer: Option<String>,
    /// Whether an image goes with the prompt.
    #[serde(default)]
    pub(crate) image: bool,
    /// The JSON Schema of the answer.
    pub(crate) output_schema: Option<Value>,
    /// Whether a prompt may be one of the CLI's commands.
    #[serde(default)]
    pub(crate) slash_commands: bool,
    /// The limit of time without a line while the model works, in milliseconds.
    pub(crate) idle_timeout_ms: Option<u64>,
    /// When the run is aborted.
    pub(crate) abort: Option<Abort>,
    /// How many `[[turn]]`s of the script (those with `times` not counted) belong to this run. All,
    /// if it is the only one.
    pub(crate) turns: Option<usize>,
    /// Expected facts, beside those that follow from the script, by name.
    #[serde(default)]
    pub(crate) story: BTreeMap<String, Value>,
    /// Further expected facts as a turn of a session.
    #[serde(default)]
    pub(crate) hot: BTreeMap<String, Value>,
}

impl Run {
    /// A run of this prompt, with nothing particular about it.
    pub(crate) fn new(prompt: &str) -> Self {
        Self {
            prompt: prompt.to_owned(),
            prompt_times: one(),
            resume: Resume::default(),
            permission: Permission::default(),
            cli_retries: None,
            mcp: None,
            answer: None,
            image: false,
            output_schema: None,
            slash_commands: false,
            idle_timeout_ms: None,
            abort: None,
            turns: None,
            story: BTreeMap::new(),
            hot: BTreeMap::new(),
        }
    }
}

fn one() -> usize {
    1
}

/// Which session is resumed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Resume {
    /// None: a new one begins.
    #[default]
    New,
    /// That of the previous run.
    Last,
    /// One that does not exist.
    Unknown,
}

/// The permission mode.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Permission {
    #[default]
    Bypass,
    ReadOnly,
}

/// Trigger for aborting a run.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub(crate) enum Abort {
    /// So many milliseconds after the model was asked.
    AfterRequestMs(u64),
    /// As soon as there is this file in the working directory, which a tool makes.
    WhenFile(String),
}

impl Scenario {
    fn read(path: &Path) -> anyhow::Result<Self> {
        let name = path
            .file_stem()
            .and_then(|stem| stem.to_str())
            .with_context(|| format!("{}: its name is not text", path.display()))?
            .to_owned();
        let mut script = Script::read(path).with_context(|| path.display().to_string())?;
        let test = script
            .test
            .take()
            .with_context(|| format!("{}: it has no table `[test]`", path.display()))?;
        let test: Test = test
            .try_into()
            .with_context(|| format!("{}: [test]", path.display()))?;
        let scenario = Self { name, script, test };
        scenario
            .check()
            .with_context(|| path.display().to_string())?;
        Ok(scenario)
    }

    fn check(&self) -> anyhow::Result<()> {
        if self.test.run.is_empty() {
            bail!("a scenario needs at least one `[[test.run]]`");
        }
        if self.test.run.len() > 1 && self.test.run.iter().any(|run| run.turns.is_none()) {
            bail!("with several runs each must say how many `turns` it has");
        }
        for run in &self.test.run {
            for name in run.story.keys().chain(run.hot.keys()) {
                if !crate::fact::is_fact(name) {
                    bail!("a story has no fact `{name}`");
                }
            }
            if !run.story.contains_key("status") {
                bail!("the story must say the `status`");
            }
        }
        for cold in &self.test.cold_only {
            if cold.why.trim().is_empty() {
                bail!("`cold_only` needs a reason (`why`)");
            }
            cold.providers.iter().try_for_each(is_provider)?;
        }
        if let Some(only) = &self.test.only {
            if only.why.trim().is_empty() || only.providers.is_empty() {
                bail!("`only` needs `providers` and a reason (`why`)");
            }
            only.providers.keys().try_for_each(is_provider)?;
        }
        self.test.args.keys().try_for_each(is_provider)?;
        self.test.models.keys().try_for_each(is_provider)?;
        Ok(())
    }

    /// One answer of the model, and its prompt.
    pub(crate) fn of_one(name: &str, answer: Turn, run: Run) -> anyhow::Result<Self> {
        Ok(Self {
            name: name.to_owned(),
            script: Script::new(vec![answer])?,
            test: Test {
                run: vec![run],
                service: Service::default(),
                files: BTreeMap::new(),
                args: BTreeMap::new(),
                models: BTreeMap::new(),
                cold_only: Vec::new(),
                waits: false,
                only: None,
            },
        })
    }

    /// Why this CLI does not play it at all, in this version.
    pub(crate) fn not_played(&self, cli: Cli, version: &str) -> Option<&str> {
        let only = self.test.only.as_ref()?;
        let played = only
            .providers
            .get(cli.id())
            .is_some_and(|since| !crate::install::is_older(version, since));
        (!played).then_some(only.why.as_str())
    }

    /// Why this CLI does not play it as turns of one process.
    pub(crate) fn cold_only(&self, cli: Cli) -> Option<&str> {
        let about = |one: &&ColdOnly| {
            one.providers.is_empty() || one.providers.iter().any(|name| name == cli.id())
        };
        let found = self.test.cold_only.iter().find(about);
        found.map(|one| one.why.as_str())
    }

    /// Its description.
    pub(crate) fn description(&self) -> &str {
        self.script.description.as_deref().unwrap_or_default()
    }

    /// Whether it is about work in the background.
    pub(crate) fn is_in_background(&self) -> bool {
        let turns = self.script.turns.iter();
        turns.flat_map(|turn| &turn.parts).any(|part| {
            matches!(
                part,
                Part::BackgroundShell(_)
                    | Part::Agent {
                        background: Some(true),
                        ..
                    }
            )
        })
    }

    /// The model's answers to sub-agents, which belong to the first run.
    pub(crate) fn agent_answers(&self, run: usize) -> Vec<&Turn> {
        let agents = self.script.agents.iter().filter(|_| run == 0);
        agents
            .flat_map(|agent| &agent.turns)
            .filter(|turn| turn.times.is_none())
            .collect()
    }

    /// The parts of the model's answers that belong to a run, each answer by itself. Answers that
    /// are given up (`times`) are left out.
    pub(crate) fn answers(&self, run: usize) -> Vec<&Turn> {
        let lasting = self.script.turns.iter().filter(|turn| turn.times.is_none());
        let before: usize = self.test.run[..run]
            .iter()
            .filter_map(|run| run.turns)
            .sum();
        let count = self.test.run[run].turns.unwrap_or(usize::MAX);
        lasting.skip(before).take(count).collect()
    }
}

fn is_provider(name: &String) -> anyhow::Result<()> {
    match Cli::from_id(name) {
        Some(_) => Ok(()),
        None => bail!("there is no provider `{name}`"),
    }
}

/// The folder of the scenarios.
pub(crate) fn folder() -> PathBuf {
    crate::here().join("scenarios")
}

/// All scenarios, by name; or those that are named.
pub(crate) fn read(names: &[String]) -> anyhow::Result<Vec<Scenario>> {
    let folder = folder();
    let entries =
        std::fs::read_dir(&folder).with_context(|| format!("cannot read {}", folder.display()))?;
    let mut scenarios = Vec::new();
    for entry in entries {
        let path = entry?.path();
        if path
            .extension()
            .is_some_and(|extension| extension == "toml")
        {
            scenarios.push(Scenario::read(&path)?);
        }
    }
    scenarios.sort_by(|a, b| a.name.cmp(&b.name));
    let unknown: Vec<_> = names
        .iter()
        .filter(|name| scenarios.iter().all(|scenario| scenario.name != **name))
        .map(String::as_str)
        .collect();
    if !unknown.is_empty() {
        let known: Vec<_> = scenarios
            .iter()
            .map(|scenario| scenario.name.as_str())
            .collect();
        bail!(
            "there is no scenario {}; there is: {}",
            unknown.join(", "),
            known.join(", ")
        );
    }
    if !names.is_empty() {
        scenarios.retain(|scenario| names.contains(&scenario.name));
    }
    Ok(scenarios)
}
