//! Launch of Magpie.

use teamster_core::provider::{Args, Launch, Stdin};
use teamster_core::{AgentError, ExecuteParams, PermissionMode};

use crate::{CAPABILITIES, INFO};

/// Maximum length of a prompt, in bytes.
const LONGEST_PROMPT: usize = 1 << 20;

pub(crate) fn launch(params: &ExecuteParams) -> Result<Launch, AgentError> {
    params.check(&INFO, &CAPABILITIES)?;
    let mut args = Args::new();
    args.add("ask");
    args.values("--session", &params.session_id);
    args.values("--model", &params.model);
    if params.permission == PermissionMode::Bypass {
        args.add("--yes");
    }
    params.extra_args.iter().for_each(|arg| args.add(arg));
    let stdin = if params.prompt_on_stdin(&params.prompt, &INFO, &CAPABILITIES, LONGEST_PROMPT)? {
        Stdin::Bytes(params.prompt.clone().into_bytes())
    } else {
        args.add("--");
        args.add(&params.prompt);
        Stdin::Closed
    };
    let (args, private_files) = args.into_parts();
    Ok(Launch {
        args,
        private_files,
        stdin,
        ..Launch::default()
    })
}
