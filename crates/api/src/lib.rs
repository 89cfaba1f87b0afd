#![doc = include_str!("../README.md")]
#![warn(missing_docs)]

pub mod agents;
mod change;
mod check;
mod depth;
mod diff;
mod files;
mod fleet;
mod handle;
pub mod history;
mod image;
mod info;
mod kept;
mod launch;
mod machine;
mod names;
mod path;
mod placement;
mod problem;
mod protocol;
mod provider;
mod query;
mod queue;
mod request;
mod schema;
mod service;
mod settled;
mod spec;
mod status;
mod stdio;
mod title;
pub mod tool_input;
mod trace;
mod trusted;
pub mod usage;
mod view;
mod workspace;

pub use change::Change;
pub use depth::AgentDepth;
pub use diff::{DiffFile, DiffLine, DiffLineKind, DiffQuery, DiffStatus, Hunk, WorkspaceDiff};
pub use files::{
    ARTIFACTS, BUNDLE, FileHasher, FileList, FileManifest, INCLUDED, PART_BYTES, PATCH, RunFile,
    file_name, file_path, is_file_name,
};
pub use fleet::{FleetAgent, FleetHold, FleetQueue, FleetStatus, FleetWorker};
pub use handle::{LogStream, RunHandle};
pub use image::Images;
pub use info::{Grants, RunInfo, RunKind};
pub use kept::{KeptSpec, KeptTexts};
pub use launch::{Launch, Launched};
pub use machine::MachineService;
pub use names::{
    NEW_RUN_ID_RULE, is_new_run_id, is_owned_run_id, is_run_id, is_turn_id, json_name,
    session_key_parts, session_of_turn, with_field_names, with_json_names,
};
pub use placement::Placement;
pub use problem::{Problem, ProblemCode};
pub use protocol::{Command, RefusalCode, Reply};
pub use provider::{ProviderFacts, ProviderList, ProviderLogin, ProviderReport};
pub use query::RunQuery;
pub use queue::{QueueReason, QueueStatus};
pub use request::{Answer, PendingRequest, TypedAnswerError, typed_answer};
pub use schema::SESSION_KEY_PATTERN;
pub use service::{Accepted, RunService, RunnerProcess, ServiceError};
pub use settled::{AppliedChanges, DiscardedChanges};
pub use spec::{RunSpec, SessionSpec, Spec};
pub use status::{LiveState, LiveStatus, TurnStatus};
pub use stdio::StdioGreeting;
pub use teamster_core::{Attempt, LifecycleEntry, LogLine, Next, Outcome, RunEvent, RunLogEntry};
pub use title::{check_title, given_title, has_words, title_of};
pub use trace::TraceContext;
pub use trusted::Trusted;
pub use view::{RunList, RunSummary, RunView, StartedRun, ViewState, list_all};
pub use workspace::{Workspace, Worktree, check_url};

/// Returns whether a field has its default, which is not written.
fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
