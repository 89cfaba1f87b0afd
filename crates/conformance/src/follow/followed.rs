//! What is followed, and its versions.

use std::fmt;
use std::path::PathBuf;

use anyhow::{Context, bail};
use teamster::{CliInfo, Providers};
use teamster_mock_model::Cli;

use super::{Args, versions};
use crate::acp::pointing::Named;
use crate::acp::row::Row;
use crate::install;

/// A CLI or an agent whose versions are followed.
#[derive(Debug, Clone)]
pub(super) enum Followed {
    /// A CLI of the matrix that has a program.
    Pinned(Cli),
    /// An agent of `acp.toml`, with a provider or without one.
    Named(Named),
}

impl Followed {
    pub(super) fn all() -> anyhow::Result<Vec<Self>> {
        let pinned = install::clis().into_iter().map(Self::Pinned);
        let named = Named::all()?.into_iter().map(Self::Named);
        Ok(pinned.chain(named).collect())
    }

    pub(super) fn parse(name: &str) -> Result<Self, String> {
        let all = Self::all().map_err(|error| format!("{error:#}"))?;
        let names: Vec<_> = all.iter().map(|it| it.id().to_owned()).collect();
        let mut all = all.into_iter();
        all.find(|it| it.id() == name)
            .ok_or_else(|| format!("there is: {}", names.join(", ")))
    }

    /// Returns its short name.
    pub(super) fn id(&self) -> &str {
        match self {
            Self::Pinned(cli) => cli.id(),
            Self::Named(agent) => &agent.name,
        }
    }

    /// Returns the CLI. `None` for an agent without a provider.
    pub(super) fn cli(&self) -> Option<Cli> {
        Cli::from_id(self.id())
    }

    /// Returns the facts of its provider, if it has one.
    pub(super) fn info(&self) -> Option<&'static CliInfo> {
        Some(Providers::builtin().get(self.id())?.info())
    }

    pub(super) fn program(&self) -> &str {
        match self {
            Self::Pinned(cli) => cli.id(),
            Self::Named(agent) => agent.program(),
        }
    }

    /// Installs a version, unless it is installed. Returns the folder of its programs.
    pub(super) fn install(&self, version: &str) -> anyhow::Result<PathBuf> {
        match self {
            Self::Pinned(cli) => Ok(install::version(*cli, version)?.programs),
            Self::Named(agent) => agent.install_version(version),
        }
    }

    fn published(&self) -> anyhow::Result<Vec<String>> {
        match self {
            Self::Pinned(cli) => install::published(install::package(*cli)),
            Self::Named(agent) => agent.published(),
        }
    }

    /// Returns the newest tested version: that of the row, for an agent without a provider.
    fn newest_tested(&self) -> anyhow::Result<String> {
        let tested = match self.info() {
            Some(info) => info.tested_versions.last().map(|it| (*it).to_owned()),
            None => Row::kept(self.id())?.version().map(str::to_owned),
        };
        tested.with_context(|| format!("{self} has no tested version"))
    }

    /// Returns the requested versions, the oldest first.
    pub(super) fn wanted(&self, args: &Args) -> anyhow::Result<Vec<String>> {
        if !args.versions.is_empty() {
            if let Some(odd) = args
                .versions
                .iter()
                .find(|version| install::numbers(version).is_none())
            {
                bail!("`{odd}` is not a release: expected the form 1.2.3");
            }
            return Ok(args.versions.clone());
        }
        let published = self.published()?;
        if args.since_tested {
            return Ok(versions::after(&published, &self.newest_tested()?));
        }
        match &args.since {
            Some(first) => versions::since(&published, first),
            None => Ok(versions::last(&published, args.last.unwrap_or(1).max(1))),
        }
    }
}

impl fmt::Display for Followed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.id())
    }
}
