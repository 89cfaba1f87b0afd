//! Requests that reach the runner before the events of their agent.

use std::time::Duration;

use serde_json::json;
use teamster_api::{Answer, Command, RunInfo};
use teamster_core::{
    AbortHandle, AgentEvent, AgentRuntime, Capabilities, Decision, Done, EventStream,
    ExecuteParams, PermissionAnswer, PermissionEvent, PermissionPolicy, PermissionRequest,
    RunResult, RunStatus, ToolKind, ToolResult, ToolUse,
};
use teamster_orchestrator::{Orchestrator, OrchestratorConfig, RunRequest};
use teamster_runner::client::{self, Follow};
use teamster_runner::{DetachedRun, LogLimits, RequestChannel, Runs};
use tokio::task::yield_now;
use tokio::time::timeout;

/// Time limit of operations that should be immediate.
const LIMIT: Duration = Duration::from_mins(1);

/// Agent that asks at once. What it reports before it has the answer comes long after its request, which takes a shorter way
/// to the log.
struct AsksFirst {
    policy: PermissionPolicy,
    /// It reports the call that it asks about.
    reports_call: bool,
    capabilities: Capabilities,
}

impl AgentRuntime for AsksFirst {
    fn id(&self) -> &'static str {
        "claude"
    }

    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn execute(&self, params: ExecuteParams) -> EventStream {
        let PermissionPolicy::Ask(ask) = &self.policy else {
            panic!("{:?}", self.policy);
        };
        let reports_call = self.reports_call;
        let input = json!({"command": "ls"});
        let mut request = PermissionRequest::new(1, "Bash", ToolKind::Execute, input.clone());
        request.tool_id = reports_call.then(|| "t".into());
        let mut answer = ask(request);
        let permission = |decision: Decision| {
            let permission = PermissionEvent::new("Bash", decision).tool_id("t");
            AgentEvent::Permission(Box::new(permission))
        };
        let stream = async_stream::stream! {
            if reports_call {
                let others = async {
                    for _ in 0..100 {
                        yield_now().await;
                    }
                };
                tokio::select! {
                    biased;
                    early = &mut answer => panic!("{early:?}"),
                    () = others => {}
                }
                let call = ToolUse::new("Bash", "t", ToolKind::Execute, input);
                yield AgentEvent::ToolUse(Box::new(call));
                yield permission(Decision::Requested);
            }
            assert_eq!(answer.await, PermissionAnswer::Allow);
            if reports_call {
                yield permission(Decision::Allowed);
                yield AgentEvent::ToolResult(Box::new(ToolResult::new("t", "x")));
            }
            let result = RunResult::default().status(RunStatus::Completed);
            yield AgentEvent::Done(Done::new(Box::new(result)));
        };
        EventStream::new(stream, AbortHandle::new(&params.cancel))
    }
}

/// Runs an agent that asks first, allows its request as soon as the log has it, and returns the types of the entries, of
/// permissions with the decision.
async fn types_of(reports_call: bool) -> Vec<String> {
    let dir = tempfile::tempdir().unwrap();
    let info = RunInfo::new("r", "claude");
    let run = (Runs::at(dir.path()).accept(&info, LogLimits::default())).unwrap();
    let folder = run.folder.clone();
    let channel = RequestChannel::new("r");
    let agent = AsksFirst {
        policy: channel.requests().policy("claude", None),
        reports_call,
        capabilities: Capabilities::none(),
    };
    let request = RunRequest::new(std::sync::Arc::new(agent), ExecuteParams::new("x"));
    let orchestrator = Orchestrator::new(OrchestratorConfig::default()).unwrap();
    let work = DetachedRun::new(run, &orchestrator, request, channel).work();
    let work = tokio::spawn(work);

    let mut follow = Follow::new(folder.clone(), 0).unwrap();
    let mut types = Vec::new();
    while let Some(line) = timeout(LIMIT, follow.next()).await.unwrap().unwrap() {
        let entry = serde_json::to_value(line.entry().unwrap()).unwrap();
        let mut name = entry["type"].as_str().unwrap().to_owned();
        if let Some(decision) = entry["decision"].as_str() {
            name = format!("{name} {decision}");
            let request_id = entry["requestId"].as_str().unwrap().to_owned();
            if decision == "requested" {
                let answer = Answer::Allow;
                let answer = Command::Answer { request_id, answer };
                client::command(&folder, &answer).await.unwrap();
            }
        }
        types.push(name);
    }
    assert_eq!(work.await.unwrap().result.status, RunStatus::Completed);
    types
}

#[tokio::test]
async fn a_request_comes_after_the_start_and_waits_for_no_event() {
    assert_eq!(
        types_of(false).await,
        [
            "run:start",
            "run:attempt",
            "permission requested",
            "run:end",
            "done"
        ]
    );
}

#[tokio::test]
async fn a_request_comes_after_its_tool_call() {
    assert_eq!(
        types_of(true).await,
        [
            "run:start",
            "run:attempt",
            "tool_use",
            "permission requested",
            "permission allowed",
            "tool_result",
            "run:end",
            "done"
        ]
    );
}
