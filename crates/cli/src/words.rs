//! Formatting of numbers and text for people.

mod system;

use std::borrow::Cow;
use std::fmt::Write;

use console::{measure_text_width, truncate_str};
pub(crate) use system::bytes;
use teamster::{CostSource, RunResult, Usage};
use teamster_api::history::RunState;
use teamster_api::session_of_turn;
use teamster_core::text::is_bidi_control;
pub(crate) use teamster_core::text::one_line;
pub(crate) use teamster_host::text::{error_chain, plural};

/// Formats milliseconds as `0.3s`, `42s`, `2m 05s` or `1h 00m`.
pub(crate) fn duration_ms(ms: u64) -> String {
    // Tenths below ten seconds, rounded half up; whole units beyond.
    let tenths = ms.saturating_add(50) / 100;
    if tenths < 100 {
        return format!("{}.{}s", tenths / 10, tenths % 10);
    }
    let seconds = ms.saturating_add(500) / 1000;
    if seconds < 60 {
        format!("{seconds}s")
    } else if seconds < 3600 {
        format!("{}m {:02}s", seconds / 60, seconds % 60)
    } else {
        format!("{}h {:02}m", seconds / 3600, seconds % 3600 / 60)
    }
}

/// Formats a count as `999`, `1.2k`, `45k` or `1.2M`.
pub(crate) fn count(n: u64) -> String {
    let scaled = |unit: u64, letter: char| {
        let tenths = n.saturating_add(unit / 20) / (unit / 10);
        if tenths < 100 {
            format!("{}.{}{letter}", tenths / 10, tenths % 10)
        } else {
            format!("{}{letter}", n.saturating_add(unit / 2) / unit)
        }
    };
    match n {
        0..1000 => n.to_string(),
        1000..999_500 => scaled(1000, 'k'),
        _ => scaled(1_000_000, 'M'),
    }
}

/// Formats reported tokens as `tokens 60 in, 1.2k out, 45k from cache`. Leaves out cache tokens that are zero.
pub(crate) fn tokens(usage: &Usage) -> Option<String> {
    let parts: Vec<String> = [
        (usage.input_tokens, "in", true),
        (usage.output_tokens, "out", true),
        (usage.cache_read_tokens, "from cache", false),
        (usage.cache_write_tokens, "to cache", false),
    ]
    .into_iter()
    .filter_map(|(n, what, even_zero)| {
        n.filter(|n| even_zero || *n > 0)
            .map(|n| format!("{} {what}", count(n)))
    })
    .collect();
    (!parts.is_empty()).then(|| format!("tokens {}", parts.join(", ")))
}

/// Formats the cost as `$0.0034` or `$1.20`, with a `~` before an estimate.
pub(crate) fn cost(result: &RunResult) -> Option<String> {
    cost_of(result.total_cost_usd, result.cost_source)
}

/// Formats a cost with this source, with a `~` before an estimate.
pub(crate) fn cost_of(usd: Option<f64>, source: Option<CostSource>) -> Option<String> {
    let about = match source {
        Some(CostSource::Estimated) => "~",
        _ => "",
    };
    Some(format!("{about}{}", self::usd(usd?)))
}

/// Formats an amount as `$0.0034` or `$1.20`.
pub(crate) fn usd(usd: f64) -> String {
    if usd >= 1.0 || usd == 0.0 {
        format!("${usd:.2}")
    } else {
        format!("${usd:.4}")
    }
}

/// Returns the width of the terminal if stdout is one, in columns.
pub(crate) fn stdout_width() -> Option<usize> {
    let size = console::Term::stdout().size_checked();
    size.map(|(_, columns)| usize::from(columns))
}

/// Wraps the text to lines of at most `width` columns. The first line starts in column `first`, the others are
/// indented to column `rest`. Text between backticks is one word. Words longer than a line are not split.
pub(crate) fn wrap(text: &str, first: usize, rest: usize, width: usize) -> String {
    let mut wrapped = String::new();
    for (number, line) in text.split('\n').enumerate() {
        let mut column = if number == 0 { first } else { rest };
        if number > 0 {
            wrapped.push('\n');
            wrapped.push_str(&" ".repeat(rest));
        }
        for (number, word) in unbroken(line).into_iter().enumerate() {
            let wide = measure_text_width(word);
            if number > 0 && column + 1 + wide > width {
                wrapped.push('\n');
                wrapped.push_str(&" ".repeat(rest));
                column = rest;
            } else if number > 0 {
                wrapped.push(' ');
                column += 1;
            }
            wrapped.push_str(word);
            column += wide;
        }
    }
    wrapped
}

/// Splits a line into words. Text between backticks is one word.
fn unbroken(line: &str) -> Vec<&str> {
    let (mut words, mut start, mut code) = (Vec::new(), 0, false);
    for (at, c) in line.char_indices() {
        match c {
            '`' => code = !code,
            ' ' if !code => {
                words.push(&line[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    words.push(&line[start..]);
    words
}

/// Truncates the text at its end to `room` columns, between words if at least half of the columns remain used.
pub(crate) fn cut(text: &str, room: usize) -> Cow<'_, str> {
    if measure_text_width(text) <= room {
        return Cow::Borrowed(text);
    }
    let kept = truncate_str(text, room.saturating_sub(1), "");
    let whole = text[kept.len()..].starts_with(' ');
    let kept = match kept.rfind(' ') {
        Some(blank) if !whole && measure_text_width(&kept[..blank]) * 2 >= room => &kept[..blank],
        _ => &*kept,
    };
    Cow::Owned(format!("{}…", kept.trim_end()))
}

/// Truncates the text at its beginning to `room` columns.
pub(crate) fn cut_beginning(text: &str, room: usize) -> Cow<'_, str> {
    let wide = measure_text_width(text);
    if wide <= room {
        return Cow::Borrowed(text);
    }
    let mut kept = text.chars();
    while measure_text_width(kept.as_str()) + 1 > room && kept.next().is_some() {}
    Cow::Owned(format!("…{}", kept.as_str()))
}

/// Removes prefixes `Error:` from the message.
pub(crate) fn without_error_word(message: &str) -> &str {
    let mut message = message.trim();
    while let Some((word, rest)) = message.split_once(':')
        && word.eq_ignore_ascii_case("error")
        && rest.starts_with(' ')
    {
        message = rest.trim_start();
    }
    message
}

/// Removes control characters other than newlines and tabs, and bidirectional controls.
pub(crate) fn printable(text: &str) -> String {
    text.chars()
        .filter(|c| matches!(c, '\n' | '\t') || !(c.is_control() || is_bidi_control(*c)))
        .collect()
}

/// Returns the hint how to answer a detached run's request, to append to its tool's name.
pub(crate) fn how_to_answer(request_id: Option<&str>) -> String {
    request_id.map_or_else(String::new, |id| {
        let id = short_request_id(id);
        let teamster = crate::global::typed();
        format!(" (answer with: {teamster} answer {id} allow|deny)")
    })
}

/// Returns the first three lines of a failed tool's output in one line.
pub(crate) fn tool_failure(output: &str) -> String {
    let text = output.trim();
    // Some CLIs wrap such messages in a tag for the model.
    let text = match text.strip_prefix('<').and_then(|rest| rest.split_once('>')) {
        Some((tag, rest)) if tag.chars().all(|c| c.is_ascii_lowercase() || c == '_') => rest
            .trim_end()
            .strip_suffix(&format!("</{tag}>"))
            .unwrap_or(rest),
        _ => text,
    };
    text.lines()
        .map(one_line)
        .filter(|line| !line.is_empty())
        .take(3)
        .collect::<Vec<_>>()
        .join(" · ")
}

/// Returns the first lines of a text, and how many more there are.
pub(crate) fn first_lines(text: &str, most: usize) -> impl Iterator<Item = String> {
    let text = text.trim_end();
    let more = text.lines().count().saturating_sub(most);
    let more = (more > 0).then(|| format!("… {} more", plural(more as u64, "line")));
    text.lines().take(most).map(printable).chain(more)
}

/// Quotes the text as one shell word, for command lines that users paste. Control characters use the `$'…'` syntax of
/// `bash`, `zsh` and POSIX.1-2024 `sh`.
pub(crate) fn shell_word(text: &str) -> String {
    let is_plain = |c: char| !c.is_control() && !is_bidi_control(c);
    if text.chars().all(is_plain) {
        return shell_words::quote(text).into_owned();
    }
    let mut word = "$'".to_owned();
    for c in text.chars() {
        match c {
            '\\' | '\'' => word.extend(['\\', c]),
            '\n' => word.push_str("\\n"),
            '\t' => word.push_str("\\t"),
            // Three octal digits per byte, because the next character may be a digit.
            c if !is_plain(c) => {
                for byte in c.encode_utf8(&mut [0; 4]).bytes() {
                    // Writing to a string cannot fail.
                    let _ = write!(word, "\\{byte:03o}");
                }
            }
            c => word.push(c),
        }
    }
    word.push('\'');
    word
}

/// Returns the state as the end of a run names it. JSON has other names, such as `success`.
pub(crate) fn run_status(state: RunState) -> String {
    match state {
        RunState::Success => "completed".to_owned(),
        RunState::Error => "failed".to_owned(),
        state => one_line(&state.to_string()),
    }
}

/// Length of a shown id: of a generated id, it covers the timestamp. Commands accept the prefix.
const ID_LENGTH: usize = 13;

/// Shortens an id. The id of a turn keeps its number: the turns of a session differ in it alone, and so do resubmitted runs.
pub(crate) fn short_id(id: &str) -> String {
    let short = |part: &str| part.chars().take(ID_LENGTH).collect::<String>();
    match (session_of_turn(id), id.rsplit_once('~')) {
        (Some((session, turn)), _) => format!("{}.{turn}", short(session)),
        (None, Some((first, number))) => format!("{}~{number}", short(first)),
        (None, None) => short(id),
    }
}

/// Shortens the run's id in the id of a request. `answer` accepts it.
pub(crate) fn short_request_id(id: &str) -> String {
    let id = one_line(id);
    match id.rsplit_once('/') {
        Some((run, number)) => format!("{}/{number}", short_id(run)),
        None => id,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations() {
        for (ms, text) in [
            (0, "0.0s"),
            (49, "0.0s"),
            (300, "0.3s"),
            (9_949, "9.9s"),
            (9_960, "10s"),
            (59_700, "1m 00s"),
            (125_000, "2m 05s"),
            (3_600_000, "1h 00m"),
        ] {
            assert_eq!(duration_ms(ms), text);
        }
    }

    #[test]
    fn counts() {
        for (n, text) in [
            (0, "0"),
            (999, "999"),
            (1_000, "1.0k"),
            (1_249, "1.2k"),
            (9_960, "10k"),
            (45_400, "45k"),
            (999_600, "1.0M"),
            (12_000_000, "12M"),
        ] {
            assert_eq!(count(n), text);
        }
        assert_eq!(plural(1, "turn"), "1 turn");
        assert_eq!(plural(0, "turn"), "0 turns");
    }

    #[test]
    fn figures_that_were_not_reported_are_not_shown() {
        assert_eq!(tokens(&Usage::default()), None);
        let usage = Usage::default()
            .input_tokens(0)
            .output_tokens(1_200)
            .cache_read_tokens(45_000)
            .cache_write_tokens(0);
        assert_eq!(
            tokens(&usage).unwrap(),
            "tokens 0 in, 1.2k out, 45k from cache"
        );
        let mut result = RunResult::default();
        assert_eq!(cost(&result), None);
        result.total_cost_usd = Some(0.00342);
        assert_eq!(cost(&result).unwrap(), "$0.0034");
        result.total_cost_usd = Some(1.234);
        result.cost_source = Some(CostSource::Estimated);
        assert_eq!(cost(&result).unwrap(), "~$1.23");
    }

    #[test]
    fn a_text_is_shown_in_the_order_that_it_has() {
        let hostile = "a\u{202e}gnp.\u{2066}exe\u{200f}\u{61c}\u{1b}[2J\r\nb\u{9b}";
        assert_eq!(one_line(hostile), "agnp.exe [2J b");
        assert_eq!(printable(hostile), "agnp.exe[2J\nb");
        // A zero-width joiner stays.
        assert_eq!(printable("👩\u{200d}🚀 שלום"), "👩\u{200d}🚀 שלום");
        assert_eq!(one_line("a \u{202e} b"), "a b");
    }

    #[test]
    fn the_id_of_a_turn_keeps_its_number() {
        let session = "0199d7a0-1b2c-7e3a-8efe-8cde57247dd5";
        assert_eq!(short_id(session), "0199d7a0-1b2c");
        assert_eq!(short_id(&format!("{session}.12")), "0199d7a0-1b2c.12");
        assert_eq!(short_id(&format!("{session}~2")), "0199d7a0-1b2c~2");
        assert_eq!(short_id("nightly.build"), "nightly.build");
        assert_eq!(short_id("short"), "short");
        assert_eq!(
            short_request_id(&format!("{session}.12/3")),
            "0199d7a0-1b2c.12/3"
        );
        let how = how_to_answer(Some(&format!("{session}/1")));
        assert!(
            how.ends_with(" answer 0199d7a0-1b2c/1 allow|deny)"),
            "{how}"
        );
    }

    #[test]
    fn the_first_lines_of_a_text_say_how_many_more_there_are() {
        let shown = |most| first_lines("a\n\u{1b}[2Jb\n\nc\n", most).collect::<Vec<_>>();
        assert_eq!(shown(4), ["a", "[2Jb", "", "c"]);
        assert_eq!(shown(2), ["a", "[2Jb", "… 2 lines more"]);
    }

    #[test]
    fn lines_end_between_words() {
        let text = "use `npm install -g x` or say where it is";
        assert_eq!(
            wrap(text, 6, 2, 24),
            "use\n  `npm install -g x` or\n  say where it is"
        );
        assert_eq!(wrap("a b\nc", 0, 2, 80), "a b\n  c");
        assert_eq!(wrap("/a/long/path b", 0, 2, 5), "/a/long/path\n  b");
        assert_eq!(cut("one two three", 13), "one two three");
        assert_eq!(cut("one two three", 11), "one two…");
        assert_eq!(cut("one two three", 8), "one two…");
        // Cut within a word if the last space is too early.
        assert_eq!(cut("a /very/long/path", 10), "a /very/l…");
        assert_eq!(cut("日本語", 5), "日本…");
    }

    #[test]
    fn error_prefixes_are_removed() {
        assert_eq!(without_error_word("Error: error: no such"), "no such");
        assert_eq!(without_error_word("Errors: two"), "Errors: two");
        assert_eq!(without_error_word("no Error: x"), "no Error: x");
    }

    #[test]
    fn failures_of_tools() {
        assert_eq!(
            tool_failure("<tool_use_error>Error: no such tool</tool_use_error>"),
            "Error: no such tool"
        );
        assert_eq!(
            tool_failure("Exit code 3\n\nout\nerr\nmore"),
            "Exit code 3 · out · err"
        );
        assert_eq!(tool_failure("<a href>x"), "<a href>x");
    }

    #[test]
    fn a_path_can_be_pasted_into_a_shell() {
        assert_eq!(shell_word("/tmp/a-b"), "/tmp/a-b");
        assert_eq!(shell_word("a b"), "'a b'");
        for text in ["it's", "a\nb's \\ \u{1b}1\t$HOME", "\u{85}x"] {
            let script = format!("printf %s {}", shell_word(text));
            let shell = std::process::Command::new("bash")
                .args(["-c", &script])
                .output();
            let shown = String::from_utf8(shell.unwrap().stdout).unwrap();
            assert_eq!(shown, text, "{script}");
        }
    }
}
