//! Agents that stand in for named ones.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "tests")]

use std::path::Path;

use teamster_acp::OneTurn;
use teamster_acp_agents::KIMI;
use teamster_core::{
    AgentRuntime, ErrorKind, ExecuteParams, RunResult, RunStatus, SessionOptions, SessionRuntime,
    Turn,
};
use teamster_process::{CliRuntime, RuntimeConfig};

fn params(home: &Path) -> ExecuteParams {
    let mut params = ExecuteParams::new("hi");
    let home = home.to_str().unwrap().to_owned();
    params.env.insert("KIMI_CODE_HOME".into(), home);
    params
}

fn kimi() -> CliRuntime<teamster_acp_agents::NamedAgent> {
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/kimi.sh");
    CliRuntime::with_config(KIMI, RuntimeConfig::default().program(program))
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
