//! Estimated cost of records.

use std::collections::HashMap;
use std::sync::Arc;

use teamster_prices::{ModelPrices, PriceList, Request, WEB_SEARCH};

use crate::{Provider, Record};

/// Key of a model's prices: the CLI, the vendor of the answer, and the model.
type ModelKey = (Provider, Option<Arc<str>>, Arc<str>);

/// Estimates for many records. Each model is looked up once.
#[derive(Debug, Default)]
pub(crate) struct Estimates {
    list: PriceList,
    models: HashMap<ModelKey, Option<ModelPrices>>,
}

impl Estimates {
    pub(crate) fn new(list: PriceList) -> Self {
        Self {
            list,
            models: HashMap::new(),
        }
    }

    /// Estimates the cost of a record.
    pub(crate) fn of(&mut self, record: &Record) -> Option<f64> {
        let name = record.model.as_ref()?;
        let cli = record.provider.id();
        let list = &self.list;
        let found = *self
            .models
            .entry((record.provider, record.vendor.clone(), name.clone()))
            .or_insert_with(|| match &record.vendor {
                Some(vendor) => list.find(cli, &format!("{vendor}/{name}")),
                None => list.find(cli, name),
            });
        let found = found?;
        let mut request = Request::new(cli, name, &record.usage, record.at);
        request.cache_write_1h_tokens = record.cache_write_1h_tokens;
        request.is_sum = record.sum;
        request.fast = record.fast;
        request.us_only = record.us_only;
        let tokens = list.cost(found, &request);
        let searches = record.web_searches;
        let searches = searches.filter(|_| record.provider.traits().pays_searches);
        #[expect(clippy::cast_precision_loss, reason = "to 15 digits")]
        let searches = searches.map(|searches| searches as f64 * WEB_SEARCH);
        match (tokens, searches) {
            (Some(tokens), Some(searches)) => Some(tokens + searches),
            (one, None) | (None, one) => one,
        }
    }
}
