//! A loop with a CLI in a separate home.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::{Pid, getpgid};
use serde_json::{Value, json};
use teamster_mock_model::{Cli, MockModel, MockModelSettings, Request, Script};
use teamster_process::ProcessIdentity;
use tokio::process::{Child, Command};

use super::day::takes_servers;
use crate::bench::{Bench, COPILOT_PACKAGES};
use crate::location::{self, Location};

/// Maximum duration of any wait. OpenCode needs about 6 s for its first turn on an idle machine.
pub(crate) const LIMIT: Duration = Duration::from_mins(2);

pub(crate) const POLL: Duration = Duration::from_millis(20);

/// Durations of sleeps in seconds, so long that every tick is a requested one.
pub(crate) const SLEEPS: [u64; 3] = [600, 300, 1500];

pub(crate) struct Stage {
    pub(crate) cli: Cli,
    pub(crate) model: MockModel,
    location: Location,
    command: Command,
    child: Child,
    pid: Pid,
    /// Number of sleeps in the log at the last look.
    sleeps: usize,
}

impl Stage {
    /// Starts a loop with this CLI, whose model plays this script.
    pub(crate) async fn new(
        bench: &Bench,
        cli: Cli,
        program: &Path,
        name: &str,
        script: Script,
    ) -> anyhow::Result<Self> {
        let location = Location::new(bench, cli, name)?;
        let directory = location.directory();
        let mut settings = MockModelSettings::default();
        settings.directory = Some(directory.clone());
        settings.cli = Some(cli);
        let model = MockModel::start_with(script, settings).await?;
        let pointing = cli.point_at(&model.url());
        pointing.write_files(&location.home())?;
        let [min, step, max] = SLEEPS;
        let mut env =
            format!("MIN_SLEEP={min}\nIDLE_STEP={step}\nMAX_SLEEP={max}\nCLEAR_MIN_GAP=0\n");
        for (name, value) in &pointing.env {
            writeln!(env, "{name}='{value}'")?;
        }
        fs::write(directory.join(".env"), env)?;
        if takes_servers(cli) {
            let server = json!({"mcpServers": {"tiny": {
                "command": std::env::current_exe()?, "args": ["fake-mcp"]}}});
            fs::write(directory.join(".mcp.json"), server.to_string())?;
        }
        write_skill(&directory, "deploy", OWN_SKILL)?;
        write_skill(&location.home(), "foreign", FOREIGN_SKILL)?;
        let path = std::env::var("PATH").unwrap_or_default();
        let path = format!("{}:{path}", bench.programs.display());
        let mut command = Command::new(program);
        command
            .arg("loop")
            .arg(&directory)
            .env_clear()
            .env("PATH", path)
            .env("HOME", location.home())
            .env("TMPDIR", location.temporary())
            .env("LANG", "C.UTF-8")
            .env("TERM", "dumb")
            .env("RUNTIME", cli.id())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .kill_on_drop(true);
        match cli {
            // As root, Claude Code only allows everything with a variable that declares a sandbox.
            Cli::Claude => command.env("IS_SANDBOX", "1"),
            Cli::Copilot => command.env(COPILOT_PACKAGES, bench.copilot_packages()),
            // Pi uses the Node.js that is installed next to it.
            Cli::Pi => command.env("PATH", bench.search_path()?),
            _ => &mut command,
        };
        if let Some(name) = &pointing.model {
            command.env(format!("{}_MODEL", cli.id().to_uppercase()), name);
        }
        let (child, pid) = spawn(&mut command)?;
        Ok(Self {
            cli,
            model,
            location,
            command,
            child,
            pid,
            sleeps: 0,
        })
    }

    /// Starts the next loop in the directory.
    pub(crate) fn start(&mut self) -> anyhow::Result<()> {
        (self.child, self.pid) = spawn(&mut self.command)?;
        Ok(())
    }

    /// Returns the home of the loop and the CLI.
    pub(crate) fn home(&self) -> PathBuf {
        self.location.home()
    }

    /// Returns the path of a file in the agent's directory.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.location.directory().join(name)
    }

    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_default()
    }

    pub(crate) fn log(&self) -> String {
        self.read(".orchestrator/agent-loop.log")
    }

    /// Requests a tick.
    pub(crate) fn wake(&self) -> anyhow::Result<()> {
        kill(self.pid, Signal::SIGUSR1).context("the loop is gone")
    }

    /// Waits until the loop sleeps again. Returns the duration of the sleep in seconds.
    pub(crate) async fn rest(&mut self) -> anyhow::Result<u64> {
        let wanted = self.sleeps + 1;
        let begun = Instant::now();
        while self.log().matches("] sleeping ").count() < wanted {
            if begun.elapsed() > LIMIT || self.child.try_wait()?.is_some() {
                bail!("sleep {wanted} did not come\n{}", self.log());
            }
            tokio::time::sleep(POLL).await;
        }
        self.sleeps = wanted;
        // Written before the line in the log.
        let sleep: Value = serde_json::from_str(&self.read(".orchestrator/sleep.json"))?;
        let seconds = sleep["current_sleep_seconds"].as_u64();
        if sleep["state"] != "sleeping" {
            bail!("sleep.json: {sleep}\n{}", self.log());
        }
        seconds.with_context(|| format!("sleep.json: {sleep}"))
    }

    /// Returns the requests to the model in the conversation, beginning with the one of this number.
    pub(crate) fn asked_from(&self, count: usize) -> Vec<Request> {
        let mut requests = self.model.requests_from(count);
        requests.retain(|request| request.turn.is_some());
        requests
    }

    /// Returns the processes that the loop has started for the CLI.
    pub(crate) fn processes(&self) -> Vec<u32> {
        let mut found: Vec<u32> = location::ids_of(&self.location.home())
            .into_iter()
            .filter(|pid| {
                let command = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
                let parent = ProcessIdentity::of(*pid).and_then(ProcessIdentity::parent);
                parent.map(u32::cast_signed) == Some(self.pid.as_raw())
                    && !String::from_utf8_lossy(&command).contains("--teamster-guard")
            })
            .collect();
        found.sort_unstable();
        found
    }

    /// Kills the CLI, like the system when it runs out of memory, and waits until it is gone. Returns whether
    /// it was running.
    pub(crate) async fn kill(&self) -> anyhow::Result<bool> {
        let processes = self.processes();
        for pid in &processes {
            let group = getpgid(Some(Pid::from_raw(pid.cast_signed())))?;
            killpg(group, Signal::SIGKILL)?;
        }
        let begun = Instant::now();
        while !self.processes().is_empty() {
            if begun.elapsed() > LIMIT {
                bail!("{:?} do not end", self.processes());
            }
            tokio::time::sleep(POLL).await;
        }
        // The loop notices this a little later.
        tokio::time::sleep(Duration::from_millis(500)).await;
        Ok(!processes.is_empty())
    }

    pub(crate) async fn kill_loop(&mut self) -> anyhow::Result<()> {
        kill(self.pid, Signal::SIGKILL)?;
        self.child.wait().await?;
        Ok(())
    }

    /// Ends the loop as an operator does. Returns its exit code and the remaining processes.
    pub(crate) async fn end(&mut self) -> anyhow::Result<(Option<i32>, Vec<String>)> {
        kill(self.pid, Signal::SIGTERM)?;
        let status = tokio::time::timeout(LIMIT, self.child.wait()).await;
        let status = status.context("the loop does not end")??;
        Ok((status.code(), location::processes_of(&self.location.home())))
    }
}

fn spawn(command: &mut Command) -> anyhow::Result<(Child, Pid)> {
    let child = command.spawn().context("cannot start teamster")?;
    let pid = child.id().context("teamster has ended")?;
    Ok((child, Pid::from_raw(pid.cast_signed())))
}

/// Contents of the skills.
pub(crate) const OWN_SKILL: &str = "Deploy on Tuesdays, rule 7f3a.";
pub(crate) const FOREIGN_SKILL: &str = "Never deploy, rule 91c2.";

fn write_skill(folder: &Path, name: &str, text: &str) -> anyhow::Result<()> {
    let folder = folder.join(".claude/skills").join(name);
    fs::create_dir_all(&folder)?;
    let text = format!("---\nname: {name}\ndescription: How to do it\n---\n{text}\n");
    Ok(fs::write(folder.join("SKILL.md"), text)?)
}
