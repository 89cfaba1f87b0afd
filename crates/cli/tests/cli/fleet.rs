//! `--fleet`: runs on other machines, through a server on loopback. Without `nats-server`, these tests are skipped.

mod agents;
#[expect(dead_code, reason = "the tests of the library use more of it")]
#[expect(clippy::print_stderr, reason = "a skipped test names its reason")]
#[path = "../../../fleet/tests/it/server.rs"]
mod server;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use nix::sys::signal::Signal;
use serde_json::{Value, json};
use teamster_testkit::proc::wait_until;

use crate::cli::detached::worktree::Repository;
use crate::cli::json_rpc::Peer;
use crate::cli::mcp_serve::{begin, tool};
#[cfg(feature = "otlp")]
use crate::cli::otlp::collector::Collector;
use crate::cli::serve::client::Served;
use crate::cli::{Claude, Ended, LIMIT, Running, TEAMSTER, done, json_lines, run, teamster};
use server::Server;

const PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// A fleet, and what is on the machine of its worker.
struct Fleet {
    server: Server,
    claude: Claude,
}

impl Fleet {
    /// Makes a fleet whose machines have this agent. `None` without a server.
    fn new(claude: Claude) -> Option<Self> {
        let server = Server::start()?;
        let fleet = Self { server, claude };
        // The defaults are more than a small disk has.
        fleet
            .run(["fleet", "init", "--logs", "64M", "--files", "64M"])
            .ok();
        Some(fleet)
    }

    /// A command of a person with nothing of a machine but the fleet's address.
    fn command<'a>(&self, args: impl IntoIterator<Item = &'a str>) -> Command {
        let mut command = teamster(args);
        command
            .env("TEAMSTER_FLEET", &self.server.url)
            .env("TEAMSTER_FLEET_OWNER", "ann")
            .env("HOME", self.claude.path("person"))
            .env("PATH", PATH)
            .env("TZ", "UTC");
        command
    }

    fn run<'a>(&self, args: impl IntoIterator<Item = &'a str>) -> Ended {
        run(&mut self.command(args))
    }

    /// Runs a command with `--fleet`, which succeeds, and returns its output.
    #[track_caller]
    fn ok<'a>(&self, args: impl IntoIterator<Item = &'a str>) -> String {
        let ended = self.run(["--fleet"].into_iter().chain(args)).ok();
        ended.stdout
    }

    /// Starts a worker.
    fn worker(&self, name: &str) -> Running {
        self.worker_with(name, &self.claude.path("claude"))
    }

    /// Starts a worker with this program as Claude Code.
    fn worker_with(&self, name: &str, program: &Path) -> Running {
        Running::start(&mut self.worker_command(name, program))
    }

    fn worker_command(&self, name: &str, program: &Path) -> Command {
        let mut command = teamster(["worker", "--fleet", &self.server.url, "--name", name]);
        command
            .args(["--slots", "4"])
            .env("TEAMSTER_CLAUDE_BIN", program)
            .env("HOME", self.claude.path("home"))
            .env("XDG_STATE_HOME", self.claude.path("state"))
            // A login that the worker detects.
            .env("ANTHROPIC_API_KEY", "made-up")
            .env("PATH", PATH);
        command
    }

    /// Waits until a run is listed as live in this state, and returns it.
    fn until(&self, id: &str, state: &str) -> Value {
        let mut found = Value::Null;
        let reached = wait_until(LIMIT, || {
            let runs = self.ok(["runs", "list", "--live", "--json"]);
            let mut runs = json_lines(&runs).into_iter();
            let run = runs.find(|run| run["runId"] == id);
            found = run.unwrap_or_default();
            found["state"] == state
        });
        assert!(reached, "{found}");
        found
    }
}

/// Creates an agent that commits a file where it works, and answers.
fn committer() -> Claude {
    let claude = Claude::plays("text", 0);
    let git = "git -c user.email=a@example.com -c user.name=A";
    claude.program(&format!(
        "case \"$1\" in --version) echo '2.1.197 (Claude Code)'; exit 0;; esac\n\
         echo 1 > agent.txt && {git} add agent.txt && {git} commit -qm 'Of the agent' || exit 9\n\
         TEAMSTER_FAKE_SCRIPT='@{}' exec '{TEAMSTER}' fake-agent \"$@\"",
        claude.path("script.toml").display(),
    ));
    claude
}

#[test]
fn a_repository_goes_to_a_machine_and_its_branch_comes_back() {
    let Some(fleet) = Fleet::new(committer()) else {
        return;
    };
    let mut worker = fleet.worker("mini");
    let repository = Repository::new();
    let mut command = fleet.command(["--fleet", "run", "claude", "x", "--repo", "."]);
    let ended = run(command.current_dir(repository.path())).ok();
    for part in [
        "repository submitted: ",
        "branch teamster/",
        ": 1 commit of run ",
    ] {
        ended.stderr_has(part);
    }
    let branches = repository.git(&["branch", "--list", "--format=%(refname:short)"]);
    let branches: Vec<_> = branches.lines().collect();
    let ["main", branch] = branches[..] else {
        panic!("{branches:?}");
    };
    let log = repository.git(&["log", "--format=%s", branch]);
    assert_eq!(log, "Of the agent\nFirst\n");

    // Its log has the end before its record has it.
    let mut listed = Value::Null;
    let has_ended = || {
        let list = fleet.ok(["runs", "list", "--json"]);
        listed = serde_json::from_str(list.trim_end()).unwrap();
        listed["status"] != "running"
    };
    assert!(wait_until(LIMIT, has_ended), "{listed}");
    assert_eq!(
        (&listed["status"], &listed["host"]),
        (&"success".into(), &"mini".into())
    );
    let shown = fleet.ok(["runs", "show", listed["runId"].as_str().unwrap()]);
    assert!(shown.contains("machine       mini\n"), "{shown}");
    let usage = fleet.ok(["usage", "--by", "provider", "--json"]);
    let usage: Value = serde_json::from_str(&usage).unwrap();
    assert_eq!(usage["history"]["onlyThere"], 1, "{usage}");
    let status = fleet.run(["fleet", "status"]);
    status.stdout_has("mini");

    worker.signal(Signal::SIGTERM);
    let ended = worker.end().ok();
    for part in [": was started with claude\n", ": has ended\n"] {
        ended.stderr_has(part);
    }
    assert!(ended.stderr.ends_with("drained\n"), "{}", ended.stderr);
}

#[test]
fn a_run_prints_the_same_as_on_its_machine() {
    let Some(fleet) = Fleet::new(Claude::plays("text", 0)) else {
        return;
    };
    let _worker = fleet.worker("mini");
    let here = run(&mut fleet.claude.run(["x", "--json"]));
    let there = fleet.ok(["run", "claude", "x", "--json"]);
    let (here, there) = (done(&here.stdout), done(&there));
    assert_eq!((there.status, &there.text), (here.status, &here.text));
    assert_eq!(there.total_cost_usd, here.total_cost_usd);
    let plain = fleet.ok(["run", "claude", "x"]);
    assert_eq!(plain, run(&mut fleet.claude.run(["x"])).stdout);
}

#[test]
fn a_run_waits_for_a_machine_and_can_be_cancelled() {
    let claude = Claude::silent();
    let Some(mut fleet) = Fleet::new(claude) else {
        return;
    };
    let id = fleet.ok(["run", "-d", "claude", "x"]);
    let id = id.trim_end();
    let queued = fleet.until(id, "queued");
    assert_eq!(queued["queue"]["reason"], "no_machine", "{queued}");
    let status = fleet.run(["fleet", "status"]);
    let waits = "queued: 1 run for pool default, the oldest for ";
    status.stdout_has(waits);
    fleet.run(["fleet", "give-up", id]).fails(1, "cancel it");
    fleet.ok(["cancel", id]);
    let waited = fleet.run(["--fleet", "wait", id]);
    assert_eq!(waited.code, Some(130), "{}", waited.stderr);
    let ended = fleet.run(["fleet", "give-up", id]);
    let step = format!("`teamster --fleet attach {id}` shows its log");
    ended.stderr_has(&step);
    let again = fleet.run(["fleet", "rerun", id]);
    assert_eq!(again.stdout, format!("{id}~2\n"), "{}", again.stderr);
    fleet.until(again.stdout.trim_end(), "queued");
    fleet.ok(["cancel", again.stdout.trim_end()]);

    // A server that was killed is back, and so is what it has kept.
    fleet.server.restart();
    let id = fleet.ok(["run", "-d", "claude", "x"]);
    let id = id.trim_end();
    let mut worker = fleet.worker("mini");
    let running = fleet.until(id, "running");
    assert_eq!(running["machine"], "mini", "{running}");
    // Its first entries show that the agent has started.
    assert!(fleet.claude.report().argv.contains(&"-p".to_owned()));
    // A second signal ends the worker, and not its run.
    worker.signal(Signal::SIGTERM);
    let drains = wait_until(LIMIT, || {
        fleet.run(["fleet", "status"]).stdout.contains("drains")
    });
    assert!(drains);
    worker.signal(Signal::SIGTERM);
    assert_eq!(worker.end().code, Some(130));
    let _worker = fleet.worker("mini");
    fleet.ok(["cancel", id]);
    let waited = fleet.run(["--fleet", "wait", id]);
    assert_eq!(waited.code, Some(130), "{}", waited.stderr);
}

#[test]
fn agents_of_a_fleet_are_tools_of_an_mcp_client() {
    let Some(fleet) = Fleet::new(Claude::plays("text", 0)) else {
        return;
    };
    let mut worker = fleet.worker("mini");
    let mut peer = Peer::start(&mut fleet.command(["--fleet", "mcp", "serve"]));
    begin(&mut peer);
    let report = tool(
        &mut peer,
        "run",
        &json!({ "agent": "claude", "prompt": "x" }),
    );
    assert_eq!(report["status"], "completed", "{report}");
    assert_eq!(peer.end(), Some(0));
    let shown = fleet.ok(["runs", "list", "--json"]);
    let run: Value = serde_json::from_str(shown.trim_end()).unwrap();
    assert_eq!(run["runId"], report["runId"]);
    fleet.run(["fleet", "drain", "mini"]).ok();
    worker.end().ok();
}

#[test]
fn a_server_in_front_of_a_fleet_is_used_as_one_machine() {
    let Some(fleet) = Fleet::new(Claude::plays("text", 0)) else {
        return;
    };
    let mut worker = fleet.worker("mini");
    let folder = tempfile::tempdir().unwrap();
    let served = Served::start(&["--fleet"], folder.path(), |command| {
        command
            .env("TEAMSTER_FLEET", &fleet.server.url)
            .env("TEAMSTER_FLEET_OWNER", "ann");
    });
    let remote = |args: &[&str]| {
        let mut command = teamster(args.iter().copied());
        run(command
            .env("TEAMSTER_REMOTE", format!("http://{}", served.address))
            .env("TEAMSTER_REMOTE_TOKEN", &served.token))
    };
    let id = fleet.ok(["run", "-d", "claude", "x"]);
    remote(&["wait", id.trim_end()]).ok();
    let run = served.get(&format!("/v1/runs/{}", id.trim_end())).json();
    assert_eq!(
        (&run["state"], &run["machine"]),
        (&"ended".into(), &"mini".into())
    );
    remote(&["run", "claude", "x", "--pool", "default"]).ok();
    let refused = remote(&["run", "claude", "x", "--pool", "a.b"]);
    assert_eq!(refused.code, Some(2), "{}", refused.stderr);
    let agents = served.get("/v1/providers").json();
    let claude = agents["providers"].as_array().unwrap().iter();
    let claude: Vec<_> = claude.filter(|agent| agent["id"] == "claude").collect();
    assert_eq!(claude[0]["machine"], "mini", "{agents}");
    let status = served.get("/v1/fleet").json();
    let shown = &status["workers"][0];
    assert_eq!(
        (&shown["name"], &shown["slots"]),
        (&"mini".into(), &4.into()),
        "{status}"
    );
    let figures = served.get("/metrics").body;
    assert!(
        figures.contains("teamster_fleet_slots{pool=\"default\"} 4\n"),
        "{figures}"
    );
    fleet.run(["fleet", "drain", "mini"]).ok();
    worker.end().ok();
    let absent = fleet.run(["fleet", "drain", "mini"]);
    assert_eq!(absent.code, Some(1), "{}", absent.stderr);
}

#[cfg(feature = "otlp")]
#[test]
fn worker_sends_its_figures_and_a_trace_of_each_run() {
    let Some(fleet) = Fleet::new(Claude::plays("text", 0)) else {
        return;
    };
    let collector = Collector::start();
    let mut command = fleet.worker_command("mini", &fleet.claude.path("claude"));
    command
        .env("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url())
        .env("OTEL_METRIC_EXPORT_INTERVAL", "100");
    let mut worker = Running::start(&mut command);
    let has_slots = || collector.figure("teamster_worker_slots", &[]) == Some(4.0);
    assert!(wait_until(LIMIT, has_slots), "no figures");
    let id = fleet.ok(["run", "-d", "claude", "x"]);
    fleet.ok(["wait", id.trim_end()]);
    let traces = || {
        let spans = collector.spans();
        let roots = spans.iter().filter(|span| span.parent.is_empty());
        roots.count()
    };
    assert!(wait_until(LIMIT, || traces() > 0), "no trace");
    fleet.run(["fleet", "drain", "mini"]).ok();
    worker.end().ok();
    assert_eq!(traces(), 1);
}

#[test]
fn an_address_is_kept_for_this_user_alone() {
    let Some(fleet) = Fleet::new(Claude::plays("text", 0)) else {
        return;
    };
    let config = fleet.claude.path("config");
    let person = |args: &[&str]| {
        let mut command = teamster(args.iter().copied());
        run(command
            .env("XDG_CONFIG_HOME", &config)
            .env("USER", "Jörg.k"))
    };
    person(&["--fleet", "runs", "list"]).fails(2, "teamster fleet use URL");
    let wrong = person(&["fleet", "use", "nats://127.0.0.1:1"]);
    assert_eq!(wrong.code, Some(1), "{}", wrong.stderr);
    assert!(!config.join("teamster/fleet.json").exists());
    let secret = person(&["fleet", "use", "nats://ann:s3cret@127.0.0.1:1"]);
    assert_eq!(secret.code, Some(2), "{}", secret.stderr);
    assert!(!secret.stderr.contains("s3cret"), "{}", secret.stderr);
    let kept = person(&["fleet", "use", &fleet.server.url]).ok();
    kept.stderr_has("J-rg-k the owner");
    let file = config.join("teamster/fleet.json");
    let mode = fs::metadata(&file).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    person(&["--fleet", "run", "claude", "x", "--env", "A=b"]).fails(2, "--env: ");
    person(&["--fleet", "runs", "list", "--live"]).ok();
}

#[test]
fn invalid_fleet_settings_are_errors_with_the_next_step() {
    let Some(server) = Server::start() else {
        return;
    };
    let of = |owner: &str, args: &[&str]| {
        let mut command = teamster(args.iter().copied());
        let command = command
            .env("TEAMSTER_FLEET", &server.url)
            .env("TEAMSTER_FLEET_OWNER", owner)
            .env("HOME", Path::new("/nowhere"));
        run(command)
    };
    for (owner, args, code, part) in [
        (
            "ann",
            &["--fleet", "run", "claude", "x"][..],
            1,
            "`teamster fleet init`",
        ),
        ("a.b", &["--fleet", "runs", "list"], 2, "owner: \"a.b\""),
        ("jörg", &["fleet", "init"], 2, "letters, digits"),
        ("", &["--fleet", "runs", "list"], 2, "TEAMSTER_FLEET_OWNER"),
        // It submits nothing: no owner is needed, as in a container.
        (
            "",
            &["worker", "--name", "mini.local"],
            2,
            "name: \"mini.local\"",
        ),
        (
            "ann",
            &["--fleet", "agents", "status"],
            2,
            "`teamster --remote ssh:HOST agents status`",
        ),
        ("ann", &["--fleet", "doctor", "--try", "acp:x"], 2, "--try"),
        ("ann", &["--fleet", "chat", "claude"], 2, "needs --detach"),
        (
            "ann",
            &["--fleet", "--remote", "http://a", "runs", "list"],
            2,
            "excludes --remote",
        ),
        (
            "ann",
            &["run", "claude", "x", "--pool", "gpu"],
            2,
            "--pool or --machine",
        ),
        (
            "ann",
            &["run", "claude", "x", "--secret", "NPM_TOKEN"],
            2,
            "--secret",
        ),
    ] {
        let ended = of(owner, args);
        assert_eq!(ended.code, Some(code), "{args:?}: {}", ended.stderr);
        assert!(ended.stderr.contains(part), "{args:?}: {}", ended.stderr);
    }
}
