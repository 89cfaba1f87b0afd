//! The agents of a machine.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use teamster_core::Capabilities;

/// The agents of a machine.
#[derive(Debug, Clone, Serialize, Deserialize, schemars::JsonSchema)]
#[non_exhaustive]
pub struct ProviderList {
    /// The version of teamster on the machine; absent if that is too old to report it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// One report for each agent.
    pub providers: Vec<ProviderReport>,
}

impl ProviderList {
    /// Creates the list of a machine with this version of teamster.
    pub fn new(providers: Vec<ProviderReport>) -> Self {
        Self {
            version: Some(env!("CARGO_PKG_VERSION").to_owned()),
            providers,
        }
    }
}

/// An agent of a machine and its capabilities.
#[derive(Debug, Clone, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ProviderReport {
    /// The report of `teamster doctor`.
    #[serde(flatten)]
    pub facts: ProviderFacts,
    /// The machine of a fleet that has the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<String>,
    /// The agent can be used in sessions.
    pub sessions: bool,
    /// The turns of a session take images. Some CLIs take none with a run.
    #[serde(default)]
    pub session_images: bool,
    /// The agent's capabilities.
    pub capabilities: Capabilities,
}

impl ProviderReport {
    /// Creates the report of an agent without sessions.
    pub fn new(facts: ProviderFacts, capabilities: Capabilities) -> Self {
        Self {
            facts,
            machine: None,
            sessions: false,
            session_images: false,
            capabilities,
        }
    }
}

/// The report of `teamster doctor --json` about an agent.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ProviderFacts {
    /// The agent's id, such as `claude`.
    pub id: String,
    /// The CLI's own name.
    pub name: String,
    /// The agent can be used: its program reported a version, or `versionFrom` has it, or, without a program, a key for a
    /// model service exists.
    pub usable: bool,
    /// The agent has no program and runs in the process of the run.
    pub in_process: bool,
    /// The path of the program.
    #[serde(serialize_with = "crate::path::optional_shown")]
    #[schemars(with = "Option<String>")]
    pub path: Option<PathBuf>,
    /// The path of the program that a run starts, if it differs from `path`.
    #[serde(serialize_with = "crate::path::optional_shown")]
    #[schemars(with = "Option<String>")]
    pub resolved_path: Option<PathBuf>,
    /// The version that the program reports.
    pub version: Option<String>,
    /// The `package.json` that has the version of a program that was not started.
    #[serde(serialize_with = "crate::path::optional_shown")]
    #[schemars(with = "Option<String>")]
    pub version_from: Option<PathBuf>,
    /// The decoder is tested with recordings of this version.
    pub tested: bool,
    /// The versions whose recordings the decoder is tested with.
    pub tested_versions: Vec<String>,
    /// The oldest supported version.
    pub oldest_version: Option<String>,
    /// The version is older than `oldestVersion`.
    pub too_old: bool,
    /// The reason why the agent cannot be used.
    pub problem: Option<String>,
    /// The program was found where its installer puts it, in a folder that is not on `PATH`.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub outside_path: bool,
    /// The program needs another Node.js, so installing it again would not help.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub needs_node: bool,
    /// The command that installs it.
    pub install: String,
    /// The login state.
    pub login: ProviderLogin,
    /// How a user logs in, in the imperative, such as "log in with `claude`". Empty if there is nothing to do.
    #[serde(default)]
    pub how_to_log_in: String,
}

/// The login state of an agent, from its files and the environment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[non_exhaustive]
pub struct ProviderLogin {
    /// `yes`, `no`, or `unknown` where it cannot be seen, as in a keychain.
    pub state: String,
    /// The variable or file that shows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// The time at which the token of the file ends, in milliseconds since the Unix epoch. The CLI renews it.
    #[serde(rename = "expiresAt", default, skip_serializing_if = "Option::is_none")]
    pub expires_at_ms: Option<u64>,
}
