//! A server of the program.

use std::path::PathBuf;
use std::process::Command;

use nix::sys::signal::Signal;
use serde_json::Value;
use teamster_testkit::http::{Request, Response};

use crate::cli::{Running, teamster};

/// A server on a free port.
pub(crate) struct Served {
    pub(crate) running: Running,
    pub(crate) address: String,
    pub(crate) token: String,
}

impl Served {
    /// Starts `teamster serve` with these arguments, in an environment that `prepare` makes.
    pub(crate) fn start(
        args: &[&str],
        state: &std::path::Path,
        prepare: impl Fn(&mut Command),
    ) -> Self {
        Self::listen("127.0.0.1:0", args, state, prepare)
    }

    /// The same on this address.
    pub(crate) fn start_at(
        address: &str,
        state: &std::path::Path,
        prepare: impl Fn(&mut Command),
    ) -> Self {
        Self::listen(address, &[], state, prepare)
    }

    fn listen(
        address: &str,
        args: &[&str],
        state: &std::path::Path,
        prepare: impl Fn(&mut Command),
    ) -> Self {
        let mut command = teamster(["serve", "--listen", address]);
        command.args(args);
        Self::by(command, state, prepare)
    }

    /// The same by this command.
    pub(crate) fn by(
        mut command: Command,
        state: &std::path::Path,
        prepare: impl Fn(&mut Command),
    ) -> Self {
        command.env("XDG_STATE_HOME", state);
        prepare(&mut command);
        let mut running = Running::start(&mut command);
        let line = running.line();
        let address = line.trim_end().strip_prefix("http://");
        let address = address.unwrap_or_else(|| panic!("{line:?} {}", running.end().stderr));
        let address = address.to_owned();
        let token = std::fs::read_to_string(token_file(state)).unwrap();
        Self {
            running,
            address,
            token: token.trim_end().to_owned(),
        }
    }

    /// A request with the owner's token.
    pub(crate) fn request(&self, method: &str, path: &str) -> Request {
        self.request_as(&self.token, method, path)
    }

    /// A request with this token.
    pub(crate) fn request_as(&self, token: &str, method: &str, path: &str) -> Request {
        Request::new(&self.address, method, path)
            .header("Authorization", &format!("Bearer {token}"))
    }

    pub(crate) fn get(&self, path: &str) -> Response {
        self.request("GET", path).send()
    }

    pub(crate) fn post(&self, path: &str, body: &Value) -> Response {
        self.request("POST", path).json(body).send()
    }

    /// Ends it in order.
    pub(crate) fn end(mut self) {
        self.running.signal(Signal::SIGTERM);
        self.running.end().quiet();
    }
}

pub(crate) fn token_file(state: &std::path::Path) -> PathBuf {
    state.join("teamster/server/token")
}
