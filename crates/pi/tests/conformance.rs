//! Provider conformance tests for Pi 0.87.1 and 1.6.0.
#![cfg(test)]

use teamster_core::provider::LARGEST_PROMPT_ARGUMENT;
use teamster_core::{ErrorKind, ExecuteParams, RunStatus, SystemPrompt, ToolKind};
use teamster_pi::Pi;
use teamster_testkit::conformance::{ArgvModel, Parser, Plain, Sent, Suite, Tool, Understood};

/// An invisible blank that JavaScript does not trim.
const ZERO_WIDTH_SPACE: char = '\u{200b}';

fn suite() -> Suite {
    use RunStatus::{Completed, Failed};
    let fixtures = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/pi");
    Suite::new(Pi, fixtures)
        .run_is_over(|lines| lines.iter().any(|line| line["type"] == "agent_settled"))
        .command_line(command_line(), understand)
        .prompt_becomes(prompt_becomes)
        .plain(Plain {
            model: "anthropic/claude-sonnet-4-5",
            tool: "weather",
            ..Plain::default()
        })
        .text("text", "Hello, wörld 👋🏽 你好，世界! Done ✅.")
        .text("tool_parallel", "Two at once.Both ran.")
        .text("retry_then_ok", "Third time lucky.")
        .text("mid_stream_disconnect", "This answer breaks off in the mid")
        .call("multi_turn", ToolKind::Execute)
        .cut_off("sigkill_group_shell", ToolKind::Execute)
        .tool("multi_turn", Tool::shell("echo round-1", "round-1\n"))
        .status("text", Completed, None)
        .status("multi_turn", Completed, None)
        .status("empty_answer", Failed, Some(ErrorKind::Protocol))
        .status("retry_then_ok", Completed, None)
        .status("error_unknown_model", Completed, None)
        .status("resume", Completed, None)
        .status("error_401", Failed, Some(ErrorKind::Auth))
        .status("error_429", Failed, Some(ErrorKind::RateLimit))
        .status("error_conn_refused", Failed, Some(ErrorKind::Network))
        .status("mid_stream_disconnect", Failed, Some(ErrorKind::Network))
        .status("max_tokens", Failed, Some(ErrorKind::Invalid))
        .status("resume_unknown", Failed, Some(ErrorKind::SessionNotFound))
        .status("prompt_at", Failed, Some(ErrorKind::Invalid))
        .status("sigint_mid_stream", Failed, Some(ErrorKind::Internal))
        .status("sigkill_group_shell", Failed, Some(ErrorKind::Internal))
        .changes_prompts(&["prompt_both"])
}

/// Returns a model of the command line, from `pi --help`. A flag's value is the next word, even if it looks like a
/// flag; `=` is part of a flag's name.
fn command_line() -> ArgvModel {
    ArgvModel::new(Parser::Commander)
        .switches(
            "
                --print|-p --continue|-c --resume|-r --no-session --no-tools|-nt
                --no-builtin-tools|-nbt --no-extensions|-ne --no-skills|-ns
                --no-prompt-templates|-np --no-themes --no-context-files|-nc --verbose --approve|-a
                --no-approve|-na --offline --help|-h --version|-v
            ",
        )
        .one(
            "
                --mode --provider --model --api-key --system-prompt --append-system-prompt --name|-n
                --session --session-id --fork --session-dir --models --tools|-t --exclude-tools|-xt
                --thinking --export --use-theme --tui-mode
            ",
        )
        .each("--extension|-e --skill --prompt-template --theme")
}

/// Returns whether JavaScript's `trim` removes this character.
fn is_blank(c: char) -> bool {
    c == '\u{feff}' || (c.is_whitespace() && c != '\u{85}')
}

/// Returns the prompt that the CLI receives. It trims a prompt on stdin; blanks at its end are appended in an
/// argument, up to a limit. A prompt that the CLI would take for a command or a file name begins with a blank.
fn prompt_becomes(params: &ExecuteParams) -> String {
    let prompt = &params.prompt;
    let body = prompt.trim_end_matches(is_blank);
    let is_large = |prompt: &str| prompt.len() > LARGEST_PROMPT_ARGUMENT;
    let prompt = if prompt.len() - body.len() > 1000 && is_large(prompt) {
        body
    } else {
        prompt
    };
    let is_command = |text: &str| text.starts_with('/') && !params.slash_commands;
    if prompt.contains('\0') || is_large(prompt) {
        let text = prompt.trim_start_matches(is_blank);
        return if is_command(text) {
            // The text before the mark is no longer at the beginning.
            format!("{ZERO_WIDTH_SPACE}{prompt}")
        } else {
            text.to_owned()
        };
    }
    if prompt.starts_with('@') || is_command(prompt) || prompt == "--offline" {
        return format!(" {prompt}");
    }
    prompt.to_owned()
}

fn understand(sent: &Sent<'_>) -> Understood {
    let args = &sent.args;
    let words = args.positionals.iter();
    let words: Vec<_> = words.map(|word| word.to_string_lossy()).collect();
    let (files, messages): (Vec<_>, Vec<_>) = words.iter().partition(|word| word.starts_with('@'));
    assert!(
        messages.len() <= 1,
        "each further word is a prompt of its own"
    );
    let stdin = sent
        .stdin()
        .map(|text| text.trim_matches(is_blank).to_owned());
    let fork = args.text("--fork");
    let list = |name: &str| -> Vec<String> {
        let text = args.text(name).unwrap_or_default();
        let names = text.split(',').filter(|name| !name.is_empty());
        names.map(str::to_owned).collect()
    };
    let mut allowed = list("--tools");
    let of_mode: &[&str] = match allowed.get(1).map(String::as_str) {
        Some("grep") if allowed.iter().any(|name| name == "edit") => {
            &["read", "grep", "find", "ls", "edit", "write"]
        }
        Some("grep") => &["read", "grep", "find", "ls"],
        _ => &["read", "bash", "edit", "write"],
    };
    allowed.retain(|name| name != "mcp__*" && !of_mode.contains(&name.as_str()));
    let file = |flag: &str| sent.file(args.text(flag)?);
    Understood {
        prompt: stdin
            .into_iter()
            .chain(messages.iter().map(ToString::to_string))
            .collect(),
        fork: fork.is_some(),
        session_id: fork.or_else(|| args.text("--session")),
        new_session_id: args.text("--session-id"),
        system_prompt: file("--system-prompt")
            .map(SystemPrompt::Replace)
            .or_else(|| file("--append-system-prompt").map(SystemPrompt::Append)),
        skills: args.paths("--skill"),
        model: args.text("--model"),
        effort: args.text("--thinking"),
        allowed_tools: allowed,
        denied_tools: list("--exclude-tools"),
        images: files.len(),
        ..Understood::default()
    }
}

teamster_testkit::conformance_tests!(suite());
