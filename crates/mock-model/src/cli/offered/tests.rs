use std::path::Path;

use super::*;

#[expect(clippy::needless_pass_by_value, reason = "made in place")]
fn object(properties: Value, required: &[&str]) -> Value {
    json!({"type": "object", "properties": properties, "required": required})
}

fn called(tools: &Value, part: &Part) -> Option<(String, Value)> {
    let offers = offers(&json!({"tools": tools}));
    let context = CallContext {
        directory: Some(Path::new("/w")),
        offers: &offers,
        ..CallContext::default()
    };
    call(part, &context).map(|call| (call.name, call.input))
}

#[test]
fn tools_are_found_in_every_protocol() {
    let schema = object(json!({"command": {"type": "string"}}), &["command"]);
    for tools in [
        json!([{"type": "function", "function": {"name": "x", "parameters": schema}}]),
        json!([{"type": "function", "name": "x", "parameters": schema}]),
        json!([{"name": "x", "input_schema": schema}]),
        json!([{"functionDeclarations": [{"name": "x", "parametersJsonSchema": schema}]}]),
    ] {
        let found = offers(&json!({"tools": tools}));
        assert_eq!(
            found,
            [Offer {
                name: "x".into(),
                schema: schema.clone()
            }]
        );
        let (name, input) = called(&tools, &Part::Shell("ls".into())).unwrap();
        assert_eq!((&*name, input), ("x", json!({"command": "ls"})));
    }
    assert_eq!(offers(&json!({})), []);
}

#[test]
fn arguments_have_the_form_that_the_schema_wants() {
    let text = json!({"type": "string"});
    let tools = json!([
        {"name": "run_commands", "input_schema": object(json!({
            "commands": {"type": "array", "items": text},
            "requires_approval": {"type": "boolean"},
        }), &["commands", "requires_approval"])},
        {"name": "read_files", "input_schema": object(json!({
            "files": {"type": "array", "items": object(json!({"path": text}), &["path"])},
        }), &["files"])},
        {"name": "Write", "input_schema": object(json!({
            "filePath": text, "content": text,
        }), &["filePath", "content"])},
        {"name": "todo_write", "input_schema": object(json!({
            "todos": {"type": "array", "items": object(json!({
                "id": text, "content": text, "status": {"type": "string", "enum": ["pending", "done"]},
            }), &["id", "content", "status"])},
        }), &["todos"])},
        {"name": "str_replace", "input_schema": object(json!({
            "path": text, "old_str": text, "new_str": text,
        }), &["path", "old_str", "new_str"])},
        {"name": "mcp__tiny__echo", "input_schema": object(json!({}), &[])},
    ]);
    for (part, name, input) in [
        (
            Part::Shell("ls".into()),
            "run_commands",
            json!({"commands": ["ls"], "requires_approval": false}),
        ),
        (
            Part::ReadFile("a".into()),
            "read_files",
            json!({"files": [{"path": "/w/a"}]}),
        ),
        (
            Part::WriteFile {
                path: "b".into(),
                content: "c".into(),
            },
            "Write",
            json!({"filePath": "/w/b", "content": "c"}),
        ),
        (
            Part::EditFile {
                path: "b".into(),
                old: "c".into(),
                new: "d".into(),
            },
            "str_replace",
            json!({"path": "/w/b", "old_str": "c", "new_str": "d"}),
        ),
        (
            Part::Plan(vec!["d".into()]),
            "todo_write",
            json!({"todos": [{"id": "1", "content": "d", "status": "pending"}]}),
        ),
        (
            Part::Mcp {
                server: "tiny".into(),
                tool: "echo".into(),
                arguments: json!({"text": "e"}),
            },
            "mcp__tiny__echo",
            json!({"text": "e"}),
        ),
    ] {
        assert_eq!(called(&tools, &part), Some((name.to_owned(), input)));
    }
    assert_eq!(called(&tools, &Part::WebSearch("x".into())), None);
    assert_eq!(called(&json!([]), &Part::Shell("ls".into())), None);
}

#[test]
fn tool_of_a_server_gets_what_the_agent_requires() {
    let risk = json!({"type": "string", "enum": ["LOW", "HIGH"]});
    let schema = object(
        json!({"text": {"type": "string"}, "security_risk": risk}),
        &["text", "security_risk"],
    );
    let tools = json!([{"name": "echo", "input_schema": schema}]);
    let part = Part::Mcp {
        server: "tiny".into(),
        tool: "echo".into(),
        arguments: json!({"text": "e"}),
    };
    let input = json!({"text": "e", "security_risk": "LOW"});
    assert_eq!(called(&tools, &part), Some(("echo".to_owned(), input)));
}

#[test]
fn tool_for_all_files_is_called_with_its_command() {
    let text = json!({"type": "string"});
    let editor = object(
        json!({
            "command": {"type": "string", "enum": ["view", "create", "str_replace"]},
            "path": text, "file_text": text, "old_str": text, "new_str": text,
        }),
        &["command", "path"],
    );
    let tools = json!([{"name": "file_editor", "input_schema": editor}]);
    for (part, input) in [
        (
            Part::ReadFile("a".into()),
            json!({"command": "view", "path": "/w/a"}),
        ),
        (
            Part::WriteFile {
                path: "b".into(),
                content: "c".into(),
            },
            json!({"command": "create", "path": "/w/b", "file_text": "c"}),
        ),
        (
            Part::EditFile {
                path: "b".into(),
                old: "c".into(),
                new: "d".into(),
            },
            json!({"command": "str_replace", "path": "/w/b", "old_str": "c", "new_str": "d"}),
        ),
    ] {
        assert_eq!(
            called(&tools, &part),
            Some(("file_editor".to_owned(), input))
        );
    }
}
