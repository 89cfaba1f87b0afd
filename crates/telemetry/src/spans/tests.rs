mod model;

use opentelemetry::trace::{SpanContext, SpanId, TraceFlags, TraceId, TraceState, TracerProvider};
use opentelemetry_sdk::trace::{InMemorySpanExporter, SdkTracerProvider, SpanData};
use serde_json::json;
use teamster_core::time::{epoch_ms, epoch_ms_of};
use teamster_core::{Decision, ExecuteParams, PermissionEvent, RunLogEntry, ToolKind, Usage};
use teamster_orchestrator::{Candidate, Orchestrator, OrchestratorConfig, RunRequest};
use teamster_testkit::mock_runtime::{MockRuntime, Script};

use super::*;

const PROMPT: &str = "the secret prompt";

/// Spans that are kept, and what keeps them.
struct Kept {
    spans: Arc<Spans>,
    exporter: InMemorySpanExporter,
    _provider: SdkTracerProvider,
}

impl Kept {
    fn new(has_content: bool, parent: Context) -> Self {
        let exporter = InMemorySpanExporter::default();
        let provider = SdkTracerProvider::builder()
            .with_simple_exporter(exporter.clone())
            .build();
        let vendors: Vendors = Arc::new(|id| (id == "claude").then_some("anthropic"));
        let spans = Spans::new(provider.tracer("test"), parent, has_content, vendors);
        Self {
            spans: Arc::new(spans),
            exporter,
            _provider: provider,
        }
    }

    fn ended(&self) -> Vec<SpanData> {
        self.exporter.get_finished_spans().unwrap()
    }

    async fn run(&self, agents: Vec<MockRuntime>) -> Vec<RunLogEntry> {
        let mut log = orchestrator().start_log(self.request(agents));
        let mut entries = Vec::new();
        while let Some(entry) = log.next().await {
            entries.push(entry);
        }
        entries
    }

    fn request(&self, agents: Vec<MockRuntime>) -> RunRequest {
        let mut params = ExecuteParams::new(PROMPT);
        params.model = Some("large/model".into());
        let mut agents = agents.into_iter();
        let first = Arc::new(agents.next().unwrap());
        let mut request = RunRequest::new(first, params.clone()).id("r");
        for agent in agents {
            request = request.fallback(Candidate::new(Arc::new(agent), params.clone()));
        }
        request.observer = Some(self.spans.clone());
        request
    }
}

fn orchestrator() -> Orchestrator {
    Orchestrator::new(OrchestratorConfig::default()).unwrap()
}

fn no_login() -> AgentError {
    AgentError::new(
        ErrorCode::CliError,
        ErrorKind::Auth,
        "no login for the secret prompt",
    )
}

fn named<'a>(spans: &'a [SpanData], name: &str) -> &'a SpanData {
    let mut found = spans.iter().filter(|span| span.name == name);
    let span = found.next().unwrap_or_else(|| panic!("no {name}"));
    assert!(found.next().is_none(), "{name} twice");
    span
}

fn value(span: &SpanData, key: &str) -> Option<String> {
    let mut values = span.attributes.iter().filter(|it| it.key.as_str() == key);
    let value = values.next().map(|it| it.value.as_str().into_owned());
    assert!(values.next().is_none(), "{key} twice");
    value
}

#[track_caller]
fn has(span: &SpanData, key: &str, expected: &str) {
    assert_eq!(value(span, key).as_deref(), Some(expected), "{key}");
}

/// Returns the attributes of a span in its order.
fn all(span: &SpanData) -> Vec<String> {
    let text = |it: &KeyValue| format!("{}={}", it.key.as_str(), it.value.as_str());
    span.attributes.iter().map(text).collect()
}

fn start(span: &SpanData) -> u64 {
    epoch_ms_of(span.start_time)
}

fn end(span: &SpanData) -> u64 {
    epoch_ms_of(span.end_time)
}

/// Returns the time of the first entry that is as wanted.
fn at(log: &[RunLogEntry], mut is: impl FnMut(&RunLogEntry) -> bool) -> u64 {
    log.iter().find(|entry| is(entry)).unwrap().at_ms()
}

fn is_use(entry: &RunLogEntry, id: &str) -> bool {
    matches!(entry, RunLogEntry::Agent(entry) if matches!(&entry.event, AgentEvent::ToolUse(tool) if &*tool.tool_id == id))
}

fn is_result(entry: &RunLogEntry, id: &str) -> bool {
    matches!(entry, RunLogEntry::Agent(entry) if matches!(&entry.event, AgentEvent::ToolResult(tool) if &*tool.tool_id == id))
}

fn two_agents() -> Vec<MockRuntime> {
    let claude = Script::new()
        .session("one")
        .tool_use("Read", "a", ToolKind::Read, json!({"path": "secret input"}))
        .tool_result("a", "secret output")
        .failed(no_login());
    let usage = Usage::default()
        .input_tokens(10)
        .output_tokens(20)
        .cache_read_tokens(300)
        .cache_write_tokens(4000);
    let codex = Script::new()
        .session("two")
        .tool_use(
            "Bash",
            "b",
            ToolKind::Execute,
            json!({"command": "secret input"}),
        )
        .tool_error("b", "secret output")
        .text("secret answer")
        .model("small")
        .result_usage(usage)
        .cost_usd(0.25)
        .num_turns(2)
        .stop_reason("end_turn")
        .completed();
    vec![
        MockRuntime::new("claude").run(claude),
        MockRuntime::new("codex").run(codex),
    ]
}

#[tokio::test]
async fn run_with_a_fallback_is_one_trace_of_attempts_and_tools() {
    let kept = Kept::new(false, Context::new());
    let log = kept.run(two_agents()).await;
    let spans = kept.ended();
    assert_eq!(spans.len(), 5, "{spans:?}");
    let root = named(&spans, "invoke_agent claude");
    assert_eq!(root.parent_span_id, SpanId::INVALID);
    let (first, second) = (
        named(&spans, "attempt claude"),
        named(&spans, "attempt codex"),
    );
    let (read, bash) = (
        named(&spans, "execute_tool Read"),
        named(&spans, "execute_tool Bash"),
    );
    for (span, parent) in [(first, root), (second, root), (read, first), (bash, second)] {
        assert_eq!(span.span_context.trace_id(), root.span_context.trace_id());
        assert_eq!(
            span.parent_span_id,
            parent.span_context.span_id(),
            "{}",
            span.name
        );
        assert!(
            start(span) >= start(parent) && end(span) <= end(parent),
            "{}",
            span.name
        );
    }
    assert_eq!(
        all(root),
        [
            "gen_ai.operation.name=invoke_agent",
            "teamster.run.id=r",
            "gen_ai.provider.name=anthropic",
            "gen_ai.agent.name=claude",
            "gen_ai.request.model=large/model",
            "gen_ai.usage.input_tokens=4310",
            "gen_ai.usage.output_tokens=20",
            "gen_ai.usage.cache_read.input_tokens=300",
            "gen_ai.usage.cache_creation.input_tokens=4000",
            "teamster.cost.usd=0.25",
            "teamster.cost.source=reported",
            "teamster.run.status=completed",
            "teamster.run.attempts=2",
            "teamster.run.turns=2",
            "gen_ai.response.finish_reasons=[\"end_turn\"]",
            "gen_ai.response.model=small",
            "gen_ai.conversation.id=two",
        ]
    );
    assert_eq!(root.status, Status::Unset);
    assert_eq!(
        all(bash),
        [
            "gen_ai.operation.name=execute_tool",
            "gen_ai.tool.name=Bash",
            "gen_ai.tool.call.id=b",
            "teamster.tool.kind=execute",
            "error.type=tool_error",
        ]
    );
    assert_eq!(bash.status, Status::error(""));
    assert_eq!(read.status, Status::Unset);
    // No operation of the conventions: its tokens would count twice.
    assert_eq!(value(first, "gen_ai.operation.name"), None);
    has(first, "gen_ai.conversation.id", "one");
    has(first, "error.type", "auth");
    assert_eq!(first.status, Status::error("CLI_ERROR"));
    // The vendor that is named before the model.
    has(second, "gen_ai.provider.name", "large");
    has(second, "teamster.attempt.number", "2");
    has(second, "gen_ai.usage.output_tokens", "20");
    for (span, id) in [(read, "a"), (bash, "b")] {
        assert_eq!(start(span), at(&log, |entry| is_use(entry, id)));
        assert_eq!(end(span), at(&log, |entry| is_result(entry, id)));
    }
    let is_fallback = |entry: &RunLogEntry| matches!(entry, RunLogEntry::Run(entry) if matches!(entry.event, RunEvent::Fallback { .. }));
    assert_eq!(end(first), at(&log, is_fallback));
}

#[tokio::test]
async fn content_is_in_spans_on_request_only() {
    let silent = Kept::new(false, Context::new());
    silent.run(two_agents()).await;
    let spans = format!("{:?}", silent.ended());
    assert!(!spans.contains("secret"), "{spans}");

    let open = Kept::new(true, Context::new());
    open.run(two_agents()).await;
    let spans = open.ended();
    let root = named(&spans, "invoke_agent claude");
    has(
        root,
        "gen_ai.input.messages",
        r#"[{"role":"user","parts":[{"type":"text","content":"the secret prompt"}]}]"#,
    );
    has(
        root,
        "gen_ai.output.messages",
        r#"[{"role":"assistant","parts":[{"type":"text","content":"secret answer"}],"finish_reason":"end_turn"}]"#,
    );
    let bash = named(&spans, "execute_tool Bash");
    has(
        bash,
        "gen_ai.tool.call.arguments",
        r#"{"command":"secret input"}"#,
    );
    has(bash, "gen_ai.tool.call.result", "secret output");
    let first = named(&spans, "attempt claude");
    assert_eq!(
        first.status,
        Status::error("no login for the secret prompt")
    );
}

#[tokio::test]
async fn denied_and_cut_off_calls_are_errors_of_their_kinds() {
    let kept = Kept::new(false, Context::new());
    let script = Script::new()
        .tool_use("Task", "t", ToolKind::Task, json!({}))
        .tool_use("Edit", "e", ToolKind::Edit, json!({}))
        .permission_denied("Edit", "e", "no")
        .tool_error("e", "no")
        .text("x");
    kept.run(vec![MockRuntime::new("claude").run(script)]).await;
    let spans = kept.ended();
    let edit = named(&spans, "execute_tool Edit");
    has(edit, "error.type", "permission");
    let task = named(&spans, "execute_tool Task");
    has(task, "error.type", "interrupted");
    let root = named(&spans, "invoke_agent claude");
    assert_eq!(value(root, "error.type"), None);
    has(root, "teamster.run.status", "completed");
}

#[tokio::test]
async fn parent_of_the_environment_is_the_parent_of_the_run() {
    let parent = SpanContext::new(
        TraceId::from(7),
        SpanId::from(9),
        TraceFlags::SAMPLED,
        true,
        TraceState::default(),
    );
    let kept = Kept::new(false, Context::new().with_remote_span_context(parent));
    kept.run(vec![
        MockRuntime::new("claude").run(Script::new().text("x")),
    ])
    .await;
    let spans = kept.ended();
    let root = named(&spans, "invoke_agent claude");
    assert_eq!(root.span_context.trace_id(), TraceId::from(7));
    assert_eq!(root.parent_span_id, SpanId::from(9));
}

#[tokio::test]
async fn requests_are_spans_from_the_question_to_the_answer() {
    let kept = Kept::new(false, Context::new());
    let permission = |tool: &str, id: &str, decision| {
        let event = PermissionEvent::new(tool, decision).tool_id(id);
        AgentEvent::Permission(Box::new(event))
    };
    let script = Script::new()
        .tool_use("Bash", "b", ToolKind::Execute, json!({}))
        .event(permission("Bash", "b", Decision::Requested))
        .event(permission("Bash", "b", Decision::Allowed))
        .tool_result("b", "done")
        .event(permission("Edit", "e", Decision::Requested))
        .event(permission("Edit", "e", Decision::Denied))
        .event(permission("Write", "w", Decision::Requested))
        .text("x");
    kept.run(vec![MockRuntime::new("claude").run(script)]).await;
    let spans = kept.ended();
    let bash = named(&spans, "request Bash");
    let call = named(&spans, "execute_tool Bash");
    assert_eq!(bash.parent_span_id, call.span_context.span_id());
    has(bash, "teamster.request.decision", "allowed");
    has(bash, "gen_ai.tool.call.id", "b");
    // The request comes before its call.
    let edit = named(&spans, "request Edit");
    let attempt = named(&spans, "attempt claude");
    assert_eq!(edit.parent_span_id, attempt.span_context.span_id());
    has(edit, "teamster.request.decision", "denied");
    assert_eq!(edit.status, Status::Unset);
    let write = named(&spans, "request Write");
    assert_eq!(value(write, "teamster.request.decision"), None);
    has(write, "error.type", "interrupted");
}

#[tokio::test]
async fn parent_in_the_variables_of_a_run_is_its_own() {
    let kept = Kept::new(false, Context::new());
    let agent = MockRuntime::new("claude").run(Script::new().text("x"));
    let mut request = kept.request(vec![agent.clone()]);
    let parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let env = &mut request.candidates[0].params.env;
    env.insert("TRACEPARENT".into(), parent.into());
    orchestrator().start(request).outcome().await;
    let spans = kept.ended();
    let root = named(&spans, "invoke_agent claude");
    let trace = root.span_context.trace_id().to_string();
    assert_eq!(trace, "0af7651916cd43dd8448eb211c80319c");
    assert_eq!(root.parent_span_id.to_string(), "b7ad6b7169203331");
    let given = &agent.runs()[0].params.env["TRACEPARENT"];
    assert_eq!(
        *given,
        format!("00-{trace}-{}-01", root.span_context.span_id())
    );
}

#[tokio::test]
async fn agents_get_the_run_as_the_parent_of_their_spans() {
    let kept = Kept::new(false, Context::new());
    let agent = MockRuntime::new("claude").run(Script::new().text("x"));
    kept.run(vec![agent.clone()]).await;
    let spans = kept.ended();
    let root = &named(&spans, "invoke_agent claude").span_context;
    let runs = agent.runs();
    let expected = format!("00-{}-{}-01", root.trace_id(), root.span_id());
    assert_eq!(runs[0].params.env["TRACEPARENT"], expected);
    assert!(!runs[0].params.env.contains_key("TRACESTATE"));
    // An ended run has no context.
    assert!(kept.spans.variables(&"r".into()).is_empty());
}

#[tokio::test]
async fn open_calls_and_their_names_are_bounded() {
    let kept = Kept::new(false, Context::new());
    let name = "n".repeat(1000);
    let mut script = Script::new();
    for call in 0..=MOST_OPEN {
        script = script.tool_use(&name, call.to_string(), ToolKind::Other, json!({}));
    }
    let script = script.text("x");
    kept.run(vec![MockRuntime::new("claude").run(script)]).await;
    let spans = kept.ended();
    let cut = format!("execute_tool {}… (1000 bytes in all)", "n".repeat(256));
    let calls = spans.iter().filter(|span| span.name == cut).count();
    // The others are the run and its attempt.
    assert_eq!((calls, spans.len()), (MOST_OPEN, MOST_OPEN + 2));
}

#[tokio::test]
async fn clock_that_is_set_back_ends_no_span_before_its_start() {
    let kept = Kept::new(false, Context::new());
    let (id, params): (Id, _) = ("r".into(), ExecuteParams::new(PROMPT));
    let accepted = Accepted::new(&id, "claude", &params).at_ms(2000);
    kept.spans.accepted(accepted).await;
    kept.spans.end(1000);
    let spans = kept.ended();
    let root = named(&spans, "invoke_agent claude");
    assert_eq!((start(root), end(root)), (2000, 2000));
}

#[tokio::test]
async fn command_of_an_agent_is_in_no_span() {
    let kept = Kept::new(false, Context::new());
    let agent = MockRuntime::new("cmd:tool --token secret").run(Script::new().text("x"));
    kept.run(vec![agent]).await;
    let spans = kept.ended();
    assert_eq!(
        value(named(&spans, "invoke_agent cmd"), "gen_ai.agent.name").as_deref(),
        Some("cmd")
    );
    let spans = format!("{spans:?}");
    assert!(!spans.contains("secret"), "{spans}");
}

#[tokio::test]
async fn run_in_progress_at_the_end_of_the_process_is_interrupted() {
    let kept = Kept::new(false, Context::new());
    let script = Script::new()
        .tool_use("Bash", "b", ToolKind::Execute, json!({}))
        .wait_for_abort();
    let mut log =
        orchestrator().start_log(kept.request(vec![MockRuntime::new("claude").run(script)]));
    while let Some(entry) = log.next().await {
        if is_use(&entry, "b") {
            break;
        }
    }
    kept.spans.end(epoch_ms());
    let spans = kept.ended();
    assert_eq!(spans.len(), 3, "{spans:?}");
    for name in ["invoke_agent claude", "execute_tool Bash"] {
        let span = named(&spans, name);
        assert_eq!(
            value(span, "error.type").as_deref(),
            Some("interrupted"),
            "{name}"
        );
    }
    log.abort_handle().abort();
    while log.next().await.is_some() {}
    assert_eq!(kept.ended().len(), 3);
}
