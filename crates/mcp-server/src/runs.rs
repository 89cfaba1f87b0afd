//! The runs of an MCP server.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};
use teamster_api::{
    AgentDepth, Answer, Change, LogStream, ProblemCode, RunHandle, RunService, RunSpec, RunView,
    ServiceError, ViewState,
};
use teamster_core::sync::lock;
use teamster_core::text::one_line;
use teamster_core::time::millis;
use teamster_core::{CostSource, PermissionMode, RunResult};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout_at};
use uuid::Uuid;

use crate::budget::{self, Spent};
use crate::limits::{Hint, refusal};
use crate::tools::{AnswerInput, Decision, Permission, RunInput};
use crate::{Limit, Limits, report};

/// The default timeout of `wait`.
const WAIT: Duration = Duration::from_secs(45);
/// The default number of events in a page.
const PAGE: usize = 100;
/// The maximum number of events in a page.
const LARGEST_PAGE: usize = 1000;

/// The runs of an MCP server.
pub(crate) struct AgentRuns {
    service: Arc<dyn RunService>,
    limits: Limits,
    hint: Hint,
    started: Mutex<BTreeMap<String, StartedRun>>,
    /// Held while the limits are checked and a run is started.
    starting: tokio::sync::Mutex<()>,
}

/// A run that this server started.
#[derive(Debug, Clone)]
struct StartedRun {
    agent: String,
    result: Option<Box<RunResult>>,
}

impl AgentRuns {
    pub(crate) fn new(service: Arc<dyn RunService>, limits: Limits, hint: Hint) -> Self {
        Self {
            service,
            limits,
            hint,
            started: Mutex::default(),
            starting: tokio::sync::Mutex::default(),
        }
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.limits
    }

    pub(crate) fn is_read_only(&self) -> bool {
        self.limits.permission == PermissionMode::ReadOnly
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
        if !self.is_offered(&input.agent) {
            let agent = one_line(&input.agent);
            return Err(format!(
                "no agent `{agent}`: list_agents lists the available ones"
            ));
        }
        let permission = self.permission(input.permission)?;
        // Two that start at the same time must not both fit under a limit.
        let _starting = self.starting.lock().await;
        let (spent, live) = self.spent().await?;
        if live >= self.limits.max_runs {
            let most = self.limits.max_runs;
            return Err(format!(
                "{most} runs are live, which is the limit of this server: wait for one to end"
            ));
        }
        let limits = (self.limits.max_budget_usd, self.limits.max_tokens);
        let requested = (input.max_budget_usd, input.max_tokens);
        let (usd, tokens) = budget::share(spent, limits, requested)?;
        let mut spec = RunSpec::new(&*input.agent, input.prompt);
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
            agent: input.agent,
            result: None,
        };
        // Before the call: the run may start although the answer is lost.
        lock(&self.started).insert(run_id.clone(), started);
        if let Err(error) = self.service.start(&run_id, spec.into()).await {
            if error.code.is_some() {
                lock(&self.started).remove(&run_id);
            }
            return Err(refused(error));
        }
        Ok(run_id)
    }

    /// Returns the permission mode of a run. Fails if it exceeds the server's limit.
    fn permission(&self, requested: Option<Permission>) -> Result<PermissionMode, String> {
        let most = match self.limits.permission {
            PermissionMode::ReadOnly => Permission::ReadOnly,
            PermissionMode::AcceptEdits => Permission::AcceptEdits,
            PermissionMode::Bypass => Permission::Bypass,
            _ => Permission::Default,
        };
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

    /// Returns the usage of all runs, and the number of live ones.
    async fn spent(&self) -> Result<(Spent, usize), String> {
        let started = lock(&self.started).clone();
        let mut spent = Spent::default();
        let mut live = 0;
        for (run_id, started) in started {
            let result = match started.result {
                Some(result) => result,
                None => match self.service.show(&run_id).await {
                    Ok(view) => match self.result(&run_id, view.result) {
                        Some(result) => result,
                        None => {
                            live += 1;
                            let run = &view.summary;
                            match &run.live {
                                Some(it) => spent.add(it.cost_usd, it.cost_source, it.usage),
                                None => spent.add(run.cost_usd, run.cost_source, run.usage),
                            }
                            continue;
                        }
                    },
                    // It did not start, or its log was removed.
                    Err(error) if is_missing(&error) => continue,
                    Err(error) if error.code == Some(ProblemCode::RunnerNotResponding) => {
                        live += 1;
                        continue;
                    }
                    Err(error) => return Err(error.to_string()),
                },
            };
            spent.add(result.total_cost_usd, result.cost_source, result.usage);
        }
        Ok((spent, live))
    }

    /// Returns the usage and limits of all runs as JSON.
    pub(crate) async fn figures(&self) -> Result<Value, String> {
        let (spent, live) = self.spent().await?;
        Ok(json!({
            "runs": lock(&self.started).len(),
            "running": live,
            "costUsd": spent.usd,
            "costSource": if spent.is_estimate { CostSource::Estimated } else { CostSource::Reported },
            "tokens": spent.tokens,
            "maxBudgetUsd": self.limits.max_budget_usd,
            "maxTokens": self.limits.max_tokens,
        }))
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

    /// Returns the agent of a run.
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

    /// Returns the report of a run.
    pub(crate) async fn report(&self, run_id: &str) -> Result<Value, String> {
        Ok(self.report_of(run_id, self.view(run_id).await?))
    }

    fn report_of(&self, run_id: &str, view: RunView) -> Value {
        let agent = self.agent(run_id);
        match self.result(run_id, view.result) {
            Some(result) => report::ended(run_id, &agent, &result),
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
        let created = at(view.summary.info.accepted_at).unwrap_or_else(Timestamp::now);
        let changed = view.summary.changed_at.and_then(at).unwrap_or(created);
        Ok((self.report_of(run_id, view), created, changed))
    }

    /// Follows the log of a run from its beginning.
    pub(crate) fn log(&self, run_id: &str) -> Result<LogStream, String> {
        Ok(self.find(run_id)?.follow(0))
    }

    /// Waits until one of the runs has ended or needs an answer.
    pub(crate) async fn wait(
        &self,
        run_ids: &[String],
        timeout_ms: Option<u64>,
    ) -> Result<Value, String> {
        if run_ids.is_empty() {
            return Err("runIds: name at least one run".to_owned());
        }
        for run_id in run_ids {
            self.find(run_id)?;
        }
        let until = Instant::now() + timeout_ms.map_or(WAIT, Duration::from_millis);
        let mut changes = self.service.changes();
        let is_over = async {
            // The first message has the state at its time, so what follows it is seen.
            while let Some(change) = poll_fn(|cx| changes.as_mut().poll_next(cx)).await {
                let is_of_interest = match change.map_err(|error| error.to_string())? {
                    Change::Snapshot { .. } => true,
                    Change::Run { run } => {
                        run.state != ViewState::Running && run_ids.contains(&run.info.run_id)
                    }
                    Change::Gone { run_id } => run_ids.contains(&run_id),
                    _ => false,
                };
                if is_of_interest {
                    let reports = self.reports(run_ids).await?;
                    if reports.iter().any(|it| it["state"] != "running") {
                        return Ok(reports);
                    }
                }
            }
            Err("the changes of runs cannot be followed: repeat the call".to_owned())
        };
        let reports = match timeout_at(until, is_over).await {
            Ok(reports) => reports?,
            Err(_) => self.reports(run_ids).await?,
        };
        Ok(json!({"runs": reports}))
    }

    async fn reports(&self, run_ids: &[String]) -> Result<Vec<Value>, String> {
        let mut reports = Vec::new();
        for run_id in run_ids {
            reports.push(self.report(run_id).await?);
        }
        Ok(reports)
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
        match self.find(run_id)?.cancel(kill).await {
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
        let mut ending = JoinSet::new();
        for (run_id, started) in lock(&self.started).clone() {
            if started.result.is_none() {
                let run = RunHandle::new(self.service.clone(), run_id);
                ending.spawn(async move {
                    // Fails if the run has ended meanwhile or cannot be reached: then there is nothing to wait for.
                    if run.cancel(false).await.is_ok() {
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
        let mut words = name.split('_');
        let mut argument = words.next().unwrap_or_default().to_owned();
        for word in words {
            let (first, rest) = word.split_at(word.len().min(1));
            argument.push_str(&first.to_ascii_uppercase());
            argument.push_str(rest);
        }
        Some(argument + rest)
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
        assert_eq!(of("provider", "no agent `x`"), "agent: no agent `x`");
        // As a server words it.
        let remote = ServiceError::new(ProblemCode::InvalidParams, "workingDirectory: none");
        assert_eq!(refused(remote), "workingDirectory: none");
    }
}
