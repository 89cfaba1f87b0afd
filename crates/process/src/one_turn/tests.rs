use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use teamster_core::{
    AbortHandle, Done, Id, Image, ImageSource, NoticeLevel, NoticeSource, PermissionMode,
    PermissionPolicy, RunResult, RunStatus,
};

use super::*;

/// Log of calls.
type Log = Arc<Mutex<Vec<String>>>;

#[derive(Clone, Default)]
struct Fake {
    log: Log,
    /// Number of live sessions and streams.
    alive: Arc<AtomicUsize>,
    can: Option<SessionCapabilities>,
}

struct Alive(Arc<AtomicUsize>);

impl Alive {
    fn new(count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::SeqCst);
        Self(count.clone())
    }
}

impl Drop for Alive {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

struct FakeSession(Fake, #[expect(dead_code, reason = "it counts")] Alive);

impl Fake {
    fn note(&self, what: impl Into<String>) {
        self.log.lock().unwrap().push(what.into());
    }

    fn notes(&self) -> Vec<String> {
        self.log.lock().unwrap().clone()
    }
}

static CAN: Capabilities = Capabilities::none();
static SESSIONS_CAN: SessionCapabilities = SessionCapabilities::none();

impl AgentRuntime for Fake {
    fn id(&self) -> &'static str {
        "fake"
    }

    fn capabilities(&self) -> &Capabilities {
        &CAN
    }

    fn execute(&self, _: ExecuteParams) -> EventStream {
        self.note("a run");
        let done = AgentEvent::Done(Done::new(Box::new(RunResult::default())));
        let events = async_stream::stream! { yield done; };
        EventStream::new(events, AbortHandle::default())
    }
}

impl SessionRuntime for Fake {
    fn session_capabilities(&self) -> &SessionCapabilities {
        self.can.as_ref().unwrap_or(&SESSIONS_CAN)
    }

    fn open(&self, options: SessionOptions) -> Result<Box<dyn AgentSession>, AgentError> {
        assert!(options.params.prompt.is_empty() && options.params.images.is_empty());
        if options.params.max_turns.is_some() {
            return Err(AgentError::refused("max_turns", "no"));
        }
        if self.can.is_some() {
            self.note(format!("a session that answers {:?}", options.permissions));
        }
        Ok(Box::new(FakeSession(self.clone(), Alive::new(&self.alive))))
    }
}

#[async_trait::async_trait]
impl AgentSession for FakeSession {
    fn provider(&self) -> &'static str {
        "fake"
    }

    fn id(&self) -> Option<Id> {
        None
    }

    fn capabilities(&self) -> &SessionCapabilities {
        &SESSIONS_CAN
    }

    fn send(&self, turn: Turn) -> EventStream {
        let abort = AbortHandle::new(&turn.cancel);
        let stop = abort.clone();
        let fake = self.0.clone();
        let events = async_stream::stream! {
            let _alive = Alive::new(&fake.alive);
            fake.note(format!("{} with {} images", turn.prompt, turn.images.len()));
            yield AgentEvent::notice(NoticeLevel::Info, NoticeSource::Runtime, "hm");
            if turn.prompt == "wait" {
                stop.aborted().await;
                fake.note("stopped");
            }
            yield AgentEvent::Done(Done::new(Box::new(RunResult::default())));
        };
        EventStream::new(events, abort)
    }

    fn interrupt(&self) {}

    async fn steer(&self, _: String) -> Result<(), AgentError> {
        unreachable!()
    }

    async fn clear(&self) -> Result<(), AgentError> {
        unreachable!()
    }

    async fn set_model(&self, _: String) -> Result<(), AgentError> {
        unreachable!()
    }

    async fn set_permission(&self, _: PermissionMode) -> Result<(), AgentError> {
        unreachable!()
    }

    fn unasked(&self) -> Option<EventStream> {
        None
    }

    async fn close(&self) {
        self.0.note("closed");
    }

    fn is_live(&self) -> bool {
        false
    }
}

#[tokio::test]
async fn the_session_is_closed_before_the_run_is_done() {
    let fake = Fake::default();
    let runtime = OneTurn::new(fake.clone());
    let mut params = ExecuteParams::new("hi");
    params.images = vec![Image {
        media_type: "image/png".into(),
        source: ImageSource::Bytes(b"x".to_vec()),
    }];
    assert_eq!(runtime.check(&params), Ok(()));
    let mut events = runtime.execute(params);
    assert!(fake.notes().is_empty(), "before the first poll");
    assert_eq!(events.next().await.unwrap().type_name(), "notice");
    assert_eq!(fake.notes(), ["hi with 1 images"]);
    assert_eq!(events.next().await.unwrap().type_name(), "done");
    assert_eq!(fake.notes(), ["hi with 1 images", "closed"]);
    assert_eq!(events.next().await, None);
    drop(events);
    assert_eq!(fake.alive.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn a_run_is_stopped_in_every_way() {
    let fake = Fake::default();
    let runtime = OneTurn::new(fake.clone());

    let mut events = runtime.execute(ExecuteParams::new("wait"));
    events.next().await;
    events.abort();
    assert_eq!(events.next().await.unwrap().type_name(), "done");
    assert_eq!(events.next().await, None);
    assert_eq!(fake.notes(), ["wait with 0 images", "stopped", "closed"]);

    let params = ExecuteParams::new("wait");
    let cancel = params.cancel.clone();
    let mut events = runtime.execute(params);
    events.next().await;
    cancel.cancel();
    assert_eq!(events.next().await.unwrap().type_name(), "done");
    assert_eq!(events.next().await, None);

    let mut events = runtime.execute(ExecuteParams::new("wait"));
    events.next().await;
    let abort = events.abort_handle();
    assert_eq!(fake.alive.load(Ordering::SeqCst), 2);
    drop(events);
    assert!(abort.is_aborted());
    assert_eq!(fake.alive.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn invalid_parameters_are_the_run_s_error() {
    let runtime = OneTurn::new(Fake::default());
    let mut params = ExecuteParams::new("hi");
    params.max_turns = Some(1);
    assert_eq!(runtime.check(&params).unwrap_err().message, "max_turns: no");
    let result = runtime.execute(params).result().await;
    assert_eq!(result.status, RunStatus::Failed);
    assert_eq!(result.errors[0].message, "max_turns: no");
    let result = runtime.execute(ExecuteParams::new(" ")).result().await;
    assert_eq!(result.errors[0].message, "prompt: it is empty");
}

#[tokio::test]
async fn only_a_run_with_a_policy_is_a_session_of_an_agent_with_runs() {
    let mut can = SessionCapabilities::none();
    can.permissions = true;
    let asking = ExecuteParams::new("hi").permissions(PermissionPolicy::Allow);
    let fake = Fake {
        can: Some(can),
        ..Fake::default()
    };
    let runtime = OneTurn::if_asking(fake.clone());
    runtime.execute(ExecuteParams::new("hi")).result().await;
    assert_eq!(fake.notes(), ["a run"]);
    runtime.execute(asking.clone()).result().await;
    assert_eq!(
        fake.notes()[1..],
        ["a session that answers Allow", "hi with 0 images", "closed"]
    );

    // An agent that does not ask.
    let runtime = OneTurn::if_asking(Fake::default());
    let error = runtime.check(&asking).unwrap_err();
    assert_eq!(error.parameter(), Some("permissions"));
    assert_eq!(error.message, "permissions: fake cannot ask; leave it out");
}
