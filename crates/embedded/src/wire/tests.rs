//! Round trip with the mock model's encoders, with the bytes split at any position.

use super::*;
use crate::conversation::{Block, Call, CallResult, Input, Origin};
use serde_json::json;
use teamster_core::ErrorKind;
use teamster_mock_model as mock;

const WIRES: [(WireKind, mock::Protocol); 4] = [
    (WireKind::Anthropic, mock::Protocol::Anthropic),
    (WireKind::Responses, mock::Protocol::Responses),
    (WireKind::Chat, mock::Protocol::Chat),
    (WireKind::Gemini, mock::Protocol::Gemini),
];

/// Returns the mock model's stream for a turn in TOML.
fn stream(protocol: mock::Protocol, turn: &str) -> Vec<u8> {
    let script: mock::Script = format!("[[turn]]\n{turn}").parse().unwrap();
    protocol.stream(&script.turns[0]).unwrap()
}

fn read(wire: WireKind, pieces: &[&[u8]]) -> (Vec<Delta>, Result<Completed, Failure>) {
    let mut reader = AnswerReader::new(wire.wire());
    let mut deltas = Vec::new();
    for piece in pieces {
        if let Err(failure) = reader.bytes(piece, &mut deltas) {
            return (deltas, Err(failure));
        }
    }
    let answer = reader.finish(&mut deltas);
    (deltas, answer)
}

fn text_of(deltas: &[Delta]) -> (String, String) {
    let (mut text, mut reasoning) = (String::new(), String::new());
    for delta in deltas {
        match delta {
            Delta::Text(piece) => text.push_str(piece),
            Delta::Reasoning(piece) => reasoning.push_str(piece),
        }
    }
    (text, reasoning)
}

/// Returns the blocks as text, without the details of one protocol.
fn blocks(completed: &Completed) -> Vec<String> {
    let block = |block: &Block| match block {
        Block::Text { text, .. } => format!("text {text}"),
        Block::Reasoning { text, .. } => format!("reasoning {text}"),
        Block::Call(call) => format!("call {} {}", call.name, call.input),
    };
    completed.answer.blocks.iter().map(block).collect()
}

const ALL: &str = r#"
parts = [
    { thinking = ["First ", "I look: 考える."] },
    { text = ["I ", "look. 🙂"] },
    { tool = { name = "bash", input = { command = "printf 'a\n\"b\"' # 日本語", timeout_ms = 5 } } },
    { tool = { name = "read", input = { path = "x" } } },
]
usage = { input = 11, output = 77, cache_read = 2048, cache_write = 512, reasoning = 7 }
"#;

#[test]
fn an_answer_is_the_same_from_every_protocol_however_it_is_cut() {
    for (kind, protocol) in WIRES {
        let bytes = stream(protocol, ALL);
        let (deltas, answer) = read(kind, &[&bytes]);
        let answer = answer.unwrap();
        assert_eq!(
            blocks(&answer),
            [
                "reasoning First I look: 考える.",
                "text I look. 🙂",
                r#"call bash {"command":"printf 'a\n\"b\"' # 日本語","timeout_ms":5}"#,
                r#"call read {"path":"x"}"#,
            ],
            "{kind:?}"
        );
        assert_eq!(answer.stop, StopReason::ToolUse, "{kind:?}");
        let usage = answer.usage;
        // Not every protocol reports each count.
        let (input, written) = match kind {
            WireKind::Anthropic | WireKind::Responses => (11, Some(512)),
            WireKind::Chat | WireKind::Gemini => (523, None),
        };
        let reasoning = Some(7).filter(|_| kind != WireKind::Anthropic);
        assert_eq!(usage.input_tokens, Some(input), "{kind:?}");
        assert_eq!(usage.output_tokens, Some(77), "{kind:?}");
        assert_eq!(usage.cache_read_tokens, Some(2048), "{kind:?}");
        assert_eq!(usage.cache_write_tokens, written, "{kind:?}");
        assert_eq!(usage.reasoning_tokens, reasoning, "{kind:?}");
        let expected = ("I look. 🙂".to_owned(), "First I look: 考える.".to_owned());
        assert_eq!(text_of(&deltas), expected, "{kind:?}");
        let ids: Vec<_> = answer.answer.calls().map(|call| call.id.clone()).collect();
        assert!(
            ids[0] != ids[1] && ids.iter().all(|id| !id.is_empty()),
            "{ids:?}"
        );
        for cut in 0..bytes.len() {
            let (a, b) = bytes.split_at(cut);
            let (pieces, again) = read(kind, &[a, b]);
            assert_eq!(again.as_ref().unwrap(), &answer, "{kind:?} {cut}");
            assert_eq!(pieces, deltas, "{kind:?} {cut}");
        }
    }
}

#[test]
fn signed_reasoning_goes_back_as_it_came_and_only_to_its_model() {
    for (kind, protocol) in WIRES {
        let (_, answer) = read(kind, &[&stream(protocol, ALL)]);
        let mut answer = answer.unwrap().answer;
        answer.origin = Some(Origin {
            wire: kind,
            model: "m".into(),
        });
        let image = Input::Image {
            media_type: "image/png".into(),
            data: "AAEC".into(),
        };
        let results = answer.calls().map(|call| CallResult {
            content: vec![Input::text("ok"), image.clone()],
            is_error: false,
            ..CallResult::none(call)
        });
        let results = results.collect();
        let messages = [
            Message::user("hi"),
            Message::Assistant(answer),
            Message::Tool { results },
        ];
        let body = |model: &str| {
            let request = ModelRequest {
                model,
                system: "be kind",
                messages: &messages,
                tools: &[],
                forced_tool: None,
                effort: None,
                max_tokens: 100,
            };
            kind.wire().encode(&request)
        };
        let (same, other) = (body("m"), body("another"));
        let native = match kind {
            WireKind::Anthropic => Some((
                "/messages/1/content/0",
                json!({"type": "thinking", "thinking": "First I look: 考える.", "signature": "c2lnbmF0dXJl"}),
            )),
            WireKind::Responses => Some((
                "/input/1",
                json!({"id": "rs_mock_0_0_0", "type": "reasoning",
                    "summary": [{"type": "summary_text", "text": "First I look: 考える."}],
                    "encrypted_content": "bW9jaw=="}),
            )),
            WireKind::Gemini => Some((
                "/contents/1/parts/1/thoughtSignature",
                json!("c2lnbmF0dXJl"),
            )),
            // Chat Completions has no signatures.
            WireKind::Chat => None,
        };
        if let Some((pointer, native)) = native {
            assert_eq!(same.pointer(pointer), Some(&native), "{kind:?}: {same:#}");
            assert!(!other.to_string().contains("c2lnbmF0dXJl"), "{kind:?}");
            assert!(!other.to_string().contains("bW9jaw=="), "{kind:?}");
        }
        assert!(same.to_string().contains("AAEC"), "{kind:?}");
        assert!(same.to_string().contains("be kind"), "{kind:?}");
    }
}

#[test]
fn an_error_in_the_stream_is_known_by_its_kind() {
    for (kind, protocol) in WIRES {
        for (word, expected) in [
            ("overloaded", ErrorKind::Overloaded),
            ("server", ErrorKind::Overloaded),
            ("rate_limit", ErrorKind::RateLimit),
            ("context_too_long", ErrorKind::ContextWindow),
        ] {
            let bytes = stream(
                protocol,
                &format!("parts = [{{ text = \"a\" }}, {{ error = \"{word}\" }}]"),
            );
            let (deltas, answer) = read(kind, &[&bytes]);
            assert_eq!(answer.unwrap_err().kind, expected, "{kind:?} {word}");
            assert_eq!(text_of(&deltas).0, "a", "{kind:?} {word}");
        }
    }
}

#[test]
fn arguments_that_are_no_json_are_kept_as_text() {
    assert_eq!(arguments("{\"a\": 1"), json!("{\"a\": 1"));
    assert_eq!(arguments(" "), json!({}));
    assert_eq!(as_object(&json!("x")), json!({"invalid": "x"}));
    let call = Block::Call(Call {
        id: "c".into(),
        name: "bash".into(),
        input: json!("{\"a"),
        signature: None,
    });
    let messages = [Message::Assistant(Answer::new(vec![call]))];
    for (kind, _) in WIRES {
        let request = ModelRequest {
            model: "m",
            system: "",
            messages: &messages,
            tools: &[],
            forced_tool: None,
            effort: Some(Effort::Low),
            max_tokens: 100,
        };
        assert!(
            kind.wire().encode(&request).to_string().contains("{\\"),
            "{kind:?}"
        );
    }
}

mod odd;
mod random {
    //! Random answers, split at random positions.

    use super::*;
    use proptest::prelude::*;

    fn part() -> impl Strategy<Value = mock::Part> {
        let texts = || prop::collection::vec("[^\\p{Cc}]{1,12}|\n|\r\n|\"|\u{2028}", 1..4);
        let value = prop_oneof![
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            "\\PC{0,16}".prop_map(Value::from),
            prop::collection::vec("[a-z]{0,5}", 0..3).prop_map(Value::from),
        ];
        let input = prop::collection::btree_map("[a-z]{1,6}", value, 0..4);
        prop_oneof![
            texts().prop_map(|texts| mock::Part::Text(mock::Pieces(texts))),
            texts().prop_map(|texts| mock::Part::Thinking(mock::Pieces(texts))),
            ("[a-z]{1,8}", input).prop_map(|(name, input)| mock::Part::Tool {
                name,
                input: input.into_iter().collect(),
            }),
        ]
    }

    /// Returns the answer that the parts stand for. Some protocols merge adjacent parts of one kind.
    fn expected(parts: &[mock::Part]) -> (String, String, Vec<String>) {
        let (mut text, mut reasoning, mut calls) = (String::new(), String::new(), Vec::new());
        for part in parts {
            match part {
                mock::Part::Text(pieces) => text.push_str(&pieces.concat()),
                mock::Part::Thinking(pieces) => reasoning.push_str(&pieces.concat()),
                mock::Part::Tool { name, input } => calls.push(format!("{name} {input}")),
                _ => {}
            }
        }
        (text, reasoning, calls)
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn written_answers_can_be_read(
            parts in prop::collection::vec(part(), 0..5),
            cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..6),
        ) {
            let turn = mock::Turn::new(parts.clone());
            for (kind, protocol) in WIRES {
                let bytes = protocol.stream(&turn).unwrap();
                let mut at: Vec<_> = cuts.iter().map(|cut| cut.index(bytes.len())).collect();
                at.sort_unstable();
                let mut pieces = Vec::new();
                let mut from = 0;
                for cut in at {
                    pieces.push(&bytes[from..cut]);
                    from = cut;
                }
                pieces.push(&bytes[from..]);
                let (deltas, answer) = read(kind, &pieces);
                let answer = answer.unwrap();
                let (text, reasoning, calls) = expected(&parts);
                let read = text_of(&deltas);
                prop_assert_eq!(&read.0, &text);
                // Protocols with separate parts of reasoning put a blank line between them.
                prop_assert_eq!(read.1.replace("\n\n", ""), reasoning.replace("\n\n", ""));
                prop_assert_eq!(answer.answer.text(), text);
                let got: Vec<_> = answer.answer.calls()
                    .map(|call| format!("{} {}", call.name, call.input))
                    .collect();
                prop_assert_eq!(got, calls);
            }
        }
    }
}
