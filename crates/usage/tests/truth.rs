//! Compares the accounts of files of real CLIs with the usage that the model's service reported.

use std::collections::BTreeMap;
use std::fs;

use teamster_api::usage::Dimension;
use teamster_core::Usage;
use teamster_usage::{Locations, Provider};

use crate::common::{Sum, counted, data, scan, scenarios, truth};

/// The providers whose files have the names and figures of the service, and the least number of their scenarios.
const SAME: [(Provider, usize); 8] = [
    (Provider::Claude, 22),
    (Provider::Cline, 4),
    (Provider::Copilot, 7),
    (Provider::Embedded, 4),
    (Provider::Gemini, 5),
    (Provider::Kimi, 4),
    (Provider::Pi, 4),
    (Provider::Qwen, 4),
];

#[test]
fn each_matches_the_real_usage() {
    for (provider, least) in SAME {
        let scenarios = scenarios(provider);
        assert!(scenarios.len() >= least, "{provider}: {}", scenarios.len());
        for (folder, known) in scenarios {
            let accounts = scan(&folder.join("home"));
            assert_eq!(counted(&accounts), truth(&known), "{}", folder.display());
            let found = accounts.diagnostics();
            assert_eq!((found.malformed_lines, found.unreadable), (0, 0));
            // A killed Copilot leaves no figures, but a trace of its process.
            if provider == Provider::Copilot {
                let requests = known["requests"].as_array().unwrap().iter();
                let lost = requests
                    .filter(|request| request["notOnDisk"] == true)
                    .count();
                let without = found.sessions_without_figures;
                assert_eq!(without, lost as u64, "{}", folder.display());
            }
        }
    }
}

/// Scenario of a fork with another model. The previous model summarizes the history first, and the file names the new
/// model.
const OTHER_MODEL: &str = "fork_other_model";

/// A version that does not report cache writes, which count as input.
const NO_CACHE_WRITES: &str = "0.144.6";

#[test]
fn codex_matches_the_real_usage() {
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
fn requests_of_sub_agents_are_distinguished_from_the_rest() {
    for provider in [
        Provider::Cline,
        Provider::Embedded,
        Provider::Kimi,
        Provider::Pi,
        Provider::Qwen,
    ] {
        for (folder, known) in scenarios(provider) {
            let all = known["requests"].as_array().unwrap().iter();
            let of_subagents = all.filter(|request| request["subagent"] == true).count();
            let total = scan(&folder.join("home")).total();
            let name = folder.display();
            assert_eq!(total.subagent_requests, of_subagents as u64, "{name}");
        }
    }
    // What the services reported of these does not tell.
    for (provider, count) in [(Provider::Copilot, 2), (Provider::Gemini, 3)] {
        let all = scenarios(provider);
        let (folder, _) = all.iter().find(|(f, _)| f.ends_with("subagent")).unwrap();
        let total = scan(&folder.join("home")).total();
        assert_eq!(total.subagent_requests, count, "{provider}");
        assert!(total.requests > count);
    }
}

#[test]
fn each_session_worked_where_it_was_started() {
    let providers = SAME.map(|(provider, _)| provider);
    for provider in providers.into_iter().chain([Provider::Codex]) {
        for (folder, known) in scenarios(provider) {
            // The first files of Gemini have no directory.
            if folder.components().any(|part| part.as_os_str() == "0.20.0") {
                continue;
            }
            let agents = scan(&folder.join("home")).by(Dimension::Agent);
            let names: Vec<_> = agents.iter().map(|agent| agent.name.as_deref()).collect();
            let mut expected = vec![known["directory"].as_str()];
            expected.truncate(truth(&known).len());
            assert_eq!(names, expected, "{}", folder.display());
        }
    }
}

/// Tests the sums that newer versions write at the end of a process. Each counts once, over resumes and forks.
#[test]
fn claude_reports_the_cost_of_its_sessions() {
    let mut compared = 0;
    for (folder, known) in scenarios(Provider::Claude) {
        let Some(cost) = known["costUsd"].as_f64() else {
            continue;
        };
        let accounts = scan(&folder.join("home"));
        let total = accounts.total();
        let reported = total.reported_cost_usd.unwrap();
        let name = folder.display();
        assert!((reported - cost).abs() < 1e-9, "{name}: {reported} {cost}");
        // The usage of a killed process is estimated.
        let killed = if folder.ends_with("killed") {
            0.002_779_5
        } else {
            0.0
        };
        let spent = total.spent_usd.unwrap();
        assert!((spent - cost - killed).abs() < 1e-9, "{name}: {spent}");
        let estimated = total.estimated_cost_usd.unwrap();
        assert!(
            (estimated - spent).abs() < 1e-9,
            "{name}: {estimated} {spent}"
        );
        compared += 1;
    }
    assert!(compared >= 15, "{compared}");
}

/// Tests a fork of a session whose file is missing. The fork's own part of the sum is unknown.
#[test]
fn a_forks_sum_does_not_count_without_its_parents() {
    let home = data().join("claude/2.1.330/fork/home");
    let copy = tempfile::tempdir().unwrap();
    let projects = ".claude/projects/-tmp-box-ws";
    fs::create_dir_all(copy.path().join(projects)).unwrap();
    let fork = "7a6b9c2c-745c-4632-bd61-c66208c09cad.jsonl";
    fs::copy(
        home.join(projects).join(fork),
        copy.path().join(projects).join(fork),
    )
    .unwrap();
    let total = scan(copy.path()).total();
    // The fork's own two requests, and two copied ones.
    assert_eq!(total.requests, 4);
    assert_eq!(total.usage.input_tokens, Some(4 + 7 + 8 + 9));
    assert_eq!(total.reported_cost_usd, None);
}

/// Tests copies of a session's file, including one in its state after the first process.
#[test]
fn copies_of_a_file_with_sums_change_nothing() {
    for scenario in ["resume_compact", "fork", "killed"] {
        let home = data().join("claude/2.1.330").join(scenario).join("home");
        let copy = tempfile::tempdir().unwrap();
        let mut number = 0;
        for entry in walkdir::WalkDir::new(&home) {
            let entry = entry.unwrap();
            let to = copy.path().join(entry.path().strip_prefix(&home).unwrap());
            if entry.file_type().is_dir() {
                fs::create_dir_all(to).unwrap();
                continue;
            }
            fs::copy(entry.path(), &to).unwrap();
            if to.parent().unwrap().ends_with("-tmp-box-ws") {
                number += 1;
                let text = fs::read_to_string(&to).unwrap();
                let end = text.find("\"cost-state\"").unwrap();
                let end = end + text[end..].find('\n').unwrap() + 1;
                let other = copy
                    .path()
                    .join(".claude/projects")
                    .join(number.to_string());
                fs::create_dir_all(&other).unwrap();
                fs::write(other.join(to.file_name().unwrap()), &text[..end]).unwrap();
            }
        }
        let (one, twice) = (scan(&home), scan(copy.path()));
        assert_eq!(twice.by(Dimension::Session), one.by(Dimension::Session));
        assert_eq!(twice.total(), one.total(), "{scenario}");
    }
}

/// Tests that priority costs more, and that the service's limits are read from the file.
#[test]
fn codex_with_priority_costs_more_and_reports_its_limits() {
    let home = data().join("codex/0.169.0/priority/home");
    let total = scan(&home).total();
    // 1,200 tokens of input at $12.50 and 40 of output at $75 per million.
    let estimated = total.estimated_cost_usd.unwrap();
    assert!((estimated - 0.018).abs() < 1e-12, "{estimated}");
    let limits = teamster_usage::limits(&Locations::of_home(&home));
    let of: Vec<_> = limits
        .iter()
        .map(|limit| (limit.window_minutes, limit.used_percent, limit.resets_at))
        .collect();
    let at = |second| std::time::UNIX_EPOCH.checked_add(std::time::Duration::from_secs(second));
    assert_eq!(
        of,
        [
            (Some(300), 42.5, at(1_795_420_000)),
            (Some(10_080), 7.0, at(1_795_900_000))
        ]
    );
}

/// Tests estimates against Claude's own costs, which come from a table in the program.
#[test]
fn estimates_match_claudes_own_reports() {
    let mut compared = 0;
    for (folder, known) in scenarios(Provider::Claude) {
        let name = folder.file_name().unwrap().to_str().unwrap();
        // In a live session each result has the sum so far, and a summary is not on disk. In newer versions the cost is
        // in the files.
        if matches!(name, "clear" | "compact") || known["costUsd"].is_number() {
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
