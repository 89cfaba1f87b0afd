//! Answers of gateways that do not keep to the protocol.

use super::*;

mod usage;

/// Reads a stream of these events.
fn events(wire: WireKind, events: &[Value]) -> (Vec<Delta>, Result<Completed, Failure>) {
    let events: Vec<_> = events.iter().map(Value::to_string).collect();
    let stream = format!("data: {}\n\n", events.join("\n\ndata: "));
    read(wire, &[stream.as_bytes()])
}

/// Returns the blocks and the reason to stop.
fn answer(wire: WireKind, stream: &[Value]) -> (Vec<String>, StopReason) {
    let (_, answer) = events(wire, stream);
    let answer = answer.unwrap();
    (blocks(&answer), answer.stop)
}

/// Returns the chunk of Chat Completions with this delta.
fn chat(delta: &Value) -> Value {
    json!({"id": "c", "choices": [{"index": 0, "delta": delta}]})
}

fn chat_end(reason: &str) -> Value {
    json!({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
}

/// Returns the chunk with one piece of a call. Made by hand, as are all answers of this file.
fn call((index, id, name, arguments): (u64, &str, Option<&str>, &Value)) -> Value {
    let function = json!({"name": name, "arguments": arguments});
    let call = json!({"index": index, "id": id, "type": "function", "function": function});
    chat(&json!({"tool_calls": [call]}))
}

/// Returns an answer of these pieces of calls.
fn calls<const N: usize>(pieces: [(u64, &str, Option<&str>, &Value); N]) -> Vec<Value> {
    let pieces = pieces.into_iter().map(call);
    pieces.chain([chat_end("tool_calls")]).collect()
}

fn text(text: &str) -> Value {
    chat(&json!({"content": text}))
}

fn refused(wire: WireKind, answer: &[u8]) -> Failure {
    read(wire, &[answer]).1.unwrap_err()
}

#[test]
fn calls_of_chat_completions_are_kept_apart() {
    let one = &json!("{\"command\": \"echo one\"}");
    let two = &json!("{\"command\": \"echo two\"}");
    let begin = &json!("{\"command\": ");
    let (end_one, end_two) = (&json!("\"echo one\"}"), &json!("\"echo two\"}"));
    let (none, object) = (&json!(""), &json!({"command": "echo one"}));
    let both = [
        r#"call bash {"command":"echo one"}"#,
        r#"call bash {"command":"echo two"}"#,
    ];
    let bash = Some("bash");
    for stream in [
        // The same index, with ids.
        calls([(0, "a", bash, one), (0, "b", bash, two)]),
        // The same index and the same id, or none.
        calls([(0, "a", bash, one), (0, "a", bash, two)]),
        calls([(0, "", bash, one), (0, "", bash, two)]),
        // In pieces; the later ones belong to the last call.
        calls([
            (0, "a", bash, one),
            (0, "b", bash, begin),
            (0, "", None, end_two),
        ]),
        // A new id for each piece, without a name.
        calls([
            (0, "a", bash, begin),
            (0, "x", None, end_one),
            (1, "b", bash, two),
        ]),
        // The name again with each piece.
        calls([
            (0, "a", bash, begin),
            (0, "a", bash, end_one),
            (1, "b", bash, two),
        ]),
        // The name and id again at the end, without arguments.
        calls([
            (0, "a", bash, one),
            (0, "a", bash, none),
            (1, "b", bash, two),
            (1, "b", bash, none),
        ]),
        // Arguments that are an object, or are encoded twice.
        calls([
            (0, "a", bash, object),
            (0, "b", bash, &json!(two.to_string())),
        ]),
    ] {
        let (_, answer) = events(WireKind::Chat, &stream);
        let answer = answer.unwrap();
        assert_eq!(blocks(&answer), both, "{stream:?}");
        let ids: Vec<_> = answer.answer.calls().map(|call| &call.id).collect();
        assert!(
            ids[0] != ids[1] && ids.iter().all(|id| !id.is_empty()),
            "{ids:?}"
        );
    }
    let older = chat(&json!({"function_call": {"name": "bash", "arguments": one}}));
    assert_eq!(
        answer(WireKind::Chat, &[older, chat_end("function_call")]).0,
        both[..1]
    );
}

#[test]
fn text_of_chat_completions_may_be_parts() {
    let parts = json!({"content": [
        {"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]},
        {"type": "text", "text": "Hi"},
        {"type": "text", "text": " there"},
    ]});
    let stream = [chat(&parts), chat_end("stop")];
    let (deltas, completed) = events(WireKind::Chat, &stream);
    assert_eq!(text_of(&deltas), ("Hi there".to_owned(), "Hm.".to_owned()));
    assert_eq!(
        blocks(&completed.unwrap()),
        ["reasoning Hm.", "text Hi there"]
    );
    let twice = json!({"reasoning_content": "Hm.", "reasoning": "Hm.", "content": "Hi"});
    let (blocks, _) = answer(WireKind::Chat, &[chat(&twice), chat_end("stop")]);
    assert_eq!(blocks, ["reasoning Hm.", "text Hi"]);
}

#[test]
fn an_answer_that_is_not_streamed_is_read() {
    let chat = json!({"object": "chat.completion", "choices": [{"finish_reason": "tool_calls", "message": {
        "role": "assistant", "content": "Hi.", "reasoning_content": null,
        "tool_calls": [{"id": "a", "function": {"name": "bash", "arguments": {"command": "ls"}}}],
    }}]});
    let messages = json!({"type": "message", "model": "m", "stop_reason": "tool_use", "content": [
        {"type": "text", "text": "Hi."},
        {"type": "tool_use", "id": "a", "name": "bash", "input": {"command": "ls"}},
    ]});
    let responses = json!({"object": "response", "status": "completed", "output": [
        {"type": "message", "content": [{"type": "output_text", "text": "Hi."}]},
        {"type": "function_call", "call_id": "a", "name": "bash", "arguments": {"command": "ls"}},
    ]});
    let gemini = json!([
        {"candidates": [{"content": {"parts": [{"text": "Hi."}]}}]},
        {"candidates": [{"finishReason": "STOP", "content": {"parts": [
            {"functionCall": {"name": "bash", "args": "{\"command\": \"ls\"}"}}]}}]},
    ]);
    for (wire, body) in [
        (WireKind::Chat, chat),
        (WireKind::Anthropic, messages),
        (WireKind::Responses, responses),
        (WireKind::Gemini, gemini),
    ] {
        for body in [body.to_string(), format!("\u{feff}{body:#}\n")] {
            let (deltas, completed) = read(wire, &[body.as_bytes()]);
            let completed = completed.unwrap();
            assert_eq!(text_of(&deltas).0, "Hi.", "{wire:?}");
            let expected = ["text Hi.", r#"call bash {"command":"ls"}"#];
            assert_eq!(blocks(&completed), expected, "{wire:?}");
            assert_eq!(completed.stop, StopReason::ToolUse, "{wire:?}");
        }
    }
}

#[test]
fn events_without_empty_lines_between_them_are_read() {
    let lines = [text("One "), text("two."), chat_end("stop")];
    let lines = lines.map(|line| line.to_string()).join("\ndata: ");
    let stream = format!("data: {lines}\ndata: [DONE]\n");
    let (deltas, completed) = read(WireKind::Chat, &[stream.as_bytes()]);
    assert_eq!(text_of(&deltas).0, "One two.");
    assert_eq!(blocks(&completed.unwrap()), ["text One two."]);
}

#[test]
fn invalid_answer_is_named() {
    // The beginning of a gzip file, and a page that is not UTF-8.
    let zipped = &b"\x1f\x8b\x08\x00\xff\xfe"[..];
    let page = &b"<html>Bitte anmelden f\xfcr das Netz</html>"[..];
    for (answer, named) in [(zipped, "it is compressed"), (page, "Bitte anmelden")] {
        let failure = refused(WireKind::Chat, answer);
        assert!(
            failure.is_final && failure.message.contains(named),
            "{failure:?}"
        );
    }
    for (wire, _) in WIRES {
        let page = "<html>\n<body>Sign in to the network</body></html>";
        for (answer, named) in [
            (page, "Sign in to the network"),
            ("{\"status\": \"ok\"}", "{\"status\""),
        ] {
            let failure = refused(wire, answer.as_bytes());
            assert!(failure.message.contains(named), "{wire:?}: {failure:?}");
            assert_eq!(
                (failure.kind, failure.is_final),
                (ErrorKind::Protocol, true),
                "{wire:?}"
            );
        }
        for (error, kind) in [
            (
                r#"{"error": {"message": "Rate limit reached"}}"#,
                ErrorKind::RateLimit,
            ),
            (
                r#"{"error": "the model is overloaded"}"#,
                ErrorKind::Overloaded,
            ),
            (
                r#"[{"error": {"code": 503, "message": "Later."}}]"#,
                ErrorKind::Overloaded,
            ),
        ] {
            for body in [
                error.to_owned(),
                format!("data: {error}\n\n"),
                format!("event: error\ndata: {error}\n\n"),
            ] {
                let failure = refused(wire, body.as_bytes());
                assert_eq!(
                    (failure.kind, failure.is_final),
                    (kind, false),
                    "{wire:?} {body}"
                );
            }
        }
        let overloaded = refused(wire, b"event: error\ndata: The model is overloaded\n\n");
        assert_eq!(overloaded.message, "The model is overloaded", "{wire:?}");
    }
}

#[test]
fn a_filled_context_window_is_no_limit_of_tokens() {
    let messages = [
        json!({"type": "message_start", "message": {"model": "m"}}),
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Half"}}),
        json!({"type": "message_delta", "delta": {"stop_reason": "model_context_window_exceeded"}}),
        // The reason is not repeated, and the last event is left out.
        json!({"type": "message_delta", "delta": {"stop_reason": null}, "usage": {"output_tokens": 9}}),
    ];
    let half = vec!["text Half".to_owned()];
    assert_eq!(
        answer(WireKind::Anthropic, &messages),
        (half.clone(), StopReason::ContextWindow)
    );
    for reason in ["model_context_window_exceeded", "model_length"] {
        let stream = [text("Half"), chat_end(reason)];
        assert_eq!(
            answer(WireKind::Chat, &stream),
            (half.clone(), StopReason::ContextWindow),
            "{reason}"
        );
    }
    let incomplete = |reason: &str| {
        json!({"type": "response.incomplete", "response": {
            "status": "incomplete", "incomplete_details": {"reason": reason},
            "output": [{"type": "message", "content": [{"type": "output_text", "text": "Half"}]}],
        }})
    };
    let stream = [incomplete("max_context_length")];
    assert_eq!(
        answer(WireKind::Responses, &stream),
        (half, StopReason::ContextWindow)
    );
    let unknown = events(WireKind::Responses, &[incomplete("tired")])
        .1
        .unwrap_err();
    assert!(
        unknown.message.ends_with("incomplete (tired)"),
        "{}",
        unknown.message
    );
}

#[test]
fn blocks_with_equal_index_or_without_start_are_kept() {
    let start = |id: &str, input: Value| {
        json!({"type": "content_block_start", "index": 0, "content_block":
            {"type": "tool_use", "id": id, "name": "bash", "input": input}})
    };
    let delta = |kind: &str, field: &str, piece: Value| json!({"type": "content_block_delta", "index": 0, "delta": {"type": kind, field: piece}});
    let end = || json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}});
    let stream = [
        delta("text_delta", "text", json!("Hi.")),
        start("a", json!({})),
        delta("input_json_delta", "partial_json", json!("{\"a\": 1}")),
        start("b", json!({"a": 2})),
        start("c", json!({})),
        delta("input_json_delta", "partial_json", json!({"a": 3})),
        end(),
    ];
    let expected = [
        "text Hi.",
        r#"call bash {"a":1}"#,
        r#"call bash {"a":2}"#,
        r#"call bash {"a":3}"#,
    ];
    assert_eq!(answer(WireKind::Anthropic, &stream).0, expected);
    let nameless = [
        delta("input_json_delta", "partial_json", json!("{}")),
        end(),
    ];
    let failure = events(WireKind::Anthropic, &nameless).1.unwrap_err();
    assert_eq!(failure.kind, ErrorKind::Protocol);
}

#[test]
fn items_of_responses_are_found_wherever_they_are() {
    let text =
        json!({"type": "message", "id": "m", "content": [{"type": "output_text", "text": "Hi."}]});
    let call = json!({"type": "function_call", "id": "f", "call_id": "a", "name": "bash", "arguments": "{\"a\":1}"});
    let done = |item: &Value| json!({"type": "response.output_item.done", "item": item});
    let completed = |output: Value| json!({"type": "response.completed", "response": {"status": "completed", "output": output}});
    let delta = json!({"type": "response.output_text.delta", "delta": "Hi."});
    let begun = json!({"type": "response.output_item.added", "output_index": 1, "item":
        {"type": "function_call", "id": "f", "call_id": "a", "name": "bash", "arguments": ""}});
    let piece = |piece: &str| json!({"type": "response.function_call_arguments.delta", "item_id": "f", "delta": piece});
    let expected = (
        vec!["text Hi.".to_owned(), r#"call bash {"a":1}"#.to_owned()],
        StopReason::ToolUse,
    );
    for stream in [
        // Only at the end, with and without the text before.
        vec![completed(json!([text, call]))],
        vec![delta.clone(), completed(json!([text, call]))],
        // Some of them before, or each of them twice.
        vec![delta.clone(), done(&text), completed(json!([text, call]))],
        vec![
            done(&text),
            done(&call),
            done(&call),
            completed(json!([text, call])),
        ],
        // Not at the end.
        vec![
            delta.clone(),
            done(&text),
            done(&call),
            completed(json!([])),
        ],
        vec![
            done(&text),
            begun.clone(),
            piece("{\"a\""),
            piece(":1}"),
            completed(json!([])),
        ],
        // A call without ids.
        vec![
            done(&text),
            json!({"type": "response.output_item.added", "output_index": 1, "item":
                {"type": "function_call", "name": "bash", "arguments": ""}}),
            json!({"type": "response.output_item.done", "output_index": 1, "item":
                {"type": "function_call", "name": "bash", "arguments": "{\"a\":1}"}}),
            completed(json!([])),
        ],
    ] {
        let (deltas, answer) = events(WireKind::Responses, &stream);
        let answer = answer.unwrap();
        assert_eq!((blocks(&answer), answer.stop), expected, "{stream:?}");
        assert_eq!(text_of(&deltas).0, "Hi.", "{stream:?}");
    }
    let streamed = [delta, completed(json!([]))];
    assert_eq!(answer(WireKind::Responses, &streamed).0, ["text Hi."]);
}

#[test]
fn a_service_that_gives_up_is_no_end() {
    for reason in ["error", "insufficient_system_resource"] {
        let stream = [text("Half"), chat_end(reason)];
        let failure = events(WireKind::Chat, &stream).1.unwrap_err();
        assert_eq!(failure.kind, ErrorKind::Overloaded, "{reason}");
    }
    let done = format!("data: {}\n\ndata: [DONE]\n\n", text("All."));
    let (_, completed) = read(WireKind::Chat, &[done.as_bytes()]);
    assert_eq!(blocks(&completed.unwrap()), ["text All."]);
    let nothing = refused(WireKind::Chat, b"data: [DONE]\n\n");
    assert_eq!(nothing, Failure::broken_off());
    let nothing = refused(WireKind::Chat, b"\n");
    assert_eq!(
        (nothing.kind, nothing.message.as_str()),
        (ErrorKind::Network, "the service answered with nothing")
    );
}

#[test]
fn reasoning_of_chat_completions_has_several_names() {
    let details = || json!([{"type": "reasoning.text", "text": "Hm."}]);
    for delta in [
        json!({"reasoning_text": "Hm."}),
        json!({"reasoning_details": details()}),
        json!({"reasoning": "Hm.", "reasoning_details": details()}),
        json!({"reasoning_content": "Hm.", "reasoning_details": [{"type": "reasoning.encrypted", "data": "x"}]}),
    ] {
        let stream = [chat(&delta), text("Hi"), chat_end("stop")];
        let (blocks, _) = answer(WireKind::Chat, &stream);
        assert_eq!(blocks, ["reasoning Hm.", "text Hi"], "{delta}");
    }
}

#[test]
fn an_empty_object_before_the_arguments_of_a_call_is_none() {
    let bash = Some("bash");
    for stream in [
        calls([(0, "a", bash, &json!("{}{\"command\": \"ls\"}"))]),
        calls([
            (0, "a", bash, &json!("{}")),
            (0, "", None, &json!("{\"command\": ")),
            (0, "", None, &json!("\"ls\"}")),
        ]),
    ] {
        let (blocks, _) = answer(WireKind::Chat, &stream);
        assert_eq!(blocks, [r#"call bash {"command":"ls"}"#], "{stream:?}");
    }
    // Other texts stay what they are.
    for text in ["{}{\"command\": ", "{} []", "{\"a\": 1}{\"b\": 2}"] {
        assert_eq!(arguments(text), json!(text));
    }
    assert_eq!(arguments(" {} "), json!({}));
}

#[test]
fn half_of_a_character_is_no_broken_answer() {
    let stream = "data: {\"choices\": [{\"delta\": {\"content\": \"Hi \\ud83d\"}}]}\n\n\
        data: {\"choices\": [{\"delta\": {\"content\": \"\\ude00\"}, \"finish_reason\": \"stop\"}]}\n\n";
    let (_, completed) = read(WireKind::Chat, &[stream.as_bytes()]);
    assert_eq!(blocks(&completed.unwrap()), ["text Hi \u{fffd}\u{fffd}"]);
}

#[test]
fn a_call_that_the_service_runs_is_none_of_the_model() {
    let text =
        json!({"type": "message", "id": "m", "content": [{"type": "output_text", "text": "Hi."}]});
    let search = json!({"type": "web_search_call", "id": "w", "status": "completed"});
    let call = json!({"type": "function_call", "id": "f", "call_id": "a", "name": "bash", "arguments": "{}"});
    let stop = |output: Value| {
        let end = json!({"type": "response.completed", "response": {"status": "completed", "output": output}});
        answer(WireKind::Responses, &[end]).1
    };
    assert_eq!(stop(json!([search, text])), StopReason::End);
    assert_eq!(stop(json!([search, text, call])), StopReason::ToolUse);
}
