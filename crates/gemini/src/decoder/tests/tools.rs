//! Tool calls and the known facts about them.

use serde_json::{Value, json};
use teamster_core::provider::Exit;
use teamster_core::{
    AgentEvent, ChangeKind, ExecuteParams, PermissionMode, PlanStatus, RunStatus, ToolKind,
    ToolResult,
};
use teamster_testkit::events::payloads;

use super::{assert_types, call, delta, failed, init, names, returned, run, run_with, success};

pub(super) fn results(events: &[AgentEvent]) -> Vec<&ToolResult> {
    payloads(events).collect()
}

fn shell(output: &Value) -> Option<bool> {
    let command = json!({"command": "x"});
    let result = json!({"status": "success", "output": output});
    let (events, _) = run(&[
        init(),
        call("a", "run_shell_command", &command),
        returned("a", &result),
        success(),
    ]);
    results(&events)[0].is_error
}

#[test]
fn a_failed_command_is_a_success_to_the_cli() {
    assert_eq!(shell(&json!("some output")), None);
    assert_eq!(shell(&json!("it exited with code: 3")), None);
    assert_eq!(
        shell(&json!(
            "Command moved to background (PID: 30115). Output hidden. Press Ctrl+B to view."
        )),
        None
    );
}

#[test]
fn a_command_without_output_reports_how_it_ended() {
    assert_eq!(shell(&json!("")), Some(false));
    assert_eq!(shell(&json!("Command exited with code: 3")), Some(true));
    assert_eq!(shell(&json!("Command terminated by signal: 9")), Some(true));
}

#[test]
fn output_of_a_command_does_not_decide_how_it_ended() {
    for printed in [
        "Command failed: seen in a log\nmore",
        "Command failed: seen in a log",
        "Command failed: spawn x\nmore",
        "Command exited with code: 3 was printed by the script",
        "Command exited with code: 3\nand more",
        "Command exited with code: ",
        "Command exited with code: 0",
        "Command terminated by signal: of the times",
        "Command terminated by signal: 9\n9",
        "Command cancelled by user. Really.",
        "Command was automatically cancelled because it exceeded the timeout of patience",
    ] {
        assert_eq!(shell(&json!(printed)), None, "{printed}");
    }
    for output in [
        "Command terminated by signal: SIGTERM",
        "Command exited with code: -1",
        "Command failed: spawn /bin/bash ENOENT",
        "Command cancelled by user.",
        "Command cancelled by user.\n\nOutput before cancellation:\nx",
        "Command was automatically cancelled because it exceeded the timeout of 5.0 minutes without \
         output.",
        "Command was automatically cancelled because it exceeded the timeout of 0.1 minutes without \
         output.\n\nOutput before cancellation:\nx\ny",
        "Command was automatically cancelled because it exceeded the timeout of 5.0 minutes without \
         output. Below is the output before it was cancelled:\nx",
        "Command was cancelled by user before it could complete. There was no output before it was \
         cancelled.",
    ] {
        assert_eq!(shell(&json!(output)), Some(true), "{output}");
    }
}

#[test]
fn with_debug_every_command_reports_how_it_ended() {
    for (end, failed) in [
        ("Process Group PGID: 30144", false),
        ("Background PIDs: 30154\nProcess Group PGID: 30150", false),
        ("Exit Code: 127\nProcess Group PGID: 30148", true),
        (
            "Exit Code: 1\nBackground PIDs: 3, 4\nProcess Group PGID: 2",
            true,
        ),
        ("Signal: 9\nProcess Group PGID: 30146", true),
    ] {
        assert_eq!(
            shell(&json!(format!("Output: a\nb\n{end}"))),
            Some(failed),
            "{end}"
        );
    }
    // Lines of the command itself.
    for (printed, failed) in [
        ("Exit Code: three\nProcess Group PGID: 2", Some(false)),
        ("Exit Code: 0\nProcess Group PGID: 2", Some(false)),
        ("Signal: lost\nProcess Group PGID: 2", Some(false)),
        ("Error: x\nProcess Group PGID: 2", None),
        ("Exit Code: 3\nProcess Group PGID: none", None),
        ("Exit Code: 3", None),
    ] {
        assert_eq!(shell(&json!(format!("Output: a\n{printed}"))), failed);
    }
}

#[test]
fn a_result_without_output_is_one_all_the_same() {
    let (events, result) = run(&[
        init(),
        call("a", "list_directory", &json!({"dir_path": "."})),
        returned("a", &json!({"status": "success"})),
        success(),
    ]);
    assert_eq!(results(&events)[0].output, "");
    assert_eq!(results(&events)[0].is_error, Some(false));
    assert!(result.open_tool_ids.is_empty());
}

#[test]
fn a_failure_shows_the_model_s_view() {
    let error = |output: &str, message: &str| {
        let result = json!({"status": "error", "output": output,
            "error": {"type": "mcp_tool_error", "message": message}});
        let (events, _) = run(&[
            init(),
            call("a", "mcp_tiny_fail", &json!({})),
            returned("a", &result),
            success(),
        ]);
        let [result] = results(&events)[..] else {
            panic!("{events:?}");
        };
        assert_eq!(result.is_error, Some(true));
        result.output.clone()
    };
    assert_eq!(
        error("File not found.", "File not found: /x"),
        "File not found: /x"
    );
    assert_eq!(error("same", "same"), "same");
    assert_eq!(error("", "only reported"), "only reported");
    assert_eq!(
        error("Error: MCP tool 'fail' reported an error.", "output: no"),
        "Error: MCP tool 'fail' reported an error.\noutput: no"
    );
}

#[test]
fn an_error_makes_a_result_a_failure_for_any_status() {
    let odd = json!({"status": "success", "error": {"type": "unknown", "message": "m"}});
    let (events, _) = run(&[
        init(),
        call("a", "read_file", &json!({})),
        returned("a", &odd),
        success(),
    ]);
    assert_eq!(results(&events)[0].is_error, Some(true));
}

#[test]
fn ids_are_unique_even_if_the_clis_are_not() {
    let (events, result) = run(&[
        init(),
        call("a", "read_file", &json!({})),
        call("a", "glob", &json!({})),
        returned("a", &json!({"status": "success", "output": "first"})),
        returned("a", &json!({"status": "success", "output": "second"})),
        call("a", "glob", &json!({})),
        success(),
    ]);
    let ids: Vec<_> = results(&events)
        .iter()
        .map(|r| (&*r.tool_id, r.output.as_str()))
        .collect();
    assert_eq!(ids, [("a", "first"), ("a#2", "second")]);
    assert_eq!(result.open_tool_ids, ["a#3".into()]);
    assert_eq!(result.diagnostics.unknown, 0);
}

#[test]
fn a_call_without_an_id_is_a_call() {
    let use_line = super::line("tool_use", &json!({"tool_name": "glob"}));
    let (events, result) = run(&[init(), use_line, success()]);
    assert_types(&events, "session tool_use turn_end done");
    assert_eq!(result.open_tool_ids, ["glob".into()]);
}

#[test]
fn a_result_without_its_call_is_unknown() {
    let (events, result) = run(&[
        init(),
        returned("lost", &json!({"status": "success"})),
        success(),
    ]);
    assert_types(&events, "session unknown turn_end done");
    assert_eq!(result.diagnostics.unknown, 1);
}

fn denials(params: &ExecuteParams, tool: &str, kind: &str, message: &str) -> usize {
    let lines = [
        init(),
        call("a", tool, &json!({})),
        failed("a", kind, message),
        delta("so be it"),
        success(),
    ];
    let (events, result) = run_with(params, &lines, Exit::new(0));
    let permissions = names(&events)
        .iter()
        .filter(|n| **n == "permission")
        .count();
    assert_eq!(permissions, result.permission_denials.len());
    if let [denial] = result.permission_denials.as_slice() {
        assert_eq!(denial.tool_name, tool);
        assert_eq!(denial.tool_id.as_deref(), Some("a"));
        assert_eq!(denial.reason.as_deref(), Some(message));
    }
    // Nothing was done but the denied call.
    let expected = match permissions {
        0 => RunStatus::Completed,
        _ => RunStatus::Incomplete,
    };
    assert_eq!(result.status, expected);
    permissions
}

#[test]
fn denials_are_distinguished_from_failures() {
    let params = ExecuteParams::new("hi");
    let denials = |tool, kind, message| denials(&params, tool, kind, message);
    let shell = "run_shell_command";
    assert_eq!(
        denials(
            shell,
            "policy_violation",
            "Tool execution denied by policy."
        ),
        1
    );
    let not_found = "Tool \"run_shell_command\" not found. Did you mean one of: \"glob\"?";
    assert_eq!(denials(shell, "tool_not_registered", not_found), 1);
    let confirm = "Tool execution for \"Shell\" requires user confirmation, which is not supported \
                   in non-interactive mode.";
    assert_eq!(denials(shell, "unhandled_exception", confirm), 1);
    assert_eq!(
        denials("mcp_tiny_echo", "tool_not_registered", "not found"),
        1
    );
    assert_eq!(
        denials("no_such_tool", "tool_not_registered", "not found"),
        0
    );
    assert_eq!(denials(shell, "unhandled_exception", "it crashed"), 0);
    assert_eq!(denials("read_file", "file_not_found", "File not found."), 0);
    assert_eq!(denials("read_file", "permission_denied", "EACCES"), 0);
}

#[test]
fn a_tool_that_the_cli_does_not_have_is_not_denied_in_any_mode() {
    for name in [
        "ask_user",
        "save_memory",
        "read_many_files",
        "search_file_content",
        "codebase_investigator",
        "cli_help",
        "complete_task",
        "get_internal_docs",
        "tracker_create_task",
        "no_such_tool",
    ] {
        for mode in [
            PermissionMode::Default,
            PermissionMode::ReadOnly,
            PermissionMode::AcceptEdits,
            PermissionMode::Bypass,
        ] {
            let mut params = ExecuteParams::new("hi");
            params.permission = mode;
            let denials = denials(&params, name, "tool_not_registered", "not found");
            assert_eq!(denials, 0, "{name} {mode:?}");
        }
    }
}

#[test]
fn with_everything_allowed_a_missing_tool_is_not_denied() {
    let mut params = ExecuteParams::new("hi");
    params.permission = PermissionMode::Bypass;
    let hidden = |params: &ExecuteParams| {
        denials(
            params,
            "run_shell_command",
            "tool_not_registered",
            "not found",
        )
    };
    assert_eq!(hidden(&params), 0);
    let violation = "Tool execution denied by policy.";
    assert_eq!(denials(&params, "glob", "policy_violation", violation), 1);
    // The caller's own rules may hide it.
    for rules in ["--policy=/tmp/p.toml", "--admin-policy=/tmp/p.toml"] {
        params.extra_args = vec![rules.into()];
        assert_eq!(hidden(&params), 1);
    }
    // The mode may be set in another way.
    let mut params = ExecuteParams::new("hi");
    params.extra_args = vec!["--yolo".into()];
    assert_eq!(hidden(&params), 0);
}

#[test]
fn missing_mcp_tool_in_bypass_mode_is_not_denied() {
    let mut params = ExecuteParams::new("hi");
    params.permission = PermissionMode::Bypass;
    assert_eq!(
        denials(&params, "mcp_x_y", "tool_not_registered", "not found"),
        0
    );
    params.denied_tools = vec!["mcp_x_y".into()];
    assert_eq!(
        denials(&params, "mcp_x_y", "tool_not_registered", "not found"),
        1
    );
}

#[test]
fn files_are_changed_only_by_calls_that_went_well() {
    let change = |tool: &str, parameters: Value, result: Value| {
        let (events, _) = run(&[
            init(),
            call("a", tool, &parameters),
            returned("a", &result),
            success(),
        ]);
        events.into_iter().find_map(|event| match event {
            AgentEvent::FileChange(change) => Some((change.path, change.change)),
            _ => None,
        })
    };
    let ok = json!({"status": "success"});
    let path = "/tmp/a.txt".to_owned();
    let write = json!({"file_path": path, "content": "x"});
    assert_eq!(
        change("write_file", write.clone(), ok.clone()),
        Some((path.clone(), ChangeKind::Update))
    );
    assert_eq!(
        change("write_file", write, json!({"status": "error"})),
        None
    );
    let edit = |old| json!({"file_path": path, "old_string": old, "new_string": "b"});
    assert_eq!(
        change("replace", edit("a"), ok.clone()),
        Some((path.clone(), ChangeKind::Update))
    );
    assert_eq!(
        change("replace", edit(""), ok.clone()),
        Some((path, ChangeKind::Add))
    );
    assert_eq!(change("replace", json!({"path": 1}), ok), None);
}

#[test]
fn a_plan_is_the_list_of_todos() {
    let todos = json!({"todos": [
        {"description": "one", "status": "completed"},
        {"description": "two", "status": "in_progress"},
        {"description": "three", "status": "pending"},
        {"description": "four", "status": "blocked"},
        {"description": "five", "status": "cancelled"},
        {"status": "pending"},
    ]});
    let (events, _) = run(&[
        init(),
        call("a", "write_todos", &todos),
        returned("a", &json!({"status": "success"})),
        success(),
    ]);
    assert_types(&events, "session tool_use tool_result plan turn_end done");
    let AgentEvent::Plan(plan) = &events[3] else {
        panic!("{events:?}");
    };
    let entries: Vec<_> = plan
        .entries
        .iter()
        .map(|entry| (entry.content.as_str(), entry.status))
        .collect();
    assert_eq!(
        entries,
        [
            ("one", PlanStatus::Completed),
            ("two", PlanStatus::InProgress),
            ("three", PlanStatus::Pending),
            ("four", PlanStatus::Pending),
            ("five", PlanStatus::Cancelled),
        ]
    );
}

#[test]
fn kinds_and_mcp_servers() {
    let used = |name: &str| {
        let (events, _) = run(&[init(), call("a", name, &json!({})), success()]);
        let AgentEvent::ToolUse(used) = events[1].clone() else {
            panic!("{events:?}");
        };
        (used.kind, used.mcp.map(|mcp| (mcp.server, mcp.tool)))
    };
    for (name, kind) in [
        ("read_file", ToolKind::Read),
        ("replace", ToolKind::Edit),
        ("run_shell_command", ToolKind::Execute),
        ("grep_search", ToolKind::Search),
        ("web_fetch", ToolKind::Fetch),
        ("invoke_agent", ToolKind::Task),
        ("write_todos", ToolKind::Think),
        ("save_memory", ToolKind::Edit),
        ("tracker_add_dependency", ToolKind::Edit),
        ("tracker_list_tasks", ToolKind::Think),
        ("discovered_tool_x", ToolKind::Other),
        ("mcp_lonely", ToolKind::Mcp),
    ] {
        assert_eq!(used(name), (kind, None), "{name}");
    }
    let mcp = |server: &str, tool: &str| (ToolKind::Mcp, Some((server.into(), tool.into())));
    assert_eq!(used("mcp_tiny_echo"), mcp("tiny", "echo"));
    // The end of the server's name is ambiguous.
    assert_eq!(used("mcp_my_srv.x_echo"), mcp("my", "srv.x_echo"));
}
