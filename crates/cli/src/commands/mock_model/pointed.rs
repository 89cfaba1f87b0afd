//! The variables, flags, files and command lines that point CLIs at the mock server.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::Context;
use serde_json::{Value, json};
use teamster::CliInfo;
use teamster_mock_model::{Cli, Pointing};

use crate::mock_home::URL_VARIABLE;

/// The prompt in printed command lines. The script ignores it.
const PROMPT: &str = "hello";

/// CLIs that are pointed at a server, with a shared home.
#[derive(Debug)]
pub(super) struct Pointed {
    pub(super) url: String,
    pub(super) home: PathBuf,
    /// The working directory, if not the current one.
    pub(super) directory: Option<PathBuf>,
    pub(super) clis: Vec<(Cli, Pointing)>,
}

impl Pointed {
    /// Points CLIs at the server and writes their files into the home.
    pub(super) fn new(
        url: String,
        home: PathBuf,
        directory: Option<PathBuf>,
        clis: &[Cli],
    ) -> anyhow::Result<Self> {
        let clis: Vec<_> = clis.iter().map(|cli| (*cli, cli.point_at(&url))).collect();
        for (cli, pointing) in &clis {
            pointing.write_files(&home).with_context(|| {
                format!("cannot write the files of {cli} in {}", home.display())
            })?;
            for (_, folder) in &pointing.folders {
                std::fs::create_dir_all(home.join(folder))
                    .with_context(|| format!("cannot make a folder in {}", home.display()))?;
            }
        }
        Ok(Self {
            url,
            home,
            directory,
            clis,
        })
    }

    /// Returns the variables to set and those to unset. With `keep_home`, HOME is not set.
    pub(super) fn environment(
        &self,
        keep_home: bool,
    ) -> (BTreeMap<String, String>, Vec<&'static str>) {
        let text = |path: &Path| path.display().to_string();
        let mut set: BTreeMap<_, _> = self
            .clis
            .iter()
            .flat_map(|(_, pointing)| pointing.env.iter().cloned())
            .collect();
        if keep_home {
            // The folders of XDG belong to the command too. A CLI that has no other variable gets them if it is named.
            let is_named = self.clis.len() < Cli::ALL.len();
            let folders = self.clis.iter().flat_map(|(_, pointing)| &pointing.folders);
            let folders = folders.filter(|(name, _)| is_named || !name.starts_with("XDG_"));
            set.extend(
                folders.map(|(variable, folder)| {
                    ((*variable).to_owned(), text(&self.home.join(folder)))
                }),
            );
        } else {
            set.insert("HOME".to_owned(), text(&self.home));
        }
        let elsewhere = self
            .clis
            .iter()
            .flat_map(|(_, pointing)| &pointing.elsewhere);
        let is_kept = |name: &str| keep_home && name.starts_with("XDG_");
        let unset = elsewhere
            .copied()
            .filter(|name| !set.contains_key(*name) && !is_kept(name))
            .collect();
        (set, unset)
    }

    /// Returns the command line of a CLI, with `env` and its variables in front.
    fn command_line(&self, cli: Cli, pointing: &Pointing) -> Vec<String> {
        let own = |words: &[&str]| words.iter().copied().map(str::to_owned).collect::<Vec<_>>();
        let mut words = own(&["env"]);
        let elsewhere = pointing.elsewhere.iter();
        words.extend(elsewhere.flat_map(|name| own(&["-u", name])));
        words.push(format!("HOME={}", self.home.display()));
        words.extend(
            pointing
                .env
                .iter()
                .map(|(name, value)| format!("{name}={value}")),
        );
        if info(cli).is_some_and(|info| info.program.is_empty()) {
            // An embedded agent has no program of its own.
            words.extend(own(&["teamster", "run"]));
        }
        words.push(cli.id().to_owned());
        words.extend(pointing.args.iter().cloned());
        words.extend(own(pointing.subcommand.as_slice()));
        words.extend(model(pointing));
        words.extend(own(pointing.before_prompt));
        words.push(PROMPT.to_owned());
        words
    }

    /// Returns the command line of `teamster run` for a CLI.
    fn run_line(&self, cli: Cli, pointing: &Pointing) -> Vec<String> {
        let mut words: Vec<_> = ["teamster", "run", cli.id(), PROMPT, "--clean-env"]
            .map(str::to_owned)
            .into();
        if let Some(directory) = &self.directory {
            words.extend(["--cwd".to_owned(), directory.display().to_string()]);
        }
        let home = ("HOME".to_owned(), self.home.display().to_string());
        for (name, value) in std::iter::once(&home).chain(&pointing.env) {
            words.extend(["--env".to_owned(), format!("{name}={value}")]);
        }
        words.extend(model(pointing));
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
    pub(super) fn export(&self) -> String {
        let (set, unset) = self.environment(true);
        let mut lines: Vec<_> = set_in_ours(unset.iter())
            .map(|name| format!("unset {name}"))
            .collect();
        let pid = std::process::id().to_string();
        let ours = [("TEAMSTER_MOCK_PID", &*pid), (URL_VARIABLE, &*self.url)];
        let theirs = set.iter().map(|(name, value)| (&**name, &**value));
        lines.extend(
            theirs
                .chain(ours)
                .map(|(name, value)| format!("export {name}={}", shell_words::quote(value))),
        );
        lines.join("\n") + "\n"
    }

    /// Returns the JSON of `--json`.
    pub(super) fn json(&self) -> Value {
        let clis = self.clis.iter().map(|(cli, pointing)| {
            let files = pointing
                .files
                .iter()
                .map(|file| json!({"path": self.home.join(&file.path), "content": file.content}));
            let mut env: BTreeMap<_, _> = pointing.env.iter().cloned().collect();
            env.insert("HOME".to_owned(), self.home.display().to_string());
            json!({
                "id": cli.id(),
                "name": info(*cli).map(|info| info.name),
                "installed": installed(*cli),
                "env": env,
                "unset": pointing.elsewhere,
                "args": pointing.args,
                "model": pointing.model,
                "files": files.collect::<Value>(),
                "command": self.command_line(*cli, pointing),
                "run": self.run_line(*cli, pointing),
            })
        });
        json!({
            "url": self.url,
            "pid": std::process::id(),
            "home": self.home,
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

fn set_in_ours<'a>(
    names: impl Iterator<Item = &'a &'static str>,
) -> impl Iterator<Item = &'static str> {
    names
        .copied()
        .filter(|name| std::env::var_os(name).is_some())
}

fn model(pointing: &Pointing) -> impl Iterator<Item = String> {
    let model = pointing.model.iter();
    model.flat_map(|model| ["--model".to_owned(), model.clone()])
}

/// Returns the provider's information about a CLI.
pub(super) fn info(cli: Cli) -> Option<&'static CliInfo> {
    crate::global::providers()
        .get(cli.id())
        .map(|provider| provider.info())
}

/// Returns `true` if the CLI's program is installed.
pub(super) fn installed(cli: Cli) -> bool {
    info(cli).is_some_and(|info| teamster_host::find_program(crate::global::host(), info).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mock_home::temporary_folder;

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

    #[test]
    fn nothing_leads_a_pointed_cli_elsewhere() {
        for cli in Cli::ALL {
            let (folder, home) = temporary_folder("teamster-test-").unwrap();
            let url = "http://127.0.0.1:1".to_owned();
            let pointed = Pointed::new(url, home.clone(), None, &[cli]).unwrap();
            let (set, unset) = pointed.environment(false);
            assert_eq!(set["HOME"], home.display().to_string());
            let folders = cli.point_at("").folders;
            for (variable, _) in &folders {
                assert!(unset.contains(variable), "{cli}: {variable}");
            }
            let (set, unset) = pointed.environment(true);
            assert_eq!(set.get("HOME"), None);
            for (variable, folder) in &folders {
                assert_eq!(set[*variable], home.join(folder).display().to_string());
                assert!(home.join(folder).is_dir());
                assert!(!unset.contains(variable), "{cli}: {variable}");
            }
            drop(folder);
        }
    }
}
