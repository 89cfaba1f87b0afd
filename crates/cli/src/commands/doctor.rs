//! `teamster doctor`, which lists the installed CLIs and checks them.
//!
//! How to install a CLI and how to log in is in the `CliInfo` of its provider. The checks are those of
//! `teamster::doctor`.

pub(crate) mod args;
#[cfg(feature = "fleet")]
mod fleet;
mod try_agent;

use std::env;
use std::io::{self, Write};

use anstyle::{AnsiColor, Style};
use serde::Serialize;
use teamster::doctor;
use teamster_api::ProviderFacts;
use teamster_core::time::epoch_ms;
use teamster_host::{
    ChangedFile, EngineReport, Guard, LeftoverReport, MachineState, examine_agents,
    examine_engines, is_token_ending, kill_leftovers, machine_state, start_agents,
};

use crate::remote::Machine;
use crate::runtime::tokio_runtime;
use crate::zone::local_time;
use crate::{exit_code, words};
use args::DoctorArgs;

/// The report, also the output of `--json`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Report {
    /// The version of teamster; `None` on another machine if it is too old to report it.
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<String>,
    providers: Vec<ProviderFacts>,
    /// Findings that only a process on the machine itself can make.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    here: Option<MachineState>,
}

/// Prints the report and returns the exit code.
pub(crate) fn main(args: &DoctorArgs, machine: &Machine) -> anyhow::Result<u8> {
    #[cfg(feature = "fleet")]
    if machine.is_fleet() {
        return fleet::main(args.json, machine);
    }
    if let Some(url) = machine.url() {
        return of_machine(args, machine, url);
    }
    if let Some(agent) = &args.agent {
        return try_agent::main(agent, args.limit, args.json);
    }
    // Ends the CLIs if this process is killed, or interrupted: they are in process groups of their own.
    let host = crate::global::host();
    let guard = Guard::watch(host, None);
    // Processes that a CLI leaves behind after `--version` become children of this process, and are ended.
    teamster_host::adopt_orphans();
    let (providers, engines) = {
        let runtime = tokio_runtime()?;
        let providers = if args.start {
            runtime.block_on(start_agents(host))
        } else {
            runtime.block_on(examine_agents(host))
        };
        (providers, runtime.block_on(examine_engines()))
    };
    teamster_host::end_orphans(guard.as_ref().map(Guard::pid));
    drop(guard);
    let directory = env::current_dir().ok();
    let mut here = if args.kill_leftovers {
        kill_leftovers(host, directory.as_deref())
    } else {
        machine_state(host, directory.as_deref())
    };
    here.container_engines = engines;
    let report = Report {
        version: Some(env!("CARGO_PKG_VERSION").to_owned()),
        providers: providers?,
        here: Some(here),
    };
    show(&report, args.json, None)
}

/// Prints the report of another machine and returns the exit code.
fn of_machine(args: &DoctorArgs, machine: &Machine, url: &str) -> anyhow::Result<u8> {
    let runtime = tokio_runtime()?;
    let agents = machine.agents();
    let machine = runtime.block_on(agents.report())?;
    let report = Report {
        version: machine.version,
        providers: (machine.providers.into_iter())
            .map(|provider| plain(provider.facts))
            .collect(),
        here: None,
    };
    show(&report, args.json, Some(url))
}

/// Returns the facts of another machine without what a terminal would not show as text.
fn plain(mut facts: ProviderFacts) -> ProviderFacts {
    let texts = [
        &mut facts.name,
        &mut facts.install,
        &mut facts.how_to_log_in,
    ];
    let optional = [
        &mut facts.version,
        &mut facts.oldest_version,
        &mut facts.problem,
    ];
    let optional = optional.into_iter().filter_map(Option::as_mut);
    let all = texts.into_iter().chain(optional);
    for text in all.chain(&mut facts.tested_versions) {
        *text = words::one_line(text);
    }
    for path in [
        &mut facts.path,
        &mut facts.resolved_path,
        &mut facts.version_from,
    ] {
        *path = (path.as_ref()).map(|path| words::one_line(&path.display().to_string()).into());
    }
    facts
}

/// Prints a report, of this machine or of the one with this URL, and returns the exit code.
fn show(report: &Report, is_json: bool, url: Option<&str>) -> anyhow::Result<u8> {
    let usable = report.providers.iter().any(|provider| provider.usable);
    let printed = if is_json {
        exit_code::of_json(report)
    } else {
        let mut out = anstream::stdout();
        let head = url.map_or(Ok(()), |url| {
            let version = report.version.as_deref().unwrap_or("of an unknown version");
            writeln!(out, "teamster {} on {url}\n", words::one_line(version))
        });
        exit_code::of_printed(head.and_then(|()| print(report, words::stdout_width(), &mut out)))
    };
    exit_code::of_findings(printed, (!usable).then_some(exit_code::CLI_NOT_FOUND))
}

fn print(report: &Report, width: Option<usize>, out: &mut impl Write) -> io::Result<()> {
    // What can be used comes first.
    let mut providers: Vec<&ProviderFacts> = report.providers.iter().collect();
    providers.sort_by_key(|provider| Readiness::of(provider));
    for provider in providers {
        print_agent(provider, report.here.is_some(), width, out)?;
    }
    writeln!(out)?;
    let count = |readiness| {
        let providers = report.providers.iter();
        providers
            .filter(|it| Readiness::of(it) == readiness)
            .count()
    };
    let ready = count(Readiness::Ready);
    let next = match count(Readiness::LoggedOut) {
        0 if ready == 0 => ": install one, or try `teamster demo`, which needs none".to_owned(),
        0 => String::new(),
        1 => ", 1 needs a login".to_owned(),
        several => format!(", {several} need a login"),
    };
    let all = report.providers.len();
    let text = |text: &str| words::wrap(text, 0, 2, width.unwrap_or(usize::MAX));
    let ready = format!("{ready} of {all} agents ready{next}");
    writeln!(out, "{}", text(&ready))?;
    let Some(here) = &report.here else {
        return Ok(());
    };
    if (report.providers.iter()).any(|provider| provider.version_from.is_some()) {
        let start = text("`teamster doctor --start` starts every program.");
        writeln!(out, "{start}")?;
    }
    let is_missing = |provider: &ProviderFacts| !provider.usable && !provider.in_process;
    if report.providers.iter().any(is_missing) {
        let path = words::one_line(&here.search_path);
        writeln!(out, "PATH: {path}")?;
    }
    for (name, manager) in doctor::shim_guards() {
        writeln!(
            out,
            "{name} is set by a shim of {manager} that started this process: agents do not inherit it."
        )?;
    }
    for engine in &here.container_engines {
        writeln!(out, "{}", text(&about_engine(engine)))?;
    }
    print_leftovers(&here.leftovers, out)?;
    print_changed_files(&here.changed_files, out)
}

/// Returns the line of a container engine.
fn about_engine(report: &EngineReport) -> String {
    let name = report.engine.name();
    match (&report.version, &report.problem) {
        (Some(version), _) => {
            format!(
                "{name} {} runs containers (--in).",
                words::one_line(version)
            )
        }
        (None, problem) => {
            let problem = problem.as_deref().unwrap_or("it gave no reason");
            format!(
                "No containers by {name} (--in): {}",
                words::one_line(problem)
            )
        }
    }
}

/// State of an agent's installation, usable ones first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Readiness {
    /// It works. Its login may be unknown.
    Ready,
    LoggedOut,
    Broken,
    Absent,
}

impl Readiness {
    fn of(provider: &ProviderFacts) -> Self {
        match provider.usable {
            true if provider.login.state == "no" => Self::LoggedOut,
            true => Self::Ready,
            false if provider.in_process || provider.path.is_some() => Self::Broken,
            false => Self::Absent,
        }
    }
}

/// Prints an agent, of this machine if `is_here`.
fn print_agent(
    provider: &ProviderFacts,
    is_here: bool,
    width: Option<usize>,
    out: &mut impl Write,
) -> io::Result<()> {
    // All texts begin in column 13.
    let text = |text: &str| words::wrap(text, 13, 13, width.unwrap_or(usize::MAX));
    let bold = Style::new().bold();
    let dim = Style::new().dimmed();
    let [good, warn, bad] =
        [AnsiColor::Green, AnsiColor::Yellow, AnsiColor::Red].map(AnsiColor::on_default);
    let name = &provider.name;
    let version = provider.version.as_deref().unwrap_or_default();
    match Readiness::of(provider) {
        Readiness::Ready => writeln!(out, "{good}✓{good:#} {bold}{name}{bold:#}  {version}")?,
        Readiness::LoggedOut => {
            writeln!(
                out,
                "{bad}✗{bad:#} {bold}{name}{bold:#}  {version}, not logged in"
            )?;
        }
        Readiness::Broken if provider.in_process => {
            writeln!(out, "{bad}✗{bad:#} {bold}{name}{bold:#}  not ready")?;
        }
        Readiness::Broken => writeln!(out, "{bad}✗{bad:#} {bold}{name}{bold:#}  does not work")?,
        Readiness::Absent => {
            let absent = format!("not found: {}", provider.install);
            let column = console::measure_text_width(name) + 4;
            let absent = words::wrap(&absent, column, 4, width.unwrap_or(usize::MAX));
            writeln!(
                out,
                "{dim}✗{dim:#} {bold}{name}{bold:#}  {dim}{absent}{dim:#}"
            )?;
            // A program that a variable names. All others have the same problem. The variables of another machine are
            // unknown.
            let named = crate::global::providers().get(&provider.id);
            let named = named.filter(|it| env::var_os(it.info().program_variable()).is_some());
            if let Some(problem) = &provider.problem
                && (!is_here || named.is_some())
            {
                writeln!(out, "    {dim}problem{dim:#}  {}", text(problem))?;
            }
            return Ok(());
        }
    }
    if let Some(path) = &provider.path {
        writeln!(out, "    {dim}program{dim:#}  {}", path.display())?;
    }
    if let Some(path) = &provider.resolved_path {
        writeln!(out, "    {dim}target{dim:#}   {}", path.display())?;
    }
    if let Some(problem) = &provider.problem {
        writeln!(out, "    {dim}problem{dim:#}  {}", text(problem))?;
    }
    if provider.usable {
        let login = match (&*provider.login.state, &provider.login.from) {
            ("yes", Some(from)) => match provider.login.expires_at_ms {
                Some(at) if is_token_ending(at, epoch_ms()) => {
                    let ends = if at <= epoch_ms() {
                        "has ended".to_owned()
                    } else {
                        format!("ends at {}", local_time(at, "%H:%M"))
                    };
                    format!(
                        "yes, by {from}; its token {ends}: one run renews it, and others wait for that"
                    )
                }
                _ => format!("yes, by {from}"),
            },
            ("yes", None) => "yes".to_owned(),
            ("no", _) if provider.how_to_log_in.is_empty() => "no".to_owned(),
            ("no", _) => format!("no: {}", provider.how_to_log_in),
            _ => "unknown".to_owned(),
        };
        let login = text(&words::one_line(&login));
        writeln!(out, "    {dim}login{dim:#}    {login}")?;
    } else if provider.in_process {
        let login = text(&provider.how_to_log_in);
        writeln!(out, "    {dim}login{dim:#}    {login}")?;
    } else if !provider.needs_node {
        writeln!(out, "    {dim}install{dim:#}  {}", provider.install)?;
    }
    if provider.outside_path {
        let note = "not on PATH: found where its installer puts it";
        writeln!(out, "    {dim}note{dim:#}     {}", text(note))?;
    }
    if provider.version_from.is_some() {
        let known = text("by its package.json; the program was not started");
        writeln!(out, "    {dim}version{dim:#}  {known}")?;
    }
    if !provider.in_process {
        let tested = format!("with {}", provider.tested_versions.join(", "));
        writeln!(out, "    {dim}tested{dim:#}   {}", text(&tested))?;
    }
    if let Some(oldest) = &provider.oldest_version {
        writeln!(out, "    {dim}oldest{dim:#}   {oldest}")?;
    }
    if provider.too_old {
        let install = &provider.install;
        let warning =
            format!("older than the oldest supported version; update it: `{install}@latest`");
        writeln!(out, "    {warn}warning{warn:#}  {}", text(&warning))?;
    } else if provider.usable && !provider.tested {
        let warning = "untested version; should work, new event types show as `unknown`";
        writeln!(out, "    {warn}warning{warn:#}  {}", text(warning))?;
    }
    Ok(())
}

fn print_leftovers(leftovers: &[LeftoverReport], out: &mut impl Write) -> io::Result<()> {
    if leftovers.is_empty() {
        return writeln!(out, "No processes of earlier runs are left.");
    }
    writeln!(out, "Processes that earlier runs left behind:")?;
    for left in leftovers {
        let state = match (&left.problem, left.killed) {
            (Some(problem), _) => format!("  cannot be ended: {problem}"),
            (None, true) => "  ended".to_owned(),
            (None, false) => String::new(),
        };
        writeln!(out, "    {}  {}{state}", left.pid, left.program)?;
    }
    if leftovers
        .iter()
        .any(|left| !left.killed && left.problem.is_none())
    {
        writeln!(out, "End them with `teamster doctor --kill-leftovers`.")?;
    }
    Ok(())
}

fn print_changed_files(files: &[ChangedFile], out: &mut impl Write) -> io::Result<()> {
    if files.is_empty() {
        return Ok(());
    }
    writeln!(out, "Configuration files that killed runs left changed:")?;
    for left in files {
        writeln!(out, "    {}", left.file.display())?;
    }
    writeln!(out, "Restore them with `teamster mcp restore`.")
}

#[cfg(test)]
mod tests;
