//! Compact form of a request.

use std::collections::HashMap;
use std::sync::Arc;

use jiff::Timestamp;
use teamster_core::Usage;

use crate::{Provider, Record};

/// Index of an absent name.
const NONE: u32 = u32::MAX;

/// Index of texts. Sessions, models and directories are few, requests are many.
#[derive(Debug, Clone, Default)]
pub(super) struct Names {
    index: HashMap<Arc<str>, u32>,
    texts: Vec<Arc<str>>,
    /// Indexes of models, by those of their names and vendors.
    models: HashMap<(u32, u32), u32>,
    pairs: Vec<(u32, u32)>,
}

impl Names {
    /// Returns the index of a text, adding it if it is new.
    pub(super) fn index(&mut self, name: &Arc<str>) -> u32 {
        if let Some(index) = self.index.get(name) {
            return *index;
        }
        // More texts than this do not fit in memory.
        let index = u32::try_from(self.texts.len()).unwrap_or(NONE);
        self.texts.push(name.clone());
        self.index.insert(name.clone(), index);
        index
    }

    /// Returns the index of a text, if it has one.
    pub(super) fn get(&self, name: &str) -> Option<u32> {
        self.index.get(name).copied()
    }

    /// Returns the text with an index.
    pub(super) fn name(&self, index: u32) -> Option<&Arc<str>> {
        self.texts.get(index as usize)
    }

    /// Returns the index of a record's model and vendor, adding them if they are new.
    fn index_model(&mut self, record: &Record) -> u32 {
        let texts = [&record.model, &record.vendor]
            .map(|text| text.as_ref().map_or(NONE, |text| self.index(text)));
        let [model, vendor] = texts;
        let next = u32::try_from(self.pairs.len()).unwrap_or(NONE);
        *self.models.entry((model, vendor)).or_insert_with(|| {
            self.pairs.push((model, vendor));
            next
        })
    }

    /// Returns the model with an index, and its vendor.
    fn model(&self, index: u32) -> [Option<&Arc<str>>; 2] {
        let (model, vendor) = *self.pairs.get(index as usize).unwrap_or(&(NONE, NONE));
        [self.name(model), self.name(vendor)]
    }
}

/// A request in compact form.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entry {
    /// Milliseconds since 1970-01-01 UTC.
    at: i64,
    /// Cost in USD, or for Copilot in premium requests. NaN if unknown.
    cost: f64,
    /// Input, output, cache reads, cache writes, reasoning, cache writes for an hour.
    tokens: [u32; 6],
    pub(super) session: u32,
    directory: u32,
    model: u32,
    pub(super) provider: Provider,
    /// Bit set of the known token figures.
    known: u8,
    /// Bit set of `SUBAGENT` and the other flags.
    flags: u8,
    /// Number of web searches, at most 255.
    web_searches: u8,
}

const SUBAGENT: u8 = 1;
const COPIED: u8 = 2;
const FAST: u8 = 4;
const US_ONLY: u8 = 8;
/// Set if the number of web searches is known.
const SEARCHES: u8 = 16;
/// Flags that apply if any record of the request has them.
const ANY: u8 = FAST | US_ONLY | SEARCHES;

impl Entry {
    /// Converts a record. Returns `None` if a token figure exceeds 32 bits, which no request reaches.
    pub(super) fn of(record: &Record, session: u32, names: &mut Names) -> Option<Self> {
        let usage = &record.usage;
        let figures = [
            usage.input_tokens,
            usage.output_tokens,
            usage.cache_read_tokens,
            usage.cache_write_tokens,
            usage.reasoning_tokens,
            record.cache_write_1h_tokens,
        ];
        let directory = record.directory.as_ref();
        let cost = if record.provider.traits().premium_requests {
            record.premium_requests
        } else {
            record.cost_usd
        };
        let mut entry = Self {
            at: record.at.as_millisecond(),
            cost: cost.unwrap_or(f64::NAN),
            tokens: [0; 6],
            session,
            directory: directory.map_or(NONE, |directory| names.index(directory)),
            model: names.index_model(record),
            provider: record.provider,
            known: 0,
            flags: 0,
            web_searches: u8::try_from(record.web_searches.unwrap_or(0)).unwrap_or(u8::MAX),
        };
        for (flag, set) in [
            (SUBAGENT, record.subagent),
            (COPIED, record.copied),
            (FAST, record.fast),
            (US_ONLY, record.us_only),
            (SEARCHES, record.web_searches.is_some()),
        ] {
            entry.flags |= if set { flag } else { 0 };
        }
        for (index, figure) in figures.into_iter().enumerate() {
            if let Some(figure) = figure {
                entry.tokens[index] = u32::try_from(figure).ok()?;
                entry.known |= 1 << index;
            }
        }
        Some(entry)
    }

    /// Merges another record of the same request. Each figure becomes the larger one, because a record that was written
    /// during the answer has less. All other fields come from the first original.
    pub(super) fn merge(&mut self, other: &Self, names: &Names) {
        let known = self.known | other.known;
        let mut tokens = self.tokens;
        for (mine, theirs) in tokens.iter_mut().zip(other.tokens) {
            *mine = (*mine).max(theirs);
        }
        // `max` prefers a number to NaN.
        let cost = self.cost.max(other.cost);
        let flags = (self.flags | other.flags) & ANY;
        let web_searches = self.web_searches.max(other.web_searches);
        if other.rank(names) < self.rank(names) {
            *self = *other;
        }
        (self.tokens, self.known, self.cost) = (tokens, known, cost);
        self.flags |= flags;
        self.web_searches = web_searches;
    }

    /// Returns whether every record of the request was a copy from another session's file.
    pub(super) fn copied(&self) -> bool {
        self.flags & COPIED != 0
    }

    /// Returns the sort key of records of one request; the lowest one owns it. Originals come before copies, then
    /// earlier records. The other fields make the order total.
    fn rank<'a>(&self, names: &'a Names) -> impl Ord + use<'a> {
        (
            self.copied(),
            self.at,
            names.name(self.session),
            names.name(self.directory),
            names.model(self.model),
            self.flags & SUBAGENT,
        )
    }

    /// Converts back to a record, without its key.
    pub(super) fn record(&self, names: &Names) -> Record {
        let figure =
            |index: usize| (self.known & 1 << index != 0).then(|| u64::from(self.tokens[index]));
        let session = names.name(self.session).cloned();
        let [model, vendor] = names.model(self.model);
        let cost = (!self.cost.is_nan()).then_some(self.cost);
        let (premium_requests, cost_usd) = if self.provider.traits().premium_requests {
            (cost, None)
        } else {
            (None, cost)
        };
        // Every entry has a session, and its time comes from a valid timestamp.
        let at = Timestamp::from_millisecond(self.at).unwrap_or_default();
        Record {
            model: model.cloned(),
            vendor: vendor.cloned(),
            directory: names.name(self.directory).cloned(),
            usage: Usage::default()
                .input_tokens(figure(0))
                .output_tokens(figure(1))
                .cache_read_tokens(figure(2))
                .cache_write_tokens(figure(3))
                .reasoning_tokens(figure(4)),
            cache_write_1h_tokens: figure(5),
            cost_usd,
            premium_requests,
            web_searches: (self.flags & SEARCHES != 0).then(|| self.web_searches.into()),
            fast: self.flags & FAST != 0,
            us_only: self.flags & US_ONLY != 0,
            subagent: self.flags & SUBAGENT != 0,
            copied: self.copied(),
            ..Record::new(self.provider, session.unwrap_or_else(|| "".into()), at)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_takes_64_bytes_with_its_key() {
        assert_eq!(size_of::<(crate::Key, Entry)>(), 64);
    }
}
