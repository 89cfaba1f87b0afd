//! Property tests of the machine against a model of its world.

use proptest::prelude::*;

use super::super::*;
use super::PACE;

/// External event of a loop.
#[derive(Debug, Clone)]
enum WorldEvent {
    Time(u64),
    Wake,
    Clear,
    Reset,
    DidWork,
    DiesWhileIdle,
}

fn world_events() -> impl Strategy<Value = WorldEvent> {
    prop_oneof![
        (1_u64..400).prop_map(WorldEvent::Time),
        Just(WorldEvent::Wake),
        Just(WorldEvent::Clear),
        Just(WorldEvent::Reset),
        Just(WorldEvent::DidWork),
        Just(WorldEvent::DiesWhileIdle),
    ]
}

fn ends() -> impl Strategy<Value = TickEnd> {
    prop_oneof![
        4 => Just(TickEnd::Completed),
        1 => Just(TickEnd::Failed),
        1 => Just(TickEnd::Refused),
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

/// Model of a driver, which performs the machine's actions and checks its rules.
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
    /// A wake that no tick has served yet.
    unanswered: bool,
    /// The agent's context has the full prompt.
    informed: bool,
    ticks: u32,
    /// The session that failed last, and its failures in a row.
    failed: (Option<Id>, u32),
}

impl World {
    fn new(pace: Pace) -> Self {
        Self {
            machine: Machine::new(pace, None),
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
            informed: false,
            ticks: 0,
            failed: (None, 0),
        }
    }

    fn apply(&mut self, event: &WorldEvent) {
        match event {
            WorldEvent::Time(seconds) => self.now += seconds,
            WorldEvent::Wake => {
                self.wake = true;
                self.unanswered = true;
            }
            WorldEvent::Clear => self.clear = true,
            WorldEvent::Reset => self.reset = true,
            WorldEvent::DidWork => self.did_work = true,
            WorldEvent::DiesWhileIdle => self.alive = false,
        }
    }

    fn step(&mut self, end: TickEnd, during: &[WorldEvent]) -> Result<(), TestCaseError> {
        let input = Input {
            now: Duration::from_secs(self.now),
            woken: std::mem::take(&mut self.wake),
            alive: self.alive,
            session: self.session.clone(),
            clear: self.clear,
            reset: self.reset,
            stop: false,
        };
        let action = self.machine.next(&input);
        prop_assert_eq!(
            &action,
            &self.machine.next(&Input {
                woken: false,
                ..input.clone()
            }),
            "asked again it answers the same"
        );
        match action {
            Action::Start { resume, .. } => {
                prop_assert!(!self.alive || self.session.is_none() || resume.is_none());
                if resume.is_none() {
                    self.informed = false;
                }
                self.session = resume;
                self.alive = true;
                // A new process gets the full prompt, even with a resumed session.
                self.informed = false;
                self.machine.started();
            }
            Action::Clear => {
                prop_assert!(self.clear, "no request");
                self.clear = false;
                self.informed = false;
                self.session = None;
                self.machine.cleared(input.now);
            }
            Action::Reset => {
                prop_assert!(self.reset, "no request");
                self.reset = false;
                self.clear = false;
                self.session = None;
                self.alive = false;
                self.machine.reset();
            }
            Action::Tick(prompt) => {
                self.ticks += 1;
                prop_assert!(self.alive, "a tick needs an agent");
                prop_assert!(!self.reset, "a reset comes before the tick");
                if self.clear {
                    let held = self.machine.clear_held_back(input.now);
                    prop_assert!(held.is_some(), "a clear comes before the tick");
                    prop_assert!(held.unwrap() <= self.pace.clear_min_gap);
                }
                prop_assert!(self.informed || prompt == Prompt::Full);
                self.unanswered = false;
                if self.session.is_none() {
                    self.sessions += 1;
                    self.session = Some(Id::from(format!("s{}", self.sessions).as_str()));
                }
                let in_a_row = if self.failed.0 == self.session {
                    self.failed.1
                } else {
                    0
                };
                prop_assert!(in_a_row < 2, "a session that failed twice continues");
                match end {
                    TickEnd::Completed => self.failed = (None, 0),
                    TickEnd::Failed | TickEnd::TimedOut => {}
                    _ => self.failed = (self.session.clone(), in_a_row + 1),
                }
                for event in during {
                    self.apply(event);
                }
                self.alive = !matches!(end, TickEnd::Died | TickEnd::Stuck);
                self.informed |= end == TickEnd::Completed;
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
            Action::Sleep(sleep) => {
                prop_assert!(!self.unanswered, "a request for a tick waits");
                let least = self.pace.min_sleep.min(5);
                let most = self.pace.max_sleep.max(self.pace.min_sleep).max(60);
                prop_assert!((least..=most).contains(&sleep.seconds), "{sleep:?}");
                let current = self.machine.current_sleep();
                prop_assert!(current >= self.pace.min_sleep);
                prop_assert!(current <= self.pace.max_sleep.max(self.pace.min_sleep));
                self.now += sleep.seconds;
                self.machine.rested();
            }
            Action::End => prop_assert!(false, "no request for the end"),
        }
        Ok(())
    }
}

proptest! {
    #[test]
    fn no_wake_and_no_flag_is_lost(
        pace in paces(),
        story in prop::collection::vec(
            (prop::collection::vec(world_events(), 0..3), ends(), prop::collection::vec(world_events(), 0..3)),
            1..80,
        ),
    ) {
        let mut world = World::new(pace);
        for (before, end, during) in story {
            for event in &before {
                world.apply(event);
            }
            world.step(end, &during)?;
        }
        // Without further events each request is served: a flag after its gap, a wake with the next tick.
        for _ in 0..60 {
            world.step(TickEnd::Completed, &[])?;
            world.now += 100;
        }
        prop_assert!(!world.clear && !world.reset && !world.did_work && !world.unanswered);
        prop_assert!(world.ticks > 0);
    }

    #[test]
    fn a_stop_ends_the_loop_in_any_state(
        story in prop::collection::vec((prop::collection::vec(world_events(), 0..3), ends()), 0..30),
    ) {
        let mut world = World::new(PACE);
        for (before, end) in story {
            for event in &before {
                world.apply(event);
            }
            world.step(end, &[])?;
        }
        let stop = Input { stop: true, woken: true, ..Input::default() };
        prop_assert_eq!(world.machine.next(&stop), Action::End);
    }
}
