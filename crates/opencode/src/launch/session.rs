//! Launch of OpenCode for a session of many turns.

use teamster_core::provider::{Args, Launch, Stdin};
use teamster_core::{AgentError, SessionOptions, Timeouts};

use super::settings::Settings;
use super::{begin, check, directory, timeouts};

pub(crate) fn launch_session(options: &SessionOptions) -> Result<Launch, AgentError> {
    let mut params = options.params.clone();
    // The prompts are sent with the turns.
    "-".clone_into(&mut params.prompt);
    // Unlike a run, a session supports commands.
    params.slash_commands = false;
    check(&params)?;
    let mut args = Args::new();
    args.add("acp");
    if let Some(directory) = directory(&params)? {
        args.value("--cwd", directory);
    }
    args.add_all(&params.extra_args);
    Ok(Launch {
        stdin: Stdin::Open(Vec::new()),
        // The CLI reports the start of a call, which distinguishes silence of the model from that of a tool.
        timeouts: Timeouts {
            idle: None,
            ..timeouts(&params)
        },
        ..begin(&params, args, Settings::for_session(&params)?)?
    })
}
