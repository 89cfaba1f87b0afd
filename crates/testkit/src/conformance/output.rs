//! Checks of any output: complete, in chunks and truncated.

use serde_json::Value;
use teamster_core::provider::Exit;
use teamster_core::{AgentEvent, RunStatus};

use super::{Failures, Suite, Verdict};
use crate::fixture::Fixture;
use crate::replay::{Replay, ReplayOptions, replay, replay_bytes};

/// Maximum numbers of line ends and of other offsets at which one fixture is cut.
const LINE_ENDS: usize = 100;
const OFFSETS: usize = 20;

/// Checks the invariants of every stream.
pub(super) fn check_stream(replay: &Replay) -> Result<(), String> {
    replay.grammar.as_ref().map_err(ToString::to_string)?;
    let is_done = |event: &&AgentEvent| matches!(event, AgentEvent::Done(_));
    match replay.events.iter().filter(is_done).count() {
        1 => Ok(()),
        count => Err(format!("`done` came {count} times")),
    }
}

/// Returns about `count` of the numbers below `end`, the same on every run. The step is odd, so that it does
/// not hit the same offset of every line.
fn sample(end: usize, count: usize) -> impl Iterator<Item = usize> {
    let step = (end / count).max(1) | 1;
    (step / 2..end).step_by(step)
}

fn line_ends(stdout: &[u8]) -> Vec<usize> {
    let bytes = stdout.iter().enumerate();
    let ends: Vec<_> = bytes
        .filter(|(_, b)| **b == b'\n')
        .map(|(i, _)| i + 1)
        .collect();
    let some = ends.len().clamp(1, LINE_ENDS);
    // The first and last 20 are always kept: runs begin and end there.
    let middle = sample(ends.len(), some).collect::<Vec<_>>();
    let is_kept = |i: usize| i < 20 || i + 20 > ends.len() || middle.contains(&i);
    let kept = ends.iter().enumerate().filter(|(i, _)| is_kept(*i));
    kept.map(|(_, end)| *end).collect()
}

pub(super) fn location(fixture: &Fixture) -> String {
    fixture.dir.display().to_string()
}

pub(super) fn is_completed(replay: &Replay) -> bool {
    let status = replay.result().map(|result| result.status);
    status == Some(RunStatus::Completed)
}

impl Suite {
    /// Checks that every fixture decodes to a valid stream, whose events are read back from their JSON as they were.
    pub fn grammar(&self) -> Verdict {
        let mut wrong = Failures::of("grammar");
        let options = ReplayOptions {
            include_native: true,
        };
        for fixture in &self.fixtures {
            let replay = replay(fixture, &*self.provider, options);
            wrong.add_if_err(location(fixture), check_stream(&replay));
            wrong.add_if_err(location(fixture), replay.read_back());
        }
        wrong.verdict()
    }

    /// Checks that the same output in other chunks decodes to the same events.
    pub fn chunks(&self) -> Verdict {
        let mut wrong = Failures::of("chunks");
        for fixture in &self.fixtures {
            let stdout = fixture.stdout.as_slice();
            let expected = self.play([stdout], fixture.exit());
            let mut same = |chunks: Vec<&[u8]>, how: &str| {
                if self.play(chunks, fixture.exit()) != expected {
                    let what = format!("other events than from the whole output: {how}");
                    wrong.add(location(fixture), what);
                }
            };
            same(stdout.chunks(1).collect(), "byte by byte");
            let lines = stdout.split_inclusive(|b| *b == b'\n');
            same(lines.collect(), "line by line");
            same(stdout.chunks(997).collect(), "in chunks of 997 bytes");
            for at in sample(stdout.len(), OFFSETS) {
                let (head, tail) = stdout.split_at(at);
                same(vec![head, tail], &format!("in two chunks, cut at {at}"));
            }
        }
        wrong.verdict()
    }

    /// Checks that output that is cut at any line end and at offsets within lines decodes to a valid stream.
    ///
    /// Such a run must not be `completed` unless the CLI had reported its end. Neither must the complete
    /// output of a process that failed or was killed without a reported end.
    pub fn cut_short(&self) -> Verdict {
        let mut wrong = Failures::of("cut_short");
        let ended = Exit::new(0);
        for fixture in &self.fixtures {
            let mut exits = vec![ended.clone(), fixture.exit()];
            exits.dedup();
            let length = fixture.stdout.len();
            let cuts = line_ends(&fixture.stdout).into_iter();
            for end in cuts.chain(sample(length, OFFSETS)).chain([length]) {
                let stdout = &fixture.stdout[..end];
                let where_cut = format!("{}, cut off at {end}", location(fixture));
                for exit in exits.clone() {
                    let how = exit.code;
                    let replay = self.play([stdout], exit);
                    wrong.add_if_err(&where_cut, check_stream(&replay));
                    if is_completed(&replay) && !self.has_end(stdout) {
                        let what = format!(
                            "completed (exit code {how:?}), though no line reports the end"
                        );
                        wrong.add(&where_cut, what);
                    }
                }
            }
        }
        wrong.verdict()
    }

    pub(super) fn replay(&self, fixture: &Fixture) -> Replay {
        replay(fixture, &*self.provider, ReplayOptions::default())
    }

    pub(super) fn play<'a>(
        &self,
        chunks: impl IntoIterator<Item = &'a [u8]>,
        exit: Exit,
    ) -> Replay {
        replay_bytes(&*self.provider, chunks, exit)
    }

    /// Returns whether this output has the CLI's end of the run, without use of the decoder.
    fn has_end(&self, stdout: &[u8]) -> bool {
        let Some(is_over) = self.is_over else {
            panic!("the suite needs `run_is_over`");
        };
        let lines: Vec<Value> = stdout
            .split(|b| *b == b'\n')
            .filter_map(|line| serde_json::from_slice(line).ok())
            .collect();
        is_over(&lines)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use teamster_core::Done;
    use teamster_core::provider::grammar;

    /// No decoder can produce these: the assembler drops events that would break the grammar.
    #[test]
    fn a_stream_that_is_none_is_found() {
        let done = AgentEvent::Done(Done::new(Box::default()));
        let mut replay = Replay {
            events: vec![done.clone()],
            natives: vec![None],
            grammar: Ok(()),
        };
        assert_eq!(check_stream(&replay), Ok(()));
        replay.events.push(done);
        assert_eq!(check_stream(&replay).unwrap_err(), "`done` came 2 times");
        replay.grammar = Err(grammar::Violation::NoDone);
        let message = check_stream(&replay).unwrap_err();
        assert_eq!(message, "the stream ended without `done`");
    }

    #[test]
    fn a_sample_is_within_its_bounds() {
        assert_eq!(sample(0, 5).count(), 0);
        for end in [1, 7, 100, 9999] {
            let cuts: Vec<_> = sample(end, 20).collect();
            assert!(!cuts.is_empty() && cuts.len() <= 20, "{end}: {cuts:?}");
            assert!(cuts.iter().all(|cut| *cut < end));
        }
    }

    #[test]
    fn first_and_last_lines_are_always_cut_at() {
        let stdout = b"x\n".repeat(5000);
        let ends = line_ends(&stdout);
        assert_eq!((ends[0], ends[19]), (2, 40));
        assert_eq!(ends.last(), Some(&10_000));
        assert!(ends.len() < 200);
    }
}
