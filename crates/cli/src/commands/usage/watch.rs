//! `teamster usage --watch`: usage and its rate, refreshed periodically.

use std::io::{self, IsTerminal, Write};
use std::sync::Arc;
use std::time::Duration;

use anstream::AutoStream;
use anyhow::Context;
use jiff::{SignedDuration, Timestamp, Zoned};
use teamster_api::usage::{Dimension, Figures, UsageQuery};
use teamster_core::time::millis;
use teamster_host::usage::{CollectedUsage, When};

use super::args::UsageArgs;
use super::table;
use crate::runtime::wait_only_for;
use crate::signals::Source;
use crate::{exit_code, words, zone};

/// The spans over which the rate is measured, in minutes, with their names.
const RATES: [(u32, &str); 2] = [(15, "last 15 min"), (60, "last hour")];

/// The data of one refresh.
struct Frame {
    collected: CollectedUsage,
    now: Zoned,
    rates: Vec<(&'static str, String)>,
}

/// Shows the usage until a signal and returns the exit code.
pub(super) fn main(args: &UsageArgs, every: Duration) -> anyhow::Result<u8> {
    let mut args = args.clone();
    // By default only today: older usage does not change.
    args.since.get_or_insert(When::DaysAgo(0));
    let args = Arc::new(args);
    wait_only_for(show(&args, every))
}

async fn show(args: &Arc<UsageArgs>, every: Duration) -> anyhow::Result<u8> {
    let mut signals = Source::new().context("cannot listen for signals")?;
    let mut screen = Screen::of_stdout();
    loop {
        let this = args.clone();
        let collecting = tokio::task::spawn_blocking(move || Frame::collect(&this));
        let frame = tokio::select! {
            frame = collecting => frame.context("the files of the CLIs could not be read")??,
            () = signals.next() => return Ok(exit_code::ABORTED),
        };
        let shown = match &mut screen {
            Some(screen) => screen.draw(args, &frame, every),
            None => line(&frame, &mut io::stdout()),
        };
        if shown.is_err() {
            return exit_code::of_printed(shown);
        }
        tokio::select! {
            () = tokio::time::sleep(every) => {}
            () = signals.next() => return Ok(exit_code::ABORTED),
        }
    }
}

impl Frame {
    fn collect(args: &UsageArgs) -> anyhow::Result<Self> {
        let now = Timestamp::now().to_zoned(zone::local());
        let query = super::query(args, &now)?;
        let collect = |query: &UsageQuery| super::collect(args, query, &now);
        let collected = collect(&query)?;
        let mut rates = Vec::new();
        for (minutes, name) in RATES {
            let since = now.timestamp() - SignedDuration::from_mins(minutes.into());
            let mut recent = query.clone();
            (recent.since, recent.until) = (Some(since.to_string()), None);
            rates.push((name, rate(&collect(&recent)?.total(), minutes)));
        }
        Ok(Self {
            collected,
            now,
            rates,
        })
    }
}

/// Formats the rate of a period of this length, with a `~` before a cost of which a part is estimated.
fn rate(figures: &Figures, minutes: u32) -> String {
    let rate = figures.rate(minutes);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a rate is not negative, and what is too large saturates"
    )]
    let tokens = words::count(rate.tokens_per_minute.round() as u64);
    let cost = (rate.usd_per_hour).map(|usd| format!(", {}/h", table::spent(usd, figures)));
    format!("{tokens} tokens/min{}", cost.unwrap_or_default())
}

/// Prints one line per refresh, if stdout is not a terminal.
fn line(frame: &Frame, out: &mut impl Write) -> io::Result<()> {
    let total = frame.collected.total();
    let mut parts = vec![
        words::plural(total.requests, "request"),
        format!(
            "{} tokens",
            words::count(total.usage.total_tokens().unwrap_or_default())
        ),
    ];
    parts.extend(total.spent_usd.map(|usd| table::spent(usd, &total)));
    let at = frame.now.strftime("%Y-%m-%d %H:%M:%S");
    let rates: Vec<_> = (frame.rates.iter())
        .map(|(name, rate)| format!("{name}: {rate}"))
        .collect();
    writeln!(out, "{at} {}; {}", parts.join(", "), rates.join("; "))?;
    out.flush()
}

/// A terminal on which each frame replaces the previous one.
struct Screen {
    term: console::Term,
    begun: bool,
}

impl Screen {
    /// Returns `None` if stdout is not a terminal, or cannot move its cursor.
    fn of_stdout() -> Option<Self> {
        let dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
        (io::stdout().is_terminal() && !dumb).then(|| Self {
            term: console::Term::stdout(),
            begun: false,
        })
    }

    fn draw(&mut self, args: &UsageArgs, frame: &Frame, every: Duration) -> io::Result<()> {
        let (height, width) = self.term.size();
        let (height, width) = (usize::from(height), usize::from(width));
        let colors = AutoStream::choice(&io::stdout());
        let mut text = AutoStream::new(Vec::new(), colors);
        content(args, frame, every, width, &mut text)?;
        let text = String::from_utf8_lossy(&text.into_inner()).into_owned();

        let mut out = io::stdout().lock();
        // Draw over the previous frame; each line erases the rest of its row.
        out.write_all(if self.begun {
            b"\x1b[H"
        } else {
            b"\x1b[2J\x1b[H"
        })?;
        self.begun = true;
        for line in fitting(&text, height) {
            writeln!(out, "{line}\x1b[K")?;
        }
        out.write_all(b"\x1b[J")?;
        out.flush()
    }
}

/// Returns the lines of a frame that fit a terminal of this height. The last row is left for the cursor.
fn fitting(text: &str, height: usize) -> Vec<String> {
    let lines: Vec<_> = text.lines().map(str::to_owned).collect();
    let room = height.saturating_sub(1).max(1);
    if lines.len() <= room {
        return lines;
    }
    let hidden = lines.len() - (room - 1);
    let more = words::plural(hidden as u64, "more line");
    let shown = lines.into_iter().take(room - 1);
    shown.chain([format!("… {more}")]).collect()
}

fn content(
    args: &UsageArgs,
    frame: &Frame,
    every: Duration,
    width: usize,
    out: &mut impl Write,
) -> io::Result<()> {
    let at = frame.now.strftime("%H:%M:%S");
    let every = words::duration_ms(millis(every));
    let head = format!("{at}, every {every}, Ctrl-C ends");
    writeln!(out, "{}", words::wrap(&head, 0, 0, width))?;
    for (name, rate) in &frame.rates {
        let line = format!("{name}: {rate}");
        writeln!(out, "{}", words::wrap(&line, 0, 2, width))?;
    }
    writeln!(out)?;
    let by = args.by.unwrap_or(Dimension::Provider);
    let report = frame.collected.summary(by);
    if report.groups.is_empty() {
        return table::print_empty(&report, &args.providers, Some(width), out);
    }
    table::print(&report, by, frame.now.time_zone(), Some(width), out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_per_minute_and_per_hour() {
        let mut figures = Figures::default();
        figures.usage.input_tokens = Some(30_000);
        assert_eq!(rate(&figures, 15), "2.0k tokens/min");
        figures.spent_usd = Some(0.5);
        assert_eq!(
            rate(&figures, 15),
            format!("2.0k tokens/min, ~{}/h", words::usd(2.0))
        );
        figures.reported_cost_usd = Some(0.5);
        assert_eq!(
            rate(&figures, 60),
            format!("500 tokens/min, {}/h", words::usd(0.5))
        );
    }

    #[test]
    fn a_frame_that_is_too_long_says_so() {
        assert_eq!(fitting("a\nb\nc", 4), ["a", "b", "c"]);
        assert_eq!(fitting("a\nb\nc\nd", 4), ["a", "b", "… 2 more lines"]);
        assert_eq!(fitting("a\nb", 1), ["… 2 more lines"]);
    }
}
