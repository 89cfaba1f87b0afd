//! GitHub Copilot CLI, with one process per turn.

use teamster_core::{AgentRuntime, ErrorKind, ExecuteParams, RunStatus};
use teamster_testkit::stand_in::witness::What;
use teamster_testkit::stand_in::{Act, Plan, StandIn};

use crate::stand_in::{FULL, LIGHT, Scratch, end, figures};

const ID: &str = "0190b0b6-1f4e-7cc3-98c4-dc0c0c07398f";

fn scratch(plan: impl FnOnce(Plan) -> Plan) -> Scratch {
    Scratch::new(StandIn::Copilot, plan)
}

impl Scratch {
    fn resuming(&self, prompt: &str) -> ExecuteParams {
        let mut params = self.params(prompt);
        params.session_id = Some(ID.to_owned());
        params
    }
}

#[tokio::test]
async fn session_runs_have_their_own_figures_and_the_record_the_sum() {
    let scratch = scratch(|plan| plan.turn([Act::DidWork]));
    let runtime = teamster::create_cli_runtime("copilot", Scratch::config()).unwrap();
    let mut params = scratch.params(FULL);
    params.new_session_id = Some(ID.to_owned());
    let first = end(runtime.execute(params)).await;
    let second = end(runtime.execute(scratch.resuming(LIGHT))).await;
    let turns = scratch.turns();
    for (result, turn) in [&first, &second].into_iter().zip(&turns) {
        assert_eq!(result.status, RunStatus::Completed, "{:?}", result.errors);
        assert_eq!(result.session_id.as_deref(), Some(ID));
        let (reported, true_ones) = figures(result, turn);
        assert_eq!(reported, true_ones);
    }
    assert_eq!(first.text, "Turn 0 is done.");
    let record = scratch.path("home/.copilot/session-state").join(ID);
    let record = std::fs::read_to_string(record.join("events.jsonl")).unwrap();
    let totals: Vec<u64> = record
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap())
        .filter(|line| line["type"] == "session.shutdown")
        .map(|line| {
            let usage = &line["data"]["modelMetrics"]["mock-model"]["usage"];
            usage["inputTokens"].as_u64().unwrap()
        })
        .collect();
    assert_eq!(totals, [2 * 1005, 2 * 1005 + 1006]);
    assert!(scratch.path("agent/.orchestrator/did-work").exists());
}

#[tokio::test]
async fn a_session_that_there_is_not_is_refused_in_the_programs_words() {
    let scratch = scratch(|plan| plan);
    let runtime = teamster::create_cli_runtime("copilot", Scratch::config()).unwrap();
    let result = end(runtime.execute(scratch.resuming(FULL))).await;
    assert_eq!(result.status, RunStatus::Failed);
    assert_eq!(result.errors[0].kind, ErrorKind::SessionNotFound);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_hangs_is_stopped_with_an_error() {
    let scratch = scratch(|plan| plan.turn([Act::Hang]));
    let runtime = teamster::create_cli_runtime("copilot", Scratch::config()).unwrap();
    let mut params = scratch.params(FULL);
    params.new_session_id = Some(ID.to_owned());
    let stream = runtime.execute(params);
    let handle = stream.abort_handle();
    let run = tokio::spawn(end(stream));
    let hangs = || scratch.seen().contains(&What::Will { act: Act::Hang });
    let hung = tokio::task::block_in_place(|| {
        teamster_testkit::proc::wait_until(crate::stand_in::LIMIT, hangs)
    });
    assert!(hung);
    handle.abort();
    let result = run.await.unwrap();
    assert_eq!(result.status, RunStatus::Aborted);
    assert!(scratch.seen().contains(&What::End {
        why: "SIGTERM".to_owned()
    }));
}
