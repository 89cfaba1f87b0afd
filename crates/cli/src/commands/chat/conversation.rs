//! The main loop of a chat: reads messages and commands, and shows turns.

use std::cell::Cell;
use std::io::Write;
use std::ops::ControlFlow;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use anyhow::anyhow;
use teamster::orchestrator::{Closed, Closing, Orchestrator, RunLog};
use teamster::{
    AbortHandle, AgentError, AgentEvent, AgentSession, BudgetKind, Decision, EventStream,
};
use teamster_api::RunLogEntry;
use teamster_runner::SessionRuns;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::interval;

use super::signals::{Signals, TurnGuard};
use super::totals::Totals;
use crate::args::OutputArgs;
use crate::dialog::command::{self, Command, InputLine};
use crate::dialog::input::{Entry, Input};
use crate::dialog::permission::Question;
use crate::dialog::terminal;
use crate::drive::{self, Feed, SideInput, View};
use crate::render::{Sink, TextIsFinal};
use crate::{exit_code, hints, words};

/// Interval between checks for turns that the CLI began by itself. Not used at a terminal.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// Output of a chat.
pub(super) struct Display {
    view: View,
    pub(super) sink: Box<dyn Sink>,
    messages: Box<dyn Write>,
    json: bool,
    /// The command that resumes the session, without the session's id.
    pub(super) resume: Option<String>,
}

impl Display {
    pub(super) fn new(output: OutputArgs, view: View) -> Self {
        Self {
            sink: drive::sink(output, view.clone(), TextIsFinal::WithMessage),
            view,
            messages: Box::new(anstream::stderr()),
            json: output.json,
            resume: None,
        }
    }

    /// Creates a display that writes to this sink, for tests.
    #[cfg(test)]
    pub(super) fn with_sink(
        view: View,
        sink: impl Sink + 'static,
        messages: impl Write + 'static,
    ) -> Self {
        Self {
            view,
            sink: Box::new(sink),
            messages: Box::new(messages),
            json: false,
            resume: Some("teamster chat claude --resume".to_owned()),
        }
    }

    /// Returns the agent's working directory.
    pub(super) fn directory(&self) -> Option<&Path> {
        self.view.directory.as_deref()
    }

    /// Prints the answer to a command.
    fn print(&mut self, text: &str) {
        // Without stderr the message cannot be shown.
        let _ = writeln!(self.messages, "{text}");
    }

    /// Prints a remark, unless the output is JSON or quiet.
    fn remark(&mut self, text: &str) {
        if !self.json && !self.view.quiet {
            self.print(text);
        }
    }

    fn report(&mut self, why: &str) {
        crate::report::fail_on(&mut self.messages, &anyhow!("{why}"));
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
    totals: Totals,
    /// Work at the end.
    closing: Option<Closing>,
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
            totals: Totals::default(),
            closing: None,
            code: exit_code::SUCCESS,
        }
    }

    /// Sets the work at the end of the chat.
    pub(super) fn closing(mut self, closing: Option<Closing>) -> Self {
        self.closing = closing;
        self
    }

    /// Returns the current session.
    fn session(&self) -> Arc<dyn AgentSession> {
        self.runs.session().clone()
    }

    /// Returns the agent's id and name.
    fn agent(&self) -> (String, String) {
        let id = self.runs.session().provider();
        let provider = crate::global::providers().get(id);
        let name = provider.map_or(id, |provider| provider.info().name);
        (id.to_owned(), name.to_owned())
    }

    /// Runs the chat to the end of the input, closes the session and returns the exit code.
    pub(super) async fn run(&mut self, mut input: Input, at_terminal: bool) -> u8 {
        if at_terminal {
            let (_, name) = self.agent();
            self.display
                .remark(&format!("{name}: /help lists the commands, Ctrl-D ends\n"));
        }
        let code = loop {
            if let ControlFlow::Break(code) = self.handle_next(&mut input, at_terminal).await {
                break code;
            }
        };
        self.signals.closing();
        terminal::restore();
        self.runs.close().await;
        let closed = match self.closing.take() {
            Some(close) => close().await,
            None => Closed::default(),
        };
        // In a worktree that was removed, nothing can be resumed.
        let is_removed = (closed.workspace.as_ref()).is_some_and(|it| it.directory.is_none());
        if self.totals.turns() > 0
            && !is_removed
            && let Some(command) = self.resume()
        {
            self.display.remark(&format!("resume with: {command}"));
        }
        for event in closed.events {
            if let AgentEvent::Notice(notice) = event
                && !self.display.view.quiet
            {
                self.display.print(&notice.message);
            }
        }
        code
    }

    /// Handles one message or command. Breaks with the exit code at the end of the chat.
    async fn handle_next(&mut self, input: &mut Input, at_terminal: bool) -> ControlFlow<u8> {
        while let Some(begun) = self.session().unasked() {
            self.turn("", Some(begun)).await?;
        }
        let mut polls = interval(POLL_INTERVAL);
        let entry = loop {
            tokio::select! {
                biased;
                () = self.signals.ended() => return ControlFlow::Break(exit_code::ABORTED),
                entry = input.next() => break entry,
                // At a terminal, the output would mix with the line being typed.
                _ = polls.tick(), if !at_terminal => if let Some(begun) = self.session().unasked() {
                    self.turn("", Some(begun)).await?;
                },
            }
        };
        match entry {
            Entry::Text(text) => match command::parse(&text) {
                InputLine::Empty => {}
                InputLine::Message(message) => {
                    self.code = self.turn(&message, None).await?;
                    if at_terminal {
                        self.display.remark("");
                    }
                }
                InputLine::Command(Command::Quit | Command::End) => {
                    return ControlFlow::Break(self.code);
                }
                InputLine::Command(command) => self.command(command).await,
                InputLine::Invalid(why) => self.display.report(&why),
            },
            Entry::Cleared => {}
            Entry::Invalid(why) => self.display.report(&why),
            Entry::End => return ControlFlow::Break(self.code),
            Entry::Failed(why) => {
                self.display.report(&why);
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
            self.display.report(&spent.to_string());
            return ControlFlow::Continue(match spent.kind {
                BudgetKind::Time => exit_code::TIMEOUT,
                _ => exit_code::AGENT_ERROR,
            });
        }
        // A hold delays attempts; a message of the user is sent at once.
        (self.orchestrator)
            .release(self.runs.session().provider())
            .await;
        let run_id = self.runs.next_id();
        let request = self.runs.request(&run_id, message, &[], begun);
        let log = self.orchestrator.log(request);
        let denied = Rc::new(Cell::new(0));
        let turn = TurnFeed {
            hides_requests: self.questions.is_some() && !self.display.json,
            denied: denied.clone(),
            abort: log.abort_handle(),
            log,
            totals: &mut self.totals,
            runs: &mut self.runs,
        };
        let mut side_input = TurnSideInput {
            turn: self.signals.turn(turn.abort.clone()),
            questions: self.questions.as_mut(),
            directory: self.display.view.directory.as_deref(),
            denied,
        };
        let shown = drive::show(turn, &mut *self.display.sink, &mut side_input).await;
        drop(side_input);
        self.display.sink.end_turn();
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
            Command::Help => self.display.print(&command::help()),
            Command::Cost => self.display.print(&self.totals.show()),
            Command::Session => self.show_session(),
            Command::Clear if !can.clear => {
                let (id, _) = self.agent();
                let chat = format!("teamster chat {}", shell_words::quote(&id));
                self.refuse("clear the conversation", &chat);
            }
            Command::Clear => {
                if run_command(&mut self.signals, &mut self.display, session.clear()).await {
                    self.display.sink.clear_session();
                    self.display.print("a new session begins");
                }
            }
            Command::Model(model) if !can.set_model => {
                let model = shell_words::quote(&model).into_owned();
                self.refuse_while_running("change its model", &format!("--model {model}"));
            }
            Command::Model(model) => {
                if run_command(
                    &mut self.signals,
                    &mut self.display,
                    session.set_model(model.clone()),
                )
                .await
                {
                    let shown = words::one_line(&model);
                    self.display
                        .print(&format!("model from the next message on: {shown}"));
                    self.runs.model_changed(model);
                }
            }
            Command::Permission(mode) if !can.set_permission => {
                self.refuse_while_running(
                    "change its permissions",
                    &format!("--permission {mode}"),
                );
            }
            Command::Permission(mode) => {
                if run_command(
                    &mut self.signals,
                    &mut self.display,
                    session.set_permission(mode),
                )
                .await
                {
                    self.display
                        .print(&format!("permission from the next message on: {mode}"));
                }
            }
            // Handled in `handle_next`.
            Command::Quit | Command::End => {}
        }
    }

    fn show_session(&mut self) {
        let Some(id) = self.session().id() else {
            self.display
                .print("there is no session yet: the first message starts one");
            return;
        };
        let id = words::one_line(&id);
        match self.resume() {
            Some(command) => self
                .display
                .print(&format!("session {id}\nresume with: {command}")),
            None => self.display.print(&format!("session {id}")),
        }
    }

    /// Returns the command that resumes the session.
    fn resume(&self) -> Option<String> {
        let id = self.session().id()?;
        let id = words::one_line(&id);
        Some(format!("{} {id}", self.display.resume.as_deref()?))
    }

    /// Reports that the agent cannot change something while it runs, with the command that begins again.
    fn refuse_while_running(&mut self, change: &str, argument: &str) {
        let command = self
            .resume()
            .unwrap_or_else(|| format!("teamster chat {}", shell_words::quote(&self.agent().0)));
        self.refuse(change, &format!("{command} {argument}"));
    }

    fn refuse(&mut self, change: &str, command: &str) {
        let (_, name) = self.agent();
        self.display.report(&format!(
            "{name} cannot {change} while it runs: end with /quit, then start again with `{command}`"
        ));
    }
}

/// Waits for a session command and returns whether it succeeded. An error is shown.
async fn run_command(
    signals: &mut Signals,
    display: &mut Display,
    command: impl Future<Output = Result<(), AgentError>>,
) -> bool {
    let ended = signals.clone();
    let result = tokio::select! {
        biased;
        result = command => result,
        () = signals.interrupted() => {
            display.report("interrupted: the command may have been carried out");
            return false;
        }
        () = ended.ended() => return false,
    };
    match result {
        Ok(()) => true,
        Err(error) => {
            display.report(&hints::message(&error));
            false
        }
    }
}

/// The log of a turn. Adds its result to the totals of the chat.
struct TurnFeed<'a> {
    log: RunLog,
    abort: AbortHandle,
    totals: &'a mut Totals,
    runs: &'a mut SessionRuns,
    /// Requests are answered at the terminal, so the events about them are hidden.
    hides_requests: bool,
    /// Number of requests that the user denied.
    denied: Rc<Cell<usize>>,
}

impl Feed for TurnFeed<'_> {
    async fn next(&mut self) -> Option<RunLogEntry> {
        loop {
            let mut entry = self.log.next().await?;
            self.runs.see(&entry);
            let RunLogEntry::Agent(of_agent) = &mut entry else {
                return Some(entry);
            };
            match &mut of_agent.event {
                AgentEvent::Done(done) => {
                    self.totals.add(&done.result);
                    let denials = &mut done.result.permission_denials;
                    // The user denied all of them, so advice on allowing them is useless.
                    if self.hides_requests && denials.len() <= self.denied.get() {
                        denials.clear();
                    }
                }
                AgentEvent::Permission(permission)
                    if self.hides_requests && permission.decision == Decision::Requested =>
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
}

/// Signals and permission requests during a turn.
struct TurnSideInput<'a> {
    turn: TurnGuard<'a>,
    questions: Option<&'a mut UnboundedReceiver<Question>>,
    directory: Option<&'a Path>,
    denied: Rc<Cell<usize>>,
}

enum SideEvent {
    Interrupted,
    Question(Box<Question>),
}

impl SideInput for TurnSideInput<'_> {
    type Event = SideEvent;

    async fn next(&mut self) -> SideEvent {
        let received = async {
            match &mut self.questions {
                Some(questions) => questions.recv().await,
                None => None,
            }
        };
        tokio::select! {
            biased;
            () = self.turn.interrupted() => SideEvent::Interrupted,
            Some(question) = received => SideEvent::Question(Box::new(question)),
            else => std::future::pending().await,
        }
    }

    async fn handle(&mut self, event: SideEvent, sink: &mut dyn Sink, now: Duration) {
        match event {
            SideEvent::Interrupted => sink.stopping(now),
            SideEvent::Question(question) => {
                sink.clear_line();
                if question.ask(self.directory).await {
                    self.denied.update(|count| count + 1);
                }
            }
        }
    }
}
