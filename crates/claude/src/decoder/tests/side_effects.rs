//! Side effects of tools, by name.

use crate::decoder::tools::kind;

#[test]
fn tools_without_traces_have_kinds_without_side_effects() {
    let harmless = "Read NotebookRead ListMcpResourcesTool ReadMcpResourceTool Glob Grep LS WebSearch ToolSearch \
         WebFetch TodoWrite TodoRead TaskCreate TaskGet TaskList TaskUpdate EnterPlanMode ExitPlanMode \
         StructuredOutput";
    for name in harmless.split(' ') {
        assert!(!kind(name).has_side_effects(), "{name}");
    }
    let harmful = "Edit MultiEdit Write NotebookEdit Bash BashOutput KillShell PowerShell REPL Monitor Agent Task \
         SendMessage TaskOutput TaskStop Workflow Skill EnterWorktree ExitWorktree CronCreate CronDelete \
         ScheduleWakeup ReportFindings Artifact DesignSync AskUserQuestion LSP mcp__db__read NoSuchTool";
    for name in harmful.split(' ') {
        assert!(kind(name).has_side_effects(), "{name}");
    }
}
