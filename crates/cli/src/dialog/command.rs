//! Commands of a chat, such as `/clear`.

use std::path::Path;

use teamster::PermissionMode;

use super::{offered, paths};
use crate::words;

/// The command that ends a detached session; in a chat it is the same as `/quit`.
const END: (&str, &str, &str) = ("/end", "", "end the session, and its agent");
/// Help text of `/quit` at a terminal that is attached to a session.
const DETACH: &str = "detach: the session continues";

/// The commands: name, argument and help text.
pub(crate) const COMMANDS: [(&str, &str, &str); 8] = [
    ("/help", "", "show this"),
    (
        "/clear",
        "",
        "start a new session without this conversation",
    ),
    (
        "/model",
        "[NAME]",
        "list models, or use another one from the next turn on",
    ),
    (
        "/permission",
        "MODE",
        "default, read-only, accept-edits, bypass or plan,\nfrom the next turn on",
    ),
    (
        "/image",
        "[FILE]",
        "add an image to the next message; without FILE, remove all",
    ),
    ("/cost", "", "show the tokens and cost of this chat"),
    ("/session", "", "show the session's id and how to resume it"),
    ("/quit", "", "end the chat"),
];

/// Input of the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum UserInput {
    Message(String),
    Command(Command),
    /// A command that may be one of the agent's CLI.
    Other(String),
    /// An input that cannot be sent, with the reason.
    Invalid(String),
    /// End the view.
    Leave,
    /// The source failed: end the view.
    Failed(String),
    /// No input yet; the user may be typing.
    None,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Command {
    Help,
    Clear,
    /// The model, or its number in the list; the list without one.
    Model(Option<String>),
    /// The file of an image to add; to remove all images without one.
    Image(Option<String>),
    Permission(PermissionMode),
    Cost,
    Session,
    Quit,
    End,
}

/// Parses a line.
pub(crate) fn parse(text: &str) -> UserInput {
    let trimmed = text.trim();
    if trimmed.is_empty() {
        return UserInput::None;
    }
    let Some(rest) = trimmed.strip_prefix('/') else {
        return UserInput::Message(text.to_owned());
    };
    if rest.starts_with('/') {
        return UserInput::Message(rest.to_owned());
    }
    let (name, argument) = match trimmed.split_once(char::is_whitespace) {
        Some((name, argument)) => (name, argument.trim()),
        None => (trimmed, ""),
    };
    match command(name, argument) {
        Ok(Some(command)) => UserInput::Command(command),
        Ok(None) => UserInput::Other(trimmed.to_owned()),
        Err(why) => UserInput::Invalid(why),
    }
}

/// Returns why a command that is not known here is not sent to the agent's CLI.
pub(crate) fn unknown(text: &str) -> String {
    let name = text.split(char::is_whitespace).next().unwrap_or_default();
    format!(
        "unknown command `{}`: /help lists the commands; write `//` to send a message that begins \
         with a slash",
        words::one_line(&teamster_core::text::excerpt(name, 60))
    )
}

/// Parses a command; `None` if it is unknown.
fn command(name: &str, argument: &str) -> Result<Option<Command>, String> {
    let without_argument = |command| {
        if argument.is_empty() {
            Ok(Some(command))
        } else {
            Err(format!("{name} takes no argument"))
        }
    };
    match name {
        "/help" => without_argument(Command::Help),
        "/clear" => without_argument(Command::Clear),
        "/cost" => without_argument(Command::Cost),
        "/session" => without_argument(Command::Session),
        "/quit" | "/exit" => without_argument(Command::Quit),
        "/end" => without_argument(Command::End),
        "/model" if argument.contains(char::is_whitespace) => {
            Err("/model needs the name of one model, as in `/model NAME`".to_owned())
        }
        "/model" => {
            let model = Some(argument.to_owned()).filter(|it| !it.is_empty());
            Ok(Some(Command::Model(model)))
        }
        "/image" => {
            let file = Some(argument.to_owned()).filter(|it| !it.is_empty());
            Ok(Some(Command::Image(file)))
        }
        "/permission" => match argument.to_ascii_lowercase().parse() {
            Ok(mode) => Ok(Some(Command::Permission(mode))),
            Err(_) => Err(format!("/permission needs a mode: {}", modes().join(", "))),
        },
        _ => Ok(None),
    }
}

/// Returns the modes of `/permission`.
pub(crate) fn modes() -> Vec<String> {
    let modes = PermissionMode::ALL.iter();
    modes.map(ToString::to_string).collect()
}

/// Returns the completions of the last word of `line`, and the byte offset of that word. Paths are relative to the
/// directory.
pub(crate) fn completions(
    line: &str,
    models: impl FnOnce() -> Vec<String>,
    directory: &Path,
) -> (usize, Vec<String>) {
    if let Some(prefix) = line.strip_prefix("/permission ") {
        let start = line.len() - prefix.len();
        let modes = modes().into_iter().filter(|mode| mode.starts_with(prefix));
        return (start, modes.collect());
    }
    if let Some(prefix) = line.strip_prefix("/model ") {
        // A name with control characters would move the cursor.
        let is_shown = |it: &String| it.starts_with(prefix) && words::one_line(it) == *it;
        let models = models().into_iter().filter(is_shown);
        return (line.len() - prefix.len(), models.collect());
    }
    if let Some(prefix) = line.strip_prefix("/image ") {
        // That of this program, as in a shell.
        return (
            line.len() - prefix.len(),
            paths::completions(prefix, Path::new("")),
        );
    }
    let word = line.rfind(char::is_whitespace).map_or(0, |at| at + 1);
    if let Some(prefix) = line.get(word..).and_then(|word| word.strip_prefix('@')) {
        return (word + 1, paths::completions(prefix, directory));
    }
    if !line.starts_with('/') || line.contains(char::is_whitespace) {
        return (line.len(), Vec::new());
    }
    let found = COMMANDS
        .iter()
        .filter(|(name, _, _)| name.starts_with(line))
        .map(|(name, argument, _)| {
            let space = if argument.is_empty() { "" } else { " " };
            format!("{name}{space}")
        });
    // Of a name that both have, the command here is meant.
    let is_ours = |name: &str| COMMANDS.iter().any(|(ours, _, _)| *ours == name);
    let own = offered::commands().into_iter();
    let own = own.map(|command| format!("/{}", words::one_line(&command.name)));
    let own = own.filter(|name| name.starts_with(line) && !is_ours(name));
    (0, found.chain(own).collect())
}

fn help_line((name, argument, description): (&str, &str, &str)) -> String {
    let command = format!("{name} {argument}");
    let description = description.replace('\n', &format!("\n{}", " ".repeat(20)));
    format!("  {:<18}{description}", command.trim_end())
}

/// Returns the text of `/help` at a terminal that is attached to a session.
pub(crate) fn attached_help() -> String {
    let commands = COMMANDS.map(|(name, argument, description)| match name {
        "/quit" => help_line((name, argument, DETACH)),
        _ => help_line((name, argument, description)),
    });
    format!(
        "{}\n{}\n\nCtrl-C interrupts the turn in progress. Between two turns Ctrl-C and Ctrl-D detach: the session continues.",
        commands.join("\n"),
        help_line(END)
    )
}

/// Returns the text of `/help` in a chat.
pub(crate) fn help() -> String {
    let commands = COMMANDS.map(help_line);
    format!(
        "{}\n\nA line that ends with `\\` continues in the next one. Write `//` to send a\n\
         message that begins with a slash. Tab completes commands, models, and files\n\
         after `@`. Ctrl-R searches earlier messages. The file of an image can be\n\
         dropped here. Ctrl-C interrupts the agent; at the prompt Ctrl-D ends the chat.",
        commands.join("\n")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error_of(text: &str) -> String {
        match parse(text) {
            UserInput::Invalid(why) => why,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn messages_and_commands() {
        let message = |text: &str| UserInput::Message(text.to_owned());
        assert_eq!(parse(" \n"), UserInput::None);
        assert_eq!(parse(" a\n b "), message(" a\n b "));
        assert_eq!(parse("//etc/hosts is odd"), message("/etc/hosts is odd"));
        assert_eq!(parse("a /quit"), message("a /quit"));
        assert_eq!(parse(" /quit "), UserInput::Command(Command::Quit));
        assert_eq!(
            parse("/model  opus"),
            UserInput::Command(Command::Model(Some("opus".into())))
        );
        assert_eq!(parse("/model"), UserInput::Command(Command::Model(None)));
        assert_eq!(
            parse("/image 'a b.png'"),
            UserInput::Command(Command::Image(Some("'a b.png'".into())))
        );
        assert_eq!(parse("/image "), UserInput::Command(Command::Image(None)));
        assert_eq!(
            parse(" /compact now "),
            UserInput::Other("/compact now".into())
        );
        assert_eq!(
            parse("/permission Accept-Edits"),
            UserInput::Command(Command::Permission(PermissionMode::AcceptEdits))
        );
        for (name, argument, _) in COMMANDS {
            let argument = argument.replace("MODE", "bypass");
            assert!(
                matches!(parse(&format!("{name} {argument}")), UserInput::Command(_)),
                "{name}"
            );
            assert!(help().contains(name));
        }
    }

    #[test]
    fn an_unknown_command_points_to_help() {
        let why = unknown("/etc/hosts\u{1b}[2J is odd");
        assert!(
            why.starts_with("unknown command `/etc/hosts [2J`: /help"),
            "{why}"
        );
        assert_eq!(error_of("/clear all"), "/clear takes no argument");
        assert!(error_of("/model a b").contains("`/model NAME`"));
        assert_eq!(
            error_of("/permission all"),
            "/permission needs a mode: default, read-only, accept-edits, bypass, plan"
        );
        assert!(unknown(&format!("/{}", "x".repeat(10_000))).len() < 300);
    }

    #[test]
    fn commands_are_completed() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("a.rs"), "").unwrap();
        let completions = |line: &str| {
            let models = ["opus", "sonnet", "s\u{1b}[2J"].map(str::to_owned);
            let models = || models.to_vec();
            completions(line, models, folder.path())
        };
        assert_eq!(
            completions("/model "),
            (7, vec!["opus".into(), "sonnet".into()])
        );
        assert_eq!(completions("/model s"), (7, vec!["sonnet".into()]));
        assert_eq!(completions("look at @a"), (9, vec!["a.rs".into()]));
        assert_eq!(completions("a@b.c"), (5, vec![]));
        assert_eq!(
            completions("/c"),
            (0, vec!["/clear".into(), "/cost".into()])
        );
        assert_eq!(completions("/m"), (0, vec!["/model ".into()]));
        assert_eq!(completions("/permission r"), (12, vec!["read-only".into()]));
        assert_eq!(completions("hello /c"), (8, vec![]));
        assert_eq!(completions(""), (0, vec![]));
        assert_eq!(completions("//c").1, [""; 0]);
    }
}
