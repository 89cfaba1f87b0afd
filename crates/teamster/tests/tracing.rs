//! Spans and events of the feature `tracing`. There is one test, because a program has one global subscriber.
#![cfg(test)]

use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt::{self, Debug};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};
use teamster::orchestrator::{
    Action, Candidate, Orchestrator, OrchestratorConfig, RetryPolicy, RunRequest,
};
use teamster::{
    AgentError, AgentEvent, AgentRuntime, Capabilities, CliInfo, CliProvider, ErrorCode, ErrorKind,
    ExecuteParams, RunStatus, RuntimeConfig, Text,
};
use teamster_core::provider::{
    ConfigEdit, ConfigFormat, ConfigLocation, ConfigTable, DecodedResult, Decoder, Events, Exit,
    Launch,
};
use teamster_process::CliRuntime;
use tracing_core::field::{Field, Visit};
use tracing_core::span::{Attributes, Current, Id, Record};
use tracing_core::{Event, Metadata, Subscriber};

/// Provider of a shell that runs the prompt as a script.
#[derive(Clone)]
struct Shell {
    info: &'static CliInfo,
    config: Option<PathBuf>,
}

static CAPABILITIES: Capabilities = Capabilities::none();

impl CliProvider for Shell {
    fn info(&self) -> &'static CliInfo {
        self.info
    }

    fn capabilities(&self) -> &Capabilities {
        &CAPABILITIES
    }

    fn launch(&self, params: &ExecuteParams) -> Result<Launch, AgentError> {
        let config = self.config.as_ref().map(|file| ConfigEdit {
            table: ConfigTable {
                file: file.clone(),
                format: ConfigFormat::Json,
                key: "mcpServers",
            },
            entries: vec![("docs".into(), json!({"command": "docs-mcp"}))],
            new_file: "",
            location: ConfigLocation::Lease,
        });
        Ok(Launch {
            args: vec!["-c".into(), params.prompt.as_str().into()],
            config,
            ..Launch::default()
        })
    }

    fn decoder(&self, _: &ExecuteParams) -> Box<dyn Decoder> {
        Box::new(Lines(None))
    }
}

/// Decoder of lines `{"say":…}` and `{"end":…}`. The end is `well` or an error kind.
struct Lines(Option<bool>);

impl Decoder for Lines {
    fn line(&mut self, line: &[u8], out: &mut Events) {
        let line: Value = serde_json::from_slice(line).unwrap();
        if let Some(text) = line["say"].as_str() {
            out.push(AgentEvent::Text(Text::new(text)));
        } else if line["end"] == "well" {
            self.0 = Some(false);
        } else {
            let kind = serde_json::from_value(line["end"].clone()).unwrap();
            out.error(AgentError::new(ErrorCode::CliError, kind, "no"));
            self.0 = Some(true);
        }
    }

    fn finish(&mut self, _: &Exit, _: &mut Events) -> DecodedResult {
        DecodedResult {
            ended_with_error: self.0,
            ..DecodedResult::default()
        }
    }
}

fn shell(info: &'static CliInfo, config: Option<&Path>) -> CliRuntime<Shell> {
    let provider = Shell {
        info,
        config: config.map(Path::to_owned),
    };
    let settings = RuntimeConfig::default()
        .program("/bin/sh")
        .term_grace(Duration::from_millis(200));
    CliRuntime::with_config(provider, settings)
}

#[tokio::test]
async fn runs_report_spans_and_events() {
    static FIRST: CliInfo = CliInfo::new("first", "First", "sh");
    static SECOND: CliInfo = CliInfo::new("second", "Second", "sh");
    let recorder = Recorder::default();
    tracing_core::dispatcher::set_global_default(recorder.clone().into()).unwrap();
    let temp = tempfile::tempdir().unwrap();

    // A run with a lease that leaves a process in a session of its own. The process changes its session before
    // it prints its id: a signal to the run's group would kill it silently.
    let file = temp.path().join("settings.json");
    fs::write(&file, "{}").unwrap();
    let left = r#"pid=$(setsid sh -c 'echo $$; exec sleep 100 >&- 2>&-' &)
        echo '{"say":"'$pid'"}'; echo '{"end":"well"}'"#;
    let result = shell(&FIRST, Some(&file))
        .execute(ExecuteParams::new(left))
        .await;
    assert_eq!(result.status, RunStatus::Completed, "{result:?}");
    let events = recorder.take();
    assert_eq!(
        names(&events),
        [
            "lease",
            "started",
            "first output",
            "leftovers",
            "lease released",
            "ended",
        ]
    );
    for event in &events {
        assert_eq!(event.target, "teamster::process");
        let [(span, fields)] = &event.spans[..] else {
            panic!("{event:?}")
        };
        assert_eq!((*span, &*fields["provider"]), ("run", "first"));
        // The lease begins before the process.
        let has_pid = (fields.get("pid")).is_some_and(|pid| pid.parse::<u32>().is_ok());
        assert_eq!(has_pid, event.name != "lease", "{event:?}");
    }
    assert_eq!(events[0].fields["file"], file.display().to_string());
    assert_eq!(events[1].fields["program"], "/bin/sh");
    assert_eq!(events[3].fields["pids"], format!("[{}]", result.text));
    assert_eq!(events[4].fields["file"], file.display().to_string());
    assert_eq!(events[4].fields["outcome"], "Ok(Restored)");
    assert_eq!(events[5].fields["code"], "0");

    // A run that is stopped and ignores SIGTERM.
    let deaf = r#"trap '' TERM; echo '{"say":"x"}'; while :; do sleep 100; done"#;
    let mut stream = shell(&FIRST, None).execute(ExecuteParams::new(deaf));
    stream.next().await;
    stream.abort();
    assert_eq!(stream.result().await.status, RunStatus::Aborted);
    let events = recorder.take();
    assert_eq!(
        names(&events),
        [
            "started",
            "first output",
            "stopping",
            "signal",
            "signal",
            "ended"
        ]
    );
    assert_eq!(events[2].fields["why"], "Some(Aborted)");
    let signals = [&events[3], &events[4]].map(|event| &*event.fields["signal"]);
    assert_eq!(signals, ["SIGTERM", "SIGKILL"]);
    assert_eq!(events[5].fields["signal"], "SIGKILL");

    // A run whose program cannot be started.
    let missing = RuntimeConfig::default().program("/nowhere/cli");
    let missing = CliRuntime::with_config(shell(&FIRST, None).provider().clone(), missing);
    missing.execute(ExecuteParams::new("x")).await;
    assert_eq!(names(&recorder.take()), ["not started"]);

    // A run with a retry and a fallback.
    let orchestrator = Orchestrator::new(OrchestratorConfig::default()).unwrap();
    let count = temp.path().join("count").display().to_string();
    let fails = format!(
        r#"if [ -e '{count}' ]; then echo '{{"end":"rate_limit"}}'; else : > '{count}'; echo '{{"end":"overloaded"}}'; fi"#
    );
    let retry = RetryPolicy::default()
        .retries(1)
        .base_delay(Duration::from_millis(1))
        .on(ErrorKind::RateLimit, Action::FallBack);
    let second = Candidate::new(
        Arc::new(shell(&SECOND, None)),
        ExecuteParams::new(r#"echo '{"say":"hi"}'; echo '{"end":"well"}'"#),
    );
    let request = RunRequest::new(Arc::new(shell(&FIRST, None)), ExecuteParams::new(&*fails))
        .id("the-run")
        .fallback(second)
        .retry(retry);
    let outcome = orchestrator.start(request).await;
    assert!(outcome.is_success(), "{outcome:?}");
    let events = recorder.take();
    let run = ["started", "first output", "ended"];
    let expected = [&run[..], &["retry"], &run, &["hold", "fallback"], &run].concat();
    assert_eq!(names(&events), expected);
    for event in &events {
        let (span, fields) = &event.spans[0];
        assert_eq!((*span, &*fields["run"]), ("orchestrated", "the-run"));
        let process = ["started", "first output", "ended"].contains(&&*event.name);
        assert_eq!(event.spans.len(), 1 + usize::from(process));
    }
    let again = |event: &RecordedEvent| {
        let [attempt, provider, reason] =
            ["attempt", "provider", "reason"].map(|field| event.fields[field].clone());
        (attempt, provider, reason)
    };
    assert_eq!(
        again(&events[3]),
        ("2".into(), "first".into(), "overloaded".into())
    );
    assert_eq!(events[7].fields["group"], "first");
    assert_eq!(
        again(&events[8]),
        ("3".into(), "second".into(), "rate_limit".into())
    );
}

fn names(events: &[RecordedEvent]) -> Vec<&str> {
    events.iter().map(|event| &*event.name).collect()
}

type Fields = HashMap<&'static str, String>;

/// Recorded event.
#[derive(Debug)]
struct RecordedEvent {
    target: &'static str,
    name: String,
    fields: Fields,
    /// Spans of the event, from the outermost.
    spans: Vec<(&'static str, Fields)>,
}

/// Subscriber that records all events.
#[derive(Clone, Default)]
struct Recorder(Arc<Shared>);

#[derive(Default)]
struct Shared {
    last_id: AtomicU64,
    spans: Mutex<HashMap<u64, Span>>,
    events: Mutex<Vec<RecordedEvent>>,
}

#[derive(Clone)]
struct Span {
    metadata: &'static Metadata<'static>,
    parent: Option<u64>,
    fields: Fields,
}

thread_local! {
    /// Entered spans of this thread.
    static ENTERED: RefCell<Vec<u64>> = const { RefCell::new(Vec::new()) };
}

fn current() -> Option<u64> {
    ENTERED.with_borrow(|entered| entered.last().copied())
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Recorder {
    fn take(&self) -> Vec<RecordedEvent> {
        std::mem::take(&mut *lock(&self.0.events))
    }
}

impl Subscriber for Recorder {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("teamster")
    }

    fn new_span(&self, attributes: &Attributes<'_>) -> Id {
        let id = self.0.last_id.fetch_add(1, Ordering::Relaxed) + 1;
        let mut fields = Collect::default();
        attributes.record(&mut fields);
        let span = Span {
            metadata: attributes.metadata(),
            parent: current(),
            fields: fields.0,
        };
        lock(&self.0.spans).insert(id, span);
        Id::from_u64(id)
    }

    fn record(&self, id: &Id, values: &Record<'_>) {
        let mut fields = Collect::default();
        values.record(&mut fields);
        if let Some(span) = lock(&self.0.spans).get_mut(&id.into_u64()) {
            span.fields.extend(fields.0);
        }
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut fields = Collect::default();
        event.record(&mut fields);
        let known = lock(&self.0.spans);
        let mut spans = Vec::new();
        let mut next = current();
        while let Some(span) = next.and_then(|id| known.get(&id)) {
            spans.insert(0, (span.metadata.name(), span.fields.clone()));
            next = span.parent;
        }
        lock(&self.0.events).push(RecordedEvent {
            target: event.metadata().target(),
            name: fields.0.remove("message").unwrap_or_default(),
            fields: fields.0,
            spans,
        });
    }

    fn enter(&self, id: &Id) {
        ENTERED.with_borrow_mut(|entered| entered.push(id.into_u64()));
    }

    fn exit(&self, id: &Id) {
        ENTERED.with_borrow_mut(|entered| {
            if let Some(index) = entered
                .iter()
                .rposition(|entered| *entered == id.into_u64())
            {
                entered.remove(index);
            }
        });
    }

    fn current_span(&self) -> Current {
        let known = lock(&self.0.spans);
        let span = current().and_then(|id| Some((id, known.get(&id)?.metadata)));
        span.map_or_else(Current::none, |(id, metadata)| {
            Current::new(Id::from_u64(id), metadata)
        })
    }
}

#[derive(Default)]
struct Collect(Fields);

impl Visit for Collect {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name(), value.to_owned());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0
            .insert(field.name(), fmt::format(format_args!("{value:?}")));
    }
}
