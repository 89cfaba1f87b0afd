//! What CLIs print, in runs and in sessions, and what agents of the Agent Client Protocol send.

use teamster_core::ExecuteParams;
use teamster_core::provider::{Exit, Stop};
use teamster_providers::Providers;
use teamster_testkit::replay::replay_run;
use teamster_testkit::turns::play_turns;

use super::Target;
use crate::harness::{check_stream, hash, maybe_long, pieces};

/// Returns `run-ID` for each CLI and `session-ID` for each that has sessions.
pub fn targets() -> Vec<Target> {
    let providers = Providers::builtin();
    let sessions = providers.all_with_sessions().into_iter().map(|provider| {
        let id = provider.info().id;
        Target::new(format!("session-{id}"), &[&*seeds(id)], move |data| {
            let output = maybe_long(data);
            for turn in play_turns(&*provider, &output) {
                // A turn may begin with what came before it.
                check_stream(&turn, &output);
            }
        })
    });
    let only_sessions: Vec<_> = (providers.all_with_sessions().iter())
        .filter(|it| it.only_sessions())
        .map(|it| it.info().id)
        .collect();
    let runs = providers.all().into_iter();
    let runs =
        runs.filter(|it| !it.info().program.is_empty() && !only_sessions.contains(&it.info().id));
    let runs = runs.map(|provider| {
        let id = provider.info().id;
        Target::new(format!("run-{id}"), &[&*seeds(id)], move |data| {
            let output = maybe_long(data);
            let mut params = ExecuteParams::new("hi");
            params.include_native = true;
            let replay = replay_run(&*provider, &params, pieces(&output), exit(data));
            check_stream(&replay, &output);
        })
    });
    runs.chain(sessions).collect()
}

fn seeds(id: &str) -> String {
    format!("fixtures/{id}")
}

/// Returns an end of the process that depends on the data.
fn exit(data: &[u8]) -> Exit {
    let number = hash(data) >> 8;
    let failure = (number % 4 == 1).then_some(1);
    Exit {
        code: failure.or((number % 4 != 2).then_some(0)),
        stop: (number % 16 == 3).then_some(Stop::Aborted),
        ..Exit::default()
    }
}
