//! Hooks of a session: its caller is asked before and after each tool.

use serde_json::json;
use teamster_core::provider::SessionCommand;
use teamster_core::{Decision, PermissionAnswer, PermissionEvent, RunStatus, ToolStage};
use teamster_testkit::events::payloads;

use crate::sessions::play::Play;
use crate::sessions::{COST, HELLO, asked, is_plain};

const CALL: &str = r#""subtype":"hook_callback""#;

#[test]
fn answers_to_hooks_deny_change_and_add_to_calls() {
    let mut play = Play::with("2.1.197/hooks", |options| {
        asked(options);
        options.tool_hooks = true;
    });
    play.turn("[[mock:tool_parallel]] first");
    let mut stages = Vec::new();
    for answer in [
        PermissionAnswer::deny("no network"),
        PermissionAnswer::AllowWith(json!({"command": "echo changed"})),
        PermissionAnswer::deny("look again"),
    ] {
        play.until(CALL);
        let request = play.asked.pop().unwrap();
        play.session.answer(&request, answer);
        stages.push(request.stage);
    }
    let turn = play.end();
    assert_eq!(stages[..2], [ToolStage::Before, ToolStage::Before]);
    let ToolStage::After(output) = &stages[2] else {
        panic!("{stages:?}");
    };
    assert_eq!(output["stdout"], "changed");
    assert_eq!(turn.result.status, RunStatus::Completed);
    let outputs = [("no network", Some(true)), ("changed", Some(false))];
    assert_eq!(turn.outputs(), outputs);
    // The CLI lists the denial at the end, too.
    let decisions: Vec<_> = payloads::<PermissionEvent>(&turn.events)
        .map(|it| (it.decision, it.reason.as_deref()))
        .collect();
    assert_eq!(decisions, [(Decision::Denied, Some("no network"))]);

    play.turn("[[mock:tool_shell_ok]] second");
    play.until(CALL);
    let request = play.asked.pop().unwrap();
    play.interrupt();
    assert_eq!(play.end().result.status, RunStatus::Aborted);
    assert_eq!(play.withdrawn, [request.id]);
    play.written.clear();
    play.command(SessionCommand::Answer(request.id, PermissionAnswer::Allow));
    assert!(play.written.is_empty());
    is_plain(&play.play("[[mock:text]] third"), HELLO, COST);
    play.rest();
}
