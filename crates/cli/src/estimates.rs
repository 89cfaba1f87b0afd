//! The prices by which the cost of agents that report none is estimated.

use std::env;

use anyhow::Context;
use teamster::orchestrator::{OrchestratorConfig, PriceList};

/// Returns the configuration of this program's runs, with the user's prices. If their file cannot be used, warns and
/// uses the table: a run needs no prices.
pub(crate) fn orchestrator_config() -> OrchestratorConfig {
    let own = PriceList::of_user(|name| env::var_os(name));
    let prices = own.context("ignoring the file of prices, which cannot be used");
    let prices = prices.unwrap_or_else(|error| {
        crate::warn(&[format!("{error:#}")]);
        PriceList::default()
    });
    OrchestratorConfig::default().prices(prices)
}
