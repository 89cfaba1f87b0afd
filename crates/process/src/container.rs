//! A CLI in a container: the command line of the engine's client around that of the CLI.
//!
//! The client is the child process. It passes signals and pipes on to the CLI, but its own end does not end the
//! container, so the container is removed by its name at the end of the run.

mod engine;
mod mounts;

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use nix::unistd::{getgid, getuid};
use teamster_core::provider::Launch;
use teamster_core::{
    AbortHandle, AgentError, CliInfo, Container, ContainerEngine, ErrorCode, ErrorKind,
    ExecuteParams, ImageSource, McpTransport, Mount,
};

use crate::config::RuntimeConfig;
use crate::launch::Plan;
use crate::notice::Notice;
use crate::os::RUN_ID_VAR;
use crate::program::not_found;
use crate::run_id::RunId;

pub use engine::container_engine;
pub(crate) use engine::{ANSWER, NamedContainer, end};

/// Variables that the engine's client uses itself, beside those that begin with `XDG_`. In the container they get their values by the command line: paths,
/// which are no secrets.
const PATHS: [&str; 5] = ["HOME", "PATH", "SSL_CERT_DIR", "SSL_CERT_FILE", "TMPDIR"];
/// Beginnings of the names of variables that would change the client.
const OF_CLIENT: [&str; 4] = ["CONTAINER", "DOCKER_", "LD_", "PODMAN_"];

/// The container of a launch.
#[derive(Debug, Clone)]
pub(crate) struct Contained {
    engine: ContainerEngine,
    image: String,
    /// The engine's client.
    client: PathBuf,
    name: String,
    run_id: String,
    /// The CLI's program in it.
    program: OsString,
    directory: PathBuf,
    mounts: Vec<Mount>,
    /// The CLI's user in it, as arguments.
    user: Vec<OsString>,
    /// The image sets `HOME`.
    has_home: bool,
}

impl Contained {
    /// Creates the container of a launch, and refuses what a container does not have.
    pub(crate) fn new(
        container: &Container,
        config: &RuntimeConfig,
        info: &CliInfo,
        params: &ExecuteParams,
        launch: &Launch,
        run_id: &RunId,
    ) -> Result<Self, AgentError> {
        check(container, info, params, launch)?;
        let directory = params.working_directory.as_deref();
        let directory = std::path::absolute(directory.unwrap_or(Path::new(".")));
        let directory = directory.map_err(|error| {
            AgentError::refused("working_directory", format!("it has no path: {error}"))
        })?;
        let run_id = run_id.to_string();
        let program = config.program.as_deref().map(Path::as_os_str);
        Ok(Self {
            engine: container.engine,
            image: container.image.clone(),
            client: engine::client(container.engine, container.program.as_deref())?,
            name: format!("teamster-{run_id}"),
            run_id,
            program: program.unwrap_or(OsStr::new(info.program)).to_owned(),
            mounts: mounts(container, params, &directory)?,
            directory,
            user: Vec::new(),
            has_home: false,
        })
    }

    /// Returns the engine's client, which is the child process.
    pub(crate) fn client(&self) -> &Path {
        &self.client
    }

    /// Returns the container for its removal.
    pub(crate) fn named(&self) -> NamedContainer {
        NamedContainer {
            client: self.client.clone(),
            name: self.name.clone(),
        }
    }

    /// Waits until the engine has the image. Returns a notice if it was pulled.
    pub(crate) async fn prepare(
        &mut self,
        config: &RuntimeConfig,
        abort: &AbortHandle,
    ) -> Result<Option<Notice>, AgentError> {
        let ready = engine::ready(
            self.engine,
            self.client.clone(),
            self.image.clone(),
            config.observer.clone(),
        );
        let ready = engine::unless_aborted(ready, abort).await?;
        self.user = user(self.engine, ready.is_rootless);
        self.has_home = ready.has_home;
        Ok(ready.pulled)
    }

    /// Returns whether the image sets `HOME`.
    pub(crate) fn has_home(&self) -> bool {
        self.has_home
    }

    /// Adds a file or directory of the run at its own path.
    pub(crate) fn mount(&mut self, path: PathBuf, read_only: bool) {
        let mut mount = Mount::new(path.clone(), path);
        mount.read_only = read_only;
        self.mounts.push(mount);
    }

    /// Returns the arguments of the client, and the variables for it. `variables` are those of the CLI.
    fn command_line(
        &self,
        variables: BTreeMap<OsString, OsString>,
        args: Vec<OsString>,
    ) -> (Vec<OsString>, BTreeMap<OsString, OsString>) {
        let mut line: Vec<OsString> = [
            "run",
            "--rm",
            "--interactive",
            "--init",
            "--pull=never",
            // For the removal: Podman waits that long for its processes, 10 s by default.
            "--stop-timeout=0",
            "--name",
            &self.name,
            "--label",
            &format!("teamster.run={}", self.run_id),
            "--workdir",
        ]
        .map(OsString::from)
        .to_vec();
        line.push(self.directory.clone().into());
        line.extend_from_slice(&self.user);
        if self.engine == ContainerEngine::Podman {
            // Else those of this machine, which may have a password, would be in the container.
            line.push("--http-proxy=false".into());
        }
        if Path::new("/sys/fs/selinux/enforce").exists() {
            // Else the user's files would need new labels.
            line.extend(["--security-opt", "label=disable"].map(OsString::from));
        }
        for mount in &self.mounts {
            line.push("--mount".into());
            let mut bind = OsString::from("type=bind,source=");
            bind.push(&mount.source);
            bind.push(",target=");
            bind.push(&mount.target);
            if mount.read_only {
                bind.push(",readonly");
            }
            line.push(bind);
        }
        let mut for_client = BTreeMap::new();
        for (name, value) in variables {
            if name == RUN_ID_VAR {
                // It has ids of processes outside.
                continue;
            }
            line.push("--env".into());
            let is_path = |name: &str| PATHS.contains(&name) || name.starts_with("XDG_");
            if is_path(&name.to_string_lossy()) {
                let mut assigned = name;
                assigned.push("=");
                assigned.push(value);
                line.push(assigned);
            } else {
                line.push(name.clone());
                for_client.insert(name, value);
            }
        }
        // An entry point of the image would get the program as an argument.
        line.extend(["--entrypoint".into(), self.program.clone()]);
        line.push(OsString::from(&self.image));
        line.extend(args);
        (line, for_client)
    }

    /// Returns the error of a container that was not started, by the exit code of the client and what it has printed.
    pub(crate) fn not_started(&self, code: i32, stderr: &str) -> Option<AgentError> {
        let (program, image) = (self.program.to_string_lossy(), &self.image);
        let missing = |reason: &str| {
            format!(
                "the image {image} has no program `{program}`: {reason}; choose an image in which the CLI is installed"
            )
        };
        let unusable = |reason: &str| {
            format!("the program `{program}` of the image {image} cannot be started: {reason}")
        };
        let mut lines = stderr.lines().map(str::trim);
        if let Some(reason) = lines.clone().find_map(of_init) {
            let is_missing = reason.starts_with("No such file");
            let message = if is_missing {
                missing(reason)
            } else {
                unusable(reason)
            };
            return Some(not_found(message).about("container"));
        }
        let reason = lines.find_map(|line| {
            let line = line
                .strip_prefix("docker: ")
                .or_else(|| line.strip_prefix("Error: "))?;
            Some(
                line.strip_prefix("Error response from daemon: ")
                    .unwrap_or(line),
            )
        })?;
        let error = match code {
            125 => AgentError::new(
                ErrorCode::Io,
                ErrorKind::Internal,
                format!(
                    "{} could not start a container of {image}: {reason}",
                    self.engine.name()
                ),
            ),
            126 => not_found(unusable(reason)),
            127 => not_found(missing(reason)),
            _ => return None,
        };
        Some(error.about("container"))
    }
}

/// Returns the reason of an engine's init that could not start the program: tini's (Docker) or catatonit's (Podman).
fn of_init(line: &str) -> Option<&str> {
    let (before, reason) = if line.starts_with("[FATAL tini") {
        line.rsplit_once(" failed: ")?
    } else {
        line.split_once(": failed to exec pid1: ")?
    };
    let is_init = before.starts_with("[FATAL tini") || before.contains("catatonit");
    is_init.then_some(reason)
}

impl Plan {
    /// Puts the command line of the container's client around that of the CLI. Its files MUST exist.
    pub(crate) fn wrap(&mut self) {
        let Some(contained) = &self.container else {
            return;
        };
        let variables = std::mem::take(&mut self.env.set);
        let args = std::mem::take(&mut self.launch.args);
        (self.launch.args, self.env.set) = contained.command_line(variables, args);
        // The client finds its engine by the user's variables.
        self.env.inherit = true;
    }
}

/// Returns the user of the CLI, to whom the files of the workspace belong.
fn user(engine: ContainerEngine, is_rootless: bool) -> Vec<OsString> {
    if engine == ContainerEngine::Docker && is_rootless {
        // There, this user is root in the container.
        return Vec::new();
    }
    let (user, group) = (getuid(), getgid());
    let mut args = vec!["--user".into(), format!("{user}:{group}").into()];
    if is_rootless {
        args.push("--userns=keep-id".into());
    }
    args
}

/// Refuses what a container does not have.
fn check(
    container: &Container,
    info: &CliInfo,
    params: &ExecuteParams,
    launch: &Launch,
) -> Result<(), AgentError> {
    container.check()?;
    if params.session_id.is_some() && container.mounts.is_empty() {
        let problem = "a container has its own home, which is empty at its start: mount a directory in which the CLI \
                       keeps its sessions (`container`)";
        return Err(AgentError::refused("session_id", problem));
    }
    if params.keep_background {
        let problem = "all processes of a container end with the agent";
        return Err(AgentError::refused("keep_background", problem));
    }
    if launch.config.is_some() {
        let problem = format!(
            "{} reads them from a file in the user's home, which a container does not have: put them into the image",
            info.name
        );
        return Err(AgentError::refused("mcp_servers", problem));
    }
    for server in &params.mcp_servers {
        if let McpTransport::Http { url, .. } | McpTransport::Sse { url, .. } = &server.transport
            && is_loopback(url)
        {
            let gateway = match container.engine {
                ContainerEngine::Podman => "host.containers.internal",
                _ => "host.docker.internal",
            };
            let problem = format!(
                "in a container, its address is that of the container itself: let it listen beyond loopback and name \
                 this machine, for example as {gateway}"
            );
            return Err(AgentError::refused_server(&*server.name, problem));
        }
    }
    let of_launch = launch.env.iter().chain(&launch.env_merged);
    let names = params.env.keys().chain(of_launch.map(|(name, _)| name));
    for name in names {
        // Podman takes a `*` at the end for all variables that begin so.
        if OF_CLIENT.iter().any(|of| name.starts_with(of)) || name.ends_with('*') {
            let problem = format!(
                "the client of {} would use it itself: set it in the image",
                container.engine.name()
            );
            return Err(AgentError::refused_item("env", name, problem));
        }
    }
    Ok(())
}

fn is_loopback(url: &str) -> bool {
    let host = url.split_once("://").map_or(url, |(_, rest)| rest);
    let host = host.split(['/', '?', '#']).next().unwrap_or_default();
    let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
    let host = match host.strip_prefix('[') {
        Some(v6) => v6.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    let address: Option<std::net::IpAddr> = host.parse().ok();
    address.is_some_and(|address| address.is_loopback()) || host.eq_ignore_ascii_case("localhost")
}

/// Returns the mounts: the workspace with what git needs, what the parameters name, and the caller's own.
fn mounts(
    container: &Container,
    params: &ExecuteParams,
    directory: &Path,
) -> Result<Vec<Mount>, AgentError> {
    let mut all: Vec<Mount> = Vec::new();
    let mut add = |path: &Path, read_only: bool| {
        let is_there =
            |mount: &Mount| path.starts_with(&mount.target) && (read_only || !mount.read_only);
        if !all.iter().any(is_there) {
            let mut mount = Mount::new(path, path);
            mount.read_only = read_only;
            all.push(mount);
        }
    };
    for path in mounts::of_workspace(directory) {
        add(&path, false);
    }
    for path in &params.add_dirs {
        add(path, false);
    }
    for path in &params.skills {
        add(path, true);
    }
    for image in &params.images {
        if let ImageSource::Path(path) = &image.source {
            add(
                &std::path::absolute(path).unwrap_or_else(|_| path.clone()),
                true,
            );
        }
    }
    all.extend_from_slice(&container.mounts);
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let temporary = real(&tempfile::env::temp_dir());
    for mount in &all {
        let refused = |problem: String| Err(AgentError::refused("container", problem));
        let source = mount.source.display();
        if !mount.source.is_absolute() || !mount.target.is_absolute() {
            return refused(format!("{source}: both paths of a mount must be absolute"));
        }
        if !mount.source.exists() {
            return refused(format!("{source} does not exist, so it cannot be mounted"));
        }
        // The sweep trusts the folders of runs there, and others have secrets.
        if temporary.starts_with(real(&mount.source)) {
            return refused(format!(
                "{source} cannot be mounted, because the private files of all runs are in it, in {}: name a folder \
                 within it, or set TMPDIR to another directory for teamster",
                temporary.display()
            ));
        }
        let paths = [&mount.source, &mount.target].map(|path| path.as_os_str().as_encoded_bytes());
        if paths
            .iter()
            .any(|path| path.iter().any(|byte| b",\"\r\n".contains(byte)))
        {
            return refused(format!(
                "{source} has a comma, a quote or a line break in its path, so it cannot be mounted"
            ));
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests;
