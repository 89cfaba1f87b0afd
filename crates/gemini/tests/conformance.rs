//! Provider conformance tests for Gemini CLI 0.61.0.
#![cfg(test)]

use std::path::PathBuf;

use teamster_core::{ErrorKind, RunStatus, SystemPrompt, ToolKind};
use teamster_gemini::Gemini;
use teamster_testkit::conformance::{ArgvModel, Parser, Plain, Sent, Suite, Tool, Understood};

fn suite() -> Suite {
    use RunStatus::{Completed, Failed, Incomplete};
    let fixtures = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/gemini");
    Suite::new(Gemini, fixtures)
        .run_is_over(|lines| lines.iter().any(|line| line["type"] == "result"))
        .command_line(command_line(), understand)
        .prompt_becomes(|params| {
            let prompt = &params.prompt;
            let comment = prompt.starts_with("//") || prompt.starts_with("/*");
            let command = prompt.starts_with('/') && !comment && !params.slash_commands;
            let space = if command { " " } else { "" };
            format!("{space}{prompt}")
        })
        .plain(Plain {
            model: "gemini-2.5-flash",
            tool: "run_shell_command(git status)",
            // Isolates the runs from the settings of the user who runs the tests.
            env: &[
                ("GEMINI_CLI_HOME", "/no/home"),
                ("GEMINI_CLI_SYSTEM_SETTINGS_PATH", "/no/settings.json"),
            ],
            ..Plain::default()
        })
        .text("text_auto_model", "Hello, world! 你好，世界 🌍🚀 — done.")
        .text(
            "multi_turn",
            "Step 1. Step 2. Step 3. All three rounds done.",
        )
        .text("thinking", "After thinking: 42.")
        .text("ansi", "red bell \u{7} cr\r\nlf tab\t.")
        .text("tool_parallel_chunks", "First. Between. After. Read them.")
        // The output does not show which part was dropped.
        .text("drop_once", "PARTIAL-ONE PARTIAL-TWO FULL-ONE FULL-TWO.")
        .repeats(&["no_finish"])
        .call("tool_id", ToolKind::Execute)
        .call("auto_edit_write", ToolKind::Edit)
        .call("mcp_ok", ToolKind::Mcp)
        .cut_off("sigkill_tool_running", ToolKind::Execute)
        .tool(
            "tool_id",
            Tool::shell("echo with-server-id", "with-server-id"),
        )
        .tool("tool_parallel", Tool::shell("echo fast-B", "fast-B"))
        .tool(
            "tool_shell_fail",
            Tool::failed_shell("exit 3", "before\noops").without_outcome(),
        )
        .status("text_auto_model", Completed, None)
        .status("multi_turn", Completed, None)
        .status("retry_then_ok", Completed, None)
        .status("denied_plan", Incomplete, None)
        .status("max_tokens", Completed, None)
        .status("error_400_key", Failed, Some(ErrorKind::Auth))
        .status("error_401", Failed, Some(ErrorKind::Auth))
        .status("error_403", Failed, Some(ErrorKind::Auth))
        .status("bad_model", Failed, Some(ErrorKind::ModelNotFound))
        .status("error_429_default", Failed, Some(ErrorKind::RateLimit))
        .status("error_429_header", Failed, Some(ErrorKind::RateLimit))
        .status("error_429_retryinfo", Failed, Some(ErrorKind::RateLimit))
        .status("error_429_longdelay", Failed, Some(ErrorKind::RateLimit))
        .status("error_429_daily", Failed, Some(ErrorKind::Quota))
        .status("pro_quota_fallback", Failed, Some(ErrorKind::Quota))
        .status("error_500", Failed, Some(ErrorKind::Overloaded))
        .status("error_503", Failed, Some(ErrorKind::Overloaded))
        .status("error_529", Failed, Some(ErrorKind::Overloaded))
        .status("error_html", Failed, Some(ErrorKind::Overloaded))
        .status("error_conn_refused", Failed, Some(ErrorKind::Network))
        .status("error_max_turns", Failed, Some(ErrorKind::MaxTurns))
        .status("empty_answer", Failed, Some(ErrorKind::Protocol))
        .status("thinking_only", Failed, Some(ErrorKind::Protocol))
        .status("malformed_call", Failed, Some(ErrorKind::Protocol))
        .status("no_finish", Failed, Some(ErrorKind::Protocol))
        .status("prompt_blocked", Failed, Some(ErrorKind::Protocol))
        .status("safety_empty", Failed, Some(ErrorKind::Invalid))
        .status("loop_detected", Failed, Some(ErrorKind::Invalid))
        .status("no_auth", Failed, Some(ErrorKind::Auth))
        .status("no_key", Failed, Some(ErrorKind::Auth))
        .status("untrusted", Failed, Some(ErrorKind::Permission))
        .status("settings_broken", Failed, Some(ErrorKind::Invalid))
        .status("bad_flag", Failed, Some(ErrorKind::Invalid))
        .status("no_prompt", Failed, Some(ErrorKind::Invalid))
        .status("session_id_twice", Failed, Some(ErrorKind::Invalid))
        .status("sandbox_no_docker", Failed, Some(ErrorKind::NotFound))
        .status("sandbox_flag", Failed, Some(ErrorKind::NotFound))
        .status("resume_unknown", Failed, Some(ErrorKind::SessionNotFound))
        .status(
            "resume_unknown_none",
            Failed,
            Some(ErrorKind::SessionNotFound),
        )
        .status("resume_other_dir", Failed, Some(ErrorKind::SessionNotFound))
        .status("resume_prefix", Failed, Some(ErrorKind::SessionNotFound))
        .status("final_big", Incomplete, Some(ErrorKind::Protocol))
        .status(
            "slow_reader_final_big",
            Incomplete,
            Some(ErrorKind::Protocol),
        )
        .status("stdin_9mb", Incomplete, Some(ErrorKind::Protocol))
        .status("sigterm_mid_stream", Incomplete, Some(ErrorKind::Protocol))
        .status("sigint_group", Incomplete, Some(ErrorKind::Protocol))
}

/// Returns a model of the command line, from `gemini --help` and the CLI's source. Words after `--` are lost, and no
/// flag takes more than one value (measured).
fn command_line() -> ArgvModel {
    ArgvModel::new(Parser::Yargs)
        .without_double_dash()
        .switches(
            "
                --debug|-d --skip-trust --sandbox|-s --yolo|-y --acp --experimental-acp
                --list-extensions|-l --list-sessions --screen-reader --raw-output
                --accept-raw-output-risk --version|-v --help|-h
            ",
        )
        .one(
            "
                --model|-m --prompt|-p --prompt-interactive|-i --approval-mode --resume|-r
                --session-file --session-id --delete-session --output-format|-o --worktree|-w
                --fake-responses --fake-responses-non-strict --record-responses
            ",
        )
        .each(
            "
                --policy --admin-policy --allowed-mcp-server-names --allowed-tools --extensions|-e
                --include-directories
            ",
        )
        .commands("mcp extensions extension skills skill hooks hook gemma")
}

fn understand(sent: &Sent<'_>) -> Understood {
    let args = &sent.args;
    let system_prompt = sent
        .variable("GEMINI_SYSTEM_MD")
        .and_then(|path| sent.file(path))
        .map(SystemPrompt::Replace);
    let trimmed = |flag: &str| args.text(flag).map(|value| value.trim().to_owned());
    // On stdin the joined prompt comes first, and a positional word is a prompt, too.
    let words = args.positionals.iter();
    let words = words.map(|word| word.to_string_lossy().into_owned());
    let prompt = sent.stdin().into_iter().chain(args.text("--prompt"));
    let prompt: Vec<_> = prompt.chain(words).collect();
    Understood {
        prompt: prompt.join("\n\n"),
        session_id: trimmed("--resume"),
        new_session_id: trimmed("--session-id"),
        add_dirs: list(&args.texts("--include-directories"))
            .map(PathBuf::from)
            .collect(),
        system_prompt,
        model: trimmed("--model"),
        allowed_tools: list(&args.texts("--allowed-tools")).collect(),
        denied_tools: denied_tools(sent),
        ..Understood::default()
    }
}

/// Splits values at commas, as the CLI does for some flags.
fn list(values: &[String]) -> impl Iterator<Item = String> {
    let values = values.iter().flat_map(|value| value.split(','));
    values
        .map(|value| value.trim().to_owned())
        .filter(|value| !value.is_empty())
}

/// Returns the tools that the rules deny in addition to those of every run in its permission mode.
fn denied_tools(sent: &Sent<'_>) -> Vec<String> {
    #[derive(serde::Deserialize)]
    struct Rules {
        rule: Vec<Rule>,
    }

    #[derive(serde::Deserialize)]
    struct Rule {
        #[serde(rename = "toolName")]
        tool: String,
        #[serde(rename = "commandPrefix")]
        prefix: Option<String>,
        decision: String,
        priority: u32,
    }

    let rules = sent.args.value("--admin-policy");
    // A recording has the path, but the file is gone.
    let Some(rules) = rules.and_then(|path| sent.file(path)) else {
        return Vec::new();
    };
    let rules: Rules = toml::from_str(&rules).unwrap();
    let rules = rules.rule.into_iter().map(|rule| {
        assert_eq!((rule.decision.as_str(), rule.priority), ("deny", 999));
        match rule.prefix {
            Some(prefix) => format!("{}({prefix})", rule.tool),
            None => rule.tool,
        }
    });
    let of_mode = match sent.args.text("--approval-mode").as_deref() {
        // Read-only.
        Some("default") => 6,
        Some("plan") => 1,
        _ => 0,
    };
    rules.skip(of_mode).collect()
}

teamster_testkit::conformance_tests!(suite());
