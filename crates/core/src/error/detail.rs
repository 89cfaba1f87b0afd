//! Details of errors as data.

use serde::{Deserialize, Serialize};

/// The subject of an error, as data. A type that only a newer version knows is deserialized as
/// [`Other`](Self::Other).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(
    tag = "type",
    rename_all = "snake_case",
    rename_all_fields = "camelCase"
)]
#[non_exhaustive]
pub enum ErrorDetail {
    /// A refused parameter.
    #[non_exhaustive]
    Parameter {
        /// The name in [`ExecuteParams`](crate::ExecuteParams), such as `mcp_servers`, or that of another
        /// setting, such as `provider`, `run_id` or `budget.usd`.
        name: String,
        /// The item of a list, such as the name of an MCP server or of a variable.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        item: Option<String>,
        /// The problem, for a person: the message without the names.
        problem: String,
        /// The run that holds what the parameter names: it works with the session, or has the worktree.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        holder: Option<String>,
    },
    /// A budget of the run is exhausted, or cannot be enforced.
    #[non_exhaustive]
    Budget {
        /// The budget.
        budget: BudgetKind,
        /// Its limit: tokens, USD, seconds or turns.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        limit: Option<f64>,
    },
    /// The run ended although its policy allowed a retry. `cause` is the error of the last attempt.
    #[non_exhaustive]
    NotRetried {
        /// The reason.
        reason: NotRetried,
        /// The reason for a person, with the next step.
        explanation: String,
    },
    /// The CLI's program is missing.
    #[non_exhaustive]
    MissingProgram {
        /// Name of the program.
        program: String,
        /// The command that installs it, also part of the message. Empty if unknown.
        install: String,
    },
    /// A subject that only a newer version knows.
    #[serde(other)]
    #[cfg_attr(feature = "schema", schemars(skip))]
    Other,
}

impl ErrorDetail {
    /// Creates the detail of a missing program, with the command that installs it.
    pub fn missing_program(program: impl Into<String>, install: impl Into<String>) -> Self {
        Self::MissingProgram {
            program: program.into(),
            install: install.into(),
        }
    }

    /// Creates the detail of an exhausted budget, with its limit.
    pub fn budget(budget: BudgetKind, limit: Option<f64>) -> Self {
        Self::Budget { budget, limit }
    }

    /// Creates the detail of a retry that did not happen.
    pub fn not_retried(reason: NotRetried, explanation: impl Into<String>) -> Self {
        Self::NotRetried {
            reason,
            explanation: explanation.into(),
        }
    }
}

/// A budget of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum BudgetKind {
    /// Time, in seconds.
    Time,
    /// Tokens of all kinds.
    Tokens,
    /// Cost in USD.
    Usd,
    /// Answers of the model.
    Turns,
    /// A budget that only a newer version knows.
    #[serde(other)]
    #[cfg_attr(feature = "schema", schemars(skip))]
    Other,
}

/// Reason why a run was not retried although its policy allows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum NotRetried {
    /// The time for attempts is over.
    OutOfTime,
    /// No slot became free in the time for attempts.
    NoSlot,
    /// Something was or may have been changed; a retry would do it twice.
    SideEffects,
    /// The session to resume is gone.
    SessionLost,
    /// A reason that only a newer version knows.
    #[serde(other)]
    #[cfg_attr(feature = "schema", schemars(skip))]
    Other,
}
