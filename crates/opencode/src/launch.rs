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
    AgentError, ExecuteParams, Image, ImageSource, McpDelivery, PermissionMode, PromptDelivery,
    Timeouts,
};

use crate::{CAPABILITIES, INFO};

use mcp::Servers;
pub(crate) use mcp::{CONFIG_FILES, known_servers};
pub(crate) use session::launch_session;
use settings::Settings;
pub(crate) use settings::Withheld;

/// The CLI sets these for its own children and for the parts of it that it starts; a run that finds
/// them takes another client's ways or another workspace.
const MARKS_OF_A_SESSION: &[&str] = &[
    "OPENCODE",
    "OPENCODE_PID",
    "OPENCODE_CLIENT",
    "OPENCODE_ROUTE",
    "OPENCODE_WORKSPACE_ID",
];

/// Until the first line: the CLI starts (up to 40 s on a busy machine), waits 30 s for an MCP server
/// that does not answer, and repeats a failed request five times in silence (62 to 78 s, longer if
/// the service asks for it).
const STARTUP: Duration = Duration::from_mins(5);

/// The same for a resumed session, which prints nothing and never ends if it is another directory's.
const STARTUP_OF_A_RESUMED_RUN: Duration = Duration::from_mins(3);

/// Between lines. A tool has no line before it ends, so this is also how long one may take, and a
/// sub-agent with all its work is one tool.
const IDLE: Duration = Duration::from_mins(30);

/// How long the line of a call may take after the end of the call.
const AFTER_A_CALL: Duration = Duration::from_mins(1);

pub(crate) fn launch(params: &ExecuteParams) -> Result<Launch, AgentError> {
    check(params)?;
    let mut args = Args::new();
    args.add("run");
    args.add("--format=json");
    images(params, &mut args)?;
    args.add("--thinking");
    options(params, &mut args)?;
    for arg in &params.extra_args {
        args.add(arg);
    }
    Ok(Launch {
        stdin: Stdin::prompt(&params.prompt),
        timeouts: timeouts(params),
        ..begin(params, args, Settings::new(params)?)?
    })
}

/// All but what a run and a session have in different ways.
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
        // The CLI unpacks libraries there in every run, and leaves them.
        private_tmp: true,
        env: environment(),
        env_merged,
        env_remove: MARKS_OF_A_SESSION.to_vec(),
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
        // A server is given its limit for each of two ways to reach it, and for the list of its tools.
        startup: Some(startup.saturating_add(start.saturating_mul(3))),
        idle: Some(IDLE.max(call.saturating_add(AFTER_A_CALL))),
        ..Timeouts::default()
    }
}

/// Some errors are explained in the CLI's log alone, so that is copied to stderr: its errors and
/// warnings, which most runs have none of. That an MCP server is missing is a warning.
fn environment() -> Vec<(String, String)> {
    let mut set = vec![("OPENCODE_PRINT_LOGS".to_owned(), "1".to_owned())];
    if env::var_os("OPENCODE_LOG_LEVEL").is_none() {
        set.push(("OPENCODE_LOG_LEVEL".to_owned(), "WARN".to_owned()));
    }
    set
}

/// Images, as files. The flag takes any number of values, also after `=`, so another flag has to
/// follow.
fn images(params: &ExecuteParams, args: &mut Args) -> Result<(), AgentError> {
    for image in &params.images {
        match &image.source {
            ImageSource::Path(path) => {
                path.metadata().map_err(|e| Image::unreadable(path, &e))?;
                args.value("--file", in_full(path, "images")?);
            }
            ImageSource::Bytes(bytes) => args.private_file("--file=", bytes.as_slice()),
            _ => return invalid("images", "an image is a file or bytes in memory"),
        }
    }
    Ok(())
}

fn options(params: &ExecuteParams, args: &mut Args) -> Result<(), AgentError> {
    // Without it the CLI works in the directory that the variable PWD names, not in the one that it
    // is started in.
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
        // An empty one is the begin of the prompt. Without it the model has to make one, and what
        // that uses is reported nowhere.
        args.value("--title", "");
    }
    if let Some(model) = &params.model {
        args.value("--model", model);
    }
    if let Some(effort) = &params.effort {
        args.value("--variant", effort);
    }
    if params.permission == PermissionMode::Bypass {
        args.add("--auto");
    }
    Ok(())
}

/// Where the CLI shall work; `None` if not even our own directory is known.
fn directory(params: &ExecuteParams) -> Result<Option<OsString>, AgentError> {
    match &params.working_directory {
        Some(directory) => in_full(directory, "working_directory").map(Some),
        None => Ok(env::current_dir().ok().map(PathBuf::into_os_string)),
    }
}

/// A path from the root, because the CLI takes a relative one from somewhere else.
fn in_full(path: &Path, parameter: &str) -> Result<OsString, AgentError> {
    match absolute(path) {
        Ok(path) => Ok(path.into_os_string()),
        Err(error) => Err(AgentError::refused(
            parameter,
            format!("{} is no path: {error}", path.display()),
        )),
    }
}

/// Refuses what the CLI would refuse, or misunderstand, with an error that has the next step.
fn check(params: &ExecuteParams) -> Result<(), AgentError> {
    params.check(&INFO, &CAPABILITIES)?;
    if params.prompt_delivery == PromptDelivery::Argv {
        return invalid(
            "prompt_delivery",
            "OpenCode puts quotes around the words of its arguments that have \
             blanks, so a prompt only reaches the model as it is on stdin; leave it out",
        );
    }
    if params.prompt.trim().is_empty() {
        return invalid("prompt", "OpenCode takes no images without a text");
    }
    for (name, value) in [
        ("session_id", &params.session_id),
        ("model", &params.model),
        ("effort", &params.effort),
    ] {
        if value.as_deref().is_some_and(loses_its_quotes) {
            return Err(AgentError::refused(
                name,
                "OpenCode takes off quotes around a value; leave them out",
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

/// Given twice, a flag with one value becomes a list, on which the CLI fails with an error that does
/// not say why.
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

/// Whether the caller's own arguments have this flag.
fn is_given(params: &ExecuteParams, flag: &str) -> bool {
    own_options(params).any(|arg| {
        arg.strip_prefix(flag)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('='))
    })
}

/// The value that the caller's own arguments give to this flag.
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

/// The caller's own arguments, as far as they can be flags.
fn own_options(params: &ExecuteParams) -> impl Iterator<Item = &str> {
    let args = params.extra_args.iter().map(String::as_str);
    args.take_while(|arg| *arg != "--")
}

/// Whether the CLI's reader of arguments makes another value of this one.
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
