//! Runs in a container, whose engine is a stand-in: what is to run in the container runs on this machine. Its calls and
//! messages are those of Docker 28.2.

use std::fs;
use std::path::{Path, PathBuf};

use teamster_core::provider::DisplacedFile;
use teamster_core::{
    Container, ContainerEngine, ErrorCode, ErrorKind, McpServer, Mount, RunStatus,
};
use teamster_process::LineObserver;
use teamster_testkit::fake_agent::{Report, Script};
use teamster_testkit::proc;

use super::private_files::{role, with_secret};
use super::{END, LIMIT, LONG, Run, Scratch, agent, helper, next, refused, shell, wait_for};

/// Makes the stand-in. It has the image `agents:1`.
fn engine(scratch: &Path) -> Container {
    let folder = scratch.join("engine");
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("image"), "").unwrap();
    let program = folder.join("docker");
    let stand_in = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/engine/docker.sh");
    std::os::unix::fs::symlink(stand_in, &program).unwrap();
    let mut container = Container::new(ContainerEngine::Docker, "agents:1");
    container.program = Some(program);
    container
}

fn contained(run: Run, scratch: &Scratch) -> Run {
    let container = engine(&scratch.path(""));
    let directory = scratch.path("work");
    fs::create_dir(&directory).unwrap();
    run.config(|config| config.container = Some(container))
        .params(|params| params.working_directory = Some(directory))
}

/// Returns the command lines of the engine's client.
fn calls(scratch: &Scratch) -> Vec<Vec<String>> {
    let text = fs::read_to_string(scratch.path("engine/calls")).unwrap_or_default();
    let calls = text.split("\n\n").filter(|call| !call.is_empty());
    calls
        .map(|call| call.lines().map(str::to_owned).collect())
        .collect()
}

/// Returns the first words of these command lines.
fn commands(scratch: &Scratch) -> Vec<String> {
    let calls = calls(scratch).into_iter();
    calls.map(|mut call| call.remove(0)).collect()
}

#[tokio::test]
async fn cli_in_a_container_has_the_files_and_variables_of_its_run() {
    let scratch = Scratch::new();
    fs::create_dir(scratch.path("login")).unwrap();
    let script = Script::new()
        .report(scratch.path("report"))
        .line(r#"{"t":"x"}"#)
        .wait_for_file(scratch.path("go"))
        .line(END);
    let run = contained(with_secret(agent(&script)), &scratch)
        .config(|config| {
            let container = config.container.take().unwrap();
            let login = Mount::new(scratch.path("login"), "/login").read_only();
            config.container = Some(container.mount(login));
        })
        .params(|params| drop(params.env.insert("API_KEY".into(), "secret-key".into())));
    let mut stream = run.start();
    next(&mut stream).await;
    let report = Report::read(scratch.path("report")).unwrap();
    assert_eq!(report.env["API_KEY"], "secret-key");
    assert!(!report.env.contains_key("TEAMSTER_RUN_ID"));
    let home = PathBuf::from(&report.env["HOME"]);
    assert!(home.is_dir());
    let folder = home.parent().unwrap().to_owned();

    let calls = calls(&scratch);
    assert_eq!(calls[0][0], "info");
    assert_eq!(calls[1][..3], ["image", "inspect", "--format"]);
    let line = &calls[2];
    let name = line[line.iter().position(|it| it == "--name").unwrap() + 1].clone();
    let run_id = name.strip_prefix("teamster-").unwrap();
    let work = scratch.path("work");
    let user = format!("{}:{}", nix::unistd::getuid(), nix::unistd::getgid());
    let bind = |path: &Path, end: &str| {
        let path = path.display();
        format!("type=bind,source={path},target={path}{end}")
    };
    let mut expected: Vec<String> = [
        "run",
        "--rm",
        "--interactive",
        "--init",
        "--pull=never",
        "--stop-timeout=0",
    ]
    .map(str::to_owned)
    .to_vec();
    let label = format!("teamster.run={run_id}");
    let own = ["--name", &name, "--label", &label, "--workdir"].map(str::to_owned);
    expected.extend(own);
    expected.extend([work.display().to_string(), "--user".to_owned(), user]);
    if Path::new("/sys/fs/selinux/enforce").exists() {
        expected.extend(["--security-opt", "label=disable"].map(str::to_owned));
    }
    let login = format!(
        "type=bind,source={},target=/login,readonly",
        scratch.path("login").display()
    );
    for mount in [
        bind(&work, ""),
        login,
        bind(&home, ""),
        bind(&folder.join("private-0"), ",readonly"),
        bind(&folder.join("private-1"), ",readonly"),
    ] {
        expected.extend(["--mount".to_owned(), mount]);
    }
    let script_variable = script.env().unwrap()[0].0.to_owned();
    let mut variables = vec![
        "API_KEY".to_owned(),
        format!("HOME={}", home.display()),
        "OTHER_FILE".to_owned(),
        "SECRET_FILE".to_owned(),
        script_variable,
    ];
    variables.sort_by_key(|it| it.split('=').next().unwrap().to_owned());
    for variable in variables {
        expected.extend(["--env".to_owned(), variable]);
    }
    let agent = env!("CARGO_BIN_EXE_teamster-fake-agent");
    expected.extend(["--entrypoint", agent, "agents:1"].map(str::to_owned));
    assert_eq!(*line, expected);

    fs::write(scratch.path("go"), "").unwrap();
    assert_eq!(stream.result().await.status, RunStatus::Completed);
    assert!(!folder.exists());
    assert_eq!(
        self::calls(&scratch).pop().unwrap(),
        ["rm", "--force", &name]
    );
}

#[tokio::test]
async fn cli_in_a_container_gets_the_signal_and_its_prompt() {
    let scratch = Scratch::new();
    let script = format!(
        "trap 'cat > {0}/got; exit 0' TERM; echo '{{\"t\":\"x\"}}'; echo $$ > {0}/pid; while :; do sleep 0.02; done",
        scratch.path("").display()
    );
    let run = contained(shell(&script), &scratch);
    let run = run.launch(|launch| {
        launch.stdin = teamster_core::provider::Stdin::Bytes(b"the prompt".to_vec());
    });
    let mut stream = run.config(|config| config.term_grace = LONG).start();
    next(&mut stream).await;
    let pid = scratch.pid("pid");
    stream.abort();
    assert_eq!(stream.result().await.status, RunStatus::Aborted);
    assert!(!proc::is_alive(pid.pid()));
    let got = fs::read_to_string(scratch.path("got")).unwrap();
    assert_eq!(got, "the prompt");
}

#[tokio::test]
async fn container_of_a_deaf_agent_is_removed_before_the_end() {
    let scratch = Scratch::new();
    let script = format!(
        "trap '' TERM INT; echo '{{\"t\":\"x\"}}'; echo $$ > {}; while :; do sleep 0.02; done",
        scratch.path("pid").display()
    );
    let run = contained(shell(&script), &scratch);
    let mut stream = run
        .config(|config| config.term_grace = std::time::Duration::from_millis(50))
        .start();
    next(&mut stream).await;
    let pid = scratch.pid("pid");
    stream.abort();
    assert_eq!(stream.result().await.status, RunStatus::Aborted);
    assert!(proc::wait_gone(pid.pid(), LIMIT));
    assert_eq!(commands(&scratch), ["info", "image", "run", "rm"]);
}

#[tokio::test]
async fn home_of_the_image_is_kept() {
    let scratch = Scratch::new();
    let run = contained(shell(&format!("echo '{END}'")), &scratch);
    fs::write(
        scratch.path("engine/image"),
        "PATH=/bin\nHOME=/home/agent\n",
    )
    .unwrap();
    assert_eq!(run.finish().await.result.status, RunStatus::Completed);
    let line = &calls(&scratch)[2];
    assert_eq!(line[0], "run");
    assert!(!line.iter().any(|it| it.contains("HOME")), "{line:?}");
    assert_eq!(line.iter().filter(|it| *it == "--mount").count(), 1);
}

#[tokio::test]
async fn file_of_the_machine_is_not_displaced_in_a_container() {
    let scratch = Scratch::new();
    let file = scratch.path("defaults.json");
    let run = shell(&format!("echo '{END}'")).launch(|launch| {
        launch.displaced = vec![DisplacedFile {
            parameter: "hooks",
            variable: "A_VARIABLE_THAT_IS_NOT_SET",
            default: file.clone(),
        }];
    });
    let without = run.clone().finish().await;
    assert_eq!(without.result.status, RunStatus::Completed);
    fs::write(&file, "{}").unwrap();
    let (code, kind, message) = refused(run.clone()).await;
    assert_eq!((code, kind), (ErrorCode::InvalidParams, ErrorKind::Invalid));
    let expected = format!(
        "hooks: they would take the place of {}: put the hooks into that file",
        file.display()
    );
    assert_eq!(message, expected);
    let inside = contained(run, &scratch).finish().await;
    assert_eq!(inside.result.status, RunStatus::Completed);
}

/// Hosts an engine: an agent in a container, until this process is killed.
pub(crate) fn be_host(scratch: &Path) {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let script = format!(
        "echo '{{\"t\":\"x\"}}'; echo $$ > {}; while :; do sleep 0.02; done",
        scratch.join("pid").display()
    );
    let container = engine(scratch);
    // Beside the directory for temporary files, which cannot be mounted.
    let work = scratch.join("work");
    fs::create_dir(&work).unwrap();
    runtime.block_on(async {
        let mut stream = shell(&script)
            .config(|config| {
                config.container = Some(container);
                config.die_with_parent = true;
            })
            .params(|params| params.working_directory = Some(work))
            .start();
        next(&mut stream).await;
        fs::write(scratch.join("ready"), "").unwrap();
        stream.result().await;
    });
}

#[tokio::test]
async fn container_of_a_killed_owner_is_removed_by_the_sweep() {
    let scratch = Scratch::new();
    fs::create_dir(scratch.path("tmp")).unwrap();
    let host = helper::host(&mut role("host with a container", &scratch));
    wait_for(&scratch.path("ready")).await;
    let agent = scratch.pid("pid");
    assert!(role("sweep", &scratch).status().unwrap().success());
    assert!(proc::is_alive(agent.pid()), "its owner lives");
    drop(host);
    assert!(
        proc::is_alive(agent.pid()),
        "the client's end does not end it"
    );
    assert!(role("sweep", &scratch).status().unwrap().success());
    assert!(proc::wait_gone(agent.pid(), LIMIT));
    assert_eq!(fs::read_dir(scratch.path("tmp")).unwrap().count(), 0);
}

#[tokio::test]
async fn missing_image_is_pulled_before_the_start() {
    let scratch = Scratch::new();
    let (seen, shown) = std::sync::mpsc::channel();
    let run = contained(shell(&format!("echo '{END}'")), &scratch).config(|config| {
        config.observer = Some(LineObserver::new(move |line| {
            let _ = seen.send(line.to_owned());
        }));
    });
    fs::remove_file(scratch.path("engine/image")).unwrap();
    let story = run.finish().await;
    assert_eq!(story.result.status, RunStatus::Completed);
    let [notice] = story.notices()[..] else {
        panic!("{:?}", story.notices());
    };
    assert!(
        notice.starts_with("pulled the image agents:1 in "),
        "{notice}"
    );
    assert_eq!(shown.try_iter().next().unwrap(), "Pull complete");
    assert_eq!(
        commands(&scratch),
        ["info", "image", "pull", "image", "run", "rm"]
    );
}

#[tokio::test]
async fn aborted_pull_starts_nothing() {
    let scratch = Scratch::new();
    let run = contained(shell("true"), &scratch);
    fs::remove_file(scratch.path("engine/image")).unwrap();
    fs::write(scratch.path("engine/slow"), "").unwrap();
    let stream = run.start();
    let abort = stream.abort_handle();
    let story = tokio::spawn(super::finish(stream));
    super::wait_until(|| commands(&scratch).contains(&"pull".to_owned())).await;
    abort.abort();
    assert_eq!(story.await.unwrap().result.status, RunStatus::Aborted);
    assert_eq!(commands(&scratch), ["info", "image", "pull"]);
}

#[tokio::test]
async fn missing_engine_or_image_is_named_before_the_start() {
    let scratch = Scratch::new();
    let run = contained(shell("true"), &scratch);
    fs::remove_file(scratch.path("engine/image")).unwrap();
    fs::write(scratch.path("engine/offline"), "").unwrap();
    let (code, kind, message) = refused(run.clone()).await;
    assert_eq!(
        (code, kind),
        (ErrorCode::InvalidParams, ErrorKind::NotFound)
    );
    assert_eq!(
        message,
        "container: Docker has no image agents:1, and cannot pull it: Error response from daemon: the registry does not \
         answer; build or pull it before"
    );
    fs::write(scratch.path("engine/stopped"), "").unwrap();
    let (_, _, message) = refused(run.clone()).await;
    assert_eq!(
        message,
        "container: Docker does not answer: Cannot connect to the Docker daemon. Is the docker daemon running?; start \
         it, and check it with `docker info`"
    );
    fs::remove_file(scratch.path("engine/docker")).unwrap();
    let (_, kind, message) = refused(run).await;
    assert_eq!(kind, ErrorKind::NotFound);
    assert!(
        message.starts_with("container: the program ")
            && message.ends_with("install Docker, or run the agent without a container"),
        "{message}"
    );
}

#[tokio::test]
async fn program_that_the_image_does_not_have_is_named() {
    let scratch = Scratch::new();
    let run = contained(shell("true"), &scratch);
    let run = run.config(|config| config.program = Some("no-such-cli".into()));
    let story = run.finish().await;
    let error = story.error();
    assert_eq!(error.code, ErrorCode::CliNotFound);
    assert_eq!(
        error.message,
        "the image agents:1 has no program `no-such-cli`: exec: \"no-such-cli\": executable file not found; choose an \
         image in which the CLI is installed"
    );
}

#[tokio::test]
async fn parameter_that_needs_this_machine_is_refused_by_its_name() {
    let scratch = Scratch::new();
    let run = contained(shell("true"), &scratch);
    let message = async |change: fn(&mut teamster_core::ExecuteParams)| {
        refused(run.clone().params(change)).await.2
    };
    let resumed = message(|params| params.session_id = Some("s".into())).await;
    assert!(
        resumed.starts_with("session_id: a container has its own home"),
        "{resumed}"
    );
    let background = message(|params| params.keep_background = true).await;
    assert!(background.starts_with("keep_background: "), "{background}");
    let server = message(|params| {
        params.mcp_servers = vec![McpServer::http("local", "http://127.0.0.1:1/mcp")];
    });
    let server = server.await;
    assert!(
        server.starts_with("mcp_servers: local: ") && server.contains("host.docker.internal"),
        "{server}"
    );
    let client = message(|params| drop(params.env.insert("DOCKER_HOST".into(), "x".into()))).await;
    assert!(
        client.starts_with("env: DOCKER_HOST: the client of Docker would use it"),
        "{client}"
    );
    let wildcard = message(|params| drop(params.env.insert("A*".into(), "x".into()))).await;
    assert!(wildcard.starts_with("env: A*: "), "{wildcard}");
    let temporary = message(|params| params.add_dirs = vec![std::env::temp_dir()]).await;
    assert!(
        temporary.contains("the private files of all runs are in it"),
        "{temporary}"
    );
    let absent = run.config(|config| {
        let container = config.container.take().unwrap();
        config.container = Some(container.mount(Mount::new("/nowhere", "/x")));
    });
    assert_eq!(
        refused(absent).await.2,
        "container: /nowhere does not exist, so it cannot be mounted"
    );
    assert_eq!(commands(&scratch), [""; 0]);
}
