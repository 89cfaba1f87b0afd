//! Environment variables against the tables "Variables" of `docs/operating.md`.

use super::{Problem, Tree};

/// The page with the tables.
const PAGE: &str = "docs/operating.md";
const HEADING: &str = "## Variables";
/// The beginning of each variable's name.
const PREFIX: &str = "TEAMSTER_";
/// Variables that only tests set.
const OF_TESTS: &str = "TEAMSTER_TEST_";

/// Looks for each variable whose name is a string in a crate's sources. Tests and the test kit are left out.
pub(super) fn check(tree: &Tree, problems: &mut Vec<Problem>) {
    let Some(page) = tree.files.iter().find(|file| file.path == PAGE) else {
        return;
    };
    let section = page.text.lines().skip_while(|line| *line != HEADING);
    let section = section.skip(1).take_while(|line| !line.starts_with("## "));
    let known: Vec<&str> = section.flat_map(in_code).collect();
    for file in tree.with(".rs") {
        let is_product = file.path.starts_with("crates/")
            && !["crates/fakes/", "crates/testkit/"]
                .iter()
                .any(|it| file.path.starts_with(it))
            && file.path.contains("/src/")
            && !file.path.contains("/tests/")
            && !file.path.ends_with("/tests.rs");
        if !is_product {
            continue;
        }
        for (number, line) in file.lines() {
            for name in strings(line) {
                let listed = known.iter().any(|known| match known.strip_suffix('…') {
                    Some(beginning) => name.starts_with(beginning),
                    None => *known == name,
                });
                if !listed && !name.starts_with(OF_TESTS) {
                    let message = format!("{name} is not in the tables of {PAGE}, Variables");
                    problems.push(file.problem(number, message));
                }
            }
        }
    }
}

/// Returns what stands in backquotes in a line.
fn in_code(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').skip(1).step_by(2)
}

/// Returns the strings of a line of code that are the name of a variable.
fn strings(line: &str) -> impl Iterator<Item = &str> {
    let is_name = |text: &&str| {
        text.starts_with(PREFIX) && text.bytes().all(|b| b.is_ascii_uppercase() || b == b'_')
    };
    line.split('"').skip(1).step_by(2).filter(is_name)
}

#[cfg(test)]
mod tests {
    use super::super::tests::problems_of;
    use super::*;

    #[test]
    fn a_variable_without_a_row_is_found() {
        let page = "# A\n\n`TEAMSTER_B`\n\n## Variables\n\n| `TEAMSTER_A`, `TEAMSTER_X_…` | a |\n\n\
                    ## Next\n\n`TEAMSTER_B`\n";
        let code = "const A: &str = \"TEAMSTER_A\";\nconst B: &str = \"TEAMSTER_B\";\n\
                    const T: &str = \"TEAMSTER_TEST_T\";\nconst X: &str = \"TEAMSTER_X_Y\";\n\
                    let text = \"TEAMSTER_B is unset\";\n";
        assert_eq!(
            problems_of(
                &[check],
                &[
                    (PAGE, page),
                    ("crates/a/src/lib.rs", code),
                    ("crates/a/src/lib/tests.rs", "\"TEAMSTER_C\""),
                    ("crates/testkit/src/lib.rs", "\"TEAMSTER_C\""),
                ]
            ),
            [
                "crates/a/src/lib.rs:2: TEAMSTER_B is not in the tables of docs/operating.md, Variables"
            ]
        );
    }
}
