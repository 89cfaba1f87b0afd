//! `teamster attach`: shows a detached run or session and sends prompts to it.

use std::io::Write;

use anyhow::Context;
use teamster_runner::RunsError;
use tokio::time::{MissedTickBehavior, interval};

use super::questions::{Questions, Reader};
use super::screen::Screen;
use super::speak::{Speaker, Spoken};
use super::{Entries, RunHandle};
use crate::args::{AttachArgs, OutputArgs};
use crate::chat::terminal;
use crate::drive::{self, TICK};
use crate::signals::{Request, Source};
use crate::{exit_code, tokio_runtime};

/// Shows a run or session and returns its exit code.
pub(crate) fn main(args: &AttachArgs) -> anyhow::Result<u8> {
    let output: OutputArgs = args.output.into();
    let runtime = tokio_runtime().context("cannot start the runtime")?;
    let code = runtime.block_on(async {
        let run = RunHandle::find(&args.id).await?;
        let mut screen = Screen::new(&run, output);
        let speaks = run.is_session() && !output.json && !output.quiet && Questions::can_ask();
        let speaker = speaks.then(|| Speaker::new(&run, args.no_history));
        let mut view = Attached {
            run: run.clone(),
            quiet: output.quiet,
            speaker: speaker.transpose()?,
            interrupts: 0,
        };
        let entries = run.follow(args.after)?;
        view.show(entries, &mut screen).await
    });
    terminal::restore();
    // Do not wait for the thread that reads from the terminal.
    runtime.shutdown_background();
    code
}

/// A view of a run or session.
struct Attached {
    run: RunHandle,
    quiet: bool,
    /// The prompt, if the user can send messages to the session.
    speaker: Option<Speaker>,
    /// The number of interrupts sent for the turn in progress.
    interrupts: u32,
}

/// An input other than log entries.
enum Beside {
    Signal(Request),
    Spoken(Spoken),
    Tick,
}

impl Attached {
    async fn show(&mut self, entries: Entries, screen: &mut Screen) -> anyhow::Result<u8> {
        let mut signals = Source::new().context("cannot listen for signals")?;
        let mut reader = Reader::new(self.run.clone(), entries);
        let mut ticks = interval(TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let stdout = drive::pipe_to_a_reader();
        let mut code = None;
        loop {
            // Show no entries while the user types.
            let is_typing = self.speaker.as_ref().is_some_and(Speaker::is_typing);
            let next = tokio::select! {
                biased;
                next = reader.next(), if !is_typing => next?,
                () = std::future::ready(()) => {
                    if let Err(error) = screen.flush() {
                        return Ok(exit_code::of_lost(error));
                    }
                    if screen.asks() {
                        tokio::select! {
                            biased;
                            request = signals.request() => {
                                if let Some(code) = self.signal(request, screen).await? {
                                    return Ok(code);
                                }
                            }
                            asked = screen.ask(&mut reader) => asked?,
                        }
                        continue;
                    }
                    let at_rest = !screen.is_in_turn();
                    let speaker = self.speaker.as_mut().filter(|_| at_rest);
                    let beside = tokio::select! {
                        biased;
                        next = reader.next(), if !is_typing => Err(next?),
                        request = signals.request() => Ok(Beside::Signal(request)),
                        spoken = Speaker::listen(speaker) => Ok(Beside::Spoken(spoken)),
                        _ = ticks.tick() => Ok(Beside::Tick),
                    };
                    match beside {
                        Err(next) => next,
                        Ok(Beside::Signal(request)) => {
                            if let Some(code) = self.signal(request, screen).await? {
                                return Ok(code);
                            }
                            continue;
                        }
                        Ok(Beside::Spoken(spoken)) => {
                            if let Some(code) = self.spoken(spoken, screen).await? {
                                return Ok(code);
                            }
                            continue;
                        }
                        Ok(Beside::Tick) => {
                            if stdout.as_ref().is_some_and(drive::reader_is_gone) {
                                return Ok(exit_code::ABORTED);
                            }
                            screen.tick();
                            continue;
                        }
                    }
                }
            };
            let Some(line) = next else { break };
            if let Some(speaker) = &mut self.speaker {
                speaker.make_room();
            }
            match screen.show(&line) {
                Ok(seen) => code = seen.code.or(code),
                Err(error) => return Ok(exit_code::of_lost(error)),
            }
            if !screen.is_in_turn() {
                self.interrupts = 0;
            }
        }
        if let Err(error) = screen.flush() {
            return Ok(exit_code::of_lost(error));
        }
        // Only `--after` the last entry leaves nothing to show.
        Ok(code.unwrap_or(exit_code::SUCCESS))
    }

    /// Handles a signal. Returns the exit code if it ends the view.
    async fn signal(
        &mut self,
        request: Request,
        screen: &mut Screen,
    ) -> anyhow::Result<Option<u8>> {
        let interrupts =
            request == Request::Interrupt && self.speaker.is_some() && screen.is_in_turn();
        if !interrupts || self.interrupts >= 2 {
            return Ok(Some(leave(screen, &self.run, self.quiet)));
        }
        self.interrupts += 1;
        screen.stopping();
        match self.run.interrupt(self.interrupts > 1).await {
            // The turn has just ended.
            Ok(()) | Err(RunsError::Refused { .. } | RunsError::Ended { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Handles the user's input. Returns the exit code if it ends the view.
    async fn spoken(&mut self, spoken: Spoken, screen: &mut Screen) -> anyhow::Result<Option<u8>> {
        let Some(speaker) = &mut self.speaker else {
            return Ok(None);
        };
        let text = match &spoken {
            Spoken::Message(text) => text.clone(),
            Spoken::Leave => return Ok(Some(leave(screen, &self.run, self.quiet))),
            Spoken::Nothing => return Ok(None),
            Spoken::Command(command) => {
                speaker.carry_out(&self.run, command).await;
                return Ok(None);
            }
        };
        screen.typed(Some(text.clone()));
        match self.run.send(text, Some(speaker.name().to_owned())).await {
            Ok(_) => {}
            Err(error) => {
                screen.typed(None);
                crate::fail(&anyhow::anyhow!(
                    "not sent: {error} (press Up to edit the message)"
                ));
            }
        }
        Ok(None)
    }
}

/// Leaves the view while the run continues. Returns the exit code.
fn leave(screen: &mut Screen, run: &RunHandle, quiet: bool) -> u8 {
    terminal::restore();
    if let Err(error) = screen.flush() {
        return exit_code::of_lost(error);
    }
    let (id, is_session) = (run.id(), run.is_session());
    if !quiet {
        let (what, ends) = if is_session {
            ("session", "ends")
        } else {
            ("run", "stops")
        };
        // Without stderr the message cannot be shown.
        let _ = writeln!(
            anstream::stderr(),
            "detached: the {what} continues; `teamster attach {id}` shows it, `teamster cancel {id}` {ends} it"
        );
    }
    if is_session {
        exit_code::SUCCESS
    } else {
        exit_code::ABORTED
    }
}
