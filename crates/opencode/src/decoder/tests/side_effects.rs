//! What of a run that broke off tells whether it may have changed something, in recorded runs.

use std::path::{Path, PathBuf};

use teamster_core::{CliProvider, ToolKind};
use teamster_testkit::fixture::Fixture;
use teamster_testkit::replay::{TracedCall, calls, calls_below};

use crate::OpenCode;
use crate::decoder::tools::kind;

const RUNS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/opencode");

/// The calls of a recorded run, with the lines that told of them.
fn recorded(run: &str) -> Vec<TracedCall> {
    calls(
        &Fixture::load(&Path::new(RUNS).join(run)).unwrap(),
        &OpenCode,
    )
}

/// The calls of all recorded runs, with the folder of the run.
fn all_recorded() -> Vec<(PathBuf, TracedCall)> {
    let all = calls_below(Path::new(RUNS), &OpenCode).unwrap();
    assert!(all.len() > 10, "only {} calls", all.len());
    all
}

/// The first that is told of a tool comes with its result.
#[test]
fn a_tool_is_told_when_it_has_ended() {
    assert!(!OpenCode.capabilities().announces_tools);
    for (run, kind) in [
        ("1.18.33/tool_shell_ok", ToolKind::Execute),
        ("1.18.33/edits", ToolKind::Edit),
        ("1.18.33/mcp_ok", ToolKind::Mcp),
        ("1.18.33/task_subagent", ToolKind::Task),
    ] {
        let calls = recorded(run);
        let call = calls.iter().find(|call| call.told.kind == kind);
        let call = call.unwrap_or_else(|| panic!("{run} has no call of {kind:?}"));
        assert_eq!(call.ended, Some(call.line), "{run}");
    }
    for (run, call) in all_recorded() {
        assert_eq!(call.ended, Some(call.line), "{run:?}: {call:?}");
    }
}

#[test]
fn of_a_tool_that_was_cut_off_nothing_is_told() {
    assert_eq!(recorded("1.18.33/sigkill_group_in_tool"), []);
}

#[test]
fn only_tools_that_leave_nothing_behind_have_a_kind_without_side_effects() {
    for name in [
        "read",
        "skill",
        "lsp",
        "lsp_hover",
        "lsp_diagnostics",
        "glob",
        "grep",
        "list",
        "codesearch",
        "websearch",
        "webfetch",
        "todowrite",
        "todoread",
        "plan_enter",
        "plan_exit",
    ] {
        assert!(!kind(name).has_side_effects(), "{name}");
    }
    for name in [
        "edit",
        "write",
        "multiedit",
        "patch",
        "apply_patch",
        "bash",
        "shell",
        "task",
        "batch",
        "question",
        "server_read",
        "no_such_tool",
    ] {
        assert!(kind(name).has_side_effects(), "{name}");
    }
}
