//! `teamster mcp serve` as MCP clients of both protocol versions use it.

use std::process::Command;

use serde_json::{Value, json};
use teamster_testkit::fake_agent::Script;

use crate::cli::json_rpc::Peer;
use crate::cli::{Claude, recording, run, teamster};

fn command<'a>(claude: &Claude, args: impl IntoIterator<Item = &'a str>) -> Command {
    let mut command = teamster(["mcp", "serve"]);
    command
        .args(args)
        .env("TEAMSTER_CLAUDE_BIN", claude.path("claude"))
        .env("XDG_STATE_HOME", claude.path("state"))
        .current_dir(claude.path(""));
    command
}

/// A client of before 2026.
fn client<'a>(claude: &Claude, args: impl IntoIterator<Item = &'a str>) -> Peer {
    let mut peer = Peer::start(&mut command(claude, args));
    begin(&mut peer);
    peer
}

fn begin(peer: &mut Peer) {
    let about = peer.call(
        "initialize",
        &json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}),
    );
    assert_eq!(about["result"]["protocolVersion"], "2025-11-25", "{about}");
    peer.notify("notifications/initialized", &json!({}));
}

/// The data of a tool's answer.
fn tool(peer: &mut Peer, name: &str, arguments: &Value) -> Value {
    let answer = peer.call("tools/call", &json!({"name": name, "arguments": arguments}));
    let result = answer["result"].clone();
    assert!(result["structuredContent"].is_object(), "{answer}");
    result["structuredContent"].clone()
}

fn problem(peer: &mut Peer, name: &str, arguments: &Value) -> String {
    let answer = peer.call("tools/call", &json!({"name": name, "arguments": arguments}));
    assert_eq!(answer["result"]["isError"], true, "{answer}");
    let data = &answer["result"]["structuredContent"]["error"]["message"];
    let text = &answer["result"]["content"][0]["text"];
    assert_eq!(data, text, "{answer}");
    data.as_str().unwrap().to_owned()
}

/// The answer of the recorded run.
fn recorded_answer(claude: &Claude) -> String {
    let ended = run(claude.run(["x"]).arg("--quiet"));
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    ended.stdout.trim_end().to_owned()
}

#[test]
fn an_agent_s_answer_is_a_tool_s_result_as_data_and_as_text() {
    let claude = Claude::plays("text", 0);
    let answer = recorded_answer(&claude);
    let mut peer = client(&claude, []);
    let tools = peer.call("tools/list", &json!({}));
    let tools = tools["result"]["tools"].as_array().unwrap();
    let names: Vec<_> = tools
        .iter()
        .map(|tool| tool["name"].as_str().unwrap())
        .collect();
    assert_eq!(
        names,
        [
            "run",
            "start",
            "wait",
            "events",
            "answer",
            "cancel",
            "list_agents",
            "usage"
        ]
    );
    assert_eq!(tools[0]["annotations"]["readOnlyHint"], true);
    let called = peer.call(
        "tools/call",
        &json!({"name": "run", "arguments": {"agent": "claude", "prompt": "x"}, "_meta": {"progressToken": "p"}}),
    );
    let result = &called["result"];
    assert_eq!(
        result["content"][0]["text"].as_str().map(str::trim_end),
        Some(&*answer),
        "{called}"
    );
    let report = &result["structuredContent"];
    assert_eq!(
        (&report["state"], &report["status"]),
        (&json!("ended"), &json!("completed"))
    );
    assert_eq!(report["text"].as_str().map(str::trim_end), Some(&*answer));
    let progress = peer
        .seen
        .iter()
        .find(|it| it["method"] == "notifications/progress");
    assert_eq!(progress.unwrap()["params"]["progressToken"], "p");
    // Nothing was allowed that changes anything.
    let args = claude.report().argv.join(" ");
    assert!(
        args.contains("plan") || args.contains("disallowed") || args.contains("tools"),
        "{args}"
    );
    let variables = claude.report().env;
    assert_eq!(
        variables.get("TEAMSTER_AGENT_DEPTH").map(String::as_str),
        Some("1")
    );
    let usage = tool(&mut peer, "usage", &json!({}));
    assert_eq!(usage["server"]["runs"], 1);
    assert_eq!(peer.end(), Some(0));
}

#[test]
fn a_run_is_started_waited_for_and_read() {
    let claude = Claude::plays("text", 0);
    let mut peer = client(&claude, []);
    let started = tool(
        &mut peer,
        "start",
        &json!({"agent": "claude", "prompt": "x"}),
    );
    let id = started["runId"].clone();
    let waited = loop {
        let waited = tool(
            &mut peer,
            "wait",
            &json!({"runIds": [id], "timeoutMs": 20_000}),
        );
        if waited["runs"][0]["state"] == "ended" {
            break waited;
        }
    };
    assert_eq!(waited["runs"][0]["status"], "completed");
    let page = tool(&mut peer, "events", &json!({"runId": id, "limit": 1}));
    assert_eq!(page["events"].as_array().unwrap().len(), 1, "{page}");
    let rest = tool(
        &mut peer,
        "events",
        &json!({"runId": id, "after": page["next"], "limit": 1000}),
    );
    assert_eq!(rest["ended"], true);
    let unknown = problem(&mut peer, "events", &json!({"runId": "0199"}));
    assert!(
        unknown.contains("was not started by this server"),
        "{unknown}"
    );
}

#[test]
fn what_is_not_allowed_is_refused_with_what_to_do() {
    let claude = Claude::plays("text", 0);
    let mut peer = client(&claude, ["--max-budget-usd", "0.000001"]);
    let more = problem(
        &mut peer,
        "run",
        &json!({"agent": "claude", "prompt": "x", "permission": "accept-edits"}),
    );
    assert!(
        more.contains("no more than `read-only`") && more.contains("--permission"),
        "{more}"
    );
    for (arguments, words) in [
        (
            json!({"agent": "cmd:rm -rf x", "prompt": "x"}),
            "no agent `",
        ),
        (
            json!({"agent": "claude", "prompt": "x", "workingDirectory": "/no/such"}),
            "workingDirectory",
        ),
        (json!({"agent": "claude"}), "missing field `prompt`"),
        (
            json!({"agent": "claude", "prompt": "x", "cwd": "/"}),
            "unknown field `cwd`",
        ),
    ] {
        let refused = problem(&mut peer, "run", &arguments);
        assert!(refused.contains(words), "{refused}");
    }
    // The first run spends all that there is.
    tool(&mut peer, "run", &json!({"agent": "claude", "prompt": "x"}));
    let spent = problem(&mut peer, "run", &json!({"agent": "claude", "prompt": "x"}));
    assert!(spent.contains("budget of this server is spent"), "{spent}");
}

#[test]
fn agents_that_call_agents_end() {
    let claude = Claude::plays("text", 0);
    let arguments = json!({"agent": "claude", "prompt": "x"});
    let mut inner = command(&claude, ["--max-depth", "9"]);
    inner
        .env("TEAMSTER_AGENT_DEPTH", "1")
        .env("TEAMSTER_AGENT_MAX_DEPTH", "1");
    let mut peer = Peer::start(&mut inner);
    begin(&mut peer);
    let refused = problem(&mut peer, "run", &arguments);
    assert!(refused.contains("depth 1 of at most 1"), "{refused}");
    drop(peer);
    if !cfg!(target_os = "linux") {
        return;
    }
    // A CLI that clears the environment of its servers.
    let cleared = command(&claude, []);
    let mut outer = Command::new("/bin/sh");
    let program = cleared.get_program().to_str().unwrap();
    let line = format!(
        "env -u TEAMSTER_AGENT_DEPTH -u TEAMSTER_AGENT_MAX_DEPTH '{program}' mcp serve; exit $?"
    );
    outer
        .args(["-c", &line])
        .env_clear()
        .current_dir(claude.path(""));
    for (name, value) in cleared.get_envs() {
        outer.env(name, value.unwrap());
    }
    outer
        .env("TEAMSTER_AGENT_DEPTH", "1")
        .env("TEAMSTER_AGENT_MAX_DEPTH", "1");
    let mut peer = Peer::start(&mut outer);
    begin(&mut peer);
    let refused = problem(&mut peer, "run", &arguments);
    assert!(refused.contains("depth 1 of at most 1"), "{refused}");
}

#[test]
fn when_the_client_leaves_its_runs_are_stopped() {
    let claude = Claude::new(&Script::new().play(recording("text").last(6)).forever());
    let mut peer = client(&claude, []);
    let started = tool(
        &mut peer,
        "start",
        &json!({"agent": "claude", "prompt": "x"}),
    );
    let id = started["runId"].as_str().unwrap().to_owned();
    claude.report();
    assert_eq!(peer.end(), Some(0));
    let mut wait = teamster(["wait", &id]);
    let ended = run(wait.env("XDG_STATE_HOME", claude.path("state")));
    assert_eq!(ended.code, Some(130), "{}", ended.stderr);
}

#[test]
fn runs_that_start_at_the_same_time_share_a_limit() {
    let claude = Claude::new(&Script::new().play(recording("text").last(6)).forever());
    let mut peer = client(&claude, ["--max-runs", "1"]);
    let call = json!({"name": "start", "arguments": {"agent": "claude", "prompt": "x"}});
    let calls: Vec<_> = (0..4).map(|_| peer.send("tools/call", &call)).collect();
    let mut refused = 0;
    for _ in &calls {
        let answer = peer.wait("an answer", |it| calls.iter().any(|id| it["id"] == *id));
        refused += u32::from(answer["result"]["isError"] == true);
    }
    assert_eq!(refused, 3);
}

#[test]
fn a_run_is_cancelled_by_its_tool_and_by_its_call() {
    let claude = Claude::new(&Script::new().play(recording("text").last(6)).forever());
    let mut peer = client(&claude, []);
    let started = tool(
        &mut peer,
        "start",
        &json!({"agent": "claude", "prompt": "x"}),
    );
    claude.report();
    tool(&mut peer, "cancel", &json!({"runId": started["runId"]}));
    let waited = tool(&mut peer, "wait", &json!({"runIds": [started["runId"]]}));
    assert_eq!(waited["runs"][0]["status"], "aborted", "{waited}");

    let call = json!({"name": "run", "arguments": {"agent": "claude", "prompt": "x"}});
    let id = peer.send("tools/call", &call);
    let is_running = |peer: &mut Peer| tool(peer, "usage", &json!({}))["server"]["running"] == 1;
    while !is_running(&mut peer) {}
    peer.notify("notifications/cancelled", &json!({"requestId": id}));
    while is_running(&mut peer) {}
    assert_eq!(peer.end(), Some(0));
}

/// The metadata of each request of a client of the version 2026-07-28.
fn meta(capabilities: &Value) -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": capabilities,
    })
}

#[test]
fn a_stateless_client_gets_a_task_for_a_run() {
    let claude = Claude::plays("text", 0);
    let mut peer = Peer::start(&mut command(&claude, []));
    let plain = meta(&json!({}));
    let about = peer.call("server/discover", &json!({"_meta": plain}));
    let versions = about["result"]["supportedVersions"].to_string();
    assert!(versions.contains("2026-07-28"), "{about}");
    // Without the extension, the answer is the call's.
    let call =
        json!({"name": "run", "arguments": {"agent": "claude", "prompt": "x"}, "_meta": plain});
    let answer = peer.call("tools/call", &call);
    assert_eq!(
        answer["result"]["structuredContent"]["status"], "completed",
        "{answer}"
    );

    let tasks = meta(&json!({"extensions": {"io.modelcontextprotocol/tasks": {}}}));
    let call =
        json!({"name": "run", "arguments": {"agent": "claude", "prompt": "x"}, "_meta": tasks});
    let task = peer.call("tools/call", &call);
    assert_eq!(task["result"]["resultType"], "task", "{task}");
    let id = task["result"]["taskId"].clone();
    let done = loop {
        let got = peer.call("tasks/get", &json!({"taskId": id, "_meta": tasks}));
        assert_eq!(got["result"]["createdAt"], task["result"]["createdAt"]);
        if got["result"]["status"] != "working" {
            break got;
        }
    };
    assert_eq!(done["result"]["status"], "completed", "{done}");
    let report = &done["result"]["result"]["structuredContent"];
    assert_eq!(
        (&report["runId"], &report["status"]),
        (&id, &json!("completed"))
    );
}

#[test]
fn a_client_that_began_with_initialize_gets_no_task() {
    let claude = Claude::plays("text", 0);
    let mut peer = Peer::start(&mut command(&claude, []));
    let extensions = json!({"io.modelcontextprotocol/tasks": {}});
    let about = peer.call(
        "initialize",
        &json!({
            "protocolVersion": "2025-11-25",
            "capabilities": {"extensions": extensions},
            "clientInfo": {"name": "test", "version": "1"},
        }),
    );
    let capabilities = &about["result"]["capabilities"];
    assert!(capabilities["extensions"].is_null(), "{about}");
    assert!(capabilities["tools"].is_object(), "{about}");
    peer.notify("notifications/initialized", &json!({}));
    let report = tool(&mut peer, "run", &json!({"agent": "claude", "prompt": "x"}));
    assert_eq!(report["status"], "completed", "{report}");
    let task = peer.call("tasks/get", &json!({"taskId": report["runId"]}));
    assert_eq!(task["error"]["code"], -32601, "{task}");
}

#[test]
fn a_run_that_is_silent_sends_progress() {
    let claude = Claude::new(&Script::new().play(recording("text").last(6)).forever());
    let mut peer = client(&claude, []);
    let id = peer.send(
        "tools/call",
        &json!({"name": "run", "arguments": {"agent": "claude", "prompt": "x"}, "_meta": {"progressToken": "p"}}),
    );
    // The CLI prints nothing more.
    let silent = peer.wait("progress of a silent run", |it| {
        let words = it["params"]["message"].as_str().unwrap_or_default();
        it["method"] == "notifications/progress" && words.ends_with(" s)")
    });
    let words = silent["params"]["message"].as_str().unwrap();
    assert!(words.starts_with("claude"), "{words}");
    peer.notify("notifications/cancelled", &json!({"requestId": id}));
    assert_eq!(peer.end(), Some(0));
}

#[test]
fn mcp_check_speaks_the_newest_version_and_the_older_ones() {
    let claude = Claude::plays("text", 0);
    let program = command(&claude, []);
    let program = program.get_program().to_str().unwrap();
    let mut check = teamster(["mcp", "check", "--json"]);
    check
        .args(["--mcp", &format!("new={program} mcp serve")])
        .args(["--mcp", &format!("old={program} fake-mcp")])
        .env("XDG_STATE_HOME", claude.path("state"));
    let ended = run(&mut check);
    assert_eq!(ended.code, Some(0), "{}{}", ended.stdout, ended.stderr);
    let report: Value = serde_json::from_str(&ended.stdout).unwrap();
    let servers = report["servers"].as_array().unwrap();
    let of = |name: &str| servers.iter().find(|it| it["name"] == name).unwrap();
    assert_eq!(of("new")["protocol"], "2026-07-28", "{report}");
    assert_eq!(of("new")["tools"].as_array().unwrap().len(), 8);
    assert_eq!(of("old")["protocol"], "2025-11-25", "{report}");
}
