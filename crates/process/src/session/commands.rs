//! Times at which a turn's tools ran commands, which identify the processes of these commands.

use std::collections::HashMap;

use teamster_core::{AgentEvent, Id, ToolKind};

use crate::os;

/// Time by which a command may start before its `tool_use` is read, in milliseconds. On a busy machine Codex's line
/// was 310 ms late.
const LEAD_MS: u64 = 1000;

/// Periods between `tool_use` and `tool_result` of tools that run commands, in milliseconds since boot.
#[derive(Debug, Clone, Default)]
pub(crate) struct CommandTimes {
    open: HashMap<Id, u64>,
    /// Periods of tools that have ended.
    ended: Vec<(u64, u64)>,
    /// Time of the turn's interrupt. A command that starts later belongs to the turn, even if the CLI does not print
    /// its `tool_use` any more.
    interrupted: Option<u64>,
    /// Start of the next turn.
    until: Option<u64>,
}

impl CommandTimes {
    /// Updates the periods with events.
    pub(crate) fn follow(&mut self, events: &[AgentEvent]) {
        self.follow_at(events, os::since_boot_ms);
    }

    fn follow_at(&mut self, events: &[AgentEvent], now: impl Fn() -> u64) {
        for event in events {
            match event {
                AgentEvent::ToolUse(tool) if tool.kind == ToolKind::Execute => {
                    let begun = now().saturating_sub(LEAD_MS);
                    self.open.entry(tool.tool_id.clone()).or_insert(begun);
                }
                // The result of an interrupted call does not show that its command has ended.
                AgentEvent::ToolResult(result) if self.interrupted.is_none() => {
                    if let Some(begun) = self.open.remove(&result.tool_id) {
                        self.ended.push((begun, now()));
                    }
                }
                _ => {}
            }
        }
    }

    /// Notes that the turn is interrupted now.
    pub(crate) fn interrupt(&mut self) {
        // Start times are rounded down.
        let now = os::since_boot_ms().saturating_sub(os::TICK_MS);
        self.interrupted.get_or_insert(now);
    }

    /// Notes that the next turn has begun.
    pub(crate) fn next_turn(&mut self) {
        self.until.get_or_insert_with(os::since_boot_ms);
    }

    /// Returns whether a command runs.
    pub(crate) fn is_open(&self) -> bool {
        !self.open.is_empty()
    }

    /// Returns whether a process with this start time belongs to a command that still runs. It does not if it may
    /// belong to one that has ended: that one left it in the background.
    pub(crate) fn is_of_open(&self, started_ms: u64) -> bool {
        let of_ended = |(begun, ended): &(u64, u64)| (*begun..=*ended).contains(&started_ms);
        let mut begun = self.open.values().chain(&self.interrupted);
        begun.any(|begun| *begun <= started_ms)
            && !self.ended.iter().any(of_ended)
            && self.until.is_none_or(|until| started_ms <= until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use teamster_core::{ToolResult, ToolUse};

    fn begins(id: &str, kind: ToolKind) -> AgentEvent {
        AgentEvent::ToolUse(Box::new(ToolUse::new(
            "tool",
            id,
            kind,
            serde_json::Value::Null,
        )))
    }

    fn ends(id: &str) -> AgentEvent {
        AgentEvent::ToolResult(Box::new(ToolResult::new(id, String::new())))
    }

    #[test]
    fn only_processes_of_an_open_command_are_its() {
        let mut times = CommandTimes::default();
        times.follow_at(&[begins("read", ToolKind::Read)], || 9_000);
        assert!(!times.is_open());
        times.follow_at(&[begins("a", ToolKind::Execute)], || 10_000);
        assert!(times.is_open());
        let of_open = |times: &CommandTimes, at: &[u64]| -> Vec<bool> {
            at.iter().map(|at| times.is_of_open(*at)).collect()
        };
        // A process from before the turn, such as an MCP server, does not belong to it.
        assert_eq!(
            of_open(&times, &[8_900, 9_600, 15_000]),
            [false, true, true]
        );
        // A background process of a second command is kept, although the first is still open.
        times.follow_at(&[begins("b", ToolKind::Execute)], || 20_000);
        times.follow_at(&[ends("b")], || 25_000);
        assert_eq!(
            of_open(&times, &[15_000, 22_000, 26_000]),
            [true, false, true]
        );
        times.follow_at(&[ends("a")], || 30_000);
        assert!(!times.is_open());
        // After an interrupt, a command needs no `tool_use`. Those of the next turn are not meant.
        let mut interrupted = times.clone();
        interrupted.interrupted = Some(40_000);
        interrupted.until = Some(41_000);
        assert_eq!(
            of_open(&interrupted, &[39_000, 40_000, 41_000, 41_010]),
            [false, true, true, false]
        );
        times.follow_at(&[begins("c", ToolKind::Execute)], || 30_100);
        assert_eq!(
            of_open(&times, &[22_000, 29_900, 30_200]),
            [false, false, true]
        );
    }
}
