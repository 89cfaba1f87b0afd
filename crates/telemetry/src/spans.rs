//! Entries of the logs of runs as spans.

mod model;
mod permission;

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use opentelemetry::trace::{Span as _, SpanBuilder, Status, TraceContextExt, Tracer as _};
use opentelemetry::{Context, KeyValue};
use opentelemetry_sdk::trace::{SdkTracer, Span};
use teamster_core::sync::lock;
use teamster_core::text::excerpt;
use teamster_core::{
    AgentError, AgentEvent, Attempt, ErrorCode, ErrorKind, Id, LifecycleEntry, LogEntry, Outcome,
    RunEvent, RunResult, ToolUse,
};
use teamster_orchestrator::{Accepted, RunObserver};

use crate::attributes as names;
use crate::attributes::{message, number, of_stop, of_text, of_usage, short};
use crate::context::{self, context_of};
use model::ModelRequest;
use permission::RequestSpan;

/// Maximum number of bytes of one prompt, answer, argument or result.
const CONTENT_BYTES: usize = 16 << 10;
/// Maximum number of calls of a run, and of its requests, whose spans are open at once.
const MOST_OPEN: usize = 1024;
/// Error type of a call whose tool reports that it failed.
const TOOL_ERROR: &str = "tool_error";
/// Name of the event of a run that waits.
const HOLD_EVENT: &str = "teamster.hold";
/// Name of the event of a request that a CLI repeats.
const RETRY_EVENT: &str = "teamster.retry";

/// Returns the vendor of the models of a provider, by its id. `None` if it has those of several.
pub(crate) type Vendors = Arc<dyn Fn(&str) -> Option<&'static str> + Send + Sync>;

pub(crate) struct Spans {
    tracer: SdkTracer,
    /// Context in which this process was started.
    parent: Context,
    has_content: bool,
    vendors: Vendors,
    runs: Mutex<HashMap<Id, RunSpans>>,
}

/// A span that has not ended, and the context of its children.
struct Open {
    span: Span,
    start_ms: u64,
    context: Context,
    has_failed: bool,
}

/// The spans of a run that has not ended.
struct RunSpans {
    root: Open,
    accepted_ms: u64,
    /// True once the run has waited for a hold or a slot.
    has_waited: bool,
    /// Attempts, which end with the run: its end has their usage.
    attempts: Vec<AttemptSpan>,
    /// Calls that have not ended.
    tools: HashMap<Id, Open>,
    /// Requests that wait for an answer.
    requests: Vec<RequestSpan>,
    /// The request to the model that is in progress.
    model: ModelRequest,
    /// The answer, if content is sent.
    answer: Option<String>,
}

struct AttemptSpan {
    own: Open,
    provider: String,
    model: Option<String>,
    number: u32,
    /// Time at which the log reports that it has failed.
    end_ms: Option<u64>,
    /// Time of the last result of a tool.
    result_ms: u64,
}

impl Spans {
    pub(crate) fn new(
        tracer: SdkTracer,
        parent: Context,
        has_content: bool,
        vendors: Vendors,
    ) -> Self {
        Self {
            tracer,
            parent,
            has_content,
            vendors,
            runs: Mutex::default(),
        }
    }

    fn begin(&self, run: Accepted<'_>) {
        let mut attributes = vec![
            KeyValue::new(names::OPERATION, names::INVOKE_AGENT),
            KeyValue::new(names::RUN, run.run_id.clone()),
        ];
        attributes.extend(self.of_agent(run.provider, run.params.model.as_deref()));
        if self.has_content {
            let prompt = excerpt(&run.params.prompt, CONTENT_BYTES);
            let messages = message("user", &prompt, None);
            attributes.push(KeyValue::new(names::INPUT, messages));
        }
        let name = format!("{} {}", names::INVOKE_AGENT, agent_name(run.provider));
        let own = context_of(|name| run.params.env.get(name).cloned());
        let parent = own.as_ref().unwrap_or(&self.parent);
        let root = self.open(name, run.at_ms, attributes, parent);
        let spans = RunSpans {
            root,
            accepted_ms: run.at_ms,
            has_waited: false,
            attempts: Vec::new(),
            tools: HashMap::new(),
            requests: Vec::new(),
            model: ModelRequest::default(),
            answer: None,
        };
        lock(&self.runs).insert(run.run_id.clone(), spans);
    }

    /// Ends the spans of all runs, because the process ends.
    pub(crate) fn end(&self, at_ms: u64) {
        let runs: Vec<_> = lock(&self.runs).drain().collect();
        for (id, run) in runs {
            let error = AgentError::new(
                ErrorCode::StreamEndedEarly,
                ErrorKind::Interrupted,
                "the process ended before the run",
            );
            let mut outcome = Outcome::new(id, "", RunResult::default());
            outcome.error = Some(error);
            self.finish(run, at_ms, &outcome);
        }
    }

    fn finish(&self, mut run: RunSpans, at_ms: u64, outcome: &Outcome) {
        run.cut_off(at_ms);
        for attempt in run.attempts {
            let index = usize::try_from(attempt.number).map_or(0, |it| it.saturating_sub(1));
            self.finish_attempt(attempt, outcome.attempts.get(index), at_ms);
        }
        let result = &outcome.result;
        let usage = result.usage.as_ref();
        let mut attributes = of_usage(usage, result.total_cost_usd, result.cost_source);
        attributes.push(KeyValue::new(names::STATUS, result.status.as_str()));
        let attempts = number(outcome.attempts.len() as u64);
        attributes.push(KeyValue::new(names::ATTEMPTS, attempts));
        let turns = result.num_turns.map(i64::from);
        attributes.extend(turns.map(|turns| KeyValue::new(names::TURNS, turns)));
        attributes.extend(result.stop_reason.as_deref().map(of_stop));
        attributes.extend(of_answer(
            outcome.model.as_ref(),
            outcome.session_id.as_ref(),
        ));
        if let Some(answer) = &run.answer {
            let messages = message("assistant", answer, result.stop_reason.as_deref());
            attributes.push(KeyValue::new(names::OUTPUT, messages));
        }
        run.root.span.set_attributes(attributes);
        let failure = outcome.error.clone().or_else(|| result.failure());
        if let Some(error) = failure {
            self.fail(&mut run.root, &error);
        }
        run.root.end(at_ms);
    }

    fn finish_attempt(&self, mut attempt: AttemptSpan, record: Option<&Attempt>, at_ms: u64) {
        let span = &mut attempt.own;
        if let Some(record) = record {
            let (usage, cost) = (record.usage.as_ref(), record.cost_usd);
            let mut attributes = of_usage(usage, cost, record.cost_source);
            attributes.extend(of_answer(record.model.as_ref(), record.session_id.as_ref()));
            let account = record.account.clone();
            attributes.extend(account.map(|name| KeyValue::new(names::ACCOUNT, name)));
            span.span.set_attributes(attributes);
            if let Some(error) = &record.error {
                self.fail(span, error);
            }
        }
        // What follows the last attempt, such as keeping its workspace, is of the run alone.
        // A duration is rounded down, and the clock that it is of is not the log's.
        let of_record = record.map(|it| span.start_ms.saturating_add(it.duration_ms));
        let of_record = of_record.map(|end_ms| end_ms.max(attempt.result_ms));
        let end_ms = attempt.end_ms.or(of_record).unwrap_or(at_ms);
        attempt.own.end(end_ms.min(at_ms));
    }

    /// Marks a span as failed. The text of an error may repeat content.
    fn fail(&self, span: &mut Open, error: &AgentError) {
        let description = if self.has_content {
            excerpt(&error.message, CONTENT_BYTES)
        } else {
            error.code.as_str().to_owned()
        };
        span.fail(error.kind.as_str(), description);
    }

    fn tool(&self, tool: &ToolUse, at_ms: u64, parent: &Context) -> Open {
        let mut attributes = vec![
            KeyValue::new(names::OPERATION, names::EXECUTE_TOOL),
            of_text(names::TOOL, &tool.tool_name),
            of_text(names::CALL, &tool.tool_id),
            KeyValue::new(names::KIND, tool.kind.as_str()),
        ];
        let server = tool.mcp.as_ref().map(|mcp| &mcp.server);
        attributes.extend(server.map(|name| of_text(names::SERVER, name)));
        if self.has_content {
            let arguments = excerpt(&tool.input.to_string(), CONTENT_BYTES);
            attributes.push(KeyValue::new(names::ARGUMENTS, arguments));
        }
        let name = format!("{} {}", names::EXECUTE_TOOL, short(&tool.tool_name));
        self.open(name, at_ms, attributes, parent)
    }

    /// Returns what is known of an agent before it begins.
    fn of_agent(&self, provider: &str, model: Option<&str>) -> Vec<KeyValue> {
        let agent = agent_name(provider);
        // A CLI with the models of several vendors names the vendor before the model.
        let of_model = || Some(model?.split_once('/')?.0.to_owned());
        let vendor = (self.vendors)(provider).map(str::to_owned);
        let vendor = vendor.or_else(of_model).unwrap_or_else(|| agent.clone());
        let mut attributes = vec![
            KeyValue::new(names::PROVIDER, vendor),
            KeyValue::new(names::AGENT, agent),
        ];
        let model = model.map(|model| KeyValue::new(names::REQUEST_MODEL, model.to_owned()));
        attributes.extend(model);
        attributes
    }

    fn open(&self, name: String, at_ms: u64, attributes: Vec<KeyValue>, parent: &Context) -> Open {
        let builder = SpanBuilder::from_name(name)
            .with_start_time(time(at_ms))
            .with_attributes(attributes);
        let span = self.tracer.build_with_context(builder, parent);
        let context = Context::new().with_remote_span_context(span.span_context().clone());
        Open {
            span,
            start_ms: at_ms,
            context,
            has_failed: false,
        }
    }
}

#[async_trait::async_trait]
impl RunObserver for Spans {
    /// Returns the context of the run, for agents and tools that make spans of their own.
    fn variables(&self, run_id: &Id) -> Vec<(String, String)> {
        let runs = lock(&self.runs);
        let Some(run) = runs.get(run_id) else {
            return Vec::new();
        };
        context::variables(&run.root.context)
    }

    async fn accepted(&self, run: Accepted<'_>) {
        self.begin(run);
    }

    fn run_entry(&self, entry: &LifecycleEntry) {
        let Some(id) = entry.event.run_id() else {
            return;
        };
        let mut runs = lock(&self.runs);
        let Some(run) = runs.get_mut(id) else {
            return;
        };
        match &entry.event {
            RunEvent::Hold { reason, .. } => {
                run.has_waited = true;
                let reason = reason.as_ref().map_or("slot", |error| error.kind.as_str());
                let attribute = KeyValue::new("teamster.hold.reason", reason);
                run.root.event(HOLD_EVENT, entry.at_ms, vec![attribute]);
            }
            RunEvent::Attempt {
                attempt,
                provider,
                model,
                resumes,
                ..
            } => {
                // The log has the first one with the agent's first event, when its process has been starting for a while.
                let is_first = run.attempts.is_empty() && !run.has_waited;
                let start_ms = if is_first {
                    run.accepted_ms
                } else {
                    entry.at_ms
                };
                let mut attributes = self.of_agent(provider, model.as_deref());
                attributes.push(KeyValue::new(names::ATTEMPT, i64::from(*attempt)));
                attributes.push(KeyValue::new(names::RESUMED, resumes.is_some()));
                let name = format!("{} {}", names::ATTEMPT_SPAN, agent_name(provider));
                run.model.begin(start_ms);
                run.attempts.push(AttemptSpan {
                    own: self.open(name, start_ms, attributes, &run.root.context),
                    provider: provider.clone(),
                    model: model.clone(),
                    number: *attempt,
                    end_ms: None,
                    result_ms: start_ms,
                });
            }
            RunEvent::Retry { .. } | RunEvent::Fallback { .. } => {
                run.cut_off(entry.at_ms);
                if let Some(attempt) = run.attempts.last_mut() {
                    // One that was passed over made no attempt.
                    attempt.end_ms.get_or_insert(entry.at_ms);
                }
            }
            RunEvent::End(outcome) => {
                if let Some(run) = runs.remove(id) {
                    drop(runs);
                    self.finish(run, entry.at_ms, outcome);
                }
            }
            _ => {}
        }
    }

    fn agent_entry(&self, entry: &LogEntry) {
        // Most entries are of these.
        if matches!(entry.event, AgentEvent::Text(_) | AgentEvent::Thinking(_)) {
            return;
        }
        let Some(id) = &entry.run_id else {
            return;
        };
        let mut runs = lock(&self.runs);
        let Some(run) = runs.get_mut(id) else {
            return;
        };
        self.model_entry(run, &entry.event, entry.at_ms);
        match &entry.event {
            AgentEvent::ToolUse(tool) if run.tools.len() < MOST_OPEN => {
                let parent = run.parent_of(tool.parent_tool_id.as_ref());
                let tool_span = self.tool(tool, entry.at_ms, &parent);
                run.tools.insert(tool.tool_id.clone(), tool_span);
            }
            AgentEvent::ToolResult(result) => {
                if let Some(attempt) = run.attempts.last_mut() {
                    attempt.result_ms = entry.at_ms;
                }
                // Not every agent reports the decision.
                let request = run.request(|it| it.tool_id.as_ref() == Some(&result.tool_id));
                if let Some(request) = request {
                    request.own.end(entry.at_ms);
                }
                if let Some(mut tool) = run.tools.remove(&result.tool_id) {
                    if self.has_content {
                        let output = excerpt(&result.output, CONTENT_BYTES);
                        let attribute = KeyValue::new(names::RESULT, output);
                        tool.span.set_attribute(attribute);
                    }
                    if result.is_error == Some(true) {
                        tool.fail(TOOL_ERROR, String::new());
                    }
                    tool.end(entry.at_ms);
                }
            }
            AgentEvent::Permission(permission) => {
                self.permission(run, permission, entry.at_ms);
            }
            AgentEvent::Retry(retry) => {
                if let Some(attempt) = run.attempts.last_mut() {
                    let kind = KeyValue::new(names::ERROR_TYPE, retry.error.kind.as_str());
                    let number = i64::from(retry.attempt);
                    let number = KeyValue::new("teamster.retry.number", number);
                    let attributes = vec![kind, number];
                    attempt.own.event(RETRY_EVENT, entry.at_ms, attributes);
                }
            }
            AgentEvent::Done(done) => {
                // The end of the run was not reported: its task was dropped.
                if let Some(run) = runs.remove(id) {
                    drop(runs);
                    let outcome = Outcome::new(id.clone(), "", (*done.result).clone());
                    self.finish(run, entry.at_ms, &outcome);
                }
            }
            _ => {}
        }
    }

    async fn ended(&self, outcome: &Outcome) {
        // The last entry of a run does not have its answer.
        if self.has_content
            && let Some(run) = lock(&self.runs).get_mut(&outcome.run_id)
        {
            run.answer = outcome.answer().map(|text| excerpt(text, CONTENT_BYTES));
        }
    }
}

impl Open {
    /// Sets the error of the span, unless it has one.
    fn fail(&mut self, kind: &'static str, description: String) {
        if !self.has_failed {
            self.has_failed = true;
            self.span
                .set_attribute(KeyValue::new(names::ERROR_TYPE, kind));
            self.span.set_status(Status::error(description));
        }
    }

    fn event(&mut self, name: &'static str, at_ms: u64, attributes: Vec<KeyValue>) {
        (self.span).add_event_with_timestamp(name, time(at_ms), attributes);
    }

    /// Ends the span, at its start if the clock was set back since.
    fn end(mut self, at_ms: u64) {
        let end = time(at_ms.max(self.start_ms));
        self.span.end_with_timestamp(end);
    }
}

impl RunSpans {
    /// Returns the context of a call: of the call that has started the sub-agent, of the attempt, or of the run.
    fn parent_of(&self, parent: Option<&Id>) -> Context {
        let attempt = self.attempts.last().map(|attempt| &attempt.own);
        let call = parent.and_then(|id| self.tools.get(id));
        call.or(attempt).unwrap_or(&self.root).context.clone()
    }

    /// Ends the requests and calls that were cut off.
    fn cut_off(&mut self, at_ms: u64) {
        let requests = self.requests.drain(..).map(|request| request.own);
        for mut span in requests.chain(self.tools.drain().map(|(_, tool)| tool)) {
            span.fail(ErrorKind::Interrupted.as_str(), String::new());
            span.end(at_ms);
        }
    }
}

/// Returns what the agent has reported of itself.
fn of_answer(model: Option<&String>, session: Option<&Id>) -> Vec<KeyValue> {
    let model = model.map(|model| of_text(names::RESPONSE_MODEL, model));
    let session = session.map(|id| of_text(names::CONVERSATION, id));
    model.into_iter().chain(session).collect()
}

/// Returns the name of an agent. The command of one that is named by it may be secret, and there are many.
fn agent_name(provider: &str) -> String {
    match provider.trim_start().split_once(':') {
        Some((kind, _)) => kind.to_ascii_lowercase(),
        None => provider.to_owned(),
    }
}

fn time(ms: u64) -> SystemTime {
    let time = UNIX_EPOCH.checked_add(Duration::from_millis(ms));
    time.unwrap_or(UNIX_EPOCH)
}

#[cfg(test)]
mod tests;
