//! The client of a container engine: what it is asked beside the run itself.

use std::future::Future;
use std::io::{self, Read as _, Seek as _};
use std::path::{Path, PathBuf};
use std::process::{Command as BlockingCommand, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use teamster_core::provider::RunAssembler;
use teamster_core::{AbortHandle, AgentError, ContainerEngine, ErrorCode, ErrorKind};
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, BufReader};
use tokio::process::{Child, Command};
use tokio::task::JoinHandle;

use crate::engine::engine_of_run;
use crate::group::ProcessGroup;
use crate::notice::Notice;
use crate::observe::LineObserver;
use crate::program::find_program;
use crate::stop::POLL_INTERVAL;

/// Time limit of an answer of the engine, and of the removal of a container.
pub(crate) const ANSWER: Duration = Duration::from_secs(30);

/// Returns the version of a container engine that answers. `program` is its client's, if not the one on `PATH`.
///
/// # Errors
///
/// Fails if its client is not installed, or if the engine does not answer. The error is about the parameter `container`
/// and has the next step.
pub async fn container_engine(
    engine: ContainerEngine,
    program: Option<&Path>,
) -> Result<String, AgentError> {
    let client = client(engine, program)?;
    state(engine, &client).await.map(|state| state.version)
}

/// An engine that answers.
struct State {
    version: String,
    /// It has no more rights than this user.
    is_rootless: bool,
}

/// Returns the engine's client.
pub(super) fn client(
    engine: ContainerEngine,
    program: Option<&Path>,
) -> Result<PathBuf, AgentError> {
    let name = program.map_or(engine.program().into(), Path::to_string_lossy);
    find_program(&name, std::env::var_os("PATH").as_deref()).map_err(|error| {
        let problem = format!(
            "{error}; install {}, or run the agent without a container",
            engine.name()
        );
        AgentError::refused("container", problem).kind(ErrorKind::NotFound)
    })
}

/// Asks the engine for its state.
async fn state(engine: ContainerEngine, client: &Path) -> Result<State, AgentError> {
    let args: &[&str] = match engine {
        ContainerEngine::Podman => &["version", "--format", "{{.Server.Version}}"],
        _ => &[
            "info",
            "--format",
            "{{.ServerVersion}} {{.SecurityOptions}}",
        ],
    };
    let asked = ask(client, args).await;
    let (is_success, stdout, stderr) =
        asked.map_err(|error| unanswered(engine, &error.to_string()))?;
    let text = stdout.trim();
    let version = text.split_whitespace().next().unwrap_or_default();
    // Without an engine, some clients of Docker print an empty version and no error.
    if !is_success || version.is_empty() || version.starts_with('[') {
        return Err(unanswered(engine, &stderr));
    }
    let is_rootless = match engine {
        ContainerEngine::Podman => !nix::unistd::geteuid().is_root(),
        _ => text.contains("name=rootless"),
    };
    Ok(State {
        version: version.to_owned(),
        is_rootless,
    })
}

fn unanswered(engine: ContainerEngine, stderr: &str) -> AgentError {
    let program = engine.program();
    let problem = format!(
        "{} does not answer: {}; start it, and check it with `{program} info`",
        engine.name(),
        reason(stderr)
    );
    AgentError::refused("container", problem)
}

/// Returns the first line of what a client has printed.
fn reason(stderr: &str) -> &str {
    let first = stderr.lines().map(str::trim).find(|line| !line.is_empty());
    let line = first.unwrap_or("it gave no reason");
    line.strip_prefix("Error: ").unwrap_or(line)
}

/// An engine and an image that can be used.
pub(super) struct Ready {
    /// The engine has no more rights than this user.
    pub(super) is_rootless: bool,
    /// The image sets `HOME`.
    pub(super) has_home: bool,
    /// Notice of an image that was pulled.
    pub(super) pulled: Option<Notice>,
}

/// Waits until the engine has the image.
pub(super) async fn ready(
    engine: ContainerEngine,
    client: PathBuf,
    image: String,
    observer: Option<LineObserver>,
) -> Result<Ready, AgentError> {
    let is_rootless = state(engine, &client).await?.is_rootless;
    let refused = |reason: &str| {
        let problem = format!(
            "{} has no image {image}, and cannot pull it: {reason}; build or pull it before",
            engine.name()
        );
        AgentError::refused("container", problem).kind(ErrorKind::NotFound)
    };
    let mut inspected = inspect(engine, &client, &image).await?;
    let mut pulled = None;
    if !inspected.0 {
        let start = Instant::now();
        let failed = pull(&client, &image, observer.as_ref()).await;
        if let Some(reason) = failed.unwrap_or_else(|error| Some(error.to_string())) {
            return Err(refused(&reason));
        }
        let seconds = start.elapsed().as_secs();
        let notice = Notice::info(format!("pulled the image {image} in {seconds} s"));
        pulled = Some(notice);
        inspected = inspect(engine, &client, &image).await?;
    }
    let (is_there, variables, stderr) = inspected;
    if !is_there {
        return Err(refused(reason(&stderr)));
    }
    Ok(Ready {
        is_rootless,
        has_home: variables.lines().any(|line| line.starts_with("HOME=")),
        pulled,
    })
}

/// Asks the engine for the variables of an image. Returns whether it has the image, and the output.
async fn inspect(
    engine: ContainerEngine,
    client: &Path,
    image: &str,
) -> Result<(bool, String, String), AgentError> {
    const VARIABLES: &str = "{{range .Config.Env}}{{println .}}{{end}}";

    let asked = ask(client, &["image", "inspect", "--format", VARIABLES, image]).await;
    asked.map_err(|error| unanswered(engine, &error.to_string()))
}

/// Pulls an image, and shows the client's progress. Returns the reason if it fails.
async fn pull(
    client: &Path,
    image: &str,
    observer: Option<&LineObserver>,
) -> io::Result<Option<String>> {
    let (mut child, _group) = spawn(client, &["pull", image])?;
    // Podman shows its progress on stderr.
    let stdout = show(child.stdout.take(), observer);
    let stderr = show(child.stderr.take(), observer);
    let (_, last, status) = tokio::join!(stdout, stderr, child.wait());
    Ok((!status?.success()).then(|| reason(&last).to_owned()))
}

/// Shows the lines of a pipe to an observer. Returns the last one that is not blank.
async fn show(pipe: Option<impl AsyncRead + Unpin>, observer: Option<&LineObserver>) -> String {
    let mut last = String::new();
    let Some(pipe) = pipe else {
        return last;
    };
    let mut lines = BufReader::new(pipe).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        if let Some(observer) = observer {
            observer.observe(&line);
        }
        if !line.trim().is_empty() {
            last = line;
        }
    }
    last
}

/// Starts the client with pipes for what it prints.
fn spawn(client: &Path, args: &[&str]) -> io::Result<(Child, ProcessGroup)> {
    let mut command = Command::new(client);
    command
        .args(args)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    ProcessGroup::spawn(&mut command)
}

/// Runs a command of the client to its end, for 30 s at most. Returns whether it succeeded, and its output.
async fn ask(client: &Path, args: &[&str]) -> io::Result<(bool, String, String)> {
    let answer = tokio::time::timeout(ANSWER, answer(client, args)).await;
    answer.unwrap_or_else(|_| {
        let seconds = ANSWER.as_secs();
        Err(io::Error::other(format!("no answer in {seconds} s")))
    })
}

async fn answer(client: &Path, args: &[&str]) -> io::Result<(bool, String, String)> {
    let (mut child, _group) = spawn(client, args)?;
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    let pipes = (child.stdout.take(), child.stderr.take());
    let read = async {
        if let (Some(mut out), Some(mut err)) = pipes {
            tokio::try_join!(out.read_to_end(&mut stdout), err.read_to_end(&mut stderr))?;
        }
        io::Result::Ok(())
    };
    let (read, status) = tokio::join!(read, child.wait());
    read?;
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    Ok((status?.success(), text(stdout), text(stderr)))
}

/// Does work on the engine's runtime until the run is aborted or the future is dropped, which ends its processes.
pub(super) async fn unless_aborted<T: Send + 'static>(
    work: impl Future<Output = Result<T, AgentError>> + Send + 'static,
    abort: &AbortHandle,
) -> Result<T, AgentError> {
    struct AbortOnDrop<T>(JoinHandle<T>);

    impl<T> Drop for AbortOnDrop<T> {
        fn drop(&mut self) {
            self.0.abort();
        }
    }

    let mut task = AbortOnDrop(engine_of_run()?.spawn(work));
    tokio::select! {
        biased;
        done = &mut task.0 => done.unwrap_or_else(|error| {
            let message = format!("the container could not be prepared: {error}");
            Err(AgentError::new(ErrorCode::Io, ErrorKind::Internal, message))
        }),
        () = abort.aborted() => Err(RunAssembler::aborted_error()),
    }
}

/// A container that may still be there: the client's program and its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NamedContainer {
    pub(crate) client: PathBuf,
    pub(crate) name: String,
}

impl NamedContainer {
    /// Returns it as the content of a file.
    pub(crate) fn to_text(&self) -> String {
        format!("{}\n{}\n", self.client.display(), self.name)
    }

    /// Reads that.
    pub(crate) fn of_text(text: &str) -> Option<Self> {
        let (client, name) = text.trim_end().split_once('\n')?;
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '-';
        let is_ours = name.starts_with("teamster-") && name.chars().all(is_name);
        is_ours.then(|| Self {
            client: client.into(),
            name: name.to_owned(),
        })
    }
}

/// Ends a container at once, with all its processes, and removes it. It is not an error if there is none. Blocks until then
/// at most.
pub(crate) fn end(container: &NamedContainer, until: Instant) -> io::Result<()> {
    if Instant::now() >= until {
        return Err(io::Error::from(io::ErrorKind::TimedOut));
    }
    let mut stderr = tempfile::tempfile()?;
    let mut child = BlockingCommand::new(&container.client)
        .args(["rm", "--force", &container.name])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(stderr.try_clone()?)
        .spawn()?;
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if Instant::now() >= until {
            child.kill()?;
            child.wait()?;
            return Err(io::Error::from(io::ErrorKind::TimedOut));
        }
        sleep(POLL_INTERVAL);
    };
    let mut text = String::new();
    stderr.rewind()?;
    // Invalid UTF-8 is no message of a client.
    let _ = stderr.read_to_string(&mut text);
    let is_absent = [
        "No such container",
        "no container with",
        "already in progress",
    ]
    .iter()
    .any(|absent| text.contains(*absent));
    if status.success() || is_absent {
        Ok(())
    } else {
        Err(io::Error::other(reason(&text).to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    /// The paused clock goes to the limit as soon as nothing else is left to do.
    #[tokio::test(start_paused = true)]
    async fn an_engine_that_hangs_is_named_after_the_limit() {
        let temp = tempfile::tempdir().unwrap();
        let client = temp.path().join("docker");
        fs::write(&client, "#!/bin/sh\nexec sleep 1000\n").unwrap();
        fs::set_permissions(&client, Permissions::from_mode(0o700)).unwrap();
        let asked = container_engine(ContainerEngine::Docker, Some(&client)).await;
        assert_eq!(
            asked.unwrap_err().message,
            "container: Docker does not answer: no answer in 30 s; start it, and check it with `docker info`"
        );
    }

    #[test]
    fn a_container_is_read_as_it_was_written() {
        let container = NamedContainer {
            client: "/usr/bin/docker".into(),
            name: "teamster-12-34-5-abc".to_owned(),
        };
        assert_eq!(
            NamedContainer::of_text(&container.to_text()),
            Some(container)
        );
        for text in [
            "",
            "/usr/bin/docker\n",
            "docker\nother\n",
            "d\nteamster-1 x\n",
        ] {
            assert_eq!(NamedContainer::of_text(text), None, "{text:?}");
        }
    }
}
