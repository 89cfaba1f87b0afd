//! The section of `docs/conformance.md`.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use teamster_mock_model::Cli;

use super::checks::{Check, Findings};
use super::day;
use crate::matrix::LOOP;

/// Renders the section.
pub(crate) fn section(all: &BTreeMap<Cli, Option<Findings>>) -> Result<String, std::fmt::Error> {
    let mut page = String::new();
    let out = &mut page;
    writeln!(
        out,
        "{LOOP}\n\n\
         Written by `cargo xtask loop`; do not edit.\n\n\
         `teamster loop` with the same CLIs in a directory with `.env`, `.mcp.json` and a skill, for {} \
         ticks. The model's script sets the flags by the CLI's own shell tool; every tick but the first is \
         requested with `SIGUSR1`. Two further loops are for what is killed in the middle of a turn.\n",
        day::TICKS
    )?;
    write!(out, "| |")?;
    for cli in crate::install::clis() {
        let kind = if day::is_hot(cli) { "hot" } else { "cold" };
        write!(out, " {cli} ({kind}) |")?;
    }
    writeln!(
        out,
        "\n|---|{}",
        "---|".repeat(crate::install::clis().len())
    )?;
    for check in Check::ALL {
        write!(out, "| `{}` |", check.name())?;
        for cli in crate::install::clis() {
            let what = match all.get(&cli) {
                None => "not run",
                Some(None) => "**fails**",
                Some(Some(findings)) => {
                    let fails = findings.wrong.iter().any(|(it, _)| *it == check);
                    match (fails, findings.looked.contains(&check)) {
                        (true, _) => "**fails**",
                        (false, true) => "holds",
                        (false, false) => "–",
                    }
                }
            };
            write!(out, " {what} |")?;
        }
        writeln!(out)?;
    }
    writeln!(out)?;
    for check in Check::ALL {
        writeln!(out, "- `{}`: {}", check.name(), check.description())?;
    }
    Ok(page)
}
