//! Background agents. A turn ends only after its agents have ended.

use teamster_core::provider::SessionCommand;
use teamster_core::{PermissionAnswer, PermissionPolicy, RunStatus, ToolUse};
use teamster_testkit::events::payloads;

use crate::sessions::play::{Play, PlayedTurn};
use crate::sessions::{is_plain, times};

/// Cost of a message of the recorded model, in micro-USD.
const COST_OPUS_5: f64 = 685.0;
const COST_OPUS_5_5: f64 = 548.0;

/// Versions in which agents run in the background by default.
const VERSIONS: [(&str, f64); 2] = [("2.1.240", COST_OPUS_5), ("2.1.330", COST_OPUS_5_5)];

fn played(scenario: &str) -> (Play, PlayedTurn) {
    let (_, name) = scenario.split_once('/').unwrap();
    let mut play = Play::new(scenario);
    let turn = play.play(&format!("[[mock:{name}]] first"));
    (play, turn)
}

/// Checks that the session continues after a turn, without unasked turns.
fn continues(mut play: Play, cost: f64) {
    let turn = play.play("[[mock:two]] second");
    is_plain(&turn, "Answer two.", Some(cost));
    play.rest();
    assert!(play.unasked.is_empty(), "{:#?}", play.unasked);
}

#[test]
fn a_turn_ends_when_its_agent_has_reported() {
    for (version, cost) in VERSIONS {
        for (name, start, end) in [
            ("agent", "It works on.", "All done."),
            ("agent_bg", "Agent started.", "Told."),
        ] {
            let (play, turn) = played(&format!("{version}/{name}"));
            assert_eq!(turn.result.status, RunStatus::Completed);
            assert_eq!(turn.result.text, format!("Delegating.{start}{end}"));
            assert_eq!(turn.result.final_message.as_deref(), Some(end));
            let names: Vec<_> = turn.tools().into_iter().map(|(name, _)| name).collect();
            assert_eq!(names, ["Agent", "Bash"]);
            assert_eq!(turn.outputs()[1], ("sub", Some(false)));
            assert!(turn.result.open_tool_ids.is_empty());
            // Three requests of the main agent, two of the sub-agent.
            assert_eq!(turn.end(), (Some((60, 125)), Some(5.0 * cost)));
            assert_eq!(
                (turn.tokens(), turn.cost()),
                (Some((60, 125)), times(Some(cost), 5.0))
            );
            continues(play, cost);
        }
    }
}

#[test]
fn the_oldest_version_ends_it_so_too() {
    let (play, turn) = played("2.1.197/agent_bg");
    assert_eq!(turn.result.text, "Delegating.Agent started.Told.");
    assert_eq!(turn.tools().len(), 2);
    assert_eq!(turn.tokens(), Some((60, 125)));
    continues(play, 685.0);
}

#[test]
fn a_turn_waits_for_the_last_of_several_agents() {
    for (version, cost) in VERSIONS {
        let (play, turn) = played(&format!("{version}/agent_parallel"));
        let starts = "Delegating.It works on.All done.Really done.Finished.";
        assert_eq!(turn.result.text, starts);
        let names: Vec<_> = turn.tools().into_iter().map(|(name, _)| name).collect();
        assert_eq!(names.iter().filter(|name| **name == "Agent").count(), 3);
        assert_eq!(names.iter().filter(|name| **name == "Bash").count(), 2);
        assert!(turn.outputs().contains(&("slow", Some(false))));
        // Five requests of the main agent, seven of the sub-agents.
        assert_eq!(turn.end(), (Some((144, 300)), times(Some(cost), 12.0)));
        continues(play, cost);
    }
}

#[test]
fn an_agent_whose_report_the_turn_takes_in_begins_no_other() {
    for (version, cost) in VERSIONS {
        let (play, turn) = played(&format!("{version}/agent_tool"));
        assert_eq!(turn.result.text, "Delegating.Waiting.Heard it.");
        assert_eq!(turn.end(), (Some((48, 100)), times(Some(cost), 4.0)));
        continues(play, cost);
    }
}

#[test]
fn agent_that_ends_during_the_answer_is_reported_after_it() {
    for (version, cost) in VERSIONS {
        let (play, turn) = played(&format!("{version}/agent_mainslow"));
        assert_eq!(turn.result.text, "Delegating.a b c d e f Told late.");
        assert_eq!(turn.end(), (Some((48, 100)), times(Some(cost), 4.0)));
        continues(play, cost);
    }
}

#[test]
fn an_interrupt_ends_the_agents_and_the_turn() {
    for (version, cost) in VERSIONS {
        let mut play = Play::new(&format!("{version}/agent_int"));
        play.turn("[[mock:agent_slow]] first");
        play.until("\"terminal_reason\"");
        play.interrupt();
        let turn = play.end();
        assert_eq!(turn.result.status, RunStatus::Aborted);
        assert_eq!(turn.result.text, "Delegating.It works on.");
        assert!(
            turn.notices().iter().any(|it| it.ends_with("(stopped)")),
            "{turn:#?}"
        );
        continues(play, cost);
    }
}

#[test]
fn an_agent_may_ask_for_permission_while_the_turn_waits_for_it() {
    for (version, cost) in VERSIONS {
        let mut play = Play::with(&format!("{version}/agent_ask"), |options| {
            options.permissions = PermissionPolicy::ask(|_| async { PermissionAnswer::Allow });
        });
        play.turn("[[mock:agent_ask]] first");
        play.until("\"can_use_tool\"");
        assert_eq!(play.asked.len(), 1);
        play.command(SessionCommand::Answer(
            play.asked[0].id,
            PermissionAnswer::Allow,
        ));
        let turn = play.end();
        assert_eq!(turn.result.text, "Delegating.It works on.All done.");
        assert_eq!(turn.tools().len(), 2);
        assert_eq!(turn.end(), (Some((60, 125)), times(Some(cost), 5.0)));
        continues(play, cost);
    }
}

#[test]
fn a_failed_agent_is_a_notice_and_the_turn_continues() {
    let (play, turn) = played("2.1.330/agent_fails");
    assert_eq!(turn.result.status, RunStatus::Completed);
    assert_eq!(turn.result.text, "Delegating.It works on.All done.");
    let failed = "API Error: 400 mock: the sub-agent fails";
    assert!(turn.notices().contains(&failed), "{:?}", turn.notices());
    assert_eq!(
        turn.end(),
        (Some((36, 75)), times(Some(COST_OPUS_5_5), 3.0))
    );
    continues(play, COST_OPUS_5_5);
}

#[test]
fn an_agent_that_starts_another_waits_for_it() {
    let (play, turn) = played("2.1.330/agent_nested");
    assert_eq!(turn.result.text, "Delegating.It works on.All done.");
    let parents: Vec<_> = payloads::<ToolUse>(&turn.events)
        .map(|it| it.parent_tool_id.as_deref())
        .collect();
    assert_eq!(parents, [None, Some("toolu_mock_001_1")]);
    // The calls of the inner agent are not printed, but its usage counts.
    assert_eq!(
        turn.end(),
        (Some((84, 175)), times(Some(COST_OPUS_5_5), 7.0))
    );
    continues(play, COST_OPUS_5_5);
}

#[test]
fn a_turn_waits_for_a_workflow() {
    let (play, turn) = played("2.1.330/workflow");
    assert_eq!(turn.result.text, "By a workflow.It works on.All done.");
    assert_eq!(
        turn.end(),
        (Some((96, 200)), times(Some(COST_OPUS_5_5), 8.0))
    );
    continues(play, COST_OPUS_5_5);
}
