//! A killed `teamster` that is never reaped, as in a container without an init.

use std::process::Command;

use serde_json::Value;
use teamster_testkit::fake_agent::{Script, Spawn, SpawnKind};

use crate::cli::{Claude, TEAMSTER, recording, run};

/// The script in the process namespace.
///
/// The namespace's first process is `cat`, which reaps no children. `$1` is `both` if the guard is killed too.
const SCRIPT: &str = r#"
mkfifo done
(
    trap 'echo > done' EXIT
    dead() { ! grep -q '^State:[[:space:]]*[^ZX[:space:]]' /proc/$1/status 2>/dev/null; }
    # This shell ends at once, so the first process becomes the parent.
    ("$0" run claude x --json >/dev/null 2>&1 & echo $! > run.pid)
    while ! [ -s stray.pid ]; do sleep 0.05; done
    run=$(cat run.pid)
    stray=$(cat stray.pid)
    if [ "$1" = both ]; then
        # In two parts: this shell has these words among its arguments.
        guard=--teamster; guard=$guard-guard
        for p in /proc/[0-9]*; do
            if grep -q -- $guard $p/cmdline; then kill -KILL ${p#/proc/}; fi
        done 2>/dev/null
    fi
    kill -KILL $run
    while ! dead $run; do sleep 0.05; done
    grep State /proc/$run/status >&2
    if [ "$1" = both ]; then
        "$0" doctor --json
        mv next.toml script.toml
        "$0" run claude x --json >/dev/null 2>&1
    fi
    while ! dead $stray; do sleep 0.05; done
    "$0" doctor --json
) &
exec cat done >/dev/null
"#;

/// Returns the leftovers of each `doctor` report; `None` if no namespace can be created.
#[expect(clippy::print_stderr, reason = "reports why nothing was tested")]
fn leftovers(killed: &str) -> Option<Vec<Vec<Value>>> {
    let unshare = |args: &[&str]| {
        let mut command = Command::new("timeout");
        command.args(["300", "unshare", "--user", "--map-root-user"]);
        command.args(["--pid", "--fork", "--kill-child", "--mount-proc"]);
        command.args(args);
        command
    };
    if !(unshare(&["true"]).status()).is_ok_and(|status| status.success()) {
        eprintln!("not tested: this system gives no process namespaces to its users");
        return None;
    }
    let claude = Claude::new(&Script::new());
    let tool = Spawn::new(SpawnKind::Setsid).pid_file(claude.path("stray.pid"));
    let next = Script::new().play(recording("text")).exit(0);
    for (name, script) in [
        ("script.toml", Script::new().spawn(tool).forever()),
        ("next.toml", next),
    ] {
        std::fs::write(claude.path(name), script.to_toml().unwrap()).unwrap();
    }
    let ended = run(unshare(&["sh", "-c", SCRIPT, TEAMSTER, killed])
        .current_dir(claude.dir.path())
        .env("TEAMSTER_CLAUDE_BIN", claude.path("claude")));
    ended.stderr_has("Z (zombie)");
    let reports: Vec<Value> = serde_json::Deserializer::from_str(&ended.stdout)
        .into_iter()
        .collect::<Result<_, _>>()
        .unwrap();
    let left = |report: &Value| report["leftovers"].as_array().unwrap().clone();
    Some(reports.iter().map(left).collect())
}

#[test]
fn processes_of_an_unreaped_killed_teamster_end() {
    if let Some(reports) = leftovers("run") {
        assert_eq!(reports, [Vec::<Value>::new()]);
    }
}

#[test]
fn leftovers_are_reported_and_end_with_the_next_run() {
    if let Some(reports) = leftovers("both") {
        let [before, after] = &*reports else {
            panic!("{reports:?}");
        };
        assert!(!before.is_empty(), "nothing was reported");
        assert!(after.is_empty(), "{after:?}");
    }
}
