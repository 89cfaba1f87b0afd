//! The long-running agent loop, and the supervisor of many.
#![warn(missing_docs)]

pub mod clock;
mod control;
pub mod dotenv;
mod folder;
mod log;
pub mod machine;
mod prompts;
mod settings;
pub mod supervisor;

pub use control::Control;
pub use folder::{AgentFolder, Flag, FolderError, ORCHESTRATOR};
pub use log::Log;
pub use prompts::Prompts;
pub use settings::{AdapterKind, Settings, SettingsError};
