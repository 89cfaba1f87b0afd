//! Descriptions of runs and sessions as a server, or a fleet, takes them. `remote` is the option that names it.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use teamster_api::{RunSpec, SessionSpec, Trusted, Workspace};
use teamster_core::Image;
use teamster_host::params;

use super::absolute;
use crate::args::{OutputArgs, STORE_VARIABLE};
use crate::dialog::images;
use crate::hints;
use crate::spec::Local;

/// Wait for the longest limit that a server takes: a year.
const LONGEST_WAIT_MS: u64 = 365 * 24 * 3_600_000;
/// Size of the largest image file that is read, in bytes, as for runs of this machine. The services take less.
const LARGEST_IMAGE: u64 = 64 << 20;

/// Prepares a run for a server. Returns the file for its last message, which this program writes. Every error is a
/// usage error.
pub(crate) fn prepare_run(
    spec: &mut RunSpec,
    local: &Local,
    remote: &str,
) -> anyhow::Result<Option<PathBuf>> {
    let output_file = spec.trusted.output_file.take();
    let images = std::mem::take(&mut spec.trusted.images);
    check(&mut spec.trusted, local, remote)?;
    for file in images {
        spec.images.push(read_image(&file)?);
    }
    spec.working_directory = directory(spec.working_directory.as_deref(), remote)?;
    workspace(spec.workspace.as_mut(), remote)?;
    spec.ask_timeout_ms = if local.detach {
        spec.ask_timeout_ms.map(|ms| ms.min(LONGEST_WAIT_MS))
    } else {
        // An attached run never waits for answers.
        Some(0)
    };
    Ok(output_file)
}

/// Prepares a session for a server. Every error is a usage error.
pub(crate) fn prepare_session(
    spec: &mut SessionSpec,
    local: &Local,
    remote: &str,
) -> anyhow::Result<()> {
    check(&mut spec.trusted, local, remote)?;
    spec.working_directory = directory(spec.working_directory.as_deref(), remote)?;
    workspace(spec.workspace.as_mut(), remote)?;
    spec.ask_timeout_ms = spec.ask_timeout_ms.map(|ms| ms.min(LONGEST_WAIT_MS));
    Ok(())
}

/// Reads an image of this machine.
pub(crate) fn read_image(file: &Path) -> anyhow::Result<Image> {
    // Its error names the option.
    params::image(file)?;
    images::read_file(file, LARGEST_IMAGE).context("--image")
}

/// Rejects what cannot be chosen over HTTP. What the server's owner may allow is left to the server.
fn check(trusted: &mut Trusted, local: &Local, remote: &str) -> anyhow::Result<()> {
    // The variable is about the store of this machine.
    if trusted.store == std::env::var(STORE_VARIABLE).ok() {
        trusted.store = None;
    }
    let Local {
        output:
            OutputArgs {
                json: _,
                native,
                quiet: _,
                verbose: _,
            },
        detach: _,
        lifecycle,
        run_id,
        no_history,
        upload: _,
    } = local;
    let of_terminal = [
        ("include_native", *native),
        ("lifecycle", *lifecycle),
        ("run_id", run_id.is_some()),
        ("no_history", *no_history),
    ];
    let of_terminal = of_terminal.iter().filter(|(_, set)| *set);
    let trusted = trusted.names().into_iter();
    let trusted = trusted.filter(|it| !Trusted::GRANTABLE.contains(it));
    let names = of_terminal.map(|(name, _)| *name).chain(trusted);
    if let Some(name) = names.into_iter().next() {
        let flag = hints::option(name).unwrap_or(name.into());
        bail!(
            "{flag} cannot be used with {remote}: omit it, or run the command on the other machine"
        );
    }
    Ok(())
}

fn workspace(workspace: Option<&mut Workspace>, remote: &str) -> anyhow::Result<()> {
    if let Some(workspace) = workspace
        && let Some(path) = directory(workspace.path().map(PathBuf::as_path), remote)?
    {
        workspace.set_path(path);
    }
    Ok(())
}

fn directory(directory: Option<&Path>, remote: &str) -> anyhow::Result<Option<PathBuf>> {
    let directory = directory.map(|cwd| absolute("--cwd", cwd, remote));
    directory.transpose()
}
