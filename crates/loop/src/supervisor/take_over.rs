//! What one supervisor leaves to the next, and what the next makes of it.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::time::Instant;

use super::Error;
use super::event::Event;
use super::last_start::LastStart;
use super::managed::Managed;
use super::process::end_marked;
use super::state::State;
use super::task::Supervisor;

impl Supervisor {
    /// What the supervisor before left. If that cannot be understood, it is put aside.
    pub(super) fn read_state(&mut self) -> Result<State, Error> {
        let file = self.place.state();
        match State::read(&file) {
            Ok(Some(state)) => Ok(state),
            Ok(None) => Ok(State::new(&self.config.file)),
            Err(error) => {
                let aside = file.with_extension("json.broken");
                fs::rename(&file, &aside).map_err(Error::disk("cannot put aside", &file))?;
                self.event(Event::Warning(format!(
                    "{} cannot be understood ({error}): it is now {}, and every agent is taken to be \
                     switched on",
                    file.display(),
                    aside.display()
                )));
                Ok(State::new(&self.config.file))
            }
        }
    }

    /// Goes on where the supervisor before was.
    pub(super) fn take_over(&mut self, state: &State) {
        self.enabled = state.enabled;
        let now = Instant::now();
        for config in self.config.agents.clone() {
            let known = state.agents.get(&config.id);
            let enabled = known.is_none_or(|known| known.enabled);
            let wanted = self.wants(enabled);
            let mut managed = Managed::new(config, &self.settings.policy, enabled);
            if let Some(known) = known {
                managed.reason.clone_from(&known.reason);
            }
            let recorded = known.and_then(|known| known.process.clone());
            let running = recorded
                .clone()
                .filter(|process| process.identity().is_running());
            let found = running.or_else(|| {
                if let Some(gone) = &recorded {
                    // What it left is found by its mark. Its group may be that of others by now.
                    let _ = end_marked(gone.identity());
                }
                // One that was stopped here and started elsewhere is not ours to end.
                let (process, started) =
                    LastStart::running(&managed.config.working_dir).filter(|_| wanted)?;
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
            .filter(|(_, process)| process.identity().is_running())
            .collect();
        for (id, process) in gone {
            let managed = Managed::removed(&id, &process, &self.settings.policy);
            self.agents.push(managed);
            let index = self.agents.len() - 1;
            self.adopt(index, process, 0);
            self.agents[index].agent.stop();
        }
    }

    /// Writes down what is wanted and what runs, if it has changed.
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
            state.write(&self.place.state())?;
            self.written = Some(state);
        }
        Ok(())
    }
}
