//! What was used, for programs. The fields are described in `docs/usage.md`.

use std::io::{self, Write};

use jiff::Timestamp;
use jiff::fmt::temporal::DateTimePrinter;
use serde::Serialize;
use teamster::Usage;
use teamster::usage::{Figures, Group};

use super::Report;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Written<'a> {
    by: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    since: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    until: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    time_zone: Option<String>,
    groups: Vec<WrittenGroup<'a>>,
    total: WrittenFigures,
    unpriced: Vec<Unpriced<'a>>,
    prices: Prices,
    history: History,
    diagnostics: Diagnostics,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct WrittenGroup<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    #[serde(flatten)]
    figures: WrittenFigures,
    providers: Vec<&'static str>,
    models: Vec<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    directory: Option<&'a str>,
    first: Timestamp,
    last: Timestamp,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    by_model: Vec<WrittenModel<'a>>,
}

/// A model within a group.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct WrittenModel<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<&'a str>,
    #[serde(flatten)]
    figures: WrittenFigures,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct WrittenFigures {
    requests: u64,
    subagent_requests: u64,
    usage: Usage,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_write_1h_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reported_cost_usd: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    estimated_cost_usd: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    spent_usd: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    web_searches: Option<u64>,
    unpriced_requests: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    premium_requests: Option<f64>,
}

#[derive(Serialize)]
struct Unpriced<'a> {
    model: &'a str,
    requests: u64,
}

#[derive(Serialize)]
struct Prices {
    source: &'static str,
    date: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct History {
    /// Runs that the CLIs' files do not know.
    only_there: u64,
    /// Runs whose cost stands beside what the files report.
    with_cost: u64,
    /// Runs of agents whose files are not known.
    of_other_agents: u64,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Diagnostics {
    files: u64,
    bytes: u64,
    malformed_lines: u64,
    oversize_lines: u64,
    sessions_without_figures: u64,
    unreadable: u64,
    unreadable_examples: Vec<String>,
}

pub(super) fn print(report: &Report<'_>, out: &mut impl Write) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, &written(report))?;
    writeln!(out)
}

/// The same as a value.
pub(super) fn value(report: &Report<'_>) -> anyhow::Result<serde_json::Value> {
    Ok(serde_json::to_value(written(report))?)
}

fn written<'a>(report: &'a Report<'_>) -> Written<'a> {
    let (source, date) = Report::prices();
    let found = report.accounts.diagnostics();
    Written {
        by: report.by.name(),
        since: report.span.since,
        until: report.span.until,
        // A copy of a zone's file has no name.
        time_zone: DateTimePrinter::new()
            .time_zone_to_string(&report.zone)
            .ok(),
        groups: (report.groups.iter())
            .map(|found| group(found, report.models_of(found)))
            .collect(),
        total: figures(&report.total),
        unpriced: (report.unpriced.iter())
            .map(|it| Unpriced {
                model: &it.model,
                requests: it.requests,
            })
            .collect(),
        prices: Prices {
            source,
            date,
            // A path need not be UTF-8, which JSON has to be.
            file: report
                .accounts
                .prices()
                .file()
                .map(|file| file.display().to_string()),
        },
        history: History {
            only_there: report.joined.only_there,
            with_cost: report.joined.with_cost,
            of_other_agents: report.of_others,
        },
        diagnostics: Diagnostics {
            files: found.files,
            bytes: found.bytes,
            malformed_lines: found.malformed_lines,
            oversize_lines: found.oversize_lines,
            sessions_without_figures: found.sessions_without_figures,
            unreadable: found.unreadable,
            // A path need not be UTF-8, which JSON has to be.
            unreadable_examples: (found.unreadable_examples.iter())
                .map(|path| path.display().to_string())
                .collect(),
        },
    }
}

fn group<'a>(group: &'a Group, models: &'a [Group]) -> WrittenGroup<'a> {
    WrittenGroup {
        name: group.name.as_deref(),
        figures: figures(&group.figures),
        providers: group.providers.iter().map(|p| p.id()).collect(),
        models: group.models.iter().map(|model| &**model).collect(),
        directory: group.directory.as_deref(),
        first: group.first,
        last: group.last,
        by_model: (models.iter())
            .map(|model| WrittenModel {
                model: model.name.as_deref(),
                figures: figures(&model.figures),
            })
            .collect(),
    }
}

fn figures(figures: &Figures) -> WrittenFigures {
    WrittenFigures {
        requests: figures.requests,
        subagent_requests: figures.subagent_requests,
        usage: figures.usage,
        cache_write_1h_tokens: figures.cache_write_1h_tokens,
        reported_cost_usd: figures.reported_cost_usd,
        estimated_cost_usd: figures.estimated_cost_usd,
        spent_usd: figures.spent_usd,
        web_searches: figures.web_searches,
        unpriced_requests: figures.unpriced_requests,
        premium_requests: figures.premium_requests,
    }
}
