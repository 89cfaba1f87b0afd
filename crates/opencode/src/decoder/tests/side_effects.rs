//! Tools that may have had side effects, by name.

use crate::decoder::tools::kind;

#[test]
fn tools_without_traces_have_kinds_without_side_effects() {
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
