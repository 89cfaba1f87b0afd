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
    for arg in &params.extra_args {
        args.add(arg);
    }
    Ok(begin(args, Stdin::Open(Vec::new())))
}
