//! Very many runs of one server: what it keeps for a run goes with it.

use teamster_testkit::soak::Soak;

use super::Served;
use crate::cli::Claude;

#[test]
fn many_runs_of_a_server_leave_nothing() {
    let claude = Claude::plays("text", 0);
    let served = Served::of(&claude, &[]);
    let mut soak = Soak::new("runs of a server", 10, served.running.child.id()).room_kib(8 * 1024);
    for run in 1..=soak.count() {
        let ended = served.ended(&served.detach());
        let status = &ended["result"]["status"];
        assert_eq!(status, "completed", "run {run}: {ended}");
        soak.done(run);
    }
    soak.end();
    served.end();
}
