//! Other forms of what was used: comma-separated values, the limits of subscriptions, a status line.

use std::fs;
use std::path::Path;
use std::process::Stdio;

use serde_json::{Value, json};
use snapbox::{assert_data_eq, str};

use crate::cli::usage::{command, home};
use crate::cli::{Ended, ended, run};

fn usage<'a>(home: &Path, args: impl IntoIterator<Item = &'a str>) -> Ended {
    run(&mut command(home, args))
}

const TWO: [&str; 2] = ["claude/2.1.197/fork", "gemini/0.61.0/resume"];

#[test]
fn comma_separated_values_have_all_figures() {
    let home = home(&TWO);
    let by_week = usage(home.path(), ["--by=week", "--csv"]).quiet();
    assert_data_eq!(
        by_week.stdout,
        str![[r#"
week,model,providers,requests,subagent_requests,input_tokens,output_tokens,cache_read_tokens,cache_write_tokens,cache_write_1h_tokens,reasoning_tokens,web_searches,reported_cost_usd,estimated_cost_usd,spent_usd,unpriced_requests
2026-11-16,,claude gemini,13,2,6375,2602,78575,4560,1800,1065,,,0.061682825,0.061682825,0

"#]]
    );
    let models = usage(home.path(), ["--by=week", "--csv", "--models"]);
    let rows: Vec<_> = models.stdout.lines().skip(1).collect();
    let names: Vec<_> = rows.iter().map(|row| row.split(',').nth(1)).collect();
    let expected = [
        "claude-haiku-4-5-20251001",
        "claude-sonnet-4-5",
        "gemini-2.5-flash",
        "gemini-2.5-pro",
    ];
    assert_eq!(names, expected.map(Some));
    let requests = rows.iter().map(|row| row.split(',').nth(3).unwrap());
    assert_eq!(
        requests.map(|it| it.parse::<u64>().unwrap()).sum::<u64>(),
        13
    );
}

#[test]
fn every_column_has_a_name_of_its_own() {
    for by in [
        "day", "week", "month", "model", "session", "project", "agent", "provider",
    ] {
        let ended = usage(home(&TWO[1..]).path(), ["--csv", "--by", by]);
        let lines: Vec<Vec<_>> = (ended.stdout.lines())
            .map(|line| line.split(',').collect())
            .collect();
        let mut names = lines[0].clone();
        assert_eq!(names[0], by);
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), lines[0].len(), "{by}: {:?}", lines[0]);
        assert!(
            lines.iter().all(|row| row.len() == names.len()),
            "{lines:?}"
        );
    }
}

/// Made by hand, with the fields that Codex 0.169.0 writes for a subscription.
fn of_a_subscription(timestamp: &str, used: f64) -> String {
    let limits = json!({
        "limit_id": "codex", "plan_type": "plus",
        "primary": {"used_percent": used, "window_minutes": 300, "resets_at": 4_102_444_800_u64},
        "secondary": {"used_percent": 7.0, "window_minutes": 10_080, "resets_at": 4_102_790_400_u64},
    });
    let payload = json!({"type": "token_count", "info": null, "rate_limits": limits});
    json!({"timestamp": timestamp, "type": "event_msg", "payload": payload}).to_string()
}

#[test]
fn limits_are_those_that_were_reported_last() {
    let home = tempfile::tempdir().unwrap();
    let none = usage(home.path(), ["--limits"]);
    assert_eq!((none.code, &*none.stdout), (Some(0), ""));
    none.stderr_begins("no limits found: ");

    let folder = home.path().join(".codex/sessions/2026/11/22");
    fs::create_dir_all(&folder).unwrap();
    let lines = [
        of_a_subscription("2026-11-22T19:01:26.000Z", 12.5),
        of_a_subscription("2026-11-22T19:02:26.000Z", 34.0),
    ];
    let name = "rollout-2026-11-22T19-01-26-01a204a2-7b20-7431-91d8-958fb1143826.jsonl";
    fs::write(folder.join(name), lines.join("\n") + "\n").unwrap();
    let table = usage(home.path(), ["--limits"]).quiet();
    let rows: Vec<Vec<_>> = (table.stdout.lines())
        .map(|line| line.split_whitespace().take(3).collect())
        .collect();
    let expected = [
        ["CLI", "LIMIT", "USED"],
        ["codex", "5", "hours"],
        ["codex", "week", "7%"],
    ];
    assert_eq!(rows, expected.map(Vec::from), "{}", table.stdout);
    table.stdout_has(" 34% ");
    table.stdout_has("2100-01-01");
    let json: Value =
        serde_json::from_str(&usage(home.path(), ["--limits", "--json"]).stdout).unwrap();
    let limit = json!({"provider": "codex", "windowMinutes": 300, "usedPercent": 34.0,
                       "resetsAt": "2100-01-01T00:00:00Z", "at": "2026-11-22T19:02:26Z"});
    assert_eq!(json["limits"][0], limit);
}

#[test]
fn a_status_line_is_made_of_what_claude_writes() {
    let home = tempfile::tempdir().unwrap();
    let line = |text: &str| {
        let input = home.path().join("input");
        fs::write(&input, text).unwrap();
        let input = fs::File::open(input).unwrap();
        let mut command = command(home.path(), ["--statusline"]);
        ended(command.stdin(Stdio::from(input)).output().unwrap())
    };
    let input = json!({"model": {"display_name": "Opus 5.5"}, "workspace": {"current_dir": "/w/app"},
                       "cost": {"total_cost_usd": 0.5}, "context_window": {"used_percentage": 12.3},
                       "rate_limits": {"five_hour": {"used_percentage": 41}}});
    let shown = line(&input.to_string()).quiet();
    assert_eq!(
        shown.stdout,
        "Opus 5.5 | app | context 12% | $0.5000 | 5h 41%\n"
    );
    line("no JSON").only_says(2, "teamster usage --statusline");
}
