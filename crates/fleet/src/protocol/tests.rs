//! All interleavings of one run on two machines, with faults between any two requests: a worker, a submitter, a runner or
//! a machine that is gone, an answer that is lost, a request that arrives late, a hint that comes twice, a stale read, a
//! log that has aged out. A lease may run out at any moment.

mod copies;
mod explore;
mod homes;
mod world;

use super::{Carrier, Conversation, Effect, Next, Outcome, Seen, Tag};
use copies::Copies;
use explore::{Found, Model, explore};
use homes::{HomePart, Homes};
use world::{Kind, Part, Presence, World};

#[track_caller]
fn assert_holds(world: impl Model, at_least: usize) {
    let report = explore(world, None);
    assert!(report.found.is_empty(), "{report}");
    // A model that explores less proves less.
    assert!(report.states >= at_least, "{report}");
    println!("{report}");
}

/// Asserts that the model finds this violation.
#[track_caller]
fn assert_finds(found: Found, world: impl Model) {
    let report = explore(world, Some(found));
    assert!(report.found.contains_key(&found), "{report}");
}

#[test]
fn two_faults_neither_start_a_run_twice_nor_lose_it() {
    assert_holds(World::new(2), 250_000);
}

#[test]
fn a_run_that_is_cancelled_before_its_start_is_never_started() {
    assert_holds(World::new(1).with(Kind::Cancel), 40_000);
}

#[test]
fn a_run_whose_start_was_refused_is_never_started() {
    assert_holds(World::new(2).with(Kind::RefusedStart), 250_000);
}

#[test]
fn run_that_is_to_stop_is_not_started_by_a_returned_worker() {
    assert_holds(World::new(2).with(Kind::Stop), 250_000);
}

#[test]
fn a_run_that_the_queue_has_refused_is_never_started() {
    assert_holds(World::new(2).with(Kind::Full), 250_000);
}

#[test]
fn a_claim_of_a_machine_whose_disk_is_full_is_handed_on() {
    assert_holds(World::new(1).with(Kind::FullDisk), 10_000);
}

#[test]
fn a_run_is_hinted_again_whatever_its_queue_has() {
    assert_holds(World::new(1).with(Kind::Others), 1_000);
}

#[test]
fn a_hint_that_takes_the_place_of_an_older_one_is_enough() {
    assert_holds(World::new(2).with(Kind::Replaced), 100_000);
    let without = World::new(1).with(Kind::Replaced).without(Part::HintAgain);
    assert_finds(Found::NeverAtRest, without);
}

#[test]
fn a_hint_that_is_newer_than_what_is_read_is_left_to_others() {
    let read = |seen| {
        let pulled = Carrier::pulled(Tag::of(1)).on(Outcome::Folder(None));
        pulled.on(Outcome::Record(seen)).next()
    };
    assert_eq!(read(Seen::NOTHING), Next::Do(Effect::Release));
    let deleted = Seen {
        revision: 7,
        ..Seen::NOTHING
    };
    assert_eq!(read(deleted), Next::Do(Effect::Acknowledge));
}

#[test]
fn a_run_whose_log_has_its_end_does_not_wait_for_its_machine() {
    let without = World::new(1).without(Part::EndAgain);
    assert_finds(Found::NeverAtRest, without);
}

#[test]
fn given_up_run_is_stopped_where_it_is_and_never_started() {
    assert_holds(World::new(2).with(Kind::GiveUp), 250_000);
    for (part, found) in [
        (Part::Fence, Found::NeverAtRest),
        (Part::StopGivenUp, Found::Unwatched),
    ] {
        println!("without {part:?}");
        assert_finds(found, World::new(1).with(Kind::GiveUp).without(part));
    }
}

#[test]
fn a_run_that_was_given_up_is_submitted_once_more_only_once() {
    assert_holds(World::new(1).with(Kind::Rerun), 30_000);
    for (part, found) in [
        (Part::RerunAgain, Found::NeverAtRest),
        (Part::Expected, Found::Twice),
    ] {
        println!("without {part:?}");
        assert_finds(found, World::new(1).with(Kind::Rerun).without(part));
    }
}

#[test]
fn a_record_that_is_gone_takes_no_slot() {
    assert_holds(World::new(1).with(Kind::Gone), 10_000);
    let without = World::new(1).with(Kind::Gone).without(Part::Patience);
    assert_finds(Found::NeverAtRest, without);
}

#[test]
fn a_repeated_submission_is_the_same_run() {
    assert_holds(World::new(1).with(Kind::Repeat), 50_000);
}

#[test]
fn a_store_that_loses_the_start_is_found_out_by_the_witness() {
    assert_holds(World::new(2).with(Kind::StoreLoses), 250_000);
    let without = World::new(1).with(Kind::StoreLoses).without(Part::Witness);
    assert_finds(Found::Twice, without);
}

#[test]
fn a_claim_of_a_process_that_is_gone_is_handed_on() {
    let presence = |presence| World::new(2).presence(presence);
    assert_holds(presence(Presence::Instance), 50_000);
    // The worker comes back under its name, without the claim.
    assert_finds(Found::NeverAtRest, presence(Presence::Name));
}

#[test]
fn each_part_of_the_protocol_is_needed() {
    for (part, found) in [
        (Part::Expected, Found::Twice),
        (Part::Begun, Found::Twice),
        (Part::ReadAfterSilence, Found::NeverAtRest),
        (Part::ReadAfterRefusal, Found::NeverAtRest),
        (Part::HintAgain, Found::NeverAtRest),
    ] {
        println!("without {part:?}");
        assert_finds(found, World::new(1).without(part));
    }
    for (faults, kind, part, found) in [
        (1, Kind::Full, Part::Withdraw, Found::Untrue),
        (1, Kind::Others, Part::OwnHints, Found::NeverAtRest),
        (2, Kind::Stop, Part::Resume, Found::Untrue),
        (2, Kind::RefusedStart, Part::RefusalKept, Found::Untrue),
    ] {
        println!("without {part:?}");
        assert_finds(found, World::new(faults).with(kind).without(part));
    }
    let cancelled = World::new(1).with(Kind::Cancel).without(Part::Expected);
    assert_finds(Found::Untrue, cancelled);
}

#[test]
fn the_copy_of_a_log_has_no_gap_and_is_complete() {
    assert_holds(Copies::new(3), 3_000);
    assert_finds(Found::Gap, Copies::new(1).careless());
    assert_finds(Found::Continued, Copies::new(1).careless());
}

#[test]
fn runs_of_a_conversation_meet_on_one_machine_one_at_a_time() {
    assert_holds(Homes::new(1, Conversation::Key), 10_000);
    assert_holds(Homes::new(2, Conversation::NewSession), 250_000);
}

#[test]
fn each_part_of_the_homes_of_conversations_is_needed() {
    let finds = |found, second, part| assert_finds(found, Homes::new(2, second).without(part));
    finds(Found::Apart, Conversation::Key, HomePart::Expected);
    finds(Found::Together, Conversation::Key, HomePart::OneAtATime);
    finds(
        Found::Together,
        Conversation::NewSession,
        HomePart::OverBeforeMove,
    );
    finds(Found::Apart, Conversation::NewSession, HomePart::OwnRun);
}
