use super::*;

fn usage(input: u64, output: u64, read: u64, written: u64) -> Usage {
    Usage::default()
        .input_tokens(input)
        .output_tokens(output)
        .cache_read_tokens(read)
        .cache_write_tokens(written)
}

/// Returns a time at which all prices are known.
fn at() -> Timestamp {
    "2026-09-23T12:00:00Z".parse().unwrap()
}

fn cents(provider: &str, model: &str, usage: &Usage, hour: Option<u64>) -> Option<f64> {
    let mut request = Request::new(provider, model, usage, at());
    request.cache_write_1h_tokens = hour;
    let usd = PriceList::default().estimate(&request)?;
    // Rounded to a millionth of a cent.
    Some((usd * 1e8).round() / 1e6)
}

#[test]
fn each_kind_of_token_has_its_price() {
    const MILLION: u64 = 1_000_000;
    let model = "claude-opus-4-8";
    let of = |usage| cents("claude", model, &usage, None);
    assert_eq!(of(usage(MILLION, 0, 0, 0)), Some(500.0));
    assert_eq!(of(usage(0, MILLION, 0, 0)), Some(2500.0));
    assert_eq!(of(usage(0, 0, MILLION, 0)), Some(50.0));
    assert_eq!(of(usage(0, 0, 0, MILLION)), Some(625.0));
    let hour = cents("claude", model, &usage(0, 0, 0, MILLION), Some(MILLION));
    assert_eq!(hour, Some(1000.0));
    let half = cents("claude", model, &usage(0, 0, 0, MILLION), Some(MILLION / 2));
    assert_eq!(half, Some(812.5));
}

#[test]
fn a_large_request_has_another_price_and_a_sum_does_not() {
    let provider = "gemini";
    let model = "gemini-3-pro-preview";
    let small = usage(150_000, 1000, 50_000, 0);
    let large = usage(150_000, 1000, 50_001, 0);
    // 2, 12 and 0.2 dollars per million, and then 4, 18 and 0.4.
    assert_eq!(cents(provider, model, &small, None), Some(32.2));
    assert_eq!(cents(provider, model, &large, None), Some(63.80004));
    let sum = PriceList::default()
        .estimate(&Request::new(provider, model, &large, at()).sum())
        .unwrap();
    assert!((sum - 0.322).abs() < 1e-6, "{sum}");
}

#[test]
fn prices_hold_from_a_day_on() {
    let large = usage(300_000, 0, 0, 0);
    let of = |at: &str| {
        let at = at.parse().unwrap();
        PriceList::default().estimate(&Request::new("claude", "claude-opus-4-6", &large, at))
    };
    assert_eq!(of("2026-03-12T23:59:59Z"), Some(3.0));
    assert_eq!(of("2026-03-13T00:00:00Z"), Some(1.5));
}

#[test]
fn models_are_known_by_the_names_that_the_clis_write() {
    let usage = usage(1_000_000, 0, 0, 0);
    for (provider, model, price) in [
        ("claude", "claude-opus-4-8[1m]", 500.0),
        ("claude", "claude-sonnet-5", 200.0),
        ("claude", "claude-haiku-4-5-20251001", 100.0),
        ("claude", "claude-fable-5-20260901", 1000.0),
        (
            "claude",
            "us.anthropic.claude-opus-4-8-20260520-v1:0",
            500.0,
        ),
        ("codex", "gpt-5.3-codex", 175.0),
        ("codex", "gpt-5.1-codex-max", 125.0),
        ("codex", "gpt-6-sol", 400.0),
        ("codex", "gpt-6.1-sol", 400.0),
        ("claude", "glm-5.2", 140.0),
        ("claude", "GLM-5.1", 140.0),
        ("claude", "kimi-k2.7-code", 95.0),
        ("claude", "MiniMax-M2.5", 30.0),
        ("opencode", "zai-coding-plan/glm-4.7", 60.0),
        ("opencode", "deepseek/deepseek-v3.2", 22.88),
        ("gemini", "gemini-2.5-flash", 30.0),
        ("gemini", "models/gemini-2.5-flash", 30.0),
        ("copilot", "claude-opus-4.8", 500.0),
        ("copilot", "claude-opus-4.6", 500.0),
        ("copilot", "grok-code-fast-1", 20.0),
        ("opencode", "anthropic/claude-haiku-4-5", 100.0),
        ("opencode", "openrouter/anthropic/claude-haiku-4.5", 100.0),
        ("opencode", "github-copilot/kimi-k3", 300.0),
    ] {
        assert_eq!(cents(provider, model, &usage, None), Some(price), "{model}");
    }
}

#[test]
fn unknown_models_have_no_price_rather_than_0() {
    let some = usage(1, 1, 0, 0);
    for model in [
        "",
        "mock",
        "claude-sonnet-5-5",
        "gpt-6.2-sol",
        "gpt-99",
        "lmstudio/gpt-oss-20b",
        "openai/claude-opus-4-8",
        "openrouter/deepseek/deepseek-v3.2",
        "zhipuai/glm-5.1",
        "moonshotai-cn/kimi-k3",
        "/",
        "[1m]",
        "日本語",
    ] {
        for provider in ["claude", "codex", "copilot", "gemini", "opencode", "cline"] {
            assert_eq!(
                PriceList::default().estimate(&Request::new(provider, model, &some, at())),
                None,
                "{model}"
            );
        }
    }
    let nothing = Usage::default();
    assert_eq!(
        PriceList::default().estimate(&Request::new("claude", "claude-opus-4-8", &nothing, at())),
        None
    );
}

#[test]
fn the_table_names_its_source() {
    assert_eq!(source(), "@pydantic/genai-prices 0.1.8, litellm 1.109.1");
    assert_eq!(date(), "2026-09-23");
}

#[test]
fn a_date_may_be_of_another_model_and_speech_is_none() {
    let usage = usage(1_000_000, 0, 0, 0);
    let of = |provider, model| cents(provider, model, &usage, None);
    assert_eq!(of("codex", "gpt-4o-2024-05-13"), Some(500.0));
    assert_eq!(of("codex", "gpt-4o-2024-11-20"), Some(250.0));
    assert_eq!(of("codex", "gpt-4o-2024-01-01"), Some(250.0));
    assert!(of("gemini", "gemini-2.5-pro-preview-06-05").is_some());
    for speech in [
        "gemini-2.5-pro-tts",
        "gemini-2.5-pro-preview-TTS",
        "gemini-2.5-pro-tts-20260101",
    ] {
        assert_eq!(of("gemini", speech), None, "{speech}");
    }
}

#[test]
fn hours_of_the_day_may_have_prices_of_their_own() {
    let usage = usage(1_000_000, 0, 0, 0);
    let of = |at: &str| {
        let at = at.parse().unwrap();
        PriceList::default().estimate(&Request::new("claude", "deepseek-v4-flash", &usage, at))
    };
    assert_eq!(
        of("2026-08-16T02:00:00Z"),
        Some(0.14),
        "before the hours began"
    );
    for (time, price) in [
        ("00:59:59", 0.22),
        ("01:00:00", 0.44),
        ("03:59:59", 0.44),
        ("04:00:00", 0.22),
        ("09:00:00", 0.44),
    ] {
        assert_eq!(of(&format!("2026-09-23T{time}Z")), Some(price), "{time}");
    }
}

#[test]
fn sonnet_4_costs_more_above_200000_tokens() {
    let of = |usage| cents("claude", "claude-sonnet-4-20250514", &usage, None);
    assert_eq!(of(usage(200_000, 0, 0, 0)), Some(60.0));
    assert_eq!(of(usage(200_001, 1_000_000, 0, 0)), Some(2370.0006));
}

fn list(text: &str) -> Result<PriceList, PriceFileError> {
    PriceList::with_text(text, Path::new("/c/prices.toml"))
}

/// Returns the price of a million input tokens in a list.
fn input(list: &PriceList, provider: &str, model: &str) -> Option<f64> {
    list.estimate(&Request::new(
        provider,
        model,
        &usage(1_000_000, 0, 0, 0),
        at(),
    ))
}

#[test]
fn a_file_comes_before_the_table_and_its_longest_name_counts() {
    let list = list(
        r#"
        [models."claude-opus-4-8"]
        input = 1
        output = 2
        [models."house-*"]
        input = 3
        output = 4
        [models."house-large*"]
        input = 5
        output = 6
        [models."lmstudio/gpt-oss-20b"]
        input = 0
        output = 0
        "#,
    )
    .unwrap();
    for (provider, model, price) in [
        ("claude", "claude-opus-4-8[1m]", Some(1.0)),
        ("claude", "anthropic/Claude-Opus-4-8-20260520", Some(1.0)),
        ("claude", "claude-opus-4-6", Some(5.0)),
        ("opencode", "ours/house-small", Some(3.0)),
        ("opencode", "ours/house-large-2", Some(5.0)),
        ("opencode", "lmstudio/gpt-oss-20b", Some(0.0)),
        ("opencode", "vllm/gpt-oss-20b", None),
    ] {
        assert_eq!(input(&list, provider, model), price, "{model}");
    }
    assert_eq!(list.file(), Some(Path::new("/c/prices.toml")));
}

#[test]
fn price_file_has_caches_large_requests_and_the_faster_tier() {
    let list = list(
        r"
        [models.m]
        input = 1
        output = 10
        cache_read = 0.1
        tiers = [{ above = 1000, input = 2, output = 20 }]
        fast = { input = 3, output = 30 }
        ",
    )
    .unwrap();
    let is = |usage, expected: f64| {
        let usd = list.estimate(&Request::new("claude", "m", &usage, at()));
        let usd = usd.unwrap();
        assert!((usd - expected).abs() < 1e-12, "{usd} {expected}");
    };
    is(usage(1000, 0, 0, 0), 0.001);
    is(usage(1001, 100, 0, 0), 0.004_002);
    // A cache write costs as much as input.
    is(usage(0, 0, 500, 500), 0.000_55);
    let usage = usage(1000, 0, 0, 0);
    let mut request = Request::new("claude", "m", &usage, at());
    request.fast = true;
    let usd = list
        .cost(list.find("claude", "m").unwrap(), &request)
        .unwrap();
    assert!((usd - 0.003).abs() < 1e-12, "{usd}");
}

#[test]
fn an_error_in_a_file_names_its_line_and_field() {
    for (text, line, shown, message) in [
        (
            "[models.m]\ninput = \"1\"\noutput = 2",
            2,
            "input = \"1\"",
            "expected a price in USD",
        ),
        (
            "[models.m]\ninput = 1\noutput = -2",
            3,
            "output = -2",
            "expected a price in USD",
        ),
        (
            "[models.m]\ninput = 1\noutput = inf",
            3,
            "output = inf",
            "expected a price in USD",
        ),
        (
            "[models.m]\ninput = 1\noutputs = 2",
            3,
            "outputs = 2",
            "unknown field `outputs`",
        ),
        (
            "\n[models.m]\ninput = 1",
            2,
            "[models.m]",
            "missing field `output`",
        ),
        (
            "[model.m]\ninput = 1",
            1,
            "[model.m]",
            "unknown field `model`",
        ),
        (
            "[models.m]\ninput = 1\ninput = 2",
            3,
            "input = 2",
            "duplicate key",
        ),
        (
            "[models.\"*\"]\ninput = 1\noutput = 1",
            1,
            "[models.\"*\"]",
            "name of a model",
        ),
        ("[models.m", 1, "[models.m", ""),
    ] {
        let error = list(text).unwrap_err().to_string();
        let beginning = format!("/c/prices.toml:{line}: `{shown}`: ");
        assert!(
            error.starts_with(&beginning) && error.contains(message),
            "{error}"
        );
        assert!(!error.contains('\n'), "{error}");
    }
    let missing = PriceList::with_file(Path::new("/nowhere/prices.toml"));
    assert!(
        missing
            .unwrap_err()
            .to_string()
            .starts_with("cannot read /nowhere/prices.toml")
    );
}
