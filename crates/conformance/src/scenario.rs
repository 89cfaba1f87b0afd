//! Scenarios: a script for the model, with the runs to play and the expected stories.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use serde::Deserialize;
use serde_json::Value;
use teamster_mock_model::{Cli, Part, Script, Turn};

/// The model's answers in the turns around a scenario in a session: before it, and after one that broke off.
pub(crate) const ANSWERS_AROUND: [&str; 2] = ["Ready.", "I am."];

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
    /// The runs, played in order in the same home and against the same model.
    pub(crate) run: Vec<Run>,
    /// The service that the CLI uses.
    #[serde(default)]
    pub(crate) service: Service,
    /// Files that exist in the working directory before the first run.
    #[serde(default)]
    pub(crate) files: BTreeMap<String, String>,
    /// Arguments for a CLI, by its id.
    #[serde(default)]
    pub(crate) args: BTreeMap<String, Vec<String>>,
    /// Models that replace the usual one, by the CLI's id, for CLIs whose tools depend on the model.
    #[serde(default)]
    pub(crate) models: BTreeMap<String, String>,
    /// CLIs that do not play it as turns of one process.
    #[serde(default)]
    pub(crate) cold_only: Vec<ColdOnly>,
    /// True if a CLI mostly waits for retries. Such a scenario is played concurrently with the others.
    #[serde(default)]
    pub(crate) waits: bool,
    /// CLIs with the feature of the scenario. Default: all.
    pub(crate) only: Option<Only>,
}

/// A feature that not all CLIs have.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub(crate) struct Only {
    /// The CLIs that have it, each with the first version that does; `""` for all versions.
    pub(crate) providers: BTreeMap<String, String>,
    /// Reason why the others do not play it.
    pub(crate) why: String,
}

/// Restriction of a scenario to runs with separate processes.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub(crate) struct ColdOnly {
    /// CLIs that are restricted. Default: all.
    #[serde(default)]
    pub(crate) providers: Vec<String>,
    pub(crate) why: String,
}

/// The service that the CLI is pointed at.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Service {
    /// The model that plays the script.
    #[default]
    Model,
    /// A port without a listener; in a session, only after its first turn.
    Nobody,
}

/// One run of a CLI.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub(crate) struct Run {
    pub(crate) prompt: String,
    /// Number of repetitions of the prompt, for a long one.
    #[serde(default = "one")]
    pub(crate) prompt_times: usize,
    /// The session to resume.
    #[serde(default)]
    pub(crate) resume: Resume,
    /// True if the session continues in a new one.
    #[serde(default)]
    pub(crate) fork: bool,
    #[serde(default)]
    pub(crate) permission: Permission,
    /// Number of retries by the CLI itself, if configurable.
    pub(crate) cli_retries: Option<u32>,
    /// Arguments of the MCP server `tiny`, such as its faults.
    pub(crate) mcp: Option<Vec<String>>,
    /// The caller's answer to a question, in a session.
    pub(crate) answer: Option<String>,
    /// True if the answer is also given in a run, which then is a session of one turn.
    #[serde(default)]
    pub(crate) answers_cold: bool,
    /// True if the prompt has an image.
    #[serde(default)]
    pub(crate) image: bool,
    pub(crate) output_schema: Option<Value>,
    /// Hooks for the CLIs that take them with a run. Only the others then get the scenario's files, which have theirs.
    pub(crate) hooks: Option<Value>,
    /// True if a prompt may be one of the CLI's commands.
    #[serde(default)]
    pub(crate) slash_commands: bool,
    /// The limit of time without a line while the model works, in milliseconds.
    pub(crate) idle_timeout_ms: Option<u64>,
    pub(crate) abort: Option<Abort>,
    /// A file in the working directory, which a tool creates: then the CLI's process is killed.
    pub(crate) crash_when_file: Option<String>,
    /// Number of `[[turn]]`s of the script in this run, without those with `times`. Default: all, if it is
    /// the only run.
    pub(crate) turns: Option<usize>,
    /// Expected facts by name, in addition to those that follow from the script.
    #[serde(default)]
    pub(crate) story: BTreeMap<String, Value>,
    /// Additional expected facts as a turn of a session.
    #[serde(default)]
    pub(crate) hot: BTreeMap<String, Value>,
}

impl Run {
    /// Creates a run with this prompt and defaults for all other fields.
    pub(crate) fn new(prompt: &str) -> Self {
        Self {
            prompt: prompt.to_owned(),
            prompt_times: one(),
            resume: Resume::default(),
            fork: false,
            permission: Permission::default(),
            cli_retries: None,
            mcp: None,
            answer: None,
            answers_cold: false,
            image: false,
            output_schema: None,
            hooks: None,
            slash_commands: false,
            idle_timeout_ms: None,
            abort: None,
            crash_when_file: None,
            turns: None,
            story: BTreeMap::new(),
            hot: BTreeMap::new(),
        }
    }
}

fn one() -> usize {
    1
}

/// The session to resume.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Resume {
    #[default]
    New,
    /// The session of the previous run.
    Last,
    /// The session of the first run.
    First,
    /// A session that does not exist.
    Unknown,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Permission {
    #[default]
    Bypass,
    /// The CLI asks for permission, which is not given.
    Ask,
    ReadOnly,
}

/// Trigger for aborting a run.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub(crate) enum Abort {
    /// Time after a request to the model, in milliseconds.
    AfterRequestMs(u64),
    /// Existence of this file in the working directory, which a tool creates.
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
                    bail!("unknown fact `{name}`");
                }
            }
            if run.fork && run.resume == Resume::New {
                bail!("`fork` needs a session to `resume`");
            }
            if run.answers_cold && run.answer.is_none() {
                bail!("`answers_cold` needs an `answer`");
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

    /// Creates a scenario with one run and one answer of the model.
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

    /// Returns the reason why this CLI does not play it at all, in this version.
    pub(crate) fn not_played(&self, cli: Cli, version: &str) -> Option<&str> {
        let only = self.test.only.as_ref()?;
        let played = only
            .providers
            .get(cli.id())
            .is_some_and(|since| !crate::install::is_older(version, since));
        (!played).then_some(only.why.as_str())
    }

    /// Returns the reason why this CLI does not play it as turns of one process.
    pub(crate) fn cold_only(&self, cli: Cli) -> Option<&str> {
        let about = |one: &&ColdOnly| {
            one.providers.is_empty() || one.providers.iter().any(|name| name == cli.id())
        };
        let found = self.test.cold_only.iter().find(about);
        found.map(|one| one.why.as_str())
    }

    pub(crate) fn description(&self) -> &str {
        self.script.description.as_deref().unwrap_or_default()
    }

    /// Returns whether its runs can be recorded: not where requests are answered.
    pub(crate) fn is_recorded(&self) -> bool {
        self.test.run.iter().all(|run| !run.answers_cold)
    }

    /// Returns whether the script has background work.
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

    /// Returns the model's answers to sub-agents, which belong to the first run.
    pub(crate) fn agent_answers(&self, run: usize) -> Vec<&Turn> {
        let agents = self.script.agents.iter().filter(|_| run == 0);
        agents
            .flat_map(|agent| &agent.turns)
            .filter(|turn| turn.times.is_none())
            .collect()
    }

    /// Returns the model's answers that belong to a run. Answers that fail (`times`) are omitted.
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
        None => bail!("unknown provider `{name}`"),
    }
}

pub(crate) fn folder() -> PathBuf {
    crate::here().join("scenarios")
}

/// Reads all scenarios, sorted by name, or the named ones.
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
            "unknown scenario {}; available: {}",
            unknown.join(", "),
            known.join(", ")
        );
    }
    if !names.is_empty() {
        scenarios.retain(|scenario| names.contains(&scenario.name));
    }
    Ok(scenarios)
}
