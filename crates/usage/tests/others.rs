//! Compares the accounts of files of real Copilot, Gemini and OpenCode with the usage that the model's service
//! reported.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use serde_json::Value;
use teamster_api::usage::Dimension;
use teamster_usage::Provider;

use crate::common::{Sum, counted, scan, scenarios, truth};

#[test]
fn gemini_matches_the_real_usage() {
    let scenarios = scenarios(Provider::Gemini);
    assert!(scenarios.len() >= 5, "{}", scenarios.len());
    for (folder, known) in scenarios {
        let accounts = scan(&folder.join("home"));
        assert_eq!(counted(&accounts), truth(&known), "{}", folder.display());
        let found = accounts.diagnostics();
        assert_eq!((found.malformed_lines, found.unreadable), (0, 0));
    }
}

#[test]
fn copilot_matches_the_real_usage_killed_or_not() {
    let scenarios = scenarios(Provider::Copilot);
    assert!(scenarios.len() >= 7, "{}", scenarios.len());
    for (folder, known) in scenarios {
        let accounts = scan(&folder.join("home"));
        assert_eq!(counted(&accounts), truth(&known), "{}", folder.display());
        let found = accounts.diagnostics();
        assert_eq!((found.malformed_lines, found.unreadable), (0, 0));
        let requests = known["requests"].as_array().unwrap().iter();
        let lost = requests
            .filter(|request| request["notOnDisk"] == true)
            .count();
        assert_eq!(
            found.sessions_without_figures,
            lost as u64,
            "{}",
            folder.display()
        );
    }
}

#[test]
fn sub_agents_are_distinguished_from_the_rest() {
    for (provider, scenario, count) in [
        (Provider::Copilot, "subagent", 2),
        (Provider::Gemini, "subagent", 3),
    ] {
        let all = scenarios(provider);
        let (folder, _) = all.iter().find(|(f, _)| f.ends_with(scenario)).unwrap();
        let total = scan(&folder.join("home")).total();
        assert_eq!(total.subagent_requests, count, "{provider}");
        assert!(total.requests > count);
    }
}

#[test]
fn all_sessions_worked_where_they_were_started() {
    for provider in [Provider::Copilot, Provider::Gemini] {
        for (folder, known) in in_lines(provider) {
            let agents = scan(&folder.join("home")).by(Dimension::Agent);
            let names: Vec<_> = agents.iter().map(|agent| agent.name.as_deref()).collect();
            let mut expected = vec![known["directory"].as_str()];
            expected.truncate(truth(&known).len());
            assert_eq!(names, expected, "{}", folder.display());
        }
    }
}

/// Returns the sum of each figure.
fn sums(counted: &BTreeMap<(String, String), Sum>) -> [u64; 6] {
    counted.values().fold([0; 6], |sums, (requests, usage)| {
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
    all.retain(|(folder, _)| !files(&folder.join("home")).is_empty());
    all
}

/// Returns the files of a home folder that have figures.
fn files(home: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in walkdir::WalkDir::new(home).into_iter().flatten() {
        if entry
            .path()
            .extension()
            .is_some_and(|extension| extension == "jsonl")
        {
            found.push(entry.into_path());
        }
    }
    found
}

#[test]
fn a_file_that_breaks_off_anywhere_never_counts_more() {
    for provider in [Provider::Copilot, Provider::Gemini] {
        for (folder, known) in in_lines(provider) {
            let home = folder.join("home");
            let all = sums(&truth(&known));
            for file in files(&home) {
                let copies = tempfile::tempdir().unwrap();
                let bytes = fs::read(&file).unwrap();
                let copy = copies.path().join(file.strip_prefix(&home).unwrap());
                fs::create_dir_all(copy.parent().unwrap()).unwrap();
                let mut before = [0; 6];
                for end in (0..bytes.len()).step_by(bytes.len() / 40 + 1) {
                    fs::write(&copy, &bytes[..end]).unwrap();
                    let accounts = scan(copies.path());
                    let now = sums(&counted(&accounts));
                    for (n, now) in now.into_iter().enumerate() {
                        assert!(before[n] <= now && now <= all[n], "{}", file.display());
                    }
                    assert_eq!(
                        accounts.diagnostics().malformed_lines,
                        0,
                        "only the last is cut"
                    );
                    before = now;
                }
            }
        }
    }
}

#[test]
fn lines_that_stand_there_twice_count_once() {
    for provider in [Provider::Copilot, Provider::Gemini] {
        for (folder, known) in in_lines(provider) {
            let home = folder.join("home");
            let copies = tempfile::tempdir().unwrap();
            for file in files(&home) {
                let text = fs::read_to_string(&file).unwrap();
                let twice: String = text
                    .lines()
                    .flat_map(|line| [line, "\n", line, "\n"])
                    .collect();
                let copy = copies.path().join(file.strip_prefix(&home).unwrap());
                fs::create_dir_all(copy.parent().unwrap()).unwrap();
                fs::write(&copy, twice).unwrap();
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
        for file in files(&home) {
            let copy = copies.path().join(file.strip_prefix(&home).unwrap());
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
        for provider in [Provider::Copilot, Provider::Gemini] {
            let all = in_lines(provider);
            let (folder, known) = &all[seed % all.len()];
            let home = folder.join("home");
            let file = files(&home).remove(0);
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
            let copy = copies.path().join(file.strip_prefix(&home).unwrap());
            fs::create_dir_all(copy.parent().unwrap()).unwrap();
            fs::write(&copy, changed).unwrap();
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
