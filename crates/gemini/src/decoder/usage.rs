//! Conversion of the CLI's token counts.

use std::collections::BTreeMap;

use serde_json::value::RawValue;
use teamster_core::provider::json_line::{parse, repaired};
use teamster_core::{ModelUsage, Usage};

use super::wire::StatsLine;

impl StatsLine {
    /// Converts the usage. `input_tokens` includes cache reads. `output_tokens` excludes reasoning, which has no
    /// count: it is the rest of the sum.
    ///
    /// Zero usage is unknown usage: the CLI does not count failed requests.
    pub(super) fn usage(&self) -> Option<Usage> {
        let figures = [
            self.total_tokens,
            self.input_tokens,
            self.output_tokens,
            self.cached,
        ];
        if figures.into_iter().flatten().all(|tokens| tokens == 0) {
            return None;
        }
        let reasoning = self.reasoning();
        let cached = self.cached.unwrap_or(0);
        let uncached = self.input_tokens.map(|input| input.saturating_sub(cached));
        Some(
            Usage::default()
                .input_tokens(self.input.or(uncached))
                .output_tokens(
                    self.output_tokens
                        .map(|output| output.saturating_add(reasoning.unwrap_or(0))),
                )
                .cache_read_tokens(self.cached)
                .reasoning_tokens(reasoning),
        )
    }

    /// Returns the total without input and output, or `None` if that is 0.
    fn reasoning(&self) -> Option<u64> {
        let known = self.input_tokens?.checked_add(self.output_tokens?)?;
        let rest = self.total_tokens?.saturating_sub(known);
        (rest > 0).then_some(rest)
    }

    /// Returns the usage by model, of models that used tokens.
    pub(super) fn by_model(&self) -> BTreeMap<String, ModelUsage> {
        let usage = |figures: &RawValue| {
            let figures: StatsLine = parse(repaired(figures).get())?;
            Some(ModelUsage::new(figures.usage()?))
        };
        let models = self.models.iter();
        models
            .filter_map(|(model, figures)| Some((model.clone(), usage(figures)?)))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stats(json: &str) -> StatsLine {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn cached_tokens_are_beside_input_and_reasoning_is_in_output() {
        let stats = stats(
            r#"{"total_tokens":20682,"input_tokens":20500,"output_tokens":55,"cached":17900,"input":2600,
                "models":{"m":{"total_tokens":20682,"input_tokens":20500,"output_tokens":55,"cached":17900,"input":2600},
                          "unused":{"total_tokens":0,"input_tokens":0,"output_tokens":0,"cached":0,"input":0},
                          "odd":7}}"#,
        );
        let expected = Usage::default()
            .input_tokens(2600)
            .output_tokens(55 + 127)
            .cache_read_tokens(17900)
            .reasoning_tokens(127);
        assert_eq!(stats.usage(), Some(expected));
        assert_eq!(expected.total_tokens(), Some(20682));
        let models = stats.by_model();
        assert_eq!(models.keys().collect::<Vec<_>>(), ["m"]);
        assert_eq!(models["m"].usage, expected);
    }

    #[test]
    fn unreported_figures_are_absent() {
        assert_eq!(stats("{}").usage(), None);
        let zero = r#"{"total_tokens":0,"input_tokens":0,"output_tokens":0,"cached":0,"input":0}"#;
        assert_eq!(stats(zero).usage(), None);
        let some = stats(r#"{"input_tokens":10,"cached":"x","output_tokens":3}"#);
        let expected = Usage::default().input_tokens(10).output_tokens(3);
        assert_eq!(some.usage(), Some(expected));
        assert!(some.by_model().is_empty());
    }

    #[test]
    fn figures_that_make_no_sense_do_no_harm() {
        let max = u64::MAX;
        let odd = stats(&format!(
            r#"{{"total_tokens":{max},"input_tokens":1,"output_tokens":{max},"cached":7}}"#
        ));
        let usage = odd.usage().unwrap();
        assert_eq!(usage.input_tokens, Some(0));
        assert_eq!(usage.output_tokens, Some(max));
        assert_eq!(usage.reasoning_tokens, None);
    }
}
