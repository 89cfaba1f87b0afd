//! The subprocess engine of `teamster`: runs a coding-agent CLI, reads its lines, watches it, and
//! ends it with all that it started.
//!
//! [`CliRuntime`] makes an [`AgentRuntime`](teamster_core::AgentRuntime) of any
//! [`CliProvider`](teamster_core::CliProvider). What a provider brings is how its CLI is launched
//! and how its lines are read; everything below is the same for all of them.
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
//! # What can be relied on
//!
//! **Start.** Nothing happens before the stream is polled; a run that was aborted before is never
//! started. Processes are started one after the other by a thread of their own, so that runs which are read do
//! not wait for those that begin. A missing program, a missing directory, a file that is not executable and an argument
//! that is too large are distinguished, before anything runs. The CLI gets a process group of its own.
//! Its environment is ours (or what [`EnvPolicy`] lets through), then the provider's, then the
//! caller's. No error message holds a prompt, an argument or the value of a variable.
//!
//! **Reading.** Only the byte `\n` ends a line ([`framing`]). A line over
//! [`max_line_bytes`](RuntimeConfig::max_line_bytes) becomes a notice and reading continues. The CLI
//! never waits for the consumer, because some CLIs lose what does not fit in the pipe when they
//! exit: events that were not taken yet are kept in memory, then in an unlinked file, and beyond
//! [`spill_limit_bytes`](RuntimeConfig::spill_limit_bytes) the run ends with
//! [`OutputLimit`](teamster_core::ErrorCode::OutputLimit). Nothing is dropped.
//!
//! **Watching.** Each phase has its limit: until the first line, between lines while the model
//! works, between lines while a tool runs. Set for one run
//! ([`ExecuteParams::timeouts`](teamster_core::ExecuteParams)), it beats the runtime's, which beats
//! the provider's.
//!
//! **Stopping.** Aborting the stream, cancelling the caller's token and dropping the stream all do
//! the same: the provider's own first step, SIGTERM to the whole tree, a grace period in which reading
//! continues, SIGKILL. [`AbortHandle::kill`](teamster_core::AbortHandle::kill) goes to the last step.
//! If the Tokio runtime that drives the run is shut down, SIGKILL is all there is time for.
//!
//! **The end.** The CLI's own word, the exit of its process and the end of its pipes are three
//! things, and none of them is waited for without a limit. After `done` no process of the run is
//! alive, also none that a tool put into a session of its own: the tree is read from `/proc` before
//! the first signal and when the turn ends, and what is left is found by `TEAMSTER_RUN_ID` in its
//! environment. [`keep_background`](teamster_core::ExecuteParams::keep_background) spares those of
//! a run that was not cut short; what they write to its pipes then goes nowhere. Without `/proc`
//! only the process group is ended.
//!
//! **Our own death.** With [`die_with_parent`](RuntimeConfig::die_with_parent) the kernel ends the
//! CLI with us. Otherwise [`leftovers()`] finds it afterwards, [`sweep_leftovers`] ends what one directory's
//! runs have left, and [`Descendants`] what another process has seen.
//!
//! **Files.** Private files of a run, and the private home that some CLIs need for their MCP servers,
//! are in one folder which only this user can enter, and gone at `done`. If we are killed, the next
//! run that has any removes them, or [`sweep_private_files`] does. A configuration file that is
//! changed for the run ([`ConfigPlace::Lease`](teamster_core::provider::ConfigPlace)) is restored when the last
//! process of the run is gone, before `done`; after a kill, by the next run of that CLI, be it one without
//! servers, before it starts.
//!
//! # Tracing
//!
//! With the feature `tracing` a run is a span `run` (`provider`, `pid`) of the target `teamster::process`, with
//! these events. No prompt, argument or variable is in any of them.
//!
//! | Event | Fields |
//! |---|---|
//! | `lease`, `lease released` | `file`; `outcome` |
//! | `started`, `not started` | `program`; `why` |
//! | `first output` | `after` |
//! | `stopping` | `why` |
//! | `signal` | `signal`, `grace` |
//! | `leftovers` | `pids`: what the run had left and is killed |
//! | `ended` | `code` or `signal`, `after` |
//!
//! # Sessions
//!
//! A [`CliRuntime`] of a [`SessionProvider`](teamster_core::SessionProvider) also keeps a CLI for many
//! turns ([`SessionRuntime`](teamster_core::SessionRuntime)). All of the above holds for its process, and
//!
//! - each turn has a stream of its own, with the grammar of any run and one `done`; turns wait for each
//!   other;
//! - the limits of time hold within a turn, and there is none between two, nor while a permission
//!   request waits;
//! - to abort or drop a turn's stream interrupts the turn. If the CLI cannot, or has not obeyed after
//!   [`interrupt_grace`](RuntimeConfig::interrupt_grace), its process is stopped. Otherwise what is left of the
//!   turn's commands gets SIGTERM at its end, and SIGKILL after [`term_grace`](RuntimeConfig::term_grace)
//!   (Linux only);
//! - if the process ends, the turn that it played ends with an error, and the next one starts it again and
//!   resumes the session;
//! - when the session and its streams are dropped, or it is closed, stdin is closed, and a process that
//!   does not end by itself is stopped. What its tools left running in the background ends then, not at the
//!   end of a turn.
//!
//! # Recording
//!
//! With [`record_to`](RuntimeConfig::record_to) a run is written down in a folder, while it runs, as a
//! fixture is: for the report of a bug, or as a new fixture. In it are
//!
//! - `stdout.ndjson`, what came from the pipe that carries the events, and `stderr.txt`, what came from
//!   the other: every byte that was read, as it came;
//! - `record.ndjson`, what the CLI added to its own record of the session, if the decoder asks for that;
//! - `meta.json`, how the CLI was started and how it ended. Values of variables, arguments and settings
//!   that are called like a credential (`…KEY`, `…TOKEN` and so on) or belong to an MCP server are
//!   replaced by `…`, wherever they are repeated in it. `version` is
//!   [`cli_version`](RuntimeConfig::cli_version); a caller that learns it later can fill it in.
//!
//! `cargo xtask replay DIR` in the repository of `teamster` gives the events again, without those of the engine
//! itself: notices about files, and why it stopped the CLI (`stopped` in `meta.json`). The
//! agent's prompt and output are unchanged and may be private, so only this user can read
//! the files.
//!
//! Of an agent that can only be talked to, a run ([`SessionOptions::one_turn`](teamster_core::SessionOptions::one_turn))
//! is recorded if every permission request is denied: a replay denies them too. What is written to it is not
//! recorded; `params` in `meta.json` has what that depends on.
//!
//! Of a session each process is recorded in a folder of its own, `1` and up, below the folder: most sessions have
//! one. Such a recording is for reading, as with a bug report: its events depend on answers that are not in it.
//!
//! A folder that has one of these files is refused before anything starts: nothing is overwritten. A
//! run that is refused for another reason leaves no files, one that the system could not start leaves
//! them with `spawn_error`. If a file cannot be written later, because the disk is full for example, a
//! notice reports it, the rest is not recorded (`incomplete` in `meta.json`), and the run continues.
//!
//! # Where it runs
//!
//! Each run is one task on the Tokio runtime in whose context the stream is first polled; that
//! needs its I/O and time drivers (`enable_all`). Without one, the task goes to a runtime of our
//! own on a thread of its own, and the stream can be polled by any executor. On a runtime with a
//! single thread, a consumer that blocks this thread also stops the reading. Unix only.
#![warn(missing_docs)]

mod config;
#[cfg(feature = "mcp-files")]
mod config_files;
mod driver;
mod engine;
mod files;
mod follow;
pub mod framing;
mod group;
mod guard;
mod identity;
mod inherited;
mod launch;
mod leftovers;
mod live;
#[cfg(not(feature = "mcp-files"))]
mod no_config_files;
mod notice;
mod observe;
mod on_disk;
mod orders;
mod os;
mod pool;
mod program;
mod queue;
mod reading;
mod record;
mod recording;
mod run_folder;
mod runtime;
mod session;
mod spawn;
mod spill;
mod start;
mod stderr_tail;
mod stdin;
mod stop;
mod trace;
mod watchdog;

#[cfg(not(feature = "mcp-files"))]
use no_config_files as config_files;

/// The vocabulary, so that this crate and that of a provider are enough.
pub use teamster_core;

pub use config::{EnvPolicy, RuntimeConfig};
pub use engine::engine;
pub use files::{DRAFT_PREFIX, FileMode, replace_file};
pub use group::ProcessGroup;
pub use identity::{Presence, ProcessIdentity, ProcessSignal, children, process_space};
pub use inherited::InheritedMark;
pub use launch::{leasable_files, run_mark};
pub use leftovers::{Descendants, Leftover, leftovers, sweep_leftovers};
pub use live::live_runs;
pub use observe::{LineObserver, StartObserver, StartedProcess};
pub use pool::{PoolConfig, SessionPool};
pub use program::{find_program, native_program};
pub use run_folder::sweep_private_files;
pub use runtime::CliRuntime;
