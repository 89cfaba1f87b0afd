//! Times of commands of a turn's tools, which identify their processes.

use std::collections::HashMap;

use teamster_core::{AgentEvent, Id, ToolKind};

use crate::os;

/// How much earlier than its `tool_use` is read a command may have been started, in milliseconds. On a busy
/// machine Codex's line came 310 ms after.
const LEAD_MS: u64 = 1000;

/// The times between `tool_use` and `tool_result` of tools that run commands, in milliseconds since the
/// machine's start.
#[derive(Debug, Default)]
pub(crate) struct CommandTimes {
    open: HashMap<Id, u64>,
    /// Those of tools that have ended.
    ended: Vec<(u64, u64)>,
}

impl CommandTimes {
    /// Takes note of what the events say.
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
                AgentEvent::ToolResult(result) => {
                    if let Some(begun) = self.open.remove(&result.tool_id) {
                        self.ended.push((begun, now()));
                    }
                }
                _ => {}
            }
        }
    }

    /// Whether a command runs.
    pub(crate) fn is_open(&self) -> bool {
        !self.open.is_empty()
    }

    /// Whether a process that was started then can only be of a command that still runs. It is not if it
    /// may be of one that has ended: that one has left it in the background.
    pub(crate) fn is_of_open(&self, started_ms: u64) -> bool {
        let of_ended = |(begun, ended): &(u64, u64)| (*begun..=*ended).contains(&started_ms);
        self.open.values().any(|begun| *begun <= started_ms) && !self.ended.iter().any(of_ended)
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
        // One from before, such as an MCP server, is not.
        assert_eq!(
            of_open(&times, &[8_900, 9_600, 15_000]),
            [false, true, true]
        );
        // What a second command leaves in the background stays, although the first is still open.
        times.follow_at(&[begins("b", ToolKind::Execute)], || 20_000);
        times.follow_at(&[ends("b")], || 25_000);
        assert_eq!(
            of_open(&times, &[15_000, 22_000, 26_000]),
            [true, false, true]
        );
        times.follow_at(&[ends("a")], || 30_000);
        assert!(!times.is_open());
        times.follow_at(&[begins("c", ToolKind::Execute)], || 30_100);
        assert_eq!(
            of_open(&times, &[22_000, 29_900, 30_200]),
            [false, false, true]
        );
    }
}
