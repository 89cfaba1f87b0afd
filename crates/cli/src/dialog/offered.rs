//! Offers of the session's CLI, for the prompt: its models and its own commands.

use std::sync::{LazyLock, Mutex};

use teamster::{ModelChoice, Offers, SlashCommand};
use teamster_core::sync::lock;

use crate::words;

/// The offers of the one session that this process shows.
static OFFERED: LazyLock<Mutex<Offers>> = LazyLock::new(Mutex::default);

/// Records the offers of a session; its commands only if it `takes_commands`.
pub(crate) fn record(offers: &Offers, takes_commands: bool) {
    let mut offered = lock(&OFFERED);
    offered.update(offers);
    if !takes_commands {
        offered.commands = None;
    }
}

/// Returns the models that the session can be set to.
pub(crate) fn models() -> Vec<ModelChoice> {
    lock(&OFFERED).models.clone().unwrap_or_default()
}

/// Returns the CLI's own commands.
pub(crate) fn commands() -> Vec<SlashCommand> {
    lock(&OFFERED).commands.clone().unwrap_or_default()
}

/// Returns `false` if a command is none of the CLI's own, as far as they are known. Some CLIs say nothing about such a
/// command, and ask no model.
pub(crate) fn may_have(text: &str) -> bool {
    let name = text.trim_start_matches('/');
    let name = name.split(char::is_whitespace).next().unwrap_or_default();
    let commands = commands();
    commands.is_empty() || commands.iter().any(|command| command.name == name)
}

/// Returns the part of `/help` about the CLI's own commands; empty if none is known.
pub(crate) fn commands_help() -> String {
    let commands = commands().into_iter();
    let names: Vec<_> = commands
        .map(|command| format!("/{}", words::one_line(&command.name)))
        .collect();
    if names.is_empty() {
        return String::new();
    }
    let names = format!("Commands of the agent's CLI: {}", names.join(", "));
    let width = words::stdout_width().unwrap_or(usize::MAX);
    format!("\n\n{}", words::wrap(&names, 0, 2, width))
}
