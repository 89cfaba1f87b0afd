//! Totals of a session, as the CLI prints and stores them.

use std::collections::BTreeMap;

use serde::Deserialize;
use teamster_core::{ModelUsage, Usage};

/// Usage of a session before the run.
#[derive(Debug, Default)]
pub(crate) enum Baseline {
    /// The session is new.
    #[default]
    New,
    /// The session's totals; empty if the CLI stores none.
    Resumed(Totals),
    /// The session was resumed, and its file was not found.
    Unknown,
}

/// Running totals of a process, or of a session over all its runs.
#[derive(Debug, Default, Clone, PartialEq)]
pub(crate) struct Totals {
    pub(crate) usage: Usage,
    pub(crate) cost: f64,
    pub(crate) by_model: BTreeMap<String, ModelUsage>,
    pub(crate) api_ms: Option<f64>,
}

impl Totals {
    /// Returns the totals of these models.
    pub(crate) fn new(
        by_model: BTreeMap<String, ModelUsage>,
        cost: f64,
        api_ms: Option<f64>,
    ) -> Self {
        let usage = by_model.values().map(|model| model.usage);
        Self {
            usage: usage.fold(Usage::default(), Usage::plus),
            cost,
            by_model,
            api_ms,
        }
    }

    /// Returns whether the CLI stores its totals, and therefore continues from them.
    pub(crate) fn is_kept(&self) -> bool {
        *self != Self::default()
    }
}

/// Tokens as the service counts them: `input_tokens` excludes cached tokens.
#[derive(Deserialize, Clone, Copy)]
#[expect(clippy::struct_field_names, reason = "they are the names on the wire")]
pub(crate) struct ApiUsage {
    pub(crate) input_tokens: Option<u64>,
    pub(crate) output_tokens: Option<u64>,
    pub(crate) cache_read_input_tokens: Option<u64>,
    pub(crate) cache_creation_input_tokens: Option<u64>,
}

impl From<ApiUsage> for Usage {
    fn from(usage: ApiUsage) -> Self {
        Self::default()
            .input_tokens(usage.input_tokens)
            .output_tokens(usage.output_tokens)
            .cache_read_tokens(usage.cache_read_input_tokens)
            .cache_write_tokens(usage.cache_creation_input_tokens)
    }
}

/// One model in `modelUsage`: running totals of the process, or of the session in later versions.
#[derive(Deserialize, Clone, Copy)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ModelUsageLine {
    pub(crate) input_tokens: Option<u64>,
    pub(crate) output_tokens: Option<u64>,
    pub(crate) cache_read_input_tokens: Option<u64>,
    pub(crate) cache_creation_input_tokens: Option<u64>,
    #[serde(rename = "costUSD")]
    pub(crate) cost_usd: Option<f64>,
    pub(crate) context_window: Option<u64>,
    pub(crate) max_output_tokens: Option<u64>,
}

impl From<ModelUsageLine> for ModelUsage {
    fn from(line: ModelUsageLine) -> Self {
        let usage = Usage::default()
            .input_tokens(line.input_tokens)
            .output_tokens(line.output_tokens)
            .cache_read_tokens(line.cache_read_input_tokens)
            .cache_write_tokens(line.cache_creation_input_tokens);
        Self::new(usage)
            .cost_usd(line.cost_usd)
            .context_window(line.context_window)
            .max_output_tokens(line.max_output_tokens)
    }
}
