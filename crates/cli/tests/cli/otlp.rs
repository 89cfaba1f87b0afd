//! Traces by OTLP, as a collector receives them.

pub(crate) mod collector;

use std::fs;
use std::io::Write;
use std::net::TcpListener;
use std::process::{Command, Stdio};

use nix::sys::signal::Signal;
use teamster::AgentEvent;
use teamster_api::{RunEvent, RunLogEntry};
use teamster_testkit::proc::wait_until;

use crate::cli::again::Agents;
use crate::cli::remote::tls::TlsProxy;
use crate::cli::{Claude, LIMIT, Running, chat, done, entries, run, teamster};
use collector::{Collector, Span};

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const PARENT: &str = "b7ad6b7169203331";
/// A secret that no collector, log or terminal may get.
const SECRET: &str = "a-secret-token";

/// Sets the variables that send everything to this address.
fn sends<'a>(command: &'a mut Command, url: &str) -> &'a mut Command {
    command.env("OTEL_EXPORTER_OTLP_ENDPOINT", url)
}

fn named<'a>(spans: &'a [Span], name: &str) -> Vec<&'a Span> {
    spans.iter().filter(|span| span.name == name).collect()
}

fn only<'a>(spans: &'a [Span], name: &str) -> &'a Span {
    let found = named(spans, name);
    assert_eq!(found.len(), 1, "{name} in {spans:#?}");
    found[0]
}

#[test]
fn run_with_a_retry_is_one_trace_with_the_times_of_its_log() {
    let collector = Collector::start();
    let agents = Agents::new().claude(&[("tool_then_529", 1), ("text", 0)]);
    let mut command = agents.run(["what no collector gets", "--retries=1", "--json"]);
    sends(&mut command, &collector.url())
        .env("OTEL_EXPORTER_OTLP_HEADERS", format!("x-key={SECRET}"))
        .env("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment=test")
        .env("TRACEPARENT", format!("00-{TRACE}-{PARENT}-01"));
    let ended = run(&mut command).ok();
    assert!(!ended.stderr.contains("telemetry"), "{}", ended.stderr);
    assert!(!ended.stdout.contains(SECRET) && !ended.stderr.contains(SECRET));

    let spans = collector.spans();
    let root = only(&spans, "invoke_agent claude");
    assert_eq!((&*root.trace, &*root.parent), (TRACE, PARENT));
    assert_eq!(root.resource["service.name"], "teamster");
    assert_eq!(root.resource["service.version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(root.resource["deployment.environment"], "test");
    let header = format!("x-key: {SECRET}\r\n");
    let heads = collector.heads();
    assert!(heads.iter().all(|head| head.contains(&header)), "{heads:?}");

    let log = entries(&ended.stdout);
    let result = done(&ended.stdout);
    let usage = result.usage.unwrap();
    assert_eq!(root.attributes["gen_ai.operation.name"], "invoke_agent");
    assert_eq!(root.attributes["gen_ai.provider.name"], "anthropic");
    assert_eq!(root.attributes["gen_ai.agent.name"], "claude");
    assert_eq!(
        root.attributes["gen_ai.conversation.id"],
        result.session_id.as_deref().unwrap()
    );
    assert_eq!(
        root.attributes["gen_ai.usage.output_tokens"],
        usage.output_tokens.unwrap().to_string()
    );
    assert_eq!(
        root.attributes["teamster.cost.usd"],
        result.total_cost_usd.unwrap().to_string()
    );
    assert_eq!(root.attributes["teamster.run.attempts"], "2");
    assert_eq!(root.error(), None);

    let attempts = named(&spans, "attempt claude");
    assert_eq!(attempts.len(), 2);
    let (first, second) = (attempts[0], attempts[1]);
    let retried = log.iter().find_map(|entry| match entry {
        RunLogEntry::Run(entry) => match &entry.event {
            RunEvent::Retry { reason, .. } => Some((entry.at_ms, reason.kind)),
            _ => None,
        },
        _ => None,
    });
    let (at_ms, kind) = retried.unwrap();
    assert_eq!(first.end_ms, at_ms);
    assert_eq!(first.error(), Some(kind.as_str()));
    assert_eq!(second.error(), None);
    assert_eq!(second.attributes["teamster.attempt.resumed"], "true");
    for attempt in [first, second] {
        assert_eq!((&attempt.trace, &attempt.parent), (&root.trace, &root.id));
        assert!(attempt.start_ms >= root.start_ms && attempt.end_ms <= root.end_ms);
    }

    let mut tools = 0;
    for entry in &log {
        let RunLogEntry::Agent(entry) = entry else {
            continue;
        };
        if let AgentEvent::ToolUse(tool) = &entry.event {
            tools += 1;
            let span = only(&spans, &format!("execute_tool {}", tool.tool_name));
            assert_eq!(span.attributes["gen_ai.operation.name"], "execute_tool");
            assert_eq!(span.attributes["gen_ai.tool.call.id"], *tool.tool_id);
            assert_eq!((span.start_ms, &span.parent), (entry.at_ms, &first.id));
        }
    }
    assert_eq!(tools, 1);
    // The request that failed has no tokens.
    let requests = named(&spans, "chat claude-opus-4-8[1m]");
    let output = |span: &&Span| span.attributes["gen_ai.usage.output_tokens"].parse::<u64>();
    let outputs: Result<Vec<_>, _> = requests.iter().map(output).collect();
    assert_eq!(outputs, Ok(vec![25, 25]));
    assert_eq!(usage.output_tokens, Some(50));
    assert_eq!(
        (&requests[0].parent, &requests[1].parent),
        (&first.id, &second.id)
    );
    assert_eq!(spans.len(), 6, "{spans:#?}");
    let bodies = collector.bodies();
    assert!(!bodies.contains("what no collector gets"));
}

#[test]
fn run_with_a_fallback_has_an_attempt_of_each_agent() {
    let collector = Collector::start();
    let agents = Agents::new()
        .claude(&[("conformance_unauthorized", 1)])
        .codex(&[("text", 0)]);
    run(sends(
        &mut agents.run(["x", "--fallback=codex"]),
        &collector.url(),
    ))
    .ok();
    let spans = collector.spans();
    let root = only(&spans, "invoke_agent claude");
    assert_eq!(root.parent, "");
    let failed = only(&spans, "attempt claude");
    assert_eq!(failed.error(), Some("auth"));
    let other = only(&spans, "attempt codex");
    assert_eq!(other.attributes["gen_ai.provider.name"], "openai");
    assert_eq!((&failed.parent, &other.parent), (&root.id, &root.id));
}

#[test]
fn content_is_sent_with_its_variable_only() {
    let collector = Collector::start();
    let claude = Claude::plays("text", 0);
    let mut command = claude.run(["what a collector may get"]);
    let variable = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT";
    run(sends(&mut command, &collector.url()).env(variable, "true")).ok();
    let spans = collector.spans();
    let root = only(&spans, "invoke_agent claude");
    // The agent got the run as the parent of its own spans.
    let report = claude.report();
    let parent = format!("00-{}-{}-01", root.trace, root.id);
    assert_eq!(report.env.get("TRACEPARENT"), Some(&parent));
    let input = &root.attributes["gen_ai.input.messages"];
    assert!(input.contains("what a collector may get"), "{input}");
    let output = &root.attributes["gen_ai.output.messages"];
    assert!(output.contains("Hello, wörld"), "{output}");
}

#[test]
fn detached_run_is_one_trace_however_many_follow_it() {
    let collector = Collector::start();
    let claude = Claude::plays("text", 0);
    let mut command = claude.run(["x", "--detach", "--ask-timeout", "0"]);
    let state = claude.path("state");
    command.env("XDG_STATE_HOME", &state);
    let detached = run(sends(&mut command, &collector.url())).ok();
    let id = detached.stdout.trim_end();
    for command in ["attach", "attach", "wait"] {
        let mut follows = teamster([command, id]);
        follows.env("XDG_STATE_HOME", &state);
        run(sends(&mut follows, &collector.url())).ok();
    }
    let is_sent = || !named(&collector.spans(), "invoke_agent claude").is_empty();
    assert!(wait_until(LIMIT, is_sent), "the runner sent nothing");
    let spans = collector.spans();
    let root = only(&spans, "invoke_agent claude");
    assert_eq!(root.attributes["teamster.run.id"], id);
    // The run, its attempt and its request.
    assert_eq!(spans.len(), 3, "{spans:#?}");
}

#[test]
fn each_turn_of_a_session_is_a_trace_of_its_conversation() {
    let collector = Collector::start();
    let agent = chat::Agent::new();
    let mut command = agent.command(["chat", "claude"]);
    let command = sends(&mut command, &collector.url());
    let mut running = Running::start(command.stdin(Stdio::piped()));
    let mut stdin = running.child.stdin.take().unwrap();
    stdin.write_all(b"one\ntwo\n").unwrap();
    drop(stdin);
    running.end().ok();
    let spans = collector.spans();
    let turns = named(&spans, "invoke_agent claude");
    assert_eq!(turns.len(), 2, "{spans:#?}");
    assert_ne!(turns[0].trace, turns[1].trace);
    let conversation = |span: &Span| span.attributes["gen_ai.conversation.id"].clone();
    assert_eq!(conversation(turns[0]), conversation(turns[1]));
}

#[test]
fn unreachable_collector_changes_no_result_and_is_one_warning() {
    // Nothing listens at the port of a listener that is gone.
    let port = {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        listener.local_addr().unwrap().port()
    };
    let url = format!("http://{SECRET}@127.0.0.1:{port}");
    for (scenario, code) in [("text", 0), ("conformance_unauthorized", 1)] {
        let claude = Claude::plays(scenario, code);
        let alone = run(&mut claude.run(["x"]));
        let ended = run(sends(&mut claude.run(["x"]), &url));
        assert_eq!(ended.code, alone.code, "{}", ended.stderr);
        assert_eq!(ended.stdout, alone.stdout);
        let warnings: Vec<_> = (ended.stderr.lines())
            .filter(|line| line.contains("telemetry"))
            .collect();
        assert_eq!(warnings.len(), 1, "{}", ended.stderr);
        let expected = "warning: telemetry is not sent: the collector cannot be reached: ";
        assert!(warnings[0].starts_with(expected), "{}", ended.stderr);
        assert!(!ended.stderr.contains(SECRET), "{}", ended.stderr);
    }
}

#[test]
fn collector_that_never_answers_does_not_hold_the_end() {
    // Connections wait in its backlog.
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let claude = Claude::plays("text", 0);
    // Its time limit of a request is longer than that of the test.
    let mut command = claude.run(["x"]);
    let ended = run(sends(&mut command, &url).env("OTEL_EXPORTER_OTLP_TIMEOUT", "600000")).ok();
    let expected = "telemetry is not sent: the collector did not take it within 3 s";
    assert!(ended.stderr.contains(expected), "{}", ended.stderr);
}

#[test]
fn signal_ends_the_wait_for_a_collector() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    listener.set_nonblocking(true).unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let claude = Claude::plays("text", 0);
    let mut command = claude.run(["x"]);
    // Nothing is sent before the end of the process.
    sends(&mut command, &url)
        .env("OTEL_BSP_SCHEDULE_DELAY", "600000")
        .env("OTEL_EXPORTER_OTLP_TIMEOUT", "600000");
    let mut running = Running::start(&mut command);
    let mut connection = None;
    let is_sending = || {
        connection = listener.accept().ok();
        connection.is_some()
    };
    assert!(wait_until(LIMIT, is_sending), "nothing is sent");
    running.signal(Signal::SIGINT);
    let ended = running.end().ok();
    // A wait to the end of its time is a warning.
    assert!(!ended.stderr.contains("telemetry"), "{}", ended.stderr);
}

#[test]
fn certificate_of_a_collector_is_checked() {
    let collector = Collector::start();
    let proxy = TlsProxy::start(collector.address());
    let claude = Claude::plays("text", 0);
    let ca = claude.path("ca.pem");
    fs::write(&ca, &proxy.ca).unwrap();
    let url = format!("https://localhost:{}", proxy.port);
    let mut command = claude.run(["x"]);
    run(sends(&mut command, &url).env("SSL_CERT_FILE", &ca)).ok();
    only(&collector.spans(), "invoke_agent claude");
    let sent = collector.heads().len();
    // The certificates of the system do not have it.
    let ended = run(sends(&mut claude.run(["x"]), &url)).ok();
    ended.stderr_has("telemetry is not sent: the collector cannot be reached: ");
    assert_eq!(collector.heads().len(), sent);
}

#[test]
fn telemetry_that_is_turned_off_sends_nothing() {
    let collector = Collector::start();
    let claude = Claude::plays("text", 0);
    for (name, value) in [
        ("OTEL_SDK_DISABLED", "true"),
        ("OTEL_TRACES_EXPORTER", "none"),
    ] {
        let mut command = claude.run(["x"]);
        run(sends(&mut command, &collector.url()).env(name, value)).ok();
        assert_eq!(collector.heads(), [""; 0], "{name}");
    }
}

#[test]
fn protocol_that_is_not_supported_is_one_warning() {
    let claude = Claude::plays("text", 0);
    let mut command = claude.run(["x"]);
    let command = sends(&mut command, "http://127.0.0.1:4317");
    let ended = run(command.env("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")).ok();
    let expected = "telemetry is not sent: only the protocol http/protobuf is supported: \
                    set OTEL_EXPORTER_OTLP_PROTOCOL to it";
    assert!(ended.stderr.contains(expected), "{}", ended.stderr);
}
