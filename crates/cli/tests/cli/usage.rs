//! What was used: over files that real CLIs left (`crates/usage/tests/data`), and with the history of runs.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;
use snapbox::{assert_data_eq, str};
use tempfile::TempDir;

use crate::cli::again::Agents;
use crate::cli::{Claude, Ended, done, program, run, teamster};

/// A home folder with what real CLIs left in these recorded scenarios.
pub(crate) fn home(scenarios: &[&str]) -> TempDir {
    let home = tempfile::tempdir().unwrap();
    for scenario in scenarios {
        copy(&recorded(scenario).join("home"), home.path());
    }
    home
}

fn recorded(scenario: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../usage/tests/data");
    folder.join(scenario)
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), &target).unwrap();
            // By any clock, it was changed after it was written.
            let late: jiff::Timestamp = "2027-01-01T00:00:00Z".parse().unwrap();
            let file = fs::File::options().write(true).open(target).unwrap();
            file.set_modified(late.into()).unwrap();
        }
    }
}

/// `teamster usage` in a home folder, with the days of UTC.
fn usage<'a>(home: &Path, args: impl IntoIterator<Item = &'a str>) -> Ended {
    run(&mut command(home, args))
}

pub(crate) fn command<'a>(home: &Path, args: impl IntoIterator<Item = &'a str>) -> Command {
    let mut command = teamster(["usage"]);
    command.args(args).env("HOME", home).env("TZ", "UTC");
    command
}

fn json<'a>(home: &Path, args: impl IntoIterator<Item = &'a str>) -> Value {
    let ended = usage(home, ["--json"].into_iter().chain(args)).quiet();
    ended.json()
}

const ALL: [&str; 4] = [
    "claude/2.1.197/fork",
    "codex/0.169.0/resume",
    "copilot/1.0.102/resume",
    "gemini/0.61.0/resume",
];

#[test]
fn by_model() {
    let ended = usage(home(&ALL).path(), ["--by", "model"]).quiet();
    assert_data_eq!(
        ended.stdout,
        str![[r#"
MODEL                      CLI             REQUESTS  INPUT  OUTPUT  CACHE READ  CACHE WRITE  ESTIMATED
gpt-5.5                    codex, copilot         7    11k    3.0k         11k         1.5k   ~$0.1569
claude-sonnet-4-5          claude                 6     49     457         62k         3.7k   ~$0.0428
gpt-5.4                    copilot                3   7.8k     576        5.1k          726   ~$0.0313
gemini-2.5-pro             gemini                 2   2.5k     818        2.6k                ~$0.0117
gemini-2.5-flash           gemini                 3   3.8k    1.2k        3.9k                ~$0.0043
claude-haiku-4-5-20251001  claude                 2     11     115         10k          900   ~$0.0029
total                                            23    25k    6.2k         95k         6.7k   ~$0.2499

~ is an estimate by list prices of [..] (@pydantic/genai-prices [..]).

"#]]
    );
}

#[test]
fn by_session_with_where_it_was() {
    let ended = usage(home(&ALL[..1]).path(), ["--by=session"]);
    assert_data_eq!(
        ended.stdout,
        str![[r#"
SESSION                               CLI     LAST              DIRECTORY    REQUESTS  INPUT  OUTPUT  CACHE READ  CACHE WRITE  ESTIMATED
a0552142-5e78-42bf-868e-f9e0bbf646f8  claude  2026-11-22 19:01  /tmp/box/ws         2     17     157         22k         1.3k   ~$0.0150
203a716f-b913-43e5-b7d7-833e5d1fc814  claude  2026-11-22 19:01  /tmp/box/ws         5     32     319         34k         2.5k   ~$0.0206
42783f6c-8f18-47b8-a3bd-96ee9863714e  claude  2026-11-22 19:01  /tmp/box/ws         1     11      96         16k          780   ~$0.0101
total                                                                               8     60     572         72k         4.6k   ~$0.0457

~ is an estimate by list prices of [..] (@pydantic/genai-prices [..]).

"#]]
    );
}

#[test]
fn by_day_week_month_project_agent_and_provider() {
    let home = home(&ALL);
    for (by, names) in [
        ("day", vec!["2026-11-22"]),
        // A Sunday: its week began on the Monday before.
        ("week", vec!["2026-11-16"]),
        ("month", vec!["2026-11"]),
        ("project", vec!["/tmp/box/ws"]),
        ("agent", vec!["/tmp/box/ws"]),
        ("provider", vec!["codex", "copilot", "claude", "gemini"]),
    ] {
        let report = json(home.path(), ["--by", by]);
        assert_eq!(report["by"], by);
        let mut found: Vec<_> = groups(&report).iter().map(|g| g["name"].clone()).collect();
        let mut names = names;
        found.sort_by_key(ToString::to_string);
        names.sort_unstable();
        assert_eq!(found, names);
    }
}

fn groups(report: &Value) -> &[Value] {
    report["groups"].as_array().unwrap()
}

/// The figures of the model's service, by which the accounts are measured.
fn truth(scenario: &str, figure: &str) -> u64 {
    let truth = fs::read(recorded(scenario).join("truth.json")).unwrap();
    let truth: Value = serde_json::from_slice(&truth).unwrap();
    let total = truth["total"].as_array().unwrap().iter();
    total.filter_map(|t| t["usage"][figure].as_u64()).sum()
}

#[test]
fn only_what_was_in_a_time() {
    let home = home(&ALL);
    let requests = |args: [&str; 2]| json(home.path(), args)["total"]["requests"].clone();
    let all = json(home.path(), [])["total"]["requests"].as_u64().unwrap();
    assert_eq!(requests(["--since=2026-11-22", "--until=2026-11-22"]), all);
    assert_eq!(requests(["--since=2026-11-23", "--until=2026-11-24"]), 0);
    let early = ["--since=2026-11-22 19:01", "--until=2026-11-22T19:02:00Z"];
    let late = ["--since=2026-11-22T20:02:00+01:00", "--until=2026-11-22"];
    let (early, late) = (requests(early).as_u64(), requests(late).as_u64());
    assert_eq!(early.unwrap() + late.unwrap(), all);
    assert!(early.unwrap() > 0 && late.unwrap() > 0);
    let nothing = usage(home.path(), ["--until=2020-01-01"]);
    assert_eq!((nothing.code, &*nothing.stdout), (Some(0), ""));
    assert_data_eq!(
        nothing.stderr,
        str![[r#"
no usage in this period in the CLIs' files and the history of runs

"#]]
    );
}

#[test]
fn where_nothing_is_a_friendly_word_is() {
    let home = tempfile::tempdir().unwrap();
    let ended = usage(home.path(), []);
    assert_eq!((ended.code, &*ended.stdout), (Some(0), ""));
    assert_data_eq!(
        ended.stderr,
        str![[r#"
no usage yet in the CLIs' files and the history of runs; `teamster doctor` lists installed CLIs

"#]]
    );
    let ended = usage(home.path(), ["--provider=codex", "--provider=gemini"]);
    assert_data_eq!(
        ended.stderr,
        str![[r#"
no usage of codex, gemini yet in the CLIs' files and the history of runs

"#]]
    );
    let report = json(home.path(), []);
    assert_eq!(groups(&report).len(), 0);
    assert_eq!(report["total"]["requests"], 0);
    assert_eq!(report["total"]["usage"], serde_json::json!({}));
    let none = fs::read_dir(home.path()).unwrap().count();
    assert_eq!(none, 0, "nothing is made");
}

#[test]
fn invalid_options_are_refused() {
    let home = tempfile::tempdir().unwrap();
    for args in [
        ["--since", "never"],
        ["--since", "0"],
        ["--provider", "aider"],
        ["--by", "moon"],
    ] {
        let ended = usage(home.path(), args);
        assert_eq!((ended.code, &*ended.stdout), (Some(2), ""), "{args:?}");
    }
    let ended = usage(home.path(), ["--since=today", "--until=yesterday"]);
    assert_eq!(ended.code, Some(2));
    assert_data_eq!(
        ended.stderr,
        str![[r#"
error: --until is not after --since

"#]]
    );
    let ended = usage(home.path(), ["--store=/nonexistent/store.db"]);
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
}

#[test]
fn files_that_are_broken_are_reported_and_the_rest_counts() {
    let home = home(&ALL[..1]);
    let projects = home.path().join(".claude/projects/-tmp-box-ws");
    fs::write(projects.join("broken.jsonl"), "{\"usage\":{broken\n").unwrap();
    let ended = usage(home.path(), []).quiet();
    let reported = "Not counted: 1 line that could not be parsed.\n";
    assert!(ended.stdout.ends_with(reported), "{}", ended.stdout);
    let report = json(home.path(), []);
    assert_eq!(report["diagnostics"]["malformedLines"], 1);
    let output = truth(ALL[0], "outputTokens");
    assert_eq!(report["total"]["usage"]["outputTokens"], output);
}

#[test]
fn a_path_that_is_no_text_does_not_break_the_output_off() {
    let home = home(&ALL[..1]);
    let projects = home.path().join(".claude/projects");
    // A link to itself cannot be read.
    let name = OsStr::from_bytes(b"\xff.jsonl");
    std::os::unix::fs::symlink(name, projects.join(name)).unwrap();
    let report = json(home.path(), []);
    assert_eq!(report["diagnostics"]["unreadable"], 1);
    let example = report["diagnostics"]["unreadableExamples"][0].as_str();
    assert!(example.unwrap().ends_with("\u{fffd}.jsonl"), "{example:?}");
}

#[cfg(target_os = "linux")]
#[test]
fn unwritable_output_is_reported() {
    let home = home(&ALL[..1]);
    for args in [&["--json"][..], &[]] {
        let full = fs::File::options().write(true).open("/dev/full").unwrap();
        let mut command = command(home.path(), args.iter().copied());
        let ended = command.stdout(full).stderr(Stdio::piped()).spawn().unwrap();
        let ended = ended.wait_with_output().unwrap();
        let said = String::from_utf8(ended.stderr).unwrap();
        assert_eq!(ended.status.code(), Some(1), "{said}");
        assert!(
            said.starts_with("error: cannot write the output: "),
            "{said}"
        );
    }
}

#[test]
fn special_file_is_not_awaited() {
    let home = home(&[ALL[3]]);
    let output = truth(ALL[3], "outputTokens");
    for path in [
        ".local/share/opencode/opencode.db",
        ".claude/projects/p/s.jsonl",
        ".codex/sessions/2026/11/22/rollout-2026-11-22T19-00-00-s.jsonl",
        ".copilot/session-state/s/events.jsonl",
        ".gemini/tmp/ws/chats/session-x.jsonl",
        ".gemini/tmp/ws/chats/session-x.json",
        ".gemini/tmp/ws/.project_root",
    ] {
        let path = home.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        // It may be there.
        let _ = fs::remove_file(&path);
        nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).unwrap();
    }
    let report = json(home.path(), []);
    assert_eq!(report["total"]["usage"]["outputTokens"], output);
    assert_eq!(report["diagnostics"]["unreadable"], 0);
}

#[test]
fn run_of_the_history_counts_once_with_and_without_files() {
    let claude = Claude::plays("tool_shell_ok", 0);
    let store = claude.path("state/store.db");
    let home = tempfile::tempdir().unwrap();
    let ran = run(claude
        .run(["hi", "--json"])
        .env("HOME", home.path())
        .env("TEAMSTER_STORE", &store));
    let result = done(&ran.stdout);
    let report = |args: &[&str]| -> Value {
        let args = ["--json"].iter().chain(args).copied();
        let ended = run(command(home.path(), args).env("TEAMSTER_STORE", &store)).quiet();
        ended.json()
    };
    let cost = result.total_cost_usd.unwrap();
    let output = result.usage.unwrap().output_tokens.unwrap();

    let unknown = report(&[]);
    assert_eq!(unknown["total"]["usage"]["outputTokens"], output);
    let reported = |figures: &Value| figures["reportedCostUsd"].as_f64().unwrap();
    assert!((reported(&unknown["total"]) - cost).abs() < 1e-9);
    assert_eq!(unknown["history"]["onlyThere"], 1);
    assert_eq!(report(&["--store=off"])["total"]["requests"], 0);
    assert_eq!(report(&["--provider=codex"])["total"]["requests"], 0);
    assert_eq!(report(&["--until=2020-01-01"])["history"]["onlyThere"], 0);

    // A transcript as a real one left it, but for the session's id.
    let recorded = recorded("claude/2.1.197/text");
    let known: Value =
        serde_json::from_slice(&fs::read(recorded.join("truth.json")).unwrap()).unwrap();
    let id = known["total"][0]["session"].as_str().unwrap();
    let file = format!("home/.claude/projects/-tmp-box-ws/{id}.jsonl");
    let text = fs::read_to_string(recorded.join(file)).unwrap();
    let session = result.session_id.unwrap();
    let folder = home.path().join(".claude/projects/-tmp-box-ws");
    fs::create_dir_all(&folder).unwrap();
    fs::write(
        folder.join(format!("{session}.jsonl")),
        text.replace(id, &session),
    )
    .unwrap();

    let known = report(&["--by=session"]);
    assert_eq!(groups(&known).len(), 1);
    let group = &groups(&known)[0];
    assert_eq!(group["name"], *session);
    let of_the_file = truth("claude/2.1.197/text", "outputTokens");
    assert_eq!(group["usage"]["outputTokens"], of_the_file);
    assert_eq!(group["requests"], 1);
    assert!((reported(group) - cost).abs() < 1e-9);
    assert!(group["estimatedCostUsd"].as_f64().unwrap() > 0.0);
    assert_eq!(known["history"]["onlyThere"], 0);
    assert_eq!(known["history"]["withCost"], 1);
}

#[test]
fn each_attempt_of_a_run_counts_for_its_own_agent() {
    let agents = Agents::new().codex(&[("text", 0)]);
    // Made by hand: it used something before it failed.
    let lines = [
        r#"{"type":"system","subtype":"init","session_id":"11111111-2222-4333-8444-555555555555","model":"claude-opus-4-8"}"#,
        r#"{"type":"result","subtype":"success","is_error":true,"api_error_status":529,"num_turns":1,"session_id":"11111111-2222-4333-8444-555555555555","total_cost_usd":0.5,"usage":{"input_tokens":12,"output_tokens":25},"result":"API Error: 529 Overloaded"}"#,
    ];
    let print = lines.map(|line| format!("echo '{line}'\n")).concat();
    program(&agents.path("claude"), &format!("{print}exit 1"));
    let store = agents.path("store.db");
    run(agents
        .run(["hi", "--fallback=codex"])
        .env("TEAMSTER_STORE", &store))
    .ok();

    let home = tempfile::tempdir().unwrap();
    let report = || -> Value {
        let args = ["--json", "--by=provider"];
        let ended = run(command(home.path(), args).env("TEAMSTER_STORE", &store)).quiet();
        ended.json()
    };
    let reported = |report: &Value| -> Vec<Value> {
        let groups = groups(report).iter();
        let mut reported: Vec<_> = groups
            .map(|group| {
                let output = &group["usage"]["outputTokens"];
                serde_json::json!([group["name"], output, group["reportedCostUsd"]])
            })
            .collect();
        reported.sort_by_key(ToString::to_string);
        reported
    };
    let expected = vec![
        serde_json::json!(["claude", 25, 0.5]),
        serde_json::json!(["codex", 40, null]),
    ];
    let unknown = report();
    assert_eq!(reported(&unknown), expected);
    assert_eq!(unknown["history"]["onlyThere"], 1);
    assert_eq!(unknown["total"]["unpricedRequests"], 1, "of Codex");

    // What its transcript has is not counted again.
    let folder = home.path().join(".claude/projects/-w");
    fs::create_dir_all(&folder).unwrap();
    let line = r#"{"type":"assistant","sessionId":"11111111-2222-4333-8444-555555555555","timestamp":"2026-11-22T19:00:00Z","message":{"id":"m","model":"claude-opus-4-8","usage":{"input_tokens":12,"output_tokens":25}}}"#;
    fs::write(folder.join("s.jsonl"), line).unwrap();
    let known = report();
    assert_eq!(reported(&known), expected);
    assert_eq!(known["history"]["withCost"], 1);
}
