//! What of a run that broke off tells whether it may have changed something, in recorded runs.

use std::path::{Path, PathBuf};

use teamster_core::{CliProvider, ToolKind};
use teamster_testkit::fixture::Fixture;
use teamster_testkit::replay::{TracedCall, calls, calls_below};

use crate::Codex;

const RUNS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/codex");

/// The calls of a recorded run, with the lines that told of them.
fn recorded(run: &str) -> Vec<TracedCall> {
    calls(&Fixture::load(&Path::new(RUNS).join(run)).unwrap(), &Codex)
}

/// The calls of all recorded runs, with the folder of the run.
fn all_recorded() -> Vec<(PathBuf, TracedCall)> {
    let all = calls_below(Path::new(RUNS), &Codex).unwrap();
    assert!(all.len() > 10, "only {} calls", all.len());
    all
}

#[test]
fn the_tools_that_have_items_are_told_when_they_start() {
    for (run, kind) in [
        ("0.169.0/tool_shell_ok", ToolKind::Execute),
        ("0.169.0/cm_patch", ToolKind::Edit),
        ("0.169.0/mcp_ok", ToolKind::Mcp),
        ("0.169.0/agent_v1", ToolKind::Task),
    ] {
        let calls = recorded(run);
        let call = calls.iter().find(|call| call.told.kind == kind);
        let call = call.unwrap_or_else(|| panic!("{run} has no call of {kind:?}"));
        assert!(call.told.kind.has_side_effects(), "{run}");
        let ended = call.ended.unwrap_or_else(|| panic!("{run}: no result"));
        assert!(call.line < ended, "{run}: with its result");
    }
    for (run, call) in all_recorded() {
        // A search on the web is told with its result, and changes nothing.
        let may_change = call.told.kind.has_side_effects();
        assert_eq!(call.was_announced(), may_change, "{run:?}: {call:?}");
    }
}

#[test]
fn a_tool_that_was_cut_off_was_told() {
    let calls = recorded("0.169.0/sigkill_tool_tree_native");
    let [call] = calls.as_slice() else {
        panic!("{calls:?}")
    };
    assert_eq!((call.told.kind, call.ended), (ToolKind::Execute, None));
}

/// The run started an agent, which asked the model; all that is told is that it was waited for.
#[test]
fn an_agent_of_the_newer_kind_is_not_told_before_it_is_waited_for() {
    assert!(!Codex.capabilities().announces_tools);
    let calls = recorded("0.169.0/agent_v2");
    let names: Vec<_> = calls.iter().map(|c| c.told.tool_name.as_str()).collect();
    assert_eq!(names, ["wait"]);
    let calls = recorded("0.169.0/agent_v1");
    let names: Vec<_> = calls.iter().map(|c| c.told.tool_name.as_str()).collect();
    assert_eq!(names, ["spawn_agent", "wait", "close_agent"]);
}
