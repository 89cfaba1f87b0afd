use std::path::Path;
use std::time::Duration;

use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use serde_json::json;
use teamster_core::ErrorCode;
use teamster_core::provider::Launch;

use super::super::launch;
use super::*;

const NO_ARGS: [&str; 0] = [];

/// Returns the parameters of a run without files.
fn params(servers: Vec<McpServer>) -> ExecuteParams {
    let mut params = ExecuteParams::new("hi");
    params.working_directory = Some("/no/work".into());
    for (name, value) in [
        ("GEMINI_CLI_HOME", "/no/home"),
        ("GEMINI_CLI_SYSTEM_SETTINGS_PATH", "/no/settings.json"),
    ] {
        params.env.insert(name.into(), value.into());
    }
    params.mcp_servers = servers;
    params
}

fn edit(launch: &Launch) -> &ConfigEdit {
    launch.config.as_ref().unwrap()
}

fn args(launch: &Launch) -> Vec<&str> {
    let args = launch.args.iter();
    args.map(|arg| arg.to_str().unwrap()).collect()
}

fn refused(servers: Vec<McpServer>) -> String {
    let error = launch(&params(servers)).unwrap_err();
    assert_eq!(error.code, ErrorCode::InvalidParams);
    error.message
}

fn both() -> Vec<McpServer> {
    let mut files =
        McpServer::stdio("files", "./files-mcp", ["--root", "$HOME"]).env("API_TOKEN", "5ecret$1");
    if let McpTransport::Stdio { cwd, .. } = &mut files.transport {
        *cwd = Some("/srv".into());
    }
    files.tool_timeout = Some(Duration::from_secs(7));
    files.tools.only = Some(vec!["read".into()]);
    files.tools.except = vec!["write".into()];
    let web = McpServer::http("my.web-1", "https://example.com/mcp?a=$b")
        .header("Authorization", "Bearer 5ecret");
    vec![files, web]
}

#[test]
fn servers_are_in_a_private_home_with_their_secrets() {
    let launch = launch(&params(both())).unwrap();
    let edit = edit(&launch);
    assert_eq!(edit.table.file, Path::new("/no/home/.gemini/settings.json"));
    assert_eq!(
        (edit.table.format, edit.table.key),
        (ConfigFormat::Json, "mcpServers")
    );
    let files = json!({
        "command": "./files-mcp",
        "args": ["--root", "${=:-$}HOME"],
        "env": {"API_TOKEN": "5ecret\\${=:-$}1"},
        "cwd": "/srv",
        "timeout": 7000,
        "includeTools": ["read"],
        "excludeTools": ["write"],
        "trust": true,
    });
    let web = json!({
        "type": "http",
        "url": "https://example.com/mcp?a=${=:-$}b",
        "headers": {"Authorization": "Bearer 5ecret"},
        "trust": true,
    });
    assert_eq!(
        edit.entries,
        [("files".to_owned(), files), ("my.web-1".to_owned(), web)]
    );
    let ConfigLocation::PrivateHome(home) = &edit.location else {
        panic!("{:?}", edit.location);
    };
    assert_eq!(home.variable, "GEMINI_CLI_HOME");
    assert_eq!(home.home, Path::new("/no/home"));
    assert_eq!(home.folder, ".gemini");
    assert_eq!(home.folders, ["tmp", "history"]);
    assert!(home.files.contains(&"gemini-credentials.json"));
    assert_eq!(
        args(&launch),
        ["--output-format=stream-json", "--prompt=hi"]
    );
    assert_eq!(launch.env.len(), 3, "{:?}", launch.env);
}

#[test]
fn an_old_server_has_its_own_type() {
    let launch = launch(&params(vec![McpServer::sse(
        "old",
        "http://127.0.0.1:9/sse",
    )]))
    .unwrap();
    let entry = json!({
        "type": "sse", "url": "http://127.0.0.1:9/sse", "headers": {}, "trust": true,
    });
    assert_eq!(edit(&launch).entries, [("old".to_owned(), entry)]);
}

#[test]
fn in_a_file_of_the_user_s_secrets_are_names_of_variables() {
    for (delivery, file) in [
        (McpDelivery::ProjectConfig, "/no/work/.gemini/settings.json"),
        (McpDelivery::UserConfig, "/no/home/.gemini/settings.json"),
    ] {
        let mut params = params(both());
        params.mcp_delivery = delivery;
        let launch = launch(&params).unwrap();
        let edit = edit(&launch);
        assert_eq!(edit.location, ConfigLocation::Lease);
        assert_eq!(edit.table.file, Path::new(file));
        let [(_, files), (_, web)] = edit.entries.as_slice() else {
            panic!("{:?}", edit.entries);
        };
        let variables = [
            ("TEAMSTER_MCP_files_x_API__TOKEN", r"5ecret\$1"),
            ("TEAMSTER_MCP_my_2Eweb_2D1_x_Authorization", "Bearer 5ecret"),
        ];
        let named = variables.map(|(name, _)| format!("${{{name}}}"));
        assert_eq!(files["env"], json!({"API_TOKEN": named[0]}));
        assert_eq!(web["headers"], json!({"Authorization": named[1]}));
        assert_eq!(files["trust"], true);
        let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(launch.env[3..], variables);
    }
}

#[test]
fn names_that_other_files_hold_over_these_are_taken() {
    let taken = |delivery| {
        let mut params = params(both());
        params.mcp_delivery = delivery;
        let taken = launch(&params).unwrap().names_taken;
        let files = taken.into_iter().map(|table| {
            assert_eq!(
                (table.format, table.key),
                (ConfigFormat::Json, "mcpServers")
            );
            table.file.to_str().unwrap().to_owned()
        });
        files.collect::<Vec<_>>()
    };
    let project = ["/no/work/.gemini/settings.json"];
    assert_eq!(taken(McpDelivery::Private), project);
    assert_eq!(taken(McpDelivery::UserConfig), project);
    assert_eq!(taken(McpDelivery::ProjectConfig), NO_ARGS);
    // In the home itself, that file is the one that is changed.
    let mut params = params(both());
    params.working_directory = Some("/no/home".into());
    params.mcp_delivery = McpDelivery::UserConfig;
    assert_eq!(launch(&params).unwrap().names_taken, []);
    // A private copy of the file has lower precedence.
    params.mcp_delivery = McpDelivery::Private;
    let taken = launch(&params).unwrap().names_taken;
    assert_eq!(taken[0].file, Path::new("/no/home/.gemini/settings.json"));
}

#[test]
fn strict_names_the_servers_of_the_run_or_none_that_there_is() {
    let flags = |servers| {
        let mut params = params(servers);
        params.mcp_strict = true;
        params.extra_args = vec!["--debug".into()];
        let launch = launch(&params).unwrap();
        args(&launch)[1..].join(" ")
    };
    assert_eq!(
        flags(both()),
        "--allowed-mcp-server-names=files --allowed-mcp-server-names=my.web-1 --debug --prompt=hi"
    );
    assert_eq!(
        flags(Vec::new()),
        "--allowed-mcp-server-names=/ --debug --prompt=hi"
    );
    let mut params = params(Vec::new());
    params.mcp_strict = true;
    assert_eq!(launch(&params).unwrap().config, None);
}

#[test]
fn a_longer_limit_than_the_cli_s_timers_know_is_the_longest() {
    let mut server = McpServer::stdio("a", "cmd", NO_ARGS);
    server.tool_timeout = Some(Duration::MAX);
    let launch = launch(&params(vec![server])).unwrap();
    assert_eq!(edit(&launch).entries[0].1["timeout"], 2_147_483_647_u64);
}

#[test]
fn silently_changed_fields_are_refused_by_server_and_field() {
    let stdio = |name: &str| McpServer::stdio(name, "cmd", NO_ARGS);
    let http = |value: &str| McpServer::http("a", "http://x").header("X-A", value);
    let mut slow = stdio("a");
    slow.startup_timeout = Some(Duration::from_secs(1));
    for (server, begins) in [
        (stdio("mcp"), "mcp_servers: mcp: name: "),
        (stdio("mcp_x"), "mcp_servers: mcp_x: name: "),
        (stdio("__proto__"), "mcp_servers: __proto__: name: "),
        (
            stdio("abcdefghijklmnopqrstuvwxyz"),
            "mcp_servers: abcdefghijklmnopqrstuvwxyz: name: ",
        ),
        (
            stdio("a").env("PYTHONPATH", "/x"),
            "mcp_servers: a: env.PYTHONPATH: ",
        ),
        (
            stdio("a").env("ld_Preload", "/x"),
            "mcp_servers: a: env.ld_Preload: ",
        ),
        (http("ж"), "mcp_servers: a: headers.X-A: "),
        (http("\u{7}"), "mcp_servers: a: headers.X-A: "),
        (slow, "mcp_servers: a: startup_timeout: "),
    ] {
        let message = refused(vec![server]);
        assert!(message.starts_with(begins), "{message}");
    }
    let longest = "a".repeat(25);
    for name in ["mcpx", "x_mcp_", longest.as_str(), "a_b.c-d"] {
        assert!(launch(&params(vec![stdio(name)])).is_ok(), "{name}");
    }
    assert!(launch(&params(vec![http("é\t")])).is_ok());
}

#[test]
fn a_directory_that_is_not_utf8_is_refused() {
    use std::os::unix::ffi::OsStringExt;
    let mut server = McpServer::stdio("a", "cmd", NO_ARGS);
    if let McpTransport::Stdio { cwd, .. } = &mut server.transport {
        *cwd = Some(std::ffi::OsString::from_vec(b"/a\xff".to_vec()).into());
    }
    let message = refused(vec![server]);
    assert!(message.starts_with("mcp_servers: a: cwd: "), "{message}");
}

#[test]
fn blocked_variables_are_sorted_and_in_capitals() {
    assert!(BLOCKED_VARIABLES.split_ascii_whitespace().is_sorted());
    assert_eq!(BLOCKED_VARIABLES, BLOCKED_VARIABLES.to_uppercase());
}

/// Reads settings like the CLI: `$NAME`, `${NAME}` and `${NAME:-text}` become the variable or the text, or stay
/// unchanged. Once, from left to right.
fn first_reading(text: &str, env: &BTreeMap<String, String>) -> String {
    let mut read = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        read.push_str(&rest[..at]);
        rest = &rest[at..];
        let after = &rest[1..];
        let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let bare = after.find(|c| !word(c)).unwrap_or(after.len());
        let braced = after
            .strip_prefix('{')
            .and_then(|inner| inner.split_once('}'))
            .map(|(inner, _)| inner)
            .filter(|inner| !inner.is_empty());
        let (length, name, default) = match braced {
            _ if bare > 0 => (1 + bare, &after[..bare], None),
            // The name has at least one character.
            Some(inner) => match inner.char_indices().nth(1).and_then(|(second, _)| {
                let colon = inner[second..].find(":-")? + second;
                Some((&inner[..colon], &inner[colon + 2..]))
            }) {
                Some((name, default)) => (inner.len() + 3, name, Some(default)),
                None => (inner.len() + 3, inner, None),
            },
            None => {
                read.push('$');
                rest = after;
                continue;
            }
        };
        let value = env.get(name).map(String::as_str).or(default);
        read.push_str(value.unwrap_or(&rest[..length]));
        rest = &rest[length..];
    }
    read + rest
}

/// Reads a value of a server's environment or headers like the CLI's second expansion. The value must have no `$`
/// without a backslash before it, which would begin a variable.
fn second_reading(text: &str) -> String {
    let bytes = text.as_bytes();
    for (at, byte) in bytes.iter().enumerate() {
        let escaped = at > 0 && bytes[at - 1] == b'\\';
        assert!(*byte != b'$' || escaped, "a variable may begin in {text:?}");
    }
    text.replace(r"\$", "$")
}

fn any_text() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        Just("$"),
        Just("${"),
        Just("}"),
        Just("\\"),
        Just("HOME"),
        Just(":-"),
        Just("="),
        Just("$HOME"),
        Just("${HOME}"),
        Just("${X:-d}"),
        Just("a"),
        Just(" "),
        Just("%"),
        Just("é"),
    ];
    vec(part, 0..12).prop_map(|parts| parts.concat())
}

fn texts(value: &Value) -> BTreeMap<String, String> {
    let texts = value.as_object().unwrap().iter();
    texts
        .map(|(k, v)| (k.clone(), v.as_str().unwrap().to_owned()))
        .collect()
}

#[test]
fn the_model_of_the_cli_reads_as_measured() {
    let env = BTreeMap::from([("HOME".to_owned(), "/h$X".to_owned())]);
    for (text, read) in [
        ("$HOME-${HOME}x", "/h$X-/h$Xx"),
        ("$NONE ${NONE} ${NONE:-a$b}", "$NONE ${NONE} a$b"),
        ("$", "$"),
        ("${} ${", "${} ${"),
        ("${=:-$}HOME", "$HOME"),
        ("$${HOME}", "$/h$X"),
    ] {
        assert_eq!(first_reading(text, &env), read, "{text}");
    }
}

proptest! {
    #[test]
    fn any_value_arrives_as_it_is_and_no_secret_is_seen(
        arg in any_text(), secrets in btree_map("[A-Z_]{1,6}", any_text(), 0..4),
        in_place in any::<bool>(),
    ) {
        prop_assume!(!secrets.contains_key("ENV"));
        let mut server = McpServer::stdio("srv", format!("c{arg}"), [&arg, "x"]);
        for (name, value) in &secrets {
            server = server.env(name, format!("5ecret{value}"));
        }
        let mut web = McpServer::http("web", "http://x/$HOME");
        for (name, value) in &secrets {
            web = web.header(name, format!("5ecret{value}"));
        }
        let mut params = params(vec![server, web]);
        if in_place {
            params.mcp_delivery = McpDelivery::ProjectConfig;
        }
        let launch = launch(&params).unwrap();
        let mut env: BTreeMap<_, _> = launch.env.iter().cloned().collect();
        env.insert("HOME".into(), "/home".into());
        let [(_, entry), (_, web)] = edit(&launch).entries.as_slice() else { panic!() };
        let once = |value: &Value| first_reading(value.as_str().unwrap(), &env);
        prop_assert_eq!(once(&entry["command"]), format!("c{arg}"));
        prop_assert_eq!(once(&entry["args"][0]), arg);
        prop_assert_eq!(once(&web["url"]), "http://x/$HOME");
        for read in [texts(&entry["env"]), texts(&web["headers"])] {
            let read = read.into_iter().map(|(name, value)| {
                let value = second_reading(&first_reading(&value, &env));
                (name, value.strip_prefix("5ecret").unwrap().to_owned())
            });
            prop_assert_eq!(read.collect::<BTreeMap<_, _>>(), secrets.clone());
        }
        prop_assert!(!args(&launch).concat().contains("5ecret"));
        let shown = format!("{:?}", edit(&launch).entries);
        prop_assert!(!in_place || !shown.contains("5ecret"));
    }
}
