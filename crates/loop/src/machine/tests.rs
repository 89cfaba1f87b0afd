use proptest::prelude::*;

use super::*;

const PACE: Pace = Pace {
    min_sleep: 60,
    idle_step: 60,
    max_sleep: 200,
    clear_min_gap: 600,
};

fn id(text: &str) -> Option<Id> {
    (!text.is_empty()).then(|| Id::from(text))
}

/// The agent is there, and nothing else.
fn there(session: &str) -> Seen {
    Seen {
        alive: true,
        session: id(session),
        ..Seen::default()
    }
}

fn machine() -> Machine {
    Machine::new(PACE, true, None)
}

/// A machine whose agent was started and has played its first tick.
fn running() -> Machine {
    let mut machine = machine();
    assert_eq!(
        machine.next(&Seen::default()),
        Step::Start {
            resume: None,
            why: Start::First
        }
    );
    machine.started();
    assert_eq!(machine.next(&there("a")), Step::Tick(Prompt::Full));
    assert!(!machine.tick_ended(TickEnd::Completed, false, id("a")));
    machine
}

fn sleep_of(machine: &mut Machine, seen: &Seen) -> u64 {
    match machine.next(seen) {
        Step::Sleep(sleep) => sleep.seconds,
        other => panic!("{other:?}"),
    }
}

#[test]
fn sleep_grows_while_idle_up_to_its_limit_and_work_resets_it() {
    let mut machine = running();
    let seen = there("a");
    let mut seconds = vec![sleep_of(&mut machine, &seen)];
    for did_work in [false, false, false, true, false] {
        machine.rested();
        assert_eq!(machine.next(&seen), Step::Tick(Prompt::Light));
        assert_eq!(
            machine.tick_ended(TickEnd::Completed, did_work, id("a")),
            did_work
        );
        seconds.push(sleep_of(&mut machine, &seen));
    }
    assert_eq!(seconds, [120, 180, 200, 200, 60, 120]);
}

#[test]
fn a_wake_in_a_tick_is_not_lost_and_one_before_it_is_answered_by_it() {
    let mut machine = running();
    let woken = Seen {
        woken: true,
        ..there("a")
    };
    // In the tick that has just ended: no sleep.
    assert_eq!(machine.next(&woken), Step::Tick(Prompt::Light));
    machine.tick_ended(TickEnd::Completed, false, id("a"));
    // It was answered: this time there is one.
    assert_eq!(sleep_of(&mut machine, &there("a")), 180);
    // In the sleep.
    assert_eq!(machine.next(&woken), Step::Tick(Prompt::Light));
}

#[test]
fn a_wake_ends_the_wait_after_a_failure_once() {
    let mut machine = running();
    machine.tick_ended(TickEnd::Died, false, id("a"));
    assert_eq!(sleep_of(&mut machine, &Seen::default()), 5);
    let woken = Seen {
        woken: true,
        ..Seen::default()
    };
    assert!(matches!(machine.next(&woken), Step::Start { .. }));
    machine.start_failed();
    assert_eq!(sleep_of(&mut machine, &Seen::default()), 10);
}

#[test]
fn a_clear_comes_before_the_tick_and_the_next_one_is_held_back() {
    let mut machine = running();
    machine.rested();
    let mut seen = there("a");
    seen.clear = true;
    seen.now = Duration::from_secs(1000);
    assert_eq!(machine.next(&seen), Step::Clear);
    machine.cleared(seen.now);
    seen.clear = false;
    assert_eq!(machine.next(&seen), Step::Tick(Prompt::Full));
    machine.tick_ended(TickEnd::Completed, false, id("b"));
    machine.rested();
    // Sooner than the gap: it stays where it is, and the tick is played.
    seen.clear = true;
    seen.now = Duration::from_secs(1599);
    assert_eq!(machine.clear_held_back(seen.now), Some(1));
    assert_eq!(machine.next(&seen), Step::Tick(Prompt::Light));
    machine.tick_ended(TickEnd::Completed, false, id("b"));
    machine.rested();
    seen.now = Duration::from_secs(1600);
    assert_eq!(machine.next(&seen), Step::Clear);
}

#[test]
fn a_reset_begins_anew() {
    let mut machine = running();
    machine.rested();
    let seen = Seen {
        clear: true,
        reset: true,
        ..there("a")
    };
    assert_eq!(machine.next(&seen), Step::Reset);
    machine.reset();
    assert_eq!(
        machine.next(&Seen::default()),
        Step::Start {
            resume: None,
            why: Start::Reset
        }
    );
    machine.started();
    assert_eq!(
        machine.next(&Seen {
            alive: true,
            ..Seen::default()
        }),
        Step::Tick(Prompt::Full)
    );
}

#[test]
fn a_dead_agent_is_resumed_and_told_everything() {
    let mut machine = running();
    machine.rested();
    let dead = Seen {
        alive: false,
        ..there("a")
    };
    assert_eq!(
        machine.next(&dead),
        Step::Start {
            resume: id("a"),
            why: Start::Died
        }
    );
    machine.started();
    assert_eq!(machine.next(&there("a")), Step::Tick(Prompt::Full));
}

#[test]
fn a_session_that_fails_twice_in_a_row_is_given_up_and_delays_grow() {
    let mut machine = running();
    let mut resumed = Vec::new();
    let mut waits = Vec::new();
    for session in ["a", "a", "b", "b"] {
        assert!(!machine.tick_ended(TickEnd::Died, true, id(session)));
        waits.push(sleep_of(&mut machine, &Seen::default()));
        machine.rested();
        match machine.next(&Seen::default()) {
            Step::Start { resume, .. } => resumed.push(resume),
            other => panic!("{other:?}"),
        }
        machine.started();
        assert_eq!(machine.next(&there(session)), Step::Tick(Prompt::Full));
    }
    assert_eq!(resumed, [id("a"), None, id("b"), None]);
    assert_eq!(waits, [5, 10, 15, 20]);
    // One that goes well ends the row.
    machine.tick_ended(TickEnd::Completed, true, id("c"));
    assert_eq!(machine.failures(), 0);
    assert_eq!(sleep_of(&mut machine, &there("c")), 60);
}

#[test]
fn a_start_that_has_to_wait_is_no_failure() {
    let mut machine = running();
    machine.tick_ended(TickEnd::Died, false, id("a"));
    machine.rested();
    for _ in 0..3 {
        match machine.next(&Seen::default()) {
            Step::Start { resume, .. } => assert_eq!(resume, id("a")),
            other => panic!("{other:?}"),
        }
        machine.start_later(43);
        assert_eq!(sleep_of(&mut machine, &Seen::default()), 43);
        machine.rested();
    }
    assert_eq!(machine.failures(), 1);
}

#[test]
fn a_session_that_is_stuck_twice_is_given_up_too() {
    let mut machine = running();
    for resume in [id("a"), None] {
        machine.tick_ended(TickEnd::Stuck, false, id("a"));
        machine.rested();
        let dead = Seen {
            alive: false,
            ..there("a")
        };
        match machine.next(&dead) {
            Step::Start { resume: found, .. } => assert_eq!(found, resume),
            other => panic!("{other:?}"),
        }
        machine.started();
        machine.next(&there("a"));
    }
}

#[test]
fn a_session_that_cannot_go_on_is_left() {
    let mut machine = running();
    machine.tick_ended(TickEnd::Unusable, false, id("a"));
    machine.rested();
    assert_eq!(
        machine.next(&there("a")),
        Step::Start {
            resume: None,
            why: Start::Unusable
        }
    );
}

#[test]
fn a_tick_that_failed_did_not_tell_everything() {
    let mut machine = machine();
    machine.next(&Seen::default());
    machine.started();
    machine.next(&there("a"));
    machine.tick_ended(TickEnd::Failed, false, id("a"));
    machine.rested();
    assert_eq!(machine.next(&there("a")), Step::Tick(Prompt::Full));
    machine.tick_ended(TickEnd::Completed, false, id("a"));
    machine.rested();
    assert_eq!(machine.next(&there("a")), Step::Tick(Prompt::Light));
}

#[test]
fn without_a_context_every_tick_tells_everything() {
    let mut machine = Machine::new(PACE, false, None);
    machine.next(&Seen::default());
    machine.started();
    for _ in 0..3 {
        assert_eq!(machine.next(&there("a")), Step::Tick(Prompt::Full));
        machine.tick_ended(TickEnd::Completed, false, id("a"));
        machine.rested();
    }
}

/// What happens to a loop.
#[derive(Debug, Clone)]
enum Happens {
    Time(u64),
    Wake,
    Clear,
    Reset,
    DidWork,
    DiesWhileIdle,
}

fn happens() -> impl Strategy<Value = Happens> {
    prop_oneof![
        (1_u64..400).prop_map(Happens::Time),
        Just(Happens::Wake),
        Just(Happens::Clear),
        Just(Happens::Reset),
        Just(Happens::DidWork),
        Just(Happens::DiesWhileIdle),
    ]
}

fn ends() -> impl Strategy<Value = TickEnd> {
    prop_oneof![
        4 => Just(TickEnd::Completed),
        1 => Just(TickEnd::Failed),
        1 => Just(TickEnd::TimedOut),
        1 => Just(TickEnd::Stuck),
        2 => Just(TickEnd::Died),
        1 => Just(TickEnd::Unusable),
    ]
}

fn paces() -> impl Strategy<Value = Pace> {
    (0_u64..100, 0_u64..100, 0_u64..500, 0_u64..1000).prop_map(
        |(min_sleep, idle_step, max_sleep, clear_min_gap)| Pace {
            min_sleep,
            idle_step,
            max_sleep,
            clear_min_gap,
        },
    )
}

/// A world around a machine, which does what it says and keeps its own account.
struct World {
    machine: Machine,
    pace: Pace,
    now: u64,
    session: Option<Id>,
    sessions: u32,
    alive: bool,
    clear: bool,
    reset: bool,
    did_work: bool,
    wake: bool,
    /// A wake that no tick has answered yet.
    unanswered: bool,
    /// The context of the agent: whether it was told everything.
    told: bool,
    ticks: u32,
}

impl World {
    fn new(pace: Pace) -> Self {
        Self {
            machine: Machine::new(pace, true, None),
            pace,
            now: 0,
            session: None,
            sessions: 0,
            alive: false,
            clear: false,
            reset: false,
            did_work: false,
            wake: false,
            unanswered: false,
            told: false,
            ticks: 0,
        }
    }

    fn happen(&mut self, what: &Happens) {
        match what {
            Happens::Time(seconds) => self.now += seconds,
            Happens::Wake => {
                self.wake = true;
                self.unanswered = true;
            }
            Happens::Clear => self.clear = true,
            Happens::Reset => self.reset = true,
            Happens::DidWork => self.did_work = true,
            Happens::DiesWhileIdle => self.alive = false,
        }
    }

    fn step(&mut self, end: TickEnd, during: &[Happens]) -> Result<(), TestCaseError> {
        let seen = Seen {
            now: Duration::from_secs(self.now),
            woken: std::mem::take(&mut self.wake),
            alive: self.alive,
            session: self.session.clone(),
            clear: self.clear,
            reset: self.reset,
            stop: false,
        };
        let step = self.machine.next(&seen);
        prop_assert_eq!(
            &step,
            &self.machine.next(&Seen {
                woken: false,
                ..seen.clone()
            }),
            "asked again it says the same"
        );
        match step {
            Step::Start { resume, .. } => {
                prop_assert!(!self.alive || self.session.is_none() || resume.is_none());
                if resume.is_none() {
                    self.told = false;
                }
                self.session = resume;
                self.alive = true;
                // A new process is told everything, also where a session goes on.
                self.told = false;
                self.machine.started();
            }
            Step::Clear => {
                prop_assert!(self.clear, "nobody asked for it");
                self.clear = false;
                self.told = false;
                self.session = None;
                self.machine.cleared(seen.now);
            }
            Step::Reset => {
                prop_assert!(self.reset, "nobody asked for it");
                self.reset = false;
                self.clear = false;
                self.session = None;
                self.alive = false;
                self.machine.reset();
            }
            Step::Tick(prompt) => {
                self.ticks += 1;
                prop_assert!(self.alive, "a tick needs an agent");
                prop_assert!(!self.reset, "a reset comes before the tick");
                if self.clear {
                    let held = self.machine.clear_held_back(seen.now);
                    prop_assert!(held.is_some(), "a clear comes before the tick");
                    prop_assert!(held.unwrap() <= self.pace.clear_min_gap);
                }
                prop_assert!(self.told || prompt == Prompt::Full);
                self.unanswered = false;
                if self.session.is_none() {
                    self.sessions += 1;
                    self.session = Some(Id::from(format!("s{}", self.sessions).as_str()));
                }
                for what in during {
                    self.happen(what);
                }
                self.alive = !matches!(end, TickEnd::Died | TickEnd::Stuck);
                self.told |= end == TickEnd::Completed;
                let had = self.did_work;
                let taken = self
                    .machine
                    .tick_ended(end, self.did_work, self.session.clone());
                if taken {
                    self.did_work = false;
                    prop_assert_eq!(self.machine.current_sleep(), self.pace.min_sleep);
                }
                let cut_off = matches!(end, TickEnd::Died | TickEnd::Unusable);
                prop_assert_eq!(taken, had && !cut_off, "did-work is kept, not lost");
            }
            Step::Sleep(sleep) => {
                prop_assert!(!self.unanswered, "somebody waits for a tick");
                let least = self.pace.min_sleep.min(5);
                let most = self.pace.max_sleep.max(self.pace.min_sleep).max(60);
                prop_assert!((least..=most).contains(&sleep.seconds), "{sleep:?}");
                let current = self.machine.current_sleep();
                prop_assert!(current >= self.pace.min_sleep);
                prop_assert!(current <= self.pace.max_sleep.max(self.pace.min_sleep));
                self.now += sleep.seconds;
                self.machine.rested();
            }
            Step::End => prop_assert!(false, "nobody asked for the end"),
        }
        Ok(())
    }
}

proptest! {
    #[test]
    fn no_wake_and_no_flag_is_lost(
        pace in paces(),
        story in prop::collection::vec(
            (prop::collection::vec(happens(), 0..3), ends(), prop::collection::vec(happens(), 0..3)),
            1..80,
        ),
    ) {
        let mut world = World::new(pace);
        for (before, end, during) in story {
            for what in &before {
                world.happen(what);
            }
            world.step(end, &during)?;
        }
        // Left alone, what was asked for is done: a flag within its gap, a wake with the next tick.
        for _ in 0..60 {
            world.step(TickEnd::Completed, &[])?;
            world.now += 100;
        }
        prop_assert!(!world.clear && !world.reset && !world.did_work && !world.unanswered);
        prop_assert!(world.ticks > 0);
    }

    #[test]
    fn the_end_comes_at_once_whatever_was_before(
        story in prop::collection::vec((prop::collection::vec(happens(), 0..3), ends()), 0..30),
    ) {
        let mut world = World::new(PACE);
        for (before, end) in story {
            for what in &before {
                world.happen(what);
            }
            world.step(end, &[])?;
        }
        let stop = Seen { stop: true, woken: true, ..Seen::default() };
        prop_assert_eq!(world.machine.next(&stop), Step::End);
    }
}
