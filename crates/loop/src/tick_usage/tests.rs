use std::collections::BTreeMap;
use std::path::Path;
use std::sync::LazyLock;

use serde_json::json;
use teamster_core::ModelUsage;

use super::*;

fn usage(input: u64, output: u64) -> Usage {
    Usage::default().input_tokens(input).output_tokens(output)
}

fn sources<'a>(result: &'a RunResult, measured: &'a [ModelTick]) -> UsageSources<'a> {
    static TABLE: LazyLock<PriceList> = LazyLock::new(PriceList::default);
    UsageSources {
        provider: Some(Provider::Claude),
        prices: &TABLE,
        result,
        measured,
        session: Some("s"),
        now: "2026-11-21T20:00:00Z".parse().unwrap(),
    }
}

fn models(models: &[(&str, Usage, Option<f64>)]) -> BTreeMap<String, ModelUsage> {
    let models = models.iter().map(|(name, usage, cost_usd)| {
        let used = ModelUsage::new(*usage).cost_usd(*cost_usd);
        ((*name).to_owned(), used)
    });
    models.collect()
}

#[test]
fn each_model_has_a_record_with_the_fields_that_dashboards_read() {
    let result = RunResult::default()
        .usage_by_model(models(&[
            ("made-up-a", usage(10, 2), Some(0.5)),
            ("made-up-b", usage(1, 1), None),
        ]))
        .total_cost_usd(0.75)
        .cost_source(CostSource::Reported);
    let sources = sources(&result, &[]);
    let records = records(&sources);
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
        line(&sources, &records),
        "cost $0.750000 reported: in=11 out=3 cache_read=0 cache_write=0 (made-up-a, made-up-b)"
    );
}

#[test]
fn a_reported_total_is_that_of_the_only_model() {
    let result = RunResult::default()
        .usage(usage(10, 2))
        .model("made-up")
        .total_cost_usd(0.25)
        .cost_source(CostSource::Reported);
    let records = records(&sources(&result, &[]));
    assert_eq!(records.len(), 1);
    assert_eq!(records[0].cost_usd, Some(0.25));
    assert_eq!(records[0].cost_source, Some(CostSource::Reported));
}

#[test]
fn missing_usage_is_logged_as_unknown() {
    let result = RunResult::default();
    let nothing = sources(&result, &[]);
    assert!(records(&nothing).is_empty());
    assert_eq!(
        line(&nothing, &[]),
        "cost unknown: no usage was reported for this tick"
    );
    let result = RunResult::default().usage(usage(1, 1)).model("made-up");
    let sources = sources(&result, &[]);
    let records = records(&sources);
    assert_eq!(records[0].cost_usd, None);
    assert_eq!(
        line(&sources, &records),
        "cost unknown: in=1 out=1 cache_read=0 cache_write=0 (made-up)"
    );
}

#[test]
fn a_model_without_a_price_in_the_files_has_no_cost() {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join(".local/share/opencode/storage/message/s");
    std::fs::create_dir_all(&folder).unwrap();
    // Hand-written in the format of real messages. The model ran on a local server.
    let message = r#"{"role":"assistant","modelID":"gpt-5.5","providerID":"lmstudio","cost":0,"tokens":{"input":5,"output":1,"reasoning":0,"cache":{"read":0,"write":0}},"time":{"created":4102444800000}}"#;
    std::fs::write(folder.join("msg_1.json"), message).unwrap();
    let locations = teamster_usage::Locations::of_home(home.path());
    let measured = teamster_usage::TickMeter::new(Provider::OpenCode, locations).read(Some("s"));
    let result = RunResult::default();
    let sources = UsageSources {
        provider: Some(Provider::OpenCode),
        ..sources(&result, &measured)
    };
    let records = records(&sources);
    assert_eq!(records[0].model.as_deref(), Some("gpt-5.5"));
    assert_eq!((records.len(), records[0].cost_usd), (1, None));
}

#[test]
fn a_users_prices_come_before_the_table() {
    let prices = "[models.\"made-up\"]\ninput = 1_000\noutput = 2_000\n";
    let prices = PriceList::with_text(prices, Path::new("prices.toml")).unwrap();
    let result = RunResult::default().usage_by_model(models(&[("made-up", usage(10, 2), None)]));
    let by_table = sources(&result, &[]);
    assert_eq!(records(&by_table)[0].cost_usd, None);
    let sources = UsageSources {
        prices: &prices,
        ..by_table
    };
    let record = &records(&sources)[0];
    assert_eq!(record.cost_usd, Some(0.014));
    assert_eq!(record.cost_source, Some(CostSource::Estimated));
}

#[test]
fn an_agents_own_estimate_is_one_where_there_is_no_other() {
    let result = RunResult::default()
        .model("made-up")
        .usage(usage(10, 2))
        .total_cost_usd(0.25)
        .cost_source(CostSource::Estimated);
    let sources = UsageSources {
        provider: None,
        ..sources(&result, &[])
    };
    let record = &records(&sources)[0];
    assert_eq!(record.cost_usd, Some(0.25));
    assert_eq!(record.cost_source, Some(CostSource::Estimated));
    let by_model = RunResult::default()
        .usage_by_model(models(&[("made-up", usage(10, 2), Some(0.5))]))
        .cost_source(CostSource::Estimated);
    let sources = UsageSources {
        result: &by_model,
        ..sources
    };
    let record = &records(&sources)[0];
    assert_eq!(record.cost_usd, Some(0.5));
    assert_eq!(record.cost_source, Some(CostSource::Estimated));
}
