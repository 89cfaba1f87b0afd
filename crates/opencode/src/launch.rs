//! Launch of OpenCode.

mod files;
mod mcp;
mod session;
mod settings;

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf, absolute};
use std::time::Duration;

use teamster_core::provider::{Args, Launch, Stdin};
use teamster_core::{
    AgentError, ExecuteParams, ImageSource, McpDelivery, PermissionMode, Timeouts,
};

use crate::{CAPABILITIES, INFO};

use mcp::Servers;
pub(crate) use mcp::{CONFIG_FILES, known_servers};
pub(crate) use session::launch_session;
use settings::Settings;
pub(crate) use settings::Withheld;

/// Variables that the CLI sets for its own children and helpers. A run that inherits them uses another client's
/// settings or another workspace.
const NESTED_SESSION_VARIABLES: &[&str] = &[
    "OPENCODE",
    "OPENCODE_PID",
    "OPENCODE_CLIENT",
    "OPENCODE_ROUTE",
    "OPENCODE_WORKSPACE_ID",
];

/// Timeout of the first line. The CLI starts (up to 40 s on a busy machine), waits 30 s for an MCP server that does
/// not answer, and silently repeats a failed request five times (62 to 78 s, longer if the service requests it).
const STARTUP: Duration = Duration::from_mins(5);

/// The same for a resumed session. The CLI prints nothing and never exits if the session belongs to another
/// directory.
const STARTUP_OF_A_RESUMED_RUN: Duration = Duration::from_mins(3);

/// Timeout between lines. A tool has no line before it ends, so this also limits a tool, and a sub-agent with all its
/// work is one tool.
const IDLE: Duration = Duration::from_mins(30);

/// Longest delay of a call's line after the end of the call.
const AFTER_A_CALL: Duration = Duration::from_mins(1);

pub(crate) fn launch(params: &ExecuteParams) -> Result<Launch, AgentError> {
    check(params)?;
    let mut args = Args::new();
    args.add("run");
    args.add("--format=json");
    images(params, &mut args)?;
    args.add("--thinking");
    options(params, &mut args)?;
    args.add_all(&params.extra_args);
    Ok(Launch {
        stdin: Stdin::prompt(&params.prompt),
        timeouts: timeouts(params),
        ..begin(params, args, Settings::new(params)?)?
    })
}

/// Builds the common part of the launches of runs and sessions.
fn begin(params: &ExecuteParams, args: Args, mut settings: Settings) -> Result<Launch, AgentError> {
    let servers = Servers::of(params)?;
    if params.mcp_delivery == McpDelivery::Private {
        settings.add_servers(&servers.entries)?;
    }
    let (mut config, mut names_taken) = (None, Vec::new());
    if !servers.entries.is_empty() {
        config = files::lease(params, servers.entries)?;
        names_taken = files::names_taken(params, config.as_ref())?;
    }
    let (args, mut private_files) = args.into_parts();
    let (env_merged, files) = settings.into_parts();
    private_files.extend(files);
    private_files.extend(servers.files);
    Ok(Launch {
        args,
        private_files,
        // The CLI unpacks libraries there in every run, and never removes them.
        private_tmp: true,
        env: environment(),
        env_merged,
        env_remove: NESTED_SESSION_VARIABLES.to_vec(),
        config,
        names_taken,
        ..Launch::default()
    })
}

fn timeouts(params: &ExecuteParams) -> Timeouts {
    let startup = if params.session_id.is_some() {
        STARTUP_OF_A_RESUMED_RUN
    } else {
        STARTUP
    };
    let start = mcp::longest(params, |server| server.startup_timeout);
    let call = mcp::longest(params, |server| server.tool_timeout);
    Timeouts {
        // A server has its timeout for each of two ways to connect, and for the list of its tools.
        startup: Some(startup.saturating_add(start.saturating_mul(3))),
        idle: Some(IDLE.max(call.saturating_add(AFTER_A_CALL))),
        ..Timeouts::default()
    }
}

/// Returns variables that copy errors and warnings of the CLI's log to stderr. Some errors are explained only in the
/// log, and most runs log none. A missing MCP server is a warning.
fn environment() -> Vec<(String, String)> {
    let mut set = vec![("OPENCODE_PRINT_LOGS".to_owned(), "1".to_owned())];
    if env::var_os("OPENCODE_LOG_LEVEL").is_none() {
        set.push(("OPENCODE_LOG_LEVEL".to_owned(), "WARN".to_owned()));
    }
    set
}

/// Adds images as files. The flag takes any number of values, even after `=`, so another flag must follow.
fn images(params: &ExecuteParams, args: &mut Args) -> Result<(), AgentError> {
    for image in &params.images {
        match &image.source {
            ImageSource::Path(path) => args.value("--file", in_full(path, "images")?),
            _ => args.private_file("--file=", image.in_memory()?),
        }
    }
    Ok(())
}

fn options(params: &ExecuteParams, args: &mut Args) -> Result<(), AgentError> {
    // Without this, the CLI works in the directory of the variable PWD, not in its current directory.
    if !is_given(params, "--dir")
        && let Some(directory) = directory(params)?
    {
        args.value("--dir", directory);
    }
    if let Some(id) = &params.session_id {
        args.value("--session", id);
        if params.fork {
            args.add("--fork");
        }
    } else if !is_given(params, "--title") {
        // An empty title is the beginning of the prompt. Without the flag, the model has to write a title, and its
        // usage is not reported.
        args.value("--title", "");
    }
    args.values("--model", &params.model);
    args.values("--variant", &params.effort);
    if params.permission == PermissionMode::Bypass {
        args.add("--auto");
    }
    Ok(())
}

/// Returns the agent's working directory; `None` if even our own directory is unknown.
fn directory(params: &ExecuteParams) -> Result<Option<OsString>, AgentError> {
    match &params.working_directory {
        Some(directory) => in_full(directory, "working_directory").map(Some),
        None => Ok(env::current_dir().ok().map(PathBuf::into_os_string)),
    }
}

/// Returns an absolute path: the CLI resolves a relative one elsewhere.
fn in_full(path: &Path, parameter: &str) -> Result<OsString, AgentError> {
    match absolute(path) {
        Ok(path) => Ok(path.into_os_string()),
        Err(error) => Err(AgentError::refused(
            parameter,
            format!("{} is not a path: {error}", path.display()),
        )),
    }
}

/// Refuses parameters that the CLI would refuse or misunderstand. The errors have the next step.
fn check(params: &ExecuteParams) -> Result<(), AgentError> {
    params.check(&INFO, &CAPABILITIES)?;
    if params.prompt.trim().is_empty() {
        return invalid(
            "prompt",
            "OpenCode needs a prompt with images; describe what to do with them",
        );
    }
    for (name, value) in [
        ("session_id", &params.session_id),
        ("model", &params.model),
        ("effort", &params.effort),
    ] {
        if value.as_deref().is_some_and(loses_its_quotes) {
            return Err(AgentError::refused(
                name,
                "OpenCode removes quotes around a value; leave them out",
            ));
        }
    }
    if let Some(model) = &params.model
        && !model
            .split_once('/')
            .is_some_and(|(provider, name)| !provider.is_empty() && !name.is_empty())
    {
        return invalid(
            "model",
            "OpenCode names a model with its provider, as in anthropic/claude-sonnet-4-5 \
             (`opencode models` lists them)",
        );
    }
    check_extra_args(params)
}

/// Refuses duplicate flags. A repeated flag with one value becomes a list, on which the CLI fails with an unclear
/// error.
fn check_extra_args(params: &ExecuteParams) -> Result<(), AgentError> {
    let taken = [
        ("--format", None, true),
        ("--thinking", None, true),
        ("--session", Some("-s"), params.session_id.is_some()),
        ("--fork", None, params.fork),
        ("--model", Some("-m"), params.model.is_some()),
        ("--variant", None, params.effort.is_some()),
        ("--dir", None, params.working_directory.is_some()),
        ("--auto", None, params.permission == PermissionMode::Bypass),
    ];
    for (flag, short, taken) in taken {
        let again = is_given(params, flag) || short.is_some_and(|short| is_given(params, short));
        if taken && again {
            return Err(AgentError::refused(
                "extra_args",
                format!(
                    "{flag} is already there, and OpenCode fails when it is given twice; \
                 leave it out"
                ),
            ));
        }
    }
    Ok(())
}

/// Returns whether the caller's extra arguments have this flag.
fn is_given(params: &ExecuteParams, flag: &str) -> bool {
    own_options(params).any(|arg| {
        arg.strip_prefix(flag)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('='))
    })
}

/// Returns the value of this flag in the caller's extra arguments.
fn option<'a>(params: &'a ExecuteParams, flag: &str) -> Option<&'a str> {
    let mut args = own_options(params);
    while let Some(arg) = args.next() {
        match arg.strip_prefix(flag) {
            Some("") => return args.next(),
            Some(rest) if rest.starts_with('=') => return Some(&rest[1..]),
            _ => {}
        }
    }
    None
}

/// Returns whether the caller has named the agent that runs.
pub(crate) fn names_agent(params: &ExecuteParams) -> bool {
    is_given(params, "--agent")
}

/// Returns the caller's extra arguments that may be flags.
fn own_options(params: &ExecuteParams) -> impl Iterator<Item = &str> {
    let args = params.extra_args.iter().map(String::as_str);
    args.take_while(|arg| *arg != "--")
}

/// Returns whether the CLI's argument parser would change this value.
fn loses_its_quotes(value: &str) -> bool {
    ['"', '\'']
        .iter()
        .any(|quote| value.starts_with(*quote) && value.ends_with(*quote))
}

fn invalid<T>(parameter: &str, problem: &str) -> Result<T, AgentError> {
    Err(AgentError::refused(parameter, problem))
}

#[cfg(test)]
mod tests;
