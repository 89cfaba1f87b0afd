use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Stdio};

use proptest::prelude::*;
use teamster_core::provider::Launch;
use teamster_core::{ErrorCode, McpTools};

use super::*;
use crate::launch::launch;

fn params(servers: Vec<McpServer>) -> ExecuteParams {
    let mut params = ExecuteParams::new("hi");
    params.mcp_servers = servers;
    params
        .env
        .insert("CODEX_HOME".into(), "/home/me/.codex".into());
    params
}

/// Returns the arguments for servers, in a new session.
fn settings(params: &ExecuteParams) -> Vec<String> {
    let launch = launch(params).unwrap();
    let args = launch.args.into_iter().skip(5);
    args.map(|arg| arg.into_string().unwrap())
        .take_while(|arg| arg != "--")
        .collect()
}

fn refused(params: &ExecuteParams) -> String {
    let error = launch(params).unwrap_err();
    assert_eq!(error.code, ErrorCode::InvalidParams);
    error.message
}

fn with_cwd(mut server: McpServer, dir: &str) -> McpServer {
    if let McpTransport::Stdio { cwd, .. } = &mut server.transport {
        *cwd = Some(dir.into());
    }
    server
}

/// Returns the variables that carry secrets.
fn secrets(launch: &Launch) -> Vec<(String, String)> {
    let all = launch.env.iter().filter(|(name, _)| name != "RUST_LOG");
    all.cloned().collect()
}

fn pairs(list: &[(&str, &str)]) -> Vec<(String, String)> {
    let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    list.iter().map(owned).collect()
}

#[test]
fn without_servers_nothing_is_changed() {
    let launch = launch(&params(Vec::new())).unwrap();
    assert_eq!(launch.args.len(), 7);
    assert!(launch.env.is_empty());
    assert!(launch.config.is_none() && launch.names_taken.is_empty());
}

#[test]
fn a_program_without_variables_is_started_as_it_is() {
    let server = McpServer::stdio("my-srv_1", "srv", ["--a b", "\"\n$X"]);
    assert_eq!(
        settings(&params(vec![server])),
        [
            "--config=mcp_optional_startup_grace_ms=31000",
            r#"--config=mcp_servers.my-srv_1={args=["--a b","\"\n$X"],command="srv",default_tools_approval_mode="approve",env_vars=["TEAMSTER_RUN_ID"]}"#,
        ]
    );
}

#[test]
fn server_variables_are_set_by_a_shell_that_gets_only_names() {
    let server = McpServer::stdio("t", "srv", ["-x"])
        .env("HTTP_PROXY", "s3cr3t")
        .env("PATH", "");
    let params = params(vec![with_cwd(server, "/work dir")]);
    assert_eq!(
        settings(&params),
        [
            r#"--config=shell_environment_policy.set={TEAMSTER_MCP_t_x_HTTP__PROXY="",TEAMSTER_MCP_t_x_PATH=""}"#,
            "--config=mcp_optional_startup_grace_ms=31000",
            r#"--config=mcp_servers.t={args=["-c","export HTTP_PROXY=\"$TEAMSTER_MCP_t_x_HTTP__PROXY\"; unset TEAMSTER_MCP_t_x_HTTP__PROXY; export PATH=\"$TEAMSTER_MCP_t_x_PATH\"; unset TEAMSTER_MCP_t_x_PATH; exec \"$@\"","t","srv","-x"],command="/bin/sh",cwd="/work dir",default_tools_approval_mode="approve",env_vars=["TEAMSTER_RUN_ID","TEAMSTER_MCP_t_x_HTTP__PROXY","TEAMSTER_MCP_t_x_PATH"]}"#,
        ]
    );
    assert_eq!(
        secrets(&launch(&params).unwrap()),
        pairs(&[
            ("TEAMSTER_MCP_t_x_HTTP__PROXY", "s3cr3t"),
            ("TEAMSTER_MCP_t_x_PATH", ""),
        ])
    );
}

#[test]
fn headers_are_named_by_variables_and_empty_ones_are_literal() {
    let server = McpServer::http("docs", "https://example.com/mcp?v=2")
        .header("Authorization", "Bearer s3cr3t")
        .header("X.Y", "z")
        .header("X-None", "");
    let params = params(vec![server]);
    assert_eq!(
        settings(&params),
        [
            r#"--config=shell_environment_policy.set={TEAMSTER_MCP_docs_x_Authorization="",TEAMSTER_MCP_docs_x_X_2EY=""}"#,
            "--config=mcp_optional_startup_grace_ms=31000",
            r#"--config=mcp_servers.docs={default_tools_approval_mode="approve",env_http_headers={Authorization="TEAMSTER_MCP_docs_x_Authorization","X.Y"="TEAMSTER_MCP_docs_x_X_2EY"},http_headers={X-None=""},url="https://example.com/mcp?v=2"}"#,
        ]
    );
    assert_eq!(
        secrets(&launch(&params).unwrap()),
        pairs(&[
            ("TEAMSTER_MCP_docs_x_Authorization", "Bearer s3cr3t"),
            ("TEAMSTER_MCP_docs_x_X_2EY", "z"),
        ])
    );
}

#[test]
fn limits_and_filters_of_tools_are_settings_of_the_server() {
    let mut server = McpServer::stdio("t", "srv", ["x"]);
    server.startup_timeout = Some(Duration::from_millis(1500));
    server.tool_timeout = Some(Duration::from_secs(90));
    server.tools = McpTools::default();
    server.tools.only = Some(vec!["a".into(), "b-c".into()]);
    server.tools.except = vec!["d".into()];
    assert_eq!(
        settings(&params(vec![server])),
        [
            "--config=mcp_optional_startup_grace_ms=2500",
            r#"--config=mcp_servers.t={args=["x"],command="srv",default_tools_approval_mode="approve",disabled_tools=["d"],enabled_tools=["a","b-c"],env_vars=["TEAMSTER_RUN_ID"],startup_timeout_sec=1.5,tool_timeout_sec=90.0}"#,
        ]
    );
}

#[test]
fn the_model_is_asked_when_the_slowest_server_is_there() {
    let slow = |seconds| {
        let mut server = McpServer::stdio(format!("s{seconds}"), "srv", ["x"]);
        server.startup_timeout = Some(Duration::from_secs(seconds));
        server
    };
    let wait = |servers| settings(&params(servers)).remove(0);
    let setting = "--config=mcp_optional_startup_grace_ms=";
    assert_eq!(wait(vec![slow(3), slow(5)]), format!("{setting}6000"));
    let default = McpServer::stdio("t", "srv", ["x"]);
    assert_eq!(wait(vec![slow(3), default]), format!("{setting}31000"));
    // The CLI would panic on the original value.
    let never = settings(&params(vec![slow(u64::MAX)]));
    assert_eq!(never[0], format!("{setting}1000000001000"));
    assert!(
        never[1].contains("startup_timeout_sec=1000000000.0"),
        "{never:?}"
    );
}

#[test]
fn the_callers_own_arguments_come_after_the_settings() {
    let mut params = params(vec![McpServer::stdio("t", "srv", ["x"])]);
    params.extra_args = vec!["--config=mcp_optional_startup_grace_ms=0".into()];
    params.session_id = Some("01a1ffcf-9322-7b61-8654-8b3cf70c24fa".into());
    let settings = settings(&params);
    assert_eq!(settings[2], params.extra_args[0]);
    assert_eq!(settings[3], "resume");
}

#[test]
fn the_log_keeps_its_level_and_has_failures_of_servers() {
    let launch = launch(&params(vec![McpServer::stdio("t", "srv", ["x"])])).unwrap();
    // The caller's own variable is kept.
    assert!(launch.env_merged.is_empty());
    let (name, log) = &launch.env[0];
    assert_eq!(name, "RUST_LOG");
    assert!(log.ends_with(",codex_mcp::rmcp_client=warn"), "{log}");

    let default = "error,codex_mcp::rmcp_client=warn";
    assert_eq!(log_of(None), default);
    assert_eq!(log_of(Some(" ")), default);
    assert_eq!(
        log_of(Some("info,h2=off")),
        "info,h2=off,codex_mcp::rmcp_client=warn"
    );
}

#[test]
fn names_in_the_files_that_the_cli_would_mix_are_taken() {
    let mut params = params(vec![McpServer::stdio("t", "srv", ["x"])]);
    let root = std::path::absolute("/work").unwrap();
    params.working_directory = Some(root.join("a"));
    let files = |params: &ExecuteParams| -> Vec<PathBuf> {
        let taken = launch(params).unwrap().names_taken;
        for table in &taken {
            assert_eq!(
                (table.key, table.format),
                ("mcp_servers", ConfigFormat::Toml)
            );
        }
        taken.into_iter().map(|table| table.file).collect()
    };
    let mut expected = vec![PathBuf::from("/etc/codex/config.toml")];
    for above in root.join("a").ancestors() {
        expected.push(above.join(".codex/config.toml"));
    }
    let user = PathBuf::from("/home/me/.codex/config.toml");
    expected.push(user.clone());
    assert_eq!(files(&params), expected);

    // The lease itself refuses names that are taken in the file that it changes.
    params.mcp_delivery = McpDelivery::UserConfig;
    expected.retain(|file| *file != user);
    assert_eq!(files(&params), expected);
}

#[test]
fn the_users_file_is_in_the_home_of_the_cli() {
    let file = |env: &[(&str, &str)]| {
        let mut params = params(vec![McpServer::stdio("t", "srv", ["x"])]);
        params.mcp_delivery = McpDelivery::UserConfig;
        params.env = pairs(env).into_iter().collect();
        let config = launch(&params).map(|launch| launch.config.unwrap());
        config.map(|config| config.table.file)
    };
    assert_eq!(
        file(&[("CODEX_HOME", "/c"), ("HOME", "/h")]).unwrap(),
        Path::new("/c/config.toml")
    );
    assert_eq!(
        file(&[("CODEX_HOME", ""), ("HOME", "/h")]).unwrap(),
        Path::new("/h/.codex/config.toml")
    );
    let error = file(&[("CODEX_HOME", ""), ("HOME", "")]).unwrap_err();
    assert!(error.message.starts_with("mcp_delivery: "), "{error}");
}

#[test]
fn a_lease_holds_the_same_definitions_and_no_secrets() {
    let mut params = params(vec![
        McpServer::http("docs", "https://example.com").header("A", "s3cr3t"),
        McpServer::stdio("t", "srv", ["x"]),
    ]);
    params.mcp_delivery = McpDelivery::UserConfig;
    let launched = launch(&params).unwrap();
    let expected = ConfigEdit {
        table: ConfigTable {
            file: "/home/me/.codex/config.toml".into(),
            format: ConfigFormat::Toml,
            key: "mcp_servers",
        },
        entries: vec![
            (
                "docs".into(),
                json!({
                    "url": "https://example.com",
                    "env_http_headers": {"A": "TEAMSTER_MCP_docs_x_A"},
                    "default_tools_approval_mode": "approve",
                }),
            ),
            (
                "t".into(),
                json!({
                    "command": "srv",
                    "args": ["x"],
                    "env_vars": ["TEAMSTER_RUN_ID"],
                    "default_tools_approval_mode": "approve",
                }),
            ),
        ],
        new_file: "",
        location: ConfigLocation::Lease,
    };
    assert_eq!(launched.config, Some(expected));
    assert_eq!(
        secrets(&launched),
        pairs(&[("TEAMSTER_MCP_docs_x_A", "s3cr3t")])
    );
    assert_eq!(
        settings(&params),
        [
            r#"--config=shell_environment_policy.set={TEAMSTER_MCP_docs_x_A=""}"#,
            "--config=mcp_optional_startup_grace_ms=31000",
        ]
    );
}

#[test]
fn invalid_fields_are_refused_by_server_and_field() {
    let stdio = |name: &str| McpServer::stdio(name, "srv", ["x"]);
    let mut cases = vec![
        (stdio("codex_apps"), "codex_apps: name: "),
        (stdio("a.b"), "a.b: name: "),
        (McpServer::sse("t", "https://example.com"), "t: type: "),
        (
            McpServer::http("t", "https://me:s3cr3t@example.com"),
            "t: url: ",
        ),
        (
            McpServer::http("t", "https://example.com/?api_key=s3cr3t"),
            "t: url: ",
        ),
        (
            McpServer::http("t", "https://example.com").header("A", "s3cr3t\u{7f}"),
            "t: headers.A: ",
        ),
    ];
    for name in ["A-B", "1A", "a.b", "é", "A B", "$(x)", "A;x"] {
        cases.push((stdio("t").env(name, "s3cr3t"), "t: env: "));
    }
    for name in ["UID", "SHLVL", "_", "OPTIND", "BASHPID", "BASH_COMMAND"] {
        cases.push((stdio("t").env(name, "s3cr3t"), "t: env: "));
    }
    let server = McpServer::stdio("t", "-srv", ["x"]).env("A", "s3cr3t");
    cases.push((server, "t: command: "));
    for (server, begins) in cases {
        let message = refused(&params(vec![server]));
        assert!(
            message.starts_with(&format!("mcp_servers: {begins}")),
            "{message}"
        );
        assert!(!message.contains("s3cr3t"), "{message}");
    }
    let mut strict = params(vec![stdio("t")]);
    strict.mcp_strict = true;
    assert!(refused(&strict).starts_with("mcp_strict: "));
    strict.mcp_strict = false;
    strict.mcp_delivery = McpDelivery::ProjectConfig;
    assert!(refused(&strict).starts_with("mcp_delivery: "));
}

/// Starts a server as the CLI would, and returns its output: texts that each end with a NUL byte.
fn seen(shell: Option<&str>, server: McpServer) -> Vec<String> {
    let launch = launch(&params(vec![server])).unwrap();
    let definition = launch.args.into_iter().find_map(|arg| {
        let arg = arg.into_string().unwrap();
        let value = arg.strip_prefix("--config=mcp_servers.t=")?.to_owned();
        ::toml::from_str::<::toml::Table>(&format!("t = {value}")).ok()
    });
    let definition = &definition.unwrap()["t"];
    let list = |key: &str| -> Vec<&str> {
        let items = definition[key].as_array().unwrap();
        items.iter().map(|item| item.as_str().unwrap()).collect()
    };
    let handed_on: BTreeSet<_> = list("env_vars").into_iter().collect();
    let command = shell.unwrap_or(definition["command"].as_str().unwrap());
    let output = Command::new(command)
        .args(list("args"))
        .env_clear()
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .envs(
            launch
                .env
                .into_iter()
                .filter(|(name, _)| handed_on.contains(name.as_str())),
        )
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    let text = String::from_utf8(output.stdout).unwrap();
    let mut texts: Vec<_> = text.split('\0').map(str::to_owned).collect();
    assert_eq!(texts.pop().as_deref(), Some(""));
    texts
}

/// Returns the environment of such a server.
fn seen_env(shell: Option<&str>, values: &[(&str, &str)]) -> Vec<(String, String)> {
    let mut server = McpServer::stdio("t", "env", ["-0"]);
    for (name, value) in values {
        server = server.env(*name, *value);
    }
    let texts = seen(shell, server);
    let pairs = texts.iter().map(|text| text.split_once('=').unwrap());
    pairs
        .map(|(name, value)| (name.into(), value.into()))
        .collect()
}

#[test]
fn the_server_gets_exactly_its_variables_with_any_values() {
    let values = [
        ("QUOTES", "a'b\"c\\"),
        ("LINES", "a\nb\r\n\n"),
        ("EXPANSION", "$x ${HOME} $(id) `id` !! ~ *"),
        ("EMPTY", ""),
        ("SPACE", "  a  b\t"),
        ("UNICODE", "é 🌍 \u{1}\u{7f}"),
        ("IFS", "t,/"),
        ("ENV", "/no/such/file"),
        ("BASH_ENV", "/no/such/file"),
        ("CDPATH", "/"),
        ("PS4", "$(id)"),
        ("PATH", "/usr/bin:/bin:/x y"),
        ("TEAMSTER_MCP_t_x_LINES", "another's name"),
    ];
    for shell in [None, Some("/bin/bash")] {
        if shell.is_some_and(|shell| !Path::new(shell).exists()) {
            continue;
        }
        let seen_env = seen_env(shell, &values);
        for (name, value) in values {
            let found: Vec<_> = seen_env.iter().filter(|(seen, _)| seen == name).collect();
            assert_eq!(found, [&(name.to_owned(), value.to_owned())]);
        }
        // Other variables are only those that shells set themselves.
        let own: BTreeSet<_> = values.iter().map(|(name, _)| *name).collect();
        for (name, _) in &seen_env {
            let by_shell = ["PWD", "SHLVL", "_", "OLDPWD"].contains(&name.as_str());
            assert!(by_shell || own.contains(name.as_str()), "{name}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_secret_is_in_an_argument_or_a_file(
        server in "[A-Za-z0-9_-]{1,20}",
        keys in proptest::collection::btree_set("[A-Z][A-Z0-9]{3,8}_K", 1..4),
        text in "[^\\x00-\\x1f\\x7f]{0,20}",
        in_file in any::<bool>(),
    ) {
        let secret = format!("s3cr3t-{text}");
        let mut program = McpServer::stdio(&server, "srv", ["x"]);
        let mut http = McpServer::http(format!("{server}h"), "https://example.com");
        for key in &keys {
            program = program.env(key, &secret);
            http = http.header(key, &secret);
        }
        let mut params = params(vec![program, http]);
        if in_file {
            params.mcp_delivery = McpDelivery::UserConfig;
        }
        let launch = launch(&params).unwrap();
        let args = format!("{:?}", launch.args);
        prop_assert!(!args.contains("s3cr3t"), "{}", args);
        let config = format!("{:?}", launch.config);
        prop_assert!(!config.contains("s3cr3t"), "{}", config);
        prop_assert!(launch.private_files.is_empty());
        let given = secrets(&launch);
        let variables: BTreeSet<_> = given.iter().map(|(name, _)| name).collect();
        prop_assert_eq!(variables.len(), 2 * keys.len());
        prop_assert!(given.iter().all(|(_, value)| *value == secret));
    }

    #[test]
    fn any_value_and_argument_reaches_the_server(
        values in proptest::collection::btree_map("[A-Z][A-Z0-9]{3,8}_K", "[^\\x00]{0,30}", 1..4),
        args in proptest::collection::vec("[^\\x00]{0,20}", 0..3),
    ) {
        let given: Vec<_> = values.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
        let seen_env: BTreeMap<_, _> = seen_env(None, &given).into_iter().collect();
        for (name, value) in &values {
            prop_assert_eq!(seen_env.get(name), Some(value));
        }
        let server = McpServer::stdio("t", "printf", ["%s\\0", "first"].map(str::to_owned).into_iter().chain(args.clone()));
        prop_assert_eq!(&seen(None, server.env("A", ""))[1..], args);
    }
}
