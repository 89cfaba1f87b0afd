//! Takeover of the loops of an earlier supervisor.

use std::collections::HashSet;
use std::io;
use std::time::Instant;

use teamster_process::ProcessIdentity;

use super::Error;
use super::managed::ManagedAgent;
use super::process::end_marked_processes;
use super::state::State;
use super::state_folder::resolve_links;
use super::task::Supervisor;

impl Supervisor {
    /// Reads the state that the previous supervisor left.
    ///
    /// A state that cannot be read is an error: without it, stopped agents would be started.
    pub(super) fn read_state(&self) -> Result<State, Error> {
        let file = self.folder.state();
        let state = State::read(&file).map_err(|error| Error::State {
            path: file.clone(),
            error,
        })?;
        let ours = &self.config.file;
        match state {
            None => Ok(State::new(ours)),
            // A configuration that does not exist was renamed.
            Some(state)
                if state.config.exists() && resolve_links(&state.config) != resolve_links(ours) =>
            {
                Err(Error::OtherState {
                    ours: ours.clone(),
                    theirs: state.config,
                })
            }
            Some(state) => Ok(state),
        }
    }

    /// Restores the state of the previous supervisor and adopts its running loops.
    pub(super) fn take_over(&mut self, state: &State) {
        self.enabled = state.enabled;
        let now = Instant::now();
        for config in self.config.agents.clone() {
            let known = state.agents.get(&config.id);
            let enabled = known.is_none_or(|known| known.enabled);
            let wanted = self.is_wanted(enabled);
            let mut managed = ManagedAgent::new(config, &self.settings.policy, enabled);
            if let Some(known) = known {
                managed.reason.clone_from(&known.reason);
                managed.stopped_in_order = known.stopped_in_order;
                managed.error.clone_from(&known.last_error);
            }
            let recorded = known.and_then(|known| known.process.clone());
            let running = recorded
                .clone()
                .filter(|process| process.identity().is_running());
            let found = running.or_else(|| {
                if let Some(gone) = &recorded {
                    self.end_leftovers_of(gone.identity());
                }
                // A stopped agent's loop that another program started is left alone, and so is the loop of
                // another agent.
                let (process, started) = managed
                    .started_elsewhere()
                    .filter(|(process, _)| wanted && !state.has(*process))?;
                Some(managed.process_state(process, started))
            });
            if wanted {
                managed.agent.start(now);
            }
            self.agents.push(managed);
            let index = self.agents.len() - 1;
            if let Some(process) = found {
                self.adopt(index, process, known.map_or(0, |known| known.restarts));
                let managed = &mut self.agents[index];
                if !wanted {
                    managed.agent.stop();
                } else if !managed.is_up_to_date() {
                    managed.agent.restart(now);
                }
            }
        }
        let ids: HashSet<&str> = self.config.agents.iter().map(|it| &*it.id).collect();
        let gone: Vec<_> = (state.agents.iter())
            .filter(|(id, _)| !ids.contains(id.as_str()))
            .filter_map(|(id, known)| Some((id.clone(), known.process.clone()?)))
            .collect();
        for (id, process) in gone {
            if !process.identity().is_running() {
                self.end_leftovers_of(process.identity());
                continue;
            }
            let managed = ManagedAgent::removed(&id, &process, &self.settings.policy);
            self.agents.push(managed);
            let index = self.agents.len() - 1;
            self.adopt(index, process, 0);
            self.agents[index].agent.stop();
        }
    }

    /// Kills the leftovers of a loop that ended while no supervisor ran. They are found by their mark: the
    /// process group's id may be reused.
    fn end_leftovers_of(&mut self, process: ProcessIdentity) {
        if let Err(error) = end_marked_processes(process) {
            let pid = process.pid();
            self.warn(format!(
                "cannot end the processes left by pid {pid}: {error}"
            ));
        }
    }

    /// Writes the state file if the state has changed.
    pub(super) fn write_state(&mut self) -> io::Result<()> {
        let mut state = State::new(&self.config.file);
        state.enabled = self.enabled;
        state.socket = match (&self.socket, &self.written) {
            (Some(socket), _) => Some(socket.path().to_owned()),
            (None, Some(written)) => written.socket.clone(),
            (None, None) => None,
        };
        for managed in &self.agents {
            state
                .agents
                .insert(managed.config.id.clone(), managed.state());
        }
        if self.written.as_ref() != Some(&state) {
            state.write(&self.folder.state())?;
            self.written = Some(state);
        }
        Ok(())
    }
}
