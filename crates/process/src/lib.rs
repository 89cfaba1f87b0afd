//! The subprocess engine of `teamster`: runs a coding-agent CLI, reads its output, watches it, and ends it with
//! all of its descendants.
//!
//! [`CliRuntime`] is an [`AgentRuntime`](teamster_core::AgentRuntime) for any
//! [`CliProvider`](teamster_core::CliProvider). A provider contributes the launch and the decoder of its CLI. All
//! guarantees below hold for every provider.
//!
//! ```no_run
//! use teamster_process::teamster_core::{AgentRuntime, CliProvider, ExecuteParams};
//! use teamster_process::{CliRuntime, RuntimeConfig};
//!
//! # async fn example(provider: impl CliProvider) {
//! let config = RuntimeConfig::default().die_with_parent(true);
//! let runtime = CliRuntime::with_config(provider, config);
//! let mut events = runtime.execute(ExecuteParams::new("What is in this directory?"));
//! while let Some(event) = events.next().await {
//!     // …
//! #   drop(event);
//! }
//! # }
//! ```
//!
//! # Guarantees
//!
//! **Start.** Nothing happens before the stream is polled. A run that was aborted before is never started. A
//! dedicated thread starts processes one after another, so that starts do not delay the reading of other runs. A
//! missing program, a missing directory, a file that is not executable and an argument that is too large are
//! reported as different errors, before anything runs. The CLI gets its own process group. Its environment is
//! ours (or the part that [`EnvPolicy`] allows), overridden by the provider's, overridden by the caller's. No error
//! message contains a prompt, an argument or the value of a variable.
//!
//! **Reading.** Only the byte `\n` ends a line ([`framing`]). A line over
//! [`max_line_bytes`](RuntimeConfig::max_line_bytes) becomes a notice and reading continues. The CLI never waits
//! for the consumer, because some CLIs lose output that does not fit in the pipe when they exit. Pending events are
//! kept in memory, then in an unlinked file. Beyond [`spill_limit_bytes`](RuntimeConfig::spill_limit_bytes) the
//! run ends with [`OutputLimit`](teamster_core::ErrorCode::OutputLimit). Nothing is dropped.
//!
//! **Watching.** Each phase has its time limit: until the first line, between lines while the model works, between
//! lines while a tool runs. A limit of the run
//! ([`ExecuteParams::timeouts`](teamster_core::ExecuteParams)) overrides the runtime's, which overrides the
//! provider's.
//!
//! **Stopping.** Aborting the stream, cancelling the caller's token and dropping the stream have the same effect:
//! the provider's own first step, SIGTERM to the whole tree, a grace period in which reading continues, SIGKILL.
//! [`AbortHandle::kill`](teamster_core::AbortHandle::kill) skips to the last step. If the Tokio runtime that drives
//! the run is shut down, the processes get SIGKILL at once.
//!
//! **The end.** The end that the CLI reports, the exit of its process and the end of its pipes are separate events.
//! None of them is awaited without a limit. After `done` no process of the run is alive, not even one that a tool
//! put into its own session. For this the process tree is read from `/proc` before the first signal and at the end
//! of the turn, and remaining processes are found by `TEAMSTER_RUN_ID` in their environment.
//! [`keep_background`](teamster_core::ExecuteParams::keep_background) keeps background processes, unless the run
//! was cut short. Their further output to the run's pipes is discarded. Without `/proc` only the process group is
//! ended.
//!
//! **Death of the owner.** With [`die_with_parent`](RuntimeConfig::die_with_parent) the kernel ends the CLI with this
//! process. Otherwise [`leftovers()`] finds it afterwards, [`sweep_leftovers`] ends the leftovers of runs in one
//! directory, and [`Descendants`] those that another process has recorded.
//!
//! **Files.** Private files of a run, and the private home that some CLIs need for their MCP servers, are in one
//! folder that only this user can enter. It is removed before `done`. If this process is killed, the next run with
//! private files removes it, or [`sweep_private_files`] does. A configuration file that is leased for the run
//! ([`ConfigLocation::Lease`](teamster_core::provider::ConfigLocation)) is restored after the end of the run's last
//! process and before `done`. After a kill, the next run of that CLI restores it before it starts, even a run
//! without servers.
//!
//! # Containers
//!
//! With [`container`](RuntimeConfig::container) the CLI runs in a container of its image, by the client of Docker or Podman,
//! which is the child process:
//!
//! - Before anything starts, the engine must answer, and a missing image is pulled. No time limit counts meanwhile; an
//!   abort ends it. The observer ([`LineObserver`]) is shown the progress.
//! - The working directory, the git work tree around it with its repository, further directories, skills, images and the
//!   private files of the run are mounted at their own paths, with the same user. Unless the run or the image sets `HOME`,
//!   it is an empty folder that is removed at the end.
//! - The CLI gets the variables of the provider and the caller, and none of this process. Their values are in the
//!   environment of the client, not in its arguments, except `HOME`, `PATH`, `TMPDIR` and other paths that the client
//!   itself uses.
//! - Signals reach the CLI through the client. At the end the container is removed by its name, before `done`. If this
//!   process is killed, the next run with private files removes it, or [`sweep_private_files`] does.
//! - MCP servers that are commands are started in the container. One on loopback is refused, and so are servers for a CLI
//!   that reads them from the user's files, sessions without a mount that keeps them, and background processes.
//!
//! # Tracing
//!
//! With the feature `tracing` a run is a span `run` (`provider`, `pid`) of the target `teamster::process` with these
//! events. They contain no prompt, argument or variable.
//!
//! | Event | Fields |
//! |---|---|
//! | `lease`, `lease released` | `file`; `outcome` |
//! | `started`, `not started` | `program`; `why` |
//! | `first output` | `after` |
//! | `stopping` | `why` |
//! | `signal` | `signal`, `grace` |
//! | `leftovers` | `pids`: processes that the run left and that are killed |
//! | `ended` | `code` or `signal`, `after` |
//!
//! # Sessions
//!
//! A [`CliRuntime`] of a [`SessionProvider`](teamster_core::SessionProvider) also supports live sessions
//! ([`SessionRuntime`](teamster_core::SessionRuntime)). All of the above holds for their processes. In addition:
//!
//! - Each turn has its own stream, with the grammar of any run and one `done`. Turns wait for each other.
//! - Time limits apply within a turn, but not between turns and not while a permission request waits.
//! - Aborting or dropping a turn's stream interrupts the turn. If the CLI does not support that, or does not react
//!   within [`interrupt_grace`](RuntimeConfig::interrupt_grace), its process is stopped. Otherwise the remaining
//!   processes of the turn's commands get SIGTERM at its end, and SIGKILL after
//!   [`term_grace`](RuntimeConfig::term_grace) (Linux only).
//! - If the process ends, the turn in progress ends with an error, and the next one starts the process again and
//!   resumes the session.
//! - When the session and its streams are dropped, or it is closed, stdin is closed, and a process that does not end
//!   by itself is stopped. Background processes of its tools are ended then, not at the end of a turn.
//!
//! # Recording
//!
//! With [`record_to`](RuntimeConfig::record_to) a run is recorded in a folder while it runs, in the format of
//! fixtures: for a bug report, or as a new fixture. The files are:
//!
//! - `stdout.ndjson`, the output of the pipe that carries the events, and `stderr.txt`, that of the other one: every
//!   byte that was read, unchanged;
//! - `record.ndjson`, the lines that the CLI added to its own record of the session, if the decoder requests them;
//! - `meta.json`, the launch and the end of the CLI. Values of variables, arguments and settings that are named like
//!   a credential (`…KEY`, `…TOKEN` and so on) or belong to an MCP server are replaced by `…`, wherever they are
//!   repeated in it. `version` is [`cli_version`](RuntimeConfig::cli_version). A caller that learns it later can
//!   fill it in.
//!
//! `cargo xtask replay DIR` in the repository of `teamster` replays the events, except those of the engine itself:
//! notices about files, and the reason for stopping the CLI (`stopped` in `meta.json`). The agent's prompt and output
//! are unchanged and may be private, so only this user can read the files.
//!
//! A run of an agent that supports sessions only
//! ([`SessionOptions::one_turn`](teamster_core::SessionOptions::one_turn)) is recorded if every permission request
//! is denied: a replay denies them too. The input of the CLI is not recorded. `params` in `meta.json` has the
//! parameters that it depends on.
//!
//! Each process of a session is recorded in its own folder, `1` and up, in the given folder. Most sessions have one
//! process. Such a recording is for reading, as in a bug report: its events depend on answers that are not in it.
//! With [`RecordTo::Each`] each process of a runtime has its own folder, also those of runs.
//!
//! A folder that has one of these files is refused before anything starts: nothing is overwritten. A run that is
//! refused for another reason leaves no files. A run whose process the system could not start leaves them with
//! `spawn_error`. If a file cannot be written later, for example because the disk is full, a notice reports it, the
//! rest is not recorded (`incomplete` in `meta.json`), and the run continues.
//!
//! # Tokio runtimes
//!
//! Each run is one task on the Tokio runtime in whose context the stream is first polled. That runtime MUST have its
//! I/O and time drivers enabled (`enable_all`). Without a Tokio runtime, the task runs on one of this crate's own, on
//! its own thread, and any executor can poll the stream. On a single-threaded runtime, a consumer that blocks the
//! thread also stops the reading.
#![warn(missing_docs)]

mod clock;
mod config;
#[cfg(feature = "mcp-files")]
mod config_files;
mod container;
mod driver;
mod early_failure;
mod engine;
mod files;
mod follow;
pub mod framing;
mod git_env;
mod group;
mod guard;
mod identity;
mod images;
mod inherited;
mod last_output;
mod launch;
mod leftovers;
mod live;
#[cfg(not(feature = "mcp-files"))]
mod no_config_files;
mod node;
mod notice;
mod observe;
mod on_disk;
mod one_turn;
mod os;
mod pool;
mod program;
mod queue;
mod reading;
mod record;
mod recording;
mod reset_time;
mod run_folder;
mod run_id;
mod runtime;
mod session;
mod spawn;
mod spill;
mod start;
mod stderr_tail;
mod stdin;
mod stop;
mod stop_signals;
mod trace;
mod watchdog;

#[cfg(not(feature = "mcp-files"))]
use no_config_files as config_files;

/// The core types, so that users of a provider need only this crate and that of the provider.
pub use teamster_core;

pub use config::{EnvPolicy, RecordTo, RuntimeConfig};
pub use container::container_engine;
pub use engine::engine;
pub use files::{
    DRAFT_PREFIX, FileMode, create_file, make_private_folder, open_regular_file,
    open_unlinked_file, replace_file,
};
pub use git_env::{foreign_git_variables, is_repository};
pub use group::ProcessGroup;
pub use identity::{Presence, ProcessIdentity, ProcessSignal, children, process_space};
pub use images::load_images;
pub use inherited::InheritedMark;
pub use launch::{leasable_files, with_advice};
pub use leftovers::{Descendants, Leftover, leftovers, sweep_leftovers};
pub use live::live_runs;
pub use node::{NodePackage, node_package, node_problem};
pub use observe::{LineObserver, StartObserver, StartedProcess};
pub use one_turn::OneTurn;
pub use pool::{PoolConfig, SessionPool};
pub use program::{SHIM_GUARDS, find_cli, find_program, native_program, on_path, shim_manager};
pub use reset_time::limit_reset_ms;
pub use run_folder::sweep_private_files;
pub use run_id::run_mark;
pub use runtime::CliRuntime;
