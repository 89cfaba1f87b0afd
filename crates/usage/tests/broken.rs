//! Accounts of real files that broke off, were copied or have other figures.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use serde_json::Value;
use teamster_usage::Provider;

use crate::common::{Sum, counted, scan, scenarios, truth};

/// The providers whose newest files have a line for each request or sum.
const IN_LINES: [Provider; 2] = [Provider::Copilot, Provider::Gemini];

/// Returns the sum of each figure.
fn sums(counted: &BTreeMap<(String, String), Sum>) -> [u64; 6] {
    counted.values().fold([0; 6], |sums, (requests, usage, _)| {
        let figures = [
            Some(*requests),
            usage.input_tokens,
            usage.output_tokens,
            usage.cache_read_tokens,
            usage.cache_write_tokens,
            usage.reasoning_tokens,
        ];
        std::array::from_fn(|n| sums[n] + figures[n].unwrap_or(0))
    })
}

/// Returns the recorded scenarios of versions that write lines, with their real usage.
fn in_lines(provider: Provider) -> Vec<(PathBuf, Value)> {
    let mut all = scenarios(provider);
    all.retain(|(folder, _)| !lines(&folder.join("home")).is_empty());
    all
}

/// Returns the files of a home folder.
fn files(home: &Path) -> Vec<PathBuf> {
    let entries = walkdir::WalkDir::new(home).into_iter().flatten();
    let files = entries.filter(|entry| entry.file_type().is_file());
    files.map(walkdir::DirEntry::into_path).collect()
}

/// Returns the files of lines in a home folder.
fn lines(home: &Path) -> Vec<PathBuf> {
    let mut found = files(home);
    found.retain(|file| file.extension().is_some_and(|it| it == "jsonl"));
    found
}

/// Returns the place in another home folder for a copy of a file.
fn place(file: &Path, home: &Path, other: &Path) -> PathBuf {
    let copy = other.join(file.strip_prefix(home).unwrap());
    fs::create_dir_all(copy.parent().unwrap()).unwrap();
    copy
}

/// A file may be read while it is being written, or may have been truncated by a full disk.
#[test]
fn a_file_that_breaks_off_anywhere_never_counts_more() {
    for provider in [
        Provider::Cline,
        Provider::Copilot,
        Provider::Embedded,
        Provider::Gemini,
        Provider::Kimi,
        Provider::Pi,
        Provider::Qwen,
    ] {
        let is_in_lines = IN_LINES.contains(&provider);
        // Of the others, only the requests are compared.
        let figures = if is_in_lines { 6 } else { 1 };
        for (folder, known) in scenarios(provider) {
            let home = folder.join("home");
            let all = sums(&truth(&known));
            let files = if is_in_lines {
                lines(&home)
            } else {
                files(&home)
            };
            for file in files {
                let copies = tempfile::tempdir().unwrap();
                let bytes = fs::read(&file).unwrap();
                let copy = place(&file, &home, copies.path());
                let mut before = [0; 6];
                for end in (0..bytes.len()).step_by(bytes.len() / 24 + 1) {
                    fs::write(&copy, &bytes[..end]).unwrap();
                    let accounts = scan(copies.path());
                    let now = sums(&counted(&accounts));
                    for (n, now) in now.into_iter().enumerate().take(figures) {
                        assert!(before[n] <= now && now <= all[n], "{}", file.display());
                    }
                    // A truncated file that is a single JSON value cannot be parsed. Of lines, only the last is cut.
                    if provider != Provider::Cline {
                        assert_eq!(accounts.diagnostics().malformed_lines, 0, "{provider}");
                    }
                    before = now;
                }
            }
        }
    }
}

#[test]
fn lines_that_stand_there_twice_count_once() {
    for provider in IN_LINES {
        for (folder, known) in in_lines(provider) {
            let home = folder.join("home");
            let copies = tempfile::tempdir().unwrap();
            for file in lines(&home) {
                let text = fs::read_to_string(&file).unwrap();
                let twice: String = text
                    .lines()
                    .flat_map(|line| [line, "\n", line, "\n"])
                    .collect();
                fs::write(place(&file, &home, copies.path()), twice).unwrap();
            }
            let accounts = scan(copies.path());
            assert_eq!(counted(&accounts), truth(&known), "{}", folder.display());
        }
    }
}

#[test]
fn a_session_that_was_copied_counts_once() {
    for (folder, known) in in_lines(Provider::Copilot) {
        let home = folder.join("home");
        let copies = tempfile::tempdir().unwrap();
        for file in lines(&home) {
            let copy = place(&file, &home, copies.path());
            let session = copy.parent().unwrap();
            for folder in [session, &session.with_extension("backup")] {
                fs::create_dir_all(folder).unwrap();
                fs::copy(&file, folder.join("events.jsonl")).unwrap();
            }
        }
        let accounts = scan(copies.path());
        assert_eq!(counted(&accounts), truth(&known), "{}", folder.display());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Tests arbitrary values in place of figures: no panic, and no additional requests.
    #[test]
    fn invalid_figures_break_nothing(
        seed in 0_usize..1000,
        with in prop_oneof![
            Just("-1".to_owned()), Just("1e300".to_owned()), Just("null".to_owned()),
            Just("18446744073709551615".to_owned()), Just("\"x\"".to_owned()),
            Just("{}".to_owned()), Just("[[[[".to_owned()), ".{0,8}",
        ],
    ) {
        for provider in IN_LINES {
            let all = in_lines(provider);
            let (folder, known) = &all[seed % all.len()];
            let home = folder.join("home");
            let file = lines(&home).remove(0);
            let text = fs::read_to_string(&file).unwrap();
            // A number after a colon, at any position.
            let numbers: Vec<_> = text
                .match_indices(':')
                // A sum has its own number of requests.
                .filter(|(place, _)| !text[..*place].ends_with("\"count\""))
                .map(|(place, _)| place + 1)
                .filter(|place| text[*place..].starts_with(|c: char| c.is_ascii_digit()))
                .collect();
            let start = numbers[(seed * 7919) % numbers.len()];
            let rest = text[start..].trim_start_matches(|c: char| c.is_ascii_digit());
            let changed = format!("{}{with}{rest}", &text[..start]);
            let copies = tempfile::tempdir().unwrap();
            fs::write(place(&file, &home, copies.path()), changed).unwrap();
            let requests = scan(copies.path()).total().requests;
            if with.trim_start().starts_with(|c: char| c.is_ascii_digit()) {
                // The replacement is a figure.
                continue;
            }
            let expected: u64 = truth(known).values().map(|sum| sum.0).sum();
            // A line may be skipped, and then a sum at the end of a Copilot session reports its usage.
            prop_assert!(requests <= expected, "{requests} of {expected}");
        }
    }
}
