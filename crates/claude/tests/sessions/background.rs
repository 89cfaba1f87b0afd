//! What the CLI does without being asked.

use teamster_core::RunStatus;

use crate::sessions::play::Play;
use crate::sessions::{COST, both, is_plain, times};

#[test]
fn work_in_the_background_ends_in_a_turn_that_nobody_asked_for() {
    let mut play = Play::new("2.1.197/persist_bg");
    let told = play.play("[[mock:bg_tool]] go");
    assert_eq!(told.result.text, "Background started.");
    assert_eq!(told.cost(), times(COST, 2.0));
    play.rest();
    let [unasked] = &play.unasked[..] else {
        panic!("{:#?}", play.unasked);
    };
    is_plain(unasked, "Second.", COST);
    assert_eq!(unasked.result.session_id, told.result.session_id);
}

#[test]
fn a_prompt_in_a_turn_that_nobody_asked_for_waits_for_its_own() {
    for (scenario, cost) in both("bg_prompt") {
        let mut play = Play::new(&scenario);
        let told = play.play("[[mock:bg_long]] first");
        assert_eq!(told.cost(), times(cost, 2.0));
        // The CLI has begun, and nothing of it has been told yet.
        play.idle(r#""status":"requesting""#);
        assert_eq!(play.session.turn(), None);
        let told = play.play("[[mock:two]] second");
        assert!(told.result.text.starts_with("bg0 bg1 "), "{told:#?}");
        assert!(told.result.text.ends_with("Answer two."));
        assert_eq!(told.result.final_message.as_deref(), Some("Answer two."));
        assert_eq!(told.end(), (Some((24, 50)), times(cost, 2.0)));
        play.rest();
        assert!(play.unasked.is_empty());
    }
}

#[test]
fn an_interrupt_in_a_turn_that_nobody_asked_for_takes_the_prompt_back() {
    for (scenario, _) in both("bg_int") {
        let mut play = Play::new(&scenario);
        play.play("[[mock:bg_long]] first");
        play.idle(r#""status":"requesting""#);
        play.turn("[[mock:two]] second");
        play.until("bg3 ");
        play.interrupt();
        let told = play.end();
        assert_eq!(told.result.status, RunStatus::Aborted);
        assert!(told.result.text.starts_with("bg0 "));
        play.rest();
        assert!(play.unasked.is_empty());
    }
}

#[test]
fn a_turn_that_nobody_asked_for_can_be_interrupted() {
    for (scenario, _) in both("bg_int") {
        let mut play = Play::new(&scenario);
        play.play("[[mock:bg_long]] first");
        play.idle("bg3 ");
        assert_eq!(play.session.turn(), Some(false));
        play.interrupt();
        play.rest();
        assert_eq!(play.unasked[0].result.status, RunStatus::Aborted);
    }
}
