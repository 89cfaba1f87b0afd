//! Tools that may have had side effects, by name.

use crate::decoder::tools::kind_of_own as kind;

#[test]
fn tools_without_traces_have_kinds_without_side_effects() {
    let harmless = "view skill fetch_copilot_cli_documentation session_store_sql show_file grep glob rg web_search \
         lsp web_fetch sql report_intent update_todo task_complete exit_plan_mode ask_user";
    for name in harmless.split(' ') {
        assert!(!kind(name).has_side_effects(), "{name}");
    }
    let harmful = "bash read_bash write_bash stop_bash list_bash powershell create edit apply_patch \
         str_replace_editor store_memory task read_agent write_agent list_agents run_dynamic_workflow \
         no_such_tool";
    for name in harmful.split(' ') {
        assert!(kind(name).has_side_effects(), "{name}");
    }
}
