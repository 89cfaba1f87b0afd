//! Tokens of a turn, for agents that report those of the session.

use serde_json::Value;
use teamster_core::Usage;

/// Tokens of a session so far, as an agent reports them in its answer to a prompt or beside its updates: of all its
/// turns, or of those in this process. The input includes tokens read from and written to a cache. A figure that is not
/// reported is absent.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct SessionTokens(Usage);

impl SessionTokens {
    /// Returns the tokens in the response to a prompt. `None` if there are none.
    pub fn of(result: &Value) -> Option<Self> {
        let usage = result.get("usage").filter(|usage| usage.is_object())?;
        let number = |name: &str| usage[name].as_u64();
        let tokens = Usage::default()
            .input_tokens(number("inputTokens"))
            .output_tokens(number("outputTokens"))
            .cache_read_tokens(number("cachedReadTokens"))
            .cache_write_tokens(number("cachedWriteTokens"))
            // A service without this count is also reported as 0.
            .reasoning_tokens(number("thoughtTokens").filter(|tokens| *tokens > 0));
        (!tokens.is_empty()).then_some(Self(tokens))
    }

    /// Returns the tokens in extension data (`_meta`) beside an update, as `OpenHands` (1.16.0) prints them: those of all
    /// turns, with its sub-agents and summaries. `None` if there are none.
    pub(crate) fn beside(meta: &Value) -> Option<Self> {
        let metrics = metrics(meta)?;
        let number = |name: &str| metrics[name].as_u64();
        let tokens = Usage::default()
            .input_tokens(number("input_tokens"))
            .output_tokens(number("output_tokens"))
            .cache_read_tokens(number("cache_read_tokens"))
            .reasoning_tokens(number("reasoning_tokens").filter(|tokens| *tokens > 0));
        (!tokens.is_empty()).then_some(Self(tokens))
    }

    /// Returns what was used since then; `None` if that is nothing. If a figure is lower than then, the agent has begun to
    /// count again since then.
    pub fn since(self, before: Self) -> Option<Usage> {
        let used = self.0.checked_since(before.0).unwrap_or(self.0);
        let usage = used.without_cache_in_input();
        Some(usage).filter(|usage| usage.total_tokens().is_some_and(|tokens| tokens > 0))
    }
}

/// Returns the cost of the session so far in USD, in the same extension data as the tokens [beside](SessionTokens::beside)
/// an update.
pub(crate) fn cost_beside(meta: &Value) -> Option<f64> {
    metrics(meta)?["cost"].as_f64()
}

/// Returns the figures of `OpenHands`. It passes `_meta` to its library under the name of the parameter, so they are one
/// level deeper than they are meant to be.
fn metrics(meta: &Value) -> Option<&Value> {
    meta.get("field_meta")?.get("openhands.dev/metrics")
}

#[cfg(test)]
mod tests {
    //! Made-up figures.

    use serde_json::json;

    use super::*;

    fn tokens(usage: &Value) -> SessionTokens {
        SessionTokens::of(&json!({"stopReason": "end_turn", "usage": usage})).unwrap()
    }

    #[test]
    fn tokens_of_a_turn_are_the_increase_without_those_of_a_cache() {
        let first = tokens(&json!({"inputTokens": 100, "outputTokens": 10, "thoughtTokens": 4}));
        let usage = Usage::default().input_tokens(100).output_tokens(10);
        assert_eq!(
            first.since(SessionTokens::default()),
            Some(usage.reasoning_tokens(4))
        );
        let second = tokens(
            &json!({"inputTokens": 260, "outputTokens": 15, "thoughtTokens": 4,
                    "cachedReadTokens": 90, "cachedWriteTokens": 20}),
        );
        let usage = Usage::default().input_tokens(50).output_tokens(5);
        let usage = usage.cache_read_tokens(90).cache_write_tokens(20);
        assert_eq!(second.since(first), Some(usage.reasoning_tokens(0)));
    }

    #[test]
    fn figures_beside_an_update_are_those_of_the_session() {
        // Of OpenHands 1.16.0, after the second answer of a session.
        let meta = json!({"field_meta": {"openhands.dev/metrics": {
            "input_tokens": 300, "output_tokens": 30, "cache_read_tokens": 60, "reasoning_tokens": 8, "cost": 0.0006,
            "status_line": "\u{2191} input 300 \u{2022} cache hit 20.00% \u{2022} reasoning 8 \u{2022} \u{2193} output 30 \u{2022} $ 0.0006"}}});
        let usage = Usage::default().input_tokens(240).output_tokens(30);
        let usage = usage.cache_read_tokens(60).reasoning_tokens(8);
        let zero = SessionTokens::default();
        let tokens = SessionTokens::beside(&meta);
        assert_eq!(tokens.and_then(|now| now.since(zero)), Some(usage));
        assert_eq!(cost_beside(&meta), Some(0.0006));
        // So are those of a session that is loaded.
        for meta in [json!({"field_meta": null}), json!({}), json!(null)] {
            assert_eq!(SessionTokens::beside(&meta), None);
            assert_eq!(cost_beside(&meta), None);
        }
    }

    #[test]
    fn tokens_that_are_not_reported_are_no_figure() {
        let zero = tokens(&json!({"inputTokens": 0, "outputTokens": 0, "thoughtTokens": 0}));
        assert_eq!(zero.since(SessionTokens::default()), None);
        let some = tokens(&json!({"outputTokens": 3}));
        let usage = Usage::default().output_tokens(3);
        assert_eq!(some.since(zero), Some(usage));
        for usage in [json!(null), json!({}), json!({"totalTokens": 3})] {
            assert_eq!(SessionTokens::of(&json!({"usage": usage})), None);
        }
    }

    #[test]
    fn a_lower_count_has_begun_again() {
        let before = tokens(&json!({"inputTokens": 900, "outputTokens": 10}));
        let now = tokens(&json!({"inputTokens": 120, "outputTokens": 15}));
        let usage = Usage::default().input_tokens(120).output_tokens(15);
        assert_eq!(now.since(before), Some(usage));
    }
}
