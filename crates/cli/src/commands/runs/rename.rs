//! `teamster runs rename`.

use super::args::RunsRenameArgs;
use super::history::History;
use crate::exit_code;

pub(super) async fn main(args: &RunsRenameArgs, history: &History) -> anyhow::Result<u8> {
    history.rename(&args.run.id, args.title.clone()).await?;
    Ok(exit_code::SUCCESS)
}
