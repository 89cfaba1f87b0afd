//! Agents that stand in for named ones.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::path::Path;

use teamster_acp_agents::{CLINE, KIMI, NamedAgent};
use teamster_core::{
    AgentRuntime, ErrorKind, ExecuteParams, RunResult, RunStatus, SessionOptions, SessionRuntime,
    Turn,
};
use teamster_process::{CliRuntime, OneTurn, RuntimeConfig};
use teamster_testkit::events::tokens;

fn params(home: &Path) -> ExecuteParams {
    let mut params = ExecuteParams::new("hi");
    let home = home.to_str().unwrap();
    for variable in ["KIMI_CODE_HOME", "CLINE_DIR"] {
        params.env.insert(variable.into(), home.to_owned());
    }
    params
}

fn agent(agent: NamedAgent, script: &str) -> CliRuntime<NamedAgent> {
    let program = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests")
        .join(script);
    CliRuntime::with_config(agent, RuntimeConfig::default().program(program))
}

fn kimi() -> CliRuntime<NamedAgent> {
    agent(KIMI, "kimi.sh")
}

/// Asserts that it is the failure of this turn of a process, and has the tokens of that turn alone.
fn assert_failed(result: &RunResult, turn: u64) {
    assert_eq!(result.status, RunStatus::Failed);
    assert_eq!(result.errors[0].kind, ErrorKind::RateLimit);
    assert_eq!(result.errors[0].message, format!("429 no {turn}"));
    assert_eq!(result.errors.len(), 1, "{:?}", result.errors);
    assert_eq!(result.usage.unwrap().input_tokens, Some(turn));
}

#[tokio::test]
async fn the_cause_of_a_failure_is_read_from_the_record() {
    let home = tempfile::tempdir().unwrap();
    let runtime = OneTurn::new(kimi());
    let result = runtime.execute(params(home.path())).result().await;
    assert_failed(&result, 1);

    // Each turn has its own lines of the record.
    let session = kimi()
        .open(SessionOptions::new(params(home.path())))
        .unwrap();
    for turn in 1..=2 {
        let result = session.send(Turn::new("hi")).result().await;
        assert_failed(&result, turn);
    }
    session.close().await;
}

fn assert_used(result: &RunResult, input: u64) {
    assert_eq!(result.status, RunStatus::Completed, "{:?}", result.errors);
    let usage = result.usage.unwrap();
    assert_eq!(tokens(Some(usage)), Some((input, 5)));
    assert_eq!(result.usage_by_model["gpt-4o"].usage, usage);
}

#[tokio::test]
async fn turn_tokens_are_read_from_a_rewritten_record() {
    let home = tempfile::tempdir().unwrap();
    let cline = || agent(CLINE, "cline.sh");
    let result = OneTurn::new(cline()).execute(params(home.path())).result();
    assert_used(&result.await, 100);

    // A resumed session begins with the answers of earlier runs.
    let mut resumed = params(home.path());
    resumed.session_id = Some("s1".into());
    let session = cline().open(SessionOptions::new(resumed)).unwrap();
    for turn in 2..=3 {
        let result = session.send(Turn::new("hi")).result().await;
        assert_used(&result, turn * 100);
    }
    session.close().await;
}
