//! A CLI that is pointed at the server: its variables, flags, files and command lines.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::Context;
use serde_json::{Value, json};
use teamster::CliInfo;
use teamster_mock_model::{Cli, Pointing};
use tempfile::TempDir;

/// The prompt in command lines that are shown. What is asked makes no difference.
const PROMPT: &str = "hello";

/// Variables that lead any CLI elsewhere: to settings outside of its home, or to a proxy, which would
/// be asked for `127.0.0.1` too.
const ELSEWHERE: [&str; 10] = [
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_STATE_HOME",
    "XDG_CACHE_HOME",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "http_proxy",
    "https_proxy",
    "all_proxy",
];

/// Variables that lead this CLI elsewhere: to another folder of settings, to another login or
/// service, or into the session of another agent.
fn leads_elsewhere(cli: Cli) -> &'static [&'static str] {
    match cli {
        Cli::Claude => &[
            "CLAUDE_CONFIG_DIR",
            "CLAUDE_CODE_OAUTH_TOKEN",
            "CLAUDE_CODE_USE_BEDROCK",
            "CLAUDE_CODE_USE_FOUNDRY",
            "CLAUDE_CODE_USE_VERTEX",
            "ANTHROPIC_AUTH_TOKEN",
            "CLAUDECODE",
        ],
        Cli::Codex => &["CODEX_HOME"],
        Cli::Copilot => &["COPILOT_HOME"],
        Cli::Gemini => &[
            "GEMINI_CLI_HOME",
            "GOOGLE_API_KEY",
            "GOOGLE_GENAI_USE_GCA",
            "GOOGLE_GENAI_USE_VERTEXAI",
        ],
        Cli::OpenCode => &["OPENCODE_CONFIG", "OPENCODE_CONFIG_DIR"],
        _ => &[],
    }
}

/// The variables by which a CLI finds its folders without HOME, with the folder in a home.
fn own_folders(cli: Cli) -> &'static [(&'static str, &'static str)] {
    match cli {
        Cli::Claude => &[("CLAUDE_CONFIG_DIR", ".claude")],
        Cli::Codex => &[("CODEX_HOME", ".codex")],
        Cli::Copilot => &[("COPILOT_HOME", ".copilot"), ("XDG_CACHE_HOME", ".cache")],
        Cli::Gemini => &[("GEMINI_CLI_HOME", "")],
        Cli::OpenCode => &[
            ("XDG_CONFIG_HOME", ".config"),
            ("XDG_DATA_HOME", ".local/share"),
            ("XDG_STATE_HOME", ".local/state"),
            ("XDG_CACHE_HOME", ".cache"),
        ],
        _ => &[],
    }
}

/// Which variables lead these CLIs elsewhere.
fn elsewhere(clis: &[Cli]) -> Vec<&'static str> {
    clis.iter()
        .flat_map(|cli| leads_elsewhere(*cli))
        .chain(&ELSEWHERE)
        .copied()
        .collect()
}

/// A folder that is gone when this is dropped, by its path without symbolic links: CLIs compare paths.
pub(crate) fn temporary(prefix: &str) -> anyhow::Result<(TempDir, PathBuf)> {
    let made = || {
        let folder = tempfile::Builder::new().prefix(prefix).tempdir()?;
        let path = folder.path().canonicalize()?;
        Ok::<_, std::io::Error>((folder, path))
    };
    made().context("cannot make a temporary folder")
}

/// CLIs that are pointed at a server, with a home for all of them.
#[derive(Debug)]
pub(super) struct Pointed {
    pub(super) url: String,
    pub(super) home: PathBuf,
    /// Where they work, if that is not here.
    pub(super) directory: Option<PathBuf>,
    pub(super) clis: Vec<(Cli, Pointing)>,
}

impl Pointed {
    /// Points them at the server, and writes their files into the home.
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
            for (_, folder) in own_folders(*cli) {
                std::fs::create_dir_all(home.join(folder))
                    .with_context(|| format!("cannot make a folder in {}", home.display()))?;
            }
            if let Some((path, content)) = settings_file(*cli, pointing) {
                std::fs::write(home.join(path), content)
                    .with_context(|| format!("cannot write {path} in {}", home.display()))?;
            }
        }
        Ok(Self {
            url,
            home,
            directory,
            clis,
        })
    }

    fn which(&self) -> Vec<Cli> {
        self.clis.iter().map(|(cli, _)| *cli).collect()
    }

    /// The variables of all, and those that have to go. With `keep_home`, HOME is not among them.
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
            let folders = self.clis.iter().flat_map(|(cli, _)| own_folders(*cli));
            set.extend(
                folders.map(|(variable, folder)| {
                    ((*variable).to_owned(), text(&self.home.join(folder)))
                }),
            );
        } else {
            set.insert("HOME".to_owned(), text(&self.home));
        }
        let unset = elsewhere(&self.which())
            .into_iter()
            .filter(|name| !set.contains_key(*name))
            .collect();
        (set, unset)
    }

    /// The command line of a CLI itself; before its own arguments, `env` and what that sets.
    fn command_line(&self, cli: Cli, pointing: &Pointing) -> Vec<String> {
        let (head, tail): (&[&str], &[&str]) = match cli {
            Cli::Codex => (&["exec"], &["--skip-git-repo-check", PROMPT]),
            Cli::OpenCode => (&["run"], &[PROMPT]),
            Cli::Gemini => (&[], &["--skip-trust", "-p", PROMPT]),
            _ => (&[], &["-p", PROMPT]),
        };
        let own = |words: &[&str]| words.iter().copied().map(str::to_owned).collect::<Vec<_>>();
        let mut words = own(&["env"]);
        words.extend(
            set_in_ours(leads_elsewhere(cli).iter().chain(&ELSEWHERE))
                .flat_map(|name| ["-u".to_owned(), name.to_owned()]),
        );
        words.push(format!("HOME={}", self.home.display()));
        words.extend(
            pointing
                .env
                .iter()
                .map(|(name, value)| format!("{name}={value}")),
        );
        words.push(cli.id().to_owned());
        words.extend(pointing.args.iter().cloned());
        words.extend(own(head));
        words.extend(model(pointing));
        words.extend(own(tail));
        words
    }

    /// The same through `teamster run`.
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

    /// What a person can paste into a shell.
    pub(super) fn lines(&self, cli: Cli, pointing: &Pointing) -> [String; 2] {
        let mut line = shell_line(&self.command_line(cli, pointing));
        if let Some(directory) = &self.directory {
            let directory = directory.display().to_string();
            line = format!("(cd {} && {line})", shell_words::quote(&directory));
        }
        if matches!(cli, Cli::Codex | Cli::OpenCode) {
            // Where stdin is no terminal, they wait for its end.
            line.push_str(" </dev/null");
        }
        [line, shell_line(&self.run_line(cli, pointing))]
    }

    /// Lines that set the variables in a POSIX shell.
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

    /// All of it for a script.
    pub(super) fn json(&self) -> Value {
        let clis = self.clis.iter().map(|(cli, pointing)| {
            let files = pointing
                .files
                .iter()
                .map(|file| json!({"path": self.home.join(&file.path), "content": file.content}));
            let mut env: BTreeMap<_, _> = pointing.env.iter().cloned().collect();
            env.insert("HOME".to_owned(), self.home.display().to_string());
            let settings = settings_file(*cli, pointing)
                .map(|(path, content)| json!({"path": self.home.join(path), "content": content}));
            json!({
                "id": cli.id(),
                "name": info(*cli).map(|info| info.name),
                "installed": installed(*cli),
                "env": env,
                "unset": elsewhere(&[*cli]),
                "args": pointing.args,
                "model": pointing.model,
                "files": files.chain(settings).collect::<Value>(),
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

/// The variable that has the server's address, for programs that want to know it.
pub(super) const URL_VARIABLE: &str = "TEAMSTER_MOCK_URL";

/// The words as a shell takes them; of a variable only the value is quoted, as people write it.
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

/// The file in the home that says what the arguments and the model say: for a program that starts the
/// CLI itself, to which nobody can give arguments.
pub(super) fn settings_file(cli: Cli, pointing: &Pointing) -> Option<(&'static str, String)> {
    if cli != Cli::Codex {
        return None;
    }
    // Its `--config=KEY=VALUE` is a line of this file.
    let lines = pointing.args.iter();
    let lines = lines.filter_map(|argument| argument.strip_prefix("--config=")?.split_once('='));
    let mut lines: Vec<_> = lines
        .map(|(key, value)| format!("{key} = {value}\n"))
        .collect();
    if let Some(model) = &pointing.model {
        lines.push(format!("model = {}\n", json!(model)));
    }
    let content = lines.concat();
    (!content.is_empty()).then_some((".codex/config.toml", content))
}

/// What `teamster` knows of the CLI.
pub(super) fn info(cli: Cli) -> Option<&'static CliInfo> {
    teamster::provider(cli.id()).map(|provider| provider.info())
}

/// Whether its program is here.
pub(super) fn installed(cli: Cli) -> bool {
    info(cli).is_some_and(|info| crate::doctor::find(info).is_ok())
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

    /// A wrapper starts it without any argument of ours.
    #[test]
    fn codex_is_pointed_also_without_arguments() {
        let pointing = Cli::Codex.point_at("http://127.0.0.1:1");
        let (path, content) = settings_file(Cli::Codex, &pointing).unwrap();
        assert_eq!(path, ".codex/config.toml");
        assert!(
            content.contains("model_provider = \"mock-model\"\n"),
            "{content}"
        );
        assert!(
            content.contains("base_url=\"http://127.0.0.1:1/v1\""),
            "{content}"
        );
        assert!(content.ends_with("model = \"gpt-5.5\"\n"), "{content}");
    }

    /// Only Codex may need arguments; for another one the wrapper's way would be silently closed.
    #[test]
    fn the_others_need_no_arguments() {
        for cli in Cli::ALL.into_iter().filter(|cli| *cli != Cli::Codex) {
            let pointing = cli.point_at("http://127.0.0.1:1");
            assert_eq!(pointing.args, [""; 0], "{cli}");
        }
    }

    #[test]
    fn nothing_leads_a_pointed_cli_elsewhere() {
        for cli in Cli::ALL {
            let (folder, home) = temporary("teamster-test-").unwrap();
            let url = "http://127.0.0.1:1".to_owned();
            let pointed = Pointed::new(url, home.clone(), None, &[cli]).unwrap();
            let (set, unset) = pointed.environment(false);
            assert_eq!(set["HOME"], home.display().to_string());
            for (variable, _) in own_folders(cli) {
                assert!(unset.contains(variable), "{cli}: {variable}");
            }
            let (set, unset) = pointed.environment(true);
            assert_eq!(set.get("HOME"), None);
            for (variable, folder) in own_folders(cli) {
                assert_eq!(set[*variable], home.join(folder).display().to_string());
                assert!(home.join(folder).is_dir());
                assert!(!unset.contains(variable), "{cli}: {variable}");
            }
            drop(folder);
        }
    }
}
