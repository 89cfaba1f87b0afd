//! `teamster run`.

use std::env;
use std::io;
use std::path::Path;

use anyhow::Context;
use teamster::CliInfo;

use crate::args::RunArgs;
use crate::record::Recording;
use crate::{drive, exit_code, params};

/// Runs the agent; the exit code.
pub(crate) fn main(args: &RunArgs) -> anyhow::Result<u8> {
    let provider = teamster::provider(&args.provider).context("this provider is not built in")?;
    let info = provider.info();
    let (params, ignored) = match params::execute_params(args, io::stdin().lock()) {
        Ok(asked) => asked,
        Err(error) => {
            crate::fail(&error);
            return Ok(exit_code::USAGE);
        }
    };
    if !args.output.quiet {
        crate::warn(&ignored);
    }
    let config = params::runtime_config(args, info);
    let view = drive::View {
        info,
        verbose: args.output.verbose,
        quiet: args.output.quiet,
        directory: directory(args.place.cwd.as_deref()),
        // With a mock model the session goes with its temporary home.
        resume: env::var_os(crate::mock_model::URL_VARIABLE)
            .is_none()
            .then(|| resume_command(args, info)),
        mcp: (!params.mcp_servers.is_empty()).then_some(params.mcp_delivery),
        clock: drive::clock,
    };
    let recording = args
        .record
        .as_deref()
        .and_then(|dir| Recording::begin(dir, config.program.as_deref(), info));
    let runtime = teamster::create_cli_runtime(info.id, config)?;
    let keep_background = params.keep_background;
    let code = drive::run(args.output, view, keep_background, || {
        runtime.execute(params)
    });
    if let Some(recording) = recording {
        recording.complete(info);
    }
    code
}

/// Where the agent works, in the form in which it will name it.
fn directory(cwd: Option<&Path>) -> Option<String> {
    let directory = match cwd {
        Some(directory) => std::path::absolute(directory).ok()?,
        None => env::current_dir().ok()?,
    };
    directory.to_str().map(str::to_owned)
}

/// The command that goes on with a session, up to the session's id. Sessions belong to the
/// directory in which they began.
fn resume_command(args: &RunArgs, info: &CliInfo) -> String {
    let cwd = args
        .place
        .cwd
        .as_deref()
        .map(|cwd| format!(" --cwd {}", quote(&cwd.to_string_lossy())))
        .unwrap_or_default();
    format!("teamster run {}{cwd} --resume", info.id)
}

/// The text as one word of a shell.
fn quote(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./~+:@%,".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_a_shell() {
        assert_eq!(quote("/tmp/a-b"), "/tmp/a-b");
        assert_eq!(quote("a b"), "'a b'");
        assert_eq!(quote("it's"), r"'it'\''s'");
    }
}
