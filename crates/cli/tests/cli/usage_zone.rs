//! What was used, with the days of a time zone.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::cli::usage::{command, home};
use crate::cli::{Ended, run};

/// A request was made there at 19:01 UTC on 2026-11-22.
const RECORDED: &str = "claude/2.1.197/text";

/// Writes a zone's file, with this rule for all times.
fn zone(folder: &Path, name: &str, rule: &str) {
    // Two blocks of data, each with one kind of local time, which is UTC; then the rule.
    let mut file = Vec::new();
    for _ in 0..2 {
        file.extend(b"TZif2");
        file.extend([0; 15]);
        file.extend(
            [0_u32, 0, 0, 0, 1, 4]
                .into_iter()
                .flat_map(u32::to_be_bytes),
        );
        file.extend([0; 6]);
        file.extend(b"UTC\0");
    }
    file.extend(format!("\n{rule}\n").into_bytes());
    let path = folder.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, file).unwrap();
}

/// `teamster usage --json` in a zone.
fn usage(zones: &Path, zone: &str, args: &[&str]) -> (Value, Ended) {
    let home = home(&[RECORDED]);
    let args = ["--json"].iter().chain(args).copied();
    let ended = run(command(home.path(), args)
        .env("TZDIR", zones)
        .env("TZ", zone))
    .ok();
    (serde_json::from_str(&ended.stdout).unwrap(), ended)
}

#[test]
fn a_zone_is_known_by_its_name() {
    let zones = tempfile::tempdir().unwrap();
    zone(zones.path(), "America/New_York", "EST5EDT,M3.2.0,M11.1.0");
    zone(zones.path(), "Pacific/Kiritimati", "<+14>-14");
    let since = |zone: &str, at: &str| {
        let since = format!("--since={at}");
        let (report, ended) = usage(zones.path(), zone, &[&since]);
        assert_eq!((&report["timeZone"], &*ended.stderr), (&zone.into(), ""));
        report["since"].as_str().unwrap().to_owned()
    };
    assert_eq!(
        since("America/New_York", "2026-11-22"),
        "2026-11-22T05:00:00Z"
    );
    assert_eq!(
        since("America/New_York", "2026-07-01 08"),
        "2026-07-01T12:00:00Z"
    );
    assert_eq!(since("UTC", "2026-11-22 09"), "2026-11-22T09:00:00Z");
    let in_another = "2026-11-22T09:00[America/New_York]";
    assert_eq!(since("UTC", in_another), "2026-11-22T14:00:00Z");
    let day = |zone: &str| usage(zones.path(), zone, &[]).0["groups"][0]["name"].clone();
    assert_eq!(day("America/New_York"), "2026-11-22");
    assert_eq!(day("Pacific/Kiritimati"), "2026-11-23");
}

#[test]
fn a_rule_is_a_zone_and_what_is_none_is_reported() {
    let zones = tempfile::tempdir().unwrap();
    let rule = "EST5EDT,M3.2.0,M11.1.0";
    let (report, ended) = usage(zones.path(), rule, &[]);
    assert_eq!((&report["timeZone"], &*ended.stderr), (&rule.into(), ""));
    let (report, ended) = usage(zones.path(), "Nowhere/Here", &["--by=session"]);
    assert_eq!(report["timeZone"], "UTC");
    assert_eq!(
        ended.stderr,
        "warning: TZ: unknown time zone Nowhere/Here; using UTC\n"
    );
}
