//! The runs of an MCP server.

mod wait;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};
use teamster_api::{
    AgentDepth, Answer, LogStream, ProblemCode, RunHandle, RunService, RunSpec, RunView,
    ServiceError, ViewState, json_name,
};
use teamster_core::sync::lock;
use teamster_core::text::one_line;
use teamster_core::time::millis;
use teamster_core::{CostSource, PermissionMode, RunResult, Stopping};
use tokio::task::JoinSet;
use tokio::time::timeout;
use uuid::Uuid;

use crate::budget::{self, Spent};
use crate::limits::{Hint, IdOf, refusal};
use crate::tools::{AnswerInput, Decision, Permission, RunInput};
use crate::{Limit, Limits, report};

/// The default number of events in a page.
const PAGE: usize = 100;
/// The maximum number of events in a page.
const LARGEST_PAGE: usize = 1000;
/// The time that the end of a server waits for a start in progress.
const START_LIMIT: Duration = Duration::from_secs(10);

/// The runs of an MCP server.
pub(crate) struct AgentRuns {
    service: Arc<dyn RunService>,
    limits: Limits,
    hint: Hint,
    id_of: IdOf,
    started: Mutex<BTreeMap<String, StartedRun>>,
    /// Held while the limits are checked and a run is started.
    starting: tokio::sync::Mutex<()>,
    /// The client is gone.
    has_ended: AtomicBool,
}

/// A run that this server started.
#[derive(Debug, Clone)]
struct StartedRun {
    agent: String,
    result: Option<Box<RunResult>>,
}

impl AgentRuns {
    pub(crate) fn new(
        service: Arc<dyn RunService>,
        mut limits: Limits,
        hint: Hint,
        id_of: IdOf,
    ) -> Self {
        for agent in &mut limits.agents {
            if let Some(id) = id_of(agent) {
                *agent = id;
            }
        }
        Self {
            service,
            limits,
            hint,
            id_of,
            started: Mutex::default(),
            starting: tokio::sync::Mutex::default(),
            has_ended: AtomicBool::new(false),
        }
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.limits
    }

    pub(crate) fn is_read_only(&self) -> bool {
        self.most() == Permission::ReadOnly
    }

    /// Returns `true` if the server offers this agent.
    pub(crate) fn is_offered(&self, agent: &str) -> bool {
        if self.limits.agents.is_empty() {
            // A command must be listed.
            return !agent.contains(':');
        }
        self.limits.agents.iter().any(|it| it == agent)
    }

    /// Starts a run and returns its id.
    pub(crate) async fn start(&self, input: RunInput) -> Result<String, String> {
        let AgentDepth { own, limit, .. } = self.limits.depth;
        if !self.limits.depth.allows_runs() {
            let fact = format!(
                "this agent was started by another one and cannot start more (depth {own} of at most {}): do the \
                 work yourself, or leave it to the caller",
                limit.unwrap_or(own)
            );
            return Err(refusal(fact, (self.hint)(Limit::Depth)));
        }
        let agent = (self.id_of)(&input.agent).filter(|agent| self.is_offered(agent));
        let Some(agent) = agent else {
            let agent = one_line(&input.agent);
            return Err(format!(
                "no agent \"{agent}\": list_agents lists the available ones"
            ));
        };
        let permission = self.permission(input.permission)?;
        // Two that start at the same time must not both fit under a limit.
        let _starting = self.starting.lock().await;
        if self.has_ended.load(Ordering::Relaxed) {
            return Err("the client has disconnected: nothing is started".to_owned());
        }
        let (spent, live, unknown) = self.spent().await;
        let is_limited = self.limits.max_budget_usd.is_some() || self.limits.max_tokens.is_some();
        if let Some(error) = unknown.filter(|_| is_limited) {
            return Err(format!("the remaining budget is unknown: {error}"));
        }
        if live >= self.limits.max_runs {
            let most = self.limits.max_runs;
            return Err(format!(
                "{most} runs are live, which is the limit of this server: wait for one to end"
            ));
        }
        let limits = (self.limits.max_budget_usd, self.limits.max_tokens);
        let requested = (input.max_budget_usd, input.max_tokens);
        let (usd, tokens) = budget::share(spent, limits, requested)?;
        let mut spec = RunSpec::new(&*agent, input.prompt);
        spec.model = input.model;
        spec.effort = input.effort;
        spec.permission = permission;
        spec.working_directory = input.working_directory;
        spec.session_id = input.session_id;
        spec.append_system_prompt = input.append_system_prompt;
        spec.output_schema = input.output_schema;
        spec.max_budget_usd = usd;
        spec.max_tokens = tokens;
        let longest = millis(self.limits.max_time);
        spec.max_time_ms = Some(input.max_time_ms.unwrap_or(longest).min(longest));
        spec.depth = Some(self.limits.depth.deeper());
        let run_id = Uuid::now_v7().to_string();
        let started = StartedRun {
            agent,
            result: None,
        };
        // Before the call: the run may start although the answer is lost.
        lock(&self.started).insert(run_id.clone(), started);
        if let Err(error) = self.service.start(&run_id, spec.into()).await {
            // After an internal error, too.
            if error.code.is_some_and(|code| code.status() < 500) {
                lock(&self.started).remove(&run_id);
            }
            return Err(refused(error));
        }
        Ok(run_id)
    }

    /// Returns the most that a run may do.
    fn most(&self) -> Permission {
        match self.limits.permission {
            PermissionMode::ReadOnly | PermissionMode::Plan => Permission::ReadOnly,
            PermissionMode::AcceptEdits => Permission::AcceptEdits,
            PermissionMode::Bypass => Permission::Bypass,
            _ => Permission::Default,
        }
    }

    /// Returns the permission mode of a run. Fails if it exceeds the server's limit.
    fn permission(&self, requested: Option<Permission>) -> Result<PermissionMode, String> {
        let most = self.most();
        let requested = requested.unwrap_or(most);
        if requested > most {
            let most = self.limits.permission;
            let fact = format!("permission: this server allows no more than `{most}`");
            return Err(refusal(fact, (self.hint)(Limit::Permission)));
        }
        Ok(match requested {
            Permission::ReadOnly => PermissionMode::ReadOnly,
            Permission::Default => PermissionMode::Default,
            Permission::AcceptEdits => PermissionMode::AcceptEdits,
            Permission::Bypass => PermissionMode::Bypass,
        })
    }

    /// Returns the usage of all runs, the number of live ones, and the reason why that of a run is not known. Such a run
    /// counts as live.
    async fn spent(&self) -> (Spent, usize, Option<String>) {
        let started = lock(&self.started).clone();
        let mut spent = Spent::default();
        let mut live = 0;
        let mut unknown = None;
        for (run_id, started) in started {
            if let Some(result) = started.result {
                spent.add(result.total_cost_usd, result.cost_source, result.usage);
                continue;
            }
            let view = match self.service.show(&run_id).await {
                Ok(view) => view,
                // It did not start, or its log was removed.
                Err(error) if is_missing(&error) => continue,
                Err(error) => {
                    live += 1;
                    if error.code != Some(ProblemCode::RunnerNotResponding) {
                        unknown = Some(format!("run {run_id}: {error}"));
                    }
                    continue;
                }
            };
            let run = &view.summary;
            live += usize::from(run.state != ViewState::Ended);
            match (self.result(&run_id, view.result), &run.live) {
                (Some(it), _) => spent.add(it.total_cost_usd, it.cost_source, it.usage),
                (None, Some(it)) => spent.add(it.cost_usd, it.cost_source, it.usage),
                (None, None) => spent.add(run.cost_usd, run.cost_source, run.usage),
            }
        }
        (spent, live, unknown)
    }

    /// Returns the usage and limits of all runs as JSON.
    pub(crate) async fn figures(&self) -> Value {
        let (spent, live, unknown) = self.spent().await;
        let mut figures = json!({
            "runs": lock(&self.started).len(),
            "running": live,
            "costUsd": spent.usd,
            "costSource": if spent.is_estimate { CostSource::Estimated } else { CostSource::Reported },
            "tokens": spent.tokens,
            "maxBudgetUsd": self.limits.max_budget_usd,
            "maxTokens": self.limits.max_tokens,
        });
        if let Some(error) = unknown {
            figures["incomplete"] = error.into();
        }
        figures
    }

    /// Finds a run that this server started.
    fn find(&self, run_id: &str) -> Result<RunHandle, String> {
        if !lock(&self.started).contains_key(run_id) {
            let id = one_line(run_id);
            return Err(format!("run {id} was not started by this server"));
        }
        Ok(RunHandle::new(self.service.clone(), run_id))
    }

    /// Returns the state of a run that this server started.
    async fn view(&self, run_id: &str) -> Result<RunView, String> {
        let view = self.find(run_id)?.view().await;
        view.map_err(|error| {
            if is_missing(&error) {
                format!("the log of run {run_id} was removed")
            } else {
                error.to_string()
            }
        })
    }

    pub(crate) fn agent(&self, run_id: &str) -> String {
        let started = lock(&self.started);
        let run = started.get(run_id);
        run.map(|it| it.agent.clone()).unwrap_or_default()
    }

    /// Stores the result of a run that has ended.
    fn result(&self, run_id: &str, result: Option<Box<RunResult>>) -> Option<Box<RunResult>> {
        if let (Some(started), Some(result)) = (lock(&self.started).get_mut(run_id), &result) {
            started.result = Some(result.clone());
        }
        result
    }

    pub(crate) async fn report(&self, run_id: &str) -> Result<Value, String> {
        Ok(self.report_of(run_id, self.view(run_id).await?))
    }

    fn report_of(&self, run_id: &str, view: RunView) -> Value {
        let agent = self.agent(run_id);
        match self.result(run_id, view.result) {
            Some(result) => report::ended(run_id, &agent, &result),
            None if view.summary.state == ViewState::Ended => {
                report::without_result(run_id, &agent, view.summary.status)
            }
            None => report::running(run_id, &agent, &view.summary.requests),
        }
    }

    /// Returns the report of a run, when it was accepted, and when its log last changed.
    pub(crate) async fn timed_report(
        &self,
        run_id: &str,
    ) -> Result<(Value, Timestamp, Timestamp), String> {
        let view = self.view(run_id).await?;
        let at = |ms: u64| Timestamp::from_millisecond(i64::try_from(ms).unwrap_or(i64::MAX)).ok();
        let created = at(view.summary.info.accepted_at_ms).unwrap_or_else(Timestamp::now);
        let changed = view.summary.changed_at_ms.and_then(at).unwrap_or(created);
        Ok((self.report_of(run_id, view), created, changed))
    }

    /// Follows the log of a run from its beginning.
    pub(crate) fn log(&self, run_id: &str) -> Result<LogStream, String> {
        Ok(self.find(run_id)?.follow(0))
    }

    /// Returns a page of a run's events so far.
    pub(crate) async fn events(
        &self,
        run_id: &str,
        after: u64,
        limit: Option<usize>,
    ) -> Result<Value, String> {
        let newest = self.view(run_id).await?.summary;
        let limit = limit.unwrap_or(PAGE).clamp(1, LARGEST_PAGE);
        let mut events: Vec<Value> = Vec::new();
        let mut next = after;
        let mut ended = newest.state == ViewState::Ended && after >= newest.seq;
        let mut log = self.find(run_id)?.follow(after);
        while events.len() < limit
            && next < newest.seq
            && let Some(line) = log.next().await
        {
            let line = line.map_err(|error| error.to_string())?;
            next = line.seq();
            ended = line.is_end();
            events.extend(line.entry().ok().as_ref().and_then(report::event));
        }
        Ok(json!({"events": events, "next": next, "ended": ended}))
    }

    /// Answers a request of a run.
    pub(crate) async fn answer(&self, input: AnswerInput) -> Result<Value, String> {
        let run_id = input.request_id.split('/').next().unwrap_or_default();
        let run = self.find(run_id)?;
        let answer = match (input.decision, input.input) {
            (Decision::Deny, _) => Answer::Deny {
                reason: input.reason,
            },
            (Decision::Allow, Some(input)) => Answer::AllowWith { input },
            // An answer must not exceed the server's permission.
            (Decision::Allow, None) if self.is_read_only() => {
                let fact = "this server is read-only: requests can only be denied".to_owned();
                return Err(refusal(fact, (self.hint)(Limit::Permission)));
            }
            (Decision::Allow, None) => Answer::Allow,
        };
        if self.is_read_only() && matches!(answer, Answer::AllowWith { .. }) {
            let pending = self.view(run_id).await?.summary;
            let request = pending
                .requests
                .iter()
                .find(|it| it.request_id == input.request_id);
            if request.is_none_or(|it| it.schema.is_none()) {
                return Err(
                    "this server is read-only: an input is only an answer to a question".to_owned(),
                );
            }
        }
        run.answer(&*input.request_id, answer)
            .await
            .map_err(|error| error.to_string())?;
        Ok(json!({"requestId": input.request_id, "answered": true}))
    }

    /// Stops a run.
    pub(crate) async fn cancel(&self, run_id: &str, kill: bool) -> Result<Value, String> {
        match self.find(run_id)?.cancel(Stopping::kill_if(kill)).await {
            Ok(()) => {}
            // A run that has ended needs no cancellation.
            Err(error) if error.code == Some(ProblemCode::RunEnded) => {}
            Err(error) => return Err(error.to_string()),
        }
        self.report(run_id).await
    }

    /// Cancels the client's runs after it disconnected, unless they are kept.
    pub(crate) async fn end(&self) {
        if self.limits.keep_runs {
            return;
        }
        self.has_ended.store(true, Ordering::Relaxed);
        // A start in progress would be found too early. One that takes long is stopped if it is there by then.
        let _no_starts = timeout(START_LIMIT, self.starting.lock()).await;
        let mut ending = JoinSet::new();
        for (run_id, started) in lock(&self.started).clone() {
            if started.result.is_none() {
                let run = RunHandle::new(self.service.clone(), run_id);
                ending.spawn(async move {
                    // Fails if the run has ended meanwhile or cannot be reached: then there is nothing to wait for.
                    if run.cancel(Stopping::Graceful).await.is_ok() {
                        let _ = run.result().await;
                    }
                });
            }
        }
        ending.join_all().await;
    }
}

/// Returns whether there is no such run.
fn is_missing(error: &ServiceError) -> bool {
    error.code == Some(ProblemCode::RunNotFound)
}

/// Returns the text of a refused start. Fields of the spec have the names of the tool's arguments.
fn refused(error: ServiceError) -> String {
    let named = error.parameter.as_deref().and_then(|name| {
        let rest = error.message.strip_prefix(name)?;
        Some(json_name(name) + rest)
    });
    let message = named.unwrap_or(error.message);
    match message.strip_prefix("provider:") {
        Some(problem) => format!("agent:{problem}"),
        None => message,
    }
}

#[cfg(test)]
mod tests {
    use teamster_core::AgentError;

    use super::*;

    #[test]
    fn a_refusal_names_the_argument_of_the_tool() {
        let of = |name, problem| refused(AgentError::refused(name, problem).into());
        assert_eq!(
            of("session_id", "no such session"),
            "sessionId: no such session"
        );
        assert_eq!(of("provider", "no agent \"x\""), "agent: no agent \"x\"");
        // As a server words it.
        let remote = ServiceError::new(ProblemCode::InvalidParams, "workingDirectory: none");
        assert_eq!(refused(remote), "workingDirectory: none");
    }
}
