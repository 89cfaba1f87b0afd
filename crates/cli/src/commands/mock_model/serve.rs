//! Serves the mock model until a signal.

use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::path::Path;

use anstyle::Style;
use anyhow::Context;
use teamster_mock_model::{Cli, HomeVariables, MockModelSettings, Script};

use super::args::MockModelArgs;
use super::pointed::Pointed;
use super::requests::RequestPrinter;
use crate::mock_home::{info, installed};
use crate::runtime::tokio_runtime;
use crate::signals::Source;
use crate::{exit_code, words};

pub(super) fn main(
    args: &MockModelArgs,
    script: Script,
    mut settings: MockModelSettings,
    named: Vec<Cli>,
) -> anyhow::Result<u8> {
    settings.cli = super::single(&named);
    let variables = if named.is_empty() {
        HomeVariables::Folders
    } else {
        HomeVariables::FoldersWithXdg
    };
    let clis = if named.is_empty() {
        let here: Vec<_> = Cli::ALL.into_iter().filter(|cli| installed(*cli)).collect();
        if here.is_empty() {
            Cli::ALL.into()
        } else {
            here
        }
    } else {
        named
    };
    let directory = args.directory.as_ref().and(settings.directory.clone());
    let folder = settings.directory.clone().unwrap_or_default();
    let turns = script.turns.iter().filter(|turn| turn.times.is_none());
    let turns = words::plural(turns.count() as u64, "turn");
    let description = script.description.clone();
    let mut printer = RequestPrinter::new(!args.quiet, args.log.as_deref())?;
    let (_folder, home) = crate::mock_home::temporary_folder("teamster-mock-")?;
    tokio_runtime()?.block_on(async {
        // Before the address is printed, so that a signal after that cleans up.
        let mut signals = Source::new().context("cannot listen for signals")?;
        let model = super::start(script, settings).await?;
        let home = super::point(model.url(), &home, clis)?;
        let pointed = Pointed { home, directory };
        let printed = if args.json {
            writeln!(io::stdout(), "{}", pointed.json())
        } else if args.export {
            io::stdout().write_all(pointed.export(variables).as_bytes())
        } else {
            let about = description.map(|it| words::one_line(&it) + "\n");
            let text = listing(&pointed, &folder, &turns, &about.unwrap_or_default());
            anstream::stdout().write_all(text.as_bytes())
        };
        if printed.and_then(|()| io::stdout().flush()).is_err() {
            return Ok(exit_code::ABORTED);
        }
        if args.export {
            close_stdout().context("cannot close stdout")?;
        }
        tokio::select! {
            () = signals.next() => {}
            () = printer.report(&model) => {}
        }
        printer.catch_up(&model);
        Ok(exit_code::SUCCESS)
    })
}

/// Returns the command lines for each CLI, for people.
fn listing(pointed: &Pointed, folder: &Path, turns: &str, about: &str) -> String {
    let bold = Style::new().bold();
    let dim = Style::new().dimmed();
    let mut text = format!(
        "A mock model of {turns} on {bold}{}{bold:#}\n{about}Ctrl-C ends it and removes the home {}.\nPaths in the script are from {}: run these lines there.\n",
        pointed.home.url,
        pointed.home.path.display(),
        folder.display()
    );
    for (cli, pointing) in &pointed.home.clis {
        let name = info(*cli).map_or(cli.id(), |info| info.name);
        let mut notes: Vec<_> = pointing
            .files
            .iter()
            .map(|file| format!("has {} in that home", file.path.display()))
            .collect();
        // The embedded agent needs no program.
        let install = info(*cli).map_or("", |info| info.install);
        if !install.is_empty() && !installed(*cli) {
            notes.push(format!("not installed: {install}"));
        }
        let notes = if notes.is_empty() {
            String::new()
        } else {
            format!(" {dim}({}){dim:#}", notes.join("; "))
        };
        let [own, run] = pointed.lines(*cli, pointing);
        // Writing to a string cannot fail.
        let _ = write!(text, "\n{bold}{name}{bold:#}{notes}\n{own}\n{run}\n");
    }
    text
}

/// Closes stdout, so that a reader such as a shell's `$(…)` continues.
fn close_stdout() -> io::Result<()> {
    let nowhere = std::fs::OpenOptions::new().write(true).open("/dev/null")?;
    nix::unistd::dup2_stdout(nowhere)?;
    Ok(())
}
