//! The page at the end of a run: what is the same, changed and broken in each version.

use std::fmt::Write as _;
use std::fs;

use anyhow::Context as _;

use super::results::{Results, Row, Schema, Version};

/// How a version is beside the one that it was compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum State {
    /// It plays every story in the same way, and prints the same lines and fields.
    Same,
    /// It plays every story in the same way or otherwise by itself, and prints or names something else.
    Changed,
    /// A story differs, or a line is unknown to the decoder.
    Broken,
}

impl State {
    pub(super) fn of(version: &Version) -> Self {
        let shapes = version.shapes();
        if !shapes.unknown.is_empty() || version.scenarios.values().any(Row::differs) {
            return Self::Broken;
        }
        let rows = version.scenarios.values();
        let mut cells = rows.flat_map(Row::cells);
        let named = match &version.schema {
            Schema::Read { lacking, since, .. } => {
                !lacking.is_empty() || since.as_ref().is_some_and(|(_, new)| !new.is_empty())
            }
            Schema::None(_) => false,
        };
        if named || !shapes.is_empty() || cells.any(|cell| !cell.otherwise.is_empty()) {
            Self::Changed
        } else {
            Self::Same
        }
    }

    fn word(self) -> &'static str {
        match self {
            Self::Same => "same",
            Self::Changed => "changed",
            Self::Broken => "broken",
        }
    }
}

/// Writes the page of what was played so far. Returns it.
pub(super) fn write(played: &[(String, String)], failed: &[String]) -> anyhow::Result<String> {
    let text = page(&Results::read()?, played, failed)?;
    let path = crate::target().join("follow.md");
    fs::create_dir_all(crate::target())?;
    fs::write(&path, &text).with_context(|| format!("cannot write {}", path.display()))?;
    Ok(text)
}

/// Returns the page of these versions, and of what could not be played.
fn page(
    results: &Results,
    played: &[(String, String)],
    failed: &[String],
) -> Result<String, std::fmt::Error> {
    let mut page = String::from("# New versions\n\n");
    let out = &mut page;
    if played.is_empty() && failed.is_empty() {
        writeln!(out, "No version is newer than those that are tested.")?;
        return Ok(page);
    }
    let all = played.iter().filter_map(|(cli, version)| {
        let found = results.0.get(cli)?.get(version)?;
        Some((cli, version, State::of(found), found))
    });
    let mut all: Vec<_> = all.collect();
    all.sort_by_key(|(_, _, state, _)| std::cmp::Reverse(*state));
    if !all.is_empty() {
        writeln!(
            out,
            "| Agent | Version | Compared with | State |\n|---|---|---|---|"
        )?;
    }
    for (cli, name, state, version) in &all {
        let reference = &version.reference;
        writeln!(out, "| {cli} | {name} | {reference} | {} |", state.word())?;
    }
    for (cli, name, state, version) in &all {
        if *state != State::Same {
            writeln!(out, "\n## {cli} {name}: {}\n", state.word())?;
            details(out, version)?;
        }
    }
    if !failed.is_empty() {
        let gap = if all.is_empty() { "" } else { "\n" };
        writeln!(out, "{gap}## Not played\n")?;
        for failed in failed {
            writeln!(out, "- {failed}")?;
        }
    }
    Ok(page)
}

/// Returns what is reported of a version as soon as it was played.
pub(super) fn of_version(
    id: &str,
    name: &str,
    version: &Version,
) -> Result<String, std::fmt::Error> {
    let (reference, state) = (&version.reference, State::of(version).word());
    let mut text = format!("{id} {name}, compared with {reference}: {state}\n");
    details(&mut text, version)?;
    Ok(text)
}

/// Writes the facts of the stories, the lines and the names in which a version is not as before.
fn details(out: &mut String, version: &Version) -> std::fmt::Result {
    for (scenario, row) in &version.scenarios {
        for (way, cell) in [("cold", &row.cold), ("live", &row.live)] {
            if let Some(cell) = cell {
                for fact in cell.differs.iter().chain(&cell.otherwise) {
                    writeln!(out, "- `{scenario}` {way}: {}", fact.replace('\n', " "))?;
                }
            }
        }
    }
    for (what, found) in version.shapes().kinds() {
        for found in found {
            writeln!(out, "- {what}: `{found}`")?;
        }
    }
    if let Schema::Read { lacking, since, .. } = &version.schema {
        for name in lacking {
            writeln!(out, "- in its own schema, and not in the decoder: `{name}`")?;
        }
        for name in since.iter().flat_map(|(_, new)| new) {
            writeln!(out, "- new in its own schema: `{name}`")?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    //! Made-up results.

    use super::super::results::tests::{cell, row, version};
    use super::*;

    #[test]
    fn broken_versions_come_first_with_their_facts() {
        let mut results = Results::default();
        let same = version("2001-02-03", &[("text", row(cell(&[]), None))]);
        let broken = version("2001-02-03", &[("text", row(cell(&["cost: gone"]), None))]);
        let mut changed = version("2001-02-03", &[("text", row(cell(&[]), None))]);
        changed.schema = Schema::Read {
            names: 2,
            lacking: ["x".to_owned()].into(),
            since: None,
        };
        results.merge("pi", "1.0.0", same);
        results.merge("codex", "2.0.0", changed);
        results.merge("qwen", "3.0.0", broken);
        let played = [("pi", "1.0.0"), ("codex", "2.0.0"), ("qwen", "3.0.0")]
            .map(|(cli, it)| (cli.to_owned(), it.to_owned()));
        let failed = ["kimi 9.0.0: npm failed".to_owned()];
        let page = page(&results, &played, &failed).unwrap();
        assert_eq!(
            page,
            "\
# New versions

| Agent | Version | Compared with | State |
|---|---|---|---|
| qwen | 3.0.0 | 1.1.0 | broken |
| codex | 2.0.0 | 1.1.0 | changed |
| pi | 1.0.0 | 1.1.0 | same |

## qwen 3.0.0: broken

- `text` cold: cost: gone

## codex 2.0.0: changed

- in its own schema, and not in the decoder: `x`

## Not played

- kimi 9.0.0: npm failed
"
        );
    }

    #[test]
    fn without_a_new_version_the_page_says_so() {
        let page = page(&Results::default(), &[], &[]).unwrap();
        assert!(page.ends_with("No version is newer than those that are tested.\n"));
    }

    #[test]
    fn a_version_that_cannot_be_installed_needs_no_table() {
        let failed = ["kimi 9.0.0: npm failed".to_owned()];
        let page = page(&Results::default(), &[], &failed).unwrap();
        assert_eq!(
            page,
            "# New versions\n\n## Not played\n\n- kimi 9.0.0: npm failed\n"
        );
    }
}
