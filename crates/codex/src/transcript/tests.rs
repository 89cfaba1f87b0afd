//! Session files like those of the CLI, in measured shapes.

use std::io::Write;

use super::*;
use crate::totals::{Baseline, Totals};

const SESSION: &str = "01a200d7-9bff-7783-aa12-fa268e62bcaf";

fn record(input: u64) -> String {
    format!(
        r#"{{"timestamp":"2026-11-22T01:21:00.054Z","ordinal":12,"type":"token_usage_record","payload":{{"thread_id":"{SESSION}","usage":{{"input_tokens":1}},"turn_token_usage":{{"input_tokens":2}},"thread_token_usage":{{"input_tokens":{input},"cached_input_tokens":5,"cache_write_input_tokens":0,"output_tokens":40,"reasoning_output_tokens":0,"total_tokens":1240}}}}}}"#
    )
}

fn count(input: u64) -> String {
    format!(
        r#"{{"timestamp":"2026-11-22T01:21:00.120Z","ordinal":15,"type":"event_msg","payload":{{"type":"token_count","info":{{"total_token_usage":{{"input_tokens":{input},"cached_input_tokens":5,"cache_write_input_tokens":0,"output_tokens":40,"reasoning_output_tokens":0,"total_tokens":1240}},"last_token_usage":{{"input_tokens":1}}}},"rate_limits":null}}}}"#
    )
}

fn other(bytes: usize) -> String {
    format!(
        r#"{{"timestamp":"2026-11-22T01:21:00.118Z","ordinal":14,"type":"response_item","payload":{{"type":"function_call_output","output":"\"token_count\" {}"}}}}"#,
        "x".repeat(bytes)
    )
}

fn total(input: u64) -> Baseline {
    let usage = format!(
        r#"{{"input_tokens":{input},"cached_input_tokens":5,"cache_write_input_tokens":0,"output_tokens":40,"reasoning_output_tokens":0}}"#
    );
    Baseline::Known(Totals::of(&Object::parse(&usage).unwrap()))
}

/// Returns the totals before a run if the CLI's home has this file.
fn before(day: &str, name: &str, lines: &[String]) -> Before {
    let home = tempfile::tempdir().unwrap();
    let directory = home.path().join("sessions").join(day);
    fs::create_dir_all(&directory).unwrap();
    let mut file = File::create(directory.join(name)).unwrap();
    for line in lines {
        writeln!(file, "{line}").unwrap();
    }
    // A line that was torn when the process was killed.
    write!(file, r#"{{"timestamp":"2026","type":"token_usage_rec"#).unwrap();
    let mut params = ExecuteParams::new("go on");
    params.session_id = Some(SESSION.into());
    let path = home.path().to_str().unwrap().to_owned();
    params.env.insert("CODEX_HOME".into(), path);
    Before::of(&params)
}

fn name() -> String {
    format!("rollout-2026-11-22T01-20-59-{SESSION}.jsonl")
}

#[test]
fn the_last_total_in_the_file_of_the_session_counts() {
    for lines in [
        vec![
            record(1000),
            other(10),
            count(1000),
            record(2400),
            other(10),
        ],
        vec![record(1000), record(2400), count(2400)],
        vec![record(2400), other(300_000), other(900_000)],
    ] {
        assert_eq!(before("2026/11/22", &name(), &lines).recorded, total(2400));
    }
}

#[test]
fn the_printed_total_leaves_out_a_turn_that_broke_off() {
    for (lines, printed) in [
        (vec![record(1000)], Baseline::default()),
        (vec![record(1000), count(1000), record(2400)], total(1000)),
        (vec![count(2400)], total(2400)),
    ] {
        let totals = before("2026/11/22", &name(), &lines);
        assert_eq!(totals.printed, printed);
    }
}

#[test]
fn a_record_is_found_although_only_its_event_is_at_the_end() {
    // The second turn broke off: its request has a record, and no event.
    for between in [vec![other(100_000)], vec![other(100_000), count(1600)]] {
        let mut lines = vec![record(1000), count(1000), record(2400), record(3000)];
        lines.extend(between);
        lines.push(count(1600));
        let totals = before("2026/11/22", &name(), &lines);
        assert_eq!(
            (totals.printed, totals.recorded),
            (total(1600), total(3000))
        );
    }
    // An older version has no records.
    let lines = [count(1000), other(100_000), count(1600), count(2000)];
    let totals = before("2026/11/22", &name(), &lines);
    assert_eq!(
        (totals.printed, totals.recorded),
        (total(2000), total(2000))
    );
}

#[test]
fn the_run_after_a_turn_that_broke_off_has_its_own_usage() {
    let Baseline::Known(earlier) = total(1000) else {
        unreachable!()
    };
    let mut run = Recorded::new(Baseline::Known(earlier));
    // The event leaves out the turn that broke off.
    let lines = [record(1300), count(300)];
    let used: Vec<_> = (lines.iter().filter_map(|line| run.line(line)))
        .map(|usage| usage.input_tokens)
        .collect();
    assert_eq!(used, [Some(300)]);
    assert_eq!(run.main_usage().unwrap().input_tokens, Some(300));
}

#[test]
fn the_directory_is_of_the_local_day_which_may_be_another() {
    for (day, expected) in [
        ("2026/11/21", total(7)),
        ("2026/11/22", total(7)),
        ("2026/11/23", total(7)),
        ("2026/11/24", Baseline::Unknown),
        ("2025/11/22", Baseline::Unknown),
    ] {
        assert_eq!(
            before(day, &name(), &[record(7)]).recorded,
            expected,
            "{day}"
        );
    }
}

#[test]
fn session_without_total_used_none_and_without_file_is_unknown() {
    assert_eq!(
        before("2026/11/22", &name(), &[other(10)]),
        Before::default()
    );
    let of_another = "rollout-2026-11-22T01-20-59-01a200d7-0000-7783-aa12-fa268e62bcaf.jsonl";
    let other_file = before("2026/11/22", of_another, &[record(7)]);
    assert_eq!(other_file, Before::UNKNOWN);
}

#[test]
fn only_the_end_of_a_very_large_file_is_read() {
    let large: Vec<_> = (0..20).map(|_| other(1 << 20)).collect();
    let mut lines = vec![record(7)];
    lines.extend_from_slice(&large);
    assert_eq!(before("2026/11/22", &name(), &lines), Before::UNKNOWN);
    lines.push(record(8));
    lines.extend_from_slice(&large[..3]);
    assert_eq!(before("2026/11/22", &name(), &lines).recorded, total(8));
}

#[test]
fn an_id_that_does_not_tell_its_day_is_looked_for_nowhere() {
    assert_eq!(day_of("00000000-0000-4000-8000-000000000000"), None);
    assert_eq!(day_of("../../../../../../../../etc/passwd-7"), None);
    assert_eq!(day_of(SESSION).map(time::date_of_day), Some((2026, 11, 22)));
}

#[test]
fn the_home_is_where_the_cli_looks() {
    let home_of = |env: &[(&str, &str)], directory: Option<&str>| {
        let mut params = ExecuteParams::new("x");
        params.env = env
            .iter()
            .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
            .collect();
        params.working_directory = directory.map(PathBuf::from);
        home(&params)
    };
    let user = ("HOME", "/home/u");
    assert_eq!(
        home_of(&[("CODEX_HOME", "/c"), user], Some("/w")),
        Some("/c".into())
    );
    assert_eq!(
        home_of(&[("CODEX_HOME", "c"), user], Some("/w")),
        Some("/w/c".into())
    );
    assert_eq!(
        home_of(&[("CODEX_HOME", ""), user], None),
        Some("/home/u/.codex".into())
    );
}

/// Returns the rollout of a recorded run of two turns that was resumed twice.
fn recorded() -> String {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../usage/tests/data/codex/0.169.0");
    let folder = data.join("resume/home/.codex/sessions/2026/11/22");
    let name = "rollout-2026-11-22T19-01-26-01a204a2-7b20-7431-91d8-958fb1143826.jsonl";
    fs::read_to_string(folder.join(name)).unwrap()
}

/// Returns the successive totals after the lines.
fn totals<'a>(run: &mut Recorded, lines: impl Iterator<Item = &'a str>) -> Vec<u64> {
    let usages = lines.filter_map(|line| run.line(line));
    usages.filter_map(|usage| usage.total_tokens()).collect()
}

#[test]
fn a_total_counts_once_however_often_it_is_written() {
    let mut run = Recorded::default();
    let expected = [3356, 6728, 10_116, 13_520, 16_940];
    assert_eq!(totals(&mut run, recorded().lines()), expected);
    assert_eq!(run.usage().unwrap().total_tokens(), Some(16_940));
    assert_eq!(run.session_usage(), run.usage());
}

#[test]
fn the_model_is_that_of_the_turn() {
    let mut run = Recorded::default();
    assert_eq!(run.model, None);
    for line in recorded().lines() {
        run.line(line);
    }
    assert_eq!(run.model.as_deref(), Some("gpt-5.5"));
    // Made by hand: a text of a tool that has the words of such a line.
    let other = r#"{"type":"response_item","payload":{"type":"turn_context","model":"other"}}"#;
    run.line(other);
    assert_eq!(run.model.as_deref(), Some("gpt-5.5"));
}

#[test]
fn resumed_usage_is_the_difference_to_the_earlier_total() {
    let lines = recorded();
    let mut lines: Vec<_> = lines.lines().collect();
    let resumed = lines.split_off(25);
    let before = Figures::in_line(lines[24].as_bytes()).unwrap().total;
    assert_eq!(Usage::from(before).total_tokens(), Some(6728));
    for baseline in [Baseline::Known(before), Baseline::Unknown] {
        let mut run = Recorded::new(baseline);
        let totals = totals(&mut run, resumed.iter().copied());
        assert_eq!(totals, [3388, 6792, 10_212], "{baseline:?}");
    }
}

#[test]
fn the_files_of_a_session_have_its_id() {
    let home = Path::new("/home/me/.codex");
    let found = files(home, &SESSION.to_uppercase(), Some(20_780)).unwrap();
    let expected = ["2026/11/22", "2026/11/21", "2026/11/23"];
    assert_eq!(
        found.paths,
        expected.map(|day| format!("{day}/rollout-*-{SESSION}.jsonl"))
    );
    assert_eq!(found.folder, Path::new("/home/me/.codex/sessions"));
    let others = found.others.unwrap();
    assert_eq!(
        others.paths,
        ["22", "23", "24", "25"].map(|day| format!("2026/11/{day}/rollout-*.jsonl"))
    );
    assert_eq!(
        others.containing,
        [
            "\"token_usage_record\"".to_owned(),
            format!("\"session_id\":\"{SESSION}\"")
        ]
    );
    assert_eq!(files(Path::new("/tmp"), "../../etc", None), None);
}

/// Returns the lines of a recorded run in which the main agent (first) starts a sub-agent (last).
fn with_sub_agent() -> [String; 2] {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../usage/tests/data/codex/0.169.0");
    let folder = data.join("subagent/home/.codex/sessions/2026/11/22");
    [MAIN, "01a204a2-8ac6-7841-975e-a6728408b5e4"].map(|id| {
        let name = format!("rollout-2026-11-22T19-01-30-{id}.jsonl");
        fs::read_to_string(folder.join(name)).unwrap()
    })
}

const MAIN: &str = "01a204a2-8a43-7641-82f2-394682115de0";

#[test]
fn the_usage_of_sub_agents_counts_for_the_run() {
    let [main, sub_agent] = with_sub_agent();
    let files = files(Path::new("/home"), MAIN, Some(20_779)).unwrap();
    let texts = files.others.unwrap().containing;
    let is_given = |line: &&str| texts.iter().all(|text| line.contains(&**text));
    let given: Vec<_> = sub_agent.lines().filter(is_given).collect();
    assert_eq!(given.len(), 2);
    for order in [[&given[..], &main.lines().collect::<Vec<_>>()].concat(), {
        [&main.lines().collect::<Vec<_>>(), &given[..], &given[..]].concat()
    }] {
        let mut run = Recorded::default();
        run.session_known(MAIN);
        let last = totals(&mut run, order.into_iter()).pop();
        assert_eq!(last, Some(13_028 + 8712));
        assert_eq!(run.main_usage().unwrap().total_tokens(), Some(13_028));
        assert_eq!(run.sub_agent_usage().unwrap().total_tokens(), Some(8712));
        assert_eq!(run.session_usage().unwrap().total_tokens(), Some(13_028));
    }
    // A line of another session.
    let mut run = Recorded::default();
    run.session_known(SESSION);
    assert_eq!(totals(&mut run, given.into_iter()), [0; 0]);
}
