//! Figures in an agent's output.

use std::collections::BTreeMap;

use serde_json::Value;

pub(super) fn cost(message: &Value) -> Option<Value> {
    let amount = &message["params"]["update"]["cost"]["amount"];
    amount.is_number().then(|| amount.clone())
}

/// Returns the number of pieces of the answer, without those of earlier answers that the agent replays as it opens the
/// session.
pub(super) fn pieces(messages: &[Value]) -> usize {
    let opens = |it: &Value| it["result"].is_object() && it["result"]["stopReason"].is_null();
    let opened = messages.iter().rposition(opens).map_or(0, |at| at + 1);
    let is_piece = |it: &&Value| it["params"]["update"]["sessionUpdate"] == "agent_message_chunk";
    messages[opened..].iter().filter(is_piece).count()
}

/// Returns the location of the printed token counts whose sum is the wanted number, with or without cached
/// tokens.
pub(super) fn sum_of(messages: &[Value], wanted: u64) -> Option<String> {
    let mut sums = BTreeMap::new();
    for message in messages {
        add_tokens(message, "", &mut sums);
    }
    let mut less_cached = sums.iter().flat_map(|(path, sum)| {
        let cached = sums
            .iter()
            .filter(|(path, _)| path.to_lowercase().contains("cache"));
        let without = cached.map(move |(_, cached)| (path, sum.saturating_sub(*cached)));
        std::iter::once((path, *sum)).chain(without)
    });
    less_cached.find_map(|(path, sum)| (sum == wanted).then(|| path.clone()))
}

/// Adds the token counts in a value to the sums of their paths.
fn add_tokens(value: &Value, path: &str, sums: &mut BTreeMap<String, u64>) {
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                add_tokens(value, &format!("{path}.{key}"), sums);
            }
        }
        Value::Array(items) => {
            for item in items {
                add_tokens(item, path, sums);
            }
        }
        Value::Number(number) => {
            // `inputTokens`, or `tokens.input`.
            let is_count = path.to_lowercase().contains("token");
            if let Some(count) = number.as_u64().filter(|_| is_count) {
                *sums
                    .entry(path.trim_start_matches('.').to_owned())
                    .or_default() += count;
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Made up: a session with an answer is loaded, and answers once more.
    #[test]
    fn pieces_of_replayed_answers_are_not_counted() {
        let piece = json!({"params": {"update": {"sessionUpdate": "agent_message_chunk"}}});
        let messages = [
            piece.clone(),
            json!({"id": 1, "result": {"modes": {}}}),
            piece.clone(),
            json!({"id": 2, "result": {"stopReason": "end_turn"}}),
        ];
        assert_eq!(pieces(&messages), 1);
        assert_eq!(pieces(&[piece]), 1);
    }

    /// Made up: two requests and another number.
    #[test]
    fn tokens_of_several_requests_are_added_up() {
        let used = |input: u64, cached: u64| json!({"params": {"_meta": {"usage": {"inputTokens": input, "cachedReadTokens": cached}}}});
        let messages = [used(100, 30), used(200, 50), json!({"size": 7})];
        let path = Some("params._meta.usage.inputTokens".to_owned());
        assert_eq!(sum_of(&messages, 300), path);
        assert_eq!(sum_of(&messages, 220), path, "without the cache");
        assert_eq!(sum_of(&messages, 7), None, "it is no number of tokens");
        assert_eq!(sum_of(&messages, 100), None);
    }
}
