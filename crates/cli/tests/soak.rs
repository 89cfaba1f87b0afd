//! `teamster loop` for a long time with agents that die, hang and leave processes behind, and is killed
//! itself again and again: no flag is lost, no wake, no session, and nothing is left at the end.
//!
//! Thirty ticks each here; `.ci/soak ticks` plays more and prints what it counted. The agents are a stand-in
//! (`teamster_testkit::stand_in`), all processes are real.
#![cfg(target_os = "linux")]
#![expect(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "helpers of tests, and their report"
)]

mod files;
mod logs;
mod readers;
mod sleeps;
mod truth;
mod usage;
mod world;

use std::thread::sleep;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use teamster_testkit::proc::wait_until;
use teamster_testkit::soak::Held;
use teamster_testkit::stand_in::witness::What;
use teamster_testkit::stand_in::{Act, Chance};

use truth::{Set, Truth};
use world::{AGENT_KILLED, LIMIT, World};

/// Sleeps that are longer than anything is waited for: every tick is a requested one.
const SET: Set = Set {
    hot: true,
    min_sleep: 120,
    idle_step: 60,
    max_sleep: 400,
    clear_min_gap_ms: 0,
};

/// The size at which the log is rotated, in bytes.
const LOG_MAX_BYTES: u64 = 64 * 1024;

/// How long a loop may take to run a tick or to see that it cannot.
const SOON: Duration = Duration::from_secs(1);

/// What several writers may add to the log before one of them sees its size, in bytes.
const LOG_SLACK: u64 = 16 * 1024;

#[test]
fn a_hot_agent() {
    soak(SET);
}

#[test]
fn a_hot_agent_whose_clears_are_held_back() {
    let set = Set {
        clear_min_gap_ms: 1000,
        ..SET
    };
    soak(set);
}

#[test]
fn a_cold_agent() {
    soak(Set { hot: false, ..SET });
}

/// A number from the environment.
fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

fn settings(set: Set) -> String {
    format!(
        "ADAPTER={}\nMIN_SLEEP={}\nIDLE_STEP={}\nMAX_SLEEP={}\nCLEAR_MIN_GAP={}\nTIMEOUT_SECS=2\n\
         LOG_MAX_BYTES={LOG_MAX_BYTES}\n",
        if set.hot { "hot" } else { "cold" },
        set.min_sleep,
        set.idle_step,
        set.max_sleep,
        set.clear_min_gap_ms / 1000,
    )
}

fn soak(set: Set) {
    let ticks = number("TEAMSTER_TEST_SOAK").unwrap_or(30);
    let seed = number("TEAMSTER_TEST_SOAK_SEED").unwrap_or(1);
    let begun = Instant::now();
    let world = World::new(&settings(set), |mut plan| {
        plan.turn_ms = [1, 60];
        plan.seed(seed)
            .chance(Act::DidWork, 0.4)
            .chance(Act::ClearSession, 0.2)
            .chance(Act::ResetSession, 0.06)
            .chance(Act::Tools, 0.2)
            .chance(Act::Status, 0.4)
            .chance(Act::Child, 0.15)
            .chance(Act::Die, 0.04)
            .chance(Act::DieAfter, 0.04)
            .chance(Act::DieAtStart, 0.04)
            .chance(Act::DieOnClear, 0.08)
            .chance(Act::Hang, 0.02)
            .chance(Act::Late, 0.01)
            .chance(Act::Deaf, 0.01)
    });
    let mut soak = Soak {
        world,
        truth: Truth::new(set),
        shown: 0,
        chance: Chance::of(seed, 100, 0),
        first_use: None,
    };
    soak.begin();
    while soak.world.ticks() < usize::try_from(ticks).unwrap() {
        soak.act();
        soak.check();
    }
    let last = soak.world.uses();
    soak.end();
    eprintln!(
        "{set:?}, seed {seed}: {} s; the loop at its first rest: {}; at its last: {last}",
        begun.elapsed().as_secs(),
        soak.first_use
            .map_or_else(|| "-".to_owned(), |held| held.to_string()),
    );
    for (what, count) in &soak.truth.counts {
        eprintln!("  {count:>6} {what}");
    }
    if let Some(first) = soak.first_use {
        assert!(
            last.descriptors <= first.descriptors + 8,
            "{first}; then {last}"
        );
    }
}

struct Soak {
    world: World,
    truth: Truth,
    /// How much of what was seen was passed to the truth.
    shown: usize,
    chance: Chance,
    /// What the loop used when it rested for the first time.
    first_use: Option<Held>,
}

impl Soak {
    fn percent(&mut self, percent: u32) -> bool {
        self.chance.happens(f64::from(percent) / 100.0)
    }

    fn pause(&mut self, most_ms: u64) {
        sleep(Duration::from_millis(self.chance.between([0, most_ms])));
    }

    /// Waits until the loop rests after a tick, and looks whether all was right until then.
    fn rest(&mut self) {
        let rest = self.world.rest();
        self.show_new();
        self.truth.rest(rest.seconds, &rest.reason);
        let uses = self.world.uses();
        self.first_use.get_or_insert(uses);
    }

    fn show_new(&mut self) {
        self.world.look();
        for seen in &self.world.seen[self.shown..] {
            self.truth.see(seen);
        }
        self.shown = self.world.seen.len();
    }

    fn check(&mut self) {
        if !self.truth.wrong.is_empty() {
            let wrong = self.truth.wrong.join("\n");
            panic!("{wrong}\n{}", self.world.tail());
        }
    }

    /// While the loop rests: something happens, and then there is a tick.
    fn act(&mut self) {
        if self.percent(8) {
            let flags = ["did-work", "clear-session", "reset-session"];
            let flag = flags[usize::try_from(self.chance.between([0, 2])).unwrap()];
            self.world.touch(flag);
        }
        if self.percent(4) {
            // It is not looked at before the next tick.
            self.world.kill_agent();
        }
        if self.percent(4) {
            return self.another_loop(true);
        }
        if self.percent(2) {
            return self.another_loop(false);
        }
        self.truth.count("wakes");
        let woken = now_ms();
        self.world.wake();
        if self.percent(10) {
            // The tick that is being played, or the rest that has just begun, is followed by another tick.
            self.tick_since("a tick after a wake", woken);
            self.pause(60);
            let woken = now_ms();
            self.truth.count("wakes in a tick");
            self.world.wake();
            self.tick_since("a tick after a wake in a tick", woken);
            return self.rest();
        }
        let kills = self.chance.between([0, 99]);
        if kills < 16 {
            self.pause(150);
        }
        match kills {
            0..8 => {
                self.world.kill_agent();
                let has_tick = wait_until(SOON, || has_tick_since(&mut self.world, woken));
                if !has_tick && self.world.rests_after_a_failure() {
                    // What was on its way to the agent came no more.
                    return self.rest();
                }
            }
            8..16 => return self.another_loop(true),
            _ => {}
        }
        self.tick_since("a tick after a wake", woken);
        self.rest();
    }

    /// Waits for a tick, or for an attempt at one, that began since then. The loop has then reported that it
    /// rests no more.
    fn tick_since(&mut self, what: &str, since: u64) {
        self.world.until(what, |world| has_tick_since(world, since));
    }

    /// Ends the loop, or kills it, and starts another. The first tick comes by itself.
    fn another_loop(&mut self, kills: bool) {
        if kills {
            self.world.kill_loop();
        } else {
            let status = self.world.end();
            assert_eq!(status.code(), Some(0), "{}", self.world.tail());
        }
        // Sometimes at once, as a supervisor may.
        if !kills || self.percent(50) {
            self.nothing_is_left();
        }
        self.begin();
    }

    fn begin(&mut self) {
        let started = now_ms();
        self.world.start();
        self.tick_since("the first tick", started);
        self.rest();
    }

    /// No agent and nothing that it started is left. What ends them looks on for a while.
    fn nothing_is_left(&mut self) {
        let mut left = Vec::new();
        let gone = wait_until(LIMIT, || {
            left = self.world.processes();
            left.retain(|process| !process.contains("--teamster-guard"));
            left.is_empty()
        });
        assert!(gone, "left: {left:#?}\n{}", self.world.tail());
    }

    /// Ends everything, and looks at what is there then.
    fn end(&mut self) {
        let status = self.world.end();
        assert_eq!(status.code(), Some(0), "{}", self.world.tail());
        self.nothing_is_left();
        self.show_new();
        usage::check(&self.world, &mut self.truth);
        logs::check(&self.world, &mut self.truth);
        self.check();
        let read = self.world.readers.end();
        assert!(read.wrong.is_empty(), "{:#?}", read.wrong);
        for name in ["sleep.json", "session.json"] {
            assert!(read.files.contains_key(name), "{:?}", read.files);
        }
        assert!(
            read.log_bytes <= LOG_MAX_BYTES + LOG_SLACK,
            "{} bytes",
            read.log_bytes
        );
        eprintln!(
            "read: {:?}, log at most {} bytes",
            read.files, read.log_bytes
        );
        let output = std::fs::read_to_string(self.world.path("output")).unwrap();
        assert!(!output.contains("panicked"), "{output}");
    }
}

/// Whether a tick, or an attempt at one, began since then.
fn has_tick_since(world: &mut World, since: u64) -> bool {
    world.look();
    let later = world
        .seen
        .iter()
        .rev()
        .take_while(|seen| seen.at_ms >= since);
    let mut broken_off = false;
    for seen in later {
        match &seen.what {
            What::Message { turn: Some(_), .. } => return true,
            What::Will {
                act: Act::DieAtStart,
            } => broken_off = true,
            What::Outside { did } => broken_off |= did == AGENT_KILLED,
            What::Start { .. } if broken_off => return true,
            _ => {}
        }
    }
    false
}

/// Milliseconds since 1970.
fn now_ms() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    u64::try_from(now.as_millis()).unwrap()
}
