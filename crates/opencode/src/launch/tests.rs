//! Launches of hand-made parameters. The CLI's interpretation of its command line is tested in
//! `tests/conformance.rs`.

use serde_json::{Value, json};
use teamster_core::provider::PathLocation;
use teamster_core::{ErrorCode, Image, PermissionMode, SystemPrompt};

use super::*;

type Change = fn(&mut ExecuteParams);

/// Returns parameters without values of this test's environment.
fn params(prompt: &str) -> ExecuteParams {
    let mut params = ExecuteParams::new(prompt);
    for name in ["OPENCODE_CONFIG_CONTENT", "OPENCODE_PERMISSION"] {
        params.env.insert(name.into(), String::new());
    }
    params.working_directory = Some("/w".into());
    params
}

fn args(params: &ExecuteParams) -> Vec<String> {
    let args = launch(params).unwrap().args.into_iter();
    args.map(|arg| arg.into_string().unwrap()).collect()
}

fn variable(params: &ExecuteParams, name: &str) -> Value {
    let launch = launch(params).unwrap();
    let found = launch.env_merged.iter().find(|(known, _)| known == name);
    found.map_or(Value::Null, |(_, value)| {
        serde_json::from_str(value).unwrap()
    })
}

fn config(params: &ExecuteParams) -> Value {
    variable(params, "OPENCODE_CONFIG_CONTENT")
}

fn permission(params: &ExecuteParams) -> Value {
    variable(params, "OPENCODE_PERMISSION")
}

/// Returns the names of an object's fields in their order, which matters in rules.
fn keys(value: &Value) -> Vec<&str> {
    value
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect()
}

#[test]
fn a_plain_run() {
    let params = params("--help /init @file\n");
    assert_eq!(
        args(&params),
        ["run", "--format=json", "--thinking", "--dir=/w", "--title="]
    );
    let launch = launch(&params).unwrap();
    assert_eq!(launch.stdin, Stdin::Bytes(b"--help /init @file\n".to_vec()));
    assert_eq!(launch.timeouts.startup, Some(Duration::from_mins(5)));
    assert_eq!(launch.timeouts.idle, Some(Duration::from_mins(30)));
    assert!(launch.stop_first.is_none() && launch.private_files.is_empty());
    // The CLI unpacks libraries there in every run, and never removes them.
    assert!(launch.private_tmp);
    assert!(
        launch
            .env
            .contains(&("OPENCODE_PRINT_LOGS".into(), "1".into()))
    );
    assert!(launch.env_remove.contains(&"OPENCODE_CLIENT"));
    assert_eq!(
        config(&params),
        json!({"experimental": {"continue_loop_on_deny": true}})
    );
    assert_eq!(permission(&params), questions());
}

/// Returns the rules of every run.
fn questions() -> Value {
    json!({"question": "deny", "question *": "deny", "plan_enter": "deny",
           "plan_enter *": "deny", "plan_exit": "deny", "plan_exit *": "deny"})
}

#[test]
fn every_value_is_joined_to_its_flag() {
    let mut params = params("hi");
    params.session_id = Some("--auto".into());
    params.fork = true;
    params.model = Some("-m/--x".into());
    params.effort = Some("--yolo".into());
    params.permission = PermissionMode::Bypass;
    params.extra_args = vec!["--pure".into(), "word".into()];
    params.images = vec![
        Image {
            media_type: "image/png".into(),
            // The launch does not open it.
            source: ImageSource::Path("/no/such.png".into()),
        },
        Image {
            media_type: "image/png".into(),
            source: ImageSource::Bytes(vec![1, 2]),
        },
    ];
    assert_eq!(
        args(&params),
        [
            "run",
            "--format=json",
            "--file=/no/such.png",
            "--file=",
            "--thinking",
            "--dir=/w",
            "--session=--auto",
            "--fork",
            "--model=-m/--x",
            "--variant=--yolo",
            "--auto",
            "--pure",
            "word"
        ]
    );
    let launch = launch(&params).unwrap();
    assert_eq!(launch.private_files[0].location, PathLocation::Argument(3));
    assert_eq!(launch.private_files[0].content, [1, 2]);
    assert_eq!(launch.timeouts.startup, Some(Duration::from_mins(3)));
}

#[test]
fn directory_differs_from_the_root_despite_a_stale_variable() {
    let mut params = params("hi");
    params.working_directory = Some("a/--b".into());
    let here = env::current_dir().unwrap();
    let expected = format!("--dir={}", here.join("a/--b").display());
    assert!(args(&params).contains(&expected), "{expected}");
    params.working_directory = None;
    assert!(args(&params).contains(&format!("--dir={}", here.display())));
    params.extra_args = vec!["--dir=/x".into()];
    assert_eq!(args(&params)[3..], ["--title=", "--dir=/x"]);
}

#[test]
fn questions_are_denied_to_a_resumed_session_of_any_agent() {
    let mut params = params("hi");
    params.session_id = Some("ses_1".into());
    params.allowed_tools = vec!["*".into()];
    let config = config(&params);
    for agent in ["build", "plan", "general", "explore"] {
        assert_eq!(config["agent"][agent]["permission"]["question"], "deny");
    }
    // After the rule that allows all, because the last rule applies, and after rules of a file under `mode`.
    assert_eq!(
        keys(&config["agent"]["build"]["permission"]),
        ["*", "question", "plan_enter", "plan_exit"]
    );
    for agent in ["build", "plan"] {
        assert_eq!(
            keys(&config["mode"][agent]["permission"]),
            ["question *", "plan_enter *", "plan_exit *"]
        );
    }
    // Under `mode`, a run could start with these agents.
    assert_eq!(config["mode"]["explore"], Value::Null);
    assert_eq!(
        config["agent"]["explore"]["permission"]["question *"],
        "deny"
    );
    assert_eq!(keys(&permission(&params))[0], "*");
    assert_eq!(keys(&permission(&params)).len(), 7);
}

#[test]
fn read_only_is_stronger_than_allowed_tools_and_the_users_agent() {
    let mut params = params("hi");
    params.permission = PermissionMode::ReadOnly;
    params.allowed_tools = vec!["*".into()];
    let config = config(&params);
    assert_eq!(config["default_agent"], "build");
    let rules = &config["agent"]["build"]["permission"];
    assert_eq!(keys(rules), ["*", "edit", "bash", "task"]);
    assert_eq!(rules["bash"], "deny");
    assert_eq!(config["mode"]["build"]["disable"], false);
    let rules = &config["mode"]["build"]["permission"];
    let last: Vec<_> = keys(rules)
        .into_iter()
        .map(|k| k.trim_end_matches('*'))
        .collect();
    assert_eq!(last, ["edit", "bash", "task"]);
    for key in keys(rules) {
        assert!(key.ends_with(&"*".repeat(16)), "{key}");
        assert_eq!(rules[key], "deny");
    }

    // An agent that the caller names is kept, and gets the rules.
    params.extra_args = vec!["--agent".into(), "mine".into()];
    let config = self::config(&params);
    assert_eq!(config["default_agent"], Value::Null);
    assert_eq!(config["agent"]["mine"]["permission"]["edit"], "deny");
    assert_eq!(
        keys(&config["mode"]["mine"]["permission"])[0].trim_end_matches('*'),
        "edit"
    );
}

#[test]
fn a_plan_has_an_agent_whose_commands_need_permission() {
    let mut params = params("hi");
    params.permission = PermissionMode::Plan;
    params.allowed_tools = vec!["task".into()];
    let config = config(&params);
    assert_eq!(config["default_agent"], "plan");
    assert_eq!(config["mode"]["plan"]["disable"], false);
    let rules = &config["agent"]["plan"]["permission"];
    assert_eq!(
        (&rules["bash"], &rules["task"]),
        (&json!("ask"), &json!("allow"))
    );
    let last = keys(&config["mode"]["plan"]["permission"]);
    assert_eq!(last.len(), 1, "{last:?}");
    assert_eq!(last[0].trim_end_matches('*'), "bash");

    params.extra_args = vec!["--agent".into(), "mine".into()];
    let error = launch(&params).unwrap_err();
    assert!(error.message.starts_with("permission: "), "{error}");
}

#[test]
fn tools_are_set_by_name_or_by_their_permission() {
    let mut params = params("hi");
    params.permission = PermissionMode::AcceptEdits;
    params.allowed_tools = vec!["webfetch".into()];
    params.denied_tools = vec!["bash".into(), "db_*".into()];
    let rules = permission(&params);
    assert_eq!(rules["edit"], "allow");
    assert_eq!(rules["webfetch"], "allow");
    assert_eq!(
        (&rules["bash"], &rules["db_*"]),
        (&json!("deny"), &json!("deny"))
    );
    let config = config(&params);
    assert_eq!(config["agent"]["build"]["permission"]["edit"], "allow");
    assert_eq!(config["agent"]["explore"]["permission"]["bash"], "deny");
    params.permission = PermissionMode::Default;
    params.denied_tools = vec!["write".into()];
    assert_eq!(permission(&params)["edit"], "deny");
}

/// Returns these rules, those of every run, and the two of a tool. The random key of one is copied from the found
/// rules.
fn with_stars(tool: &str, mut rules: Value, found: &Value) -> Value {
    let starred = keys(found).into_iter().find(|key| {
        key.strip_prefix(tool)
            .is_some_and(|stars| stars.len() >= 16 && stars.chars().all(|c| c == '*'))
    });
    for (name, action) in questions().as_object().unwrap() {
        rules[name] = action.clone();
    }
    rules[tool] = json!("deny");
    rules[starred.unwrap()] = json!("deny");
    rules
}

#[test]
fn a_denied_tool_is_denied_under_a_key_that_no_file_has() {
    let mut params = params("hi");
    params.denied_tools = vec!["bash".into(), "db_get".into(), "x_*".into()];
    let own = r#"{"mode": {"own": {"permission": "allow"}}, "experimental": {"primary_tools": 5}}"#;
    params
        .env
        .insert("OPENCODE_CONFIG_CONTENT".into(), own.into());
    let config = config(&params);
    let of = |section: &str, agent: &str| {
        keys(&config[section][agent]["permission"])
            .into_iter()
            .map(|key| key.replace("****", "").trim_end_matches('*').to_owned())
            .collect::<Vec<_>>()
    };
    // Names of the server's other tools have the same prefix: an exact key.
    for agent in ["build", "plan"] {
        assert_eq!(of("mode", agent), ["bash", "db_get ", "x_* "]);
    }
    assert_eq!(of("mode", "own"), ["", "bash", "db_get ", "x_* "]);
    assert_eq!(
        of("agent", "general"),
        ["bash", "bash", "db_get", "db_get ", "x_", "x_* "]
    );
    // Sub-agents' sessions of any name do not have them.
    assert_eq!(
        config["experimental"]["primary_tools"],
        json!(["bash", "db_get", "x_*"])
    );
}

#[test]
fn the_stars_are_others_in_another_run() {
    let mut params = params("hi");
    params.permission = PermissionMode::ReadOnly;
    let all: std::collections::BTreeSet<String> =
        (0..40).map(|_| config(&params).to_string()).collect();
    assert!(all.len() > 1);
}

#[test]
fn settings_of_the_caller_in_the_variables_are_kept() {
    let mut params = params("hi");
    params.denied_tools = vec!["bash".into()];
    params.system_prompt = Some(SystemPrompt::Append("Be brief.".into()));
    let own = r#"{"model": "a/b", "instructions": ["x.md"], "default_agent": "mine",
        "experimental": {"continue_loop_on_deny": false},
        "agent": {"mine": {"permission": "allow", "prompt": "{env:X}"}}}"#;
    params
        .env
        .insert("OPENCODE_CONFIG_CONTENT".into(), own.into());
    let rules = r#"{"bash": {"git *": "allow"}, "edit": "ask"}"#;
    params
        .env
        .insert("OPENCODE_PERMISSION".into(), rules.into());
    let config = config(&params);
    assert_eq!(config["model"], "a/b");
    assert_eq!(
        config["instructions"],
        json!(["x.md", "{env:TEAMSTER_OPENCODE_INSTRUCTIONS}"])
    );
    assert_eq!(config["default_agent"], "mine");
    assert_eq!(config["experimental"]["continue_loop_on_deny"], false);
    assert_eq!(
        config["agent"]["mine"],
        json!({"permission": {"*": "allow", "bash": "deny"}, "prompt": "{env:X}"})
    );
    let permission = permission(&params);
    assert_eq!(
        permission,
        with_stars("bash", json!({"edit": "ask"}), &permission)
    );
}

#[test]
fn configuration_that_is_not_plain_json_is_kept_or_refused() {
    let mut params = params("hi");
    let own = "{\"model\": \"a/b\", // mine\n}";
    params
        .env
        .insert("OPENCODE_CONFIG_CONTENT".into(), own.into());
    assert_eq!(config(&params), Value::Null);
    params.session_id = Some("ses_1".into());
    assert_eq!(config(&params), Value::Null);
    let cases: [(&str, Change); 6] = [
        ("skills:", |p| p.skills = vec!["/x".into()]),
        ("permission:", |p| p.permission = PermissionMode::ReadOnly),
        ("allowed_tools:", |p| p.allowed_tools = vec!["bash".into()]),
        ("denied_tools:", |p| p.denied_tools = vec!["bash".into()]),
        ("add_dirs:", |p| p.add_dirs = vec!["/x".into()]),
        ("system_prompt:", |p| {
            p.system_prompt = Some(SystemPrompt::Replace("x".into()));
        }),
    ];
    for (name, change) in cases {
        let mut params = params.clone();
        change(&mut params);
        let error = launch(&params).unwrap_err();
        assert!(error.message.starts_with(name), "{error}");
        assert!(error.message.contains("OPENCODE_CONFIG_CONTENT"), "{error}");
    }
}

#[test]
fn a_system_prompt_is_in_a_file_where_nothing_in_it_is_replaced() {
    let mut params = params("hi");
    let text = "Read {file:/etc/hostname} and {env:HOME}.";
    params.system_prompt = Some(SystemPrompt::Replace(text.into()));
    let config = config(&params);
    assert_eq!(
        config["agent"]["build"]["prompt"],
        "{file:{env:TEAMSTER_OPENCODE_PROMPT}}"
    );
    assert_eq!(
        config["mode"]["build"]["prompt"],
        config["agent"]["build"]["prompt"]
    );
    assert_eq!(config["default_agent"], "build");
    let file = &launch(&params).unwrap().private_files[0];
    assert_eq!(file.content, text.as_bytes());
    assert_eq!(
        file.location,
        PathLocation::Variable("TEAMSTER_OPENCODE_PROMPT".into())
    );
}

#[test]
fn other_directories_are_allowed_to_all_agents_that_are_known() {
    let mut params = params("hi");
    params.add_dirs = vec!["/data".into(), "/var/x y/".into()];
    let config = config(&params);
    for agent in ["build", "plan", "general", "explore"] {
        assert_eq!(
            config["agent"][agent]["permission"]["external_directory"],
            json!({"/data": "allow", "/data/*": "allow", "/var/x y/": "allow",
                   "/var/x y/*": "allow"})
        );
    }
}

#[test]
fn skills_are_searched_beside_those_of_the_caller() {
    let mut params = params("hi");
    params.skills = vec!["/a skill".into(), "/b".into()];
    let skills = |params: &ExecuteParams| config(params)["skills"].clone();
    assert_eq!(skills(&params), json!({"paths": ["/a skill", "/b"]}));
    let own = json!({"skills": {"paths": ["/own"], "urls": ["https://x/"]}}).to_string();
    params.env.insert("OPENCODE_CONFIG_CONTENT".into(), own);
    assert_eq!(
        skills(&params),
        json!({"paths": ["/own", "/a skill", "/b"], "urls": ["https://x/"]})
    );
}

#[test]
fn invalid_parameters_are_refused_by_name() {
    let cases: &[(&str, Change)] = &[
        ("prompt:", |p| p.prompt = " \n".into()),
        ("prompt:", |p| {
            p.prompt = String::new();
            p.images = vec![Image {
                media_type: "image/png".into(),
                source: ImageSource::Bytes(vec![1]),
            }];
        }),
        ("fork:", |p| p.fork = true),
        ("model:", |p| p.model = Some("sonnet".into())),
        ("model:", |p| p.model = Some("anthropic/".into())),
        ("model:", |p| p.model = Some("\"a/b\"".into())),
        ("session_id:", |p| p.session_id = Some("'x'".into())),
        ("effort:", |p| p.effort = Some("\"".into())),
        ("working_directory:", |p| {
            p.working_directory = Some("".into());
        }),
        ("skills:", |p| p.skills = vec!["x".into()]),
        ("skills:", |p| p.skills = vec!["/{env:HOME}".into()]),
        ("add_dirs:", |p| p.add_dirs = vec!["x".into()]),
        ("add_dirs:", |p| p.add_dirs = vec!["/x*".into()]),
        ("denied_tools:", |p| {
            p.denied_tools = vec!["bash(git *)".into()];
        }),
        ("allowed_tools:", |p| p.allowed_tools = vec![String::new()]),
        ("allowed_tools:", |p| {
            p.allowed_tools = vec!["write".into()];
            p.denied_tools = vec!["edit".into()];
        }),
        ("system_prompt:", |p| {
            p.system_prompt = Some(SystemPrompt::Append(" ".into()));
        }),
        ("extra_args:", |p| {
            p.model = Some("a/b".into());
            p.extra_args = vec!["-m".into(), "c/d".into()];
        }),
        ("extra_args:", |p| {
            p.extra_args = vec!["--format=default".into()];
        }),
    ];
    for (name, change) in cases {
        let mut params = params("hi");
        change(&mut params);
        let error = launch(&params).unwrap_err();
        assert_eq!(error.code, ErrorCode::InvalidParams);
        assert!(error.message.starts_with(name), "{name}: {error}");
    }
}

#[test]
fn servers_in_the_callers_configuration_are_known() {
    let mut params = params("hi");
    assert_eq!(known_servers(&params), Vec::<String>::new());
    // Disabled servers have no tools, and a server without a name has none.
    let own = r#"{"mcp": {"probe": {"type": "local"}, "my db": {}, "probe_2": {"enabled": false},
        "": {"type": "local"}}}"#;
    params
        .env
        .insert("OPENCODE_CONFIG_CONTENT".into(), own.into());
    assert_eq!(known_servers(&params), ["probe", "my db"]);
}

#[test]
fn byte_order_mark_is_doubled_because_the_cli_drops_one() {
    for (prompt, stdin) in [
        ("\u{feff}x", "\u{feff}\u{feff}x"),
        ("x\u{feff}", "x\u{feff}"),
    ] {
        let launch = launch(&ExecuteParams::new(prompt)).unwrap();
        assert_eq!(launch.stdin, Stdin::Bytes(stdin.as_bytes().to_vec()));
    }
}
