//! What of a run that broke off tells whether it may have changed something, in recorded runs.

use std::path::{Path, PathBuf};

use teamster_core::{CliProvider, ToolKind};
use teamster_testkit::fixture::Fixture;
use teamster_testkit::replay::{TracedCall, calls, calls_below};

use crate::Copilot;
use crate::decoder::tools::kind_of_own as kind;

const RUNS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/copilot");

/// The calls of a recorded run, with the lines that told of them.
fn recorded(run: &str) -> Vec<TracedCall> {
    calls(
        &Fixture::load(&Path::new(RUNS).join(run)).unwrap(),
        &Copilot,
    )
}

/// The calls of all recorded runs, with the folder of the run.
fn all_recorded() -> Vec<(PathBuf, TracedCall)> {
    let all = calls_below(Path::new(RUNS), &Copilot).unwrap();
    assert!(all.len() > 10, "only {} calls", all.len());
    all
}

#[test]
fn what_can_change_things_is_told_before_it_runs() {
    assert!(Copilot.capabilities().announces_tools);
    for (run, kind) in [
        ("1.0.102/tool_shell_ok", ToolKind::Execute),
        ("1.0.102/record_tool_edit", ToolKind::Edit),
        ("1.0.102/mcp_ok", ToolKind::Mcp),
        ("1.0.102/record_subagent", ToolKind::Task),
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
    let calls = recorded("1.0.102/record_sigkill_group_shell");
    let [call] = calls.as_slice() else {
        panic!("{calls:?}")
    };
    assert_eq!((call.told.kind, call.ended), (ToolKind::Execute, None));
}

#[test]
fn only_tools_that_leave_nothing_behind_have_a_kind_without_side_effects() {
    for name in [
        "view",
        "skill",
        "fetch_copilot_cli_documentation",
        "session_store_sql",
        "show_file",
        "grep",
        "glob",
        "rg",
        "web_search",
        "lsp",
        "web_fetch",
        "sql",
        "report_intent",
        "update_todo",
        "task_complete",
        "exit_plan_mode",
        "ask_user",
    ] {
        assert!(!kind(name).has_side_effects(), "{name}");
    }
    for name in [
        "bash",
        "read_bash",
        "write_bash",
        "stop_bash",
        "list_bash",
        "powershell",
        "create",
        "edit",
        "apply_patch",
        "str_replace_editor",
        "store_memory",
        "task",
        "read_agent",
        "write_agent",
        "list_agents",
        "run_dynamic_workflow",
        "no_such_tool",
    ] {
        assert!(kind(name).has_side_effects(), "{name}");
    }
}
