//! `teamster usage --watch` and `--prices`.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::ExitStatusExt;
use std::process::Stdio;

use nix::pty::{Winsize, openpty};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use crate::cli::run;
use crate::cli::usage::{command, home};

fn interrupt(child: &std::process::Child) {
    let pid = Pid::from_raw(child.id().try_into().unwrap());
    kill(pid, Signal::SIGINT).unwrap();
}

#[test]
fn a_watch_prints_a_line_each_time_until_it_is_interrupted() {
    let home = home(&["claude/2.1.197/fork"]);
    let args = ["--watch=1s", "--since=2026-01-01"];
    let mut watch = command(home.path(), args);
    let mut child = watch.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    for _ in 0..2 {
        let line = lines.next().unwrap().unwrap();
        assert!(line.contains(" 8 requests, "), "{line}");
        assert!(line.contains("tokens, ~$0.0"), "{line}");
        assert!(
            line.contains("; last 15 min: 0 tokens/min; last hour: "),
            "{line}"
        );
    }
    interrupt(&child);
    let status = child.wait().unwrap();
    assert_eq!((status.code(), status.signal()), (Some(130), None));
}

#[test]
fn a_watch_on_a_terminal_draws_over_what_it_drew() {
    let home = home(&["claude/2.1.197/fork"]);
    let size = Winsize {
        ws_row: 30,
        ws_col: 40,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    let terminal = openpty(Some(&size), None).unwrap();
    let mut watch = command(home.path(), ["--watch=1s", "--since=2026-01-01"]);
    watch.env("TERM", "xterm").env("NO_COLOR", "1");
    let mut child = watch.stdout(terminal.slave).spawn().unwrap();
    drop(watch);
    let mut shown = String::new();
    let mut screen = File::from(terminal.master);
    let mut part = [0; 4096];
    // Twice a picture: it begins with the cursor at the top, and ends with what is below erased.
    while shown.matches("\u{1b}[J").count() < 2 {
        let read = screen.read(&mut part).unwrap();
        shown.push_str(&String::from_utf8_lossy(&part[..read]));
    }
    interrupt(&child);
    let _ = screen.read_to_end(&mut Vec::new());
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(shown.starts_with("\u{1b}[2J\u{1b}[H"), "{shown:?}");
    assert_eq!(shown.matches("\u{1b}[H").count(), 2, "{shown:?}");
    let picture = shown.split("\u{1b}[J").next().unwrap();
    assert!(picture.contains("last 15 min: 0 tokens/min"), "{shown:?}");
    let plain = picture.replace("\u{1b}[2J", "").replace("\u{1b}[H", "");
    for line in plain.replace("\u{1b}[K", "").lines() {
        assert!(line.trim_end().chars().count() <= 40, "{line:?}");
    }
}

#[test]
fn a_watch_goes_with_tables_only() {
    let home = home(&[]);
    for args in [["--watch", "--json"], ["--watch", "--limits"]] {
        let ended = run(&mut command(home.path(), args));
        assert_eq!((ended.code, &*ended.stdout), (Some(2), ""), "{args:?}");
        ended.stderr_has("cannot be used with");
    }
    run(&mut command(home.path(), ["--watch=0s"])).only_says(2, "between 1s and 24h");
}

/// What the requests to claude-sonnet-4-5 are estimated at.
fn estimate(command: &mut std::process::Command) -> (f64, Value) {
    let ended = run(command).quiet();
    let report = ended.json();
    let usd = report["total"]["estimatedCostUsd"].as_f64().unwrap();
    (usd, report["prices"]["file"].clone())
}

#[test]
fn a_file_of_prices_comes_before_the_table() {
    let home = home(&["claude/2.1.197/fork"]);
    let json = || command(home.path(), ["--json"]);
    let (by_table, file) = estimate(&mut json());
    assert_eq!(file, Value::Null);
    let own = "[models.\"claude-*\"]\ninput = 0\noutput = 1_000_000\n";

    // The user's own, without being named.
    let folder = home.path().join(".config/teamster");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("prices.toml"), own).unwrap();
    let (usd, file) = estimate(&mut json());
    let output = run(&mut json());
    let report = output.json();
    let tokens = report["total"]["usage"]["outputTokens"].as_f64().unwrap();
    assert!(
        (usd - tokens).abs() < 1e-6 && usd > by_table,
        "{usd} {tokens}"
    );
    assert_eq!(file, folder.join("prices.toml").to_str().unwrap());

    // One that is named comes in its place.
    let named = home.path().join("named.toml");
    fs::write(&named, own.replace("1_000_000", "2_000_000")).unwrap();
    let named = named.to_str().unwrap();
    let (twice, file) = estimate(json().args(["--prices", named]));
    assert!((twice - 2.0 * tokens).abs() < 1e-6, "{twice}");
    assert_eq!(file, named);
    let (from_variable, _) = estimate(json().env("TEAMSTER_PRICES", named));
    assert!((from_variable - twice).abs() < 1e-6, "{from_variable}");
}

#[test]
fn a_file_of_prices_that_is_wrong_is_an_error_with_its_line() {
    let home = home(&["claude/2.1.197/fork"]);
    let file = home.path().join("prices.toml");
    fs::write(&file, "[models.m]\ninput = 1\noutput = \"2\"\n").unwrap();
    let file = file.to_str().unwrap();
    let ended = run(&mut command(home.path(), ["--prices", file]));
    assert_eq!((ended.code, &*ended.stdout), (Some(1), ""));
    let expected = format!("{file}:3: `output = \"2\"`: ");
    ended.stderr_has(&expected);
    let missing = run(&mut command(home.path(), ["--prices", "/nowhere.toml"]));
    assert_eq!(missing.code, Some(1));
    // The cause once.
    assert_eq!(
        missing.stderr.trim_end(),
        "error: the file of prices cannot be used: cannot read /nowhere.toml: No such file or directory \
         (os error 2)"
    );
}
