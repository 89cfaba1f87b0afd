//! Files that change while the loop runs, or cannot.

use std::fs;
use std::process::Command;

use teamster_testkit::stand_in::Act;
use teamster_testkit::stand_in::witness::What;

use crate::soak::world::World;

/// Sleeps that are longer than anything is waited for.
const SETTINGS: &str = "MIN_SLEEP=300\nIDLE_STEP=0\n";

/// Plays the next tick.
fn tick(world: &mut World) {
    let ticks = world.ticks();
    world.wake();
    world.until("a tick after a wake", |world| world.ticks() == ticks + 1);
    world.rest();
}

/// How the last process was started, and the session that it resumed.
fn last_start(world: &mut World) -> (String, Option<String>) {
    world.look();
    let start = world.seen.iter().rev().find_map(|seen| match &seen.what {
        What::Start { argv, resumes, .. } => Some((argv.join(" "), resumes.clone())),
        _ => None,
    });
    start.unwrap()
}

#[test]
fn servers_are_looked_for_whenever_a_process_is_started() {
    let mut world = World::new(SETTINGS, |plan| {
        plan.turn([Act::ResetSession]).turn([Act::ResetSession])
    });
    let servers = world.path("agent/.mcp.json");
    world.start();
    world.until("the first tick", |world| world.ticks() == 1);
    world.rest();
    let has = |world: &mut World| last_start(world).0.contains("--mcp-config .mcp.json");
    assert!(!has(&mut world));
    fs::write(&servers, "{\"mcpServers\": {}}").unwrap();
    tick(&mut world);
    assert!(has(&mut world), "{}", world.tail());
    fs::remove_file(&servers).unwrap();
    tick(&mut world);
    assert!(!has(&mut world), "{}", world.tail());
    assert_eq!(world.end().code(), Some(0));
}

#[test]
fn abandoned_session_stays_so_after_a_full_disk() {
    let mut world = World::new(SETTINGS, |plan| plan);
    world.start();
    world.until("the first tick", |world| world.ticks() == 1);
    world.rest();
    // As a full disk: what is there stays, and nothing can be written.
    let pid = world.pid().to_string();
    let status = Command::new("prlimit")
        .args(["--fsize=0", "--pid", &pid])
        .status();
    assert!(status.unwrap().success());
    world.touch("clear-session");
    world.wake();
    world.until("a tick after a wake", |world| world.ticks() == 2);
    world.kill_loop();
    let sessions: Vec<_> = (world.seen.iter())
        .filter_map(|seen| match &seen.what {
            What::Message {
                session,
                turn: Some(_),
                ..
            } => Some(session.clone()),
            _ => None,
        })
        .collect();
    assert_ne!(sessions[0], sessions[1]);
    world.start();
    world.until("a tick of another loop", |world| world.ticks() == 3);
    let resumed = last_start(&mut world).1;
    assert_ne!(resumed.as_ref(), Some(&sessions[0]), "{}", world.tail());
    assert_eq!(world.end().code(), Some(0));
}
