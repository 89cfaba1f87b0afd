//! `teamster run --record`.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use teamster_testkit::fixture::Fixture;
use teamster_testkit::replay::{ReplayOptions, replay};

use crate::cli::{Claude, events, run};

#[test]
fn a_recorded_run_can_be_replayed() {
    let claude = Claude::plays("tool_parallel", 0);
    let dir = claude.path("bug/1");
    let record = dir.to_str().unwrap();
    let ended = run(claude
        .run(["hello", "--json", "--record", record, "--env=MY_TOKEN"])
        .env("MY_TOKEN", "secret-1"))
    .quiet();
    let printed = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../fixtures/claude/2.1.197/tool_parallel/stdout.ndjson"
    );
    let fixture = Fixture::load(&dir).unwrap();
    assert_eq!(fixture.stdout, fs::read(printed).unwrap());
    assert_eq!(fixture.meta.prompt, "hello");
    assert_eq!(fixture.meta.version.as_deref(), Some("2.1.197"));
    let files = fs::read_dir(&dir).unwrap();
    for file in files.map(Result::unwrap) {
        let mode = file.metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{file:?}");
    }
    assert_eq!(fixture.meta.env["MY_TOKEN"], "…");
    let provider = teamster::Providers::builtin().get("claude").unwrap();
    let replay = replay(&fixture, &*provider, ReplayOptions::default());
    assert_eq!(replay.events, events(&ended.stdout));
}
