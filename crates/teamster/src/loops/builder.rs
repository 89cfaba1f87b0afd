//! A loop from the files and variables of its agent.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use teamster_core::{AgentError, CliInfo};
use teamster_loop::clock::SystemClock;
use teamster_loop::supervisor::AgentConfig;
use teamster_loop::{
    AdapterKind, AgentFolder, AgentLoop, Control, FolderError, Log, Prompts, Runs, Settings,
    SettingsError, TickLogs, TickOptions, dotenv,
};
use teamster_process::RuntimeConfig;
use teamster_runner::{OneWriter, Retention, SessionLocks};
use teamster_usage::prices::{PriceFileError, PriceList};
use teamster_usage::{Places, TickMeter};

use crate::Providers;

/// How long an agent that is kept may take to end by itself.
const EXIT_GRACE: Duration = Duration::from_secs(30);
/// So much of what the agent prints may wait, in bytes. The loop is never slow on purpose: an agent for which that
/// is not enough prints without end.
const WAITING_OUTPUT: u64 = 64 << 20;
/// How long the agent's files may take to be read before anything starts.
const READING: Duration = Duration::from_secs(10);

/// What gives the value of a variable of the environment.
type Environment = Arc<dyn Fn(&str) -> Option<OsString> + Send + Sync>;

/// A loop in the directory of an agent, as its `.env`, its other files and the environment set it: what
/// `teamster loop` runs.
///
/// ```no_run
/// use teamster::LoopBuilder;
/// use teamster::agent_loop::supervisor::Config;
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
    /// Variables that go before those of the environment.
    variables: BTreeMap<String, String>,
    control: Control,
    ticks: Option<u64>,
    copy: Option<Box<dyn Write + Send>>,
    runs: Option<Runs>,
    retention: Option<Retention>,
    locks: Option<SessionLocks>,
    options: TickOptions,
}

/// A loop that nothing has started yet.
#[non_exhaustive]
pub struct PreparedLoop {
    /// The loop.
    pub agent_loop: AgentLoop,
    /// Its log.
    pub log: Log,
    /// What asks it for a tick, or for its end.
    pub control: Control,
    /// The agent's directory, absolute and without links.
    pub directory: PathBuf,
}

/// Why a loop cannot begin.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoopError {
    /// The directory cannot be used, or another loop runs there.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// A variable has a value that cannot be.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// The file of prices cannot be used.
    #[error("the file of prices cannot be used")]
    Prices(#[from] PriceFileError),
    /// The agent cannot be run so.
    #[error("{}", .0.message)]
    Agent(AgentError),
    /// A file of the agent cannot be used.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The agent's files cannot be read in time.
    #[error("the files in {} could not be read within {seconds} s; is one of them a pipe?", directory.display())]
    Slow {
        /// The directory.
        directory: PathBuf,
        /// How long they had.
        seconds: u64,
    },
    /// It was asked to end before it had begun.
    #[error("the loop was asked to end")]
    Stopped,
}

impl LoopBuilder {
    /// A loop in this directory, with the CLIs of this build and the environment of this process.
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

    /// The loop of an agent of a configuration file, as a supervisor would start it.
    pub fn of_agent(agent: &AgentConfig) -> Self {
        let mut builder = Self::new(&agent.working_dir);
        for (name, value) in agent.environment() {
            builder.variables.insert(name.to_owned(), value);
        }
        builder
    }

    /// Takes the agent from these providers.
    pub fn providers(mut self, providers: Providers) -> Self {
        self.providers = providers;
        self
    }

    /// Starts the agent with this configuration, as far as its settings do not say otherwise.
    pub fn runtime_config(mut self, config: RuntimeConfig) -> Self {
        self.config = config;
        self
    }

    /// Reads variables here, and not in the environment of this process.
    pub fn environment(
        mut self,
        variable: impl Fn(&str) -> Option<OsString> + Send + Sync + 'static,
    ) -> Self {
        self.environment = Arc::new(variable);
        self
    }

    /// Sets a variable, which goes before that of the environment.
    pub fn variable(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.variables.insert(name.into(), value.into());
        self
    }

    /// Ends after so many ticks.
    pub fn ticks_limit(mut self, ticks: Option<u64>) -> Self {
        self.ticks = ticks;
        self
    }

    /// Listens to this control.
    pub fn control(mut self, control: Control) -> Self {
        self.control = control;
        self
    }

    /// Copies the log to this writer, as far as it takes it in time.
    pub fn copy_log_to(mut self, copy: impl Write + Send + 'static) -> Self {
        self.copy = Some(Box::new(copy));
        self
    }

    /// Gives each tick a log among these runs. How many are kept the agent's settings say.
    pub fn runs(mut self, runs: Runs) -> Self {
        self.runs = Some(runs);
        self
    }

    /// Keeps the logs of all ended runs so long: what is older or too much is removed before each tick.
    pub fn retention(mut self, retention: Retention) -> Self {
        self.retention = Some(retention);
        self
    }

    /// Locks the sessions that the ticks work with by these locks.
    pub fn session_locks(mut self, locks: SessionLocks) -> Self {
        self.locks = Some(locks);
        self
    }

    /// Runs the ticks so. What the agent's settings say of retries, fallbacks and budgets goes before.
    pub fn tick_options(mut self, options: TickOptions) -> Self {
        self.options = options;
        self
    }

    /// Reads the agent's files and makes the loop, on a thread that may wait: a pipe without a writer
    /// takes 10 s at most. Nothing is started. For a Tokio runtime.
    pub async fn build(self) -> Result<PreparedLoop, LoopError> {
        let control = self.control.clone();
        let directory = self.directory.clone();
        let made = tokio::task::spawn_blocking(move || self.make());
        tokio::select! {
            biased;
            made = made => made.unwrap_or_else(|error| match error.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                // The runtime ends.
                Err(_) => Err(LoopError::Stopped),
            }),
            () = control.stopping() => Err(LoopError::Stopped),
            () = tokio::time::sleep(READING) => Err(LoopError::Slow {
                directory,
                seconds: READING.as_secs(),
            }),
        }
    }

    fn make(self) -> Result<PreparedLoop, LoopError> {
        let Self {
            directory,
            providers,
            config,
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
        let file = dotenv::read(&path).map_err(|source| LoopError::File { path, source })?;
        let own = |name: &str| {
            let set = variables.get(name).map(OsString::from);
            set.or_else(|| environment(name))
        };
        // What is no UTF-8 cannot be any setting, and is reported.
        let text = |name: &str| Some(own(name)?.to_string_lossy().into_owned());
        let agent_of = |name: Option<&str>| {
            let agent = providers.loop_agent(name);
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
        let (params, _) = teamster_loop::params(&settings, &folder, &file)?;
        let mut options = options.with_settings(&settings);
        for name in &settings.fallback {
            let mut config = config.clone();
            config.spill_limit_bytes = WAITING_OUTPUT;
            config.observer = Some(settings.stderr_to(&log));
            let agent = name.split(':').next().unwrap_or_default();
            if let Ok(info) = providers.loop_agent(Some(agent)) {
                config.program = program(info, &own, &file);
            }
            let candidate = providers.loop_fallback(name, &folder, &file, config);
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
        let adapter = providers
            .loop_adapter(&settings, params, config)
            .map_err(LoopError::Agent)?;
        options.check(&settings, &*adapter).map_err(|mut error| {
            error.message = settings.explain(&error);
            LoopError::Agent(error)
        })?;
        let of_file_first = |name: &str| match file.get(name) {
            Some(value) => Some(value.into()),
            None => own(name),
        };
        let meter = settings.agent.id.parse().ok();
        let meter =
            meter.map(|provider| TickMeter::new(provider, Places::from_variables(of_file_first)));
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

impl fmt::Debug for LoopBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LoopBuilder")
            .field("directory", &self.directory)
            .finish_non_exhaustive()
    }
}

/// How the agent's process is started.
fn runtime_config(
    mut config: RuntimeConfig,
    settings: &Settings,
    variable: &dyn Fn(&str) -> Option<OsString>,
    file: &BTreeMap<String, String>,
    log: &Log,
) -> RuntimeConfig {
    config.spill_limit_bytes = WAITING_OUTPUT;
    config.program = program(settings.agent, variable, file).or(config.program);
    if settings.adapter_kind() == AdapterKind::Hot {
        config.exit_grace = Some(EXIT_GRACE);
    }
    config.observer = Some(settings.stderr_to(log));
    config.on_start = Some(settings.starts_to(log));
    config
}

/// The CLI's program, where a variable of the environment or of the agent's file names it.
fn program(
    info: &CliInfo,
    variable: &dyn Fn(&str) -> Option<OsString>,
    file: &BTreeMap<String, String>,
) -> Option<PathBuf> {
    let name = info.program_variable();
    let set = variable(&name).filter(|value| !value.is_empty());
    let of_file = || file.get(&name).filter(|value| !value.is_empty());
    set.map(PathBuf::from)
        .or_else(|| of_file().map(PathBuf::from))
}
