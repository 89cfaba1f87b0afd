mod stories;

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

/// Input of a loop whose agent is alive, without flags.
fn alive_with(session: &str) -> Input {
    Input {
        alive: true,
        session: id(session),
        ..Input::default()
    }
}

fn dead_with(session: &str) -> Input {
    Input {
        alive: false,
        ..alive_with(session)
    }
}

fn woken(input: Input) -> Input {
    Input {
        woken: true,
        ..input
    }
}

fn start(resume: Option<Id>, why: StartReason) -> Action {
    Action::Start { resume, why }
}

fn machine() -> Machine {
    Machine::new(PACE, None)
}

/// Returns a machine that has completed its first tick.
fn running() -> Machine {
    let mut machine = machine();
    assert_eq!(
        machine.next(&Input::default()),
        start(None, StartReason::First)
    );
    machine.started();
    assert_eq!(machine.next(&alive_with("a")), Action::Tick(Prompt::Full));
    assert!(!machine.tick_ended(TickEnd::Completed, false, id("a")));
    machine
}

fn sleep_of(machine: &mut Machine, input: &Input) -> u64 {
    match machine.next(input) {
        Action::Sleep(sleep) => sleep.seconds,
        other => panic!("{other:?}"),
    }
}

/// Returns the session that a start resumes.
fn resumed_by(machine: &mut Machine, input: &Input) -> Option<Id> {
    match machine.next(input) {
        Action::Start { resume, .. } => resume,
        other => panic!("{other:?}"),
    }
}

#[test]
fn sleep_grows_while_idle_up_to_its_limit_and_work_resets_it() {
    let mut machine = running();
    let input = alive_with("a");
    let mut seconds = vec![sleep_of(&mut machine, &input)];
    for did_work in [false, false, false, true, false] {
        machine.rested();
        assert_eq!(machine.next(&input), Action::Tick(Prompt::Light));
        assert_eq!(
            machine.tick_ended(TickEnd::Completed, did_work, id("a")),
            did_work
        );
        seconds.push(sleep_of(&mut machine, &input));
    }
    assert_eq!(seconds, [120, 180, 200, 200, 60, 120]);
}

#[test]
fn wake_in_a_tick_is_kept_and_an_earlier_one_is_answered_by_it() {
    let mut machine = running();
    let woken = woken(alive_with("a"));
    // Woken during the last tick: no sleep.
    assert_eq!(machine.next(&woken), Action::Tick(Prompt::Light));
    machine.tick_ended(TickEnd::Completed, false, id("a"));
    // The wake is served: the next sleep is not skipped.
    assert_eq!(sleep_of(&mut machine, &alive_with("a")), 180);
    // Woken during the sleep.
    assert_eq!(machine.next(&woken), Action::Tick(Prompt::Light));
}

#[test]
fn a_wake_ends_the_wait_after_a_failure_once() {
    let mut machine = running();
    machine.tick_ended(TickEnd::Died, false, id("a"));
    assert_eq!(sleep_of(&mut machine, &Input::default()), 5);
    let woken = woken(Input::default());
    assert!(matches!(machine.next(&woken), Action::Start { .. }));
    machine.start_failed();
    assert_eq!(sleep_of(&mut machine, &Input::default()), 10);
}

#[test]
fn a_clear_comes_before_the_tick_and_the_next_one_is_held_back() {
    let mut machine = running();
    machine.rested();
    let mut input = alive_with("a");
    input.clear = true;
    input.now = Duration::from_secs(1000);
    assert_eq!(machine.next(&input), Action::Clear);
    machine.cleared(input.now);
    input.clear = false;
    assert_eq!(machine.next(&input), Action::Tick(Prompt::Full));
    machine.tick_ended(TickEnd::Completed, false, id("b"));
    machine.rested();
    // Within the gap the flag stays set, and the tick is run.
    input.clear = true;
    input.now = Duration::from_secs(1599);
    assert_eq!(machine.clear_held_back(input.now), Some(1));
    assert_eq!(machine.next(&input), Action::Tick(Prompt::Light));
    machine.tick_ended(TickEnd::Completed, false, id("b"));
    machine.rested();
    input.now = Duration::from_secs(1600);
    assert_eq!(machine.next(&input), Action::Clear);
}

#[test]
fn a_reset_starts_over() {
    let mut machine = running();
    machine.rested();
    let input = Input {
        clear: true,
        reset: true,
        ..alive_with("a")
    };
    assert_eq!(machine.next(&input), Action::Reset);
    machine.reset();
    assert_eq!(
        machine.next(&Input::default()),
        start(None, StartReason::Reset)
    );
    machine.started();
    assert_eq!(
        machine.next(&Input {
            alive: true,
            ..Input::default()
        }),
        Action::Tick(Prompt::Full)
    );
}

#[test]
fn a_dead_agent_is_resumed_with_the_full_prompt() {
    let mut machine = running();
    machine.rested();
    assert_eq!(
        machine.next(&dead_with("a")),
        start(id("a"), StartReason::Died)
    );
    machine.started();
    assert_eq!(machine.next(&alive_with("a")), Action::Tick(Prompt::Full));
}

#[test]
fn session_that_fails_twice_is_given_up_and_delays_grow() {
    let mut machine = running();
    let mut resumed = Vec::new();
    let mut waits = Vec::new();
    for session in ["a", "a", "b", "b"] {
        assert!(!machine.tick_ended(TickEnd::Died, true, id(session)));
        waits.push(sleep_of(&mut machine, &Input::default()));
        machine.rested();
        resumed.push(resumed_by(&mut machine, &Input::default()));
        machine.started();
        assert_eq!(
            machine.next(&alive_with(session)),
            Action::Tick(Prompt::Full)
        );
    }
    assert_eq!(resumed, [id("a"), None, id("b"), None]);
    assert_eq!(waits, [5, 10, 15, 20]);
    // A completed tick ends the series.
    machine.tick_ended(TickEnd::Completed, true, id("c"));
    assert_eq!(machine.failures(), 0);
    assert_eq!(sleep_of(&mut machine, &alive_with("c")), 60);
}

#[test]
fn a_start_that_has_to_wait_is_no_failure() {
    let mut machine = running();
    machine.tick_ended(TickEnd::Died, false, id("a"));
    machine.rested();
    for _ in 0..3 {
        assert_eq!(resumed_by(&mut machine, &Input::default()), id("a"));
        machine.start_later(43);
        assert_eq!(sleep_of(&mut machine, &Input::default()), 43);
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
        assert_eq!(resumed_by(&mut machine, &dead_with("a")), resume);
        machine.started();
        machine.next(&alive_with("a"));
    }
}

#[test]
fn session_with_refused_requests_is_given_up_by_a_live_process() {
    let mut machine = running();
    for sleep in [180, 200] {
        machine.rested();
        assert!(matches!(machine.next(&alive_with("a")), Action::Tick(_)));
        // The usual sleep applies: a refusal costs no tokens.
        machine.tick_ended(TickEnd::Refused, false, id("a"));
        assert_eq!(sleep_of(&mut machine, &alive_with("a")), sleep);
    }
    machine.rested();
    assert_eq!(
        machine.next(&alive_with("a")),
        start(None, StartReason::GivenUp)
    );
    machine.started();
    // The refusals are now counted for the new session.
    assert_eq!(machine.next(&alive_with("")), Action::Tick(Prompt::Full));
    machine.tick_ended(TickEnd::Refused, false, id("b"));
    machine.rested();
    assert_eq!(machine.next(&alive_with("b")), Action::Tick(Prompt::Full));
}

#[test]
fn service_limit_makes_a_sleep_longer_and_a_wake_ends_it() {
    let mut machine = running();
    for (seconds, sleep) in [(100, 120), (150, 150), (9999, 200)] {
        machine.hold_off(seconds);
        assert_eq!(sleep_of(&mut machine, &alive_with("a")), sleep);
    }
    // Later sleeps do not grow from it.
    assert_eq!(machine.current_sleep(), 120);
    let woken = woken(alive_with("a"));
    assert!(matches!(machine.next(&woken), Action::Tick(_)));
}

#[test]
fn an_unusable_session_is_dropped() {
    let mut machine = running();
    machine.tick_ended(TickEnd::Unusable, false, id("a"));
    machine.rested();
    assert_eq!(
        machine.next(&alive_with("a")),
        start(None, StartReason::Unusable)
    );
}

#[test]
fn a_failed_tick_is_followed_by_the_full_prompt() {
    let mut machine = machine();
    machine.next(&Input::default());
    machine.started();
    machine.next(&alive_with("a"));
    machine.tick_ended(TickEnd::Failed, false, id("a"));
    machine.rested();
    assert_eq!(machine.next(&alive_with("a")), Action::Tick(Prompt::Full));
    machine.tick_ended(TickEnd::Completed, false, id("a"));
    machine.rested();
    assert_eq!(machine.next(&alive_with("a")), Action::Tick(Prompt::Light));
}
