//! A server over a service in memory.

use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use teamster_api::agents::{AgentList, AgentState, AgentStatus, Command, Status};
use teamster_api::usage::{Dimension, Figures, PriceSource, UsageQuery, UsageSummary};
use teamster_api::{
    FleetStatus, MachineService, ProblemCode, ProviderReport, RunService, ServiceError,
};
use teamster_core::{AgentError, AgentEvent, PermissionRequest, Text, ToolKind};
use teamster_server::{OwnerToken, Scope, Server, ServerConfig, Tokens};
use teamster_testkit::http::{Request, Response};
use teamster_testkit::proc::wait_until;
use teamster_testkit::run_service::{MemoryService, Step};
use tempfile::TempDir;
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinHandle;

/// The time limit of a wait.
pub(crate) const LIMIT: Duration = Duration::from_mins(1);

/// A server on a free port.
pub(crate) struct Served {
    pub(crate) address: String,
    pub(crate) token: String,
    pub(crate) runs: MemoryService,
    /// The fleet of the machine.
    pub(crate) fleet: Arc<Mutex<Option<FleetStatus>>>,
    folder: Arc<TempDir>,
    server: Server,
    serving: JoinHandle<()>,
    runtime: Runtime,
}

/// Returns what the agent does for a prompt.
fn script(prompt: &str) -> Vec<Step> {
    let text = |text: &str| Step::Emit(AgentEvent::Text(Text::new(text)));
    match prompt {
        "write" => vec![Step::Ask(PermissionRequest::new(
            1,
            "Write",
            ToolKind::Edit,
            json!({"file_path": "/x/a", "content": "one"}),
        ))],
        "wait" => vec![text("…"), Step::Hang],
        "create" => vec![Step::Write("new.txt".into(), "new".into())],
        "fail" => vec![Step::Fail(AgentError::refused("model", "no such model"))],
        prompt => vec![text(prompt)],
    }
}

/// A machine with one agent in a loop, whose supervisor does not run.
struct Machine {
    fleet: Arc<Mutex<Option<FleetStatus>>>,
}

#[async_trait::async_trait]
impl MachineService for Machine {
    async fn agents(&self) -> Result<Vec<ProviderReport>, ServiceError> {
        Ok(Vec::new())
    }

    async fn fleet(&self) -> Result<Option<FleetStatus>, ServiceError> {
        let fleet = self.fleet.lock().unwrap().clone();
        Ok(fleet)
    }

    async fn usage(&self, query: UsageQuery) -> Result<UsageSummary, ServiceError> {
        let by = query.by.unwrap_or(Dimension::Day);
        let prices = PriceSource::new("a table", "2026-11-22");
        Ok(UsageSummary::new(by, Figures::default(), prices))
    }

    async fn loops(&self, command: Command) -> Result<AgentList, ServiceError> {
        if command != Command::Status {
            return Err(ServiceError::new(
                ProblemCode::SupervisorNotRunning,
                "no supervisor is running",
            ));
        }
        let agent = AgentStatus::new("qa", "/agents/qa", AgentState::Stopped);
        Ok(Status::new("/agents.config.json", vec![agent]).into())
    }

    async fn loop_log(&self, agent: &str, lines: usize) -> Result<String, ServiceError> {
        if agent != "qa" {
            let detail = format!("no agent \"{agent}\"");
            return Err(ServiceError::new(ProblemCode::AgentNotFound, detail));
        }
        Ok("line\n".repeat(lines))
    }
}

fn runtime() -> Runtime {
    Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap()
}

impl Served {
    /// Starts a server whose agents are `claude` and `cmd:cat`.
    pub(crate) fn start() -> Self {
        Self::with(|_| ())
    }

    /// The same with another configuration.
    pub(crate) fn with(configure: impl FnOnce(&mut ServerConfig)) -> Self {
        let folder = Arc::new(TempDir::new().unwrap());
        let runs = MemoryService::new(["claude", "cmd:cat"], script);
        let service = Arc::new(runs.clone());
        Self::of(runtime(), folder, runs, service, configure)
    }

    /// The same runs over another service.
    pub(crate) fn over(self, service: Arc<dyn RunService>) -> Self {
        self.server.end();
        self.runtime.block_on(self.serving).unwrap();
        Self::of(self.runtime, self.folder, self.runs, service, |_| ())
    }

    fn of(
        runtime: Runtime,
        folder: Arc<TempDir>,
        runs: MemoryService,
        service: Arc<dyn RunService>,
        configure: impl FnOnce(&mut ServerConfig),
    ) -> Self {
        let owner = OwnerToken::read_or_make(&folder.path().join("token")).unwrap();
        let token = owner.secret().to_owned();
        let fleet = Arc::new(Mutex::default());
        let mut config = ServerConfig::new(Tokens::at(folder.path()));
        config.owner = Some(owner);
        configure(&mut config);
        let server = Server::new(
            config,
            service,
            Arc::new(Machine {
                fleet: fleet.clone(),
            }),
        );
        let address = "127.0.0.1:0".parse().unwrap();
        let bound = runtime.block_on(server.bind(&address)).unwrap();
        let url = bound.url();
        Self {
            address: url.strip_prefix("http://").unwrap().to_owned(),
            token,
            runs,
            fleet,
            folder,
            serving: runtime.spawn(bound.serve()),
            server,
            runtime,
        }
    }

    /// Ends the server, and starts another one of the same runs and folder after `meanwhile`.
    pub(crate) fn restart_after(
        self,
        meanwhile: impl FnOnce(&MemoryService, &Runtime),
        configure: impl FnOnce(&mut ServerConfig),
    ) -> Self {
        self.server.end();
        self.runtime.block_on(self.serving).unwrap();
        meanwhile(&self.runs, &self.runtime);
        let service = Arc::new(self.runs.clone());
        Self::of(self.runtime, self.folder, self.runs, service, configure)
    }

    /// Another server of the same runs and folder.
    pub(crate) fn beside(&self, configure: impl FnOnce(&mut ServerConfig)) -> Self {
        let (runs, folder) = (self.runs.clone(), self.folder.clone());
        Self::of(runtime(), folder, runs.clone(), Arc::new(runs), configure)
    }

    /// The number of runs of which messages are to be delivered.
    pub(crate) fn undelivered(&self) -> usize {
        let servers = fs::read_dir(self.folder().join("callbacks"));
        let servers = servers.into_iter().flatten().flatten();
        servers
            .map(|it| fs::read_dir(it.path()).map_or(0, Iterator::count))
            .sum()
    }

    /// Waits until no message is left to deliver.
    #[track_caller]
    pub(crate) fn until_delivered(&self) {
        assert!(wait_until(LIMIT, || self.undelivered() == 0));
    }

    /// The folder of the server's files.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Creates a token with these scopes.
    pub(crate) fn add(&self, scopes: &[Scope]) -> String {
        let names: Vec<_> = scopes.iter().map(|scope| scope.name()).collect();
        let tokens = Tokens::at(self.folder());
        tokens.add(&names.join("-"), scopes).unwrap()
    }

    /// A request with the owner's token.
    pub(crate) fn request(&self, method: &str, path: &str) -> Request {
        self.request_of(&self.token, method, path)
    }

    pub(crate) fn request_of(&self, token: &str, method: &str, path: &str) -> Request {
        Request::new(&self.address, method, path)
            .header("Authorization", &format!("Bearer {token}"))
    }

    pub(crate) fn get(&self, path: &str) -> Response {
        self.request("GET", path).send()
    }

    pub(crate) fn post(&self, path: &str, body: &Value) -> Response {
        self.request("POST", path).json(body).send()
    }

    /// Posts, and waits for the end of the run or turn.
    pub(crate) fn post_and_wait(&self, path: &str, body: &Value) -> Response {
        let request = self.request("POST", path).header("Prefer", "wait=60");
        request.json(body).send()
    }

    /// Cancels this run.
    #[track_caller]
    pub(crate) fn cancel(&self, id: &str) -> Response {
        let path = format!("/v1/runs/{id}/cancel");
        let cancelled = self.request("POST", &path).send();
        assert_eq!(cancelled.status, 202, "{}", cancelled.body);
        cancelled
    }

    /// Starts a run with this prompt; its id.
    pub(crate) fn run(&self, prompt: &str) -> String {
        let started = self.post("/v1/runs", &json!({"provider": "claude", "prompt": prompt}));
        assert_eq!(started.status, 201, "{}", started.body);
        started.json()["runId"].as_str().unwrap().to_owned()
    }

    /// Starts a session; its path.
    pub(crate) fn session(&self, body: &Value) -> String {
        let started = self.post("/v1/sessions", body);
        assert_eq!(started.status, 201, "{}", started.body);
        started.header("location").unwrap().to_owned()
    }

    /// Waits until the run or session of this path is in this state; how it is then.
    #[track_caller]
    pub(crate) fn until(&self, path: &str, state: &str) -> Value {
        let mut run = Value::Null;
        let is_so = wait_until(LIMIT, || {
            run = self.get(path).json();
            run["state"] == state || run["live"]["state"] == state
        });
        assert!(is_so, "{state}: {run}");
        run
    }

    /// Ends the server in order.
    pub(crate) fn end(self) {
        self.server.end();
        self.runtime.block_on(self.serving).unwrap();
    }
}
