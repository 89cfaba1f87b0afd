//! `teamster runs fetch`.

use anyhow::{Context, bail};
use teamster_api::BUNDLE;

use super::args::RunsFetchArgs;
use super::found::Found;
use crate::remote::Machine;
use crate::{branch, exit_code, words};

pub(super) async fn main(args: &RunsFetchArgs, machine: &Machine) -> anyhow::Result<u8> {
    let target = branch::target(&std::env::current_dir()?)?;
    let found = Found::find(machine, &args.run).await?;
    let id = found.run.id();
    let shown = words::one_line(id);
    // A live run is an error of this.
    let bundle = found.read(BUNDLE).await?;
    found.check_workspace()?;
    let workspace = (found.workspace.as_ref())
        .filter(|it| it.head.is_some())
        .with_context(|| format!("run {shown} has no known commits"))?;
    let Some(bundle) = bundle else {
        bail!("run {shown} has changed nothing, so there is nothing to fetch");
    };
    branch::take(
        &target,
        id,
        workspace,
        bundle.path(),
        args.branch.as_deref(),
    )?;
    Ok(exit_code::SUCCESS)
}
