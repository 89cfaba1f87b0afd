//! Drive coding-agent CLIs as subprocesses, with one typed stream of events for all of them.
#![warn(missing_docs)]

use std::sync::Arc;

pub use teamster_core::*;
pub use teamster_process as process;
pub use teamster_process::{EnvPolicy, RuntimeConfig};

#[cfg(feature = "claude")]
pub use teamster_claude as claude;

/// Every provider that this build has.
pub fn providers() -> Vec<Arc<dyn CliProvider>> {
    vec![
        #[cfg(feature = "claude")]
        Arc::new(claude::Claude),
    ]
}

/// The provider of this name, such as `claude`.
pub fn provider(id: &str) -> Option<Arc<dyn CliProvider>> {
    providers().into_iter().find(|p| p.info().id == id)
}
