//! What of a run that broke off tells whether it may have changed something, in recorded runs.

use std::path::{Path, PathBuf};

use teamster_core::{CliProvider, ToolKind};
use teamster_testkit::fixture::Fixture;
use teamster_testkit::replay::{TracedCall, calls, calls_below};

use crate::Claude;
use crate::decoder::tools::kind;

const RUNS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/claude");

/// The calls of a recorded run, with the lines that told of them.
fn recorded(run: &str) -> Vec<TracedCall> {
    calls(&Fixture::load(&Path::new(RUNS).join(run)).unwrap(), &Claude)
}

/// The calls of all recorded runs, with the folder of the run.
fn all_recorded() -> Vec<(PathBuf, TracedCall)> {
    let all = calls_below(Path::new(RUNS), &Claude).unwrap();
    assert!(all.len() > 10, "only {} calls", all.len());
    all
}

#[test]
fn what_can_change_things_is_told_before_it_runs() {
    assert!(Claude.capabilities().announces_tools);
    for (run, kind) in [
        ("2.1.197/tool_shell_ok", ToolKind::Execute),
        ("2.1.197/write_edit", ToolKind::Edit),
        ("2.1.330/conformance_mcp_tool_fails", ToolKind::Mcp),
    ] {
        let calls = recorded(run);
        let call = calls.iter().find(|call| call.told.kind == kind);
        let call = call.unwrap_or_else(|| panic!("{run} has no call of {kind:?}"));
        assert!(call.told.kind.has_side_effects(), "{run}");
        let ended = call.ended.unwrap_or_else(|| panic!("{run}: no result"));
        assert!(call.line < ended, "{run}: with its result");
    }
    for (run, call) in all_recorded() {
        assert!(call.was_announced(), "{run:?}: {call:?}");
    }
}

#[test]
fn a_tool_that_was_cut_off_was_told() {
    let calls = recorded("2.1.197/sigterm_mid_tool");
    let [call] = calls.as_slice() else {
        panic!("{calls:?}")
    };
    assert_eq!((call.told.kind, call.ended), (ToolKind::Execute, None));
}

#[test]
fn only_tools_that_leave_nothing_behind_have_a_kind_without_side_effects() {
    for name in [
        "Read",
        "NotebookRead",
        "ListMcpResourcesTool",
        "ReadMcpResourceTool",
        "Glob",
        "Grep",
        "LS",
        "WebSearch",
        "ToolSearch",
        "WebFetch",
        "TodoWrite",
        "TodoRead",
        "TaskCreate",
        "TaskGet",
        "TaskList",
        "TaskUpdate",
        "EnterPlanMode",
        "ExitPlanMode",
        "StructuredOutput",
    ] {
        assert!(!kind(name).has_side_effects(), "{name}");
    }
    for name in [
        "Edit",
        "MultiEdit",
        "Write",
        "NotebookEdit",
        "Bash",
        "BashOutput",
        "KillShell",
        "PowerShell",
        "REPL",
        "Monitor",
        "Agent",
        "Task",
        "SendMessage",
        "TaskOutput",
        "TaskStop",
        "Workflow",
        "Skill",
        "EnterWorktree",
        "ExitWorktree",
        "CronCreate",
        "CronDelete",
        "ScheduleWakeup",
        "ReportFindings",
        "Artifact",
        "DesignSync",
        "AskUserQuestion",
        "LSP",
        "mcp__db__read",
        "NoSuchTool",
    ] {
        assert!(kind(name).has_side_effects(), "{name}");
    }
}
