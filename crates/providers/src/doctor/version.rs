//! The version in the output of a CLI.

use teamster_core::CliInfo;
use teamster_core::text::one_line;

/// Programs whose versions the shims of version managers print.
const RUNTIMES: [&str; 8] = [
    "node", "node.js", "npm", "npx", "bun", "deno", "python", "mise",
];

/// Words in lines about another version of the CLI, in lower case.
const OF_ANOTHER: [&str; 5] = ["update", "upgrade", "latest", "new version", "available"];

/// Returns the version of this CLI in an output such as `2.1.197 (Claude Code)` or `codex-cli 0.142.5`: that in the
/// line with the CLI's name, or else the first one that is alone in its line, or else the last one in the output that is
/// not of a runtime such as Node.js or in a line about an update, or else the one that such words follow. What follows
/// them is never it.
pub(super) fn version_in(answer: &str, info: &CliInfo) -> Option<String> {
    let names = [info.name, info.program].map(str::to_ascii_lowercase);
    let (mut own, mut last, mut of_runtime, mut of_another) = (None, None, None, None);
    for line in answer.lines() {
        let line = one_line(line);
        let lower = line.to_ascii_lowercase();
        let named = names.iter().filter(|name| !name.is_empty());
        let named: Vec<usize> = named.filter_map(|name| lower.find(&**name)).collect();
        let is_about_another = |text: &str| OF_ANOTHER.iter().any(|word| text.contains(word));
        let is_of_another = is_about_another(&lower);
        let (mut at, mut before) = (0, "");
        let mut nearest = None;
        for word in line.split(' ') {
            let trimmed = word.trim_start_matches('(').trim_start_matches('v');
            let trimmed = trimmed.trim_end_matches([',', '.', ')']);
            let runtime = before.trim_start_matches('(').to_ascii_lowercase();
            if is_version(trimmed) {
                if is_of_another {
                    if of_another.is_none() && !is_about_another(&lower[..at]) {
                        of_another = Some(trimmed.to_owned());
                    }
                } else if RUNTIMES.contains(&&*runtime) {
                    of_runtime = Some(trimmed.to_owned());
                } else {
                    last = Some(trimmed.to_owned());
                    let distance = named.iter().map(|name| name.abs_diff(at)).min();
                    if let Some(distance) = distance
                        && nearest.as_ref().is_none_or(|(other, _)| distance < *other)
                    {
                        nearest = Some((distance, trimmed.to_owned()));
                    }
                }
            }
            (at, before) = (at + word.len() + 1, word);
        }
        own = nearest.map(|(_, version)| version).or(own);
    }
    let alone = answer
        .lines()
        .map(|line| line.trim().trim_start_matches('v'))
        .find(|line| is_version(line))
        .map(str::to_owned);
    own.or(alone).or(last).or(of_another).or(of_runtime)
}

/// Returns whether a word is a version: numbers separated by dots, with an optional suffix after `-` or `+`.
pub(super) fn is_version(word: &str) -> bool {
    let (numbers, rest) = word.split_at(word.find(['-', '+']).unwrap_or(word.len()));
    let number = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    let plain = |c: char| c.is_ascii_alphanumeric() || "-+.".contains(c);
    numbers.contains('.') && numbers.split('.').all(number) && rest.chars().all(plain)
}
