//! Sessions: `chat --detach`, `say` and `attach`.

use std::fs;

use teamster_testkit::proc::wait_until;

use super::Machine;
use crate::cli::chat::Agent;
use crate::cli::{LIMIT, run};

#[test]
fn a_session_is_spoken_with_from_elsewhere() {
    let agent = Agent::new();
    let machine = Machine::new(agent.path("").as_path(), &agent.path("claude"));
    let started =
        run(&mut machine.remote(["chat", "--detach", "claude", "--permission", "read-only"]));
    assert_eq!((started.code, &*started.stderr), (Some(0), ""));
    let id = started.stdout.trim_end();
    let said = machine.same(["say", id, "hello", "--quiet"]);
    assert_eq!((said.code, &*said.stdout), (Some(0), "hello\n"));

    let waiting = run(&mut machine.remote(["say", id, "wait", "--no-wait"])).ok();
    assert_eq!(waiting.stdout, format!("{id}.3\n"));
    run(&mut machine.remote(["say", id, "more"])).fails(1, "--queue waits");
    let live = run(&mut machine.remote(["runs", "list", "--live", "--json"])).stdout;
    assert!(
        live.contains(r#""turns":2"#) && live.contains(r#""state":"running""#),
        "{live}"
    );
    assert!(wait_until(LIMIT, || agent
        .received()
        .contains("\"content\":\"wait\"")));
    let interrupt = machine
        .served
        .request("POST", &format!("/v1/sessions/{id}/interrupt"))
        .send();
    assert_eq!(interrupt.status, 204, "{}", interrupt.body);
    // A prompt that waits for the end of another turn.
    let queued = run(&mut machine.remote(["say", id, "queued", "--queue", "--quiet"]));
    assert_eq!((queued.code, &*queued.stdout), (Some(0), "queued\n"));

    // An image of this machine goes along.
    let image = agent.path("screen.png");
    fs::write(&image, b"\x89PNG\r\n\x1a\n").unwrap();
    let image = image.to_str().unwrap();
    run(&mut machine.remote(["say", id, "look", "--image", image, "--quiet"])).ok();
    assert!(agent.received().contains("iVBORw0KGgo="), "no image came");
    run(&mut machine.remote(["say", id, "look", "--image", "none.png"])).fails(2, "none.png");

    run(&mut machine.remote(["cancel", id])).ok();
    machine.same(["attach", id]);
    let local = run(&mut machine.local(["attach", id, "--json"]));
    let remote = run(&mut machine.remote(["attach", id, "--json"]));
    assert_eq!((remote.code, remote.stdout), (local.code, local.stdout));
    machine.same(["say", id, "late"]);
    machine.same(["wait", id]);
}
