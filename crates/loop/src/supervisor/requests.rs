//! Requests to a supervisor and its responses.

use std::time::Instant;

use teamster_api::agents::{
    Command, ErrorCode, Event, Outcome, Response, Selection, Status, SupervisorStatus,
};
use teamster_core::time::{epoch_ms, millis};
use teamster_process::ProcessSignal;
use tokio::sync::oneshot;

use super::agent::Phase;
use super::config::Config;
use super::managed::ManagedAgent;
use super::socket::SocketRequest;
use super::task::Supervisor;
use super::updates::Lines;

pub(super) struct PendingResponse {
    to: oneshot::Sender<Response>,
    done: Result<(), (ErrorCode, String)>,
    /// The response must wait until the state is saved.
    must_be_saved: bool,
}

impl Supervisor {
    /// Handles a request without waiting for its effects.
    pub(super) fn accept_request(&mut self, request: SocketRequest) -> PendingResponse {
        let must_be_saved = matches!(
            request.command,
            Command::Start(_) | Command::Stop(_) | Command::Restart(_)
        );
        let done = match request.command {
            Command::Status => Ok(()),
            Command::Subscribe => match request.updates {
                Some(lines) => (self.subscribe(lines)).map_err(|error| (ErrorCode::Busy, error)),
                None => Ok(()),
            },
            _ if self.ending.is_some() => {
                Err((ErrorCode::Ending, "the supervisor is ending".to_owned()))
            }
            Command::Start(selection) => self.start_agents(&selection),
            Command::Stop(selection) => self.stop_agents(&selection),
            Command::Restart(selection) => self.restart_agents(&selection),
            Command::Wake(selection) => self.wake(&selection),
            Command::Reload => self.reload(),
        };
        PendingResponse {
            to: request.reply,
            done,
            must_be_saved,
        }
    }

    /// Sends the response with the current status.
    pub(super) fn send(&self, pending: PendingResponse) {
        let response = match (pending.done, &self.unwritten) {
            (Ok(()), Some((_, error))) if pending.must_be_saved => Response::refused(
                ErrorCode::NotSaved,
                format!(
                    "done, but the state cannot be saved to {}: {error}; saving is retried, and the next \
                     supervisor does not know of the change until then",
                    self.folder.state().display()
                ),
            ),
            (Ok(()), _) => Response::new(Outcome::Ok(self.status())),
            (Err((code, message)), _) => Response::refused(code, message),
        };
        // The client may be gone.
        let _ = pending.to.send(response);
    }

    pub(super) fn status(&self) -> Status {
        let (now, now_ms) = (Instant::now(), epoch_ms());
        let agents = self.agents.iter().map(|it| it.status(now, now_ms));
        let mut status = Status::new(&*self.config.file, agents.collect());
        let mut supervisor = SupervisorStatus::new(std::process::id(), self.started_at_ms);
        supervisor.grace_ms = millis(self.settings.policy.grace);
        status.supervisor = Some(supervisor);
        status.enabled = self.enabled;
        status.warnings.clone_from(&self.config.warnings);
        status
    }

    fn indices_of(&self, selection: &Selection) -> Result<Vec<usize>, (ErrorCode, String)> {
        let present = || (0..).zip(&self.agents).filter(|(_, it)| !it.removed);
        if selection.all {
            return Ok(present().map(|(index, _)| index).collect());
        }
        if selection.agents.is_empty() {
            return Err((
                ErrorCode::BadRequest,
                "no agent given: list ids in `agents`, or set `all`".to_owned(),
            ));
        }
        let find = |id: &String| {
            let found = present().find(|(_, it)| it.config.id == *id);
            found.map(|(index, _)| index).ok_or_else(|| {
                let known: Vec<&str> = present().map(|(_, it)| &*it.config.id).collect();
                (
                    ErrorCode::UnknownAgent,
                    format!("unknown agent {id:?}; available: {}", known.join(", ")),
                )
            })
        };
        selection.agents.iter().map(find).collect()
    }

    fn start_agents(&mut self, selection: &Selection) -> Result<(), (ErrorCode, String)> {
        let chosen = self.indices_of(selection)?;
        self.turn_on(&chosen);
        let now = Instant::now();
        for index in chosen {
            self.agents[index].agent.start(now);
        }
        Ok(())
    }

    fn stop_agents(&mut self, selection: &Selection) -> Result<(), (ErrorCode, String)> {
        let chosen = self.indices_of(selection)?;
        if selection.all {
            self.enabled = false;
        }
        for index in chosen {
            let managed = &mut self.agents[index];
            if !selection.all {
                managed.enabled = false;
            }
            managed.agent.stop();
        }
        Ok(())
    }

    fn restart_agents(&mut self, selection: &Selection) -> Result<(), (ErrorCode, String)> {
        let mut chosen = self.indices_of(selection)?;
        if selection.all {
            // Stopped agents stay stopped.
            chosen.retain(|index| self.is_wanted(self.agents[*index].enabled));
        } else {
            self.turn_on(&chosen);
        }
        let now = Instant::now();
        for index in chosen {
            self.agents[index].agent.restart(now);
        }
        Ok(())
    }

    /// Enables these agents. If the master switch is off, it is turned on and all other agents are disabled.
    fn turn_on(&mut self, chosen: &[usize]) {
        if !self.enabled {
            for managed in &mut self.agents {
                managed.enabled = false;
            }
            self.enabled = true;
        }
        for index in chosen {
            self.agents[*index].enabled = true;
        }
    }

    fn wake(&mut self, selection: &Selection) -> Result<(), (ErrorCode, String)> {
        let chosen = self.indices_of(selection)?;
        let mut processes = Vec::new();
        for index in chosen {
            let managed = &self.agents[index];
            match managed.agent.phase() {
                Phase::Running { process, .. } => processes.push(process),
                _ if selection.all => {}
                _ => {
                    let id = &managed.config.id;
                    return Err(if managed.agent.starts_next(Instant::now()) {
                        let message = format!("{id} is starting and begins with a tick");
                        (ErrorCode::Starting, message)
                    } else {
                        (ErrorCode::NotRunning, format!("{id} is not running"))
                    });
                }
            }
        }
        for process in processes {
            // Only the loop gets the signal: its group has no handler for it.
            if let Err(error) = process.signal(ProcessSignal::User1) {
                let warning = format!("cannot signal pid {}: {error}", process.pid());
                self.warn(warning);
            }
        }
        Ok(())
    }

    /// Reads the configuration again and applies it. A running agent whose new settings cannot be used keeps
    /// the old ones.
    pub(super) fn reload(&mut self) -> Result<(), (ErrorCode, String)> {
        let config = Config::read(&self.config.file)
            .map_err(|error| (ErrorCode::BadConfig, format!("{error}; nothing is changed")))?;
        let mut refused = Vec::new();
        let now = Instant::now();
        let mut before = std::mem::take(&mut self.agents);
        for new in &config.agents {
            let error = self.settings.runtime_error(new);
            refused.extend(error.iter().map(|why| format!("{}: {why}", new.id)));
            let Some(index) = before.iter().position(|it| it.config.id == new.id) else {
                let mut managed = ManagedAgent::new(new.clone(), &self.settings.policy, true);
                if self.is_wanted(true) {
                    managed.agent.start(now);
                }
                self.agents.push(managed);
                continue;
            };
            let mut managed = before.remove(index);
            if error.is_some() && managed.agent.process().is_some() {
                self.agents.push(managed);
                continue;
            }
            managed.config = new.clone();
            let back = std::mem::take(&mut managed.removed);
            managed.enabled |= back;
            if self.is_wanted(managed.enabled) {
                match managed.agent.phase() {
                    // The cause of the failure may have been fixed.
                    Phase::Failed { .. } => managed.agent.start(now),
                    _ if back => managed.agent.start(now),
                    _ if !managed.is_up_to_date() => managed.agent.restart(now),
                    _ => {}
                }
            }
            self.agents.push(managed);
        }
        for mut managed in before {
            managed.removed = true;
            managed.agent.stop();
            self.agents.push(managed);
        }
        let agents = config.agents.len();
        self.config = config;
        self.event(Event::Reloaded { agents });
        self.warn_of_config();
        if refused.is_empty() {
            return Ok(());
        }
        let message = format!(
            "the configuration was read again, but some agents cannot be used: {}; fix them and reload again \
             (running agents keep their settings)",
            refused.join("; ")
        );
        Err((ErrorCode::AgentsRefused, message))
    }

    pub(super) fn subscribe(&mut self, lines: Lines) -> Result<(), String> {
        let agents = self.status().agents;
        self.updates.subscribe(lines, agents)
    }

    /// Sends the changed agents to subscribers.
    pub(super) fn send_changes(&mut self) {
        if self.updates.is_watched() {
            let agents = self.status().agents;
            self.updates.changes(agents);
        }
    }
}
