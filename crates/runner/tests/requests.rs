//! Pending requests, answered by clients of the runner's socket.

use std::time::Duration;

use serde_json::json;
use teamster_api::{Answer, Command, RefusalCode, Reply, RunInfo};
use teamster_core::{
    AbortHandle, AgentEvent, Decision, PermissionAnswer, PermissionEvent, PermissionPolicy,
    PermissionRequest, Stopping, ToolKind, ToolUse,
};
use teamster_runner::client;
use teamster_runner::server::{Control, serve};
use teamster_runner::{
    AcceptedRun, LogLimits, Position, RequestChannel, Requests, RunFolder, Runs, RunsError,
};
use tokio::sync::watch;
use tokio::time::timeout;

/// Time limit of operations that should be immediate.
const LIMIT: Duration = Duration::from_mins(1);

/// Runner that serves clients without a run.
struct Runner {
    _dir: tempfile::TempDir,
    _run: (watch::Sender<Position>, teamster_runner::RunLock),
    folder: RunFolder,
    requests: Requests,
    channel: RequestChannel,
    abort: AbortHandle,
}

fn runner() -> Runner {
    let dir = tempfile::tempdir().unwrap();
    let info = RunInfo::new("r", "claude");
    let run = Runs::at(dir.path()).accept(&info, LogLimits::default());
    let AcceptedRun {
        folder,
        listener,
        lock,
        ..
    } = run.unwrap();
    let (position, receiver) = watch::channel(Position::default());
    let channel = RequestChannel::new("r");
    let requests = channel.requests();
    let abort = AbortHandle::default();
    tokio::spawn(serve(
        listener,
        Control::new(receiver, abort.clone(), requests.clone()),
    ));
    Runner {
        _dir: dir,
        _run: (position, lock),
        folder,
        requests,
        channel,
        abort,
    }
}

fn ask(
    policy: &PermissionPolicy,
    id: u64,
) -> impl Future<Output = PermissionAnswer> + Send + 'static {
    let PermissionPolicy::Ask(ask) = policy else {
        panic!("{policy:?}");
    };
    let input = json!({"command": "ls"});
    let mut request = PermissionRequest::new(id, "Bash", ToolKind::Execute, input);
    request.tool_id = Some(format!("t{id}").into());
    ask(request)
}

fn refusal(result: Result<Reply, RunsError>) -> RefusalCode {
    match result {
        Err(RunsError::Refused { code, .. }) => code,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn the_first_answer_counts() {
    let mut runner = runner();
    let policy = runner.requests.policy("claude", None);
    let call = ToolUse::new("Bash", "t1", ToolKind::Execute, json!({"command": "ls"}));
    let called = AgentEvent::ToolUse(Box::new(call));
    assert_eq!(runner.requests.mark("claude", called.clone()), Some(called));
    let asking = tokio::spawn(ask(&policy, 1));
    let AgentEvent::Permission(requested) = timeout(LIMIT, runner.channel.next())
        .await
        .unwrap()
        .unwrap()
    else {
        panic!("no permission");
    };
    assert_eq!(
        (requested.decision, requested.request_id.as_deref()),
        (Decision::Requested, Some("r/1"))
    );
    let waiting = client::requests(&runner.folder).await.unwrap();
    assert_eq!(waiting.len(), 1);
    assert_eq!(
        (&*waiting[0].request_id, &waiting[0].input["command"]),
        ("r/1", &json!("ls"))
    );
    let answer = async |id: &str, answer| {
        let request_id = id.to_owned();
        let command = Command::Answer { request_id, answer };
        client::command(&runner.folder, &command).await
    };
    let input = json!({});
    assert_eq!(
        refusal(answer("r/1", Answer::AllowWith { input }).await),
        RefusalCode::InvalidAnswer
    );
    assert_eq!(
        refusal(answer("r/2", Answer::Allow).await),
        RefusalCode::UnknownRequest
    );
    let reason = Some("too dangerous".to_owned());
    answer(
        "r/1",
        Answer::Deny {
            reason: reason.clone(),
        },
    )
    .await
    .unwrap();
    assert_eq!(
        refusal(answer("r/1", Answer::Allow).await),
        RefusalCode::AlreadyAnswered
    );
    let answered = timeout(LIMIT, asking).await.unwrap().unwrap();
    assert_eq!(answered, PermissionAnswer::Deny(reason));
    assert_eq!(client::requests(&runner.folder).await.unwrap(), []);

    // The engine's own events about the request are written once, with its id.
    let engine = |decision| {
        let permission = PermissionEvent::new("Bash", decision).tool_id("t1");
        runner
            .requests
            .mark("claude", AgentEvent::Permission(Box::new(permission)))
    };
    assert_eq!(engine(Decision::Requested), None);
    let Some(AgentEvent::Permission(denied)) = engine(Decision::Denied) else {
        panic!("no permission");
    };
    assert_eq!(denied.request_id.as_deref(), Some("r/1"));
    assert!(!denied.timed_out);
}

#[tokio::test]
async fn without_an_answer_in_time_it_is_denied() {
    let channel = RequestChannel::new("r");
    let requests = channel.requests();
    let limit = Duration::from_millis(1);
    let policy = requests.policy("claude", Some(limit));
    let answered = timeout(LIMIT, ask(&policy, 1)).await.unwrap();
    assert_eq!(
        answered,
        PermissionAnswer::Deny(Some("no answer within 1ms".into()))
    );
    assert_eq!(requests.pending(), []);
    let denied = PermissionEvent::new("Bash", Decision::Denied).tool_id("t1");
    let marked = requests.mark("claude", AgentEvent::Permission(Box::new(denied)));
    let Some(AgentEvent::Permission(denied)) = marked else {
        panic!("{marked:?}");
    };
    assert_eq!(denied.request_id.as_deref(), Some("r/1"));
    assert!(denied.timed_out, "no caller has denied it");
}

#[tokio::test]
async fn a_client_can_stop_the_run() {
    let runner = runner();
    client::cancel(&runner.folder, Stopping::Graceful)
        .await
        .unwrap();
    assert!(runner.abort.is_aborted());
}

#[test]
fn reported_requests_are_kept_unless_answered_here() {
    let requested = || {
        let event = PermissionEvent::new("Bash", Decision::Requested);
        AgentEvent::Permission(Box::new(event))
    };
    // Its agent denies them at once.
    let channel = RequestChannel::new("r");
    let requests = channel.requests();
    assert_eq!(requests.mark("claude", requested()), Some(requested()));
    // Each has an event with its id, but not those of a fallback that denies at once.
    let _policy = requests.policy_without_reasons("claude", None);
    assert_eq!(requests.mark("claude", requested()), None);
    assert_eq!(requests.mark("gemini", requested()), Some(requested()));
}
