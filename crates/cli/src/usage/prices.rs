//! The prices that estimates are made with.

use std::env;
use std::path::PathBuf;

use anyhow::Context;
use teamster::usage::prices::PriceList;

use crate::args::UsageArgs;

/// The user's own file of prices, in the folder of configuration files.
const FILE: &str = "teamster/prices.toml";

/// The prices of the file that is named, or else of the user's own if there is one, before those of the table.
pub(super) fn list(args: &UsageArgs) -> anyhow::Result<PriceList> {
    let file = match &args.prices {
        Some(file) => Some(file.clone()),
        None => own_file().filter(|file| file.exists()),
    };
    match file {
        Some(file) => PriceList::with_file(&file).context("the file of prices cannot be used"),
        None => Ok(PriceList::default()),
    }
}

/// Where the user's own file is, by the XDG base directory specification.
fn own_file() -> Option<PathBuf> {
    let folder = |name| {
        let folder = env::var_os(name).map(PathBuf::from);
        folder.filter(|folder| folder.is_absolute())
    };
    let config = folder("XDG_CONFIG_HOME").or_else(|| Some(folder("HOME")?.join(".config")))?;
    Some(config.join(FILE))
}
