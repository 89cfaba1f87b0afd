//! Tools that may have had side effects, by name.

use crate::tool_names::{is_own, kind};

#[test]
fn tools_without_traces_have_kinds_without_side_effects() {
    let harmless = "read_file read_many_files get_internal_docs list_mcp_resources read_mcp_resource glob \
         grep_search search_file_content list_directory google_web_search web_fetch write_todos \
         update_topic enter_plan_mode exit_plan_mode ask_user tracker_get_task tracker_list_tasks \
         tracker_visualize";
    for name in harmless.split(' ') {
        assert!(!kind(name).has_side_effects(), "{name}");
    }
    let harmful = "write_file replace save_memory tracker_create_task tracker_update_task tracker_add_dependency \
         tracker_of_a_newer_version run_shell_command list_background_processes read_background_output \
         invoke_agent codebase_investigator complete_task activate_skill discovered_tool_read \
         mcp_db_read no_such_tool";
    for name in harmful.split(' ') {
        assert!(kind(name).has_side_effects(), "{name}");
    }
}

#[test]
fn tools_of_the_tracker_are_the_clis_own() {
    assert!(is_own("tracker_create_task"));
    assert!(is_own("tracker_of_a_newer_version"));
}
