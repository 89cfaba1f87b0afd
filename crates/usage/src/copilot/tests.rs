//! Tests with handwritten lines in the form of real ones, of versions that write no records of requests.

use super::*;
use crate::source::Found;

/// Returns the records, and whether a process ended without figures.
fn read(lines: &[String]) -> (Vec<Record>, bool, u64) {
    let mut found = Vec::new();
    let mut take = |what| match what {
        Found::Record(record) => found.push(record),
        _ => unreachable!("of Claude only"),
    };
    let mut sink = Sink::new(&mut take);
    let mut reader = Reader::default();
    for line in lines {
        let bytes = line.as_bytes();
        let complete = true;
        reader.line(Line { bytes, complete }, &mut sink);
    }
    reader.end_of_process();
    let malformed = sink.diagnostics.malformed_lines;
    (found, reader.without_figures, malformed)
}

fn begin(kind: &str) -> String {
    format!(
        r#"{{"type":"session.{kind}","data":{{"sessionId":"s","context":{{"cwd":"/w"}},"sessionLimits":null}},"timestamp":"2026-11-22T19:00:00Z"}}"#
    )
}

fn asked() -> String {
    r#"{"type":"assistant.message","data":{"model":"m"},"timestamp":"2026-11-22T19:00:01Z"}"#.into()
}

fn shutdown(requests: u64, input: u64, output: u64) -> String {
    format!(
        r#"{{"data":{{"modelMetrics":{{"m":{{"requests":{{"count":{requests},"cost":{requests}.5}},"usage":{{"inputTokens":{input},"outputTokens":{output},"cacheReadTokens":10,"cacheWriteTokens":5}}}}}}}},"type":"session.shutdown","id":"e{requests}","timestamp":"2026-11-22T19:00:02Z"}}"#
    )
}

fn record(input: u64) -> String {
    format!(
        r#"{{"type":"session.usage_record","id":"r{input}","agentId":"a","data":{{"usage":{{"model":"m","inputTokens":{input},"outputTokens":2,"cacheReadTokens":10,"cacheWriteTokens":5,"cost":1}}}},"timestamp":"2026-11-22T19:00:01Z"}}"#
    )
}

#[test]
fn of_two_sums_the_second_counts_as_the_difference() {
    let (found, without, malformed) = read(&[
        begin("start"),
        asked(),
        shutdown(1, 115, 7),
        begin("resume"),
        asked(),
        shutdown(3, 315, 17),
    ]);
    let figures: Vec<_> = found
        .iter()
        .map(|r| (r.requests, r.usage.input_tokens, r.usage.output_tokens))
        .collect();
    assert_eq!(figures, [(1, Some(100), Some(7)), (2, Some(200), Some(10))]);
    assert_eq!(found[1].usage.cache_read_tokens, Some(0));
    assert_eq!(found[1].premium_requests, Some(2.0));
    assert_eq!(found[1].directory.as_deref(), Some("/w"));
    assert_eq!((without, malformed), (false, 0));
}

#[test]
fn without_limits_sums_are_those_of_a_process() {
    let resumed = begin("resume").replace(",\"sessionLimits\":null", "");
    let lines = [
        begin("start"),
        asked(),
        shutdown(1, 115, 7),
        resumed,
        asked(),
        shutdown(3, 315, 17),
    ];
    let (found, ..) = read(&lines);
    let figures: Vec<_> = found
        .iter()
        .map(|r| (r.requests, r.usage.output_tokens))
        .collect();
    assert_eq!(figures, [(1, Some(7)), (3, Some(17))]);
}

#[test]
fn a_sum_that_began_again_counts_as_it_is() {
    let (found, ..) = read(&[
        begin("start"),
        asked(),
        shutdown(4, 415, 40),
        begin("resume"),
        asked(),
        shutdown(1, 115, 7),
    ]);
    let output: Vec<_> = found.iter().map(|r| r.usage.output_tokens).collect();
    assert_eq!(output, [Some(40), Some(7)]);
}

#[test]
fn a_sum_without_a_figure_continues_the_previous_one() {
    let (found, ..) = read(&[
        begin("start"),
        asked(),
        shutdown(1, 115, 7),
        begin("resume"),
        asked(),
        shutdown(3, 315, 17).replace(":315", ":null"),
        begin("resume"),
        asked(),
        shutdown(4, 415, 20),
    ]);
    let figures: Vec<_> = found
        .iter()
        .map(|r| (r.requests, r.usage.input_tokens, r.usage.output_tokens))
        .collect();
    let expected = [
        (1, Some(100), Some(7)),
        (2, None, Some(10)),
        (1, Some(300), Some(3)),
    ];
    assert_eq!(figures, expected);
}

#[test]
fn recorded_requests_are_not_counted_again_with_the_sum() {
    let sum = shutdown(1, 20, 2).replace("\"cost\":1.5", "\"cost\":1");
    let (found, without, _) = read(&[begin("start"), asked(), record(20), sum]);
    assert_eq!(found.len(), 1);
    assert!(found[0].subagent && !without);
    let (found, ..) = read(&[begin("start"), record(20), record(30), shutdown(1, 20, 2)]);
    assert_eq!(found.len(), 2);
}

#[test]
fn process_without_figures_is_reported_and_none_are_invented() {
    let (found, without, _) = read(&[begin("start"), asked()]);
    assert_eq!((found.len(), without), (0, true));
    let (found, without, _) = read(&[begin("start"), asked(), begin("resume"), record(1)]);
    assert_eq!((found.len(), without), (1, true));
    let (_, without, _) = read(&[begin("start")]);
    assert!(!without);
}

#[test]
fn invalid_figures_are_reported() {
    let (found, _, malformed) = read(&[
        begin("start"),
        r#"{"type":"session.usage_record","data":{"usage":{"model":"m","inputTokens":-1}},"timestamp":"2026-11-22T19:00:01Z"}"#.into(),
        r#"{"type":"session.usage_record","data":{"usage":{"inputTokens":1}},"timestamp":"2026-11-22T19:00:01Z"}"#.into(),
        r#"{"type":"session.shutdown","data":{"modelMetrics":[]}}"#.into(),
        r#"{"type":"session.shutdown"#.into(),
    ]);
    assert_eq!((found.len(), malformed), (0, 4));
}

/// Returns lines with this number of premium requests in the record, and this one in the sum at the end.
fn premium(recorded: f64, sum: f64) -> [String; 3] {
    let record = record(20).replace("\"cost\":1", &format!("\"cost\":{recorded}"));
    let shutdown = shutdown(1, 20, 2).replace("\"cost\":1.5", &format!("\"cost\":{sum}"));
    [begin("start"), record, shutdown]
}

#[test]
fn premium_requests_count_once_whichever_line_reports_them() {
    for (recorded, sum, expected) in [(3.0, 3.0, 3.0), (0.0, 3.0, 3.0), (0.33, 1.0, 1.0)] {
        let mut accounts = crate::Accounts::new(None, None, jiff::tz::TimeZone::UTC);
        let (found, ..) = read(&premium(recorded, sum));
        for record in found {
            accounts.add(record);
        }
        let total = accounts.total();
        assert_eq!(total.premium_requests, Some(expected), "{recorded} {sum}");
        assert_eq!((total.requests, total.unpriced_requests), (1, 1));
        assert_eq!(total.reported_cost_usd, None);
    }
    // A sum of fractions is inexact. The difference is not a record of its own.
    let thirds = premium(0.33, 0.33 + 1e-12);
    assert_eq!(read(&thirds).0.len(), 1);
}
