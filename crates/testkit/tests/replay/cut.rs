//! Fixtures in other chunks, and fixtures that end too early.

use teamster::{Exit, RunStatus};
use teamster_testkit::fixture::Fixture;
use teamster_testkit::replay::replay_bytes;

use super::{FIXTURES, check_stream, has_final_line, status};

/// At most this many line ends and this many other places of one fixture are cut at.
const LINE_ENDS: usize = 100;
const OFFSETS: usize = 20;

/// About `count` of the numbers below `end`, the same on every run, odd enough not to fall on the
/// same place of every line.
fn sample(end: usize, count: usize) -> impl Iterator<Item = usize> {
    let step = (end / count).max(1) | 1;
    (step / 2..end).step_by(step)
}

fn line_ends(fixture: &Fixture) -> Vec<usize> {
    let bytes = fixture.stdout.iter().enumerate();
    let ends: Vec<_> = bytes
        .filter(|(_, b)| **b == b'\n')
        .map(|(i, _)| i + 1)
        .collect();
    let some = ends.len().clamp(1, LINE_ENDS);
    // The first and the last ones are where something begins and ends.
    let middle = sample(ends.len(), some).collect::<Vec<_>>();
    let is_kept = |i: usize| i < 20 || i + 20 > ends.len() || middle.contains(&i);
    let kept = ends.iter().enumerate().filter(|(i, _)| is_kept(*i));
    kept.map(|(_, end)| *end).collect()
}

#[test]
fn how_the_output_is_cut_into_chunks_never_shows() {
    for (fixture, provider) in FIXTURES.iter() {
        let provider = &**provider;
        let stdout = fixture.stdout.as_slice();
        let whole = replay_bytes(provider, [stdout], fixture.exit());
        let same = |chunks: Vec<&[u8]>, what: &str| {
            let cut = replay_bytes(provider, chunks, fixture.exit());
            assert!(cut == whole, "{}, {what}", fixture.dir.display());
        };
        same(stdout.chunks(1).collect(), "byte by byte");
        same(
            stdout.split_inclusive(|b| *b == b'\n').collect(),
            "line by line",
        );
        same(stdout.chunks(997).collect(), "in chunks of 997 bytes");
        for at in sample(stdout.len(), OFFSETS) {
            let (head, tail) = stdout.split_at(at);
            same(vec![head, tail], &format!("cut at {at}"));
        }
    }
}

#[test]
fn output_that_ends_too_early_is_never_completed() {
    let ended = Exit {
        code: Some(0),
        ..Exit::default()
    };
    for (fixture, provider) in FIXTURES.iter() {
        let places = sample(fixture.stdout.len(), OFFSETS);
        for end in line_ends(fixture).into_iter().chain(places) {
            let stdout = &fixture.stdout[..end];
            let what = format!("{}, cut off at {end}", fixture.dir.display());
            for exit in [ended.clone(), fixture.exit()] {
                let replay = replay_bytes(&**provider, [stdout], exit);
                check_stream(&replay, &what);
                if status(&replay) == RunStatus::Completed {
                    assert!(has_final_line(provider.info().id, stdout), "{what}");
                }
            }
        }
    }
}

#[test]
fn a_sample_is_within_its_bounds() {
    assert_eq!(sample(0, 5).count(), 0);
    for end in [1, 7, 100, 9999] {
        let places: Vec<_> = sample(end, 20).collect();
        assert!(
            !places.is_empty() && places.len() <= 20,
            "{end}: {places:?}"
        );
        assert!(places.iter().all(|place| *place < end));
    }
}
