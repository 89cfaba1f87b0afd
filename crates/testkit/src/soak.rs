//! Very many repetitions of one thing, and what a process holds after a tenth of them and at the end.
//!
//! A test repeats it a few times. With `TEAMSTER_TEST_SOAK=N` in the environment, as `.ci/soak` sets it, it is alone in
//! its process, repeats it `N` times, and fails if the process has grown.
#![expect(clippy::print_stdout, reason = "the report of a test")]

use std::fmt;
use std::fs;
use std::io;
use std::time::{Duration, Instant};

/// Variable with the number of repetitions.
pub const COUNT: &str = "TEAMSTER_TEST_SOAK";

/// The growth of memory that is no leak, in KiB: of the allocator itself. Measured: 132 KiB in 4500 turns of a session.
const ROOM_KIB: u64 = 2000;

/// Descriptors and threads that are no leak: of pools for blocking work, which come and go.
const FEW: u64 = 4;

/// How many times longer a tenth of the repetitions may take at the end than at the beginning, and how much longer in
/// addition, on a busy machine.
const SLOWER: (u32, Duration) = (3, Duration::from_secs(1));

/// What a process holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Held {
    /// Resident memory, in KiB.
    pub memory_kib: u64,
    /// Open descriptors.
    pub descriptors: u64,
    /// Threads.
    pub threads: u64,
}

impl Held {
    /// Returns what this process holds. Fails if it is not there.
    pub fn of(pid: u32) -> io::Result<Self> {
        let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
        let figure = |name: &str| {
            let mut lines = status.lines();
            let rest = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
            let digits = rest.and_then(|rest| rest.split_whitespace().next());
            digits.and_then(|digits| digits.parse().ok())
        };
        Ok(Self {
            memory_kib: figure("VmRSS").unwrap_or_default(),
            descriptors: fs::read_dir(format!("/proc/{pid}/fd"))?.fold(0, |count, _| count + 1),
            threads: figure("Threads").unwrap_or_default(),
        })
    }
}

impl fmt::Display for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            memory_kib,
            descriptors,
            threads,
        } = self;
        write!(
            f,
            "{memory_kib} KiB, {descriptors} descriptors, {threads} threads"
        )
    }
}

/// A test that repeats one thing.
#[derive(Debug)]
pub struct Soak {
    what: &'static str,
    count: u64,
    /// The process is alone with this test.
    is_alone: bool,
    pid: u32,
    room_kib: u64,
    since: Instant,
    first: Duration,
    last: Duration,
    began: Option<Held>,
    ended: Option<Held>,
}

impl Soak {
    /// Creates one for a process that repeats `what` a `few` times, unless more are requested.
    ///
    /// # Panics
    ///
    /// If the number of repetitions in the environment is no number.
    pub fn new(what: &'static str, few: u64, pid: u32) -> Self {
        let asked = std::env::var(COUNT).ok();
        Self {
            what,
            is_alone: asked.is_some(),
            count: asked.map_or(few, |count| {
                count
                    .parse()
                    .unwrap_or_else(|_| panic!("{COUNT}={count} is no number"))
            }),
            pid,
            room_kib: ROOM_KIB,
            since: Instant::now(),
            first: Duration::ZERO,
            last: Duration::ZERO,
            began: None,
            ended: None,
        }
    }

    /// Sets the growth of memory that is no leak, in KiB. Default: 2000.
    #[must_use]
    pub fn room_kib(mut self, room_kib: u64) -> Self {
        self.room_kib = room_kib;
        self
    }

    /// Returns the number of repetitions.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Notes that this many are done: to be called for each.
    ///
    /// # Panics
    ///
    /// If the process is gone.
    pub fn done(&mut self, done: u64) {
        let tenth = (self.count / 10).max(1);
        if done == tenth {
            self.began = Some(self.held());
            self.since = Instant::now();
        }
        if done == 2 * tenth {
            self.first = self.since.elapsed();
        }
        if done + tenth == self.count {
            self.since = Instant::now();
        }
        if done == self.count {
            self.last = self.since.elapsed();
            self.ended = Some(self.held());
        }
    }

    /// Prints what the process held after a tenth and at the end.
    ///
    /// # Panics
    ///
    /// If fewer were done than there should be, or if the process is alone with this test and held more at the end than
    /// after a tenth, or has become slower.
    pub fn end(self) {
        let (Some(began), Some(ended)) = (self.began, self.ended) else {
            panic!("fewer {} than there should be", self.what);
        };
        println!(
            "{} {}: {began} after a tenth, {ended} at the end; the second tenth took {:?}, the last {:?}",
            self.count, self.what, self.first, self.last
        );
        if !self.is_alone {
            return;
        }
        assert!(
            ended.descriptors <= began.descriptors + FEW && ended.threads <= began.threads + FEW,
            "{} have left descriptors or threads",
            self.what
        );
        let growth = ended.memory_kib.saturating_sub(began.memory_kib);
        assert!(growth < self.room_kib, "{growth} KiB of memory more");
        assert!(
            self.last < self.first * SLOWER.0 + SLOWER.1,
            "{} have become slower",
            self.what
        );
    }

    fn held(&self) -> Held {
        Held::of(self.pid).unwrap_or_else(|error| panic!("process {}: {error}", self.pid))
    }
}
