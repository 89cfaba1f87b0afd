//! `cargo xtask replay`: the decoded events of recorded output.

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, anyhow, bail};
use serde::Serialize;
use teamster::{AgentEvent, CliProvider, RawJson};
use teamster_core::text::plural;
use teamster_testkit::fixture::{Fixture, META, STDOUT, discover};
use teamster_testkit::replay::{Replay, ReplayOptions, replay};
use teamster_testkit::snapshot;

use crate::{Outcome, complain, root};

/// The test that asserts the snapshots of the repository. It is in the header of accepted snapshots, as insta
/// would write it.
pub(crate) const SNAPSHOT_SOURCE: &str = "fixtures/tests/it.rs";

/// Replay recorded runs through their provider's decoder and compare the events with events.snap.
///
/// A fixture is a folder with stdout.ndjson (what the CLI printed) and, if they are there, stderr.txt
/// and meta.json (which CLI, exit code, ...). It may be anywhere. Its output takes the way that a live run takes: line
/// splitting, decoder, result. The events are rendered one a line and compared with events.snap in
/// the same folder; a difference is shown as a diff.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  cargo xtask replay                                  all fixtures of the repository
  cargo xtask replay fixtures/claude                  those of one provider
  cargo xtask replay fixtures/claude --accept         take the events over, then review `git diff`
  cargo xtask replay --json fixtures/claude/2.1.197/text | jq .event.type
  cargo xtask replay --json --provider claude /tmp/my-run

Exit codes: 0 no difference, 1 a difference, a missing snapshot or a broken event stream (with
--json only the last), 2 no fixtures, an unreadable fixture or an unknown provider; the other
fixtures are replayed all the same.")]
pub(crate) struct Args {
    /// Folders that are fixtures or have some below them [default: fixtures]
    #[arg(value_name = "PATH")]
    paths: Vec<PathBuf>,

    /// Write events.snap where it is missing or differs
    #[arg(long, conflicts_with = "json")]
    accept: bool,

    /// Print {"fixture": PATH, "event": {...}} a line instead, and compare nothing
    #[arg(long)]
    json: bool,

    /// Give every event the line it came from, as `native`
    #[arg(long, requires = "json")]
    native: bool,

    /// Decode as this provider's output, in place of that of `cli` in meta.json
    #[arg(long, value_name = "ID")]
    provider: Option<String>,
}

/// A fixture and its provider.
struct Case {
    fixture: Fixture,
    provider: Arc<dyn CliProvider>,
}

impl Case {
    fn path(&self) -> String {
        self.fixture.dir.display().to_string()
    }
}

pub(crate) fn run(args: &Args, out: &mut impl Write) -> anyhow::Result<Outcome> {
    // All are loaded before the first is replayed, so that errors are reported immediately.
    let (cases, all_found) = cases(args)?;
    let outcome = if cases.is_empty() {
        Outcome::Fine
    } else if args.json {
        print_events(&cases, args.native, out)?
    } else {
        compare(&cases, args.accept, out)?
    };
    Ok(if all_found { outcome } else { Outcome::Failed })
}

/// Returns the fixtures that can be replayed, and whether these are all. Others are reported.
fn cases(args: &Args) -> anyhow::Result<(Vec<Case>, bool)> {
    let default = [default_path()];
    let paths = if args.paths.is_empty() {
        &default
    } else {
        args.paths.as_slice()
    };
    let given = args.provider.as_deref().map(provider).transpose()?;
    let mut cases = Vec::new();
    let mut all_found = true;
    let mut fail = |error: anyhow::Error| {
        complain(format_args!("{error:#}"));
        all_found = false;
    };
    for path in paths {
        let found = discover(path);
        if found.fixtures.is_empty() && found.errors.is_empty() {
            fail(anyhow!(
                "no fixtures in {}: a fixture is a folder with {STDOUT}",
                path.display()
            ));
        }
        for error in found.errors {
            fail(error.into());
        }
        for dir in found.fixtures {
            match case(&dir, given.as_ref()) {
                Ok(case) => cases.push(case),
                Err(error) => fail(error),
            }
        }
    }
    Ok((cases, all_found))
}

fn case(dir: &Path, given: Option<&Arc<dyn CliProvider>>) -> anyhow::Result<Case> {
    let fixture = Fixture::load(dir)?;
    let provider = match (given, &fixture.meta.cli) {
        (Some(provider), _) => Arc::clone(provider),
        (None, Some(id)) => provider(id).with_context(|| dir.display().to_string())?,
        (None, None) => bail!(
            "{}: no `cli` in {META}: name the provider with --provider",
            dir.display()
        ),
    };
    Ok(Case { fixture, provider })
}

fn default_path() -> PathBuf {
    if env::current_dir().is_ok_and(|here| here == root()) {
        PathBuf::from("fixtures")
    } else {
        root().join("fixtures")
    }
}

fn provider(id: &str) -> anyhow::Result<Arc<dyn CliProvider>> {
    teamster::Providers::builtin().get(id).with_context(|| {
        let known = teamster::Providers::builtin().all();
        let known: Vec<_> = known.iter().map(|provider| provider.info().id).collect();
        format!("unknown provider {id:?}; available: {}", known.join(", "))
    })
}

fn print_events(cases: &[Case], native: bool, out: &mut impl Write) -> anyhow::Result<Outcome> {
    #[derive(Serialize)]
    struct Line<'a> {
        fixture: &'a str,
        event: &'a AgentEvent,
        #[serde(skip_serializing_if = "Option::is_none")]
        native: Option<&'a RawJson>,
    }
    let options = ReplayOptions {
        include_native: native,
    };
    let mut broken = false;
    for case in cases {
        let fixture = &case.path();
        let replay = replay(&case.fixture, &*case.provider, options);
        for (event, native) in replay.events.iter().zip(&replay.natives) {
            let native = native.as_ref();
            let line = Line {
                fixture,
                event,
                native,
            };
            serde_json::to_writer(&mut *out, &line)?;
            out.write_all(b"\n")?;
        }
        if let Err(violation) = replay.grammar {
            broken = true;
            complain(format_args!("{fixture}: {violation}"));
        }
    }
    Ok(Outcome::problems_if(broken))
}

/// Verdict on one fixture.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Verdict {
    Ok,
    Accepted,
    Missing,
    Differs(String),
    Broken(String),
    /// The snapshot cannot be read or written.
    Failed,
}

impl Verdict {
    fn word(&self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Accepted => "accepted",
            Self::Missing => "no snapshot",
            Self::Differs(_) => "differs",
            Self::Broken(_) => "broken",
            Self::Failed => "failed",
        }
    }

    fn is_problem(&self) -> bool {
        !matches!(self, Self::Ok | Self::Accepted)
    }
}

fn judge(fixture: &Fixture, replay: &Replay, accept: bool) -> anyhow::Result<Verdict> {
    if let Err(violation) = &replay.grammar {
        // Never accepted: no snapshot makes such a stream valid.
        return Ok(Verdict::Broken(violation.to_string()));
    }
    let path = fixture.snapshot_path();
    let actual = snapshot::render(&replay.events);
    let text = match fs::read_to_string(&path) {
        Ok(text) => Some(text),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(error).with_context(|| path.display().to_string()),
    };
    let verdict = match text {
        None => Verdict::Missing,
        Some(text) => match snapshot::diff(snapshot::without_header(&text), &actual) {
            None => return Ok(Verdict::Ok),
            Some(diff) => Verdict::Differs(diff),
        },
    };
    if !accept {
        return Ok(verdict);
    }
    let text = snapshot::with_header(SNAPSHOT_SOURCE, &actual);
    fs::write(&path, text).with_context(|| path.display().to_string())?;
    Ok(Verdict::Accepted)
}

/// One line of the table.
struct Row {
    path: String,
    lines: u64,
    unknown: u64,
    verdict: Verdict,
    counts: BTreeMap<&'static str, usize>,
}

fn compare(cases: &[Case], accept: bool, out: &mut impl Write) -> anyhow::Result<Outcome> {
    let mut rows = Vec::new();
    for case in cases {
        let replay = replay(&case.fixture, &*case.provider, ReplayOptions::default());
        rows.push(Row {
            path: case.path(),
            lines: replay.lines(),
            unknown: replay.unknown(),
            verdict: judge(&case.fixture, &replay, accept).unwrap_or_else(|error| {
                complain(format_args!("{error:#}"));
                Verdict::Failed
            }),
            counts: replay.counts(),
        });
    }
    table(&rows, out)?;
    details(&rows, out)?;

    let count = |is: fn(&Verdict) -> bool| rows.iter().filter(|row| is(&row.verdict)).count();
    let accepted = count(|verdict| *verdict == Verdict::Accepted);
    let problems = count(Verdict::is_problem);
    write!(
        out,
        "{}, {}, {} unknown, {}",
        plural(rows.len() as u64, "fixture"),
        plural(rows.iter().map(|row| row.lines).sum(), "line"),
        rows.iter().map(|row| row.unknown).sum::<u64>(),
        plural(problems as u64, "difference"),
    )?;
    if accept {
        write!(out, ", {accepted} accepted")?;
    }
    writeln!(out)?;
    if rows.iter().any(|row| row.verdict == Verdict::Failed) {
        return Ok(Outcome::Failed);
    }
    Ok(Outcome::problems_if(problems > 0))
}

fn table(rows: &[Row], out: &mut impl Write) -> io::Result<()> {
    let path_width = rows.iter().map(|row| row.path.chars().count()).max();
    let path_width = path_width.unwrap_or_default().max("fixture".len());
    let verdict_width = rows.iter().map(|row| row.verdict.word().len()).max();
    let verdict_width = verdict_width.unwrap_or_default().max("verdict".len());
    let mut line = |path: &str, lines: &str, unknown: &str, verdict: &str, events: &str| {
        let line = format!(
            "{path:<path_width$}  {lines:>5}  {unknown:>7}  {verdict:<verdict_width$}  {events}"
        );
        writeln!(out, "{}", line.trim_end())
    };
    line("fixture", "lines", "unknown", "verdict", "events")?;
    for row in rows {
        let events = row.counts.iter().map(|(name, n)| format!("{name} {n}"));
        line(
            &row.path,
            &row.lines.to_string(),
            &row.unknown.to_string(),
            row.verdict.word(),
            &events.collect::<Vec<_>>().join(", "),
        )?;
    }
    Ok(())
}

fn details(rows: &[Row], out: &mut impl Write) -> io::Result<()> {
    let mut missing = false;
    for Row { path, verdict, .. } in rows {
        match verdict {
            Verdict::Differs(diff) => {
                let snapshot = Path::new(path).join(teamster_testkit::fixture::SNAPSHOT);
                write!(out, "\n{}\n{diff}", snapshot.display())?;
            }
            Verdict::Broken(violation) => {
                writeln!(out, "\n{path}\nthe event stream is broken: {violation}")?;
            }
            Verdict::Missing => missing = true,
            Verdict::Ok | Verdict::Accepted | Verdict::Failed => {}
        }
    }
    writeln!(out)?;
    if missing
        || rows
            .iter()
            .any(|row| matches!(row.verdict, Verdict::Differs(_)))
    {
        writeln!(
            out,
            "`--accept` writes the events as they are now to events.snap."
        )?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use teamster_core::provider::grammar::Violation;
    use teamster_testkit::fixture::Meta;

    #[test]
    fn a_broken_stream_is_never_accepted() {
        // Hand-made: the assembler never emits such a stream.
        let dir = tempfile::tempdir().unwrap();
        let fixture = Fixture {
            dir: dir.path().to_owned(),
            meta: Meta::default(),
            stdout: Vec::new(),
            stderr: String::new(),
            record: Vec::new(),
        };
        let replay = Replay {
            events: Vec::new(),
            natives: Vec::new(),
            grammar: Err(Violation::NoDone),
        };
        let verdict = judge(&fixture, &replay, true).unwrap();
        assert_eq!(
            verdict,
            Verdict::Broken("the stream ended without `done`".into())
        );
        assert!(verdict.is_problem());
        assert!(!fixture.snapshot_path().exists());
    }
}
