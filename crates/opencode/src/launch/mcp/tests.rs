//! Launches with hand-made servers. It was measured that the CLI reads a configuration like [`read`].

use proptest::prelude::*;
use teamster_core::provider::{Events, Launch};
use teamster_core::{McpDelivery, PermissionMode};

use super::*;
use crate::launch::launch;

const CONFIG: &str = "OPENCODE_CONFIG_CONTENT";
const PERMISSION: &str = "OPENCODE_PERMISSION";
const NO_ARGS: [&str; 0] = [];

/// Returns parameters with these servers and without values of this test's environment.
fn params(servers: impl IntoIterator<Item = McpServer>) -> ExecuteParams {
    let mut params = ExecuteParams::new("hi");
    for name in [
        CONFIG,
        PERMISSION,
        "OPENCODE_CONFIG",
        "OPENCODE_CONFIG_DIR",
        "OPENCODE_DISABLE_PROJECT_CONFIG",
        "XDG_CONFIG_HOME",
    ] {
        params.env.insert(name.into(), String::new());
    }
    params.env.insert("HOME".into(), "/no/home".into());
    params.working_directory = Some("/no/project".into());
    params.mcp_servers = servers.into_iter().collect();
    params
}

fn with_config(mut params: ExecuteParams, config: &Value) -> ExecuteParams {
    params.env.insert(CONFIG.into(), config.to_string());
    params
}

fn text<'a>(launch: &'a Launch, name: &str) -> &'a str {
    let found = launch.env_merged.iter().find(|(known, _)| known == name);
    &found.unwrap().1
}

fn json_in(launch: &Launch, name: &str) -> Value {
    serde_json::from_str(text(launch, name)).unwrap()
}

/// Returns the servers as written in the variable.
fn written(params: &ExecuteParams) -> Value {
    json_in(&launch(params).unwrap(), CONFIG)["mcp"].clone()
}

/// Reads the servers like the CLI, from the variable or from the changed file.
fn read(launch: &Launch) -> Value {
    let text = match &launch.config {
        Some(edit) => Value::Object(edit.entries.iter().cloned().collect()).to_string(),
        None => json_in(launch, CONFIG)["mcp"].to_string(),
    };
    // Variables come first, unescaped: the paths of files. Here a path is a number.
    let mut with_paths = String::new();
    let mut rest = text.as_str();
    while let Some((before, after)) = rest.split_once("{env:") {
        let (name, after) = after.split_once('}').unwrap();
        let location = PathLocation::Variable(name.to_owned());
        let file = launch
            .private_files
            .iter()
            .position(|f| f.location == location);
        with_paths.extend([before, &file.unwrap().to_string()]);
        rest = after;
    }
    with_paths += rest;
    let mut with_files = String::new();
    let mut rest = with_paths.as_str();
    while let Some((before, after)) = rest.split_once("{file:") {
        let (path, after) = after.split_once('}').unwrap();
        let content = &launch.private_files[path.parse::<usize>().unwrap()].content;
        let content = std::str::from_utf8(content).unwrap();
        // Characters that JavaScript's `trim` removes.
        let content =
            content.trim_matches(|c: char| c == '\u{feff}' || c.is_whitespace() && c != '\u{85}');
        let quoted = json!(content).to_string();
        with_files.extend([before, &quoted[1..quoted.len() - 1]]);
        rest = after;
    }
    with_files += rest;
    serde_json::from_str(&with_files).unwrap()
}

fn problem(server: McpServer) -> String {
    launch(&params([server])).unwrap_err().message
}

#[test]
fn a_local_server_and_a_remote_one_as_the_cli_has_them() {
    let mut local = McpServer::stdio("a-b_1", "python3", ["-x", ""]).env("TOKEN", "sk-1");
    if let McpTransport::Stdio { cwd, .. } = &mut local.transport {
        *cwd = Some("/d".into());
    }
    let mut http = McpServer::http("web", "https://example.com/mcp").header("X-Key", "sk-2");
    http.tool_timeout = Some(Duration::from_secs(90));
    let params = params([local, http, McpServer::sse("old", "http://[::1]:1/sse")]);
    assert_eq!(
        written(&params),
        json!({
            "a-b_1": {
                "type": "local",
                "command": ["python3", "-x", ""],
                "environment": {"TOKEN": "{file:{env:TEAMSTER_MCP_a_2Db__1_x_TOKEN}}"},
                "cwd": "/d",
                "enabled": true
            },
            "web": {
                "type": "remote",
                "url": "https://example.com/mcp",
                "headers": {"X-Key": "{file:{env:TEAMSTER_MCP_web_x_X_2DKey}}"},
                "oauth": false,
                "enabled": true,
                "timeout": 90_000
            },
            "old": {
                "type": "remote",
                "url": "http://[::1]:1/sse",
                "oauth": false,
                "enabled": true
            }
        })
    );
    let launch = launch(&params).unwrap();
    let file = |name: &str, content: &str| PrivateFile {
        location: PathLocation::Variable(name.to_owned()),
        content: content.as_bytes().to_vec(),
    };
    assert_eq!(
        launch.private_files,
        [
            file("TEAMSTER_MCP_a_2Db__1_x_TOKEN", "sk-1"),
            file("TEAMSTER_MCP_web_x_X_2DKey", "sk-2"),
        ]
    );
    assert_eq!(launch.config, None);
}

#[test]
fn white_space_at_the_ends_is_kept_outside_of_the_trimmed_value() {
    let server = McpServer::stdio("s", "x", NO_ARGS)
        .env("A", " \t a b\n")
        .env("B", " \n")
        .env("C", "")
        .env("D", "\u{feff}x\u{2028}");
    let params = params([server]);
    assert_eq!(
        written(&params)["s"]["environment"],
        json!({
            "A": " \t {file:{env:TEAMSTER_MCP_s_x_A}}\n",
            "B": " \n",
            "C": "",
            "D": "\u{feff}{file:{env:TEAMSTER_MCP_s_x_D}}\u{2028}"
        })
    );
    assert_eq!(launch(&params).unwrap().private_files[0].content, b"a b");
}

#[test]
fn placeholders_and_secrets_in_an_address_are_in_a_file() {
    let mut local = McpServer::stdio("s", "{file:x}", ["{env:HOME}/y", "${HOME}", "{env}"]);
    if let McpTransport::Stdio { cwd, .. } = &mut local.transport {
        *cwd = Some("{env:X}".into());
    }
    let params = params([
        local,
        McpServer::http("a", "https://me:pw@example.com/mcp"),
        McpServer::http("b", "https://example.com/mcp?key=sk"),
        McpServer::http("c", "https://example.com/{env:X}"),
    ]);
    let servers = written(&params);
    assert_eq!(
        servers["s"]["command"],
        json!([
            "{file:{env:TEAMSTER_MCP_s_x_command_3D}}",
            "{file:{env:TEAMSTER_MCP_s_x_args_3D0}}",
            "${HOME}",
            "{env}"
        ])
    );
    for name in ["a", "b", "c"] {
        let file = format!("{{file:{{env:TEAMSTER_MCP_{name}_x_url_3D}}}}");
        assert_eq!(servers[name]["url"], file);
    }
    let read = read(&launch(&params).unwrap());
    assert_eq!(
        read["s"]["command"],
        json!(["{file:x}", "{env:HOME}/y", "${HOME}", "{env}"])
    );
    assert_eq!(read["s"]["cwd"], "{env:X}");
    assert_eq!(read["b"]["url"], "https://example.com/mcp?key=sk");
}

#[test]
fn callers_configuration_stays_and_its_names_are_refused() {
    let server = || McpServer::stdio("mine", "x", NO_ARGS);
    let own =
        json!({"model": "{env:M}", "mcp": {"other": {"type": "local", "command": ["{env:Y}"]}}});
    let launched = launch(&with_config(params([server()]), &own)).unwrap();
    let config = json_in(&launched, CONFIG);
    assert_eq!(config["model"], "{env:M}");
    assert_eq!(config["mcp"]["other"], own["mcp"]["other"]);
    assert_eq!(config["mcp"]["mine"]["command"], json!(["x"]));

    for taken in ["mine", "mi.ne"] {
        let own = json!({"mcp": {taken: {"enabled": false}}});
        let mut params = with_config(params([server()]), &own);
        params.mcp_servers[0].name = taken.replace('.', "_");
        let message = launch(&params).unwrap_err().message;
        assert!(
            message.starts_with("mcp_servers: mi") && message.contains(": name: "),
            "{message}"
        );
    }

    let mut params = params([server()]);
    params.env.insert(CONFIG.into(), "{/* mine */}".into());
    for delivery in [McpDelivery::Private, McpDelivery::UserConfig] {
        params.mcp_delivery = delivery;
        let message = launch(&params).unwrap_err().message;
        assert!(message.starts_with("mcp_servers: "), "{message}");
        assert!(message.contains(CONFIG), "{message}");
    }
}

/// Returns the verdict of an agent's rules on a tool. The last match applies, as in the CLI.
fn verdict(rules: &Value, tool: &str) -> Option<String> {
    fn matches(pattern: &str, text: &str) -> bool {
        match pattern.split_once('*') {
            None => pattern == text,
            Some((begin, rest)) => text.strip_prefix(begin).is_some_and(|text| {
                let rest = rest.trim_start_matches('*');
                (0..=text.len()).any(|at| text.is_char_boundary(at) && matches(rest, &text[at..]))
            }),
        }
    }
    let rules = rules.as_object().unwrap().iter();
    let of = |(pattern, action): (&String, &Value)| {
        let bare = pattern.strip_suffix(" *");
        let all = matches(pattern, tool) || bare.is_some_and(|bare| matches(bare, tool));
        all.then(|| action.as_str().unwrap().to_owned())
    };
    rules.filter_map(of).next_back()
}

/// Returns the verdicts of a run: by the rules for all agents, and by those of its first agent.
fn verdicts(params: &ExecuteParams, tool: &str) -> (Option<String>, Option<String>) {
    let launch = launch(params).unwrap();
    let config = json_in(&launch, CONFIG);
    (
        verdict(&json_in(&launch, PERMISSION), tool),
        verdict(&config["mode"]["build"]["permission"], tool),
    )
}

fn both(action: &str) -> (Option<String>, Option<String>) {
    (Some(action.to_owned()), Some(action.to_owned()))
}

#[test]
fn the_servers_tools_are_allowed_in_every_mode() {
    let rules =
        json!({"permission": {"*": "ask"}, "mode": {"build": {"permission": {"*": "ask"}}}});
    for mode in [
        PermissionMode::Default,
        PermissionMode::ReadOnly,
        PermissionMode::AcceptEdits,
        PermissionMode::Bypass,
    ] {
        let names = ["srv", "taskwarrior", "edit", "bash-x"];
        let servers = names.map(|name| McpServer::stdio(name, "x", NO_ARGS));
        let mut params = with_config(params(servers), &rules);
        params
            .env
            .insert(PERMISSION.into(), r#"{"*": "deny"}"#.into());
        params.permission = mode;
        for name in names {
            assert_eq!(
                verdicts(&params, &format!("{name}_echo")),
                both("allow"),
                "{mode:?} {name}"
            );
        }
        // Tools of other servers are not allowed.
        assert_eq!(verdicts(&params, "other_echo").0, Some("deny".into()));
    }
}

#[test]
fn denials_are_kept_but_not_for_a_server_with_the_same_prefix() {
    let servers = ["srv", "bash"].map(|name| McpServer::stdio(name, "x", NO_ARGS));
    let mut params = params(servers);
    params.denied_tools = vec!["srv_drop".into(), "bash".into(), "*_rm".into()];
    for (tool, action) in [
        ("srv_echo", "allow"),
        ("srv_drop", "deny"),
        ("srv_drop_all", "allow"),
        ("srv_rm", "deny"),
        ("bash", "deny"),
        ("bash_echo", "allow"),
    ] {
        assert_eq!(verdicts(&params, tool), both(action), "{tool}");
    }
    params.denied_tools = vec!["srv_*".into()];
    assert_eq!(verdicts(&params, "srv_echo"), both("deny"));
}

#[test]
fn tools_are_selected_by_rules_with_the_names_of_the_cli() {
    let mut server = McpServer::stdio("srv", "x", NO_ARGS);
    server.tools.except = vec!["b.c".into()];
    let with_except = params([server.clone()]);
    server.tools.only = Some(vec!["a".into(), "b.c".into()]);
    let with_both = params([server.clone()]);
    server.tools.except.clear();
    let with_only = params([server.clone()]);
    server.tools.only = Some(Vec::new());
    let with_none = params([server]);
    for (tool, except, only, both_of_them) in [
        ("srv_a", "allow", "allow", "allow"),
        ("srv_b_c", "deny", "allow", "deny"),
        ("srv_b", "allow", "deny", "deny"),
        ("srv_a_x", "allow", "deny", "deny"),
    ] {
        assert_eq!(verdicts(&with_except, tool), both(except), "{tool}");
        assert_eq!(verdicts(&with_only, tool), both(only), "{tool}");
        assert_eq!(verdicts(&with_both, tool), both(both_of_them), "{tool}");
        assert_eq!(verdicts(&with_none, tool), both("deny"), "{tool}");
    }
    // A sub-agent of any name does not get it either.
    let config = json_in(&launch(&with_except).unwrap(), CONFIG);
    assert_eq!(config["experimental"]["primary_tools"], json!(["srv_b_c"]));
}

#[test]
fn single_cli_limit_is_set_where_it_shortens_no_other() {
    let with = |start: Option<u64>, call: Option<u64>| {
        let mut server = McpServer::stdio("s", "x", NO_ARGS);
        server.startup_timeout = start.map(Duration::from_secs);
        server.tool_timeout = call.map(Duration::from_secs);
        server
    };
    for (start, call, ms) in [
        (Some(5), Some(5), 5_000),
        (Some(60), None, 60_000),
        (None, Some(30), 30_000),
        // The CLI's timers fire immediately with more.
        (None, Some(u64::MAX), 2_147_483_647),
    ] {
        let params = params([with(start, call)]);
        assert_eq!(written(&params)["s"]["timeout"], json!(ms));
    }
    assert_eq!(
        written(&params([with(None, None)]))["s"]["timeout"],
        Value::Null
    );
    for (start, call) in [(Some(5), None), (None, Some(5)), (Some(60), Some(61))] {
        let message = problem(with(start, call));
        assert!(
            message.starts_with("mcp_servers: s: startup_timeout, tool_timeout: "),
            "{message}"
        );
    }
}

#[test]
fn the_run_waits_as_long_as_its_servers_may_take() {
    let mut server = McpServer::stdio("s", "x", NO_ARGS);
    server.startup_timeout = Some(Duration::from_mins(45));
    server.tool_timeout = Some(Duration::from_mins(45));
    let limits = launch(&params([server])).unwrap().timeouts;
    assert_eq!(limits.startup, Some(Duration::from_mins(5 + 3 * 45)));
    assert_eq!(limits.idle, Some(Duration::from_mins(46)));
    let limits = launch(&params([])).unwrap().timeouts;
    assert_eq!(limits.startup, Some(Duration::from_mins(5)));
    assert_eq!(limits.idle, Some(Duration::from_mins(30)));
}

#[test]
fn a_name_that_the_cli_would_take_for_its_own_is_refused() {
    for name in ["external", "doom", "plan", "apply", "read_mcp", "__proto__"] {
        let message = problem(McpServer::stdio(name, "x", NO_ARGS));
        let begin = format!("mcp_servers: {name}: name: ");
        assert!(message.starts_with(&begin), "{message}");
    }
    for name in ["a.b", "a b", "ü"] {
        assert!(problem(McpServer::stdio(name, "x", NO_ARGS)).contains(": name: "));
    }
    for variable in ["{env:X}", "a{file:y}", "__proto__"] {
        let message = problem(McpServer::stdio("s", "x", NO_ARGS).env(variable, "sk-1"));
        assert!(message.starts_with("mcp_servers: s: env: "), "{message}");
        assert!(!message.contains("sk-1"), "{message}");
    }
    for name in ["plans", "constructor", "toString", "1", "-_"] {
        launch(&params([McpServer::stdio(name, "x", NO_ARGS)])).unwrap();
    }
}

#[test]
fn servers_too_large_for_a_variable_are_refused() {
    let server = McpServer::stdio("s", "x", ["y".repeat(128 * 1024)]);
    let mut params = params([server]);
    let message = launch(&params).unwrap_err().message;
    assert!(message.starts_with("mcp_servers: "), "{message}");
    assert!(
        message.contains(CONFIG) && message.contains("131072"),
        "{message}"
    );
    params.mcp_delivery = McpDelivery::ProjectConfig;
    launch(&params).unwrap();
}

#[test]
fn servers_for_a_file_are_not_in_the_variable_but_their_secrets() {
    let server = McpServer::stdio("s", "x", NO_ARGS).env("TOKEN", "sk\"1");
    let mut params = params([server]);
    let definition = written(&params)["s"].clone();
    params.mcp_delivery = McpDelivery::ProjectConfig;
    let launch = launch(&params).unwrap();
    let edit = launch.config.as_ref().unwrap();
    assert_eq!(edit.entries, [("s".to_owned(), definition)]);
    assert_eq!(json_in(&launch, CONFIG)["mcp"], Value::Null);
    assert_eq!(read(&launch)["s"]["environment"]["TOKEN"], "sk\"1");
    // The rules are there even so.
    assert_eq!(verdicts(&params, "s_echo"), both("allow"));
}

#[test]
fn tools_of_the_runs_servers_are_recognized() {
    use teamster_core::{AgentEvent, CliProvider};
    let servers = ["my", "my_srv"].map(|name| McpServer::stdio(name, "x", NO_ARGS));
    let params = with_config(params(servers), &json!({"mcp": {"my_srv_2": {}}}));
    let mut decoder = crate::OpenCode.decoder(&params);
    let mut events = Events::new();
    for (tool, server, name) in [
        ("my_srv_echo", "my_srv", "echo"),
        ("my_echo", "my", "echo"),
        ("my_srv_2_x", "my_srv_2", "x"),
    ] {
        let line = json!({"type": "tool_use", "sessionID": "ses_1", "part": {
            "type": "tool", "tool": tool, "callID": tool, "id": tool,
            "state": {"status": "completed", "input": {}, "output": ""}}});
        decoder.line(line.to_string().as_bytes(), &mut events);
        let used = events.drain().find_map(|event| match event {
            AgentEvent::ToolUse(used) => used.mcp.map(|mcp| (mcp.server, mcp.tool)),
            _ => None,
        });
        assert_eq!(used, Some((server.to_owned(), name.to_owned())));
    }
}

proptest! {
    /// Any value reaches only the CLI, unchanged.
    #[test]
    fn any_value_arrives_and_is_seen_nowhere(
        values in prop::collection::vec(
            "(\\PC|[ \n\t\"'\\\\{}:$/*]|\\{env:|\\{file:|HOME\\}){0,8}", 1..5),
        arg in "(\\PC|\\{env:|\\{file:|\\}){0,6}",
        as_file in any::<bool>(),
    ) {
        let secret = |value: &str, index: usize| format!("{value}sk-{index}-{value}");
        let mut local = McpServer::stdio("l", "x", [arg.clone()]);
        let mut remote = McpServer::http("r", "http://x/");
        for (index, value) in values.iter().enumerate() {
            local = local.env(format!("K{index}"), secret(value, index));
            remote = remote.header(format!("K{index}"), secret(&value.replace('\n', " "), index));
        }
        let mut params = params([local, remote]);
        if as_file {
            params.mcp_delivery = McpDelivery::UserConfig;
        }
        let launch = launch(&params).unwrap();
        let read = read(&launch);
        prop_assert_eq!(&read["l"]["command"], &json!(["x", arg]));
        for (index, value) in values.iter().enumerate() {
            let key = format!("K{index}");
            prop_assert_eq!(&read["l"]["environment"][&key], &json!(secret(value, index)));
            let header = secret(&value.replace('\n', " "), index);
            prop_assert_eq!(&read["r"]["headers"][&key], &json!(header));
            let mark = format!("sk-{index}-");
            let seen = launch.args.iter().map(|arg| arg.to_string_lossy().into_owned());
            let seen = seen.chain(launch.env.iter().map(|(_, value)| value.clone()));
            let seen = seen.chain(launch.env_merged.iter().map(|(_, value)| value.clone()));
            let entries = launch.config.iter().flat_map(|edit| &edit.entries);
            for text in seen.chain(entries.map(|(_, value)| value.to_string())) {
                prop_assert!(!text.contains(&mark), "{}", text);
            }
        }
    }
}
