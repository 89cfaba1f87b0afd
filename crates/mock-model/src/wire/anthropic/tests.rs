//! Requests, and the exact bytes of answers.

use std::time::Duration;

use serde_json::json;

use super::super::tests::{reply, written};
use super::*;
use crate::cli::Call;

fn turn_of(body: &Value) -> RequestKind {
    Anthropic.asked("/v1/messages", body).what
}

/// Returns a reply with every part that has an end.
fn everything() -> Reply {
    let say = vec![
        Say::Thinking(vec!["Hm".into(), ".".into()]),
        Say::Pause(Duration::from_millis(7)),
        Say::Text(vec!["a".into(), "ü\n".into()]),
        Say::Raw(": note\n\n".into()),
        Say::Call(Call::new("Bash", json!({"command": "echo hello"}))),
        Say::Call(Call::new("Read", json!({}))),
    ];
    reply(say, Stop::ToolUse)
}

#[test]
fn everything_is_streamed_as_the_service_streams_it() {
    let text = written(&Anthropic.stream(&everything()));
    let expected = r#"event: message_start
data: {"type":"message_start","message":{"id":"msg_mock_0_0","type":"message","role":"assistant","model":"m","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":100,"cache_creation_input_tokens":4,"cache_read_input_tokens":30,"cache_creation":{"ephemeral_5m_input_tokens":4,"ephemeral_1h_input_tokens":0},"output_tokens":1,"service_tier":"standard"}}}

event: ping
data: {"type":"ping"}

event: content_block_start
data: {"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"Hm"}}

[Pace]
event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"."}}

[Pace]
event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"c2lnbmF0dXJl"}}

event: content_block_stop
data: {"type":"content_block_stop","index":0}

[Pause(7ms)]
event: content_block_start
data: {"type":"content_block_start","index":1,"content_block":{"type":"text","text":""}}

event: content_block_delta
data: {"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"a"}}

[Pace]
event: content_block_delta
data: {"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"ü\n"}}

[Pace]
event: content_block_stop
data: {"type":"content_block_stop","index":1}

: note

event: content_block_start
data: {"type":"content_block_start","index":2,"content_block":{"type":"tool_use","id":"toolu_mock_0_0_2","name":"Bash","input":{}}}

event: content_block_delta
data: {"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"{\"command\":\"echo"}}

event: content_block_delta
data: {"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":" hello\"}"}}

event: content_block_stop
data: {"type":"content_block_stop","index":2}

event: content_block_start
data: {"type":"content_block_start","index":3,"content_block":{"type":"tool_use","id":"toolu_mock_0_0_3","name":"Read","input":{}}}

event: content_block_delta
data: {"type":"content_block_delta","index":3,"delta":{"type":"input_json_delta","partial_json":"{}"}}

event: content_block_stop
data: {"type":"content_block_stop","index":3}

event: message_delta
data: {"type":"message_delta","delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":{"input_tokens":100,"cache_creation_input_tokens":4,"cache_read_input_tokens":30,"cache_creation":{"ephemeral_5m_input_tokens":4,"ephemeral_1h_input_tokens":0},"output_tokens":20,"service_tier":"standard"}}

event: message_stop
data: {"type":"message_stop"}

"#;
    assert_eq!(text, expected);
}

#[test]
fn without_a_stream_it_is_the_same_answer_with_the_same_ids() {
    assert_eq!(
        Anthropic.complete(&everything()),
        json!({
            "id": "msg_mock_0_0",
            "type": "message",
            "role": "assistant",
            "model": "m",
            "content": [
                {"type": "thinking", "thinking": "Hm.", "signature": "c2lnbmF0dXJl"},
                {"type": "text", "text": "aü\n"},
                {"type": "tool_use", "id": "toolu_mock_0_0_2", "name": "Bash", "input": {"command": "echo hello"}},
                {"type": "tool_use", "id": "toolu_mock_0_0_3", "name": "Read", "input": {}},
            ],
            "stop_reason": "tool_use",
            "stop_sequence": null,
            "usage": {
                "input_tokens": 100,
                "cache_creation_input_tokens": 4,
                "cache_read_input_tokens": 30,
                "cache_creation": {"ephemeral_5m_input_tokens": 4, "ephemeral_1h_input_tokens": 0},
                "output_tokens": 20,
                "service_tier": "standard",
            },
        })
    );
}

#[test]
fn an_error_in_the_stream_is_its_end() {
    let say = vec![
        Say::Text(vec!["half".into()]),
        Say::Error(ErrorKind::Overloaded),
    ];
    let text = written(&Anthropic.stream(&reply(say, Stop::End)));
    let end = "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n";
    assert!(text.ends_with(end), "{text}");
    assert!(!text.contains("message_stop"), "{text}");
}

#[test]
fn a_text_is_left_open_where_the_stream_breaks() {
    let text = || Say::Text(vec!["half".into()]);
    let thinking = || Say::Thinking(vec!["half".into()]);
    let call = || Say::Call(Call::new("Bash", json!({})));
    let pause = || Say::Pause(Duration::from_millis(1));
    let stops = |say: Vec<Say>| {
        let text = written(&Anthropic.stream(&reply(say, Stop::End)));
        assert!(!text.contains("message_delta"), "{text}");
        text.matches("event: content_block_stop").count() + text.matches("signature_delta").count()
    };
    for end in [Say::Cut, Say::Stall, Say::Error(ErrorKind::Server)] {
        assert_eq!(stops(vec![text(), end.clone()]), 0, "{end:?}");
        assert_eq!(stops(vec![thinking(), pause(), end.clone()]), 0, "{end:?}");
        assert_eq!(stops(vec![text(), text(), end.clone()]), 1, "{end:?}");
        let raw = || Say::Raw(String::new());
        assert_eq!(stops(vec![text(), raw(), end.clone()]), 0, "{end:?}");
        // The input of a tool is complete.
        assert_eq!(stops(vec![text(), call(), end.clone()]), 2, "{end:?}");
        // A text is complete if another begins after it.
        assert_eq!(
            stops(vec![text(), raw(), text(), end.clone()]),
            1,
            "{end:?}"
        );
    }
}

#[test]
fn a_cut_and_a_stall_are_the_last_step() {
    for (say, frame) in [(Say::Cut, Frame::Cut), (Say::Stall, Frame::Stall)] {
        let frames = Anthropic.stream(&reply(vec![say], Stop::End));
        assert_eq!(frames.last(), Some(&frame));
    }
}

#[test]
fn a_turn_is_counted_by_the_model_s_messages() {
    let user = |text: &str| json!({"role": "user", "content": [{"type": "text", "text": text}]});
    let model = json!({"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "Bash", "input": {}}]});
    let result = json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "x"}]});
    let system = json!({"role": "system", "content": "Available agent types"});
    let nothing = json!({"role": "assistant", "content": [{"type": "text", "text": "No response requested."}]});
    for (messages, turn) in [
        // A resumed session that had ended in an error.
        (json!([user("go"), nothing, user("again")]), 0),
        (
            json!([user("go"), model, result, nothing, user("again")]),
            1,
        ),
        (json!([user("<system-reminder>"), user("go")]), 0),
        (json!([user("go"), system]), 0),
        (json!([user("go"), model, result]), 1),
        (json!([user("go"), model, result, system, user("more")]), 1),
        (json!([user("go"), model, model, result]), 1),
        (
            json!([user("go"), system, model, result, model, user("on")]),
            2,
        ),
    ] {
        let asked = turn_of(&json!({"model": "m", "messages": messages}));
        assert_eq!(asked, RequestKind::Answer { turn }, "{messages}");
    }
}

#[test]
fn requests_of_the_cli_itself_get_the_required_form() {
    let title = json!({
        "model": "m", "stream": true, "tools": [],
        "messages": [{"role": "user", "content": [{"type": "text", "text": "<session>\ngo\n</session>"}]}],
        "output_config": {"effort": "high", "format": {"type": "json_schema", "schema": {
            "type": "object", "properties": {"title": {"type": "string"}},
            "required": ["title"], "additionalProperties": false,
        }}},
    });
    assert_eq!(
        turn_of(&title),
        RequestKind::Helper("{\"title\":\"Mock model\"}".into())
    );
    // A conversation without tools is still one.
    let mut conversation = title;
    conversation["output_config"] = json!({"effort": "high"});
    assert_eq!(turn_of(&conversation), RequestKind::Answer { turn: 0 });
}

#[test]
fn a_summary_of_a_long_conversation_is_no_turn_of_it() {
    let ask = "CRITICAL: Respond with TEXT ONLY. Do NOT call any tools.\n\n- Do NOT use Read";
    let blocks = json!([{"type": "text", "text": "go"}, {"type": "text", "text": ask}]);
    for content in [json!(ask), blocks] {
        let system = json!({"role": "system", "content": "Available agent types"});
        let body =
            json!({"model": "m", "messages": [{"role": "user", "content": content}, system]});
        let RequestKind::Helper(text) = turn_of(&body) else {
            panic!("{body}");
        };
        assert!(text.starts_with("<summary>"), "{text}");
    }
    // A prompt that quotes it later on is a prompt.
    let body =
        json!({"model": "m", "messages": [{"role": "user", "content": format!("What is {ask}")}]});
    assert_eq!(turn_of(&body), RequestKind::Answer { turn: 0 });
}

#[test]
fn a_search_by_the_service_has_blocks_for_query_and_results() {
    let ask = json!({
        "model": "m",
        "messages": [{"role": "user", "content": "Perform a web search for the query: cats"}],
        "tools": [{"type": "web_search_20250305", "name": "web_search"}],
    });
    assert_eq!(turn_of(&ask), RequestKind::Search("cats".into()));
    let mut prompt = ask;
    prompt["tools"] = json!([{"name": "WebSearch"}]);
    assert_eq!(turn_of(&prompt), RequestKind::Answer { turn: 0 });
    let say = vec![Say::Search("cats".into()), Say::Text(vec!["found".into()])];
    let reply = reply(say, Stop::End);
    let message = Anthropic.complete(&reply);
    let kinds: Vec<_> = items(&message, "content")
        .iter()
        .map(|block| text_of(block, "type"))
        .collect();
    let wanted = ["server_tool_use", "web_search_tool_result", "text"];
    assert_eq!(kinds, wanted);
    let text = written(&Anthropic.stream(&reply));
    for part in [
        r#""index":0,"content_block":{"type":"server_tool_use""#,
        r#""index":1,"content_block":{"type":"web_search_tool_result""#,
        r#"{"type":"content_block_stop","index":2}"#,
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn tokens_are_counted_roughly_and_beside_the_conversation() {
    let body = json!({"model": "m", "messages": [{"role": "user", "content": "x".repeat(4000)}]});
    let asked = Anthropic.asked("/v1/messages/count_tokens", &body);
    let RequestKind::Body(answer) = asked.what else {
        panic!("{asked:?}");
    };
    let tokens = answer["input_tokens"].as_u64().unwrap();
    assert!((1000..1100).contains(&tokens), "{tokens}");
}

#[test]
fn each_kind_of_error_has_its_status_and_type() {
    for (kind, status, name) in [
        (ErrorKind::Authentication, 401, "authentication_error"),
        (ErrorKind::Permission, 403, "permission_error"),
        (ErrorKind::RateLimit, 429, "rate_limit_error"),
        (ErrorKind::Quota, 400, "invalid_request_error"),
        (ErrorKind::Server, 500, "api_error"),
        (ErrorKind::Overloaded, 529, "overloaded_error"),
        (ErrorKind::UnknownModel, 404, "not_found_error"),
        (ErrorKind::ContextTooLong, 400, "invalid_request_error"),
        (ErrorKind::InvalidRequest, 400, "invalid_request_error"),
    ] {
        let failure = Anthropic.error(kind, None);
        assert_eq!(failure.status, status, "{kind:?}");
        assert_eq!(failure.body["error"]["type"], name, "{kind:?}");
        let failure = Anthropic.error(kind, Some("mine"));
        let expected = json!({"type": "error", "error": {"type": name, "message": "mine"}});
        assert_eq!(failure.body, expected);
    }
}
