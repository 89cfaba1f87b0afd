//! Tests that every command in README and docs parses, so that renamed and removed flags are found.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use crate::command_line::Cli;

/// Shell operators that end a command.
const OPERATORS: [char; 6] = ['|', '&', ';', '(', ')', '\n'];

/// A token of a shell script.
#[derive(Debug, PartialEq)]
enum Token {
    Word(String),
    End,
}

/// Splits a script into tokens, as far as the examples in the docs need it.
///
/// Handles quotes, comments, operators, redirections and continued lines. The lines of a here-document become
/// words.
fn tokens(script: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut word: Option<String> = None;
    let mut redirected = false;
    let mut chars = script.chars().peekable();
    let end = |word: &mut Option<String>, tokens: &mut Vec<Token>, redirected: &mut bool| {
        if let Some(word) = word.take()
            && !std::mem::take(redirected)
        {
            tokens.push(Token::Word(word));
        }
    };
    while let Some(c) = chars.next() {
        match c {
            '\'' | '"' => {
                let word = word.get_or_insert_default();
                word.extend(chars.by_ref().take_while(|it| *it != c));
            }
            '\\' if chars.next_if_eq(&'\n').is_some() => {}
            '\\' => word.get_or_insert_default().extend(chars.next()),
            '#' if word.is_none() => while chars.next_if(|it| *it != '\n').is_some() {},
            '>' | '<' => {
                // A number before the operator is a file descriptor.
                word = word.filter(|word| word.parse::<u8>().is_err());
                end(&mut word, &mut tokens, &mut redirected);
                while chars.next_if(|it| ['>', '<', '&'].contains(it)).is_some() {}
                redirected = true;
            }
            _ if OPERATORS.contains(&c) => {
                end(&mut word, &mut tokens, &mut redirected);
                tokens.push(Token::End);
            }
            ' ' => end(&mut word, &mut tokens, &mut redirected),
            _ => word.get_or_insert_default().push(c),
        }
    }
    end(&mut word, &mut tokens, &mut redirected);
    tokens
}

/// Returns the `teamster` commands of a script; the first word of each is `teamster`.
fn commands(script: &str) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    for command in tokens(script).split(|token| *token == Token::End) {
        let words: Vec<&str> = command
            .iter()
            .filter_map(|token| match token {
                Token::Word(word) => Some(word.as_str()),
                Token::End => None,
            })
            .collect();
        let is_assignment = |word: &&str| word.contains('=') && !word.starts_with('-');
        let begin = words.iter().take_while(|word| is_assignment(word)).count();
        let words = &words[begin..];
        let words = match words {
            ["teamster", ..] => words,
            ["cargo", "run", "--bin", "teamster", "--", ..] => &words[4..],
            _ => continue,
        };
        // `mock-model SCRIPT -- teamster …` contains another command.
        if let Some(inner) = words.iter().skip(1).position(|word| *word == "teamster") {
            found.push(words[inner + 1..].iter().map(ToString::to_string).collect());
        }
        found.push(words.iter().map(ToString::to_string).collect());
    }
    found
}

/// Returns the `sh` code blocks of a page, each with its first line number.
fn scripts(page: &str) -> Vec<(usize, String)> {
    let mut scripts = Vec::new();
    let mut open: Option<(usize, String)> = None;
    for (number, line) in page.lines().enumerate() {
        match (&mut open, line) {
            (None, "```sh") => open = Some((number + 2, String::new())),
            (Some(_), "```") => scripts.extend(open.take()),
            (Some((_, script)), line) => {
                script.push_str(line);
                script.push('\n');
            }
            (None, _) => {}
        }
    }
    scripts
}

fn pages() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut pages = vec![root.join("README.md"), root.join("CONTRIBUTING.md")];
    pages.push(root.join("crates/cli/README.md"));
    for folder in ["docs", "docs/dev", "docs/providers"] {
        for entry in fs::read_dir(root.join(folder)).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|it| it == "md") {
                pages.push(path);
            }
        }
    }
    pages
}

#[test]
fn every_command_in_the_docs_parses() {
    let (mut seen, mut wrong) = (0, Vec::new());
    for path in pages() {
        for (line, script) in scripts(&fs::read_to_string(&path).unwrap()) {
            for words in commands(&script) {
                seen += 1;
                let parsed = Cli::read(words.iter().map(OsString::from));
                if let Err(error) = parsed
                    && error.use_stderr()
                {
                    let page = path.file_name().unwrap().to_string_lossy().into_owned();
                    wrong.push(format!("{page}:{line}: {}\n{error}", words.join(" ")));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(seen > 100, "only {seen} commands were found");
}

#[test]
fn commands_are_found_behind_pipes_variables_and_comments() {
    let script = "id=$(teamster run -d agent 'a b' \\\n  --json) # teamster no\n\
                  X=1 teamster usage 2>&1 > f | jq .\nteamster mock-model s -- teamster demo\n";
    let expected: [&[&str]; 4] = [
        &["teamster", "run", "-d", "agent", "a b", "--json"],
        &["teamster", "usage"],
        &["teamster", "demo"],
        &["teamster", "mock-model", "s", "--", "teamster", "demo"],
    ];
    assert_eq!(commands(script), expected);
}
