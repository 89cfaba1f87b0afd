//! Usage, in the places and forms that services have for it.

use super::*;

#[test]
fn usage_of_chat_completions_is_where_the_service_has_it() {
    let usage = |more: Value| {
        let mut usage = json!({"prompt_tokens": 10, "completion_tokens": 5});
        for (name, figure) in more.as_object().unwrap() {
            usage[name] = figure.clone();
        }
        usage
    };
    let plain = || usage(json!({}));
    let end = |more: Value| {
        let mut end = chat_end("stop");
        for (name, value) in more.as_object().unwrap() {
            end[name] = value.clone();
        }
        end
    };
    let mut of_choice = chat_end("stop");
    of_choice["choices"][0]["usage"] = plain();
    let cached = |more: Value| end(json!({"usage": usage(more)}));
    for (end, input, cache_read) in [
        (end(json!({"usage": plain()})), 10, None),
        (of_choice, 10, None),
        (
            end(json!({"x_groq": {"id": "r", "usage": plain()}})),
            10,
            None,
        ),
        // What all services have is preferred.
        (
            end(json!({"usage": plain(), "x_groq": {"usage": {"prompt_tokens": 1}}})),
            10,
            None,
        ),
        (
            cached(json!({"prompt_cache_hit_tokens": 4, "prompt_cache_miss_tokens": 6})),
            6,
            Some(4),
        ),
        (cached(json!({"cached_tokens": 4})), 6, Some(4)),
        (
            cached(json!({"prompt_tokens_details": {"cached_tokens": 3}, "cached_tokens": 4})),
            7,
            Some(3),
        ),
        (
            cached(json!({"prompt_tokens_details": null, "cached_tokens": null})),
            10,
            None,
        ),
    ] {
        let stream = [chat(&json!({"content": "Hi"})), end];
        let usage = events(WireKind::Chat, &stream).1.unwrap().usage;
        assert_eq!(
            (usage.input_tokens, usage.cache_read_tokens),
            (Some(input), cache_read),
            "{stream:?}"
        );
        assert_eq!(usage.output_tokens, Some(5), "{stream:?}");
    }
}

#[test]
fn last_count_of_messages_holds_unless_it_is_missing_or_0() {
    let usage = |start: Value, delta: Value| {
        let stream = [
            json!({"type": "message_start", "message": {"usage": start}}),
            json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "Hi"}}),
            json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": delta}),
        ];
        let usage = events(WireKind::Anthropic, &stream).1.unwrap().usage;
        (usage.input_tokens, usage.output_tokens)
    };
    let start = || json!({"input_tokens": 5, "output_tokens": 1});
    for (delta, expected) in [
        (json!({"output_tokens": 9}), (Some(5), Some(9))),
        (
            json!({"input_tokens": 0, "output_tokens": 9}),
            (Some(5), Some(9)),
        ),
        (
            json!({"input_tokens": 7, "output_tokens": 9}),
            (Some(7), Some(9)),
        ),
        // The input was estimated at the beginning.
        (
            json!({"input_tokens": 4, "output_tokens": 9}),
            (Some(4), Some(9)),
        ),
        (json!({"input_tokens": null}), (Some(5), Some(1))),
    ] {
        assert_eq!(usage(start(), delta.clone()), expected, "{delta}");
    }
    let zeros = json!({"input_tokens": 0, "output_tokens": 0});
    assert_eq!(usage(zeros.clone(), zeros), (Some(0), Some(0)));
}
