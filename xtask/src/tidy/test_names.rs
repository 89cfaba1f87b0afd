//! Names of tests: subject, condition, result, as in `retract_without_id_is_dropped`.

use super::{File, Problem, Tree};

/// Maximum number of characters of a name.
const LONGEST: usize = 60;

/// Beginnings of names that leave out the subject.
const WITHOUT_SUBJECT: &[&str] = &["it_", "one_", "nothing_", "who_", "what_"];

pub(super) fn check(tree: &Tree, problems: &mut Vec<Problem>) {
    for file in tree.with(".rs") {
        for (number, name) in tests_of(file) {
            if let Some(fault) = fault_of(name) {
                let message =
                    format!("the test {name} {fault}: name subject, condition and result");
                problems.push(file.problem(number, message));
            }
        }
    }
}

/// Returns what is wrong with the name of a test.
fn fault_of(name: &str) -> Option<String> {
    if name.len() > LONGEST {
        return Some(format!(
            "has {} characters, more than {LONGEST}",
            name.len()
        ));
    }
    let beginning = WITHOUT_SUBJECT
        .iter()
        .find(|word| name.starts_with(**word))?;
    Some(format!("begins with `{beginning}`"))
}

/// Returns the names of the functions with an attribute `#[test]`, or `#[tokio::test]`, and their lines.
fn tests_of(file: &File) -> impl Iterator<Item = (usize, &str)> {
    let mut is_test = false;
    file.lines().filter_map(move |(number, line)| {
        let line = line.trim_start();
        if let Some(attribute) = line.strip_prefix("#[") {
            let path = attribute.split(['(', ']']).next().unwrap_or_default();
            is_test |= path == "test" || path.ends_with("::test");
            return None;
        }
        let name = name_of_function(line)?;
        std::mem::take(&mut is_test).then_some((number, name))
    })
}

/// Returns the name of the function that begins in a line.
fn name_of_function(line: &str) -> Option<&str> {
    let (before, rest) = line.split_once("fn ")?;
    let is_plain = before
        .split_whitespace()
        .all(|word| matches!(word, "async" | "pub" | "const"));
    let (name, _) = rest.split_once(['(', '<'])?;
    is_plain.then_some(name)
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::tidy::tests::problems_of;

    #[test]
    fn long_names_and_names_without_a_subject_are_found() {
        let long = "a".repeat(61);
        let source = format!(
            "#[test]\nfn what_is_wrong() {{}}\n\n#[tokio::test(start_paused = true)]\n#[cfg(unix)]\nasync fn {long}() {{}}\n\n\
             fn one_helper() {{}}\n\n#[test]\nfn retract_without_id_is_dropped() {{}}\n"
        );
        assert_eq!(
            problems_of(&[check], &[("crates/a/src/tests.rs", &source)]),
            [
                "crates/a/src/tests.rs:2: the test what_is_wrong begins with `what_`: name subject, condition and result"
                    .to_owned(),
                format!(
                    "crates/a/src/tests.rs:6: the test {long} has 61 characters, more than 60: name subject, condition and result"
                ),
            ]
        );
    }
}
