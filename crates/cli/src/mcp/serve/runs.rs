//! The runs of an MCP server.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};
use teamster::{CostSource, PermissionMode, RunResult};
use teamster_api::{AgentDepth, Answer, Launch, Launched, RunSpec};
use teamster_core::sync::lock;
use teamster_core::time::millis;
use teamster_runner::{RunFolder, Runs, RunsError, client};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout_at};
use uuid::Uuid;

use super::budget::{self, Spent};
use super::tools::{AnswerInput, Decision, Permission, RunInput};
use super::{Limits, report};

/// The default timeout of `wait`.
const WAIT: Duration = Duration::from_secs(45);
/// The interval of checks for pending requests.
const LOOK: Duration = Duration::from_millis(300);
/// The default number of events in a page.
const PAGE: usize = 100;
/// The maximum number of events in a page.
const LARGEST_PAGE: usize = 1000;

/// The runs of an MCP server.
pub(super) struct AgentRuns {
    runs: Runs,
    limits: Limits,
    depth: AgentDepth,
    started: Mutex<BTreeMap<String, StartedRun>>,
    /// Held while the limits are checked and a run is started.
    starting: tokio::sync::Mutex<()>,
}

/// A run that this server started.
#[derive(Debug, Clone)]
struct StartedRun {
    agent: String,
    result: Option<RunResult>,
}

impl AgentRuns {
    pub(super) fn new(runs: Runs, limits: Limits) -> Self {
        // A server within a run is also bound by the limit of that run's server.
        let own = AgentDepth::new(0, Some(limits.max_depth));
        let depth = teamster_host::agent_depth().and(own);
        Self {
            runs,
            limits,
            depth,
            started: Mutex::default(),
            starting: tokio::sync::Mutex::default(),
        }
    }

    pub(super) fn is_read_only(&self) -> bool {
        self.limits.permission == PermissionMode::ReadOnly
    }

    /// Returns `true` if the server offers this agent.
    pub(super) fn is_offered(&self, agent: &str) -> bool {
        self.limits.agents.is_empty() || self.limits.agents.iter().any(|it| it == agent)
    }

    /// Starts a run and returns its id.
    pub(super) async fn start(&self, input: RunInput) -> Result<String, String> {
        if !self.depth.allows_runs() {
            let AgentDepth { own, limit, .. } = self.depth;
            return Err(format!(
                "this agent was started by another one and cannot start more (depth {own} of at most {}): do the \
                 work yourself, or leave it to the caller; `teamster mcp serve --max-depth` sets the limit",
                limit.unwrap_or(own)
            ));
        }
        let provider = crate::providers().get(&input.agent);
        let agent = provider.map(|provider| provider.info().id);
        let is_command = input.agent.contains(':');
        let agent = match agent {
            Some(agent) if self.is_offered(agent) && !is_command => agent,
            // A command must be listed with `--agent`.
            Some(agent) if self.limits.agents.iter().any(|it| it == agent) => agent,
            _ => {
                let agent = crate::words::one_line(&input.agent);
                return Err(format!(
                    "no agent `{agent}`: list_agents lists the available ones"
                ));
            }
        };
        let permission = self.permission(input.permission)?;
        if let Some(folder) = &input.working_directory
            && !folder.is_dir()
        {
            return Err(format!(
                "workingDirectory: no such directory: {}",
                folder.display()
            ));
        }
        // Two that start at the same time must not both fit under a limit.
        let _starting = self.starting.lock().await;
        let (spent, live) = self.spent().await;
        if live >= self.limits.max_runs {
            let most = self.limits.max_runs;
            return Err(format!(
                "{most} runs are live, which is the limit of this server: wait for one to end"
            ));
        }
        let limits = (self.limits.max_budget_usd, self.limits.max_tokens);
        let requested = (input.max_budget_usd, input.max_tokens);
        let (usd, tokens) = budget::share(spent, limits, requested)?;
        let mut request = RunSpec::new(agent, input.prompt);
        request.model = input.model;
        request.effort = input.effort;
        request.permission = permission;
        request.working_directory = input.working_directory;
        request.session_id = input.session_id;
        request.append_system_prompt = input.append_system_prompt;
        request.output_schema = input.output_schema;
        request.max_budget_usd = usd;
        request.max_tokens = tokens;
        let longest = millis(self.limits.max_time);
        request.max_time_ms = Some(input.max_time_ms.unwrap_or(longest).min(longest));
        let run_id = Uuid::now_v7().to_string();
        request.depth = Some(self.depth.deeper());
        let launch = Launch::new(&*run_id, request);
        match crate::host().launch(&launch).await {
            Ok(Launched::Accepted { .. }) => {}
            Ok(Launched::Refused { error, .. }) | Err(error) => return Err(error.to_string()),
            Ok(_) => return Err("the runner has another version".to_owned()),
        }
        let started = StartedRun {
            agent: agent.to_owned(),
            result: None,
        };
        lock(&self.started).insert(run_id.clone(), started);
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
            return Err(format!(
                "permission: this server allows no more than `{}`; the user can start it with more \
                 (`teamster mcp serve --permission`)",
                self.limits.permission
            ));
        }
        Ok(match requested {
            Permission::ReadOnly => PermissionMode::ReadOnly,
            Permission::Default => PermissionMode::Default,
            Permission::AcceptEdits => PermissionMode::AcceptEdits,
            Permission::Bypass => PermissionMode::Bypass,
        })
    }

    /// Returns the usage of all runs, and the number of live ones.
    async fn spent(&self) -> (Spent, usize) {
        let started = lock(&self.started).clone();
        let mut spent = Spent::default();
        let mut live = 0;
        for (run_id, started) in started {
            if let Some(result) = started.result {
                spent.add(result.total_cost_usd, result.cost_source, result.usage);
                continue;
            }
            let Ok(run) = self.find(&run_id) else {
                continue;
            };
            match client::status(&run).await {
                Ok(status) => {
                    live += 1;
                    spent.add(status.cost_usd, status.cost_source, status.usage);
                }
                Err(_) => {
                    if let Some(result) = self.result(&run) {
                        spent.add(result.total_cost_usd, result.cost_source, result.usage);
                    }
                }
            }
        }
        (spent, live)
    }

    /// Returns the usage and limits of all runs as JSON.
    pub(super) async fn figures(&self) -> Value {
        let (spent, live) = self.spent().await;
        json!({
            "runs": lock(&self.started).len(),
            "running": live,
            "costUsd": spent.usd,
            "costSource": if spent.is_estimate { CostSource::Estimated } else { CostSource::Reported },
            "tokens": spent.tokens,
            "maxBudgetUsd": self.limits.max_budget_usd,
            "maxTokens": self.limits.max_tokens,
        })
    }

    /// Finds a run that this server started.
    fn find(&self, run_id: &str) -> Result<RunFolder, String> {
        if !lock(&self.started).contains_key(run_id) {
            let id = crate::words::one_line(run_id);
            return Err(format!("run {id} was not started by this server"));
        }
        match self.runs.get(run_id) {
            Ok(Some(run)) => Ok(run),
            Ok(None) => Err(format!("the log of run {run_id} was removed")),
            Err(error) => Err(error.to_string()),
        }
    }

    /// Returns the agent of a run.
    pub(super) fn agent(&self, run_id: &str) -> String {
        let started = lock(&self.started);
        started
            .get(run_id)
            .map(|it| it.agent.clone())
            .unwrap_or_default()
    }

    /// Returns the result of a run if it has ended, and stores it.
    fn result(&self, run: &RunFolder) -> Option<RunResult> {
        let result = run.last_line().ok()??.result()?;
        if let Some(started) = lock(&self.started).get_mut(run.id()) {
            started.result = Some((*result).clone());
        }
        Some(*result)
    }

    /// Returns the report of a run.
    pub(super) async fn report(&self, run_id: &str) -> Result<Value, String> {
        let run = self.find(run_id)?;
        let agent = self.agent(run_id);
        if let Some(result) = self.result(&run) {
            return Ok(report::ended(run_id, &agent, &result));
        }
        let requests = match client::requests(&run).await {
            Ok(requests) => requests,
            Err(error) => return Err(error.to_string()),
        };
        // The run may have ended meanwhile.
        Ok(match self.result(&run) {
            Some(result) => report::ended(run_id, &agent, &result),
            None => report::running(run_id, &agent, &requests),
        })
    }

    /// Returns when the run was accepted, and when its log last changed.
    pub(super) fn times(&self, run_id: &str) -> (Timestamp, Timestamp) {
        let at = |ms: u64| Timestamp::from_millisecond(i64::try_from(ms).unwrap_or(i64::MAX)).ok();
        let now = Timestamp::now();
        let Ok(run) = self.find(run_id) else {
            return (now, now);
        };
        let created = at(run.info().accepted_at).unwrap_or(now);
        (created, run.changed_at().and_then(at).unwrap_or(created))
    }

    /// Follows the log of a run from its beginning.
    pub(super) fn log(&self, run_id: &str) -> Result<client::Follow, String> {
        client::Follow::new(self.find(run_id)?, 0).map_err(|error| error.to_string())
    }

    /// Waits until one of the runs has ended or needs an answer.
    pub(super) async fn wait(
        &self,
        run_ids: &[String],
        timeout_ms: Option<u64>,
    ) -> Result<Value, String> {
        if run_ids.is_empty() {
            return Err("runIds: name at least one run".to_owned());
        }
        let until = Instant::now() + timeout_ms.map_or(WAIT, Duration::from_millis);
        loop {
            let mut reports = Vec::new();
            for run_id in run_ids {
                reports.push(self.report(run_id).await?);
            }
            let is_done = reports.iter().any(|it| it["state"] != "running");
            if is_done || Instant::now() >= until {
                return Ok(json!({"runs": reports}));
            }
            let mut ends = JoinSet::new();
            for run_id in run_ids {
                ends.spawn(client::Follow::end(self.find(run_id)?));
            }
            // Wake at once when a run ends; poll for requests.
            let _ = timeout_at(until.min(Instant::now() + LOOK), ends.join_next()).await;
        }
    }

    /// Returns a page of a run's events.
    pub(super) fn events(
        &self,
        run_id: &str,
        after: u64,
        limit: Option<usize>,
    ) -> Result<Value, String> {
        let run = self.find(run_id)?;
        let mut log = run.log(after).map_err(|error| error.to_string())?;
        let limit = limit.unwrap_or(PAGE).clamp(1, LARGEST_PAGE);
        let mut events: Vec<Value> = Vec::new();
        let mut next = after;
        while events.len() < limit
            && let Some(line) = log.next_line().map_err(|error| error.to_string())?
        {
            next = line.seq();
            events.extend(line.entry().ok().as_ref().and_then(report::event));
        }
        Ok(json!({"events": events, "next": next, "ended": log.has_ended()}))
    }

    /// Answers a request of a run.
    pub(super) async fn answer(&self, input: AnswerInput) -> Result<Value, String> {
        let run_id = input.request_id.split('/').next().unwrap_or_default();
        let run = self.find(run_id)?;
        let answer = match (input.decision, input.input) {
            (Decision::Deny, _) => Answer::Deny {
                reason: input.reason,
            },
            (Decision::Allow, Some(input)) => Answer::AllowWith { input },
            // An answer must not exceed the server's permission.
            (Decision::Allow, None) if self.is_read_only() => {
                return Err(
                    "this server is read-only: requests can only be denied; the user can start it with more \
                     (`teamster mcp serve --permission`)"
                        .to_owned(),
                );
            }
            (Decision::Allow, None) => Answer::Allow,
        };
        let pending = client::requests(&run)
            .await
            .map_err(|error| error.to_string())?;
        let is_question =
            (pending.iter()).any(|it| it.request_id == input.request_id && it.schema.is_some());
        if self.is_read_only() && matches!(answer, Answer::AllowWith { .. }) && !is_question {
            return Err(
                "this server is read-only: an input is only an answer to a question".to_owned(),
            );
        }
        client::answer(&run, &input.request_id, answer)
            .await
            .map_err(|error| error.to_string())?;
        Ok(json!({"requestId": input.request_id, "answered": true}))
    }

    /// Stops a run.
    pub(super) async fn cancel(&self, run_id: &str, kill: bool) -> Result<Value, String> {
        let run = self.find(run_id)?;
        match client::cancel(&run, kill).await {
            // A run that has ended needs no cancellation.
            Ok(()) | Err(RunsError::Ended { .. }) => self.report(run_id).await,
            Err(error) => Err(error.to_string()),
        }
    }

    /// Cancels the client's runs after it disconnected, unless `--keep-runs` is set.
    pub(super) async fn end(&self) {
        if self.limits.keep_runs {
            return;
        }
        let started: Vec<_> = lock(&self.started).keys().cloned().collect();
        let mut ending = JoinSet::new();
        for run_id in started {
            if let Ok(run) = self.find(&run_id)
                && self.result(&run).is_none()
            {
                ending.spawn(async move {
                    // The run may have ended meanwhile.
                    let _ = client::cancel(&run, false).await;
                    let _ = client::Follow::end(run).await;
                });
            }
        }
        ending.join_all().await;
    }
}
