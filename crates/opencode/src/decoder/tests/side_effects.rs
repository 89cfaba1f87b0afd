//! Tools that may have had side effects, by name.

use crate::decoder::tools::kind;

#[test]
fn tools_without_traces_have_kinds_without_side_effects() {
    let harmless = "read skill lsp lsp_hover lsp_diagnostics glob grep list codesearch websearch webfetch todowrite \
         todoread plan_enter plan_exit";
    for name in harmless.split(' ') {
        assert!(!kind(name).has_side_effects(), "{name}");
    }
    let harmful = "edit write multiedit patch apply_patch bash shell task batch question server_read no_such_tool";
    for name in harmful.split(' ') {
        assert!(kind(name).has_side_effects(), "{name}");
    }
}
