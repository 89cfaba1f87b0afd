//! `teamster serve`: the HTTP API, with real runs.

pub(crate) mod client;
mod doors;
#[cfg(target_os = "linux")]
mod hanging;
mod history;
mod refusals;
mod rights;
mod sessions;
#[cfg(target_os = "linux")]
mod soak;
mod streams;
#[cfg(feature = "otlp")]
mod telemetry;
mod triggers;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use serde_json::{Value, json};
use teamster_testkit::proc::wait_until;

use crate::cli::{Claude, Ended, LIMIT, TEAMSTER, run, teamster};
use client::{Served, token_file};

impl Served {
    /// A server whose agent is this one.
    pub(crate) fn of(claude: &Claude, args: &[&str]) -> Self {
        let program = claude.path("claude");
        Self::start(args, &claude.path("state"), |command| {
            command.env("TEAMSTER_CLAUDE_BIN", &program);
        })
    }

    /// Starts a run that never asks; its id.
    fn detach(&self) -> String {
        let body = json!({"provider": "claude", "prompt": "x", "askTimeoutMs": 0});
        let started = self.post("/v1/runs", &body);
        assert_eq!(started.status, 201, "{}", started.body);
        started.json()["runId"].as_str().unwrap().to_owned()
    }

    /// How the run is once it has ended.
    pub(crate) fn ended(&self, id: &str) -> Value {
        let mut run = Value::Null;
        assert!(wait_until(LIMIT, || {
            run = self.get(&format!("/v1/runs/{id}")).json();
            run["state"] == "ended"
        }));
        run
    }
}

fn about<'a>(claude: &Claude, args: impl IntoIterator<Item = &'a str>) -> Ended {
    run(teamster(args).env("XDG_STATE_HOME", claude.path("state")))
}

#[test]
fn a_run_is_cancelled_and_the_end_of_the_server_ends_none() {
    let claude = Claude::silent();
    let served = Served::of(&claude, &[]);
    let id = served.detach();
    claude.report();
    let run = served.get(&format!("/v1/runs/{id}")).json();
    assert_eq!(
        (&run["state"], run.get("status"), run.get("result")),
        (&"running".into(), None, None)
    );
    assert_eq!(
        served.get("/v1/runs?state=running").json()["runs"][0]["runId"],
        *id
    );
    // Its end and a new one cost the run nothing.
    served.end();
    let served = Served::of(&claude, &[]);
    assert_eq!(
        served.get(&format!("/v1/runs/{id}")).json()["state"],
        "running"
    );
    let cancel = format!("/v1/runs/{id}/cancel");
    assert_eq!(served.request("POST", &cancel).send().status, 202);
    assert_eq!(served.ended(&id)["status"], "aborted");
    served
        .request("POST", &cancel)
        .send()
        .is_problem(409, "RUN_ENDED");
}

#[test]
fn a_program_that_was_replaced_by_an_update_still_starts_runs() {
    let claude = Claude::plays("text", 0);
    let (program, update) = (claude.path("teamster"), claude.path("update"));
    fs::copy(TEAMSTER, &program).unwrap();
    let mut command = Command::new(&program);
    command
        .args(["serve", "--listen", "127.0.0.1:0"])
        .env_clear()
        .env("PATH", "/usr/bin:/bin");
    let agent = claude.path("claude");
    let served = Served::by(command, &claude.path("state"), |command| {
        command.env("TEAMSTER_CLAUDE_BIN", &agent);
    });
    fs::copy(TEAMSTER, &update).unwrap();
    fs::rename(&update, &program).unwrap();
    let id = served.detach();
    assert_eq!(served.ended(&id)["status"], "completed");
}

#[test]
fn tokens_have_scopes_and_can_be_revoked() {
    let claude = Claude::plays("text", 0);
    let served = Served::of(&claude, &[]);
    let add = |name, scope| {
        let added = about(&claude, ["token", "add", name, "--scope", scope]).quiet();
        added.stdout.trim_end().to_owned()
    };
    let (reader, runner) = (add("phone", "answer"), add("ci", "run"));
    let send = |token: &str, method: &str, path: &str| served.request_as(token, method, path);
    assert_eq!(send(&reader, "GET", "/v1/runs").send().status, 200);
    let body = json!({"provider": "claude", "prompt": "x", "askTimeoutMs": 0});
    send(&reader, "POST", "/v1/runs")
        .json(&body)
        .send()
        .is_problem(403, "INSUFFICIENT_SCOPE");
    assert_eq!(
        send(&runner, "POST", "/v1/runs").json(&body).send().status,
        201
    );

    let listed = about(&claude, ["token", "list"]);
    listed.stdout_has("phone");
    listed.stdout_has("answer");
    let kept = fs::read_to_string(claude.path("state/teamster/server/tokens.json")).unwrap();
    assert!(!kept.contains(&reader) && !kept.contains(&runner), "{kept}");
    assert_eq!(
        about(&claude, ["token", "add", "ci", "--scope", "run"]).code,
        Some(2)
    );

    // A running server notices.
    about(&claude, ["token", "revoke", "phone"]).ok();
    send(&reader, "GET", "/v1/runs")
        .send()
        .is_problem(401, "UNAUTHORIZED");
    assert_eq!(send(&runner, "GET", "/v1/runs").send().status, 200);
    assert_eq!(about(&claude, ["token", "revoke", "phone"]).code, Some(2));
    let mode = |name: &str| {
        let file = claude.path("state/teamster/server").join(name);
        fs::metadata(file).unwrap().permissions().mode() & 0o777
    };
    assert_eq!(
        (mode("token"), mode("tokens.json"), mode("")),
        (0o600, 0o600, 0o700)
    );
}

#[test]
fn a_token_of_the_user_is_private_and_long() {
    let claude = Claude::plays("text", 0);
    let file = claude.path("own");
    let serve = || {
        about(
            &claude,
            [
                "serve",
                "--listen",
                "127.0.0.1:0",
                "--token-file",
                file.to_str().unwrap(),
            ],
        )
    };
    let refused = |why: &str| {
        serve().only_says(2, why);
    };
    refused("cannot read");
    fs::write(&file, "0123456789abcdef\n").unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
    refused("other users can read this token");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    fs::write(&file, "short\n").unwrap();
    refused("at least 16 characters");
    // Beyond this machine, only on purpose.
    about(&claude, ["serve", "--listen", "0.0.0.0:0"]).fails(2, "--insecure-http");
    assert_eq!(
        about(
            &claude,
            ["serve", "--listen", "0.0.0.0:0", "--insecure-http"]
        )
        .code,
        Some(2)
    );
    assert!(!token_file(&claude.path("state")).exists());
}
