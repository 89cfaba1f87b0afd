//! What is done to the processes.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use teamster_testkit::proc::wait_until;
use teamster_testkit::stand_in::Chance;
use tokio::time::Instant;

use super::clock::Clock;
use super::cluster::Node;
use super::disk::Disk;
use super::processes::{Older, Part, Process, parts};
use super::proxy::Links;

/// Time after which a worker is absent: some faults take longer.
const LEASE: u64 = 35_000;

/// What is down or stopped until a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Target {
    Node(usize),
    Worker(usize),
    Submitter(usize),
    Disk,
}

/// The processes, and what was done to them.
pub(crate) struct Faults {
    pub(crate) chance: Chance,
    root: PathBuf,
    pub(crate) nodes: Vec<Node>,
    pub(crate) workers: Vec<Process>,
    submitters: Vec<Process>,
    pub(crate) links: Vec<Arc<Links>>,
    pub(crate) disk: Option<Disk>,
    pub(crate) clock: Option<Clock>,
    /// The older programs of the workers.
    pub(crate) older: Vec<Older>,
    back: Vec<(Instant, Target)>,
    pub(crate) counts: BTreeMap<&'static str, usize>,
}

impl Faults {
    pub(crate) fn new(
        seed: u64,
        root: PathBuf,
        nodes: Vec<Node>,
        workers: Vec<Process>,
        submitters: Vec<Process>,
    ) -> Self {
        Self {
            chance: Chance::of(seed, 0, 0),
            root,
            nodes,
            workers,
            submitters,
            links: Vec::new(),
            disk: None,
            clock: None,
            older: Vec::new(),
            back: Vec::new(),
            counts: BTreeMap::new(),
        }
    }

    /// Returns how many processes were killed.
    pub(crate) fn kills(&self) -> usize {
        let kills = self
            .counts
            .iter()
            .filter(|(what, _)| what.contains("killed"));
        kills.map(|(_, count)| count).sum()
    }

    pub(crate) fn count(&mut self, what: &'static str) {
        *self.counts.entry(what).or_default() += 1;
    }

    fn is_away(&self, target: Target) -> bool {
        self.back.iter().any(|(_, other)| *other == target)
    }

    fn any(&mut self, count: usize) -> usize {
        let last = count.saturating_sub(1) as u64;
        usize::try_from(self.chance.between([0, last])).unwrap_or(0)
    }

    fn away(&mut self, target: Target, times: &[u64]) {
        let chosen = self.any(times.len());
        let longest = times[chosen];
        let time = self.chance.between([longest / 2, longest]);
        self.back
            .push((Instant::now() + Duration::from_millis(time), target));
    }

    /// Brings back what was away for its time, and does one thing more.
    pub(crate) fn one(&mut self) {
        let now = Instant::now();
        let (over, back) = self.back.drain(..).partition(|(until, _)| *until <= now);
        self.back = back;
        for (_, target) in over {
            self.bring_back(target);
        }
        self.revive();
        match self.chance.between([0, 99]) {
            0..30 | 82..98 => self.worker(Signal::SIGKILL),
            30..33 => self.full_disk(),
            33..36 => self.jump(),
            36..40 => self.cut(),
            40..45 => self.worker(Signal::SIGSTOP),
            45..50 => self.upgrade(),
            50..60 => self.part(Part::Runner),
            60..65 => self.part(Part::Agent),
            65..75 => self.submitter(),
            75..82 => self.node(),
            _ => self.all_nodes(),
        }
    }

    fn bring_back(&mut self, target: Target) {
        match target {
            Target::Node(number) => {
                self.nodes[number].signal(Signal::SIGCONT);
                self.nodes[number].start();
            }
            Target::Worker(number) => {
                self.workers[number].signal(Signal::SIGCONT);
                self.workers[number].start();
            }
            Target::Submitter(number) => {
                self.submitters[number].signal(Signal::SIGCONT);
                self.submitters[number].start();
            }
            Target::Disk => {
                if let Some(disk) = &self.disk {
                    disk.empty();
                }
                // A server that has seen a full disk keeps out of its streams until it is started again.
                self.nodes[0].signal(Signal::SIGKILL);
                self.nodes[0].start();
            }
        }
    }

    /// Starts workers again that have killed themselves.
    pub(crate) fn revive(&mut self) {
        for number in 0..self.workers.len() {
            if !self.is_away(Target::Worker(number)) {
                self.workers[number].start();
            }
        }
    }

    fn worker(&mut self, signal: Signal) {
        let number = self.any(self.workers.len());
        let target = Target::Worker(number);
        if self.is_away(target) {
            return;
        }
        self.workers[number].signal(signal);
        if signal == Signal::SIGKILL {
            self.count("worker killed");
            self.away(target, &[0, 200, 200, 1000, 1000, LEASE]);
        } else {
            self.count("worker stopped");
            self.away(target, &[1000, 5000, LEASE]);
        }
    }

    /// Lets a worker end with its runs for a moment, and starts another process in its place.
    fn upgrade(&mut self) {
        let number = self.any(self.workers.len());
        let target = Target::Worker(number);
        if self.is_away(target) {
            return;
        }
        self.count("worker upgraded");
        self.workers[number].signal(Signal::SIGTERM);
        let ended = |worker: &mut Process| !worker.is_up();
        if !wait_until(Duration::from_millis(500), || {
            ended(&mut self.workers[number])
        }) {
            self.workers[number].signal(Signal::SIGKILL);
        }
        self.workers[number].start();
    }

    /// Replaces the older program of a worker.
    pub(crate) fn replace(&mut self, number: usize) {
        if self.older[number].lock().unwrap().take().is_some() {
            self.count("worker replaced by a newer version");
            self.workers[number].signal(Signal::SIGCONT);
            self.workers[number].signal(Signal::SIGTERM);
            let ended = |worker: &mut Process| !worker.is_up();
            if !wait_until(Duration::from_secs(3), || ended(&mut self.workers[number])) {
                self.workers[number].signal(Signal::SIGKILL);
            }
            self.workers[number].start();
        }
    }

    fn part(&mut self, wanted: Part) {
        let mut found = parts(&self.root);
        found.retain(|(part, _)| *part == wanted);
        if found.is_empty() {
            return;
        }
        let (_, pid) = found[self.any(found.len())];
        if kill(pid, Signal::SIGKILL).is_ok() {
            self.count(match wanted {
                Part::Runner => "runner killed",
                Part::Agent => "agent killed",
            });
        }
    }

    fn submitter(&mut self) {
        let number = self.any(self.submitters.len());
        let target = Target::Submitter(number);
        if !self.is_away(target) {
            self.submitters[number].signal(Signal::SIGKILL);
            self.count("submitter killed");
            self.away(target, &[0, 500, 2000]);
        }
    }

    fn cut(&mut self) {
        if !self.links.is_empty() {
            let number = self.any(self.links.len());
            self.links[number].cut();
            self.count("connections cut");
        }
    }

    /// Changes the time of the first worker by up to two hours.
    fn jump(&mut self) {
        let seconds = self.chance.between([0, 14_400]);
        if let Some(clock) = &self.clock {
            clock.jump(i64::try_from(seconds).unwrap_or(0) - 7_200);
            self.count("clock changed");
        }
    }

    fn full_disk(&mut self) {
        if let Some(disk) = &self.disk
            && !self.is_away(Target::Disk)
        {
            disk.fill();
            self.count("disk filled");
            self.away(Target::Disk, &[2000, 6000]);
        }
    }

    /// Two servers of three are needed: seldom one more is taken away.
    fn node(&mut self) {
        let number = self.any(self.nodes.len());
        let target = Target::Node(number);
        let is_one_away = (0..self.nodes.len()).any(|other| self.is_away(Target::Node(other)));
        if self.is_away(target) || is_one_away && self.chance.happens(0.7) {
            return;
        }
        if self.chance.happens(0.7) {
            self.nodes[number].signal(Signal::SIGKILL);
            self.count("server killed");
        } else {
            self.nodes[number].signal(Signal::SIGSTOP);
            self.count("server stopped");
        }
        self.away(target, &[500, 3000, 6000]);
    }

    fn all_nodes(&mut self) {
        for number in 0..self.nodes.len() {
            let target = Target::Node(number);
            if !self.is_away(target) {
                self.nodes[number].signal(Signal::SIGKILL);
                self.count("server killed, with the others");
                self.away(target, &[1000, 3000]);
            }
        }
    }

    /// Ends the faults: all is there, and nothing more is submitted.
    pub(crate) fn end(&mut self) {
        fs::write(self.root.join("deaths.over"), "").unwrap();
        for submitter in &mut self.submitters {
            submitter.signal(Signal::SIGKILL);
        }
        for (_, target) in std::mem::take(&mut self.back) {
            if !matches!(target, Target::Submitter(_)) {
                self.bring_back(target);
            }
        }
        for link in &self.links {
            link.end();
        }
        self.revive();
    }

    /// Lets the workers end.
    pub(crate) fn drain(&mut self) {
        for worker in &mut self.workers {
            worker.signal(Signal::SIGTERM);
        }
        let mut all_down = || self.workers.iter_mut().all(|worker| !worker.is_up());
        wait_until(Duration::from_secs(20), &mut all_down);
    }
}
