//! The limits of subscriptions: how much is used, and when they reset.

use std::io::{self, Write};

use anstyle::Style;
use jiff::Timestamp;
use serde::Serialize;
use teamster::usage::{Limit, Places, limits};

use crate::table::Table;
use crate::zone;

#[derive(Serialize)]
struct Written {
    limits: Vec<WrittenLimit>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct WrittenLimit {
    provider: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    window_minutes: Option<u64>,
    used_percent: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    resets_at: Option<Timestamp>,
    at: Timestamp,
}

/// Prints the limits that the CLIs left on the disk.
pub(super) fn print(json: bool) -> io::Result<()> {
    let limits = limits(&Places::from_env());
    if json {
        let limits = limits.iter().map(|limit| WrittenLimit {
            provider: limit.provider.id(),
            window_minutes: limit.window_minutes,
            used_percent: limit.used_percent,
            resets_at: limit.resets_at,
            at: limit.at,
        });
        let written = Written {
            limits: limits.collect(),
        };
        let mut out = io::stdout();
        serde_json::to_writer_pretty(&mut out, &written)?;
        return writeln!(out);
    }
    if limits.is_empty() {
        return writeln!(
            anstream::stderr(),
            "no limits found: Codex reports them with its answers when it is logged in with a \
             subscription; Claude Code gives them to its status line only \
             (`teamster usage --statusline`)"
        );
    }
    table(&limits, Timestamp::now()).write(&mut anstream::stdout())
}

fn table(limits: &[Limit], now: Timestamp) -> Table {
    let mut table = Table::new(["CLI", "LIMIT", "USED", "RESETS", "AS OF"]);
    let local = |at: Timestamp| {
        let at = at.to_zoned(zone::local());
        at.strftime("%Y-%m-%d %H:%M").to_string()
    };
    for limit in limits {
        let resets = match limit.resets_at {
            Some(at) if at <= now => "has reset since".to_owned(),
            Some(at) => format!("{} (in {})", local(at), span(now, at)),
            None => String::new(),
        };
        let cells = [
            limit.provider.id().to_owned(),
            window(limit.window_minutes),
            format!("{}%", limit.used_percent.round()),
            resets,
            local(limit.at),
        ];
        table.row(cells.map(|cell| (cell, Style::new())));
    }
    table
}

/// The name of a window.
fn window(minutes: Option<u64>) -> String {
    match minutes {
        Some(10_080) => "week".to_owned(),
        Some(1_440) => "day".to_owned(),
        Some(minutes) if minutes % 60 == 0 => format!("{} hours", minutes / 60),
        Some(minutes) => format!("{minutes} minutes"),
        None => String::new(),
    }
}

/// How long it is until a time: `2d 10h`, `2h 17m` or `5m`.
pub(super) fn span(now: Timestamp, until: Timestamp) -> String {
    let minutes = until.duration_since(now).as_secs().max(0) / 60;
    match (minutes / 1440, minutes / 60 % 24, minutes % 60) {
        (0, 0, minutes) => format!("{minutes}m"),
        (0, hours, minutes) => format!("{hours}h {minutes}m"),
        (days, hours, _) => format!("{days}d {hours}h"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_and_spans_have_short_names() {
        for (minutes, name) in [
            (Some(300), "5 hours"),
            (Some(10_080), "week"),
            (Some(90), "90 minutes"),
            (None, ""),
        ] {
            assert_eq!(window(minutes), name);
        }
        let now = Timestamp::from_second(1_795_410_000).unwrap();
        for (seconds, text) in [
            (-5, "0m"),
            (300, "5m"),
            (8_220, "2h 17m"),
            (208_800, "2d 10h"),
        ] {
            let until = Timestamp::from_second(1_795_410_000 + seconds).unwrap();
            assert_eq!(span(now, until), text);
        }
    }
}
