//! `teamster attach`: shows a detached run or session and sends prompts to it.

pub(crate) mod args;
mod prompt;

use std::io::Write;

use anyhow::Context;
use tokio::time::{MissedTickBehavior, interval};
use uuid::Uuid;

use crate::args::OutputArgs;
use crate::detached::{Entries, Questions, Reader, Run, Screen, was_refused};
use crate::dialog::terminal;
use crate::drive::{self, TICK};
use crate::exit_code;
use crate::remote::Machine;
use crate::runtime::tokio_runtime;
use crate::signals::{Source, StopSignal};
use args::AttachArgs;
use prompt::{UserInput, UserPrompt};

/// Shows a run or session and returns its exit code.
pub(crate) fn main(args: &AttachArgs, machine: &Machine) -> anyhow::Result<u8> {
    let output: OutputArgs = args.output.into();
    let runtime = tokio_runtime().context("cannot start the runtime")?;
    let code = runtime.block_on(async {
        let run = Run::find(machine, &args.id).await?;
        let mut screen = Screen::new(&run, output);
        let has_prompt = run.is_session() && !output.json && !output.quiet && Questions::can_ask();
        let user_prompt = has_prompt.then(|| UserPrompt::new(&run, args.no_history));
        let mut view = Attached {
            run: run.clone(),
            quiet: output.quiet,
            user_prompt: user_prompt.transpose()?,
            interrupts: 0,
        };
        let entries = run.follow(args.after);
        view.show(entries, &mut screen).await
    });
    terminal::restore();
    // Do not wait for the thread that reads from the terminal.
    runtime.shutdown_background();
    code
}

/// A view of a run or session.
struct Attached {
    run: Run,
    quiet: bool,
    /// The prompt, if the user can send messages to the session.
    user_prompt: Option<UserPrompt>,
    /// The number of interrupts sent for the turn in progress.
    interrupts: u32,
}

/// An input other than log entries.
enum Input {
    Signal(StopSignal),
    User(UserInput),
    Tick,
}

impl Attached {
    async fn show(&mut self, entries: Entries, screen: &mut Screen) -> anyhow::Result<u8> {
        let mut signals = Source::new().context("cannot listen for signals")?;
        let mut reader = Reader::new(self.run.clone(), entries);
        let mut ticks = interval(TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let stdout = drive::stdout_pipe();
        let mut code = None;
        loop {
            // Show no entries while the user types.
            let is_typing = self.user_prompt.as_ref().is_some_and(UserPrompt::is_typing);
            let next = tokio::select! {
                biased;
                next = reader.next(), if !is_typing => next?,
                () = std::future::ready(()) => {
                    if let Err(error) = screen.flush() {
                        return Ok(exit_code::of_lost(error));
                    }
                    if screen.has_questions() {
                        tokio::select! {
                            biased;
                            signal = signals.stop_signal() => {
                                if let Some(code) = self.handle_signal(signal, screen).await? {
                                    return Ok(code);
                                }
                            }
                            result = screen.ask(&mut reader) => result?,
                        }
                        continue;
                    }
                    let at_rest = !screen.is_in_turn();
                    let user_prompt = self.user_prompt.as_mut().filter(|_| at_rest);
                    let input = tokio::select! {
                        biased;
                        next = reader.next(), if !is_typing => Err(next?),
                        signal = signals.stop_signal() => Ok(Input::Signal(signal)),
                        input = UserPrompt::listen(user_prompt) => Ok(Input::User(input)),
                        _ = ticks.tick() => Ok(Input::Tick),
                    };
                    match input {
                        Err(next) => next,
                        Ok(Input::Signal(signal)) => {
                            if let Some(code) = self.handle_signal(signal, screen).await? {
                                return Ok(code);
                            }
                            continue;
                        }
                        Ok(Input::User(input)) => {
                            if let Some(code) = self.handle_input(input, screen).await? {
                                return Ok(code);
                            }
                            continue;
                        }
                        Ok(Input::Tick) => {
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
            if let Some(user_prompt) = &mut self.user_prompt {
                user_prompt.clear_line();
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
    async fn handle_signal(
        &mut self,
        signal: StopSignal,
        screen: &mut Screen,
    ) -> anyhow::Result<Option<u8>> {
        let interrupts =
            signal == StopSignal::Interrupt && self.user_prompt.is_some() && screen.is_in_turn();
        if !interrupts || self.interrupts >= 2 {
            return Ok(Some(leave(screen, &self.run, self.quiet)));
        }
        self.interrupts += 1;
        screen.stopping();
        match self.run.handle.interrupt(self.interrupts > 1).await {
            // The turn may have just ended.
            Err(error) if !was_refused(&error) => Err(error.into()),
            _ => Ok(None),
        }
    }

    /// Handles the user's input. Returns the exit code if it ends the view.
    async fn handle_input(
        &mut self,
        input: UserInput,
        screen: &mut Screen,
    ) -> anyhow::Result<Option<u8>> {
        let Some(user_prompt) = &mut self.user_prompt else {
            return Ok(None);
        };
        let text = match &input {
            UserInput::Message(text) => text.clone(),
            UserInput::Leave => return Ok(Some(leave(screen, &self.run, self.quiet))),
            UserInput::None => return Ok(None),
            UserInput::Command(command) => {
                user_prompt.execute(&self.run, command).await;
                return Ok(None);
            }
        };
        screen.set_typed(Some(text.clone()));
        let sender = Some(user_prompt.name().to_owned());
        if let Err(error) = self
            .run
            .handle
            .say_from(sender, text, Some(Uuid::now_v7().to_string()))
            .await
        {
            screen.set_typed(None);
            crate::report::fail(&anyhow::anyhow!(
                "not sent: {error} (press Up to edit the message)"
            ));
        }
        Ok(None)
    }
}

/// Leaves the view while the run continues. Returns the exit code.
fn leave(screen: &mut Screen, run: &Run, quiet: bool) -> u8 {
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
