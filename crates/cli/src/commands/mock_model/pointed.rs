//! The command lines and variables that point CLIs at the mock server, as they are printed.

use std::path::PathBuf;

use serde_json::{Value, json};
use teamster_mock_model::{Cli, HomeVariables, PointedHome, Pointing, URL_VARIABLE};

use crate::mock_home::{info, installed};

/// The prompt in printed command lines. The script ignores it.
const PROMPT: &str = "hello";

/// CLIs that are pointed at a server.
#[derive(Debug)]
pub(super) struct Pointed {
    pub(super) home: PointedHome,
    /// The working directory, if not the current one.
    pub(super) directory: Option<PathBuf>,
}

impl Pointed {
    /// Returns the command line of a CLI, with `env` and its variables in front.
    fn command_line(&self, cli: Cli, pointing: &Pointing) -> Vec<String> {
        let is_embedded = info(cli).is_some_and(|info| info.program.is_empty());
        // An embedded agent has no program of its own.
        let program: &[_] = if is_embedded {
            &["teamster", "run", cli.id()]
        } else {
            &[cli.id()]
        };
        self.home.command_line(program, pointing, PROMPT)
    }

    /// Returns the command line of `teamster run` for a CLI.
    fn run_line(&self, cli: Cli, pointing: &Pointing) -> Vec<String> {
        let mut words: Vec<_> = ["teamster", "run", cli.id(), PROMPT, "--clean-env"]
            .map(str::to_owned)
            .into();
        if let Some(directory) = &self.directory {
            words.extend(["--cwd".to_owned(), directory.display().to_string()]);
        }
        let home = ("HOME".to_owned(), self.home.path.display().to_string());
        for (name, value) in std::iter::once(&home).chain(&pointing.env) {
            words.extend(["--env".to_owned(), format!("{name}={value}")]);
        }
        words.extend(pointing.model_args());
        if !pointing.args.is_empty() {
            words.push("--".to_owned());
            words.extend(pointing.args.iter().cloned());
        }
        words
    }

    /// Returns both command lines in a form to paste into a shell.
    pub(super) fn lines(&self, cli: Cli, pointing: &Pointing) -> [String; 2] {
        let words = self.command_line(cli, pointing);
        // `env -i` hides the variables of the user's shell.
        let from = words.iter().position(|word| word.starts_with("HOME="));
        let words = words.get(from.unwrap_or_default()..).unwrap_or_default();
        let mut line = format!("env -i PATH=\"$PATH\" TERM=\"$TERM\" {}", shell_line(words));
        if let Some(directory) = &self.directory {
            let directory = directory.display().to_string();
            line = format!("(cd {} && {line})", shell_words::quote(&directory));
        }
        if pointing.waits_for_stdin {
            line.push_str(" </dev/null");
        }
        [line, shell_line(&self.run_line(cli, pointing))]
    }

    /// Returns lines that set the variables in a POSIX shell.
    pub(super) fn export(&self, variables: HomeVariables) -> String {
        let (set, unset) = self.home.environment(variables);
        let is_set = |name: &&str| std::env::var_os(name).is_some();
        let unset = unset.into_iter().filter(is_set);
        let mut lines: Vec<_> = unset.map(|name| format!("unset {name}")).collect();
        let pid = std::process::id().to_string();
        let ours = [
            ("TEAMSTER_MOCK_PID", &*pid),
            (URL_VARIABLE, &*self.home.url),
        ];
        let theirs = set.iter().map(|(name, value)| (&**name, &**value));
        lines.extend(
            theirs
                .chain(ours)
                .map(|(name, value)| format!("export {name}={}", shell_words::quote(value))),
        );
        lines.join("\n") + "\n"
    }

    pub(super) fn json(&self) -> Value {
        let clis = self.home.clis.iter().map(|(cli, pointing)| {
            let files = pointing.files.iter().map(
                |file| json!({"path": self.home.path.join(&file.path), "content": file.content}),
            );
            json!({
                "id": cli.id(),
                "name": info(*cli).map(|info| info.name),
                "installed": installed(*cli),
                "env": pointing.environment(&self.home.path),
                "unset": pointing.elsewhere,
                "args": pointing.args,
                "model": pointing.model,
                "files": files.collect::<Value>(),
                "command": self.command_line(*cli, pointing),
                "run": self.run_line(*cli, pointing),
            })
        });
        json!({
            "url": self.home.url,
            "pid": std::process::id(),
            "home": self.home.path,
            "clis": clis.collect::<Value>(),
        })
    }
}

/// Quotes words for a shell. In assignments, only the value is quoted.
fn shell_line(words: &[String]) -> String {
    let quoted = words.iter().map(|word| match word.split_once('=') {
        Some((name, value)) if name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') => {
            format!("{name}={}", shell_words::quote(value))
        }
        _ => shell_words::quote(word).into_owned(),
    });
    quoted.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_reads_the_words_as_they_are() {
        let words = [
            "env",
            "A=1",
            "B=it's {\"x\": 1}",
            "c",
            "--model",
            "a b",
            "-c",
            "k=\"v\"",
        ];
        let words = words.map(str::to_owned);
        let line = shell_line(&words);
        assert!(line.starts_with("env A=1 B='"), "{line}");
        assert_eq!(shell_words::split(&line).unwrap(), words);
    }
}
