//! State that outlives a process of the stand-in.

use std::fs::{self, File};
use std::io::{Read, Seek, Write};
use std::path::{Path, PathBuf};

use nix::sys::signal::{Signal, raise};

use super::act::{Act, FLAGS, ORCHESTRATOR};
use super::chance::Chance;
use super::plan::Plan;
use super::witness::{Kind, What, Witness};
use crate::fake_agent::{FakeAgent, Spawn, SpawnKind};

/// Kinds of chances.
const OF_TURNS: u64 = 1;
const OF_STARTS: u64 = 2;
const OF_CLEARS: u64 = 3;
const OF_IDS: u64 = 4;

/// Maximum length of the recorded beginning of a message, in characters.
const BEGINNING: usize = 200;

/// A process of a stand-in.
#[derive(Debug)]
pub(super) struct State {
    agent: FakeAgent,
    pub(super) plan: Plan,
    pub(super) args: Vec<String>,
    pub(super) folder: PathBuf,
    witness: Witness,
    start: u64,
    alone: bool,
    /// Locked while the process lives.
    _alive: File,
    ids: Chance,
    clears: u64,
}

impl State {
    pub(super) fn open(agent: &FakeAgent, plan: Plan, args: Vec<String>) -> Result<Self, String> {
        let failed = |error| format!("{}: {error}", plan.state.display());
        fs::create_dir_all(plan.state.join("sessions")).map_err(failed)?;
        let witness = Witness::open(plan.witness()).map_err(failed)?;
        let start = count(&plan.state.join("starts")).map_err(failed)?;
        let alive = File::create(plan.state.join("alive.lock")).map_err(failed)?;
        let alone = alive.try_lock().is_ok();
        crate::fake_agent::limit_life(plan.life_limit_seconds);
        let folder = std::env::current_dir().map_err(|error| error.to_string())?;
        Ok(Self {
            agent: agent.clone(),
            ids: Chance::of(plan.seed, OF_IDS, start),
            plan,
            args,
            folder,
            witness,
            start,
            alone,
            _alive: alive,
            clears: 0,
        })
    }

    /// Records the start of the process. May end the process.
    pub(super) fn begin(&self, resumes: Option<&str>) -> Result<(), String> {
        self.saw(What::Start {
            argv: self.args.clone(),
            resumes: resumes.map(str::to_owned),
            run_id: std::env::var("TEAMSTER_RUN_ID").ok(),
            number: self.start,
            alone: self.alone,
        })?;
        let mut chance = Chance::of(self.plan.seed, OF_STARTS, self.start);
        if self.happens(Act::DieAtStart, &mut chance) {
            self.die(Act::DieAtStart)?;
        }
        Ok(())
    }

    pub(super) fn saw(&self, what: What) -> Result<(), String> {
        self.witness
            .saw(what)
            .map_err(|error| format!("cannot write the witness: {error}"))
    }

    /// Records a message. Returns its turn, or `None` for a request to clear the conversation.
    pub(super) fn message(&self, text: &str, session: &str) -> Result<Option<u64>, String> {
        let kind = match text {
            "/clear" => Kind::Clear,
            _ if text.contains(&self.plan.full_mark) => Kind::Full,
            _ => Kind::Light,
        };
        let turn = match kind {
            Kind::Clear => None,
            _ => {
                let turns = count(&self.plan.state.join("turns"));
                Some(turns.map_err(|error| format!("cannot count turns: {error}"))?)
            }
        };
        let orchestrator = self.folder.join(ORCHESTRATOR);
        let flags = FLAGS
            .iter()
            .filter(|flag| orchestrator.join(flag).exists())
            .map(|flag| (*flag).to_owned())
            .collect();
        self.saw(What::Message {
            turn,
            kind,
            session: session.to_owned(),
            flags,
            text: text.chars().take(BEGINNING).collect(),
        })?;
        Ok(turn)
    }

    /// Returns the actions of a turn, and its duration in milliseconds.
    pub(super) fn planned(&self, turn: u64) -> (Vec<Act>, u64) {
        let mut chance = Chance::of(self.plan.seed, OF_TURNS, turn);
        let ms = chance.between(self.plan.turn_ms);
        let planned = usize::try_from(turn)
            .ok()
            .and_then(|turn| self.plan.turns.get(turn));
        let acts = match planned {
            Some(acts) => acts.clone(),
            // Each action has an independent chance.
            None => (self.plan.chances.iter())
                .filter_map(|(act, probability)| chance.happens(*probability).then_some(*act))
                .collect(),
        };
        (acts, ms)
    }

    /// Changes the files of these actions.
    pub(super) fn change_files(&self, acts: &[Act], turn: u64) -> Result<(), String> {
        for &act in acts.iter().filter(|act| act.is_of_files()) {
            self.saw(What::Will { act })?;
            let changed = act.change_files(&self.folder, turn);
            // The folder belongs to the loop. Without it the action is irrelevant.
            if changed.is_ok() {
                self.saw(What::Did { act })?;
            }
        }
        Ok(())
    }

    /// Returns the commands with which a real agent would change the files.
    pub(super) fn commands(acts: &[Act]) -> String {
        let commands: Vec<_> = acts.iter().filter_map(|act| act.command()).collect();
        commands.join(" && ")
    }

    /// Starts a background process in a new session.
    pub(super) fn child(&self, turn: u64) -> Result<(), String> {
        let file = self.plan.state.join(format!("child-{turn}"));
        let spawn = Spawn::new(SpawnKind::Setsid)
            // Real background processes may or may not redirect their output.
            .hold_pipes(turn.is_multiple_of(2))
            .pid_file(&file);
        crate::fake_agent::start_process(&self.agent, &spawn)?;
        let pid = fs::read_to_string(&file).unwrap_or_default();
        let child = pid
            .trim()
            .parse()
            .map_err(|_| format!("{}: no process id", file.display()))?;
        self.saw(What::Child { child })
    }

    /// Dies immediately, like a process that the system kills when it runs out of memory.
    pub(super) fn die(&self, act: Act) -> Result<(), String> {
        self.saw(What::Will { act })?;
        raise(Signal::SIGKILL).map_err(|error| format!("cannot die: {error}"))
    }

    /// Prepares to clear the conversation. May end the process.
    pub(super) fn before_clear(&mut self) -> Result<(), String> {
        let number = self.start << 32 | self.clears;
        self.clears += 1;
        let mut chance = Chance::of(self.plan.seed, OF_CLEARS, number);
        if self.happens(Act::DieOnClear, &mut chance) {
            self.die(Act::DieOnClear)?;
        }
        Ok(())
    }

    fn happens(&self, act: Act, chance: &mut Chance) -> bool {
        let probability = self.plan.chances.get(&act).copied().unwrap_or_default();
        chance.happens(probability)
    }

    /// Returns whether this folder has such a session.
    pub(super) fn knows(&self, session: &str) -> bool {
        let folder = fs::read_to_string(self.session(session));
        folder.is_ok_and(|folder| Path::new(&folder) == self.folder)
    }

    /// Stores a session, so that it can be resumed.
    pub(super) fn remember(&self, session: &str) -> Result<(), String> {
        if self.knows(session) {
            return Ok(());
        }
        // Written atomically, because the process may be killed at any point.
        let (file, folder) = (self.session(session), self.folder.as_os_str());
        let new = file.with_extension(format!("{}", std::process::id()));
        fs::write(&new, folder.as_encoded_bytes())
            .and_then(|()| fs::rename(&new, &file))
            .map_err(|error| format!("cannot remember the session: {error}"))
    }

    fn session(&self, id: &str) -> PathBuf {
        // Prevents an id from being a path.
        let name: String = id
            .chars()
            .map(|c| if c.is_alphanumeric() { c } else { '-' })
            .collect();
        self.plan.state.join("sessions").join(name)
    }

    pub(super) fn uuid(&mut self) -> String {
        self.ids.uuid()
    }
}

/// Returns the next number of a counter file that several processes share.
fn count(file: &Path) -> std::io::Result<u64> {
    let mut file = File::options()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(file)?;
    file.lock()?;
    let mut text = String::new();
    file.read_to_string(&mut text)?;
    let number: u64 = text.trim().parse().unwrap_or_default();
    file.rewind()?;
    // The text never gets shorter, so it needs no truncation.
    writeln!(file, "{}", number + 1)?;
    Ok(number)
}
