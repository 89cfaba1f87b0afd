mod whole_files;

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::Path;

use serde_json::Value;

use super::*;

/// A recorded session of several runs, in its own home.
struct Recorded {
    home: tempfile::TempDir,
    truth: Value,
    session: String,
    /// The session's file.
    file: PathBuf,
    /// Lines that the CLI wrote to the file in each run.
    runs: Vec<String>,
}

impl Recorded {
    /// Loads a scenario. A line that contains `first` begins a run.
    fn new(scenario: &str, first: &str) -> Self {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("tests/data")
            .join(scenario);
        let truth: Value =
            serde_json::from_slice(&fs::read(folder.join("truth.json")).unwrap()).unwrap();
        let session = truth["requests"][0]["session"].as_str().unwrap().to_owned();
        let files = walkdir::WalkDir::new(folder.join("home")).into_iter();
        let found = files.flatten().find(|entry| {
            let name = entry.file_name().to_str().unwrap();
            name.ends_with(&format!("{session}.jsonl"))
        });
        let original = found.unwrap().into_path();
        let home = tempfile::tempdir().unwrap();
        let file = home
            .path()
            .join(original.strip_prefix(folder.join("home")).unwrap());
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        let mut runs = Vec::<String>::new();
        for line in fs::read_to_string(&original).unwrap().lines() {
            let begun = runs.last().is_none_or(|run| run.contains(first));
            if runs.is_empty() || begun && line.contains(first) {
                runs.push(String::new());
            }
            let run = runs.last_mut().unwrap();
            run.push_str(line);
            run.push('\n');
        }
        Self {
            home,
            truth,
            session,
            file,
            runs,
        }
    }

    fn write(&self, run: usize) {
        let mut options = OpenOptions::new();
        let mut file = options.create(true).append(true).open(&self.file).unwrap();
        file.write_all(self.runs[run].as_bytes()).unwrap();
    }

    fn meter(&self, provider: Provider) -> TickMeter {
        TickMeter::new(provider, Locations::of_home(self.home.path()))
    }

    /// Returns the usage of a run by model.
    fn used(&self, run: usize) -> BTreeMap<String, (u64, Usage)> {
        let mut used = BTreeMap::<_, (u64, Usage)>::new();
        for request in self.truth["requests"].as_array().unwrap() {
            if request["run"] == run + 1 {
                let model = request["model"].as_str().unwrap().to_owned();
                let usage: Usage = serde_json::from_value(request["usage"].clone()).unwrap();
                let sum = used.entry(model).or_default();
                *sum = (sum.0 + 1, sum.1.plus(usage));
            }
        }
        used
    }
}

fn by_model(ticks: Vec<ModelTick>) -> BTreeMap<String, (u64, Usage)> {
    let of = |tick: ModelTick| (tick.model.unwrap().to_string(), (tick.requests, tick.usage));
    ticks.into_iter().map(of).collect()
}

fn each_run_is_a_tick(provider: Provider, scenario: &str, first: &str) {
    let recorded = Recorded::new(scenario, first);
    assert_eq!(recorded.runs.len(), 3);
    let mut meter = recorded.meter(provider);
    for run in 0..recorded.runs.len() {
        // The recorded times are in the past.
        meter.mark_at(
            (run > 0).then_some(&*recorded.session),
            Timestamp::UNIX_EPOCH,
        );
        assert_eq!(meter.read(Some(&recorded.session)), []);
        recorded.write(run);
        let (ticks, diagnostics) = meter.read_with_diagnostics(Some(&recorded.session));
        assert_eq!(by_model(ticks), recorded.used(run), "{scenario} {run}");
        assert_eq!(diagnostics.bytes, recorded.runs[run].len() as u64);
        assert_eq!(by_model(meter.read(None)), recorded.used(run));
    }
}

#[test]
fn a_tick_of_claude_has_the_records_since_the_mark() {
    each_run_is_a_tick(
        Provider::Claude,
        "claude/2.1.197/resume",
        "\"operation\":\"enqueue\"",
    );
}

#[test]
fn a_tick_of_codex_has_the_records_since_the_mark() {
    each_run_is_a_tick(
        Provider::Codex,
        "codex/0.169.0/resume",
        "\"type\":\"task_started\"",
    );
}

#[test]
fn records_before_the_mark_are_left_out_in_new_files() {
    let recorded = Recorded::new("claude/2.1.197/resume", "\"operation\":\"enqueue\"");
    (0..3).for_each(|run| recorded.write(run));
    let mut meter = recorded.meter(Provider::Claude);
    // As for a session that is known only afterwards, or a fork with copies of older lines.
    let second: Value = serde_json::from_str(recorded.runs[1].lines().next().unwrap()).unwrap();
    meter.mark_at(None, second["timestamp"].as_str().unwrap().parse().unwrap());
    let mut expected = recorded.used(1);
    expected.extend(recorded.used(2));
    assert_eq!(by_model(meter.read(Some(&recorded.session))), expected);
    meter.mark(None);
    assert_eq!(meter.read(Some(&recorded.session)), []);
}

#[test]
fn sub_agents_are_a_part_of_the_tick() {
    for (provider, scenario) in [
        (Provider::Claude, "claude/2.1.197/subagent"),
        (Provider::Codex, "codex/0.169.0/subagent"),
    ] {
        let recorded = Recorded::new(scenario, "no line has this in it");
        let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
        let locations = Locations::of_home(&data.join(scenario).join("home"));
        let mut meter = TickMeter::new(provider, locations);
        meter.mark_at(None, Timestamp::UNIX_EPOCH);
        let ticks = meter.read(Some(&recorded.session));
        assert_eq!(by_model(ticks), recorded.used(0), "{scenario}");
    }
}

#[test]
fn a_session_that_is_none_has_used_nothing() {
    let recorded = Recorded::new("codex/0.169.0/resume", "no line has this in it");
    recorded.write(0);
    for provider in Provider::ALL {
        let mut meter = recorded.meter(provider);
        for session in ["", "..", "../..", "/", "a/b", "unknown"] {
            meter.mark_at(Some(session), Timestamp::UNIX_EPOCH);
            assert_eq!(meter.read(Some(session)), [], "{provider} {session}");
        }
    }
}

#[test]
fn of_other_sessions_only_the_beginning_is_read() {
    let recorded = Recorded::new("codex/0.169.0/resume", "no line has this in it");
    recorded.write(0);
    let line = recorded.runs[0].lines().next().unwrap();
    // More than the size of one read.
    let mut other = OpenOptions::new()
        .append(true)
        .open(&recorded.file)
        .unwrap();
    other.write_all("{}\n".repeat(1 << 20).as_bytes()).unwrap();
    let mut meter = recorded.meter(Provider::Codex);
    meter.mark_at(None, Timestamp::UNIX_EPOCH);
    let (ticks, diagnostics) = meter.read_with_diagnostics(Some("another"));
    assert_eq!(ticks, []);
    assert_eq!((diagnostics.files, diagnostics.lines), (1, 1));
    let bytes = diagnostics.bytes;
    assert!(bytes >= line.len() as u64 && bytes < 1 << 20, "{bytes}");
}

/// Tests that usage without a line counts in the tick whose process reports it in its sums.
#[test]
fn a_summary_of_claude_counts_in_its_tick() {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    let recorded = data.join("claude/2.1.330/resume_compact");
    let truth = fs::read(recorded.join("truth.json")).unwrap();
    let truth: Value = serde_json::from_slice(&truth).unwrap();
    let session = truth["requests"][0]["session"].as_str().unwrap();
    let file = format!(".claude/projects/-tmp-box-ws/{session}.jsonl");
    let text = fs::read_to_string(recorded.join("home").join(&file)).unwrap();
    let home = tempfile::tempdir().unwrap();
    let copy = home.path().join(&file);
    fs::create_dir_all(copy.parent().unwrap()).unwrap();
    let first = text.find("\"cost-state\"").unwrap();
    let end = first + text[first..].find('\n').unwrap() + 1;
    fs::write(&copy, &text[..end]).unwrap();
    let mut meter = TickMeter::new(Provider::Claude, Locations::of_home(home.path()));
    let time = text[end..].split("\"timestamp\":\"").nth(1).unwrap();
    meter.mark_at(Some(session), time[..24].parse().unwrap());
    fs::write(&copy, &text).unwrap();
    let ticks = meter.read(Some(session));
    let mut expected = Usage::default();
    for request in truth["requests"].as_array().unwrap() {
        if request["run"].as_u64().unwrap() > 1 {
            expected = expected.plus(serde_json::from_value(request["usage"].clone()).unwrap());
        }
    }
    let reported: Vec<_> = ticks
        .iter()
        .map(|tick| (tick.requests, tick.usage))
        .collect();
    assert_eq!(reported, [(1, expected)]);
}
