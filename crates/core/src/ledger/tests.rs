use super::*;
use crate::{Retract, Text, ToolKind, ToolUse};

fn say(ledger: &mut TextLedger, id: Option<&str>, text: &str) {
    let text = Text::new(text).message_id(id.map(Id::from));
    ledger.event(&AgentEvent::Text(text));
}

#[test]
fn messages_end_where_the_id_changes_or_a_tool_is_used() {
    let mut ledger = TextLedger::default();
    say(&mut ledger, None, "I lo");
    say(&mut ledger, None, "ok.");
    let call = ToolUse::new("Read", "t", ToolKind::Read, serde_json::json!({}));
    ledger.event(&AgentEvent::ToolUse(Box::new(call)));
    say(&mut ledger, None, "Done.");
    assert_eq!(ledger.last_message().as_deref(), Some("Done."));
    say(&mut ledger, Some("m"), "mo");
    say(&mut ledger, Some("n"), "other");
    say(&mut ledger, Some("m"), "re");
    let m = Id::from("m");
    let n = Id::from("n");
    let pieces: Vec<_> = ledger.pieces().collect();
    assert_eq!(
        pieces,
        [
            (None, "I look."),
            (None, "Done."),
            (Some(&m), "mo"),
            (Some(&n), "other"),
            (Some(&m), "re"),
        ]
    );
    assert_eq!((ledger.count(), ledger.count_over()), (5, 4));
    assert_eq!(ledger.last_message().as_deref(), Some("more"));
    ledger.event(&AgentEvent::Retract(Retract { message_id: m }));
    assert_eq!(ledger.text(), "I look.Done.other");
    assert_eq!(ledger.last_message().as_deref(), Some("other"));
    say(&mut ledger, Some("n"), "!");
    assert_eq!(
        ledger.count(),
        4,
        "text after a retracted message is another one"
    );
}

#[test]
fn a_turn_that_ends_ends_the_message() {
    let mut ledger = TextLedger::default();
    say(&mut ledger, Some("m"), "one");
    let end = crate::TurnEnd::new(false);
    ledger.event(&AgentEvent::TurnEnd(Box::new(end)));
    assert_eq!((ledger.count(), ledger.count_over()), (1, 1));
    say(&mut ledger, Some("m"), "two");
    assert_eq!((ledger.count(), ledger.count_over()), (2, 1));
    assert_eq!(ledger.last_message().as_deref(), Some("onetwo"));
}

#[test]
fn white_space_is_blank_but_not_empty() {
    let mut ledger = TextLedger::default();
    say(&mut ledger, Some("a"), " \n");
    say(&mut ledger, Some("b"), "one");
    assert!(!ledger.is_blank());
    ledger.retract(&Id::from("b"));
    assert!(ledger.is_blank() && !ledger.is_empty());
    say(&mut ledger, Some("c"), "é!");
    let pieces: Vec<_> = ledger.pieces().map(|(_, text)| text).collect();
    assert_eq!(pieces, [" \n", "é!"]);
    ledger.truncate(1);
    assert_eq!((ledger.len(), ledger.count()), (2, 1));
    say(&mut ledger, Some("a"), "x");
    assert_eq!(ledger.count(), 2);
}

#[test]
fn a_call_that_has_ended_is_known_and_not_open() {
    let mut tools = ToolLedger::default();
    let id = Id::from("t");
    assert!(tools.start(&id, 1));
    assert!(!tools.start(&id, 2));
    assert_eq!(tools.open().len(), 1);
    *tools.open_mut(&id).unwrap() += 10;
    assert_eq!(tools.end(&id), Some(&11));
    assert_eq!(tools.end(&id), None);
    assert_eq!(tools.open_mut(&id), None);
    assert_eq!((tools.get(&id), tools.open().len()), (Some(&11), 0));
}

#[test]
fn open_calls_keep_their_order_when_others_end() {
    let mut tools = ToolLedger::default();
    let id = |number: usize| Id::from(format!("t{number}").as_str());
    for number in 0..6 {
        assert!(tools.start(&id(number), number));
    }
    for (ends, data) in [(3, Some(3)), (0, Some(0)), (3, None), (9, None)] {
        assert_eq!(tools.end(&id(ends)).copied(), data, "{ends}");
    }
    // The call of an id that was used does not open again.
    assert!(!tools.start(&id(0), 10) && !tools.start(&id(4), 14));
    assert!(tools.start(&id(6), 6));
    *tools.open_mut(&id(4)).unwrap() += 100;
    let open: Vec<_> = tools.open().map(|(_, data)| *data).collect();
    assert_eq!(open, [1, 2, 104, 5, 6]);
    let last = tools.open().next_back();
    assert_eq!(last, Some((&id(6), &6)));
    assert_eq!((tools.calls().len(), tools.get(&id(3))), (7, Some(&3)));
    assert_eq!(tools.into_open(), [1, 2, 4, 5, 6].map(id));
}

#[test]
fn a_cost_that_is_partly_an_estimate_is_one() {
    let mut used = UsageLedger::default();
    assert_eq!(used.cost_source(), None);
    let mut result = RunResult::default().total_cost_usd(0.5);
    let mut reported = UsageLedger::default();
    reported.result(&result);
    assert_eq!(reported.cost_source(), Some(CostSource::Reported));
    result.cost_source = Some(CostSource::Estimated);
    used.result(&result);
    // A later result without a cost reports nothing about it.
    used.result(&RunResult::default());
    for both in [used.plus(reported), reported.plus(used)] {
        assert_eq!(both.cost_usd, Some(1.0));
        assert_eq!(both.cost_source(), Some(CostSource::Estimated));
    }
}

#[test]
fn only_later_pieces_of_a_message_are_removed() {
    let mut ledger = TextLedger::default();
    ledger.push_more("lost");
    assert!(ledger.is_empty());
    let (m, n) = (Id::from("m"), Id::from("n"));
    for (id, text) in [(&m, "a"), (&n, "b"), (&m, "c"), (&m, "d"), (&n, "e")] {
        ledger.push(Some(id), text);
    }
    assert_eq!((ledger.count(), ledger.text()), (4, "abcde"));
    ledger.push_more("f");
    ledger.end_message();
    ledger.push_more("lost");
    // A message that has no later piece stays.
    ledger.retract_after(4, &n);
    assert_eq!(ledger.text(), "abcdef");
    ledger.retract_after(1, &m);
    assert_eq!((ledger.count(), ledger.text()), (3, "abef"));
    ledger.retract_after(0, &n);
    assert_eq!(ledger.clone().into_text(), "a");
    // The last message was one of the removed, so text after it is another.
    ledger.push(Some(&m), "g");
    assert_eq!((ledger.count(), ledger.text()), (2, "ag"));
}

#[test]
fn figures_of_events_replace_earlier_ones() {
    let mut used = UsageLedger::default();
    let usage = |n: u64| Usage::default().input_tokens(n);
    let report = crate::UsageReport::new(usage(1)).cost_usd(0.5);
    used.event(&report.cost_source(CostSource::Estimated).into());
    assert_eq!(
        (used.cost_usd, used.cost_source()),
        (Some(0.5), Some(CostSource::Estimated))
    );
    // Without a cost, the earlier one stays with its source.
    used.event(&crate::UsageReport::new(usage(3)).into());
    assert_eq!((used.usage, used.cost_usd), (Some(usage(3)), Some(0.5)));
    assert!(used.is_estimate);
    used.event(&crate::TurnEnd::new(false).cost_usd(0.75).into());
    assert_eq!(
        (used.cost_usd, used.cost_source()),
        (Some(0.75), Some(CostSource::Reported))
    );
    used.result(&RunResult::default());
    assert_eq!((used.usage, used.cost_usd), (Some(usage(3)), Some(0.75)));
}
