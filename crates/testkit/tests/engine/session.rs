//! One process, many turns.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use teamster_core::{
    AgentError, AgentEvent, AgentSession, Capabilities, CliInfo, CliProvider, Decision, Decoder,
    ErrorCode, ErrorKind, EventStream, Events, Exchange, ExecuteParams, Exit, Id, Launch, Order,
    OrderId, Permission, PermissionAnswer, PermissionPolicy, PermissionRequest, RunStatus,
    RunSummary, SessionCapabilities, SessionOptions, SessionProtocol, SessionProvider,
    SessionRuntime, Stdin, Timeouts, ToolKind, Turn,
};
use teamster_process::{CliRuntime, PoolConfig, RuntimeConfig, SessionPool};
use teamster_testkit::proc::{is_alive, wait_gone};

use crate::provider::{Fake, Lines};
use crate::{LIMIT, Run, Story, finish, next};

/// A CLI that is kept for many turns. It says `$1`, or else `fresh`, as its session's id; with `$2`, which
/// stands for a fork, not at its start.
const TALKER: &str = r#"
id=${1:-fresh}
say() { printf '{"t":"%s"}\n' "$1"; }
end() { printf '{"end":false}\n'; }
[ -z "$2" ] && printf '{"s":"%s"}\n' "$id"
while IFS= read -r line; do
  [ -n "$FORGETS" ] && [ -n "$1" ] && line=lost
  case $line in
    lost) printf '{"lost":1}\n'; printf '{"end":true}\n' ;;
    *'"prompt":"pid"'*) say $$; end ;;
    *'"prompt":"id"'*) say "$id"; end ;;
    *'"prompt":"wait"'*) say "waiting $$" ;;
    *'"prompt":"deaf"'*) say "waiting $$"; trap '' TERM; while :; do sleep 1; done ;;
    *'"prompt":"polite"'*)
      say "waiting $$"; trap 'printf "{\"end\":true}\n"; exit' TERM; while :; do sleep 0.02; done ;;
    *'"prompt":"die"'*) exit 3 ;;
    *'"prompt":"leave"'*) say $$; end; exit 0 ;;
    *'"prompt":"ask"'*) printf '{"ask":"Write"}\n' ;;
    *'"prompt":"later"'*) say now; end; sleep 0.05; say "by the way"; end ;;
    *'"prompt":"child"'*) sleep 1000 >/dev/null 2>&1 & say "$!"; end ;;
    *'"prompt":"args"'*) say "$*"; end ;;
    *'"answer":"yes"'*) say allowed; end ;;
    *'"answer":"no"'*) say denied; end ;;
    *'"stop"'*) printf '{"cut":1}\n'; printf '{"end":true}\n' ;;
    *'"steer"'*) say steered; end ;;
    *'"clear"'*) id=cleared; printf '{"cleared":"cleared"}\n' ;;
    *'"model":"good"'*) printf '{"done":1}\n' ;;
    *'"model"'*) printf '{"refused":1}\n' ;;
    *'"close"'*) [ -n "$CLOSED" ] && : > "$CLOSED" ;;
  esac
done
"#;

#[derive(Clone)]
struct Talker {
    fake: Fake,
    capabilities: SessionCapabilities,
}

impl CliProvider for Talker {
    fn info(&self) -> &'static CliInfo {
        self.fake.info()
    }

    fn capabilities(&self) -> &Capabilities {
        self.fake.capabilities()
    }

    fn launch(&self, params: &ExecuteParams) -> Result<Launch, AgentError> {
        self.fake.launch(params)
    }

    fn decoder(&self, params: &ExecuteParams) -> Box<dyn Decoder> {
        self.fake.decoder(params)
    }
}

impl SessionProvider for Talker {
    fn session_capabilities(&self) -> &SessionCapabilities {
        &self.capabilities
    }

    fn launch_session(&self, options: &SessionOptions) -> Result<Launch, AgentError> {
        let mut launch = self.fake.launch(&options.params)?;
        launch.stdin = Stdin::Open(Vec::new());
        launch
            .args
            .extend(options.params.session_id.iter().map(Into::into));
        if options.params.fork {
            launch.args.push("fork".into());
        }
        Ok(launch)
    }

    fn protocol(&self, _: &SessionOptions) -> Box<dyn SessionProtocol> {
        Box::new(Talk::default())
    }
}

#[derive(Default)]
struct Talk {
    lines: Lines,
    exchange: Exchange,
    session_id: Option<Id>,
    cut: bool,
    order: Option<OrderId>,
}

impl Decoder for Talk {
    fn line(&mut self, line: &[u8], out: &mut Events) {
        let value: Value = serde_json::from_slice(line).unwrap_or_default();
        if let Some(id) = value["s"].as_str() {
            self.session_id = Some(id.into());
        }
        if let Some(id) = value["cleared"].as_str() {
            self.session_id = Some(id.into());
            self.settle(Ok(()));
        } else if value["done"] == 1 {
            self.settle(Ok(()));
        } else if value["refused"] == 1 {
            self.settle(Err(AgentError::invalid_params("refused")));
        } else if value["lost"] == 1 {
            out.error(AgentError::new(
                ErrorCode::CliError,
                ErrorKind::SessionNotFound,
                "no such session",
            ));
        } else if value["cut"] == 1 {
            self.cut = true;
        } else if let Some(tool) = value["ask"].as_str() {
            out.push(AgentEvent::Permission(Box::new(Permission {
                tool_name: tool.into(),
                tool_id: None,
                decision: Decision::Requested,
                reason: None,
                native: None,
            })));
            let request = PermissionRequest::new(1, tool, ToolKind::Edit, json!({}));
            self.exchange.ask(request);
        } else {
            self.lines.line(line, out);
        }
    }

    fn finish(&mut self, exit: &Exit, out: &mut Events) -> RunSummary {
        self.lines.finish(exit, out)
    }
}

impl Talk {
    fn settle(&mut self, result: Result<(), AgentError>) {
        if let Some(order) = self.order.take() {
            self.exchange.settle(order, result);
        }
    }
}

impl SessionProtocol for Talk {
    fn exchange(&mut self) -> &mut Exchange {
        &mut self.exchange
    }

    fn order(&mut self, order: Order, _: &mut Events) {
        let message = match order {
            Order::Turn(turn) => {
                assert_ne!(turn.prompt, "panic", "as the test wants it");
                self.lines = Lines::default();
                self.cut = false;
                json!({"prompt": turn.prompt})
            }
            Order::Interrupt => json!({"stop": 1}),
            Order::Steer(id, text) => {
                self.exchange.settle(id, Ok(()));
                json!({"steer": text})
            }
            Order::Clear(id) => {
                self.order = Some(id);
                json!({"clear": 1})
            }
            Order::SetModel(id, model) => {
                self.order = Some(id);
                json!({"model": model})
            }
            Order::Answer(1, PermissionAnswer::Allow) => json!({"answer": "yes"}),
            Order::Answer(1, _) => json!({"answer": "no"}),
            Order::Close => json!({"close": 1}),
            _ => return,
        };
        self.exchange.write(&message);
    }

    fn interrupted(&self) -> bool {
        self.cut
    }

    fn session_id(&self) -> Option<Id> {
        self.session_id.clone()
    }
}

const ALL: SessionCapabilities = {
    let mut all = SessionCapabilities::none();
    all.interrupt = true;
    all.steer = true;
    all.clear = true;
    all.set_model = true;
    all.permissions = true;
    all.unasked = true;
    all
};

struct Prepared {
    talker: Talker,
    config: RuntimeConfig,
    options: SessionOptions,
}

fn prepared() -> Prepared {
    let run = Run::of(Launch {
        args: vec!["-c".into(), TALKER.into(), "talker".into()],
        ..Launch::default()
    });
    let mut config = run.config;
    config.program = Some("/bin/sh".into());
    Prepared {
        talker: Talker {
            fake: run.provider,
            capabilities: ALL,
        },
        config,
        options: SessionOptions::default(),
    }
}

impl Prepared {
    fn open(self) -> Box<dyn AgentSession> {
        let runtime = CliRuntime::with_config(self.talker, self.config);
        runtime.open(self.options).unwrap()
    }
}

async fn say(session: &dyn AgentSession, prompt: &str) -> Story {
    finish(session.send(Turn::new(prompt))).await
}

async fn pid(session: &dyn AgentSession) -> u32 {
    say(session, "pid").await.result.text.parse().unwrap()
}

/// A turn in the middle of its work.
struct Waiting {
    seen: Vec<AgentEvent>,
    rest: EventStream,
}

impl Waiting {
    async fn finish(mut self) -> Story {
        let rest = tokio::time::timeout(LIMIT, drain(self.rest)).await;
        self.seen
            .extend(rest.expect("the stream should have ended"));
        Story::of(self.seen)
    }
}

/// A turn that has said that it waits, and the process that plays it.
async fn waiting(session: &dyn AgentSession, prompt: &str) -> (Waiting, u32) {
    let mut rest = session.send(Turn::new(prompt));
    let mut seen = Vec::new();
    loop {
        let event = next(&mut rest).await;
        seen.push(event.clone());
        if let AgentEvent::Text(text) = event {
            let pid = text.text.strip_prefix("waiting ").unwrap();
            return (Waiting { seen, rest }, pid.parse().unwrap());
        }
    }
}

#[tokio::test]
async fn one_process_plays_all_turns() {
    let session = prepared().open();
    assert_eq!((session.id(), session.is_hot()), (None, false));
    let first = say(&*session, "pid").await;
    assert_eq!(first.types(), ["session", "text", "turn_end", "done"]);
    assert_eq!(first.result.status, RunStatus::Completed);
    assert_eq!(first.result.exit_code, None);
    assert_eq!(session.id().as_deref(), Some("fresh"));
    assert!(session.is_hot());
    let second = say(&*session, "pid").await;
    assert_eq!(second.types(), ["text", "turn_end", "done"]);
    assert_eq!(second.result.text, first.result.text);
    let process: u32 = first.result.text.parse().unwrap();
    assert!(is_alive(process));
    session.close().await;
    assert!(!is_alive(process));
    assert!(!session.is_hot());
}

#[tokio::test]
async fn turns_wait_for_each_other() {
    let session = prepared().open();
    let streams: Vec<_> = (0..8).map(|_| session.send(Turn::new("pid"))).collect();
    let tasks: Vec<_> = streams
        .into_iter()
        .map(|stream| tokio::spawn(finish(stream)))
        .collect();
    let mut texts = Vec::new();
    for task in tasks {
        texts.push(task.await.unwrap().result.text);
    }
    texts.dedup();
    assert_eq!(texts.len(), 1);
}

#[tokio::test]
async fn an_interrupted_turn_leaves_the_process() {
    let session = prepared().open();
    let (events, process) = waiting(&*session, "wait").await;
    events.rest.abort();
    let story = events.finish().await;
    assert_eq!(story.result.status, RunStatus::Aborted);
    assert_eq!(story.codes(), [ErrorCode::Aborted]);
    assert_eq!(story.result.exit_code, None);
    assert_eq!(pid(&*session).await, process);

    let (events, _) = waiting(&*session, "wait").await;
    session.interrupt();
    assert_eq!(events.finish().await.result.status, RunStatus::Aborted);
    assert_eq!(pid(&*session).await, process);

    let (events, _) = waiting(&*session, "wait").await;
    drop(events);
    assert_eq!(pid(&*session).await, process, "to drop is to interrupt");
    session.interrupt();
    assert_eq!(
        pid(&*session).await,
        process,
        "there was nothing to interrupt"
    );
}

#[tokio::test]
async fn who_cannot_be_interrupted_is_ended() {
    let mut prepared = prepared();
    prepared.talker.capabilities.interrupt = false;
    let session = prepared.open();
    let (events, process) = waiting(&*session, "wait").await;
    events.rest.abort();
    let story = events.finish().await;
    assert_eq!(story.result.status, RunStatus::Aborted);
    assert!(!is_alive(process));
    let next = say(&*session, "id").await;
    assert_eq!(next.result.text, "fresh", "resumed by its id");
    assert_eq!(
        next.notices(),
        ["the process of Fake Agent had ended; the session goes on in a new one"]
    );
}

#[tokio::test]
async fn who_does_not_obey_an_interrupt_is_ended() {
    let mut prepared = prepared();
    prepared.config.interrupt_grace = Duration::from_millis(50);
    prepared.config.term_grace = Duration::from_millis(50);
    let session = prepared.open();
    let (events, process) = waiting(&*session, "deaf").await;
    events.rest.abort();
    let story = events.finish().await;
    assert_eq!(story.result.status, RunStatus::Aborted);
    assert_eq!(story.result.exit_signal.as_deref(), Some("SIGKILL"));
    assert!(!is_alive(process));
    assert_ne!(pid(&*session).await, process);
}

#[tokio::test]
async fn a_forced_end_does_not_wait() {
    let session = prepared().open();
    let (events, process) = waiting(&*session, "deaf").await;
    events.rest.abort_handle().kill();
    let story = events.finish().await;
    assert_eq!(story.result.status, RunStatus::Aborted);
    assert!(!is_alive(process));
}

#[tokio::test]
async fn a_crash_ends_its_turn_and_the_next_one_resumes() {
    let mut prepared = prepared();
    prepared.options.params.session_id = Some("mine".into());
    let session = prepared.open();
    assert_eq!(session.id().as_deref(), Some("mine"));
    let before = pid(&*session).await;
    let story = say(&*session, "die").await;
    assert_eq!(story.result.status, RunStatus::Failed);
    assert_eq!(story.codes(), [ErrorCode::CliExitError]);
    assert_eq!(story.result.exit_code, Some(3));
    let story = say(&*session, "id").await;
    assert_eq!(story.result.text, "mine");
    assert_ne!(pid(&*session).await, before);
}

#[tokio::test]
async fn a_fork_that_did_not_come_about_is_made_by_the_next_process() {
    let mut prepared = prepared();
    prepared.options.params.session_id = Some("mine".into());
    prepared.options.params.fork = true;
    let session = prepared.open();
    say(&*session, "die").await;
    assert_eq!(say(&*session, "args").await.result.text, "mine fork");
}

#[tokio::test]
async fn a_session_that_the_cli_has_lost_is_said_to_be_so_once_and_then_begins_anew() {
    let mut prepared = prepared();
    (prepared.options.params.env).insert("FORGETS".into(), "1".into());
    let session = prepared.open();
    say(&*session, "die").await;
    let story = say(&*session, "id").await;
    assert_eq!(story.error().kind, ErrorKind::SessionNotFound);
    let story = say(&*session, "id").await;
    assert_eq!(story.result.text, "fresh");
    assert_eq!(
        story.notices(),
        ["the process of Fake Agent had ended; a new session begins"]
    );
}

#[tokio::test]
async fn an_end_between_two_turns_is_told_with_the_next() {
    let session = prepared().open();
    let process: u32 = say(&*session, "leave").await.result.text.parse().unwrap();
    assert!(wait_gone(process, LIMIT));
    let story = say(&*session, "id").await;
    // Whether the end was seen before the turn was sent is chance.
    if story.result.status == RunStatus::Completed {
        assert_eq!(story.notices().len(), 1, "{:?}", story.events);
    } else {
        assert_eq!(say(&*session, "id").await.result.text, "fresh");
    }
}

#[tokio::test]
async fn a_session_that_is_dropped_ends_its_process() {
    let session = prepared().open();
    let process = pid(&*session).await;
    drop(session);
    tokio::task::spawn_blocking(move || assert!(wait_gone(process, LIMIT)))
        .await
        .unwrap();
}

#[tokio::test]
async fn a_stream_outlives_its_session() {
    let session = prepared().open();
    let stream = session.send(Turn::new("pid"));
    drop(session);
    let process: u32 = finish(stream).await.result.text.parse().unwrap();
    tokio::task::spawn_blocking(move || assert!(wait_gone(process, LIMIT)))
        .await
        .unwrap();
}

#[tokio::test]
async fn what_its_tools_left_running_ends_with_it() {
    let session = prepared().open();
    let child: u32 = say(&*session, "child").await.result.text.parse().unwrap();
    assert!(is_alive(child));
    session.close().await;
    assert!(!is_alive(child));
    assert_ne!(pid(&*session).await, 0, "another turn starts it again");
}

#[tokio::test]
async fn a_close_lets_the_cli_end_in_its_own_way() {
    let place = tempfile::tempdir().unwrap();
    let closed = place.path().join("closed");
    let mut prepared = prepared();
    (prepared.options.params.env).insert("CLOSED".into(), closed.to_str().unwrap().into());
    let session = prepared.open();
    let (events, _) = waiting(&*session, "wait").await;
    let ((), story) = tokio::join!(session.close(), events.finish());
    assert_eq!(story.result.status, RunStatus::Aborted);
    assert!(closed.exists());
    session.close().await;
}

#[tokio::test]
async fn permissions_are_answered_by_the_policy() {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let log = asked.clone();
    let ask = PermissionPolicy::ask(move |request| {
        log.lock().unwrap().push(request.tool_name);
        async { PermissionAnswer::Allow }
    });
    let cases = [
        (PermissionPolicy::Allow, "allowed", Decision::Allowed),
        (PermissionPolicy::Deny, "denied", Decision::Denied),
        (ask, "allowed", Decision::Allowed),
    ];
    for (policy, text, expected) in cases {
        let mut prepared = prepared();
        prepared.options.permissions = policy;
        let session = prepared.open();
        let story = say(&*session, "ask").await;
        let decisions: Vec<_> = (story.events.iter())
            .filter_map(|event| match event {
                AgentEvent::Permission(it) => Some(it.decision),
                _ => None,
            })
            .collect();
        assert_eq!(decisions, [Decision::Requested, expected]);
        assert_eq!(story.result.text, text);
    }
    assert_eq!(*asked.lock().unwrap(), ["Write"]);
}

#[tokio::test]
async fn who_is_asked_may_take_longer_than_any_limit() {
    let mut prepared = prepared();
    prepared.options.permissions = PermissionPolicy::ask(|_| async {
        tokio::time::sleep(Duration::from_millis(400)).await;
        PermissionAnswer::Deny(None)
    });
    prepared.options.params.timeouts = Timeouts {
        startup: Some(LIMIT),
        idle: Some(Duration::from_millis(100)),
        tool: Some(Duration::from_millis(100)),
    };
    let session = prepared.open();
    assert_eq!(say(&*session, "ask").await.result.text, "denied");
}

#[tokio::test]
async fn who_panics_when_asked_has_denied() {
    let mut prepared = prepared();
    prepared.options.permissions =
        PermissionPolicy::ask(|_| async { panic!("as the test wants it") });
    let session = prepared.open();
    assert_eq!(say(&*session, "ask").await.result.text, "denied");
}

#[tokio::test]
async fn silence_in_a_turn_has_its_limit_and_between_turns_none() {
    let mut prepared = prepared();
    prepared.options.params.timeouts.idle = Some(Duration::from_millis(200));
    let session = prepared.open();
    let process = pid(&*session).await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert_eq!(pid(&*session).await, process);
    let story = say(&*session, "wait").await;
    assert_eq!(story.result.status, RunStatus::TimedOut);
    assert_eq!(story.codes(), [ErrorCode::WatchdogTimeout]);
    let mut turn = Turn::new("wait");
    turn.timeouts.idle = Some(Duration::from_millis(50));
    let story = finish(session.send(turn)).await;
    assert!(
        story.error().message.contains("50ms"),
        "{:?}",
        story.error()
    );
}

#[tokio::test]
async fn what_a_process_says_while_it_is_stopped_is_not_why_its_turn_ends() {
    let mut prepared = prepared();
    prepared.options.params.timeouts.idle = Some(Duration::from_millis(200));
    let session = prepared.open();
    let (events, process) = waiting(&*session, "polite").await;
    let story = events.finish().await;
    assert_eq!(story.result.status, RunStatus::TimedOut);
    assert_eq!(story.codes(), [ErrorCode::WatchdogTimeout]);
    assert!(!is_alive(process));
}

#[tokio::test]
async fn a_process_that_nobody_uses_ends_and_comes_back_without_a_word() {
    let mut prepared = prepared();
    prepared.options.idle = Some(Duration::from_millis(20));
    let session = prepared.open();
    let process = pid(&*session).await;
    tokio::task::spawn_blocking(move || assert!(wait_gone(process, LIMIT)))
        .await
        .unwrap();
    let story = say(&*session, "id").await;
    assert_eq!(story.result.text, "fresh");
    assert_eq!(story.types(), ["session", "text", "turn_end", "done"]);
}

#[tokio::test]
async fn a_turn_that_nobody_asked_for_has_its_own_stream() {
    let session = prepared().open();
    assert_eq!(say(&*session, "later").await.result.text, "now");
    let unasked = loop {
        if let Some(events) = session.unasked() {
            break events;
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    };
    let story = finish(unasked).await;
    assert_eq!(story.result.text, "by the way");
    assert_eq!(story.types(), ["text", "turn_end", "done"]);
    assert!(session.unasked().is_none());
    assert_eq!(say(&*session, "id").await.result.text, "fresh");
}

#[tokio::test]
async fn orders_are_carried_out_or_refused() {
    let session = prepared().open();
    let error = session.steer("more".into()).await.unwrap_err();
    assert_eq!(error.message, "no turn is being played");
    session.set_model("kept".into()).await.unwrap();
    say(&*session, "id").await;
    let error = session.steer("more".into()).await.unwrap_err();
    assert_eq!(error.message, "no turn is being played");
    session.set_model("good".into()).await.unwrap();
    let error = session.set_model("bad".into()).await.unwrap_err();
    assert_eq!(error.message, "refused");
    let (events, _) = waiting(&*session, "wait").await;
    session.steer("more".into()).await.unwrap();
    let story = events.finish().await;
    assert!(story.result.text.ends_with("steered"), "{:?}", story.events);
    session.clear().await.unwrap();
    assert_eq!(session.id().as_deref(), Some("cleared"));
    assert_eq!(say(&*session, "id").await.result.text, "cleared");
    session.close().await;
    assert_eq!(say(&*session, "id").await.result.text, "cleared");
}

#[tokio::test]
async fn what_a_session_cannot_do_is_refused_by_name() {
    let mut prepared = prepared();
    prepared.talker.capabilities = SessionCapabilities::none();
    let session = prepared.open();
    for error in [
        session.clear().await.unwrap_err(),
        session.steer(String::new()).await.unwrap_err(),
        session.set_model("x".into()).await.unwrap_err(),
        session
            .set_permission(teamster_core::PermissionMode::ReadOnly)
            .await
            .unwrap_err(),
    ] {
        assert_eq!(error.code, ErrorCode::InvalidParams);
        assert!(
            error
                .message
                .starts_with("a session with Fake Agent cannot ")
        );
    }
}

#[tokio::test]
async fn a_session_that_is_cleared_without_a_process_begins_anew() {
    let mut prepared = prepared();
    prepared.options.params.session_id = Some("mine".into());
    let session = prepared.open();
    session.clear().await.unwrap();
    assert_eq!(session.id(), None);
    assert_eq!(say(&*session, "id").await.result.text, "fresh");
}

#[tokio::test]
async fn what_cannot_be_started_is_the_turns_error() {
    let mut prepared = prepared();
    prepared.config.program = Some("/nowhere/cli".into());
    let session = prepared.open();
    for _ in 0..2 {
        let story = say(&*session, "pid").await;
        assert_eq!(story.codes(), [ErrorCode::CliNotFound]);
    }
}

#[tokio::test]
async fn a_protocol_that_panics_costs_one_turn() {
    let session = prepared().open();
    let before = pid(&*session).await;
    let story = say(&*session, "panic").await;
    assert_eq!(story.result.status, RunStatus::Failed);
    assert!(!is_alive(before));
    assert_eq!(say(&*session, "id").await.result.text, "fresh");
}

#[tokio::test]
async fn an_aborted_turn_is_never_sent() {
    let session = prepared().open();
    let turn = Turn::new("pid");
    turn.cancel.cancel();
    let story = finish(session.send(turn)).await;
    assert_eq!(story.types(), ["error", "done"]);
    assert_eq!(story.result.status, RunStatus::Aborted);
    assert!(!session.is_hot());
    // Neither is one that is aborted while it waits for another.
    let (events, _) = waiting(&*session, "wait").await;
    let second = Turn::new("pid");
    let cancel = second.cancel.clone();
    let second = tokio::spawn(finish(session.send(second)));
    tokio::task::yield_now().await;
    cancel.cancel();
    assert_eq!(second.await.unwrap().types(), ["error", "done"]);
    session.interrupt();
    events.finish().await;
}

#[tokio::test]
async fn a_pool_keeps_a_session_for_each_key_and_bounds_their_processes() {
    let prepared = prepared();
    let runtime = Arc::new(CliRuntime::with_config(prepared.talker, prepared.config));
    let mut config = PoolConfig::default();
    config.max_hot = 2;
    let pool = SessionPool::new(runtime, config);
    let mut pids = Vec::new();
    for key in ["a", "b", "a"] {
        let session = pool.session(key, SessionOptions::default).unwrap();
        pids.push(pid(&*session).await);
    }
    assert_eq!(pids[0], pids[2]);
    assert_eq!(pool.hot(), 2);
    let third = pool.session("c", SessionOptions::default).unwrap();
    let b = pids[1];
    tokio::task::spawn_blocking(move || assert!(wait_gone(b, LIMIT)))
        .await
        .unwrap();
    pid(&*third).await;
    assert!(is_alive(pids[0]), "it was used after the other");
    let again = pool.session("b", || panic!("it is there")).unwrap();
    let story = say(&*again, "id").await;
    assert_eq!((&*story.result.text, story.notices().len()), ("fresh", 0));
    pool.close().await;
    assert_eq!(pool.hot(), 0);
    assert!(pool.remove("a").is_some());
    assert!(pool.remove("a").is_none());
}

/// Without a Tokio runtime of the caller's.
#[test]
fn any_executor_will_do() {
    let session = prepared().open();
    let story = block_on(async {
        let story = Story::of(drain(session.send(Turn::new("id"))).await);
        session.close().await;
        story
    });
    assert_eq!(story.result.text, "fresh");
}

async fn drain(mut stream: EventStream) -> Vec<AgentEvent> {
    let mut events = Vec::new();
    while let Some(event) = stream.next().await {
        events.push(event);
    }
    events
}

/// The simplest executor that there is.
fn block_on<T>(future: impl Future<Output = T>) -> T {
    struct Unpark(std::thread::Thread);
    impl std::task::Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Arc::new(Unpark(std::thread::current())).into();
    let mut context = std::task::Context::from_waker(&waker);
    let mut future = std::pin::pin!(future);
    loop {
        match future.as_mut().poll(&mut context) {
            std::task::Poll::Ready(value) => return value,
            std::task::Poll::Pending => std::thread::park(),
        }
    }
}
