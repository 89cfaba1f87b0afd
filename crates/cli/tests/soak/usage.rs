//! `usage.jsonl` against what was really used.

use std::collections::HashMap;
use std::fs;

use serde_json::Value;
use teamster_testkit::stand_in::witness::TurnFigures;

use crate::soak::truth::Truth;
use crate::soak::world::World;

/// Every turn is there once, if its loop lived long enough, and what is there was used.
pub(crate) fn check(world: &World, truth: &mut Truth) {
    let text = fs::read_to_string(world.orchestrator("usage.jsonl")).unwrap_or_default();
    let mut records: HashMap<(String, u64), Vec<Value>> = HashMap::new();
    for line in text.lines() {
        match serde_json::from_str::<Value>(line) {
            Ok(record) => {
                let session = record["session_id"].as_str().unwrap_or_default().to_owned();
                let input = record["input_tokens"].as_u64().unwrap_or_default();
                records.entry((session, input)).or_default().push(record);
            }
            // The last of a loop that was killed.
            Err(_) => truth.count("records cut off"),
        }
    }
    let turns = std::mem::take(&mut truth.turns);
    for (figures, must_be_there) in &turns {
        if figures.input_tokens == 0 {
            continue;
        }
        let found = records.remove(&(figures.session.clone(), figures.input_tokens));
        match found.as_deref() {
            Some([record]) => {
                truth.count("turns in usage.jsonl");
                let wrong = differs(figures, record);
                truth.must(wrong.is_none(), || {
                    format!("{wrong:?}: {figures:?}, recorded as {record}")
                });
            }
            Some(several) => {
                let several = several.len();
                truth.must(false, || format!("recorded {several} times: {figures:?}"));
            }
            None => truth.must(!must_be_there, || format!("not recorded: {figures:?}")),
        }
    }
    for ((session, input), left) in records {
        // The first answer of a turn that was cut off: one that has no end, and another number for each.
        let turn = input.checked_sub(1000);
        let ended = turn.is_some_and(|turn| {
            (turns.iter()).any(|(figures, _)| figures.turn == turn && !figures.interrupted)
        });
        truth.must(left.len() == 1 && !ended, || {
            format!("nobody used that, in {session}: {left:?}")
        });
        truth.count("parts of turns in usage.jsonl");
    }
}

/// What is not as it was reported.
fn differs(figures: &TurnFigures, record: &Value) -> Option<&'static str> {
    for (name, figure) in [
        ("output_tokens", figures.output_tokens),
        ("cache_read_tokens", figures.cache_read_tokens),
        ("cache_write_tokens", 0),
    ] {
        if record[name] != figure {
            return Some(name);
        }
    }
    let cost = record["cost_usd"].as_f64();
    let wanted = f64::from(u32::try_from(figures.cost_micro_usd).unwrap()) / 1e6;
    if record["cost_source"] != "reported" {
        return Some("cost_source");
    }
    cost.is_none_or(|cost| (cost - wanted).abs() > 1e-9)
        .then_some("cost_usd")
}
