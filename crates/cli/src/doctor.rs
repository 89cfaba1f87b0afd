//! `teamster doctor`: which CLIs are here, and whether they can be used.

mod login;

use std::env;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::process::Stdio;
use std::time::{Duration, Instant};

use anstyle::{AnsiColor, Style};
use anyhow::Context;
use serde::Serialize;
use teamster::process::{Leftover, find_program, leftovers, native_program};
use teamster::{CliInfo, CliProvider};
use teamster_core::time::millis;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::Command;
use tokio::time::timeout;

use crate::args::DoctorArgs;
use crate::{exit_code, mcp, orphans, params, tokio_runtime, words};
use login::{Login, State, login};

/// How long a CLI may take to say its version. Some start slowly the first time, and all are asked at
/// once.
const VERSION_LIMIT: Duration = Duration::from_secs(20);

/// How long the rest of its answer may take to arrive once it has ended.
const DRAIN: Duration = Duration::from_millis(300);

/// How long a process may take to be gone after it was killed.
const KILL_LIMIT: Duration = Duration::from_secs(2);

/// How much of its answer is read.
const ANSWER_LIMIT: u64 = 64 * 1024;

/// All that is found out. The JSON form of `--json`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Report {
    providers: Vec<Provider>,
    /// Where programs are searched.
    #[serde(rename = "PATH")]
    search_path: String,
    leftovers: Vec<Left>,
    /// Configuration files that killed runs left changed.
    changed_files: Vec<mcp::Left>,
}

/// One CLI.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Provider {
    id: &'static str,
    name: &'static str,
    /// It was found and said its version.
    usable: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<PathBuf>,
    /// What a run starts, if that is elsewhere: behind symbolic links, or the CLI's own program
    /// in place of its launcher.
    #[serde(skip_serializing_if = "Option::is_none")]
    resolved_path: Option<PathBuf>,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<String>,
    /// The decoder is tested with real output of this very version.
    tested: bool,
    tested_versions: &'static [&'static str],
    /// The oldest version that works as the provider's page says.
    #[serde(skip_serializing_if = "Option::is_none")]
    oldest_version: Option<&'static str>,
    /// The version is older than that.
    too_old: bool,
    /// Why it cannot be used.
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
    /// The command that installs it.
    install: &'static str,
    login: Login,
    /// How to log in.
    #[serde(skip)]
    how_to_log_in: &'static str,
}

/// A process that an earlier run left behind.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Left {
    pid: u32,
    /// Its program only: the arguments may hold a prompt.
    program: String,
    run_id: String,
    /// It was ended just now.
    killed: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
}

/// Finds out and prints; the exit code.
pub(crate) fn main(args: &DoctorArgs) -> anyhow::Result<u8> {
    // What a CLI leaves running when it is asked for its version becomes our child, and is ended.
    orphans::adopt();
    let providers = tokio_runtime()
        .context("cannot start the runtime")?
        .block_on(providers());
    orphans::end(None);
    let report = Report {
        providers,
        search_path: env::var("PATH").unwrap_or_default(),
        leftovers: examine_leftovers(args.kill_leftovers),
        changed_files: env::current_dir()
            .map(|here| mcp::left(&here))
            .unwrap_or_default(),
    };
    let usable = report.providers.iter().any(|provider| provider.usable);
    let printed = if args.json {
        serde_json::to_string_pretty(&report)
            .map_err(io::Error::from)
            .and_then(|text| writeln!(io::stdout(), "{text}"))
    } else {
        let width = console::Term::stdout().size_checked();
        let width = width.map(|(_, columns)| usize::from(columns));
        print(&report, width, &mut anstream::stdout())
    };
    Ok(match exit_code::of_printed(printed)? {
        exit_code::SUCCESS if !usable => exit_code::CLI_NOT_FOUND,
        code => code,
    })
}

async fn providers() -> Vec<Provider> {
    let asked: Vec<_> = crate::providers()
        .all()
        .into_iter()
        .map(|provider| tokio::spawn(async move { examine(&*provider).await }))
        .collect();
    let mut reports = Vec::new();
    for report in asked {
        reports.extend(report.await);
    }
    reports
}

async fn examine(provider: &dyn CliProvider) -> Provider {
    let info = provider.info();
    let mut report = Provider {
        id: info.id,
        name: info.name,
        usable: false,
        path: None,
        resolved_path: None,
        version: None,
        tested: false,
        tested_versions: info.tested_versions,
        oldest_version: info.oldest_version,
        too_old: false,
        problem: None,
        install: info.install,
        login: login(info.id),
        how_to_log_in: info.login,
    };
    let path = match find(info) {
        Ok(path) => path,
        Err(problem) => {
            // Where all are searched is said once.
            let not_on_path = params::program_variable(info).is_none();
            report.problem = Some(match problem.split_once(": searched ") {
                Some((problem, _)) if not_on_path => format!("{problem} on PATH"),
                _ => problem,
            });
            return report;
        }
    };
    let program = native_program(provider, path.clone());
    report.resolved_path = program.canonicalize().ok().filter(|real| *real != path);
    match ask_version(&program, info.version_args, VERSION_LIMIT).await {
        Ok(answer) => {
            let Some(version) = version_in(&answer) else {
                let answer = words::cut(&answer, 80);
                report.problem = Some(format!("does not tell its version, but says: {answer}"));
                report.path = Some(path);
                return report;
            };
            report.tested = info.tested_versions.contains(&&*version);
            report.too_old = info.is_too_old(&version);
            report.version = Some(version);
            report.usable = true;
        }
        Err(problem) => report.problem = Some(problem),
    }
    report.path = Some(path);
    report
}

/// Where a run would find the program.
pub(crate) fn find(info: &CliInfo) -> Result<PathBuf, String> {
    let path = env::var_os("PATH");
    let Some(program) = params::program_variable(info) else {
        return find_program(info.program, path.as_deref()).map_err(|error| error.message);
    };
    // A bare name is searched like the CLI's own, a path is not.
    find_program(&program.to_string_lossy(), path.as_deref()).map_err(|error| {
        let variable = params::program_variable_name(info);
        format!("{variable}: {}", error.message)
    })
}

/// Asks a program for its version. Ends it, with what it started, if it does not answer in time.
async fn ask_version(program: &Path, args: &[&str], limit: Duration) -> Result<String, String> {
    let mut command = Command::new(program);
    command.args(args);
    answer(command, limit).await
}

/// What a command that tells a version says, in one line.
pub(crate) async fn answer(mut command: Command, limit: Duration) -> Result<String, String> {
    command
        .env_remove(params::STORE_VARIABLE)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    // A group of its own, so that it can be ended with what it started.
    command.process_group(0);
    let mut child = command
        .spawn()
        .map_err(|error| format!("cannot be started: {error}"))?;
    let pid = child.id();
    let (out, err) = (child.stdout.take(), child.stderr.take());
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    let ended = {
        let mut reading =
            pin!(async { tokio::join!(read(out, &mut stdout), read(err, &mut stderr)) });
        timeout(limit, async {
            tokio::select! {
                _ = &mut reading => child.wait().await,
                status = child.wait() => {
                    if timeout(DRAIN, &mut reading).await.is_err() {
                        // Something that it left in the background holds the pipes.
                        end_group(pid);
                    }
                    status
                }
            }
        })
        .await
    };
    // What it left running in its group is of no use to anyone.
    end_group(pid);
    let (stdout, stderr) = (first_line(&stdout), first_line(&stderr));
    match ended {
        Ok(Ok(status)) if status.success() && !stdout.is_empty() => Ok(stdout),
        Ok(Ok(status)) => {
            let said = [stderr, stdout]
                .into_iter()
                .find(|text| !text.is_empty())
                .unwrap_or_else(|| "it said nothing".to_owned());
            Err(format!("does not tell its version ({status}): {said}"))
        }
        Ok(Err(error)) => Err(format!("cannot be waited for: {error}")),
        Err(_) => Err(format!(
            "does not tell its version within {}",
            words::duration_ms(millis(limit))
        )),
    }
}

/// Reads a stream, and closes it after a reasonable amount.
async fn read(stream: Option<impl AsyncRead + Unpin>, bytes: &mut Vec<u8>) {
    if let Some(stream) = stream {
        // What was read before an error is all there is.
        let _ = stream.take(ANSWER_LIMIT).read_to_end(bytes).await;
    }
}

/// The first line that holds anything.
fn first_line(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes)
        .lines()
        .map(words::one_line)
        .find(|line| !line.is_empty())
        .unwrap_or_default()
}

fn end_group(pid: Option<u32>) {
    use nix::sys::signal::{Signal, killpg};
    use nix::unistd::Pid;

    if let Some(pid) = pid.and_then(|pid| i32::try_from(pid).ok()) {
        // As long as anything is left of the group its id is its own. Gone already is no error.
        let _ = killpg(Pid::from_raw(pid), Signal::SIGKILL);
    }
}

/// The version number in an answer such as `2.1.197 (Claude Code)` or `codex-cli 0.142.5`.
pub(crate) fn version_in(answer: &str) -> Option<String> {
    answer
        .split_whitespace()
        .map(|word| word.trim_start_matches('v').trim_end_matches([',', '.']))
        .find(|word| is_version(word))
        .map(str::to_owned)
}

/// Whether it is numbers between dots, and perhaps something after a `-` or `+`.
fn is_version(word: &str) -> bool {
    let (numbers, rest) = word.split_at(word.find(['-', '+']).unwrap_or(word.len()));
    let number = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    let plain = |c: char| c.is_ascii_alphanumeric() || "-+.".contains(c);
    numbers.contains('.') && numbers.split('.').all(number) && rest.chars().all(plain)
}

fn examine_leftovers(kill: bool) -> Vec<Left> {
    let found = leftovers();
    let report = found.iter().map(|left| self::left(left, kill)).collect();
    // The signal was sent; the process is gone a little later.
    let deadline = Instant::now() + KILL_LIMIT;
    while kill && Instant::now() < deadline && leftovers().iter().any(|left| found.contains(left)) {
        std::thread::sleep(Duration::from_millis(10));
    }
    report
}

fn left(leftover: &Leftover, kill: bool) -> Left {
    let result = if kill { leftover.kill() } else { Ok(()) };
    Left {
        pid: leftover.pid,
        program: words::one_line(leftover.command.split(' ').next().unwrap_or_default()),
        run_id: leftover.run_id.clone(),
        killed: kill && result.is_ok(),
        problem: result.err().map(|error| error.to_string()),
    }
}

fn print(report: &Report, width: Option<usize>, out: &mut impl Write) -> io::Result<()> {
    // Their texts begin in the same column.
    let text = |text: &str| words::wrap(text, 13, 13, width.unwrap_or(usize::MAX));
    let bold = Style::new().bold();
    let dim = Style::new().dimmed();
    let colour = |colour: AnsiColor| Style::new().fg_color(Some(colour.into()));
    let (good, warn, bad) = (
        colour(AnsiColor::Green),
        colour(AnsiColor::Yellow),
        colour(AnsiColor::Red),
    );
    for provider in &report.providers {
        let name = provider.name;
        if let (Some(version), true) = (&provider.version, provider.usable) {
            writeln!(out, "{good}✓{good:#} {bold}{name}{bold:#}  {version}")?;
        } else {
            let state = if provider.path.is_some() {
                "does not work"
            } else {
                "not found"
            };
            writeln!(out, "{bad}✗{bad:#} {bold}{name}{bold:#}  {state}")?;
        }
        if let Some(path) = &provider.path {
            writeln!(out, "    {dim}program{dim:#}  {}", path.display())?;
        }
        if let Some(path) = &provider.resolved_path {
            writeln!(out, "    {dim}that is{dim:#}  {}", path.display())?;
        }
        if let Some(problem) = &provider.problem {
            writeln!(out, "    {dim}problem{dim:#}  {}", text(problem))?;
        }
        if provider.usable {
            let login = match (provider.login.state, &provider.login.from) {
                (State::Yes, Some(from)) => format!("yes, by {from}"),
                (State::Yes, None) => "yes".to_owned(),
                (State::No, _) => format!("no: {}", provider.how_to_log_in),
                (State::Unknown, _) => "unknown".to_owned(),
            };
            let login = text(&words::one_line(&login));
            writeln!(out, "    {dim}login{dim:#}    {login}")?;
        } else {
            writeln!(out, "    {dim}install{dim:#}  {}", provider.install)?;
        }
        let tested = provider.tested_versions.join(", ");
        writeln!(out, "    {dim}tested{dim:#}   with {tested}")?;
        if let Some(oldest) = provider.oldest_version {
            writeln!(out, "    {dim}oldest{dim:#}   {oldest}")?;
        }
        if provider.too_old {
            let install = provider.install;
            let warning =
                format!("older than the oldest supported version; update it: `{install}@latest`");
            writeln!(out, "    {warn}warning{warn:#}  {}", text(&warning))?;
        } else if provider.usable && !provider.tested {
            let warning = "untested version; should work, new event types show as `unknown`";
            writeln!(out, "    {warn}warning{warn:#}  {}", text(warning))?;
        }
    }
    writeln!(out)?;
    if report.providers.iter().any(|provider| !provider.usable) {
        let path = words::one_line(&report.search_path);
        writeln!(out, "PATH: {path}")?;
    }
    print_leftovers(&report.leftovers, out)?;
    print_changed_files(&report.changed_files, out)
}

fn print_leftovers(leftovers: &[Left], out: &mut impl Write) -> io::Result<()> {
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

fn print_changed_files(files: &[mcp::Left], out: &mut impl Write) -> io::Result<()> {
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
