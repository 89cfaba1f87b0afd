//! The connection to the editor: reads and writes lines, and performs the actions of the protocol's state machine.

use std::collections::{HashMap, VecDeque};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use teamster_api::RunLogEntry;
use teamster_core::{AgentError, Offers, PermissionRequest};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{Semaphore, mpsc};
use tokio::task::AbortHandle;
use tokio::time::timeout;
use uuid::Uuid;

use super::live::END_LIMIT;
use super::thread::{self, Command};
use super::{Disconnect, Shared, lines, open, past};
use crate::{AcpServer, Action, Found, Output, SessionPage, Setup, Ticket};

/// Number of unwritten lines at which reading of session logs pauses.
const MAX_UNWRITTEN: usize = 256;
/// Limit for writing the last messages.
const FLUSH_LIMIT: Duration = Duration::from_secs(2);
/// Capacity of the queue of log entries.
const QUEUE_CAPACITY: usize = 64;

/// A result that is not a line from the editor.
pub(super) enum ActionResult {
    Prepared(Ticket, Result<Offers, AgentError>),
    /// Session, agent, and what the agent reports that it offers.
    Offered(String, String, Offers),
    Found(Ticket, Result<Found, AgentError>),
    Listed(Ticket, Result<SessionPage, AgentError>),
    LoggedOut(Ticket, Result<(), AgentError>),
    Titled(Ticket, Result<(), AgentError>),
    Done(Ticket, String, Result<(), AgentError>),
    Refused(String, AgentError),
}

/// An update of a session.
pub(super) enum Update {
    Entry(String, Box<RunLogEntry>, Option<String>),
    Request(String, String, Box<PermissionRequest>),
    /// Session, title and text.
    Notice(String, &'static str, String),
    /// Session, id of its run whose log has ended, and the error of a turn that was in progress.
    Lost(String, String, Box<AgentError>),
}

/// Channels for the reports of a thread.
#[derive(Clone)]
pub(super) struct Reports {
    pub(super) results: mpsc::UnboundedSender<ActionResult>,
    pub(super) updates: mpsc::Sender<Update>,
}

/// Serves the editor until it disconnects or `stop` resolves.
pub(super) async fn serve<R, W>(
    shared: Arc<Shared>,
    reader: R,
    writer: W,
    stop: impl Future<Output = ()>,
) -> Disconnect
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    let mut stop = pin!(stop);
    let (mut lines, reader) = lines::read(reader);
    let (results, mut received_results) = mpsc::unbounded_channel();
    let (updates, mut received_updates) = mpsc::channel(QUEUE_CAPACITY);
    let mut connection = Connection {
        server: AcpServer::new(shared.catalog.clone(), || Uuid::now_v7().to_string()),
        shared,
        threads: HashMap::new(),
        asking: HashMap::new(),
        asks: Arc::new(Semaphore::new(1)),
        reports: Reports { results, updates },
    };
    let (written, writer) = lines::write(writer);
    let mut unwritten: VecDeque<Vec<u8>> = VecDeque::new();
    let reason = loop {
        let mut out = Output::default();
        tokio::select! {
            biased;
            () = &mut stop => break Disconnect::Stopped,
            Some(result) = received_results.recv() => connection.on_result(result, &mut out),
            line = lines.recv() => match line {
                Some(Ok(line)) => connection.server.line(&line, &mut out),
                Some(Err(())) => connection.server.line(b"{", &mut out),
                None => break Disconnect::EndOfInput,
            },
            permit = written.reserve(), if !unwritten.is_empty() => match permit {
                Ok(permit) => permit.send(unwritten.pop_front().unwrap_or_default()),
                // The editor has closed its input.
                Err(_) => break Disconnect::OutputClosed,
            },
            Some(update) = received_updates.recv(), if unwritten.len() < MAX_UNWRITTEN => {
                connection.on_update(update, &mut out);
            }
        }
        unwritten.extend(out.lines);
        for action in out.actions {
            connection.act(action);
        }
    };
    reader.abort();
    connection.end().await;
    // The editor may have closed only its output, and still read.
    let rest = async {
        for line in unwritten {
            if written.send(line).await.is_err() {
                return;
            }
        }
        drop(written);
        let _ = writer.await;
    };
    let _ = timeout(FLUSH_LIMIT, rest).await;
    reason
}

struct Connection {
    server: AcpServer,
    shared: Arc<Shared>,
    threads: HashMap<String, thread::Handle>,
    /// The tasks that ask agents what they offer, by session. Those that have answered are among them: the answer may be from
    /// an earlier task than this one.
    asking: HashMap<String, AbortHandle>,
    /// Agents are asked one after another: each is a process.
    asks: Arc<Semaphore>,
    reports: Reports,
}

impl Connection {
    fn on_result(&mut self, result: ActionResult, out: &mut Output) {
        match result {
            ActionResult::Prepared(ticket, result) => self.server.prepared(ticket, result, out),
            ActionResult::Offered(session_id, agent, offers) => {
                self.server.offered(&session_id, &agent, &offers, out);
            }
            ActionResult::Found(ticket, result) => self.server.found(ticket, result, out),
            ActionResult::Listed(ticket, result) => self.server.listed(ticket, result, out),
            ActionResult::LoggedOut(ticket, result) => self.server.logged_out(ticket, result, out),
            ActionResult::Titled(ticket, result) => self.server.titled(ticket, result, out),
            ActionResult::Done(ticket, session_id, result) => {
                self.threads.remove(&session_id);
                self.server.done(ticket, &session_id, result, out);
            }
            ActionResult::Refused(session_id, error) => {
                self.server.refused(&session_id, &error, out);
            }
        }
    }

    fn on_update(&mut self, update: Update, out: &mut Output) {
        match update {
            Update::Entry(session_id, entry, content) => {
                self.server
                    .entry(&session_id, &entry, content.as_deref(), out);
            }
            Update::Request(session_id, request_id, request) => {
                self.server.ask(&session_id, &request_id, &request, out);
            }
            Update::Notice(session_id, title, text) => {
                self.server.notice(&session_id, title, &text, out);
            }
            Update::Lost(session_id, run_id, error) => {
                self.server.lost(&session_id, &run_id, &error, out);
            }
        }
    }

    fn act(&mut self, action: Action) {
        let shared = self.shared.clone();
        match action {
            Action::Prepare { ticket, setup, .. } => self.lookup(
                async move {
                    open::check(&shared, &setup).await?;
                    Ok(past::offers(&shared, &setup).await)
                },
                move |result| ActionResult::Prepared(ticket, result),
            ),
            Action::AskOffers {
                session_id, setup, ..
            } => self.ask_offers(session_id, &setup),
            Action::Find {
                ticket, session_id, ..
            } => self.lookup(
                async move { past::find(&shared, &session_id).await },
                move |result| ActionResult::Found(ticket, result),
            ),
            Action::List {
                ticket,
                cwd,
                cursor,
                ..
            } => self.lookup(
                async move { past::list(&shared, cwd.as_deref(), cursor.as_deref()).await },
                move |result| ActionResult::Listed(ticket, result),
            ),
            Action::LogOut { ticket, agent, .. } => self.lookup(
                async move {
                    match &shared.log_out {
                        Some(log_out) => {
                            let done = log_out.log_out(&agent).await;
                            done.map_err(|error| shared.agent_error(error))
                        }
                        None => Err(AgentError::invalid_params("no login can be removed here")),
                    }
                },
                move |result| ActionResult::LoggedOut(ticket, result),
            ),
            Action::SetTitle {
                ticket,
                session_id,
                title,
                ..
            } => self.lookup(
                async move { past::rename(&shared, &session_id, &title).await },
                move |result| ActionResult::Titled(ticket, result),
            ),
            Action::Close {
                ticket, session_id, ..
            } => self.close(&session_id, ticket, false),
            Action::Delete {
                ticket, session_id, ..
            } => self.close(&session_id, ticket, true),
            Action::Prompt {
                session_id,
                setup,
                prompt,
                ..
            } => {
                // What it offers is in its log from now on.
                self.stop_asking(&session_id);
                self.send(&session_id, Command::Prompt(Box::new(setup), prompt));
            }
            Action::Apply {
                session_id, setup, ..
            } => self.send(&session_id, Command::Apply(Box::new(setup))),
            Action::Interrupt { session_id, .. } => self.send(&session_id, Command::Interrupt),
            Action::Answer {
                session_id,
                request_id,
                answer,
                ..
            } => self.send(&session_id, Command::Answer(request_id, answer)),
        }
    }

    /// Asks the agent of a session what it offers, in a task of its own.
    fn ask_offers(&mut self, session_id: String, setup: &Setup) {
        self.stop_asking(&session_id);
        let (Some(source), Some(agent)) = (self.shared.offers.clone(), setup.agent.clone()) else {
            return;
        };
        let spec = open::spec(&self.shared, setup, &mut Vec::new());
        let (asks, results) = (self.asks.clone(), self.reports.results.clone());
        let id = session_id.clone();
        let task = tokio::spawn(async move {
            // The semaphore is never closed.
            let _permit = asks.acquire().await;
            if let Some(offers) = source.ask(spec).await {
                // Fails only after the connection has ended.
                let _ = results.send(ActionResult::Offered(id, agent, offers));
            }
        });
        self.asking.insert(session_id, task.abort_handle());
    }

    fn stop_asking(&mut self, session_id: &str) {
        if let Some(task) = self.asking.remove(session_id) {
            task.abort();
        }
    }

    /// Runs a lookup in a task of its own, and reports its result.
    fn lookup<T: Send + 'static>(
        &self,
        lookup: impl Future<Output = Result<T, AgentError>> + Send + 'static,
        report: impl FnOnce(Result<T, AgentError>) -> ActionResult + Send + 'static,
    ) {
        let results = self.reports.results.clone();
        tokio::spawn(async move {
            // In one more task, so that a panic is an error too.
            let result = tokio::spawn(lookup).await.unwrap_or_else(|error| {
                let problem = format!("the lookup failed: {error}");
                Err(AgentError::invalid_params(problem))
            });
            // Fails only after the connection has ended.
            let _ = results.send(report(result));
        });
    }

    fn close(&mut self, session_id: &str, ticket: Ticket, forget: bool) {
        self.stop_asking(session_id);
        self.send(session_id, Command::Close { ticket, forget });
    }

    /// Sends a command to a thread, which is started with its first command.
    fn send(&mut self, session_id: &str, command: Command) {
        let thread = self
            .threads
            .entry(session_id.to_owned())
            .or_insert_with(|| {
                let source = self.server.source().to_owned();
                thread::start(
                    session_id,
                    source,
                    self.shared.clone(),
                    self.reports.clone(),
                )
            });
        thread.send(command);
    }

    /// Ends all threads and waits for their ends.
    async fn end(self) {
        let Self {
            threads,
            asking,
            reports,
            shared,
            ..
        } = self;
        drop(reports);
        for task in asking.into_values() {
            task.abort();
        }
        let ends: Vec<_> = threads.into_values().map(thread::Handle::end).collect();
        let all = async {
            for end in ends {
                // Ignore a panic, so that the other threads are awaited.
                let _ = end.await;
            }
        };
        let mut limit = END_LIMIT;
        if shared.folders.is_some() {
            limit += thread::BRING_BACK_LIMIT;
        }
        let _ = timeout(limit, all).await;
    }
}
