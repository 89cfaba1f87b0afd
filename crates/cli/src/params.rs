//! Converts command-line arguments to the library's parameters.

use std::collections::BTreeMap;
use std::env;
use std::ffi::OsStr;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use serde_json::Value;
use teamster::{CliInfo, EnvPolicy, ExecuteParams, Image, RuntimeConfig, SystemPrompt, Timeouts};

use crate::args::{
    AgentSessionArgs, ChatArgs, EnvVar, McpArgs, ModelArgs, PermissionArgs, ProcessArgs, RunArgs,
    SystemArgs, TimeoutArgs,
};
use crate::args::{REMOTE_TOKEN_VARIABLE, STORE_VARIABLE};
use crate::mcp;

/// The variables that `--clean-env` keeps. Without them, most CLIs find neither their programs nor their login.
const CLEAN_ENV: [&str; 10] = [
    "PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "TZ", "TERM", "TMPDIR",
];

/// Returns the parameters of a run, and warnings about settings without effect. Every error is a usage error.
pub(crate) fn execute_params(
    args: &RunArgs,
    stdin: impl Read,
) -> anyhow::Result<(ExecuteParams, Vec<String>)> {
    let mut params = ExecuteParams::new(prompt(args, stdin)?);
    params.prompt_delivery = args.input.prompt_via;
    params.slash_commands = args.input.slash_commands;
    session(&args.session.agent, &mut params);
    apply_process_args(&args.process, &mut params)?;
    params.system_prompt = system_prompt(&args.input.system)?;
    model(&args.model, &mut params);
    permissions(&args.permissions, &mut params);
    params.max_turns = args.limits.max_turns;
    params.max_budget_usd = args.limits.max_budget_usd;
    params.output_schema = args
        .input
        .output_schema
        .as_deref()
        .map(schema)
        .transpose()?;
    params.images = args
        .input
        .image
        .iter()
        .map(|file| image(file))
        .collect::<anyhow::Result<_>>()?;
    let ignored = mcp_servers(&args.mcp, &mut params)?;
    params.cli_retries = args.limits.cli_retries;
    params.extra_args.clone_from(&args.extra_args);
    params.include_native = args.output.native;
    timeouts(&args.limits.timeouts, &mut params);
    Ok((params, ignored))
}

/// Returns the parameters of a chat, and warnings about settings without effect. Every error is a usage error.
pub(crate) fn chat_params(args: &ChatArgs) -> anyhow::Result<(ExecuteParams, Vec<String>)> {
    let mut params = ExecuteParams::new("");
    session(&args.session, &mut params);
    apply_process_args(&args.process, &mut params)?;
    params.system_prompt = system_prompt(&args.system)?;
    model(&args.model, &mut params);
    permissions(&args.permissions, &mut params);
    let ignored = mcp_servers(&args.mcp, &mut params)?;
    params.cli_retries = args.limits.cli_retries;
    params.extra_args.clone_from(&args.extra_args);
    params.include_native = args.output.native;
    timeouts(&args.limits.timeouts, &mut params);
    Ok((params, ignored))
}

fn session(args: &AgentSessionArgs, params: &mut ExecuteParams) {
    params.session_id.clone_from(&args.resume);
    params.new_session_id.clone_from(&args.session_id);
    params.fork = args.fork;
}

fn apply_process_args(args: &ProcessArgs, params: &mut ExecuteParams) -> anyhow::Result<()> {
    params.working_directory.clone_from(&args.cwd);
    params.add_dirs.clone_from(&args.add_dir);
    params.env = environment(&args.env)?;
    params.keep_background = args.keep_background;
    Ok(())
}

fn model(args: &ModelArgs, params: &mut ExecuteParams) {
    params.model.clone_from(&args.model);
    params.effort.clone_from(&args.effort);
}

fn permissions(args: &PermissionArgs, params: &mut ExecuteParams) {
    params.permission = args.permission;
    params.allowed_tools.clone_from(&args.allow_tool);
    params.denied_tools.clone_from(&args.deny_tool);
}

fn timeouts(args: &TimeoutArgs, params: &mut ExecuteParams) {
    params.timeouts = Timeouts {
        startup: args.startup,
        idle: args.idle,
        tool: args.tool,
    };
}

/// Sets the MCP servers. Their variables come from the agent's environment, then from this process's. Returns
/// warnings about settings without effect.
fn mcp_servers(args: &McpArgs, params: &mut ExecuteParams) -> anyhow::Result<Vec<String>> {
    let sources = mcp::sources(&args.servers)?;
    let env = &params.env;
    let given = mcp::parse_servers(&sources, &|name| {
        env.get(name).cloned().or_else(|| env::var(name).ok())
    })?;
    params.mcp_servers = given.servers;
    params.mcp_delivery = args.mcp_via;
    params.mcp_strict = args.mcp_strict;
    Ok(given.ignored)
}

/// Returns the agent's working directory as an absolute path.
pub(crate) fn working_directory(args: &ProcessArgs) -> Option<PathBuf> {
    match &args.cwd {
        Some(directory) => std::path::absolute(directory).ok(),
        None => env::current_dir().ok(),
    }
}

/// Returns the runtime configuration of a run.
pub(crate) fn runtime_config(args: &RunArgs, info: &CliInfo) -> RuntimeConfig {
    let mut config = process_config(&args.process, info);
    config.record_to.clone_from(&args.record);
    config
}

/// Returns the runtime configuration of a session's first agent.
pub(crate) fn chat_config(args: &ChatArgs, info: &CliInfo) -> RuntimeConfig {
    let mut config = process_config(&args.process, info);
    config.record_to.clone_from(&args.record);
    config
}

/// Returns the runtime configuration of the first agent.
pub(crate) fn process_config(args: &ProcessArgs, info: &CliInfo) -> RuntimeConfig {
    let mut config = agent_config(args, info);
    if let Some(program) = &args.bin {
        config.program = Some(program.clone());
    }
    config
}

/// Returns the runtime configuration of a fallback agent, to which `--bin` does not apply.
pub(crate) fn fallback_config(args: &RunArgs, info: &CliInfo) -> RuntimeConfig {
    agent_config(&args.process, info)
}

pub(crate) fn agent_config(args: &ProcessArgs, info: &CliInfo) -> RuntimeConfig {
    let mut config = base_config();
    config.program = program_variable(info);
    if args.clean_env {
        config.env_policy = EnvPolicy::Clean {
            allow: CLEAN_ENV
                .into_iter()
                .map(str::to_owned)
                .chain(args.keep_env.iter().cloned())
                .collect(),
        };
    }
    config
}

/// Returns the settings common to all runs of this program.
pub(crate) fn base_config() -> RuntimeConfig {
    let mut config = RuntimeConfig::default();
    // The agent must not outlive a killed teamster.
    config.die_with_parent = true;
    // These may hold a password or a token.
    config.env_remove = [STORE_VARIABLE, REMOTE_TOKEN_VARIABLE]
        .map(str::to_owned)
        .to_vec();
    config
}

/// Returns the value of `TEAMSTER_<AGENT>_BIN`.
pub(crate) fn program_variable(info: &CliInfo) -> Option<PathBuf> {
    env::var_os(info.program_variable())
        .filter(|value| !value.is_empty())
        .map(PathBuf::from)
}

/// Reads the prompt, without additional text on stdin.
pub(crate) fn prompt(args: &RunArgs, mut stdin: impl Read) -> anyhow::Result<String> {
    let text = match (&args.prompt_file, args.prompt.as_deref()) {
        (Some(file), _) => read_text(file, "the prompt")?,
        (None, Some("-")) => {
            let mut bytes = Vec::new();
            stdin
                .read_to_end(&mut bytes)
                .context("cannot read the prompt from stdin")?;
            String::from_utf8(bytes)
                .ok()
                .context("the prompt on stdin is not UTF-8 text")?
        }
        (None, text) => text.unwrap_or_default().to_owned(),
    };
    if text.trim().is_empty() {
        bail!("the prompt is empty");
    }
    Ok(text)
}

pub(crate) fn system_prompt(input: &SystemArgs) -> anyhow::Result<Option<SystemPrompt>> {
    let what = "the system prompt";
    Ok(if let Some(text) = &input.system_prompt {
        Some(SystemPrompt::Replace(text.clone()))
    } else if let Some(file) = &input.system_prompt_file {
        Some(SystemPrompt::Replace(read_text(file, what)?))
    } else if let Some(text) = &input.append_system_prompt {
        Some(SystemPrompt::Append(text.clone()))
    } else if let Some(file) = &input.append_system_prompt_file {
        Some(SystemPrompt::Append(read_text(file, what)?))
    } else {
        None
    })
}

fn read_text(file: &Path, what: &str) -> anyhow::Result<String> {
    let bytes =
        fs::read(file).with_context(|| format!("cannot read {what} from {}", file.display()))?;
    String::from_utf8(bytes)
        .ok()
        .with_context(|| format!("{what} in {} is not UTF-8 text", file.display()))
}

pub(crate) fn schema(value: &str) -> anyhow::Result<Value> {
    let (text, place) = if value.trim_start().starts_with('{') {
        (value.to_owned(), "in --output-schema".to_owned())
    } else {
        (
            read_text(Path::new(value), "the schema")?,
            format!("in {value}"),
        )
    };
    serde_json::from_str(&text).with_context(|| format!("the schema {place} is not JSON"))
}

fn image(file: &Path) -> anyhow::Result<Image> {
    let extension = file
        .extension()
        .and_then(OsStr::to_str)
        .unwrap_or_default()
        .to_ascii_lowercase();
    let media_type = match &*extension {
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "gif" => "image/gif",
        "webp" => "image/webp",
        _ => bail!(
            "{} is not an image of a supported type: expected .png, .jpg, .jpeg, .gif or .webp",
            file.display()
        ),
    };
    Ok(Image::file(media_type, file))
}

fn environment(vars: &[EnvVar]) -> anyhow::Result<BTreeMap<String, String>> {
    vars.iter()
        .map(|EnvVar { name, value }| {
            if name.is_empty() {
                bail!("--env needs KEY=VALUE or KEY");
            }
            let value = match value {
                Some(value) => value.clone(),
                None => match env::var(name) {
                    Ok(value) => value,
                    Err(env::VarError::NotPresent) => {
                        bail!("--env {name}: no such variable in teamster's environment")
                    }
                    Err(env::VarError::NotUnicode(_)) => {
                        bail!("--env {name}: the variable's value is not UTF-8 text")
                    }
                },
            };
            Ok((name.clone(), value))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{Cli, Command};
    use clap::{CommandFactory, Parser};
    use std::time::Duration;
    use teamster::{McpDelivery, McpServer, PermissionMode, PromptDelivery};

    fn args(line: &[&str]) -> RunArgs {
        let line = ["teamster", "run", "claude"].iter().chain(line);
        match Cli::try_parse_from(line).unwrap().command {
            Command::Run(args) => *args,
            other => panic!("{other:?}"),
        }
    }

    fn params(line: &[&str]) -> ExecuteParams {
        let (params, ignored) = execute_params(&args(line), "from stdin".as_bytes()).unwrap();
        assert_eq!(ignored, [""; 0]);
        params
    }

    fn error(line: &[&str]) -> String {
        format!(
            "{:#}",
            execute_params(&args(line), "".as_bytes()).unwrap_err()
        )
    }

    #[test]
    fn every_field_has_a_flag() {
        let params = params(&[
            "the prompt",
            "--prompt-via=stdin",
            "--slash-commands",
            "--resume=old",
            "--session-id=new",
            "--fork",
            "--cwd=/w",
            "--add-dir=/a",
            "--add-dir=/b",
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
            "--json",
            "--native",
            "--keep-background",
            "--startup-timeout=10s",
            "--idle-timeout=off",
            "--tool-timeout=1h",
            "--",
            "--extra",
            "x",
        ]);
        assert_eq!(params.prompt, "the prompt");
        assert_eq!(params.prompt_delivery, PromptDelivery::Stdin);
        assert_eq!(params.session_id.as_deref(), Some("old"));
        assert_eq!(params.new_session_id.as_deref(), Some("new"));
        assert!(params.slash_commands);
        assert!(params.fork);
        assert_eq!(params.working_directory.as_deref(), Some(Path::new("/w")));
        assert_eq!(params.add_dirs, [Path::new("/a"), Path::new("/b")]);
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
        assert!(params.include_native);
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
        // `usage_updates` is set by the orchestrator, for --max-tokens.
        let names = ExecuteParams::NAMES.iter();
        for name in names.filter(|name| !["cancel", "usage_updates"].contains(*name)) {
            let typed = crate::hints::flag(name)
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
        assert!(params.add_dirs.is_empty() && params.images.is_empty());
        assert!(params.system_prompt.is_none() && params.output_schema.is_none());
        assert!(params.cli_retries.is_none() && params.extra_args.is_empty());
    }

    #[test]
    fn a_dash_is_stdin() {
        assert_eq!(params(&["-"]).prompt, "from stdin");
        assert_eq!(error(&["-"]), "the prompt is empty");
    }

    #[test]
    fn errors_are_specific_and_hide_values() {
        assert!(error(&["x", "--image=a.bmp"]).contains("a.bmp is not an image"));
        assert!(error(&["x", "--output-schema={nope"]).contains("is not JSON"));
        assert!(error(&["x", "--output-schema=/no/such"]).contains("cannot read the schema"));
        assert!(error(&["x", "--env==secret"]).contains("--env needs KEY"));
        assert!(!error(&["x", "--env==secret"]).contains("secret"));
        let missing = error(&["x", "--env=TEAMSTER_TEST_NO_SUCH_VARIABLE"]);
        assert!(missing.contains("no such variable"), "{missing}");
        assert!(Cli::try_parse_from(["teamster", "run", "claude"]).is_err());
        assert!(Cli::try_parse_from(["teamster", "run", "nobody", "x"]).is_err());
    }

    #[test]
    fn a_clean_environment_keeps_what_is_named() {
        let args = args(&[
            "x",
            "--clean-env",
            "--keep-env=FOO",
            "--bin=/b",
            "--record=/r",
        ]);
        let info = crate::providers().get("claude").unwrap().info();
        let config = runtime_config(&args, info);
        assert!(config.die_with_parent);
        assert_eq!(config.program.as_deref(), Some(Path::new("/b")));
        assert_eq!(config.record_to.as_deref(), Some(Path::new("/r")));
        let EnvPolicy::Clean { allow } = config.env_policy else {
            panic!("{:?}", config.env_policy);
        };
        assert!(allow.contains(&"PATH".to_owned()) && allow.contains(&"FOO".to_owned()));
        assert_eq!(info.program_variable(), "TEAMSTER_CLAUDE_BIN");
    }
}
