//! Permissions and questions.

use super::*;

#[test]
fn a_permission_request_is_forwarded_and_answered() {
    for (option, answer) in [
        (
            json!({"outcome": "selected", "optionId": "allow"}),
            PermissionAnswer::Allow,
        ),
        (
            json!({"outcome": "selected", "optionId": "always"}),
            PermissionAnswer::AllowAlways,
        ),
        (
            json!({"outcome": "selected", "optionId": "reject"}),
            PermissionAnswer::Deny(None),
        ),
        (
            json!({"outcome": "cancelled"}),
            PermissionAnswer::Deny(None),
        ),
    ] {
        let mut editor = Editor::with_session();
        editor.prompt(2, "hi");
        editor.turn("s1.1");
        editor.log(
            json!({"type": "tool_use", "toolName": "Write", "toolId": "t1", "kind": "edit",
            "input": {"file_path": "/w/a", "content": "x"}}),
        );
        let mut request = PermissionRequest::new(
            1,
            "Write",
            ToolKind::Edit,
            json!({"file_path": "/w/a", "content": "x"}),
        );
        request.tool_id = Some("t1".into());
        editor.messages.clear();
        editor.actions.clear();
        editor.host(|server, out| server.ask("s1", "s1/1", &request, out));
        let shown = editor.messages.pop().unwrap();
        assert_eq!(shown["method"], "session/request_permission");
        let call = &shown["params"]["toolCall"];
        assert_eq!(
            (&call["toolCallId"], &call["kind"]),
            (&json!("t1"), &json!("edit"))
        );
        assert_eq!(call["content"][0]["type"], "diff");
        let kinds: Vec<_> = shown["params"]["options"]
            .as_array()
            .unwrap()
            .iter()
            .map(|it| it["kind"].clone())
            .collect();
        assert_eq!(kinds, ["allow_once", "allow_always", "reject_once"]);
        editor.line(
            &json!({"jsonrpc": "2.0", "id": shown["id"], "result": {"outcome": option}})
                .to_string(),
        );
        assert_eq!(
            editor.actions,
            [Action::Answer {
                session_id: "s1".to_owned(),
                request_id: "s1/1".to_owned(),
                answer
            }]
        );
    }
}

#[test]
fn a_request_shows_the_diff_that_its_call_has_not() {
    let mut editor = Editor::with_session();
    editor.prompt(2, "hi");
    editor.turn("s1.1");
    let change = json!({"path": "/w/a", "kind": "update"});
    editor.log(
        json!({"type": "tool_use", "toolName": "file_change", "toolId": "t1", "kind": "edit",
        "input": {"changes": [change]}}),
    );
    let change =
        json!({"path": "/w/a", "kind": {"type": "update"}, "diff": "@@ -1 +1 @@\n-a\n+b\n"});
    let mut request = PermissionRequest::new(
        1,
        "file_change",
        ToolKind::Edit,
        json!({"changes": [change]}),
    );
    request.tool_id = Some("t1".into());
    editor.host(|server, out| server.ask("s1", "s1/1", &request, out));
    let shown = editor.messages.pop().unwrap();
    let diff = json!([{"type": "diff", "path": "/w/a", "oldText": "a\n", "newText": "b\n"}]);
    let call = &shown["params"]["toolCall"];
    assert_eq!(call["content"], diff, "{shown}");
    assert_eq!(call["locations"], json!([{"path": "/w/a"}]));
    // The call keeps it.
    editor.messages.clear();
    editor.log(json!({"type": "tool_result", "toolId": "t1", "output": ""}));
    assert_eq!(editor.updates()[0]["params"]["update"]["content"], diff);
}

#[test]
fn request_to_write_a_whole_file_shows_what_differs() {
    let mut editor = Editor::with_session();
    editor.prompt(2, "hi");
    editor.turn("s1.1");
    let input = json!({"file_path": "/w/a", "content": "b\n"});
    let mut request = PermissionRequest::new(1, "Write", ToolKind::Edit, input.clone());
    request.old_text = Some("a\n".to_owned());
    let diff = json!([{"type": "diff", "path": "/w/a", "oldText": "a\n", "newText": "b\n"}]);
    let shown_by = |editor: &mut Editor, request: &PermissionRequest| {
        editor.host(|server, out| server.ask("s1", "s1/1", request, out));
        editor.messages.pop().unwrap()["params"]["toolCall"]["content"].clone()
    };
    // A request without a call has it, too.
    assert_eq!(shown_by(&mut editor, &request), diff);
    editor.log(
        json!({"type": "tool_use", "toolName": "Write", "toolId": "t1", "kind": "edit", "input": input}),
    );
    request.tool_id = Some("t1".into());
    assert_eq!(shown_by(&mut editor, &request), diff);
    // The call keeps it.
    editor.messages.clear();
    editor.log(json!({"type": "tool_result", "toolId": "t1", "output": ""}));
    assert_eq!(editor.updates()[0]["params"]["update"]["content"], diff);
}

#[test]
fn a_request_to_carry_out_a_plan_shows_the_plan() {
    let mut editor = Editor::with_session();
    let plan = json!({"plan": "1. Write a test"});
    let request = PermissionRequest::new(1, "ExitPlanMode", ToolKind::Think, plan);
    editor.host(|server, out| server.ask("s1", "s1/1", &request, out));
    let call = editor.messages.pop().unwrap()["params"]["toolCall"].clone();
    assert_eq!(call["kind"], "switch_mode");
    assert_eq!(call["content"][0]["content"]["text"], "1. Write a test");
}

#[test]
fn request_answered_elsewhere_is_withdrawn_from_the_editor() {
    let mut editor = Editor::with_session();
    editor.prompt(2, "hi");
    editor.turn("s1.1");
    let request = PermissionRequest::new(1, "Bash", ToolKind::Execute, json!({"command": "ls"}));
    editor.host(|server, out| server.ask("s1", "s1/1", &request, out));
    let shown = editor.messages.pop().unwrap();
    editor.log(json!({"type": "permission", "toolName": "Bash", "decision": "allowed", "requestId": "s1/1"}));
    let withdrawn = editor.messages.pop().unwrap();
    assert_eq!(withdrawn["method"], "$/cancel_request");
    assert_eq!(withdrawn["params"]["requestId"], shown["id"]);
    // The editor's response comes too late.
    editor.actions.clear();
    editor.line(&json!({"jsonrpc": "2.0", "id": shown["id"], "result": {"outcome": {"outcome": "cancelled"}}}).to_string());
    assert_eq!(editor.actions, []);
}

#[test]
fn a_question_is_a_form_or_declined_without_support() {
    let schema = json!({"type": "object", "properties": {"colour": {"type": "string"}}, "required": ["colour"]});
    let question = PermissionRequest::question(1, "paint", "Which colour?", schema);
    for supported in [true, false] {
        let mut editor = Editor::new();
        let capabilities = if supported {
            json!({"elicitation": {"form": {}}})
        } else {
            json!({})
        };
        editor.call(
            0,
            "initialize",
            json!({"protocolVersion": 1, "clientCapabilities": capabilities}),
        );
        editor.begin();
        editor.actions.clear();
        editor.messages.clear();
        editor.host(|server, out| server.ask("s1", "s1/1", &question, out));
        let answer = if supported {
            let shown = editor.messages.pop().unwrap();
            assert_eq!(shown["method"], "elicitation/create");
            assert_eq!(shown["params"]["mode"], "form");
            assert_eq!(
                shown["params"]["requestedSchema"]["properties"]["colour"]["type"],
                "string"
            );
            let result = json!({"action": "accept", "content": {"colour": "blue"}});
            editor
                .line(&json!({"jsonrpc": "2.0", "id": shown["id"], "result": result}).to_string());
            PermissionAnswer::AllowWith(json!({"colour": "blue"}))
        } else {
            PermissionAnswer::Deny(None)
        };
        let Some(Action::Answer { answer: given, .. }) = editor.actions.pop() else {
            panic!();
        };
        assert_eq!(given, answer);
    }
}
