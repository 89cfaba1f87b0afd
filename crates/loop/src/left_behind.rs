//! What the agent of a loop that is gone has left running.

use std::io;
use std::thread::sleep;
use std::time::{Duration, Instant};

use teamster_process::leftovers;

/// How long a loop that begins looks for what is left: a process that is about to die may start others.
const LOOK_FOR: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_millis(20);

/// Ends the processes of runs whose ids begin so and whose owner is gone; how many there were. Of several
/// errors the first.
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

/// Ends what the loop with this process id has left, which is gone; how many processes there were.
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
