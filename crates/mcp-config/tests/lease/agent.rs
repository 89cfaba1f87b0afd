//! Another process that takes leases: this test program, started again.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::{env, io};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};
use teamster_core::provider::ConfigFormat;
use teamster_mcp_config::lease::disk::{Disk, Step};
use teamster_mcp_config::lease::{Lease, restore_on};

use crate::lease::support::edit_of;

/// Environment variable that makes this program the other process. Its value is the number of the operation before
/// which the process kills itself, or 0 for none.
const MARK: &str = "TEAMSTER_LEASE_TEST_AGENT";

/// Environment variable that makes hard links fail.
const NO_LINKS: &str = "TEAMSTER_LEASE_TEST_NO_LINKS";

/// Kills this process by SIGKILL, which cannot be caught.
pub(crate) fn die() -> ! {
    let _ = kill(Pid::this(), Signal::SIGKILL);
    loop {
        std::thread::park();
    }
}

/// Creates a disk on which the process dies before its `at`th operation, and reports that operation.
pub(crate) fn deadly_disk(at: usize, links: bool) -> Disk {
    let count = AtomicUsize::new(0);
    Disk::with_hook(move |step, moment| {
        if at != 0 && count.fetch_add(1, Ordering::Relaxed) + 1 == at {
            say(&format!("died {} {moment:?}", step.name()));
            die();
        }
        if step == Step::LinkOriginal && !links {
            return Err(io::ErrorKind::Unsupported.into());
        }
        Ok(())
    })
}

/// Prints a line for the parent process. The test harness prints other lines.
fn say(line: &str) {
    let mut out = io::stdout().lock();
    let _ = writeln!(out, "\n@{line}");
    let _ = out.flush();
}

/// Runs the other process. Does nothing in the test program itself.
#[test]
fn agent_process() {
    let Ok(at) = env::var(MARK) else {
        return;
    };
    let disk = deadly_disk(at.parse().unwrap(), env::var(NO_LINKS).is_err());
    let mut leases: Vec<(String, Lease)> = Vec::new();
    for line in io::stdin().lines() {
        let order: Value = serde_json::from_str(&line.unwrap()).unwrap();
        let text = |key: &str| order[key].as_str().unwrap_or_default();
        let file = Path::new(text("file"));
        let done = match text("do") {
            "acquire" => {
                let format = match text("format") {
                    "toml" => ConfigFormat::Toml,
                    _ => ConfigFormat::Json,
                };
                let name = text("name");
                Lease::acquire_on(&disk, &edit_of(file, format, &[name]))
                    .map(|lease| leases.push((name.to_owned(), lease)))
                    .map_err(|error| error.to_string())
                    .map(|()| "acquired".to_owned())
            }
            "release" => {
                let at = leases.iter().position(|(name, _)| name == text("name"));
                let (_, lease) = leases.remove(at.unwrap());
                lease
                    .release()
                    .map(|released| format!("{released:?}"))
                    .map_err(|error| error.to_string())
            }
            "restore" => restore_on(&disk, file)
                .map(|released| format!("{released:?}"))
                .map_err(|error| error.to_string()),
            "user" => nix::unistd::setegid(nix::unistd::Gid::from_raw(65_534))
                .and_then(|()| nix::unistd::seteuid(nix::unistd::Uid::from_raw(65_534)))
                .map(|()| "changed".to_owned())
                .map_err(|error| error.to_string()),
            other => panic!("unknown order {other}"),
        };
        match done {
            Ok(what) => say(&format!("ok {what}")),
            Err(what) => say(&format!("error {what}")),
        }
    }
}

/// Handle to the other process.
pub(crate) struct Agent {
    child: Child,
    orders: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

/// Answer to a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Answer {
    Ok(String),
    Error(String),
    /// The process was killed at this operation.
    Died(String),
}

/// Returns the command that starts this program as the other process.
pub(crate) fn command(test: &str) -> Command {
    let mut command = Command::new(Arc::new(env::current_exe().unwrap()).as_path());
    command.args([test, "--exact", "--nocapture", "--test-threads=1"]);
    command.stdout(Stdio::piped()).stderr(Stdio::null());
    command
}

impl Agent {
    /// Starts a process that is killed before the operation with this number, or never for 0.
    pub(crate) fn start(at: usize, links: bool) -> Self {
        let mut command = command("lease::agent::agent_process");
        command.env(MARK, at.to_string()).stdin(Stdio::piped());
        if !links {
            command.env(NO_LINKS, "1");
        }
        Self::spawn(command)
    }

    /// Starts the process through another program, which gets this one's command line.
    pub(crate) fn start_by(program: &str, args: &[&str]) -> Self {
        let own = command("lease::agent::agent_process");
        let mut command = Command::new(program);
        command
            .args(args)
            .arg(own.get_program())
            .args(own.get_args());
        command.stdout(Stdio::piped()).stderr(Stdio::null());
        command.env(MARK, "0").stdin(Stdio::piped());
        Self::spawn(command)
    }

    fn spawn(mut command: Command) -> Self {
        let mut child = command.spawn().unwrap();
        let orders = child.stdin.take();
        let answers = BufReader::new(child.stdout.take().unwrap());
        Self {
            child,
            orders,
            answers,
        }
    }

    /// Sends a command and waits for the answer.
    pub(crate) fn order(&mut self, what: &str, file: &Path, toml: bool, name: &str) -> Answer {
        let format = if toml { "toml" } else { "json" };
        let order = json!({"do": what, "file": file, "format": format, "name": name});
        if let Some(orders) = &mut self.orders {
            // If the process is dead, its answers show that.
            let _ = writeln!(orders, "{order}");
        }
        match self.answer() {
            Some(Answer::Died(step)) => {
                let status = self.child.wait().unwrap();
                assert_eq!(status.signal(), Some(Signal::SIGKILL as i32), "{status}");
                Answer::Died(step)
            }
            Some(answer) => answer,
            None => panic!("no answer: {:?}", self.child.wait()),
        }
    }

    /// Returns the id of the process.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends a command as [`Self::order`] does, to a process that may not have started.
    pub(crate) fn try_order(&mut self, what: &str, file: &Path) -> Option<Answer> {
        let order = json!({"do": what, "file": file, "format": "json", "name": ""});
        let _ = writeln!(self.orders.as_mut()?, "{order}");
        self.answer()
    }

    fn answer(&mut self) -> Option<Answer> {
        let mut died = None;
        for line in (&mut self.answers).lines() {
            let line = line.unwrap();
            if let Some(what) = line.strip_prefix("@ok ") {
                return Some(Answer::Ok(what.to_owned()));
            }
            if let Some(what) = line.strip_prefix("@error ") {
                return Some(Answer::Error(what.to_owned()));
            }
            if let Some(what) = line.strip_prefix("@died ") {
                died = Some(Answer::Died(what.to_owned()));
            }
        }
        died
    }

    /// Kills the process.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Closes the stdin of the process and waits for its end.
    pub(crate) fn end(mut self) {
        self.orders = None;
        // The process must be able to write its last lines.
        for line in (&mut self.answers).lines() {
            line.unwrap();
        }
        assert!(self.child.wait().unwrap().success());
    }
}
