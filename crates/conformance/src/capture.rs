//! `cargo xtask capture`.

mod neutral;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, bail};
use serde_json::{Value, json};
use teamster_mock_model::Cli;
use teamster_testkit::fixture::{Fixture, META, RECORD, SNAPSHOT, STDERR, STDOUT};
use teamster_testkit::replay::{ReplayOptions, replay};
use teamster_testkit::snapshot;

use crate::acp::pointing::Named;
use crate::bench::Bench;
use crate::column::Column;
use crate::isolation::Network;
use crate::played::Played;
use crate::scenario::{self, Scenario};
use crate::schedule;
use crate::{acp, install, say, say_played};
use neutral::Neutral;

/// Prefix of fixtures that are made by this task.
pub(crate) const PREFIX: &str = "conformance_";
/// Maximum length of a prompt that a fixture keeps uncut, in bytes.
const LONGEST_PROMPT: usize = 2000;

/// Record what a real CLI prints, as fixtures.
///
/// The pinned version of the CLI (`crates/conformance/package.json`) is installed with npm into the target
/// folder, plays the scenarios (`crates/conformance/scenarios`) against the mock model, and what it prints
/// becomes `fixtures/PROVIDER/VERSION/conformance_SCENARIO`, with neutral paths. Review the diff: the
/// snapshots of events are written too. The agents of crates/conformance/acp.toml are recorded one at a time.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  cargo xtask capture codex                  all scenarios of the pinned Codex
  cargo xtask capture claude text refusal    two scenarios
  cargo xtask capture qwen text              an ACP agent of crates/conformance/acp.toml
  cargo xtask capture --check                record again, and compare with the fixtures
  cargo xtask capture all text --check       the same for one scenario")]
pub(crate) struct Args {
    /// The provider, or `all` [default with --check: all]
    #[arg(value_name = "PROVIDER", value_parser = providers, required_unless_present = "check")]
    providers: Option<Providers>,
    /// Scenarios [default: all; with --check those that have a fixture]
    #[arg(value_name = "SCENARIO")]
    scenarios: Vec<String>,
    /// Write nothing: what is recorded now must give the events of the fixtures that are there
    #[arg(long)]
    check: bool,
    /// How many CLIs run at the same time
    #[arg(long, default_value_t = 2, value_name = "N")]
    jobs: usize,
    #[command(flatten)]
    inner: crate::Inner,
}

/// One provider or all.
#[derive(Debug, Clone)]
struct Providers(Vec<Cli>);

fn providers(name: &str) -> Result<Providers, String> {
    if name == "all" {
        return Ok(Providers(install::clis()));
    }
    let named = Named::find(name).ok().flatten();
    let by_itself = named.and_then(|agent| Cli::from_id(&agent.name));
    let cli = by_itself.map_or_else(|| crate::cli(name), Ok);
    cli.map(|cli| Providers(vec![cli]))
}

pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let mut scenarios: Vec<_> = scenario::read(&args.scenarios)?
        .into_iter()
        .filter(Scenario::is_recorded)
        .map(Arc::new)
        .collect();
    let clis = args
        .providers
        .as_ref()
        .map_or(install::clis(), |providers| providers.0.clone());
    let named = match clis[..] {
        [cli] => Named::find(cli.id())?,
        _ => None,
    };
    let raw = std::env::temp_dir().join("raw");
    let Some((bench, network)) = args.inner.bench(Some(raw)) else {
        return crate::alone(&match &named {
            Some(agent) => agent.install()?,
            None => install::pinned_versions()?.programs,
        });
    };
    let mut installed = install::at(&bench.programs)?;
    if let Some(agent) = named {
        let version = agent.version().unwrap_or_default().to_owned();
        installed.versions.insert(clis[0], version);
        if args.scenarios.is_empty() {
            scenarios.retain(|scenario| acp::is_for(&agent.name, scenario));
        }
    }
    say(format_args!("{}", network.describe()));
    record(args, &bench, network, &clis, &scenarios, &installed)
}

fn record(
    args: &Args,
    bench: &Bench,
    network: Network,
    clis: &[Cli],
    scenarios: &[Arc<Scenario>],
    installed: &install::Installed,
) -> anyhow::Result<ExitCode> {
    let mut problems = 0;
    let mut count = 0;
    for cli in clis {
        let version = installed.version(*cli)?;
        let fixtures = crate::root().join("fixtures").join(cli.id()).join(version);
        let scenarios: Vec<_> = scenarios
            .iter()
            .filter(|scenario| {
                !args.check
                    || !args.scenarios.is_empty()
                    || fixture(&fixtures, scenario, 0).exists()
            })
            .cloned()
            .collect();
        schedule::play_all(
            bench,
            &[Column::cold(*cli)],
            &installed.versions,
            &scenarios,
            args.jobs,
            |done| {
                count += 1;
                let found = done.recorded(bench).and_then(|(played, raw)| {
                    let scenario = &done.scenario;
                    let recorded = keep(bench, played, &raw, scenario, version, network)?;
                    if args.check {
                        check(&recorded, scenario, &fixtures)
                    } else {
                        write(&recorded, scenario, &fixtures).map(|()| Vec::new())
                    }
                });
                let found = found.unwrap_or_else(|error| vec![format!("{error:#}")]);
                let verdict = if found.is_empty() { "ok" } else { "DIFFERS" };
                say_played(&done.scenario.name, cli, done.time, verdict);
                for found in &found {
                    problems += 1;
                    say(format_args!("{found}"));
                }
            },
        )?;
    }
    say(format_args!("{count} runs recorded, {problems} problems"));
    Ok(ExitCode::from(u8::from(problems > 0)))
}

fn fixture(fixtures: &Path, scenario: &Scenario, run: usize) -> PathBuf {
    fixtures.join(format!("{PREFIX}{}", run_name(scenario, run)))
}

fn run_name(scenario: &Scenario, run: usize) -> String {
    crate::play::recorded_name(&scenario.name, run)
}

/// Where and how a version was recorded.
pub(crate) struct Recording<'a> {
    pub(crate) bench: &'a Bench,
    pub(crate) cli: Cli,
    pub(crate) version: &'a str,
    pub(crate) network: Network,
}

impl Recording<'_> {
    pub(crate) fn write_fixtures(
        &self,
        scenario: &Scenario,
        played: &[Played],
    ) -> anyhow::Result<()> {
        let (cli, version) = (self.cli.id(), self.version);
        let raw = self.bench.record.as_ref().context("nothing was recorded")?;
        let raw = raw.join(cli);
        let recorded = keep(self.bench, played, &raw, scenario, version, self.network)?;
        let fixtures = crate::root().join("fixtures").join(cli).join(version);
        write(&recorded, scenario, &fixtures)
    }
}

/// Makes fixtures of the recordings in this folder, in separate folders next to them.
fn keep(
    bench: &Bench,
    played: &[Played],
    raw: &Path,
    scenario: &Scenario,
    version: &str,
    network: Network,
) -> anyhow::Result<Vec<PathBuf>> {
    let mut folders = Vec::new();
    for (number, played) in played.iter().enumerate() {
        let name = run_name(scenario, number);
        let folder = raw.join(&name);
        let neutral = Neutral::new(bench, played);
        for file in [STDOUT, STDERR, RECORD] {
            let path = folder.join(file);
            if let Ok(bytes) = fs::read(&path) {
                fs::write(&path, neutral.bytes(&bytes))?;
            }
        }
        let path = folder.join(META);
        let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        let meta: Value = serde_json::from_str(&neutral.text(&text))?;
        let meta = meta_of(meta, scenario, version, &name, network);
        fs::write(&path, format!("{}\n", serde_json::to_string_pretty(&meta)?))?;
        folders.push(folder);
    }
    Ok(folders)
}

/// Adds the fields of `meta.json` that the recording did not know.
fn meta_of(
    mut meta: Value,
    scenario: &Scenario,
    version: &str,
    name: &str,
    network: Network,
) -> Value {
    let Some(fields) = meta.as_object_mut() else {
        return meta;
    };
    fields.insert("version".into(), version.into());
    fields.insert("scenario".into(), format!("{PREFIX}{name}").into());
    fields.insert("what_it_shows".into(), scenario.description().into());
    fields.insert("network".into(), json!(network.describe()));
    shorten(&mut meta);
    meta
}

/// Shortens long texts, such as a prompt of 200 KB.
fn shorten(value: &mut Value) {
    match value {
        Value::String(text) if text.len() > LONGEST_PROMPT => {
            let start: String = text.chars().take(80).collect();
            *text = format!("{start}… ({} bytes)", text.len());
        }
        Value::Array(items) => items.iter_mut().for_each(shorten),
        Value::Object(fields) => fields.values_mut().for_each(shorten),
        _ => {}
    }
}

/// Writes the fixtures to their folders, with their snapshots.
fn write(recorded: &[PathBuf], scenario: &Scenario, fixtures: &Path) -> anyhow::Result<()> {
    for (number, from) in recorded.iter().enumerate() {
        let to = fixture(fixtures, scenario, number);
        let events = events_of(from)?;
        if to.exists() {
            fs::remove_dir_all(&to)?;
        }
        fs::create_dir_all(&to)?;
        for file in [STDOUT, STDERR, RECORD, META] {
            if let Ok(bytes) = fs::read(from.join(file)) {
                // Created instead of copied, so that it has the mode of a file in a repository.
                fs::write(to.join(file), bytes)?;
            }
        }
        // Only the test that asserts the snapshots is in the header of a new one.
        let snapshot = snapshot::with_header("fixtures/tests/it.rs", &events);
        fs::write(to.join(SNAPSHOT), snapshot)?;
    }
    Ok(())
}

/// Compares the events of the recordings with those of the fixtures.
fn check(
    recorded: &[PathBuf],
    scenario: &Scenario,
    fixtures: &Path,
) -> anyhow::Result<Vec<String>> {
    let mut found = Vec::new();
    for (number, from) in recorded.iter().enumerate() {
        let fixture = fixture(fixtures, scenario, number);
        let path = fixture.join(SNAPSHOT);
        let Ok(text) = fs::read_to_string(&path) else {
            bail!("{} is not there", path.display());
        };
        let before = snapshot::without_header(&text);
        let now = events_of(from)?;
        let same = without_chance(before) == without_chance(&now);
        if let Some(diff) = snapshot::diff(before, &now).filter(|_| !same) {
            found.push(format!("{}\n{diff}", path.display()));
        }
    }
    Ok(found)
}

/// Returns a snapshot without its random parts. The number of lines is random, because Copilot reports
/// background work repeatedly while it lasts. So is stderr, where Gemini CLI may print warnings about its own
/// measurements.
fn without_chance(snapshot: &str) -> String {
    let counted = |line: &str| {
        let (_, after) = line.strip_prefix("  lines ")?.split_once(" malformed=")?;
        Some(format!("  lines malformed={after}"))
    };
    let lines = snapshot
        .lines()
        .filter(|line| !line.starts_with("  stderr "));
    let lines = lines.map(|line| counted(line).unwrap_or_else(|| line.to_owned()) + "\n");
    lines.collect()
}

/// Returns the events of a recording in the form of a snapshot, without ids and times.
fn events_of(folder: &Path) -> anyhow::Result<String> {
    let fixture = Fixture::load(folder)?;
    let provider = fixture
        .meta
        .cli
        .as_deref()
        .and_then(|name| teamster::Providers::builtin().get(name))
        .with_context(|| format!("{}: no provider", folder.display()))?;
    let replayed = replay(&fixture, &*provider, ReplayOptions::default());
    if let Err(violation) = &replayed.grammar {
        bail!("{}: {violation}", folder.display());
    }
    Ok(snapshot::render(&replayed.events))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_counts_are_not_compared_but_their_kinds_are() {
        let end = |lines: &str| format!("done         completed exit=0\n  lines      {lines}\n");
        let known = without_chance(&end("67 malformed=0 oversize=0 unknown=0"));
        assert_eq!(
            known,
            without_chance(&end("8 malformed=0 oversize=0 unknown=0"))
        );
        assert_ne!(
            known,
            without_chance(&end("67 malformed=0 oversize=0 unknown=1"))
        );
        let line = "text         msg#1 \"  lines 8 malformed=0\"\n";
        assert_eq!(without_chance(line), line);
    }

    #[test]
    fn stderr_is_not_compared_and_an_error_that_was_found_there_is() {
        let error = "error        CLI_STDERR auth final \"Who?\"\n";
        let run = |stderr: &str| format!("{error}done         failed exit=1\n{stderr}");
        let known = without_chance(&run("  stderr     \"Who?\\n\"\n"));
        assert_eq!(
            known,
            without_chance(&run("  stderr     \"Slow. Who?\\n\"\n"))
        );
        assert_eq!(known, run(""));
    }
}
