//! Requests to a supervisor and its responses.

use std::time::Instant;

use teamster_core::time::{epoch_ms, millis};
use teamster_process::ProcessSignal;
use tokio::sync::oneshot;

use super::agent::Phase;
use super::config::Config;
use super::event::Event;
use super::managed::Managed;
use super::protocol::{Command, ErrorCode, Outcome, Response, Selection, Status, SupervisorStatus};
use super::socket::SocketRequest;
use super::task::Supervisor;
use super::updates::Lines;

/// Pending response to a request.
pub(super) struct Answer {
    to: oneshot::Sender<Response>,
    done: Result<(), (ErrorCode, String)>,
    /// The response must wait until the state is saved.
    remembered: bool,
}

impl Supervisor {
    /// Handles a request without waiting for its effects.
    pub(super) fn answer(&mut self, asked: SocketRequest) -> Answer {
        let remembered = matches!(
            asked.command,
            Command::Start(_) | Command::Stop(_) | Command::Restart(_)
        );
        let done = match asked.command {
            Command::Status => Ok(()),
            Command::Subscribe => match asked.updates {
                Some(lines) => (self.subscribe(lines)).map_err(|error| (ErrorCode::Busy, error)),
                None => Ok(()),
            },
            _ if self.ending.is_some() => {
                Err((ErrorCode::Ending, "the supervisor is ending".to_owned()))
            }
            Command::Start(selection) => self.start_these(&selection),
            Command::Stop(selection) => self.stop_these(&selection),
            Command::Restart(selection) => self.restart_these(&selection),
            Command::Wake(selection) => self.wake(&selection),
            Command::Reload => self.reload(),
        };
        Answer {
            to: asked.answer,
            done,
            remembered,
        }
    }

    /// Sends the response with the current status.
    pub(super) fn send(&self, answer: Answer) {
        let response = match (answer.done, &self.unwritten) {
            (Ok(()), Some((_, error))) if answer.remembered => Response::refused(
                ErrorCode::NotSaved,
                format!(
                    "it is done but cannot be remembered: cannot write {}: {error}; that is tried again, and \
                     the next supervisor does not know of it until then",
                    self.folder.state().display()
                ),
            ),
            (Ok(()), _) => Response::new(Outcome::Ok(self.status())),
            (Err((code, message)), _) => Response::refused(code, message),
        };
        // The client may be gone.
        let _ = answer.to.send(response);
    }

    pub(super) fn status(&self) -> Status {
        let (now, now_ms) = (Instant::now(), epoch_ms());
        Status {
            config: self.config.file.clone(),
            supervisor: Some(SupervisorStatus {
                pid: std::process::id(),
                started_at_ms: self.started_at_ms,
                grace_ms: millis(self.settings.policy.grace),
            }),
            enabled: self.enabled,
            agents: self
                .agents
                .iter()
                .map(|it| it.status(now, now_ms))
                .collect(),
            warnings: self.config.warnings.clone(),
        }
    }

    /// Returns the indices of the selected agents.
    fn find(&self, selection: &Selection) -> Result<Vec<usize>, (ErrorCode, String)> {
        let present = || (0..).zip(&self.agents).filter(|(_, it)| !it.removed);
        if selection.all {
            return Ok(present().map(|(index, _)| index).collect());
        }
        if selection.agents.is_empty() {
            return Err((
                ErrorCode::BadRequest,
                "no agent is named: name some as `agents`, or set `all`".to_owned(),
            ));
        }
        let find = |id: &String| {
            let found = present().find(|(_, it)| it.config.id == *id);
            found.map(|(index, _)| index).ok_or_else(|| {
                let known: Vec<&str> = present().map(|(_, it)| &*it.config.id).collect();
                (
                    ErrorCode::UnknownAgent,
                    format!("there is no agent {id:?}; there is: {}", known.join(", ")),
                )
            })
        };
        selection.agents.iter().map(find).collect()
    }

    fn start_these(&mut self, selection: &Selection) -> Result<(), (ErrorCode, String)> {
        let chosen = self.find(selection)?;
        self.turn_on(&chosen);
        let now = Instant::now();
        for index in chosen {
            self.agents[index].agent.start(now);
        }
        Ok(())
    }

    fn stop_these(&mut self, selection: &Selection) -> Result<(), (ErrorCode, String)> {
        let chosen = self.find(selection)?;
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

    fn restart_these(&mut self, selection: &Selection) -> Result<(), (ErrorCode, String)> {
        let mut chosen = self.find(selection)?;
        if selection.all {
            // Stopped agents stay stopped.
            chosen.retain(|index| self.wants(self.agents[*index].enabled));
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
        let chosen = self.find(selection)?;
        let mut processes = Vec::new();
        for index in chosen {
            let managed = &self.agents[index];
            match managed.agent.phase() {
                Phase::Running { process, .. } => processes.push(process),
                _ if selection.all => {}
                _ => {
                    let id = &managed.config.id;
                    let message = if managed.agent.comes_next(Instant::now()) {
                        format!("{id} is being started, and begins with a tick")
                    } else {
                        format!("{id} does not run: `teamster agents start {id}` starts it")
                    };
                    return Err((ErrorCode::NotRunning, message));
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
            let Some(place) = before.iter().position(|it| it.config.id == new.id) else {
                let mut managed = Managed::new(new.clone(), &self.settings.policy, true);
                if self.wants(true) {
                    managed.agent.start(now);
                }
                self.agents.push(managed);
                continue;
            };
            let mut managed = before.remove(place);
            if error.is_some() && managed.agent.process().is_some() {
                self.agents.push(managed);
                continue;
            }
            managed.config = new.clone();
            let back = std::mem::take(&mut managed.removed);
            managed.enabled |= back;
            if self.wants(managed.enabled) {
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
            "the configuration was read again, but not all of its agents can be used: {}; put that right and \
             reload again (an agent that runs continues as before)",
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
