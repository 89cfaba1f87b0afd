use super::*;

fn usage(input: u64, output: u64, read: u64, written: u64) -> Usage {
    Usage {
        input_tokens: Some(input),
        output_tokens: Some(output),
        cache_read_tokens: Some(read),
        cache_write_tokens: Some(written),
        reasoning_tokens: None,
    }
}

/// On a day of which all prices are known.
fn at() -> Timestamp {
    "2026-09-23T12:00:00Z".parse().unwrap()
}

fn cents(provider: Provider, model: &str, usage: &Usage, hour: Option<u64>) -> Option<f64> {
    let usd = estimate(provider, model, usage, hour, at())?;
    // To a millionth of a cent.
    Some((usd * 1e8).round() / 1e6)
}

#[test]
fn each_kind_of_token_has_its_price() {
    const MILLION: u64 = 1_000_000;
    let model = "claude-opus-4-8";
    let of = |usage| cents(Provider::Claude, model, &usage, None);
    assert_eq!(of(usage(MILLION, 0, 0, 0)), Some(500.0));
    assert_eq!(of(usage(0, MILLION, 0, 0)), Some(2500.0));
    assert_eq!(of(usage(0, 0, MILLION, 0)), Some(50.0));
    assert_eq!(of(usage(0, 0, 0, MILLION)), Some(625.0));
    let hour = cents(
        Provider::Claude,
        model,
        &usage(0, 0, 0, MILLION),
        Some(MILLION),
    );
    assert_eq!(hour, Some(1000.0));
    let half = cents(
        Provider::Claude,
        model,
        &usage(0, 0, 0, MILLION),
        Some(MILLION / 2),
    );
    assert_eq!(half, Some(812.5));
}

#[test]
fn a_large_request_has_another_price_and_a_sum_does_not() {
    let provider = Provider::Gemini;
    let model = "gemini-3-pro-preview";
    let small = usage(150_000, 1000, 50_000, 0);
    let large = usage(150_000, 1000, 50_001, 0);
    // 2, 12 and 0.2, and 4, 18 and 0.4 dollars for a million.
    assert_eq!(cents(provider, model, &small, None), Some(32.2));
    assert_eq!(cents(provider, model, &large, None), Some(63.80004));
    let sum = estimate_sum(provider, model, &large, None, at()).unwrap();
    assert!((sum - 0.322).abs() < 1e-6, "{sum}");
}

#[test]
fn prices_hold_from_a_day_on() {
    let large = usage(300_000, 0, 0, 0);
    let of = |at: &str| {
        estimate(
            Provider::Claude,
            "claude-opus-4-6",
            &large,
            None,
            at.parse().unwrap(),
        )
    };
    assert_eq!(of("2026-03-12T23:59:59Z"), Some(3.0));
    assert_eq!(of("2026-03-13T00:00:00Z"), Some(1.5));
}

#[test]
fn models_are_known_by_the_names_that_the_clis_write() {
    let usage = usage(1_000_000, 0, 0, 0);
    for (provider, model, price) in [
        (Provider::Claude, "claude-opus-4-8[1m]", 500.0),
        (Provider::Claude, "claude-sonnet-5", 200.0),
        (Provider::Claude, "claude-haiku-4-5-20251001", 100.0),
        (Provider::Claude, "claude-fable-5-20260901", 1000.0),
        (
            Provider::Claude,
            "us.anthropic.claude-opus-4-8-20260520-v1:0",
            500.0,
        ),
        (Provider::Codex, "gpt-5.3-codex", 175.0),
        (Provider::Codex, "gpt-5.1-codex-max", 125.0),
        (Provider::Codex, "gpt-6-sol", 400.0),
        (Provider::Gemini, "gemini-2.5-flash", 30.0),
        (Provider::Gemini, "models/gemini-2.5-flash", 30.0),
        (Provider::Copilot, "claude-opus-4.8", 500.0),
        (Provider::Copilot, "claude-opus-4.6", 500.0),
        (Provider::Copilot, "grok-code-fast-1", 20.0),
        (Provider::OpenCode, "anthropic/claude-haiku-4-5", 100.0),
        (
            Provider::OpenCode,
            "openrouter/anthropic/claude-haiku-4.5",
            100.0,
        ),
        (Provider::OpenCode, "github-copilot/kimi-k3", 300.0),
    ] {
        assert_eq!(cents(provider, model, &usage, None), Some(price), "{model}");
    }
}

#[test]
fn what_is_not_known_has_no_price_and_never_the_price_0() {
    let some = usage(1, 1, 0, 0);
    for model in [
        "",
        "mock",
        "claude-sonnet-5-5",
        "gpt-6.1-sol",
        "gpt-99",
        "lmstudio/gpt-oss-20b",
        "openai/claude-opus-4-8",
        "/",
        "[1m]",
        "日本語",
    ] {
        for provider in Provider::ALL {
            assert_eq!(
                estimate(provider, model, &some, None, at()),
                None,
                "{model}"
            );
        }
    }
    let nothing = Usage::default();
    assert_eq!(
        estimate(Provider::Claude, "claude-opus-4-8", &nothing, None, at()),
        None
    );
}

#[test]
fn the_table_says_where_it_is_from() {
    assert_eq!(source(), "@pydantic/genai-prices 0.1.8");
    assert_eq!(date(), "2026-09-23");
}

#[test]
fn a_date_may_be_of_another_model_and_speech_is_none() {
    let usage = usage(1_000_000, 0, 0, 0);
    let of = |provider, model| cents(provider, model, &usage, None);
    assert_eq!(of(Provider::Codex, "gpt-4o-2024-05-13"), Some(500.0));
    assert_eq!(of(Provider::Codex, "gpt-4o-2024-11-20"), Some(250.0));
    assert_eq!(of(Provider::Codex, "gpt-4o-2024-01-01"), Some(250.0));
    assert!(of(Provider::Gemini, "gemini-2.5-pro-preview-06-05").is_some());
    for speech in [
        "gemini-2.5-pro-tts",
        "gemini-2.5-pro-preview-TTS",
        "gemini-2.5-pro-tts-20260101",
    ] {
        assert_eq!(of(Provider::Gemini, speech), None, "{speech}");
    }
}
