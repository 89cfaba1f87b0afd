//! The agent's modes.
//!
//! The permission mode of a session is kept by the answers to the agent's requests, so the agent must be in a mode in
//! which it requests. It may begin in another one, and a tool of its model's may bring it there: after
//! `EnterPlanMode`, Claude Code runs commands without a request.

use teamster_core::provider::Events;
use teamster_core::{AgentError, NoticeLevel, NoticeSource};

use super::start::Stage;
use super::{AcpProtocol, Ask};
use crate::settings::{Approve, ModeSwitch};
use crate::wire::{ConfigOption, Opened};
use crate::write;

/// Modes that a session offers: as modes, or as a setting.
#[derive(Debug, Default)]
pub(super) struct Modes {
    /// Id of the option for the mode, if it is a setting.
    option: Option<String>,
    offered: Vec<String>,
    current: Option<String>,
}

impl Modes {
    fn of(opened: &Opened) -> Self {
        if let Some(modes) = &opened.modes
            && modes.current_mode_id.is_some()
        {
            return Self {
                option: None,
                offered: (modes.available_modes.iter().map(|it| it.id.clone())).collect(),
                current: modes.current_mode_id.clone(),
            };
        }
        let Some(option) = mode_option(&opened.config_options) else {
            return Self::default();
        };
        Self {
            option: Some(option.id.clone()),
            offered: (option.values().filter_map(|it| it.value.clone())).collect(),
            current: option.current_value.clone(),
        }
    }

    /// Takes a switch that the agent has confirmed.
    pub(super) fn switched(&mut self, switch: &ModeSwitch) {
        match switch {
            ModeSwitch::Mode(mode)
            | ModeSwitch::Option(_, mode)
            | ModeSwitch::ModeAndAnswers(mode, _) => self.current = Some(mode.clone()),
            ModeSwitch::Answers(_) => {}
        }
    }
}

fn mode_option(options: &[ConfigOption]) -> Option<&ConfigOption> {
    let is_mode = |option: &&ConfigOption| option.category.as_deref() == Some("mode");
    options.iter().find(is_mode)
}

impl AcpProtocol {
    /// Switches the mode. Returns whether a request was sent for it.
    pub(super) fn switch_mode(&mut self, session: &str, ask: Ask, switch: &ModeSwitch) -> bool {
        match switch {
            ModeSwitch::Mode(mode) | ModeSwitch::ModeAndAnswers(mode, _) => {
                let id = self.ask(ask);
                write::set_mode(&mut self.outbox, id, session, mode);
                true
            }
            ModeSwitch::Option(option, value) => {
                let id = self.ask(ask);
                write::set_option(&mut self.outbox, id, session, option, value);
                true
            }
            ModeSwitch::Answers(approve) => {
                self.settings.approve = *approve;
                // Earlier orders that the agent has not confirmed change nothing any more.
                for (_, ask) in &mut self.asked {
                    if let Ask::Mode(_, _, approve) = ask {
                        *approve = None;
                    }
                }
                false
            }
        }
    }

    /// Returns the tools allowed without a request to the caller: as the newest order of a mode wants them. It counts at
    /// once, and no longer if the agent refuses the mode.
    pub(super) fn approve(&self) -> Approve {
        let ordered = self.asked.iter().rev().find_map(|(_, ask)| match ask {
            Ask::Mode(_, _, approve) => *approve,
            _ => None,
        });
        ordered.unwrap_or(self.settings.approve)
    }

    /// Finds the mode that a session must be set to first.
    pub(super) fn find_first_mode(&mut self, opened: &Opened) -> Result<(), AgentError> {
        let modes = Modes::of(opened);
        self.offers.first_mode = self.asking_mode(&modes, self.approve())?;
        self.offers.modes = modes;
        Ok(())
    }

    /// Returns the switch to the mode in which the agent asks, unless it is in one.
    pub(super) fn asking_mode(
        &self,
        modes: &Modes,
        approve: Approve,
    ) -> Result<Option<ModeSwitch>, AgentError> {
        let Some(current) = &modes.current else {
            return Ok(None);
        };
        let offered: Vec<&str> = modes.offered.iter().map(String::as_str).collect();
        let mode = self.dialect.initial_mode(current, &offered, approve)?;
        Ok(mode.map(|mode| match &modes.option {
            Some(option) => ModeSwitch::Option(option.clone(), mode),
            None => ModeSwitch::Mode(mode),
        }))
    }

    /// Handles the agent's report of its mode.
    pub(super) fn mode_is(&mut self, mode: String, out: &mut Events) {
        if self.offers.modes.option.is_none() {
            self.came_to_mode(mode.clone(), out);
        }
        self.mode = Some(mode);
    }

    /// Handles the agent's report of its settings.
    pub(super) fn options_are(&mut self, options: &[ConfigOption], out: &mut Events) {
        if let Some(option) = mode_option(options)
            && self.offers.modes.option.as_ref() == Some(&option.id)
            && let Some(mode) = option.current_value.clone()
        {
            self.came_to_mode(mode, out);
        }
    }

    /// Sets the mode back during a turn. Before a turn it is set in any case.
    fn came_to_mode(&mut self, mode: String, out: &mut Events) {
        let is_new = self.offers.modes.current.as_ref() != Some(&mode);
        self.offers.modes.current = Some(mode);
        let approve = self.approve();
        if !is_new || !self.is_active() || approve == Approve::Everything {
            return;
        }
        match self.asking_mode(&self.offers.modes, approve) {
            Ok(Some(switch)) => {
                if let Some(session) = self.session.clone() {
                    self.switch_mode(&session, Ask::BackToAsking(switch.clone()), &switch);
                }
            }
            Ok(None) => {}
            Err(error) => self.does_not_ask(&error, out),
        }
    }

    /// Interrupts the turn of an agent that would not ask.
    pub(super) fn does_not_ask(&mut self, error: &AgentError, out: &mut Events) {
        if !self.is_active() {
            return;
        }
        let name = self.dialect.name();
        let message = format!(
            "{name} left the mode that asks for permission, so the turn is interrupted: {}",
            error.message
        );
        out.notice(NoticeLevel::Warning, NoticeSource::Runtime, message);
        self.interrupt(out);
    }

    /// Switches the mode before the waiting turn, if the agent is in one in which it would not ask. Returns whether
    /// the turn can begin.
    pub(super) fn asks(&mut self, out: &mut Events) -> bool {
        match self.asking_mode(&self.offers.modes, self.approve()) {
            Ok(None) => true,
            Ok(Some(switch)) => {
                self.steps.push_back(super::start::Step::Mode(switch));
                self.stage = Stage::Open;
                self.advance(out);
                false
            }
            Err(error) => {
                self.waiting = None;
                self.fail_turn(error, out);
                false
            }
        }
    }
}
