//! A request of an agent that asks before it reports anything.

use std::time::Duration;

use serde_json::json;
use teamster_api::{Answer, Command, RunInfo};
use teamster_core::{
    AbortHandle, AgentEvent, AgentRuntime, Capabilities, Done, EventStream, ExecuteParams,
    PermissionAnswer, PermissionPolicy, PermissionRequest, RunResult, RunStatus, ToolKind,
};
use teamster_orchestrator::{Orchestrator, OrchestratorConfig, RunRequest};
use teamster_runner::client::{self, Follow};
use teamster_runner::{DetachedRun, LogLimits, RequestChannel, Runs};
use tokio::time::timeout;

/// Time limit of operations that should be immediate.
const LIMIT: Duration = Duration::from_mins(1);

/// Agent that asks at once, and reports nothing before it has the answer.
struct AsksFirst(PermissionPolicy, Capabilities);

impl AgentRuntime for AsksFirst {
    fn id(&self) -> &'static str {
        "claude"
    }

    fn capabilities(&self) -> &Capabilities {
        &self.1
    }

    fn execute(&self, params: ExecuteParams) -> EventStream {
        let PermissionPolicy::Ask(ask) = &self.0 else {
            panic!("{:?}", self.0);
        };
        let input = json!({"command": "ls"});
        let answer = ask(PermissionRequest::new(1, "Bash", ToolKind::Execute, input));
        let stream = async_stream::stream! {
            assert_eq!(answer.await, PermissionAnswer::Allow);
            let result = RunResult::default().status(RunStatus::Completed);
            yield AgentEvent::Done(Done::new(Box::new(result)));
        };
        EventStream::new(stream, AbortHandle::new(&params.cancel))
    }
}

#[tokio::test]
async fn a_request_comes_after_the_start_and_waits_for_no_event() {
    let dir = tempfile::tempdir().unwrap();
    let info = RunInfo::new("r", "claude");
    let run = (Runs::at(dir.path()).accept(&info, LogLimits::default())).unwrap();
    let folder = run.folder.clone();
    let channel = RequestChannel::new("r");
    let agent = AsksFirst(
        channel.requests().policy("claude", None),
        Capabilities::none(),
    );
    let request = RunRequest::new(std::sync::Arc::new(agent), ExecuteParams::new("x"));
    let orchestrator = Orchestrator::new(OrchestratorConfig::default()).unwrap();
    let work = DetachedRun::new(run, &orchestrator, request, channel).work();
    let work = tokio::spawn(work);

    let mut follow = Follow::new(folder.clone(), 0).unwrap();
    let mut types = Vec::new();
    while let Some(line) = timeout(LIMIT, follow.next()).await.unwrap().unwrap() {
        let entry = serde_json::to_value(line.entry().unwrap()).unwrap();
        types.push(entry["type"].as_str().unwrap().to_owned());
        if let Some(id) = entry["requestId"].as_str().filter(|_| types.len() == 3) {
            assert_eq!(entry["decision"], "requested");
            let (request_id, answer) = (id.to_owned(), Answer::Allow);
            let answer = Command::Answer { request_id, answer };
            client::command(&folder, &answer).await.unwrap();
        }
    }
    assert_eq!(
        types,
        ["run:start", "run:attempt", "permission", "run:end", "done"]
    );
    assert_eq!(work.await.unwrap().result.status, RunStatus::Completed);
}
