//! A second process of this program whose only network is loopback.

use std::path::Path;
use std::process::{Command, ExitStatus};

use anyhow::Context;

/// Isolation of the CLIs from the network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Network {
    /// A network namespace with nothing but loopback.
    Namespace,
    /// Nothing: this system has no such namespaces, or does not let us make one.
    Open,
}

impl Network {
    pub(crate) fn describe(self) -> &'static str {
        match self {
            Self::Namespace => "in a network namespace that has loopback only",
            Self::Open => {
                "NOT isolated from the network (no namespace could be made): only the settings of \
                 the CLIs keep them on loopback"
            }
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Namespace => "namespace",
            Self::Open => "open",
        }
    }
}

/// Script that starts loopback and executes the given program.
const ENTER: &str = "ip link set lo up && exec \"$@\"";

/// Flags that create a namespace: as root, and as any other user.
const WAYS: [&[&str]; 2] = [&["-n"], &["-r", "-n"]];

/// Runs this program with its own and these further arguments in a namespace with loopback only. The environment
/// has no variables of the user, and `home` is the home folder.
pub(crate) fn run_alone(
    programs: &Path,
    home: &Path,
    further: &[&str],
) -> anyhow::Result<ExitStatus> {
    let program = std::env::current_exe().context("cannot find the program itself")?;
    let path = std::env::var("PATH").unwrap_or_default();
    let way = WAYS.iter().find(|way| works(way));
    let mut command = match way {
        Some(way) => {
            let mut command = Command::new("unshare");
            command
                .args(*way)
                .args(["sh", "-c", ENTER, "sh"])
                .arg(&program);
            command
        }
        None => Command::new(&program),
    };
    let network = way.map_or(Network::Open, |_| Network::Namespace);
    command
        .args(std::env::args_os().skip(1))
        .arg("--programs")
        .arg(programs)
        .args(["--network", network.name()])
        .args(further)
        .env_clear()
        .env("PATH", path)
        .env("HOME", home)
        .env("TMPDIR", home)
        .env("LANG", "C.UTF-8")
        .env("TERM", "dumb");
    command
        .status()
        .with_context(|| format!("cannot start {}", program.display()))
}

/// Returns whether a namespace can be created with these flags.
fn works(way: &[&str]) -> bool {
    Command::new("unshare")
        .args(way)
        .args(["sh", "-c", ENTER, "sh", "true"])
        .output()
        .is_ok_and(|output| output.status.success())
}
