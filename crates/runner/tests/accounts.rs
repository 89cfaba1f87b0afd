//! Accounts of sessions.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use teamster_core::{
    AgentError, AgentEvent, AgentRuntime, AgentSession, Capabilities, ErrorKind, EventStream,
    ExecuteParams, PermissionChange, PermissionMode, SessionCapabilities, SessionOptions,
    SessionRuntime, SessionStarted, ToolKind, ToolUse, Turn,
};
use teamster_orchestrator::{Budget, Candidate, Held, SharedHolds};
use teamster_runner::{SessionAccount, SessionCandidate, SessionRuns};

use crate::live::{Live, Scripted, answers, fails, status};

struct NoHolds;

#[async_trait::async_trait]
impl SharedHolds for NoHolds {
    async fn holds(&self, _: &Candidate) -> Vec<Held> {
        Vec::new()
    }

    async fn hold(&self, _: &Candidate, _: &Held) {}
}

#[test]
fn turn_of_a_session_has_its_account_and_shared_holds() {
    let agent = Scripted::new("claude", [answers("one")]);
    let begun = agent.send(Turn::new(""));
    let of = SessionCandidate::of(
        Arc::new(agent),
        Capabilities::none(),
        ExecuteParams::new(""),
    );
    let mut runs = SessionRuns::new("s", of.account("work"));
    runs.holds = Some(Arc::new(NoHolds));
    let turn = runs.request("s.1", "Hi", &[], None);
    let candidate = &turn.candidates[0];
    assert_eq!(candidate.account.as_deref(), Some("work"));
    assert_eq!(candidate.group(), "claude@work");
    assert_eq!(candidate.params.prompt, "Hi");
    assert!(turn.holds.is_some());
    // A turn that the CLI has begun is not held back: it would be stopped.
    let turn = runs.request("s.2", "", &[], Some(begun));
    assert!(turn.holds.is_none());
}

/// Runtime with an agent for each account, by the variable `ACCOUNT`. It records the parameters of opened sessions.
struct OfAccounts {
    agents: Vec<(&'static str, Scripted)>,
    capabilities: Capabilities,
    opened: Mutex<Vec<ExecuteParams>>,
}

impl OfAccounts {
    /// Returns the account and the resumed session of the sessions that were opened, after those of the beginning.
    fn reopened(&self) -> Vec<(String, Option<String>)> {
        let opened = self.opened.lock().unwrap();
        let of =
            |params: &ExecuteParams| (params.env["ACCOUNT"].clone(), params.session_id.clone());
        opened.iter().skip(self.agents.len()).map(of).collect()
    }
}

impl AgentRuntime for OfAccounts {
    fn id(&self) -> &str {
        self.agents[0].1.provider()
    }

    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn execute(&self, _: ExecuteParams) -> EventStream {
        unreachable!("only sessions are opened")
    }
}

impl SessionRuntime for OfAccounts {
    fn session_capabilities(&self) -> &SessionCapabilities {
        self.agents[0].1.capabilities()
    }

    fn open(&self, options: SessionOptions) -> Result<Box<dyn AgentSession>, AgentError> {
        let mut agents = self.agents.iter();
        let agent = agents.find(|(name, _)| *name == options.params.env["ACCOUNT"]);
        self.opened.lock().unwrap().push(options.params);
        Ok(Box::new(agent.unwrap().1.clone()))
    }
}

/// What was looked for: the ids of conversations, each with the number of its account.
type Brought = Arc<Mutex<Vec<(String, usize)>>>;

/// Opens a session with both accounts. Conversations are found if `is_found`.
fn of_both(work: &Scripted, home: &Scripted, is_found: bool) -> (Arc<OfAccounts>, Live, Brought) {
    let runtime = Arc::new(OfAccounts {
        agents: vec![("work", work.clone()), ("home", home.clone())],
        capabilities: Capabilities::none(),
        opened: Mutex::default(),
    });
    let accounts = ["work", "home"].map(|name| {
        let params = ExecuteParams::new("").env("ACCOUNT", name);
        SessionAccount::new(name, SessionOptions::new(params))
    });
    let brought = Brought::default();
    let looked_for = brought.clone();
    let bring = Arc::new(move |id: &str, account: usize| {
        looked_for.lock().unwrap().push((id.to_owned(), account));
        Ok(is_found)
    });
    let (budget, accounts) = (Budget::default(), accounts.into());
    let candidate =
        SessionCandidate::open_with_accounts(runtime.clone(), accounts, budget, bring).unwrap();
    let live = Live::start_with([candidate], |_| {});
    (runtime, live, brought)
}

/// Returns the messages of the notices of a turn.
fn notices(entries: &[Value]) -> Vec<&str> {
    let notices = entries.iter().filter(|it| it["type"] == "notice");
    notices.filter_map(|it| it["message"].as_str()).collect()
}

#[tokio::test]
async fn next_account_continues_the_conversation_at_a_quota() {
    let quota = || fails(ErrorKind::Quota);
    let work = Scripted::new("claude", [answers("one"), quota(), answers("four")]).id("s1");
    let home = Scripted::new("claude", [answers("two"), answers("three"), quota()]).id("s1");
    let (runtime, live, brought) = of_both(&work, &home, true);
    assert_eq!(status(&live.turn("a").await), "completed");
    let second = live.turn("b").await;
    assert_eq!(status(&second), "completed");
    let fallback = second
        .iter()
        .find(|it| it["type"] == "run:fallback")
        .unwrap();
    assert_eq!(fallback["next"]["account"], "home");
    assert!(notices(&second).contains(&"account home continues the conversation"));
    // It stays in use.
    assert_eq!(status(&live.turn("c").await), "completed");
    assert_eq!(
        *brought.lock().unwrap(),
        [("s1".to_owned(), 0), ("s1".to_owned(), 1)]
    );
    // After the last account comes the first.
    let fourth = live.turn("d").await;
    assert_eq!(
        status(&fourth),
        "failed",
        "its quota is used up, and so held"
    );
    assert_eq!(work.calls(), ["a", "b", "[close]"]);
    assert_eq!(home.calls(), ["b", "c", "d"]);
    live.end().await;
    assert_eq!(home.calls().last().unwrap(), "[close]");
    let home_s1 = ("home".to_owned(), Some("s1".to_owned()));
    assert_eq!(runtime.reopened(), [home_s1]);
}

#[tokio::test]
async fn next_account_has_the_mode_to_which_the_agent_changed() {
    let change = PermissionChange::new(PermissionMode::AcceptEdits);
    let mut first = answers("one");
    first.insert(0, change.into());
    let work = Scripted::new("claude", [first, fails(ErrorKind::Quota)]).id("s1");
    let home = Scripted::new("claude", [answers("two")]).id("s1");
    let (runtime, live, _) = of_both(&work, &home, true);
    for prompt in ["a", "b"] {
        assert_eq!(status(&live.turn(prompt).await), "completed", "{prompt}");
    }
    let modes: Vec<_> = (runtime.opened.lock().unwrap().iter())
        .map(|params| params.permission)
        .collect();
    let default = PermissionMode::default();
    assert_eq!(modes, [default, default, PermissionMode::AcceptEdits]);
    live.end().await;
}

#[tokio::test]
async fn accounts_take_turns_after_the_last_one_the_first() {
    let auth = || fails(ErrorKind::Auth);
    let work = Scripted::new("claude", [answers("one"), auth(), answers("three")]).id("s1");
    let home = Scripted::new("claude", [answers("two"), auth()]).id("s1");
    let (runtime, live, _) = of_both(&work, &home, true);
    for prompt in ["a", "b", "c"] {
        assert_eq!(status(&live.turn(prompt).await), "completed", "{prompt}");
    }
    assert_eq!(work.calls(), ["a", "b", "[close]", "c"]);
    assert_eq!(home.calls(), ["b", "c", "[close]"]);
    let s1 = Some("s1".to_owned());
    let expected = [("home".to_owned(), s1.clone()), ("work".to_owned(), s1)];
    assert_eq!(runtime.reopened(), expected);
    live.end().await;
}

#[tokio::test]
async fn conversation_that_is_not_found_begins_in_no_other_account() {
    let work = Scripted::new("claude", [answers("one"), fails(ErrorKind::Quota)]).id("s1");
    let home = Scripted::new("claude", []).id("s1");
    let (_, live, _) = of_both(&work, &home, false);
    assert_eq!(status(&live.turn("a").await), "completed");
    let second = live.turn("b").await;
    assert_eq!(status(&second), "failed");
    let error = &second.last().unwrap()["result"]["errors"][0]["message"];
    let error = error.as_str().unwrap();
    assert!(
        error.contains("account home: its session was not found"),
        "{error}"
    );
    assert!(home.calls().is_empty());
    live.end().await;
}

#[tokio::test]
async fn first_turn_that_has_used_a_tool_begins_in_no_other_account() {
    let call = ToolUse::new("Bash", "t", ToolKind::Execute, json!({"command": "ls"}));
    let mut first: Vec<AgentEvent> = vec![SessionStarted::new("s1").into(), call.into()];
    first.extend(fails(ErrorKind::Quota));
    let work = Scripted::new("claude", [first]).id("s1");
    let home = Scripted::new("claude", [answers("again")]);
    let (runtime, live, brought) = of_both(&work, &home, false);
    assert_eq!(status(&live.turn("a").await), "failed");
    // The next account was tried: the one in use had the conversation.
    assert_eq!(brought.lock().unwrap().last().unwrap().1, 1);
    assert!(home.calls().is_empty());
    assert!(runtime.reopened().is_empty());
    live.end().await;
}

#[tokio::test]
async fn first_turn_without_a_conversation_begins_one() {
    let work = Scripted::new("claude", [fails(ErrorKind::Quota)]);
    let home = Scripted::new("claude", [answers("one")]);
    let (runtime, live, _) = of_both(&work, &home, false);
    let first = live.turn("a").await;
    assert_eq!(status(&first), "completed");
    assert!(notices(&first).contains(&"account home begins a new session"));
    assert_eq!(runtime.reopened(), [("home".to_owned(), None)]);
    live.end().await;
}
