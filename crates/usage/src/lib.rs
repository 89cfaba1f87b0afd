//! Token and cost accounting from the files that coding-agent CLIs leave on disk.
//!
//! [`Scan`] reads the files of all CLIs in parallel and returns [`Accounts`]: usage by day, model, agent, session or
//! provider. [`TickMeter`] returns the usage of a session since a mark. Costs are those reported in the CLIs' own
//! files, next to an estimate from a dated table ([`prices`]). `docs/usage.md` describes which usage is counted.
//!
//! ```no_run
//! use std::time::{Duration, SystemTime};
//!
//! use teamster_usage::{Dimension, Locations, Scan};
//!
//! let since = SystemTime::now() - Duration::from_hours(24 * 28);
//! let accounts = Scan::new(Locations::from_env()).since(since).run();
//! for (week, models) in accounts.models_by(Dimension::Week) {
//!     println!("{week:?}: {models:?}");
//! }
//! ```
#![warn(missing_docs)]

mod accounts;
mod claude;
mod cline;
mod codex;
mod copilot;
mod embedded;
mod estimates;
mod gemini;
mod kilo;
mod kimi;
mod limits;
mod lines;
mod locations;
mod meter;
mod money;
mod opencode;
mod pi;
mod provider;
mod qwen;
mod record;
mod scan;
mod sessions;
mod source;
mod summary;

pub use accounts::{Accounts, Group, Joined, PastRun, Witness};
pub use claude::{ClaudeStatusLine, UsedShare};
pub use limits::{Limit, limits};
pub use locations::Locations;
pub use meter::{ModelTick, TickMeter};
pub use provider::{Provider, UnknownProvider};
pub use record::{Key, Record};
pub use scan::{Progress, Scan, UnknownZone};
pub use sessions::{StoredMessage, StoredSession, has_sessions, stored_session, stored_sessions};
pub use summary::limit_list;
pub use teamster_api::usage::{
    Diagnostics, Dimension, Figures, HistoryShare, LimitList, ModelFigures, PriceSource,
    UnpricedModel, UsageGroup, UsageLimit, UsageSummary,
};
pub use teamster_prices as prices;
