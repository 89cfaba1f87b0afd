//! Advice for starting the conversation of a key over, with the command for a terminal.

use std::path::Path;

use teamster_api::SessionSpec;

use crate::words;

/// Returns the advice for a session that continues a conversation.
pub(super) fn of_session(session: &SessionSpec) -> String {
    let directory = session.working_directory.as_deref();
    let command = new_conversation(
        session.session_key.as_deref().unwrap_or_default(),
        session.trusted.store.as_deref(),
        &session.provider,
        directory.unwrap_or(Path::new(".")),
    );
    format!("start the conversation over with `{command}`")
}

/// Returns the command that starts a conversation over.
fn new_conversation(key: &str, store: Option<&str>, agent: &str, directory: &Path) -> String {
    let directory = directory.to_string_lossy();
    let words = ["teamster", "run", agent, "Hello", "--cwd", &directory];
    let words = words.into_iter().chain(["--session-key", key, "--new"]);
    // A URL may have a password. It is in a variable, not in an argument.
    let file = store.filter(|location| !location.contains("://"));
    let store = file.into_iter().flat_map(|file| ["--store", file]);
    let words = words.chain(store).map(words::shell_word);
    words.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use teamster::store::Conversation;

    use super::*;
    use crate::command_line::{Cli, Command};

    #[test]
    fn the_command_that_starts_a_conversation_over_is_complete() {
        let store = Some("/my files/store.db");
        let command = new_conversation("slack:it's me", store, "claude", Path::new("/my work"));
        let words = shell_words::split(&command).unwrap();
        let Command::Run(args) = Cli::try_parse_from(words).unwrap().command else {
            panic!("{command}");
        };
        assert_eq!(
            (&*args.provider, args.prompt.as_deref()),
            ("claude", Some("Hello"))
        );
        assert_eq!(args.process.cwd.as_deref(), Some(Path::new("/my work")));
        let key: Conversation = args.session.session_key.unwrap().parse().unwrap();
        assert_eq!(key, "slack:it's me".parse().unwrap());
        assert!(args.session.new);
        assert_eq!(args.store.url.as_deref(), Some("/my files/store.db"));
    }
}
