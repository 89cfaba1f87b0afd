use std::collections::BTreeMap;
use std::path::Path;

use super::*;
use crate::command_line::{Cli, Command};
use clap::{CommandFactory, Parser};
use proptest::prelude::*;
use std::time::Duration;
use teamster::{
    EnvPolicy, ExecuteParams, McpDelivery, McpServer, PermissionMode, SubAgent, SystemPrompt,
    Timeouts,
};

fn args(line: &[&str]) -> RunArgs {
    let line = ["teamster", "run", "claude"].iter().chain(line);
    match Cli::try_parse_from(line).unwrap().command {
        Command::Run(args) => *args,
        other => panic!("{other:?}"),
    }
}

fn spec(line: &[&str]) -> anyhow::Result<RunSpec> {
    let line: Vec<_> = ["--stdin=ignore"].iter().chain(line).copied().collect();
    Ok(of_run(args(&line))?.0)
}

fn params(line: &[&str]) -> ExecuteParams {
    teamster_host::params::of_run(&spec(line).unwrap()).unwrap()
}

fn error(line: &[&str]) -> String {
    let params = spec(line).and_then(|spec| Ok(teamster_host::params::of_run(&spec)?));
    format!("{:#}", params.unwrap_err())
}

#[test]
fn every_field_has_a_flag() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let text = "---\nname: reviewer\ndescription: Reviews\n---\nYou review.\n";
    std::fs::write(file.path(), text).unwrap();
    let agent_file = format!("--agent-file={}", file.path().display());
    let params = params(&[
        "the prompt",
        "--slash-commands",
        "--resume=old",
        "--session-id=new",
        "--title=Nightly review",
        "--fallback-model=haiku",
        "--fork",
        "--cwd=/w",
        "--add-dir=/a",
        "--add-dir=/b",
        "--skill=/s",
        &agent_file,
        r#"--hooks={"hooks": {"Stop": []}}"#,
        "--env=A=1",
        "--append-system-prompt=be brief",
        "--model=m",
        "--effort=high",
        "--permission=read-only",
        "--allow-tool=Bash(git *)",
        "--deny-tool=Write",
        "--max-turns=3",
        "--max-budget-usd=0.5",
        "--output-schema={\"type\":\"object\"}",
        "--image=a.PNG",
        "--mcp-config={\"b\": {\"command\": \"x\", \"env\": {\"V\": \"${A}\"}}}",
        "--mcp=c=https://example.com/mcp",
        "--mcp-via=user-config",
        "--mcp-strict",
        "--cli-retries=2",
        "--keep-background",
        "--startup-timeout=10s",
        "--idle-timeout=off",
        "--tool-timeout=1h",
        "--",
        "--extra",
        "x",
    ]);
    assert_eq!(params.prompt, "the prompt");
    assert_eq!(params.session_id.as_deref(), Some("old"));
    assert_eq!(params.new_session_id.as_deref(), Some("new"));
    assert_eq!(params.title.as_deref(), Some("Nightly review"));
    assert_eq!(params.fallback_model.as_deref(), Some("haiku"));
    assert!(params.slash_commands);
    assert!(params.fork);
    assert_eq!(params.working_directory.as_deref(), Some(Path::new("/w")));
    assert_eq!(params.add_dirs, [Path::new("/a"), Path::new("/b")]);
    assert_eq!(params.skills, [Path::new("/s")]);
    assert_eq!(
        params.sub_agents,
        [SubAgent::new("reviewer", "Reviews", "You review.")]
    );
    assert_eq!(params.hooks, Some(serde_json::json!({"Stop": []})));
    assert_eq!(params.env, BTreeMap::from([("A".into(), "1".into())]));
    assert_eq!(
        params.system_prompt,
        Some(SystemPrompt::Append("be brief".into()))
    );
    assert_eq!(params.model.as_deref(), Some("m"));
    assert_eq!(params.effort.as_deref(), Some("high"));
    assert_eq!(params.permission, PermissionMode::ReadOnly);
    assert_eq!(params.allowed_tools, ["Bash(git *)"]);
    assert_eq!(params.denied_tools, ["Write"]);
    assert_eq!(params.max_turns, Some(3));
    assert_eq!(params.max_budget_usd, Some(0.5));
    assert_eq!(
        params.output_schema,
        Some(serde_json::json!({"type": "object"}))
    );
    assert_eq!(params.images[0].media_type, "image/png");
    assert_eq!(
        params.mcp_servers,
        [
            McpServer::stdio("b", "x", Vec::<String>::new()).env("V", "1"),
            McpServer::http("c", "https://example.com/mcp"),
        ]
    );
    assert_eq!(params.mcp_delivery, McpDelivery::UserConfig);
    assert!(params.mcp_strict);
    assert_eq!(params.cli_retries, Some(2));
    assert_eq!(params.extra_args, ["--extra", "x"]);
    assert!(params.keep_background);
    assert_eq!(
        params.timeouts,
        Timeouts {
            startup: Some(Duration::from_secs(10)),
            idle: Some(Duration::MAX),
            tool: Some(Duration::from_hours(1)),
        }
    );
}

#[test]
fn every_parameter_name_has_a_flag_of_run() {
    let command = Cli::command();
    let run = command.find_subcommand("run").unwrap();
    // A policy for requests is a callback, and `usage_updates` is set by the orchestrator, for --max-tokens.
    let names = ExecuteParams::NAMES.iter();
    for name in names.filter(|name| !["cancel", "permissions", "usage_updates"].contains(*name)) {
        let typed = crate::hints::option(name)
            .unwrap_or_else(|| panic!("{name} has no name on the command line"));
        for flag in typed
            .split([',', ' '])
            .filter_map(|it| it.strip_prefix("--"))
        {
            let there = run.get_arguments().any(|it| it.get_long() == Some(flag));
            assert!(there, "{name}: run has no --{flag}");
        }
    }
}

#[test]
fn no_options_give_default_parameters() {
    let params = params(&["x"]);
    let default = ExecuteParams::new("x");
    assert_eq!(format!("{params:?}"), format!("{default:?}"));
    // The fields that `Debug` leaves out.
    assert!(!params.slash_commands && !params.include_native && !params.keep_background);
    assert!(params.add_dirs.is_empty() && params.skills.is_empty() && params.images.is_empty());
    assert!(params.sub_agents.is_empty() && params.hooks.is_none());
    assert!(params.system_prompt.is_none() && params.output_schema.is_none());
    assert!(params.cli_retries.is_none() && params.extra_args.is_empty());
}

#[test]
fn errors_are_specific_and_hide_values() {
    assert!(error(&["x", "--image=a.bmp"]).contains("a.bmp is not an image"));
    assert!(error(&["x", "--output-schema={nope"]).contains("is not JSON"));
    assert!(error(&["x", "--output-schema=/no/such"]).contains("cannot read the schema"));
    assert!(error(&["x", "--hooks=[]"]).contains("cannot read the file of hooks"));
    assert!(error(&["x", "--hooks={}"]).contains("--hooks: expected {\"hooks\": {…}}"));
    let settings = r#"--hooks={"hooks": {}, "model": "m"}"#;
    assert!(error(&["x", settings]).contains("there is \"model\" too"));
    assert!(error(&["x", "--env==secret"]).contains("--env needs KEY"));
    assert!(!error(&["x", "--env==secret"]).contains("secret"));
    let missing = error(&["x", "--env=TEAMSTER_TEST_NO_SUCH_VARIABLE"]);
    assert!(missing.contains("no such variable"), "{missing}");
    assert!(Cli::try_parse_from(["teamster", "run", "claude"]).is_err());
    assert!(Cli::try_parse_from(["teamster", "run", "nobody", "x"]).is_err());
}

#[test]
fn a_clean_environment_has_the_path() {
    let spec = spec(&["x", "--clean-env", "--bin=/b", "--record=/r"]).unwrap();
    let info = crate::global::providers().get("claude").unwrap().info();
    let config = teamster_host::params::runtime_config(&spec.trusted, info).unwrap();
    assert!(config.die_with_parent);
    assert_eq!(config.program.as_deref(), Some(Path::new("/b")));
    assert_eq!(config.record_to, Some(Path::new("/r").into()));
    let EnvPolicy::Clean { allow } = config.env_policy else {
        panic!("{:?}", config.env_policy);
    };
    assert!(allow.contains(&"PATH".to_owned()));
    assert_eq!(info.program_variable(), "TEAMSTER_CLAUDE_BIN");
}

/// Options with a value, and values that they take.
fn options() -> impl Strategy<Value = Vec<String>> {
    let text = |flag: &'static str| "[ -~]{1,12}".prop_map(move |text| format!("--{flag}={text}"));
    let time = |flag: &'static str| {
        prop_oneof![
            Just("off".to_owned()),
            (1..u32::MAX).prop_map(|ms| format!("{ms}ms"))
        ]
        .prop_map(move |time| format!("--{flag}={time}"))
    };
    let number = |flag: &'static str| (1..u32::MAX).prop_map(move |it| format!("--{flag}={it}"));
    let each = [
        text("model").boxed(),
        text("effort").boxed(),
        text("session-key").boxed(),
        text("cwd").boxed(),
        text("allow-tool").boxed(),
        text("deny-tool").boxed(),
        text("append-system-prompt").boxed(),
        text("add-dir").boxed(),
        text("skill").boxed(),
        text("store").boxed(),
        text("image").boxed(),
        text("artifact").boxed(),
        text("push").boxed(),
        text("output").boxed(),
        text("bin").boxed(),
        time("max-time").boxed(),
        time("max-wait").boxed(),
        time("ask-timeout").boxed(),
        time("idle-timeout").boxed(),
        number("max-turns").boxed(),
        number("max-budget-usd").boxed(),
        number("max-tokens").boxed(),
        number("retries").boxed(),
        number("cli-retries").boxed(),
        prop_oneof![Just("codex"), Just("codex:gpt-5.1"), Just("cmd:tr a b")]
            .prop_map(|agent| format!("--fallback={agent}"))
            .boxed(),
        proptest::sample::select(PermissionMode::ALL)
            .prop_map(|mode| format!("--permission={mode}"))
            .boxed(),
        Just("--slash-commands".to_owned()).boxed(),
        Just("--worktree".to_owned()).boxed(),
        Just("--detach".to_owned()).boxed(),
    ];
    let some = each.map(|option| proptest::option::of(option).boxed());
    some.to_vec()
        .prop_map(|options| options.into_iter().flatten().collect())
}

proptest! {
    #[test]
    fn a_description_is_the_same_after_json(options in options()) {
        let line: Vec<&str> = ["p"].into_iter().chain(options.iter().map(|it| &**it)).collect();
        let program = ["teamster", "run", "claude", "--stdin=ignore"];
        // Combinations that the parser refuses are no runs.
        if let Ok(Cli { command: Command::Run(args), .. }) = Cli::try_parse_from(program.iter().chain(&line)) {
            let (spec, _) = of_run(*args).unwrap();
            let json = serde_json::to_string(&spec).unwrap();
            prop_assert_eq!(serde_json::from_str::<RunSpec>(&json).unwrap(), spec);
        }
    }
}
