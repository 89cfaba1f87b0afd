//! Processes that the agent of an ended loop left running.

use std::io;
use std::thread::sleep;
use std::time::{Duration, Instant};

use teamster_process::leftovers;

/// Time limit of the search: a process may start others before it dies.
const SEARCH_LIMIT: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_millis(20);

/// Kills the processes of runs with this id prefix whose owner has ended. Returns their number, or the first
/// error.
pub(crate) fn end_runs(prefix: &str) -> io::Result<usize> {
    let mut done = Ok(());
    let mut count = 0;
    for left in leftovers() {
        if left.is_of(prefix) {
            done = done.and(left.kill());
            count += 1;
        }
    }
    done.map(|()| count)
}

/// Kills the processes that the ended loop with this process id left running. Returns their number.
pub(crate) fn end_runs_of_loop(pid: u32) -> io::Result<usize> {
    let prefix = format!("{pid}-");
    let begun = Instant::now();
    let mut all = 0;
    loop {
        let count = end_runs(&prefix)?;
        all += count;
        if count == 0 || begun.elapsed() > SEARCH_LIMIT {
            return Ok(all);
        }
        sleep(PAUSE);
    }
}
