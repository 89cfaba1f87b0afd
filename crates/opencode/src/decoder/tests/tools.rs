//! Tools: pairs, ids, failures, denials, changes of files.

use serde_json::{Value, json};
use teamster_core::provider::Exit;
use teamster_core::{
    AgentEvent, ChangeKind, ExecuteParams, FileChange, PlanStatus, ToolKind, ToolResult, ToolUse,
};

use super::super::{OpenCodeDecoder, Withheld};
use super::{assert_types, bash, decode, finish, names, run, say, start, tool};

fn call(name: &str, state: &Value) -> (ToolUse, ToolResult, Vec<AgentEvent>) {
    let mut params = ExecuteParams::new("hi");
    params.denied_tools = vec!["my-db_secret".into()];
    let servers = vec!["my-db".into(), "apply".into()];
    let decoder = OpenCodeDecoder::with(&params, servers, Withheld::of(&params));
    let lines = [
        start("m"),
        tool("m", name, "t1", state),
        finish("m", "stop"),
    ];
    let (events, _) = decode(decoder, &lines, Exit::new(0));
    let mut events = events.into_iter().skip(1);
    let Some(AgentEvent::ToolUse(used)) = events.next() else {
        panic!("no tool_use")
    };
    let mut rest = Vec::new();
    let mut ended = None;
    for event in events {
        match event {
            AgentEvent::ToolResult(e) => ended = Some(*e),
            AgentEvent::Usage(_) => break,
            other => rest.push(other),
        }
    }
    (*used, ended.unwrap(), rest)
}

fn completed(output: &str, input: &Value, metadata: &Value) -> Value {
    json!({"status": "completed", "input": input, "output": output, "metadata": metadata})
}

#[test]
fn a_failed_command_is_completed_to_the_cli_and_failed_to_us() {
    for (exit, is_error) in [(json!(0), false), (json!(3), true), (json!(null), true)] {
        let state = completed("x", &json!({"command": "x"}), &json!({"exit": exit}));
        let (used, ended, _) = call("bash", &state);
        assert_eq!(used.kind, ToolKind::Execute);
        assert_eq!(ended.is_error, Some(is_error), "{exit}");
        assert_eq!(ended.output, "x");
    }
    let (_, ended, _) = call("read", &completed("x", &json!({}), &json!({})));
    assert_eq!(ended.is_error, Some(false));
}

#[test]
fn a_tool_that_the_cli_calls_invalid_has_its_own_name() {
    let input = json!({"tool": "no_such_tool", "error": "Model tried to call unavailable tool \
        'no_such_tool'. Available tools: bash, edit."});
    let (used, ended, rest) = call("invalid", &completed("The arguments", &input, &json!({})));
    assert_eq!(used.tool_name, "no_such_tool");
    assert_eq!(ended.is_error, Some(true));
    assert_eq!(rest, [], "what does not exist was not denied");

    let (used, ..) = call("invalid", &completed("", &json!({"tool": 5}), &json!({})));
    assert_eq!(used.tool_name, "invalid");
}

#[test]
fn an_old_call_whose_output_was_taken_out_is_no_new_call() {
    let mut state = completed("ok", &json!({"command": "true"}), &json!({"exit": 0}));
    state["time"] = json!({"start": 1, "end": 2, "compacted": 3});
    let old = tool("old", "bash", "t0", &state);
    let (events, result) = run(&[start("m"), old, say("m", "x"), finish("m", "stop")]);
    assert_types(&events, "session text usage turn_end done");
    assert_eq!(result.diagnostics.unknown, 0);
}

fn change(name: &str, state: &Value) -> Vec<(String, ChangeKind)> {
    let (.., rest) = call(name, state);
    rest.into_iter()
        .map(|event| match event {
            AgentEvent::FileChange(e) => {
                let FileChange {
                    path,
                    change,
                    tool_id,
                    ..
                } = *e;
                assert_eq!(tool_id.as_deref(), Some("t1"));
                (path, change)
            }
            other => panic!("{other:?}"),
        })
        .collect()
}

#[test]
fn files_that_were_changed() {
    let file = json!({"filePath": "b.txt", "oldString": "a", "newString": "b"});
    let new = json!({"filePath": "b.txt", "oldString": "", "newString": "b"});
    let write = |exists: bool| {
        let metadata = json!({"filepath": "/w/b.txt", "exists": exists});
        completed("Wrote file successfully.", &file, &metadata)
    };
    let diff = json!({"filediff": {"file": "/w/b.txt"}});
    let one = |path: &str, change| vec![(path.to_owned(), change)];
    assert_eq!(
        change("write", &write(false)),
        one("/w/b.txt", ChangeKind::Add)
    );
    assert_eq!(
        change("write", &write(true)),
        one("/w/b.txt", ChangeKind::Update)
    );
    assert_eq!(
        change("edit", &completed("", &file, &diff)),
        one("/w/b.txt", ChangeKind::Update)
    );
    assert_eq!(
        change("edit", &completed("", &new, &json!({}))),
        one("b.txt", ChangeKind::Add)
    );
    let files = json!({"files": [
        {"filePath": "/w/a", "type": "add"}, {"filePath": "/w/d", "type": "delete"},
        {"filePath": "/w/m", "type": "move", "movePath": "/w/n"}, {"filePath": "/w/u", "type": "update"}]});
    assert_eq!(
        change("patch", &completed("", &json!({"patchText": "x"}), &files)),
        [
            ("/w/a".to_owned(), ChangeKind::Add),
            ("/w/d".to_owned(), ChangeKind::Delete),
            ("/w/n".to_owned(), ChangeKind::Move),
            ("/w/u".to_owned(), ChangeKind::Update),
        ]
    );
    // A failed call changed nothing.
    let failed = json!({"status": "error", "input": file, "error": "File not found"});
    assert_eq!(change("edit", &failed), []);
}

#[test]
fn a_to_do_list_is_a_plan() {
    let todos = json!({"todos": [
        {"content": "one", "status": "completed"}, {"content": "two", "status": "cancelled"},
        {"content": "three", "status": "in_progress"}, {"content": "four", "status": "pending"}]});
    let (used, _, rest) = call("todowrite", &completed("[]", &todos, &todos));
    assert_eq!(used.kind, ToolKind::Think);
    let [AgentEvent::Plan(plan)] = rest.as_slice() else {
        panic!("{rest:?}")
    };
    let entries: Vec<_> = plan
        .entries
        .iter()
        .map(|e| (&*e.content, e.status))
        .collect();
    assert_eq!(
        entries,
        [
            ("one", PlanStatus::Completed),
            ("two", PlanStatus::Cancelled),
            ("three", PlanStatus::InProgress),
            ("four", PlanStatus::Pending)
        ]
    );
}

#[test]
fn an_exit_in_the_metadata_of_another_tool_is_no_exit_code() {
    for name in ["my-db_query", "other_query", "read"] {
        let (_, ended, _) = call(name, &completed("fine", &json!({}), &json!({"exit": 1})));
        assert_eq!(ended.is_error, Some(false), "{name}");
    }
}

#[test]
fn an_input_that_is_nested_too_deep_is_kept_as_text() {
    let deep = format!("{}1{}", "[".repeat(200), "]".repeat(200));
    let line = bash("m", "t1").replace(r#"{"command":"true"}"#, &deep);
    assert!(line.contains(&deep));
    let (events, result) = run(&[start("m"), line, finish("m", "stop")]);
    assert_eq!(result.diagnostics.unknown, 0);
    let AgentEvent::ToolUse(used) = &events[1] else {
        panic!("{events:?}")
    };
    assert_eq!(used.input, Value::String(deep));
    assert_eq!(names(&events)[2], "tool_result");
}

#[test]
fn denied_server_tool_that_is_called_is_a_permission() {
    let unavailable = |name: &str| {
        let error =
            format!("Model tried to call unavailable tool '{name}'. Available tools: bash, edit.");
        completed("no", &json!({"tool": name, "error": error}), &json!({}))
    };
    let (used, _, rest) = call("invalid", &unavailable("my-db_secret"));
    assert_eq!(used.kind, ToolKind::Mcp);
    let [AgentEvent::Permission(denied)] = rest.as_slice() else {
        panic!("{rest:?}")
    };
    assert_eq!(denied.tool_name, "my-db_secret");

    let (.., rest) = call("invalid", &unavailable("my-db_nosuch"));
    assert_eq!(rest, [], "what does not exist was not denied");
}

#[test]
fn server_tool_named_like_a_cli_tool_changes_no_file() {
    let metadata = json!({"files": [{"filePath": "/w/a", "type": "add"}]});
    let (used, _, rest) = call("apply_patch", &completed("ok", &json!({}), &metadata));
    assert_eq!(used.mcp.unwrap().server, "apply");
    assert_eq!(rest, []);
}
