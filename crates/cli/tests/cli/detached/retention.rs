//! Retention of logs.

use std::fs::File;
use std::time::{Duration, SystemTime};

use teamster_testkit::proc::wait_until;

use super::{about, detach, log_file, with_state};
use crate::cli::{Claude, LIMIT, run};

/// Makes the log look as if its run had ended so many days ago.
fn age(claude: &Claude, id: &str, days: u64) {
    let log = File::options().write(true).open(log_file(claude, id));
    let then = SystemTime::now() - Duration::from_secs(days * 24 * 3600);
    log.unwrap().set_modified(then).unwrap();
}

#[test]
fn the_end_of_a_run_removes_logs_that_are_too_old_or_too_much() {
    let claude = Claude::plays("text", 0);
    let ended = || {
        let id = detach(&claude, ["x"]);
        about(&claude, ["wait", &id]).ok();
        id
    };
    let (old, older) = (ended(), ended());
    age(&claude, &old, 89);
    age(&claude, &older, 91);
    let is_gone = |id: &str| wait_until(LIMIT, || !log_file(&claude, id).exists());
    ended();
    assert!(is_gone(&older));
    assert!(log_file(&claude, &old).exists());

    let mut command = claude.run(["x"]);
    let command = with_state(&mut command, &claude).args(["--detach", "--ask-timeout", "0"]);
    run(command.env("TEAMSTER_LOGS_SIZE", "1K")).ok();
    assert!(is_gone(&old));
}

#[test]
fn a_wrong_setting_is_reported_before_anything_starts() {
    let claude = Claude::plays("text", 0);
    for (name, value, message) in [
        ("TEAMSTER_LOGS_AGE", "soon", "expected a time"),
        (
            "TEAMSTER_LOGS_SIZE",
            "much",
            "expected a size such as 500M or 2G; `off` keeps all",
        ),
    ] {
        let mut command = claude.run(["x"]);
        let ended = run(with_state(&mut command, &claude)
            .arg("--detach")
            .env(name, value));
        assert_eq!((ended.code, &*ended.stdout), (Some(2), ""));
        let start = format!("error: {name}: {message}");
        ended.stderr_begins(&start);
    }
}
