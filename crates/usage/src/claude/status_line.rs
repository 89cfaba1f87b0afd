//! The JSON that Claude Code 2.1.330 writes to its status line command. Each field may be missing.

use std::time::SystemTime;

use jiff::Timestamp;
use serde::Deserialize;

/// Input of Claude Code's status line command.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct ClaudeStatusLine {
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
    /// The subscription's limit of five hours.
    pub five_hours: Option<UsedShare>,
    /// The subscription's limit of seven days.
    pub seven_days: Option<UsedShare>,
}

/// Used share of a limit.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct UsedShare {
    /// The used part, in percent.
    pub percent: f64,
    /// Time at which it is 0 again.
    pub resets_at: Option<SystemTime>,
}

impl ClaudeStatusLine {
    /// Parses the JSON.
    ///
    /// # Errors
    ///
    /// Fails if it is not JSON, or a field has another type.
    pub fn parse(json: &[u8]) -> serde_json::Result<Self> {
        let Input {
            model,
            workspace,
            cwd,
            cost,
            context_window,
            rate_limits,
            fast_mode,
        } = serde_json::from_slice(json)?;
        Ok(Self {
            model: model.display_name.or(model.id),
            is_fast: fast_mode == Some(true),
            directory: workspace.current_dir.or(cwd),
            context_percent: context_window.used_percentage,
            cost_usd: cost.total_cost_usd,
            five_hours: rate_limits.five_hour.and_then(Window::used),
            seven_days: rate_limits.seven_day.and_then(Window::used),
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

impl Window {
    fn used(self) -> Option<UsedShare> {
        #[expect(
            clippy::cast_possible_truncation,
            reason = "what is too large saturates"
        )]
        let at = (self.resets_at).and_then(|at| Timestamp::from_second(at as i64).ok());
        Some(UsedShare {
            percent: self.used_percentage?,
            resets_at: at.map(SystemTime::from),
        })
    }
}
