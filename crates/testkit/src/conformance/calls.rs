//! Checks of the announcement of tool calls. The announcement decides whether a run that broke off may have
//! had side effects.

use teamster_core::ToolKind;

use super::output::location;
use super::{Failures, Suite, Verdict};
use crate::fixture::Fixture;
use crate::replay::{TracedCall, calls};

/// The calls that a CLI announces before their results.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Announces {
    /// All calls.
    Every,
    /// Calls of a kind with side effects. Others come with their results.
    SideEffects,
    /// No calls: each comes with its result, and one that was cut off is missing.
    Nothing,
}

impl Announces {
    /// Returns the problem of a call that was announced too late or too early.
    fn problem(self, call: &TracedCall) -> Option<&'static str> {
        let before = match self {
            Self::Every => true,
            Self::SideEffects => call.tool_use.kind.has_side_effects(),
            Self::Nothing => false,
        };
        match before {
            true if !call.was_announced() => Some("not announced before its result"),
            false if call.ended != Some(call.line) => Some("not printed with its result"),
            _ => None,
        }
    }
}

impl Suite {
    /// Checks that tool calls are announced as the suite expects in every fixture, and that the capability
    /// `announces_tools` matches.
    ///
    /// Each kind of tool with side effects must occur in a known fixture. A call that was cut off must be
    /// announced if calls are.
    pub fn calls(&self) -> Verdict {
        let mut wrong = Failures::of("calls");
        let can = self.provider.capabilities().announces_tools;
        // The suite cannot see calls of sub-agents that the CLI does not report.
        if can && self.announces != Announces::Every {
            wrong.add(
                "announces_tools",
                "the suite declares that not all calls are",
            );
        }
        if !can && self.announces == Announces::Every {
            wrong.add("announces_tools", "the suite declares that all calls are");
        }
        for fixture in &self.fixtures {
            for call in self.traced(fixture) {
                if let Some(problem) = self.announces.problem(&call) {
                    wrong.add(location(fixture), format!("{problem}: {call:?}"));
                }
            }
        }
        if self.calls.is_empty() {
            wrong.add("the suite", "give at least one `call`");
        }
        for (scenario, kind) in &self.calls {
            self.each_call_named(scenario, &mut wrong, |calls| has_call(calls, *kind));
        }
        for (scenario, kind) in &self.cut_off {
            let expected = match self.announces {
                Announces::Nothing => vec![],
                _ => vec![(*kind, None)],
            };
            self.each_call_named(scenario, &mut wrong, |calls| {
                let seen: Vec<_> = calls.iter().map(|c| (c.tool_use.kind, c.ended)).collect();
                if seen == expected {
                    return Ok(());
                }
                Err(format!("expected the calls {expected:?}, got {seen:?}"))
            });
        }
        wrong.verdict()
    }

    fn each_call_named(
        &self,
        scenario: &str,
        wrong: &mut Failures,
        check: impl Fn(&[TracedCall]) -> Result<(), String>,
    ) {
        let fixtures = self.named(scenario);
        if fixtures.is_empty() {
            wrong.add(scenario, "there is no fixture of this name");
        }
        for fixture in fixtures {
            wrong.add_if_err(location(fixture), check(&self.traced(fixture)));
        }
    }

    fn traced(&self, fixture: &Fixture) -> Vec<TracedCall> {
        calls(fixture, &*self.provider)
    }
}

/// Checks that there is a completed call of this kind. The time of the announcement is checked for all calls.
fn has_call(calls: &[TracedCall], kind: ToolKind) -> Result<(), String> {
    let Some(call) = calls.iter().find(|call| call.tool_use.kind == kind) else {
        return Err(format!("there is no call of kind {kind:?}"));
    };
    if !kind.has_side_effects() {
        return Err(format!("{kind:?} has no side effects"));
    }
    match call.ended {
        Some(_) => Ok(()),
        None => Err(format!("the call of kind {kind:?} has no result")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use teamster_core::ToolUse;

    use super::*;

    fn call(kind: ToolKind, line: usize, ended: Option<usize>) -> TracedCall {
        let tool_use = ToolUse::new("tool", "id", kind, json!({}));
        TracedCall {
            tool_use,
            line,
            ended,
        }
    }

    #[test]
    fn a_call_that_is_reported_at_the_wrong_time_is_found() {
        use Announces::{Every, Nothing, SideEffects};
        for (kind, ended, expected) in [
            (ToolKind::Execute, Some(2), [true, true, false]),
            (ToolKind::Execute, Some(1), [false, false, true]),
            (ToolKind::Execute, None, [true, true, false]),
            (ToolKind::Search, Some(2), [true, false, false]),
            (ToolKind::Search, Some(1), [false, true, true]),
        ] {
            let call = call(kind, 1, ended);
            let fine = [Every, SideEffects, Nothing].map(|it| it.problem(&call).is_none());
            assert_eq!(fine, expected, "{call:?}");
        }
    }

    #[test]
    fn a_known_call_has_side_effects_and_a_result() {
        let calls = [
            call(ToolKind::Search, 1, Some(2)),
            call(ToolKind::Edit, 3, None),
        ];
        for (kind, problem) in [
            (ToolKind::Search, "Search has no side effects"),
            (ToolKind::Edit, "the call of kind Edit has no result"),
        ] {
            assert_eq!(has_call(&calls, kind).unwrap_err(), problem);
        }
    }
}
