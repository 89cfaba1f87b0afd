//! `teamster demo`, which runs a real CLI with a scripted model, or plays a recorded run.

pub(crate) mod args;
mod live;
mod recording;

use anyhow::anyhow;
use teamster_mock_model::Cli;

use crate::{exit_code, mock_home};
use args::DemoArgs;

/// Runs the demo and returns the exit code.
pub(crate) fn main(args: &DemoArgs) -> anyhow::Result<u8> {
    if args.recording {
        return recording::main(args);
    }
    if let Some(name) = args.provider.as_deref()
        && Cli::from_id(name).is_none()
    {
        return Err(exit_code::misuse(anyhow!(
            "no demo with {name}: the scripted model does not support its tools; omit --provider, or \
             play the recording with --recording"
        )));
    }
    let cli = match args.provider.as_deref().and_then(Cli::from_id) {
        Some(cli) => {
            if let Some(info) = mock_home::info(cli)
                && !info.program.is_empty()
                && let Err(problem) = teamster_host::find_program(crate::global::host(), info)
            {
                let error = anyhow!(
                    "{problem}; install it with `{}`, or play the recording with --recording",
                    info.install
                );
                return Err(exit_code::with(exit_code::CLI_NOT_FOUND, error));
            }
            Some(cli)
        }
        None => Cli::ALL.into_iter().find(|cli| mock_home::installed(*cli)),
    };
    let Some(cli) = cli else {
        return recording::main(args);
    };
    match live::main(args, cli)? {
        live::Outcome::Finished(code) => Ok(code),
        live::Outcome::NotShown(why) => {
            // Also with --quiet: the output is not from the CLI.
            crate::report::warn(&[format!("{why} Playing a recording instead:")]);
            recording::main(args)
        }
    }
}

/// Prints a remark on stderr, unless the output is quiet.
fn remark(args: &DemoArgs, text: &str) {
    if !args.output.quiet {
        let dim = anstyle::Style::new().dimmed();
        crate::report::note(&format!("{dim}{text}{dim:#}"));
    }
}
