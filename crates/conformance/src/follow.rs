//! `cargo xtask follow`: differences between versions of the CLIs and the fixtures.

mod followed;
mod named;
mod no_lines;
mod page;
mod report;
mod results;
mod schema;
mod shape;
#[cfg(test)]
mod tests;
mod versions;
mod writing;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::fs;
use std::io::Write as _;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail};
use teamster_mock_model::Cli;
use teamster_testkit::fixture::{STDOUT, discover};

use crate::acp::row;
use crate::bench::Bench;
use crate::capture::{PREFIX, Recording};
use crate::column::Column;
use crate::differences::Differences;
use crate::isolation::Network;
use crate::play::recorded_name;
use crate::played::Played;
use crate::scenario::{self, Scenario};
use crate::schedule::{self, Done};
use crate::{conformance, say, say_played};
use followed::Followed;
use report::State;
use results::{Cell, Results, Row, Schema, ShapeChanges, Version};
use shape::{Shapes, compare};

/// Play the scenarios with versions of the CLIs side by side, and report what they change.
///
/// The agents of `crates/conformance/acp.toml` are followed too; their stories are compared with the agent's row.
/// Each version is installed with npm, by its exact number, into the target folder, unless it is there.
/// It plays the scenarios cold and live; its stories are compared with those that are expected, and its
/// lines and fields with the fixtures: with all of them, and with those of the nearest known version. A scenario whose
/// story differs is played once more, by itself, and counts as it is then. Reported are new, changed and
/// vanished lines, and names in the program's own schema that the decoder lacks. The results are merged
/// into `crates/conformance/versions.json` and docs/versions.md. At the end is one page, also in the target
/// folder (`conformance/follow.md`): what is the same, changed and broken.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  cargo xtask follow                              the newest version of every CLI and agent
  cargo xtask follow claude --since 2.1.300       all versions of one CLI from this one on
  cargo xtask follow codex --version 0.144.0 -s text
                                                  one version and one scenario
  cargo xtask follow --all --since-tested --write
                                                  all that is new: plays it, and writes fixtures, tested
                                                  versions and the changelog")]
pub(crate) struct Args {
    /// The provider [default: all]
    #[arg(value_name = "PROVIDER", value_parser = Followed::parse)]
    provider: Option<Followed>,
    /// This version; several are possible
    #[arg(long = "version", value_name = "X", requires = "provider", conflicts_with_all = ["since", "last"])]
    versions: Vec<String>,
    /// All releases from this one on
    #[arg(long, value_name = "X", requires = "provider", conflicts_with = "last")]
    since: Option<String>,
    /// The newest N releases [default: 1]
    #[arg(long, value_name = "N")]
    last: Option<usize>,
    /// Every agent, as without PROVIDER
    #[arg(long, conflicts_with = "provider")]
    all: bool,
    /// All releases that are newer than the newest tested one
    #[arg(long, conflicts_with_all = ["versions", "since", "last"])]
    since_tested: bool,
    /// Write fixtures of what is new; and of each version that plays every story as expected, its number among the
    /// tested ones and a line in CHANGELOG.md
    #[arg(long)]
    write: bool,
    /// Only these scenarios
    #[arg(long = "scenario", short, value_name = "NAME")]
    scenarios: Vec<String>,
    /// How many CLIs run at the same time
    #[arg(long, default_value_t = 2, value_name = "N")]
    jobs: usize,
    /// Only write the page of the recorded results
    #[arg(long, conflicts_with_all = ["provider", "versions", "since", "last", "scenarios", "all", "since_tested", "write"])]
    render: bool,
    /// The CLI that is installed for the second half, and its version.
    #[arg(long, hide = true, num_args = 2)]
    installed: Vec<String>,
    #[command(flatten)]
    inner: crate::Inner,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    if args.render {
        page::write(&Results::read()?)?;
        return Ok(ExitCode::SUCCESS);
    }
    let scenarios: Vec<_> = scenario::read(&args.scenarios)?
        .into_iter()
        .map(Arc::new)
        .collect();
    let raw = std::env::temp_dir().join("raw");
    if let Some((bench, network)) = args.inner.bench(Some(raw)) {
        return play(args, &bench, network, &scenarios);
    }
    let (mut code, mut reached) = (0, false);
    let mut played = Vec::new();
    let mut failed = Vec::new();
    let all = match &args.provider {
        Some(one) if !args.all => vec![one.clone()],
        _ => Followed::all()?,
    };
    for followed in all {
        let versions = match followed.wanted(args) {
            Ok(versions) => versions,
            // The others may be there, if the registry is.
            Err(error) if args.provider.is_none() && reached => {
                failed.push(format!("{followed}: {error:#}"));
                continue;
            }
            Err(error) => return Err(error),
        };
        reached = true;
        for version in versions {
            match of_version(args, &followed, &version) {
                Ok(found) => {
                    code = code.max(found);
                    played.push((followed.id().to_owned(), version));
                }
                Err(error) if args.provider.is_none() => {
                    failed.push(format!("{followed} {version}: {error:#}"));
                }
                Err(error) => return Err(error),
            }
            // It may be ended before all were played.
            report::write(&played, &failed)?;
        }
    }
    if !failed.is_empty() {
        code = code.max(1);
    }
    let page = report::write(&played, &failed)?;
    writeln!(std::io::stdout().lock(), "\n{page}")?;
    Ok(ExitCode::from(code))
}

/// Installs a version and plays it in the second half. Returns the exit code.
fn of_version(args: &Args, followed: &Followed, version: &str) -> anyhow::Result<u8> {
    let programs = followed.install(version)?;
    say(format_args!("== {followed} {version}"));
    let further = ["--installed", followed.id(), version];
    let code = crate::alone_code(&programs, &further)?;
    if code > 1 {
        bail!("it could not be played; the reason is in the output");
    }
    let results = Results::read()?;
    let found = results.0.get(followed.id());
    let found = found.and_then(|all| all.get(version));
    let is_fine = found.is_some_and(|found| State::of(found) != State::Broken);
    if let Some(cli) = followed.cli()
        && args.write
        && is_fine
        && args.scenarios.is_empty()
    {
        for path in writing::tested(cli, version)? {
            say(format_args!("written: {}", path.display()));
        }
    }
    Ok(code)
}

/// Plays the scenarios with the CLI that is installed here, and records the results.
fn play(
    args: &Args,
    bench: &Bench,
    network: Network,
    scenarios: &[Arc<Scenario>],
) -> anyhow::Result<ExitCode> {
    say(format_args!("{}", network.describe()));
    let [name, version] = &args.installed[..] else {
        bail!("`--installed` names the CLI and its version");
    };
    let followed = Followed::parse(name).map_err(anyhow::Error::msg)?;
    // If it does not start, differences in all scenarios would be meaningless.
    bench
        .starts(followed.program())
        .with_context(|| format!("{followed} {version}"))?;
    let rows_of = |bench: &Bench, scenarios: &[Arc<Scenario>], jobs| {
        rows(args, &followed, version, bench, network, scenarios, jobs)
    };
    let (reference, mut rows) = rows_of(bench, scenarios, args.jobs)?;
    let again = Bench {
        // A folder has one recording.
        record: bench.record.as_ref().map(|folder| folder.join("again")),
        ..bench.clone()
    };
    for scenario in scenarios {
        let Some(row) = rows.get_mut(&scenario.name).filter(|row| row.differs()) else {
            continue;
        };
        say(format_args!("once more, by itself: {}", scenario.name));
        let (_, second) = rows_of(&again, std::slice::from_ref(scenario), 1)?;
        for second in second.into_values() {
            row.replace(second);
        }
    }
    let now = Version {
        date: jiff::Zoned::now().date().to_string(),
        reference,
        schema: match &followed {
            Followed::Pinned(cli) => schema_of(*cli, version, bench)?,
            Followed::Named(_) => Schema::None("the program has none that is read".to_owned()),
        },
        scenarios: rows,
    };
    let text = report::of_version(followed.id(), version, &now)?;
    std::io::stdout().lock().write_all(text.as_bytes())?;
    let is_same = |row: &Row| row.cells().all(|cell| cell.word() == "same");
    let fine = now.shapes().is_empty() && now.scenarios.values().all(is_same);
    let mut results = Results::read()?;
    results.merge(followed.id(), version, now);
    results.write()?;
    page::write(&results)?;
    Ok(ExitCode::from(u8::from(!fine)))
}

/// Plays scenarios. Returns the version that they are compared with, and their results.
fn rows(
    args: &Args,
    followed: &Followed,
    version: &str,
    bench: &Bench,
    network: Network,
    scenarios: &[Arc<Scenario>],
    jobs: usize,
) -> anyhow::Result<(String, BTreeMap<String, Row>)> {
    let recording = |cli| Recording {
        bench,
        cli,
        version,
        network,
    };
    Ok(match (followed, followed.cli()) {
        (Followed::Pinned(cli), _) => {
            let known = Known::of(*cli, version)?;
            let rows = of_matrix(args, &recording(*cli), &known, scenarios, jobs)?;
            (known.reference, rows)
        }
        (Followed::Named(agent), Some(cli)) => {
            let (known, row) = (Known::of(cli, version)?, row::Row::kept(&agent.name)?);
            let recording = args.write.then(|| recording(cli));
            let with = named::With::Fixtures(&known, recording.as_ref());
            let rows = named::play(bench, &row, with, scenarios, jobs)?;
            (known.reference, rows)
        }
        (Followed::Named(agent), None) => {
            let row = row::Row::kept(&agent.name)?;
            let rows = named::play(bench, &row, named::With::Row, scenarios, jobs)?;
            (row.version().unwrap_or_default().to_owned(), rows)
        }
    })
}

/// Plays a version of a CLI of the matrix.
fn of_matrix(
    args: &Args,
    recording: &Recording<'_>,
    known: &Known,
    scenarios: &[Arc<Scenario>],
    jobs: usize,
) -> anyhow::Result<BTreeMap<String, Row>> {
    let Recording {
        bench,
        cli,
        version,
        ..
    } = *recording;
    let versions = BTreeMap::from([(cli, version.to_owned())]);
    let differences = Differences::read()?.of_versions(&versions);
    let mut rows: BTreeMap<String, Row> = BTreeMap::new();
    let columns = Column::of(&[cli], true, true);
    schedule::play_all(bench, &columns, &versions, scenarios, jobs, |done| {
        let name = done.scenario.name.clone();
        let row = rows.entry(name.clone()).or_default();
        let cell = note(&done, &differences, known, row);
        let is_new = !done.column.hot && !row.shapes.new.is_empty();
        if args.write && is_new && cell.differs.is_empty() {
            let played = done.played.as_deref().unwrap_or_default();
            write_fixtures(recording, &done.scenario, played);
        }
        report(&name, done.column, done.time, &cell);
        row.put(done.column.hot, cell);
    })?;
    Ok(rows)
}

/// Writes fixtures of a scenario that has printed something new.
fn write_fixtures(recording: &Recording<'_>, scenario: &Scenario, played: &[Played]) {
    match recording.write_fixtures(scenario, played) {
        Ok(()) => say(format_args!("    written as a fixture")),
        Err(error) => say(format_args!("    no fixture: {error:#}")),
    }
}

/// Records the shapes of a played run and the comparison of its story.
fn note(done: &Done, differences: &Differences, known: &Known, row: &mut Row) -> Cell {
    let judged = done
        .played
        .as_ref()
        .map_err(|error| anyhow::anyhow!("{error:#}"))
        .and_then(|played| {
            row.shapes.unknown.append(&mut unknown(played));
            if !done.column.hot && done.scenario.is_recorded() {
                row.shapes.append(changes(&done.scenario, played, known));
            }
            conformance::judge(differences, done.column, &done.scenario, played, false)
        });
    let (mut differs, declared) = match judged {
        Ok(verdict) => {
            let name = &done.scenario.name;
            let declared = differences.of_some_versions(done.column, name, &verdict);
            (verdict.undeclared, declared)
        }
        Err(error) => (vec![format!("{error:#}")], BTreeMap::new()),
    };
    if !differs.is_empty() {
        let played = done.played.iter().flatten();
        let errors = played.flat_map(|played| &played.result.errors).next();
        differs.extend(errors.map(|error| format!("the first error: {}", error.message)));
    }
    Cell {
        differs,
        otherwise: Vec::new(),
        declared,
    }
}

/// Returns the types of lines that the decoder does not know.
fn unknown(played: &[Played]) -> BTreeSet<String> {
    let events = played.iter().flat_map(|played| &played.events);
    events
        .filter_map(|event| match event {
            teamster::AgentEvent::Unknown(event) => {
                let shapes = Shapes::of(event.native.get().as_bytes());
                Some(shapes.lines().map(str::to_owned).collect::<Vec<_>>())
            }
            _ => None,
        })
        .flatten()
        .collect()
}

/// Returns the differences between what a scenario's runs have printed and the fixtures.
fn changes(scenario: &Scenario, played: &[Played], known: &Known) -> ShapeChanges {
    let mut now = Shapes::default();
    let mut same = Shapes::default();
    for (number, played) in played.iter().enumerate() {
        for line in &played.printed {
            now.append(Shapes::of(line.as_bytes()));
        }
        let name = recorded_name(&scenario.name, number);
        if let Some(shapes) = known.by_scenario.get(&name) {
            same.append(shapes.clone());
        }
    }
    compare(&now, &known.all, &same)
}

/// Prints the result of a scenario.
fn report(name: &str, way: impl Display, time: Duration, cell: &Cell) {
    say_played(name, way, time, cell.word());
    for fact in cell.differs.iter().chain(&cell.otherwise) {
        say(format_args!("    {fact}"));
    }
}

/// The shapes of the fixtures.
struct Known {
    /// The nearest known version.
    reference: String,
    /// Shapes of all fixtures of all versions.
    all: Shapes,
    /// Shapes of each run of a scenario with the nearest version.
    by_scenario: BTreeMap<String, Shapes>,
}

impl Known {
    fn of(cli: Cli, version: &str) -> anyhow::Result<Self> {
        let folder = crate::root().join("fixtures").join(cli.id());
        let mut names = Vec::new();
        for entry in fs::read_dir(&folder).with_context(|| folder.display().to_string())? {
            names.push(entry?.file_name().to_string_lossy().into_owned());
        }
        let reference = versions::nearest(version, names.iter().map(String::as_str))
            .with_context(|| format!("{}: there are no fixtures", folder.display()))?;
        let mut known = Self {
            reference: reference.to_owned(),
            all: Shapes::default(),
            by_scenario: BTreeMap::new(),
        };
        let same = folder.join(reference);
        for dir in discover(&folder).fixtures {
            let shapes = Shapes::of(&fs::read(dir.join(STDOUT))?);
            let name = dir.file_name().unwrap_or_default().to_string_lossy();
            if let Some(scenario) = name.strip_prefix(PREFIX)
                && dir.starts_with(&same)
            {
                known
                    .by_scenario
                    .insert(scenario.to_owned(), shapes.clone());
            }
            known.all.append(shapes);
        }
        Ok(known)
    }
}

fn schema_of(cli: Cli, version: &str, bench: &Bench) -> anyhow::Result<Schema> {
    let modules = bench.programs.parent().unwrap_or(&bench.programs);
    let program = bench.programs.join(cli.id());
    Ok(
        match schema::names(cli, modules, &program, &bench.copilot_packages()) {
            Ok(names) => Schema::Read {
                lacking: schema::unhandled(cli, &names)?,
                names: names.len(),
                since: schema::new_fields(cli, version, &program)?,
            },
            Err(why) => Schema::None(why),
        },
    )
}
