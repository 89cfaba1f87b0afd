//! Files that the loop writes for others, and flags that it takes.

use serde::Serialize;
use teamster_api::agents::{SleepFile, TickRecord};
use teamster_core::{AgentError, ErrorCode, ErrorKind, Id};

use super::AgentLoop;
use super::failure::TickFailure;
use crate::agent::{self, SESSION_SETTINGS};
use crate::folder::{Flag, FolderError, append_json_lines_within};
use crate::session_file::SessionFile;
use crate::tick_record::TickBegin;

/// `sleep.json`, with the name that some dashboards have for its figure.
#[derive(Serialize)]
struct Written<'a> {
    #[serde(flatten)]
    file: &'a SleepFile,
    seconds: u64,
}

impl AgentLoop {
    /// Restores `.orchestrator` if the agent removed it: without it flags and files are lost, and another loop
    /// could begin. Stops the loop if the agent's directory is gone or locked by another loop.
    pub(super) fn mend(&mut self) {
        match self.folder.restore() {
            Ok(false) => {}
            Ok(true) => {
                self.log
                    .line(".orchestrator was removed and is created again");
                let session = self.written_session.clone();
                self.written = false;
                self.save_session(session);
                self.write_session_settings();
            }
            Err(error @ (FolderError::Busy { .. } | FolderError::Unreachable { .. })) => {
                self.lost = Some(AgentError::new(
                    ErrorCode::Io,
                    ErrorKind::NotFound,
                    error.to_string(),
                ));
                self.control.stop_because(error.to_string());
            }
            Err(error) => self.log.line(error),
        }
    }

    /// Writes the settings file for the CLI's next start, if the CLI takes one.
    pub(super) fn write_session_settings(&self) {
        let Some(file) = &self.settings.agent.agent_loop.settings else {
            return;
        };
        let skills = agent::skills(&self.folder, file.skills).unwrap_or_else(|error| {
            self.log.line(format!("{}: {error}", file.skills));
            Vec::new()
        });
        if !skills.is_empty() {
            let skills = skills.join(", ");
            self.log.line(format!("skills limited to {skills}"));
        }
        let written = agent::write_session_settings(&self.folder, file, &skills);
        self.log_file_error(SESSION_SETTINGS, written);
    }

    /// Reads the agent's parameters from their files again. After an error the previous parameters hold.
    pub(super) fn refresh_params(&mut self) {
        let Some(variables) = &self.variables else {
            return;
        };
        let warnings = match agent::params(&self.settings, &self.folder, variables) {
            Ok((params, ignored)) => {
                self.adapter.set_params(params);
                ignored
            }
            Err(error) => vec![format!("{error}; the previous values are kept")],
        };
        if warnings != self.logged {
            for warning in &warnings {
                self.log.line(format!("warning: {warning}"));
            }
            self.logged = warnings;
        }
    }

    /// Locks this session and releases the previous one.
    pub(super) fn lock_session(&mut self, session: Option<&Id>) -> Result<(), AgentError> {
        match &mut self.writer {
            Some(writer) => writer.follow(session.map(|id| &**id)),
            None => Ok(()),
        }
    }

    /// Records the session that continues if the loop is cut off now.
    pub(super) fn save_session(&mut self, session: Option<Id>) {
        // The session is in use already, so a failed lock changes nothing.
        let _ = self.lock_session(session.as_ref());
        if self.written && self.written_session == session {
            return;
        }
        let file = self.session_file(session.as_ref(), false);
        match self.folder.write_json(SessionFile::NAME, &file) {
            Ok(()) => (self.written, self.written_session) = (true, session),
            Err(error) => {
                self.log_file_error(SessionFile::NAME, Err(error));
                self.written = false;
                // The old file would resume a session that was left. Removing it works on a full disk too.
                if self.written_session != session {
                    self.log_file_error(SessionFile::NAME, self.folder.remove(SessionFile::NAME));
                }
            }
        }
    }

    fn session_file(&self, session: Option<&Id>, ended: bool) -> SessionFile {
        SessionFile {
            runtime: self.settings.name().to_owned(),
            session_id: session.map(|id| (**id).to_owned()),
            pid: std::process::id(),
            updated_at_epoch: self.clock.now().as_second(),
            ended,
            tick: self.current.clone(),
        }
    }

    /// Records the tick in progress, or that there is none.
    pub(super) fn save_current_tick(&mut self, tick: Option<TickBegin>) {
        self.current = tick;
        self.written = false;
        self.save_session(self.written_session.clone());
    }

    /// Keeps the session for the next loop at a clean exit.
    pub(super) fn keep_session(&self) {
        let file = self.session_file(self.written_session.as_ref(), true);
        let written = self.folder.write_json(SessionFile::NAME, &file);
        self.log_file_error(SessionFile::NAME, written);
    }

    /// Appends to `ticks.jsonl`.
    pub(super) fn write_tick(&self, record: TickRecord) {
        let max_bytes = self.settings.log_max_bytes;
        let written =
            append_json_lines_within(&self.folder.path(TickRecord::NAME), &[record], max_bytes);
        self.log_file_error(TickRecord::NAME, written);
    }

    /// Writes `sleep.json`, with the failure count and the last error.
    pub(super) fn write_sleep(&self, mut file: SleepFile) {
        file.failed_ticks = self.machine.failed_ticks();
        file.last_error = self.failure.as_ref().map(TickFailure::to_tick_error);
        let written = Written {
            seconds: file.current_sleep_seconds,
            file: &file,
        };
        let written = self.folder.write_json(SleepFile::NAME, &written);
        self.log_file_error(SleepFile::NAME, written);
    }

    pub(super) fn is_set(&self, flag: Flag) -> bool {
        self.folder.is_set(flag) && !self.stuck.contains(&flag)
    }

    pub(super) fn take(&mut self, flag: Flag) -> bool {
        self.folder.take(flag).unwrap_or_else(|error| {
            self.log_file_error(flag.file_name(), Err(error));
            self.stuck.push(flag);
            false
        })
    }

    /// Makes flags that could not be taken visible again, once a tick to avoid a busy loop. `did-work` stays
    /// ignored until its file is gone: otherwise each tick would count as work.
    pub(super) fn retry_stuck_flags(&mut self) {
        let folder = &self.folder;
        (self.stuck).retain(|flag| *flag == Flag::DidWork && folder.is_set(*flag));
    }

    pub(super) fn done(&self, flag: Flag) {
        self.log_file_error(flag.file_name(), self.folder.done(flag));
    }

    /// Logs the error of work on a file, if there is one.
    pub(super) fn log_file_error(&self, name: &str, done: std::io::Result<()>) {
        if let Err(error) = done {
            self.log.line(format!(".orchestrator/{name}: {error}"));
        }
    }
}
