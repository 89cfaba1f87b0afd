//! `cargo xtask conformance --acp`: a row of the matrix for any agent of the Agent Client Protocol.

pub(crate) mod cause;
mod check;
mod figures;
mod plain;
pub(crate) mod pointing;
pub(crate) mod row;
mod served;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::agent::{Agent, Candidate};
use crate::bench::Bench;
use crate::isolation::Network;
use crate::play;
use crate::played::{Played, Which};
use crate::scenario::{Permission, Scenario};
use crate::{hot, say, say_played, schedule, story};
use cause::{Cause, Finding};
use row::Row;
use served::Served;

/// Flags for an agent that is named by its command.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "Any ACP agent")]
pub(crate) struct AcpArgs {
    /// Give this agent its row: the command that starts it in ACP mode, as in `--acp "my-agent --acp"`.
    ///
    /// Every scenario that such an agent can take is played, as runs and as turns of a session. What differs
    /// is printed with its cause: teamster, the agent, or the protocol. Exit code 1 if teamster is the
    /// cause of anything. In `teamster acp PROVIDER` it is the provider that is compared: all its scenarios are
    /// played, and a difference that is declared for its runs is none. `gemini`, `opencode` and `copilot` are taken from the pinned CLIs; any other
    /// program must be on PATH. The name of an agent in crates/conformance/acp.toml stands for the provider
    /// of this name, or for its command there; it is installed with npm or pip.
    #[arg(long, value_name = "CMD", conflicts_with_all = ["providers", "times", "check", "merge", "again"])]
    pub(crate) acp: Option<String>,
    /// The wire protocol whose variables point the agent at the mock model [default: all of them]
    #[arg(long, requires = "acp", value_name = "WIRE")]
    wire: Option<pointing::WireName>,
    /// A variable for the agent; `{url}` stands for the mock model's address, without a path
    #[arg(long = "acp-env", requires = "acp", value_name = "NAME=VALUE", value_parser = pointing::assignment)]
    env: Vec<(String, String)>,
    /// A file for the agent's home folder, made of a local one, in which `{url}` is replaced
    #[arg(long = "acp-file", requires = "acp", value_name = "PATH=FILE", value_parser = pointing::assignment)]
    files: Vec<(String, String)>,
    /// The model that the agent is set to use
    #[arg(long = "acp-model", requires = "acp", value_name = "MODEL")]
    model: Option<String>,
    /// Keep the row as crates/conformance/acp/NAME.json, and write docs/acp-agents.md
    ///
    /// With --scenario, --cold or --hot the other cells of the row that is there are kept.
    #[arg(long, requires = "acp", value_name = "NAME")]
    save: Option<String>,
}

/// Returns the folder of the agent's program if that is pinned.
pub(crate) fn programs(command: &str) -> anyhow::Result<PathBuf> {
    if served::cli(command).is_some() {
        return Ok(crate::install::pinned_versions()?.programs);
    }
    if let Some(named) = pointing::Named::find(command)? {
        return named.install();
    }
    match pointing::known(command) {
        Some(_) => Ok(crate::install::pinned_versions()?.programs),
        None => Ok(PathBuf::from("/")),
    }
}

/// The ways of playing that were requested.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ways {
    pub(crate) cold: bool,
    pub(crate) hot: bool,
}

/// Options of the output and of concurrency.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Printing {
    /// Number of scenarios that are played at a time.
    pub(crate) jobs: usize,
    pub(crate) verbose: bool,
    /// True if the scenarios were named, so that all of them are played.
    pub(crate) named: bool,
}

/// Plays the scenarios that can be played and prints the result.
pub(crate) fn run(
    args: &AcpArgs,
    command: &str,
    bench: &Bench,
    ways: Ways,
    Printing {
        jobs,
        verbose,
        named,
    }: Printing,
    network: Network,
    scenarios: &[Arc<Scenario>],
) -> anyhow::Result<ExitCode> {
    let of_table = pointing::Named::find(command)?;
    let (name, agent) = agent(args, command)?;
    let command = command_of(of_table.as_ref(), command);
    let served = Served::by(command, &bench.programs)?;
    let is_played = |scenario: &Scenario| match &served {
        Some(served) => served.plays(scenario),
        None => is_for(&name, scenario),
    };
    let scenarios: Vec<_> = scenarios
        .iter()
        .filter(|scenario| named || is_played(scenario))
        .cloned()
        .collect();
    say(format_args!(
        "{} scenarios with `{command}`, {jobs} at a time, {}",
        scenarios.len(),
        network.describe()
    ));
    let begun = Instant::now();
    let is_part = named || !ways.cold || !ways.hot;
    let kept = match &args.save {
        Some(name) if is_part => Row::find(name)?,
        _ => None,
    };
    let mut row = kept.unwrap_or_else(|| Row::new(&name, command, network));
    let done = |one: One| {
        report(&one, verbose);
        row.add(one);
    };
    play_all(bench, agent, served.as_ref(), ways, jobs, &scenarios, done)?;
    row.print(begun.elapsed());
    if args.save.is_some() {
        row.save()?;
        row::write_page()?;
    }
    Ok(if row.count(Cause::Teamster) == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(1)
    })
}

/// Returns the agent of this command, and the name of its row.
pub(crate) fn agent(args: &AcpArgs, command: &str) -> anyhow::Result<(String, Agent)> {
    let named = pointing::Named::find(command)?;
    let command = command_of(named.as_ref(), command);
    let pointing = pointing::Spec::new(command, named.as_ref(), args)?;
    let of_table = named.as_ref().map(|it| it.name.clone());
    let name = (args.save.clone().or(of_table)).unwrap_or_else(|| pointing.name.clone());
    let candidate = Candidate::new(&name, command, move |url| pointing.point_at(url))?;
    Ok((name, Agent::Acp(candidate)))
}

/// Returns the command of an agent that may be named by the table.
fn command_of<'c>(named: Option<&'c pointing::Named>, command: &'c str) -> &'c str {
    let own = named.and_then(|it| it.command.as_deref());
    own.unwrap_or(command)
}

/// Features that only some CLIs have, but any agent may have by the protocol.
const BY_PROTOCOL: [&str; 6] = [
    "image",
    "image_out",
    "mcp",
    "mcp_server_broken",
    "mcp_tool_fails",
    "plan",
];

/// Returns whether an agent of this name can play a scenario: it needs no feature that only some CLIs have, or one that
/// the scenario names this agent for, and no parameter without a place in the protocol.
pub(crate) fn is_for(name: &str, scenario: &Scenario) -> bool {
    let test = &scenario.test;
    let takes = |run: &crate::scenario::Run| {
        run.output_schema.is_none() && run.permission != Permission::ReadOnly && !run.slash_commands
    };
    let only = test.only.as_ref();
    let is_known = only.is_none_or(|only| only.providers.contains_key(name))
        || BY_PROTOCOL.contains(&scenario.name.as_str());
    is_known && test.run.iter().all(takes)
}

/// Returns whether an unknown agent plays a scenario as turns of a session.
pub(crate) fn is_turn_of_any(scenario: &Scenario) -> bool {
    let mut cold_only = scenario.test.cold_only.iter();
    cold_only.all(|one| !one.providers.is_empty())
}

/// A scenario that was played in one of the two ways.
pub(crate) struct One {
    pub(crate) scenario: Arc<Scenario>,
    pub(crate) hot: bool,
    pub(crate) findings: Vec<Finding>,
    pub(crate) violations: BTreeMap<String, usize>,
    /// The agent's answer to `initialize`, if any.
    pub(crate) about: Option<Value>,
    /// Its runs or turns.
    pub(crate) played: Vec<Played>,
    pub(crate) time: Duration,
}

pub(crate) fn play_all(
    bench: &Bench,
    agent: Agent,
    served: Option<&Served>,
    ways: Ways,
    jobs: usize,
    scenarios: &[Arc<Scenario>],
    mut done: impl FnMut(One),
) -> anyhow::Result<()> {
    let mut plays = Vec::new();
    for scenario in scenarios {
        for hot in [false, true] {
            let wanted = if hot { ways.hot } else { ways.cold };
            let is_cold_only = !is_turn_of_any(scenario)
                || served.is_some_and(|served| !served.plays_hot(scenario));
            if !wanted || hot && is_cold_only {
                continue;
            }
            let (bench, scenario) = (bench.clone(), Arc::clone(scenario));
            plays.push((scenario.test.waits, async move {
                let played = if hot {
                    hot::play(&bench, agent, &scenario).await
                } else {
                    play::play(&bench, agent, &scenario).await
                };
                (scenario, hot, played)
            }));
        }
    }
    schedule::in_slots(jobs, plays, |(scenario, hot, played), time| {
        let by_protocol = hot || agent.runs_by_protocol();
        done(judge(scenario, served, hot, by_protocol, played, time));
    })
}

/// Compares the stories of a scenario's runs or turns. The turns around them count if they fail.
fn judge(
    scenario: Arc<Scenario>,
    served: Option<&Served>,
    hot: bool,
    by_protocol: bool,
    played: anyhow::Result<Vec<Played>>,
    time: Duration,
) -> One {
    let mut one = One {
        scenario,
        hot,
        findings: Vec::new(),
        violations: BTreeMap::new(),
        about: None,
        played: Vec::new(),
        time,
    };
    let played = match played {
        Ok(played) => played,
        Err(error) => {
            one.findings.push(Finding::not_played(&error));
            return one;
        }
    };
    let mut met: Vec<String> = Vec::new();
    let mut process = None;
    for played in &played {
        met.extend(played.printed.iter().cloned());
        if by_protocol {
            for (problem, count) in check::violations(&played.printed) {
                *one.violations.entry(problem).or_default() += count;
            }
        }
        let expected = match played.which {
            Which::Run(number) if hot => Ok(story::expected_hot(&one.scenario, number)),
            Which::Run(number) => Ok(story::expected(&one.scenario, number)),
            Which::Ready => hot::ready().map(|ready| story::expected(&ready, 0)),
            Which::Again => hot::again(process).map(|again| story::expected(&again, 0)),
        };
        process = played.process;
        match expected {
            Ok(expected) => {
                let actual = story::actual(played, &expected);
                let declared = |fact: &str, expected: Option<&Value>, actual: Option<&Value>| {
                    served.is_some_and(|served| {
                        served.differs_so(hot, &one.scenario.name, fact, expected, actual)
                    })
                };
                let found =
                    cause::findings(&expected, &actual, played, &met, by_protocol, declared);
                for mut finding in found {
                    if served.is_some() && finding.cause == Cause::Agent {
                        finding.cause = Cause::Server;
                    }
                    let known = |it: &Finding| it.fact == finding.fact && it.cause == finding.cause;
                    if !one.findings.iter().any(known) {
                        one.findings.push(finding);
                    }
                }
            }
            Err(error) => one.findings.push(Finding::not_played(&error)),
        }
    }
    one.about = about(&met);
    one.played = played;
    one
}

/// Returns the answer to `initialize` in these lines.
fn about(lines: &[String]) -> Option<Value> {
    lines.iter().find_map(|line| {
        let mut message: Value = serde_json::from_str(line).ok()?;
        let result = message["result"].take();
        (!result["protocolVersion"].is_null()).then_some(result)
    })
}

fn report(one: &One, verbose: bool) {
    let way = if one.hot { "hot" } else { "cold" };
    let summary = row::summary(&one.findings);
    say_played(&one.scenario.name, way, one.time, &summary);
    for finding in &one.findings {
        say(format_args!(
            "    {:<10} {}: expected {}, got {}",
            finding.cause,
            finding.fact,
            row::shown(finding.expected.as_ref()),
            row::shown(finding.actual.as_ref()),
        ));
        say(format_args!("               {}", finding.evidence));
    }
    if verbose {
        for (problem, count) in &one.violations {
            say(format_args!(
                "    {count} times against the protocol: {problem}"
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn any_agent_can_play_scenarios_without_special_features() {
        let all = crate::scenario::read(&[]).unwrap();
        let taken = |name: &str| {
            let found = all.iter().find(|scenario| scenario.name == name);
            is_for("my-agent", found.unwrap())
        };
        let sub_agent = all.iter().find(|scenario| scenario.name == "sub_agent");
        assert!(is_for("kimi", sub_agent.unwrap()));
        for name in ["text", "mcp", "resume", "unauthorized", "image"] {
            assert!(taken(name), "{name}");
        }
        for name in [
            "structured_output",
            "read_only",
            "hook_ends_run",
            "slash_command",
            "sub_agent",
        ] {
            assert!(!taken(name), "{name}");
        }
    }
}
