//! Builder of a loop from the files and variables of its agent.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use teamster_core::{AgentError, CliInfo};
use teamster_process::RuntimeConfig;
use teamster_providers::Providers;
use teamster_runner::{OneWriter, Retention, SessionLocks};
use teamster_usage::prices::{PriceFileError, PriceList};
use teamster_usage::{Locations, TickMeter};

use crate::by_name::{loop_adapter, loop_agent, loop_fallback};
use crate::clock::SystemClock;
use crate::supervisor::AgentConfig;
use crate::{
    AdapterKind, AgentFolder, AgentLoop, Control, FolderError, Log, Prompts, Runs, Settings,
    SettingsError, TickLogs, TickOptions, dotenv,
};

/// Time that a kept agent process may take to exit.
const EXIT_GRACE: Duration = Duration::from_secs(30);
/// Limit of the agent's unread output, in bytes. The loop reads at once, so only endless output exceeds the
/// limit.
const UNREAD_OUTPUT_LIMIT: u64 = 64 << 20;
/// Time limit for reading the agent's files.
const READ_LIMIT: Duration = Duration::from_secs(10);

/// Function that returns the value of an environment variable.
type Environment = Arc<dyn Fn(&str) -> Option<OsString> + Send + Sync>;

/// Builder of the loop in an agent's directory, configured by its `.env`, its other files and the environment.
/// `teamster loop` runs such a loop.
///
/// ```no_run
/// use teamster_loop::LoopBuilder;
/// use teamster_loop::supervisor::Config;
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let config = Config::read("agents.config.json".as_ref())?;
/// for agent in &config.agents {
///     let prepared = LoopBuilder::of_agent(agent).build().await?;
///     tokio::spawn(prepared.agent_loop.run());
/// }
/// # Ok(())
/// # }
/// ```
#[must_use]
pub struct LoopBuilder {
    directory: PathBuf,
    providers: Providers,
    config: RuntimeConfig,
    environment: Environment,
    /// Variables that override those of the environment.
    variables: BTreeMap<String, String>,
    control: Control,
    ticks: Option<u64>,
    copy: Option<Box<dyn Write + Send>>,
    runs: Option<Runs>,
    retention: Option<Retention>,
    locks: Option<SessionLocks>,
    options: TickOptions,
}

/// Loop that has not been started.
#[must_use = "the loop has not been started"]
#[non_exhaustive]
pub struct PreparedLoop {
    /// The loop.
    pub agent_loop: AgentLoop,
    /// Log of the loop.
    pub log: Log,
    /// Handle that wakes or stops the loop.
    pub control: Control,
    /// The agent's directory, absolute and without links.
    pub directory: PathBuf,
}

/// Error of [`LoopBuilder::build`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoopError {
    /// The directory cannot be used, or another loop runs there.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// A variable has an invalid value.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// The price file cannot be used.
    #[error("the file of prices cannot be used")]
    Prices(#[from] PriceFileError),
    /// The agent does not support the settings.
    #[error("{}", .0.message)]
    Agent(AgentError),
    /// A file of the agent cannot be used.
    #[error("{}: {error}", path.display())]
    File {
        /// Path of the file.
        path: PathBuf,
        /// I/O error.
        error: io::Error,
    },
    /// The agent's files could not be read in time.
    #[error("the files in {} could not be read within {seconds} s; is one of them a pipe?", directory.display())]
    Slow {
        /// The directory.
        directory: PathBuf,
        /// The time limit, in seconds.
        seconds: u64,
    },
    /// The loop was stopped before it had begun.
    #[error("the loop was stopped")]
    Stopped,
}

teamster_core::setters! {
    LoopBuilder {
        /// Sets the providers from which the agent is taken. Default: those of this build.
        set providers: Providers,
        /// Sets the configuration of the agent's process. The agent's settings override it.
        set config as runtime_config: RuntimeConfig,
        /// Ends the loop after this many ticks. Default: no limit.
        set ticks as ticks_limit: Option<u64>,
        /// Sets the handle that wakes or stops the loop. Default: a new one.
        set control: Control,
        /// Writes a log of each tick among these runs. The agent's settings limit their number. Default: no logs.
        some runs: Runs,
        /// Applies this retention to the logs of all ended runs before each tick. Default: none.
        some retention: Retention,
        /// Locks the sessions of the ticks. Default: no locks.
        some locks as session_locks: SessionLocks,
        /// Sets retries, budget, fallbacks and logs of the ticks. The agent's settings override them.
        set options as tick_options: TickOptions,
    }
}

impl LoopBuilder {
    /// Creates a builder for this directory, with the CLIs of this build and the environment of this process.
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        Self {
            directory: directory.into(),
            providers: Providers::builtin(),
            config: RuntimeConfig::default(),
            environment: Arc::new(|name| std::env::var_os(name)),
            variables: BTreeMap::new(),
            control: Control::new(),
            ticks: None,
            copy: None,
            runs: None,
            retention: None,
            locks: None,
            options: TickOptions::default(),
        }
    }

    /// Creates a builder for an agent of a configuration file, as a supervisor would start it.
    pub fn of_agent(agent: &AgentConfig) -> Self {
        let mut builder = Self::new(&agent.working_dir);
        for (name, value) in agent.environment() {
            builder.variables.insert(name.to_owned(), value);
        }
        builder
    }

    /// Sets the source of variables, in place of the environment of this process.
    pub fn environment(
        mut self,
        variable: impl Fn(&str) -> Option<OsString> + Send + Sync + 'static,
    ) -> Self {
        self.environment = Arc::new(variable);
        self
    }

    /// Sets a variable, which overrides that of the environment.
    pub fn variable(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.variables.insert(name.into(), value.into());
        self
    }

    /// Copies the log to this writer. Lines that it does not take in time are dropped.
    pub fn copy_log_to(mut self, copy: impl Write + Send + 'static) -> Self {
        self.copy = Some(Box::new(copy));
        self
    }

    /// Reads the agent's files and creates the loop, on a blocking thread. No agent is started. Needs a Tokio
    /// runtime.
    ///
    /// # Errors
    ///
    /// Fails if the directory, a file or a setting cannot be used, if reading takes longer than 10 s (such as
    /// from a pipe without a writer), or if the loop is stopped meanwhile.
    pub async fn build(self) -> Result<PreparedLoop, LoopError> {
        let control = self.control.clone();
        let directory = self.directory.clone();
        let made = tokio::task::spawn_blocking(move || self.make());
        tokio::select! {
            biased;
            made = made => made.unwrap_or_else(|error| match error.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                // The Tokio runtime is shutting down.
                Err(_) => Err(LoopError::Stopped),
            }),
            () = control.stopping() => Err(LoopError::Stopped),
            () = tokio::time::sleep(READ_LIMIT) => Err(LoopError::Slow {
                directory,
                seconds: READ_LIMIT.as_secs(),
            }),
        }
    }

    fn make(self) -> Result<PreparedLoop, LoopError> {
        let Self {
            directory,
            providers,
            mut config,
            environment,
            variables,
            control,
            ticks,
            copy,
            runs,
            retention,
            locks,
            options,
        } = self;
        let folder = AgentFolder::open(&directory)?;
        let directory = folder.directory().to_owned();
        let path = directory.join(".env");
        let file = dotenv::read(&path).map_err(|error| LoopError::File { path, error })?;
        let own = |name: &str| {
            let set = variables.get(name).map(OsString::from);
            set.or_else(|| environment(name))
        };
        // A value that is not UTF-8 is no valid setting and is reported.
        let text = |name: &str| Some(own(name)?.to_string_lossy().into_owned());
        let agent_of = |name: Option<&str>| {
            let agent = loop_agent(&providers, name);
            agent.map_err(|error| error.message)
        };
        let settings = Settings::read(&text, file.as_ref().unwrap_or(&BTreeMap::new()), &agent_of)?;
        let clock = Arc::new(SystemClock::new());
        let log = Log::new(
            folder.path(Log::NAME),
            settings.log_max_bytes,
            clock.clone(),
        );
        if let Some(copy) = copy {
            log.copy_to(copy);
        }
        settings.report(&directory, file.is_some(), &log);
        let file = file.unwrap_or_default();
        let prompts = Prompts::read(&settings, &directory)?;
        let (params, _) = crate::params(&settings, &folder, &file)?;
        let mut options = options.with_settings(&settings);
        config.spill_limit_bytes = UNREAD_OUTPUT_LIMIT;
        config.observer = Some(settings.stderr_to(&log));
        let config_of = |info: &CliInfo| {
            let mut config = config.clone();
            if config.container.is_none() {
                config.program = program(info, &own, &file);
            }
            config
        };
        for name in &settings.fallback {
            let candidate = loop_fallback(&providers, name, &folder, &file, &config_of);
            let mut candidate = candidate.map_err(LoopError::Agent)?;
            if let Some(locks) = &locks {
                let locks = locks.clone().held_by_agent(&directory);
                candidate.runtime = Arc::new(OneWriter::new(candidate.runtime, locks));
            }
            options.fallbacks.push(candidate);
        }
        if let Some(runs) = runs.filter(|_| settings.tick_logs > 0) {
            let logs = TickLogs::new(runs).keep(settings.tick_logs);
            options.logs = Some(match retention {
                Some(retention) => logs.retention(retention),
                None => logs,
            });
        }
        let config = runtime_config(config, &settings, &own, &file, &log);
        let adapter =
            loop_adapter(&providers, &settings, params, config).map_err(LoopError::Agent)?;
        options.check(&settings, &*adapter).map_err(|mut error| {
            error.message = settings.explain(&error);
            LoopError::Agent(error)
        })?;
        let of_file_first = |name: &str| match file.get(name) {
            Some(value) => Some(value.into()),
            None => own(name),
        };
        let meter = settings.agent.id.parse().ok();
        let meter = meter
            .map(|provider| TickMeter::new(provider, Locations::from_variables(of_file_first)));
        let prices = PriceList::of_user(of_file_first)?;
        let agent_loop = AgentLoop::new(
            folder,
            settings,
            prompts,
            adapter,
            clock,
            control.clone(),
            log.clone(),
        )
        .variables(file)
        .meter(meter)
        .prices(prices)
        .tick_options(options)
        .session_locks(locks)
        .ticks_limit(ticks);
        Ok(PreparedLoop {
            agent_loop,
            log,
            control,
            directory,
        })
    }
}

teamster_core::debug_fields!(LoopBuilder { directory });

/// Returns the configuration of the agent's process.
fn runtime_config(
    mut config: RuntimeConfig,
    settings: &Settings,
    variable: &dyn Fn(&str) -> Option<OsString>,
    file: &BTreeMap<String, String>,
    log: &Log,
) -> RuntimeConfig {
    if config.container.is_none() {
        // It is about this machine.
        config.program = program(settings.agent, variable, file).or(config.program);
    }
    if settings.adapter_kind() == AdapterKind::Hot {
        config.exit_grace = Some(EXIT_GRACE);
    }
    config.on_start = Some(settings.starts_to(log));
    config
}

/// Returns the CLI's program, if a variable of the environment or of the agent's `.env` names it.
fn program(
    info: &CliInfo,
    variable: &dyn Fn(&str) -> Option<OsString>,
    file: &BTreeMap<String, String>,
) -> Option<PathBuf> {
    let of_file = |name: &str| file.get(name).map(OsString::from);
    (info.program_of(variable)).or_else(|| info.program_of(of_file))
}
