use serde_json::json;
use teamster_core::{ErrorCode, Usage};

use super::*;

fn announces() -> Capabilities {
    let mut can = Capabilities::none();
    can.announces_tools = true;
    can
}

fn account() -> Account {
    let mut account = Account::new("r".into(), SideEffects::default(), true);
    account.begin("p", &ExecuteParams::new("x"), false, &announces(), 0);
    account
}

fn feed(account: &mut Account, event: serde_json::Value) -> Vec<RunEvent> {
    let mut out = Vec::new();
    let event: AgentEvent = serde_json::from_value(event).unwrap();
    account.event(&event, 0, &mut out);
    out
}

fn text(id: &str, text: &str) -> serde_json::Value {
    json!({"type": "text", "text": text, "messageId": id})
}

fn tool(id: &str) -> serde_json::Value {
    json!({"type": "tool_use", "toolName": "X", "toolId": id, "input": {}, "kind": "read"})
}

fn result(id: &str) -> serde_json::Value {
    json!({"type": "tool_result", "toolId": id, "output": ""})
}

#[test]
fn turns_are_distinguished_by_the_results_between_them() {
    let mut account = account();
    for (event, turns) in [
        (json!({"type": "thinking", "text": "hm"}), 1),
        (text("a", "x"), 1),
        (tool("1"), 1),
        (tool("2"), 1),
        (result("1"), 1),
        (result("2"), 1),
        (tool("3"), 2),
        (result("3"), 2),
        (text("b", "y"), 3),
        (json!({"type": "turn_end", "isError": false}), 3),
        (text("c", "z"), 4),
        (
            json!({"type": "text", "text": "sub", "parentToolId": "1"}),
            4,
        ),
    ] {
        feed(&mut account, event.clone());
        assert_eq!(account.spent_so_far().turns, turns, "{event}");
    }
}

#[test]
fn a_tool_of_a_sub_agent_is_no_turn_and_ends_no_message() {
    let mut account = account();
    feed(&mut account, text("a", "x"));
    feed(&mut account, result("0"));
    let mut sub = tool("1");
    sub["parentToolId"] = json!("0");
    let reported = feed(&mut account, sub);
    let names: Vec<_> = reported.iter().map(RunEvent::type_name).collect();
    assert_eq!(names, ["tool:start"]);
    assert_eq!(account.spent_so_far().turns, 1);
}

#[test]
fn a_message_that_was_reported_and_is_retracted_is_no_payload() {
    let mut account = account();
    for event in [
        text("a", "1"),
        text("b", "2"),
        text("a", "3"),
        text("c", "4"),
    ] {
        feed(&mut account, event);
    }
    feed(&mut account, json!({"type": "retract", "messageId": "a"}));
    let mut out = Vec::new();
    account.end(None, true, 0, &mut out);
    account.keep(&mut out);
    let text = account.take_text();
    let messages: Vec<_> = text.pieces().map(|(_, text)| text).collect();
    assert_eq!(messages, ["2", "4"]);
}

#[test]
fn a_retraction_reaches_no_message_of_an_attempt_before() {
    let mut account = account();
    feed(&mut account, text("a", "1"));
    let mut out = Vec::new();
    account.end(None, true, 0, &mut out);
    account.keep(&mut out);
    account.begin("p", &ExecuteParams::new("y"), true, &announces(), 0);
    feed(&mut account, text("a", "2"));
    feed(&mut account, json!({"type": "retract", "messageId": "a"}));
    account.end(None, true, 0, &mut out);
    account.keep(&mut out);
    assert_eq!(account.take_text().text(), "1");
}

#[test]
fn the_last_figures_count_and_those_of_the_result_before_all() {
    let usage = |tokens: u64| Usage::default().input_tokens(tokens);
    let mut account = account();
    for tokens in [3, 5] {
        feed(
            &mut account,
            json!({"type": "usage", "usage": {"inputTokens": tokens}}),
        );
    }
    assert_eq!(account.spent_so_far().used.usage, Some(usage(5)));
    let done = RunResult::default().usage(usage(9));
    account.end(Some(&done), true, 0, &mut Vec::new());
    account.begin("p", &ExecuteParams::new("x"), false, &announces(), 0);
    feed(
        &mut account,
        json!({"type": "usage", "usage": {"inputTokens": 1}}),
    );
    assert_eq!(account.spent().used.usage, Some(usage(9)));
    assert_eq!(account.spent_so_far().used.usage, Some(usage(10)));
}

#[test]
fn file_of_a_denied_tool_counts_only_for_that_tool() {
    for (tool_id, denied, counts) in [
        (Some("1"), true, false),
        (Some("1"), false, true),
        (Some("9"), true, true),
        (None, true, true),
    ] {
        let mut account = account();
        feed(
            &mut account,
            json!({"type": "tool_use", "toolName": "X", "toolId": "1", "input": {}, "kind": "edit"}),
        );
        let mut change = json!({"type": "file_change", "path": "f", "change": "add"});
        if let Some(id) = tool_id {
            change["toolId"] = json!(id);
        }
        feed(&mut account, change);
        if denied {
            feed(
                &mut account,
                json!({"type": "permission", "toolName": "X", "toolId": "1", "decision": "denied"}),
            );
        }
        let failed = RunResult::default();
        account.end(Some(&failed), true, 0, &mut Vec::new());
        assert_eq!(account.changed().is_some(), counts, "{tool_id:?} {denied}");
    }
}

#[test]
fn calls_cut_off_are_in_order_without_ended_or_denied_ones() {
    let mut account = account();
    let edit = |id: &str, name: &str| {
        let mut edit = tool(id);
        (edit["toolName"], edit["kind"]) = (json!(name), json!("edit"));
        edit
    };
    for (id, name) in [("1", "A"), ("2", "B"), ("3", "C"), ("1", "D"), ("4", "E")] {
        feed(&mut account, edit(id, name));
    }
    feed(&mut account, tool("5"));
    feed(&mut account, result("2"));
    feed(
        &mut account,
        json!({"type": "permission", "toolName": "C", "toolId": "3", "decision": "denied"}),
    );
    account.end(None, true, 0, &mut Vec::new());
    assert_eq!(account.cut_off(), ["`A` {}", "`E` {}"]);
    let changed = "the agent had used `A`, which can change things";
    assert_eq!(account.changed(), Some(changed));
    assert_eq!(account.take_open(), ["1", "3", "4", "5"].map(Id::from));
}

#[test]
fn the_error_nearest_to_the_end_is_the_reason() {
    let error = |code, kind| AgentError::new(code, kind, format!("{kind:?}"));
    let of = |errors: Vec<AgentError>| {
        let result = RunResult::default().errors(errors);
        how(&result).error.unwrap().kind
    };
    let mcp = error(ErrorCode::CliError, ErrorKind::Mcp);
    let limit = error(ErrorCode::CliError, ErrorKind::RateLimit);
    let vague = error(ErrorCode::CliError, ErrorKind::Internal);
    let stderr = error(ErrorCode::CliStderr, ErrorKind::Network);
    let exit = error(ErrorCode::CliExitError, ErrorKind::Internal);
    assert_eq!(
        of(vec![mcp, limit.clone(), exit.clone()]),
        ErrorKind::RateLimit
    );
    assert_eq!(of(vec![limit, stderr.clone()]), ErrorKind::RateLimit);
    assert_eq!(of(vec![vague, stderr]), ErrorKind::Network);
    assert_eq!(of(vec![exit]), ErrorKind::Internal);
    assert_eq!(of(Vec::new()), ErrorKind::Protocol);
}
