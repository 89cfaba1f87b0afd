//! The MCP request handler.

use std::sync::Arc;

use jiff::Timestamp;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, CancelTaskMethod, CancelTaskParams,
    ContentBlock, CreateTaskResult, DetailedTask, ErrorData, GetTaskMethod, GetTaskParams,
    GetTaskResult, Implementation, InitializeRequestParams, InitializeResult, JsonObject,
    ListToolsResult, PaginatedRequestParams, ServerCapabilities, ServerConfig, Task, TaskPayload,
    TaskStatus, Tool,
};
use rmcp::service::RequestContext;
use rmcp::{RoleServer, ServerHandler};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use teamster_api::usage::UsageQuery;
use teamster_api::{MachineService, ProviderReport};
use teamster_core::text::one_line;

use crate::progress::Progress;
use crate::report;
use crate::runs::AgentRuns;
use crate::schema::object;
use crate::tools::{
    self, ANSWER, AnswerInput, CANCEL, CancelInput, EVENTS, EventsInput, LIST_AGENTS, NoInput, RUN,
    RunInput, START, USAGE, UsageInput, WAIT, WaitInput,
};

/// The poll interval suggested to clients for tasks, in milliseconds.
const POLL_MS: u64 = 1000;

const INSTRUCTIONS: &str = "\
Other coding agents (Claude Code, Codex, Gemini CLI and others) as tools. `run` gives an agent's answer to a prompt; \
`start` and `wait` are for longer work and for several agents at once. An agent does not see this conversation: put \
everything that it needs in the prompt. Pass `sessionId` of an answer to continue with that agent.";

/// The MCP request handler.
#[derive(Clone)]
pub(crate) struct Handler {
    runs: Arc<AgentRuns>,
    machine: Arc<dyn MachineService>,
    tools: Vec<Tool>,
}

impl Handler {
    pub(crate) fn new(runs: Arc<AgentRuns>, machine: Arc<dyn MachineService>) -> Self {
        let tools = tools::all(runs.is_read_only());
        Self {
            runs,
            machine,
            tools,
        }
    }

    /// Runs an agent to its end. Cancelling the call stops the run.
    async fn run(
        &self,
        input: RunInput,
        context: &RequestContext<RoleServer>,
        progress: &Progress,
    ) -> Result<Value, String> {
        let run_id = self.runs.start(input).await?;
        tokio::select! {
            followed = self.follow(&run_id, progress) => followed?,
            () = context.ct.cancelled() => return self.runs.cancel(&run_id, false).await,
        }
        self.runs.report(&run_id).await
    }

    /// Follows a run to its end and reports what it does.
    async fn follow(&self, run_id: &str, progress: &Progress) -> Result<(), String> {
        let agent = self.runs.agent(run_id);
        let mut log = self.runs.log(run_id)?;
        while let Some(line) = log.next().await {
            // A run whose log cannot be followed continues.
            let line = line.map_err(|error| format!("run {run_id}: {error}"))?;
            let words = (line.entry().ok()).and_then(|entry| report::progress(&agent, &entry));
            if let Some(words) = words {
                progress.report(words).await;
            }
        }
        Ok(())
    }

    /// Returns the agents that this server offers.
    async fn agents(&self) -> Result<Value, String> {
        let agents = self.machine.agents().await;
        let agents = agents.map_err(|error| error.to_string())?.into_iter();
        let agents = agents.filter(|it| self.runs.is_offered(&it.facts.id));
        let agents: Vec<_> = agents.map(|it| agent(&it)).collect();
        Ok(json!({"agents": agents}))
    }

    async fn usage(&self, input: UsageInput) -> Result<Value, String> {
        let mut query = UsageQuery::default();
        let by = input.by.map(|by| serde_json::from_value(by.into()));
        query.by = by.transpose().map_err(|error| format!("by: {error}"))?;
        query.since = input.since.or_else(|| Some("1d".to_owned()));
        let machine = self.machine.usage(query).await;
        let machine = machine.map_err(|error| error.to_string())?;
        Ok(json!({"server": self.runs.figures().await, "machine": machine}))
    }

    async fn call(
        &self,
        name: &str,
        arguments: JsonObject,
        context: &RequestContext<RoleServer>,
        progress: &Progress,
    ) -> Result<Value, String> {
        let arguments = Value::Object(arguments);
        match name {
            RUN => self.run(input(arguments)?, context, progress).await,
            START => {
                let run_id = self.runs.start(input(arguments)?).await?;
                self.runs.report(&run_id).await
            }
            WAIT => {
                let input: WaitInput = input(arguments)?;
                tokio::select! {
                    report = self.runs.wait(&input.run_ids, input.timeout_ms) => report,
                    () = context.ct.cancelled() => Err("the call was cancelled; the runs continue".to_owned()),
                }
            }
            EVENTS => {
                let input: EventsInput = input(arguments)?;
                let EventsInput {
                    run_id,
                    after,
                    limit,
                } = input;
                self.runs.events(&run_id, after, limit).await
            }
            ANSWER => self.runs.answer(input::<AnswerInput>(arguments)?).await,
            CANCEL => {
                let input: CancelInput = input(arguments)?;
                self.runs.cancel(&input.run_id, input.kill).await
            }
            LIST_AGENTS => {
                let NoInput {} = input(arguments)?;
                self.agents().await
            }
            USAGE => self.usage(input(arguments)?).await,
            _ => Err(format!("unknown tool {}", one_line(name))),
        }
    }

    /// Returns a run as an MCP task.
    async fn task(&self, run_id: &str) -> Result<DetailedTask, ErrorData> {
        let (report, created, changed) = (self.runs.timed_report(run_id).await)
            .map_err(|error| ErrorData::invalid_params(error, None))?;
        let payload = match (report["state"].as_str(), report["status"].as_str()) {
            (Some("ended"), Some("aborted")) => TaskPayload::Cancelled,
            (Some("ended"), _) => TaskPayload::Completed {
                result: object(json!(answer(&Ok(report.clone())))),
            },
            _ => TaskPayload::Working,
        };
        let mut task = working(run_id, created, changed);
        if report["state"] == "waiting" {
            let words = "it waits for an answer: the tool `wait` has the request, the tool `answer` answers it";
            task = task.with_status_message(words);
        }
        Ok(DetailedTask::new(task, payload))
    }
}

fn working(run_id: &str, created: Timestamp, changed: Timestamp) -> Task {
    let (created, changed) = (created.to_string(), changed.to_string());
    Task::new(run_id, TaskStatus::Working, created, changed).with_poll_interval_ms(POLL_MS)
}

/// Returns what a model needs to know of an agent.
fn agent(report: &ProviderReport) -> Value {
    let ProviderReport {
        facts,
        capabilities,
        ..
    } = report;
    json!({
        "agent": facts.id,
        "name": facts.name,
        "installed": facts.usable,
        "version": facts.version,
        "loggedIn": facts.login.state,
        "problem": facts.problem,
        "permissions": capabilities.permission_modes,
        "model": capabilities.model,
        "outputSchema": capabilities.output_schema,
        "cost": capabilities.cost,
    })
}

/// Returns whether `run` may answer with a task. Tasks are an extension of the stateless protocol: a client that began
/// with `initialize` reads every answer to a call as the tool's result.
fn takes_tasks(context: &RequestContext<RoleServer>) -> bool {
    let is_stateless = context.peer.peer_info().is_none();
    is_stateless && (context.client_capabilities()).is_some_and(|can| can.supports_tasks())
}

fn input<T: DeserializeOwned>(arguments: Value) -> Result<T, String> {
    serde_path_to_error::deserialize(arguments).map_err(|error| {
        let path = error.path().to_string();
        let problem = error.into_inner().to_string();
        // The name of a missing or unknown argument is in the message.
        if path == "." || problem.contains(&path) {
            problem
        } else {
            format!("{path}: {problem}")
        }
    })
}

/// Creates a tool result with structured content, and text for clients that show only text. A failure is a result
/// that the model can read, not a protocol error.
fn answer(result: &Result<Value, String>) -> CallToolResult {
    match result {
        Ok(report) => {
            let failed = report["state"] == "ended" && report["status"] != "completed";
            let text = if report["runId"].is_string() {
                report::text_of(report)
            } else {
                report.to_string()
            };
            let content = vec![ContentBlock::text(text)];
            let mut result = if failed {
                CallToolResult::error(content)
            } else {
                CallToolResult::success(content)
            };
            result.structured_content = Some(report.clone());
            result
        }
        Err(problem) => {
            let mut result = CallToolResult::error(vec![ContentBlock::text(problem.clone())]);
            result.structured_content = Some(json!({"error": {"message": problem}}));
            result
        }
    }
}

impl ServerHandler for Handler {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_tasks()
            .build();
        let mut about = ServerConfig::new(capabilities).with_instructions(INSTRUCTIONS);
        about.server_info = Implementation::new("teamster", env!("CARGO_PKG_VERSION"));
        about
    }

    async fn initialize(
        &self,
        request: InitializeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        context.peer.set_peer_info(request.clone());
        let mut about = self.negotiate_initialize(&request)?;
        about.capabilities.extensions = None;
        Ok(about)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(self.tools.clone()))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        self.tools.iter().find(|tool| tool.name == name).cloned()
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let arguments = request.arguments.unwrap_or_default();
        if request.name == RUN && takes_tasks(&context) {
            let started = async {
                let run_id = self.runs.start(input(Value::Object(arguments))?).await?;
                let report = self.runs.timed_report(&run_id).await;
                // It has started in any case.
                let (created, changed) = report.map_or_else(
                    |_| (Timestamp::now(), Timestamp::now()),
                    |(_, created, changed)| (created, changed),
                );
                Ok(working(&run_id, created, changed))
            };
            return Ok(match started.await {
                Ok(task) => CreateTaskResult::new(task).into(),
                Err(problem) => answer(&Err(problem)).into(),
            });
        }
        let agent = arguments.get("agent").and_then(Value::as_str);
        let progress = Progress::new(agent.unwrap_or(&request.name), &context);
        let result = tokio::select! {
            result = self.call(&request.name, arguments, &context, &progress) => result,
            never = progress.repeat() => match never {},
        };
        Ok(answer(&result).into())
    }

    async fn get_task(
        &self,
        request: GetTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetTaskResult, ErrorData> {
        if !takes_tasks(&context) {
            return Err(ErrorData::method_not_found::<GetTaskMethod>());
        }
        Ok(GetTaskResult::new(self.task(&request.task_id).await?))
    }

    async fn cancel_task(
        &self,
        request: CancelTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        if !takes_tasks(&context) {
            return Err(ErrorData::method_not_found::<CancelTaskMethod>());
        }
        let cancelled = self.runs.cancel(&request.task_id, false).await;
        cancelled
            .map(drop)
            .map_err(|error| ErrorData::invalid_params(error, None))
    }
}
