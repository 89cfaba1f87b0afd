//! Hints: the next step after an error of a run, by its code and kind.
//!
//! How to install a CLI and how to log in is in the `CliInfo` of its provider.

mod advice;
mod flags;
mod refusal;

use std::collections::BTreeSet;

use teamster::acp::AcpAgent;
use teamster::{
    AgentError, BudgetKind, CliInfo, ErrorCode, ErrorDetail, ErrorKind, McpDelivery,
    PermissionDenial, PermissionMode,
};

use crate::words;

pub(crate) use advice::{advice, of_problem};
pub(crate) use flags::{message, option, warning};
pub(crate) use refusal::usage;

/// Returns the next step after an error, if there is one. `bin` is the variable that sets the CLI's program, `mcp`
/// the delivery of the run's MCP servers, if it has any, `permission` the run's mode, if it is known, and `now_ms` the
/// current time in milliseconds since the Unix epoch.
pub(crate) fn next_step(
    error: &AgentError,
    info: &CliInfo,
    bin: &str,
    mcp: Option<McpDelivery>,
    permission: Option<PermissionMode>,
    now_ms: u64,
) -> Option<String> {
    let wait = || {
        let until = error.resets_at_ms.map(|at| at.saturating_sub(now_ms));
        error
            .retry_after_ms
            .or(until)
            .map(|ms| format!("wait {} and try again", words::duration_ms(ms)))
    };
    let step = match (error.code, error.kind) {
        // The message has the next step: what is installed here does not count.
        (ErrorCode::CliNotFound, _) if error.parameter() == Some("container") => return None,
        (ErrorCode::CliNotFound, _) => not_found(error, info, bin),
        (ErrorCode::StartupTimeout, _)
            if matches!(error.detail.as_deref(), Some(ErrorDetail::NotRetried { .. })) =>
        {
            return None;
        }
        (ErrorCode::StreamEndedEarly | ErrorCode::StartupTimeout, _)
        | (ErrorCode::CliError, ErrorKind::Invalid)
            if info.id.starts_with(AcpAgent::PREFIX) =>
        {
            format!(
                "`teamster doctor --try '{}'` shows whether it is an ACP agent; a program that prints text is run as 'cmd:…'",
                info.id
            )
        }
        (ErrorCode::StartupTimeout, _) if mcp.is_some() => {
            "an MCP server that does not respond can block the start: run `teamster mcp check`, or raise --startup-timeout"
            .to_owned()
        }
        (ErrorCode::StartupTimeout, _) => {
            "if the CLI is just slow to start, raise --startup-timeout".to_owned()
        }
        (ErrorCode::WatchdogTimeout, _) => {
            "if it was just slow, raise --idle-timeout or --tool-timeout".to_owned()
        }
        (ErrorCode::BudgetExceeded, _) => {
            let flag = match error.budget() {
                Some(BudgetKind::Time) => "--max-time",
                Some(BudgetKind::Tokens) => "--max-tokens",
                Some(BudgetKind::Usd) => "--max-budget-usd",
                Some(BudgetKind::Turns) => "--max-turns",
                _ => "--max-time, --max-tokens, --max-budget-usd or --max-turns",
            };
            format!("raise {flag}, or continue with --resume")
            }
        (ErrorCode::ProviderOnHold, _) => {
            let wait = wait().unwrap_or_else(|| "wait a little and try again".to_owned());
            format!(
                "{wait} (--max-wait waits), name another agent with --fallback, or run `teamster accounts release {}` \
                 if the limit is gone",
                words::shell_word(info.id)
            )
        }
        // The message already has the remedy.
        (
            ErrorCode::InvalidParams | ErrorCode::PromptTooLarge | ErrorCode::SessionInUse,
            _,
        ) => return None,
        (ErrorCode::ConfigLease, _) => {
            let advice = "fix that and try again; `teamster mcp restore` restores files that killed runs left changed";
            // This fails at the start of a run only, before a CLI was started.
            if mcp.is_some_and(|way| way != McpDelivery::Private) && can_be_private(info) {
                format!("use --mcp-via private (the default), which changes no file; or {advice}")
            } else {
                advice.to_owned()
            }
        }
        (_, ErrorKind::Auth) => info.login.to_owned(),
        (_, ErrorKind::RateLimit) => {
            wait().unwrap_or_else(|| "wait a little and try again".to_owned())
        }
        (_, ErrorKind::Quota) => wait().unwrap_or_else(|| {
            "wait until the limit resets, or use another account or key".to_owned()
        }),
        (_, ErrorKind::Overloaded) => {
            wait().unwrap_or_else(|| "the service has problems: try again later".to_owned())
        }
        (_, ErrorKind::Network) if is_local(&error.message) => {
            "start the service at that address, such as `ollama serve`, or choose another model".to_owned()
        }
        (_, ErrorKind::Network) => {
            "check the connection (and HTTPS_PROXY, if there is a proxy) and try again".to_owned()
        }
        (_, ErrorKind::ContextWindow) => {
            "start a new session (omit --resume), or split the task".to_owned()
        }
        (_, ErrorKind::ModelNotFound) => {
            format!("choose a model of {} with --model", info.name)
        }
        (_, ErrorKind::SessionNotFound) => {
            "check the id and --cwd (some CLIs find a session only in the directory where it started), or omit --resume"
                .to_owned()
        }
        (_, ErrorKind::Permission) => allow(permission, false, info),
        (_, ErrorKind::Budget) => "raise --max-budget-usd, or continue with --resume".to_owned(),
        (_, ErrorKind::MaxTurns) => "raise --max-turns, or continue with --resume".to_owned(),
        (_, ErrorKind::Mcp) => {
            format!(
                "run `teamster mcp check`, and check the servers in the configuration of {}",
                info.name
            )
        }
        _ => return None,
    };
    Some(step)
}

/// Returns the next step after the error of a CLI that is not there.
fn not_found(error: &AgentError, info: &CliInfo, bin: &str) -> String {
    let doctor = "`teamster doctor` lists the agents that it finds";
    let variable = info.program_variable();
    match error.detail.as_deref() {
        // The message already has the install command.
        Some(ErrorDetail::MissingProgram { install, .. }) if !install.is_empty() => {
            format!("if it is installed, set its path with {bin}; {doctor}")
        }
        Some(ErrorDetail::MissingProgram { program, .. }) if program == "node" => {
            format!("install a newer Node.js, or set {bin} to a program that starts with one")
        }
        // The user has named the command.
        _ if info.install.is_empty() => {
            "check the command: its program is neither there nor on PATH".to_owned()
        }
        _ if std::env::var(&variable)
            .is_ok_and(|it| !it.is_empty() && error.message.contains(&it)) =>
        {
            format!("correct {variable}, or unset it; {doctor}")
        }
        _ => format!(
            "install it with `{}`, or set its path with {bin}; {doctor}",
            info.install
        ),
    }
}

fn can_be_private(info: &CliInfo) -> bool {
    crate::global::providers()
        .get(info.id)
        .is_some_and(|provider| {
            let mcp = provider.capabilities().mcp;
            mcp.deliveries.contains(&McpDelivery::Private)
        })
}

/// Returns `true` if the message names an address on this machine.
fn is_local(message: &str) -> bool {
    ["//127.0.0.1", "//localhost", "//[::1]"]
        .iter()
        .any(|host| message.contains(host))
}

/// Returns what a run of this CLI in this mode can be given after denied permissions. `has_tools`: what was denied is
/// allowed by name already.
fn allow(mode: Option<PermissionMode>, has_tools: bool, info: &CliInfo) -> String {
    // What is denied nevertheless, the user or the CLI's settings forbid.
    if mode == Some(PermissionMode::Bypass) {
        return "it is forbidden by --deny-tool or by the CLI's settings".to_owned();
    }
    if mode == Some(PermissionMode::Plan) {
        return "it is for later: run the plan without --permission plan".to_owned();
    }
    let provider = crate::global::providers().get(info.id);
    let can = provider.as_ref().map(|provider| provider.capabilities());
    let has = |mode| can.is_none_or(|can| can.permission_modes.contains(&mode));
    let mut flags = Vec::new();
    if !has_tools && can.is_none_or(|can| can.allowed_tools) {
        flags.push("--allow-tool");
    }
    if mode != Some(PermissionMode::AcceptEdits) && has(PermissionMode::AcceptEdits) {
        flags.push("--permission accept-edits");
    }
    if has(PermissionMode::Bypass) {
        flags.push("--permission bypass");
    }
    match flags.split_last() {
        Some((last, [])) => format!("allow it with {last}"),
        Some((last, others)) => format!("allow it with {} or {last}", others.join(", ")),
        None => "allow it in the CLI's settings".to_owned(),
    }
}

/// Describes denied tool calls, with the next step unless a person has denied them.
pub(crate) fn denials(
    denials: &[PermissionDenial],
    (mode, allowed_tools): (Option<PermissionMode>, &[String]),
    info: &CliInfo,
    by_person: bool,
) -> String {
    let is_allowed = |denial: &PermissionDenial| allowed_tools.contains(&denial.tool_name);
    let has_tools = !denials.is_empty() && denials.iter().all(is_allowed);
    let names = denials
        .iter()
        .map(|denial| words::one_line(&denial.tool_name));
    let names: Vec<_> = names.collect::<BTreeSet<_>>().into_iter().collect();
    let calls = words::plural(denials.len() as u64, "tool call");
    let names = names.join(", ");
    if by_person {
        format!("{calls} ({names})")
    } else {
        format!("{calls} ({names}): {}", allow(mode, has_tools, info))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info() -> &'static CliInfo {
        crate::global::providers().get("claude").unwrap().info()
    }

    fn step(code: ErrorCode, kind: ErrorKind) -> Option<String> {
        next_step(
            &AgentError::new(code, kind, "x"),
            info(),
            "--bin",
            None,
            None,
            0,
        )
    }

    #[test]
    fn the_code_counts_before_the_kind() {
        let missing = step(ErrorCode::CliNotFound, ErrorKind::NotFound).unwrap();
        assert!(
            missing.contains("npm install -g @anthropic-ai/claude-code"),
            "{missing}"
        );
        // The step does not repeat a command in the message.
        let detail = ErrorDetail::missing_program("claude", "npm install it");
        let error =
            AgentError::new(ErrorCode::CliNotFound, ErrorKind::NotFound, "x").detail(detail);
        let missing = next_step(&error, info(), "--bin", None, None, 0).unwrap();
        assert!(missing.starts_with("if it is installed"), "{missing}");
        let error = AgentError::new(ErrorCode::CliNotFound, ErrorKind::NotFound, "x");
        let contained = next_step(&error.about("container"), info(), "--bin", None, None, 0);
        assert_eq!(contained, None);
        let start = step(ErrorCode::StartupTimeout, ErrorKind::Timeout).unwrap();
        assert!(start.contains("--startup-timeout"), "{start}");
        let lease = step(ErrorCode::ConfigLease, ErrorKind::Mcp).unwrap();
        assert!(lease.contains("teamster mcp restore"), "{lease}");
        let local = "cannot reach http://127.0.0.1:11434/v1: Connection refused";
        let error = AgentError::new(ErrorCode::CliError, ErrorKind::Network, local);
        let local = next_step(&error, info(), "--bin", None, None, 0).unwrap();
        assert!(local.starts_with("start the service"), "{local}");
        assert_eq!(step(ErrorCode::Aborted, ErrorKind::Aborted), None);
        assert_eq!(step(ErrorCode::InvalidParams, ErrorKind::Permission), None);
        assert_eq!(step(ErrorCode::PromptTooLarge, ErrorKind::Invalid), None);
    }

    #[test]
    fn a_run_is_not_advised_what_it_has() {
        let denied = [PermissionDenial::new("Bash")];
        let shown = |mode, by_person| denials(&denied, (mode, &[]), info(), by_person);
        let expected = "1 tool call (Bash): allow it with --allow-tool, --permission accept-edits or --permission bypass";
        assert_eq!(shown(None, false), expected);
        assert_eq!(shown(Some(PermissionMode::Default), false), expected);
        assert_eq!(
            shown(Some(PermissionMode::AcceptEdits), false),
            "1 tool call (Bash): allow it with --allow-tool or --permission bypass"
        );
        let plan = shown(Some(PermissionMode::Plan), false);
        assert!(plan.ends_with("without --permission plan"), "{plan}");
        let bypass = shown(Some(PermissionMode::Bypass), false);
        assert!(
            bypass.ends_with("forbidden by --deny-tool or by the CLI's settings"),
            "{bypass}"
        );
        assert_eq!(
            shown(Some(PermissionMode::Default), true),
            "1 tool call (Bash)"
        );
        let tools = ["Bash".to_owned()];
        assert_eq!(
            denials(&denied, (None, &tools), info(), false),
            "1 tool call (Bash): allow it with --permission accept-edits or --permission bypass"
        );
        // A pattern may allow other commands only.
        let patterns = ["Bash(cargo *)".to_owned()];
        assert_eq!(denials(&denied, (None, &patterns), info(), false), expected);
        for (agent, expected) in [
            (
                "acp:my-agent",
                "allow it with --permission accept-edits or --permission bypass",
            ),
            ("cmd:my-agent {prompt}", "allow it with --permission bypass"),
        ] {
            let provider = crate::global::providers().get(agent).unwrap();
            assert_eq!(allow(None, false, provider.info()), expected);
        }
        let error = AgentError::new(ErrorCode::CliError, ErrorKind::Permission, "x");
        let mode = Some(PermissionMode::AcceptEdits);
        let step = next_step(&error, info(), "--bin", None, mode, 0).unwrap();
        assert_eq!(step, "allow it with --allow-tool or --permission bypass");
    }

    #[test]
    fn a_command_that_is_not_an_acp_agent_can_be_checked() {
        let info = CliInfo::new("acp:cat", "cat", "cat");
        let error = AgentError::new(ErrorCode::CliError, ErrorKind::Invalid, "Method not found");
        let step = next_step(&error, &info, "--bin", None, None, 0).unwrap();
        assert!(
            step.starts_with("`teamster doctor --try 'acp:cat'` shows"),
            "{step}"
        );
    }

    #[test]
    fn the_delivery_of_servers_changes_the_next_step() {
        let step = |code, mcp| {
            let error = AgentError::new(code, ErrorKind::Mcp, "x");
            next_step(&error, info(), "--bin", mcp, None, 0).unwrap()
        };
        for way in [McpDelivery::ProjectConfig, McpDelivery::UserConfig] {
            assert_eq!(
                step(ErrorCode::ConfigLease, Some(way)),
                "use --mcp-via private (the default), which changes no file; or fix that and try again; `teamster mcp restore` restores files that killed runs left changed"
            );
        }
        let private = step(ErrorCode::ConfigLease, Some(McpDelivery::Private));
        assert!(!private.contains("--mcp-via"), "{private}");
        assert_eq!(
            step(ErrorCode::StartupTimeout, Some(McpDelivery::Private)),
            "an MCP server that does not respond can block the start: run `teamster mcp check`, or raise --startup-timeout"
        );
        let none = step(ErrorCode::StartupTimeout, None);
        assert!(!none.contains("MCP"), "{none}");
    }

    #[test]
    fn parameters_are_named_by_their_flags() {
        for (parameter, problem, shown) in [
            (
                "new_session_id",
                "a UUID: only",
                "--session-id: a UUID: only",
            ),
            ("what", "is it", "what: is it"),
            (
                "new_session_id",
                "it keeps its id unless `fork` is set, with session_id",
                "--session-id: it keeps its id unless `--fork` is set, with --resume",
            ),
            (
                "working_directory",
                "a/session_id model is missing",
                "--cwd: a/session_id model is missing",
            ),
        ] {
            assert_eq!(message(&AgentError::refused(parameter, problem)), shown);
        }
        let server = AgentError::refused_server("a", "cwd: X cannot");
        assert_eq!(message(&server), "--mcp-config, --mcp: a: cwd: X cannot");
        for (original, shown) in [
            ("Error: no such file", "no such file"),
            ("model: no such", "model: no such"),
        ] {
            let error = AgentError::new(ErrorCode::CliError, ErrorKind::Invalid, original);
            assert_eq!(message(&error), shown);
        }
    }

    #[test]
    fn fixable_errors_have_a_next_step() {
        for (kind, word) in [
            (ErrorKind::Auth, "/login"),
            (ErrorKind::SessionNotFound, "--cwd"),
            (ErrorKind::Permission, "--allow-tool"),
            (ErrorKind::ModelNotFound, "--model"),
            (ErrorKind::Budget, "--max-budget-usd"),
            (ErrorKind::MaxTurns, "--max-turns"),
            (ErrorKind::RateLimit, "wait a little"),
            (ErrorKind::Mcp, "teamster mcp check"),
        ] {
            let step = step(ErrorCode::CliError, kind).unwrap();
            assert!(step.contains(word), "{kind:?}: {step}");
        }
    }

    #[test]
    fn the_flag_of_the_budget_that_is_spent() {
        let of = |detail: Option<ErrorDetail>| {
            let error = AgentError::new(ErrorCode::BudgetExceeded, ErrorKind::Budget, "spent");
            let error = detail.into_iter().fold(error, AgentError::detail);
            next_step(&error, info(), "--bin", None, None, 0).unwrap()
        };
        for (budget, flag) in [
            (BudgetKind::Time, "--max-time"),
            (BudgetKind::Tokens, "--max-tokens"),
            (BudgetKind::Usd, "--max-budget-usd"),
            (BudgetKind::Turns, "--max-turns"),
        ] {
            assert_eq!(
                of(Some(ErrorDetail::budget(budget, Some(3.0)))),
                format!("raise {flag}, or continue with --resume")
            );
        }
        assert_eq!(
            of(None),
            "raise --max-time, --max-tokens, --max-budget-usd or --max-turns, or continue with --resume"
        );
    }

    #[test]
    fn a_command_without_a_package_is_not_advised_to_be_installed() {
        let info = CliInfo::new("acp:nope", "nope", "nope");
        let error = AgentError::new(ErrorCode::CliNotFound, ErrorKind::NotFound, "x");
        let step = next_step(&error, &info, "--bin", None, None, 0).unwrap();
        assert_eq!(
            step,
            "check the command: its program is neither there nor on PATH"
        );
    }

    #[test]
    fn a_missing_program_names_its_variable() {
        let error = AgentError::new(ErrorCode::CliNotFound, ErrorKind::NotFound, "x");
        let step = next_step(&error, info(), "TEAMSTER_CLAUDE_BIN", None, None, 0).unwrap();
        assert!(
            step.contains("set its path with TEAMSTER_CLAUDE_BIN;"),
            "{step}"
        );
    }

    #[test]
    fn a_known_wait_is_named() {
        let mut error = AgentError::new(ErrorCode::CliError, ErrorKind::Quota, "x");
        error.resets_at_ms = Some(7_200_000);
        assert_eq!(
            next_step(&error, info(), "--bin", None, None, 3_600_000).unwrap(),
            "wait 1h 00m and try again"
        );
    }
}
