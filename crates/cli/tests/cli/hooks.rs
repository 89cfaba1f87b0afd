//! `--hooks`: from the option to the file that an agent's CLI reads.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use teamster_testkit::proc::wait_until;
use tempfile::TempDir;

use crate::cli::{LIMIT, ended, program, run, teamster};

/// The agents, each with shell code that finds the file as its CLI does.
const AGENTS: [(&str, &str); 3] = [
    (
        "claude",
        "for arg; do case $arg in --settings=*) file=${arg#*=} ;; esac; done",
    ),
    (
        "copilot",
        "for arg; do case $arg in --plugin-dir=*) file=${arg#*=}/plugin.json ;; esac; done",
    ),
    ("qwen", "file=$QWEN_CODE_SYSTEM_DEFAULTS_PATH"),
];

/// A program that keeps its arguments and the file with the hooks, and fails.
struct Cli {
    dir: TempDir,
    agent: &'static str,
}

impl Cli {
    fn new(agent: &'static str, find: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let here = dir.path().display();
        let script = format!(
            "file=\n{find}\n[ -f \"$file\" ] || exit 1\n\
             printf %s \"$*\" > '{here}/argv'\nprintf %s \"$file\" > '{here}/path'\n\
             cp \"$file\" '{here}/seen'\nexit 1"
        );
        program(&dir.path().join("program"), &script);
        Self { dir, agent }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn teamster(&self, args: &[&str]) -> Command {
        let variable = format!("TEAMSTER_{}_BIN", self.agent.to_uppercase());
        let mut command = teamster(args.iter().copied());
        command
            .env("HOME", self.dir.path())
            .env("XDG_STATE_HOME", self.path("state"))
            .env(
                "QWEN_CODE_SYSTEM_SETTINGS_PATH",
                self.path("settings-of-the-machine"),
            )
            .env(variable, self.path("program"));
        command
    }

    /// Asserts that the program has found these hooks, and that their file is gone.
    fn assert_found(&self, hooks: &Value, way: &str) {
        let found = |name: &str| {
            let text = fs::read_to_string(self.path(name));
            text.unwrap_or_else(|error| panic!("{} {way}: {name}: {error}", self.agent))
        };
        let mut seen: Value = serde_json::from_str(&found("seen")).unwrap();
        // Copilot gets the directory, where the other CLIs run a command by themselves.
        let here = std::env::current_dir().unwrap();
        let hook = (seen.pointer_mut("/hooks/PreToolUse/0/hooks/0")).and_then(Value::as_object_mut);
        let directory = hook.and_then(|hook| hook.remove("cwd"));
        let expected = (self.agent == "copilot").then(|| Value::from(here.to_str().unwrap()));
        assert_eq!(directory, expected, "{} {way}", self.agent);
        assert_eq!(seen["hooks"], hooks["hooks"], "{} {way}", self.agent);
        assert!(!found("argv").contains("may-run"), "{}", found("argv"));
        let file = found("path");
        assert!(wait_until(LIMIT, || !Path::new(&file).exists()), "{file}");
    }
}

#[test]
fn hooks_of_a_run_are_in_a_file_that_is_gone_at_its_end() {
    let hook = json!({"matcher": "Bash", "hooks": [{"type": "command", "command": "./may-run"}]});
    let hooks = json!({"hooks": {"PreToolUse": [hook]}});
    for (agent, find) in AGENTS {
        let new = || {
            let cli = Cli::new(agent, find);
            fs::write(cli.path("hooks.json"), hooks.to_string()).unwrap();
            let option = format!("--hooks={}", cli.path("hooks.json").display());
            (cli, option)
        };

        let (cli, option) = new();
        let ended_run = run(&mut cli.teamster(&["run", agent, "x", &option]));
        assert_eq!(ended_run.code, Some(1), "{}", ended_run.stderr);
        cli.assert_found(&hooks, "attached");

        let (cli, option) = new();
        let started = run(&mut cli.teamster(&["run", agent, "x", "--detach", &option])).ok();
        let waited = run(&mut cli.teamster(&["wait", started.stdout.trim_end()]));
        assert_eq!(waited.code, Some(1), "{}", waited.stderr);
        cli.assert_found(&hooks, "detached");

        let (cli, option) = new();
        let mut chat = (cli.teamster(&["chat", agent, &option]))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        chat.stdin.take().unwrap().write_all(b"hi\n").unwrap();
        ended(chat.wait_with_output().unwrap());
        cli.assert_found(&hooks, "session");
    }
}
