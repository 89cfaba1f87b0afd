//! The names of codes, kinds and states, as they are on the wire.

use std::fmt;

use crate::{ErrorCode, ErrorKind, RunStatus, ToolKind};

macro_rules! names {
    ($($type:ident { $($variant:ident => $name:literal,)* })*) => {
        $(
            impl $type {
                /// The name on the wire. It is stable.
                pub fn as_str(self) -> &'static str {
                    match self {
                        $(Self::$variant => $name,)*
                    }
                }
            }

            impl fmt::Display for $type {
                fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                    f.pad(self.as_str())
                }
            }
        )*

        #[cfg(test)]
        mod tests {
            use super::*;

            #[test]
            fn names_are_those_on_the_wire() {
                $($(
                    assert_eq!(serde_json::to_value($type::$variant).unwrap(), $name);
                )*)*
            }
        }
    };
}

names! {
    ErrorCode {
        CliNotFound => "CLI_NOT_FOUND",
        CliStderr => "CLI_STDERR",
        CliExitError => "CLI_EXIT_ERROR",
        CliError => "CLI_ERROR",
        StartupTimeout => "STARTUP_TIMEOUT",
        WatchdogTimeout => "WATCHDOG_TIMEOUT",
        Aborted => "ABORTED",
        InvalidParams => "INVALID_PARAMS",
        PromptTooLarge => "PROMPT_TOO_LARGE",
        StreamEndedEarly => "STREAM_ENDED_EARLY",
        OutputLimit => "OUTPUT_LIMIT",
        ConfigLease => "CONFIG_LEASE",
        Io => "IO",
        BudgetExceeded => "BUDGET_EXCEEDED",
        ProviderOnHold => "PROVIDER_ON_HOLD",
    }
    ErrorKind {
        Auth => "auth",
        RateLimit => "rate_limit",
        Quota => "quota",
        Overloaded => "overloaded",
        Network => "network",
        ContextWindow => "context_window",
        ModelNotFound => "model_not_found",
        SessionNotFound => "session_not_found",
        Permission => "permission",
        Budget => "budget",
        MaxTurns => "max_turns",
        Mcp => "mcp",
        Timeout => "timeout",
        Aborted => "aborted",
        NotFound => "not_found",
        Invalid => "invalid",
        Protocol => "protocol",
        Internal => "internal",
    }
    RunStatus {
        Completed => "completed",
        Failed => "failed",
        Aborted => "aborted",
        TimedOut => "timed_out",
        Incomplete => "incomplete",
    }
    ToolKind {
        Read => "read",
        Edit => "edit",
        Delete => "delete",
        Move => "move",
        Search => "search",
        Execute => "execute",
        Think => "think",
        Fetch => "fetch",
        Task => "task",
        Mcp => "mcp",
        Other => "other",
    }
}
