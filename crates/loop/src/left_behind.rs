//! Processes that the agent of an ended loop left running.

use std::io;
use std::thread::sleep;
use std::time::{Duration, Instant};

use teamster_process::leftovers;

/// Time limit of the search: a process may start others before it dies.
const LOOK_FOR: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_millis(20);

/// Kills the processes of runs with this id prefix whose owner has ended. Returns their number, or the first
/// error.
pub(crate) fn end(runs: &str) -> io::Result<usize> {
    let mut done = Ok(());
    let mut count = 0;
    for left in leftovers() {
        if left.run_id.starts_with(runs) {
            done = done.and(left.kill());
            count += 1;
        }
    }
    done.map(|()| count)
}

/// Kills the processes that the ended loop with this process id left running. Returns their number.
pub(crate) fn end_all_of(pid: u32) -> io::Result<usize> {
    let runs = format!("{pid}-");
    let begun = Instant::now();
    let mut all = 0;
    loop {
        let count = end(&runs)?;
        all += count;
        if count == 0 || begun.elapsed() > LOOK_FOR {
            return Ok(all);
        }
        sleep(PAUSE);
    }
}
