//! `teamster mcp list`.

use std::fs;

use snapbox::{assert_data_eq, str};
use tempfile::TempDir;

use crate::cli::{run, teamster};

fn place(config: &str) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join(".mcp.json"), config).unwrap();
    dir
}

/// Reports about servers, without which agents cannot take them: that is the providers' business.
fn without_agents(text: &str) -> String {
    let lines = text.lines().filter(|line| !line.starts_with("    not for"));
    let lines: Vec<_> = lines.map(|line| format!("{line}\n")).collect();
    lines.concat()
}

const CONFIG: &str = r#"{
  // The servers of a team.
  "mcpServers": {
    "tracker": {
      "command": "tracker-mcp",
      "args": ["--project", "${PROJECT:-main}", "--api-key", "sk-literal", "a b"],
      "env": { "TRACKER_TOKEN": "${TRACKER_TOKEN}", "PLAIN": "sk-in-file" },
      "excludeTools": ["remove"],
    },
    "docs": {
      "type": "http",
      "url": "https://me:sk-user@${HOST}/mcp?key=sk-query",
      "headers": { "Authorization": "Bearer ${TRACKER_TOKEN}" },
    },
    "old": { "disabled": true },
  },
}"#;

#[test]
fn servers_are_listed_without_what_may_be_secret() {
    let dir = place(CONFIG);
    let ended = run(teamster(["mcp", "list"])
        .current_dir(dir.path())
        .env("TRACKER_TOKEN", "sk-env")
        .env("HOST", "example.com"))
    .quiet();
    assert_data_eq!(
        without_agents(&ended.stdout),
        str![[r#"
tracker  stdio  tracker-mcp --project main --api-key … 'a b'
    env      PLAIN, TRACKER_TOKEN
    tools    not remove
docs     http   https://${HOST}/mcp?…
    headers  Authorization

"#]]
    );
}

#[test]
fn no_secret_is_in_any_output() {
    let dir = place(CONFIG);
    for args in [
        &["mcp", "list"][..],
        &["mcp", "list", "--json"],
        &["mcp", "list", "--mcp-config", CONFIG],
        &[
            "mcp",
            "list",
            "--mcp",
            "a=TOKEN=sk-typed cmd --token sk-typed",
        ],
        &["mcp", "list", "--mcp", "a=TOKEN='sk-typed cmd"],
        &["mcp", "list", "--mcp", "sk-typed"],
        &[
            "mcp",
            "list",
            "--mcp-config",
            "{\"a\": {\"command\": \"x\", \"env\": {\"A\": 1, \"B\": \"sk-typed\"",
        ],
        &[
            "mcp",
            "list",
            "--mcp-config",
            "{\"a\": {\"url\": \"sk-typed\"}}",
        ],
        &["mcp", "list", "--mcp", "a=cmd ${TRACKER_TOKEN}"],
        &["mcp", "check", "docs"],
        &["mcp", "check", "docs", "--json"],
        &["mcp", "check", "tracker"],
    ] {
        let ended = run(teamster(args.iter().copied())
            .current_dir(dir.path())
            .env("TRACKER_TOKEN", "sk-env")
            .env("HOST", "example.com"));
        let all = format!("{}{}", ended.stdout, ended.stderr);
        assert!(!all.contains("sk-"), "{args:?}: {all}");
        assert!(!all.is_empty());
    }
}

#[test]
fn the_same_as_json() {
    let ended = run(&mut teamster([
        "mcp",
        "list",
        "--json",
        "--mcp",
        "docs=https://example.com/mcp",
        "--mcp",
        "tracker=TOKEN=x tracker-mcp --read-only",
    ]))
    .quiet();
    let report = ended.json();
    let [docs, tracker] = &**report["servers"].as_array().unwrap() else {
        panic!("{report}");
    };
    assert_eq!(docs["transport"], "http");
    assert_eq!(docs["reachedBy"], "https://example.com/mcp");
    assert_eq!(docs["source"], "--mcp");
    assert_eq!(tracker["name"], "tracker");
    assert_eq!(tracker["reachedBy"], "tracker-mcp --read-only");
    assert_eq!(tracker["env"], serde_json::json!(["TOKEN"]));
    assert!(tracker["notFor"].is_array());
}

#[test]
fn an_agent_that_cannot_take_a_server_is_named_with_the_reason() {
    // No CLI takes white space in a name.
    let ended = run(&mut teamster([
        "mcp",
        "list",
        "--mcp-config",
        r#"{"my server": {"command": "x"}}"#,
    ]));
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    for line in [
        "    not for  codex: name: for Codex it must have ",
        "    not for  opencode: name: ",
    ] {
        ended.stdout_has(line);
    }
}

#[test]
fn name_that_a_cli_would_mix_with_a_users_server_is_reported() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("opencode.json");
    let own = r#"{ "mcp": { "tracker": { "type": "local", "command": ["x"] } } }"#;
    fs::write(&file, own).unwrap();
    let ended = run(
        teamster(["mcp", "list", "--mcp=tracker=x", "--mcp=other=x"])
            .current_dir(home.path())
            .env("HOME", home.path()),
    )
    .ok();
    let (tracker, other) = ended.stdout.split_once("\nother ").unwrap();
    let reason = "opencode.json has a server of this name too, and the two would be merged";
    assert!(
        tracker.contains("    not for  opencode: ") && tracker.contains(reason),
        "{tracker}"
    );
    assert!(!other.contains(reason), "{other}");
}

#[test]
fn without_servers_it_says_how_to_name_some() {
    let empty = tempfile::tempdir().unwrap();
    for command in ["list", "check"] {
        let ended = run(teamster(["mcp", command]).current_dir(empty.path()));
        assert_eq!((ended.code, &*ended.stdout), (Some(2), ""));
        assert_data_eq!(
            ended.stderr,
            str![[r#"
error: no .mcp.json in this directory; name servers with --mcp-config FILE or --mcp NAME=COMMAND

"#]]
        );
    }
}

#[test]
fn invalid_servers_exit_with_2_and_name_the_location() {
    let dir = place("{\"tracker\": {\n\"command\": }}");
    for (args, message) in [
        (
            &["mcp", "list"][..],
            "error: .mcp.json: line 2, column 12: no JSON: unexpected close brace\n",
        ),
        (
            &[
                "mcp",
                "check",
                "--mcp-config",
                "{\"a\": {\"command\": \"x\", \"env\": {\"T\": \"${NOT_SET}\"}}}",
            ],
            "error: --mcp-config: a: env.T: the variable NOT_SET is not set\n",
        ),
        (
            &["mcp", "list", "--mcp", "a=x", "--mcp", "a=y"],
            "error: there are two MCP servers called `a`: in --mcp and in --mcp\n",
        ),
        (
            &["mcp", "check", "b", "--mcp", "a=x"],
            "error: no MCP server `b`; configured: a\n",
        ),
    ] {
        let ended = run(teamster(args.iter().copied()).current_dir(dir.path()));
        assert_eq!((ended.code, &*ended.stdout), (Some(2), ""), "{args:?}");
        assert_eq!(ended.stderr, message);
    }
}
