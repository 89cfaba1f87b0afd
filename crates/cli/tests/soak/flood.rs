//! An agent that prints without end.

use std::fs;

use teamster_testkit::proc::wait_until;

use crate::soak::world::{LIMIT, World};

#[test]
fn an_agent_that_prints_without_end_is_interrupted_and_ended() {
    let mut world = World::new("TIMEOUT_SECS=1\n", |plan| plan);
    // It hears nothing any more after the first signal.
    let script = "#!/bin/sh\nread -r line\nexec yes 'this is no JSON at all'\n";
    fs::write(world.path("bin/claude"), script).unwrap();
    world.start();
    world.until("the end of the turn's time", |world| {
        let log = fs::read_to_string(world.orchestrator("agent-loop.log")).unwrap_or_default();
        // On a machine that is slow to read, more waits before than may.
        log.contains("interrupting it") || log.contains("may be kept on disk")
    });
    assert_eq!(world.end().code(), Some(0));
    let mut left = Vec::new();
    let gone = wait_until(LIMIT, || {
        left = world.processes();
        left.is_empty()
    });
    assert!(gone, "{left:?}");
}
