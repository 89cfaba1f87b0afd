//! `teamster say`: sends a prompt to a session and shows the turn.

pub(crate) mod args;

use std::io::{self, Read, Write};

use anyhow::{Context, anyhow, bail};
use teamster::Id;
use teamster_api::{LogLine, RefusalCode};
use teamster_runner::RunsError;
use teamster_runner::client::StartedTurn;
use tokio::time::{MissedTickBehavior, interval};

use crate::args::OutputArgs;
use crate::detached::{RunHandle, Screen};
use crate::drive::{self, TICK};
use crate::remote::Machine;
use crate::runtime::tokio_runtime;
use crate::signals::Source;
use crate::{exit_code, stdin, words};
use args::SayArgs;

/// Sends the prompt, shows the turn and returns the turn's exit code.
pub(crate) fn main(args: &SayArgs, machine: &Machine) -> anyhow::Result<u8> {
    let runtime = tokio_runtime().context("cannot start the runtime")?;
    let session = runtime.block_on(RunHandle::find(machine, &args.id))?;
    if !session.is_session() {
        bail!(
            "{} is a run, not a session: start a session with `teamster chat --detach`",
            words::one_line(session.id())
        );
    }
    let prompt = match prompt(args) {
        Ok(prompt) => prompt,
        Err(error) => {
            crate::report::fail(&error);
            return Ok(exit_code::USAGE);
        }
    };
    runtime.block_on(say(args, session, prompt))
}

fn prompt(args: &SayArgs) -> anyhow::Result<String> {
    let mut prompt = args.prompt.clone();
    if prompt == "-" {
        prompt.clear();
        (io::stdin().lock().read_to_string(&mut prompt))
            .context("cannot read the prompt from stdin")?;
    } else {
        let warning = stdin::add_to(&mut prompt, args.stdin)?;
        crate::report::warn(warning.as_slice());
    }
    if prompt.trim().is_empty() {
        bail!("the prompt is empty");
    }
    Ok(prompt)
}

async fn say(args: &SayArgs, session: RunHandle, prompt: String) -> anyhow::Result<u8> {
    let name = format!("teamster say, process {}", std::process::id());
    if args.steer {
        session.steer(prompt, Some(name)).await?;
        return Ok(exit_code::SUCCESS);
    }
    let turn = loop {
        match session.send(prompt.clone(), Some(name.clone())).await {
            Err(RunsError::Refused {
                code: RefusalCode::Busy,
                ..
            }) if args.queue => next_end(&session).await?,
            Err(RunsError::Refused {
                code: RefusalCode::Busy,
                message,
            }) => bail!("{message} (--queue waits, --steer sends it now)"),
            Err(RunsError::Refused {
                code: RefusalCode::OutOfTime,
                message,
            }) => {
                crate::report::fail(&anyhow!(message));
                return Ok(exit_code::TIMEOUT);
            }
            turn => break turn?,
        }
    };
    if args.no_wait {
        return exit_code::of_printed(writeln!(io::stdout(), "{}", turn.run_id));
    }
    let output: OutputArgs = args.output.into();
    let screen = Screen::new(&session, output).without_questions();
    show(session, &turn, screen).await
}

/// Waits for the end of the turn in progress.
async fn next_end(session: &RunHandle) -> anyhow::Result<()> {
    let newest = session.newest().await?;
    // The turn may have ended meanwhile.
    if session.status().await?.turn.is_none() {
        return Ok(());
    }
    let mut follow = session.follow(newest)?;
    while let Some(line) = follow.next().await? {
        if line.type_name() == "done" {
            break;
        }
    }
    Ok(())
}

/// Shows the turn to its end and returns its exit code.
async fn show(session: RunHandle, turn: &StartedTurn, mut screen: Screen) -> anyhow::Result<u8> {
    let mut signals = Source::new().context("cannot listen for signals")?;
    let mut follow = session.follow(turn.seq)?;
    let mut ticks = interval(TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let stdout = drive::stdout_pipe();
    let own = Id::from(&*turn.run_id);
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
async fn lost(session: &RunHandle, error: io::Error) -> anyhow::Result<u8> {
    interrupt(session, false).await?;
    Ok(exit_code::of_lost(error))
}

async fn interrupt(session: &RunHandle, kill: bool) -> anyhow::Result<()> {
    match session.interrupt(kill).await {
        // The turn has just ended.
        Ok(()) | Err(RunsError::Refused { .. } | RunsError::Ended { .. }) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
