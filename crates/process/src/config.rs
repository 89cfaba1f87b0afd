//! Configuration of a runtime.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;
use teamster_core::{Container, Timeouts};

use crate::observe::{LineObserver, StartObserver};

/// Configuration of a runtime, which applies to all of its runs.
///
/// `program`, the time limits and graces are about one CLI; the environment, the limits of memory and `spill_dir` about
/// the machine; `record_to`, `observer` and `on_start` about what its runs show.
///
/// ```
/// use teamster_process::RuntimeConfig;
///
/// let config = RuntimeConfig::default().program("claude").die_with_parent(true);
/// assert!(config.die_with_parent);
/// ```
#[derive(Debug, Clone, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
#[non_exhaustive]
pub struct RuntimeConfig {
    /// The CLI's program. Default: the provider's name for it, searched on `PATH`.
    pub program: Option<PathBuf>,
    /// The container in which the CLI runs: see [Containers](crate#containers). Its program is then searched there, and it
    /// inherits no variables of this process. Default: none.
    pub container: Option<Container>,
    /// Policy for the variables that the CLI inherits from this process.
    pub env_policy: EnvPolicy,
    /// Variables that the CLI does not inherit from this process, such as secrets. Does not affect variables that a run
    /// sets or that [`EnvPolicy::Clean`] names.
    pub env_remove: Vec<String>,
    /// Time limits. They override the provider's; those of a run override them.
    pub timeouts: Timeouts,
    /// Limit of the length of a line, in bytes. A longer line becomes a notice. Default: 64 MiB.
    pub max_line_bytes: usize,
    /// Limit of pending events in memory, in bytes. Default: 8 MiB.
    pub queue_memory_bytes: usize,
    /// Limit of further pending events in a temporary file, in bytes. Beyond it the run ends with an error. Default:
    /// 4 GiB.
    pub spill_limit_bytes: u64,
    /// Directory of that file, which is unlinked at once. Default: the system's directory for temporary files. If that
    /// is in memory, set one on disk.
    pub spill_dir: Option<PathBuf>,
    /// Limit of the kept end of stderr, in bytes. Default: 64 KiB.
    pub stderr_tail_bytes: usize,
    /// Time between the first signal and SIGKILL. Default: 1.5 s. Some CLIs get a SIGINT first, and SIGTERM after 1 s; then
    /// at least 500 ms are left for that.
    #[serde(with = "humantime_serde")]
    pub term_grace: Duration,
    /// Time that a process may live after the end of its turn or of its output. If the provider's own limit is shorter,
    /// that one applies. Default: the provider's, or else 3 s.
    #[serde(with = "humantime_serde")]
    pub exit_grace: Option<Duration>,
    /// Time that an interrupted turn of a session may continue before its process is ended. Default: 10 s. At most 2 s
    /// while the CLI runs no tool.
    #[serde(with = "humantime_serde")]
    pub interrupt_grace: Duration,
    /// Time that the pipes may be silent after the end of the process, if one of its children holds them open. Default:
    /// 500 ms.
    #[serde(with = "humantime_serde")]
    pub drain_grace: Duration,
    /// Ends the CLI with SIGKILL when this process dies, even if it is killed. Linux only; no effect elsewhere.
    /// Default: off, because it slows the start down in a large process. Processes that the CLI itself started are
    /// not ended; see [`leftovers`](crate::leftovers()).
    pub die_with_parent: bool,
    /// Live access to a CLI's non-event output (usually stderr). Default: none; the result of a run has the end of it.
    #[serde(skip)]
    pub observer: Option<LineObserver>,
    /// A callback for each started process. Default: none.
    #[serde(skip)]
    pub on_start: Option<StartObserver>,
    /// A folder for recordings: see [Recording](crate#recording). It is created if it is missing. Default: no recording.
    pub record_to: Option<RecordTo>,
    /// The CLI's version, if known, for recordings. The engine does not query it.
    pub cli_version: Option<String>,
}

teamster_core::setters! {
    RuntimeConfig {
        some_into program: PathBuf,
        some container: Container,
        set env_policy: EnvPolicy,
        set timeouts: Timeouts,
        set max_line_bytes: usize,
        set queue_memory_bytes: usize,
        set spill_limit_bytes: u64,
        some_into spill_dir: PathBuf,
        set stderr_tail_bytes: usize,
        set term_grace: Duration,
        some exit_grace: Duration,
        set interrupt_grace: Duration,
        set drain_grace: Duration,
        set die_with_parent: bool,
        some observer: LineObserver,
        some on_start: StartObserver,
        some_into record_to: RecordTo,
        some_into cli_version: String,
    }
}

impl Default for RuntimeConfig {
    fn default() -> Self {
        Self {
            program: None,
            container: None,
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
    /// Default of [`exit_grace`](Self::exit_grace) for a CLI whose provider sets none.
    pub const EXIT_GRACE: Duration = Duration::from_secs(3);

    /// Adds a variable that the CLI does not inherit from this process.
    #[must_use]
    pub fn env_remove(mut self, name: impl Into<String>) -> Self {
        self.env_remove.push(name.into());
        self
    }
}

/// A folder for recordings.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum RecordTo {
    /// The folder of one recording. A folder that has one is refused, so the runtime is for one run.
    Run(PathBuf),
    /// The folder in which each process gets its own, named by the next free number from 1, so the runtime is for any
    /// number of runs.
    Each(PathBuf),
}

/// The folder of one recording.
impl From<PathBuf> for RecordTo {
    fn from(folder: PathBuf) -> Self {
        Self::Run(folder)
    }
}

/// The folder of one recording.
impl From<&Path> for RecordTo {
    fn from(folder: &Path) -> Self {
        Self::Run(folder.to_owned())
    }
}

/// Policy for the variables that a CLI inherits from this process.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum EnvPolicy {
    /// All, except the marks of an enclosing agent session and the variables that bind git to another repository than
    /// that of the working directory ([`foreign_git_variables`](crate::foreign_git_variables)).
    #[default]
    Inherit,
    /// Only the named ones. `PATH` is not included unless named.
    Clean {
        /// Names of the inherited variables.
        allow: Vec<String>,
    },
}
