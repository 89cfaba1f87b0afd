use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Output};

use teamster_testkit::fake_agent::{SCRIPT_ENV, Script, Signal, Spawn, SpawnKind};

use crate::fake_agent::{Files, run, text};

/// Runs the program without a script in the environment.
fn by_hand(args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_teamster-fake-agent"));
    command.args(args).env_remove(SCRIPT_ENV).output().unwrap()
}

/// Runs the program with this value of the script variable.
fn with_script(value: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_teamster-fake-agent"));
    command.env(SCRIPT_ENV, value).output().unwrap()
}

fn assert_refused(output: &Output, message: &str) {
    let stderr = text(&output.stderr);
    assert!(stderr.starts_with("teamster-fake-agent: "), "{stderr}");
    assert!(stderr.contains(message), "{stderr}");
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn a_script_may_be_in_a_file() {
    let files = Files::new();
    let toml = Script::new().line("hello").exit(3).to_toml().unwrap();
    let path = files
        .write("script.toml", toml)
        .to_str()
        .unwrap()
        .to_owned();
    for output in [
        with_script(&format!("@{path}")),
        by_hand(&["--script", &path]),
    ] {
        assert_eq!(text(&output.stdout), "hello\n");
        assert_eq!(output.status.code(), Some(3));
    }
}

#[test]
fn help_teaches() {
    let output = by_hand(&["--help"]);
    assert!(output.status.success());
    let help = text(&output.stdout);
    assert!(help.contains("TEAMSTER_FAKE_SCRIPT=SCRIPT"), "{help}");
    assert!(help.contains("[step.spawn]"), "{help}");
}

#[test]
fn a_wrong_script_is_refused_with_its_place() {
    let output = with_script("[[step]]\nline = { text = 'a' }\n[[step]]\nexplode = {}\n");
    assert_refused(&output, "TEAMSTER_FAKE_SCRIPT: the script is wrong: ");
    assert_refused(&output, "line 4, column 1");
    assert_refused(&output, "unknown variant `explode`");
    assert!(output.stdout.is_empty(), "no step is done");
}

#[test]
fn a_missing_script_is_refused() {
    assert_refused(
        &by_hand(&["-p", "prompt"]),
        "no script: set TEAMSTER_FAKE_SCRIPT",
    );
    assert_refused(&by_hand(&["--script"]), "--script needs a file");
    assert_refused(
        &with_script("@/no/such"),
        "cannot read the script /no/such: No such file",
    );
}

#[test]
fn a_step_that_cannot_be_done_is_reported() {
    let script = Script::new().line("before").play("/no/such").line("after");
    let output = run(&script);
    assert_refused(&output, "step 2: cannot play /no/such: No such file");
    assert_eq!(text(&output.stdout), "before\n");

    let killed = Script::new().ignore([Signal::Kill]);
    assert_refused(&run(&killed), "SIGKILL can be neither ignored nor answered");
    let spawn = Spawn::new(SpawnKind::Daemon).script(killed);
    assert_refused(&run(&Script::new().spawn(spawn)), "step 1: cannot spawn");
}

#[test]
fn a_life_has_a_limit() {
    let status = run(&Script::new().life_limit(1).forever()).status;
    assert_eq!(status.signal(), Some(14), "SIGALRM");
}
