//! Roles for tests that need a separate process, which is this test binary.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use teamster_process::sweep_private_files;

use crate::engine::{drain, mcp, private_files, private_home, recording, runtime, watchdog};

const ROLE: &str = "TEAMSTER_ENGINE_TEST_ROLE";
const PLACE: &str = "TEAMSTER_ENGINE_TEST_PLACE";

/// Returns this program in a role. `place` is a directory for its output.
pub(crate) fn role(name: &str, place: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", "engine::helper::a_role_is_played_when_asked"])
        .env(ROLE, name)
        .env(PLACE, place)
        .stdin(Stdio::null())
        .stdout(Stdio::null());
    command
}

#[test]
fn a_role_is_played_when_asked() {
    let Ok(role) = std::env::var(ROLE) else {
        return;
    };
    let place = PathBuf::from(std::env::var_os(PLACE).unwrap());
    let place = place.as_path();
    match role.as_str() {
        "slow consumer" => drain::be_slow(place),
        "soak" => runtime::soak(place),
        "host with a lease" => mcp::be_host(place),
        "run with private files" => private_files::be_short(),
        "sweep" => drop(sweep_private_files()),
        "host with a private home" => private_home::be_host(place),
        "host with private files" => private_files::be_host(place),
        "recorder on a full disk" => recording::be_limited(place),
        "host that is stopped" => watchdog::be_stopped(place),
        "host" => runtime::be_host(place, false),
        "host that takes its agents along" => runtime::be_host(place, true),
        other => panic!("no such role: {other}"),
    }
}
