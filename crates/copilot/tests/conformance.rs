//! Provider conformance tests for GitHub Copilot CLI 1.0.102.
#![cfg(test)]

use std::path::Path;

use serde_json::Value;
use teamster_copilot::Copilot;
use teamster_core::{ErrorKind, RunStatus, ToolKind};
use teamster_testkit::conformance::{ArgvModel, Parser, Plain, Sent, Suite, Tool, Understood};

fn suite() -> Suite {
    use RunStatus::{Completed, Failed};
    let fixtures = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/copilot");
    Suite::new(Copilot, fixtures)
        .run_is_over(|lines| lines.iter().any(|line| line["type"] == "result"))
        .command_line(command_line(), understand)
        .plain(Plain {
            model: "gpt-5.4",
            tool: "shell(git:*)",
            ..Plain::default()
        })
        .text("text", "Hello, wörld 👋🏽 你好，世界! Done ✅.")
        .text("subagent", "Delegating.The helper finished.")
        .text(
            "stream_off",
            "I will run a command.The command printed hello-from-shell.",
        )
        .text("record_max_tokens_once", "First half, second half.")
        .text("mid_stream_disconnect", "This answer breaks off in the mid")
        .call("tool_shell_ok", ToolKind::Execute)
        .call("record_tool_edit", ToolKind::Edit)
        .call("mcp_ok", ToolKind::Mcp)
        .call("record_subagent", ToolKind::Task)
        .cut_off("record_sigkill_group_shell", ToolKind::Execute)
        .tool(
            "tool_shell_ok",
            Tool::shell(
                "echo hello-from-shell; pwd",
                "hello-from-shell\n/tmp/cpws\n",
            ),
        )
        .tool(
            "tool_shell_fail",
            Tool::failed_shell("exit 3", "to-stdout\nto-stderr"),
        )
        .tool("subagent", Tool::shell("echo inner-output", "inner-output"))
        .tool("big_output", Tool::shell("307200", BIG_OUTPUT))
        .status("text", Completed, None)
        .status("tool_shell_fail", Completed, None)
        .status("no_allow_write", Completed, None)
        .status("error_401", Failed, Some(ErrorKind::Auth))
        .status("error_401_anthropic", Failed, Some(ErrorKind::Auth))
        .status("error_403", Failed, Some(ErrorKind::Auth))
        .status("error_404_model", Failed, Some(ErrorKind::ModelNotFound))
        .status("error_413", Failed, Some(ErrorKind::ContextWindow))
        .status(
            "error_429_retry_after_long",
            Failed,
            Some(ErrorKind::RateLimit),
        )
        .status("error_500", Failed, Some(ErrorKind::Overloaded))
        .status("error_html", Failed, Some(ErrorKind::Overloaded))
        .status("error_529_anthropic", Failed, Some(ErrorKind::Overloaded))
        .status("stream_error_event", Failed, Some(ErrorKind::Overloaded))
        .status("error_conn_refused", Failed, Some(ErrorKind::Network))
        .status("mid_stream_disconnect", Failed, Some(ErrorKind::Network))
        .status("malformed_stream", Failed, Some(ErrorKind::Protocol))
        .status("no_done", Failed, Some(ErrorKind::Protocol))
        .status("empty_answer", Failed, Some(ErrorKind::Protocol))
        .status("error_bad_flag", Failed, Some(ErrorKind::Invalid))
        .status("error_no_model", Failed, Some(ErrorKind::Invalid))
        .status("mcp_bad_flag_json", Failed, Some(ErrorKind::Mcp))
        .status("mcp_bad_flag_file", Failed, Some(ErrorKind::Mcp))
        .status("mcp_broken_server", Completed, None)
        .status("resume_unknown", Failed, Some(ErrorKind::SessionNotFound))
        .status(
            "session_id_not_uuid",
            Failed,
            Some(ErrorKind::SessionNotFound),
        )
        .status(
            "sigterm_native_mid_stream",
            Failed,
            Some(ErrorKind::Aborted),
        )
        .status("sigterm_group_shell", Failed, Some(ErrorKind::Aborted))
        .status("sigint_group_mid_stream", Failed, Some(ErrorKind::Aborted))
        .status("record_max_tokens", Failed, Some(ErrorKind::Invalid))
        .status("record_max_tokens_once", Completed, None)
        .status("record_content_filter", Failed, Some(ErrorKind::Invalid))
        .status("record_error_429", Failed, Some(ErrorKind::RateLimit))
        .status(
            "record_error_400_context",
            Failed,
            Some(ErrorKind::ContextWindow),
        )
        .status(
            "record_sigterm_group_text",
            Failed,
            Some(ErrorKind::Aborted),
        )
        .status("sigkill_native_child", Failed, Some(ErrorKind::Internal))
}

/// A part of the output: the CLI itself shows only its first 500 characters.
const BIG_OUTPUT: &str = {
    const BYTES: [u8; 2000] = [b'A'; 2000];
    match std::str::from_utf8(&BYTES) {
        Ok(text) => text,
        Err(_) => "",
    }
};

/// Returns a model of the command line, from `copilot --help`.
fn command_line() -> ArgvModel {
    ArgvModel::new(Parser::Clap)
        .without_double_dash()
        .switches(
            "
                --version|-v --help|-h --silent|-s --allow-all-tools --allow-all-paths
                --allow-all-urls --allow-all|--yolo --trust-folder --disallow-temp-dir --continue
                --autopilot --plan --no-custom-instructions --no-auto-update --no-ask-user
                --no-color --disable-builtin-mcps
            ",
        )
        .one(
            "
                --prompt|-p --interactive|-i --model --reasoning-effort --agent --name|-n
                --session-id --log-dir --log-level --stream --output-format
                --max-autopilot-continues --max-ai-credits --mode --usage-output-file -C
            ",
        )
        .each(
            "
                --add-dir --plugin-dir --attachment --additional-mcp-config --disable-mcp-server
                --enable-mcp-server
            ",
        )
        .optional("--resume|-r --share")
        .many(
            "
                --allow-tool --deny-tool --available-tools --excluded-tools --allow-url --deny-url
            ",
        )
        .commands(
            "
                app login help init config update version workflow sessions memories plugin mcp
                skill instruction lsp sandbox completion
            ",
        )
}

fn understand(sent: &Sent<'_>) -> Understood {
    let args = &sent.args;
    // With a prompt in the arguments, the CLI ignores stdin.
    let prompt = args.text("--prompt").or_else(|| sent.stdin());
    let rules = |flag: &str, of_the_mode: &str| {
        let mut rules = args.texts(flag);
        if rules.first().is_some_and(|rule| rule == of_the_mode) {
            rules.remove(0);
        }
        rules
    };
    // A directory of the engine's is a plugin; all others are skills.
    let mut hooks = None;
    let mut skills = args.paths("--plugin-dir");
    skills.retain(|directory| {
        let Some(plugin) = sent.file(directory.join("plugin.json")) else {
            return true;
        };
        let mut plugin: Value = serde_json::from_str(&plugin).unwrap();
        assert!(plugin["name"].is_string(), "{plugin}");
        if let Some(hook) = plugin.pointer_mut("/hooks/PreToolUse/0/hooks/0") {
            let directory = hook.as_object_mut().unwrap().remove("cwd").unwrap();
            assert!(Path::new(directory.as_str().unwrap()).is_absolute());
        }
        hooks = Some(plugin["hooks"].clone());
        false
    });
    Understood {
        prompt: prompt.unwrap_or_default(),
        images: args.values("--attachment").len(),
        session_id: args.text("--resume"),
        new_session_id: args.text("--session-id"),
        add_dirs: args.paths("--add-dir"),
        skills,
        hooks,
        model: args.text("--model"),
        effort: args.text("--reasoning-effort"),
        allowed_tools: rules("--allow-tool", "write"),
        denied_tools: rules("--deny-tool", "write,shell"),
        ..Understood::default()
    }
}

teamster_testkit::conformance_tests!(suite());
