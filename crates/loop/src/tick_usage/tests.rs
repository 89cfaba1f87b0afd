use std::collections::BTreeMap;

use serde_json::json;
use teamster_core::ModelUsage;

use super::*;

fn usage(input: u64, output: u64) -> Usage {
    Usage {
        input_tokens: Some(input),
        output_tokens: Some(output),
        ..Usage::default()
    }
}

fn known<'a>(result: &'a RunResult, measured: &'a [ModelTick]) -> Known<'a> {
    Known {
        provider: Some(Provider::Claude),
        result,
        measured,
        session: Some("s"),
        now: "2026-11-21T20:00:00Z".parse().unwrap(),
    }
}

fn models(models: &[(&str, Usage, Option<f64>)]) -> BTreeMap<String, ModelUsage> {
    let models = models.iter().map(|(name, usage, cost_usd)| {
        let used = ModelUsage {
            usage: *usage,
            cost_usd: *cost_usd,
            ..ModelUsage::default()
        };
        ((*name).to_owned(), used)
    });
    models.collect()
}

#[test]
fn one_record_a_model_with_the_fields_that_dashboards_read() {
    let result = RunResult {
        usage_by_model: models(&[
            ("made-up-a", usage(10, 2), Some(0.5)),
            ("made-up-b", usage(1, 1), None),
        ]),
        total_cost_usd: Some(0.75),
        cost_source: Some(CostSource::Reported),
        ..RunResult::default()
    };
    let known = known(&result, &[]);
    let records = records(&known);
    assert_eq!(
        serde_json::to_value(&records).unwrap(),
        json!([
            {"ts": "2026-11-21T20:00:00Z", "session_id": "s", "model": "made-up-a",
             "input_tokens": 10, "output_tokens": 2, "cache_read_tokens": 0,
             "cache_write_tokens": 0, "reasoning_tokens": 0, "premium_requests": 0,
             "cost_usd": 0.5, "cost_source": "reported"},
            {"ts": "2026-11-21T20:00:00Z", "session_id": "s", "model": "made-up-b",
             "input_tokens": 1, "output_tokens": 1, "cache_read_tokens": 0,
             "cache_write_tokens": 0, "reasoning_tokens": 0, "premium_requests": 0,
             "cost_usd": null, "cost_source": null},
        ])
    );
    assert_eq!(
        line(&known, &records),
        "cost $0.750000 reported: in=11 out=3 cache_read=0 cache_write=0 (made-up-a, made-up-b)"
    );
}

#[test]
fn a_reported_total_is_that_of_the_only_model() {
    let result = RunResult {
        usage: Some(usage(10, 2)),
        model: Some("made-up".to_owned()),
        total_cost_usd: Some(0.25),
        cost_source: Some(CostSource::Reported),
        ..RunResult::default()
    };
    let records = records(&known(&result, &[]));
    assert_eq!(records.len(), 1);
    assert_eq!(records[0].cost_usd, Some(0.25));
    assert_eq!(records[0].cost_source, Some(CostSource::Reported));
}

#[test]
fn nothing_known_is_said_to_be_so() {
    let result = RunResult::default();
    let nothing = known(&result, &[]);
    assert!(records(&nothing).is_empty());
    assert_eq!(
        line(&nothing, &[]),
        "cost unknown: nothing tells what this tick used"
    );
    let result = RunResult {
        usage: Some(usage(1, 1)),
        model: Some("made-up".to_owned()),
        ..RunResult::default()
    };
    let known = known(&result, &[]);
    let records = records(&known);
    assert_eq!(records[0].cost_usd, None);
    assert_eq!(
        line(&known, &records),
        "cost unknown: in=1 out=1 cache_read=0 cache_write=0 (made-up)"
    );
}
