//! Budgets of sessions.

use std::sync::{Arc, Mutex};

use teamster_api::RefusalCode;
use teamster_core::{
    AgentError, AgentRuntime, AgentSession, Capabilities, EventStream, ExecuteParams,
    SessionCapabilities, SessionOptions, SessionRuntime,
};
use teamster_orchestrator::{Budget, SharedBudget};
use teamster_runner::{RunsError, SessionAccount, SessionCandidate, SessionRuns};

use crate::live::{Live, Scripted, answers, send, status};

/// Runtime whose sessions are clones of a scripted one.
struct Opens {
    agent: Scripted,
    capabilities: Capabilities,
    opened: Mutex<Vec<ExecuteParams>>,
}

impl AgentRuntime for Opens {
    fn id(&self) -> &str {
        self.agent.provider()
    }

    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn execute(&self, _: ExecuteParams) -> EventStream {
        unreachable!("only sessions are opened")
    }
}

impl SessionRuntime for Opens {
    fn session_capabilities(&self) -> &SessionCapabilities {
        self.agent.capabilities()
    }

    fn open(&self, options: SessionOptions) -> Result<Box<dyn AgentSession>, AgentError> {
        self.opened.lock().unwrap().push(options.params);
        Ok(Box::new(self.agent.clone()))
    }
}

fn opens(agent: &Scripted, capabilities: &Capabilities) -> Opens {
    Opens {
        agent: agent.clone(),
        capabilities: capabilities.clone(),
        opened: Mutex::default(),
    }
}

fn open(agent: &Scripted, capabilities: &Capabilities, budget: Budget) -> SessionCandidate {
    let options = SessionOptions::default();
    SessionCandidate::open(&opens(agent, capabilities), options, budget).unwrap()
}

#[test]
fn a_budget_takes_the_tools_that_no_figure_counts() {
    let agent = Scripted::new("opencode", []);
    let mut can = Capabilities::none();
    (can.live_usage, can.uncounted_tools) = (true, &["task"]);
    for (budget, allowed, denied) in [
        (Budget::default(), "", &[][..]),
        (Budget::default().tokens(1000), "", &["task"]),
        (Budget::default().usd(1.0), "", &["task"]),
        (Budget::default().usd(1.0), "task", &[]),
    ] {
        let runtime = opens(&agent, &can);
        let params = ExecuteParams::new("").allowed_tools([allowed]);
        SessionCandidate::open(&runtime, SessionOptions::new(params), budget.clone()).unwrap();
        let opened = runtime.opened.lock().unwrap();
        assert_eq!(opened[0].denied_tools, denied, "{budget:?}");
        let is_limited = budget != Budget::default();
        assert_eq!(opened[0].usage_updates, is_limited, "{budget:?}");
    }
}

#[test]
fn turns_have_a_title_that_the_agent_has_no_place_for() {
    let agent = Scripted::new("codex", []);
    let mut can = Capabilities::none();
    for (has_titles, expected) in [(false, None), (true, Some("Fix it"))] {
        can.title = has_titles;
        let runtime = Arc::new(opens(&agent, &can));
        let options = || SessionOptions::new(ExecuteParams::new("").title("Fix it"));
        let open = || SessionCandidate::open(&*runtime, options(), Budget::default()).unwrap();
        let accounts = ["work", "home"].map(|name| SessionAccount::new(name, options()));
        let with_accounts = SessionCandidate::open_with_accounts(
            runtime.clone(),
            accounts.into(),
            Budget::default(),
            Arc::new(|_: &str, _: usize| Ok(true)),
        );
        for candidate in [open(), with_accounts.unwrap()] {
            let mut runs = SessionRuns::new("s", candidate);
            let turn = runs.request("s.1", "Hi", &[], None);
            assert_eq!(turn.candidates[0].params.title.as_deref(), Some("Fix it"));
        }
        let opened = runtime.opened.lock().unwrap();
        assert_eq!(opened.len(), 3);
        for params in opened.iter() {
            assert_eq!(params.title.as_deref(), expected);
        }
    }
}

#[test]
fn a_fallback_has_the_budget_of_its_session() {
    let agent = Scripted::new("claude", []);
    let mut can = Capabilities::none();
    can.live_usage = true;
    let of = |tokens| open(&agent, &can, Budget::default().tokens(tokens));
    let mut runs = SessionRuns::new("s", of(20));
    assert_eq!(runs.budget().tokens, Some(20));
    assert!(runs.add_fallback(of(20)).is_ok());
    let error = runs.add_fallback(of(2000)).unwrap_err();
    assert_eq!(error.parameter(), Some("budget"));
}

#[test]
fn turns_of_a_session_are_in_its_shared_budget() {
    let agent = Scripted::new("claude", []);
    let mut can = Capabilities::none();
    can.usage = true;
    let shared = SharedBudget::tokens(20);
    let budget = Budget::default().shared(shared.clone());
    let mut runs = SessionRuns::new("s", open(&agent, &can, budget));
    let turn = runs.request("s.1", "Hi", &[], None);
    assert_eq!(turn.budget.shared, Some(shared));
}

#[tokio::test]
async fn no_turn_begins_once_the_budget_of_the_session_is_spent() {
    let agent = Scripted::new("claude", [answers("one"), answers("two")]);
    let mut can = Capabilities::none();
    can.live_usage = true;
    let live = Live::start_with([open(&agent, &can, Budget::default().tokens(20))], |_| {});
    assert_eq!(status(&live.turn("a").await), "completed");
    assert_eq!(status(&live.turn("b").await), "completed");
    let refused = live.command(send("c")).await;
    let Err(RunsError::Refused {
        code: RefusalCode::OverBudget,
        message,
    }) = refused
    else {
        panic!("{refused:?}");
    };
    assert_eq!(
        message,
        "the budget of this session is spent (tokens): no turn can begin"
    );
    let result = live.end().await;
    assert_eq!(result.usage.unwrap().total_tokens(), Some(20));
}

#[tokio::test]
async fn a_budget_in_usd_ends_a_session_whose_model_has_no_price() {
    // Whether the figures come during a turn or at its end.
    for live_usage in [true, false] {
        let mut can = Capabilities::none();
        (can.usage, can.live_usage) = (true, live_usage);
        let agent = Scripted::new("codex", [answers("one"), answers("two")]);
        let live = Live::start_with([open(&agent, &can, Budget::default().usd(1.0))], |_| {});
        let turn = live.turn("a").await;
        let result = &turn.last().unwrap()["result"];
        assert_eq!(result["text"], "one");
        let message = result["errors"][0]["message"].as_str().unwrap();
        assert!(
            message.starts_with(
                "the limit of 1 USD cannot be enforced: there is no price for the model"
            ),
            "{message}"
        );
        let refused = live.command(send("b")).await;
        let Err(RunsError::Refused {
            code: RefusalCode::OverBudget,
            message,
        }) = refused
        else {
            panic!("{refused:?}");
        };
        assert!(
            message.contains("there is no price for its model"),
            "{message}"
        );
        live.end().await;
        assert_eq!(agent.calls(), ["a", "[close]"]);
    }
}
