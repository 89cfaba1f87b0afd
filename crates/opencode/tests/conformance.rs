//! Provider conformance tests for OpenCode 1.18.33.
#![cfg(test)]

use std::path::Path;

use serde_json::{Map, Value};
use teamster_core::{CliProvider, ErrorKind, RunStatus, SubAgent, SystemPrompt, ToolKind};
use teamster_opencode::OpenCode;
use teamster_testkit::conformance::{
    Announces, ArgvModel, Parser, Plain, Sent, Suite, Tool, Understood,
};
use teamster_testkit::fixture::Fixture;
use teamster_testkit::replay::{Replay, ReplayOptions, replay};

fn suite() -> Suite {
    use RunStatus::{Completed, Failed, Incomplete};
    let fixtures = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/opencode");
    Suite::new(OpenCode, fixtures)
        .run_is_over(is_over)
        .command_line(command_line(), understand)
        .plain(Plain {
            session_id: "ses_e0024d21affeQxq3tDgLABc4gf",
            model: "anthropic/claude-sonnet-4-5",
            tool: "webfetch",
            ..Plain::default()
        })
        .text(
            "text",
            "Hello from the mock: naïve café ☃ 你好，世界 🚀👨‍👩‍👧 line1\nline2\t\"quoted\" \\ done.",
        )
        .text(
            "tool_shell_ok",
            "Let me run that.The command printed hello-from-shell.",
        )
        .text("disconnect_then_ok", "Full answer on the second attempt.")
        .text("mid_stream_disconnect", "")
        .text("broken_off_after_a_block", "First block whole again.After.")
        .text("text_after_a_call", "Before tool.After call text.End.")
        // The first event of a tool comes with its result.
        .announces(Announces::Nothing)
        .call("tool_shell_ok", ToolKind::Execute)
        .call("edits", ToolKind::Edit)
        .call("mcp_ok", ToolKind::Mcp)
        .call("task_subagent", ToolKind::Task)
        .cut_off("sigkill_group_in_tool", ToolKind::Execute)
        .tool(
            "tool_shell_ok",
            Tool::shell("echo hello-from-shell", "hello-from-shell"),
        )
        .tool(
            "tool_shell_fail",
            Tool::failed_shell("exit 3", "out-line\nerr-line"),
        )
        .status("text", Completed, None)
        .status("multi_turn", Completed, None)
        .status("tool_shell_fail", Completed, None)
        .status("retry_ok", Completed, None)
        .status("empty_answer", Failed, Some(ErrorKind::Protocol))
        .status("denied_env_permission", Incomplete, None)
        .status("denied_ask_bash", Incomplete, Some(ErrorKind::Permission))
        .status(
            "denied_external_dir",
            Incomplete,
            Some(ErrorKind::Permission),
        )
        .status("context_too_long_compacted", Completed, None)
        .status("length_and_the_run_goes_on", Completed, None)
        .status("stop_and_the_run_goes_on", Completed, None)
        .status("rejected_and_the_run_goes_on", Incomplete, None)
        .status(
            "blocked_by_content_filter",
            Failed,
            Some(ErrorKind::Invalid),
        )
        .status("error_400_quota", Failed, Some(ErrorKind::Quota))
        .status("error_400", Failed, Some(ErrorKind::Invalid))
        .status("error_401", Failed, Some(ErrorKind::Auth))
        .status("error_403", Failed, Some(ErrorKind::Auth))
        .status("error_404_model", Failed, Some(ErrorKind::ModelNotFound))
        .status("error_429_retry_after", Failed, Some(ErrorKind::RateLimit))
        .status("error_500", Failed, Some(ErrorKind::Overloaded))
        .status("error_529", Failed, Some(ErrorKind::Overloaded))
        .status("error_html", Failed, Some(ErrorKind::Overloaded))
        .status("sse_overloaded", Failed, Some(ErrorKind::Overloaded))
        .status("malformed", Failed, Some(ErrorKind::Protocol))
        .status("mid_stream_disconnect", Failed, Some(ErrorKind::Network))
        .status("hang_server_timeout_opt", Failed, Some(ErrorKind::Network))
        .status("invalid_model", Failed, Some(ErrorKind::Internal))
        .status("invalid_model_logs", Failed, Some(ErrorKind::ModelNotFound))
        .status("max_tokens", Failed, Some(ErrorKind::Invalid))
        .status("tool_then_error", Failed, Some(ErrorKind::Invalid))
        .status("resume_unknown", Failed, Some(ErrorKind::SessionNotFound))
        .status("bad_config", Failed, Some(ErrorKind::Invalid))
        .status("parallel_fresh_home", Failed, Some(ErrorKind::Internal))
        .status("sigterm_mid_stream", Failed, Some(ErrorKind::Internal))
        .status(
            "slow_reader_truncated",
            Incomplete,
            Some(ErrorKind::Protocol),
        )
}

/// Approximates the end of a run, which has no line: the last line is the end of a step without a continuation, or an
/// error.
fn is_over(lines: &[Value]) -> bool {
    lines.last().is_some_and(|line| {
        line["type"] == "error"
            || line["type"] == "step_finish" && line["part"]["reason"] != "tool-calls"
    })
}

/// Returns a model of the command line: `opencode run --help`, the flags of all commands, and unlisted flags.
fn command_line() -> ArgvModel {
    let run = ArgvModel::new(Parser::Yargs)
        .switches(
            "
                --continue|-c --fork --share --thinking --auto --yolo --dangerously-skip-permissions
                --interactive|-i --print-logs --pure --help|-h --version|-v
            ",
        )
        .one(
            "
                --command --session|-s --model|-m --agent --format --title --attach --password|-p
                --username|-u --dir --port --variant --log-level
            ",
        )
        .many("--file|-f");
    ArgvModel::new(Parser::Yargs).command("run", run).commands(
        "
                completion acp mcp attach debug providers auth agent upgrade uninstall serve web
                models stats export import github pr session plugin db
            ",
    )
}

fn understand(sent: &Sent<'_>) -> Understood {
    let args = &sent.args;
    assert_eq!(args.commands, ["run"]);
    let json = |name: &str| -> Map<String, Value> {
        let text = sent.variable(name).unwrap_or_else(|| "{}".into());
        serde_json::from_str(&text).unwrap()
    };
    let config = Value::Object(json("OPENCODE_CONFIG_CONTENT"));
    let build = &config["agent"]["build"];
    let outside = build["permission"]["external_directory"].as_object();
    let rules = json("OPENCODE_PERMISSION");
    let with = |action: &str| -> Vec<String> {
        let own = ["question", "plan_enter", "plan_exit"];
        let matching = rules.iter().filter(|(_, is)| *is == action);
        let names = matching.map(|(name, _)| name.clone());
        // A denied tool is listed twice: its other key matches the same, and is in no file.
        let again = |name: &str| {
            let stars = name.len() - name.trim_end_matches('*').len();
            let exact = name.strip_suffix(" *");
            let head = exact.or_else(|| (stars >= 16).then(|| name.trim_end_matches('*')));
            head.is_some_and(|head| rules.contains_key(head))
        };
        names
            .filter(|name| !again(name))
            .filter(|name| !own.contains(&name.as_str()) && name != "edit")
            .collect()
    };
    let words = args.positionals.iter();
    let words = words.map(|word| word.to_string_lossy().into_owned());
    // The CLI strips one byte order mark.
    let mut stdin = sent.stdin();
    if let Some(text) = &mut stdin
        && text.starts_with('\u{feff}')
    {
        text.remove(0);
    }
    let parts: Vec<_> = words.chain(stdin).collect();
    Understood {
        prompt: parts.join("\n"),
        session_id: args.text("--session"),
        fork: args.has("--fork"),
        add_dirs: outside
            .into_iter()
            .flat_map(Map::keys)
            .filter(|dir| !dir.ends_with('*'))
            .map(Into::into)
            .collect(),
        skills: (config["skills"]["paths"].as_array().into_iter().flatten())
            .filter_map(|path| path.as_str().map(Into::into))
            .collect(),
        sub_agents: sub_agents(sent, &config),
        system_prompt: system_prompt(sent, &config),
        model: args.text("--model"),
        effort: args.text("--variant"),
        allowed_tools: with("allow"),
        denied_tools: with("deny"),
        images: args.values("--file").len(),
        ..Understood::default()
    }
}

/// Returns the sub-agents, whose prompts are in files.
fn sub_agents(sent: &Sent<'_>, config: &Value) -> Vec<SubAgent> {
    let agents = config["agent"].as_object().into_iter().flatten();
    let agents = agents.filter(|(_, agent)| agent["mode"] == "subagent");
    agents
        .map(|(name, agent)| {
            let prompt = agent["prompt"].as_str().unwrap();
            let variable = prompt.strip_prefix("{file:{env:").unwrap();
            let variable = variable.strip_suffix("}}").unwrap();
            let prompt = sent.file(sent.variable(variable).unwrap()).unwrap();
            SubAgent::new(name, agent["description"].as_str().unwrap(), prompt)
        })
        .collect()
}

/// Resolves the system prompt: the CLI replaces `{env:NAME}` and then `{file:PATH}` in the text of its configuration.
fn system_prompt(sent: &Sent<'_>, config: &Value) -> Option<SystemPrompt> {
    let file = |text: &Value| {
        let text = text.as_str()?.strip_prefix("{env:")?;
        sent.file(sent.variable(text.strip_suffix('}')?)?)
    };
    let prompt = config["agent"]["build"]["prompt"].as_str();
    let prompt = prompt.and_then(|p| p.strip_prefix("{file:")?.strip_suffix('}'));
    if let Some(prompt) = prompt {
        assert_eq!(config["default_agent"], "build");
        return file(&prompt.into()).map(SystemPrompt::Replace);
    }
    file(&config["instructions"][0]).map(SystemPrompt::Append)
}

// All but `reports`, which takes a message of two whole blocks [two_texts] for deltas. Its other checks are below.
teamster_testkit::conformance_tests!(@ suite(); grammar chunks cut_short text_once texts tools calls
    statuses truths garbled parameters delivery prompts arguments mcp recorded);

#[test]
fn reports() {
    let replay = |scenario: &str| {
        let fixtures = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../fixtures/opencode/1.18.33"
        );
        let fixture = Fixture::load(&Path::new(fixtures).join(scenario)).unwrap();
        replay(&fixture, &OpenCode, ReplayOptions::default())
    };
    let texts = |replay: &Replay| replay.counts().get("text").copied();
    // One block, which the model's service sent in eight pieces; then two blocks.
    assert_eq!(texts(&replay("text")), Some(1));
    assert_eq!(texts(&replay("two_texts")), Some(2));
    let thinking = replay("thinking");
    assert_eq!(thinking.counts().get("thinking"), Some(&1));
    let result = thinking.result().unwrap();
    assert!(result.usage.is_some() && result.total_cost_usd.is_some());
    let can = OpenCode.capabilities();
    assert!(!can.text_deltas && can.thinking && can.usage && can.cost);
}
