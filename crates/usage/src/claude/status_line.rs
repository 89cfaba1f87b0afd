//! The JSON that Claude Code 2.1.330 writes to its status line command. Each field may be missing.

use jiff::Timestamp;
use serde::Deserialize;
use teamster_api::usage::UsageLimit;

use crate::Provider;

/// What Claude Code reports to its status line command.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct StatusLine {
    /// The model's name for people, or else its id.
    pub model: Option<String>,
    /// The model is used in its fast mode.
    pub is_fast: bool,
    /// The current directory.
    pub directory: Option<String>,
    /// The used part of the context window, in percent.
    pub context_percent: Option<f64>,
    /// The cost of the session in USD.
    pub cost_usd: Option<f64>,
    /// The limits of the subscription, as of now.
    pub limits: Vec<UsageLimit>,
}

impl StatusLine {
    /// Parses the JSON, at this time.
    ///
    /// # Errors
    ///
    /// Fails if it is not JSON, or a field has another type.
    pub fn parse(json: &[u8], now: Timestamp) -> serde_json::Result<Self> {
        let Input {
            model,
            workspace,
            cwd,
            cost,
            context_window,
            rate_limits,
            fast_mode,
        } = serde_json::from_slice(json)?;
        let windows = [
            (300, rate_limits.five_hour),
            (10_080, rate_limits.seven_day),
        ];
        let limits = windows.into_iter().filter_map(|(minutes, window)| {
            let window = window?;
            let mut limit = UsageLimit::new(Provider::Claude.id(), window.used_percentage?, now);
            limit.window_minutes = Some(minutes);
            #[expect(
                clippy::cast_possible_truncation,
                reason = "what is too large saturates"
            )]
            let at = (window.resets_at).and_then(|at| Timestamp::from_second(at as i64).ok());
            limit.resets_at = at;
            Some(limit)
        });
        Ok(Self {
            model: model.display_name.or(model.id),
            is_fast: fast_mode == Some(true),
            directory: workspace.current_dir.or(cwd),
            context_percent: context_window.used_percentage,
            cost_usd: cost.total_cost_usd,
            limits: limits.collect(),
        })
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Input {
    model: Model,
    workspace: Workspace,
    cwd: Option<String>,
    cost: Cost,
    context_window: ContextWindow,
    rate_limits: RateLimits,
    fast_mode: Option<bool>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Model {
    display_name: Option<String>,
    id: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Workspace {
    current_dir: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Cost {
    total_cost_usd: Option<f64>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ContextWindow {
    used_percentage: Option<f64>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct RateLimits {
    five_hour: Option<Window>,
    seven_day: Option<Window>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Window {
    used_percentage: Option<f64>,
    /// In seconds since the Unix epoch.
    resets_at: Option<f64>,
}
