#![doc = include_str!("../README.md")]
#![warn(missing_docs)]

mod account_sessions;
mod accounts;
mod artifacts;
mod changed_files;
mod cli_commands;
mod closing;
mod depth;
mod environment;
mod guard;
mod history;
mod host;
mod init;
mod leftovers;
pub mod limits;
mod login;
mod machine;
mod mcp_servers;
mod memory;
mod observers;
mod offers;
mod orphans;
mod output;
mod own_agents;
pub mod params;
mod prepare;
mod recording;
mod request;
mod request_policy;
mod run_log;
mod runner;
mod service;
mod setup;
mod shared_holds;
pub mod signals;
mod start;
pub mod state;
mod store;
pub mod text;
pub mod threads;
mod turns;
mod uploads;
pub mod usage;
pub mod value;
mod warning;

pub use accounts::Account;
pub use changed_files::{ChangedFile, changed_files, config_files};
pub use cli_commands::cli_commands;
pub use depth::agent_depth;
pub use environment::{REMOTE_TOKEN_VARIABLE, STORE_VARIABLE, program_variable};
pub use guard::Guard;
pub use history::KeptHistory;
pub use host::{Host, Notice};
pub use init::{Role, init};
pub use leftovers::{
    EngineReport, LeftoverReport, MachineState, examine_engines, kill_leftovers, machine_state,
};
pub use login::login_mark;
pub use machine::{
    LocalMachine, control_loops, examine_agents, find_program, local_zone, log_out, start_agents,
};
pub use mcp_servers::{ListedServer, NotFor, ServerList, list_servers};
pub use orphans::{adopt as adopt_orphans, end as end_orphans};
pub use output::{Output, structured_answer, write as write_output};
pub(crate) use prepare::missing_program;
pub use prepare::{
    Answers, Common, HostedLoop, LoopOptions, PreparedRun, PreparedSession, RunOptions,
    SessionRunOptions,
};
pub use recording::Recording;
pub use run_log::HostedRun;
pub use service::{AttachedRun, LocalRuns, SessionTasks, workspace_of};
pub use setup::trust;
pub use shared_holds::is_token_ending;
pub use store::{close as close_store, location as store_location};
pub use teamster_workspace::{
    Finished, PROJECT_FILE, Project, Trust, UnknownCommit, Worktree, common_dir, is_url, resolve,
};
pub(crate) use text::error_chain;
pub use warning::Warning;
