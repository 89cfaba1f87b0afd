//! Launch of OpenCode for a session of many turns.

use teamster_core::provider::{Args, Launch, Stdin};
use teamster_core::{AgentError, SessionOptions, Timeouts};

use super::settings::Settings;
use super::{begin, check, directory, timeouts};

pub(crate) fn launch_session(options: &SessionOptions) -> Result<Launch, AgentError> {
    let mut params = options.params.clone();
    // Those of the turns come later.
    "-".clone_into(&mut params.prompt);
    check(&params)?;
    let mut args = Args::new();
    args.add("acp");
    if let Some(directory) = directory(&params)? {
        args.value("--cwd", directory);
    }
    for arg in &params.extra_args {
        args.add(arg);
    }
    Ok(Launch {
        stdin: Stdin::Open(Vec::new()),
        // It reports a call when that begins, which distinguishes a silence of the model from one of a tool.
        timeouts: Timeouts {
            idle: None,
            ..timeouts(&params)
        },
        ..begin(&params, args, Settings::for_session(&params)?)?
    })
}
