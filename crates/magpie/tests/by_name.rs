//! Magpie by name: in the facade, in runs with fallbacks and in the program.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Arc;

use serde_json::Value;
use teamster::orchestrator::{Orchestrator, OrchestratorConfig, RunRequest};
use teamster::{ExecuteParams, Providers, RuntimeConfig};
use teamster_magpie::Magpie;
use teamster_testkit::fake_agent::Script;
use teamster_testkit::proc;
use tempfile::TempDir;

/// The program with this provider.
const PROGRAM: &str = env!("CARGO_BIN_EXE_teamster-with-magpie");

/// A folder with `bin/magpie`, a fake agent that plays one of the runs.
struct World(TempDir);

impl World {
    fn new(scenario: &str) -> Self {
        let world = Self(tempfile::tempdir().unwrap());
        for folder in ["bin", "home", "agent"] {
            fs::create_dir(world.path(folder)).unwrap();
        }
        let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/1.0");
        let script = Script::new()
            .play(fixtures.join(scenario).join("stdout.ndjson"))
            .exit(0);
        let file = world.path("script.toml");
        fs::write(&file, script.to_toml().unwrap()).unwrap();
        let program = format!(
            "#!/bin/sh\ncase \"$1\" in --version) echo 'magpie 1.0'; exit 0;; esac\n\
             echo \"$@\" >> '{}'\n\
             TEAMSTER_FAKE_SCRIPT='@{}' exec '{PROGRAM}' fake-agent \"$@\"\n",
            world.path("calls").display(),
            file.display(),
        );
        let path = world.path("bin/magpie");
        proc::write_program(&path, program).unwrap();
        world
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn config(&self) -> RuntimeConfig {
        RuntimeConfig::default().program(self.path("bin/magpie"))
    }

    /// Runs the program with these arguments, without the environment of this machine's user.
    fn run(&self, args: &[&str], env: &[(&str, &str)]) -> Output {
        Command::new(PROGRAM)
            .args(args)
            .env_clear()
            .env(
                "PATH",
                format!("{}:/usr/bin:/bin", self.path("bin").display()),
            )
            .env("HOME", self.path("home"))
            .env("TEAMSTER_STORE", "off")
            .envs(env.iter().copied())
            .output()
            .unwrap()
    }
}

fn providers() -> Providers {
    Providers::builtin().with(Arc::new(Magpie))
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[tokio::test]
async fn in_the_facade() {
    let world = World::new("text");
    let runtime = providers().runtime(" Magpie", world.config()).unwrap();
    let result = runtime.execute(ExecuteParams::new("hi")).await;
    assert_eq!(result.answer(), Some("Hello, world!"));
    let calls = fs::read_to_string(world.path("calls")).unwrap();
    assert_eq!(calls, "ask -- hi\n");
    let error = providers()
        .runtime("magpies", world.config())
        .err()
        .unwrap();
    assert!(error.message.ends_with(", magpie"), "{error}");
}

#[tokio::test]
async fn as_the_fallback_of_a_run() {
    let (failing, working) = (World::new("error"), World::new("text"));
    let candidate = |world: &World| {
        let params = ExecuteParams::new("hi");
        providers()
            .candidate("magpie", world.config(), params)
            .unwrap()
    };
    let first = providers().runtime("magpie", failing.config()).unwrap();
    let request = RunRequest::new(first, ExecuteParams::new("hi")).fallback(candidate(&working));
    let orchestrator = Orchestrator::new(OrchestratorConfig::default()).unwrap();
    let outcome = orchestrator.start(request).outcome().await;
    assert!(outcome.is_success(), "{outcome:?}");
    assert_eq!(outcome.provider, "magpie");
    assert_eq!(outcome.attempts.len(), 2);
    assert_eq!(outcome.answer(), Some("Hello, world!"));
}

#[test]
fn in_the_program() {
    let world = World::new("tool");
    let ended = world.run(&["run", "magpie", "hi", "--json"], &[]);
    assert_eq!(ended.status.code(), Some(0), "{}", text(&ended.stderr));
    let stdout = text(&ended.stdout);
    let done: Value = serde_json::from_str(stdout.lines().last().unwrap()).unwrap();
    assert_eq!(done["type"], "done");
    assert_eq!(done["result"]["text"], "It failed.");
    assert_eq!(done["result"]["usage"]["inputTokens"], 9);
}

#[test]
fn in_doctor_with_its_version_and_login() {
    let world = World::new("text");
    let ended = world.run(&["doctor", "--json"], &[("MAGPIE_KEY", "x")]);
    let report: Value = serde_json::from_slice(&ended.stdout).unwrap();
    let providers = report["providers"].as_array().unwrap();
    let magpie = providers.iter().find(|it| it["id"] == "magpie").unwrap();
    assert_eq!(magpie["version"], "1.0", "{magpie}");
    assert_eq!(magpie["login"]["state"], "yes", "{magpie}");
    assert_eq!(magpie["login"]["from"], "MAGPIE_KEY", "{magpie}");
}

#[test]
fn in_a_loop_with_a_process_for_each_tick() {
    let world = World::new("text");
    let agent = world.path("agent");
    fs::write(agent.join("MAGPIE.md"), "Be a magpie.").unwrap();
    fs::write(
        agent.join(".env"),
        "RUNTIME=magpie\nMIN_SLEEP=0\nIDLE_STEP=0\nMAX_SLEEP=0\n",
    )
    .unwrap();
    let ended = world.run(&["loop", agent.to_str().unwrap(), "--ticks", "2"], &[]);
    let log = text(&ended.stdout);
    assert_eq!(ended.status.code(), Some(0), "{log}{}", text(&ended.stderr));
    assert!(log.contains("runtime=magpie adapter=cold"), "{log}");
    assert!(!log.contains("no instructions"), "{log}");
    let calls = fs::read_to_string(world.path("calls")).unwrap();
    let ticks: Vec<_> = calls
        .lines()
        .filter(|call| call.starts_with("ask"))
        .collect();
    assert_eq!(ticks.len(), 2, "{calls}");
    assert!(ticks[0].contains("--model=patient --yes"), "{calls}");
    assert!(ticks[1].starts_with("ask --session=m-1 "), "{calls}");
}
