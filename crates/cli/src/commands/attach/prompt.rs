//! Input of prompts and commands in `teamster attach`.
//!
//! Between turns the prompt is shown, but the line editor starts only with the first key. Until then, entries from
//! other clients are shown as they come. While the user types, the log waits.

use std::io::{self, Write};
use std::os::fd::AsFd;

use anyhow::Context;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::unistd::ttyname;
use teamster_api::{Command as RunCommand, ProblemCode};
use tokio::time::{Duration, interval};

use crate::detached::Run;
use crate::dialog::command::{self, Command, InputLine};
use crate::dialog::input::{Entry, Input};
use crate::dialog::{open_input, terminal};
use crate::words;

/// The interval of checks for a key press.
const KEY_POLL: Duration = Duration::from_millis(30);

/// The prompt at the terminal.
pub(super) struct UserPrompt {
    input: Input,
    prompt: String,
    name: String,
    /// Set while the prompt is shown and waits for the first key.
    keys: Option<terminal::RawMode>,
    /// A key was pressed, and the line editor reads.
    typing: bool,
}

/// An input of the user.
pub(super) enum UserInput {
    Message(String),
    Command(Command),
    /// End the view.
    Leave,
    /// No input yet; the user may be typing.
    None,
}

impl UserPrompt {
    pub(super) fn new(run: &Run, no_history: bool) -> anyhow::Result<Self> {
        let agent = &run.info.provider;
        Ok(Self {
            input: open_input(agent, no_history, true).context("cannot read messages")?,
            prompt: format!("{agent}> "),
            name: sender_name(),
            keys: None,
            typing: false,
        })
    }

    /// Returns the sender's name for other clients of the session.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Waits for the user's next input; forever if `user_prompt` is `None`. Cancel-safe.
    pub(super) async fn listen(user_prompt: Option<&mut Self>) -> UserInput {
        let Some(user_prompt) = user_prompt else {
            return std::future::pending().await;
        };
        if !user_prompt.typing {
            user_prompt.key().await;
            user_prompt.keys = None;
            user_prompt.typing = true;
            return UserInput::None;
        }
        let entry = user_prompt.input.next().await;
        user_prompt.typing = false;
        match entry {
            Entry::Text(text) => match command::parse(&text) {
                InputLine::Empty => UserInput::None,
                InputLine::Message(message) => UserInput::Message(message),
                InputLine::Command(Command::Quit) => UserInput::Leave,
                InputLine::Command(command) => UserInput::Command(command),
                InputLine::Invalid(why) => report_error(&why),
            },
            Entry::Cleared => UserInput::None,
            Entry::Invalid(why) => report_error(&why),
            Entry::End => UserInput::Leave,
            Entry::Failed(why) => {
                report_error(&why);
                UserInput::Leave
            }
        }
    }

    /// Returns `true` while the user types and nothing else may be printed.
    pub(super) fn is_typing(&self) -> bool {
        self.typing
    }

    /// Erases the prompt before other output.
    pub(super) fn clear_line(&mut self) {
        if self.keys.take().is_some() {
            // Without a terminal there is no prompt.
            let _ = terminal::write_to_terminal(b"\r\x1b[K");
        }
    }

    /// Shows the prompt, and waits until a key is pressed. Cancel-safe.
    async fn key(&mut self) {
        if self.keys.is_none() {
            // As above.
            let _ = terminal::write_to_terminal(self.prompt.as_bytes());
            self.keys = Some(terminal::RawMode::begin());
        }
        let mut polls = interval(KEY_POLL);
        while !has_key() {
            polls.tick().await;
        }
    }

    /// Executes a typed command.
    pub(super) async fn execute(&mut self, run: &Run, command: &Command) {
        let done = match command {
            Command::Help => {
                print(&command::attached_help());
                Ok(())
            }
            Command::Cost | Command::Session => run.handle.status().await.map(|status| {
                let session = status.session_id.as_deref().map(words::one_line);
                let cost = words::cost_of(status.cost_usd, status.cost_source);
                let tokens = status.usage.as_ref().and_then(words::tokens);
                print(&format!(
                    "{}, {}, {}\nsession {}",
                    words::plural(status.turns, "turn"),
                    tokens.as_deref().unwrap_or("tokens not reported"),
                    cost.as_deref().unwrap_or("cost unknown"),
                    session.as_deref().unwrap_or("not started")
                ));
            }),
            Command::Clear => run.handle.send(RunCommand::Clear).await.map(drop),
            Command::Model(model) => {
                let model = model.clone();
                (run.handle.send(RunCommand::SetModel { model }).await).map(drop)
            }
            Command::Permission(mode) => run.handle.set_permission(*mode).await,
            Command::End => run.handle.cancel(false).await,
            Command::Quit => Ok(()),
        };
        match done {
            Err(error) if error.code != Some(ProblemCode::RunEnded) => {
                crate::report::fail(&error.into());
            }
            // The log shows it.
            _ => {}
        }
    }
}

fn print(text: &str) {
    // Without stderr the message cannot be shown.
    let _ = writeln!(anstream::stderr(), "{text}");
}

fn report_error(why: &str) -> UserInput {
    crate::report::fail(&anyhow::anyhow!("{why}"));
    UserInput::None
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

/// Returns the sender's name for this terminal.
fn sender_name() -> String {
    match ttyname(io::stdin()) {
        Ok(path) => {
            let path = path.to_string_lossy();
            format!("terminal {}", path.strip_prefix("/dev/").unwrap_or(&path))
        }
        Err(_) => format!("process {}", std::process::id()),
    }
}
