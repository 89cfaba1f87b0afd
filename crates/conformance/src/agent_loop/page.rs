//! The section of `docs/conformance.md`.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::checks::Check;
use super::day;
use crate::install::clis;
use crate::markdown::{head, row};

/// Renders the section. `cells` is whether a check holds, by CLI and check.
pub(crate) fn section(cells: &BTreeMap<String, BTreeMap<String, bool>>) -> String {
    let mut page = format!(
        "## Agent loop\n\n\
         Written by `cargo xtask loop`; do not edit.\n\n\
         `teamster loop` with the same CLIs in a directory with `.env`, `.mcp.json` and a skill, for {} \
         ticks. The model's script sets the flags by the CLI's own shell tool; every tick but the first is \
         requested with `SIGUSR1`. Two further loops are for what is killed in the middle of a turn.\n\n",
        day::TICKS
    );
    let out = &mut page;
    let names = clis().into_iter().map(|cli| {
        let kind = if day::is_hot(cli) { "hot" } else { "cold" };
        format!("{cli} ({kind})")
    });
    head(out, [String::new()].into_iter().chain(names));
    for check in Check::ALL {
        let of_cli = clis().into_iter().map(|cli| match cells.get(cli.id()) {
            None => "not run",
            Some(checks) => match checks.get(check.name()) {
                None => "–",
                Some(true) => "holds",
                Some(false) => "**fails**",
            },
        });
        let name = format!("`{}`", check.name());
        row(out, [name.as_str()].into_iter().chain(of_cli));
    }
    out.push('\n');
    for check in Check::ALL {
        let _ = writeln!(out, "- `{}`: {}", check.name(), check.description());
    }
    page
}
