//! Tests of a loop with a scripted agent and a simulated clock.

#![allow(clippy::unwrap_used, reason = "a test")]

mod cold;
mod cut_off;
mod limits;
mod obstacles;
mod unasked;

use std::collections::VecDeque;
use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::json;
use teamster_core::provider::LoopSettings;
use teamster_core::{
    AbortHandle, AgentError, AgentEvent, AgentRuntime, Capabilities, CliInfo, CostSource, Done,
    EventStream, ExecuteParams, Id, RunResult, RunStatus, SharedRuntime, Usage,
};
use teamster_loop::clock::TokioClock;
use teamster_loop::{
    Adapter, AgentFolder, AgentLoop, Control, Log, Prompts, Settings, UsageRecord,
};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

/// CLI that takes a settings file.
pub(crate) static INFO: CliInfo = {
    let mut info = CliInfo::new("claude", "Claude Code", "claude");
    info.agent_loop.settings = Some(LoopSettings {
        argument: "--settings",
        skills: ".claude/skills",
        content: |context| json!({"skills": context.skills}),
    });
    info
};

/// Returns a turn with this duration and cost. An interrupt ends it early.
fn turn(seconds: u64, dollars: f64) -> EventStream {
    let abort = AbortHandle::new(&CancellationToken::new());
    let aborted = abort.clone();
    let events = async_stream::stream! {
        let status = tokio::select! {
            biased;
            () = aborted.aborted() => RunStatus::Aborted,
            () = sleep(Duration::from_secs(seconds)) => RunStatus::Completed,
        };
        let result = RunResult::default().status(status).session_id("s").model("made-up").usage(Usage::default().input_tokens(1)).total_cost_usd(dollars).cost_source(CostSource::Reported);
        yield AgentEvent::Done(Done::new(Box::new(result)));
    };
    EventStream::new(events, abort)
}

fn failed(error: AgentError) -> EventStream {
    let result = RunResult::default().session_id("s").errors(vec![error]);
    let events = async_stream::stream! {
        yield AgentEvent::Done(Done::new(Box::new(result)));
    };
    EventStream::new(events, AbortHandle::new(&CancellationToken::new()))
}

fn in_order<const N: usize>(streams: [EventStream; N]) -> Arc<Mutex<VecDeque<EventStream>>> {
    Arc::new(Mutex::new(streams.into()))
}

/// Runtime whose runs are made by a function.
pub(crate) struct Ticks<F>(pub(crate) F);

impl<F: Fn(ExecuteParams) -> EventStream + Send + Sync> AgentRuntime for Ticks<F> {
    fn id(&self) -> &str {
        INFO.id
    }

    fn capabilities(&self) -> &Capabilities {
        const NONE: &Capabilities = &Capabilities::none();
        NONE
    }

    fn execute(&self, params: ExecuteParams) -> EventStream {
        (self.0)(params)
    }
}

type Unasked = Arc<Mutex<VecDeque<EventStream>>>;

/// Scripted agent whose ticks take 1 s and cost $1 by default.
#[derive(Default)]
struct Agent {
    unasked: Unasked,
    ticks: Arc<Mutex<u32>>,
    /// Streams of the first ticks.
    first: Arc<Mutex<VecDeque<EventStream>>>,
    /// The session has no id.
    nameless: bool,
    /// The agent has ended and has no session.
    ended: bool,
    /// Errors of the first calls of `begin`.
    refuses: VecDeque<AgentError>,
    /// Session of each call of `begin`.
    resumed: Arc<Mutex<Vec<Option<Id>>>>,
    /// Number of calls of `unasked` after which the process ends.
    dies_after: Option<u32>,
    unasked_calls: u32,
    /// Tick count at each successful `begin`, and the ticks with the full prompt.
    begun: Arc<Mutex<Vec<u32>>>,
    full: Arc<Mutex<Vec<u32>>>,
}

#[async_trait::async_trait]
impl Adapter for Agent {
    fn begin(&mut self, resume: Option<Id>) -> Result<(), AgentError> {
        self.resumed.lock().unwrap().push(resume);
        if let Some(error) = self.refuses.pop_front() {
            return Err(error);
        }
        if !self.begun.lock().unwrap().is_empty() {
            self.dies_after = None;
        }
        self.begun.lock().unwrap().push(*self.ticks.lock().unwrap());
        self.ended = false;
        Ok(())
    }

    fn session(&self) -> Option<Id> {
        (!self.nameless && !self.ended).then(|| "s".into())
    }

    fn is_alive(&self) -> bool {
        self.dies_after
            .is_none_or(|dies_after| self.unasked_calls < dies_after)
    }

    fn clears_in_session(&self) -> bool {
        true
    }

    async fn clear(&mut self) -> Result<(), AgentError> {
        Ok(())
    }

    fn runtime(&mut self) -> Result<SharedRuntime, AgentError> {
        assert!(self.is_alive(), "another process would get the prompt");
        let (ticks, full) = (self.ticks.clone(), self.full.clone());
        let first = self.first.clone();
        Ok(Arc::new(Ticks(move |params: ExecuteParams| {
            let mut ticks = ticks.lock().unwrap();
            *ticks += 1;
            if params.prompt.contains("MEMORY.md") {
                full.lock().unwrap().push(*ticks);
            }
            first
                .lock()
                .unwrap()
                .pop_front()
                .unwrap_or_else(|| turn(1, 1.0))
        })))
    }

    fn tick_ended(&mut self, _: &RunResult) {}

    fn unasked(&mut self) -> Option<EventStream> {
        self.unasked_calls += 1;
        self.unasked.lock().unwrap().pop_front()
    }

    async fn end(&mut self) {
        // Unasked turns end with the process.
        self.unasked.lock().unwrap().clear();
        self.ended = true;
    }
}

fn agent_loop(directory: &Path, agent: Agent, control: Control) -> AgentLoop {
    agent_loop_with(Settings::new(&INFO), directory, agent, control)
}

fn agent_loop_with(
    settings: Settings,
    directory: &Path,
    agent: impl Adapter + 'static,
    control: Control,
) -> AgentLoop {
    let folder = AgentFolder::open(directory).unwrap();
    let clock = Arc::new(TokioClock::new("2026-11-21T00:00:00Z".parse().unwrap()));
    let log = Log::new(folder.path("agent-loop.log"), 1 << 20, clock.clone());
    let prompts = Prompts::read(&settings, directory).unwrap();
    AgentLoop::new(
        folder,
        settings,
        prompts,
        Box::new(agent),
        clock,
        control,
        log,
    )
}

/// File with the agent's session.
const SESSION: &str = "session.json";

fn read(directory: &Path, name: &str) -> String {
    fs::read_to_string(directory.join(".orchestrator").join(name)).unwrap()
}

fn costs(directory: &Path) -> Vec<f64> {
    let text = read(directory, "usage.jsonl");
    let record = |line: &str| serde_json::from_str::<UsageRecord>(line).unwrap();
    let costs = text.lines().map(|line| record(line).cost_usd.unwrap());
    costs.collect()
}
