//! Folder with a configuration and agents, and a supervisor of them.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};
use teamster_api::agents::{AgentState, AgentStatus, Command, Event, Selection, Status};
use teamster_loop::supervisor::{Client, Error, Handle, Supervisor, SupervisorSettings};
use teamster_process::{ProcessIdentity, ProcessSignal};
use teamster_testkit::proc::wait_until;
use tempfile::TempDir;
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;

use crate::supervisor::LIMIT;

pub(crate) const GOOD: &str = "trap 'exit 0' TERM\nwhile :; do sleep 0.02; done\n";

/// Agents, each with the script of its loop. Running loops are killed on drop.
pub(crate) struct Company {
    dir: TempDir,
    runtime: Runtime,
}

impl Company {
    pub(crate) fn new<'a>(agents: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let company = Self {
            dir: tempfile::tempdir().unwrap(),
            runtime: Runtime::new().unwrap(),
        };
        let mut ids = Vec::new();
        for (id, script) in agents {
            company.add(id, script);
            ids.push(json!({"id": id}));
        }
        company.configure(&json!({"agents": ids}));
        company
    }

    /// Creates the folder of an agent. Each start appends its process id to `starts` after the traps in the
    /// first line of the script are set.
    pub(crate) fn add(&self, id: &str, script: &str) {
        let folder = self.folder(id);
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("AGENTS.md"), "").unwrap();
        let (traps, rest) = match script.split_once('\n') {
            Some((first, rest)) if first.starts_with("trap ") => (first, rest),
            _ => ("", script),
        };
        let script = format!("{traps}\necho $$ >>starts\n{rest}");
        fs::write(folder.join("loop.sh"), script).unwrap();
    }

    pub(crate) fn configure(&self, config: &Value) {
        fs::write(self.config(), config.to_string()).unwrap();
    }

    pub(crate) fn config(&self) -> PathBuf {
        self.dir.path().join("agents.config.json")
    }

    pub(crate) fn folder(&self, id: &str) -> PathBuf {
        self.dir.path().join("agents").join(id)
    }

    /// Returns the path of a file in the supervisor's folder.
    pub(crate) fn own(&self, name: &str) -> PathBuf {
        self.dir.path().join(".teamster").join(name)
    }

    pub(crate) fn state(&self) -> Value {
        serde_json::from_slice(&fs::read(self.own("supervisor.json")).unwrap()).unwrap()
    }

    /// Returns the process ids of all starts of this agent.
    pub(crate) fn starts(&self, id: &str) -> Vec<u32> {
        numbers(&self.folder(id).join("starts"))
    }

    pub(crate) fn supervise(&self) -> Running<'_> {
        self.supervise_with(&settings()).unwrap()
    }

    pub(crate) fn supervise_with(
        &self,
        settings: &SupervisorSettings,
    ) -> Result<Running<'_>, Error> {
        self.supervise_by(&self.config(), settings)
    }

    /// Starts a supervisor for this path of a configuration.
    pub(crate) fn supervise_by(
        &self,
        config: &Path,
        settings: &SupervisorSettings,
    ) -> Result<Running<'_>, Error> {
        let _context = self.runtime.enter();
        let supervisor = Supervisor::open(config, settings.clone())?;
        let handle = supervisor.handle();
        let (sender, events) = std::sync::mpsc::channel();
        let task = self.runtime.spawn(supervisor.run(move |event| {
            // The receiver is gone at the end of a test.
            let _ = sender.send(event);
        }));
        Ok(Running {
            company: self,
            handle,
            events,
            task,
        })
    }

    pub(crate) fn ask(&self, command: Command) -> Result<Status, Error> {
        self.runtime.block_on(async {
            let mut client = Client::connect(&self.config()).await?;
            client.ask(command).await
        })
    }

    pub(crate) fn agent(&self, id: &str) -> AgentStatus {
        let status = self.ask(Command::Status).unwrap();
        status.agents.into_iter().find(|it| it.id == id).unwrap()
    }

    /// Waits until the agent's status fulfils a condition.
    pub(crate) fn wait(&self, id: &str, condition: impl Fn(&AgentStatus) -> bool) -> AgentStatus {
        let mut last = self.agent(id);
        let held = wait_until(LIMIT, || {
            last = self.agent(id);
            condition(&last)
        });
        assert!(held, "{last:?}");
        last
    }

    /// Waits until the script of a loop runs, not only the shell before it. Returns its process id.
    pub(crate) fn running(&self, id: &str) -> u32 {
        let status = self.wait(id, |it| {
            it.state == AgentState::Running && self.starts(id).last() == it.pid.as_ref()
        });
        status.pid.unwrap()
    }
}

impl Drop for Company {
    fn drop(&mut self) {
        let agents = fs::read_dir(self.dir.path().join("agents"));
        for agent in agents.into_iter().flatten().flatten() {
            for pid in numbers(&agent.path().join("starts")) {
                let Some(process) = ProcessIdentity::of(pid) else {
                    continue;
                };
                // The process id may be reused by an unrelated process.
                if process.directory() == fs::canonicalize(agent.path()).ok() {
                    let _ = process.signal_group(ProcessSignal::Kill);
                }
            }
        }
    }
}

/// Supervisor in this process.
pub(crate) struct Running<'a> {
    company: &'a Company,
    pub(crate) handle: Handle,
    pub(crate) events: std::sync::mpsc::Receiver<Event>,
    task: JoinHandle<()>,
}

impl Running<'_> {
    /// Ends the supervisor and waits for its end.
    pub(crate) fn end(self) {
        self.handle.end();
        let ended = async { tokio::time::timeout(LIMIT, self.task).await };
        self.company.runtime.block_on(ended).unwrap().unwrap();
    }

    /// Drops the supervisor without ending it.
    pub(crate) fn abort(self) {
        self.task.abort();
        let ended = async { tokio::time::timeout(LIMIT, self.task).await };
        let ended = self.company.runtime.block_on(ended).unwrap();
        assert!(ended.unwrap_err().is_cancelled());
    }

    /// Waits for an event that fulfils a condition.
    pub(crate) fn event(&self, condition: impl Fn(&Event) -> bool) -> Event {
        loop {
            let event = self.events.recv_timeout(LIMIT).unwrap();
            if condition(&event) {
                return event;
            }
        }
    }
}

/// Returns settings that leave the loops running at the supervisor's end.
pub(crate) fn keeping() -> SupervisorSettings {
    let mut settings = settings();
    settings.keep_agents = true;
    settings
}

/// Returns settings with `loop.sh` in the agent's directory as the loop.
pub(crate) fn settings() -> SupervisorSettings {
    let mut settings = SupervisorSettings::new("/bin/sh", ["./loop.sh"]);
    settings.policy.first_delay = Duration::from_millis(50);
    settings
}

pub(crate) fn of(id: &str) -> Selection {
    Selection::of([id])
}

pub(crate) fn numbers(file: &Path) -> Vec<u32> {
    let text = fs::read_to_string(file).unwrap_or_default();
    text.lines().map(|line| line.parse().unwrap()).collect()
}
