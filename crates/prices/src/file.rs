//! Price file of a user, in TOML.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use serde::de::{self, Deserialize, Deserializer, Visitor};

use crate::table::{KnownPrices, Model, Prices, Tier, undated, without_size};

/// Error of a price file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PriceFileError {
    /// The file cannot be read.
    #[error("cannot read {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// The content is not valid.
    #[error("{}:{line}: `{text}`: {message}", path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// The line's text.
        text: String,
        /// The problem.
        message: String,
    },
}

/// The models of a file.
#[derive(Debug)]
pub(crate) struct FilePrices {
    pub(crate) path: PathBuf,
    /// Models by their names in lower case. A name with a `/` includes the vendor.
    models: Vec<(String, Model)>,
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Content {
    #[serde(default)]
    models: BTreeMap<Name, Entry>,
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    input: Usd,
    output: Usd,
    cache_read: Option<Usd>,
    cache_write: Option<Usd>,
    cache_write_1h: Option<Usd>,
    #[serde(default)]
    tiers: Vec<EntryTier>,
    fast: Option<Rates>,
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct EntryTier {
    above: u64,
    input: Option<Usd>,
    output: Option<Usd>,
    cache_read: Option<Usd>,
    cache_write: Option<Usd>,
    cache_write_1h: Option<Usd>,
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Rates {
    input: Usd,
    output: Usd,
    cache_read: Option<Usd>,
    cache_write: Option<Usd>,
    cache_write_1h: Option<Usd>,
}

/// Name of a model, or a prefix of names followed by `*`.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Name(String);

impl<'de> Deserialize<'de> for Name {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?.trim().to_lowercase();
        let beginning = name.strip_suffix('*').unwrap_or(&name);
        if beginning.is_empty() || beginning.contains('*') {
            return Err(de::Error::custom(
                "expected the name of a model, which may end with one `*`",
            ));
        }
        Ok(Self(name))
    }
}

/// A price in USD per million tokens.
#[derive(Clone, Copy)]
struct Usd(f64);

impl<'de> Deserialize<'de> for Usd {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Price;
        impl Visitor<'_> for Price {
            type Value = Usd;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a price in USD for a million tokens, such as 0.25")
            }

            fn visit_i64<E: de::Error>(self, value: i64) -> Result<Usd, E> {
                #[expect(clippy::cast_precision_loss, reason = "prices are small")]
                self.visit_f64(value as f64)
            }

            fn visit_f64<E: de::Error>(self, value: f64) -> Result<Usd, E> {
                if value.is_finite() && value >= 0.0 {
                    Ok(Usd(value))
                } else {
                    Err(E::invalid_value(de::Unexpected::Float(value), &self))
                }
            }
        }
        deserializer.deserialize_any(Price)
    }
}

impl FilePrices {
    pub(crate) fn read(path: &Path) -> Result<Self, PriceFileError> {
        let text = std::fs::read_to_string(path).map_err(|source| PriceFileError::Read {
            path: path.to_owned(),
            source,
        })?;
        Self::parse(&text, path)
    }

    pub(crate) fn parse(text: &str, path: &Path) -> Result<Self, PriceFileError> {
        let content: Content = toml::from_str(text).map_err(|error| {
            let at = error.span().map_or(0, |span| span.start.min(text.len()));
            let before = text.get(..at).unwrap_or_default();
            let line = before.matches('\n').count();
            let shown = text.lines().nth(line).unwrap_or_default();
            PriceFileError::Content {
                path: path.to_owned(),
                line: line + 1,
                text: shown.trim().to_owned(),
                message: error.message().trim().replace('\n', ", "),
            }
        })?;
        let models = content.models.into_iter();
        Ok(Self {
            path: path.to_owned(),
            models: models
                .map(|(Name(name), entry)| (name, entry.into()))
                .collect(),
        })
    }

    /// Returns the index of the model with the longest entry that matches this name.
    pub(crate) fn find(&self, name: &str) -> Option<usize> {
        let name = name.trim().to_ascii_lowercase();
        let (path, last) = name.rsplit_once('/').unwrap_or(("", &name));
        let last = without_size(last);
        let with_path = |last: &str| match path {
            "" => last.to_owned(),
            path => format!("{path}/{last}"),
        };
        let names = [
            with_path(last),
            with_path(undated(last)),
            last.to_owned(),
            undated(last).to_owned(),
        ];
        let is = |key: &str| match key.strip_suffix('*') {
            Some(beginning) => names.iter().any(|name| name.starts_with(beginning)),
            None => names.iter().any(|name| name == key),
        };
        let matching = (0..self.models.len()).filter(|index| is(&self.models[*index].0));
        matching.max_by_key(|index| {
            let key = &self.models[*index].0;
            (!key.ends_with('*'), key.len())
        })
    }

    pub(crate) fn model(&self, index: usize) -> Option<&Model> {
        self.models.get(index).map(|(_, model)| model)
    }
}

fn known(price: Option<Usd>) -> Option<f64> {
    price.map(|Usd(usd)| usd)
}

impl From<Entry> for Model {
    fn from(entry: Entry) -> Self {
        let base = KnownPrices {
            input: Some(entry.input.0),
            output: Some(entry.output.0),
            cache_read: known(entry.cache_read),
            cache_write: known(entry.cache_write),
            cache_write_1h: known(entry.cache_write_1h),
        };
        let mut tiers: Vec<_> = (entry.tiers.into_iter())
            .map(|tier| Tier {
                above: tier.above,
                prices: KnownPrices {
                    input: known(tier.input),
                    output: known(tier.output),
                    cache_read: known(tier.cache_read),
                    cache_write: known(tier.cache_write),
                    cache_write_1h: known(tier.cache_write_1h),
                },
            })
            .collect();
        tiers.sort_by_key(|tier| tier.above);
        let fast = entry.fast.map(|fast| KnownPrices {
            input: Some(fast.input.0),
            output: Some(fast.output.0),
            cache_read: known(fast.cache_read),
            cache_write: known(fast.cache_write),
            cache_write_1h: known(fast.cache_write_1h),
        });
        Self::of(
            Prices::always(base, tiers),
            fast.map(|fast| Prices::always(fast, Vec::new())),
        )
    }
}
