//! Limits of subscriptions: the used part and the time of reset.

use jiff::Timestamp;
use teamster_api::usage::{LimitList, UsageLimit};

use crate::report::note;
use crate::table::Table;
use crate::{exit_code, words, zone};

/// Prints limits and returns the exit code.
pub(super) fn show(list: &LimitList, json: bool, is_fleet: bool) -> anyhow::Result<u8> {
    if json {
        return exit_code::of_json(list);
    }
    let limits = &list.limits;
    if limits.is_empty() && is_fleet {
        note("no agent of the fleet has reached a limit");
        return Ok(exit_code::SUCCESS);
    }
    if limits.is_empty() {
        note(
            "no limits found: Codex reports them with its answers when it is logged in with a \
             subscription; Claude Code gives them to its status line only \
             (`teamster usage --statusline`)",
        );
        return Ok(exit_code::SUCCESS);
    }
    let table = table(limits, Timestamp::now(), words::stdout_width());
    exit_code::of_printed(table.write(&mut anstream::stdout()))
}

/// Creates the table of limits. To fit `width`, it drops the column AS OF, then the dates of the resets.
fn table(limits: &[UsageLimit], now: Timestamp, width: Option<usize>) -> Table {
    let mut whole = with_resets(limits, now, true);
    let fits = |table: &Table| width.is_none_or(|width| table.width() <= width);
    if !fits(&whole) {
        whole.without(4);
    }
    if !fits(&whole) {
        whole = with_resets(limits, now, false);
        whole.without(4);
    }
    whole
}

fn with_resets(limits: &[UsageLimit], now: Timestamp, dates: bool) -> Table {
    let mut table = Table::new(["CLI", "LIMIT", "USED", "RESETS", "AS OF"]);
    let local = |at: Timestamp| {
        let at = at.to_zoned(zone::local());
        at.strftime("%Y-%m-%d %H:%M").to_string()
    };
    for limit in limits {
        let resets = match limit.resets_at {
            Some(at) if at <= now => "already reset".to_owned(),
            Some(at) if dates => format!("{} (in {})", local(at), span(now, at)),
            Some(at) => format!("in {}", span(now, at)),
            None => String::new(),
        };
        let cells = [
            words::one_line(&limit.provider),
            window(limit.window_minutes),
            format!("{}%", limit.used_percent.round()),
            resets,
            local(limit.at),
        ];
        table.texts(cells);
    }
    table
}

/// Returns the name of a limit's window.
fn window(minutes: Option<u64>) -> String {
    match minutes {
        Some(10_080) => "week".to_owned(),
        Some(1_440) => "day".to_owned(),
        Some(minutes) if minutes % 60 == 0 => format!("{} hours", minutes / 60),
        Some(minutes) => format!("{minutes} minutes"),
        None => String::new(),
    }
}

/// Formats the duration until a time: `2d 10h`, `2h 17m` or `5m`.
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
    use teamster::usage::{Locations, limit_list, limits};

    use super::*;

    #[test]
    fn a_narrow_terminal_has_how_much_is_used_and_when_it_resets() {
        let now = Timestamp::from_second(1_795_410_000).unwrap();
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("sessions/2026/11/22");
        std::fs::create_dir_all(&folder).unwrap();
        // Handwritten, with the fields of Codex 0.169.0.
        let line = r#"{"timestamp":"2026-11-22T19:00:00.000Z","type":"event_msg","payload":{"type":"token_count",
            "info":null,"rate_limits":{"primary":{"used_percent":31.0,"window_minutes":300,"resets_at":1795418220},
            "secondary":{"used_percent":100.0,"window_minutes":10080,"resets_at":1795618800}}}}"#;
        let line = line.replace('\n', "");
        std::fs::write(folder.join("rollout-1.jsonl"), format!("{line}\n")).unwrap();
        let mut locations = Locations::default();
        locations.codex = Some(home.path().to_owned());
        let limits = limit_list(limits(&locations)).limits;
        assert_eq!(limits.len(), 2);
        for width in [40, 60, 80, 120] {
            let table = table(&limits, now, Some(width));
            let mut out = anstream::StripStream::new(Vec::new());
            table.write(&mut out).unwrap();
            let text = String::from_utf8(out.into_inner()).unwrap();
            for line in text.lines() {
                assert!(
                    console::measure_text_width(line) <= width,
                    "{width}\n{text}"
                );
            }
            assert!(
                text.contains("in 2h 17m") && text.contains("100%"),
                "{width}\n{text}"
            );
        }
    }

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
