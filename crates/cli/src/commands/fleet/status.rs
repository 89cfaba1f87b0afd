//! `teamster fleet status`.

use std::io::{self, Write};

use anstyle::Style;
use teamster_fleet::PresentWorker;

use super::args::FleetStatusArgs;
use crate::fleet::wait;
use crate::report::note;
use crate::table::Table;
use crate::{exit_code, words};

/// Prints the machines of the fleet, and returns the exit code.
pub(super) fn main(args: &FleetStatusArgs) -> anyhow::Result<u8> {
    let fleet = super::fleet()?;
    let workers = wait(fleet.workers())?;
    if args.json {
        return exit_code::of_json(&workers);
    }
    if workers.is_empty() {
        note("no worker is there: start `teamster worker` on a machine");
        return Ok(exit_code::SUCCESS);
    }
    exit_code::of_printed(print(&workers, &mut anstream::stdout()))
}

fn print(workers: &[PresentWorker], out: &mut impl Write) -> io::Result<()> {
    let mut table = Table::new(["WORKER", "POOLS", "RUNS", "AGENTS", "VERSION", ""]);
    for worker in workers {
        let ready = worker.agents.iter().filter(|agent| agent.ready);
        let ready: Vec<_> = ready.map(|agent| words::one_line(&agent.id)).collect();
        let cells = [
            words::one_line(&worker.worker),
            words::one_line(&worker.pools.join(", ")),
            format!("{} of {}", worker.running, worker.slots),
            ready.join(", "),
            words::one_line(&worker.version),
            if worker.drains { "drains" } else { "" }.to_owned(),
        ];
        table.row(cells.map(|cell| (cell, Style::new())));
    }
    table.write(out)
}
