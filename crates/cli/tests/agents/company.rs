//! A folder with agents, and commands to their supervisor.

use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use teamster_process::{ProcessIdentity, ProcessSignal};
use teamster_testkit::proc::wait_until;
use teamster_testkit::stand_in::Plan;
use tempfile::TempDir;

use crate::agents::LIMIT;
use crate::cli::{Ended, run};

pub(crate) const TEAMSTER: &str = env!("CARGO_BIN_EXE_teamster");

pub(crate) struct Company {
    dir: TempDir,
}

impl Company {
    /// Creates agents whose Claude Code is a stand-in that follows the plan.
    pub(crate) fn new<'a>(
        agents: impl IntoIterator<Item = &'a str>,
        plan: impl FnOnce(Plan) -> Plan,
    ) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let company = Self { dir };
        for folder in ["home", "state", "tmp"] {
            fs::create_dir(company.path(folder)).unwrap();
        }
        let mut entries = Vec::new();
        for id in agents {
            let folder = company.folder(id);
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join("CLAUDE.md"), "Be patient.\n").unwrap();
            fs::write(folder.join(".env"), "MIN_SLEEP=1000\nIDLE_STEP=1000\n").unwrap();
            entries.push(
                serde_json::json!({"id": id, "alias": format!("@{id}"), "runtime": "claude"}),
            );
        }
        let config = serde_json::json!({"companyName": "Example", "agents": entries});
        fs::write(company.config(), config.to_string()).unwrap();
        let plan = plan(Plan::new(company.path("state")));
        plan.install(&company.path("bin"), &format!("'{TEAMSTER}' fake-agent"))
            .unwrap();
        company
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn config(&self) -> PathBuf {
        self.path("agents.config.json")
    }

    pub(crate) fn folder(&self, id: &str) -> PathBuf {
        self.path("agents").join(id)
    }

    pub(crate) fn teamster<'a>(&self, args: impl IntoIterator<Item = &'a str>) -> Command {
        let path = format!("{}:/usr/bin:/bin", self.path("bin").display());
        let mut command = Command::new(TEAMSTER);
        command
            .args(args)
            .env_clear()
            .env("PATH", path)
            .env("HOME", self.path("home"))
            .env("TMPDIR", self.path("tmp"))
            .env("IS_SANDBOX", "1")
            .env("TZ", "UTC")
            .current_dir(self.dir.path())
            .stdin(Stdio::null());
        command
    }

    pub(crate) fn run<'a>(&self, args: impl IntoIterator<Item = &'a str>) -> Ended {
        run(&mut self.teamster(args))
    }

    /// Runs a command that must succeed and returns its stdout.
    pub(crate) fn good<'a>(&self, args: impl IntoIterator<Item = &'a str>) -> String {
        let ended = self.run(args).ok();
        ended.stdout
    }

    pub(crate) fn supervise<'a>(&self, more: impl IntoIterator<Item = &'a str>) -> Supervisor {
        self.supervisor(self.teamster(["supervise"]).args(more))
    }

    /// Starts a supervisor by this command and waits until it listens.
    pub(crate) fn supervisor(&self, command: &mut Command) -> Supervisor {
        let output = self.path("output");
        let begun = || {
            let text = fs::read_to_string(&output).unwrap_or_default();
            text.matches("listening on").count()
        };
        let before = begun();
        let file = File::options().create(true).append(true).open(&output);
        let supervisor = Supervisor(command.stderr(file.unwrap()).spawn().unwrap());
        assert!(wait_until(LIMIT, || begun() > before), "{}", self.output());
        supervisor
    }

    /// Starts a supervisor that logs to `stderr`. Does not wait until it listens.
    pub(crate) fn supervise_into(&self, stderr: impl Into<Stdio>) -> Supervisor {
        let mut command = self.teamster(["supervise"]);
        Supervisor(command.stderr(stderr).spawn().unwrap())
    }

    /// Returns the stderr of all supervisors.
    pub(crate) fn output(&self) -> String {
        fs::read_to_string(self.path("output")).unwrap()
    }

    /// Returns an agent's entry in `status --json`.
    pub(crate) fn agent(&self, id: &str) -> Value {
        // The exit code depends on the agent's state, so it is not checked.
        let status = self.run(["agents", "status", id, "--json"]).stdout;
        let mut status: Value = serde_json::from_str(&status).unwrap();
        assert_eq!(status["agents"].as_array().unwrap().len(), 1, "{status}");
        status["agents"][0].take()
    }

    /// Waits until the condition holds for the agent, and returns its status.
    pub(crate) fn wait(&self, id: &str, what: impl Fn(&Value) -> bool) -> Value {
        let mut last = Value::Null;
        let held = wait_until(LIMIT, || {
            last = self.agent(id);
            what(&last)
        });
        assert!(held, "{last}\n{}", self.log(id));
        last
    }

    /// Waits until the agent's loop sleeps after a tick, and returns the loop's pid.
    pub(crate) fn asleep(&self, id: &str) -> u32 {
        let agent = self.wait(id, |it| it["activity"]["state"] == "sleeping");
        pid(&agent).unwrap()
    }

    pub(crate) fn log(&self, id: &str) -> String {
        let file = self.folder(id).join(".orchestrator/agent-loop.log");
        fs::read_to_string(file).unwrap_or_default()
    }

    /// Returns the processes whose working directory is in a folder of an agent.
    pub(crate) fn processes(&self) -> Vec<u32> {
        let agents = fs::canonicalize(self.path("agents")).unwrap();
        let processes = fs::read_dir("/proc").unwrap();
        let working = |pid: &u32| {
            let directory = fs::read_link(format!("/proc/{pid}/cwd"));
            let alive = teamster_testkit::proc::is_alive(*pid);
            alive && directory.is_ok_and(|it| it.starts_with(&agents))
        };
        processes
            .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
            .filter(working)
            .collect()
    }
}

impl Drop for Company {
    fn drop(&mut self) {
        for pid in self.processes() {
            if let Some(process) = ProcessIdentity::of(pid) {
                // After a passed test, the process has ended already.
                let _ = process.signal(ProcessSignal::Kill);
            }
        }
    }
}

pub(crate) fn pid(agent: &Value) -> Option<u32> {
    agent["pid"].as_u64()?.try_into().ok()
}

/// A running supervisor. It is killed on drop.
pub(crate) struct Supervisor(Child);

impl Supervisor {
    pub(crate) fn pid(&self) -> u32 {
        self.0.id()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.0.id().cast_signed()), signal).unwrap();
    }

    /// Stops it, which succeeds.
    #[track_caller]
    pub(crate) fn stop(self) {
        self.signal(Signal::SIGTERM);
        assert_eq!(self.end(), Some(0));
    }

    /// Waits for the end and returns the exit code.
    pub(crate) fn end(mut self) -> Option<i32> {
        assert!(wait_until(LIMIT, || self.0.try_wait().unwrap().is_some()));
        self.0.wait().unwrap().code()
    }
}

impl Drop for Supervisor {
    fn drop(&mut self) {
        // After a passed test, the supervisor has ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
