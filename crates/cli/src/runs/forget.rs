//! `teamster runs forget`.

use std::io::{self, Write};

use teamster::store::Store;

use crate::args::RunsForgetArgs;
use crate::{drive, exit_code, words};

pub(super) async fn main(args: &RunsForgetArgs, store: &Store) -> anyhow::Result<u8> {
    let age = u64::try_from(args.older_than.as_millis()).unwrap_or(u64::MAX);
    let forgotten = store
        .forget_runs(drive::clock().saturating_sub(age))
        .await?;
    let runs = words::plural(forgotten, "run");
    exit_code::of_printed(writeln!(io::stdout(), "{runs} forgotten"))
}
