//! Totals of a chat's turns, as `/cost` shows them.

use std::fmt::Write;

use teamster::{CostSource, RunResult, Usage};

use crate::words;

/// Tokens, cost and time of all turns.
#[derive(Debug, Default)]
pub(super) struct Totals {
    turns: u64,
    duration_ms: u64,
    input: Sum,
    output: Sum,
    cache_read: Sum,
    cache_write: Sum,
    reasoning: Sum,
    usd: f64,
    with_cost: u64,
    estimated: bool,
}

/// Sum of a figure that some turns may not report.
#[derive(Debug, Default)]
struct Sum {
    sum: u64,
    turns: u64,
}

impl Sum {
    fn add(&mut self, figure: Option<u64>) {
        if let Some(figure) = figure {
            self.sum = self.sum.saturating_add(figure);
            self.turns += 1;
        }
    }

    fn show(&self, all: u64) -> String {
        reported(&words::count(self.sum), self.turns, all)
    }
}

fn reported(sum: &str, turns: u64, all: u64) -> String {
    match turns {
        0 => "not reported".to_owned(),
        _ if turns == all => sum.to_owned(),
        _ => format!("{sum}  (reported by {turns} of {all} turns)"),
    }
}

impl Totals {
    /// Adds the result of a turn.
    pub(super) fn add(&mut self, result: &RunResult) {
        self.turns += 1;
        self.duration_ms = self.duration_ms.saturating_add(result.duration_ms);
        let none = Usage::default();
        let usage = result.usage.as_ref().unwrap_or(&none);
        self.input.add(usage.input_tokens);
        self.output.add(usage.output_tokens);
        self.cache_read.add(usage.cache_read_tokens);
        self.cache_write.add(usage.cache_write_tokens);
        self.reasoning.add(usage.reasoning_tokens);
        if let Some(usd) = result.total_cost_usd {
            self.usd += usd;
            self.with_cost += 1;
            self.estimated |= result.cost_source == Some(CostSource::Estimated);
        }
    }

    /// Returns the number of turns.
    pub(super) fn turns(&self) -> u64 {
        self.turns
    }

    /// Returns the text of `/cost`.
    pub(super) fn show(&self) -> String {
        if self.turns == 0 {
            return "nothing sent yet".to_owned();
        }
        let about = if self.estimated { "~" } else { "" };
        let cost = format!("{about}{}", words::usd(self.usd));
        let rows = [
            ("input tokens", self.input.show(self.turns)),
            ("output tokens", self.output.show(self.turns)),
            ("  of them reasoning", self.reasoning.show(self.turns)),
            ("read from the cache", self.cache_read.show(self.turns)),
            ("written to the cache", self.cache_write.show(self.turns)),
            ("cost", reported(&cost, self.with_cost, self.turns)),
        ];
        let mut text = format!(
            "{} in {}",
            words::plural(self.turns, "turn"),
            words::duration_ms(self.duration_ms)
        );
        for (name, figure) in rows {
            // Writing to a string cannot fail.
            let _ = write!(text, "\n  {name:<22}{figure}");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_figures_are_not_zero() {
        let mut totals = Totals::default();
        assert_eq!(totals.show(), "nothing sent yet");
        let mut result = RunResult::default().duration_ms(1_500);
        totals.add(&result);
        assert_eq!(
            totals.show().matches("not reported").count(),
            6,
            "{}",
            totals.show()
        );
        result.usage = Some(Usage::default().input_tokens(0).output_tokens(1_200));
        result.total_cost_usd = Some(0.25);
        totals.add(&result);
        result.total_cost_usd = Some(0.5);
        totals.add(&result);
        assert_eq!(
            totals.show(),
            [
                "3 turns in 4.5s",
                "  input tokens          0  (reported by 2 of 3 turns)",
                "  output tokens         2.4k  (reported by 2 of 3 turns)",
                "    of them reasoning   not reported",
                "  read from the cache   not reported",
                "  written to the cache  not reported",
                "  cost                  $0.7500  (reported by 2 of 3 turns)",
            ]
            .join("\n")
        );
        result.cost_source = Some(CostSource::Estimated);
        totals.add(&result);
        assert!(totals.show().contains("~$1.25"), "{}", totals.show());
        assert_eq!(totals.turns(), 4);
    }
}
