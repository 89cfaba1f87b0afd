//! Conversations whose worker is another machine now: it has the same name, and another state directory.

use async_nats::jetstream::Context;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use teamster_api::{ProblemCode, QueueReason, RunHandle, RunSpec};
use teamster_core::{RunStatus, Stopping};
use tokio::time::timeout;

use super::machine::{LIMIT, Machine, Shared, block_on, end, jetstream, runs, until_workers};
use super::placement::{spec, tells, until_waits};

/// Writes that the only conversation is on the worker `w1` with another state directory.
async fn move_home(context: &Context) {
    let sessions = context.get_stream("KV_tm_sessions").await.unwrap();
    let mut subjects = sessions
        .info_with_subjects("$KV.tm_sessions.ann.k.*")
        .await
        .unwrap();
    let (subject, _) = super::next(&mut subjects).await.unwrap().unwrap();
    let last = sessions.direct_get_last_for_subject(&*subject).await;
    let mut entry: serde_json::Value = serde_json::from_slice(&last.unwrap().payload).unwrap();
    assert_eq!(entry["worker"], "w1");
    assert_eq!(entry["machine"].as_str().map(str::len), Some(32));
    entry["machine"] = "0".repeat(32).into();
    let sent = context.publish(subject, entry.to_string().into()).await;
    sent.unwrap().await.unwrap();
}

#[test]
fn home_is_known_by_its_state_directory_not_by_its_name() {
    let server = server_or_skip!();
    let shared = Shared::answering();
    block_on(async {
        let (fleet, service) = runs(&server, 0).await;
        let machine = Machine::with_policy(&server, "w1", &tells(&shared), "slots = 2");
        until_workers(&fleet, 1).await;
        let with_key = || spec(|spec| spec.session_key = Some("slack:U42".into()));
        let start =
            async |id: &str, spec: RunSpec| RunHandle::start(service.clone(), id, spec).await;
        let first = start("first", with_key()).await.unwrap();
        assert_eq!(end(&first).await, RunStatus::Completed);
        // It takes the second run after its name is that of another machine.
        let worker = Pid::from_raw(machine.worker.id().cast_signed());
        kill(worker, Signal::SIGSTOP).unwrap();
        let second = start("second", with_key()).await.unwrap();
        move_home(&jetstream(&server).await).await;
        kill(worker, Signal::SIGCONT).unwrap();
        let refused = async {
            // At first, the worker may still write down the end of the first run.
            while !until_waits(&second, QueueReason::Refused)
                .await
                .contains("another machine")
            {}
        };
        timeout(LIMIT, refused).await.unwrap();
        assert_eq!(shared.count(), 1);
        let refused = start("third", with_key()).await.unwrap_err();
        assert_eq!(refused.code, Some(ProblemCode::RunnerNotResponding));
        second.cancel(Stopping::Graceful).await.unwrap();
        // Begun there again, the conversation is there.
        let mut again = with_key();
        again.new_session = true;
        let again = start("fourth", again).await.unwrap();
        assert_eq!(end(&again).await, RunStatus::Completed);
        let last = start("fifth", with_key()).await.unwrap();
        assert_eq!(end(&last).await, RunStatus::Completed);
        assert_eq!(shared.count(), 3);
    });
}
