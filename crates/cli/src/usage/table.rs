//! What was used, for people.

use std::io::{self, Write};

use anstyle::Style;
use teamster::usage::{Figures, Group, Provider};

use super::Report;
use crate::args::By;
use crate::table::Table;
use crate::words;

/// How many models without a price are named.
const NAMED: usize = 5;

/// The columns with figures.
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

/// A friendly word in the place of a table. `chosen` are the CLIs that were asked for, if not all.
pub(super) fn nothing(
    report: &Report<'_>,
    chosen: &[Provider],
    out: &mut impl Write,
) -> io::Result<()> {
    let chosen: Vec<_> = chosen.iter().map(|provider| provider.id()).collect();
    let of = match &*chosen {
        [] => String::new(),
        some => format!(" of {}", some.join(", ")),
    };
    let all_time = report.span.since.is_none() && report.span.until.is_none();
    let when = if all_time { "here yet" } else { "in this time" };
    let more = if all_time && chosen.is_empty() {
        "; `teamster doctor` shows which CLIs are here"
    } else {
        ""
    };
    writeln!(
        out,
        "nothing{of} was used {when}, as far as the CLIs' files and the history of runs tell{more}"
    )?;
    notes(report, out)
}

pub(super) fn print(report: &Report<'_>, out: &mut impl Write) -> io::Result<()> {
    let names: &[&str] = match report.by {
        By::Day => &["DAY"],
        By::Week => &["WEEK OF"],
        By::Month => &["MONTH"],
        By::Model => &["MODEL", "CLI"],
        By::Agent => &["AGENT", "CLI"],
        By::Project => &["PROJECT", "CLI"],
        By::Session => &["SESSION", "CLI", "LAST", "DIRECTORY"],
        By::Provider => &["CLI", "MODELS"],
    };
    let named = names.len();
    // What was spent is another figure than the estimate only where something is reported.
    let reported = report.total.reported_cost_usd.is_some();
    let mut table = Table::new(names.iter().chain(&HEAD).copied())
        .figures_from(named)
        .without_empty();
    for group in &report.groups {
        let cells = naming(report, group).into_iter();
        let cells = cells.chain(figures(&group.figures, reported));
        table.row(cells.map(|cell| (cell, Style::new())));
        for model in report.models_of(group) {
            let name = model.name.as_deref().unwrap_or("(unknown)");
            let name = format!("  {}", words::one_line(name));
            let names = (0..named).map(|place| {
                if place == 0 {
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
    table.write(out)?;
    writeln!(out)?;
    notes(report, out)
}

/// What tells a group from the others.
fn naming(report: &Report<'_>, group: &Group) -> Vec<String> {
    let name = group.name.as_deref().unwrap_or("(unknown)");
    let name = words::one_line(name);
    let providers: Vec<_> = group.providers.iter().map(|p| p.id()).collect();
    let providers = providers.join(", ");
    match report.by {
        By::Day | By::Week | By::Month => vec![name],
        By::Model | By::Agent | By::Project => vec![name, providers],
        By::Session => {
            let last = group.last.to_zoned(report.zone.clone());
            let directory = group.directory.as_deref().unwrap_or_default();
            vec![
                name,
                providers,
                last.strftime("%Y-%m-%d %H:%M").to_string(),
                words::one_line(directory),
            ]
        }
        By::Provider => {
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
            // Costs alone.
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
            .map(|usd| spent(usd, figures.reported_cost_usd))
            .unwrap_or_default(),
    ]
}

/// What was spent, with a `~` if not all of it is reported.
fn spent(usd: f64, reported: Option<f64>) -> String {
    let all = reported.is_some_and(|reported| (usd - reported).abs() < 1e-9);
    format!("{}{}", if all { "" } else { "~" }, words::usd(usd))
}

/// What has to be known to read the figures.
fn notes(report: &Report<'_>, out: &mut impl Write) -> io::Result<()> {
    let dim = Style::new().dimmed();
    let mut note = |text: String| writeln!(out, "{dim}{text}{dim:#}");
    let found = report.accounts.diagnostics();
    if report.total.estimated_cost_usd.is_some() {
        let (source, date) = Report::prices();
        note(format!(
            "~ is an estimate by list prices of {date} ({source})."
        ))?;
    }
    if report.total.reported_cost_usd.is_some() {
        note(
            "REPORTED is what the CLIs said themselves, where they said it; SPENT is that, or else \
             the estimate."
                .into(),
        )?;
    }
    if !report.unpriced.is_empty() {
        let requests = report.unpriced.iter().map(|(_, requests)| requests).sum();
        let names = report.unpriced.iter().map(|(name, _)| match name.as_str() {
            "" => "an unknown model",
            name => name,
        });
        let mut names: Vec<&str> = names.take(NAMED).collect();
        if report.unpriced.len() > NAMED {
            names.push("...");
        }
        let requests = words::plural(requests, "request");
        note(format!(
            "Without a price, and not in the estimate: {requests} to {}.",
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
    if report.joined.only_there > 0 {
        let runs = words::plural(report.joined.only_there, "run");
        note(format!(
            "From the history, because the CLIs' files know nothing of them: {runs}."
        ))?;
    }
    if report.of_others > 0 {
        let runs = words::plural(report.of_others, "run");
        note(format!(
            "Not counted: {runs} of other agents. `teamster runs list` shows them."
        ))?;
    }
    if found.sessions_without_figures > 0 {
        let sessions = words::plural(found.sessions_without_figures, "session");
        note(format!(
            "Unknown: what {sessions} used whose CLI was ended before it wrote that, or still runs."
        ))?;
    }
    let unclear = found.malformed_lines + found.oversize_lines;
    if unclear > 0 {
        let lines = words::plural(unclear, "line");
        note(format!(
            "Not counted: {lines} that could not be understood."
        ))?;
    }
    if found.unreadable > 0 {
        let files = words::plural(found.unreadable, "file");
        let example = found.unreadable_examples.first();
        let example = example.map(|path| words::one_line(&path.display().to_string()));
        note(format!(
            "Not counted: {files} that could not be read, such as {}.",
            example.unwrap_or_default()
        ))?;
    }
    Ok(())
}
