//! The input and the answer of a runner when it is started.

use serde::{Deserialize, Serialize};
use teamster_core::{AgentError, ErrorCode, ErrorKind};

use crate::Spec;

/// Input of a runner.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[non_exhaustive]
pub struct Launch {
    /// Version of this input. A runner refuses one that it does not know.
    pub version: u32,
    /// Id of the run or session.
    pub id: String,
    /// The run or session to start.
    pub what: Spec,
}

/// Answer of a runner.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum Launched {
    /// The runner accepted the run.
    #[non_exhaustive]
    Accepted {
        /// Warnings, such as of options without effect.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        warnings: Vec<String>,
        /// Warnings that a user sees who wants none, such as of a history that is incomplete.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        important: Vec<String>,
    },
    /// Nothing was started.
    #[non_exhaustive]
    Refused {
        /// The reason.
        error: AgentError,
    },
}

impl Launched {
    /// Creates the answer that the run was accepted, with warnings and those that are always shown.
    pub fn accepted(warnings: Vec<String>, important: Vec<String>) -> Self {
        Self::Accepted {
            warnings,
            important,
        }
    }

    /// Creates the answer that nothing was started.
    pub fn refused(error: AgentError) -> Self {
        Self::Refused { error }
    }

    /// Creates the answer of a runner that ended without one. `ended` is how it ended.
    pub fn without_answer(ended: impl std::fmt::Display) -> Self {
        Self::refused(AgentError::new(
            ErrorCode::Io,
            ErrorKind::Internal,
            format!("the runner ended before it accepted the run ({ended}): nothing was started"),
        ))
    }
}

impl Launch {
    /// The version that this crate writes.
    pub const VERSION: u32 = Spec::VERSION;

    /// Creates the input that starts this run or session.
    pub fn new(id: impl Into<String>, what: impl Into<Spec>) -> Self {
        Self {
            version: Self::VERSION,
            id: id.into(),
            what: what.into(),
        }
    }

    /// Reads the input from its JSON.
    ///
    /// # Errors
    ///
    /// Fails if the text is no such input, or of a newer version.
    pub fn parse(text: &str) -> Result<Self, AgentError> {
        #[derive(Deserialize)]
        struct Version {
            version: u32,
        }

        let refused = |problem: String| AgentError::invalid_params(problem);
        // A field of a newer version may be unknown, so the version comes first.
        match serde_json::from_str(text) {
            Ok(Version { version }) if version > Self::VERSION => Err(refused(format!(
                "the launch request has version {version}, this runner knows {}: install the same version of \
                 teamster for both",
                Self::VERSION
            ))),
            _ => serde_json::from_str(text)
                .map_err(|error| refused(format!("the launch request: {error}"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_launch_of_a_newer_version_is_refused_by_its_version() {
        let launch = r#"{"version": 9, "id": "r", "where": "elsewhere"}"#;
        let error = Launch::parse(launch).unwrap_err();
        assert!(error.message.contains("version 9"), "{error}");
    }

    #[test]
    fn an_unknown_field_is_named() {
        let launch = r#"{"version": 1, "id": "r",
            "what": {"run": {"provider": "claude", "prompt": "hi", "workplace": {}}}}"#;
        let error = Launch::parse(launch).unwrap_err();
        assert!(error.message.contains("workplace"), "{error}");
    }
}
