//! The main loop of a chat: reads messages and commands, and shows turns.

use std::cell::Cell;
use std::io::Write;
use std::ops::ControlFlow;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use anyhow::anyhow;
use teamster::orchestrator::{Orchestrator, RunLog, RunLogEntry};
use teamster::{
    AbortHandle, AgentError, AgentEvent, AgentSession, Decision, EventStream, Id, LogEntry,
};
use teamster_runner::SessionRuns;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::interval;

use super::account::Account;
use super::command::{self, Command, Typed};
use super::input::{Entry, Input};
use super::permission::Question;
use super::signals::{Playing, Signals};
use super::terminal;
use crate::args::OutputArgs;
use crate::drive::{self, Feed, SideInput, View};
use crate::render::{Current, Narrator, Sink, TextIsFinal};
use crate::{exit_code, hints, words};

/// Interval between checks for turns that the CLI began by itself. Not used at a terminal.
const LOOK: Duration = Duration::from_millis(200);

/// Output of a chat.
pub(super) struct Display {
    view: View,
    sinks: Box<dyn Fn(Narrator) -> Box<dyn Sink>>,
    aside: Box<dyn Write>,
    json: bool,
    /// The command that resumes the session, without the session's id.
    pub(super) resume: Option<String>,
}

impl Display {
    pub(super) fn new(output: OutputArgs, view: View) -> Self {
        Self {
            view,
            sinks: Box::new(move |narrator| {
                drive::sink_with(output, narrator, TextIsFinal::WithMessage)
            }),
            aside: Box::new(anstream::stderr()),
            json: output.json,
            resume: None,
        }
    }

    /// Creates a display that writes to the given sinks, for tests.
    #[cfg(test)]
    pub(super) fn on(
        view: View,
        sinks: impl Fn(Narrator) -> Box<dyn Sink> + 'static,
        aside: impl Write + 'static,
    ) -> Self {
        Self {
            view,
            sinks: Box::new(sinks),
            aside: Box::new(aside),
            json: false,
            resume: Some("teamster chat claude --resume".to_owned()),
        }
    }

    /// Creates the sink of a turn. `known` is the session whose header was already shown.
    pub(super) fn sink(&self, known: Option<Id>) -> Box<dyn Sink> {
        let narrator = Narrator::new(self.view.clone());
        (self.sinks)(match known {
            Some(id) => narrator.goes_on(id),
            None => narrator,
        })
    }

    /// Returns the agent's working directory.
    pub(super) fn directory(&self) -> Option<&Path> {
        self.view.directory.as_deref()
    }

    /// Prints the answer to a command.
    fn say(&mut self, text: &str) {
        // Without stderr the message cannot be shown.
        let _ = writeln!(self.aside, "{text}");
    }

    /// Prints a remark, unless the output is JSON or quiet.
    fn mention(&mut self, text: &str) {
        if !self.json && !self.view.quiet {
            self.say(text);
        }
    }

    fn complain(&mut self, why: &str) {
        crate::fail_on(&mut self.aside, &anyhow!("{why}"));
    }
}

/// A conversation with an agent.
pub(super) struct Chat {
    runs: SessionRuns,
    orchestrator: Orchestrator,
    display: Display,
    signals: Signals,
    /// Permission requests, if there is a user to answer them.
    questions: Option<UnboundedReceiver<Question>>,
    account: Account,
    /// The session that was shown last.
    shown_session: Option<Id>,
    code: u8,
}

impl Chat {
    pub(super) fn new(
        runs: SessionRuns,
        orchestrator: Orchestrator,
        display: Display,
        signals: Signals,
        questions: Option<UnboundedReceiver<Question>>,
    ) -> Self {
        Self {
            runs,
            orchestrator,
            display,
            signals,
            questions,
            account: Account::default(),
            shown_session: None,
            code: exit_code::SUCCESS,
        }
    }

    /// Returns the current session.
    fn session(&self) -> Arc<dyn AgentSession> {
        self.runs.session().clone()
    }

    /// Returns the agent's id and name.
    fn agent(&self) -> (String, String) {
        let id = self.runs.session().provider();
        let provider = crate::providers().get(id);
        let name = provider.map_or(id, |provider| provider.info().name);
        (id.to_owned(), name.to_owned())
    }

    /// Runs the chat to the end of the input, closes the session and returns the exit code.
    pub(super) async fn run(&mut self, mut input: Input, at_terminal: bool) -> u8 {
        if at_terminal {
            let (_, name) = self.agent();
            self.display
                .mention(&format!("{name}: /help lists the commands, Ctrl-D ends\n"));
        }
        let code = loop {
            if let ControlFlow::Break(code) = self.step(&mut input, at_terminal).await {
                break code;
            }
        };
        self.signals.closing();
        terminal::restore();
        self.runs.close().await;
        if self.account.turns() > 0
            && let Some(command) = self.resume()
        {
            self.display.mention(&format!("resume with: {command}"));
        }
        code
    }

    /// Handles one message or command. Breaks with the exit code at the end of the chat.
    async fn step(&mut self, input: &mut Input, at_terminal: bool) -> ControlFlow<u8> {
        while let Some(begun) = self.session().unasked() {
            self.turn("", Some(begun)).await?;
        }
        let mut looks = interval(LOOK);
        let entry = loop {
            tokio::select! {
                biased;
                () = self.signals.ended() => return ControlFlow::Break(exit_code::ABORTED),
                entry = input.next() => break entry,
                // At a terminal, the output would mix with the line being typed.
                _ = looks.tick(), if !at_terminal => if let Some(begun) = self.session().unasked() {
                    self.turn("", Some(begun)).await?;
                },
            }
        };
        match entry {
            Entry::Text(text) => match command::read(&text) {
                Typed::Nothing => {}
                Typed::Message(message) => {
                    self.code = self.turn(&message, None).await?;
                    if at_terminal {
                        self.display.mention("");
                    }
                }
                Typed::Command(Command::Quit | Command::End) => {
                    return ControlFlow::Break(self.code);
                }
                Typed::Command(command) => self.command(command).await,
                Typed::Wrong(why) => self.display.complain(&why),
            },
            Entry::Cleared => {}
            Entry::Wrong(why) => self.display.complain(&why),
            Entry::End => return ControlFlow::Break(self.code),
            Entry::Failed(why) => {
                self.display.complain(&why);
                return ControlFlow::Break(exit_code::AGENT_ERROR);
            }
        }
        ControlFlow::Continue(())
    }

    /// Runs and shows a turn, and returns its exit code.
    ///
    /// `begun` is a turn that the CLI began by itself; without it, `message` begins a new one. Breaks if the output
    /// is lost or the chat must end.
    async fn turn(&mut self, message: &str, begun: Option<EventStream>) -> ControlFlow<u8, u8> {
        if begun.is_none()
            && let Some(spent) = self.runs.spent()
        {
            self.display.complain(&spent);
            return ControlFlow::Continue(exit_code::AGENT_ERROR);
        }
        // A hold delays attempts; a message of the user is sent at once.
        (self.orchestrator)
            .release(self.runs.session().provider())
            .await;
        let run_id = self.runs.next_id();
        let request = self.runs.request(&run_id, message, &[], begun);
        let log = self.orchestrator.log(request);
        let mut sink = self.display.sink(self.shown_session.clone());
        let denied = Rc::new(Cell::new(0));
        let turn = Counted {
            asked: self.questions.is_some() && !self.display.json,
            denied: denied.clone(),
            abort: log.abort_handle(),
            log,
            account: &mut self.account,
            runs: &mut self.runs,
            current: self.display.view.current.clone(),
        };
        let mut beside = BesideTurn {
            playing: self.signals.turn(turn.abort.clone()),
            questions: self.questions.as_mut(),
            directory: self.display.view.directory.as_deref(),
            denied,
        };
        let shown = drive::show(turn, &mut *sink, &mut beside).await;
        drop(beside);
        if let Some(id) = self.session().id() {
            self.shown_session = Some(id);
        }
        if self.signals.has_ended() {
            return ControlFlow::Break(exit_code::ABORTED);
        }
        if !shown.written {
            return ControlFlow::Break(shown.code);
        }
        ControlFlow::Continue(shown.code)
    }

    async fn command(&mut self, command: Command) {
        let session = self.session();
        let can = *session.capabilities();
        match command {
            Command::Help => self.display.say(&command::help()),
            Command::Cost => self.display.say(&self.account.show()),
            Command::Session => self.tell_session(),
            Command::Clear if !can.clear => {
                let (id, _) = self.agent();
                let chat = format!("teamster chat {}", shell_words::quote(&id));
                self.cannot("forget the conversation", &chat);
            }
            Command::Clear => {
                if carried_out(&mut self.signals, &mut self.display, session.clear()).await {
                    self.shown_session = None;
                    self.display.say("a new session begins");
                }
            }
            Command::Model(model) if !can.set_model => {
                let model = shell_words::quote(&model).into_owned();
                self.cannot_go_on("change its model", &format!("--model {model}"));
            }
            Command::Model(model) => {
                if carried_out(
                    &mut self.signals,
                    &mut self.display,
                    session.set_model(model.clone()),
                )
                .await
                {
                    let model = words::one_line(&model);
                    self.display
                        .say(&format!("model from the next message on: {model}"));
                }
            }
            Command::Permission(mode) if !can.set_permission => {
                self.cannot_go_on("change what it may do", &format!("--permission {mode}"));
            }
            Command::Permission(mode) => {
                if carried_out(
                    &mut self.signals,
                    &mut self.display,
                    session.set_permission(mode),
                )
                .await
                {
                    self.display
                        .say(&format!("permission from the next message on: {mode}"));
                }
            }
            // Handled in `step`.
            Command::Quit | Command::End => {}
        }
    }

    fn tell_session(&mut self) {
        let Some(id) = self.session().id() else {
            self.display
                .say("there is no session yet: the first message begins it");
            return;
        };
        let id = words::one_line(&id);
        match self.resume() {
            Some(command) => self
                .display
                .say(&format!("session {id}\nresume with: {command}")),
            None => self.display.say(&format!("session {id}")),
        }
    }

    /// Returns the command that resumes the session.
    fn resume(&self) -> Option<String> {
        let id = self.session().id()?;
        let id = words::one_line(&id);
        Some(format!("{} {id}", self.display.resume.as_deref()?))
    }

    /// Reports that the agent cannot change something while it runs, with the command that begins again.
    fn cannot_go_on(&mut self, what: &str, argument: &str) {
        let command = self
            .resume()
            .unwrap_or_else(|| format!("teamster chat {}", shell_words::quote(&self.agent().0)));
        self.cannot(what, &format!("{command} {argument}"));
    }

    fn cannot(&mut self, what: &str, command: &str) {
        let (_, name) = self.agent();
        self.display.complain(&format!(
            "{name} cannot {what} while it runs: end with /quit, and begin again with `{command}`"
        ));
    }
}

/// Waits for a session command and returns whether it succeeded. An error is shown.
async fn carried_out(
    signals: &mut Signals,
    display: &mut Display,
    order: impl Future<Output = Result<(), AgentError>>,
) -> bool {
    let ended = signals.clone();
    let result = tokio::select! {
        biased;
        result = order => result,
        () = signals.interrupted() => {
            display.complain("interrupted: whether it was done is not known");
            return false;
        }
        () = ended.ended() => return false,
    };
    match result {
        Ok(()) => true,
        Err(error) => {
            display.complain(&hints::message(&error));
            false
        }
    }
}

/// The events of a turn. Adds its result to the totals of the chat.
struct Counted<'a> {
    log: RunLog,
    abort: AbortHandle,
    account: &'a mut Account,
    runs: &'a mut SessionRuns,
    /// The agent that is shown.
    current: Current,
    /// Requests are answered at the terminal, so the events about them are hidden.
    asked: bool,
    /// Number of requests that the user denied.
    denied: Rc<Cell<usize>>,
}

impl Feed for Counted<'_> {
    type Event = LogEntry;

    async fn next(&mut self) -> Option<LogEntry> {
        loop {
            let entry = self.log.next().await?;
            self.runs.see(&entry);
            let mut entry = match entry {
                RunLogEntry::Agent(entry) => entry,
                RunLogEntry::Run(entry) => {
                    self.current.observe(&entry.event);
                    continue;
                }
                _ => continue,
            };
            match &mut entry.event {
                AgentEvent::Done(done) => {
                    self.account.add(&done.result);
                    let denials = &mut done.result.permission_denials;
                    // The user denied all of them, so advice on allowing them is useless.
                    if self.asked && denials.len() <= self.denied.get() {
                        denials.clear();
                    }
                }
                AgentEvent::Permission(permission)
                    if self.asked && permission.decision == Decision::Requested =>
                {
                    continue;
                }
                _ => {}
            }
            return Some(entry);
        }
    }

    fn abort_handle(&self) -> AbortHandle {
        self.abort.clone()
    }

    fn exit_code(event: &LogEntry) -> Option<u8> {
        <EventStream as Feed>::exit_code(event)
    }
}

/// Signals and permission requests during a turn.
struct BesideTurn<'a> {
    playing: Playing<'a>,
    questions: Option<&'a mut UnboundedReceiver<Question>>,
    directory: Option<&'a Path>,
    denied: Rc<Cell<usize>>,
}

enum Happens {
    Interrupted,
    Asked(Box<Question>),
}

impl SideInput<LogEntry> for BesideTurn<'_> {
    type Event = Happens;

    async fn next(&mut self) -> Happens {
        let asked = async {
            match &mut self.questions {
                Some(questions) => questions.recv().await,
                None => None,
            }
        };
        tokio::select! {
            biased;
            () = self.playing.interrupted() => Happens::Interrupted,
            Some(question) = asked => Happens::Asked(Box::new(question)),
            else => std::future::pending().await,
        }
    }

    async fn handle(&mut self, what: Happens, sink: &mut dyn Sink, now: Duration) {
        match what {
            Happens::Interrupted => sink.stopping(now),
            Happens::Asked(question) => {
                sink.make_room();
                if question.ask(self.directory).await {
                    self.denied.update(|count| count + 1);
                }
            }
        }
    }
}
