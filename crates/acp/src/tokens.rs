//! Tokens of a turn, for agents that report those of the session.

use serde_json::Value;
use teamster_core::Usage;

/// Tokens of a session so far, as an agent reports them in its answer to a prompt: of all its turns, or of those in this
/// process. A figure that is not reported is absent.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct SessionTokens {
    /// Includes tokens read from and written to a cache.
    input: Option<u64>,
    output: Option<u64>,
    cache_read: Option<u64>,
    cache_write: Option<u64>,
    reasoning: Option<u64>,
}

impl SessionTokens {
    /// Returns the tokens in the response to a prompt. `None` if there are none.
    pub fn of(result: &Value) -> Option<Self> {
        let usage = result.get("usage").filter(|usage| usage.is_object())?;
        let number = |name: &str| usage[name].as_u64();
        let tokens = Self {
            input: number("inputTokens"),
            output: number("outputTokens"),
            cache_read: number("cachedReadTokens"),
            cache_write: number("cachedWriteTokens"),
            // A service without this count is also reported as 0.
            reasoning: number("thoughtTokens").filter(|tokens| *tokens > 0),
        };
        Some(tokens).filter(|tokens| *tokens != Self::default())
    }

    /// Returns what was used since then; `None` if that is nothing. If a figure is lower than then, the agent has begun to
    /// count again since then.
    pub fn since(self, before: Self) -> Option<Usage> {
        let before = if self.is_lower(before) {
            Self::default()
        } else {
            before
        };
        let grown = |now: Option<u64>, then: Option<u64>| {
            now.map(|now| now.saturating_sub(then.unwrap_or_default()))
        };
        let cache_read = grown(self.cache_read, before.cache_read);
        let cache_write = grown(self.cache_write, before.cache_write);
        let cached = [cache_read, cache_write].into_iter().flatten();
        let cached = cached.fold(0, u64::saturating_add);
        let input = grown(self.input, before.input);
        let usage = Usage::default()
            .input_tokens(input.map(|input| input.saturating_sub(cached)))
            .output_tokens(grown(self.output, before.output))
            .cache_read_tokens(cache_read)
            .cache_write_tokens(cache_write)
            .reasoning_tokens(grown(self.reasoning, before.reasoning));
        Some(usage).filter(|usage| usage.total_tokens().is_some_and(|tokens| tokens > 0))
    }

    fn is_lower(self, than: Self) -> bool {
        [
            (self.input, than.input),
            (self.output, than.output),
            (self.cache_read, than.cache_read),
            (self.cache_write, than.cache_write),
        ]
        .into_iter()
        .any(|(own, other)| own.zip(other).is_some_and(|(own, other)| own < other))
    }
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
