//! The recorded results, and the versions that the providers state.

use teamster_mock_model::Cli;

use super::followed::Followed;
use super::page;
use super::results::Results;
use crate::{acp, install, scenario};

/// Returns the scenarios that a version has not played, or not with the expected story. A name in its own schema that
/// the decoder lacks is none: it may never be printed.
fn gaps(cli: Cli, version: &str, results: &Results) -> Vec<String> {
    let Some(played) = results.0.get(cli.id()).and_then(|all| all.get(version)) else {
        return vec![format!("{cli} {version}: it has played nothing")];
    };
    let mut gaps = Vec::new();
    for scenario in scenario::read(&[]).unwrap() {
        let plays = if install::is_pinned(cli) {
            scenario.not_played(cli, version).is_none()
        } else {
            acp::is_for(cli.id(), &scenario)
        };
        if !plays {
            continue;
        }
        let row = played.scenarios.get(&scenario.name);
        let live = if install::is_pinned(cli) {
            scenario.cold_only(cli).is_none()
        } else {
            acp::is_turn_of_any(&scenario)
        };
        let cells = [
            ("cold", true, row.and_then(|row| row.cold.as_ref())),
            ("live", live, row.and_then(|row| row.live.as_ref())),
        ];
        for (way, wanted, cell) in cells {
            let name = &scenario.name;
            match cell {
                Some(cell) if !cell.differs.is_empty() => {
                    gaps.push(format!("{cli} {version}: {name} {way}: {:?}", cell.differs));
                }
                None if wanted => gaps.push(format!("{cli} {version}: {name} {way}: not played")),
                _ => {}
            }
        }
        let unknown = row.map(|row| &row.shapes.unknown);
        if let Some(unknown) = unknown.filter(|unknown| !unknown.is_empty()) {
            gaps.push(format!("{cli} {version}: unknown lines: {unknown:?}"));
        }
    }
    gaps
}

#[test]
fn supported_versions_play_all_scenarios_as_expected() {
    let results = Results::read().unwrap();
    let pinned = install::pinned().unwrap();
    let mut all = Vec::new();
    let mut checked = Vec::new();
    for followed in Followed::all().unwrap() {
        let Some((cli, info)) = followed.cli().zip(followed.info()) else {
            // Without a provider it states no versions.
            checked.push(followed.id().to_owned());
            continue;
        };
        let Some(oldest) = info.oldest_version else {
            continue;
        };
        checked.push(followed.id().to_owned());
        let Some(recorded) = results.0.get(cli.id()) else {
            // Only the pinned version was played, for the matrix, or that of the row.
            assert!(pinned.get(&cli).is_none_or(|it| it == oldest), "{cli}");
            continue;
        };
        let recorded = recorded.keys().map(String::as_str);
        let supported = recorded.filter(|version| !install::is_older(version, oldest));
        let mut versions: Vec<_> = supported.chain([oldest]).collect();
        versions.sort_unstable();
        versions.dedup();
        all.extend(versions.iter().flat_map(|it| gaps(cli, it, &results)));
    }
    for id in results.0.keys() {
        assert!(checked.contains(id), "{id} names no oldest version");
    }
    assert!(all.is_empty(), "{}", all.join("\n"));
}

#[test]
fn tested_versions_are_those_that_played_all_scenarios() {
    let results = Results::read().unwrap();
    for cli in Cli::ALL {
        let Some(info) = teamster::Providers::builtin()
            .get(cli.id())
            .map(|it| it.info())
        else {
            continue;
        };
        let Some(oldest) = info.oldest_version else {
            continue;
        };
        // An agent with a separate row has no other versions.
        let Some(recorded) = results.0.get(cli.id()) else {
            continue;
        };
        let mut played: Vec<_> = recorded
            .keys()
            .map(String::as_str)
            .filter(|version| !install::is_older(version, oldest))
            .filter(|version| gaps(cli, version, &results).is_empty())
            .collect();
        played.sort_by_key(|version| install::numbers(version));
        assert_eq!(info.tested_versions, played, "{cli}");
        assert_eq!(played.first(), Some(&oldest), "{cli}");
    }
}

#[test]
fn pages_name_the_oldest_version() {
    for cli in install::clis() {
        let info = teamster::Providers::builtin().get(cli.id()).unwrap().info();
        let Some(oldest) = info.oldest_version else {
            continue;
        };
        let page = crate::root().join(format!("docs/providers/{cli}.md"));
        let page = std::fs::read_to_string(page).unwrap();
        let wanted = format!("The oldest version that works as described here is {oldest}");
        assert!(page.contains(&wanted), "{cli}: {wanted}");
    }
}

#[test]
fn version_without_a_scenario_or_with_another_story_has_gaps() {
    let mut results = Results::read().unwrap();
    assert!(!gaps(Cli::Codex, "0.0.1", &results).is_empty());
    let codex = results.0.get_mut("codex").unwrap();
    let version = codex.get_mut("0.169.0").unwrap();
    version.scenarios.remove("text");
    let resume = version.scenarios.get_mut("resume").unwrap();
    resume.live.as_mut().unwrap().differs = vec!["a fact".to_owned()];
    let gaps = gaps(Cli::Codex, "0.169.0", &results);
    for gap in [
        "codex 0.169.0: text cold: not played",
        "codex 0.169.0: text live: not played",
        "codex 0.169.0: resume live: [\"a fact\"]",
    ] {
        assert!(gaps.iter().any(|found| found == gap), "{gap}: {gaps:?}");
    }
}

#[test]
fn the_page_is_that_of_the_recorded_results() {
    let page = std::fs::read_to_string(page::path()).unwrap();
    let hint = "write it with `cargo xtask follow --render`";
    assert!(
        page == page::of(&Results::read().unwrap()).unwrap(),
        "{hint}"
    );
}
