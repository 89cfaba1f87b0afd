//! Events whose JSON could be read back as another one.

use super::*;
use crate::{
    CostSource, LogEntry, ModelUsage, PermissionAnswer, PermissionRequest, RateLimit, UsageReport,
};

/// A decoder with figures and an answer that JSON does not hold as they are. Made by hand.
struct Odd;

impl Decoder for Odd {
    fn line(&mut self, _: &[u8], out: &mut Events) {
        let usage = UsageReport::new(crate::Usage::default()).cost_usd(f64::INFINITY);
        let limit = RateLimit::new("allowed").utilization(f64::NAN);
        let question = PermissionRequest::question(1, "db", "which?", Value::Null);
        let answered = question.answered(&PermissionAnswer::Deny(None));
        out.push(usage);
        out.push(limit);
        out.push(answered);
        out.push(TurnEnd::new(false).cost_usd(f64::MAX));
    }

    fn finish(&mut self, _: &Exit, _: &mut Events) -> DecodedResult {
        let of_model = ModelUsage::default().cost_usd(f64::INFINITY);
        DecodedResult {
            ended_with_error: Some(false),
            cost: Some((f64::NEG_INFINITY, CostSource::Reported)),
            usage_by_model: [("m".to_owned(), of_model)].into(),
            structured_output: Some(Value::Null),
            ..DecodedResult::default()
        }
    }
}

#[test]
fn every_event_is_read_back_as_it_was() {
    let mut assembler = RunAssembler::new(Box::new(Odd)).include_native(true);
    let mut out = Events::new();
    assembler.line(b"{}", &mut out);
    assembler.finish(exit(0, ""), 7, &mut out);
    let entries: Vec<_> = out.drain_entries(3).collect();
    assert_eq!(entries.len(), 5);
    for entry in &entries {
        let written = serde_json::to_string(entry).unwrap();
        let read: LogEntry = serde_json::from_str(&written).unwrap();
        assert_eq!(read, *entry, "{written}");
    }
    let AgentEvent::TurnEnd(end) = &entries[3].event else {
        panic!("{entries:?}");
    };
    assert_eq!(end.cost_usd, None);
    let AgentEvent::Done(done) = &entries[4].event else {
        panic!("{entries:?}");
    };
    let result = &done.result;
    assert_eq!((result.total_cost_usd, result.cost_source), (None, None));
    assert_eq!(result.usage_by_model["m"].cost_usd, None);
    assert_eq!(result.structured_output, Some(Value::Null));
    // It was no tool that was denied.
    assert_eq!(result.status, RunStatus::Completed);
}
