//! The view of a run, a session or a turn: its log as it comes, what its agent asks, and what the user types.

mod commands;

use std::future::ready;
use std::io;

use anyhow::anyhow;
use teamster::{AgentEvent, Id, Image};
use teamster_api::{Command as RunCommand, LogLine, ProblemCode, RunLogEntry, TraceContext};
use teamster_core::Stopping;
use tokio::time::{MissedTickBehavior, interval};
use uuid::Uuid;

use super::owner::Owner;
use super::prompt::UserPrompt;
use super::questions::{Questions, Reader};
use super::run::{Run, was_refused};
use super::screen::{Ended, Screen};
use super::signals::Signals;
use crate::dialog::command::{self, Command, UserInput};
use crate::dialog::{offered, terminal};
use crate::drive::{self, TICK};
use crate::signals::StopSignal;
use crate::{exit_code, words};

/// A view of a run, a session or one of its turns, for one of its clients or for the owner of a session, which ends with
/// the view.
pub(crate) struct View {
    run: Run,
    screen: Screen,
    signals: Signals,
    owner: Option<Owner>,
    /// The source of messages, if the user can send some.
    user_prompt: Option<UserPrompt>,
    /// The requests to ask at the terminal; `None` without a user.
    questions: Option<Questions>,
    /// The sender's name for other clients.
    sender: Option<String>,
    /// The turn that was begun here, until its end is shown.
    own_turn: Option<Id>,
    /// The view ends with its turn.
    of_turn: bool,
    /// A message that waits for the end of a turn.
    unsent: Option<String>,
    /// The images of the next message.
    images: Vec<Image>,
    /// The models that `/model` has listed.
    models: Vec<String>,
    /// The number of the newest entry that was taken.
    taken: u64,
    /// The number of interrupts that this client has sent for the turn in progress.
    interrupts: u32,
    /// The exit code of what has ended.
    code: u8,
    /// The exit code of an end that is no turn's.
    error: Option<u8>,
}

/// Next input of the view.
enum Next {
    Entry(Option<LogLine>),
    Signal(StopSignal),
    Input(UserInput),
    Tick,
}

teamster_core::setters! {
    View {
        /// Makes this the view of the owner.
        some owner as of_owner: Owner,
        /// Sets the name of this client, for others.
        some sender: String,
        /// Sets the source of messages.
        set user_prompt: Option<UserPrompt>,
        /// Sets the requests, if there is a user to answer them.
        set questions: Option<Questions>,
    }
}

impl View {
    /// Creates a view without a user.
    pub(crate) fn new(run: Run, screen: Screen, signals: Signals) -> Self {
        Self {
            run,
            screen,
            signals,
            owner: None,
            user_prompt: None,
            questions: None,
            sender: None,
            own_turn: None,
            of_turn: false,
            unsent: None,
            images: Vec::new(),
            models: Vec::new(),
            taken: 0,
            interrupts: 0,
            code: exit_code::SUCCESS,
            error: None,
        }
    }

    /// Limits the view to this turn, which was begun by its client: a signal interrupts it, and so does the loss of the
    /// output.
    pub(crate) fn of_turn(mut self, turn: &str) -> Self {
        (self.own_turn, self.of_turn) = (Some(turn.into()), true);
        self.code = exit_code::INCOMPLETE;
        self
    }

    /// Shows the log after the entry with this number, until it ends or a client leaves it. Returns the exit code.
    pub(crate) async fn show(mut self, after: u64) -> anyhow::Result<u8> {
        let mut reader = Reader::new(self.run.clone(), after);
        let mut ticks = interval(TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut stdout = drive::stdout_pipe();
        loop {
            // Show no entries while the user types.
            let is_typing = self.user_prompt.as_ref().is_some_and(UserPrompt::is_typing);
            let next = tokio::select! {
                biased;
                next = reader.next(), if !is_typing => Next::Entry(next?),
                () = ready(()) => {
                    if let Err(error) = self.screen.flush()
                        && let Some(code) = self.output_lost(error).await
                    {
                        return Ok(code);
                    }
                    if self.questions.as_ref().is_some_and(|it| !it.is_empty()) {
                        if let Some(code) = self.ask(&mut reader).await? {
                            return Ok(code);
                        }
                        continue;
                    }
                    let is_free = !self.screen.is_in_turn()
                        && self.own_turn.is_none()
                        && self.unsent.is_none()
                        && !self.signals.has_ended();
                    let user_prompt = self.user_prompt.as_mut().filter(|_| is_free);
                    let rest = Owner::rest(self.owner.as_mut(), self.taken);
                    tokio::select! {
                        biased;
                        next = reader.next(), if !is_typing => Next::Entry(next?),
                        signal = self.signals.next() => Next::Signal(signal),
                        input = UserPrompt::listen(user_prompt, rest) => Next::Input(input),
                        _ = ticks.tick() => Next::Tick,
                    }
                }
            };
            let left = match next {
                Next::Entry(None) => break,
                Next::Entry(Some(line)) => self.take(&line, &mut reader).await,
                Next::Signal(signal) => {
                    if self.on_signal(signal, false).await? {
                        self.leave(None).await
                    } else {
                        None
                    }
                }
                Next::Input(input) => self.handle(input, &mut reader).await,
                Next::Tick => {
                    // The owner of a session at rest reads its input to the end.
                    let is_busy = self.screen.is_in_turn() || self.owner.is_none();
                    if is_busy && stdout.as_ref().is_some_and(drive::reader_is_gone) {
                        stdout = None;
                        self.output_lost(io::ErrorKind::BrokenPipe.into()).await
                    } else {
                        self.screen.tick();
                        None
                    }
                }
            };
            if let Some(code) = left {
                return Ok(code);
            }
        }
        if let Err(error) = self.screen.flush()
            && let Some(code) = self.output_lost(error).await
        {
            return Ok(code);
        }
        Ok(match self.error {
            Some(code) => code,
            // The task of the session has panicked.
            None if (self.owner.as_ref()).is_some_and(|owner| !owner.has_ended) => {
                exit_code::INCOMPLETE
            }
            None if self.signals.has_ended() => exit_code::ABORTED,
            None => self.code,
        })
    }

    /// Takes an entry, and shows it.
    async fn take(&mut self, line: &LogLine, reader: &mut Reader) -> Option<u8> {
        self.taken = line.seq();
        if let Some(user_prompt) = &mut self.user_prompt {
            user_prompt.clear_line();
        }
        let mut entry = line.entry().ok();
        let ended = entry.as_ref().and_then(Ended::of);
        let mut is_shown = true;
        if let Some(entry) = &mut entry {
            if let RunLogEntry::Agent(entry) = &*entry
                && let AgentEvent::Offers(offers) = &entry.event
            {
                let takes = self.owner.as_ref().is_some_and(|it| it.passes_commands);
                offered::record(offers, takes);
            }
            let mut denied = 0;
            if let Some(questions) = &mut self.questions {
                denied = questions.record(entry);
                // A client of JSON asks nothing, but an owner may print it.
                is_shown = self.owner.is_some() || !Questions::is_request(entry);
            }
            if let Some(owner) = &mut self.owner {
                let signals = &self.signals;
                is_shown = owner.see(entry, line.is_end(), denied, signals, &mut self.screen);
            }
        }
        if is_shown && let Err(error) = self.screen.show(line, entry.as_ref()) {
            let left = self.output_lost(error).await;
            if left.is_some() {
                return left;
            }
        }
        let Ended { code, run_id } = ended?;
        self.signals.turn(false);
        self.interrupts = 0;
        let is_own = self.own_turn.is_some() && self.own_turn == run_id;
        if is_own {
            self.own_turn = None;
            if self.of_turn {
                return Some(match self.screen.flush() {
                    Ok(()) => code,
                    Err(error) => exit_code::of_lost(error),
                });
            }
        }
        match &self.owner {
            Some(owner) if is_own => {
                self.code = code;
                if owner.at_terminal {
                    self.screen.remark("");
                }
            }
            Some(_) => {}
            None => self.code = code,
        }
        if let Some(message) = self.unsent.take() {
            self.say(message, reader).await;
        }
        None
    }

    /// Acts on a signal. Returns `true` if it ends the view. `at_question`: a question is on the screen.
    async fn on_signal(&mut self, signal: StopSignal, at_question: bool) -> anyhow::Result<bool> {
        let is_in_turn = self.screen.is_in_turn();
        if self.owner.is_some() {
            // The turn was interrupted.
            if is_in_turn && !at_question {
                self.screen.stopping();
            }
            return Ok(self.signals.has_ended());
        }
        let interrupts =
            signal == StopSignal::Interrupt && self.user_prompt.is_some() && is_in_turn;
        if !(interrupts || self.of_turn) || self.interrupts >= 2 {
            return Ok(true);
        }
        self.interrupts += 1;
        if !at_question {
            self.screen.stopping();
        }
        match self
            .run
            .handle
            .interrupt(Stopping::kill_if(self.interrupts > 1))
            .await
        {
            // The turn may have just ended.
            Err(error) if !was_refused(&error) => Err(error.into()),
            _ => Ok(false),
        }
    }

    /// Handles the user's input. Returns the exit code if it ends the view.
    async fn handle(&mut self, input: UserInput, reader: &mut Reader) -> Option<u8> {
        match input {
            UserInput::Message(message) => {
                // Only of a line that begins with `//`.
                let is_text = message.starts_with('/');
                let passes = self.owner.as_ref().is_some_and(|it| it.passes_commands);
                let space = if is_text && passes { " " } else { "" };
                self.say(format!("{space}{message}"), reader).await;
            }
            UserInput::Other(text) => {
                let passes = self.owner.as_ref().is_some_and(|it| it.passes_commands);
                if passes && offered::may_have(&text) {
                    self.say(text, reader).await;
                } else {
                    self.screen.report(&anyhow!(command::unknown(&text)));
                }
            }
            UserInput::Leave | UserInput::Command(Command::Quit) => {
                return self.leave(None).await;
            }
            UserInput::None => {}
            UserInput::Invalid(why) => self.screen.report(&anyhow!(why)),
            UserInput::Failed(why) => {
                self.screen.report(&anyhow!(why));
                return self.leave(Some(exit_code::AGENT_ERROR)).await;
            }
            UserInput::Command(Command::End) if self.owner.is_some() => {
                return self.leave(None).await;
            }
            UserInput::Command(command) => self.execute(command, reader).await,
        }
        None
    }

    async fn say(&mut self, message: String, reader: &mut Reader) {
        self.screen.set_typed(Some(message.clone()));
        let sender = self.sender.clone();
        // A request that is repeated after a broken connection begins no second turn.
        let key = sender.is_some().then(|| Uuid::now_v7().to_string());
        let sent = self.run.handle.turn(RunCommand::Send {
            prompt: message.clone(),
            images: self.images.clone(),
            from: sender,
            key,
            trace: TraceContext::from_environment(),
        });
        let error = match reader.meanwhile(sent).await {
            Ok((turn, _)) => {
                self.images.clear();
                self.own_turn = Some(turn.into());
                return;
            }
            Err(error) => error,
        };
        self.screen.set_typed(None);
        if self.owner.is_none() {
            self.screen
                .report(&anyhow!("not sent: {error} (press Up to edit the message)"));
            return self.remark_images();
        }
        match error.code {
            // The agent has just begun a turn by itself.
            Some(ProblemCode::SessionBusy) => {
                self.unsent = Some(message);
                return;
            }
            // By a signal.
            Some(ProblemCode::SessionEnding) => return,
            Some(ProblemCode::OutOfTime) => self.code = exit_code::TIMEOUT,
            _ => self.code = exit_code::AGENT_ERROR,
        }
        self.screen.report(&error.into());
        self.remark_images();
    }

    /// Asks the oldest request. Returns the exit code if a signal ends the view.
    async fn ask(&mut self, reader: &mut Reader) -> anyhow::Result<Option<u8>> {
        let Some(mut questions) = self.questions.take() else {
            return Ok(None);
        };
        self.screen.clear_line();
        let mut is_interrupted = false;
        let asked = {
            let mut asked = std::pin::pin!(questions.ask(reader));
            loop {
                tokio::select! {
                    biased;
                    signal = self.signals.next() => {
                        is_interrupted = true;
                        if self.on_signal(signal, true).await? {
                            break None;
                        }
                    }
                    // An interrupt withdraws it. Dropped, its thread could read the next message.
                    asked = &mut asked => break Some(asked),
                }
            }
        };
        match asked {
            Some(asked) => {
                self.questions = Some(questions);
                // Once the question is off the screen.
                if is_interrupted && self.screen.is_in_turn() {
                    self.screen.stopping();
                }
                asked.map(|()| None)
            }
            None => Ok(self.leave(None).await),
        }
    }

    /// Leaves the view: a session ends with its owner, and its log is shown to the end. `error` is the exit code of an
    /// error. Returns the exit code of a client.
    async fn leave(&mut self, error: Option<u8>) -> Option<u8> {
        terminal::restore();
        (self.user_prompt, self.questions) = (None, None);
        if self.owner.is_some() {
            self.error = self.error.or(error);
            self.signals.closing();
            // It may have ended already.
            let _ = self.run.handle.cancel(Stopping::Graceful).await;
            return None;
        }
        if self.of_turn && error.is_some() {
            // It may have just ended.
            let _ = self.run.handle.interrupt(Stopping::Graceful).await;
        }
        if self.of_turn || error.is_some() {
            return Some(error.unwrap_or(exit_code::ABORTED));
        }
        if let Err(error) = self.screen.flush() {
            return Some(exit_code::of_lost(error));
        }
        let id = words::short_id(&words::one_line(self.run.id()));
        let (what, ends, code) = if self.run.is_session() {
            ("session", "ends", exit_code::SUCCESS)
        } else {
            ("run", "stops", exit_code::ABORTED)
        };
        let teamster = crate::global::typed();
        self.screen.note(&format!(
            "detached: the {what} continues; `{teamster} attach {id}` shows it, `{teamster} cancel {id}` {ends} it"
        ));
        Some(code)
    }

    /// Shows no more, because the output cannot be written. Returns the exit code as [`leave`](Self::leave) does.
    async fn output_lost(&mut self, error: io::Error) -> Option<u8> {
        self.screen.mute();
        self.leave(Some(exit_code::of_lost(error))).await
    }
}
