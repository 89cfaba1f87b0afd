//! Usage as a table.

use std::io::{self, Write};

use anstyle::Style;
use jiff::tz::TimeZone;
use teamster::usage::Provider;
use teamster_api::usage::{Dimension, Figures, UsageGroup, UsageSummary};

use crate::table::Table;
use crate::words;

/// The maximum number of models named in the note about missing prices.
const NAMED: usize = 5;

/// The numeric columns, in the order of the cells of [`figures`]. [`fit`] names them by their numbers.
const HEAD: [&str; 8] = [
    "REQUESTS",
    "INPUT",
    "OUTPUT",
    "CACHE READ",
    "CACHE WRITE",
    "REPORTED",
    "ESTIMATED",
    "SPENT",
];

/// Prints a message in place of an empty table. `chosen` are the requested CLIs, if not all.
pub(super) fn print_empty(
    report: &UsageSummary,
    chosen: &[Provider],
    width: Option<usize>,
    out: &mut impl Write,
) -> io::Result<()> {
    let chosen: Vec<_> = chosen.iter().map(|provider| provider.id()).collect();
    let of = match &*chosen {
        [] => String::new(),
        some => format!(" of {}", some.join(", ")),
    };
    let all_time = report.since.is_none() && report.until.is_none();
    let when = if all_time { "yet" } else { "in this period" };
    let more = if all_time && chosen.is_empty() {
        "; `teamster doctor` lists installed CLIs"
    } else {
        ""
    };
    let text = format!("no usage{of} {when} in the CLIs' files and the history of runs{more}");
    writeln!(
        out,
        "{}",
        words::wrap(&text, 0, 0, width.unwrap_or(usize::MAX))
    )?;
    notes(report, &[], width, out)
}

/// Prints the table, fitted to `width` columns.
pub(super) fn print(
    report: &UsageSummary,
    by: Dimension,
    zone: &TimeZone,
    width: Option<usize>,
    out: &mut impl Write,
) -> io::Result<()> {
    let names: &[&str] = match by {
        Dimension::Day => &["DAY"],
        Dimension::Week => &["WEEK OF"],
        Dimension::Month => &["MONTH"],
        Dimension::Model => &["MODEL", "CLI"],
        Dimension::Agent => &["AGENT", "CLI"],
        Dimension::Key => &["KEY", "CLI"],
        Dimension::Account => &["ACCOUNT", "CLI"],
        Dimension::Project => &["PROJECT", "CLI"],
        Dimension::Session => &["SESSION", "CLI", "LAST", "DIRECTORY"],
        Dimension::Provider => &["CLI", "MODELS"],
    };
    let named = names.len();
    // SPENT differs from ESTIMATED only if a cost was reported.
    let reported = report.total.reported_cost_usd.is_some();
    let mut table = Table::new(names.iter().chain(&HEAD).copied())
        .figures_from(named)
        .without_empty();
    for group in &report.groups {
        let cells = naming(by, zone, group).into_iter();
        let cells = cells.chain(figures(&group.figures, reported));
        table.texts(cells);
        for model in &group.by_model {
            let name = model.model.as_deref().unwrap_or("(unknown)");
            let name = format!("  {}", words::one_line(name));
            let names = (0..named).map(|index| {
                if index == 0 {
                    name.clone()
                } else {
                    String::new()
                }
            });
            let cells = names.chain(figures(&model.figures, reported));
            table.row(cells.map(|cell| (cell, Style::new().dimmed())));
        }
    }
    if report.groups.len() > 1 {
        let names = (0..named).map(|name| if name == 0 { "total" } else { "" });
        let cells = names
            .map(str::to_owned)
            .chain(figures(&report.total, reported));
        table.row(cells.map(|cell| (cell, Style::new().bold())));
    }
    let left_out = width.map_or_else(Vec::new, |width| {
        let left_out = fit(&mut table, by, named, width);
        let heads = names.iter().chain(&HEAD);
        left_out
            .into_iter()
            .filter_map(|column| heads.clone().nth(column).copied())
            .collect()
    });
    table.write(out)?;
    writeln!(out)?;
    notes(report, &left_out, width, out)
}

/// The minimum width of truncated group names: before columns are hidden, and after all that can be are hidden.
const NAMES: [usize; 2] = [24, DATE];

/// The width of a date, which is not truncated.
const DATE: usize = 10;

/// Fits a table to `width`: truncates long names and hides columns. Returns the hidden columns.
fn fit(table: &mut Table, by: Dimension, named: usize, width: usize) -> Vec<usize> {
    let (requests, read, written) = (named, named + 3, named + 4);
    let (reported, estimated, spent) = (named + 5, named + 6, named + 7);
    let mut order = match by {
        Dimension::Day | Dimension::Week | Dimension::Month => vec![requests, written, read],
        Dimension::Model
        | Dimension::Agent
        | Dimension::Project
        | Dimension::Key
        | Dimension::Account => {
            vec![requests, 1, written, read]
        }
        Dimension::Session => vec![requests, 1, written, read, 3, 2],
        Dimension::Provider => vec![requests, written, read, 1],
    };
    // SPENT includes both.
    order.push(reported);
    if !table.hides(spent) {
        order.push(estimated);
    }
    // Columns that may be truncated: names of groups and models, directories of sessions, models of CLIs.
    let cuttable: &[usize] = match by {
        Dimension::Session => &[3, 0],
        Dimension::Provider => &[1, 0],
        _ => &[0],
    };
    let paths = |column: usize| {
        matches!(
            (by, column),
            (Dimension::Agent | Dimension::Project, 0) | (Dimension::Session, 3)
        )
    };
    let cut = |table: &mut Table, least: usize| {
        for column in cuttable {
            let over = table.width().saturating_sub(width);
            let wide = table.width_of(*column);
            if over == 0 || wide <= least || table.hides(*column) {
                continue;
            }
            let room = wide.saturating_sub(over).max(least);
            if paths(*column) {
                table.cut_beginnings(*column, room);
            } else {
                table.cut(*column, room);
            }
        }
    };
    let mut left_out = Vec::new();
    for column in order {
        let mut narrow = table.clone();
        cut(&mut narrow, NAMES[0]);
        if narrow.width() <= width {
            *table = narrow;
            return left_out;
        }
        if !table.hides(column) {
            table.without(column);
            left_out.push(column);
        }
    }
    cut(table, NAMES[0]);
    cut(table, NAMES[1]);
    left_out
}

/// Returns the name cells of a group.
fn naming(by: Dimension, zone: &TimeZone, group: &UsageGroup) -> Vec<String> {
    let name = group.name.as_deref().unwrap_or("(unknown)");
    let name = words::one_line(name);
    let providers = words::one_line(&group.providers.join(", "));
    match by {
        Dimension::Day | Dimension::Week | Dimension::Month => vec![name],
        Dimension::Model
        | Dimension::Agent
        | Dimension::Project
        | Dimension::Key
        | Dimension::Account => {
            vec![name, providers]
        }
        Dimension::Session => {
            let last = group.last.to_zoned(zone.clone());
            let directory = group.directory.as_deref().unwrap_or_default();
            vec![
                name,
                providers,
                last.strftime("%Y-%m-%d %H:%M").to_string(),
                words::one_line(directory),
            ]
        }
        Dimension::Provider => {
            let models: Vec<_> = group.models.iter().map(|m| words::one_line(m)).collect();
            vec![name, models.join(", ")]
        }
    }
}

fn figures(figures: &Figures, reported: bool) -> [String; 8] {
    let tokens = |tokens: Option<u64>| tokens.map(words::count).unwrap_or_default();
    let usage = &figures.usage;
    let estimated = |usd: f64| format!("~{}", words::usd(usd));
    [
        match figures.requests {
            // A cost without requests.
            0 => String::new(),
            requests => words::count(requests),
        },
        tokens(usage.input_tokens),
        tokens(usage.output_tokens),
        tokens(usage.cache_read_tokens),
        tokens(usage.cache_write_tokens),
        figures
            .reported_cost_usd
            .map(words::usd)
            .unwrap_or_default(),
        figures
            .estimated_cost_usd
            .map(estimated)
            .unwrap_or_default(),
        figures
            .spent_usd
            .filter(|_| reported)
            .map(|usd| spent(usd, figures))
            .unwrap_or_default(),
    ]
}

/// Formats an amount of these figures, with a `~` if a part of them is estimated.
pub(super) fn spent(usd: f64, figures: &Figures) -> String {
    let about = if figures.is_reported() { "" } else { "~" };
    format!("{about}{}", words::usd(usd))
}

/// Prints notes about the figures.
fn notes(
    report: &UsageSummary,
    left_out: &[&str],
    width: Option<usize>,
    out: &mut impl Write,
) -> io::Result<()> {
    let dim = Style::new().dimmed();
    let width = width.unwrap_or(usize::MAX);
    let mut note = |text: String| {
        let text = words::wrap(&text, 0, 0, width);
        writeln!(out, "{dim}{text}{dim:#}")
    };
    if !left_out.is_empty() {
        note(format!(
            "Hidden columns: {}. --csv shows all.",
            left_out.join(", ")
        ))?;
    }
    let found = &report.diagnostics;
    if report.total.estimated_cost_usd.is_some() {
        let [source, date] =
            [&report.prices.source, &report.prices.date].map(|it| words::one_line(it));
        let file = report.prices.file.as_deref().map(words::one_line);
        let file = file.map_or_else(String::new, |file| {
            format!(
                "; prices in {} take precedence",
                words::cut_beginning(&file, width)
            )
        });
        note(format!(
            "~ is an estimate by list prices of {date} ({source}){file}."
        ))?;
    }
    if report.total.reported_cost_usd.is_some() {
        note(
            "REPORTED is the cost that the CLIs report. SPENT is the reported cost, or else the estimate."
                .into(),
        )?;
    }
    if !report.unpriced.is_empty() {
        let requests = report.unpriced.iter().map(|it| it.requests).sum();
        let names = report.unpriced.iter().take(NAMED).map(|it| {
            let name = match words::one_line(&it.model) {
                name if name.is_empty() => "an unknown model".to_owned(),
                name => name,
            };
            let name = words::cut(&name, width.saturating_sub(1));
            // Some requests to this model have a price, for example from another vendor.
            if it.requests < it.of {
                format!("{name} ({} of {})", it.requests, it.of)
            } else {
                name.into_owned()
            }
        });
        let mut names: Vec<_> = names.collect();
        if report.unpriced.len() > NAMED {
            names.push("...".into());
        }
        let requests = words::plural(requests, "request");
        note(format!(
            "Not in the estimate, because the price is unknown: {requests} to {}. Set it with --prices.",
            names.join(", ")
        ))?;
    }
    if let Some(premium) = report
        .total
        .premium_requests
        .filter(|premium| *premium > 0.0)
    {
        note(format!("Premium requests of Copilot: {premium}."))?;
    }
    if report.history.only_there > 0 {
        let runs = words::plural(report.history.only_there, "run");
        note(format!(
            "From the history, because the CLIs' files do not have them: {runs}."
        ))?;
    }
    if report.history.of_other_agents > 0 {
        let runs = words::plural(report.history.of_other_agents, "run");
        let teamster = crate::global::typed();
        note(format!(
            "Not counted: {runs} of other agents. `{teamster} runs list` shows them."
        ))?;
    }
    if found.sessions_without_figures > 0 {
        let sessions = words::plural(found.sessions_without_figures, "session");
        note(format!(
            "Unknown: the usage of {sessions} whose CLI was killed before it wrote that, or is still running."
        ))?;
    }
    let unclear = found.malformed_lines + found.oversize_lines;
    if unclear > 0 {
        let lines = words::plural(unclear, "line");
        note(format!("Not counted: {lines} that could not be parsed."))?;
    }
    if found.unreadable > 0 {
        let files = words::plural(found.unreadable, "file");
        let example = found.unreadable_examples.first();
        let example = example.map(|path| {
            let path = words::one_line(&path.display().to_string());
            words::cut_beginning(&path, width.saturating_sub(1)).into_owned()
        });
        note(format!(
            "Not counted: {files} that could not be read, such as {}.",
            example.unwrap_or_default()
        ))?;
    }
    Ok(())
}
