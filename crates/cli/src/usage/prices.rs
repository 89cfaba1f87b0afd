//! Prices for cost estimates.

use std::env;

use anyhow::Context;
use teamster::usage::prices::PriceList;

use crate::args::UsageArgs;

/// Returns the prices of `--prices`, or of the user's file if it exists, with the built-in table as fallback.
pub(super) fn list(args: &UsageArgs) -> anyhow::Result<PriceList> {
    let list = match &args.prices {
        Some(file) => PriceList::with_file(file),
        None => PriceList::of_user(|name| env::var_os(name)),
    };
    list.context("the file of prices cannot be used")
}
