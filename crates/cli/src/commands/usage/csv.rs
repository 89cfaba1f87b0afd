//! Usage as comma-separated values (RFC 4180).

use std::borrow::Cow;
use std::io::{self, Write};

use teamster_api::usage::{Dimension, Figures, UsageSummary};

/// The columns after the names of the group and model.
const HEAD: [&str; 14] = [
    "providers",
    "requests",
    "subagent_requests",
    "input_tokens",
    "output_tokens",
    "cache_read_tokens",
    "cache_write_tokens",
    "cache_write_1h_tokens",
    "reasoning_tokens",
    "web_searches",
    "reported_cost_usd",
    "estimated_cost_usd",
    "spent_usd",
    "unpriced_requests",
];

/// Prints a row for each group, or for each of its models if there are any. Unknown values are empty.
pub(super) fn print(summary: &UsageSummary, by: Dimension, out: &mut impl Write) -> io::Result<()> {
    let by_model = summary.by == Dimension::Model;
    let model = if by_model { "" } else { ",model" };
    writeln!(out, "{by}{model},{}", HEAD.join(","))?;
    for group in &summary.groups {
        let group_name = group.name.as_deref().unwrap_or_default();
        let group_row =
            |names: &[&str], out: &mut _| row(names, &group.providers, &group.figures, out);
        match &*group.by_model {
            [] if by_model => group_row(&[group_name], out)?,
            [] => group_row(&[group_name, ""], out)?,
            models => {
                for model in models {
                    let names = [group_name, model.model.as_deref().unwrap_or_default()];
                    row(&names, &model.providers, &model.figures, out)?;
                }
            }
        }
    }
    Ok(())
}

fn row(names: &[&str], providers: &[String], of: &Figures, out: &mut impl Write) -> io::Result<()> {
    let providers = providers.join(" ");
    let names = names.iter().copied().chain([&*providers]);
    let names: Vec<_> = names.map(quoted).collect();
    writeln!(out, "{},{}", names.join(","), figures(of).join(","))
}

fn figures(figures: &Figures) -> [String; 13] {
    let count = |count: Option<u64>| count.map(|count| count.to_string()).unwrap_or_default();
    let usd = |usd: Option<f64>| usd.map(|usd| usd.to_string()).unwrap_or_default();
    let usage = &figures.usage;
    [
        figures.requests.to_string(),
        figures.subagent_requests.to_string(),
        count(usage.input_tokens),
        count(usage.output_tokens),
        count(usage.cache_read_tokens),
        count(usage.cache_write_tokens),
        count(figures.cache_write_1h_tokens),
        count(usage.reasoning_tokens),
        count(figures.web_searches),
        usd(figures.reported_cost_usd),
        usd(figures.estimated_cost_usd),
        usd(figures.spent_usd),
        figures.unpriced_requests.to_string(),
    ]
}

/// Quotes a field if necessary.
fn quoted(text: &str) -> Cow<'_, str> {
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\"")).into()
    } else {
        text.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_with_a_comma_or_a_quotation_mark_is_quoted() {
        for (text, field) in [
            ("/w/a", "/w/a"),
            ("/w/a,b", "\"/w/a,b\""),
            ("say \"a\"", "\"say \"\"a\"\"\""),
            ("", ""),
        ] {
            assert_eq!(quoted(text), field);
        }
    }
}
