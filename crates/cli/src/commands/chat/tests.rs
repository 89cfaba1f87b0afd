//! Tests of chats with a scripted session.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex, mpsc};

use teamster::orchestrator::{Orchestrator, OrchestratorConfig};
use teamster::{
    AbortHandle, AgentEvent, AgentSession, Capabilities, CostSource, Done, ErrorCode, ErrorKind,
    EventStream, ExecuteParams, Id, ModelChoice, NoticeLevel, NoticeSource, Offers, PermissionMode,
    RunResult, RunStatus, SessionCapabilities, SlashCommand, Text, Turn,
};
use teamster_api::{RunInfo, RunKind};
use teamster_host::AttachedRun;
use teamster_runner::{RequestChannel, SessionCandidate, SessionPlan, SessionRuns};
use tokio::sync::Notify;
use tokio::task::yield_now;

use crate::args::OutputArgs;
use crate::detached::{self, Owner, Signals, UserPrompt, View};
use crate::dialog::input::{Entry, Input, Lines, Source};
use crate::exit_code;
use crate::render::tests::{Screen, view};
use crate::render::{Narrator, Plain};

/// A session with scripted turns that records its calls.
#[derive(Clone)]
struct ScriptedSession {
    capabilities: SessionCapabilities,
    turns: Arc<Mutex<VecDeque<Vec<AgentEvent>>>>,
    unasked: Arc<Mutex<VecDeque<Vec<AgentEvent>>>>,
    /// Notified when there is an unasked turn.
    begins: Arc<Notify>,
    /// Notified when an unasked turn may end, if it waits for that.
    ends: Option<Arc<Notify>>,
    /// Closing it panics.
    panics: bool,
    calls: Arc<Mutex<Vec<String>>>,
}

impl ScriptedSession {
    fn new(turns: impl IntoIterator<Item = Vec<AgentEvent>>) -> Self {
        let mut capabilities = SessionCapabilities::none();
        capabilities.clear = true;
        capabilities.set_model = true;
        capabilities.set_permission = true;
        Self {
            capabilities,
            turns: Arc::new(Mutex::new(turns.into_iter().collect())),
            unasked: Arc::default(),
            begins: Arc::default(),
            ends: None,
            panics: false,
            calls: Arc::default(),
        }
    }

    fn record(&self, call: impl Into<String>) {
        self.calls.lock().unwrap().push(call.into());
    }

    fn calls(&self) -> Vec<String> {
        self.calls.lock().unwrap().clone()
    }
}

fn stream(events: Vec<AgentEvent>, ends: Option<Arc<Notify>>) -> EventStream {
    let events = async_stream::stream! {
        for event in events {
            if let (AgentEvent::Done(_), Some(ends)) = (&event, &ends) {
                ends.notified().await;
            }
            yield event;
        }
    };
    EventStream::new(events, AbortHandle::default())
}

#[async_trait::async_trait]
impl AgentSession for ScriptedSession {
    fn provider(&self) -> &'static str {
        "claude"
    }

    fn id(&self) -> Option<Id> {
        Some("s-1".into())
    }

    fn capabilities(&self) -> &SessionCapabilities {
        &self.capabilities
    }

    fn send(&self, turn: Turn) -> EventStream {
        self.record(turn.prompt + &" [image]".repeat(turn.images.len()));
        let next = self.turns.lock().unwrap().pop_front();
        stream(next.expect("no turn is left"), None)
    }

    fn interrupt(&self) {}

    async fn steer(&self, _: String) -> Result<(), teamster::AgentError> {
        Ok(())
    }

    async fn clear(&self) -> Result<(), teamster::AgentError> {
        self.record("[clear]");
        Ok(())
    }

    async fn set_model(&self, model: String) -> Result<(), teamster::AgentError> {
        self.record(format!("[model {model}]"));
        let error = teamster::AgentError::refused("model", "there is no such model");
        if model == "bad" { Err(error) } else { Ok(()) }
    }

    async fn set_permission(&self, mode: PermissionMode) -> Result<(), teamster::AgentError> {
        self.record(format!("[permission {mode:?}]"));
        Ok(())
    }

    fn unasked(&self) -> Option<EventStream> {
        let begun = self.unasked.lock().unwrap().pop_front()?;
        Some(stream(begun, self.ends.clone()))
    }

    async fn unasked_ready(&self) {
        self.begins.notified().await;
    }

    async fn close(&self) {
        self.record("[close]");
        assert!(!self.panics, "as the script says");
    }

    fn is_live(&self) -> bool {
        true
    }
}

/// Returns a completed turn with this text.
fn turn(text: &str) -> Vec<AgentEvent> {
    turn_with(text, completed())
}

fn completed() -> RunResult {
    RunResult::default().status(RunStatus::Completed)
}

fn turn_with(text: &str, result: RunResult) -> Vec<AgentEvent> {
    vec![
        crate::render::tests::session(),
        AgentEvent::Text(Text::new(text)),
        AgentEvent::Done(Done::new(Box::new(result))),
    ]
}

/// Runs a chat with this input and returns its output and exit code.
async fn chat(session: &ScriptedSession, input: &str) -> (String, u8) {
    let screen = Screen::default();
    let input = io::Cursor::new(input.to_owned());
    let input = Input::new(move || Lines::new(input, None)).unwrap();
    let user_prompt = UserPrompt::new(input, false);
    let code = chat_on(session, user_prompt, &screen).await;
    (screen.text(), code)
}

async fn chat_on(session: &ScriptedSession, user_prompt: UserPrompt, screen: &Screen) -> u8 {
    let params = ExecuteParams::new("");
    let candidate = SessionCandidate::of(Arc::new(session.clone()), Capabilities::none(), params);
    let orchestrator = Orchestrator::new(OrchestratorConfig::default()).unwrap();
    let plan = SessionPlan::new(SessionRuns::new("chat", candidate));
    let mut info = RunInfo::new("chat", "claude");
    info.kind = RunKind::Session;
    let panics = session.panics;
    let (session, work) = AttachedRun::new(info, orchestrator, plan, RequestChannel::new("chat"));
    let resume = "teamster chat claude --resume".to_owned();
    let owner = Owner::new(Arc::new(session), Some(resume));
    let run = owner.run();
    let work = tokio::spawn(work);
    let output = OutputArgs::default();
    let mut view = view();
    view.resume = None;
    let sink = Plain::new(screen.clone(), screen.clone(), Narrator::new(view), false);
    let sink = Box::new(sink);
    let screen = detached::Screen::with_sink(&run, sink, screen.clone(), output);
    let code = View::new(run, screen, Signals::new().0)
        .of_owner(owner)
        .user_prompt(Some(user_prompt))
        .show(0)
        .await
        .unwrap();
    assert_eq!(work.await.is_err(), panics);
    code
}

#[tokio::test]
async fn a_session_whose_task_panics_is_incomplete() {
    let mut session = ScriptedSession::new([turn("one")]);
    session.panics = true;
    let (shown, code) = chat(&session, "a\n").await;
    assert_eq!(code, exit_code::INCOMPLETE);
    assert!(shown.ends_with("✓ completed · 0.0s\n"), "{shown}");
    assert_eq!(session.calls(), ["a", "[close]"]);
}

#[tokio::test]
async fn each_line_is_a_turn_and_the_last_one_sets_the_exit_code() {
    let failed = RunResult::default().status(RunStatus::Failed);
    let session =
        ScriptedSession::new([turn("one"), turn_with("two", failed.clone()), turn("three")]);
    let (shown, code) = chat(&session, "a\n\n b \n//c\n").await;
    assert_eq!(session.calls(), ["a", " b ", "/c", "[close]"]);
    assert_eq!(code, 0);
    assert_eq!(
        shown,
        "Claude Code · claude-opus-4-8 · session s-1\none\n✓ completed · 0.0s\n\
         error: the run ended without success and without an error\n\
         two\n✗ failed · 0.0s\n\
         three\n✓ completed · 0.0s\n\
         resume with: teamster chat claude --resume s-1\n"
    );
    let session = ScriptedSession::new([turn("one"), turn_with("two", failed)]);
    assert_eq!(chat(&session, "a\nb").await.1, 1);
    let session = ScriptedSession::new([]);
    assert_eq!(chat(&session, "").await, (String::new(), 0));
    assert_eq!(session.calls(), ["[close]"]);
}

#[tokio::test]
async fn commands_are_carried_out() {
    let result = completed()
        .total_cost_usd(0.5)
        .cost_source(CostSource::Reported);
    let session = ScriptedSession::new([turn_with("x", result.clone()), turn_with("y", result)]);
    let input = "/model opus\n/permission read-only\na\n/clear\nb\n/cost\n/session\n/quit\nc\n";
    let (shown, code) = chat(&session, input).await;
    assert_eq!(code, 0);
    assert_eq!(
        session.calls(),
        [
            "[model opus]",
            "[permission ReadOnly]",
            "a",
            "[clear]",
            "b",
            "[close]"
        ]
    );
    for expected in [
        "model from the next turn on: opus\n",
        "permission from the next turn on: read-only\n",
        "a new session begins\n",
        "2 turns in 0.0s\n",
        "  input tokens          not reported\n",
        "  cost                  $1.00\n",
        "session s-1\nresume with: teamster chat claude --resume s-1\n",
    ] {
        assert!(shown.contains(expected), "{expected}: {shown}");
    }
    // The new session after /clear has its own header.
    assert_eq!(shown.matches("· session s-1").count(), 2, "{shown}");
}

#[tokio::test]
async fn offered_models_are_listed_and_chosen_by_number() {
    let mut small = ModelChoice::new("small");
    small.name = Some("Small 2\u{1b}[2J".to_owned());
    let mut offers = Offers::new();
    offers.models = Some(vec![ModelChoice::new("large"), small]);
    offers.commands = Some(vec![SlashCommand::new("compact")]);
    let mut events = turn("x");
    events.insert(1, AgentEvent::from(offers));
    let session = ScriptedSession::new([events]);
    let input = "a\n/model\n/model 2\n/model 7\n/compact\n";
    let (shown, code) = chat(&session, input).await;
    assert_eq!(code, 0);
    assert_eq!(
        session.calls(),
        ["a", "[model small]", "[model 7]", "[close]"]
    );
    let list = "models:\n   1  large\n   2  small  Small 2 [2J\nchoose one with `/model NUMBER`";
    assert!(shown.contains(list), "{shown}");
    // This session does not take the CLI's own commands.
    assert!(
        shown.contains("error: unknown command `/compact`"),
        "{shown}"
    );
}

#[tokio::test]
async fn invalid_input_does_not_end_the_chat() {
    let session = ScriptedSession::new([turn("x")]);
    let (shown, code) = chat(&session, "/model bad\n/nope\n/cost 5\na\n").await;
    assert_eq!(code, 0);
    assert_eq!(session.calls(), ["[model bad]", "a", "[close]"]);
    for expected in [
        "error: --model: there is no such model\n",
        "error: unknown command `/nope`: /help",
        "error: /cost takes no argument\n",
    ] {
        assert!(shown.contains(expected), "{expected}: {shown}");
    }
}

#[tokio::test]
async fn images_go_with_one_message_unless_they_are_removed() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.png");
    std::fs::write(&file, b"png").unwrap();
    let mut session = ScriptedSession::new([turn("x"), turn("y")]);
    session.capabilities.images = true;
    let add = format!("/image '{}'\n", file.display());
    let (shown, code) = chat(&session, &format!("{add}{add}a\n{add}/image\n/image\nb\n")).await;
    assert_eq!(code, 0, "{shown}");
    assert_eq!(session.calls(), ["a [image] [image]", "b", "[close]"]);
    for expected in ["1 image removed\n", "0 images removed\n"] {
        assert!(shown.contains(expected), "{expected}: {shown}");
    }
}

#[tokio::test]
async fn unsupported_commands_are_reported_with_an_alternative() {
    let mut session = ScriptedSession::new([]);
    session.capabilities = SessionCapabilities::none();
    let (shown, code) = chat(&session, "/clear\n/model a'b\n/permission bypass\n").await;
    assert_eq!(code, 0);
    assert_eq!(session.calls(), ["[close]"]);
    let advice = "while it runs: end with /quit, then start again with `teamster chat claude";
    for expected in [
        format!("error: Claude Code cannot clear the conversation {advice}`\n"),
        format!("cannot change its model {advice} --resume s-1 --model 'a'\\''b'`\n"),
        format!("cannot change its permissions {advice} --resume s-1 --permission bypass`\n"),
    ] {
        assert!(shown.contains(&expected), "{expected}: {shown}");
    }
}

#[tokio::test]
async fn unasked_turns_are_shown_and_counted() {
    let session = ScriptedSession::new([turn("x")]);
    let failed = RunResult::default().status(RunStatus::Failed);
    (session.unasked.lock().unwrap()).push_back(turn_with("by the way", failed));
    let (shown, code) = chat(&session, "a\n/cost\n").await;
    assert_eq!(code, 0, "only requested turns count");
    assert!(shown.contains("by the way"), "{shown}");
    assert!(shown.contains("2 turns"), "{shown}");
}

/// A source of one message, which the test types.
struct Typed {
    /// Notified when the line editor begins to read.
    reads: Arc<Notify>,
    message: mpsc::Receiver<&'static str>,
}

impl Source for Typed {
    fn read(&mut self) -> Entry {
        self.reads.notify_one();
        let message = self.message.recv().map(str::to_owned);
        message.map_or(Entry::End, Entry::Text)
    }
}

#[tokio::test]
async fn message_typed_during_an_unasked_turn_is_sent_after_it() {
    let mut session = ScriptedSession::new([turn("x")]);
    let ends = Arc::new(Notify::new());
    session.ends = Some(ends.clone());
    let reads = Arc::new(Notify::new());
    let (typed, message) = mpsc::channel();
    let source = Typed {
        reads: reads.clone(),
        message,
    };
    let input = Input::new(move || source).unwrap();
    // At a terminal, nothing is shown while the user types.
    let user_prompt = UserPrompt::new(input, true);
    let screen = Screen::default();
    let user = async {
        reads.notified().await;
        (session.unasked.lock().unwrap()).push_back(turn("by the way"));
        session.begins.notify_one();
        while !session.unasked.lock().unwrap().is_empty() {
            yield_now().await;
        }
        typed.send("a").unwrap();
        // Its beginning is shown once the message was refused.
        while !screen.text().contains("session s-1") {
            yield_now().await;
        }
        ends.notify_one();
        drop(typed);
    };
    let chat = chat_on(&session, user_prompt, &screen);
    let both = async { tokio::join!(chat, user) };
    let limit = std::time::Duration::from_secs(20);
    let (code, ()) = tokio::time::timeout(limit, both).await.unwrap();
    assert_eq!(code, 0);
    assert_eq!(session.calls(), ["a", "[close]"]);
    let shown = screen.text();
    let (before, after) = shown.split_once("by the way").unwrap();
    assert!(!before.contains('x') && after.contains("\nx\n"), "{shown}");
}

#[tokio::test]
async fn errors_are_shown_as_in_a_run() {
    let error = teamster::AgentError::new(ErrorCode::CliNotFound, ErrorKind::NotFound, "gone");
    let events = teamster_core::provider::RunAssembler::refuse(error).to_vec();
    let notice = AgentEvent::notice(NoticeLevel::Warning, NoticeSource::Runtime, "mind");
    let session = ScriptedSession::new([events, [vec![notice], turn("x")].concat()]);
    let (shown, code) = chat(&session, "a\nb\n").await;
    assert_eq!(code, 0);
    assert!(shown.contains("error: gone\n  next: install it"), "{shown}");
    assert!(shown.contains("warning: mind\n"), "{shown}");
    assert!(shown.contains("x\n"), "{shown}");
}
