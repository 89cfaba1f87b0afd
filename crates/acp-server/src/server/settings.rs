//! Session options, and changes to them by the editor.

use agent_client_protocol_schema::v1::{
    ConfigOptionUpdate, CurrentModeUpdate, Error, RequestId, SessionConfigOption,
    SessionConfigOptionValue, SessionModeState, SessionUpdate, SetSessionConfigOptionRequest,
    SetSessionConfigOptionResponse, SetSessionModeRequest, SetSessionModeResponse,
};
use serde_json::json;
use teamster_core::text::{excerpt, one_line};
use teamster_core::{Offers, PermissionMode};

use super::AcpServer;
use crate::catalog::{self, AGENT, DEFAULT, MODE, MODEL, THOUGHT_LEVEL};
use crate::session::Session;
use crate::{Action, Catalog, Output, errors};

impl AcpServer {
    /// Returns the options of a session and records them as known to the editor.
    pub(super) fn remember_options(
        &self,
        session: &mut Session,
    ) -> (Vec<SessionConfigOption>, Option<SessionModeState>) {
        let options = options(&self.catalog, session);
        session.known_options = Some(json!(options));
        (options, catalog::modes(&self.catalog, &session.setup))
    }

    /// Sends the session's options to the editor if they changed.
    pub(super) fn show_changed_options(&mut self, session_id: &str, out: &mut Output) {
        let Some(session) = self.sessions.get_mut(session_id) else {
            return;
        };
        let options = options(&self.catalog, session);
        let known = Some(json!(options));
        if session.known_options != known {
            session.known_options = known;
            let update = SessionUpdate::ConfigOptionUpdate(ConfigOptionUpdate::new(options));
            out.update(session_id, update);
        }
    }

    pub(super) fn set_mode(
        &mut self,
        id: &RequestId,
        request: &SetSessionModeRequest,
        out: &mut Output,
    ) -> Result<(), Error> {
        let session_id = request.session_id.0.to_string();
        self.choose(&session_id, MODE, &request.mode_id.0, out)?;
        out.response(id, &SetSessionModeResponse::new());
        self.show_changed_options(&session_id, out);
        Ok(())
    }

    /// Sets an option. The response lists all options of the session.
    pub(super) fn set_option(
        &mut self,
        id: &RequestId,
        request: &SetSessionConfigOptionRequest,
        out: &mut Output,
    ) -> Result<(), Error> {
        let session_id = request.session_id.0.to_string();
        let option = request.config_id.0.to_string();
        let session = self.session(&session_id)?;
        let before = session.setup.settings.mode;
        let agent = session.setup.agent.clone();
        let left_out = match &request.value {
            SessionConfigOptionValue::ValueId { value } if self.is_known(&option) => {
                self.choose(&session_id, &option, &value.0, out)?;
                None
            }
            // An editor may set options of other agents, which its user cannot change.
            _ => Some(format!(
                "the option {} is left out: there is none of this name and type",
                excerpt(&one_line(&option), 80)
            )),
        };
        let session = self.session(&session_id)?;
        let mode = session.setup.settings.mode;
        if let Some(mut session) = self.sessions.remove(&session_id) {
            let (options, _) = self.remember_options(&mut session);
            self.sessions.insert(session_id.clone(), session);
            out.response(id, &SetSessionConfigOptionResponse::new(options));
        }
        if mode != before {
            show_mode(&session_id, mode, out);
        }
        self.show_left_out(&session_id, left_out.as_slice(), out);
        if self.session(&session_id)?.setup.agent != agent {
            self.show_changed_commands(&session_id, out);
            self.ask_offers(&session_id, out);
        }
        Ok(())
    }

    fn is_known(&self, option: &str) -> bool {
        match option {
            AGENT => self.catalog.choose_agent,
            MODE | MODEL | THOUGHT_LEVEL => true,
            _ => false,
        }
    }

    fn choose(
        &mut self,
        session_id: &str,
        option: &str,
        value: &str,
        out: &mut Output,
    ) -> Result<(), Error> {
        let catalog = self.catalog.clone();
        let session = self.session(session_id)?;
        let invalid = |problem: String| Err(errors::invalid(problem));
        let agent = session
            .setup
            .agent
            .as_deref()
            .and_then(|id| catalog.agent(id));
        match option {
            AGENT if catalog.choose_agent => {
                let Some(agent) = catalog.agent(value) else {
                    return invalid(format!("unknown agent {value}"));
                };
                if session.setup.agent.as_deref() != Some(value) {
                    if session.started {
                        return invalid(
                            "the agent is fixed after the first prompt: start a new session for another one"
                                .to_owned(),
                        );
                    }
                    session.setup.agent = Some(agent.id.clone());
                    session.setup.settings = agent.settings.clone();
                    // They are another agent's.
                    session.view.offers = Offers::new();
                }
            }
            MODE => {
                let known = agent.map_or(&[][..], |agent| &agent.modes);
                let Some(mode) = known.iter().find(|mode| mode.as_str() == value) else {
                    let known: Vec<_> = known.iter().map(|mode| mode.as_str()).collect();
                    return invalid(format!(
                        "unknown mode {value}; expected one of: {}",
                        known.join(", ")
                    ));
                };
                session.setup.settings.mode = *mode;
            }
            // The agent may know models that are not in the catalog.
            MODEL => {
                session.setup.settings.model = Some(value.to_owned()).filter(|it| it != DEFAULT);
            }
            THOUGHT_LEVEL => {
                session.setup.settings.effort = Some(value.to_owned()).filter(|it| it != DEFAULT);
            }
            _ => return invalid(format!("unknown option {option}")),
        }
        if session.started {
            out.actions.push(Action::Apply {
                session_id: session_id.to_owned(),
                setup: session.setup.clone(),
            });
        }
        Ok(())
    }
}

/// Reports a mode that the editor has not set by its modes.
pub(super) fn show_mode(session_id: &str, mode: PermissionMode, out: &mut Output) {
    let update = SessionUpdate::CurrentModeUpdate(CurrentModeUpdate::new(mode.as_str()));
    out.update(session_id, update);
}

fn options(catalog: &Catalog, session: &Session) -> Vec<SessionConfigOption> {
    let view = &session.view;
    let model = view.model.as_deref();
    catalog::options(
        catalog,
        &session.setup,
        session.started,
        model,
        &view.offers,
    )
}
