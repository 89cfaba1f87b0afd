//! The prices that estimates are made with.

use std::env;

use anyhow::Context;
use teamster::usage::prices::PriceList;

use crate::args::UsageArgs;

/// The prices of the file that is named, or else of the user's own if there is one, before those of the table.
pub(super) fn list(args: &UsageArgs) -> anyhow::Result<PriceList> {
    let list = match &args.prices {
        Some(file) => PriceList::with_file(file),
        None => PriceList::of_user(|name| env::var_os(name)),
    };
    list.context("the file of prices cannot be used")
}
