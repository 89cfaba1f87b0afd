//! Turns that the CLI begins by itself.

use teamster_core::RunStatus;

use crate::sessions::play::Play;
use crate::sessions::{COST, both, is_plain, times};

#[test]
fn work_in_the_background_ends_in_a_turn_that_was_not_requested() {
    let mut play = Play::new("2.1.197/persist_bg");
    let turn = play.play("[[mock:bg_tool]] go");
    assert_eq!(turn.result.text, "Background started.");
    assert_eq!(turn.cost(), times(COST, 2.0));
    play.rest();
    let [unasked] = &play.unasked[..] else {
        panic!("{:#?}", play.unasked);
    };
    is_plain(unasked, "Second.", COST);
    assert_eq!(unasked.result.session_id, turn.result.session_id);
}

#[test]
fn a_prompt_in_a_turn_that_was_not_requested_waits_for_its_own() {
    for (scenario, cost) in both("bg_prompt") {
        let mut play = Play::new(&scenario);
        let turn = play.play("[[mock:bg_long]] first");
        assert_eq!(turn.cost(), times(cost, 2.0));
        // The CLI has begun the turn, and none of its events has been emitted yet.
        play.idle(r#""status":"requesting""#);
        assert_eq!(play.session.turn(), None);
        let turn = play.play("[[mock:two]] second");
        assert!(turn.result.text.starts_with("bg0 bg1 "), "{turn:#?}");
        assert!(turn.result.text.ends_with("Answer two."));
        assert_eq!(turn.result.final_message.as_deref(), Some("Answer two."));
        assert_eq!(turn.end(), (Some((24, 50)), times(cost, 2.0)));
        play.rest();
        assert!(play.unasked.is_empty());
    }
}

#[test]
fn interrupt_in_an_unasked_turn_withdraws_the_prompt() {
    for (scenario, _) in both("bg_int") {
        let mut play = Play::new(&scenario);
        play.play("[[mock:bg_long]] first");
        play.idle(r#""status":"requesting""#);
        play.turn("[[mock:two]] second");
        play.until("bg3 ");
        play.interrupt();
        let turn = play.end();
        assert_eq!(turn.result.status, RunStatus::Aborted);
        assert!(turn.result.text.starts_with("bg0 "));
        play.rest();
        assert!(play.unasked.is_empty());
    }
}

#[test]
fn a_turn_that_was_not_requested_can_be_interrupted() {
    for (scenario, _) in both("bg_int") {
        let mut play = Play::new(&scenario);
        play.play("[[mock:bg_long]] first");
        play.idle("bg3 ");
        assert_eq!(
            play.session.turn(),
            Some(teamster_core::provider::TurnOrigin::Unasked)
        );
        play.interrupt();
        play.rest();
        assert_eq!(play.unasked[0].result.status, RunStatus::Aborted);
    }
}
