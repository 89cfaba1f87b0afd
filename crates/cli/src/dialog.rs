//! Input of a person at a terminal: messages, commands, and answers to questions.

mod change_lines;
pub(crate) mod command;
mod editor;
pub(crate) mod images;
pub(crate) mod input;
pub(crate) mod offered;
mod paths;
pub(crate) mod permission;
pub(crate) mod request_text;
pub(crate) mod terminal;

use std::env;
use std::io::{self, IsTerminal};
use std::path::Path;

use teamster_host::state;

use editor::{EditorOptions, LineEditor};
use input::{Input, Lines};

/// Path of the message history, relative to the state directory.
const HISTORY: &str = "teamster/chat-history";

/// Opens the input of messages for an agent that works in the directory: the line editor at a terminal, else the lines of
/// stdin.
pub(crate) fn open_input(
    agent: &str,
    directory: Option<&Path>,
    no_history: bool,
    at_terminal: bool,
) -> anyhow::Result<Input> {
    let prompt = format!("{agent}> ");
    // The line editor does not support these terminals.
    let dumb = env::var_os("TERM")
        .is_some_and(|term| ["dumb", "emacs", "cons25"].iter().any(|it| term == *it));
    if !at_terminal || dumb {
        let prompt = at_terminal.then_some(prompt);
        return Ok(Input::new(|| Lines::new(io::stdin().lock(), prompt))?);
    }
    let choice = anstream::AutoStream::choice(&io::stderr());
    let options = EditorOptions {
        prompt,
        agent: agent.to_owned(),
        directory: directory.map_or_else(|| ".".into(), Path::to_owned),
        colour: choice != anstream::ColorChoice::Never,
        tty: !io::stdout().is_terminal(),
        history: if no_history {
            None
        } else {
            state::file(HISTORY)
        },
    };
    Ok(Input::new(move || LineEditor::new(&options))?)
}
