//! The stand-in of an agent in a loop, driven by the engine and the provider like the real CLI.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use teamster_core::{
    AgentSession, ErrorKind, EventStream, ExecuteParams, RunResult, RunStatus, SessionOptions, Turn,
};
use teamster_process::RuntimeConfig;
use teamster_testkit::proc;
use teamster_testkit::stand_in::witness::{self, Kind, TurnFigures, What};
use teamster_testkit::stand_in::{Act, PLAN_ENV, Plan};

/// Long enough for a loaded machine. Only a failing test waits for it.
const LIMIT: Duration = Duration::from_secs(30);

/// Prompts of a full and of a light tick.
const FULL: &str = "Read ./MEMORY.md, then begin.";
const LIGHT: &str = "Go on.";

/// An agent's folder, with the stand-in for its CLI.
struct Scratch {
    dir: tempfile::TempDir,
    plan: Plan,
}

impl Scratch {
    fn new(plan: impl FnOnce(Plan) -> Plan) -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("agent/.orchestrator")).unwrap();
        let plan = plan(Plan::new(dir.path().join("state")));
        Self { dir, plan }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn config() -> RuntimeConfig {
        let mut config = RuntimeConfig::default();
        config.program = Some(env!("CARGO_BIN_EXE_teamster-fake-agent").into());
        config
    }

    fn params(&self, prompt: &str) -> ExecuteParams {
        let mut params = ExecuteParams::new(prompt);
        params.working_directory = Some(self.path("agent").canonicalize().unwrap());
        for (name, value) in [
            (PLAN_ENV, self.plan.to_toml().unwrap()),
            ("HOME", self.path("home").display().to_string()),
        ] {
            params.env.insert(name.to_owned(), value);
        }
        params
    }

    fn open(&self, resumes: Option<&str>) -> Box<dyn AgentSession> {
        let mut params = self.params("");
        params.session_id = resumes.map(str::to_owned);
        let runtime = teamster::create_session_runtime("claude", Self::config()).unwrap();
        runtime.open(SessionOptions::new(params)).unwrap()
    }

    /// Returns the events without the process ids.
    fn seen(&self) -> Vec<What> {
        let seen = witness::read(self.plan.witness()).unwrap();
        seen.into_iter().map(|seen| seen.what).collect()
    }

    fn starts(&self) -> usize {
        let is_start = |what: &What| matches!(what, What::Start { .. });
        self.seen().iter().filter(|what| is_start(what)).count()
    }

    /// Returns the figures of all turns that ended.
    fn turns(&self) -> Vec<TurnFigures> {
        let turns = self.seen().into_iter().filter_map(|what| match what {
            What::Result(turn) => Some(turn),
            _ => None,
        });
        turns.collect()
    }
}

async fn end(stream: EventStream) -> RunResult {
    let result = tokio::time::timeout(LIMIT, stream.result()).await;
    let result = result.unwrap_or_else(|_| panic!("the turn should have ended"));
    let diagnostics = &result.diagnostics;
    assert_eq!((diagnostics.unknown, diagnostics.malformed), (0, 0));
    result
}

/// Returns the tokens in, out and from a cache: the reported ones and the actual ones.
fn figures(result: &RunResult, turn: &TurnFigures) -> ([Option<u64>; 3], [Option<u64>; 3]) {
    let usage = result.usage.unwrap();
    (
        [
            usage.input_tokens,
            usage.output_tokens,
            usage.cache_read_tokens,
        ],
        [
            turn.input_tokens,
            turn.output_tokens,
            turn.cache_read_tokens,
        ]
        .map(Some),
    )
}

async fn say(session: &dyn AgentSession, prompt: &str) -> RunResult {
    end(session.send(Turn::new(prompt))).await
}

#[tokio::test]
async fn turns_report_usage_and_a_cleared_conversation_is_new() {
    for totals_restart in [false, true] {
        let scratch = Scratch::new(|mut plan| {
            plan.totals_restart = totals_restart;
            plan.turn([]).turn([Act::DidWork, Act::ClearSession])
        });
        let session = scratch.open(None);
        let first = say(&*session, FULL).await;
        let second = say(&*session, LIGHT).await;
        session.clear().await.unwrap();
        let third = say(&*session, FULL).await;
        session.close().await;

        assert_eq!(first.status, RunStatus::Completed, "{:?}", first.errors);
        assert_eq!(first.text, "Turn 0 is done.");
        assert_eq!(second.text, "Turn 1: I do it.Turn 1 is done.");
        assert_eq!(first.session_id, second.session_id);
        assert_ne!(first.session_id, third.session_id);
        let turns = scratch.turns();
        assert_eq!(turns.len(), 3);
        for (result, turn) in [&first, &second, &third].into_iter().zip(&turns) {
            let (reported, true_ones) = figures(result, turn);
            assert_eq!(reported, true_ones);
            assert_eq!(result.session_id.as_deref(), Some(&*turn.session));
            let micro = result.total_cost_usd.unwrap() * 1e6;
            let wanted = f64::from(u32::try_from(turn.cost_micro_usd).unwrap());
            assert!((micro - wanted).abs() < 0.01, "{micro} {wanted}");
        }
        assert_eq!(turns[1].input_tokens, 2 * 1001);

        let kinds: Vec<_> = scratch
            .seen()
            .iter()
            .filter_map(|what| match what {
                What::Message { kind, flags, .. } => Some((*kind, flags.len())),
                _ => None,
            })
            .collect();
        let wanted = [
            (Kind::Full, 0),
            (Kind::Light, 0),
            (Kind::Clear, 2),
            (Kind::Full, 2),
        ];
        assert_eq!(kinds, wanted);
        assert!(scratch.path("agent/.orchestrator/did-work").exists());
        assert_eq!(scratch.starts(), 1);
    }
}

#[tokio::test]
async fn sessions_are_written_down_as_the_program_does() {
    let scratch = Scratch::new(|plan| plan.turn([Act::Status, Act::Tools]));
    let session = scratch.open(None);
    let result = say(&*session, FULL).await;
    session.close().await;
    let folder = scratch.path("agent").canonicalize().unwrap();
    let slug = folder.to_str().unwrap().replace(['/', '.', '_'], "-");
    let file = scratch.path("home/.claude/projects").join(slug);
    let file = file.join(format!("{}.jsonl", result.session_id.unwrap()));
    let lines = fs::read_to_string(file).unwrap();
    let ids: Vec<String> = lines
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap())
        .map(|line| line["message"]["id"].as_str().unwrap().to_owned())
        .collect();
    // One line per block, with the same usage on both blocks of the first answer.
    assert_eq!(ids, ["msg_0_1", "msg_0_1", "msg_0_2"]);
    for file in ["status.json", ".orchestrator/tools.json"] {
        let text = fs::read_to_string(folder.join(file)).unwrap();
        serde_json::from_str::<serde_json::Value>(&text).unwrap();
    }
}

#[tokio::test]
async fn dead_session_is_resumed() {
    let scratch = Scratch::new(|plan| plan.turn([]).turn([Act::DidWork, Act::DieAfter]).turn([]));
    let session = scratch.open(None);
    let first = say(&*session, FULL).await;
    let second = say(&*session, LIGHT).await;
    assert_eq!(second.status, RunStatus::Failed);
    let third = say(&*session, FULL).await;
    assert_eq!(third.status, RunStatus::Completed, "{:?}", third.errors);
    assert_eq!(first.session_id, third.session_id);
    session.close().await;
    let seen = scratch.seen();
    let resumed: Vec<_> = seen
        .iter()
        .filter_map(|what| match what {
            What::Start { resumes, .. } => Some(resumes.as_deref()),
            _ => None,
        })
        .collect();
    assert_eq!(resumed, [None, first.session_id.as_deref()]);
    let touched = seen
        .iter()
        .position(|what| *what == What::Did { act: Act::DidWork });
    let died = seen
        .iter()
        .position(|what| *what == What::Will { act: Act::DieAfter });
    assert!(touched.unwrap() < died.unwrap());
}

#[tokio::test]
async fn a_session_that_there_is_not_is_refused_in_the_programs_words() {
    let scratch = Scratch::new(|plan| plan);
    let session = scratch.open(Some("0190aaaa-bbbb-7ccc-8ddd-eeeeffff0000"));
    let result = say(&*session, FULL).await;
    assert_eq!(result.status, RunStatus::Failed);
    assert_eq!(result.errors[0].kind, ErrorKind::SessionNotFound);
    assert!(matches!(
        scratch.seen()[..],
        [What::Start { .. }, What::Refused { .. }]
    ));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_that_hangs_is_interrupted_and_the_process_lives_on() {
    for act in [Act::Hang, Act::Late] {
        let scratch = Scratch::new(|plan| plan.turn([act]));
        let session = scratch.open(None);
        let turn = tokio::spawn(end(session.send(Turn::new(FULL))));
        let hangs = || scratch.seen().contains(&What::Will { act });
        let hung = tokio::task::block_in_place(|| proc::wait_until(LIMIT, hangs));
        assert!(hung);
        session.interrupt();
        let result = turn.await.unwrap();
        assert_eq!(result.status, RunStatus::Aborted);
        let next = say(&*session, LIGHT).await;
        assert_eq!(next.text, "Turn 1 is done.");
        session.close().await;
        assert_eq!(scratch.starts(), 1);
        assert!(scratch.turns()[0].interrupted);
    }
}

#[tokio::test]
async fn background_process_is_in_its_own_session_and_ends_with_agent() {
    let scratch = Scratch::new(|plan| plan.turn([Act::Child]));
    let session = scratch.open(None);
    assert_eq!(say(&*session, FULL).await.status, RunStatus::Completed);
    let child = scratch.seen().into_iter().find_map(|what| match what {
        What::Child { child } => Some(child),
        _ => None,
    });
    let child = proc::KillOnDrop::new(child.unwrap());
    assert!(proc::is_alive(child.pid()));
    session.close().await;
    assert!(proc::wait_gone(child.pid(), LIMIT));
}

#[tokio::test]
async fn chance_is_the_same_each_time() {
    let acts = async || {
        let scratch = Scratch::new(|plan| {
            plan.seed(3)
                .chance(Act::DidWork, 0.5)
                .chance(Act::Status, 0.5)
        });
        let session = scratch.open(None);
        for _ in 0..8 {
            say(&*session, LIGHT).await;
        }
        session.close().await;
        let did = scratch.seen().into_iter().filter_map(|what| match what {
            What::Did { act } => Some(act),
            _ => None,
        });
        did.collect::<Vec<_>>()
    };
    let first = acts().await;
    assert!((4..14).contains(&first.len()), "{first:?}");
    assert_eq!(acts().await, first);
}
