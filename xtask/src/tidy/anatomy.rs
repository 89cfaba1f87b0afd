//! Provider crates against the table "Provider anatomy" of `docs/architecture.md`.

use super::{Problem, Tree};

/// The page with the table.
pub(super) const PAGE: &str = "docs/architecture.md";
const HEADING: &str = "## Provider anatomy";

/// Condition for a required file.
#[derive(Debug, PartialEq, Eq)]
enum Need {
    Required,
    Optional,
    /// Required if this other file exists.
    With(String),
}

/// A row of the table: a file, by its path in the crate.
#[derive(Debug, PartialEq, Eq)]
struct Row {
    file: String,
    need: Need,
}

/// Compares each crate whose `lib.rs` implements `CliProvider` with the table.
pub(super) fn check(tree: &Tree, problems: &mut Vec<Problem>) {
    let crates: Vec<_> = tree
        .with("/src/lib.rs")
        .filter(|file| file.text.contains(" CliProvider for "))
        .filter_map(|file| file.path.strip_suffix("src/lib.rs"))
        .collect();
    if crates.is_empty() {
        return;
    }
    let page = tree.files.iter().find(|file| file.path == PAGE);
    let rows = page.map(|page| rows(&page.text)).unwrap_or_default();
    if rows.is_empty() {
        problems.push(Problem {
            path: PAGE.to_owned(),
            line: 0,
            message: format!("has no table under `{HEADING}`"),
        });
        return;
    }
    for folder in crates {
        of_crate(tree, folder, &rows, problems);
    }
}

/// Checks the files of one crate. `folder` ends with `/`.
fn of_crate(tree: &Tree, folder: &str, rows: &[Row], problems: &mut Vec<Problem>) {
    let has = |file: &str| tree.has(&format!("{folder}{file}"));
    for row in rows.iter().filter(|row| !has(&row.file)) {
        let why = match &row.need {
            Need::Required => "every provider has it".to_owned(),
            Need::With(other) if has(other) => format!("it goes with {other}"),
            Need::Optional | Need::With(_) => continue,
        };
        problems.push(Problem {
            path: format!("{folder}{}", row.file),
            line: 0,
            message: format!("is missing: {why} ({PAGE}, provider anatomy)"),
        });
    }
}

/// Returns the rows of the table. The header and the line below it are not rows, because they have no file.
fn rows(page: &str) -> Vec<Row> {
    let section = page.lines().skip_while(|line| *line != HEADING).skip(1);
    let section = section.take_while(|line| !line.starts_with("## "));
    section.filter_map(row).collect()
}

fn row(line: &str) -> Option<Row> {
    let mut cells = line.trim().strip_prefix('|')?.split('|').map(str::trim);
    let (_, file, need) = (cells.next()?, cells.next()?, cells.next()?);
    let code = |text: &str| Some(text.split('`').nth(1)?.to_owned());
    let need = match need {
        "required" => Need::Required,
        "optional" => Need::Optional,
        other => Need::With(other.strip_prefix("with ").and_then(code)?),
    };
    Some(Row {
        file: code(file)?,
        need,
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::problems_of;
    use super::*;

    const TABLE: &str = "# A\n\n## Provider anatomy\n\n| Role | File | |\n|---|---|---|\n\
        | registration | `src/lib.rs` | required |\n| launch | `src/launch.rs` | required |\n\
        | sessions | `src/session.rs` | optional |\n\
        | their start | `src/launch/session.rs` | with `src/session.rs` |\n\
        | suite | `tests/conformance.rs` | required |\n\n## Next\n\n\
        | other | `src/other.rs` | required |\n";
    const PROVIDER: &str = "impl CliProvider for A {\n";

    fn problems(files: &[&str]) -> Vec<String> {
        let mut all = vec![
            (PAGE, TABLE),
            ("crates/a/src/lib.rs", PROVIDER),
            ("crates/b/src/lib.rs", "// No provider.\n"),
            ("crates/b/src/other.rs", ""),
        ];
        all.extend(files.iter().map(|path| (*path, "")));
        problems_of(&[check], &all)
    }

    #[test]
    fn a_crate_with_the_files_of_the_table_is_in_order() {
        let none: [&str; 0] = [];
        let least = ["crates/a/src/launch.rs", "crates/a/tests/conformance.rs"];
        assert_eq!(problems(&least), none);
        let more = [
            "crates/a/src/session.rs",
            "crates/a/src/launch/session.rs",
            "crates/a/src/launch/locations.rs",
        ];
        assert_eq!(problems(&[&least[..], &more].concat()), none);
    }

    #[test]
    fn missing_files_are_found() {
        assert_eq!(
            problems(&["crates/a/src/start.rs", "crates/a/src/session.rs"]),
            [
                "crates/a/src/launch.rs: is missing: every provider has it (docs/architecture.md, \
                 provider anatomy)",
                "crates/a/src/launch/session.rs: is missing: it goes with src/session.rs \
                 (docs/architecture.md, provider anatomy)",
                "crates/a/tests/conformance.rs: is missing: every provider has it \
                 (docs/architecture.md, provider anatomy)",
            ]
        );
    }

    #[test]
    fn a_page_without_the_table_is_a_problem() {
        let files = [(PAGE, "# A\n"), ("crates/a/src/lib.rs", PROVIDER)];
        assert_eq!(
            problems_of(&[check], &files),
            ["docs/architecture.md: has no table under `## Provider anatomy`"]
        );
    }
}
