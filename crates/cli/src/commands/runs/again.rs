//! `teamster runs again`.

use std::io::{self, Write};

use anyhow::bail;
use teamster_api::{RunHandle, Spec, either};
use uuid::Uuid;

use super::args::RunsAgainArgs;
use crate::exit_code::{self, refused};
use crate::remote::Machine;
use crate::{hints, report, words};

/// Starts a run with the spec that is kept of another one, and prints its id.
pub(super) async fn main(args: &RunsAgainArgs, machine: &Machine) -> anyhow::Result<u8> {
    let runs = machine.runs();
    let id = runs.resolve(&args.id).await?.run_id;
    let mut kept = runs.spec(&id).await?;
    if !kept.withheld.is_empty() {
        let id = words::one_line(&id);
        let names = words::one_line(&kept.withheld.join(", "));
        bail!(
            "not all that run {id} was started with is kept, so it cannot be started again by its id: give {names} to \
             `{} run`",
            crate::global::typed()
        );
    }
    renew(&mut kept.what);
    let started = RunHandle::start(runs, Uuid::now_v7().to_string(), kept.what).await;
    let run = started.map_err(refused)?;
    let warnings: Vec<_> = run
        .accepted()
        .warnings
        .iter()
        .map(|it| hints::warning(it))
        .collect();
    report::warn(&warnings);
    exit_code::of_printed(writeln!(io::stdout(), "{}", run.id()))
}

/// Takes out what continues another conversation: the new run begins one of its own, unless a key leads to one.
fn renew(spec: &mut Spec) {
    if let Spec::Session(spec) = spec {
        spec.continues = None;
    }
    either!(spec, spec => {
        spec.session_id = None;
        spec.fork = false;
        // The id is that of the first run's session.
        spec.trusted.new_session_id = None;
    });
}

#[cfg(test)]
mod tests {
    use teamster_api::{RunSpec, SessionSpec};

    use super::*;

    #[test]
    fn a_run_again_continues_no_conversation_but_that_of_its_key() {
        let mut run = RunSpec::new("claude", "p");
        run.session_key = Some("slack:U42".to_owned());
        let mut session = SessionSpec::new("claude");
        session.session_key = Some("slack:U42".to_owned());
        let expected = [Spec::from(run.clone()), Spec::from(session.clone())];
        run.session_id = Some("s".to_owned());
        run.fork = true;
        run.trusted.new_session_id = Some("n".to_owned());
        session.session_id = Some("s".to_owned());
        session.fork = true;
        session.continues = Some("r".to_owned());
        session.trusted.new_session_id = Some("n".to_owned());
        let mut renewed = [Spec::from(run), Spec::from(session)];
        renewed.iter_mut().for_each(renew);
        assert_eq!(renewed, expected);
    }
}
