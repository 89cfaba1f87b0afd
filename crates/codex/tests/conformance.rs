//! The conformance suite that every provider must pass.
#![cfg(test)]

use std::path::Path;

use teamster_codex::Codex;
use teamster_core::{ErrorKind, RunStatus, SystemPrompt, ToolKind};
use teamster_testkit::conformance::{
    Announces, ArgvModel, Parser, Plain, Sent, Suite, Tool, Understood,
};
use teamster_testkit::fixture::Fixture;
use teamster_testkit::replay::calls as traced_calls;

/// Returns a model of the command line of `codex`, from its `--help` and from experiments.
fn command_line() -> ArgvModel {
    let with_session = || {
        ArgvModel::new(Parser::Clap)
            .switches(
                "
                    --json --last --all --skip-git-repo-check --ephemeral
                    --dangerously-bypass-approvals-and-sandbox|--yolo
                ",
            )
            .one("--model|-m --output-last-message|-o --output-schema")
            .each("--config|-c --enable --disable")
            .many("--image|-i")
    };
    let exec = ArgvModel::new(Parser::Clap)
        .switches(
            "
                --json --skip-git-repo-check --ephemeral --trust --oss --strict-config
                --approve-for-me --ignore-user-config --ignore-rules --help|-h --version|-V
                --dangerously-bypass-approvals-and-sandbox|--yolo --dangerously-bypass-hook-trust
            ",
        )
        .one(
            "
                --model|-m --sandbox|-s --cd|-C --color --profile|-p --local-provider
                --output-schema --output-last-message|-o --worktree --thread-source
            ",
        )
        .each("--config|-c --enable --disable --add-dir")
        .many("--image|-i")
        .command("resume", with_session())
        .command("fork", with_session())
        .commands("review help");
    ArgvModel::new(Parser::Clap)
        .one("--ask-for-approval|-a")
        .command("exec", exec)
}

/// Interprets a command line like the CLI. A value of `--config` is TOML, or else a literal string.
fn understand(sent: &Sent<'_>) -> Understood {
    let args = &sent.args;
    let mut words = args
        .positionals
        .iter()
        .map(|word| word.to_string_lossy().into_owned());
    let command = args.commands.last().copied().unwrap_or_default();
    let session_id = match command {
        "resume" | "fork" if !args.has("--last") => words.next(),
        _ => None,
    };
    let word = words.next();
    assert_eq!(words.next(), None, "the CLI takes one prompt");
    let prompt = match (word.as_deref(), sent.stdin()) {
        // The CLI strips one byte order mark, and refuses blank input.
        (Some("-") | None, Some(stdin)) if !stdin.trim().is_empty() => {
            let text = stdin.strip_prefix('\u{feff}');
            text.unwrap_or(&stdin).to_owned()
        }
        (Some("-") | None, _) => "the CLI fails: no prompt on stdin".into(),
        (Some(word), None) => word.to_owned(),
        (Some(word), Some(stdin)) => format!("{word}\n\n<stdin>\n{stdin}\n</stdin>"),
    };
    let config = |key: &str| {
        let prefix = format!("{key}=");
        let found = args.texts("--config");
        let value = found.iter().rev().find_map(|c| c.strip_prefix(&prefix))?;
        Some(value.to_owned())
    };
    let text = |key: &str| {
        let value = config(key)?;
        // JSON supports every escape of TOML's basic strings that is used here.
        Some(serde_json::from_str(&value).unwrap_or_else(|_| format!("no string: {value}")))
    };
    let append = text("developer_instructions").map(SystemPrompt::Append);
    let replace = config("model_instructions_file")
        .and_then(|path| sent.file(path))
        .map(SystemPrompt::Replace);
    Understood {
        prompt,
        session_id,
        fork: command == "fork",
        add_dirs: args.values("--add-dir").iter().map(Into::into).collect(),
        system_prompt: append.or(replace),
        model: args.text("--model"),
        effort: text("model_reasoning_effort"),
        output_schema: args
            .text("--output-schema")
            .and_then(|path| serde_json::from_str(&sent.file(path)?).ok()),
        // A comma separates files.
        images: args
            .texts("--image")
            .iter()
            .flat_map(|i| i.split(','))
            .count(),
        ..Understood::default()
    }
}

fn suite() -> Suite {
    let fixtures = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/codex");
    let hello = "Hello, wörld 👋🏽 你好，世界 — done.\nSecond line.";
    let failed =
        |suite: Suite, (scenario, kind)| suite.status(scenario, RunStatus::Failed, Some(kind));
    let suite = Suite::new(Codex, fixtures)
        .run_is_over(|lines| lines.iter().any(|line| line["type"] == "turn.completed"))
        .command_line(command_line(), understand)
        .plain(Plain {
            session_id: "01a1ffcf-9322-7b61-8654-8b3cf70c24fa",
            model: "gpt-5.5",
            ..Plain::default()
        })
        .text("text", hello)
        .text("analytics_off", hello)
        .text("multi_turn", "Step 1.Step 2.Step 3.All three steps done.")
        .text("error_failed_server", "partial ")
        .text("error_failed_rate", "partial ")
        .text("no_completed", "text without completed event")
        .text("mid_stream_disconnect", "")
        .text("retry_429_then_ok", "Recovered after 429s.")
        .text("retry_message_again", "Message A.Message B whole.")
        .text("retry_after_tool", "I run it.Done with it.")
        .text("retry_second_request", "First.Second.")
        .text("max_tokens", "This answer is truncated bec")
        .text("empty_answer", "")
        .text("reasoning", "The answer is 42.")
        .status("text", RunStatus::Completed, None)
        .status("retry_429_then_ok", RunStatus::Completed, None)
        .status("empty_answer", RunStatus::Failed, Some(ErrorKind::Protocol))
        // A broken server that is not required leaves no trace.
        .status("mcpcfg_broken", RunStatus::Completed, None)
        .status("resume_2_second", RunStatus::Completed, None)
        // A web search comes with its result, and changes nothing.
        .announces(Announces::SideEffects)
        .call("tool_shell_ok", ToolKind::Execute)
        .call("cm_patch", ToolKind::Edit)
        .call("mcp_ok", ToolKind::Mcp)
        .call("agent_v1", ToolKind::Task)
        .cut_off("sigkill_tool_tree_native", ToolKind::Execute)
        .tool(
            "tool_shell_ok",
            Tool::shell("printf 'alpha", "alpha\nbeta\nerr line\n"),
        )
        .tool("tool_parallel", Tool::shell("sleep 1; echo one", "one\n"))
        .tool("tool_parallel", Tool::shell("echo two", "two\n"))
        .tool("tool_background", Tool::shell("sleep 3", "start\nend\n"))
        .tool("cm_shell", Tool::failed_shell("exit 3", "from-code-mode\n"))
        .tool(
            "escalate_approve_for_me",
            Tool::failed_shell("/var/probe.txt", ""),
        )
        .tool(
            "mcp_ok",
            Tool {
                kind: ToolKind::Mcp,
                ..Tool::shell("hällo 🌍", "echo: hällo 🌍 TOKEN=v1")
            },
        )
        .tool(
            "mcp_no_approval",
            Tool {
                kind: ToolKind::Mcp,
                ..Tool::failed_shell("hällo 🌍", "requires approval")
            },
        )
        .tool(
            "cm_patch",
            Tool {
                kind: ToolKind::Edit,
                ..Tool::shell("/tmp/ws/cm.txt", "")
            },
        )
        .tool(
            "web_search",
            Tool {
                kind: ToolKind::Search,
                ..Tool::shell("rust ndjson parser", "").without_outcome()
            },
        )
        .tool(
            "agent_v1",
            Tool {
                kind: ToolKind::Task,
                ..Tool::shell("Do the thing", "pending_init")
            },
        );
    [
        ("error_401", ErrorKind::Auth),
        ("error_403", ErrorKind::Auth),
        ("error_429", ErrorKind::RateLimit),
        ("error_e429_quota", ErrorKind::Quota),
        ("error_e429_usage_limit", ErrorKind::Quota),
        ("error_500", ErrorKind::Overloaded),
        ("error_e529", ErrorKind::Overloaded),
        ("error_e404_model", ErrorKind::ModelNotFound),
        ("error_failed_context", ErrorKind::ContextWindow),
        ("error_failed_server", ErrorKind::Network),
        ("error_refused_bounded", ErrorKind::Network),
        ("mid_stream_disconnect", ErrorKind::Network),
        ("max_tokens", ErrorKind::Invalid),
        ("no_api_key", ErrorKind::Auth),
        ("resume_11_unknown_uuid", ErrorKind::SessionNotFound),
        ("mcpcfg_broken_required", ErrorKind::Mcp),
        ("not_git_repo", ErrorKind::Permission),
        ("bad_flag", ErrorKind::Invalid),
        ("huge_prompt_stdin", ErrorKind::Invalid),
        ("sigterm_in_tool", ErrorKind::Internal),
        ("sigint_mid_stream", ErrorKind::Internal),
    ]
    .into_iter()
    .fold(suite, failed)
}

teamster_testkit::conformance_tests!(suite());

/// The run started an agent, which asked the model. Only the wait for the agent is reported.
#[test]
fn agent_of_the_newer_kind_is_reported_when_it_is_awaited() {
    let names = |scenario: &str| -> Vec<String> {
        let fixtures = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/codex/0.169.0");
        let fixture = Fixture::load(&Path::new(fixtures).join(scenario)).unwrap();
        let calls = traced_calls(&fixture, &Codex).into_iter();
        calls.map(|call| call.tool_use.tool_name).collect()
    };
    assert_eq!(names("agent_v2"), ["wait"]);
    assert_eq!(names("agent_v1"), ["spawn_agent", "wait", "close_agent"]);
}
