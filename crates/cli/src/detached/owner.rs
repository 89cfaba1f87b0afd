//! The owner of a session in this process: its one client, with whose view it ends.

use std::future::pending;
use std::sync::Arc;

use teamster::{AgentEvent, Decision, Id, RunResult};
use teamster_api::{Command, RunEvent, RunHandle, RunLogEntry};
use teamster_host::AttachedRun;
use tokio::sync::watch;

use super::run::Run;
use super::screen::Screen;
use super::signals::Signals;
use super::totals::Totals;
use crate::words;

/// The owner of a session.
pub(crate) struct Owner {
    session: Arc<AttachedRun>,
    /// The number of the newest entry while the agent waits for a prompt.
    at_rest: watch::Receiver<Option<u64>>,
    /// The command that resumes the session, without the session's id.
    resume: Option<String>,
    pub(super) at_terminal: bool,
    /// Commands that are not those of a chat are sent to the agent's CLI.
    pub(super) passes_commands: bool,
    /// Requests are asked at the terminal, so the events about them are hidden.
    hides_requests: bool,
    pub(super) totals: Totals,
    /// The number of the entry before the turn in progress.
    before: u64,
    /// Report at the end of the session.
    notices: Vec<String>,
    /// The end of the log was taken.
    pub(super) has_ended: bool,
}

impl Owner {
    /// Creates the owner of this session. `resume` is the command that resumes it, without the session's id.
    pub(crate) fn new(session: Arc<AttachedRun>, resume: Option<String>) -> Self {
        Self {
            at_rest: session.at_rest(),
            session,
            resume,
            at_terminal: false,
            passes_commands: false,
            hides_requests: false,
            totals: Totals::default(),
            before: 0,
            notices: Vec::new(),
            has_ended: false,
        }
    }

    /// Sets that the user is at a terminal. `hides_requests`: the events about requests are not shown.
    pub(crate) fn at_terminal(mut self, hides_requests: bool) -> Self {
        (self.at_terminal, self.hides_requests) = (true, hides_requests);
        self
    }

    /// Sets whether commands that are not those of a chat are sent to the agent's CLI.
    pub(crate) fn passes_commands(mut self, passes: bool) -> Self {
        self.passes_commands = passes;
        self
    }

    /// Returns why the agent takes no images.
    pub(super) fn no_images(&self) -> Option<String> {
        let agent = self.session.agent();
        let takes = agent.capabilities().images;
        (!takes).then(|| format!("{} takes no images", agent.provider()))
    }

    /// Returns the session as views have it.
    pub(crate) fn run(&self) -> Run {
        let info = self.session.info().clone();
        Run {
            handle: RunHandle::new(self.session.clone(), &*info.run_id),
            info,
            is_here: true,
        }
    }

    /// Waits until the agent waits for a prompt after the entry with this number. Returns at once without an owner.
    /// Cancel-safe.
    pub(super) async fn rest(owner: Option<&mut Self>, taken: u64) {
        let Some(Self { at_rest, .. }) = owner else {
            return;
        };
        let rest = at_rest.wait_for(|newest| *newest == Some(taken)).await;
        if rest.is_err() {
            // The session has ended, which the log shows.
            pending::<()>().await;
        }
    }

    /// Returns the command that resumes the session.
    fn resume(&self) -> Option<String> {
        let (command, id) = (self.resume.as_deref()?, self.session.agent().id()?);
        Some(format!("{command} {}", words::one_line(&id)))
    }

    /// Returns the text of `/session`.
    pub(super) fn session(&self) -> String {
        let Some(id) = self.session.agent().id() else {
            return "no session yet: the first message starts one".to_owned();
        };
        let resume = self.resume();
        let resume = resume.map(|command| format!("\nresume with: {command}"));
        format!(
            "session {}{}",
            words::one_line(&id),
            resume.unwrap_or_default()
        )
    }

    /// Returns why the agent cannot be changed by this command, with the command that begins again.
    pub(super) fn refusal(&self, command: &Command) -> Option<String> {
        let agent = self.session.agent();
        let can = agent.capabilities();
        let (change, argument) = match command {
            Command::Clear if !can.clear => ("clear the conversation", None),
            Command::SetModel { model } if !can.set_model => {
                let argument = format!("--model {}", shell_words::quote(model));
                ("change its model", Some(argument))
            }
            Command::SetPermission { mode } if !can.set_permission => (
                "change its permissions",
                Some(format!("--permission {mode}")),
            ),
            _ => return None,
        };
        let id = agent.provider();
        let provider = crate::global::providers().get(id);
        let name = provider.map_or(id, |provider| provider.info().name);
        let chat = || format!("teamster chat {}", shell_words::quote(id));
        let again = match argument {
            Some(argument) => format!("{} {argument}", self.resume().unwrap_or_else(chat)),
            None => chat(),
        };
        Some(format!(
            "{name} cannot {change} while it runs: end with /quit, then start again with `{again}`"
        ))
    }

    /// Takes an entry. Returns `false` if it is not shown: the output is that of the turns, each of which has its own
    /// numbers. `denied` is the number of requests that were denied here in the turn.
    pub(super) fn see(
        &mut self,
        entry: &mut RunLogEntry,
        is_end: bool,
        denied: usize,
        signals: &Signals,
        screen: &mut Screen,
    ) -> bool {
        let entry = match entry {
            RunLogEntry::Agent(entry) => entry,
            RunLogEntry::Run(entry) => {
                match &entry.event {
                    // The turn is in progress before the agent reports anything.
                    RunEvent::UserMessage {
                        run_id,
                        steer: false,
                        ..
                    } => {
                        signals.turn(true);
                        screen.begin(run_id, entry.at_ms);
                        screen.tick();
                        return false;
                    }
                    RunEvent::UserMessage { .. } => return false,
                    RunEvent::Start { .. } => {
                        signals.turn(true);
                        self.before = entry.seq.saturating_sub(1);
                    }
                    _ => {}
                }
                entry.seq = entry.seq.saturating_sub(self.before);
                return true;
            }
            _ => return false,
        };
        entry.seq = entry.seq.saturating_sub(self.before);
        let session = Id::from(&*self.session.info().run_id);
        match &mut entry.event {
            AgentEvent::Done(done) if is_end => self.ended(&done.result, screen),
            // The command that made the change has printed its own message.
            AgentEvent::Notice(notice) if entry.run_id == Some(session) => {
                if signals.is_closing() {
                    self.notices.push(notice.message.clone());
                }
            }
            AgentEvent::Permission(it)
                if self.hides_requests && it.decision == Decision::Requested => {}
            AgentEvent::Done(done) => {
                self.totals.add(&done.result);
                let denials = &mut done.result.permission_denials;
                // The user denied all of them, so advice on allowing them is useless.
                if self.hides_requests && denials.len() <= denied {
                    denials.clear();
                }
                return true;
            }
            _ => return true,
        }
        false
    }

    fn ended(&mut self, result: &RunResult, screen: &mut Screen) {
        self.has_ended = true;
        // In a worktree that was removed, nothing can be resumed.
        let is_removed = (result.workspace.as_ref()).is_some_and(|it| it.directory.is_none());
        if self.totals.turns() > 0
            && !is_removed
            && let Some(command) = self.resume()
        {
            screen.remark(&format!("resume with: {command}"));
        }
        for notice in self.notices.drain(..) {
            screen.note(&notice);
        }
    }
}
