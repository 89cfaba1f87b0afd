use bytes::Bytes;

use super::super::RequestKind;
use super::*;

fn reply(say: Vec<Say>) -> Reply {
    super::super::tests::reply(say, Stop::ToolUse)
}

fn everything() -> Reply {
    reply(vec![
        Say::Thinking(vec!["Hm".into(), "m.".into()]),
        Say::Text(vec!["I ".into(), "look.".into()]),
        Say::Call(Call::new("bash", json!({"command": "ls -la"}))),
        Say::Call(Call::new("read", json!({"filePath": "a"}))),
    ])
}

/// Returns the chunks of a stream, and its other frames.
fn chunks(frames: Vec<Frame>) -> Vec<Value> {
    let mut found = Vec::new();
    for frame in frames {
        found.push(match frame {
            Frame::Pace => continue,
            Frame::Bytes(bytes) => {
                let text = String::from_utf8(bytes.into()).unwrap();
                let data = text
                    .strip_prefix("data: ")
                    .and_then(|t| t.strip_suffix("\n\n"));
                let data = data.unwrap_or(&text);
                serde_json::from_str(data).unwrap_or_else(|_| data.into())
            }
            other => format!("{other:?}").into(),
        });
    }
    found
}

/// Returns the deltas of the chunks.
fn deltas(reply: &Reply) -> Vec<Value> {
    chunks(Chat.stream(reply))
        .into_iter()
        .map(|chunk| match &chunk["choices"][0]["delta"] {
            Value::Null => chunk,
            delta => delta.clone(),
        })
        .collect()
}

#[test]
fn a_stream_has_a_chunk_for_each_piece_and_the_usage_last() {
    let chunk = |delta: Value, finish: Value| {
        json!({
            "id": "chatcmpl-mock_0_0", "object": "chat.completion.chunk",
            "created": 1_750_000_000, "model": "m",
            "choices": [{"index": 0, "delta": delta, "logprobs": null, "finish_reason": finish}],
        })
    };
    let expected = [
        json!({"role": "assistant", "content": "", "refusal": null}),
        json!({"reasoning_content": "Hm"}),
        json!({"reasoning_content": "m."}),
        json!({"content": "I "}),
        json!({"content": "look."}),
        json!({"tool_calls": [{"index": 0, "id": "call_mock_0_0_0", "type": "function",
            "function": {"name": "bash", "arguments": ""}}]}),
        json!({"tool_calls": [{"index": 0, "function": {"arguments": "{\"command\":\"ls -"}}]}),
        json!({"tool_calls": [{"index": 0, "function": {"arguments": "la\"}"}}]}),
        json!({"tool_calls": [{"index": 1, "id": "call_mock_0_0_1", "type": "function",
            "function": {"name": "read", "arguments": ""}}]}),
        json!({"tool_calls": [{"index": 1, "function": {"arguments": "{\"filePath\":\"a\"}"}}]}),
    ];
    let mut expected: Vec<Value> = expected.map(|delta| chunk(delta, Value::Null)).into();
    expected.push(chunk(json!({}), json!("tool_calls")));
    expected.push(json!({
        "id": "chatcmpl-mock_0_0", "object": "chat.completion.chunk",
        "created": 1_750_000_000, "model": "m", "choices": [],
        "usage": {
            "prompt_tokens": 134, "completion_tokens": 20, "total_tokens": 154,
            "prompt_tokens_details": {"cached_tokens": 30},
            "completion_tokens_details": {"reasoning_tokens": 5},
        },
    }));
    expected.push(json!("[DONE]"));
    assert_eq!(chunks(Chat.stream(&everything())), expected);
}

#[test]
fn a_piece_of_text_is_followed_by_the_time_to_the_next() {
    let frames = Chat.stream(&reply(vec![Say::Text(vec!["a".into(), "b".into()])]));
    let paces: Vec<_> = (0..frames.len())
        .filter(|at| frames[*at] == Frame::Pace)
        .collect();
    assert_eq!(paces, [2, 4]);
}

#[test]
fn a_complete_answer_equals_the_stream() {
    let complete = Chat.complete(&everything());
    assert_eq!(
        complete,
        json!({
            "id": "chatcmpl-mock_0_0", "object": "chat.completion",
            "created": 1_750_000_000, "model": "m",
            "choices": [{
                "index": 0,
                "message": {
                    "role": "assistant", "content": "I look.", "refusal": null,
                    "reasoning_content": "Hmm.",
                    "tool_calls": [
                        {"id": "call_mock_0_0_0", "type": "function",
                         "function": {"name": "bash", "arguments": "{\"command\":\"ls -la\"}"}},
                        {"id": "call_mock_0_0_1", "type": "function",
                         "function": {"name": "read", "arguments": "{\"filePath\":\"a\"}"}},
                    ],
                },
                "logprobs": null, "finish_reason": "tool_calls",
            }],
            "usage": {
                "prompt_tokens": 134, "completion_tokens": 20, "total_tokens": 154,
                "prompt_tokens_details": {"cached_tokens": 30},
                "completion_tokens_details": {"reasoning_tokens": 5},
            },
        })
    );
    let message = &Chat.complete(&reply(vec![]))["choices"][0]["message"];
    assert_eq!(
        message,
        &json!({"role": "assistant", "content": null, "refusal": null})
    );
}

#[test]
fn the_input_of_a_tool_may_be_no_json() {
    let say = vec![Say::Call(Call::new("bash", json!("{\"command\": ")))];
    let arguments = &deltas(&reply(say))[2]["tool_calls"][0]["function"]["arguments"];
    assert_eq!(arguments, "{\"command\": ");
}

#[test]
fn each_stop_has_its_word() {
    for (stop, word) in [
        (Stop::End, "stop"),
        (Stop::ToolUse, "tool_calls"),
        (Stop::MaxTokens, "length"),
        (Stop::Refusal, "content_filter"),
    ] {
        let mut reply = reply(vec![]);
        reply.stop = stop;
        assert_eq!(Chat.complete(&reply)["choices"][0]["finish_reason"], word);
        assert_eq!(
            chunks(Chat.stream(&reply))[1]["choices"][0]["finish_reason"],
            word
        );
    }
}

#[test]
fn an_answer_ends_where_it_breaks() {
    let text = || Say::Text(vec!["a".into()]);
    let after = |last: Say| deltas(&reply(vec![text(), last])).split_off(2);
    assert_eq!(after(Say::Cut), ["Cut"]);
    assert_eq!(after(Say::Stall), ["Stall"]);
    assert_eq!(
        after(Say::Pause(std::time::Duration::from_millis(3)))[0],
        "Pause(3ms)"
    );
    let error = after(Say::Error(ErrorKind::Overloaded));
    assert_eq!(error, [Chat.error(ErrorKind::Overloaded, None).body]);
    let raw = Chat.stream(&reply(vec![Say::Raw("data: {oops\n\n".into())]));
    assert_eq!(raw[1], Frame::Bytes(Bytes::from("data: {oops\n\n")));
    assert_eq!(raw.len(), 5, "and then the answer continues");
}

#[test]
fn errors_have_the_bodies_of_the_service() {
    let invalid = "invalid_request_error";
    for (kind, status, name, param, code) in [
        (
            ErrorKind::Authentication,
            401,
            invalid,
            "",
            "invalid_api_key",
        ),
        (ErrorKind::Permission, 403, invalid, "", ""),
        (
            ErrorKind::RateLimit,
            429,
            "tokens",
            "",
            "rate_limit_exceeded",
        ),
        (
            ErrorKind::Quota,
            429,
            "insufficient_quota",
            "",
            "insufficient_quota",
        ),
        (ErrorKind::Server, 500, "server_error", "", ""),
        (ErrorKind::Overloaded, 503, "server_error", "", ""),
        (ErrorKind::UnknownModel, 404, invalid, "", "model_not_found"),
        (
            ErrorKind::ContextTooLong,
            400,
            invalid,
            "messages",
            "context_length_exceeded",
        ),
        (ErrorKind::InvalidRequest, 400, invalid, "", ""),
    ] {
        let [param, code] = [param, code].map(|it| (!it.is_empty()).then_some(it));
        let failure = Chat.error(kind, Some("why"));
        assert_eq!(failure.status, status, "{kind:?}");
        assert_eq!(
            failure.body,
            json!({"error": {"message": "why", "type": name, "param": param, "code": code}})
        );
        let usual = Chat.error(kind, None).body["error"]["message"].to_string();
        assert!(usual.len() > 10, "{kind:?}");
        for status in ["429", "500", "502", "503", "504", "524"] {
            assert!(!usual.contains(status), "OpenCode would repeat it: {usual}");
        }
    }
}

#[test]
fn the_request_reports_the_model_the_tools_and_the_turn() {
    let asked = Chat.asked(
        "/v1/chat/completions",
        &json!({
            "model": "mock-model", "stream": true,
            "tools": [
                {"type": "function", "function": {"name": "bash", "parameters": {}}},
                {"type": "custom", "custom": {"name": "apply_patch"}},
            ],
            "messages": [
                {"role": "system", "content": "You are."},
                {"role": "user", "content": "go"},
                {"role": "assistant", "content": null, "tool_calls": [{"id": "a"}, {"id": "b"}]},
                {"role": "tool", "tool_call_id": "a", "content": "1"},
                {"role": "tool", "tool_call_id": "b", "content": "2"},
                {"role": "assistant", "content": "Done."},
                {"role": "user", "content": [{"type": "text", "text": "again"}]},
            ],
        }),
    );
    assert_eq!(
        asked,
        ParsedRequest {
            model: "mock-model".into(),
            stream: true,
            tools: vec!["bash".into(), "apply_patch".into()],
            what: RequestKind::Answer { turn: 2 },
        }
    );
    assert!(!Chat.asked("/", &Value::Null).stream);
}

/// The last messages of Qwen Code 0.24.4 after an answer that broke off.
#[test]
fn the_rest_of_an_answer_that_broke_off_is_no_turn_of_its_own() {
    let turn_with = |last: &str| {
        let last = json!({"role": "user", "content": [{"type": "text", "text": last}]});
        let messages = json!([
            {"role": "user", "content": "go"},
            {"role": "assistant", "content": "This will be cut "},
            last,
        ]);
        Chat.asked("/", &json!({"messages": messages})).what
    };
    let rest = "The connection dropped mid-response. Resume directly \u{2014} no apology";
    assert_eq!(turn_with(rest), RequestKind::Answer { turn: 0 });
    assert_eq!(turn_with("again"), RequestKind::Answer { turn: 1 });
}

#[test]
fn requests_of_the_cli_itself_are_no_turns() {
    let asked = |messages: Value| Chat.asked("/", &json!({"messages": messages})).what;
    let prompt = json!({"role": "user", "content": "Generate a title for this conversation:\n"});
    let user = json!({"role": "user", "content": "hi"});
    assert!(matches!(
        asked(json!([prompt, user])),
        RequestKind::Helper(_)
    ));
    // A conversation in which no tool is allowed, with its prompt.
    assert_eq!(asked(json!([prompt])), RequestKind::Answer { turn: 0 });
    let RequestKind::Helper(summary) = asked(json!([{"role": "user",
        "content": "Here is the conversation so far:\n\n<conversation>\n…"}]))
    else {
        panic!("a summary is a turn");
    };
    let history = [
        user.clone(),
        json!({"role": "assistant", "content": summary}),
        user,
    ];
    assert_eq!(asked(json!(history)), RequestKind::Answer { turn: 0 });
}
