//! A supervisor whose predecessor was killed and is never reaped, as in a container without an init.

use std::fs;
use std::process::Command;

use serde_json::Value;
use teamster_testkit::stand_in::Act;

use crate::agents::company::{Company, TEAMSTER};

/// The script in the process namespace.
///
/// The namespace's first process is `cat`, which reaps no children. `$1` is `both` if the loop is killed too.
const SCRIPT: &str = r#"
mkfifo done
(
    trap 'echo > done' EXIT
    # A process is a zombie already while its other threads still hold its locks.
    lives='^State:[[:space:]]*[^ZX[:space:]]|^Threads:[[:space:]]*([2-9]|[0-9]{2})'
    dead() { ! grep -Eq "$lives" /proc/$1/status 2>/dev/null; }
    status() { "$0" agents status a --json 2>/dev/null; }
    field() { status | tr -d ' \n' | sed -n "s/.*\"$1\":\"*\([^,\"}]*\).*/\1/p"; }
    # This shell ends at once, so the first process becomes the parent.
    ("$0" supervise 2> first.txt & echo $! > first.pid)
    while ! status | grep -q '"sleeping"'; do sleep 0.05; done
    first=$(cat first.pid)
    loop=$(field pid)
    kill -KILL $first
    while ! dead $first; do sleep 0.05; done
    if [ "$1" = both ]; then
        kill -KILL $loop
        while ! dead $loop; do sleep 0.05; done
        grep State /proc/$loop/status >&2
    fi
    grep State /proc/$first/status >&2
    "$0" supervise 2> next.txt &
    next=$!
    while ! grep -q 'listening on' next.txt; do sleep 0.05; done
    while ! status | grep -q '"sleeping"'; do sleep 0.05; done
    echo "{\"loop\": $loop, \"status\": $(status)}"
    "$0" agents stop a >&2
    kill -TERM $next
    wait $next
    for p in /proc/[0-9]*; do
        if readlink $p/cwd | grep -q '/agents/a$'; then
            if ! dead ${p#/proc/}; then echo "left: $(tr '\0' ' ' < $p/cmdline)" >&2; fi
        fi
    done 2>/dev/null
) &
exec cat done >/dev/null
"#;

/// Returns the agent's status from the next supervisor, and the pid of the first one's loop.
///
/// Returns `None` if no namespace can be created.
#[expect(clippy::print_stderr, reason = "reports why nothing was tested")]
fn after(killed: &str) -> Option<(Value, u64)> {
    let unshare = [
        "unshare",
        "--user",
        "--map-root-user",
        "--pid",
        "--fork",
        "--kill-child",
        "--mount-proc",
    ];
    let company = Company::new(["a"], |plan| plan.turn([Act::DidWork]));
    let command = |more: &[&str]| {
        let environment = company.teamster([]);
        let mut command = Command::new("timeout");
        // Shorter than the limit of a test, so that a failure has its output.
        command.arg("240").args(unshare).args(more);
        command.env_clear().current_dir(company.path(""));
        for (name, value) in environment.get_envs() {
            command.env(name, value.unwrap_or_default());
        }
        command
    };
    if !(command(&["true"]).status()).is_ok_and(|status| status.success()) {
        eprintln!("not tested: this system gives no process namespaces to its users");
        return None;
    }
    let ended = command(&["sh", "-c", SCRIPT, TEAMSTER, killed])
        .output()
        .unwrap();
    let stderr = String::from_utf8(ended.stderr).unwrap();
    let status = fs::read_to_string(company.path("next.txt")).unwrap_or_default();
    let zombies = if killed == "both" { 2 } else { 1 };
    assert_eq!(
        stderr.matches("Z (zombie)").count(),
        zombies,
        "{stderr}{status}"
    );
    assert!(!stderr.contains("left:"), "{stderr}{status}");
    let found: Value = serde_json::from_slice(&ended.stdout).unwrap();
    Some((
        found["status"]["agents"][0].clone(),
        found["loop"].as_u64().unwrap(),
    ))
}

#[test]
fn next_supervisor_adopts_the_loop_of_an_unreaped_one() {
    if let Some((agent, lived_on)) = after("supervisor") {
        assert_eq!(
            (&agent["pid"], &agent["adopted"]),
            (&lived_on.into(), &true.into())
        );
    }
}

#[test]
fn a_loop_that_is_never_reaped_either_is_restarted() {
    if let Some((agent, killed)) = after("both") {
        assert_eq!(
            (&agent["state"], &agent["adopted"]),
            (&"running".into(), &Value::Null)
        );
        assert_ne!(agent["pid"], Value::from(killed));
    }
}
