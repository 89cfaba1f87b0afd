//! Files of provider crates, as in the table "Provider anatomy" of `docs/architecture.md`.

use super::{Problem, Tree};

/// Files that every provider has.
const REQUIRED: [&str; 6] = [
    "src/lib.rs",
    "src/launch.rs",
    "src/decoder.rs",
    "src/decoder/errors.rs",
    "src/decoder/end.rs",
    "tests/conformance.rs",
];

/// A file, and the file that goes with it.
const TOGETHER: (&str, &str) = ("src/session.rs", "src/launch/session.rs");

/// Finds missing files of each crate whose `lib.rs` implements `CliProvider`.
pub(super) fn check(tree: &Tree, problems: &mut Vec<Problem>) {
    let providers = tree
        .with("/src/lib.rs")
        .filter(|file| file.text.contains(" CliProvider for "))
        .filter_map(|file| file.path.strip_suffix("src/lib.rs"));
    for folder in providers {
        let has = |file: &str| tree.has(&format!("{folder}{file}"));
        let pair = has(TOGETHER.0).then_some(TOGETHER.1);
        for file in REQUIRED.into_iter().chain(pair).filter(|file| !has(file)) {
            problems.push(Problem {
                path: format!("{folder}{file}"),
                line: 0,
                message: "is missing: docs/architecture.md, provider anatomy".to_owned(),
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::problems_of;
    use super::*;

    #[test]
    fn missing_files_of_providers_are_found() {
        let problems = |files: &[&str]| {
            let mut all = vec![
                ("crates/a/src/lib.rs", "impl CliProvider for A {\n"),
                ("crates/b/src/lib.rs", "// No provider.\n"),
            ];
            all.extend(files.iter().map(|path| (*path, "")));
            problems_of(&[check], &all)
        };
        let least = [
            "crates/a/src/launch.rs",
            "crates/a/src/decoder.rs",
            "crates/a/src/decoder/errors.rs",
            "crates/a/src/decoder/end.rs",
            "crates/a/tests/conformance.rs",
        ];
        let none: [&str; 0] = [];
        assert_eq!(problems(&least), none);
        let session = [&least[1..], &["crates/a/src/session.rs"]].concat();
        let missing = ["launch.rs", "launch/session.rs"].map(|file| {
            format!("crates/a/src/{file}: is missing: docs/architecture.md, provider anatomy")
        });
        assert_eq!(problems(&session), missing);
    }
}
