//! `teamster fleet status`.

use std::io::{self, Write};

use teamster_api::{FleetStatus, FleetWorker};
use teamster_core::time::epoch_ms;

use super::args::FleetStatusArgs;
use crate::fleet::wait;
use crate::report::note;
use crate::table::Table;
use crate::zone::local_time;
use crate::{exit_code, words};

/// Prints the machines of the fleet, what waits and what holds agents back, and returns the exit code.
pub(super) fn main(args: &FleetStatusArgs) -> anyhow::Result<u8> {
    let fleet = super::fleet()?;
    let status = FleetStatus::from(wait(fleet.status())?);
    if args.json {
        return exit_code::of_json(&status);
    }
    if status.workers.is_empty() {
        note("no worker is there: start `teamster worker` on a machine");
    }
    exit_code::of_printed(print(&status, epoch_ms(), &mut anstream::stdout()))
}

fn print(status: &FleetStatus, now_ms: u64, out: &mut impl Write) -> io::Result<()> {
    if !status.workers.is_empty() {
        workers(status, out)?;
    }
    let whose = match &status.owner {
        Some(owner) => format!(" of {}", words::one_line(owner)),
        None => String::new(),
    };
    for queue in &status.queues {
        let location = match (&queue.pool, &queue.machine) {
            (_, Some(machine)) => format!("machine {}", words::one_line(machine)),
            (pool, None) => format!("pool {}", words::one_line(pool.as_deref().unwrap_or("?"))),
        };
        let since = queue.oldest_at.map(|at| {
            let waited = words::duration_ms(now_ms.saturating_sub(at));
            format!(", the oldest for {waited}")
        });
        writeln!(
            out,
            "queued{whose}: {} for {location}{}",
            words::plural(queue.waiting, "run"),
            since.unwrap_or_default(),
        )?;
    }
    for hold in &status.holds {
        let limit = hold.limit.as_deref().map(words::one_line);
        writeln!(
            out,
            "on hold: {} until {}{}",
            words::one_line(&hold.agent),
            local_time(hold.until, "%m-%d %H:%M"),
            limit
                .map(|limit| format!(", by its limit {limit}"))
                .unwrap_or_default(),
        )?;
    }
    Ok(())
}

fn workers(status: &FleetStatus, out: &mut impl Write) -> io::Result<()> {
    let mut table = Table::new(["WORKER", "POOLS", "RUNS", "AGENTS", "VERSION", ""]);
    for worker in &status.workers {
        let ready = worker.agents.iter().filter(|agent| agent.ready);
        let ready: Vec<_> = ready.map(|agent| words::one_line(&agent.id)).collect();
        let cells = [
            words::one_line(&worker.name),
            words::one_line(&worker.pools.join(", ")),
            format!("{} of {}", worker.running, worker.slots),
            ready.join(", "),
            words::one_line(&worker.version),
            remarks(worker),
        ];
        table.texts(cells);
    }
    table.write(out)
}

/// Returns what else is to be known of a worker.
fn remarks(worker: &FleetWorker) -> String {
    let clock = worker.clock_ms.map(|ahead| {
        let seconds = ahead.unsigned_abs() / 1000;
        let direction = if ahead > 0 { "ahead" } else { "behind" };
        format!("clock {seconds} s {direction}")
    });
    let drains = worker.draining.then(|| "drains".to_owned());
    let all: Vec<_> = drains.into_iter().chain(clock).collect();
    all.join(", ")
}

#[cfg(test)]
mod tests {
    use teamster_api::{FleetHold, FleetQueue};

    use super::*;

    #[test]
    fn a_person_sees_who_works_what_waits_and_what_is_held_back() {
        let mut worker = FleetWorker::default();
        worker.name = "mini".to_owned();
        worker.pools = vec!["default".to_owned(), "gpu".to_owned()];
        (worker.slots, worker.running, worker.draining) = (4, 1, true);
        worker.version = "1.2.3".to_owned();
        worker.clock_ms = Some(-3_600_000);
        let mut queue = FleetQueue::default();
        (queue.pool, queue.waiting) = (Some("gpu".to_owned()), 2);
        queue.oldest_at = Some(60_000);
        let mut hold = FleetHold::default();
        hold.agent = "claude".to_owned();
        hold.limit = Some("five_hour".to_owned());
        let mut status = FleetStatus::default();
        (status.workers, status.queues, status.holds) = (vec![worker], vec![queue], vec![hold]);
        status.owner = Some("ann".to_owned());
        let mut bytes = Vec::new();
        print(&status, 180_000, &mut bytes).unwrap();
        let shown = String::from_utf8(bytes).unwrap();
        for part in [
            "mini    default, gpu  1 of 4",
            "drains, clock 3600 s behind",
            "queued of ann: 2 runs for pool gpu, the oldest for 2m 00s\n",
            "on hold: claude until ",
            ", by its limit five_hour\n",
        ] {
            assert!(shown.contains(part), "{part}: {shown}");
        }
    }
}
