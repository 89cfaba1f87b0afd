//! Names of codes, kinds, states and settings, as they are printed and parsed.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::text::excerpt;
use crate::{
    AgentError, BudgetKind, ErrorCode, ErrorKind, McpDelivery, NotRetried, PermissionMode,
    RunStatus, ToolKind,
};

fn no_such_name(what: &str, name: &str, known: &[&str]) -> AgentError {
    AgentError::invalid_params(format!(
        "unknown {what} `{}`; available: {}",
        excerpt(name, 100),
        known.join(", ")
    ))
}

/// Implements the names of a type. An older spelling after `|` is still parsed.
macro_rules! named {
    ($type:ident ($what:literal) { $($variant:ident => $name:literal $(| $old:literal)*,)* }) => {
        impl $type {
            /// All values.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// Returns the name, as on the wire or on the command line. It is stable.
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

        impl FromStr for $type {
            type Err = AgentError;

            fn from_str(name: &str) -> Result<Self, AgentError> {
                match name {
                    $($name $(| $old)* => Ok(Self::$variant),)*
                    _ => Err(no_such_name($what, name, &[$($name),*])),
                }
            }
        }
    };
}

/// Implements the names of types that serde reads and writes by the same names.
macro_rules! names {
    ($($type:ident ($what:literal) { $($variant:ident => $name:literal,)* })*) => {
        $(named! { $type ($what) { $($variant => $name,)* } })*

        #[cfg(test)]
        #[test]
        fn names_are_those_on_the_wire() {
            $($(
                assert_eq!(serde_json::to_value($type::$variant).unwrap(), $name);
                assert_eq!($name.parse::<$type>().unwrap(), $type::$variant);
            )*)*
        }
    };
}

/// Implements the names of settings, and serde by them. Files use the spelling of the command line.
macro_rules! settings {
    ($($type:ident ($what:literal) { $($variant:ident => $name:literal $(| $old:literal)*,)* })*) => {
        $(
            named! { $type ($what) { $($variant => $name $(| $old)*,)* } }

            impl Serialize for $type {
                fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                    serializer.serialize_str(self.as_str())
                }
            }

            impl<'de> Deserialize<'de> for $type {
                fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                    let name = String::deserialize(deserializer)?;
                    name.parse().map_err(de::Error::custom)
                }
            }
        )*
    };
}

settings! {
    PermissionMode ("permission mode") {
        Default => "default",
        ReadOnly => "read-only" | "read_only",
        AcceptEdits => "accept-edits" | "accept_edits",
        Bypass => "bypass",
        Plan => "plan",
    }
    McpDelivery ("delivery of MCP servers") {
        Private => "private",
        ProjectConfig => "project-config" | "project_config",
        UserConfig => "user-config" | "user_config",
    }
}

names! {
    ErrorCode ("error code") {
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
        Interrupted => "INTERRUPTED",
        ProviderOnHold => "PROVIDER_ON_HOLD",
        NoTurn => "NO_TURN",
        SessionInUse => "SESSION_IN_USE",
        SetupFailed => "SETUP_FAILED",
        Unknown => "UNKNOWN",
    }
    BudgetKind ("budget") {
        Time => "time",
        Tokens => "tokens",
        Usd => "usd",
        Turns => "turns",
        Other => "other",
    }
    NotRetried ("reason against another attempt") {
        OutOfTime => "out_of_time",
        NoSlot => "no_slot",
        SideEffects => "side_effects",
        SessionLost => "session_lost",
        Other => "other",
    }
    ErrorKind ("kind of error") {
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
        Interrupted => "interrupted",
        NotFound => "not_found",
        Invalid => "invalid",
        Protocol => "protocol",
        Setup => "setup",
        Internal => "internal",
    }
    RunStatus ("status of a run") {
        Completed => "completed",
        Failed => "failed",
        Aborted => "aborted",
        TimedOut => "timed_out",
        Incomplete => "incomplete",
    }
    ToolKind ("kind of tool") {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_has_one_spelling_and_the_older_one_is_read() {
        for mode in PermissionMode::ALL {
            assert_eq!(mode.to_string().parse::<PermissionMode>().unwrap(), *mode);
            assert_eq!(serde_json::to_value(mode).unwrap(), mode.as_str());
        }
        for name in ["read-only", "read_only"] {
            let mode: PermissionMode = serde_json::from_value(name.into()).unwrap();
            assert_eq!(mode, PermissionMode::ReadOnly);
        }
        let delivery: McpDelivery = "user_config".parse().unwrap();
        assert_eq!(delivery.to_string(), "user-config");
    }

    #[test]
    fn a_name_that_is_none_lists_those_that_are() {
        let error = "readonly".parse::<PermissionMode>().unwrap_err();
        assert_eq!(error.code, ErrorCode::InvalidParams);
        assert_eq!(
            error.message,
            "unknown permission mode `readonly`; available: default, read-only, accept-edits, bypass, plan"
        );
    }
}
