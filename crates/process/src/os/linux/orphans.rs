//! Processes of runs whose owner is dead.

use std::fs;

use super::{Entry, entry, pids, run_ids};
use crate::os::{Orphan, Orphans, Process};

/// Returns the processes of runs whose owner is dead, in this namespace.
pub(crate) fn orphans() -> Orphans {
    let namespace = |pid: &str| fs::read_link(format!("/proc/{pid}/ns/pid")).ok();
    let ours = namespace("self");
    let mut found = Orphans::default();
    let mut owners = Vec::new();
    for pid in pids() {
        let ids = run_ids(pid);
        if ids.is_empty() {
            continue;
        }
        owners.extend(ids.iter().filter_map(|id| owner(id)));
        let (dead, living): (Vec<String>, Vec<String>) = ids
            .into_iter()
            .partition(|id| owner(id).is_some_and(is_dead));
        found.dying.extend(
            living
                .into_iter()
                .filter(|id| owner(id).is_some_and(is_dying)),
        );
        if dead.is_empty() || namespace(&pid.to_string()) != ours {
            continue;
        }
        let Some(entry) = entry(pid).filter(|entry| !entry.zombie) else {
            continue;
        };
        let Ok(command) = fs::read(format!("/proc/{pid}/cmdline")) else {
            continue;
        };
        let command: Vec<_> = command
            .split(|b| *b == 0)
            .filter(|argument| !argument.is_empty())
            .map(String::from_utf8_lossy)
            .collect();
        found.orphans.push(Orphan {
            process: entry.process,
            command: command.join(" "),
            run_ids: dead,
        });
    }
    // An agent's own `teamster` would start others in place of those that are ended before it.
    found
        .orphans
        .sort_by_key(|orphan| !owners.contains(&orphan.process));
    found
}

/// Returns the owner in the id of a run. `None` if it did not know its own start time.
fn owner(run_id: &str) -> Option<Process> {
    let mut parts = run_id.split('-');
    let owner = Process {
        pid: parts.next()?.parse().ok()?,
        start_time: parts.next()?.parse().ok()?,
    };
    (owner.start_time != 0).then_some(owner)
}

fn is_dead(owner: Process) -> bool {
    running(owner).is_none()
}

/// Returns whether a process is exiting. The kernel may have closed its files, and so released its locks, already.
fn is_dying(owner: Process) -> bool {
    running(owner).is_some_and(|entry| entry.exiting)
}

fn running(owner: Process) -> Option<Entry> {
    entry(owner.pid).filter(|entry| entry.process == owner && !entry.zombie)
}
