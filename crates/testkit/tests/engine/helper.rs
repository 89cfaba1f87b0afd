//! Roles for tests that need a separate process, which is this test binary.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use teamster_process::sweep_private_files;

use crate::engine::{
    container, drain, mcp, private_files, private_home, recording, runtime, watchdog,
};

const ROLE: &str = "TEAMSTER_ENGINE_TEST_ROLE";
const PLACE: &str = "TEAMSTER_ENGINE_TEST_PLACE";

/// Returns this program in a role. `scratch` is a directory for its output.
pub(crate) fn role(name: &str, scratch: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", "engine::helper::a_role_is_played_when_asked"])
        .env(ROLE, name)
        .env(PLACE, scratch)
        .stdin(Stdio::null())
        .stdout(Stdio::null());
    command
}

/// A process that is killed when this is dropped.
pub(crate) struct Host(Child);

/// Starts a process to kill.
pub(crate) fn host(role: &mut Command) -> Host {
    Host(role.spawn().unwrap())
}

impl Drop for Host {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

#[test]
fn a_role_is_played_when_asked() {
    let Ok(role) = std::env::var(ROLE) else {
        return;
    };
    let scratch = PathBuf::from(std::env::var_os(PLACE).unwrap());
    let scratch = scratch.as_path();
    match role.as_str() {
        "slow consumer" => drain::be_slow(scratch),
        "soak" => runtime::soak(scratch),
        "host with a lease" => mcp::be_host(scratch),
        "run with private files" => private_files::be_short(),
        "sweep" => drop(sweep_private_files()),
        "host with a private home" => private_home::be_host(scratch),
        "host with private files" => private_files::be_host(scratch),
        "recorder on a full disk" => recording::be_limited(scratch),
        "host that is stopped" => watchdog::be_stopped(scratch),
        "host with a container" => container::be_host(scratch),
        "host" => runtime::be_host(scratch, false),
        "host that takes its agents along" => runtime::be_host(scratch, true),
        other => panic!("no such role: {other}"),
    }
}
