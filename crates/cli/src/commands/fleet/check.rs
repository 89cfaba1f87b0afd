//! `teamster fleet check`.

use std::io::{self, Write};

use anstyle::{AnsiColor, Style};
use serde_json::json;
use teamster_fleet::{Finding, FindingVerdict};

use super::args::FleetCheckArgs;
use crate::fleet::wait;
use crate::{exit_code, words};

/// Prints what a check has found, and returns the exit code.
pub(super) fn main(args: &FleetCheckArgs) -> anyhow::Result<u8> {
    let fleet = super::fleet()?;
    let findings = wait(fleet.check())?;
    let printed = if args.json {
        exit_code::of_json_lines(findings.iter().map(line))
    } else {
        exit_code::of_printed(print(&findings, &mut anstream::stdout()))
    };
    let is_bad = |finding: &Finding| finding.verdict == FindingVerdict::Bad;
    let problem = (findings.iter().any(is_bad)).then_some(exit_code::AGENT_ERROR);
    exit_code::of_findings(printed, problem)
}

fn line(finding: &Finding) -> serde_json::Value {
    let (word, _) = verdict(finding.verdict);
    let mut line = json!({"what": finding.what, "verdict": word, "detail": finding.detail});
    if let Some(next) = &finding.next {
        line["next"] = json!(next);
    }
    line
}

fn verdict(verdict: FindingVerdict) -> (&'static str, Style) {
    match verdict {
        FindingVerdict::Good => ("ok", AnsiColor::Green.on_default()),
        FindingVerdict::Warning => ("warning", AnsiColor::Yellow.on_default()),
        _ => ("bad", AnsiColor::Red.on_default().bold()),
    }
}

fn print(findings: &[Finding], out: &mut impl Write) -> io::Result<()> {
    for finding in findings {
        let (word, style) = verdict(finding.verdict);
        let what = words::one_line(&finding.what);
        let detail = words::one_line(&finding.detail);
        write!(out, "{style}{word:<8}{style:#} {what:<14} {detail}")?;
        if let Some(next) = &finding.next {
            write!(out, ": {}", words::one_line(next))?;
        }
        writeln!(out)?;
    }
    Ok(())
}
