//! An agent's folder, its loop, and what is done to them.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Seek, SeekFrom};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use teamster_testkit::proc::wait_until;
use teamster_testkit::soak::Held;
use teamster_testkit::stand_in::Plan;
use teamster_testkit::stand_in::witness::{Seen, What, Witness};
use tempfile::TempDir;

use crate::soak::readers::Readers;

/// What the test does, as it is in the witness.
pub(crate) const STARTED: &str = "the loop is started";
pub(crate) const KILLED: &str = "the loop is killed";
pub(crate) const ENDED: &str = "the loop has ended";
pub(crate) const AGENT_KILLED: &str = "the agent is killed";
pub(crate) const TOUCHED: &str = "touched ";

/// How long anything may take that should take no time. Only a failure ever waits for so long.
pub(crate) const LIMIT: Duration = Duration::from_mins(1);

/// The variable by which all processes of a world are known.
const MARK: &str = "TEAMSTER_SOAK";

/// A sleep by `sleep.json`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Rest {
    pub(crate) seconds: u64,
    pub(crate) reason: String,
}

pub(crate) struct World {
    dir: TempDir,
    pub(crate) plan: Plan,
    witness: Witness,
    loops: Option<Child>,
    pub(crate) readers: Readers,
    pub(crate) seen: Vec<Seen>,
    /// How far the witness was read.
    read: u64,
}

impl World {
    /// A folder for an agent with these settings in its `.env`.
    pub(crate) fn new(settings: &str, plan: impl FnOnce(Plan) -> Plan) -> Self {
        let dir = tempfile::Builder::new().prefix("soak-").tempdir().unwrap();
        let plan = plan(Plan::new(dir.path().join("state")));
        for folder in ["agent/.claude/skills/deploy", "home", "state", "tmp"] {
            fs::create_dir_all(dir.path().join(folder)).unwrap();
        }
        let agent = dir.path().join("agent");
        let skill = "---\nname: deploy\ndescription: x\n---\n";
        for (name, text) in [
            (".env", settings),
            ("CLAUDE.md", "Be patient.\n"),
            ("AGENTS.md", "Be patient.\n"),
            (".claude/skills/deploy/SKILL.md", skill),
        ] {
            fs::write(agent.join(name), text).unwrap();
        }
        let command = format!("'{}' fake-agent", env!("CARGO_BIN_EXE_teamster"));
        plan.install(&dir.path().join("bin"), &command).unwrap();
        let witness = Witness::open(plan.witness()).unwrap();
        let readers = Readers::begin(agent.join(".orchestrator"));
        Self {
            dir,
            plan,
            witness,
            loops: None,
            readers,
            seen: Vec::new(),
            read: 0,
        }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// A file in `.orchestrator`.
    pub(crate) fn orchestrator(&self, name: &str) -> PathBuf {
        self.path("agent/.orchestrator").join(name)
    }

    fn outside(&self, did: &str) {
        self.witness
            .saw(What::Outside {
                did: did.to_owned(),
            })
            .unwrap();
    }

    /// Starts the loop, with `SIGUSR1` ignored as a supervisor does: a wake that comes too early ends nothing.
    /// A file that may not grow is an error then, as a full disk is, and not the end.
    pub(crate) fn start(&mut self) {
        self.outside(STARTED);
        let output = File::options()
            .create(true)
            .append(true)
            .open(self.path("output"))
            .unwrap();
        let path = format!("{}:/usr/bin:/bin", self.path("bin").display());
        let mut command = Command::new("/bin/sh");
        command
            .args([
                "-c",
                "trap '' USR1 XFSZ; exec \"$0\" \"$@\"",
                env!("CARGO_BIN_EXE_teamster"),
                "loop",
            ])
            .arg(self.path("agent"))
            .env_clear()
            .env("PATH", path)
            .env("HOME", self.path("home"))
            .env("TMPDIR", self.path("tmp"))
            .env("IS_SANDBOX", "1")
            .env(MARK, self.dir.path())
            .stdin(Stdio::null())
            .stdout(output.try_clone().unwrap())
            .stderr(output);
        self.loops = Some(command.spawn().unwrap());
    }

    /// The loop's process.
    pub(crate) fn pid(&self) -> u32 {
        self.loops.as_ref().unwrap().id()
    }

    fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.pid().cast_signed()), signal).unwrap();
    }

    /// Asks for a tick.
    pub(crate) fn wake(&self) {
        self.signal(Signal::SIGUSR1);
    }

    /// Kills the loop and nothing else.
    pub(crate) fn kill_loop(&mut self) {
        let mut child = self.loops.take().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        // What was seen until now was seen in its life: its agent ended with it.
        self.outside(KILLED);
    }

    /// Kills the agent's process, if there is one.
    pub(crate) fn kill_agent(&mut self) -> bool {
        self.look();
        let start = self
            .seen
            .iter()
            .rev()
            .find(|seen| matches!(seen.what, What::Start { .. }));
        let Some(pid) = start.map(|seen| seen.pid).filter(|pid| self.is_ours(*pid)) else {
            return false;
        };
        self.outside(AGENT_KILLED);
        // It may have ended by itself just now.
        kill(Pid::from_raw(pid.cast_signed()), Signal::SIGKILL).is_ok()
    }

    /// Ends the loop as an operator does.
    pub(crate) fn end(&mut self) -> ExitStatus {
        self.signal(Signal::SIGTERM);
        let mut child = self.loops.take().unwrap();
        let mut status = None;
        let ended = wait_until(LIMIT, || {
            status = child.try_wait().unwrap();
            status.is_some()
        });
        self.loops = Some(child);
        assert!(ended, "the loop does not end\n{}", self.tail());
        self.loops = None;
        self.outside(ENDED);
        status.unwrap()
    }

    /// Whether the loop has ended by itself.
    fn has_ended(&mut self) -> Option<ExitStatus> {
        self.loops.as_mut()?.try_wait().unwrap()
    }

    /// Sets a flag, as an operator does.
    pub(crate) fn touch(&self, flag: &str) {
        fs::write(self.orchestrator(flag), "").unwrap();
        self.outside(&format!("{TOUCHED}{flag}"));
    }

    /// Reads what was seen since the last time.
    pub(crate) fn look(&mut self) {
        let mut file = File::open(self.plan.witness()).unwrap();
        file.seek(SeekFrom::Start(self.read)).unwrap();
        let mut reader = BufReader::new(file);
        let mut line = String::new();
        while reader.read_line(&mut line).unwrap() > 0 && line.ends_with('\n') {
            self.read += line.len() as u64;
            let seen = serde_json::from_str(&line).unwrap_or_else(|e| panic!("{e}: {line}"));
            self.seen.push(seen);
            line.clear();
        }
    }

    /// How many ticks were begun.
    pub(crate) fn ticks(&mut self) -> usize {
        self.look();
        (self.seen.iter())
            .filter(|seen| matches!(seen.what, What::Message { turn: Some(_), .. }))
            .count()
    }

    /// The loop's report of its sleep, if it sleeps.
    fn resting(&self) -> Option<Rest> {
        let text = fs::read(self.orchestrator("sleep.json")).ok()?;
        let value: Value = serde_json::from_slice(&text).ok()?;
        (value["state"] == "sleeping").then(|| Rest {
            seconds: value["current_sleep_seconds"].as_u64().unwrap(),
            reason: value["reason"].as_str().unwrap().to_owned(),
        })
    }

    /// Whether it sleeps because the agent failed.
    pub(crate) fn rests_after_a_failure(&self) -> bool {
        let rest = self.resting();
        rest.is_some_and(|rest| rest.reason.contains("failure"))
    }

    /// Waits until the loop rests.
    #[track_caller]
    pub(crate) fn rest(&mut self) -> Rest {
        let mut rest = None;
        self.until("a rest", |world| {
            rest = world.resting();
            rest.is_some()
        });
        rest.unwrap()
    }

    /// Waits until something holds.
    #[track_caller]
    pub(crate) fn until(&mut self, what: &str, mut holds: impl FnMut(&mut Self) -> bool) {
        let mut ended = None;
        let held = wait_until(LIMIT, || {
            ended = self.has_ended();
            ended.is_some() || holds(self)
        });
        let fine = held && ended.is_none();
        assert!(
            fine,
            "{what}: not in time, or the loop has ended: {ended:?}\n{}",
            self.tail()
        );
    }

    fn is_ours(&self, pid: u32) -> bool {
        let mark = format!("{MARK}={}", self.dir.path().display());
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment
            .split(|byte| *byte == 0)
            .any(|variable| variable == mark.as_bytes())
    }

    pub(crate) fn processes(&self) -> Vec<String> {
        let processes = fs::read_dir("/proc").unwrap().flatten();
        processes
            .filter_map(|process| process.file_name().to_str()?.parse().ok())
            .filter(|pid| self.is_ours(*pid))
            .map(|pid| {
                let command = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
                format!(
                    "{pid} {}",
                    String::from_utf8_lossy(&command).replace('\0', " ")
                )
            })
            .collect()
    }

    /// The end of what there is to see, for who looks for a fault.
    pub(crate) fn tail(&mut self) -> String {
        self.look();
        let tail = |path: PathBuf| {
            let text = fs::read_to_string(path).unwrap_or_default();
            let lines: Vec<_> = text.lines().collect();
            lines[lines.len().saturating_sub(25)..].join("\n")
        };
        format!(
            "-- log\n{}\n-- output\n{}\n-- witness\n{}\n-- sleep.json\n{}\n",
            tail(self.orchestrator("agent-loop.log")),
            tail(self.path("output")),
            tail(self.plan.witness()),
            tail(self.orchestrator("sleep.json")),
        )
    }

    /// Returns what the loop holds.
    pub(crate) fn uses(&self) -> Held {
        Held::of(self.pid()).unwrap()
    }
}

impl Drop for World {
    fn drop(&mut self) {
        // Ended already in a test that passed.
        if let Some(child) = &mut self.loops {
            let _ = child.kill();
            let _ = child.wait();
        }
        for process in self.processes() {
            let pid = process.split(' ').next().and_then(|pid| pid.parse().ok());
            if let Some(pid) = pid {
                let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
            }
        }
        if std::env::var_os("TEAMSTER_SOAK_KEEP").is_some() {
            self.dir.disable_cleanup(true);
            eprintln!("kept: {}", self.dir.path().display());
        }
    }
}
