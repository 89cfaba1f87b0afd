//! Tests of meters for CLIs whose files are read in full. Records before the mark are skipped by their time.

use std::fs;
use std::path::Path;

use serde_json::Value;

use super::*;

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

/// Returns the start times of the runs of a recorded scenario, by marks in the lines.
fn begins(text: &str, first: &str, time: &str) -> Vec<Timestamp> {
    let lines = text.lines().filter(|line| line.contains(first));
    let begun = lines.map(|line| {
        let line: Value = serde_json::from_str(line).unwrap();
        at(line[time].as_str().unwrap())
    });
    begun.collect()
}

/// Compares the usage of each run, and of all later ones, with the service's report.
fn check(provider: Provider, scenario: &str, file: &str, first: &str, time: &str) {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    let folder = data.join(scenario);
    let truth = fs::read(folder.join("truth.json")).unwrap();
    let truth: Value = serde_json::from_slice(&truth).unwrap();
    let requests = truth["requests"].as_array().unwrap();
    let session = requests[0]["session"].as_str().unwrap();
    let file = file
        .replace("SESSION", session)
        .replace("SHORT", &session[..8]);
    let text = fs::read_to_string(folder.join("home").join(&file)).unwrap();
    let begins = begins(&text, first, time);
    assert_eq!(begins.len(), 3, "{scenario}");
    let home = tempfile::tempdir().unwrap();
    let copy = home.path().join(&file);
    fs::create_dir_all(copy.parent().unwrap()).unwrap();
    fs::write(&copy, text).unwrap();
    // The file's time is after the mark by any clock.
    let late = at("2027-01-01T00:00:00Z");
    let written = fs::File::options().write(true).open(&copy).unwrap();
    written.set_modified(SystemTime::from(late)).unwrap();
    let mut meter = TickMeter::new(provider, Locations::of_home(home.path()));
    meter.mark_at(Some(session), late);
    assert_eq!(meter.read(Some(session)), [], "it was before");
    for (number, begun) in begins.into_iter().enumerate() {
        meter.mark_at(Some(session), begun);
        let mut expected = BTreeMap::<String, (u64, Usage)>::new();
        for request in requests {
            if request["run"].as_u64().unwrap() > number as u64 {
                let model = request["model"].as_str().unwrap().to_owned();
                let usage: Usage = serde_json::from_value(request["usage"].clone()).unwrap();
                let sum = expected.entry(model).or_default();
                *sum = (sum.0 + 1, sum.1.plus(usage));
            }
        }
        let reported = |session| -> BTreeMap<_, _> {
            let ticks = meter.read(session).into_iter();
            ticks
                .map(|tick| (tick.model.unwrap().to_string(), (tick.requests, tick.usage)))
                .collect()
        };
        assert_eq!(
            reported(Some(session)),
            expected,
            "{scenario}, run {number}"
        );
        assert_eq!(reported(None), expected);
        assert_eq!(reported(Some("another")), BTreeMap::new());
    }
}

#[test]
fn of_copilot() {
    let file = ".copilot/session-state/SESSION/events.jsonl";
    for scenario in ["resume", "killed"] {
        let scenario = format!("copilot/1.0.102/{scenario}");
        let first = "\"user.message\"";
        check(Provider::Copilot, &scenario, file, first, "timestamp");
    }
}

#[test]
fn of_gemini() {
    let file = ".gemini/tmp/ws/chats/session-2026-11-22T19-02-SHORT.jsonl";
    let first = "\"projectHash\"";
    check(
        Provider::Gemini,
        "gemini/0.61.0/resume",
        file,
        first,
        "startTime",
    );
}

#[test]
fn premium_requests_are_a_part_of_the_tick() {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join(".copilot/session-state/s");
    fs::create_dir_all(&folder).unwrap();
    // Handwritten, in the form of real lines.
    let record = |second: u32, cost: f64| {
        format!(
            r#"{{"type":"session.usage_record","id":"r{second}","data":{{"usage":{{"model":"gpt-5.5","inputTokens":20,"outputTokens":2,"cost":{cost}}}}},"timestamp":"2026-11-22T19:00:0{second}Z"}}"#
        )
    };
    let begin = r#"{"type":"session.start","data":{"sessionId":"s","sessionLimits":null},"timestamp":"2026-11-22T19:00:00Z"}"#;
    let lines = [
        begin.to_owned(),
        record(1, 4.0),
        record(3, 1.0),
        record(4, 0.5),
    ];
    fs::write(folder.join("events.jsonl"), lines.join("\n") + "\n").unwrap();
    let mut meter = TickMeter::new(Provider::Copilot, Locations::of_home(home.path()));
    meter.mark_at(Some("s"), at("2026-11-22T19:00:02Z"));
    let reported = meter.read(Some("s"));
    let premium: Vec<_> = reported
        .iter()
        .map(|tick| (tick.requests, tick.premium_requests))
        .collect();
    assert_eq!(premium, [(2, Some(1.5))]);
}
