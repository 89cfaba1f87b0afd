//! `teamster runs list`.

use std::io::{self, Write};

use anstyle::Style;
use teamster_api::history::{RunFilter, RunRecord, RunState};
use teamster_core::time::{epoch_ms, millis};

use super::args::{RunsListArgs, Status};
use super::history::History;
use super::{canonical, duration_ms, style};
use crate::global::typed;
use crate::report::note;
use crate::table::Table;
use crate::zone::local_time;
use crate::{exit_code, hints, words};

pub(super) async fn main(args: &RunsListArgs, history: &History) -> anyhow::Result<u8> {
    if history.is_missing() {
        return Ok(exit_code::SUCCESS);
    }
    let since = (args.since).map(|since| epoch_ms().saturating_sub(millis(since)));
    // One more shows whether there are others.
    let all = RunFilter::default().limit(args.limit.saturating_add(u32::from(!args.json)));
    let mut filter = all.clone();
    filter.provider.clone_from(&args.provider);
    filter.status = args.status.map(state);
    filter.since_ms = since;
    filter.text.clone_from(&args.text);
    filter.working_directory = (args.cwd.as_deref()).map(|cwd| canonical(cwd, history.is_here()));
    let is_filtered = filter != all;
    let mut runs = history.list(filter).await?;
    if args.json {
        return exit_code::of_json_lines(&runs);
    }
    if runs.is_empty() {
        let location = words::one_line(&history.location());
        if is_filtered {
            note(&format!("no such runs in {location}"));
        } else {
            note(&format!(
                "no runs yet in {location}: `{} run` makes one",
                typed()
            ));
        }
    }
    let shown = usize::try_from(args.limit).unwrap_or(usize::MAX);
    let has_more = runs.len() > shown;
    runs.truncate(shown);
    let now_ms = epoch_ms();
    let rows: Vec<_> = runs.iter().map(|run| row(run, now_ms)).collect();
    let printed = table(&rows, words::stdout_width(), &mut anstream::stdout());
    if has_more && printed.is_ok() {
        note(&format!(
            "there are more: --limit {}",
            shown.saturating_mul(5)
        ));
    }
    exit_code::of_printed(printed)
}

fn state(status: Status) -> RunState {
    match status {
        Status::Running => RunState::Running,
        Status::Completed => RunState::Success,
        Status::Failed => RunState::Error,
        Status::Aborted => RunState::Aborted,
        Status::Interrupted => RunState::Interrupted,
    }
}

const HEAD: [&str; 9] = [
    "RUN", "BEGAN", "AGENT", "STATUS", "TIME", "TOKENS", "COST", "TITLE", "",
];
/// The columns of texts, which are cut where there is no room.
const TITLE: usize = 7;
const NOTE: usize = 8;

/// Column sets, widest first. All but the first omit the agent's model and the year.
const COLUMNS: [&[usize]; 6] = [
    &[0, 1, 2, 3, 4, 5, 6, TITLE, NOTE],
    &[0, 1, 2, 3, 4, 5, 6, TITLE],
    &[0, 1, 2, 3, 4, 6, TITLE],
    &[0, 1, 2, 3, 6, TITLE],
    &[0, 2, 3, TITLE],
    &[0, 2, 3],
];

/// Minimum widths of a title and of a note that are cut, in columns.
const MIN_TITLE: usize = 16;
const MIN_NOTE: usize = 12;
/// Maximum width of an agent beside cut texts, in columns: it can be a whole command.
const MAX_AGENT: usize = 24;

/// A row of the table.
#[derive(Clone)]
struct Row {
    cells: [String; 9],
    /// Short forms of start time and agent for narrow terminals.
    narrow: [String; 2],
    status: Style,
}

fn table(rows: &[Row], width: Option<usize>, out: &mut impl Write) -> io::Result<()> {
    if rows.is_empty() {
        return Ok(());
    }
    let width = width.unwrap_or(usize::MAX);
    let widest = |column: usize| {
        let cells = rows.iter().map(|row| &row.cells[column]);
        cells.map(|cell| console::measure_text_width(cell)).max()
    };
    let [titles, notes] = [TITLE, NOTE].map(|column| widest(column).unwrap_or_default());
    // What the run and its status leave on a narrow terminal.
    let beside =
        [0, 3].map(|column| widest(column).unwrap_or_default().max(HEAD[column].len()) + 2);
    let agent = width.saturating_sub(beside.iter().sum()).min(MAX_AGENT);
    let of_columns = |columns: &[usize], title: usize, note: usize| {
        // Runs of an earlier version have no title.
        let columns = columns
            .iter()
            .filter(|column| **column != TITLE || titles > 0);
        let columns: Vec<_> = columns.copied().collect();
        let mut table = Table::new(columns.iter().map(|column| HEAD[*column]));
        for row in rows {
            let mut cells = row.cells.clone();
            if !columns.contains(&NOTE) {
                [cells[1], cells[2]] = row.narrow.clone();
                cells[2] = words::cut(&cells[2], agent).into_owned();
            }
            for (column, most) in [(TITLE, title), (NOTE, note)] {
                cells[column] = words::cut(&cells[column], most).into_owned();
            }
            let mut styles = [Style::new(); 9];
            styles[3] = row.status;
            styles[NOTE] = Style::new().dimmed();
            let row: Vec<_> = cells.into_iter().zip(styles).collect();
            table.row(columns.iter().map(|column| row[*column].clone()));
        }
        table
    };
    let least = (titles.min(MIN_TITLE), notes.min(MIN_NOTE));
    let fits = |columns: &&&[usize]| of_columns(columns, least.0, least.1).width() <= width;
    let columns = COLUMNS.iter().find(fits).unwrap_or(&COLUMNS[5]);
    // The title shrinks first.
    let over = (of_columns(columns, titles, notes).width()).saturating_sub(width);
    let title = titles.saturating_sub(over).max(least.0);
    let note = notes.saturating_sub(over.saturating_sub(titles - title));
    of_columns(columns, title, note).write(out)
}

fn row(run: &RunRecord, now_ms: u64) -> Row {
    let mut agent = run.provider.clone();
    if let Some(account) = run.attempt_log.last().and_then(|it| it.account.as_ref()) {
        agent = format!("{agent}@{account}");
    }
    if let Some(model) = &run.model {
        agent = format!("{agent} {model}");
    }
    let tokens = run.usage.and_then(|usage| usage.total_tokens());
    let mut note = run
        .error
        .as_ref()
        .filter(|_| run.status != RunState::Aborted)
        .map(|error| words::cut(&words::one_line(&hints::message(error)), 60).into_owned())
        .unwrap_or_default();
    if run.attempts > 1 {
        let attempts = words::plural(run.attempts.into(), "attempt");
        note = match note.as_str() {
            "" => attempts,
            note => format!("{attempts}: {note}"),
        };
    }
    Row {
        cells: [
            words::short_id(&words::one_line(&run.run_id)),
            local_time(run.started_at, "%Y-%m-%d %H:%M:%S"),
            words::one_line(&agent),
            words::run_status(run.status),
            duration_ms(run, now_ms)
                .map(words::duration_ms)
                .unwrap_or_default(),
            tokens.map(words::count).unwrap_or_default(),
            words::cost_of(run.cost_usd, run.cost_source).unwrap_or_default(),
            words::one_line(run.title.as_deref().unwrap_or_default()),
            note,
        ],
        narrow: [
            local_time(run.started_at, "%m-%d %H:%M"),
            words::one_line(&run.provider),
        ],
        status: style(run.status),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_fits_the_terminal() {
        let cells = [
            "0199d7a0-1b2c",
            "2026-11-23 05:00:00",
            "opencode anthropic/claude-opus-4-8",
            "interrupted",
            "1h 00m",
            "1.2M",
            "$12.34",
            "Fix the login of the shop, which fails",
            "2 attempts: the connection was lost",
        ];
        let row = Row {
            cells: cells.map(str::to_owned),
            narrow: ["11-23 05:00", "opencode"].map(str::to_owned),
            status: Style::new(),
        };
        let mut untitled = row.clone();
        untitled.cells[TITLE].clear();
        let shown = |width, row: &Row| {
            let rows = [row.clone()];
            let mut bytes = Vec::new();
            table(&rows, width, &mut bytes).unwrap();
            anstream::adapter::strip_str(&String::from_utf8(bytes).unwrap()).to_string()
        };
        let mut command = row.clone();
        command.narrow[1] = "acp:npx -y @example/a-long-name-of-an-agent".to_owned();
        assert_eq!(
            shown(Some(40), &command),
            "RUN            AGENT        STATUS\n0199d7a0-1b2c  acp:npx -y…  interrupted\n"
        );
        for row in [&row, &untitled, &command] {
            assert!(shown(None, row).ends_with("2 attempts: the connection was lost\n"));
            for width in 40..200 {
                let shown = shown(Some(width), row);
                let widest = shown.lines().map(console::measure_text_width).max();
                assert!(widest.unwrap() <= width, "{width}: {shown}");
                assert!(shown.contains("0199d7a0-1b2c") && shown.contains("interrupted"));
                let agent = console::measure_text_width(&row.narrow[1]).min(MAX_AGENT);
                let has_title = !row.cells[TITLE].is_empty() && width >= 44 + agent;
                assert_eq!(shown.contains("Fix the"), has_title, "{width}: {shown}");
            }
        }
        assert!(shown(Some(80), &row).contains("Fix the login of t"));
        assert!(!shown(Some(80), &untitled).contains("TITLE"));
        assert_eq!(
            shown(Some(40), &row),
            "RUN            AGENT     STATUS\n0199d7a0-1b2c  opencode  interrupted\n"
        );
    }
}
