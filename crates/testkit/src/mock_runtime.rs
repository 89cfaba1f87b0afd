//! A runtime without CLIs and processes, for tests of code that runs agents.
//!
//! A [`MockRuntime`] implements [`AgentRuntime`]. The events, duration and end of each run are defined by a
//! [`Script`], and its parameters are [recorded](MockRuntime::runs). A script has only the events. The code
//! that creates `done` and its result for real runs does so here too, so the stream has the grammar of a real
//! one.
//!
//! ```
//! use teamster_core::{AgentRuntime, ExecuteParams, PermissionMode, RunStatus};
//! use teamster_testkit::mock_runtime::{MockRuntime, Script};
//!
//! // Code under test: it retries once if there was no answer, and only allows reads.
//! async fn summary(runtime: &dyn AgentRuntime, of: &str) -> Option<String> {
//!     for _ in 0..2 {
//!         let mut params = ExecuteParams::new(format!("Summarise {of}."));
//!         params.permission = PermissionMode::ReadOnly;
//!         let result = runtime.execute(params).result().await;
//!         if result.status == RunStatus::Completed {
//!             return result.final_message;
//!         }
//!     }
//!     None
//! }
//!
//! # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
//! let mock = MockRuntime::new("claude")
//!     .run(Script::new().text("It is a").incomplete())
//!     .run(Script::new().text("It is a library.").completed());
//!
//! assert_eq!(summary(&mock, "README.md").await.as_deref(), Some("It is a library."));
//! let runs = mock.runs();
//! assert_eq!(runs.len(), 2);
//! assert_eq!(runs[1].params.prompt, "Summarise README.md.");
//! assert_eq!(runs[1].params.permission, PermissionMode::ReadOnly);
//! # });
//! ```
//!
//! # Time
//!
//! Delays use Tokio's clock. With `#[tokio::test(start_paused = true)]` (feature `test-util` of tokio) an
//! hour passes immediately, and the difference of two [`Received::started`] is exactly the pause between the
//! runs. A script without a delay needs no Tokio runtime.
//!
//! A run advances only while its stream is polled, and so do its delays. A real CLI continues without its
//! reader.

mod play;
mod script;
mod sessions;

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

use teamster_core::provider::RunAssembler;
use teamster_core::{
    AbortHandle, AgentError, AgentRuntime, Capabilities, CliInfo, ErrorCode, ErrorKind,
    EventStream, ExecuteParams, McpDelivery, PermissionMode, PermissionPolicy, SystemPromptSupport,
};
use tokio::sync::watch;
use tokio::time::Instant;

use play::{Next, Play};
pub use script::Script;
pub use sessions::MockSessions;

/// Identity of the runtime in errors about parameters.
static INFO: CliInfo = {
    let mut info = CliInfo::new("mock", "the mock runtime", "");
    info.version_args = &[];
    info
};

/// An [`AgentRuntime`] that plays [`Script`]s. See the [module](self).
///
/// - Each run takes the next script when its stream is first polled. A run that is aborted earlier, or whose
///   parameters are refused, takes none.
/// - Parameters that the [capabilities](Self::capabilities_mut) do not cover are refused, as by any provider.
/// - An abort by the stream, its handle or [`ExecuteParams::cancel`] ends the run immediately, even within a
///   delay, with an `ABORTED` error and `done`.
/// - Any number of runs can be active at once. Clones share their scripts and records, so a test can pass a
///   clone to the code under test and query the other.
#[derive(Clone)]
pub struct MockRuntime {
    id: String,
    capabilities: Capabilities,
    state: Arc<watch::Sender<State>>,
}

/// A run that was started.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Received {
    /// The parameters. `cancel` is the caller's own token.
    pub params: ExecuteParams,
    /// Time of the first poll of the stream, on Tokio's clock.
    pub started: Instant,
}

#[derive(Default)]
struct State {
    scripts: VecDeque<Script>,
    after_last: AfterLast,
    last: Option<Script>,
    runs: Vec<Received>,
    active: usize,
    max_active: usize,
}

type ScriptOf = dyn Fn(&ExecuteParams) -> Script + Send + Sync;

/// The script of a run when the queue is empty.
#[derive(Default, Clone)]
enum AfterLast {
    #[default]
    Refuse,
    Repeat,
    Ask(Arc<ScriptOf>),
}

impl MockRuntime {
    /// Creates a runtime with this name and all capabilities, without scripts.
    pub fn new(id: impl Into<String>) -> Self {
        Self {
            id: id.into(),
            capabilities: everything(),
            state: Arc::new(watch::Sender::default()),
        }
    }

    /// Adds a script for one more run.
    #[must_use]
    pub fn run(self, script: Script) -> Self {
        self.add(script);
        self
    }

    /// Adds a script for one more run, even while other runs are active.
    pub fn add(&self, script: Script) {
        self.state
            .send_modify(|state| state.scripts.push_back(script));
    }

    /// Repeats the last script for all further runs. Without this, a run without a script fails with an error
    /// that states the reason.
    #[must_use]
    pub fn repeat_last(self) -> Self {
        self.state
            .send_modify(|state| state.after_last = AfterLast::Repeat);
        self
    }

    /// Sets a function that creates the script of each run for which none is queued, from the run's
    /// parameters. Use it for concurrent runs whose order is unknown.
    ///
    /// ```
    /// # use teamster_testkit::mock_runtime::{MockRuntime, Script};
    /// let mock = MockRuntime::new("codex").run_by(|params| Script::new().text(params.prompt.clone()));
    /// ```
    #[must_use]
    pub fn run_by(self, script: impl Fn(&ExecuteParams) -> Script + Send + Sync + 'static) -> Self {
        let script = Arc::new(script);
        self.state
            .send_modify(|state| state.after_last = AfterLast::Ask(script));
        self
    }

    /// Sets the capabilities.
    #[must_use]
    pub fn supporting(mut self, capabilities: Capabilities) -> Self {
        self.capabilities = capabilities;
        self
    }

    /// Returns the capabilities for changes. Earlier clones keep theirs.
    ///
    /// ```
    /// # use teamster_testkit::mock_runtime::MockRuntime;
    /// let mut mock = MockRuntime::new("gemini");
    /// mock.capabilities_mut().fork = false;
    /// ```
    pub fn capabilities_mut(&mut self) -> &mut Capabilities {
        &mut self.capabilities
    }

    /// Returns the runs that were started so far with their parameters, in the order of their start.
    pub fn runs(&self) -> Vec<Received> {
        self.state.borrow().runs.clone()
    }

    /// Returns the number of queued scripts.
    pub fn scripts_left(&self) -> usize {
        self.state.borrow().scripts.len()
    }

    /// Returns the number of active runs: started, and neither at their `done` nor dropped.
    pub fn active(&self) -> usize {
        self.state.borrow().active
    }

    /// Returns the largest number of runs that were active at once.
    pub fn max_active(&self) -> usize {
        self.state.borrow().max_active
    }

    /// Waits until this many runs were started, including those that have ended.
    pub async fn wait_for_runs(&self, count: usize) {
        self.wait_until(|state| state.runs.len() >= count).await;
    }

    /// Waits until no run is active.
    pub async fn wait_until_idle(&self) {
        self.wait_until(|state| state.active == 0).await;
    }

    async fn wait_until(&self, so: impl FnMut(&State) -> bool) {
        // This fails only if the sender is dropped, and `self` holds it.
        let _ = self.state.subscribe().wait_for(so).await;
    }

    /// Starts a run. Returns its script, and the guard that keeps it active.
    fn begin(
        &self,
        params: &ExecuteParams,
        abort: &AbortHandle,
    ) -> Result<(Script, ActiveRun), AgentError> {
        if abort.is_aborted() {
            return Err(RunAssembler::aborted_error());
        }
        params.check(&INFO, &self.capabilities)?;
        let mut taken = Err(AfterLast::Refuse);
        let mut number = 0;
        self.state.send_modify(|state| {
            taken = state.take();
            state.runs.push(Received {
                params: params.clone(),
                started: Instant::now(),
            });
            number = state.runs.len();
            state.active += 1;
            state.max_active = state.max_active.max(state.active);
        });
        let going_on = ActiveRun(self.state.clone());
        match taken {
            Ok(script) => Ok((script, going_on)),
            // Called without the lock on the state, because the function may query this runtime.
            Err(AfterLast::Ask(script)) => Ok((script(params), going_on)),
            Err(AfterLast::Refuse | AfterLast::Repeat) => Err(AgentError::new(
                ErrorCode::Io,
                ErrorKind::Internal,
                format!(
                    "the mock runtime {:?} has no script for its run number {number}; add one with \
                     `run`, or use `repeat_last` or `run_by`",
                    self.id
                ),
            )),
        }
    }
}

impl State {
    /// Returns the script of the next run, or the alternative to one.
    fn take(&mut self) -> Result<Script, AfterLast> {
        if let Some(script) = self.scripts.pop_front() {
            self.last = Some(script.clone());
            return Ok(script);
        }
        match (&self.after_last, &self.last) {
            (AfterLast::Repeat, Some(script)) => Ok(script.clone()),
            (after_last, _) => Err(after_last.clone()),
        }
    }
}

impl AgentRuntime for MockRuntime {
    fn id(&self) -> &str {
        &self.id
    }

    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn execute(&self, params: ExecuteParams) -> EventStream {
        let policy = params.permissions.clone().unwrap_or_default();
        self.play(params, policy)
    }
}

impl MockRuntime {
    /// Plays the next script. The policy answers its permission requests.
    fn play(&self, params: ExecuteParams, policy: PermissionPolicy) -> EventStream {
        let abort = AbortHandle::new(&params.cancel);
        let order = abort.clone();
        let mock = self.clone();
        let events = async_stream::stream! {
            let (script, going_on) = match mock.begin(&params, &order) {
                Ok(begun) => begun,
                Err(error) => {
                    for event in RunAssembler::refuse(error) {
                        yield event.into();
                    }
                    return;
                }
            };
            let mut play = Play::new(script, params.include_native, policy);
            loop {
                match play.next(&order).await {
                    Next::Events(events) => {
                        for event in events {
                            yield event;
                        }
                    }
                    Next::End(events) => {
                        // As with a process, a caller that has read `done` can rely on the end of the run.
                        drop(going_on);
                        for event in events {
                            yield event;
                        }
                        return;
                    }
                }
            }
        };
        EventStream::new(events, abort)
    }
}

impl fmt::Debug for MockRuntime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.state.borrow();
        f.debug_struct("MockRuntime")
            .field("id", &self.id)
            .field("scripts", &state.scripts.len())
            .field("runs", &state.runs.len())
            .field("active", &state.active)
            .finish_non_exhaustive()
    }
}

/// Guard that keeps a run active.
struct ActiveRun(Arc<watch::Sender<State>>);

impl Drop for ActiveRun {
    fn drop(&mut self) {
        self.0.send_modify(|state| state.active -= 1);
    }
}

/// Returns all capabilities of a provider, except `file_mentions`, which describes a risk.
fn everything() -> Capabilities {
    let mut can = Capabilities::none();
    can.resume = true;
    can.fork = true;
    can.new_session_id = true;
    can.add_dirs = true;
    can.skills = true;
    can.sub_agents = true;
    can.hooks = true;
    can.system_prompt = SystemPromptSupport::AppendAndReplace;
    can.model = true;
    can.effort = true;
    can.permission_modes = &[
        PermissionMode::Default,
        PermissionMode::ReadOnly,
        PermissionMode::AcceptEdits,
        PermissionMode::Bypass,
    ];
    can.allowed_tools = true;
    can.denied_tools = true;
    can.max_turns = true;
    can.max_budget_usd = true;
    can.output_schema = true;
    can.images = true;
    can.mcp.transports = &["stdio", "http", "sse"];
    can.mcp.deliveries = &[
        McpDelivery::Private,
        McpDelivery::ProjectConfig,
        McpDelivery::UserConfig,
    ];
    can.mcp.strict = true;
    can.mcp.cwd = true;
    can.mcp.startup_timeout = true;
    can.mcp.tool_timeout = true;
    can.mcp.only_tools = true;
    can.mcp.except_tools = true;
    can.cli_retries = true;
    can.prompt_on_stdin = true;
    can.text_deltas = true;
    can.thinking = true;
    can.usage = true;
    can.live_usage = true;
    can.live_cost = true;
    can.cost = true;
    can.announces_tools = true;
    can.slash_commands = true;
    can.session_commands = true;
    can
}
