//! State of the process: the host of runs, the providers, and this program itself.

use std::env;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use teamster::Providers;
use teamster::agent_loop::supervisor::{FILE_NAME, FILE_VARIABLE};
use teamster_host::Host;

/// The name of the fake agent's subcommand.
pub(crate) const FAKE_AGENT: &str = "fake-agent";

/// Host that carries out runs for the commands.
static HOST: OnceLock<Host> = OnceLock::new();

/// Returns what carries out runs for the commands.
pub(crate) fn host() -> &'static Host {
    HOST.get_or_init(|| Host::new(Providers::builtin()))
}

/// Sets what carries out runs for the commands, before any of them asks for it.
pub(crate) fn set_host(host: Host) {
    // Fails only if `main_with` is called twice.
    drop(HOST.set(host));
}

/// Set if commands are about the runs of a fleet.
static USES_FLEET: AtomicBool = AtomicBool::new(false);

/// Returns whether commands are about the runs of a fleet.
pub(crate) fn uses_fleet() -> bool {
    USES_FLEET.load(Ordering::Relaxed)
}

/// The program with the options that choose other machines, as a person types it.
static TYPED: OnceLock<String> = OnceLock::new();

/// Returns the program in a command about the same runs, as a person types it.
pub(crate) fn typed() -> &'static str {
    TYPED.get().map_or("teamster", String::as_str)
}

/// Notes the options with which a command is about the runs of other machines.
pub(crate) fn choose(options: &str) {
    TYPED.get_or_init(|| format!("teamster {options}"));
}

/// Notes that commands are about the runs of a fleet.
#[cfg(feature = "fleet")]
pub(crate) fn use_fleet() {
    USES_FLEET.store(true, Ordering::Relaxed);
    choose("--fleet");
}

pub(crate) fn program() -> io::Result<&'static Path> {
    host()
        .runner_program()
        .ok_or_else(|| io::ErrorKind::NotFound.into())
}

/// Returns the providers available to commands.
pub(crate) fn providers() -> &'static Providers {
    host().providers()
}

/// Returns the path of the supervisor's configuration, where no argument names it.
pub(crate) fn configuration() -> PathBuf {
    let file = env::var_os(FILE_VARIABLE).filter(|file| !file.is_empty());
    file.unwrap_or_else(|| FILE_NAME.into()).into()
}
