//! What of a run that broke off tells whether it may have changed something, in recorded runs.

use std::path::{Path, PathBuf};

use teamster_core::{CliProvider, ToolKind};
use teamster_testkit::fixture::Fixture;
use teamster_testkit::replay::{TracedCall, calls, calls_below};

use crate::Gemini;
use crate::decoder::tools::{is_own, kind};

const RUNS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/gemini");

/// The calls of a recorded run, with the lines that told of them.
fn recorded(run: &str) -> Vec<TracedCall> {
    calls(&Fixture::load(&Path::new(RUNS).join(run)).unwrap(), &Gemini)
}

/// The calls of all recorded runs, with the folder of the run.
fn all_recorded() -> Vec<(PathBuf, TracedCall)> {
    let all = calls_below(Path::new(RUNS), &Gemini).unwrap();
    assert!(all.len() > 10, "only {} calls", all.len());
    all
}

#[test]
fn what_can_change_things_is_told_before_it_runs() {
    assert!(Gemini.capabilities().announces_tools);
    for (run, kind) in [
        ("0.61.0/tool_id", ToolKind::Execute),
        ("0.61.0/auto_edit_write", ToolKind::Edit),
        ("0.61.0/mcp_ok", ToolKind::Mcp),
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
    let calls = recorded("0.61.0/sigkill_tool_running");
    let [call] = calls.as_slice() else {
        panic!("{calls:?}")
    };
    assert_eq!((call.told.kind, call.ended), (ToolKind::Execute, None));
}

#[test]
fn only_tools_that_leave_nothing_behind_have_a_kind_without_side_effects() {
    for name in [
        "read_file",
        "read_many_files",
        "get_internal_docs",
        "list_mcp_resources",
        "read_mcp_resource",
        "glob",
        "grep_search",
        "search_file_content",
        "list_directory",
        "google_web_search",
        "web_fetch",
        "write_todos",
        "update_topic",
        "enter_plan_mode",
        "exit_plan_mode",
        "ask_user",
        "tracker_get_task",
        "tracker_list_tasks",
        "tracker_visualize",
    ] {
        assert!(!kind(name).has_side_effects(), "{name}");
    }
    for name in [
        "write_file",
        "replace",
        "save_memory",
        "tracker_create_task",
        "tracker_update_task",
        "tracker_add_dependency",
        "tracker_of_a_newer_version",
        "run_shell_command",
        "list_background_processes",
        "read_background_output",
        "invoke_agent",
        "codebase_investigator",
        "complete_task",
        "activate_skill",
        "discovered_tool_read",
        "mcp_db_read",
        "no_such_tool",
    ] {
        assert!(kind(name).has_side_effects(), "{name}");
    }
}

#[test]
fn a_tool_of_the_tracker_is_the_clis_own_whatever_it_does() {
    assert!(is_own("tracker_create_task"));
    assert!(is_own("tracker_of_a_newer_version"));
}
