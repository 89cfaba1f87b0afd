//! `teamster mcp serve` as MCP clients of both protocol versions use it.

use std::process::Command;

use serde_json::{Value, json};

use crate::cli::json_rpc::Peer;
use crate::cli::serve::client::Served;
use crate::cli::{Claude, run, teamster};

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

pub(super) fn begin(peer: &mut Peer) {
    let about = peer.call(
        "initialize",
        &json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}),
    );
    assert_eq!(about["result"]["protocolVersion"], "2025-11-25", "{about}");
    peer.notify("notifications/initialized", &json!({}));
}

/// The data of a tool's answer.
pub(super) fn tool(peer: &mut Peer, name: &str, arguments: &Value) -> Value {
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
    let ended = run(claude.run(["x"]).arg("--quiet")).ok();
    ended.stdout.trim_end().to_owned()
}

#[test]
fn forbidden_settings_are_refused_with_the_next_step() {
    let claude = Claude::plays("text", 0);
    let mut peer = client(&claude, ["--max-budget-usd", "0.000001"]);
    for (arguments, expected) in [
        (
            json!({"agent": "claude", "prompt": "x", "permission": "accept-edits"}),
            "permission: this server allows no more than `read-only`; the user can start it with more (`teamster mcp \
             serve --permission`)",
        ),
        (
            json!({"agent": "claude", "prompt": "x", "workingDirectory": "/no/such"}),
            "workingDirectory: no such directory: /no/such",
        ),
    ] {
        assert_eq!(problem(&mut peer, "run", &arguments), expected);
    }
    // The first run spends all that there is. Nothing was allowed that changes anything.
    tool(&mut peer, "run", &json!({"agent": "claude", "prompt": "x"}));
    let args = claude.report().argv.join(" ");
    assert!(args.contains("plan") || args.contains("tools"), "{args}");
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
    let advice = "; `teamster mcp serve --max-depth` sets the limit";
    assert!(refused.ends_with(advice), "{refused}");
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
fn mcp_check_speaks_the_newest_version_and_the_older_ones() {
    let claude = Claude::plays("text", 0);
    let program = command(&claude, []);
    let program = program.get_program().to_str().unwrap();
    let mut check = teamster(["mcp", "check", "--json"]);
    check
        .args(["--mcp", &format!("new={program} mcp serve")])
        .args(["--mcp", &format!("old={program} fake-mcp")])
        .env("XDG_STATE_HOME", claude.path("state"));
    let ended = run(&mut check).ok();
    let report = ended.json();
    let servers = report["servers"].as_array().unwrap();
    let of = |name: &str| servers.iter().find(|it| it["name"] == name).unwrap();
    assert_eq!(of("new")["protocol"], "2026-07-28", "{report}");
    assert_eq!(of("new")["tools"].as_array().unwrap().len(), 8);
    assert_eq!(of("old")["protocol"], "2025-11-25", "{report}");
}

#[test]
fn with_remote_the_agents_are_those_of_the_server() {
    let claude = Claude::plays("text", 0);
    let answer = recorded_answer(&claude);
    let served = Served::start(&[], &claude.path("state"), |command| {
        command.env("TEAMSTER_CLAUDE_BIN", claude.path("claude"));
    });
    let url = format!("http://{}", served.address);
    let mut command = teamster(["--remote", &url, "mcp", "serve", "--max-depth", "2"]);
    command
        .env("TEAMSTER_REMOTE_TOKEN", &served.token)
        .env("XDG_STATE_HOME", claude.path("elsewhere"));
    let mut peer = Peer::start(&mut command);
    begin(&mut peer);
    let agents = tool(&mut peer, "list_agents", &json!({}));
    let agents = agents["agents"].as_array().unwrap();
    let agent = agents.iter().find(|it| it["agent"] == "claude").unwrap();
    let modes = agent["permissions"].as_array().unwrap();
    assert!(modes.contains(&json!("read-only")), "{agent}");
    let arguments = json!({"agent": "claude", "prompt": "x"});
    let report = tool(&mut peer, "run", &arguments);
    assert_eq!(report["status"], "completed", "{report}");
    assert_eq!(report["text"].as_str().map(str::trim_end), Some(&*answer));
    // The agent there knows its depth here.
    let variables = claude.report().env;
    for (name, value) in [
        ("TEAMSTER_AGENT_DEPTH", "1"),
        ("TEAMSTER_AGENT_MAX_DEPTH", "2"),
    ] {
        assert_eq!(variables.get(name).map(String::as_str), Some(value));
    }
    let id = report["runId"].as_str().unwrap();
    let page = tool(&mut peer, "events", &json!({"runId": id}));
    assert_eq!(page["ended"], true, "{page}");
    let wrong = json!({"agent": "clod", "prompt": "x"});
    let wrong = problem(&mut peer, "run", &wrong);
    assert!(wrong.starts_with("agent: no agent \"clod\"; "), "{wrong}");
    assert_eq!(peer.end(), Some(0));
    let there = served.get("/v1/runs").json();
    assert_eq!(there["runs"][0]["runId"], id, "{there}");
    assert!(!claude.path("elsewhere").join("teamster/runs").exists());
    served.end();
}
