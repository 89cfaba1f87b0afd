//! Tests that sleep in real time, which are slow on every machine and fail on a slow one.

use super::{File, Problem, Tree};

/// Tests that may sleep, with the reason.
const ALLOWED: &[(&str, &str)] = &[
    ("crates/testkit/tests/engine.rs", "polls, with a limit"),
    (
        "crates/mock-model/tests/server/client.rs",
        "polls, with a limit",
    ),
    (
        "crates/testkit/tests/engine/watchdog.rs",
        "the host is away for longer than its limit",
    ),
    (
        "crates/testkit/tests/engine/session/soak.rs",
        "the clock is paused once the sessions are open",
    ),
    (
        "crates/mcp-config/tests/lease/interleaving.rs",
        "random pauses of processes that race",
    ),
    (
        "crates/loop/tests/supervisor/killed.rs",
        "kills at another moment each time",
    ),
    (
        "crates/loop/tests/supervisor/stopping.rs",
        "the pace of requests that race",
    ),
    (
        "crates/cli/tests/soak",
        "the pace of processes that run for minutes",
    ),
    (
        "crates/fleet/tests/it/chaos",
        "the pace of faults and of processes that run for minutes",
    ),
    (
        "crates/fleet/tests/it/simulate.rs",
        "polls of processes that run for minutes, and measures in between",
    ),
    (
        "crates/cli/src/dialog/input.rs",
        "a source that is slower than its reader",
    ),
];

pub(super) fn check(tree: &Tree, problems: &mut Vec<Problem>) {
    for file in tree.with(".rs") {
        if ALLOWED.iter().any(|(path, _)| file.path.starts_with(path)) {
            continue;
        }
        let Some(first) = first_test_line(file) else {
            continue;
        };
        let paused = clock_is_paused(tree, file);
        for (number, line) in file.lines().filter(|(number, _)| *number >= first) {
            if sleeps(line, paused) {
                let message =
                    "a test sleeps: wait for what shall happen, with a limit, or pause the clock";
                problems.push(file.problem(number, message));
            }
        }
    }
}

/// Returns the line of a file where its tests begin, if it has any.
fn first_test_line(file: &File) -> Option<usize> {
    let path = &file.path;
    if path.contains("/tests/") || path.ends_with("/tests.rs") {
        return Some(1);
    }
    let mut lines = file.lines();
    let (number, _) = lines.find(|(_, line)| line.trim() == "mod tests {")?;
    Some(number)
}

/// Returns whether tokio's clock is paused in the tests of the file's folder.
fn clock_is_paused(tree: &Tree, file: &File) -> bool {
    let folder = file.path.rsplit_once('/').map_or("", |(folder, _)| folder);
    let beside = |other: &&File| other.path.starts_with(folder);
    let mut beside = tree.with(".rs").filter(beside);
    beside.any(|other| other.text.contains("start_paused = true"))
}

/// Returns whether the line calls a function `sleep`. Tokio's does not count while its clock is paused.
fn sleeps(line: &str, paused: bool) -> bool {
    let before = line.split("sleep(").next().unwrap_or_default();
    let is_name = |c: char| c.is_alphanumeric() || "_.\"".contains(c);
    if before.len() == line.len() || before.ends_with(is_name) || before.ends_with("fn ") {
        return false;
    }
    !paused || before.ends_with("thread::")
}
