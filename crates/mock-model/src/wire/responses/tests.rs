use std::time::Duration;

use super::super::RequestKind;
use super::super::tests::{reply, written};
use super::*;
use crate::cli::Call;

fn everything() -> Reply {
    reply(
        vec![
            Say::Thinking(vec!["**Look".into(), "ing**".into()]),
            Say::Text(vec!["Hel".into(), "lo.".into()]),
            Say::Call(Call::new("exec_command", json!({"cmd": "ls"}))),
            Say::Raw(": nothing\n\n".into()),
            Say::Pause(Duration::from_secs(1)),
            Say::Call(Call {
                name: "echo".into(),
                namespace: Some("mcp__tiny".into()),
                input: json!({}),
            }),
            Say::Call(Call::new("apply_patch", json!("*** Begin Patch\né"))),
        ],
        Stop::ToolUse,
    )
}

/// Returns the data of all events.
fn events(frames: &[Frame]) -> Vec<Value> {
    written(frames)
        .lines()
        .filter_map(|line| line.strip_prefix("data: "))
        .map(|data| serde_json::from_str(data).unwrap())
        .collect()
}

#[test]
fn a_stream_with_everything_in_it() {
    insta::assert_snapshot!(written(&Responses.stream(&everything())));
}

#[test]
fn events_are_numbered_and_named_as_in_their_data() {
    let frames = Responses.stream(&everything());
    let text = written(&frames);
    let names: Vec<_> = text
        .lines()
        .filter_map(|line| line.strip_prefix("event: "))
        .collect();
    let events = events(&frames);
    assert_eq!(names.len(), events.len());
    for (count, (event, name)) in events.iter().zip(names).enumerate() {
        assert_eq!(event["type"], name);
        assert_eq!(event["sequence_number"], count);
    }
}

#[test]
fn last_stream_event_equals_the_complete_answer() {
    let reply = everything();
    let complete = Responses.complete(&reply);
    let events = events(&Responses.stream(&reply));
    assert_eq!(events.last().unwrap()["response"], complete);
    let done: Vec<_> = events
        .iter()
        .filter(|event| event["type"] == "response.output_item.done")
        .map(|event| event["item"].clone())
        .collect();
    assert_eq!(complete["output"], Value::from(done));
    assert_eq!(complete["status"], "completed");
    assert_eq!(complete["incomplete_details"], Value::Null);
}

#[test]
fn cache_reads_are_part_of_the_input() {
    assert_eq!(
        Responses.complete(&everything())["usage"],
        json!({
            "input_tokens": 134,
            "input_tokens_details": {"cached_tokens": 30, "cache_write_tokens": 4},
            "output_tokens": 20,
            "output_tokens_details": {"reasoning_tokens": 5},
            "total_tokens": 154,
        })
    );
}

#[test]
fn an_incomplete_answer_has_the_reason() {
    for (stop, reason) in [
        (Stop::MaxTokens, "max_output_tokens"),
        (Stop::Refusal, "content_filter"),
    ] {
        let reply = reply(vec![Say::Text(vec!["Hel".into()])], stop);
        let events = events(&Responses.stream(&reply));
        let last = events.last().unwrap();
        assert_eq!(last["type"], "response.incomplete");
        assert_eq!(last["response"]["status"], "incomplete");
        assert_eq!(
            last["response"]["incomplete_details"],
            json!({"reason": reason})
        );
        assert_eq!(last["response"], Responses.complete(&reply));
    }
}

#[test]
fn an_error_in_the_stream_ends_it_and_keeps_complete_items() {
    let reply = reply(
        vec![
            Say::Text(vec!["Hello.".into()]),
            Say::Text(vec!["I ".into()]),
            Say::Error(ErrorKind::ContextTooLong),
        ],
        Stop::End,
    );
    let events = events(&Responses.stream(&reply));
    let last = events.last().unwrap();
    assert_eq!(last["type"], "response.failed");
    let response = &last["response"];
    assert_eq!(response["status"], "failed");
    assert_eq!(response["error"]["code"], "context_length_exceeded");
    assert_eq!(response["output"].as_array().unwrap().len(), 1);
    assert_eq!(response["output"][0]["content"][0]["text"], "Hello.");
    assert_eq!(response["usage"], Value::Null);
}

#[test]
fn a_text_before_a_cut_or_a_stall_has_no_end() {
    for (say, last) in [(Say::Cut, Frame::Cut), (Say::Stall, Frame::Stall)] {
        for (text, event) in [
            (Say::Text(vec!["Hel".into()]), "response.output_text.delta"),
            (
                Say::Thinking(vec!["Hm".into()]),
                "response.reasoning_summary_text.delta",
            ),
            (
                Say::Call(Call::new("exec_command", json!({}))),
                "response.output_item.done",
            ),
        ] {
            let frames = Responses.stream(&reply(vec![text, say.clone()], Stop::End));
            assert_eq!(frames.last(), Some(&last));
            assert_eq!(events(&frames).last().unwrap()["type"], event);
        }
    }
}

#[test]
fn every_error_has_a_status_and_a_code() {
    let all = [
        (ErrorKind::Authentication, 401, "invalid_api_key"),
        (ErrorKind::Permission, 403, "insufficient_permissions"),
        (ErrorKind::RateLimit, 429, "rate_limit_exceeded"),
        (ErrorKind::Quota, 429, "insufficient_quota"),
        (ErrorKind::Server, 500, "server_error"),
        (ErrorKind::Overloaded, 503, "server_is_overloaded"),
        (ErrorKind::UnknownModel, 404, "model_not_found"),
        (ErrorKind::ContextTooLong, 400, "context_length_exceeded"),
        (ErrorKind::InvalidRequest, 400, "invalid_prompt"),
    ];
    for (kind, status, code) in all {
        let failure = Responses.error(kind, None);
        assert_eq!(failure.status, status, "{kind:?}");
        let (in_stream, message) = event_error(kind);
        assert_eq!(in_stream, code, "{kind:?}");
        assert_eq!(failure.body["error"]["message"], message);
        if !matches!(kind, ErrorKind::Server | ErrorKind::InvalidRequest) {
            assert_eq!(failure.body["error"]["code"], code);
        }
        let own = Responses.error(kind, Some("no"));
        assert_eq!(own.body["error"]["message"], "no");
    }
}

/// Returns the turn of a request with this input.
fn turn_of(input: &Value) -> usize {
    match Responses
        .asked("/v1/responses", &json!({"input": input}))
        .what
    {
        RequestKind::Answer { turn } => turn,
        other => panic!("{other:?}"),
    }
}

#[test]
fn reasoning_messages_and_calls_are_one_turn_of_the_model() {
    let mut input = vec![
        json!({"type": "message", "role": "developer", "content": []}),
        json!({"type": "message", "role": "user", "content": []}),
    ];
    assert_eq!(turn_of(&input.clone().into()), 0);
    input.extend([
        json!({"type": "reasoning", "summary": []}),
        json!({"type": "message", "role": "assistant", "content": []}),
        json!({"type": "function_call", "call_id": "1"}),
        json!({"type": "custom_tool_call", "call_id": "2"}),
    ]);
    assert_eq!(
        turn_of(&input.clone().into()),
        0,
        "an answer that broke off"
    );
    input.extend([
        json!({"type": "function_call_output", "call_id": "1"}),
        json!({"type": "custom_tool_call_output", "call_id": "2"}),
    ]);
    assert_eq!(turn_of(&input.clone().into()), 1);
    // A message that a filter stopped, and Codex's own message before it retries.
    let blocked = [
        json!({"type": "message", "role": "assistant", "content": []}),
        json!({"type": "message", "role": "developer", "content": []}),
    ];
    let blocked: Vec<_> = input.iter().cloned().chain(blocked).collect();
    assert_eq!(turn_of(&blocked.into()), 1);
    input.extend([
        // An item without a type is a message.
        json!({"role": "assistant", "content": "done"}),
        json!({"role": "user", "content": "go on"}),
    ]);
    assert_eq!(turn_of(&input.into()), 2);
    assert_eq!(turn_of(&json!("only a prompt")), 0);
}

#[test]
fn tools_are_listed_wherever_they_stand() {
    let asked = Responses.asked(
        "/v1/responses",
        &json!({
            "model": "gpt-5.5",
            "stream": true,
            "input": [{"type": "additional_tools", "role": "developer", "tools": [
                {"type": "namespace", "name": "functions", "tools": [{"type": "custom", "name": "exec"}]},
            ]}],
            "tools": [
                {"type": "function", "name": "exec_command"},
                {"type": "custom", "name": "apply_patch"},
                {"type": "namespace", "name": "mcp__x", "tools": [{"type": "function", "name": "exec"}]},
                {"type": "web_search"},
            ],
        }),
    );
    assert_eq!(asked.model, "gpt-5.5");
    assert!(asked.stream);
    assert_eq!(
        asked.tools,
        [
            "exec_command",
            "apply_patch",
            "mcp__x__exec",
            "web_search",
            "exec"
        ]
    );
    assert!(!Responses.asked("/v1/responses", &json!({})).stream);
}

#[test]
fn requests_of_codex_itself_are_no_turns() {
    let asked = |kind: &str| {
        let metadata = json!({"request_kind": kind}).to_string();
        let body = json!({"client_metadata": {"x-codex-turn-metadata": metadata}});
        Responses.asked("/v1/responses", &body).what
    };
    assert_eq!(asked("turn"), RequestKind::Answer { turn: 0 });
    assert!(matches!(asked("compaction"), RequestKind::Helper(_)));
}

#[test]
fn a_call_that_copilot_made_by_itself_is_no_answer_of_the_model() {
    let call = |name: &str, id: &str| json!({"type": "function_call", "name": name, "call_id": id});
    let output = json!({"type": "function_call_output", "call_id": "x", "output": "over"});
    let user = json!({"type": "message", "role": "user", "content": []});
    let answer = json!({"type": "message", "role": "assistant", "content": []});
    let turn = |name: &str, id: &str| turn_of(&json!([user, answer, call(name, id), output]));
    assert_eq!(turn("read_bash", "read-bash-0"), 1);
    assert_eq!(turn("read_agent", "read-agent-0"), 1);
    let of_the_model = json!([
        user,
        answer,
        user,
        call("read_bash", "call_mock_1_0_0"),
        output
    ]);
    assert_eq!(turn_of(&of_the_model), 2);
    let of_the_cli = json!([user, answer, user, call("read_bash", "read-bash-0"), output]);
    assert_eq!(turn_of(&of_the_cli), 1);
}

#[test]
fn summarized_conversation_keeps_its_number_of_turns() {
    let user = |text: &str| json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]});
    let model = json!({"type": "message", "role": "assistant", "content": []});
    let summary_of = |input: Value| {
        let metadata = json!({"request_kind": "compaction"}).to_string();
        let body = json!({
            "client_metadata": {"x-codex-turn-metadata": metadata},
            "input": input,
        });
        match Responses.asked("/v1/responses", &body).what {
            RequestKind::Helper(summary) => format!("Another model wrote:\n{summary}\nGo on."),
            other => panic!("{other:?}"),
        }
    };
    let first = summary_of(json!([user("hi"), model, user("sum it up")]));
    let then = json!([user("hi"), user(&first)]);
    assert_eq!(turn_of(&then), 1);
    let second = summary_of(json!([user("hi"), user(&first), model, user("sum it up")]));
    let then = json!([user("hi"), user(&second), user("next"), model, user("more")]);
    assert_eq!(turn_of(&then), 3);
}
