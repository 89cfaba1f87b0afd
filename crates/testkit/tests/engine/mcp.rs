//! MCP servers in the CLI's own configuration file, during the run only.

use std::fs;
use std::path::{Path, PathBuf};

use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify};
use serde_json::json;
use teamster_core::provider::{ConfigEdit, ConfigFormat, ConfigLocation, ConfigTable};
use teamster_core::{ErrorCode, ErrorKind, McpDelivery, McpServer, RunStatus};
use teamster_testkit::events::assert_types;
use teamster_testkit::fake_agent::Script;
use teamster_testkit::proc;

use crate::engine::{
    END, LIMIT, Run, SHORT, Scratch, agent, finish_after, helper, next, refused, shell, wait_for,
    wait_until,
};

/// Detects that a file is opened, for example by a process that wants to lock it.
struct Opened(Inotify);

impl Opened {
    fn watch(file: &Path) -> Self {
        let inotify = Inotify::init(InitFlags::IN_NONBLOCK).unwrap();
        inotify.add_watch(file, AddWatchFlags::IN_OPEN).unwrap();
        Self(inotify)
    }

    /// Returns whether it was opened since the last call.
    fn again(&self) -> bool {
        self.0.read_events().is_ok_and(|events| !events.is_empty())
    }
}

/// Content of the user's file, which must not get lost.
const USERS: &str = "{\n  // mine\n  \"theme\" : \"dark\",\n  \"mcpServers\": { \"own\": {\"command\": \"own\"}, },\n}\n";

fn table(file: &Path) -> ConfigTable {
    let (format, key) = match file.extension() {
        Some(extension) if extension == "toml" => (ConfigFormat::Toml, "mcp_servers"),
        _ => (ConfigFormat::Json, "mcpServers"),
    };
    ConfigTable {
        file: file.to_owned(),
        format,
        key,
    }
}

/// Adds a server with this name in the file to the run.
fn leased(run: Run, file: &Path, name: &str) -> Run {
    let edit = ConfigEdit {
        table: table(file),
        entries: vec![(name.into(), json!({"command": "docs-mcp"}))],
        new_file: "",
        location: ConfigLocation::Lease,
    };
    with_server(run, name).launch(|launch| launch.config = Some(edit))
}

fn with_server(run: Run, name: &str) -> Run {
    let server = McpServer::stdio(name, "docs-mcp", [""; 0]);
    run.params(|params| params.mcp_servers.push(server))
}

/// Creates the user's file in a separate folder.
fn users_file(scratch: &Scratch, content: &str) -> PathBuf {
    let folder = scratch.path("config");
    fs::create_dir(&folder).unwrap();
    let file = folder.join("settings.json");
    fs::write(&file, content).unwrap();
    file
}

fn read(path: impl AsRef<Path>) -> String {
    fs::read_to_string(path).unwrap()
}

/// Asserts that the file is restored and no other file remains.
fn assert_restored(file: &Path, content: &str) {
    assert_eq!(read(file), content);
    assert_eq!(fs::read_dir(file.parent().unwrap()).unwrap().count(), 1);
}

/// Returns the script of an agent that starts and runs until `go` exists.
fn waiting(scratch: &Scratch) -> Script {
    Script::new()
        .report(scratch.path("report"))
        .line(r#"{"t":"x"}"#)
        .wait_for_file(scratch.path("go"))
        .line(END)
}

/// Returns the path of a copy of the file, and the script of an agent that makes it.
fn copying(scratch: &Scratch, file: &Path) -> (PathBuf, String) {
    let seen = scratch.path("seen");
    let script = format!("cp {} {}; echo '{END}'", file.display(), seen.display());
    (seen, script)
}

#[tokio::test]
async fn cli_finds_the_server_in_its_file_and_done_restores_it() {
    let scratch = Scratch::new();
    let file = users_file(&scratch, USERS);
    let (seen, script) = copying(&scratch, &file);
    let mut stream = leased(shell(&script), &file, "docs").start();
    let mut types = Vec::new();
    while let Some(event) = stream.next().await {
        if event.type_name() == "done" {
            assert_restored(&file, USERS);
        }
        types.push(event.type_name());
    }
    assert_eq!(types, ["turn_end", "done"]);
    let seen = read(seen);
    assert!(seen.contains("docs-mcp") && seen.contains("own") && seen.contains("// mine"));
}

#[tokio::test]
async fn the_file_is_restored_when_the_cli_cannot_be_started() {
    let scratch = Scratch::new();
    let file = users_file(&scratch, USERS);
    let program = scratch.path("cli");
    proc::write_program(&program, "#!/nowhere/node\n").unwrap();
    let run = shell("").config(|config| config.program = Some(program));
    let (code, ..) = refused(leased(run, &file, "docs")).await;
    assert_eq!(code, ErrorCode::CliNotFound);
    assert_restored(&file, USERS);
}

#[tokio::test]
async fn the_file_is_restored_after_an_abort_a_timeout_and_a_panic() {
    let scratch = Scratch::new();
    let file = users_file(&scratch, USERS);
    let mut stream = leased(agent(&waiting(&scratch)), &file, "docs").start();
    next(&mut stream).await;
    assert!(read(&file).contains("docs-mcp"));
    stream.abort();
    assert_eq!(stream.result().await.status, RunStatus::Aborted);
    assert_restored(&file, USERS);

    let silent = agent(&Script::new().forever()).config(|c| c.timeouts.startup = Some(SHORT));
    let story = leased(silent, &file, "docs").finish().await;
    assert_eq!(story.result.status, RunStatus::TimedOut);
    assert_restored(&file, USERS);

    for panic in [r#"{"panic":0}"#, r#"{"panic":1}"#] {
        let script = Script::new().line(panic).line(END);
        let story = leased(agent(&script), &file, "docs").finish().await;
        assert_eq!(story.error().kind, ErrorKind::Internal);
        assert_restored(&file, USERS);
    }
}

#[tokio::test]
async fn the_file_is_restored_when_the_stream_is_dropped() {
    let scratch = Scratch::new();
    let file = users_file(&scratch, USERS);
    let mut stream = leased(agent(&waiting(&scratch)), &file, "docs").start();
    next(&mut stream).await;
    assert!(read(&file).contains("docs-mcp"));
    drop(stream);
    let folder = file.parent().unwrap();
    wait_until(|| fs::read_dir(folder).unwrap().count() == 1).await;
    assert_restored(&file, USERS);
}

#[test]
fn the_file_is_restored_when_the_runtime_is_shut_down() {
    let scratch = Scratch::new();
    let file = users_file(&scratch, USERS);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let mut stream = leased(agent(&waiting(&scratch)), &file, "docs").start();
    runtime.block_on(next(&mut stream));
    assert!(read(&file).contains("docs-mcp"));
    drop(runtime);
    assert_restored(&file, USERS);
}

#[tokio::test]
async fn the_file_is_changed_until_the_tree_is_gone() {
    // A CLI may still use its servers while it is stopped.
    let scratch = Scratch::new();
    let file = users_file(&scratch, USERS);
    let (seen, ready) = (scratch.path("seen"), scratch.path("ready"));
    let script = format!(
        "trap 'cp {} {}; exit 0' TERM; : > {}; while :; do sleep 0.02; done",
        file.display(),
        seen.display(),
        ready.display()
    );
    let stream = leased(shell(&script), &file, "docs")
        .config(|config| config.term_grace = LIMIT)
        .start();
    let abort = stream.abort_handle();
    let end = tokio::spawn(stream.result());
    wait_for(&ready).await;
    abort.abort();
    assert_eq!(end.await.unwrap().status, RunStatus::Aborted);
    assert!(read(seen).contains("docs-mcp"));
    assert_restored(&file, USERS);
}

#[tokio::test]
async fn concurrent_edits_stay_and_are_reported() {
    let scratch = Scratch::new();
    let file = users_file(&scratch, USERS);
    let mut stream = leased(agent(&waiting(&scratch)), &file, "docs").start();
    let first = next(&mut stream).await;
    fs::write(&file, read(&file).replace("dark", "light")).unwrap();
    fs::write(scratch.path("go"), "").unwrap();
    let story = finish_after(vec![first], stream).await;
    assert_types(&story.events, "text turn_end notice done");
    let notice = format!(
        "{}: another program changed it during the run, so only the MCP servers of the run were taken out \
         of it",
        file.display()
    );
    assert_eq!(story.notices(), [notice]);
    assert_eq!(story.result.status, RunStatus::Completed);
    assert_restored(&file, &USERS.replace("dark", "light"));
}

#[tokio::test]
async fn a_file_that_cannot_be_restored_is_reported() {
    let scratch = Scratch::new();
    let file = users_file(&scratch, USERS);
    let mut stream = leased(agent(&waiting(&scratch)), &file, "docs").start();
    let first = next(&mut stream).await;
    let broken = read(&file).replace("\"theme\" :", "theme");
    fs::write(&file, &broken).unwrap();
    fs::write(scratch.path("go"), "").unwrap();
    let story = finish_after(vec![first], stream).await;
    assert_types(&story.events, "text turn_end notice done");
    let notice = story.notices()[0];
    assert!(notice.starts_with(&file.display().to_string()), "{notice}");
    assert!(notice.contains("after that, restore "), "{notice}");
    assert_eq!(read(&file), broken);
}

#[tokio::test]
async fn run_refused_for_another_reason_changes_no_file() {
    let scratch = Scratch::new();
    let file = users_file(&scratch, USERS);
    let before = file.metadata().unwrap().modified().unwrap();
    let run = shell("").config(|config| config.program = Some("/nowhere/cli".into()));
    let (code, ..) = refused(leased(run, &file, "docs")).await;
    assert_eq!(code, ErrorCode::CliNotFound);
    assert_eq!(file.metadata().unwrap().modified().unwrap(), before);
    assert_restored(&file, USERS);
}

#[tokio::test]
async fn abort_does_not_wait_for_the_lock_and_releases_a_late_lease() {
    let (scratch, other) = (Scratch::new(), Scratch::new());
    let file = users_file(&scratch, USERS);
    let mut first = leased(agent(&waiting(&scratch)), &file, "docs").start();
    next(&mut first).await;
    // Simulates a process that is changing the file.
    let folder = file.parent().unwrap();
    let journal = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .find(|path| path.is_dir())
        .unwrap();
    let lock_file = journal.join("lock");
    let lock = fs::File::open(&lock_file).unwrap();
    lock.lock().unwrap();
    let opened = Opened::watch(&lock_file);

    let second = leased(agent(&waiting(&other)), &file, "tracker").start();
    let abort = second.abort_handle();
    let end = tokio::spawn(second.result());
    wait_until(|| opened.again()).await;
    assert!(!end.is_finished(), "it waits");
    abort.abort();
    let result = end.await.unwrap();
    assert_eq!(result.status, RunStatus::Aborted);
    assert!(!other.path("report").exists(), "nothing was started");

    // The same for a dropped stream.
    let mut third = leased(agent(&waiting(&other)), &file, "third").start();
    let opened = Opened::watch(&lock_file);
    tokio::select! {
        biased;
        event = third.next() => panic!("{event:?}"),
        () = wait_until(|| opened.again()) => {}
    }
    drop(third);

    drop(lock);
    fs::write(scratch.path("go"), "").unwrap();
    assert_eq!(first.result().await.status, RunStatus::Completed);
    wait_until(|| fs::read_dir(folder).unwrap().count() == 1).await;
    assert_restored(&file, USERS);
    assert!(!other.path("report").exists());
}

/// Hosts an engine: an agent with a lease, until this process is killed.
pub(crate) fn be_host(scratch: &Path) {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let script = Script::new()
        .report(scratch.join("report"))
        .line("{}")
        .forever();
    let file = scratch.join("config/settings.json");
    runtime.block_on(async {
        let mut stream = leased(agent(&script), &file, "docs")
            .config(|config| config.die_with_parent = true)
            .start();
        next(&mut stream).await;
        fs::write(scratch.join("ready"), "").unwrap();
        stream.result().await;
    });
}

/// Kills the host of a run with a server in the file.
async fn killed_host(scratch: &Scratch) {
    let host = helper::host(&mut helper::role("host with a lease", &scratch.path("")));
    wait_for(&scratch.path("ready")).await;
    drop(host);
}

/// Prepares a run without servers, of a CLI that reads servers from the file.
fn plain(run: Run, file: &Path) -> Run {
    let mut run = leased(run, file, "none");
    run.params.mcp_servers.clear();
    run.provider.capabilities.mcp.deliveries = &[McpDelivery::UserConfig];
    run
}

#[tokio::test]
async fn run_without_servers_starts_after_a_killed_run_is_undone() {
    let scratch = Scratch::new();
    let file = users_file(&scratch, USERS);
    killed_host(&scratch).await;
    assert!(read(&file).contains("docs-mcp"));
    let (seen, script) = copying(&scratch, &file);
    let story = plain(shell(&script), &file).finish().await;
    assert_types(&story.events, "notice turn_end done");
    assert_eq!(
        story.notices(),
        [format!(
            "{}: a run that was killed had left its MCP servers in it, and they were taken out: docs",
            file.display()
        )]
    );
    assert_eq!(read(seen), USERS);
    assert_restored(&file, USERS);
    // The next run has no more to report.
    let story = plain(shell(&format!("echo '{END}'")), &file).finish().await;
    assert_types(&story.events, "turn_end done");
}

#[tokio::test]
async fn servers_of_a_live_run_stay_when_a_killed_run_is_undone() {
    let scratch = Scratch::new();
    let file = users_file(&scratch, USERS);
    let script = Script::new()
        .line(r#"{"t":"x"}"#)
        .wait_for_file(scratch.path("go"))
        .line(END);
    let mut alive = leased(agent(&script), &file, "alive").start();
    next(&mut alive).await;
    killed_host(&scratch).await;
    let servers = |text: &str| (text.contains("\"alive\""), text.contains("\"docs\""));
    assert_eq!(servers(&read(&file)), (true, true));
    let (seen, script) = copying(&scratch, &file);
    let story = plain(shell(&script), &file).finish().await;
    assert_types(&story.events, "turn_end done");
    assert_eq!(servers(&read(seen)), (true, false));
    fs::write(scratch.path("go"), "").unwrap();
    assert_eq!(alive.result().await.status, RunStatus::Completed);
    assert_restored(&file, USERS);
}

#[tokio::test]
async fn entries_of_a_killed_run_are_undone_by_the_next() {
    let scratch = Scratch::new();
    let file = users_file(&scratch, USERS);
    killed_host(&scratch).await;
    assert!(read(&file).contains("docs-mcp"));

    // The same name does not conflict: it is not the user's. Neither does a run that only checks the file.
    let (seen, script) = copying(&scratch, &file);
    let looks = with_server(shell(&script), "docs")
        .launch(|launch| launch.names_taken = vec![table(&file)]);
    let story = looks.finish().await;
    assert_types(&story.events, "turn_end done");
    assert_eq!(read(seen), USERS);
    assert_restored(&file, USERS);
}
