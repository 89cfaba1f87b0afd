//! `teamster say`: sends a prompt to a session and shows the turn.

pub(crate) mod args;

use std::io::{self, Write};

use anyhow::{Context, anyhow, bail};
use teamster_api::{Command, ProblemCode, TraceContext};
use teamster_core::Image;
use uuid::Uuid;

use crate::args::OutputArgs;
use crate::detached::{Run, Screen, Signals, View};
use crate::remote::{Machine, read_image};
use crate::runtime::tokio_runtime;
use crate::spec::read_prompt;
use crate::{exit_code, words};
use args::SayArgs;

/// Sends the prompt, shows the turn and returns the turn's exit code.
pub(crate) fn main(args: &SayArgs, machine: &Machine) -> anyhow::Result<u8> {
    let runtime = tokio_runtime()?;
    let session = runtime.block_on(Run::find(machine, &args.id))?;
    if !session.is_session() {
        bail!(
            "{} is a run, not a session: start a session with `teamster chat --detach`",
            words::one_line(session.id())
        );
    }
    let mut warnings = Vec::new();
    let prompt = read_prompt(Some(args.prompt.clone()), None, args.stdin, &mut warnings);
    let prompt = prompt.map_err(exit_code::misuse)?;
    let images = args.image.iter().map(|file| read_image(file));
    let images: anyhow::Result<Vec<_>> = images.collect();
    let images = images.map_err(exit_code::misuse)?;
    crate::report::warn(&warnings);
    runtime.block_on(say(args, session, prompt, images))
}

async fn say(
    args: &SayArgs,
    session: Run,
    prompt: String,
    images: Vec<Image>,
) -> anyhow::Result<u8> {
    let name = format!("teamster say, process {}", std::process::id());
    if args.steer {
        let (text, from) = (prompt, Some(name));
        session.handle.send(Command::Steer { text, from }).await?;
        return Ok(exit_code::SUCCESS);
    }
    // A request that is repeated after a broken connection begins no second turn.
    let command = Command::Send {
        prompt,
        images,
        from: Some(name),
        key: Some(Uuid::now_v7().to_string()),
        trace: TraceContext::from_environment(),
    };
    let begun = if args.queue {
        session.handle.queue(command).await
    } else {
        session.handle.turn(command).await
    };
    let (turn, seq) = begun.map_err(|error| match error.code {
        Some(ProblemCode::SessionBusy) => {
            anyhow!("{error} (--queue waits, --steer sends it now)")
        }
        Some(ProblemCode::OutOfTime) => exit_code::with(exit_code::TIMEOUT, error),
        Some(ProblemCode::BodyTooLarge) => exit_code::misuse(error),
        _ => error.into(),
    })?;
    if args.no_wait {
        return exit_code::of_printed(writeln!(io::stdout(), "{turn}"));
    }
    let output: OutputArgs = args.output.into();
    let screen = Screen::new(&session, output);
    let signals = Signals::of_client().context("cannot listen for signals")?;
    let view = View::new(session, screen, signals);
    view.of_turn(&turn).show(seq).await
}
