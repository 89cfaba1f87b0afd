use proptest::prelude::*;

use super::*;

const POLICY: Policy = Policy {
    first_delay: Duration::from_secs(1),
    longest_delay: Duration::from_mins(1),
    settled_after: Duration::from_mins(5),
    look_again: Duration::from_secs(30),
    grace: Duration::from_secs(5),
};

fn process(pid: u32) -> ProcessIdentity {
    ProcessIdentity::new(pid, Some(u64::from(pid) * 7))
}

/// Agent with a simulated clock.
struct Bench {
    agent: Agent,
    now: Instant,
    next_pid: u32,
}

impl Bench {
    /// Creates an agent whose start was requested.
    fn new() -> Self {
        let mut agent = Agent::new(POLICY);
        let now = Instant::now();
        agent.start(now);
        Self {
            agent,
            now,
            next_pid: 100,
        }
    }

    fn pass(&mut self, seconds: u64) {
        self.now += Duration::from_secs(seconds);
    }

    fn poll(&mut self) -> Option<Action> {
        self.agent.poll(self.now)
    }

    fn exit(&mut self, process: ProcessIdentity, exit: Exit) {
        self.agent.exited(process, exit, self.now);
    }

    /// Performs a due start.
    fn run(&mut self) -> ProcessIdentity {
        assert_eq!(self.poll(), Some(Action::Start));
        let process = process(self.next_pid);
        self.next_pid += 1;
        self.agent.started(process, self.now);
        process
    }

    fn crash(&mut self, process: ProcessIdentity) {
        self.exit(process, Exit::Code(1));
    }

    /// Returns the seconds until the next action.
    fn delay(&self) -> Option<u64> {
        let due = self.agent.due()?;
        Some(due.saturating_duration_since(self.now).as_secs())
    }
}

#[test]
fn crash_delays_grow_up_to_the_longest() {
    let mut bench = Bench::new();
    let mut delays = Vec::new();
    for _ in 0..9 {
        let process = bench.run();
        bench.crash(process);
        let delay = bench.delay().unwrap();
        assert_eq!(bench.poll(), None);
        delays.push(delay);
        bench.pass(delay);
    }
    assert_eq!(delays, [1, 2, 4, 8, 16, 32, 60, 60, 60]);
    assert_eq!(bench.agent.restarts(), 9);
}

#[test]
fn a_loop_that_ran_well_for_a_while_begins_with_the_first_delay() {
    let mut bench = Bench::new();
    for expected in [1, 2, 4] {
        let process = bench.run();
        bench.pass(299);
        bench.crash(process);
        assert_eq!(bench.delay(), Some(expected));
        bench.pass(expected);
    }
    let process = bench.run();
    bench.pass(300);
    bench.crash(process);
    assert_eq!(bench.delay(), Some(1));
    // The total is still reported.
    assert_eq!(bench.agent.restarts(), 4);
}

#[test]
fn a_clean_exit_is_not_restarted() {
    let mut bench = Bench::new();
    let process = bench.run();
    bench.exit(process, Exit::Code(0));
    let rest = (bench.agent.phase(), bench.agent.due());
    assert_eq!(rest, (Phase::Ended, None));
    bench.pass(100_000);
    assert_eq!(bench.poll(), None);
    // A request starts it.
    bench.agent.start(bench.now);
    bench.run();
}

#[test]
fn an_unusable_loop_is_retried_slowly() {
    let mut bench = Bench::new();
    for restarts in 1..=3 {
        let process = bench.run();
        bench.exit(process, Exit::Code(2));
        assert!(matches!(bench.agent.phase(), Phase::Failed { .. }));
        assert_eq!(bench.delay(), Some(60));
        assert_eq!(bench.agent.restarts(), restarts);
        bench.pass(59);
        assert_eq!(bench.poll(), None);
        bench.pass(1);
    }
    // A problem that can be checked without a start is checked sooner.
    assert_eq!(bench.poll(), Some(Action::Start));
    bench.agent.not_started(true, bench.now);
    assert_eq!(bench.delay(), Some(30));
    bench.pass(30);
    let process = bench.run();
    bench.exit(process, Exit::Code(2));
    bench.agent.recheck(bench.now);
    assert_eq!(bench.delay(), Some(30));
    assert_eq!(bench.agent.restarts(), 4);
}

#[test]
fn crashes_in_a_row_are_a_crash_loop_until_one_has_run_well() {
    let mut bench = Bench::new();
    let mut seen = Vec::new();
    for _ in 0..3 {
        let process = bench.run();
        seen.push(bench.agent.is_crash_looping(bench.now));
        bench.crash(process);
        bench.pass(bench.delay().unwrap());
    }
    assert_eq!(seen, [false, false, true]);
    let process = bench.run();
    bench.pass(299);
    assert!(bench.agent.is_crash_looping(bench.now));
    bench.pass(1);
    assert!(!bench.agent.is_crash_looping(bench.now));
    // The next crash counts as the first.
    bench.crash(process);
    bench.pass(bench.delay().unwrap());
    bench.run();
    assert!(!bench.agent.is_crash_looping(bench.now));
}

#[test]
fn a_stop_asks_and_then_kills() {
    let mut bench = Bench::new();
    let process = bench.run();
    bench.agent.stop();
    assert_eq!(bench.poll(), Some(Action::Terminate(process)));
    assert_eq!(bench.poll(), None);
    // A second stop changes nothing.
    bench.pass(4);
    bench.agent.stop();
    assert_eq!(bench.poll(), None);
    assert_eq!(bench.delay(), Some(1));
    bench.pass(1);
    assert_eq!(bench.poll(), Some(Action::Kill(process)));
    assert_eq!(bench.poll(), None);
    bench.exit(process, Exit::Signal(9));
    assert_eq!(bench.agent.phase(), Phase::Stopped);
    assert_eq!(bench.poll(), None);
}

#[test]
fn skipping_the_grace_kills_at_once() {
    let mut bench = Bench::new();
    let process = bench.run();
    bench.agent.skip_grace(bench.now);
    assert_eq!(bench.poll(), None);
    bench.agent.stop();
    bench.agent.skip_grace(bench.now);
    assert_eq!(bench.poll(), Some(Action::Kill(process)));
    bench.agent.skip_grace(bench.now);
    assert_eq!(bench.poll(), None);
}

#[test]
fn a_restart_ends_one_and_starts_one() {
    let mut bench = Bench::new();
    let first = bench.run();
    bench.agent.restart(bench.now);
    assert_eq!(bench.poll(), Some(Action::Terminate(first)));
    // The exit code is ignored.
    bench.exit(first, Exit::Code(2));
    let second = bench.run();
    assert_ne!(first, second);
    // A later stop overrides the restart.
    bench.agent.restart(bench.now);
    bench.agent.stop();
    assert_eq!(bench.poll(), Some(Action::Terminate(second)));
    bench.exit(second, Exit::Code(0));
    assert_eq!(bench.agent.phase(), Phase::Stopped);
    // A restart starts a stopped agent.
    bench.agent.restart(bench.now);
    bench.run();
}

#[test]
fn a_failed_start_backs_off_or_fails() {
    let mut bench = Bench::new();
    for expected in [1, 2] {
        assert_eq!(bench.poll(), Some(Action::Start));
        bench.agent.not_started(false, bench.now);
        assert_eq!(bench.delay(), Some(expected));
        bench.pass(expected);
    }
    assert_eq!(bench.poll(), Some(Action::Start));
    bench.agent.not_started(true, bench.now);
    assert!(matches!(bench.agent.phase(), Phase::Failed { .. }));
    bench.agent.stop();
    assert_eq!(bench.agent.phase(), Phase::Stopped);
}

#[test]
fn a_stop_while_it_is_being_started_is_not_lost() {
    let mut bench = Bench::new();
    assert_eq!(bench.poll(), Some(Action::Start));
    bench.agent.stop();
    assert_eq!(bench.poll(), None);
    let process = process(7);
    bench.agent.started(process, bench.now);
    assert_eq!(bench.poll(), Some(Action::Terminate(process)));
    bench.exit(process, Exit::Signal(15));
    for hopeless in [false, true] {
        bench.agent.start(bench.now);
        assert_eq!(bench.poll(), Some(Action::Start));
        bench.agent.stop();
        bench.agent.not_started(hopeless, bench.now);
        let rest = (bench.agent.phase(), bench.agent.due());
        assert_eq!(rest, (Phase::Stopped, None));
    }
}

#[test]
fn an_adopted_loop_is_one_like_any_other() {
    let mut bench = Bench::new();
    bench.agent.adopt(process(7), 3, bench.now);
    assert_eq!(bench.poll(), None);
    assert_eq!(bench.agent.process(), Some(process(7)));
    // The exit of an earlier process with the same id is ignored.
    let before = ProcessIdentity::new(7, Some(1));
    bench.exit(before, Exit::Unknown);
    assert_eq!(bench.agent.process(), Some(process(7)));
    bench.exit(process(7), Exit::Unknown);
    assert_eq!(bench.delay(), Some(1));
    assert_eq!(bench.agent.restarts(), 4);
}

#[test]
fn exits_are_described() {
    let text = |exit: Exit| exit.to_string();
    assert_eq!(text(Exit::Code(0)), "exited cleanly");
    assert_eq!(text(Exit::Code(127)), "exited with code 127");
    assert_eq!(text(Exit::Signal(9)), "killed by SIGKILL");
    assert_eq!(text(Exit::Signal(64)), "killed by signal 64");
}

/// External event of an agent.
#[derive(Debug, Clone)]
enum Input {
    Start,
    Stop,
    Restart,
    SkipGrace,
    /// The running process exits.
    Exit(Exit),
    /// The exit of an earlier process is reported late.
    LateExit,
    /// The following starts fail, or succeed with `None`.
    Break(Option<bool>),
    Pass(u64),
}

fn inputs() -> impl Strategy<Value = Vec<Input>> {
    let exit = prop_oneof![
        Just(Exit::Code(0)),
        Just(Exit::Code(1)),
        Just(Exit::Code(2)),
        Just(Exit::Signal(9)),
        Just(Exit::Unknown),
    ];
    let input = prop_oneof![
        2 => Just(Input::Start),
        2 => Just(Input::Stop),
        1 => Just(Input::Restart),
        1 => Just(Input::SkipGrace),
        4 => exit.prop_map(Input::Exit),
        1 => Just(Input::LateExit),
        1 => prop::option::of(any::<bool>()).prop_map(Input::Break),
        // Milliseconds.
        4 => prop_oneof![0..2_000_u64, 0..70_000_u64, Just(400_000)].prop_map(Input::Pass),
    ];
    prop::collection::vec(input, 0..80)
}

proptest! {
    #[test]
    fn never_two_processes_and_no_start_that_was_not_requested(inputs in inputs()) {
        let mut agent = Agent::new(POLICY);
        let mut now = Instant::now();
        let mut running: Option<ProcessIdentity> = None;
        let mut ended: Option<ProcessIdentity> = None;
        let mut requested = false;
        let mut terminated_at: Option<Instant> = None;
        let mut broken = None;
        let mut next_pid = 2;
        let mut crashed_at: Option<Instant> = None;
        for input in inputs {
            match input {
                Input::Start => {
                    agent.start(now);
                    requested = true;
                    crashed_at = None;
                }
                Input::Restart => {
                    agent.restart(now);
                    requested = true;
                    crashed_at = None;
                }
                Input::Stop => {
                    agent.stop();
                    requested = false;
                    crashed_at = None;
                }
                Input::SkipGrace => agent.skip_grace(now),
                Input::Exit(exit) => if let Some(process) = running.take() {
                    let crash = matches!(agent.phase(), Phase::Running { .. });
                    agent.exited(process, exit, now);
                    ended = Some(process);
                    terminated_at = None;
                    if crash {
                        match exit {
                            Exit::Code(0) => requested = false,
                            _ => crashed_at = Some(now),
                        }
                    }
                },
                Input::LateExit => if let Some(process) = ended {
                    let before = agent.phase();
                    agent.exited(process, Exit::Code(1), now);
                    prop_assert_eq!(before, agent.phase());
                },
                Input::Break(how) => broken = how,
                Input::Pass(ms) => now += Duration::from_millis(ms),
            }
            let mut actions = 0;
            while let Some(action) = agent.poll(now) {
                actions += 1;
                prop_assert!(actions < 10, "it does not come to rest");
                match action {
                    Action::Start => {
                        prop_assert_eq!(running, None, "two at once");
                        prop_assert!(requested, "no request");
                        if let Some(crashed_at) = crashed_at {
                            let waited = now - crashed_at;
                            prop_assert!(waited >= POLICY.first_delay, "too soon: {:?}", waited);
                        }
                        if let Some(hopeless) = broken {
                            agent.not_started(hopeless, now);
                            crashed_at = Some(now);
                        } else {
                            let process = process(next_pid);
                            next_pid += 1;
                            agent.started(process, now);
                            running = Some(process);
                            crashed_at = None;
                        }
                    }
                    Action::Terminate(process) => {
                        prop_assert_eq!(running, Some(process));
                        prop_assert_eq!(terminated_at, None, "terminated twice");
                        terminated_at = Some(now);
                    }
                    Action::Kill(process) => prop_assert_eq!(running, Some(process)),
                }
            }
            prop_assert_eq!(agent.process(), running);
            if let Phase::Waiting { until } = agent.phase() {
                let delay = until - now;
                prop_assert!(delay <= POLICY.longest_delay, "{:?}", delay);
            }
            if let Some(due) = agent.due() {
                prop_assert!(due > now, "what is due is done");
            }
        }
    }
}
