//! Usage of tokens and money, as reports show it.

mod figures;
mod limits;
mod query;
mod summary;

pub use figures::{Diagnostics, Dimension, Figures, UsageRate};
pub use limits::{LimitList, UsageLimit};
pub use query::{PROVIDERS, UsageQuery};
pub use summary::{
    HistoryShare, ModelFigures, PriceSource, UnpricedModel, UsageGroup, UsageSummary,
};
