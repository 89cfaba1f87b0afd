//! Banned words. The glossary and the field have better ones.

use super::{Problem, Tree};

/// Words and their replacements. Comments of Rust files and complete pages are checked.
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
    ("asked for", "requested"),
    ("goes on", "continues, runs, resumes or \"during\""),
    ("said", "reported, printed, written or sent"),
    ("says", "reports, prints, names, has or requires"),
    ("the one before", "the previous one"),
    ("void", "withdrawn or discarded"),
    ("whatever", "any, or the set by its name"),
];

/// Pages that are generated from scenarios and the output of CLIs.
const GENERATED: &[&str] = &[
    "docs/acp-agents.md",
    "docs/conformance.md",
    "docs/versions.md",
];

pub(super) fn check(tree: &Tree, problems: &mut Vec<Problem>) {
    let files = [".rs", ".md"].into_iter().flat_map(|end| tree.with(end));
    for file in files {
        if GENERATED.contains(&&*file.path) {
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

/// Returns whether a text contains this word, or these consecutive words.
fn has_word(text: &str, word: &str) -> bool {
    let is_edge = |c: Option<char>| c.is_none_or(|c| !c.is_alphanumeric() && c != '_');
    let text = text.to_ascii_lowercase();
    text.match_indices(word).any(|(at, found)| {
        is_edge(text[..at].chars().next_back()) && is_edge(text[at + found.len()..].chars().next())
    })
}

#[cfg(test)]
mod tests {
    use super::has_word;

    #[test]
    fn words_and_phrases_are_found_as_such() {
        assert!(has_word("The CLI says.", "says"));
        assert!(has_word("Says it", "says"));
        assert!(has_word("what was asked for", "asked for"));
        assert!(!has_word("essays", "says"));
        assert!(!has_word("asked forms", "asked for"));
        assert!(!has_word("to_void", "void"));
    }
}
