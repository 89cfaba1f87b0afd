//! `teamster runs apply`.

use anyhow::{anyhow, bail};
use teamster_api::{BUNDLE, PATCH};
use teamster_workspace::TakeError;

use super::args::RunsApplyArgs;
use super::found::Found;
use crate::remote::Machine;
use crate::{branch, exit_code, words};

/// The number of files that an error names.
const NAMED: usize = 20;

pub(super) async fn main(args: &RunsApplyArgs, machine: &Machine) -> anyhow::Result<u8> {
    let target = branch::target(&std::env::current_dir()?)?;
    let found = Found::find(machine, &args.run).await?;
    let patch = found.read(PATCH).await?;
    if let Some(patch) = &patch
        && target.lacks_large_files(patch.path())?
        && let Some(bundle) = found.read(BUNDLE).await?
        && let Err(error) = target.take_large_files(bundle.path())
    {
        // The patch fits without, and may only look as if it named some.
        crate::report::warn(&[format!("large files of Git LFS stay pointers: {error:#}")]);
    }
    let applied = match &patch {
        Some(patch) if args.index => target.apply_with_index(patch.path()),
        Some(patch) => target.apply(patch.path()),
        None => {
            found.check_workspace()?;
            Ok(0)
        }
    };
    let said = match applied {
        Ok(0) => "the run has changed nothing".to_owned(),
        Ok(files) => format!(
            "applied the changes to {}",
            words::plural(files as u64, "file")
        ),
        Err(TakeError::Conflicts(files)) => {
            let id = words::one_line(found.run.id());
            let teamster = crate::global::typed();
            let more = files.len().saturating_sub(NAMED);
            let mut listed: Vec<_> = files.into_iter().take(NAMED).collect();
            if more > 0 {
                listed.push(format!("and {more} more"));
            }
            bail!(
                "the changes of run {id} do not fit the files here, so nothing was changed:\n  {}\n`{teamster} runs fetch \
                 {id}` makes a branch of its commits, which can be merged; `{teamster} runs diff {id}` shows the changes",
                listed.join("\n  ")
            );
        }
        Err(TakeError::Busy(problem)) => bail!(problem),
        Err(TakeError::Git(error)) => return Err(error.context("nothing was changed")),
        Err(TakeError::NotRestored(error)) => return Err(error),
        Err(error) => return Err(anyhow!("nothing was changed: {error:?}")),
    };
    crate::report::note(&said);
    Ok(exit_code::SUCCESS)
}
