//! `teamster runs again`.

use std::io::{self, Write};

use anyhow::bail;
use teamster_api::{RunHandle, Spec};
use uuid::Uuid;

use super::args::RunsAgainArgs;
use crate::exit_code::{self, refused};
use crate::remote::Machine;
use crate::{hints, report, words};

/// Starts a run with the spec that is kept of another one, and prints its id.
pub(super) async fn main(args: &RunsAgainArgs, machine: &Machine) -> anyhow::Result<u8> {
    let runs = machine.runs();
    let id = runs.resolve(&args.run.id).await?.run_id;
    let mut kept = runs.spec(&id).await?;
    if !kept.withheld.is_empty() {
        let id = words::one_line(&id);
        let names = words::one_line(&kept.withheld.join(", "));
        bail!(
            "not all that run {id} was started with is kept, so it cannot be started again by its id: give {names} to \
             `{} run`",
            crate::global::typed()
        );
    }
    if let Spec::Session(spec) = &mut kept.what {
        // It begins a conversation of its own.
        spec.continues = None;
    }
    let started = RunHandle::start(runs, Uuid::now_v7().to_string(), kept.what).await;
    let run = started.map_err(refused)?;
    let warnings: Vec<_> = run
        .accepted()
        .warnings
        .iter()
        .map(|it| hints::warning(it))
        .collect();
    report::warn(&warnings);
    exit_code::of_printed(writeln!(io::stdout(), "{}", run.id()))
}
