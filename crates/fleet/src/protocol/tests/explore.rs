//! Breadth-first search of all states.

use std::collections::{BTreeMap, HashMap};
use std::fmt::{self, Display};
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher, Hash};
use std::time::{Duration, Instant};

/// A state of a model.
pub(super) trait Model: Hash + Sized {
    /// What a trace prints of a step.
    type Label: Copy + Display;

    /// Returns the steps from this state, and the states after them.
    fn steps(&self) -> Vec<(Self::Label, Self)>;

    /// Returns the number of faults so far.
    fn faults(&self) -> u8;

    /// Returns the violation that this state is.
    fn violation(&self) -> Option<Found>;

    /// Returns whether a person can tell what has become of the run, if nothing happens any more.
    fn is_named(&self) -> bool;
}

/// A violation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Found {
    /// The agent was started twice.
    Twice,
    /// The run was reported as cancelled or failed before its start, but was started.
    Untrue,
    /// The log of a run had its end, and got another entry.
    Continued,
    /// The agent of a run that was given up works on beside a worker.
    Unwatched,
    /// A reader of the log has missed an entry.
    Gap,
    /// Two agents work on one conversation.
    Together,
    /// A conversation was continued on another machine than the one that has it.
    Apart,
    /// From here on, no way without another fault leads to a state at rest that a person can tell from a working one.
    NeverAtRest,
}

/// What a search has found.
#[derive(Debug)]
pub(super) struct Report {
    pub(super) states: usize,
    pub(super) took: Duration,
    /// The shortest way to each kind of violation.
    pub(super) found: BTreeMap<Found, String>,
}

impl Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} states in {:.1?}", self.states, self.took)?;
        for (found, trace) in &self.found {
            write!(f, "\n{found:?}:{trace}")?;
        }
        Ok(())
    }
}

/// Tries all steps from this state on, until this violation is found. States are known by a hash of 64 bits.
pub(super) fn explore<M: Model>(first: M, until: Option<Found>) -> Report {
    let began = Instant::now();
    let hasher = BuildHasherDefault::<DefaultHasher>::default();
    let mut known: HashMap<u64, u32> = HashMap::from([(hasher.hash_one(&first), 0)]);
    // Of each state: the state before, the step, and whether it is at rest in a named state.
    let mut before: Vec<(u32, Option<M::Label>)> = vec![(0, None)];
    let mut rests = vec![false];
    // Steps without a fault, backwards.
    let mut free: Vec<(u32, u32)> = Vec::new();
    let mut frontier = vec![(0_u32, first)];
    let mut violations = BTreeMap::new();
    while !frontier.is_empty() && until.is_none_or(|found| !violations.contains_key(&found)) {
        let mut next = Vec::new();
        for (number, world) in frontier {
            let mut moves = false;
            for (step, after) in world.steps() {
                let is_free = after.faults() == world.faults();
                let hash = hasher.hash_one(&after);
                let count = u32::try_from(before.len()).unwrap();
                let target = *known.entry(hash).or_insert(count);
                if is_free && target != number {
                    moves = true;
                    free.push((target, number));
                }
                if target != count {
                    continue;
                }
                before.push((number, Some(step)));
                rests.push(false);
                match after.violation() {
                    Some(found) => {
                        violations.entry(found).or_insert(target);
                        // What follows is of no interest.
                        rests[target as usize] = true;
                    }
                    None => next.push((target, after)),
                }
            }
            rests[number as usize] |= !moves && world.is_named();
        }
        frontier = next;
    }
    // Only of a search that was not ended early.
    if frontier.is_empty()
        && let Some(stuck) = first_that_never_rests(rests, &free)
    {
        violations.insert(Found::NeverAtRest, stuck);
    }
    let trace = |mut at: u32| {
        let mut steps = Vec::new();
        while at != 0 {
            let (earlier, step) = &before[at as usize];
            steps.extend(step.map(|step| format!("\n  {step}")));
            at = *earlier;
        }
        steps.into_iter().rev().collect::<String>()
    };
    Report {
        states: before.len(),
        took: began.elapsed(),
        found: violations
            .into_iter()
            .map(|(found, at)| (found, trace(at)))
            .collect(),
    }
}

/// Returns the first state from which no steps without a fault lead to one at rest.
fn first_that_never_rests(mut reaches: Vec<bool>, free: &[(u32, u32)]) -> Option<u32> {
    let mut starts = vec![0_u32; reaches.len() + 1];
    for (target, _) in free {
        starts[*target as usize + 1] += 1;
    }
    for at in 1..starts.len() {
        starts[at] += starts[at - 1];
    }
    let mut sources = vec![0_u32; free.len()];
    let mut fill = starts.clone();
    for (target, source) in free {
        let at = &mut fill[*target as usize];
        sources[*at as usize] = *source;
        *at += 1;
    }
    let mut todo: Vec<usize> = (0..reaches.len()).filter(|at| reaches[*at]).collect();
    while let Some(at) = todo.pop() {
        for source in &sources[starts[at] as usize..starts[at + 1] as usize] {
            if !std::mem::replace(&mut reaches[*source as usize], true) {
                todo.push(*source as usize);
            }
        }
    }
    let stuck = reaches.iter().position(|reaches| !reaches)?;
    u32::try_from(stuck).ok()
}
