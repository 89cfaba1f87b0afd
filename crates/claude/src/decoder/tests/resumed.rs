//! Counts of a resumed run with 2.1.290, which reports those of the session. The counts are those that it printed;
//! the lines are shortened.

use std::collections::BTreeMap;

use serde_json::json;
use teamster_core::provider::Exit;
use teamster_core::{ModelUsage, RunResult, Usage};
use teamster_testkit::events::tokens;
use teamster_testkit::replay::decode;

use super::super::ClaudeDecoder;
use super::super::end::Turns;
use super::{end, init};
use crate::totals::{Baseline, Totals};

/// Returns usage with these counts and the session's cached tokens.
fn used(input: u64, output: u64) -> Usage {
    Usage::default()
        .input_tokens(input)
        .output_tokens(output)
        .cache_read_tokens(4608)
        .cache_write_tokens(576)
}

/// Returns the totals of the first run, as in the session's file.
fn before() -> Totals {
    let model = ModelUsage::new(used(16, 110)).cost_usd(0.006_065_6);
    let by_model = BTreeMap::from([("m".to_owned(), model)]);
    Totals::new(by_model, 0.006_065_6, Some(334.0))
}

fn resumed(baseline: Baseline, ends: &[String]) -> RunResult {
    let decoder = ClaudeDecoder {
        turns: Turns::new(baseline),
        ..ClaudeDecoder::new()
    };
    let lines: Vec<_> = std::iter::once(init())
        .chain(ends.iter().cloned())
        .collect();
    decode(decoder, &lines, Exit::new(0)).1
}

/// Returns the result of the second run.
fn second() -> String {
    end(
        &json!({"result": "x", "total_cost_usd": 0.006_613_6, "duration_api_ms": 357,
        "usage": {"input_tokens": 12, "output_tokens": 25,
                  "cache_read_input_tokens": 0, "cache_creation_input_tokens": 0},
        "modelUsage": {"m": {"inputTokens": 28, "outputTokens": 135, "cacheReadInputTokens": 4608,
                             "cacheCreationInputTokens": 576, "costUSD": 0.006_613_6}}}),
    )
}

fn micro(usd: Option<f64>) -> String {
    usd.map_or_else(String::new, |usd| format!("{:.1}", usd * 1e6))
}

#[test]
fn earlier_usage_of_the_session_is_not_the_run_s() {
    let result = resumed(Baseline::Resumed(before()), &[second()]);
    let usage = result.usage.unwrap();
    assert_eq!(tokens(Some(usage)), Some((12, 25)));
    assert_eq!(
        (usage.cache_read_tokens, usage.cache_write_tokens),
        (Some(0), Some(0))
    );
    assert_eq!(micro(result.total_cost_usd), "548.0");
    let of_model = result.usage_by_model["m"];
    assert_eq!(
        (of_model.usage, micro(of_model.cost_usd)),
        (usage, "548.0".into())
    );
    assert_eq!(result.api_duration_ms, Some(23));
    assert_eq!(result.session_usage, Some(used(28, 135)));
}

#[test]
fn without_totals_only_the_usage_of_the_main_model_is_reported() {
    let result = resumed(Baseline::Unknown, &[second(), second()]);
    assert_eq!(tokens(result.usage), Some((12, 25)));
    assert_eq!(
        (result.total_cost_usd, result.api_duration_ms),
        (None, None)
    );
    assert!(result.usage_by_model.is_empty() && result.session_usage.is_none());
}

#[test]
fn version_with_figures_of_each_run_needs_no_difference() {
    let own = end(
        &json!({"result": "x", "total_cost_usd": 0.000_685, "duration_api_ms": 49,
        "usage": {"input_tokens": 12, "output_tokens": 25},
        "modelUsage": {"m": {"inputTokens": 12, "outputTokens": 25, "costUSD": 0.000_685}}}),
    );
    // A later version wrote the second baseline.
    for baseline in [
        Baseline::Unknown,
        Baseline::Resumed(before()),
        Baseline::Resumed(Totals::default()),
    ] {
        let result = resumed(baseline, std::slice::from_ref(&own));
        assert_eq!(tokens(result.usage), Some((12, 25)));
        assert_eq!(micro(result.total_cost_usd), "685.0");
        assert_eq!(result.usage_by_model["m"].usage.input_tokens, Some(12));
    }
}

#[test]
fn results_that_come_together_are_counted_once() {
    let models = json!({"m": {"inputTokens": 60, "outputTokens": 125, "costUSD": 0.002_74}});
    let first = end(&json!({"total_cost_usd": 0.002_74, "modelUsage": models,
        "usage": {"input_tokens": 24, "output_tokens": 50}, "model_usage_since_last_result": models}));
    let second = end(&json!({"total_cost_usd": 0.002_74, "modelUsage": models,
        "usage": {"input_tokens": 12, "output_tokens": 25}, "model_usage_since_last_result": {},
        "origin": {"kind": "task-notification"}}));
    let result = resumed(Baseline::New, &[first, second]);
    assert_eq!(tokens(result.usage), Some((60, 125)));
    assert_eq!(micro(result.total_cost_usd), "2740.0");
    assert_eq!(result.usage_by_model["m"].usage.input_tokens, Some(60));
}
