//! Differences between the versions 2.1.330 and 2.1.197, with lines cut from the CLI's output.

use teamster_core::provider::{Events, RunAssembler};
use teamster_core::{
    AgentEvent, ErrorKind, ExecuteParams, Notice, NoticeLevel, PermissionMode, Usage,
};
use teamster_testkit::events::payloads;
use teamster_testkit::replay::decode;

use super::super::ClaudeDecoder;
use super::{init, names, run};

const STATUS: &str = r#"{"type":"system","subtype":"status","status":"requesting"}"#;

fn lines(lines: &[&str]) -> Vec<String> {
    let rest = lines.iter().map(|line| (*line).to_owned());
    std::iter::once(init()).chain(rest).collect()
}

fn message_start(id: &str) -> String {
    format!(
        r#"{{"type":"stream_event","event":{{"type":"message_start","message":{{"id":"{id}","type":"message","role":"assistant","model":"claude-opus-5-5","content":[],"usage":{{"input_tokens":100,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":1}}}}}},"parent_tool_use_id":null,"api_message_id":"{id}"}}"#
    )
}

fn streamed(id: &str, index: u64, text: &str) -> String {
    format!(
        r#"{{"type":"stream_event","event":{{"type":"content_block_delta","index":{index},"delta":{{"type":"text_delta","text":"{text}"}}}},"parent_tool_use_id":null,"api_message_id":"{id}"}}"#
    )
}

fn complete(id: &str, text: &str) -> String {
    format!(
        r#"{{"type":"assistant","message":{{"id":"{id}","type":"message","role":"assistant","model":"claude-opus-5-5","content":[{{"type":"text","text":"{text}"}}]}},"parent_tool_use_id":null}}"#
    )
}

/// Returns the CLI's end of a message that was cut off.
fn abandoned(id: &str, from: u64) -> String {
    format!(
        r#"{{"type":"stream_event","event":{{"type":"message_stop"}},"parent_tool_use_id":null,"api_message_id":"{id}","abandoned_blocks":{{"api_message_id":"{id}","from_block_index":{from}}}}}"#
    )
}

const ENDED: &str = r#"{"type":"result","subtype":"success","is_error":false,"duration_api_ms":1252,"result":"Now it went well.","num_turns":1,"total_cost_usd":0.00132,"usage":{"input_tokens":200,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":21},"modelUsage":{"claude-opus-5-5":{"inputTokens":200,"outputTokens":26,"costUSD":0.00132}},"result_index":0,"model_usage_since_last_result":{"claude-opus-5-5":{"inputTokens":200,"outputTokens":26,"costUSD":0.00132}}}"#;

#[test]
fn complete_blocks_of_a_message_that_broke_off_later_are_kept() {
    let lines = lines(&[
        &message_start("m0"),
        &streamed("m0", 0, "First I look. "),
        &complete("m0", "First I look. "),
        &streamed("m0", 1, "This is cut "),
        &abandoned("m0", 1),
        &message_start("m1"),
        &streamed("m1", 0, "Now it went well."),
        &complete("m1", "Now it went well."),
        ENDED,
    ]);
    let (events, result) = run(&lines);
    assert!(names(&events).contains(&"retract"), "{events:?}");
    assert_eq!(result.text, "First I look. Now it went well.");
}

#[test]
fn a_complete_message_is_not_retracted_though_more_was_to_come() {
    let lines = lines(&[
        &message_start("m0"),
        &streamed("m0", 0, "This is a long text "),
        &complete("m0", "This is a long text "),
        &abandoned("m0", 1),
        &message_start("m1"),
        ENDED,
    ]);
    let (events, _) = run(&lines);
    assert!(!names(&events).contains(&"retract"), "{events:?}");
}

#[test]
fn broken_message_without_a_replacement_is_kept_with_an_error() {
    let text = "API Error: Connection dropped (ECONNRESET). Check the gateway set in \
                ANTHROPIC_BASE_URL, then try again.";
    let written = format!(
        r#"{{"type":"assistant","message":{{"id":"eca03d56","model":"<synthetic>","role":"assistant","content":[{{"type":"text","text":"{text}"}}]}},"parent_tool_use_id":null,"error":"server_error","is_api_error_message":true,"api_error":"connection_failed"}}"#
    );
    let end = format!(
        r#"{{"type":"result","subtype":"success","is_error":true,"stop_reason":"stop_sequence","terminal_reason":"api_error","api_error_status":null,"api_error":"connection_failed","result":"{text}","num_turns":1,"total_cost_usd":0.00104,"modelUsage":{{"claude-opus-5-5":{{"inputTokens":200,"outputTokens":12,"costUSD":0.00104}}}},"model_usage_since_last_result":{{"claude-opus-5-5":{{"inputTokens":200,"outputTokens":12,"costUSD":0.00104}}}}}}"#
    );
    let cut = [
        message_start("m0"),
        streamed("m0", 0, "This will be cut "),
        abandoned("m0", 0),
        written,
    ];
    let cut: Vec<&str> = cut.iter().map(String::as_str).collect();
    let (_, with_end) = run(&lines(&[&cut[..], &[end.as_str()]].concat()));
    let (_, without_end) = run(&lines(&cut));
    for result in [&with_end, &without_end] {
        assert_eq!(result.text, "This will be cut ");
        assert_eq!(result.errors.last().unwrap().kind, ErrorKind::Network);
    }
    assert_eq!(with_end.usage.unwrap().input_tokens, Some(200));
}

/// Result of the second run of a session. The totals are those of both runs.
const RESUMED: &str = r#"{"type":"result","subtype":"success","is_error":false,"duration_api_ms":329,"result":"It was blue.","num_turns":1,"total_cost_usd":0.00244,"usage":{"input_tokens":300,"output_tokens":12},"modelUsage":{"claude-opus-5-5":{"inputTokens":500,"outputTokens":22,"cacheReadInputTokens":0,"cacheCreationInputTokens":0,"costUSD":0.00244,"contextWindow":1000000,"maxOutputTokens":128000}},"result_index":0,"model_usage_since_last_result":{"claude-opus-5-5":{"inputTokens":300,"outputTokens":12,"cacheReadInputTokens":0,"cacheCreationInputTokens":0,"costUSD":0.00144,"contextWindow":1000000,"maxOutputTokens":128000}}}"#;

fn usage(input: u64, output: u64) -> Usage {
    Usage::default()
        .input_tokens(input)
        .output_tokens(output)
        .cache_read_tokens(0)
        .cache_write_tokens(0)
}

#[test]
fn usage_since_the_last_result_adds_up() {
    let first = RESUMED
        .replace(":500,", ":300,")
        .replace(":22,", ":12,")
        .replace("0.00244", "0.00144");
    let second = RESUMED
        .replace(":500,", ":600,")
        .replace(":22,", ":24,")
        .replace("0.00244", "0.00288");
    let (_, result) = run(&lines(&[&first, STATUS, &second]));
    assert_eq!(result.usage, Some(usage(600, 24)));
    assert_eq!(result.total_cost_usd, Some(0.00288));
    let model = &result.usage_by_model["claude-opus-5-5"];
    assert_eq!(
        (model.usage, model.cost_usd),
        (usage(600, 24), Some(0.00288))
    );
    // All usage is that of this run.
    assert_eq!(
        (result.api_duration_ms, result.session_usage),
        (Some(329), None)
    );
}

#[test]
fn a_message_that_the_cli_did_not_count_was_not_free() {
    let lines = lines(&[
        &message_start("m0"),
        &streamed("m0", 0, "This will fail "),
        &abandoned("m0", 0),
        r#"{"type":"result","subtype":"success","is_error":true,"api_error_status":529,"api_error_type":"overloaded_error","result":"API Error: 529 Overloaded.","num_turns":1,"total_cost_usd":0,"usage":{"input_tokens":100,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":1},"modelUsage":{},"result_index":0,"model_usage_since_last_result":{}}"#,
    ]);
    let (_, result) = run(&lines);
    assert_eq!((result.usage, result.total_cost_usd), (None, None));
    assert_eq!(result.errors[0].kind, ErrorKind::Overloaded);
}

#[test]
fn a_tool_that_a_read_only_run_does_not_have_is_denied() {
    let lines = lines(&[
        r#"{"type":"assistant","message":{"id":"m0","model":"claude-opus-5-5","content":[{"type":"tool_use","id":"toolu_mock_0_0_0","name":"Bash","input":{"command":"touch made.txt"}}]},"parent_tool_use_id":null}"#,
        r#"{"type":"user","message":{"role":"user","content":[{"type":"tool_result","content":"<tool_use_error>Error: No such tool available: Bash. Bash is disabled for this session, in subagents as well as here.</tool_use_error>","is_error":true,"tool_use_id":"toolu_mock_0_0_0"}]},"parent_tool_use_id":null,"tool_use_result":"Error: No such tool available: Bash. Bash is disabled for this session, in subagents as well as here."}"#,
    ]);
    let params = ExecuteParams::new("x");
    let exit = teamster_core::provider::Exit::default;
    for (permission, expected) in [
        (PermissionMode::ReadOnly, &["permission", "tool_result"][..]),
        // The CLI does not have it in any case.
        (PermissionMode::Default, &["tool_result"]),
    ] {
        let params = params.clone().permission(permission);
        let decoder = ClaudeDecoder::for_run(&params);
        let mut names = names(&decode(decoder, &lines, exit()).0);
        names.retain(|name| matches!(*name, "permission" | "tool_result"));
        assert_eq!(names, expected, "{permission:?}");
    }
}

// As 2.1.197 and 2.1.332 print them in a read-only run.
#[test]
fn a_tool_that_does_not_exist_is_not_denied() {
    let run = |tool: &str, why: &str| {
        let lines = lines(&[
            &format!(
                r#"{{"type":"assistant","message":{{"id":"m0","model":"m","content":[{{"type":"tool_use","id":"t","name":"{tool}","input":{{}}}}]}},"parent_tool_use_id":null}}"#
            ),
            &format!(
                r#"{{"type":"user","message":{{"role":"user","content":[{{"type":"tool_result","content":"<tool_use_error>Error: No such tool available: {tool}{why}</tool_use_error>","is_error":true,"tool_use_id":"t"}}]}},"parent_tool_use_id":null}}"#
            ),
        ]);
        let params = ExecuteParams::new("x").permission(PermissionMode::ReadOnly);
        let exit = teamster_core::provider::Exit::default();
        let (_, result) = decode(ClaudeDecoder::for_run(&params), &lines, exit);
        result.permission_denials.len()
    };
    let old = |tool| {
        format!(
            ". {tool} exists but is not enabled in this context. Use one of the available tools instead."
        )
    };
    let new =
        |tool| format!(". {tool} is disabled for this session, in subagents as well as here.");
    for why in [&old as &dyn Fn(&'static str) -> String, &new] {
        for (tool, denied) in [
            ("Bash", 1),
            ("TaskCreate", 1),
            ("AskUserQuestion", 0),
            ("EnterPlanMode", 0),
            ("ExitPlanMode", 0),
            ("TodoWrite", 0),
        ] {
            assert_eq!(run(tool, &why(tool)), denied, "{tool}");
        }
    }
    assert_eq!(run("NoSuchTool", ""), 0);
}

#[test]
fn a_retry_of_a_sub_agent_is_one_of_the_run() {
    // From a run of 2.1.332.
    let progress = |retry: &str| {
        format!(
            r#"{{"type":"tool_progress","tool_use_id":"agent_msg_mock_0_0","tool_name":"Agent","parent_tool_use_id":"toolu_mock_0_0_0","elapsed_time_seconds":0,"subagent_type":"general-purpose"{retry}}}"#
        )
    };
    let retry = r#","subagent_retry":{"agent_id":"a43ac73dae27d069c","attempt":2,"max_retries":10,"retry_delay_ms":2209,"error_status":429,"error_category":"rate_limit"}"#;
    let lines = [progress(""), progress(retry)];
    let exit = teamster_core::provider::Exit::default();
    let (events, result) = decode(ClaudeDecoder::new(), &lines, exit);
    let AgentEvent::Retry(retry) = &events[0] else {
        panic!("{events:?}");
    };
    assert_eq!((retry.attempt, retry.max_attempts), (2, Some(10)));
    assert_eq!(retry.delay_ms, Some(2209));
    assert_eq!(retry.error.kind, ErrorKind::RateLimit);
    assert_eq!(retry.error.message, "a sub-agent: rate_limit (HTTP 429)");
    assert_eq!(result.diagnostics.unknown, 0);
}

#[test]
fn wrong_key_is_hopeless_at_once_and_a_login_the_second_time() {
    let retry = |attempt: u32| {
        format!(
            r#"{{"type":"system","subtype":"api_retry","attempt":{attempt},"max_retries":10,"retry_delay_ms":584,"error_status":401,"error":"authentication_failed"}}"#
        )
    };
    for (source, expected) in [
        ("ANTHROPIC_API_KEY", [true, true]),
        ("none", [false, true]),
        ("apiKeyHelper", [false, true]),
    ] {
        let init = format!(
            r#"{{"type":"system","subtype":"init","session_id":"s","model":"m","apiKeySource":"{source}"}}"#
        );
        let mut assembler = RunAssembler::new(Box::new(ClaudeDecoder::new()));
        let mut out = Events::new();
        assembler.line(init.as_bytes(), &mut out);
        let hopeless = [1, 2].map(|attempt| {
            assembler.line(retry(attempt).as_bytes(), &mut out);
            assembler.hopeless().is_some()
        });
        assert_eq!(hopeless, expected, "{source}");
    }
}

#[test]
fn information_of_the_cli_is_a_notice() {
    let line = |level: &str| {
        format!(
            r#"{{"type":"system","subtype":"informational","content":"Opus 5.5's safeguards stopped the response above · continuing once with that noted","level":"{level}"}}"#
        )
    };
    let lines = lines(&[&line("notice"), &line("warning")]);
    let (events, result) = decode(
        ClaudeDecoder::new(),
        &lines,
        teamster_core::provider::Exit::default(),
    );
    let levels: Vec<_> = payloads::<Notice>(&events)
        .map(|notice| (notice.level, notice.message.as_str()))
        .collect();
    let text = "Opus 5.5's safeguards stopped the response above · continuing once with that noted";
    assert_eq!(
        levels,
        [(NoticeLevel::Info, text), (NoticeLevel::Warning, text)]
    );
    assert_eq!(result.diagnostics.unknown, 0);
}
