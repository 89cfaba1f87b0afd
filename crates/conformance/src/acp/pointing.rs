//! Configuration that points an unknown agent at the mock model.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::Context;
use serde::Deserialize;
use teamster_mock_model::{Cli, HomeFile, Pointing};

use super::AcpArgs;
use crate::install;

/// A family of variables that agents read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum WireName {
    /// `ANTHROPIC_BASE_URL`, `ANTHROPIC_API_KEY`
    Anthropic,
    /// `OPENAI_BASE_URL`, `OPENAI_API_KEY`
    Openai,
    /// `GOOGLE_GEMINI_BASE_URL`, `GEMINI_API_KEY`
    Gemini,
}

impl WireName {
    const ALL: [Self; 3] = [Self::Anthropic, Self::Openai, Self::Gemini];

    /// Returns the variables with made-up keys and the service's address.
    fn variables(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::Anthropic => &[
                ("ANTHROPIC_API_KEY", "sk-ant-mock-000"),
                ("ANTHROPIC_BASE_URL", "{url}"),
            ],
            Self::Openai => &[
                ("OPENAI_API_KEY", "sk-mock-000"),
                ("OPENAI_BASE_URL", "{url}/v1"),
                ("OPENAI_API_BASE", "{url}/v1"),
                ("OPENAI_HOST", "{url}"),
            ],
            Self::Gemini => &[
                ("GEMINI_API_KEY", "mock-000"),
                ("GOOGLE_GEMINI_BASE_URL", "{url}"),
            ],
        }
    }
}

/// Returns the CLI of a command, if the mock model knows it: the program itself, or the provider that it serves.
pub(crate) fn known(command: &str) -> Option<Cli> {
    if let Some(served) = super::served::cli(command) {
        return Some(served);
    }
    let words = shell_words::split(command).ok()?;
    Cli::from_id(Path::new(words.first()?).file_name()?.to_str()?)
}

/// Parses `NAME=VALUE`.
pub(crate) fn assignment(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("expected NAME=VALUE".to_owned()),
    }
}

/// The table of agents that are installed by name.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    agent: Vec<Named>,
}

/// An agent of the table.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Named {
    pub(crate) name: String,
    /// Packages, the agent's first: for npm, or for pip if `python` is set.
    pub(crate) packages: Vec<String>,
    /// The version of Python that it needs, as in `3.12`. Default: it is no Python program.
    pub(crate) python: Option<String>,
    /// The command that starts it in ACP mode. Default: there is a provider with its name.
    pub(crate) command: Option<String>,
    /// Variables. In their values and in those of `files`, `{url}` stands for the mock model's address, without a path.
    #[serde(default)]
    pub(crate) env: BTreeMap<String, String>,
    /// Files for its home folder, by their paths in it.
    #[serde(default)]
    pub(crate) files: BTreeMap<String, String>,
}

impl Named {
    /// Returns what stands between the name of a package and its version.
    fn separator(&self) -> &'static str {
        if self.python.is_some() { "==" } else { "@" }
    }

    /// Returns the version of the agent's package.
    pub(crate) fn version(&self) -> Option<&str> {
        let (_, version) = self.packages.first()?.rsplit_once(self.separator())?;
        Some(version)
    }

    /// Returns the agent's package, without its version.
    pub(crate) fn package(&self) -> &str {
        let package = self.packages.first().map_or("", String::as_str);
        package
            .rsplit_once(self.separator())
            .map_or(package, |(package, _)| package)
    }

    /// Returns the name of the program that starts it.
    pub(crate) fn program(&self) -> &str {
        let command = self.command.as_deref().unwrap_or(&self.name);
        command.split(' ').next().unwrap_or(command)
    }

    pub(crate) fn published(&self) -> anyhow::Result<Vec<String>> {
        // The registry knows no extras of a package.
        let package = self.package().split('[').next().unwrap_or_default();
        match &self.python {
            Some(python) => install::published_for_python(python, package),
            None => install::published(package),
        }
    }

    /// Returns the same packages with this version of the agent.
    pub(crate) fn packages_of(&self, version: &str) -> Vec<String> {
        let own = format!("{}{}{version}", self.package(), self.separator());
        let others = self.packages.iter().skip(1).cloned();
        std::iter::once(own).chain(others).collect()
    }

    /// Installs the agent unless it is installed. Returns the folder of its programs.
    pub(crate) fn install(&self) -> anyhow::Result<PathBuf> {
        let folder = crate::target().join("acp").join(&self.name);
        self.install_in(&folder, &self.packages)
    }

    /// Installs this version of the agent unless it is installed. Returns the folder of its programs.
    pub(crate) fn install_version(&self, version: &str) -> anyhow::Result<PathBuf> {
        if self.version() == Some(version) {
            return self.install();
        }
        let versions = crate::target().join("versions").join(&self.name);
        self.install_in(&versions.join(version), &self.packages_of(version))
    }

    fn install_in(&self, folder: &Path, packages: &[String]) -> anyhow::Result<PathBuf> {
        match &self.python {
            Some(python) => install::python_packages(folder, python, packages),
            None => install::packages(folder, packages),
        }
    }

    pub(crate) fn all() -> anyhow::Result<Vec<Self>> {
        let path = crate::here().join("acp.toml");
        let text = std::fs::read_to_string(&path)
            .with_context(|| format!("cannot read {}", path.display()))?;
        let table: Table = toml::from_str(&text).with_context(|| path.display().to_string())?;
        Ok(table.agent)
    }

    pub(crate) fn find(name: &str) -> anyhow::Result<Option<Self>> {
        let mut all = Self::all()?.into_iter();
        Ok(all.find(|agent| agent.name == name))
    }
}

/// Configuration that points an agent at a model.
pub(crate) struct Spec {
    /// Name of its program.
    pub(crate) name: String,
    cli: Option<Cli>,
    /// Variables and files. `{url}` in their values is not replaced yet.
    env: Vec<(String, String)>,
    files: Vec<(String, String)>,
    model: Option<String>,
}

impl Spec {
    /// Creates the configuration of the agent that this command starts. `named` is the agent of the table, if the
    /// command is its name.
    pub(crate) fn new(
        command: &str,
        named: Option<&Named>,
        args: &AcpArgs,
    ) -> anyhow::Result<Self> {
        let words = shell_words::split(command)?;
        let program = words.first().map(Path::new).and_then(Path::file_name);
        let name = program.context("`--acp` needs a command, as in `--acp \"my-agent --acp\"`")?;
        let cli = known(command);
        let wires = match args.wire {
            Some(wire) => vec![wire],
            None if cli.is_none() && named.is_none() => WireName::ALL.to_vec(),
            None => Vec::new(),
        };
        let own_env = named.map(|it| it.env.clone()).unwrap_or_default();
        let own_files = named.map(|it| it.files.clone()).unwrap_or_default();
        let of_wires = wires.into_iter().flat_map(WireName::variables);
        let of_wires = of_wires.map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let given = args.files.iter().map(|(path, file)| {
            let content =
                std::fs::read_to_string(file).with_context(|| format!("cannot read {file}"))?;
            Ok((path.clone(), content))
        });
        Ok(Self {
            name: name.to_string_lossy().into_owned(),
            cli,
            env: (of_wires.chain(own_env))
                .chain(args.env.iter().cloned())
                .collect(),
            files: (own_files.into_iter().map(Ok).chain(given)).collect::<anyhow::Result<_>>()?,
            model: args.model.clone(),
        })
    }

    /// Returns the configuration for this address.
    pub(crate) fn point_at(&self, url: &str) -> Pointing {
        let mut pointing = self.cli.map(|cli| cli.point_at(url)).unwrap_or_default();
        // The arguments are for runs; an ACP agent has the same settings in files.
        pointing.args.clear();
        let env = self.env.iter();
        pointing
            .env
            .extend(env.map(|(name, value)| (name.clone(), value.replace("{url}", url))));
        let files = self.files.iter();
        pointing.files.extend(
            files.map(|(path, content)| HomeFile::new(path, content.replace("{url}", url))),
        );
        if self.model.is_some() {
            pointing.model.clone_from(&self.model);
        }
        pointing
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_assignment_has_a_name() {
        let is = |name: &str, value: &str| Ok((name.to_owned(), value.to_owned()));
        assert_eq!(assignment("A=b=c"), is("A", "b=c"));
        assert!(assignment("A").is_err());
        assert!(assignment("=b").is_err());
    }

    #[test]
    fn another_version_of_an_agent_has_the_same_packages_beside_it() {
        let named = |text: &str| toml::from_str::<Named>(text).unwrap();
        let agent = named("name = 'x'\npackages = ['@of/x@1.2.3', 'node@22']");
        assert_eq!((agent.package(), agent.version()), ("@of/x", Some("1.2.3")));
        assert_eq!(agent.packages_of("1.0.0"), ["@of/x@1.0.0", "node@22"]);
        let agent = named("name = 'x'\npackages = ['of-x==1.2.3', 'y<4']\npython = '3.12'");
        assert_eq!((agent.package(), agent.version()), ("of-x", Some("1.2.3")));
        assert_eq!(agent.packages_of("1.0.0"), ["of-x==1.0.0", "y<4"]);
    }

    #[test]
    fn an_agent_of_the_table_has_a_provider_or_a_command() {
        for agent in Named::all().unwrap() {
            assert!(agent.version().is_some(), "{}", agent.name);
            let is_provider = Cli::from_id(&agent.name).is_some();
            assert_ne!(is_provider, agent.command.is_some(), "{}", agent.name);
        }
    }

    #[test]
    fn an_agent_of_the_table_has_its_own_configuration_only() {
        let table = "name = 'x'\npackages = ['x==1']\npython = '3.12'\ncommand = 'x-acp'\n\
                     env = { A = '{url}/v1' }\nfiles = { 'c.toml' = 'u = \"{url}\"' }";
        let named: Named = toml::from_str(table).unwrap();
        let args = AcpArgs {
            model: Some("m".to_owned()),
            ..AcpArgs::default()
        };
        let spec = Spec::new("x-acp", Some(&named), &args).unwrap();
        let pointing = spec.point_at("http://h:1");
        assert_eq!(pointing.model.as_deref(), Some("m"));
        assert_eq!(pointing.env, [("A".to_owned(), "http://h:1/v1".to_owned())]);
        assert_eq!(pointing.files[0].content, "u = \"http://h:1\"");
    }

    #[test]
    fn known_programs_are_known_by_their_names() {
        assert_eq!(known("/opt/bin/gemini --acp"), Some(Cli::Gemini));
        assert_eq!(known("teamster acp embedded"), Some(Cli::Embedded));
        assert_eq!(known("my-agent --acp"), None);
        assert_eq!(known("'"), None);
    }
}
