//! Long-running agent loop, and the supervisor of many loops.
#![warn(missing_docs)]

mod adapter;
mod agent;
mod agent_loop;
mod agent_run;
mod builder;
mod by_name;
pub mod clock;
mod control;
pub mod dotenv;
mod folder;
mod instructions;
mod left_behind;
mod log;
mod log_reader;
mod machine;
mod prompts;
mod refusal;
mod report;
mod session_file;
mod settings;
pub mod supervisor;
mod tick_log;
mod tick_record;
mod tick_run;
mod tick_usage;

pub use adapter::{Adapter, ColdAdapter, HotAdapter};
pub use agent::{fallback_params, params};
pub use agent_loop::AgentLoop;
pub use agent_run::{AgentRun, agent_directory, agent_run};
pub use builder::{LoopBuilder, LoopError, PreparedLoop};
pub use by_name::loop_agent;
pub use control::Control;
pub use folder::{AgentFolder, Flag, FolderError, ORCHESTRATOR};
pub use log::{Log, LossyWriter};
pub use log_reader::LogReader;
pub use machine::Pace;
pub use prompts::Prompts;
pub use refusal::record_refusal;
pub use settings::{AdapterKind, Settings, SettingsError, TickBudget};
pub use teamster_api::agents::{LoopState, Prompt, SleepFile, TickError, TickRecord, TickResult};
pub use teamster_runner::Runs;
pub use tick_log::TickLogs;
pub use tick_run::TickOptions;
pub use tick_usage::UsageRecord;
