//! Versions of the agents in `acp.toml`, each compared with the agent's row in `crates/conformance/acp`.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::Known;
use super::results::{Cell, Row, ShapeChanges};
use crate::acp::cause::{Cause, Finding};
use crate::acp::{self, AcpArgs, Ways, row};
use crate::bench::Bench;
use crate::capture::Recording;
use crate::scenario::Scenario;

/// What a version is compared with, beside the agent's row.
#[derive(Clone, Copy)]
pub(super) enum With<'a> {
    /// The fixtures of its provider; and where new ones are written, if they are.
    Fixtures(&'a Known, Option<&'a Recording<'a>>),
    /// Nothing: the agent has no provider. It plays the scenarios of its row.
    Row,
}

/// Plays the scenarios with the version that is installed here.
pub(super) fn play(
    bench: &Bench,
    reference: &row::Row,
    with: With<'_>,
    scenarios: &[Arc<Scenario>],
    jobs: usize,
) -> anyhow::Result<BTreeMap<String, Row>> {
    let name = reference.name();
    let (_, agent) = acp::agent(&AcpArgs::default(), name)?;
    let is_played = |scenario: &Scenario| match with {
        With::Fixtures(..) => acp::is_for(name, scenario),
        With::Row => [false, true]
            .iter()
            .any(|hot| reference.findings(&scenario.name, *hot).is_some()),
    };
    let scenarios: Vec<_> = scenarios
        .iter()
        .filter(|scenario| is_played(scenario))
        .cloned()
        .collect();
    let mut rows: BTreeMap<String, Row> = BTreeMap::new();
    let both = Ways {
        cold: true,
        hot: true,
    };
    acp::play_all(bench, agent, None, both, jobs, &scenarios, |one| {
        let name = &one.scenario.name;
        let cell = cell(&one.findings, reference.findings(name, one.hot));
        let way = if one.hot { "live" } else { "cold" };
        super::report(name, way, one.time, &cell);
        let row = rows.entry(name.clone()).or_default();
        let mut changes = ShapeChanges {
            unknown: super::unknown(&one.played),
            ..ShapeChanges::default()
        };
        if let With::Fixtures(known, recording) = with
            && !one.hot
        {
            changes.append(super::changes(&one.scenario, &one.played, known));
            if let Some(recording) = recording
                && cell.differs.is_empty()
                && !changes.new.is_empty()
            {
                super::write_fixtures(recording, &one.scenario, &one.played);
            }
        }
        row.shapes.append(changes);
        row.put(one.hot, cell);
    })?;
    Ok(rows)
}

/// Returns the cell of a scenario. What is in the agent's row is no difference of a version. Against teamster are what it
/// did not report and that the agent did not ask the model, or could not be played; everything else is by the version.
fn cell(findings: &[Finding], row: Option<&[Finding]>) -> Cell {
    let mut cell = Cell {
        differs: Vec::new(),
        otherwise: Vec::new(),
        declared: BTreeMap::new(),
    };
    let row = row.unwrap_or_default();
    for finding in findings {
        let same = |it: &&Finding| it.fact == finding.fact && it.actual == finding.actual;
        let is_known = row.iter().any(|it| same(&it) && it.cause == finding.cause);
        let not_played = finding.expected.is_none() && finding.fact == "status";
        match finding.cause {
            _ if is_known => {}
            Cause::Teamster | Cause::Setup => cell.differs.push(text(finding)),
            _ if not_played => cell.differs.push(text(finding)),
            _ => cell.otherwise.push(text(finding)),
        }
    }
    for was in row {
        if findings.iter().all(|now| now.fact != was.fact) {
            cell.otherwise.push(format!("{}: as expected", was.fact));
        }
    }
    cell
}

fn text(finding: &Finding) -> String {
    format!(
        "{}: expected {}, got {}: {}",
        finding.fact,
        row::shown(finding.expected.as_ref()),
        row::shown(finding.actual.as_ref()),
        finding.evidence
    )
}

#[cfg(test)]
mod tests {
    //! Made-up findings.

    use serde_json::json;

    use super::*;

    fn finding(fact: &str, actual: &str, cause: Cause) -> Finding {
        Finding {
            fact: fact.to_owned(),
            expected: Some(json!("x")),
            actual: Some(json!(actual)),
            cause,
            evidence: "seen".to_owned(),
        }
    }

    #[test]
    fn findings_of_the_row_are_no_differences_of_a_version() {
        let row = [
            finding("text", "a", Cause::Agent),
            finding("cost", "a", Cause::Agent),
            finding("plan", "a", Cause::Agent),
            finding("usage", "a", Cause::Teamster),
        ];
        let now = [
            finding("text", "a", Cause::Agent),
            finding("cost", "b", Cause::Agent),
            finding("error", "a", Cause::Teamster),
            finding("prompt", "a", Cause::Setup),
            finding("usage", "a", Cause::Teamster),
        ];
        let cell = cell(&now, Some(&row));
        assert_eq!(
            cell.otherwise,
            ["cost: expected \"x\", got \"b\": seen", "plan: as expected"]
        );
        assert_eq!(
            cell.differs,
            [
                "error: expected \"x\", got \"a\": seen",
                "prompt: expected \"x\", got \"a\": seen"
            ]
        );
    }

    #[test]
    fn an_unplayed_scenario_counts_unless_it_is_in_the_row() {
        let late = Finding::not_played(&anyhow::anyhow!("it was not over after 240 s"));
        let now = [late.clone()];
        assert!(cell(&now, Some(&[late])).differs.is_empty());
        assert_eq!(cell(&now, Some(&[])).differs.len(), 1);
        assert_eq!(cell(&now, None).differs.len(), 1);
    }
}
