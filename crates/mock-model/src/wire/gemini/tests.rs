use bytes::Bytes;

use super::super::tests::{reply, written};
use super::*;
use crate::cli::Call;

const PATH: &str = "/v1beta/models/gemini-2.5-flash:streamGenerateContent";
const UNSTREAMED: &str = "/v1beta/models/gemini-2.5-flash-lite:generateContent";

fn everything() -> Vec<Say> {
    vec![
        Say::Thinking(vec!["hm".into(), "m".into()]),
        Say::Text(vec!["a".into(), "é".into()]),
        Say::Call(Call::new("run_shell_command", json!({"command": "ls"}))),
        Say::Call(Call::new("read_file", json!({"file_path": "x"}))),
    ]
}

fn event(data: &Value) -> Frame {
    Frame::Bytes(Bytes::from(format!("data: {data}\n\n")))
}

#[test]
fn an_answer_with_everything_is_these_events() {
    let chunk = |part: Value| {
        event(&json!({
            "candidates": [{"content": {"parts": [part], "role": "model"}, "index": 0}],
            "usageMetadata": {"promptTokenCount": 134, "totalTokenCount": 134},
            "modelVersion": "m",
            "responseId": "mock_0_0",
        }))
    };
    let expected = [
        chunk(json!({"text": "hm", "thought": true})),
        Frame::Pace,
        chunk(json!({"text": "m", "thought": true})),
        Frame::Pace,
        chunk(json!({"text": "a"})),
        Frame::Pace,
        chunk(json!({"text": "é"})),
        Frame::Pace,
        chunk(json!({
            "functionCall": {
                "id": "call_mock_0_0_0",
                "name": "run_shell_command",
                "args": {"command": "ls"},
            },
            "thoughtSignature": SIGNATURE,
        })),
        chunk(json!({"functionCall": {
            "id": "call_mock_0_0_1",
            "name": "read_file",
            "args": {"file_path": "x"},
        }})),
        event(&json!({
            "candidates": [{
                "content": {"parts": [{"text": ""}], "role": "model"},
                "index": 0,
                "finishReason": "STOP",
            }],
            "usageMetadata": {
                "promptTokenCount": 134,
                "candidatesTokenCount": 15,
                "totalTokenCount": 154,
                "cachedContentTokenCount": 30,
                "thoughtsTokenCount": 5,
            },
            "modelVersion": "m",
            "responseId": "mock_0_0",
        })),
    ];
    let frames = Gemini.stream(&reply(everything(), Stop::ToolUse));
    assert_eq!(frames, expected);
}

#[test]
fn an_answer_in_one_body_has_all_its_parts() {
    let complete = Gemini.complete(&reply(everything(), Stop::ToolUse));
    let candidate = &complete["candidates"][0];
    assert_eq!(candidate["finishReason"], "STOP");
    let parts = items(&candidate["content"], "parts");
    assert_eq!(parts.len(), 4);
    assert_eq!(parts[0], json!({"text": "hmm", "thought": true}));
    assert_eq!(parts[1], json!({"text": "aé"}));
    assert_eq!(parts[3]["functionCall"]["id"], "call_mock_0_0_1");
    assert_eq!(complete["usageMetadata"]["thoughtsTokenCount"], 5);
}

#[test]
fn counts_of_zero_are_left_out() {
    let tokens = Tokens::default();
    assert_eq!(
        usage(&tokens),
        json!({"promptTokenCount": 100, "candidatesTokenCount": 20, "totalTokenCount": 120})
    );
}

#[test]
fn a_cut_or_refused_answer_has_its_reason_at_the_end() {
    let say = || vec![Say::Text(vec!["x".into()])];
    for (say, stop, reason) in [
        (say(), Stop::MaxTokens, r#""finishReason":"MAX_TOKENS""#),
        (say(), Stop::Refusal, r#""finishReason":"SAFETY""#),
        (
            Vec::new(),
            Stop::Refusal,
            r#""promptFeedback":{"blockReason":"SAFETY"}"#,
        ),
    ] {
        let reply = reply(say, stop);
        let text = written(&Gemini.stream(&reply));
        let last = text.trim_end().rsplit("\n\n").next().unwrap();
        assert!(last.contains(reason), "{last}");
        assert!(Gemini.complete(&reply).to_string().contains(reason));
    }
    let blocked = Gemini.complete(&reply(Vec::new(), Stop::Refusal));
    assert_eq!(blocked.get("candidates"), None);
}

#[test]
fn an_error_in_the_stream_is_json_by_itself_and_its_end() {
    let say = vec![
        Say::Text(vec!["x".into()]),
        Say::Error(ErrorKind::Overloaded),
    ];
    let frames = Gemini.stream(&reply(say, Stop::End));
    let [.., Frame::Pause(_), Frame::Bytes(last)] = frames.as_slice() else {
        panic!("{frames:?}");
    };
    let error: Value = serde_json::from_slice(last).unwrap();
    assert_eq!(error["error"]["code"], 503);
    assert_eq!(error["error"]["status"], "UNAVAILABLE");
}

#[test]
fn stream_ends_after_a_cut_and_raw_bytes_are_unchanged() {
    let say = vec![Say::Raw("data: {oops\n\n".into()), Say::Cut];
    assert_eq!(
        Gemini.stream(&reply(say, Stop::End)),
        [Frame::Bytes("data: {oops\n\n".into()), Frame::Cut]
    );
}

#[test]
fn a_request_reports_its_model_its_form_and_its_functions() {
    let body = json!({
        "contents": [{"role": "user", "parts": [{"text": "hi"}]}],
        "tools": [
            {"googleSearch": {}},
            {"functionDeclarations": [{"name": "read_file"}, {"name": "glob"}]},
        ],
        "generationConfig": {"temperature": 1},
    });
    for (path, stream) in [
        (PATH, true),
        ("/v1beta/models/gemini-2.5-flash:generateContent", false),
        (
            "/v1beta1/publishers/google/models/gemini-2.5-flash:streamGenerateContent",
            true,
        ),
    ] {
        let asked = Gemini.asked(path, &body);
        assert_eq!(asked.model, "gemini-2.5-flash");
        assert_eq!(asked.stream, stream);
        assert_eq!(asked.tools, ["read_file", "glob"]);
        assert_eq!(asked.what, RequestKind::Answer { turn: 0 });
    }
    let counted = Gemini.asked("/v1beta/models/m:countTokens", &json!({"contents": []}));
    assert_eq!(counted.what, RequestKind::Body(json!({"totalTokens": 3})));
}

fn turn_of(contents: &[(&str, Value)]) -> usize {
    let contents: Vec<_> = contents
        .iter()
        .map(|(role, part)| json!({"role": role, "parts": [part]}))
        .collect();
    let asked = Gemini.asked(PATH, &json!({"contents": contents}));
    match asked.what {
        RequestKind::Answer { turn } => turn,
        other => panic!("{other:?}"),
    }
}

#[test]
fn results_of_tools_and_prompts_after_an_answer_begin_a_turn() {
    let text = |text: &str| json!({"text": text});
    let call = || json!({"functionCall": {"name": "x", "args": {}}});
    let result = || json!({"functionResponse": {"name": "x", "response": {}}});
    assert_eq!(turn_of(&[("user", text("hi"))]), 0);
    assert_eq!(
        turn_of(&[
            ("user", text("hi")),
            ("model", text("I look")),
            ("model", call()),
            ("user", result()),
        ]),
        1
    );
    assert_eq!(
        turn_of(&[
            ("user", text("hi")),
            ("model", call()),
            ("user", result()),
            ("model", text("done")),
            ("user", text("again")),
        ]),
        2
    );
}

#[test]
fn text_of_the_cli_in_the_model_s_place_is_no_answer() {
    for words in [
        "[The previous response was interrupted before it completed.]",
        "[Tool execution completed.]",
    ] {
        let contents = [
            ("user", json!({"text": "hi"})),
            ("model", json!({"functionCall": {"name": "x", "args": {}}})),
            ("user", json!({"functionResponse": {"name": "x"}})),
            ("model", json!({"text": words})),
            ("user", json!({"text": "go on"})),
        ];
        assert_eq!(turn_of(&contents), 1, "{words}");
    }
}

fn helped(body: &Value) -> Option<Value> {
    match Gemini.asked(UNSTREAMED, body).what {
        RequestKind::Helper(text) => Some(serde_json::from_str(&text).unwrap_or(text.into())),
        RequestKind::Answer { .. } => None,
        other => panic!("{other:?}"),
    }
}

#[test]
fn questions_with_a_schema_get_the_least_that_it_allows() {
    let asked = |field: &str, schema: Value| {
        json!({
            "contents": [{"role": "user", "parts": [{"text": "hi"}]}],
            "systemInstruction": {"parts": [{"text": "Route the task."}]},
            "generationConfig": {"responseMimeType": "application/json", field: schema},
        })
    };
    for (schema, text) in [
        (
            json!({
                "type": "OBJECT",
                "properties": {
                    "complexity_reasoning": {"type": "STRING"},
                    "complexity_score": {"type": "INTEGER"},
                },
                "required": ["complexity_reasoning", "complexity_score"],
            }),
            json!({"complexity_reasoning": "", "complexity_score": 1}),
        ),
        (
            json!({
                "type": "object",
                "properties": {
                    "unproductive_state_analysis": {"type": "string"},
                    "unproductive_state_confidence": {"type": "number"},
                    "more": {"type": "string"},
                },
                "required": ["unproductive_state_analysis", "unproductive_state_confidence"],
            }),
            json!({"unproductive_state_analysis": "", "unproductive_state_confidence": 0}),
        ),
        (
            json!({
                "type": "object",
                "properties": {
                    "next_speaker": {"type": "string", "enum": ["user", "model"]},
                    "list": {"type": "array", "items": {"type": "string"}},
                    "same": {"type": ["boolean", "null"]},
                    "either": {"anyOf": [{"type": "integer", "minimum": 4}, {"type": "null"}]},
                    "kind": {"const": "k"},
                },
            }),
            json!({"next_speaker": "user", "list": [], "same": false, "either": 4, "kind": "k"}),
        ),
    ] {
        for field in ["responseJsonSchema", "responseSchema"] {
            assert_eq!(helped(&asked(field, schema.clone())), Some(text.clone()));
        }
    }
}

#[test]
fn questions_of_the_cli_get_a_text_and_bare_contents_the_script() {
    let contents = json!([{"role": "user", "parts": [{"text": "Summarize."}]}]);
    for (field, value) in [
        ("generationConfig", json!({"maxOutputTokens": 2000})),
        ("systemInstruction", json!({"parts": [{"text": "x"}]})),
        ("tools", json!([{"googleSearch": {}}])),
    ] {
        let helped = helped(&json!({"contents": contents, field: value}));
        assert!(
            helped.is_some_and(|text| text.as_str().is_some_and(|text| !text.is_empty())),
            "{field}"
        );
    }
    assert_eq!(helped(&json!({"contents": contents})), None);
    let functions = json!([{"functionDeclarations": [{"name": "glob"}]}]);
    assert_eq!(
        helped(&json!({"contents": contents, "tools": functions})),
        None
    );
}

#[test]
fn every_error_has_the_service_s_code_status_and_details() {
    for (kind, code, status) in [
        (ErrorKind::Authentication, 400, "INVALID_ARGUMENT"),
        (ErrorKind::Permission, 403, "PERMISSION_DENIED"),
        (ErrorKind::RateLimit, 429, "RESOURCE_EXHAUSTED"),
        (ErrorKind::Quota, 429, "RESOURCE_EXHAUSTED"),
        (ErrorKind::Server, 500, "INTERNAL"),
        (ErrorKind::Overloaded, 503, "UNAVAILABLE"),
        (ErrorKind::UnknownModel, 404, "NOT_FOUND"),
        (ErrorKind::ContextTooLong, 400, "INVALID_ARGUMENT"),
        (ErrorKind::InvalidRequest, 400, "INVALID_ARGUMENT"),
    ] {
        let failure = Gemini.error(kind, None);
        assert_eq!(failure.status, code, "{kind:?}");
        assert_eq!(failure.body["error"]["code"], code);
        assert_eq!(failure.body["error"]["status"], status);
        assert_ne!(text_of(&failure.body["error"], "message"), "");
        let other = Gemini.error(kind, Some("other words"));
        assert_eq!(other.body["error"]["message"], "other words");
    }
    let details = |kind| Gemini.error(kind, None).body["error"]["details"].clone();
    let key = details(ErrorKind::Authentication);
    assert_eq!(key[0]["reason"], "API_KEY_INVALID");
    for (kind, limit, delay) in [
        (ErrorKind::RateLimit, "PerMinute", "1s"),
        (ErrorKind::Quota, "PerDay", "40s"),
    ] {
        let details = details(kind);
        assert!(text_of(&details[0]["violations"][0], "quotaId").contains(limit));
        assert_eq!(details[2]["retryDelay"], delay);
    }
}
