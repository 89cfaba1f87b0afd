//! Names of the CLI's own tools.

use teamster_core::ToolKind;

/// The tool that runs commands.
pub(crate) const SHELL: &str = "run_shell_command";

/// Returns the kind of a tool. Names of earlier versions are included.
pub(crate) fn kind(name: &str) -> ToolKind {
    match name {
        "read_file" | "read_many_files" | "get_internal_docs" | "list_mcp_resources"
        | "read_mcp_resource" => ToolKind::Read,
        // `save_memory` writes to GEMINI.md, and the tracker to files that sessions of a project may share.
        "write_file"
        | "replace"
        | "save_memory"
        | "tracker_create_task"
        | "tracker_update_task"
        | "tracker_add_dependency" => ToolKind::Edit,
        SHELL | "list_background_processes" | "read_background_output" => ToolKind::Execute,
        "glob" | "grep_search" | "search_file_content" | "list_directory" | "google_web_search" => {
            ToolKind::Search
        }
        "web_fetch" => ToolKind::Fetch,
        "invoke_agent" | "codebase_investigator" | "cli_help" | "complete_task" => ToolKind::Task,
        "write_todos" | "update_topic" | "enter_plan_mode" | "exit_plan_mode" | "ask_user"
        | "tracker_get_task" | "tracker_list_tasks" | "tracker_visualize" => ToolKind::Think,
        _ if name.starts_with("mcp_") => ToolKind::Mcp,
        _ => ToolKind::Other,
    }
}

/// Returns whether the CLI itself has, or had, a tool of this name.
pub(crate) fn is_own(name: &str) -> bool {
    name == "activate_skill"
        || name.starts_with("tracker_")
        || !matches!(kind(name), ToolKind::Mcp | ToolKind::Other)
}
