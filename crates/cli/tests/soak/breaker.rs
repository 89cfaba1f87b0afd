//! A session with which the agent dies again and again.

use teamster_testkit::stand_in::Act;
use teamster_testkit::stand_in::witness::What;

use crate::soak::world::World;

#[test]
fn a_session_that_fails_twice_in_a_row_is_given_up() {
    for adapter in ["hot", "cold"] {
        let settings = format!("ADAPTER={adapter}\nMIN_SLEEP=300\nIDLE_STEP=0\n");
        let mut world = World::new(&settings, |plan| {
            plan.turn([])
                .turn([Act::Die])
                .turn([Act::DieAfter])
                .turn([Act::DidWork])
        });
        world.start();
        world.until("the first tick", |world| world.ticks() == 1);
        world.rest();
        let mut waits = Vec::new();
        for ticks in 2..5 {
            world.wake();
            world.until("a tick after a wake", |world| world.ticks() == ticks);
            let rest = world.rest();
            waits.push((rest.seconds, rest.reason.contains("failure")));
        }
        assert_eq!(
            waits,
            [(5, true), (10, true), (300, false)],
            "{}",
            world.tail()
        );
        assert_eq!(world.end().code(), Some(0));
        world.look();
        let mut sessions = Vec::new();
        let mut resumed = Vec::new();
        for seen in &world.seen {
            match &seen.what {
                What::Message { session, .. } => sessions.push(session.clone()),
                What::Start { resumes, .. } => resumed.push(resumes.clone()),
                _ => {}
            }
        }
        let [first, second, third, fresh] = &sessions[..] else {
            panic!("{sessions:?}");
        };
        assert_eq!((first, first), (second, third));
        assert_ne!(first, fresh);
        let first = Some(first.clone());
        let wanted = match adapter {
            // The process of the first turn plays the second one too.
            "hot" => vec![None, first, None],
            _ => vec![None, first.clone(), first, None],
        };
        assert_eq!(resumed, wanted);
    }
}
