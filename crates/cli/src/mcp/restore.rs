//! `teamster mcp restore`: restores configuration files that killed runs left changed.

use std::env;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use serde::Serialize;
use teamster::ExecuteParams;
use teamster::mcp::lease::{self, LeaseError, Pending, Released};
use teamster::process::leasable_files;

use crate::args::McpRestoreArgs;
use crate::{exit_code, words};

/// A configuration file that killed runs have left changed.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ChangedFile {
    /// The path by which the CLI finds the file, which may be a symbolic link.
    pub(crate) file: PathBuf,
    /// The servers that the file may contain.
    pub(crate) servers: Vec<String>,
}

/// Returns the changed files among those that runs in this directory write their servers to.
pub(crate) fn changed_files(directory: &Path) -> Vec<ChangedFile> {
    let mut changed = Vec::new();
    let mut seen = Vec::new();
    for file in config_files(directory) {
        let Ok(Some(pending)) = lease::pending(&file) else {
            continue;
        };
        if pending.running == 0 && !seen.contains(&pending.file) {
            seen.push(pending.file);
            changed.push(ChangedFile {
                file,
                servers: pending.servers,
            });
        }
    }
    changed
}

/// Restores the files that [`changed_files`] returns, without output.
pub(crate) fn restore_quietly(directory: &Path) {
    for changed in changed_files(directory) {
        // `teamster mcp restore` shows errors.
        let _ = lease::restore(&changed.file);
    }
}

pub(super) fn main(args: &McpRestoreArgs) -> anyhow::Result<u8> {
    let all = args.files.is_empty();
    let files = if all {
        config_files(&env::current_dir().context("the current directory cannot be used")?)
    } else {
        args.files.clone()
    };
    let mut out = anstream::stdout();
    let (mut failed, mut to_undo, mut reported) = (false, false, 0);
    for file in &files {
        let text = match lease::pending(file) {
            Ok(None) if all => continue,
            Ok(None) => "nothing to undo".to_owned(),
            Ok(Some(pending)) if args.dry_run => {
                to_undo |= pending.running == 0;
                describe_pending(&pending)
            }
            Ok(Some(pending)) => match lease::restore(file) {
                Ok(released) => describe_released(released, &pending),
                Err(error) => {
                    failed = true;
                    report_failure(&error);
                    continue;
                }
            },
            Err(error) => {
                failed = true;
                report_failure(&error);
                continue;
            }
        };
        reported += 1;
        if let Err(error) = writeln!(out, "{}: {text}", file.display()) {
            return exit_code::of_printed(Err(error));
        }
    }
    if all && !args.dry_run {
        for folder in teamster::process::sweep_private_files() {
            reported += 1;
            let _ = writeln!(
                out,
                "{}: removed private files of a killed run",
                folder.display()
            );
        }
    }
    if all && !failed && reported == 0 {
        let _ = writeln!(out, "Nothing to undo: no file has servers of a killed run.");
    }
    Ok(if failed {
        exit_code::AGENT_ERROR
    } else if to_undo {
        exit_code::INCOMPLETE
    } else {
        exit_code::SUCCESS
    })
}

fn report_failure(error: &LeaseError) {
    crate::fail(&anyhow::anyhow!("{error}"));
}

fn describe_pending(pending: &Pending) -> String {
    let servers = names(pending);
    match pending.running {
        0 => format!("left by a killed run: {servers}"),
        1 => format!("in use by a live run: {servers}"),
        n => format!("in use by {n} live runs: {servers}"),
    }
}

fn describe_released(released: Released, pending: &Pending) -> String {
    let servers = names(pending);
    match released {
        Released::Restored => "restored, as it was before the run".to_owned(),
        Released::Cleaned => {
            format!("removed {servers}; kept the other changes made meanwhile")
        }
        Released::Shared => "in use by a live run, which will restore it".to_owned(),
        _ => "nothing to undo".to_owned(),
    }
}

fn names(pending: &Pending) -> String {
    let names: Vec<_> = pending
        .servers
        .iter()
        .map(|it| words::one_line(it))
        .collect();
    names.join(", ")
}

/// Returns the files that a run in this directory may change, and the other configuration files of its CLI: which
/// one a run changes depends on which exist.
fn config_files(directory: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut add = |file: PathBuf| {
        if !files.contains(&file) {
            files.push(file);
        }
    };
    let mut params = ExecuteParams::new("x");
    params.working_directory = Some(directory.to_owned());
    for provider in crate::providers().all() {
        let usual = provider.info().config_files.iter();
        usual
            .filter_map(|file| file.path(directory, &|name| env::var_os(name)))
            .for_each(&mut add);
        leasable_files(&*provider, &params)
            .into_iter()
            .for_each(&mut add);
    }
    files
}
