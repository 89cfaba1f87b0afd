//! The accounts of files that real CLIs left, against what the model's service reported.

#![allow(clippy::unwrap_used, reason = "tests")]
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use jiff::tz::TimeZone;
use serde_json::Value;
use teamster_core::Usage;
use teamster_usage::{Accounts, Dimension, Places, Provider, Scan};

/// Requests, tokens, and those written to the cache for an hour.
type Sum = (u64, Usage, Option<u64>);

fn data() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data")
}

/// The recorded scenarios of a CLI, each with its truth.
fn scenarios(provider: Provider) -> Vec<(PathBuf, Value)> {
    let mut found = Vec::new();
    for version in fs::read_dir(data().join(provider.id())).unwrap() {
        for scenario in fs::read_dir(version.unwrap().path()).unwrap() {
            let folder = scenario.unwrap().path();
            let Ok(truth) = fs::read(folder.join("truth.json")) else {
                continue;
            };
            found.push((folder, serde_json::from_slice(&truth).unwrap()));
        }
    }
    found.sort_by(|a, b| a.0.cmp(&b.0));
    found
}

fn scan(home: &Path) -> Accounts {
    Scan::new(Places::of_home(home)).zone(TimeZone::UTC).run()
}

/// What the accounts say, by session and model.
fn counted(accounts: &Accounts) -> BTreeMap<(String, String), Sum> {
    let mut sums = BTreeMap::<_, Sum>::new();
    accounts.each(&mut |record, _| {
        let model = record.model.as_deref().unwrap_or_default().to_owned();
        let sum = sums.entry((record.session.to_string(), model)).or_default();
        sum.0 += record.requests;
        sum.1 = sum.1.plus(record.usage);
        sum.2 = match (sum.2, record.cache_write_1h_tokens) {
            (Some(a), Some(b)) => Some(a + b),
            (one, None) | (None, one) => one,
        };
    });
    sums
}

/// What was used, by session and model.
fn truth(truth: &Value) -> BTreeMap<(String, String), Sum> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let total = truth["total"].as_array().unwrap().iter().map(|total| {
        let usage = serde_json::from_value(total["usage"].clone()).unwrap();
        let hour = total["cacheWrite1hTokens"].as_u64();
        (
            (text(&total["session"]), text(&total["model"])),
            (total["requests"].as_u64().unwrap(), usage, hour),
        )
    });
    total.collect()
}

#[test]
fn claude_comes_to_what_was_used() {
    let scenarios = scenarios(Provider::Claude);
    assert!(scenarios.len() >= 7, "{}", scenarios.len());
    for (folder, known) in scenarios {
        let accounts = scan(&folder.join("home"));
        assert_eq!(counted(&accounts), truth(&known), "{}", folder.display());
        let found = accounts.diagnostics();
        assert_eq!((found.malformed_lines, found.unreadable), (0, 0));
    }
}

/// Where a fork has another model, the model of before sums up its history first, and the file names the
/// new one.
const OTHER_MODEL: &str = "fork_other_model";

/// A version that does not tell what was written to the cache: it is input like any other.
const NO_CACHE_WRITES: &str = "0.144.6";

#[test]
fn codex_comes_to_what_was_used() {
    let scenarios = scenarios(Provider::Codex);
    assert!(scenarios.len() >= 10, "{}", scenarios.len());
    for (folder, known) in scenarios {
        let accounts = scan(&folder.join("home"));
        if folder.ends_with(OTHER_MODEL) {
            let usage = |sums: BTreeMap<_, Sum>| {
                let mut all = sums.into_values();
                all.by_ref()
                    .fold((0, Usage::default()), |(requests, usage), sum| {
                        (requests + sum.0, usage.plus(sum.1))
                    })
            };
            assert_eq!(usage(counted(&accounts)), usage(truth(&known)));
        } else {
            let mut expected = truth(&known);
            if known["version"] == NO_CACHE_WRITES {
                for (_, usage, _) in expected.values_mut() {
                    let written = usage.cache_write_tokens.take().unwrap();
                    usage.input_tokens = usage.input_tokens.map(|input| input + written);
                }
            }
            assert_eq!(counted(&accounts), expected, "{}", folder.display());
        }
        let found = accounts.diagnostics();
        assert_eq!((found.malformed_lines, found.unreadable), (0, 0));
    }
}

#[test]
fn all_sessions_worked_where_they_were_started() {
    for provider in [Provider::Claude, Provider::Codex] {
        for (folder, known) in scenarios(provider) {
            let agents = scan(&folder.join("home")).by(Dimension::Agent);
            let names: Vec<_> = agents.iter().map(|agent| agent.name.as_deref()).collect();
            assert_eq!(names, [known["directory"].as_str()], "{}", folder.display());
        }
    }
}

/// Claude's own costs come from a table of its own, one that it has in the program.
#[test]
fn estimates_are_what_claude_itself_reports() {
    let mut compared = 0;
    for (folder, known) in scenarios(Provider::Claude) {
        let name = folder.file_name().unwrap().to_str().unwrap();
        // Of a hot process each result has the sum so far, and a summary is not on the disk.
        if matches!(name, "clear" | "compact") {
            continue;
        }
        let results = known["results"].as_array().unwrap().iter();
        let reported: f64 = results
            .map(|result| result["costUsd"].as_f64().unwrap())
            .sum();
        let total = scan(&folder.join("home")).total();
        let estimated = total.estimated_cost_usd.unwrap();
        assert!(
            (estimated - reported).abs() < 1e-9,
            "{name}: {estimated} {reported}"
        );
        assert_eq!(
            (total.unpriced_requests, total.reported_cost_usd),
            (0, None)
        );
        compared += 1;
    }
    assert!(compared >= 5, "{compared}");
}
