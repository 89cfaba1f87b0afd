//! Words that are gone for good: the glossary and the field have better ones.

use super::{Problem, Tree};

/// The word, and what to write.
const GONE: &[(&str, &str)] = &[
    ("anew", "again, or \"starts over\""),
    ("anybody", "the caller, or the passive voice"),
    ("nobody", "the caller, or the passive voice"),
    (
        "somebody",
        "another process, the user, or the passive voice",
    ),
    ("told", "reported, sent or announced"),
    ("whoever", "the caller, the holder or the reader"),
];

/// What is still to be read: comments of Rust files, and whole pages, are checked everywhere else.
const UNREAD: &[&str] = &["crates/runner/"];

/// Pages that are made from what CLIs and scenarios say.
const GENERATED: &[&str] = &[
    "docs/acp-agents.md",
    "docs/conformance.md",
    "docs/versions.md",
];

pub(super) fn check(tree: &Tree, problems: &mut Vec<Problem>) {
    let files = [".rs", ".md"].into_iter().flat_map(|end| tree.with(end));
    for file in files {
        let unread = UNREAD.iter().any(|path| file.path.starts_with(path));
        if unread || GENERATED.contains(&&*file.path) {
            continue;
        }
        for (number, line) in file.lines() {
            let text = if file.is(".rs") {
                line.split_once("//").map_or("", |(_, comment)| comment)
            } else {
                line
            };
            for (word, better) in GONE.iter().filter(|(word, _)| has_word(text, word)) {
                let problem = format!("the word `{word}`: write {better}");
                problems.push(file.problem(number, problem));
            }
        }
    }
}

fn has_word(text: &str, word: &str) -> bool {
    let words = text.split(|c: char| !c.is_alphanumeric() && c != '_');
    words.into_iter().any(|it| it.eq_ignore_ascii_case(word))
}
