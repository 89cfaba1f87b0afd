//! `teamster agents status`.

use std::io::{self, Write};

use anstyle::{AnsiColor, Style};
use teamster_api::agents::{AgentList, AgentState, AgentStatus, LoopState};
use teamster_core::time::epoch_ms;

use super::args::AgentsStatusArgs;
use super::{Supervisor, commands};
use crate::report::note;
use crate::table::Table;
use crate::zone::local_time;
use crate::{exit_code, words};

/// Maximum length of a cell's text, in bytes.
const MAX_CELL: usize = 200;

pub(super) async fn main(args: &AgentsStatusArgs, supervisor: &Supervisor) -> anyhow::Result<u8> {
    let mut status = supervisor.status_with(&args.agents).await?;
    if let Some(problem) = supervisor.problem(&status) {
        note(&words::one_line(&problem.to_string()));
    }
    if !args.agents.is_empty() {
        (status.agents).retain(|agent| args.agents.contains(&agent.id));
    }
    let printed = if args.json {
        exit_code::of_json(&status)
    } else {
        if !status.enabled {
            note("all agents are switched off: `teamster agents start --all` turns them on");
        }
        if status.agents.is_empty() && args.agents.is_empty() {
            note("no agents; `teamster runs list` shows the runs of schedules and triggers");
        }
        commands::warn(&status);
        exit_code::of_printed(table(&status, epoch_ms(), &mut anstream::stdout()))
    };
    exit_code::of_findings(printed, Some(health(&status)))
}

/// Returns the exit code for monitoring: that of the worst enabled agent, or of a supervisor that does not answer.
fn health(status: &AgentList) -> u8 {
    let enabled = (status.agents.iter()).filter(|it| status.enabled && it.enabled && !it.removed);
    let states: Vec<AgentState> = enabled.map(|agent| agent.state).collect();
    let is_hanging = (status.supervisor.as_ref()).is_some_and(|it| it.not_answering);
    if is_hanging || states.iter().any(|state| state.is_bad()) {
        exit_code::AGENT_ERROR
    } else if states.contains(&AgentState::Limited) {
        exit_code::AGENTS_LIMITED
    } else {
        exit_code::SUCCESS
    }
}

fn table(status: &AgentList, now_ms: u64, out: &mut impl Write) -> io::Result<()> {
    const HEAD: [&str; 8] = [
        "AGENT",
        "ALIAS",
        "STATE",
        "PID",
        "SINCE",
        "RESTARTS",
        "DETAIL",
        "LAST ERROR",
    ];
    if status.agents.is_empty() {
        return Ok(());
    }
    let mut table = Table::new(HEAD).without_empty();
    for agent in &status.agents {
        let mut styles = [Style::new(); 8];
        styles[2] = style(agent.state);
        styles[6] = Style::new().dimmed();
        table.row(row(agent, status.enabled, now_ms).into_iter().zip(styles));
    }
    table.write(out)
}

fn style(state: AgentState) -> Style {
    let color = match state {
        AgentState::Running => AnsiColor::Green,
        AgentState::Failing
        | AgentState::Suspended
        | AgentState::BackingOff
        | AgentState::Failed => AnsiColor::Red,
        AgentState::Limited | AgentState::Stopped | AgentState::Ended => AnsiColor::Yellow,
        _ => AnsiColor::Cyan,
    };
    color.on_default()
}

fn row(agent: &AgentStatus, enabled: bool, now_ms: u64) -> [String; 8] {
    let up = agent.started_at_ms.map(|started| {
        let up = words::duration_ms(now_ms.saturating_sub(started));
        format!("{} ({up})", local_time(started, "%Y-%m-%d %H:%M:%S"))
    });
    [
        words::one_line(&agent.id),
        words::one_line(agent.alias.as_deref().unwrap_or_default()),
        state(agent, enabled, now_ms),
        agent.pid.map(|pid| pid.to_string()).unwrap_or_default(),
        up.unwrap_or_default(),
        agent.restarts.to_string(),
        teamster_core::text::excerpt(&words::one_line(detail(agent)), MAX_CELL),
        last_error(agent, now_ms),
    ]
}

/// Returns the text of the STATE column. `enabled` is the switch for all agents.
pub(super) fn state(agent: &AgentStatus, enabled: bool, now_ms: u64) -> String {
    let activity = activity(agent, enabled, now_ms);
    match agent.state {
        AgentState::Suspended => "suspended".to_owned(),
        AgentState::Failing => format!("failing, {activity}"),
        AgentState::Limited => format!("limited, {activity}"),
        _ => activity,
    }
}

fn activity(agent: &AgentStatus, enabled: bool, now_ms: u64) -> String {
    let with_retry = |state: &str, before: &str| match agent.retry_at_ms {
        Some(at) => {
            let left = words::duration_ms(at.saturating_sub(now_ms));
            format!("{state}{before}{left}")
        }
        None => state.to_owned(),
    };
    match (agent.state, &agent.activity) {
        (state, Some(activity)) if state.is_running() => match activity.state {
            LoopState::Tick => "tick".to_owned(),
            LoopState::Sleeping => {
                let until = activity
                    .sleep_until_epoch
                    .and_then(|it| u64::try_from(it).ok());
                match until {
                    Some(until) => {
                        let until = until.saturating_mul(1000);
                        format!("sleeping until {}", near_time(until, now_ms))
                    }
                    None => "sleeping".to_owned(),
                }
            }
            _ => "running".to_owned(),
        },
        (state, None) if state.is_running() => "running".to_owned(),
        (AgentState::Starting, _) => "starting".to_owned(),
        (AgentState::Stopping, _) => "stopping".to_owned(),
        (AgentState::BackingOff, _) => with_retry("backing off", ", "),
        (AgentState::Failed, _) => with_retry("failed", ", retry in "),
        (AgentState::Stopped, _) if enabled && agent.enabled => "not running".to_owned(),
        (AgentState::Stopped, _) => "stopped".to_owned(),
        (AgentState::Ended, _) => "ended".to_owned(),
        _ => "?".to_owned(),
    }
}

/// Formats a time. The date is omitted if it is today.
fn near_time(ms: u64, now_ms: u64) -> String {
    const DATE: &str = "%Y-%m-%d";
    let time = local_time(ms, "%H:%M:%S");
    match local_time(ms, DATE) {
        date if date == local_time(now_ms, DATE) => time,
        date => format!("{date} {time}"),
    }
}

/// Returns the reason of the state.
fn detail(agent: &AgentStatus) -> &str {
    let reason = agent.reason.as_deref().unwrap_or_default();
    match (agent.state, &agent.activity) {
        (AgentState::Suspended, _) => "stopped by a signal: `kill -CONT PID` continues it",
        (state, Some(activity)) if state.is_running() => activity.plain_reason(),
        (AgentState::Ended, _) => reason,
        (AgentState::Stopped, _) if !agent.stopped_in_order => reason,
        _ => "",
    }
}

/// Returns the last error of an agent that was restarted or has not recovered; else an empty text.
fn last_error(agent: &AgentStatus, now_ms: u64) -> String {
    let matters = agent.restarts > 0
        || agent.state == AgentState::Limited
        || (agent.state.is_bad() && agent.state != AgentState::Stopped);
    match &agent.last_error {
        Some(error) if matters => {
            let age = words::duration_ms(now_ms.saturating_sub(error.at_ms));
            let message = teamster_core::text::excerpt(&words::one_line(&error.message), MAX_CELL);
            format!("{message} ({age} ago)")
        }
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(agents: &[(&str, bool)]) -> AgentList {
        let agent = |(state, enabled): &(&str, bool)| {
            serde_json::json!({"id": "a", "workingDir": "/a", "enabled": enabled, "state": state,
                "restarts": 0})
        };
        let agents: Vec<_> = agents.iter().map(agent).collect();
        let status = serde_json::json!({"config": "/c", "supervisor": null, "enabled": true,
            "agents": agents});
        serde_json::from_value(status).unwrap()
    }

    #[test]
    fn the_exit_code_is_that_of_the_worst_agent_that_is_to_run() {
        for (agents, code) in [
            (&[][..], 0),
            (&[("running", true), ("starting", true)], 0),
            (&[("stopped", false), ("failed", false)], 0),
            (&[("running", true), ("limited", true)], 4),
            (&[("limited", true), ("failing", true)], 1),
            (&[("backing_off", true)], 1),
            (&[("failed", true)], 1),
            (&[("ended", true)], 1),
            (&[("suspended", true)], 1),
            (&[("stopped", true)], 1),
        ] {
            let mut status = status(agents);
            assert_eq!(health(&status), code, "{agents:?}");
            status.enabled = false;
            assert_eq!(health(&status), 0, "{agents:?}");
        }
    }

    #[test]
    fn a_time_of_another_day_has_its_date() {
        let now = 1_795_390_000_000;
        let tomorrow = now + 24 * 3_600_000;
        assert_eq!(near_time(now, now), local_time(now, "%H:%M:%S"));
        assert_eq!(
            near_time(tomorrow, now),
            local_time(tomorrow, "%Y-%m-%d %H:%M:%S")
        );
    }
}
