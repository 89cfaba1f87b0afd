//! Processes in `/proc`.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::str::FromStr;

use nix::fcntl::{FcntlArg, fcntl};
use nix::sys::signal::{self, Signal};
use nix::unistd::Pid;

use super::{Process, Relative};

mod environment;
mod orphans;
use environment::run_ids;
pub(crate) use orphans::orphans;

/// Capacity of a pipe in bytes: the maximum for an unprivileged process.
const PIPE_BYTES: i32 = 1 << 20;

/// Length of a clock tick of `/proc`, in milliseconds: `USER_HZ` is 100 on all platforms of Rust.
pub(crate) const TICK_MS: u64 = 10;

/// Flag of a task that is exiting, in `/proc/PID/stat` (`include/linux/sched.h`).
const PF_EXITING: u64 = 0x4;

/// An entry of the process table.
struct Entry {
    process: Process,
    parent: u32,
    group: u32,
    session: u32,
    zombie: bool,
    stopped: bool,
    /// Its main thread is exiting (`PF_EXITING`).
    exiting: bool,
}

/// Returns the start time of the process with this id; `None` if there is none.
pub(crate) fn start_time(pid: u32) -> Option<u64> {
    entry(pid).map(|entry| entry.process.start_time)
}

/// Returns the id of a process's parent.
pub(crate) fn parent(pid: u32) -> Option<u32> {
    Some(entry(pid)?.parent)
}

/// Returns whether a process still runs. A zombie does not: it has ended, but was not reaped.
pub(crate) fn is_running(process: Process) -> bool {
    entry(process.pid).is_some_and(|entry| entry.process == process && !entry.zombie)
}

/// Returns whether a process is stopped by a signal (`SIGSTOP`) or a debugger.
pub(crate) fn is_stopped(process: Process) -> bool {
    entry(process.pid).is_some_and(|entry| entry.process == process && entry.stopped)
}

/// Returns whether the process with this id is hidden (`hidepid`): it exists, but `/proc` does not show it.
pub(crate) fn is_hidden(pid: u32) -> bool {
    // In this order, so that a process that ends meanwhile does not count as hidden.
    entry(pid).is_none()
        && i32::try_from(pid)
            .is_ok_and(|pid| signal::kill(Pid::from_raw(pid), None) != Err(nix::Error::ESRCH))
}

/// Adds to `known` all processes of the group of `leader`, and all descendants of the leader, the group and the known
/// processes. `leader` is `None` if its id was reused.
pub(crate) fn add_tree(leader: Option<u32>, known: &mut Vec<Relative>) {
    let mut table: Vec<Entry> = pids().filter_map(entry).collect();
    let is_known =
        |known: &[Relative], process: Process| known.iter().any(|r| r.process == process);
    let mut tree: HashSet<u32> = leader.into_iter().collect();
    tree.extend(
        table
            .iter()
            .filter(|entry| is_known(known, entry.process))
            .map(|entry| entry.process.pid),
    );
    // Each round finds at least one more generation; the table is small.
    loop {
        let before = table.len();
        table.retain(|entry| {
            let in_group = Some(entry.group) == leader;
            if !in_group && !tree.contains(&entry.parent) && !tree.contains(&entry.process.pid) {
                return true;
            }
            tree.insert(entry.process.pid);
            if Some(entry.process.pid) != leader && !is_known(known, entry.process) {
                known.push(Relative {
                    process: entry.process,
                    in_group,
                });
            }
            false
        });
        if table.len() == before {
            return;
        }
    }
}

/// Adds to `known` the descendants of these roots and of the known processes, except this one. Reads only those if
/// the kernel lists the children of a process (`CONFIG_PROC_CHILDREN`).
pub(crate) fn add_children(roots: &[u32], known: &mut Vec<Process>) {
    let me = std::process::id();
    let mut todo: Vec<u32> = roots.to_vec();
    todo.extend(known.iter().map(|process| process.pid));
    while let Some(pid) = todo.pop() {
        for child in children(pid) {
            if child != me
                && let Some(entry) = entry(child)
                && !entry.zombie
                && !known.contains(&entry.process)
            {
                known.push(entry.process);
                todo.push(child);
            }
        }
    }
}

/// Returns the children of a process. Those of a thread that ends meanwhile may be missing.
fn children(pid: u32) -> Vec<u32> {
    let Ok(tasks) = fs::read_dir(format!("/proc/{pid}/task")) else {
        return Vec::new();
    };
    let mut children = Vec::new();
    for task in tasks.flatten() {
        match fs::read_to_string(task.path().join("children")) {
            Ok(list) => children.extend(
                list.split_whitespace()
                    .filter_map(|pid| pid.parse::<u32>().ok()),
            ),
            Err(error) if error.kind() == io::ErrorKind::NotFound && task.path().exists() => {
                let all = pids().filter_map(entry);
                return all
                    .filter(|entry| entry.parent == pid)
                    .map(|entry| entry.process.pid)
                    .collect();
            }
            // The thread has ended.
            Err(_) => {}
        }
    }
    children
}

/// Returns the processes of this run that are not in the session of `leader`: descendants of the leader, and
/// processes with the run's mark, which with `newer_than` are only searched among those started after that id, as in
/// [`marked`].
pub(crate) fn outside_session(leader: u32, run_id: &str, newer_than: Option<u32>) -> Vec<Process> {
    let Some(session) = entry(leader).map(|entry| entry.session) else {
        return Vec::new();
    };
    let mut known = Vec::new();
    add_children(&[leader], &mut known);
    for process in marked(run_id, newer_than) {
        if !known.contains(&process) {
            known.push(process);
        }
    }
    known.retain(|process| {
        entry(process.pid).is_some_and(|it| it.process == *process && it.session != session)
    });
    known
}

/// Sends a signal, if it is still the same process. It is not an error if it has ended.
pub(crate) fn signal_process(process: Process, signal: Signal) -> io::Result<()> {
    if start_time(process.pid) != Some(process.start_time) {
        return Ok(());
    }
    let Ok(pid) = i32::try_from(process.pid) else {
        return Ok(());
    };
    match signal::kill(Pid::from_raw(pid), signal) {
        Ok(()) | Err(nix::Error::ESRCH) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Ends a process with SIGKILL, if it is still the same one.
pub(crate) fn kill_process(process: Process) -> io::Result<()> {
    signal_process(process, Signal::SIGKILL)
}

/// Returns the processes with the mark of this run. With `newer_than`, only checks processes that were started after
/// the process with that id, which is cheap if there are none. That is only valid for a run so short that process ids
/// cannot have wrapped around.
pub(crate) fn marked(run_id: &str, newer_than: Option<u32>) -> Vec<Process> {
    /// Number of new processes beyond which reading the whole table is cheaper.
    const FEW: u32 = 512;
    let me = std::process::id();
    let find = |pids: &mut dyn Iterator<Item = u32>| {
        pids.filter(|&pid| pid != me && run_ids(pid).iter().any(|id| id == run_id))
            .filter_map(entry)
            .filter(|entry| !entry.zombie)
            .map(|entry| entry.process)
            .collect()
    };
    match (newer_than, last_pid()) {
        (Some(first), Some(last)) if first <= last && last - first <= FEW => {
            find(&mut (first + 1..=last))
        }
        _ => find(&mut pids()),
    }
}

/// See [`children`](crate::children()).
pub(crate) fn own_children() -> Vec<u32> {
    children(std::process::id())
}

/// Returns the processes with this soft limit of file locks, except the caller.
pub(crate) fn limited_to(file_locks: u64) -> Vec<Process> {
    let me = std::process::id();
    pids()
        .filter(|pid| *pid != me)
        .filter_map(|pid| {
            // The identity is read first, because the limits may be those of a later process with the same id.
            let entry = entry(pid).filter(|entry| !entry.zombie)?;
            let limits = fs::read_to_string(format!("/proc/{pid}/limits")).ok()?;
            let line = limits
                .lines()
                .find_map(|it| it.strip_prefix("Max file locks"))?;
            let soft: u64 = line.split_whitespace().next()?.parse().ok()?;
            (soft == file_locks).then_some(entry.process)
        })
        .collect()
}

/// Increases the capacity of a pipe, if the system allows it.
pub(crate) fn enlarge_pipe(pipe: impl AsFd) {
    // A small pipe works too, and the limit depends on the system.
    let _ = fcntl(pipe, FcntlArg::F_SETPIPE_SZ(PIPE_BYTES));
}

/// Makes the kernel send SIGKILL to the calling process when the thread that started it ends. To be called in the
/// child between `fork` and `exec`: it only makes system calls. `parent` is the id of the parent process.
pub(crate) fn die_with_parent(parent: u32) -> io::Result<()> {
    nix::sys::prctl::set_pdeathsig(Signal::SIGKILL)?;
    // The parent may have died before the call above took effect.
    if nix::unistd::getppid().as_raw().cast_unsigned() == parent {
        Ok(())
    } else {
        Err(nix::Error::ESRCH.into())
    }
}

/// Returns the time of boot, in milliseconds since the Unix epoch, accurate to a second.
pub(crate) fn boot_time_ms() -> Option<u64> {
    let stat = fs::read_to_string("/proc/stat").ok()?;
    let seconds = stat.lines().find_map(|line| line.strip_prefix("btime "))?;
    seconds.trim().parse::<u64>().ok()?.checked_mul(1000)
}

/// Returns the time since boot in milliseconds, on the clock of process start times.
pub(crate) fn since_boot_ms() -> u64 {
    use nix::time::{ClockId, clock_gettime};
    let Ok(time) = clock_gettime(ClockId::CLOCK_BOOTTIME) else {
        return 0;
    };
    let number = |value: i64| u64::try_from(value).unwrap_or_default();
    number(time.tv_sec()) * 1000 + number(time.tv_nsec()) / 1_000_000
}

/// Returns the current working directory of a process.
pub(crate) fn directory(pid: u32) -> Option<PathBuf> {
    fs::read_link(format!("/proc/{pid}/cwd")).ok()
}

/// See [`process_space`](crate::process_space()).
pub(crate) fn process_space() -> Option<String> {
    // A `/proc` of another namespace has different ids for the same processes.
    let itself = fs::read_link("/proc/self").ok()?;
    if itself.to_str()?.parse() != Ok(std::process::id()) {
        return None;
    }
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    let namespace = fs::read_link("/proc/self/ns/pid").ok()?;
    Some(format!("{} {}", boot.trim(), namespace.display()))
}

fn pids() -> impl Iterator<Item = u32> {
    fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
}

/// Returns the start time of the leader of a process's session, or of the process itself if the leader has ended.
pub(crate) fn session_start(process: Process) -> u64 {
    let leader = entry(process.pid).and_then(|it| entry(it.session));
    leader.map_or(process.start_time, |it| {
        it.process.start_time.min(process.start_time)
    })
}

fn entry(pid: u32) -> Option<Entry> {
    // The line has at most a few hundred bytes, and the needed fields are at its beginning.
    let mut buf = [0; 1024];
    let len = File::open(format!("/proc/{pid}/stat"))
        .and_then(|mut file| file.read(&mut buf))
        .ok()?;
    parse_stat(pid, &buf[..len])
}

/// Returns the processor time of the process with this id and of those of its children that have ended and were reaped, in
/// clock ticks; `None` if there is none.
pub(crate) fn processor_ticks(pid: u32) -> Option<u64> {
    let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
    fields(&stat)?.skip(11).take(4).map(number::<u64>).sum()
}

/// Returns the fields of `/proc/PID/stat` after the name: those from 3 on, as proc(5) counts them.
fn fields(stat: &[u8]) -> Option<impl Iterator<Item = &[u8]>> {
    // The name in parentheses may itself contain spaces and parentheses.
    let after_name = memchr::memrchr(b')', stat)?;
    Some(stat.get(after_name + 2..)?.split(|b| *b == b' '))
}

fn number<T: FromStr>(field: &[u8]) -> Option<T> {
    std::str::from_utf8(field.trim_ascii()).ok()?.parse().ok()
}

fn parse_stat(pid: u32, stat: &[u8]) -> Option<Entry> {
    let mut fields = fields(stat)?;
    let state = fields.next()?;
    let parent = number(fields.next()?)?;
    let group = number(fields.next()?)?;
    let session = number(fields.next()?)?;
    let flags: u64 = number(fields.nth(2)?)?;
    let threads: u64 = number(fields.nth(10)?)?;
    let start_time = number(fields.nth(1)?)?;
    Some(Entry {
        process: Process { pid, start_time },
        parent,
        group,
        session,
        // If the main thread ends before the others, the process is shown as a zombie but still runs.
        zombie: matches!(state, b"Z" | b"X" | b"x") && threads <= 1,
        stopped: matches!(state, b"T" | b"t"),
        exiting: flags & PF_EXITING != 0,
    })
}

/// Returns the process id that was assigned last in this namespace.
pub(crate) fn last_pid() -> Option<u32> {
    let mut buf = [0; 128];
    let len = File::open("/proc/loadavg")
        .and_then(|mut file| file.read(&mut buf))
        .ok()?;
    number(buf[..len].trim_ascii_end().rsplit(|b| *b == b' ').next()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_parentheses_and_spaces_is_no_obstacle() {
        let stat = b"7 (a) S (b c) R 3 5 6 0 -1 4194304 9 0 0 0 1 2 0 0 20 0 1 0 12345 1 2\n";
        let entry = parse_stat(7, stat).unwrap();
        assert_eq!(
            entry.process,
            Process {
                pid: 7,
                start_time: 12345
            }
        );
        assert_eq!((entry.parent, entry.group, entry.session), (3, 5, 6));
        assert!(!entry.zombie && !entry.stopped && !entry.exiting);
        assert!(parse_stat(7, b"7 (sh").is_none());
        let stat = b"7 (a) T 3 5 6 0 -1 4194308 9 0 0 0 1 2 0 0 20 0 1 0 12345 1 2\n";
        let entry = parse_stat(7, stat).unwrap();
        assert!(entry.stopped && entry.exiting);
        let zombie = |threads: u32| {
            let stat =
                format!("7 (sh) Z 3 5 6 0 -1 4194304 9 0 0 0 1 2 0 0 20 0 {threads} 0 12345 0 0\n");
            parse_stat(7, stat.as_bytes()).unwrap().zombie
        };
        assert!(zombie(1));
        assert!(!zombie(2), "its main thread alone has ended");
    }

    #[test]
    fn this_process_is_in_the_table() {
        let pid = std::process::id();
        let process = Process {
            pid,
            start_time: start_time(pid).unwrap(),
        };
        assert!(is_running(process));
        assert!(!is_running(Process {
            start_time: process.start_time + 1,
            ..process
        }));
        assert!(pids().any(|other| other == pid));
        assert!(last_pid().unwrap() > 0);
    }
}
