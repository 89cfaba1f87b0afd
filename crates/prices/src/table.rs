//! The price table and the lookup of models.

use std::sync::LazyLock;

use jiff::Timestamp;
use jiff::civil::{Date, Time};
use jiff::tz::TimeZone;
use serde::Deserialize;

use crate::Vendor;

/// Output of `cargo xtask prices`.
const TEXT: &str = include_str!("table.json");

static TABLE: LazyLock<Table> = LazyLock::new(|| {
    // A test checks that the table can be parsed. An empty table has no prices, so nothing is estimated.
    serde_json::from_str::<File>(TEXT).map_or_else(|_| Table::default(), Table::of)
});

#[derive(Deserialize)]
pub(crate) struct File {
    source: String,
    version: String,
    date: String,
    #[serde(rename = "secondSource")]
    second_source: String,
    vendors: Vendors,
}

/// The models of the vendors. Of two models that match a name, the first one applies. A match of the name with its date
/// takes precedence over one without it.
#[derive(Debug, Default, Deserialize)]
struct Vendors {
    anthropic: Vec<Model>,
    openai: Vec<Model>,
    google: Vec<Model>,
    #[serde(rename = "github-copilot")]
    copilot: Vec<Model>,
    #[serde(rename = "x-ai")]
    xai: Vec<Model>,
    deepseek: Vec<Model>,
    minimax: Vec<Model>,
    moonshotai: Vec<Model>,
    zai: Vec<Model>,
}

/// Vendors whose models others sell as well. Copilot's list has Copilot's own prices for them.
const MAKERS: [Vendor; 4] = [
    Vendor::Anthropic,
    Vendor::OpenAi,
    Vendor::Google,
    Vendor::Xai,
];

/// All makers of models. The models of the last four are open, and other services sell them for other prices.
const ALL_MAKERS: [Vendor; 8] = [
    Vendor::Anthropic,
    Vendor::OpenAi,
    Vendor::Google,
    Vendor::Xai,
    Vendor::DeepSeek,
    Vendor::MiniMax,
    Vendor::Moonshot,
    Vendor::Zai,
];

#[derive(Debug, Default)]
pub(crate) struct Table {
    /// The source packages and their versions.
    pub(crate) name: String,
    /// The date of publication.
    pub(crate) date: String,
    vendors: Vendors,
}

impl Table {
    /// Returns the table of this repository.
    pub(crate) fn get() -> &'static Self {
        &TABLE
    }

    pub(crate) fn of(file: File) -> Self {
        Self {
            name: format!("{} {}, {}", file.source, file.version, file.second_source),
            date: file.date,
            vendors: file.vendors,
        }
    }

    fn models(&self, vendor: Vendor) -> &[Model] {
        match vendor {
            Vendor::Anthropic => &self.vendors.anthropic,
            Vendor::OpenAi => &self.vendors.openai,
            Vendor::Google => &self.vendors.google,
            Vendor::Copilot => &self.vendors.copilot,
            Vendor::Xai => &self.vendors.xai,
            Vendor::DeepSeek => &self.vendors.deepseek,
            Vendor::MiniMax => &self.vendors.minimax,
            Vendor::Moonshot => &self.vendors.moonshotai,
            Vendor::Zai => &self.vendors.zai,
        }
    }

    /// Returns the model with this name. `first` is the most likely vendor of a name without one.
    pub(crate) fn find(&self, first: Option<Vendor>, name: &str) -> Option<&Model> {
        let name = name.trim().to_ascii_lowercase();
        let (path, name) = name.rsplit_once('/').unwrap_or(("", &name));
        let vendors = vendors(first, path)?;
        let name = without_size(name);
        // The date may be part of the name and select another model than the name without it.
        let names = [name, undated(name)];
        vendors.iter().find_map(|vendor| {
            let models = self.models(*vendor);
            let called = |name: &&str| models.iter().find(|model| model.is(name));
            names.iter().find_map(called)
        })
    }
}

/// Returns the vendors whose prices apply, in order, for this prefix of the model's name. `default` is the most likely one
/// without a prefix. Returns `None` if the prices are unknown, such as those of a private server.
fn vendors(default: Option<Vendor>, path: &str) -> Option<Vec<Vendor>> {
    use Vendor::{Anthropic, Copilot, DeepSeek, Google, MiniMax, Moonshot, OpenAi, Xai, Zai};
    let first_of = |vendor: Vendor, others: &[Vendor]| {
        let others = others.iter().filter(|other| **other != vendor);
        [vendor].into_iter().chain(others.copied()).collect()
    };
    let first = path.split('/').next().unwrap_or_default();
    let last = path.rsplit('/').next().unwrap_or_default();
    Some(match (first, last) {
        ("github-copilot", _) => first_of(Copilot, &MAKERS),
        (_, "anthropic") => vec![Anthropic],
        (_, "openai") => vec![OpenAi],
        (_, "google" | "gemini" | "models") => vec![Google],
        (_, "xai" | "x-ai") => vec![Xai],
        ("deepseek", "deepseek") => vec![DeepSeek],
        ("minimax", "minimax") => vec![MiniMax],
        ("moonshotai", "moonshotai") | ("kimi-for-coding", _) => vec![Moonshot],
        ("zai" | "zai-coding-plan", _) => vec![Zai],
        // These services sell the models of others under the original names, for the original prices plus a margin.
        (
            "amazon-bedrock"
            | "azure"
            | "google-vertex"
            | "google-vertex-anthropic"
            | "opencode"
            | "openrouter"
            | "vertex",
            _,
        ) => MAKERS.to_vec(),
        ("", _) => match default {
            Some(vendor) => first_of(vendor, &ALL_MAKERS),
            None => ALL_MAKERS.to_vec(),
        },
        _ => return None,
    })
}

/// Returns a model's name without its vendor, its date and the size of its context window.
pub(crate) fn plain_name(name: &str) -> String {
    let name = name.trim().to_ascii_lowercase();
    let (_, last) = name.rsplit_once('/').unwrap_or(("", &name));
    undated(without_size(last)).to_owned()
}

/// Returns a name without prefixes of services and without the size of the context window.
pub(crate) fn without_size(name: &str) -> &str {
    let name = name.split_once('[').map_or(name, |(name, _)| name);
    // Bedrock: `us.anthropic.claude-sonnet-4-5-20250929-v1:0`.
    name.rsplit_once("anthropic.")
        .map_or(name, |(_, name)| name)
}

#[derive(Debug, Deserialize)]
pub(crate) struct Model {
    names: Vec<String>,
    /// Names of other models, although `names` match them.
    #[serde(default)]
    not: Vec<String>,
    /// Prices in the order of their dates. Of one date, those for hours come last.
    prices: Vec<Prices>,
    /// Prices of the faster service.
    fast: Option<Prices>,
}

impl Model {
    /// Creates a model without names.
    pub(crate) fn of(prices: Prices, fast: Option<Prices>) -> Self {
        Self {
            names: Vec::new(),
            not: Vec::new(),
            prices: vec![prices],
            fast,
        }
    }

    /// Returns whether the model has this name.
    fn is(&self, name: &str) -> bool {
        let is = |pattern: &String| matches(pattern, name);
        self.names.iter().any(is) && !self.not.iter().any(is)
    }

    /// Returns the prices that applied at a time.
    pub(crate) fn at(&self, at: Timestamp) -> Option<&Prices> {
        let at = at.to_zoned(TimeZone::UTC).datetime();
        let holds = |prices: &&Prices| {
            let within = |(start, end): (Time, Time)| start <= at.time() && at.time() < end;
            prices.from.is_none_or(|from| from <= at.date()) && prices.hours.is_none_or(within)
        };
        self.prices.iter().rev().find(holds)
    }

    /// Returns the prices of the faster service, if the table has them.
    pub(crate) fn fast(&self) -> Option<&Prices> {
        self.fast.as_ref()
    }
}

/// Returns whether a name is equal to a pattern, or matches `beginning*`, `*end` or `*part*`.
fn matches(pattern: &str, name: &str) -> bool {
    match (pattern.strip_prefix('*'), pattern.strip_suffix('*')) {
        (None, None) => name == pattern,
        (None, Some(beginning)) => name
            .strip_prefix(beginning)
            .is_some_and(|rest| !goes_on(beginning, rest)),
        (Some(end), None) => name.ends_with(end),
        (Some(part), Some(_)) => name.contains(part.trim_end_matches('*')),
    }
}

/// Returns whether the rest of a name selects another version: `claude-sonnet-5` is not `claude-sonnet-5-5`, and
/// `gpt-5.1` is not `gpt-5.15`. A date does not.
fn goes_on(beginning: &str, rest: &str) -> bool {
    let digit = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_digit);
    if !digit(beginning.as_bytes().last()) {
        return false;
    }
    let rest = rest.as_bytes();
    if digit(rest.first()) {
        // `claude-sonnet-4-2025*` is the start of a date.
        return !beginning.ends_with("-2025");
    }
    if !matches!(rest.first(), Some(b'-' | b'.')) {
        return false;
    }
    let digits = rest[1..].iter().take_while(|byte| byte.is_ascii_digit());
    (1..=2).contains(&digits.count())
}

/// Returns a name without the date at its end: `-20250929` or `-2026-03-05`.
pub(crate) fn undated(name: &str) -> &str {
    for form in ["-dddddddd", "-dddd-dd-dd"] {
        let Some(index) = name.len().checked_sub(form.len()) else {
            continue;
        };
        if !name.is_char_boundary(index) {
            continue;
        }
        let (rest, end) = name.split_at(index);
        let mut pairs = end.bytes().zip(form.bytes());
        if pairs.all(|(byte, form)| {
            if form == b'd' {
                byte.is_ascii_digit()
            } else {
                byte == form
            }
        }) {
            return rest;
        }
    }
    name
}

/// Prices, optionally from a date on or for some hours.
#[derive(Debug, Deserialize)]
pub(crate) struct Prices {
    from: Option<Date>,
    /// Start and end of the hours on each day, in UTC.
    hours: Option<(Time, Time)>,
    #[serde(flatten)]
    base: KnownPrices,
    #[serde(default)]
    tiers: Vec<Tier>,
}

/// Prices of requests with more input than a limit, including cache reads and writes.
#[derive(Debug, Deserialize)]
pub(crate) struct Tier {
    pub(crate) above: u64,
    #[serde(flatten)]
    pub(crate) prices: KnownPrices,
}

/// Known prices, in USD per million tokens.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct KnownPrices {
    pub(crate) input: Option<f64>,
    pub(crate) output: Option<f64>,
    pub(crate) cache_read: Option<f64>,
    pub(crate) cache_write: Option<f64>,
    #[serde(rename = "cacheWrite1h")]
    pub(crate) cache_write_1h: Option<f64>,
}

/// The prices of a request, in USD per million tokens.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Rates {
    pub(crate) input: f64,
    pub(crate) output: f64,
    pub(crate) cache_read: f64,
    pub(crate) cache_write: f64,
    pub(crate) cache_write_1h: f64,
}

impl Prices {
    /// Creates prices that apply at any time.
    pub(crate) fn always(base: KnownPrices, tiers: Vec<Tier>) -> Self {
        Self {
            from: None,
            hours: None,
            base,
            tiers,
        }
    }

    /// Returns the prices of a request with this much input.
    pub(crate) fn rates(&self, input: u64) -> Rates {
        let mut prices_now = self.base;
        for tier in &self.tiers {
            if input > tier.above {
                let prices = &tier.prices;
                prices_now = KnownPrices {
                    input: prices.input.or(prices_now.input),
                    output: prices.output.or(prices_now.output),
                    cache_read: prices.cache_read.or(prices_now.cache_read),
                    cache_write: prices.cache_write.or(prices_now.cache_write),
                    cache_write_1h: prices.cache_write_1h.or(prices_now.cache_write_1h),
                };
            }
        }
        let input = prices_now.input.unwrap_or(0.0);
        // Cache tokens without a price cost as much as other input.
        let cache_write = prices_now.cache_write.unwrap_or(input);
        Rates {
            input,
            output: prices_now.output.unwrap_or(0.0),
            cache_read: prices_now.cache_read.unwrap_or(input),
            cache_write,
            cache_write_1h: prices_now.cache_write_1h.unwrap_or(cache_write),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_can_be_read_and_has_prices_for_all() {
        let table = Table::of(serde_json::from_str(TEXT).unwrap());
        let all = [&ALL_MAKERS[..], &[Vendor::Copilot]].concat();
        for vendor in all {
            let models = table.models(vendor);
            assert!(models.len() >= 5, "{vendor:?}");
            for model in models {
                assert!(
                    !model.names.is_empty() && !model.prices.is_empty(),
                    "{model:?}"
                );
                for prices in &model.prices {
                    let known = prices.base.input.zip(prices.base.output).is_some();
                    let cheap = prices.rates(0).input <= prices.rates(u64::MAX).input;
                    assert!(known && cheap, "{model:?}");
                }
            }
        }
    }

    #[test]
    fn another_version_is_another_model() {
        for (beginning, rest, other) in [
            ("claude-sonnet-5", "-5", true),
            ("claude-sonnet-5", ".5", true),
            ("claude-opus-4-1", "0", true),
            ("gpt-5.1", "5", true),
            ("claude-sonnet-5", "-20260301", false),
            ("claude-sonnet-4-2025", "0514", false),
            ("claude-sonnet-5", "-latest", false),
            ("claude-3-5-haiku", "-20241022", false),
            ("gemini-3.5-flash-preview", "-05-20", false),
            ("claude-sonnet-5", "", false),
        ] {
            assert_eq!(goes_on(beginning, rest), other, "{beginning} {rest}");
        }
    }

    #[test]
    fn a_date_at_the_end_of_a_name_is_left_out() {
        for (name, without) in [
            ("claude-fable-5-20260901", "claude-fable-5"),
            ("gpt-5.5-2026-04-23", "gpt-5.5"),
            ("gpt-5.5", "gpt-5.5"),
            ("-20260901", ""),
            ("日本-2026-04-23", "日本"),
            ("日本語日本語", "日本語日本語"),
        ] {
            assert_eq!(undated(name), without, "{name}");
        }
    }
}
