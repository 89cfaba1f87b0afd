//! `cargo xtask replay`: the decoded events of recorded output.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, anyhow, bail};
use serde::Serialize;
use teamster::{AgentEvent, CliProvider, RawJson};
use teamster_testkit::fixture::{Fixture, META, STDOUT, discover};
use teamster_testkit::replay::{ReplayOptions, replay};
use teamster_testkit::snapshot;

use crate::{Outcome, complain};

/// Replay recorded runs through their provider's decoder and print the events, one a line.
///
/// A fixture is a folder with stdout.ndjson (what the CLI printed) and, if they are there, stderr.txt
/// and meta.json (which CLI, exit code, ...). It may be anywhere. Its output takes the way that a live run takes: line
/// splitting, decoder, result. The events are rendered as in the events.snap of the fixtures of the repository, which
/// `cargo test -p teamster-fixtures` compares.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  cargo xtask replay fixtures/claude/2.1.197/text
  cargo xtask replay --json fixtures/claude/2.1.197/text | jq .event.type
  cargo xtask replay --json --provider claude /tmp/my-run

Exit codes: 0 the events are those of whole runs, 1 a broken event stream, 2 no fixtures, an
unreadable fixture or an unknown provider; the other fixtures are replayed all the same.")]
pub(crate) struct Args {
    /// Folders that are fixtures or have some below them
    #[arg(value_name = "PATH", required = true)]
    paths: Vec<PathBuf>,

    /// Print {"fixture": PATH, "event": {...}} a line
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

pub(crate) fn run(args: &Args, out: &mut impl Write) -> anyhow::Result<Outcome> {
    // All are loaded before the first is replayed, so that errors are reported immediately.
    let (cases, all_found) = cases(args)?;
    let mut is_broken = false;
    for case in &cases {
        is_broken |= print_events(case, args, out)?;
    }
    Ok(if all_found {
        Outcome::problems_if(is_broken)
    } else {
        Outcome::Failed
    })
}

/// Returns the fixtures that can be replayed, and whether these are all. Others are reported.
fn cases(args: &Args) -> anyhow::Result<(Vec<Case>, bool)> {
    let given = args.provider.as_deref().map(provider).transpose()?;
    let mut cases = Vec::new();
    let mut all_found = true;
    let mut fail = |error: anyhow::Error| {
        complain(format_args!("{error:#}"));
        all_found = false;
    };
    for path in &args.paths {
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

fn provider(id: &str) -> anyhow::Result<Arc<dyn CliProvider>> {
    teamster::Providers::builtin().get(id).with_context(|| {
        let known = teamster::Providers::builtin().all();
        let known: Vec<_> = known.iter().map(|provider| provider.info().id).collect();
        format!("unknown provider {id:?}; available: {}", known.join(", "))
    })
}

/// Prints the events of a fixture. Returns whether their stream is broken.
fn print_events(case: &Case, args: &Args, out: &mut impl Write) -> anyhow::Result<bool> {
    #[derive(Serialize)]
    struct Line<'a> {
        fixture: &'a str,
        event: &'a AgentEvent,
        #[serde(skip_serializing_if = "Option::is_none")]
        native: Option<&'a RawJson>,
    }
    let fixture = &case.fixture.dir.display().to_string();
    let options = ReplayOptions {
        include_native: args.native,
    };
    let replay = replay(&case.fixture, &*case.provider, options);
    if args.json {
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
    } else {
        writeln!(out, "{fixture}\n{}", snapshot::render(&replay.events))?;
    }
    if let Err(violation) = &replay.grammar {
        complain(format_args!("{fixture}: {violation}"));
    }
    Ok(replay.grammar.is_err())
}
