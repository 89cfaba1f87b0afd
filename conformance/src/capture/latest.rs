//! `cargo xtask capture --latest`: what is new in the newest versions.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context;
use teamster_mock_model::Cli;
use teamster_testkit::fixture::{Fixture, STDOUT, discover};
use teamster_testkit::replay::{ReplayOptions, replay};

use super::shape::shapes;
use crate::column::Column;
use crate::differences::Differences;
use crate::play::Bench;
use crate::scenario::Scenario;
use crate::schedule::{self, Done};
use crate::{install, say, story};

/// What is new in one CLI.
#[derive(Default)]
struct News {
    /// Lines of types that the decoder does not know, by their shape.
    unknown: BTreeSet<String>,
    /// Fields and types that no fixture has, and where each was first seen.
    shapes: BTreeMap<String, String>,
    /// Stories that are no longer those that the scenarios and the declared differences tell.
    stories: Vec<String>,
}

pub(super) fn report(
    bench: &Bench,
    clis: &[Cli],
    scenarios: &[Arc<Scenario>],
    installed: &install::Installed,
    jobs: usize,
) -> anyhow::Result<ExitCode> {
    let differences = Differences::read()?;
    let pinned = install::pinned()?;
    let mut anything = false;
    for cli in clis {
        let version = installed.version(*cli)?;
        let before = pinned.get(cli).map_or("", String::as_str);
        if version == before {
            writeln!(std::io::stdout(), "{cli} {version}: pinned, and the newest")?;
            continue;
        }
        say(format_args!(
            "{cli}: {before} is pinned, {version} is the newest"
        ));
        let known = known_shapes(*cli, before)?;
        let mut news = News::default();
        schedule::play_all(bench, &[Column::cold(*cli)], scenarios, jobs, |done| {
            if let Err(error) = look(bench, &done, &differences, &known, &mut news) {
                news.stories
                    .push(format!("{}: {error:#}", done.scenario.name));
            }
        })?;
        anything |= tell(*cli, version, &news)?;
    }
    Ok(ExitCode::from(u8::from(anything)))
}

/// The shapes of all fixtures of a version.
fn known_shapes(cli: Cli, version: &str) -> anyhow::Result<BTreeSet<String>> {
    let folder = crate::root().join("fixtures").join(cli.id()).join(version);
    let mut known = BTreeSet::new();
    for dir in discover(&folder).fixtures {
        known.append(&mut shapes(&fs::read(dir.join(STDOUT))?));
    }
    Ok(known)
}

fn look(
    bench: &Bench,
    done: &Done,
    differences: &Differences,
    known: &BTreeSet<String>,
    news: &mut News,
) -> anyhow::Result<()> {
    let name = &done.scenario.name;
    let (played, raw) = done.recorded(bench)?;
    for (number, played) in played.iter().enumerate() {
        let folder = raw.join(crate::play::recorded_name(name, number));
        for shape in shapes(&fs::read(folder.join(STDOUT))?) {
            if !known.contains(&shape) {
                news.shapes.entry(shape).or_insert_with(|| name.clone());
            }
        }
        news.unknown.append(&mut unknown_lines(&folder)?);
        let expected = story::expected(&done.scenario, number);
        let told = story::told(played, &expected);
        let verdict = differences.compare(done.column, name, &expected, &told);
        news.stories.extend(
            verdict
                .undeclared
                .iter()
                .map(|found| format!("{name}: {found}")),
        );
    }
    Ok(())
}

/// The shapes of the lines that the decoder does not know.
fn unknown_lines(folder: &Path) -> anyhow::Result<BTreeSet<String>> {
    let fixture = Fixture::load(folder)?;
    let provider = fixture
        .meta
        .cli
        .as_deref()
        .and_then(teamster::provider)
        .context("no provider")?;
    let replayed = replay(&fixture, &*provider, ReplayOptions::default());
    let mut unknown = BTreeSet::new();
    for event in &replayed.events {
        if let teamster::AgentEvent::Unknown(event) = event {
            // The line's own type is the entry without a field.
            unknown.extend(
                shapes(event.native.get().as_bytes())
                    .into_iter()
                    .filter(|shape| !shape.contains(": ")),
            );
        }
    }
    Ok(unknown)
}

/// Tells what is new; whether anything is.
fn tell(cli: Cli, version: &str, news: &News) -> anyhow::Result<bool> {
    let types: Vec<_> = news
        .shapes
        .keys()
        .filter(|shape| !shape.contains(": "))
        .collect();
    let fields = fields(&news.shapes);
    let mut out = std::io::stdout().lock();
    writeln!(
        out,
        "{cli} {version}: {} new types of lines ({} unknown to the decoder), {} new fields, {} changed \
         facts in stories",
        types.len(),
        news.unknown.len(),
        fields.len(),
        news.stories.len()
    )?;
    for shape in types {
        let unknown = if news.unknown.contains(shape) {
            ", unknown to the decoder"
        } else {
            ""
        };
        let seen = news.shapes.get(shape).map_or("", String::as_str);
        writeln!(out, "  type   {shape} (in {seen}{unknown})")?;
    }
    for (field, (kinds, seen)) in fields {
        let kinds: Vec<_> = kinds.into_iter().collect();
        writeln!(out, "  field  {field} of {} (in {seen})", kinds.join(", "))?;
    }
    for story in &news.stories {
        writeln!(out, "  story  {story}")?;
    }
    Ok(!(news.unknown.is_empty() && news.shapes.is_empty() && news.stories.is_empty()))
}

/// New fields, with the types of lines that have them and the scenario in which they were first seen.
/// What is inside a new field, or in a new type of line, is new with it and not told.
fn fields(shapes: &BTreeMap<String, String>) -> BTreeMap<&str, (BTreeSet<&str>, &str)> {
    let mut fields = BTreeMap::new();
    for (shape, seen) in shapes {
        let Some((kind, field)) = shape.split_once(": ") else {
            continue;
        };
        let outer = field
            .match_indices(['.', '['])
            .any(|(at, _)| shapes.contains_key(&format!("{kind}: {}", &field[..at])));
        if !outer && !shapes.contains_key(kind) {
            let (kinds, _) = fields
                .entry(field)
                .or_insert_with(|| (BTreeSet::new(), seen.as_str()));
            kinds.insert(kind);
        }
    }
    fields
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_new_is_told_once() {
        let shapes = [
            "a: usage.cost",
            "a: usage.cost.parts",
            "a: usage.cost.list[x].y",
            "b: usage.cost",
            "new",
            "new: type",
            "a: list[t].z",
        ]
        .map(|shape| (shape.to_owned(), "text".to_owned()));
        let shapes = BTreeMap::from(shapes);
        let told: Vec<_> = fields(&shapes)
            .into_iter()
            .map(|(field, (kinds, _))| (field, kinds.into_iter().collect::<Vec<_>>()))
            .collect();
        assert_eq!(
            told,
            [("list[t].z", vec!["a"]), ("usage.cost", vec!["a", "b"])]
        );
    }
}
