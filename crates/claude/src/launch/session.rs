//! Launch of Claude Code for a session of many turns.

use std::fs;

use serde_json::Value;
use teamster_core::provider::{Launch, Stdin};
use teamster_core::{AgentError, ExecuteParams, PermissionPolicy, SessionOptions};

use super::{check, flags, started};
use crate::session::ASK_USER;

/// A tool that the CLI has only with a handler of permission requests, and that goes around it: it changes the permission
/// mode. In that mode a classifier decides about commands in place of the handler, and edits that the session's mode allows
/// are requested.
const ENTER_PLAN_MODE: &str = "EnterPlanMode";

/// Variable that makes the CLI print `session_state_changed`.
const STATES: &str = "CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS";

pub(crate) fn launch_session(options: &SessionOptions) -> Result<Launch, AgentError> {
    let mut params = options.params.clone();
    // A placeholder: each turn has its own prompt and images.
    "-".clone_into(&mut params.prompt);
    params.images.clear();
    check(&params)?;
    if params.max_budget_usd.is_some() {
        return Err(AgentError::refused(
            "max_budget_usd",
            "in a session it would limit all turns together, and no turn could begin once it is spent; \
             leave it out and check the cost of each turn",
        ));
    }
    let mut args = flags(&params);
    args.add("--input-format=stream-json");
    // The CLI's echo of a message confirms its receipt.
    args.add("--replay-user-messages");
    if !matches!(options.permissions, PermissionPolicy::Deny) {
        args.value("--permission-prompt-tool", "stdio");
        args.value("--disallowedTools", ENTER_PLAN_MODE);
        // Without a caller there is no answer to a question.
        if matches!(options.permissions, PermissionPolicy::Allow) {
            args.value("--disallowedTools", ASK_USER);
        }
    }
    args.add_all(&params.extra_args);
    let mut launch = started(&params, args, Stdin::Open(Vec::new()));
    // Makes the CLI report when it will start no turn by itself.
    launch.env.push((STATES.to_owned(), "1".to_owned()));
    Ok(launch)
}

/// Returns the launch of a process that is only asked what a session would offer. Measured with 2.1.197: without these flags,
/// the CLI runs the hooks of its start, starts the user's MCP servers, and runs the `apiKeyHelper` of the project's settings,
/// before it has a prompt. In this mode it does not look whether the user trusts the project.
pub(crate) fn launch_query(options: &SessionOptions) -> Result<Launch, AgentError> {
    let mut params = options.params.clone();
    params.session_id = None;
    params.fork = false;
    params.new_session_id = None;
    params.hooks = None;
    params.mcp_servers.clear();
    params.mcp_strict = true;
    let mut launch = launch_session(&SessionOptions::new(params))?;
    // The CLI takes the last settings.
    for arg in [
        "--no-session-persistence",
        r#"--settings={"disableAllHooks":true}"#,
    ] {
        launch.args.push(arg.into());
    }
    if !is_trusted(&options.params) {
        launch.args.push("--setting-sources=user".into());
    }
    Ok(launch)
}

/// Returns whether the user has trusted the working directory, or one above it, in the CLI's own dialog.
fn is_trusted(params: &ExecuteParams) -> bool {
    let trusts = || {
        let directory = match &params.working_directory {
            Some(directory) => directory.clone(),
            None => std::env::current_dir().ok()?,
        };
        // The CLI knows it without links.
        let directory = directory.canonicalize().ok()?;
        let config = params.cli_folder("CLAUDE_CONFIG_DIR", "")?;
        let config = fs::read(config.join(".claude.json")).ok()?;
        let config: Value = serde_json::from_slice(&config).ok()?;
        let projects = &config["projects"];
        let is_accepted = |name: &str| projects[name]["hasTrustDialogAccepted"] == true;
        let mut names = directory.ancestors().filter_map(|it| it.to_str());
        Some(names.any(is_accepted))
    };
    trusts().unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::ffi::OsString;

    use teamster_core::{ErrorCode, McpServer, PermissionAnswer, PermissionMode};

    use super::*;

    fn args(options: &SessionOptions) -> Vec<String> {
        let launch = launch_session(options).unwrap();
        let args = launch.args.into_iter().map(OsString::into_string);
        args.collect::<Result<_, _>>().unwrap()
    }

    #[test]
    fn session_starts_without_a_prompt_and_keeps_stdin_open() {
        let launch = launch_session(&SessionOptions::default()).unwrap();
        assert_eq!(launch.stdin, Stdin::Open(Vec::new()));
        assert_eq!(
            args(&SessionOptions::default()),
            [
                "-p",
                "--output-format=stream-json",
                "--verbose",
                "--include-partial-messages",
                "--input-format=stream-json",
                "--replay-user-messages",
            ]
        );
    }

    #[test]
    fn a_process_that_is_only_asked_begins_and_starts_nothing() {
        let mut params = ExecuteParams::new("");
        params.session_id = Some("4e7c1419-faa6-4b9e-a712-01520d2026c2".into());
        params.fork = true;
        params.hooks = Some(serde_json::json!({"Stop": []}));
        params.mcp_servers = vec![McpServer::stdio("tiny", "tool", ["--x"])];
        params.extra_args = vec!["--debug".into()];
        let nowhere = "/nowhere".to_owned();
        params.env.insert("CLAUDE_CONFIG_DIR".into(), nowhere);
        let launch = launch_query(&SessionOptions::new(params)).unwrap();
        let args: Vec<_> = launch.args.iter().map(|it| it.to_str().unwrap()).collect();
        assert_eq!(
            args[4..],
            [
                "--strict-mcp-config",
                "--input-format=stream-json",
                "--replay-user-messages",
                "--debug",
                "--no-session-persistence",
                r#"--settings={"disableAllHooks":true}"#,
                "--setting-sources=user",
            ]
        );
        assert!(launch.private_files.is_empty(), "neither servers nor hooks");
    }

    #[test]
    fn settings_of_a_project_are_read_if_the_user_trusts_it() {
        let home = tempfile::tempdir().unwrap();
        let root = home.path().canonicalize().unwrap();
        let folder = root.join("trusted/inner");
        fs::create_dir_all(&folder).unwrap();
        fs::create_dir(root.join("other")).unwrap();
        let trusted = root.join("trusted").to_str().unwrap().to_owned();
        let other = root.join("other").to_str().unwrap().to_owned();
        // In the form of 2.1.197.
        let config = serde_json::json!({"projects": {
            trusted: {"hasTrustDialogAccepted": true},
            other: {"hasTrustDialogAccepted": false},
        }});
        fs::write(root.join(".claude.json"), config.to_string()).unwrap();
        for (folder, is_read) in [("trusted/inner", true), ("other", false), ("gone", false)] {
            let mut params = ExecuteParams::new("").working_directory(root.join(folder));
            let config = root.to_str().unwrap().to_owned();
            params.env.insert("CLAUDE_CONFIG_DIR".into(), config);
            let launch = launch_query(&SessionOptions::new(params)).unwrap();
            let is_left_out = launch.args.iter().any(|it| *it == "--setting-sources=user");
            assert_eq!(is_left_out, !is_read, "{folder}");
        }
    }

    #[test]
    fn requests_need_a_handler() {
        let mut options = SessionOptions::default();
        options.permissions = PermissionPolicy::Allow;
        let asking = [
            "--permission-prompt-tool=stdio",
            "--disallowedTools=EnterPlanMode",
            "--disallowedTools=AskUserQuestion",
        ];
        assert_eq!(args(&options)[6..], asking);
        options.permissions = PermissionPolicy::decide(|_| PermissionAnswer::Allow);
        assert_eq!(
            args(&options)[6..],
            asking[..2],
            "a caller answers questions"
        );
        options.permissions = PermissionPolicy::Deny;
        assert_eq!(args(&options).len(), 6);
    }

    #[test]
    fn parameters_are_those_of_a_run() {
        let mut params = ExecuteParams::new("");
        params.model = Some("opus".into());
        params.session_id = Some("4e7c1419-faa6-4b9e-a712-01520d2026c2".into());
        params.fork = true;
        params.permission = PermissionMode::AcceptEdits;
        params.max_turns = Some(3);
        params.denied_tools = vec!["Bash".into()];
        params.extra_args = vec!["--bare".into()];
        params.cli_retries = Some(1);
        let mut server = McpServer::stdio("tiny", "tool", ["--x"]);
        if let teamster_core::McpTransport::Stdio { env, .. } = &mut server.transport {
            *env = BTreeMap::from([("KEY".into(), "secret".into())]);
        }
        params.mcp_servers = vec![server];
        let mut run = params.clone();
        run.prompt = "x".into();
        let run = super::super::launch(&run).unwrap();
        let session = launch_session(&SessionOptions::new(params)).unwrap();
        let mut args = session.args.clone();
        args.retain(|arg| arg != "--input-format=stream-json" && arg != "--replay-user-messages");
        assert_eq!(args[..], run.args[..args.len()]);
        assert_eq!(run.args[args.len()..], ["--", "x"]);
        assert_eq!(session.args.last().unwrap(), "--bare");
        assert_eq!(session.private_files, run.private_files);
        assert_eq!(session.env[..run.env.len()], run.env);
        assert_eq!(session.env[run.env.len()..], [(STATES.into(), "1".into())]);
        assert_eq!(session.timeouts, run.timeouts);
        assert!(!format!("{:?}", session.args).contains("secret"));
    }

    #[test]
    fn parameters_without_session_support_are_refused_by_name() {
        for (change, name) in [
            (
                (|p| p.max_budget_usd = Some(1.0)) as fn(&mut ExecuteParams),
                "max_budget_usd",
            ),
            (
                |p| p.new_session_id = Some("latest".into()),
                "new_session_id",
            ),
            (|p| p.fork = true, "fork"),
        ] {
            let mut params = ExecuteParams::new("");
            change(&mut params);
            let error = launch_session(&SessionOptions::new(params)).unwrap_err();
            assert_eq!(error.code, ErrorCode::InvalidParams);
            assert!(error.message.starts_with(&format!("{name}: ")), "{error}");
        }
    }
}
