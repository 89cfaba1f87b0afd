//! The accounts of what real Copilot, Gemini and OpenCode left, against what the model's service reported.
#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use teamster_usage::{Dimension, Provider};

use common::{counted, scan, scenarios, truth};

#[test]
fn gemini_comes_to_what_was_used() {
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
fn copilot_comes_to_what_was_used_killed_or_not() {
    let scenarios = scenarios(Provider::Copilot);
    assert!(scenarios.len() >= 7, "{}", scenarios.len());
    for (folder, known) in scenarios {
        let accounts = scan(&folder.join("home"));
        assert_eq!(counted(&accounts), truth(&known), "{}", folder.display());
        let found = accounts.diagnostics();
        assert_eq!((found.malformed_lines, found.unreadable), (0, 0));
        assert_eq!(found.sessions_without_figures, 0);
    }
}

#[test]
fn sub_agents_are_told_from_the_rest() {
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
        for (folder, known) in scenarios(provider) {
            let agents = scan(&folder.join("home")).by(Dimension::Agent);
            let names: Vec<_> = agents.iter().map(|agent| agent.name.as_deref()).collect();
            assert_eq!(names, [known["directory"].as_str()], "{}", folder.display());
        }
    }
}
