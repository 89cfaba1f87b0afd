//! `cargo xtask prices`: the table of prices, generated from the data of two packages.

mod litellm;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, bail, ensure};
use serde_json::{Map, Value, json};

use crate::{Outcome, generated, output_of, target};

/// The package with the data, and its version.
const PACKAGE: &str = "@pydantic/genai-prices";
const VERSION: &str = "0.1.8";

/// Path of the table, from the root of the repository.
const TABLE: &str = "crates/prices/src/table.json";
/// Paths of the licences of the data.
const LICENSE: &str = "crates/prices/src/LICENSE-genai-prices";
const LICENSE_LITELLM: &str = "crates/prices/src/LICENSE-litellm";

/// Vendors whose models the CLIs use, by their names in the package. Zhipu is left out: its prices are in CNY
/// and depend on the length of answers. Z.AI sells the same models in USD.
const VENDORS: [&str; 9] = [
    "anthropic",
    "openai",
    "google",
    "github-copilot",
    "x-ai",
    "deepseek",
    "minimax",
    "moonshotai",
    "zai",
];

/// Substrings of ids of models that are not for agents.
const OTHERS: &str = "
    audio babbage computer-use curie davinci embed ft: gemma gpt-3.5 image instruct live moderation
    realtime robotics search transcribe tts vision
";

/// Names of prices in the table and in the package. All are per million tokens.
const PRICES: [(&str, &str); 5] = [
    ("input", "input_mtok"),
    ("output", "output_mtok"),
    ("cacheRead", "cache_read_mtok"),
    ("cacheWrite", "cache_write_mtok"),
    ("cacheWrite1h", "cache_write_1h_mtok"),
];

/// Write the table of prices to crates/prices/src.
///
/// The data is that of the npm package @pydantic/genai-prices (MIT), and for a few models that of the Python
/// package litellm (MIT). npm and pip download them; node and python3 read the data out of them.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Args {
    /// Write nothing; exit with 1 if what is there is not current
    #[arg(long)]
    check: bool,
    /// The version of the package
    #[arg(long, default_value = VERSION)]
    version: String,
    /// The unpacked package, which is else installed below target
    #[arg(long, value_name = "DIR")]
    package: Option<PathBuf>,
    /// The wheel of litellm, which is else downloaded below target
    #[arg(long, value_name = "FILE")]
    wheel: Option<PathBuf>,
}

pub(crate) fn run(args: &Args, out: &mut impl Write) -> anyhow::Result<Outcome> {
    let package = match &args.package {
        Some(package) => {
            fs::canonicalize(package).with_context(|| package.display().to_string())?
        }
        None => install(&args.version)?,
    };
    let manifest: Value = serde_json::from_slice(&fs::read(package.join("package.json"))?)?;
    ensure!(
        manifest["name"] == PACKAGE && manifest["version"] == args.version.as_str(),
        "{} is not {PACKAGE} {}",
        package.display(),
        args.version
    );
    let wheel = match &args.wheel {
        Some(wheel) => wheel.clone(),
        None => litellm::download(&target().join("prices"))?,
    };
    let more = litellm::data(&wheel)?;
    let table = table(
        &data(&package)?,
        &more,
        &args.version,
        &date(&args.version)?,
    )?;
    let license = fs::read_to_string(package.join("LICENSE"))?;
    let litellm = litellm::license(&wheel)?;
    let mut current = true;
    for (path, text) in [
        (TABLE, &table),
        (LICENSE, &license),
        (LICENSE_LITELLM, &litellm),
    ] {
        current &= generated::bring(path, text, "prices", args.check, out)?;
    }
    Ok(Outcome::problems_if(!current))
}

/// Installs the package below `target` and returns the path.
fn install(version: &str) -> anyhow::Result<PathBuf> {
    let folder = target().join("prices");
    fs::create_dir_all(&folder)?;
    let mut npm = Command::new("npm");
    npm.args([
        "install",
        "--no-save",
        "--ignore-scripts",
        "--no-audit",
        "--no-fund",
    ])
    .arg("--prefix")
    .arg(&folder)
    .arg(format!("{PACKAGE}@{version}"));
    output_of(&mut npm)?;
    Ok(folder.join("node_modules").join(PACKAGE))
}

/// Returns the day on which the version was published.
fn date(version: &str) -> anyhow::Result<String> {
    let mut npm = Command::new("npm");
    npm.args(["view", PACKAGE, "time", "--json"]);
    let times: Value = serde_json::from_str(&output_of(&mut npm)?)?;
    let time = times[version].as_str().and_then(|time| time.get(..10));
    time.map(str::to_owned)
        .with_context(|| format!("npm does not know when {PACKAGE} {version} was published"))
}

/// Returns the vendors' models in the package.
fn data(package: &Path) -> anyhow::Result<Value> {
    let script = "const { findProvider } = await import(process.argv[1]);
        const vendors = process.argv.slice(2).map(id => [id, findProvider({ providerId: id }).models]);
        console.log(JSON.stringify(Object.fromEntries(vendors)));";
    let mut node = Command::new("node");
    node.args(["--input-type=module", "-e", script])
        .arg(package.join("dist/index.js"))
        .args(VENDORS);
    Ok(serde_json::from_str(&output_of(&mut node)?)?)
}

/// Returns the table as a text, with one line per model.
fn table(data: &Value, more: &Value, version: &str, date: &str) -> anyhow::Result<String> {
    let mut text = String::from("{\n");
    let second = format!("{} {}", litellm::PACKAGE, litellm::VERSION);
    for (name, value) in [
        ("source", PACKAGE),
        ("version", version),
        ("date", date),
        ("secondSource", &second),
        (
            "license",
            "MIT, see LICENSE-genai-prices and LICENSE-litellm",
        ),
        ("unit", "USD for a million tokens"),
    ] {
        writeln!(text, "  {}: {},", json!(name), json!(value))?;
    }
    text.push_str("  \"vendors\": {\n");
    for (index, vendor) in VENDORS.iter().enumerate() {
        let models = data[vendor]
            .as_array()
            .with_context(|| format!("no models of {vendor}"))?;
        let mut known = Vec::new();
        for found in models {
            // Google also sells Anthropic's models, with the same names.
            if *vendor == "google"
                && found["id"]
                    .as_str()
                    .is_some_and(|id| id.starts_with("claude"))
            {
                continue;
            }
            let model = model(found).with_context(|| format!("{vendor}: {found}"))?;
            known.extend(model);
        }
        ensure!(!known.is_empty(), "no models of {vendor}");
        litellm::add(vendor, &mut known, more)?;
        let lines: Vec<_> = known.iter().map(|model| format!("      {model}")).collect();
        let comma = if index + 1 < VENDORS.len() { "," } else { "" };
        writeln!(
            text,
            "    {}: [\n{}\n    ]{comma}",
            json!(vendor),
            lines.join(",\n")
        )?;
    }
    text.push_str("  }\n}\n");
    Ok(text)
}

/// Returns a model of the table, or `None` if it is not for agents or lacks a price for input or output.
fn model(found: &Value) -> anyhow::Result<Option<Value>> {
    let id = found["id"].as_str().context("no id")?;
    let mut others = OTHERS.split_ascii_whitespace();
    if others.any(|other| id.contains(other)) {
        return Ok(None);
    }
    let mut names = Vec::new();
    collect_names(&found["match"], &mut names)?;
    // Names are compared in lower case.
    for name in &mut names {
        name.make_ascii_lowercase();
    }
    let mut seen = std::collections::HashSet::new();
    names.retain(|name| seen.insert(name.clone()));
    let (not, names): (Vec<_>, Vec<_>) = names.into_iter().partition(|name| name.starts_with('!'));
    let single = json!([{ "prices": found["prices"] }]);
    let steps = if found["prices"].is_array() {
        &found["prices"]
    } else {
        &single
    };
    let mut prices = Vec::new();
    let mut from = Value::Null;
    for step in steps.as_array().into_iter().flatten() {
        let constraint = &step["constraint"];
        let mut price = Map::new();
        match constraint["type"].as_str() {
            None => {}
            Some("start_date") => {
                from = constraint["start_date"].clone();
                price.insert("from".to_owned(), from.clone());
            }
            // Hours of each day, in UTC. They apply from the day of the preceding prices: the package's
            // constraints cannot express both.
            Some("time_of_date") => {
                let hours = ["start_time", "end_time"].map(|name| {
                    let time = constraint[name].as_str().unwrap_or_default();
                    time.strip_suffix('Z').map(str::to_owned)
                });
                let [Some(start), Some(end)] = hours else {
                    bail!("hours that are not of UTC: {constraint}");
                };
                if !from.is_null() {
                    price.insert("from".to_owned(), from.clone());
                }
                price.insert("hours".to_owned(), json!([start, end]));
            }
            Some(other) => bail!("a constraint that is not known: {other}"),
        }
        if !fill(&mut price, &step["prices"])? {
            return Ok(None);
        }
        prices.push(price);
    }
    let mut model = json!({ "id": id, "names": names });
    if !not.is_empty() {
        model["not"] = not.iter().map(|name| &name[1..]).collect();
    }
    model["prices"] = json!(prices);
    Ok(Some(model))
}

/// Pattern of names that are not of speech models, and its equivalent here. Names are in lower case.
const NOT_SPEECH: &str = "^(?!.*-[tT][tT][sS](?:$|-))";
const SPEECH: [&str; 2] = ["!*-tts", "!*-tts-*"];

/// Collects the patterns of matching names: `name`, `beginning*`, `*end` or `*part*`, with a `!` before names
/// that do not match. A pattern for dates after a name is skipped, because the lookup removes dates of
/// unknown names.
fn collect_names(found: &Value, names: &mut Vec<String>) -> anyhow::Result<()> {
    let found = found.as_object().context("no match")?;
    for (kind, value) in found {
        match (kind.as_str(), value.as_str()) {
            ("equals", Some(name)) => names.push(name.to_owned()),
            ("starts_with", Some(name)) => names.push(format!("{name}*")),
            ("ends_with", Some(name)) => names.push(format!("*{name}")),
            ("contains", Some(name)) => names.push(format!("*{name}*")),
            ("regex", Some(NOT_SPEECH)) => names.extend(SPEECH.map(str::to_owned)),
            ("regex", Some(pattern)) if pattern.contains(r"\d") => {}
            ("or" | "and", None) => {
                let parts = value.as_array().context("no list")?;
                let excepts = |part: &&Value| part["regex"] == NOT_SPEECH;
                let names_of = parts.len() - parts.iter().filter(excepts).count();
                ensure!(kind == "or" || names_of == 1, "several at once: {value}");
                for part in parts {
                    collect_names(part, names)?;
                }
            }
            _ => bail!("a match that is not known: {kind} {value}"),
        }
    }
    Ok(())
}

/// Prices of large requests, by the number of tokens above which they hold.
type Tiers = BTreeMap<u64, Map<String, Value>>;

fn add_tiers(price: &mut Map<String, Value>, tiers: Tiers) {
    if tiers.is_empty() {
        return;
    }
    let tiers = tiers.into_iter().map(|(start, mut prices)| {
        prices.insert("above".to_owned(), json!(start));
        Value::Object(prices)
    });
    price.insert("tiers".to_owned(), tiers.collect());
}

/// Adds prices, including those for large requests. Returns `false` if there is none for input or for output.
fn fill(price: &mut Map<String, Value>, found: &Value) -> anyhow::Result<bool> {
    let mut tiers = Tiers::new();
    for (name, key) in PRICES {
        let value = &found[key];
        let base = if value.is_object() {
            &value["base"]
        } else {
            value
        };
        if base.is_number() {
            price.insert(name.to_owned(), base.clone());
        } else {
            ensure!(base.is_null(), "no price: {value}");
        }
        for tier in value["tiers"].as_array().into_iter().flatten() {
            let start = tier["start"].as_u64().context("a tier without a start")?;
            let prices = tiers.entry(start).or_default();
            prices.insert(name.to_owned(), tier["price"].clone());
        }
    }
    add_tiers(price, tiers);
    Ok(price.contains_key("input") && price.contains_key("output"))
}

#[cfg(test)]
mod tests {
    use super::*;

    // Hand-made in the format of the package's data.
    fn of(found: &str) -> anyhow::Result<Option<Value>> {
        model(&serde_json::from_str(found).unwrap())
    }

    #[test]
    fn model_has_its_names_prices_and_large_request_prices() {
        let found = of(
            r#"{"id": "m-1", "match": {"or": [{"equals": "m-1"}, {"starts_with": "m-1-"},
            {"regex": "^m-1-\\d{8}$"}]}, "prices": [
            {"prices": {"input_mtok": {"base": 3, "tiers": [{"start": 200000, "price": 6}]}, "output_mtok": 15}},
            {"constraint": {"type": "start_date", "start_date": "2026-03-13"},
             "prices": {"input_mtok": 3, "output_mtok": 15, "web_searches_kcount": 10}}]}"#,
        );
        let expected = json!({ "id": "m-1", "names": ["m-1", "m-1-*"], "prices": [
            { "input": 3, "output": 15, "tiers": [{ "input": 6, "above": 200_000 }] },
            { "from": "2026-03-13", "input": 3, "output": 15 }] });
        assert_eq!(found.unwrap().unwrap(), expected);
    }

    #[test]
    fn names_of_speech_are_not_a_models_although_they_begin_so() {
        let found = of(
            r#"{"id": "m", "match": {"or": [{"equals": "m"}, {"and": [{"starts_with": "m-preview"},
            {"regex": "^(?!.*-[tT][tT][sS](?:$|-))"}]}]},
            "prices": {"input_mtok": 1, "output_mtok": 1}}"#,
        );
        let found = found.unwrap().unwrap();
        assert_eq!(found["names"], json!(["m", "m-preview*"]));
        assert_eq!(found["not"], json!(["*-tts", "*-tts-*"]));
    }

    #[test]
    fn models_not_for_agents_or_without_output_price_are_left_out() {
        for model in [
            r#"{"id": "m-tts", "match": {"equals": "m"}, "prices": {"input_mtok": 1, "output_mtok": 1}}"#,
            r#"{"id": "m", "match": {"equals": "m"}, "prices": {"input_mtok": 1}}"#,
        ] {
            assert_eq!(of(model).unwrap(), None, "{model}");
        }
    }

    #[test]
    fn models_missing_in_the_earlier_data_are_an_error() {
        for model in [
            r#"{"id": "m", "match": {"sounds_like": "m"}, "prices": {"input_mtok": 1, "output_mtok": 1}}"#,
            r#"{"id": "m", "match": {"regex": "^m.*"}, "prices": {"input_mtok": 1, "output_mtok": 1}}"#,
            r#"{"id": "m", "match": {"regex": "^(?!m)"}, "prices": {"input_mtok": 1, "output_mtok": 1}}"#,
            r#"{"id": "m", "match": {"and": [{"starts_with": "m"}, {"ends_with": "n"}]},
                "prices": {"input_mtok": 1, "output_mtok": 1}}"#,
            r#"{"id": "m", "match": {"equals": "m"}, "prices": [{"constraint": {"type": "weather"},
                "prices": {"input_mtok": 1, "output_mtok": 1}}]}"#,
        ] {
            assert!(of(model).is_err(), "{model}");
        }
    }
}
