use std::time::Duration;

use serde_json::{Value, json};
use teamster_core::provider::PathLocation;
use teamster_core::{ErrorCode, Image, McpTools, SessionOptions};

use super::*;

fn args(launch: &Launch) -> Vec<&str> {
    launch
        .args
        .iter()
        .map(|arg| arg.to_str().unwrap())
        .collect()
}

fn launched(params: &ExecuteParams) -> Launch {
    launch(params).unwrap()
}

fn refused(params: &ExecuteParams) -> String {
    let error = launch(params).unwrap_err();
    assert_eq!(error.code, ErrorCode::InvalidParams);
    error.message
}

#[test]
fn a_prompt_is_never_a_file_or_a_command() {
    for (prompt, word) in [
        ("hi", "hi"),
        ("--help", "--help"),
        ("@/etc/passwd", " @/etc/passwd"),
        ("/skill:x", " /skill:x"),
        ("--offline", " --offline"),
    ] {
        let launch = launched(&ExecuteParams::new(prompt));
        assert_eq!(args(&launch), ["--mode", "json", "--", word]);
        assert_eq!(launch.stdin, Stdin::Closed);
    }
    let commands = ExecuteParams::new("/skill:x").slash_commands(true);
    assert_eq!(args(&launched(&commands)).last(), Some(&"/skill:x"));
}

#[test]
fn a_prompt_on_stdin_is_guarded_too() {
    let stdin = |params: ExecuteParams| {
        let launch = launched(&params);
        assert_eq!(args(&launch).iter().filter(|arg| **arg == "--").count(), 0);
        let Stdin::Bytes(bytes) = launch.stdin else {
            panic!("{:?}", launch.stdin);
        };
        String::from_utf8(bytes).unwrap()
    };
    // No argument can have the NUL byte.
    assert_eq!(stdin(ExecuteParams::new("@x\0")), "@x\0");
    assert_eq!(stdin(ExecuteParams::new("/x\0")), "\u{200b}/x\0");
    let command = ExecuteParams::new("/x\0").slash_commands(true);
    assert_eq!(stdin(command), "/x\0");
    // The first line answers a question of the CLI.
    assert_eq!(stdin(ExecuteParams::new("yes\0").resume("a-1")), "\nyes\0");
}

#[test]
fn modes_are_lists_of_tools() {
    let tools = |params: ExecuteParams| {
        let launch = launched(&params);
        let args = args(&launch);
        let at = args.iter().position(|arg| *arg == "--tools")?;
        Some(args[at + 1].to_owned())
    };
    let with = |mode| ExecuteParams::new("x").permission(mode);
    assert_eq!(tools(with(PermissionMode::Default)), None);
    assert_eq!(tools(with(PermissionMode::Bypass)), None);
    assert_eq!(
        tools(with(PermissionMode::ReadOnly)).as_deref(),
        Some("read,grep,find,ls,mcp__*")
    );
    assert_eq!(
        tools(with(PermissionMode::AcceptEdits)).as_deref(),
        Some("read,grep,find,ls,edit,write,mcp__*")
    );
    assert_eq!(
        tools(with(PermissionMode::ReadOnly).allowed_tools(["ls", "weather"])).as_deref(),
        Some("read,grep,find,ls,weather,mcp__*")
    );
    assert_eq!(
        tools(with(PermissionMode::Default).allowed_tools(["grep"])).as_deref(),
        Some("read,bash,edit,write,grep,mcp__*")
    );
}

#[test]
fn a_tool_is_withheld_by_a_mode_a_denial_or_an_argument() {
    let has = |params: ExecuteParams, tool: &str| Withheld::of(&params).has(tool);
    let params = || ExecuteParams::new("x");
    assert!(has(params().permission(PermissionMode::ReadOnly), "bash"));
    assert!(!has(params().permission(PermissionMode::ReadOnly), "read"));
    assert!(!has(
        params().permission(PermissionMode::ReadOnly),
        "made_up"
    ));
    assert!(has(params().denied_tools(["weather"]), "weather"));
    assert!(!has(params(), "bash"));
    assert!(has(params().extra_args(["--tools", "read, ls"]), "bash"));
    assert!(has(params().extra_args(["-xt", "bash"]), "bash"));
    // Those of servers are the CLI's own, too, and an entry may be a pattern.
    let only = |list: &str| params().extra_args(["--tools", list]);
    assert!(has(only("read"), "mcp__web__get"));
    assert!(has(only("+codemode,-write"), "write"));
    assert!(!has(only("+codemode,-write"), "bash"));
    assert!(!has(only("read,mcp__web__*"), "mcp__web__get"));
    assert!(has(only("read,mcp__web__*"), "mcp__a__get"));
    assert!(!has(
        params().permission(PermissionMode::ReadOnly),
        "mcp__web__get"
    ));
    assert!(has(params().denied_tools(["mcp__*__get"]), "mcp__web__get"));
    assert!(!has(
        params().denied_tools(["mcp__*__get"]),
        "mcp__web__get2"
    ));
    assert!(!has(params().denied_tools(["we"]), "weather"));
}

#[test]
fn instructions_are_a_private_file() {
    let params = ExecuteParams::new("x").system_prompt(SystemPrompt::Append("/etc/passwd".into()));
    let launch = launched(&params);
    assert_eq!(
        args(&launch),
        ["--mode", "json", "--append-system-prompt", "", "--", "x"]
    );
    assert_eq!(launch.private_files.len(), 1);
    assert_eq!(launch.private_files[0].location, PathLocation::Argument(3));
    assert_eq!(launch.private_files[0].content, b"/etc/passwd");
}

#[test]
fn a_session_is_resumed_or_forked_by_its_id() {
    let params = ExecuteParams::new("x").resume("a-1");
    assert_eq!(
        args(&launched(&params)),
        ["--mode", "json", "--session", "a-1", "--", "x"]
    );
    let params = params.fork(true).new_session_id("b.2");
    assert_eq!(
        args(&launched(&params)),
        [
            "--mode",
            "json",
            "--fork",
            "a-1",
            "--session-id",
            "b.2",
            "--",
            "x"
        ]
    );
    for id in ["../x", "/tmp/a.jsonl", "a.jsonl", "-a", "a-", "", "a b"] {
        let error = launch(&ExecuteParams::new("x").resume(id)).unwrap_err();
        assert_eq!(error.parameter(), Some("session_id"), "{id:?}");
    }
}

#[test]
fn images_are_files_and_nothing_else_is_an_image() {
    let image = Image::bytes("image/png", *b"\x89PNG");
    let launch = launched(&ExecuteParams::new("x").images([image]));
    assert_eq!(args(&launch), ["--mode", "json", "@", "--", "x"]);
    assert_eq!(launch.private_files[0].location, PathLocation::Argument(2));
    let text = Image::bytes("text/plain", *b"x");
    assert!(refused(&ExecuteParams::new("x").images([text])).starts_with("images: "));
    // The launch does not open it.
    let file = Image::file("image/png", "/no/such/file.png");
    let launch = launched(&ExecuteParams::new("x").images([file]));
    assert_eq!(launch.args[2], "@/no/such/file.png");
}

#[test]
fn ambiguous_values_are_refused_by_name() {
    let params = || ExecuteParams::new("x");
    for (params, start) in [
        (params().model("-x"), "model: "),
        (params().effort("huge"), "effort: "),
        (params().allowed_tools(["a,b"]), "allowed_tools: "),
        (params().denied_tools([" a"]), "denied_tools: "),
        (params().max_turns(3), "max_turns: "),
        (params().extra_args(["--mode", "rpc"]), "extra_args: "),
        (params().extra_args(["--"]), "extra_args: "),
        (
            params().system_prompt(SystemPrompt::Append(String::new())),
            "system_prompt: ",
        ),
    ] {
        let message = refused(&params);
        assert!(message.starts_with(start), "{message}");
    }
}

#[test]
fn session_starts_without_a_prompt_and_keeps_stdin_open() {
    let params = ExecuteParams::new("").model("a/b").effort("low");
    let launch = launch_session(&SessionOptions::new(params)).unwrap();
    assert_eq!(
        args(&launch),
        ["--mode", "rpc", "--model", "a/b", "--thinking", "low"]
    );
    assert_eq!(launch.stdin, Stdin::Open(Vec::new()));
    assert!(launch.env_remove.contains(&"PI_SESSION_ID"));
}

/// Returns the servers that the extension registers, and the namespaces of those that it looks for.
fn registered(params: &ExecuteParams) -> (Value, Value) {
    let launch = launched(params);
    assert_eq!(
        args(&launch)[args(&launch).len() - 4..][..2],
        ["--extension", ""]
    );
    let [file] = &launch.private_files[..] else {
        panic!("{:?}", launch.private_files.len());
    };
    let text = String::from_utf8(file.content.clone()).unwrap();
    let between = |begin: &str, end: &str| {
        let (_, rest) = text.split_once(begin).unwrap();
        serde_json::from_str(rest.split_once(end).unwrap().0).unwrap()
    };
    (
        between("Object.entries(", ")) {"),
        between("const offering = ", ";\n"),
    )
}

#[test]
fn servers_are_registered_by_a_private_extension() {
    let with = |permission| {
        let server = McpServer::stdio("my-own", "b", ["c"]).env("TOKEN", "s3cret");
        let mut params = ExecuteParams::new("x").mcp_servers([server]);
        params.permission = permission;
        params
    };
    let (servers, offering) = registered(&with(PermissionMode::Default));
    assert_eq!(
        servers,
        json!({"my-own": {"command": "b", "args": ["c"], "env": {"TOKEN": "s3cret"},
            "exposure": "direct"}})
    );
    assert_eq!(offering, json!({"my-own": "mcp__my_own"}));
    // No mode is about the tools of servers.
    let read_only = with(PermissionMode::ReadOnly);
    assert!(args(&launched(&read_only)).contains(&"read,grep,find,ls,mcp__*"));
    assert_eq!(registered(&read_only).1, json!({"my-own": "mcp__my_own"}));
    let mut other = with(PermissionMode::Default);
    other.extra_args = ["--tools", "read,mcp__other__*"].map(str::to_owned).into();
    let launch = launched(&other);
    let text = String::from_utf8(launch.private_files[0].content.clone()).unwrap();
    assert!(text.contains("const offering = {};"), "{text}");
    let mut denied = with(PermissionMode::Default);
    denied.denied_tools = vec!["mcp__*".into()];
    assert_eq!(registered(&denied).1, json!({}));
    let mut odd = with(PermissionMode::Default);
    for value in ["!date", "a${HOME}"] {
        odd.mcp_servers[0] = McpServer::stdio("a", "b", ["c"]).env("X", value);
        assert!(refused(&odd).contains("`!`"), "{}", refused(&odd));
    }
    let alike = ["my-own", "my_own"].map(|name| McpServer::stdio(name, "b", ["c"]));
    let refusal = refused(&ExecuteParams::new("x").mcp_servers(alike));
    assert!(refusal.contains("the same as `my-own`"), "{refusal}");
}

#[test]
fn some_tools_of_a_server_are_hidden_and_its_time_is_in_seconds() {
    let server = |tools: McpTools, limit: u64| {
        let mut server = McpServer::http("a", "https://a.example");
        server.tools = tools;
        server.tool_timeout = Some(Duration::from_millis(limit));
        registered(&ExecuteParams::new("x").mcp_servers([server])).0["a"].take()
    };
    assert_eq!(
        server(
            McpTools::only(["look"]).except("look").except("change"),
            1500
        ),
        json!({"url": "https://a.example", "headers": {}, "timeout": 1.5, "exposure": "hidden",
            "toolExposure": {"look": "hidden", "change": "hidden"}})
    );
    assert_eq!(
        server(McpTools::only(["look"]), 20)["toolExposure"],
        json!({"look": "direct"})
    );
    let without = server(McpTools::all().except("change"), 90_000);
    assert_eq!(without["exposure"], "direct");
    assert_eq!(without["toolExposure"], json!({"change": "hidden"}));
    assert_eq!(without["timeout"], 90.0);
}
