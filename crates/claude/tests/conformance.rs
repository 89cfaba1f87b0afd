//! Provider conformance tests for Claude Code 2.1.197.
#![cfg(test)]

use serde_json::Value;
use teamster_claude::Claude;
use teamster_core::{ErrorKind, RunStatus, SubAgent, SystemPrompt, ToolKind};
use teamster_testkit::conformance::{ArgvModel, Parser, Plain, Sent, Suite, Tool, Understood};

fn suite() -> Suite {
    use RunStatus::{Completed, Failed, Incomplete};
    let fixtures = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/claude");
    Suite::new(Claude, fixtures)
        // A turn that background work starts has a separate `result`.
        .run_is_over(|lines| {
            let mut of_turns = lines.iter().filter(|line| line["type"] != "system");
            of_turns
                .next_back()
                .is_some_and(|line| line["type"] == "result")
        })
        .command_line(command_line(), understand)
        .prompt_becomes(|params| {
            let command = params.prompt.starts_with('/') && !params.slash_commands;
            let space = if command { " " } else { "" };
            format!("{space}{}", params.prompt)
        })
        .plain(Plain {
            model: "sonnet",
            tool: "Bash(git *)",
            // As root, the CLI bypasses permissions only with this variable.
            env: &[("IS_SANDBOX", "1")],
            ..Plain::default()
        })
        .text("text", "Hello, wörld 👋🏽 你好世界 — done.")
        .text("multi_turn", "Step 1.Step 2.Step 3.All three done.")
        .text("tool_shell_ok", "I will list it.The command worked.")
        .text(
            "tool_shell_ok_nopartial",
            "I will list it.The command worked.",
        )
        .text("mid_stream_disconnect_hard", "This will be cut ")
        .call("tool_shell_ok", ToolKind::Execute)
        .call("write_edit", ToolKind::Edit)
        .call("conformance_mcp_tool_fails", ToolKind::Mcp)
        .cut_off("sigterm_mid_tool", ToolKind::Execute)
        .tool(
            "tool_shell_ok",
            Tool::shell("printf 'a\\nb\\n'", "a\nb\n日本語 🙂"),
        )
        .tool(
            "tool_shell_ok_nopartial",
            Tool::shell("printf 'a\\nb\\n'", "a\nb\n"),
        )
        .tool("tool_shell_fail", Tool::failed_shell("exit 3", "out\nerr"))
        // The mock model gives the same truncated answer each time the CLI asks it to continue.
        .repeats(&["max_tokens", "ctx_window"])
        .status("text", Completed, None)
        .status("multi_turn", Completed, None)
        .status("tool_shell_fail", Completed, None)
        .status("retry_then_success", Completed, None)
        .status("empty_answer", Failed, Some(ErrorKind::Protocol))
        .status("error_400", Failed, Some(ErrorKind::Invalid))
        .status("error_401", Failed, Some(ErrorKind::Auth))
        .status("error_403", Failed, Some(ErrorKind::Auth))
        .status("error_404_model", Failed, Some(ErrorKind::ModelNotFound))
        .status("error_429_long", Failed, Some(ErrorKind::RateLimit))
        .status("error_500", Failed, Some(ErrorKind::Overloaded))
        .status("error_529", Failed, Some(ErrorKind::Overloaded))
        .status("error_ctx", Failed, Some(ErrorKind::ContextWindow))
        .status("conn_refused", Failed, Some(ErrorKind::Network))
        .status("malformed_stream", Failed, Some(ErrorKind::Protocol))
        .status("max_tokens", Failed, Some(ErrorKind::Invalid))
        .status("refusal", Failed, Some(ErrorKind::Invalid))
        .status("max_turns", Failed, Some(ErrorKind::MaxTurns))
        .status("max_budget", Failed, Some(ErrorKind::Budget))
        .status("resume_unknown", Failed, Some(ErrorKind::SessionNotFound))
        .status("tool_then_401", Failed, Some(ErrorKind::Auth))
        .status("sigterm_mid_stream", Failed, Some(ErrorKind::Internal))
        .status("sigint_mid_stream", Failed, Some(ErrorKind::Aborted))
        .status("slow_reader_partial", Incomplete, Some(ErrorKind::Protocol))
        .status("truncated_at_exit", Incomplete, Some(ErrorKind::Protocol))
}

/// Command line according to `claude --help`, with the flags that it does not list. With `-p`, the word after `--` is
/// the prompt even if it is the name of a sub-command (measured).
fn command_line() -> ArgvModel {
    ArgvModel::new(Parser::Commander)
        .switches(
            "
                --print|-p --verbose --include-partial-messages --include-hook-events
                --replay-user-messages --continue|-c --fork-session --strict-mcp-config
                --no-session-persistence --disable-slash-commands --dangerously-skip-permissions
                --allow-dangerously-skip-permissions --bare --safe-mode --background|--bg --chrome
                --no-chrome --ide --debug-to-stderr --help|-h --version|-v
            ",
        )
        .one(
            "
                --output-format --input-format --model --fallback-model --effort --permission-mode
                --permission-prompt-tool --max-turns --max-budget-usd --json-schema --session-id
                --system-prompt --system-prompt-file --append-system-prompt
                --append-system-prompt-file --settings --setting-sources --agent --agents --name|-n
                --debug-file
            ",
        )
        .each("--plugin-dir --plugin-url")
        .optional("--resume|-r --debug|-d --worktree|-w --from-pr --prompt-suggestions")
        .many(
            "
                --add-dir --allowedTools|--allowed-tools --disallowedTools|--disallowed-tools
                --tools --mcp-config --betas --file
            ",
        )
        .commands(
            "
                agents auth auto-mode doctor gateway install mcp plugin plugins project setup-token
                ultrareview update upgrade
            ",
        )
}

fn understand(sent: &Sent<'_>) -> Understood {
    let args = &sent.args;
    let (prompt, images) = prompt(sent);
    let from_file = |flag: &str| sent.file(args.value(flag)?);
    let system_prompt = None
        .or_else(|| {
            args.text("--append-system-prompt")
                .map(SystemPrompt::Append)
        })
        .or_else(|| from_file("--append-system-prompt-file").map(SystemPrompt::Append))
        .or_else(|| args.text("--system-prompt").map(SystemPrompt::Replace))
        .or_else(|| from_file("--system-prompt-file").map(SystemPrompt::Replace));
    let schema = args.text("--json-schema");
    let retries = sent.variable("CLAUDE_CODE_MAX_RETRIES");
    Understood {
        slash_command: prompt.starts_with('/'),
        prompt,
        images,
        session_id: args.text("--resume"),
        new_session_id: args.text("--session-id"),
        fork: args.has("--fork-session"),
        working_directory: None,
        add_dirs: args.paths("--add-dir"),
        skills: args.paths("--plugin-dir"),
        sub_agents: args
            .text("--agents")
            .map_or_else(Vec::new, |text| sub_agents(&text)),
        hooks: from_file("--settings").map(|text| {
            let settings: Value = serde_json::from_str(&text).unwrap();
            settings["hooks"].clone()
        }),
        system_prompt,
        model: args.text("--model"),
        effort: args.text("--effort"),
        allowed_tools: args.texts("--allowedTools"),
        denied_tools: args.texts("--disallowedTools"),
        max_turns: args.number("--max-turns"),
        max_budget_usd: args.number("--max-budget-usd"),
        output_schema: schema.and_then(|schema| serde_json::from_str(&schema).ok()),
        cli_retries: retries.and_then(|retries| retries.parse().ok()),
    }
}

/// Returns the sub-agents of the JSON that the CLI takes.
fn sub_agents(text: &str) -> Vec<SubAgent> {
    let all: Value = serde_json::from_str(text).unwrap();
    let all = all.as_object().unwrap().iter();
    all.map(|(name, agent)| {
        let text = |key: &str| agent[key].as_str().unwrap().to_owned();
        SubAgent::new(name, text("description"), text("prompt"))
    })
    .collect()
}

/// Returns the prompt of the command line and of stdin, which the CLI joins, and the number of images.
fn prompt(sent: &Sent<'_>) -> (String, usize) {
    let words = sent.args.positionals.iter();
    let words = words.map(|word| word.to_string_lossy().into_owned());
    let stdin = sent.stdin();
    if sent.args.text("--input-format").as_deref() == Some("stream-json") {
        let message: Value = serde_json::from_str(&stdin.unwrap()).unwrap();
        let blocks = message["message"]["content"].as_array().unwrap();
        let texts = blocks.iter().filter_map(|block| block["text"].as_str());
        let images = blocks.iter().filter(|block| block["type"] == "image");
        return (texts.collect(), images.count());
    }
    let parts: Vec<_> = words.chain(stdin).collect();
    (parts.join("\n"), 0)
}

teamster_testkit::conformance_tests!(suite());
