//! Property tests with random operations in random order.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;

use super::*;
use crate::registry::schedule::Schedule;

const GROUPS: [&str; 3] = ["p", "q", "r"];
const QUEUES: [&str; 3] = ["a", "b", "c"];

#[derive(Debug, Clone)]
enum Op {
    Acquire { group: usize, queue: usize },
    Release(Index),
    Cancel(Index),
    Hold { group: usize, ms: u64 },
    Advance(u64),
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        5 => (0..3_usize, 0..3_usize).prop_map(|(group, queue)| Op::Acquire { group, queue }),
        4 => any::<Index>().prop_map(Op::Release),
        2 => any::<Index>().prop_map(Op::Cancel),
        1 => (0..3_usize, 0..100_u64).prop_map(|(group, ms)| Op::Hold { group, ms }),
        1 => (0..60_u64).prop_map(Op::Advance),
    ]
}

fn limits() -> impl Strategy<Value = Limits> {
    let limit = || proptest::option::of(1..5_usize);
    (limit(), limit(), limit()).prop_map(|(overall, per_provider, p)| Limits {
        overall,
        per_provider,
        providers: p.map(|p| ("p".to_owned(), p)).into_iter().collect(),
    })
}

/// The expected state, tracked separately from the registry.
struct World<'a> {
    run: &'a Registration,
    limits: Limits,
    now_ms: u64,
    holds: [u64; 3],
    waits: Vec<(usize, usize, Wait<'a>)>,
    slots: Vec<(usize, Slot)>,
}

impl World<'_> {
    async fn do_it(&mut self, registry: &Registry, op: &Op) {
        match op {
            Op::Acquire { group, queue } => {
                let slot = self.run.any_slot(GROUPS[*group], QUEUES[*queue]);
                let mut wait = Wait(Box::pin(slot));
                assert!(wait.poll().await.is_none());
                self.waits.push((*group, *queue, wait));
            }
            Op::Release(at) if !self.slots.is_empty() => {
                self.slots.swap_remove(at.index(self.slots.len()));
            }
            // The slot may have been granted meanwhile.
            Op::Cancel(at) if !self.waits.is_empty() => {
                self.waits.remove(at.index(self.waits.len()));
            }
            Op::Release(_) | Op::Cancel(_) => {}
            Op::Hold { group, ms } => {
                let until = self.now_ms + ms;
                registry.hold(GROUPS[*group], until, why());
                self.holds[*group] = self.holds[*group].max(until);
            }
            Op::Advance(ms) => {
                self.now_ms += ms;
                tokio::time::advance(Duration::from_millis(*ms)).await;
            }
        }
    }

    async fn check(&mut self) {
        settle().await;
        // Within a line, granted tickets come before waiting ones.
        let mut stuck = BTreeSet::new();
        let mut still = Vec::new();
        for (group, queue, mut wait) in self.waits.drain(..) {
            match wait.poll().await {
                Some(slot) => {
                    assert!(!stuck.contains(&(group, queue)), "overtaken in its line");
                    self.slots.push((group, slot));
                }
                None => {
                    stuck.insert((group, queue));
                    still.push((group, queue, wait));
                }
            }
        }
        self.waits = still;

        let full = |limit: Option<usize>, count| limit.is_some_and(|limit| count >= limit);
        let over = |limit: Option<usize>, count| limit.is_some_and(|limit| count > limit);
        assert!(!over(self.limits.overall, self.slots.len()));
        for (at, name) in GROUPS.iter().enumerate() {
            let running = self.slots.iter().filter(|(group, _)| *group == at).count();
            let limit = self.limits.of_provider(name);
            assert!(!over(limit, running), "too many of {name}");
            let blocked = full(self.limits.overall, self.slots.len())
                || full(limit, running)
                || self.holds[at] > self.now_ms;
            let waiting = self.waits.iter().any(|(group, ..)| *group == at);
            assert!(blocked || !waiting, "{name} has room while a run waits");
        }
    }
}

async fn keeps_its_account(limits: Limits, ops: Vec<(Op, bool)>) {
    let registry = start(limits.clone());
    let run = registry.named("x").await;
    let mut world = World {
        run: &run,
        limits: limits.clone(),
        now_ms: T0,
        holds: [0; 3],
        waits: Vec::new(),
        slots: Vec::new(),
    };
    for (op, look) in &ops {
        world.do_it(&registry, op).await;
        if *look {
            world.check().await;
        }
    }
    world.check().await;

    // Every waiter is served in the end, and no state remains.
    world.do_it(&registry, &Op::Advance(1000)).await;
    let mut rounds = world.waits.len();
    world.check().await;
    while !world.waits.is_empty() {
        assert!(rounds > 0, "{} wait forever", world.waits.len());
        rounds -= 1;
        world.slots.clear();
        world.check().await;
    }
    drop(world);
    drop(run);
    assert!(registry.is_idle().await);
}

/// Asserts fairness on the schedule itself, where the order is known exactly.
fn takes_turns(limits: Limits, ops: &[Op]) {
    let mut schedule = Schedule::new(limits);
    let mut now_ms = 0;
    let mut lines: BTreeMap<(usize, usize), Vec<u64>> = BTreeMap::new();
    let mut granted: Vec<u64> = Vec::new();
    // Number of times that each other queue was served while a line waits for its turn.
    let mut passed: HashMap<((usize, usize), usize), u32> = HashMap::new();
    for (ticket, op) in (0..).zip(ops) {
        match op {
            Op::Acquire { group, queue } => {
                schedule.join(ticket, GROUPS[*group].into(), QUEUES[*queue].into());
                lines.entry((*group, *queue)).or_default().push(ticket);
            }
            Op::Release(at) if !granted.is_empty() => {
                assert!(schedule.leave(granted.swap_remove(at.index(granted.len()))));
            }
            Op::Cancel(at) => {
                let all: Vec<u64> = lines.values().flatten().copied().collect();
                if !all.is_empty() {
                    let gone = *at.get(&all);
                    assert!(schedule.leave(gone));
                    for line in lines.values_mut() {
                        line.retain(|ticket| *ticket != gone);
                    }
                }
            }
            Op::Release(_) => {}
            Op::Hold { group, ms } => {
                schedule.hold(Held {
                    provider: GROUPS[*group].to_owned(),
                    model: None,
                    until_ms: now_ms + ms + 1,
                    reason: why(),
                });
            }
            Op::Advance(ms) => {
                now_ms += ms;
                schedule.expire(now_ms);
            }
        }
        while let Some(next) = schedule.next() {
            schedule.grant(next);
            granted.push(next);
            let served = lines.iter().find(|(_, line)| line.contains(&next));
            let served = *served.expect("it waits").0;
            let line = lines.get_mut(&served).expect("it was found");
            assert_eq!(line.remove(0), next, "the first of its line");
            passed.retain(|(line, _), _| *line != served);
            for line in lines.iter().filter(|(_, line)| !line.is_empty()) {
                let (group, queue) = *line.0;
                if group == served.0 && queue != served.1 {
                    let times = passed.entry((*line.0, served.1)).or_default();
                    *times += 1;
                    assert_eq!(*times, 1, "passed twice by the same");
                }
            }
        }
        passed.retain(|(line, _), _| lines.get(line).is_some_and(|line| !line.is_empty()));
    }
    for ticket in lines.into_values().flatten().chain(granted) {
        assert!(schedule.leave(ticket));
    }
    assert!(schedule.is_idle());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_limit_is_passed_and_no_slot_is_lost(limits in limits(), ops in vec((op(), any::<bool>()), 1..60)) {
        tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap()
            .block_on(keeps_its_account(limits, ops));
    }

    #[test]
    fn lines_are_in_order_and_take_turns(limits in limits(), ops in vec(op(), 1..120)) {
        takes_turns(limits, &ops);
    }
}
