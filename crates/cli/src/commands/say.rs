//! `teamster say`: sends a prompt to a session and shows the turn.

pub(crate) mod args;

use std::io::{self, Write};

use anyhow::{Context, anyhow, bail};
use teamster::Id;
use teamster_api::{Command, LogLine, ProblemCode};
use teamster_core::Image;
use tokio::time::{MissedTickBehavior, interval};
use uuid::Uuid;

use crate::args::OutputArgs;
use crate::detached::{Run, Screen, was_refused};
use crate::drive::{self, TICK};
use crate::remote::{Machine, read_image};
use crate::runtime::tokio_runtime;
use crate::signals::Source;
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
        _ => error.into(),
    })?;
    if args.no_wait {
        return exit_code::of_printed(writeln!(io::stdout(), "{turn}"));
    }
    let output: OutputArgs = args.output.into();
    let screen = Screen::new(&session, output).without_questions();
    show(session, &turn, seq, screen).await
}

/// Shows the turn, whose prompt is the entry with the number `seq`, to its end. Returns its exit code.
async fn show(session: Run, turn: &str, seq: u64, mut screen: Screen) -> anyhow::Result<u8> {
    let mut signals = Source::new().context("cannot listen for signals")?;
    let mut follow = session.follow(seq);
    let mut ticks = interval(TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let stdout = drive::stdout_pipe();
    let own = Id::from(turn);
    let mut interrupts = 0;
    loop {
        let next = tokio::select! {
            biased;
            next = follow.next() => next?,
            () = std::future::ready(()) => {
                if let Err(error) = screen.flush() {
                    return lost(&session, error).await;
                }
                tokio::select! {
                    biased;
                    next = follow.next() => next?,
                    () = signals.next() => {
                        interrupts += 1;
                        if interrupts > 2 {
                            return Ok(exit_code::ABORTED);
                        }
                        screen.stopping();
                        interrupt(&session, interrupts > 1).await?;
                        continue;
                    }
                    _ = ticks.tick() => {
                        if stdout.as_ref().is_some_and(drive::reader_is_gone) {
                            return lost(&session, io::ErrorKind::BrokenPipe.into()).await;
                        }
                        screen.tick();
                        continue;
                    }
                }
            }
        };
        let Some(line) = next else { break };
        let seen = match screen.show(&line) {
            Ok(seen) => seen,
            Err(error) => return lost(&session, error).await,
        };
        if let Some(code) = seen.code
            && (seen.run_id.as_ref() == Some(&own) || LogLine::is_end(&line))
        {
            return match screen.flush() {
                Ok(()) => Ok(code),
                Err(error) => Ok(exit_code::of_lost(error)),
            };
        }
    }
    Ok(exit_code::INCOMPLETE)
}

/// Interrupts the turn because the reader of the output is gone. Returns the exit code.
async fn lost(session: &Run, error: io::Error) -> anyhow::Result<u8> {
    interrupt(session, false).await?;
    Ok(exit_code::of_lost(error))
}

async fn interrupt(session: &Run, kill: bool) -> anyhow::Result<()> {
    match session.handle.interrupt(kill).await {
        // The turn may have just ended.
        Err(error) if !was_refused(&error) => Err(error.into()),
        _ => Ok(()),
    }
}
