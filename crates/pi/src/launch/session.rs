//! Launch of Pi for a session of many turns.

use teamster_core::provider::{Args, Launch, Stdin};
use teamster_core::{AgentError, SessionOptions};

use super::{begin, check, options as flags};

pub(crate) fn launch_session(options: &SessionOptions) -> Result<Launch, AgentError> {
    let mut params = options.params.clone();
    // Prompts and images are sent with the turns.
    "-".clone_into(&mut params.prompt);
    params.images.clear();
    check(&params)?;
    let mut args = Args::new();
    args.add("--mode");
    args.add("rpc");
    flags(&params, &mut args);
    args.add_all(&params.extra_args);
    Ok(begin(args, Stdin::Open(Vec::new())))
}

/// Returns the launch of a process that is only asked what a session would offer. Extensions are code, and start the user's MCP
/// servers (measured with 1.6.0), so they are left out.
pub(crate) fn launch_query(options: &SessionOptions) -> Result<Launch, AgentError> {
    let mut params = options.params.clone();
    params.session_id = None;
    params.fork = false;
    params.new_session_id = None;
    params.mcp_servers.clear();
    let mut launch = launch_session(&SessionOptions::new(params))?;
    for arg in ["--no-session", "--no-extensions"] {
        launch.args.push(arg.into());
    }
    Ok(launch)
}
