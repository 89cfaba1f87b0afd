//! Test setup: a scripted model and a temporary directory.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use teamster_core::provider::grammar::Checker;
use teamster_core::{
    AgentEvent, AgentRuntime, AgentSession, EventStream, ExecuteParams, PermissionMode, RunResult,
    RunStatus, SessionOptions, SessionRuntime, Usage,
};
use teamster_embedded::{Embedded, EmbeddedConfig};
use teamster_mock_model::{Cli, MockModel, MockModelSettings};

/// Models, one for each service.
pub(crate) const MODELS: [&str; 5] = [
    "anthropic/claude-test",
    "openai/gpt-5.1",
    "gemini/gemini-2.5-flash",
    "ollama/llama3",
    "openai-compatible/any",
];

/// Time limit of a run.
const LIMIT: Duration = Duration::from_mins(1);

pub(crate) struct Stage {
    pub(crate) model: MockModel,
    pub(crate) runtime: Embedded,
    temp: tempfile::TempDir,
}

impl Stage {
    pub(crate) async fn new(script: &str) -> Self {
        let temp = tempfile::tempdir().unwrap();
        std::fs::create_dir(temp.path().join("work")).unwrap();
        let mut settings = MockModelSettings::default();
        settings.pace = Duration::ZERO;
        settings.cli = Some(Cli::Embedded);
        let model = MockModel::start_with(script.parse().unwrap(), settings)
            .await
            .unwrap();
        let mut config = EmbeddedConfig::default();
        config.state_dir = Some(temp.path().join("state"));
        config.prices = Some(Arc::new(|model: &str, usage: &Usage| {
            let tokens = usage.input_tokens? + usage.output_tokens?;
            #[expect(clippy::cast_precision_loss, reason = "small numbers")]
            model
                .starts_with("openai/")
                .then_some(tokens as f64 / 1000.0)
        }));
        Self {
            model,
            runtime: Embedded::new(config),
            temp,
        }
    }

    /// Returns the working directory of the agent.
    pub(crate) fn work(&self) -> std::path::PathBuf {
        self.temp.path().join("work").canonicalize().unwrap()
    }

    /// Returns the folder of sessions.
    pub(crate) fn state(&self) -> std::path::PathBuf {
        self.temp.path().join("state")
    }

    /// Returns the parameters of a run with this model and with all tools allowed.
    pub(crate) fn params(&self, model: &str, prompt: &str) -> ExecuteParams {
        let mut params = ExecuteParams::new(prompt)
            .model(model)
            .permission(PermissionMode::Bypass)
            .working_directory(self.work());
        params.env = Cli::Embedded
            .point_at(&self.model.url())
            .env
            .into_iter()
            .collect();
        params.cli_retries = Some(1);
        params
    }

    /// Returns the result and events of a run with the default model.
    pub(crate) async fn run(&self, prompt: &str) -> (RunResult, Vec<AgentEvent>) {
        self.play(self.params(MODELS[1], prompt)).await
    }

    pub(crate) async fn play(&self, params: ExecuteParams) -> (RunResult, Vec<AgentEvent>) {
        read(self.runtime.execute(params)).await
    }

    /// Opens a session with the default model.
    pub(crate) fn session(&self) -> Box<dyn AgentSession> {
        let options = SessionOptions::new(self.params(MODELS[1], ""));
        self.runtime.open(options).unwrap()
    }

    /// Returns a request to the model. `number` counts from 0.
    pub(crate) fn request(&self, number: usize) -> serde_json::Value {
        self.model.requests()[number].body.clone()
    }

    /// Returns the content of a file in the working directory. `None` if it is unreadable.
    pub(crate) fn file(&self, path: impl AsRef<Path>) -> Option<String> {
        std::fs::read_to_string(self.work().join(path)).ok()
    }
}

/// Reads a stream and checks its grammar.
pub(crate) async fn read(stream: EventStream) -> (RunResult, Vec<AgentEvent>) {
    read_with(stream, |_| {}).await
}

/// Reads a stream, and calls `at` with each event.
pub(crate) async fn read_with(
    mut stream: EventStream,
    mut at: impl FnMut(&AgentEvent),
) -> (RunResult, Vec<AgentEvent>) {
    let mut checker = Checker::default();
    let mut events = Vec::new();
    let reading = async {
        while let Some(event) = stream.next().await {
            checker.event(&event).unwrap();
            at(&event);
            events.push(event);
        }
    };
    tokio::time::timeout(LIMIT, reading)
        .await
        .expect("it comes to an end");
    checker.finish().unwrap();
    let Some(AgentEvent::Done(done)) = events.last() else {
        panic!("there is no end");
    };
    ((*done.result).clone(), events)
}

#[track_caller]
pub(crate) fn assert_completed(result: &RunResult, of: &str) {
    let errors = &result.errors;
    assert_eq!(result.status, RunStatus::Completed, "{of}: {errors:?}");
}

/// Waits until a condition is true, for 20 s at most.
pub(crate) fn wait_for(what: &str, is_there: impl FnMut() -> bool) {
    let came = teamster_testkit::proc::wait_until(Duration::from_secs(20), is_there);
    assert!(came, "{what} does not come");
}

/// Returns the types of the events. Repetitions of one type are merged.
pub(crate) fn types(events: &[AgentEvent]) -> Vec<&'static str> {
    let mut types: Vec<_> = events.iter().map(AgentEvent::type_name).collect();
    types.dedup();
    types
}

/// Returns the results of tools: whether each failed, and its output.
pub(crate) fn results(events: &[AgentEvent]) -> Vec<(bool, String)> {
    let result = |event: &AgentEvent| match event {
        AgentEvent::ToolResult(result) => {
            Some((result.is_error == Some(true), result.output.clone()))
        }
        _ => None,
    };
    events.iter().filter_map(result).collect()
}
