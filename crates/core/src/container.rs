//! Container around an agent's CLI.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::AgentError;

/// A container in which an agent's CLI runs, in place of this machine. The CLI comes from its image.
///
/// ```
/// use teamster_core::{Container, ContainerEngine};
///
/// let container: Container = "podman:example.com/agents:7".parse()?;
/// assert_eq!(container.engine, ContainerEngine::Podman);
/// assert_eq!(container.image, "example.com/agents:7");
/// # Ok::<(), teamster_core::AgentError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[non_exhaustive]
pub struct Container {
    /// The engine that runs it.
    pub engine: ContainerEngine,
    /// The image, as the engine names it.
    pub image: String,
    /// Files and directories of this machine in it, beside the agent's directories.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mounts: Vec<Mount>,
    /// The engine's program, if not the one on `PATH`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<PathBuf>,
}

impl Container {
    /// Creates a container of this image, without further mounts.
    pub fn new(engine: ContainerEngine, image: impl Into<String>) -> Self {
        Self {
            engine,
            image: image.into(),
            mounts: Vec::new(),
            program: None,
        }
    }

    /// Checks the name of the image.
    ///
    /// # Errors
    ///
    /// Fails if an engine would take it for an option or for nothing.
    pub fn check(&self) -> Result<(), AgentError> {
        let image = &self.image;
        if image.is_empty() || image.starts_with('-') || image.contains(char::is_whitespace) {
            let problem = format!("{image:?} is not the name of an image");
            return Err(AgentError::refused("container", problem));
        }
        Ok(())
    }

    /// Adds a mount.
    #[must_use]
    pub fn mount(mut self, mount: Mount) -> Self {
        self.mounts.push(mount);
        self
    }
}

impl fmt::Display for Container {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.engine, self.image)
    }
}

/// Parses `docker:IMAGE` or `podman:IMAGE`.
impl FromStr for Container {
    type Err = AgentError;

    fn from_str(text: &str) -> Result<Self, AgentError> {
        let engine = text.split_once(':').and_then(|(engine, image)| {
            let mut engines = ContainerEngine::ALL.into_iter();
            Some((engines.find(|it| it.program() == engine)?, image))
        });
        let Some((engine, image)) = engine else {
            let problem = format!("expected docker:IMAGE or podman:IMAGE, got {text:?}");
            return Err(AgentError::refused("container", problem));
        };
        let container = Self::new(engine, image);
        container.check().map(|()| container)
    }
}

/// A container engine, by its client's program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum ContainerEngine {
    /// Docker.
    Docker,
    /// Podman.
    Podman,
}

impl ContainerEngine {
    /// All engines.
    pub const ALL: [Self; 2] = [Self::Docker, Self::Podman];

    /// Returns the name of its client's program.
    pub const fn program(self) -> &'static str {
        match self {
            Self::Docker => "docker",
            Self::Podman => "podman",
        }
    }

    /// Returns its name for people.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Docker => "Docker",
            Self::Podman => "Podman",
        }
    }
}

impl fmt::Display for ContainerEngine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.program())
    }
}

/// A file or directory of this machine in a container.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[non_exhaustive]
pub struct Mount {
    /// The path on this machine.
    pub source: PathBuf,
    /// The path in the container, absolute.
    pub target: PathBuf,
    /// The container cannot change it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub read_only: bool,
}

impl Mount {
    /// Creates a mount that the container can change.
    pub fn new(source: impl Into<PathBuf>, target: impl Into<PathBuf>) -> Self {
        Self {
            source: source.into(),
            target: target.into(),
            read_only: false,
        }
    }

    /// Makes it read-only.
    #[must_use]
    pub fn read_only(mut self) -> Self {
        self.read_only = true;
        self
    }
}

/// Parses `SOURCE:TARGET` or `SOURCE:TARGET:ro`.
impl FromStr for Mount {
    type Err = AgentError;

    fn from_str(text: &str) -> Result<Self, AgentError> {
        let parts: Vec<_> = text.split(':').collect();
        let (source, target, read_only) = match parts[..] {
            [source, target] => (source, target, false),
            [source, target, "ro"] => (source, target, true),
            _ => ("", "", false),
        };
        if source.is_empty() || !target.starts_with('/') {
            let problem = "expected HOST:CONTAINER or HOST:CONTAINER:ro, with an absolute path in the container";
            return Err(AgentError::refused_item("container", text, problem));
        }
        let mount = Self::new(source, target);
        Ok(if read_only { mount.read_only() } else { mount })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_container_is_written_as_engine_and_image() {
        for text in ["docker:node:24", "podman:localhost:5000/agents@sha256:12ab"] {
            let container: Container = text.parse().unwrap();
            assert_eq!(container.to_string(), text);
            let json = serde_json::to_string(&container).unwrap();
            assert_eq!(serde_json::from_str::<Container>(&json).unwrap(), container);
        }
        for (text, problem) in [
            ("node:24", "expected docker:IMAGE or podman:IMAGE"),
            ("docker", "expected docker:IMAGE"),
            ("docker:", "not the name of an image"),
            ("docker:--privileged", "not the name of an image"),
            ("docker:a b", "not the name of an image"),
        ] {
            let error = text.parse::<Container>().unwrap_err();
            assert_eq!(error.parameter(), Some("container"));
            assert!(error.message.contains(problem), "{error}");
        }
    }

    #[test]
    fn a_mount_names_both_paths() {
        let mount: Mount = "/home/me/.claude:/home/agent/.claude:ro".parse().unwrap();
        let expected = Mount::new("/home/me/.claude", "/home/agent/.claude").read_only();
        assert_eq!(mount, expected);
        assert_eq!("a:/b".parse::<Mount>().unwrap(), Mount::new("a", "/b"));
        for text in ["/a", "/a:b", ":/b", "/a:/b:rw", "/a:/b:ro:z"] {
            assert!(text.parse::<Mount>().is_err(), "{text}");
        }
    }

    #[test]
    fn engines_have_a_program_and_a_name() {
        let names = ContainerEngine::ALL.map(|it| (it.program(), it.name(), it.to_string()));
        assert_eq!(
            names,
            [
                ("docker", "Docker", "docker".to_owned()),
                ("podman", "Podman", "podman".to_owned()),
            ]
        );
        let container = Container::new(ContainerEngine::Docker, "a").mount(Mount::new("/a", "/b"));
        assert_eq!(container.mounts, [Mount::new("/a", "/b")]);
        assert!(!container.mounts[0].read_only);
    }
}
