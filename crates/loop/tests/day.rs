//! Simulation of an agent's day, with a simulated clock.
//!
//! The agent is scripted with a seeded random generator: it works, sets flags, dies and hangs, and records all
//! calls. Loop, files and flags are real.

#![allow(clippy::unwrap_used, reason = "a test")]

use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use jiff::Timestamp;
use teamster_api::agents::SleepFile;
use teamster_core::{
    AbortHandle, AgentError, AgentEvent, CliInfo, CostSource, Done, ErrorCode, ErrorKind,
    EventStream, ExecuteParams, Id, RunResult, RunStatus, SessionStarted, SharedRuntime, Usage,
};
use teamster_loop::clock::TokioClock;
use teamster_loop::{
    Adapter, AgentFolder, AgentLoop, Control, Log, Prompts, Settings, UsageRecord,
};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use crate::agent::Ticks;

static INFO: CliInfo = CliInfo::new("claude", "Claude Code", "claude");

const DAY: Duration = Duration::from_hours(24);

/// Deterministic random numbers.
struct Chance(u64);

impl Chance {
    /// Returns true once in `many` calls on average.
    fn one_in(&mut self, many: u64) -> bool {
        self.below(many) == 0
    }

    fn below(&mut self, limit: u64) -> u64 {
        // Knuth's constants for a linear congruence; the high bits are good enough for dice.
        self.0 = (self.0.wrapping_mul(6_364_136_223_846_793_005))
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

/// Calls that the agent recorded.
#[derive(Default)]
struct Account {
    /// Time of each tick, and whether it had the full prompt.
    ticks: Vec<(Duration, bool)>,
    completed: u32,
    worked: u32,
    deaths: u32,
    hangs: u32,
    clears: u32,
    requested_clears: u32,
    /// `clear-session` was set, and the context has not been emptied since.
    clear_due: bool,
    resets: u32,
    requested_resets: u32,
    resumed: Vec<Option<Id>>,
    problems: Vec<String>,
}

#[derive(Clone)]
struct Agent {
    account: Arc<Mutex<Account>>,
    chance: Arc<Mutex<Chance>>,
    flags: std::path::PathBuf,
    begun: Instant,
    session: Arc<Mutex<Option<Id>>>,
    sessions: u64,
    alive: Arc<Mutex<bool>>,
    /// The context has the instructions.
    informed: Arc<Mutex<bool>>,
    /// A tick is in progress.
    busy: Arc<Mutex<bool>>,
    /// The agent never has work.
    idle: bool,
}

#[async_trait::async_trait]
impl Adapter for Agent {
    fn begin(&mut self, resume: Option<Id>) -> Result<(), AgentError> {
        let waits = self.flags.join("clear-session").exists();
        let mut account = self.account.lock().unwrap();
        account.resumed.push(resume.clone());
        // A flag that is still set has not been served.
        account.clear_due &= resume.is_some() || waits;
        drop(account);
        *self.session.lock().unwrap() = resume;
        *self.alive.lock().unwrap() = true;
        *self.informed.lock().unwrap() = false;
        Ok(())
    }

    fn session(&self) -> Option<Id> {
        self.session.lock().unwrap().clone()
    }

    fn is_alive(&self) -> bool {
        *self.alive.lock().unwrap()
    }

    fn clears_in_session(&self) -> bool {
        true
    }

    async fn clear(&mut self) -> Result<(), AgentError> {
        let mut account = self.account.lock().unwrap();
        account.clears += 1;
        account.clear_due = false;
        drop(account);
        *self.session.lock().unwrap() = None;
        *self.informed.lock().unwrap() = false;
        Ok(())
    }

    fn runtime(&mut self) -> Result<SharedRuntime, AgentError> {
        if self.session.lock().unwrap().is_none() {
            self.sessions += 1;
            *self.session.lock().unwrap() = Some(Id::from(format!("s{}", self.sessions).as_str()));
        }
        let agent = self.clone();
        Ok(Arc::new(Ticks(move |params: ExecuteParams| {
            agent.tick(&params.prompt)
        })))
    }

    fn tick_ended(&mut self, _: &RunResult) {}

    fn unasked(&mut self) -> Option<EventStream> {
        None
    }

    async fn end(&mut self) {
        if std::mem::replace(&mut *self.alive.lock().unwrap(), false) {
            self.account.lock().unwrap().resets += 1;
        }
    }
}

impl Agent {
    fn tick(&self, prompt: &str) -> EventStream {
        let full = prompt.contains("MEMORY.md");
        let mut account = self.account.lock().unwrap();
        account.ticks.push((self.begun.elapsed(), full));
        if !full && !*self.informed.lock().unwrap() {
            account
                .problems
                .push("a context without instructions got the short prompt".into());
        }
        if account.clear_due && !self.flags.join("clear-session").exists() {
            account.problems.push("a clear was lost".into());
        }
        if std::mem::replace(&mut *self.busy.lock().unwrap(), true) {
            account.problems.push("two ticks at once".into());
        }
        drop(account);
        let abort = AbortHandle::new(&CancellationToken::new());
        let aborted = abort.clone();
        let (account, chance) = (self.account.clone(), self.chance.clone());
        let (alive, informed, busy) =
            (self.alive.clone(), self.informed.clone(), self.busy.clone());
        let session = self.session.lock().unwrap().clone();
        let flags = self.flags.clone();
        let idle = self.idle;
        let events = async_stream::stream! {
            if let Some(id) = session.clone() {
                yield AgentEvent::SessionStarted(Box::new(SessionStarted::new(id)));
            }
            let mut result = RunResult::default().session_id(session);
            let (seconds, dies, hangs) = {
                let mut chance = chance.lock().unwrap();
                (chance.below(200), chance.one_in(25), chance.one_in(40))
            };
            if idle {
                *informed.lock().unwrap() = true;
                result.status = RunStatus::Completed;
            } else if hangs {
                account.lock().unwrap().hangs += 1;
                // The turn hangs until the loop interrupts it.
                aborted.aborted().await;
                (result.status, result.aborted) = (RunStatus::Aborted, true);
            } else if dies {
                account.lock().unwrap().deaths += 1;
                sleep(Duration::from_secs(seconds)).await;
                *alive.lock().unwrap() = false;
                result.errors.push(AgentError::new(
                    ErrorCode::StreamEndedEarly,
                    ErrorKind::Protocol,
                    "it died",
                ));
            } else {
                sleep(Duration::from_secs(seconds)).await;
                result.status = RunStatus::Completed;
                result.usage = Some(Usage::default().input_tokens(100).output_tokens(10));
                result.model = Some("made-up".into());
                (result.total_cost_usd, result.cost_source) = (Some(0.5), Some(CostSource::Reported));
                *informed.lock().unwrap() = true;
                let mut account = account.lock().unwrap();
                let mut chance = chance.lock().unwrap();
                account.completed += 1;
                if chance.one_in(3) {
                    account.worked += 1;
                    fs::write(flags.join("did-work"), "").unwrap();
                }
                if chance.one_in(5) && !flags.join("clear-session").exists() {
                    account.requested_clears += 1;
                    account.clear_due = true;
                    fs::write(flags.join("clear-session"), "").unwrap();
                }
                if chance.one_in(50) {
                    account.requested_resets += 1;
                    fs::write(flags.join("reset-session"), "").unwrap();
                }
            }
            *busy.lock().unwrap() = false;
            yield AgentEvent::Done(Done::new(Box::new(result)));
        };
        EventStream::new(events, abort)
    }
}

fn settings() -> Settings {
    // The default limit of a turn is 10 minutes.
    Settings::new(&INFO)
}

async fn day(directory: &Path, seed: u64, idle: bool) -> (Account, Vec<Duration>) {
    let folder = AgentFolder::open(directory).unwrap();
    let clock = Arc::new(TokioClock::new("2026-11-21T00:00:00Z".parse().unwrap()));
    let control = Control::new();
    let account = Arc::new(Mutex::new(Account::default()));
    let chance = Arc::new(Mutex::new(Chance(seed)));
    let begun = Instant::now();
    let agent = Agent {
        account: account.clone(),
        chance: chance.clone(),
        flags: folder.path(""),
        begun,
        session: Arc::default(),
        sessions: 0,
        alive: Arc::default(),
        informed: Arc::default(),
        busy: Arc::default(),
        idle,
    };
    let log = Log::new(folder.path("agent-loop.log"), 1 << 20, clock.clone());
    let prompts = Prompts::read(&settings(), directory).unwrap();
    let agent_loop = AgentLoop::new(
        folder,
        settings(),
        prompts,
        Box::new(agent),
        clock,
        control.clone(),
        log,
    );
    let woken = Arc::new(Mutex::new(Vec::new()));
    let at = woken.clone();
    let waker = control.clone();
    tokio::spawn(async move {
        if idle {
            return;
        }
        loop {
            let pause = chance.lock().unwrap().below(7200);
            sleep(Duration::from_secs(pause)).await;
            at.lock().unwrap().push(begun.elapsed());
            waker.wake();
        }
    });
    tokio::spawn(async move {
        sleep(DAY).await;
        control.stop();
    });
    agent_loop.run().await.unwrap();
    let woken = woken.lock().unwrap().clone();
    (std::mem::take(&mut *account.lock().unwrap()), woken)
}

fn files(directory: &Path) -> Vec<String> {
    let mut names: Vec<_> = fs::read_dir(directory.join(".orchestrator"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[tokio::test(start_paused = true)]
async fn a_day_of_ticks() {
    for seed in 1..=4 {
        let directory = tempfile::tempdir().unwrap();
        let (account, woken) = day(directory.path(), seed, false).await;
        assert_eq!(account.problems, Vec::<String>::new(), "seed {seed}");
        assert!(
            account.ticks.len() > 50,
            "seed {seed}: {}",
            account.ticks.len()
        );

        // A wake is followed by a tick within the time limit of a turn.
        for wake in &woken {
            let answer = account.ticks.iter().find(|(at, _)| at >= wake);
            let late = Duration::from_mins(10);
            match answer {
                Some((at, _)) => assert!(*at <= *wake + late, "seed {seed}: {wake:?} {at:?}"),
                None => assert!(DAY <= *wake + late, "seed {seed}: {wake:?}"),
            }
        }

        // No flag is lost or invented. Each tick has checked that no clear was lost.
        assert!(account.clears > 0, "seed {seed}");
        assert!(account.clears <= account.requested_clears, "seed {seed}");
        assert!(account.resets >= account.requested_resets, "seed {seed}");

        // After a death the session is resumed, unless it was given up.
        let resumed = account.resumed.iter().filter(|it| it.is_some()).count();
        assert!(
            account.deaths > 0 && resumed > 0 && account.hangs > 0,
            "seed {seed}"
        );

        // Each tick with usage has one record with its cost.
        let usage = fs::read_to_string(directory.path().join(".orchestrator/usage.jsonl")).unwrap();
        let records: Vec<UsageRecord> = usage
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        assert_eq!(u32::try_from(records.len()).unwrap(), account.completed);
        let cost: f64 = records.iter().filter_map(|it| it.cost_usd).sum();
        assert!((cost - 0.5 * f64::from(account.completed)).abs() < 1e-6);

        let sleep = fs::read(directory.path().join(".orchestrator/sleep.json")).unwrap();
        let sleep: SleepFile = serde_json::from_slice(&sleep).unwrap();
        let midnight: Timestamp = "2026-11-22T00:00:00Z".parse().unwrap();
        assert!(midnight.as_second() - sleep.updated_at_epoch <= 3600);
        let stale = files(directory.path());
        let stale = stale
            .iter()
            .filter(|name| name.contains(".taken") || name.starts_with(".new"));
        assert_eq!(stale.count(), 0, "seed {seed}");
        assert!(!directory.path().join(".orchestrator/session.json").exists());
    }
}

#[tokio::test(start_paused = true)]
async fn an_idle_day_is_cheap() {
    let directory = tempfile::tempdir().unwrap();
    let (account, _) = day(directory.path(), 1, true).await;
    // The sleep grows by a minute with each tick: 120 s, 180 s, and so on. After the 52nd tick it is 3180 s,
    // which ends the day.
    assert_eq!(account.ticks.len(), 53);
    let full = account.ticks.iter().filter(|(_, full)| *full).count();
    assert_eq!(full, 1, "the instructions stay in the context");
    let log = fs::read_to_string(directory.path().join(".orchestrator/agent-loop.log")).unwrap();
    let begins = log.lines().next().unwrap();
    assert_eq!(begins, "[2026-11-21T00:00:00Z] starting claude");
    let ends = log.lines().last().unwrap();
    assert_eq!(ends, "[2026-11-22T00:00:00Z] agent-loop exit");
    assert!(
        log.contains("sleeping 3180 s: idle (+60 s, at most 3600 s)"),
        "{log}"
    );
}
