//! Input of messages and commands.

use std::future::pending;
use std::io;
use std::os::fd::AsFd;
use std::path::Path;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use tokio::time::{Duration, interval};

use crate::dialog::command::{self, Command, UserInput};
use crate::dialog::images;
use crate::dialog::input::{Entry, Input};
use crate::dialog::terminal;

/// The interval of checks for a key press.
const KEY_POLL: Duration = Duration::from_millis(30);

/// The source of what the user sends to a session.
pub(crate) struct UserPrompt {
    input: Input,
    style: Style,
    /// The line editor reads, and nothing else may be printed.
    typing: bool,
}

enum Style {
    /// Lines of a file or pipe. The log is shown while the next one is awaited.
    Lines,
    /// The line editor starts at once.
    Editor,
    /// The prompt is shown, but the line editor starts only with the first key. Until then, entries from other clients
    /// are shown as they come.
    Keys {
        prompt: String,
        /// Set while the prompt is shown and waits for the first key.
        keys: Option<terminal::RawMode>,
    },
}

impl UserPrompt {
    /// Reads each message at once: from the line editor at a terminal, which shows its own prompt.
    pub(crate) fn new(input: Input, at_terminal: bool) -> Self {
        let style = if at_terminal {
            Style::Editor
        } else {
            Style::Lines
        };
        Self {
            input,
            style,
            typing: false,
        }
    }

    /// Shows this prompt until the first key.
    pub(crate) fn with_keys(input: Input, prompt: String) -> Self {
        Self {
            input,
            style: Style::Keys { prompt, keys: None },
            typing: false,
        }
    }

    /// Waits for the user's next input; forever if `user_prompt` is `None`. Unless the user is typing, first waits for
    /// `rest`. Cancel-safe.
    pub(crate) async fn listen(
        user_prompt: Option<&mut Self>,
        rest: impl Future<Output = ()>,
    ) -> UserInput {
        let Some(user_prompt) = user_prompt else {
            return pending().await;
        };
        if !user_prompt.typing {
            rest.await;
            match &mut user_prompt.style {
                Style::Lines => {}
                Style::Editor => {
                    user_prompt.typing = true;
                    return UserInput::None;
                }
                Style::Keys { prompt, keys } => {
                    key(prompt, keys).await;
                    *keys = None;
                    user_prompt.typing = true;
                    return UserInput::None;
                }
            }
        }
        let entry = user_prompt.input.next().await;
        user_prompt.typing = false;
        match entry {
            Entry::Text(text) => match images::dropped(&text) {
                Some(file) => image(&file),
                None => command::parse(&text),
            },
            Entry::Cleared => UserInput::None,
            Entry::Invalid(why) => UserInput::Invalid(why),
            Entry::End => UserInput::Leave,
            Entry::Failed(why) => UserInput::Failed(why),
        }
    }

    /// Returns `true` while the user types and nothing else may be printed.
    pub(crate) fn is_typing(&self) -> bool {
        self.typing
    }

    /// Erases the prompt before other output.
    pub(crate) fn clear_line(&mut self) {
        if let Style::Keys { keys, .. } = &mut self.style
            && keys.take().is_some()
        {
            // Without a terminal there is no prompt.
            let _ = terminal::write_to_terminal(b"\r\x1b[K");
        }
    }
}

/// Returns the command for the file of an image.
fn image(file: &Path) -> UserInput {
    let file = file.to_string_lossy();
    UserInput::Command(Command::Image(Some(shell_words::quote(&file).into_owned())))
}

/// Shows the prompt, and waits until a key is pressed. Cancel-safe.
async fn key(prompt: &str, keys: &mut Option<terminal::RawMode>) {
    if keys.is_none() {
        // Without a terminal there is no prompt.
        let _ = terminal::write_to_terminal(prompt.as_bytes());
        *keys = Some(terminal::RawMode::begin());
    }
    let mut polls = interval(KEY_POLL);
    while !has_key() {
        polls.tick().await;
    }
}

/// Returns `true` if a key was pressed, or if that is unknown: then the line editor waits for it.
fn has_key() -> bool {
    let stdin = io::stdin();
    let mut keys = [PollFd::new(stdin.as_fd(), PollFlags::POLLIN)];
    match poll(&mut keys, PollTimeout::ZERO) {
        Ok(ready) => ready > 0,
        Err(error) => error != nix::Error::EINTR,
    }
}
