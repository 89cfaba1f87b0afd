//! `teamster runs diff`.

mod text;

use std::io::{self, IsTerminal};

use teamster_api::{DiffQuery, PATCH, ProblemCode};

use super::args::RunsDiffArgs;
use super::found::Found;
use crate::remote::Machine;
use crate::{exit_code, report};

pub(super) async fn main(args: &RunsDiffArgs, machine: &Machine) -> anyhow::Result<u8> {
    let found = Found::find(machine, &args.run).await?;
    let mut query = DiffQuery::default();
    query.paths.clone_from(&args.paths);
    // For a program, the patch has every byte.
    let wants_patch = !args.json
        && !args.stat
        && args.paths.is_empty()
        && found.has_ended
        && !io::stdout().is_terminal();
    query.stat = args.stat || wants_patch;
    let diff = match found.run.diff(query).await {
        Ok(diff) => diff,
        // Nothing is left of a run without changes, nor is anything missing.
        Err(error)
            if matches!(
                error.code,
                Some(ProblemCode::NoWorkspace | ProblemCode::RunNotFound)
            ) && (found.workspace.as_ref()).is_some_and(|it| it.files_changed == Some(0)) =>
        {
            return Ok(exit_code::SUCCESS);
        }
        Err(error) => return Err(found.explained(error)),
    };
    if wants_patch && let Some(mut patch) = found.read(PATCH).await? {
        return exit_code::of_printed(io::copy(&mut patch, &mut io::stdout()).map(drop));
    }
    if args.json {
        return exit_code::of_json_lines([&diff]);
    }
    let mut out = anstream::stdout();
    let printed = if args.stat {
        text::write_stat(&diff, &mut out)
    } else {
        text::write(&diff, &mut out)
    };
    if diff.truncated && !args.stat {
        let (id, teamster) = (found.run.id(), crate::global::typed());
        report::warn(&[format!(
            "the changes are too large to be shown in full: `{teamster} runs diff {id} > FILE` writes all of them, and -- \
             PATH selects files"
        )]);
    }
    exit_code::of_printed(printed)
}
