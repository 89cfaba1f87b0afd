//! Processes that the fake agent starts: the same program, with a script in its arguments.
//!
//! A bare `fork` is unsafe in a program with threads. The environment cannot carry the script, because the
//! script may require it to be empty.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::process::{Command, Stdio};

use nix::sys::signal::SigSet;
use nix::unistd::{self, Pid};

use super::run::{Runner, write_whole};
use super::step::{Spawn, SpawnKind, Step};
use super::{FakeAgent, Flow, Stop};

/// The first argument of a spawned process; the second is its [`Spawn`] as TOML.
pub(super) const CHILD_FLAG: &str = "--teamster-fake-child";

/// Starts a process and waits until it is ready.
pub(super) fn spawn(agent: &FakeAgent, spawn: &Spawn) -> Flow {
    let failed = |error| Stop::failed("cannot spawn", error);
    // The new process writes a byte to this pipe when it is ready. It has the writing end as its stdin, so it
    // inherits no other descriptor.
    let (mut ready, signal) = std::io::pipe().map_err(failed)?;
    let mut child = {
        let mut command = command(agent, spawn)?;
        command.stdin(signal);
        if spawn.clear_env {
            command.env_clear();
        }
        if !spawn.hold_pipes {
            command.stdout(Stdio::null()).stderr(Stdio::null());
        }
        command.spawn().map_err(failed)?
        // The command is dropped here, which closes this process's copy of the writing end.
    };
    ready.read_exact(&mut [0]).map_err(failed)?;
    if spawn.kind == SpawnKind::Daemon {
        // This child is the intermediate process: once it has ended, the daemon has another parent.
        child.wait().map_err(failed)?;
    }
    Ok(())
}

/// Runs a spawned process.
pub(super) fn live(agent: &FakeAgent, toml: &OsStr) -> Flow {
    let failed = |error| Stop::failed("cannot begin a spawned process", error);
    let mut spawn: Spawn = toml::from_str(&toml.to_string_lossy())
        .map_err(|error| Stop::failed("wrong spawn argument", error))?;
    // The parent blocks the signals that it handles, and children inherit the mask.
    SigSet::empty()
        .thread_set_mask()
        .map_err(|error| failed(error.into()))?;
    match spawn.kind {
        SpawnKind::Child => {}
        SpawnKind::Group => unistd::setpgid(Pid::from_raw(0), Pid::from_raw(0))
            .map_err(|error| failed(error.into()))?,
        SpawnKind::Setsid => {
            unistd::setsid().map_err(|error| failed(error.into()))?;
        }
        SpawnKind::Daemon => {
            unistd::setsid().map_err(|error| failed(error.into()))?;
            spawn.kind = SpawnKind::Child;
            // Not waited for: this process ends now, so that the new one loses its parent.
            command(agent, &spawn)?.spawn().map_err(failed)?;
            return Ok(());
        }
    }

    if spawn.step.is_empty() {
        spawn.step.push(Step::Forever {});
    }
    let runner = Runner::start(agent, &spawn.step)?;
    let is_set_up = |step: &Step| matches!(step, Step::Ignore { .. } | Step::OnSignal { .. });
    let set_up = spawn.step.iter().take_while(|step| is_set_up(step)).count();
    let (set_up, rest) = spawn.step.split_at(set_up);
    runner.run(set_up)?;
    if let Some(file) = &spawn.pid_file {
        write_whole(file, format!("{}\n", std::process::id()).as_bytes())?;
    }
    tell_ready().map_err(failed)?;
    Runner::play(&runner, rest)
}

/// Writes the byte that the parent waits for and replaces stdin by `/dev/null`.
fn tell_ready() -> std::io::Result<()> {
    unistd::write(std::io::stdin(), b".")?;
    unistd::dup2_stdin(File::open("/dev/null")?)?;
    Ok(())
}

/// Returns the command that starts this program as a spawned process.
fn command(agent: &FakeAgent, spawn: &Spawn) -> Result<Command, Stop> {
    let program = match &agent.program {
        Some(program) => program.clone(),
        None => std::env::current_exe()
            .map_err(|error| Stop::failed("cannot find this program", error))?,
    };
    let toml =
        toml::to_string(spawn).map_err(|error| Stop::failed("cannot pass the script on", error))?;
    let mut command = Command::new(program);
    command.args(&agent.prefix_args).args([CHILD_FLAG, &toml]);
    Ok(command)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_embedding_program_is_started_again_through_its_subcommand() {
        let agent = FakeAgent::new()
            .program("/opt/teamster")
            .prefix_args(["fake-agent"]);
        let command = command(&agent, &SpawnKind::Setsid.into()).unwrap();
        assert_eq!(command.get_program(), "/opt/teamster");
        assert_eq!(
            command.get_args().collect::<Vec<_>>(),
            [
                "fake-agent",
                CHILD_FLAG,
                "kind = \"setsid\"\nhold_pipes = true\n"
            ]
        );
    }
}
