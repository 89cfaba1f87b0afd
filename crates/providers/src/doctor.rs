//! Report of the CLIs on this machine: program, version and login.
//!
//! [`process::leftovers`](teamster_process::leftovers) finds processes that runs left behind.

mod login;
mod version;

use std::collections::BTreeMap;
use std::env;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use teamster_core::text::{error_of_stack, excerpt, one_line, without_colors};
use teamster_core::{AgentError, CliInfo, CliProvider};
use teamster_process::{
    ProcessGroup, SHIM_GUARDS, find_cli, find_program, native_program, node_package, node_problem,
    on_path, shim_manager,
};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::Command;
use tokio::time::timeout;

use crate::Providers;
use login::login;
pub use login::{Login, LoginState, login_in, token_expiry};
use version::{is_version, version_in};

/// Time that the rest of the output may take to arrive after the process has ended.
const DRAIN: Duration = Duration::from_millis(300);

/// Bytes of the output that are read.
const ANSWER_LIMIT: u64 = 64 * 1024;

/// Bytes of an output without a version that are shown.
const LONGEST_ANSWER: usize = 80;

/// Options of the examination of CLIs.
#[derive(Debug, Clone, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
#[non_exhaustive]
pub struct DoctorOptions {
    /// Time that a CLI may take to print its version. Some start slowly the first time. Default: 20 s.
    #[serde(with = "humantime_serde")]
    pub limit: Duration,
    /// Programs of CLIs by the provider's id, in place of their usual names. A bare name is searched on `PATH`,
    /// a path is not. Default: none.
    pub programs: BTreeMap<String, PathBuf>,
    /// Environment variables that the CLIs do not inherit. Default: none.
    pub env_remove: Vec<String>,
    /// Start every CLI. If false, a script for Node.js whose npm package and Node.js show that it starts is not started,
    /// which saves up to seconds. Default: true.
    pub start_all: bool,
}

teamster_core::setters! {
    DoctorOptions {
        set limit: Duration,
        set start_all: bool,
    }
}

impl DoctorOptions {
    /// Sets the program of a CLI, by the provider's id.
    #[must_use]
    pub fn program(mut self, id: impl Into<String>, program: impl Into<PathBuf>) -> Self {
        self.programs.insert(id.into(), program.into());
        self
    }

    /// Adds a variable that the CLIs do not inherit.
    #[must_use]
    pub fn env_remove(mut self, name: impl Into<String>) -> Self {
        self.env_remove.push(name.into());
        self
    }
}

impl Default for DoctorOptions {
    fn default() -> Self {
        Self {
            limit: Duration::from_secs(20),
            programs: BTreeMap::new(),
            env_remove: Vec::new(),
            start_all: true,
        }
    }
}

/// Report of one CLI on this machine. Its JSON is that of `teamster doctor --json`.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct AgentReport {
    /// The provider's id, such as `claude`.
    pub id: &'static str,
    /// The CLI's own name.
    pub name: &'static str,
    /// The CLI was found and printed its version, or `version_from` has it. For an agent in this process: there is a
    /// key for a model's service.
    pub usable: bool,
    /// The agent runs in this process and has no program.
    pub in_process: bool,
    /// Path at which the program was found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<PathBuf>,
    /// Path of the program that a run starts, if it differs: the target of symbolic links, or the CLI's own
    /// program in place of its launcher.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resolved_path: Option<PathBuf>,
    /// Version that the CLI prints.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The `package.json` that has the version of a CLI that was not started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version_from: Option<PathBuf>,
    /// The decoder is tested with real output of this version.
    pub tested: bool,
    /// Versions with whose real output the decoder is tested.
    pub tested_versions: &'static [&'static str],
    /// Oldest version that works, by the provider's page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub oldest_version: Option<&'static str>,
    /// The version is older than `oldest_version`.
    pub too_old: bool,
    /// Reason that the CLI cannot be used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// The folder of the program is not on `PATH`: it was found where its installer puts it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub outside_path: bool,
    /// Another Node.js is needed, so that to install the CLI would not help.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub needs_node: bool,
    /// Command that installs the CLI.
    pub install: &'static str,
    /// Login of the CLI, judged by its files and the environment.
    pub login: Login,
    /// Instructions to log in.
    pub how_to_log_in: &'static str,
}

impl AgentReport {
    /// Creates the report of a CLI that has not been searched.
    pub fn new(info: &CliInfo, login: Login) -> Self {
        Self {
            id: info.id,
            name: info.name,
            usable: false,
            in_process: info.program.is_empty(),
            path: None,
            resolved_path: None,
            version: None,
            version_from: None,
            tested: false,
            tested_versions: info.tested_versions,
            oldest_version: info.oldest_version,
            too_old: false,
            problem: None,
            outside_path: false,
            needs_node: false,
            install: info.install,
            login,
            how_to_log_in: info.login,
        }
    }

    /// Records the version of a CLI that can be used.
    fn has_version(&mut self, info: &CliInfo, version: String) {
        self.tested = info.tested_versions.contains(&&*version);
        self.too_old = info.is_too_old(&version);
        self.version = Some(version);
        self.usable = true;
    }
}

/// Returns the login of a CLI, judged by its files and the environment. Starts no process.
pub fn login_of(info: &CliInfo) -> Login {
    login(info)
}

/// Examines all CLIs of these providers concurrently. The reports have the order of [`Providers::all`].
pub async fn examine_all(providers: &Providers, options: &DoctorOptions) -> Vec<AgentReport> {
    let tasks: Vec<_> = providers
        .all()
        .into_iter()
        .map(|provider| {
            let options = options.clone();
            tokio::spawn(async move { examine(&*provider, &options).await })
        })
        .collect();
    let mut reports = Vec::new();
    for report in tasks {
        reports.extend(report.await);
    }
    reports
}

/// Examines one CLI: finds its program and runs it with `--version`, unless
/// [`start_all`](DoctorOptions::start_all) is unset and its npm package has the version. A program that exceeds the
/// limit is killed, with its child processes.
///
/// ```no_run
/// use teamster_providers::doctor::{DoctorOptions, examine};
///
/// # async fn example() -> Option<()> {
/// let claude = teamster_providers::Providers::builtin().get("claude")?;
/// let report = examine(&*claude, &DoctorOptions::default()).await;
/// match report.problem {
///     Some(problem) => println!("{}: {problem}; to install it: {}", report.name, report.install),
///     None => println!("{} {}", report.name, report.version.unwrap_or_default()),
/// }
/// # Some(())
/// # }
/// ```
pub async fn examine(provider: &dyn CliProvider, options: &DoctorOptions) -> AgentReport {
    let info = provider.info();
    let mut report = AgentReport::new(info, login(info));
    if info.program.is_empty() {
        // An agent in this process only needs access to a model.
        report.usable = report.login.state == LoginState::Yes;
        report.version = Some(env!("CARGO_PKG_VERSION").to_owned());
        report.tested = true;
        if !report.usable {
            report.problem = Some("there is no key for a model's service".to_owned());
        }
        return report;
    }
    let path = match find_program_of(info, options) {
        Ok(path) => path,
        Err(problem) => {
            report.problem = Some(problem.message);
            return report;
        }
    };
    let program = native_program(provider, path.clone());
    report.resolved_path = program.canonicalize().ok().filter(|real| *real != path);
    let search_path = env::var_os("PATH");
    let (command, extended) = command_of(info, options, &path, &program, info.version_args);
    report.outside_path = extended.is_some();
    if !options.start_all
        && let Some(package) =
            node_package(&program, extended.as_deref().or(search_path.as_deref())).await
        && info.install.split(' ').any(|word| word == package.name)
        && is_version(&package.version)
    {
        report.has_version(info, package.version);
        report.version_from = Some(package.file);
        report.path = Some(path);
        return report;
    }
    match query(command, options.limit).await {
        Ok(answer) => {
            let Some(version) = version_in(&answer, info) else {
                report.problem = Some(no_version(&answer));
                report.path = Some(path);
                return report;
            };
            report.has_version(info, version);
        }
        Err(failure) => {
            let search_path = extended.or(search_path);
            let node = node_problem(&program, &failure.stderr, search_path.as_deref()).await;
            report.needs_node = node.is_some();
            let mut problem = node.unwrap_or(failure.problem);
            if let Some(manager) = shim_manager(&path).filter(|_| !report.needs_node) {
                problem = format!("{problem}; it is a shim of {manager}");
            }
            report.problem = Some(problem);
        }
    }
    report.path = Some(path);
    report
}

/// Returns the command of a CLI that was found at `path`, and the `PATH` that it gets if that is not ours.
fn command_of(
    info: &CliInfo,
    options: &DoctorOptions,
    path: &Path,
    program: &Path,
    args: &[&str],
) -> (Command, Option<OsString>) {
    let mut command = Command::new(program);
    command.args(args);
    let search_path = env::var_os("PATH");
    let extended =
        on_path(path, search_path.as_deref()).filter(|_| !options.programs.contains_key(info.id));
    if let Some(extended) = &extended {
        command.env("PATH", extended);
    }
    let guards = SHIM_GUARDS.iter().map(|(name, _)| *name);
    for name in options.env_remove.iter().map(|it| &**it).chain(guards) {
        command.env_remove(name);
    }
    (command, extended)
}

/// Removes the login of a CLI by the CLI's own command. A program that exceeds the limit is killed, with its child
/// processes.
///
/// # Errors
///
/// Fails with the reason if the CLI has no such command, is missing, fails or exceeds the limit.
pub async fn log_out(provider: &dyn CliProvider, options: &DoctorOptions) -> Result<(), String> {
    let info = provider.info();
    if info.logout_args.is_empty() {
        return Err(format!("{} has no command that logs out", info.name));
    }
    let path = find_program_of(info, options).map_err(|error| error.message)?;
    let program = native_program(provider, path.clone());
    let (command, _) = command_of(info, options, &path, &program, info.logout_args);
    let output = output_of(command, options.limit)
        .await
        .map_err(|error| format!("{} cannot be started: {error}", info.name))?;
    match output.ended {
        Some(Ok(status)) if status.success() => Ok(()),
        Some(Ok(status)) => {
            let stderr = lines(&String::from_utf8_lossy(&output.stderr));
            let last = stderr.lines().last().unwrap_or("it printed no reason");
            Err(format!(
                "{} did not log out ({status}): {}",
                info.name,
                excerpt(last, LONGEST_ANSWER)
            ))
        }
        Some(Err(error)) => Err(format!("{} cannot be waited for: {error}", info.name)),
        None => Err(format!(
            "{} did not log out within {:?}",
            info.name, options.limit
        )),
    }
}

/// Returns the variables in this process's environment by which the shims of a version manager recognize their own
/// recursion, each with the manager. Agents and their version queries do not inherit them.
pub fn shim_guards() -> Vec<(&'static str, &'static str)> {
    let is_set = |(name, _): &(&str, &str)| env::var_os(name).is_some();
    SHIM_GUARDS.into_iter().filter(is_set).collect()
}

/// Finds the program of a CLI as a run does.
///
/// # Errors
///
/// Fails if there is no such program.
pub fn find_program_of(info: &CliInfo, options: &DoctorOptions) -> Result<PathBuf, AgentError> {
    let path = env::var_os("PATH");
    match options.programs.get(info.id) {
        Some(program) => find_program(&program.to_string_lossy(), path.as_deref()),
        None => {
            let home = env::var_os("HOME").map(PathBuf::from);
            find_cli(info.program, path.as_deref(), home.as_deref())
        }
    }
}

/// Runs a command that prints the version of this CLI and returns it. After `limit` the command is killed, with its
/// child processes.
///
/// # Errors
///
/// Fails with a description of the problem if the command cannot be started, fails, prints no version or exceeds
/// the limit.
pub async fn version_of(
    info: &CliInfo,
    command: Command,
    limit: Duration,
) -> Result<String, String> {
    let answer = query(command, limit).await;
    let answer = answer.map_err(|failure| failure.problem)?;
    version_in(&answer, info).ok_or_else(|| no_version(&answer))
}

/// Describes the problem of an answer without a version.
fn no_version(answer: &str) -> String {
    let first = answer.lines().next().unwrap_or_default();
    format!("reports no version but: {}", excerpt(first, LONGEST_ANSWER))
}

/// A command that did not print its version.
struct Failure {
    problem: String,
    stderr: String,
}

impl From<String> for Failure {
    fn from(problem: String) -> Self {
        Self {
            problem,
            stderr: String::new(),
        }
    }
}

async fn query(command: Command, limit: Duration) -> Result<String, Failure> {
    let output = output_of(command, limit)
        .await
        .map_err(|error| format!("cannot be started: {error}"))?;
    let stdout = lines(&String::from_utf8_lossy(&output.stdout));
    let stderr = String::from_utf8_lossy(&output.stderr);
    let problem = match output.ended {
        Some(Ok(status)) if status.success() && !stdout.is_empty() => return Ok(stdout),
        Some(Ok(status)) => {
            let output = [lines(error_of_stack(&stderr).unwrap_or(&stderr)), stdout]
                .into_iter()
                .find_map(|text| text.lines().next().map(str::to_owned))
                .unwrap_or_else(|| "it printed nothing".to_owned());
            format!("reports no version ({status}): {output}")
        }
        Some(Err(error)) => format!("cannot be waited for: {error}"),
        None => format!("reports no version within {limit:?}"),
    };
    Err(Failure {
        problem,
        stderr: stderr.into_owned(),
    })
}

/// What a command has printed, and its end; `None` after the limit.
struct CommandOutput {
    ended: Option<io::Result<ExitStatus>>,
    stdout: Vec<u8>,
    stderr: Vec<u8>,
}

/// Runs a command to its end, or for `limit`, and ends the processes left in its group.
async fn output_of(mut command: Command, limit: Duration) -> io::Result<CommandOutput> {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let (mut child, group) = ProcessGroup::spawn(&mut command)?;
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
                        // A background process holds the pipes.
                        group.kill();
                    }
                    status
                }
            }
        })
        .await
    };
    // Processes left in its group are not needed.
    group.kill();
    Ok(CommandOutput {
        ended: ended.ok(),
        stdout,
        stderr,
    })
}

/// Reads a stream up to [`ANSWER_LIMIT`] and closes it.
async fn read(stream: Option<impl AsyncRead + Unpin>, bytes: &mut Vec<u8>) {
    if let Some(stream) = stream {
        // After an error the bytes read so far are used.
        let _ = stream.take(ANSWER_LIMIT).read_to_end(bytes).await;
    }
}

/// Returns the lines that are not empty, without colors and control characters.
fn lines(text: &str) -> String {
    let lines = text.lines().map(|line| one_line(&without_colors(line)));
    let lines: Vec<_> = lines.filter(|line| !line.is_empty()).collect();
    lines.join("\n")
}

#[cfg(test)]
mod tests;
