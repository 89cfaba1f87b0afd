//! The stand-ins of agents in a loop, driven by the engine and the providers like the real CLIs.

#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

mod claude;
mod copilot;

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use teamster_core::{EventStream, ExecuteParams, RunResult};
use teamster_process::RuntimeConfig;
use teamster_testkit::stand_in::witness::{self, TurnFigures, What};
use teamster_testkit::stand_in::{PLAN_ENV, Plan, StandIn};

/// Long enough for a loaded machine. Only a failing test waits for it.
const LIMIT: Duration = Duration::from_secs(30);

/// Prompts of a full and of a light tick.
const FULL: &str = "Read ./MEMORY.md, then begin.";
const LIGHT: &str = "Go on.";

/// An agent's folder, with a stand-in for its CLI.
struct Scratch {
    dir: tempfile::TempDir,
    plan: Plan,
}

impl Scratch {
    fn new(cli: StandIn, plan: impl FnOnce(Plan) -> Plan) -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("agent/.orchestrator")).unwrap();
        let plan = plan(Plan::new(cli, dir.path().join("state")));
        Self { dir, plan }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn config() -> RuntimeConfig {
        let mut config = RuntimeConfig::default();
        config.program = Some(env!("CARGO_BIN_EXE_teamster-fake-agent").into());
        config
    }

    fn params(&self, prompt: &str) -> ExecuteParams {
        let mut params = ExecuteParams::new(prompt);
        params.working_directory = Some(self.path("agent").canonicalize().unwrap());
        for (name, value) in [
            (PLAN_ENV, self.plan.to_toml().unwrap()),
            ("HOME", self.path("home").display().to_string()),
        ] {
            params.env.insert(name.to_owned(), value);
        }
        params
    }

    /// Returns the events without the process ids.
    fn seen(&self) -> Vec<What> {
        let seen = witness::read(self.plan.witness()).unwrap();
        seen.into_iter().map(|seen| seen.what).collect()
    }

    fn starts(&self) -> usize {
        let is_start = |what: &What| matches!(what, What::Start { .. });
        self.seen().iter().filter(|what| is_start(what)).count()
    }

    /// Returns the figures of all turns that ended.
    fn turns(&self) -> Vec<TurnFigures> {
        let turns = self.seen().into_iter().filter_map(|what| match what {
            What::Result(turn) => Some(turn),
            _ => None,
        });
        turns.collect()
    }
}

async fn end(stream: EventStream) -> RunResult {
    let result = tokio::time::timeout(LIMIT, stream.result()).await;
    let result = result.unwrap_or_else(|_| panic!("the turn should have ended"));
    let diagnostics = &result.diagnostics;
    assert_eq!((diagnostics.unknown, diagnostics.malformed), (0, 0));
    result
}

/// Returns the tokens in, out and from a cache: the reported ones and the actual ones.
fn figures(result: &RunResult, turn: &TurnFigures) -> ([Option<u64>; 3], [Option<u64>; 3]) {
    let usage = result.usage.unwrap();
    (
        [
            usage.input_tokens,
            usage.output_tokens,
            usage.cache_read_tokens,
        ],
        [
            turn.input_tokens,
            turn.output_tokens,
            turn.cache_read_tokens,
        ]
        .map(Some),
    )
}
