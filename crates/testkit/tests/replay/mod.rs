//! Every fixture of the repository, replayed whole with its provider's decoder, and garbled with all
//! of them. In pieces and cut short it is replayed by the conformance suite, in each provider's tests.
#![cfg(test)]

use std::path::Path;
use std::sync::{Arc, LazyLock};

use teamster::{AgentEvent, CliProvider};
use teamster_testkit::fixture::{Fixture, discover};
use teamster_testkit::replay::Replay;

mod garbled;
mod whole;

/// The fixtures of the repository with their providers.
static FIXTURES: LazyLock<Vec<(Fixture, Arc<dyn CliProvider>)>> = LazyLock::new(|| {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures");
    let load = |dir: std::path::PathBuf| {
        let fixture = Fixture::load(&dir).unwrap();
        let id = fixture.meta.cli.as_deref().unwrap_or_default();
        let provider = teamster::provider(id)
            .unwrap_or_else(|| panic!("{}: no provider {id:?}", dir.display()));
        (fixture, provider)
    };
    let found = discover(&root);
    assert!(found.errors.is_empty(), "{:?}", found.errors);
    let found: Vec<_> = found.fixtures.into_iter().map(load).collect();
    assert!(!found.is_empty(), "no fixtures in {}", root.display());
    found
});

/// What holds for every stream, whatever the CLI printed.
#[track_caller]
fn check_stream(replay: &Replay, what: impl std::fmt::Display) {
    if let Err(violation) = &replay.grammar {
        panic!("{what}: {violation}");
    }
    let is_done = |event: &&AgentEvent| matches!(event, AgentEvent::Done(_));
    assert_eq!(replay.events.iter().filter(is_done).count(), 1, "{what}");
}
