//! `teamster --fleet doctor`: the agents of the fleet's machines.

use std::io::{self, Write};

use anstyle::{AnsiColor, Style};
use serde::Serialize;
use teamster_api::ProviderFacts;
use teamster_fleet::NOT_ALLOWED;

use super::plain;
use crate::remote::Machine;
use crate::report::note;
use crate::runtime::tokio_runtime;
use crate::table::Table;
use crate::{exit_code, words};

/// The report, also the output of `--json`.
#[derive(Debug, Serialize)]
struct Report {
    providers: Vec<MachineAgent>,
}

#[derive(Debug, Serialize)]
struct MachineAgent {
    machine: String,
    #[serde(flatten)]
    facts: ProviderFacts,
}

/// Prints what the workers report about their agents and returns the exit code.
pub(super) fn main(is_json: bool, fleet: &Machine) -> anyhow::Result<u8> {
    let reports = tokio_runtime()?.block_on(fleet.agents().agents())?;
    let agents = reports.into_iter().map(|report| MachineAgent {
        machine: words::one_line(&report.machine.unwrap_or_default()),
        facts: plain(report.facts),
    });
    let report = Report {
        providers: agents.collect(),
    };
    if report.providers.is_empty() && !is_json {
        note("no worker is there: start `teamster worker` on a machine");
        return Ok(exit_code::CLI_NOT_FOUND);
    }
    let printed = if is_json {
        exit_code::of_json(&report)
    } else {
        exit_code::of_printed(print(&report.providers, &mut anstream::stdout()))
    };
    let is_ready = report.providers.iter().any(|agent| agent.facts.usable);
    exit_code::of_findings(printed, (!is_ready).then_some(exit_code::CLI_NOT_FOUND))
}

fn print(agents: &[MachineAgent], out: &mut impl Write) -> io::Result<()> {
    let mut table = Table::new(["WORKER", "AGENT", "VERSION", "STATE"]);
    for MachineAgent { machine, facts } in agents {
        let color = if facts.usable {
            AnsiColor::Green
        } else {
            AnsiColor::Red
        };
        table.row([
            (machine.clone(), Style::new()),
            (facts.id.clone(), Style::new()),
            (facts.version.clone().unwrap_or_default(), Style::new()),
            (state(facts), color.on_default()),
        ]);
    }
    table.write(out)?;
    let ready = agents.iter().filter(|agent| agent.facts.usable).count();
    writeln!(out, "\n{ready} of {} agents ready", agents.len())
}

/// Returns whether the agent is ready, or else what to do on its machine.
fn state(facts: &ProviderFacts) -> String {
    let problem = facts.problem.as_deref().unwrap_or("cannot be used");
    // Nothing that is done on its machine but another policy makes it ready.
    if problem == NOT_ALLOWED {
        return problem.to_owned();
    }
    let next = if facts.login.state == "no" {
        &facts.how_to_log_in
    } else {
        &facts.install
    };
    match (facts.usable, next.is_empty()) {
        (true, _) => "ready".to_owned(),
        (false, true) => problem.to_owned(),
        (false, false) => format!("{problem}: {next}"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_agent_is_shown_with_what_makes_it_ready() {
        let shown = |problem: &str, login: &str| {
            let facts = json!({
                "id": "claude", "name": "Claude Code", "usable": false, "inProcess": false, "tested": true,
                "testedVersions": [], "tooOld": false, "problem": problem, "install": "npm install it",
                "login": {"state": login}, "howToLogIn": "log in with it",
            });
            state(&serde_json::from_value(facts).unwrap())
        };
        // Before, it was to be installed.
        assert_eq!(shown(NOT_ALLOWED, "unknown"), "is not allowed");
        let logged_out = shown("is not logged in", "no");
        assert_eq!(logged_out, "is not logged in: log in with it");
        let missing = shown("is not installed, or cannot be used", "unknown");
        assert_eq!(
            missing,
            "is not installed, or cannot be used: npm install it"
        );
    }
}
