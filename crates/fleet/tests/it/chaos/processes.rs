//! Workers and submitters as processes, and what is found of their runners and agents.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use teamster_testkit::proc::write_program;
use teamster_testkit::run_service::claude_that;

use super::clock::Clock;

/// What the agent does with a prompt. Each start for a run, which the prompt names, is counted in a file that all machines
/// share. Some take so long that the beginning of their log is gone before they end.
const AGENT: &str = r#"run=${line#*run=}; run=${run%%.*}
      echo "$run" >> ROOT/count
      init
      n=0
      steps=$(($$ % 12))
      [ $(($$ % 7)) = 0 ] && steps=60
      while [ "$n" -lt "$steps" ]; do
        n=$((n + 1))
        text "step $n" "m$n"
        sleep 0.1
      done
      case $line in
        *"With files"*)
          yes "$run" | head -c 540000 > out.bin
          echo "$run" > did.txt
          git add -A && git -c user.name=a -c user.email=a@b commit -qm "$run" ;;
      esac
      say "did $run""#;

/// The folder of the repository of all runs with files.
pub(crate) const REPOSITORY: &str = "repository";

/// The older program of a worker, until it is replaced.
pub(crate) type Older = Arc<Mutex<Option<PathBuf>>>;

/// Opens a file to write at its end.
pub(crate) fn append_to(path: &Path) -> File {
    let file = File::options().append(true).create(true).open(path);
    file.unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// What is started again and again.
pub(crate) struct Process {
    pub(crate) folder: PathBuf,
    child: Option<Child>,
    make: Box<dyn FnMut() -> Command>,
}

impl Process {
    fn new(folder: PathBuf, make: impl FnMut() -> Command + 'static) -> Self {
        fs::create_dir_all(&folder).unwrap();
        let mut process = Self {
            folder,
            child: None,
            make: Box::new(make),
        };
        process.start();
        process
    }

    /// Starts the process, if it does not run.
    pub(crate) fn start(&mut self) {
        if !self.is_up() {
            let log = append_to(&self.folder.join("stderr"));
            let mut command = (self.make)();
            command.current_dir(&self.folder);
            command.stdin(Stdio::null()).stdout(Stdio::null());
            self.child = Some(command.stderr(log).spawn().unwrap());
        }
    }

    pub(crate) fn is_up(&mut self) -> bool {
        let child = self.child.as_mut();
        child.is_some_and(|child| child.try_wait().unwrap().is_none())
    }

    pub(crate) fn signal(&mut self, signal: Signal) {
        let Some(child) = &mut self.child else { return };
        let _ = kill(Pid::from_raw(child.id().cast_signed()), signal);
        if signal == Signal::SIGKILL {
            child.wait().unwrap();
            self.child = None;
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.signal(Signal::SIGKILL);
    }
}

/// A worker with a machine of its own. It kills itself before an effect with this probability. The older program is used
/// until it is replaced.
pub(crate) fn worker(
    root: &Path,
    number: usize,
    url: &str,
    seed: u64,
    dies: f64,
    clock: Option<Clock>,
    older: &Older,
) -> Process {
    let name = format!("w{number}");
    let folder = root.join(&name);
    fs::create_dir_all(&folder).unwrap();
    let agent = folder.join("claude");
    let does = AGENT.replace("ROOT", root.to_str().unwrap());
    write_program(&agent, claude_that(&does)).unwrap();
    let program = std::env::current_exe().unwrap();
    let program = program.ancestors().nth(2).unwrap().join("examples/worker");
    let repository = root.join(REPOSITORY);
    let older = older.clone();
    let (url, deaths, place) = (url.to_owned(), root.join("deaths"), folder.clone());
    let mut start = seed.wrapping_mul(1000).wrapping_add(number as u64);
    Process::new(folder, move || {
        start = start.wrapping_add(1_000_000);
        let older = older.lock().unwrap().clone();
        let mut command = Command::new(older.as_ref().unwrap_or(&program));
        command.args([&url, &name]).arg(&repository).env(
            "WORKER_DIES_BY_CHANCE",
            format!("{start} {dies} {}", deaths.display()),
        );
        super::super::contract::agent_variables(&mut command, &place);
        if let Some(clock) = &clock {
            command.envs(clock.variables());
        }
        command
    })
}

/// A process that submits runs of an owner, one after the other, and writes down those that were acknowledged.
pub(crate) fn submitter(root: &Path, owner: &str, url: &str, seed: u64, pause: u64) -> Process {
    let program = std::env::current_exe().unwrap();
    let (owner, url) = (owner.to_owned(), url.to_owned());
    let folder = root.join(&owner);
    Process::new(folder, move || {
        let mut command = Command::new(&program);
        command
            .args([
                "--exact",
                "chaos::submit::submits",
                "--ignored",
                "--nocapture",
            ])
            .env(super::submit::WHAT, format!("{url} {owner} {seed} {pause}"));
        command
    })
}

/// Returns the memory of a process in MiB; 0 where it cannot be known.
pub(crate) fn mebibytes(pid: u32) -> u64 {
    of_status(pid, "VmRSS:")
}

/// Returns the most memory that a process has had in MiB, where it can be known.
pub(crate) fn most_mebibytes(pid: u32) -> u64 {
    of_status(pid, "VmHWM:")
}

fn of_status(pid: u32, name: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    let kibibytes = line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok());
    kibibytes.map_or(0, |kibibytes: u64| kibibytes / 1024)
}

/// A process of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    Runner,
    Agent,
}

/// Returns the runners and agents of all machines, where that can be known: elsewhere, none are killed.
pub(crate) fn parts(root: &Path) -> Vec<(Part, Pid)> {
    let wanted = format!("XDG_STATE_HOME={}/", root.display());
    let mut parts = Vec::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Ok(pid) = entry.file_name().to_string_lossy().parse() else {
            continue;
        };
        let read = |name: &str| fs::read(entry.path().join(name)).unwrap_or_default();
        let environ = read("environ");
        if !environ
            .split(|byte| *byte == 0)
            .any(|variable| variable.starts_with(wanted.as_bytes()))
        {
            continue;
        }
        let command = read("cmdline");
        let args: Vec<_> = command.split(|byte| *byte == 0).collect();
        let program = String::from_utf8_lossy(args[0]).into_owned();
        let pid = Pid::from_raw(pid);
        if program.ends_with("worker") {
            // A worker has its address as first argument.
            if !args.get(1).is_some_and(|url| url.starts_with(b"nats://")) {
                parts.push((Part::Runner, pid));
            }
        } else if args.iter().any(|arg| arg.ends_with(b"/claude")) {
            parts.push((Part::Agent, pid));
        }
    }
    parts
}
