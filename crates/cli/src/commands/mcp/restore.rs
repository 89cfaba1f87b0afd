//! `teamster mcp restore`: restores configuration files that killed runs left changed.

use std::env;
use std::io::Write;

use anyhow::Context as _;
use teamster::mcp::lease::{self, Pending, Released};
use teamster_host::config_files;

use super::args::McpRestoreArgs;
use crate::{exit_code, words};

pub(super) fn main(args: &McpRestoreArgs) -> anyhow::Result<u8> {
    let all = args.files.is_empty();
    let files = if all {
        config_files(
            crate::global::providers(),
            &env::current_dir().context("the current directory cannot be used")?,
        )
    } else {
        args.files.clone()
    };
    let mut out = anstream::stdout();
    let (mut failed, mut to_undo, mut reported) = (false, false, 0);
    for file in &files {
        let done = lease::pending(file).and_then(|pending| match pending {
            None => Ok((!all).then(|| "nothing to undo".to_owned())),
            Some(pending) if args.dry_run => {
                to_undo |= pending.running == 0;
                Ok(Some(describe_pending(&pending)))
            }
            Some(pending) => {
                let released = lease::restore(file)?;
                Ok(Some(describe_released(released, &pending)))
            }
        });
        let text = match done {
            Ok(Some(text)) => text,
            Ok(None) => continue,
            Err(error) => {
                failed = true;
                crate::report::fail(&anyhow::anyhow!("{error}"));
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
