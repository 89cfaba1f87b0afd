//! `teamster --remote URL agents` behaves as on the supervisor's machine.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};

use teamster_testkit::stand_in::Act;

use crate::agents::company::{Company, pid};
use crate::cli::{Ended, run};

/// A `teamster serve` in the folder of a company.
struct Server {
    child: Child,
    url: String,
    token: String,
}

impl Server {
    fn start(company: &Company) -> Self {
        let state = company.path("server");
        let mut command = company.teamster(["serve", "--listen", "127.0.0.1:0"]);
        command.env("XDG_STATE_HOME", &state).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        stdout.read_line(&mut line).unwrap();
        let token = fs::read_to_string(state.join("teamster/server/token")).unwrap();
        Self {
            child,
            url: line.trim_end().to_owned(),
            token: token.trim_end().to_owned(),
        }
    }

    /// Runs a command in a folder without a configuration.
    fn run(&self, company: &Company, args: &[&str]) -> Ended {
        let mut command = company.teamster(args.iter().copied());
        command
            .current_dir(company.path("home"))
            .env("TEAMSTER_REMOTE", &self.url)
            .env("TEAMSTER_REMOTE_TOKEN", &self.token);
        run(&mut command)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // The server runs until the end of each test.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn agents_are_controlled_from_elsewhere() {
    let company = Company::new(["first", "other"], |plan| plan.turn([Act::DidWork]));
    let server = Server::start(&company);
    let same = |args: &[&str]| {
        let local = company.run(args.iter().copied());
        let remote = server.run(&company, args);
        // Times differ between the two outputs.
        let timeless = |text: &str| {
            let words = text.split_whitespace().filter(|word| !word.contains("s)"));
            words.collect::<Vec<_>>().join(" ")
        };
        assert_eq!(
            timeless(&remote.stderr),
            timeless(&local.stderr),
            "{args:?}"
        );
        assert_eq!(
            timeless(&remote.stdout),
            timeless(&local.stdout),
            "{args:?}"
        );
        assert_eq!(remote.code, local.code, "{args:?}");
        remote
    };
    // Without a supervisor.
    assert_eq!(same(&["agents", "status"]).code, Some(1));
    assert_eq!(same(&["agents", "wake", "first"]).code, Some(1));
    assert_eq!(same(&["agents", "status", "unknown"]).code, Some(2));

    let supervisor = company.supervise([]);
    company.asleep("first");
    company.asleep("other");
    same(&["agents", "status"]).ok();
    assert_eq!(same(&["agents", "stop", "unknown"]).code, Some(2));
    same(&["agents", "logs", "first", "-n", "3"]).ok();
    assert_eq!(same(&["agents", "logs", "unknown"]).code, Some(2));
    let remote = |args: &[&str]| {
        let ended = server.run(&company, args).ok();
        ended.stdout
    };
    assert_eq!(remote(&["agents", "wake", "first"]), "first: woken\n");
    company.asleep("first");
    assert_eq!(remote(&["agents", "stop", "first"]), "first: stopped\n");
    assert_eq!(company.agent("first")["state"], "stopped");
    let started = remote(&["agents", "start", "first"]);
    let now = pid(&company.agent("first")).unwrap();
    assert_eq!(started, format!("first: runs, pid {now}\n"));
    let restarted = remote(&["agents", "restart", "first", "other"]);
    let now = ["first", "other"].map(|id| pid(&company.agent(id)).unwrap());
    assert_eq!(
        restarted,
        format!("first: runs, pid {}\nother: runs, pid {}\n", now[0], now[1])
    );
    assert_eq!(
        remote(&["agents", "stop", "--all"]),
        "first: stopped\nother: stopped\n"
    );
    supervisor.stop();
}
