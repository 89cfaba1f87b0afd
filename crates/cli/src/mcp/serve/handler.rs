//! The MCP request handler.

use std::sync::Arc;

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
use teamster_api::MachineService;
use teamster_api::usage::UsageQuery;
use teamster_host::LocalMachine;

use super::progress::Progress;
use super::report;
use super::runs::AgentRuns;
use super::tools::{
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
pub(super) struct Handler {
    runs: Arc<AgentRuns>,
    tools: Vec<Tool>,
}

impl Handler {
    pub(super) fn new(runs: Arc<AgentRuns>) -> Self {
        let tools = tools::all(runs.is_read_only());
        Self { runs, tools }
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
        while let Some(line) = log.next().await.map_err(|error| error.to_string())? {
            if line.is_end() {
                return Ok(());
            }
            let words = (line.entry().ok()).and_then(|entry| report::progress(&agent, &entry));
            if let Some(words) = words {
                progress.report(words).await;
            }
        }
        Ok(())
    }

    /// Returns the agents that this server offers.
    async fn agents(&self) -> Result<Value, String> {
        let all = LocalMachine::new(crate::host())
            .agents()
            .await
            .map_err(|error| error.to_string())?;
        let all = serde_json::to_value(all).map_err(|error| error.to_string())?;
        let agents = all.as_array().into_iter().flatten();
        let agents =
            agents.filter(|it| it["id"].as_str().is_some_and(|id| self.runs.is_offered(id)));
        let agents: Vec<_> = agents
            .map(|it| {
                let can = &it["capabilities"];
                json!({
                    "agent": it["id"],
                    "name": it["name"],
                    "installed": it["usable"],
                    "version": it["version"],
                    "loggedIn": it["login"]["state"],
                    "problem": it["problem"],
                    "permissions": can["permissionModes"],
                    "model": can["model"],
                    "outputSchema": can["outputSchema"],
                    "cost": can["cost"],
                })
            })
            .collect();
        Ok(json!({"agents": agents}))
    }

    async fn usage(&self, input: UsageInput) -> Result<Value, String> {
        let mut query = UsageQuery::default();
        let by = input.by.map(|by| serde_json::from_value(by.into()));
        query.by = by.transpose().map_err(|error| format!("by: {error}"))?;
        query.since = input.since.or_else(|| Some("1d".to_owned()));
        let machine = LocalMachine::new(crate::host())
            .usage(query)
            .await
            .map_err(|error| error.to_string())?;
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
                self.runs.events(&input.run_id, input.after, input.limit)
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
            _ => Err(format!("unknown tool {}", crate::words::one_line(name))),
        }
    }

    /// Returns a run as an MCP task.
    async fn task(&self, run_id: &str) -> Result<DetailedTask, ErrorData> {
        let report = (self.runs.report(run_id).await)
            .map_err(|error| ErrorData::invalid_params(error, None))?;
        let payload = match (report["state"].as_str(), report["status"].as_str()) {
            (Some("ended"), Some("aborted")) => TaskPayload::Cancelled,
            (Some("ended"), _) => TaskPayload::Completed {
                result: object(json!(answer(&Ok(report.clone())))),
            },
            _ => TaskPayload::Working,
        };
        Ok(DetailedTask::new(self.task_of(run_id, &report), payload))
    }

    fn task_of(&self, run_id: &str, report: &Value) -> Task {
        let (created, updated) = self.runs.times(run_id);
        let (created, updated) = (created.to_string(), updated.to_string());
        let mut task = Task::new(run_id, TaskStatus::Working, created, updated);
        if report["state"] == "waiting" {
            let words = "it waits for an answer: the tool `wait` has the request, the tool `answer` answers it";
            task = task.with_status_message(words);
        }
        task.with_poll_interval_ms(POLL_MS)
    }
}

/// Returns whether `run` may answer with a task. Tasks are an extension of the stateless protocol: a client that began
/// with `initialize` reads every answer to a call as the tool's result.
fn takes_tasks(context: &RequestContext<RoleServer>) -> bool {
    let is_stateless = context.peer.peer_info().is_none();
    is_stateless && (context.client_capabilities()).is_some_and(|can| can.supports_tasks())
}

fn object(value: Value) -> JsonObject {
    match value {
        Value::Object(object) => object,
        _ => JsonObject::new(),
    }
}

fn input<T: DeserializeOwned>(arguments: Value) -> Result<T, String> {
    serde_json::from_value(arguments).map_err(|error| error.to_string())
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
            let started = match input(Value::Object(arguments)) {
                Ok(input) => self.runs.start(input).await,
                Err(problem) => Err(problem),
            };
            return Ok(match started {
                Ok(run_id) => CreateTaskResult::new(self.task_of(&run_id, &Value::Null)).into(),
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
