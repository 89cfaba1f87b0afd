//! Settings of a runtime.

use std::path::PathBuf;
use std::time::Duration;

use derive_setters::Setters;
use serde::Deserialize;
use teamster_core::Timeouts;

use crate::observe::{LineObserver, StartObserver};

/// Settings of a runtime: the same for all its runs.
///
/// ```
/// use teamster_process::RuntimeConfig;
///
/// let config = RuntimeConfig::default().program("claude").die_with_parent(true);
/// assert!(config.die_with_parent);
/// ```
#[derive(Debug, Clone, Deserialize, Setters)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
#[setters(strip_option)]
#[non_exhaustive]
pub struct RuntimeConfig {
    /// The CLI's program. Searched on `PATH` by the provider's name for it if unset.
    #[setters(into)]
    pub program: Option<PathBuf>,
    /// Which variables of our own environment the CLI gets.
    pub env_policy: EnvPolicy,
    /// Variables of our own environment that the CLI does not inherit, such as those that hold a secret of
    /// ours. What a run sets itself, and what [`EnvPolicy::Clean`] names, it gets.
    #[setters(skip)]
    pub env_remove: Vec<String>,
    /// Limits of time, over the provider's and under those of a run.
    pub timeouts: Timeouts,
    /// The longest line that is read, in bytes. A longer one becomes a notice. 64 MiB.
    pub max_line_bytes: usize,
    /// How much of the events that wait for the consumer is kept in memory, in bytes. 8 MiB.
    pub queue_memory_bytes: usize,
    /// How much more may wait in a temporary file, in bytes; beyond it the run ends with an error.
    /// 4 GiB.
    pub spill_limit_bytes: u64,
    /// Where that file is made (and unlinked at once). The system's place for such files if unset;
    /// if that is kept in memory, name one on disk.
    #[setters(into)]
    pub spill_dir: Option<PathBuf>,
    /// How much of the end of stderr is kept, in bytes. 64 KiB.
    pub stderr_tail_bytes: usize,
    /// How long a process may live after SIGTERM before SIGKILL. 1.5 s.
    #[serde(with = "humantime_serde")]
    pub term_grace: Duration,
    /// How long a process may live after the end of its turn or of its output. The
    /// provider's own, if it has one that is shorter. Unset, it is the provider's, or else 3 s.
    #[serde(with = "humantime_serde")]
    pub exit_grace: Option<Duration>,
    /// How long a turn of a session may go on after it was interrupted, before its process is ended. 10 s; at most
    /// 2 s while the CLI runs no tool.
    #[serde(with = "humantime_serde")]
    pub interrupt_grace: Duration,
    /// How long the pipes may stay silent after the process is gone, when one of its children holds
    /// them. 500 ms.
    #[serde(with = "humantime_serde")]
    pub drain_grace: Duration,
    /// End the CLI with SIGKILL when our own process dies, also when that is killed. Linux only;
    /// elsewhere it does nothing. Off: it makes a start slower for a large process. What the CLI
    /// itself has started does not end with it; see [`leftovers`](crate::leftovers()).
    pub die_with_parent: bool,
    /// Live access to a CLI's non-event output (usually stderr). Unset, none: of a run the end of it is
    /// in its result.
    #[serde(skip)]
    pub observer: Option<LineObserver>,
    /// Called with each process that is started. Unset, nothing is.
    #[serde(skip)]
    pub on_start: Option<StartObserver>,
    /// A folder that gets a recording of the run: see [Recording](crate#recording). It is made if it
    /// is missing, and a folder that has a recording is refused, so with this set a runtime is for
    /// one run. Unset, nothing is written.
    #[setters(into)]
    pub record_to: Option<PathBuf>,
    /// The CLI's version, if known, for recordings. The engine does not run the CLI to learn it.
    #[setters(into)]
    pub cli_version: Option<String>,
}

impl Default for RuntimeConfig {
    fn default() -> Self {
        Self {
            program: None,
            env_policy: EnvPolicy::Inherit,
            env_remove: Vec::new(),
            timeouts: Timeouts::default(),
            max_line_bytes: 64 << 20,
            queue_memory_bytes: 8 << 20,
            spill_limit_bytes: 4 << 30,
            spill_dir: None,
            stderr_tail_bytes: 64 << 10,
            term_grace: Duration::from_millis(1500),
            exit_grace: None,
            interrupt_grace: Duration::from_secs(10),
            drain_grace: Duration::from_millis(500),
            die_with_parent: false,
            observer: None,
            on_start: None,
            record_to: None,
            cli_version: None,
        }
    }
}

impl RuntimeConfig {
    /// Adds a variable of our own environment that the CLI does not inherit.
    #[must_use]
    pub fn env_remove(mut self, name: impl Into<String>) -> Self {
        self.env_remove.push(name.into());
        self
    }
}

/// Which variables of our own environment a CLI gets.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum EnvPolicy {
    /// All, less the marks of an enclosing agent session.
    #[default]
    Inherit,
    /// Only those named. `PATH` is not one of them unless named.
    Clean {
        /// Names of the variables that are kept.
        allow: Vec<String>,
    },
}
