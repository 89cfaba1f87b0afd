//! `--remote`: each command prints and ends as on the server's machine itself.

mod broken;
mod editors;
mod refused;
mod repository;
mod runs;
mod sessions;
mod ssh;
pub(super) mod tls;

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::cli::serve::client::Served;
use crate::cli::{Ended, run, teamster};

/// A machine with a server, and the same commands on it and from elsewhere.
struct Machine {
    served: Served,
    state: PathBuf,
    store: PathBuf,
    environment: Vec<(String, PathBuf)>,
}

impl Machine {
    /// A machine whose state is there, with an agent whose program this is.
    fn new(folder: &Path, program: &Path) -> Self {
        let environment = vec![
            ("TEAMSTER_CLAUDE_BIN".to_owned(), program.to_owned()),
            ("TEAMSTER_STORE".to_owned(), folder.join("store.db")),
            ("HOME".to_owned(), folder.join("home")),
            // A login that the server detects.
            ("ANTHROPIC_API_KEY".to_owned(), "made-up".into()),
        ];
        let state = folder.join("state");
        let served = Served::start(&[], &state, |command| {
            command.envs(environment.clone()).env("TZ", "UTC");
        });
        Self {
            served,
            state,
            store: folder.join("store.db"),
            environment,
        }
    }

    /// A command on the machine.
    fn local<'a>(&self, args: impl IntoIterator<Item = &'a str>) -> Command {
        let mut command = teamster(args);
        command
            .envs(self.environment.clone())
            .env("XDG_STATE_HOME", &self.state)
            .env("TZ", "UTC");
        command
    }

    /// The same from elsewhere, where nothing of the machine is.
    fn remote<'a>(&self, args: impl IntoIterator<Item = &'a str>) -> Command {
        let mut command = teamster(args);
        command
            .env("TEAMSTER_REMOTE", format!("http://{}", self.served.address))
            .env("TEAMSTER_REMOTE_TOKEN", &self.served.token)
            .env("TZ", "UTC");
        command
    }

    /// What a command prints here and there, which is the same.
    #[track_caller]
    fn same<'a>(&self, args: impl IntoIterator<Item = &'a str> + Clone) -> Ended {
        let local = run(&mut self.local(args.clone()));
        let remote = run(&mut self.remote(args));
        assert_eq!(timeless(&remote.stderr), timeless(&local.stderr));
        assert_eq!(timeless(&remote.stdout), timeless(&local.stdout));
        assert_eq!(remote.code, local.code, "{}", remote.stderr);
        remote
    }
}

/// The text without what depends on the time at which it was printed: lengths of time are `T`, with one space between
/// words, and the fields of JSON that have times, lengths of time and ids of runs are gone.
fn timeless(text: &str) -> String {
    let lines = text.lines().map(|line| {
        let json = serde_json::from_str::<serde_json::Value>(line);
        match json {
            Ok(mut value @ serde_json::Value::Object(_)) => {
                without_times(&mut value);
                value.to_string()
            }
            _ => {
                let words = line.split_whitespace().map(without_length);
                words.collect::<Vec<_>>().join(" ")
            }
        }
    });
    lines.collect::<Vec<_>>().join("\n")
}

fn without_times(value: &mut serde_json::Value) {
    match value {
        serde_json::Value::Object(fields) => {
            for name in ["atMs", "durationMs", "runId", "heartbeatAt"] {
                fields.remove(name);
            }
            fields.values_mut().for_each(without_times);
        }
        serde_json::Value::Array(items) => items.iter_mut().for_each(without_times),
        _ => {}
    }
}

/// `T` in the place of a length of time such as `12ms`, `0.3s` or `59m`.
fn without_length(word: &str) -> String {
    let bare = word.trim_matches(|c: char| !c.is_ascii_alphanumeric());
    let number = bare.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = &bare[number.len()..];
    let is_length = ["ms", "s", "m", "h"].contains(&unit)
        && !number.is_empty()
        && number.chars().all(|c| c.is_ascii_digit() || c == '.');
    if is_length {
        word.replace(bare, "T")
    } else {
        word.to_owned()
    }
}

#[test]
fn only_times_are_left_out_of_a_comparison() {
    assert_eq!(timeless("done in 0.3s, 12 ms"), "done in T, 12 ms");
    assert_eq!(timeless("claude-4.5s x1s"), "claude-4.5s x1s");
    assert_eq!(
        timeless(r#"{"seq":1,"atMs":2,"result":{"durationMs":3,"text":"a"}}"#),
        r#"{"seq":1,"result":{"text":"a"}}"#
    );
}
