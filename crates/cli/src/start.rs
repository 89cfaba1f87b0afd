//! The start of runs and sessions that have processes of their own, here or on a server.

use std::io::{self, Write};
use std::time::Duration;

use anyhow::anyhow;
use teamster_api::{ProblemCode, RunHandle, RunService, ServiceError, Spec, either};
use teamster_workspace::give_up;
use tokio::runtime::Runtime;
use tokio::time::timeout;
use uuid::Uuid;

use crate::remote::{Machine, upload};
use crate::runtime::tokio_runtime;
use crate::signals::Source;
use crate::spec::Local;
use crate::{exit_code, hints};

/// Time limit for withdrawing an upload when this program is stopped.
const WITHDRAW_LIMIT: Duration = Duration::from_secs(3);

/// Starts a run or session, and prints its id.
pub(crate) fn detached(
    machine: &Machine,
    spec: impl Into<Spec>,
    local: &Local,
) -> anyhow::Result<u8> {
    let run = start(&tokio_runtime()?, machine, spec.into(), local)?;
    exit_code::of_printed(writeln!(io::stdout(), "{}", run.id()))
}

/// Starts a run or session, and prints its warnings.
pub(crate) fn start(
    runtime: &Runtime,
    machine: &Machine,
    mut spec: Spec,
    local: &Local,
) -> anyhow::Result<RunHandle> {
    let id = match &local.run_id {
        Some(id) => id.clone(),
        None => Uuid::now_v7().to_string(),
    };
    let start = async {
        if let Some(directory) = &local.upload {
            let workspace = upload(machine, &id, directory, local.output.quiet).await?;
            either!(&mut spec, spec => spec.workspace = Some(workspace));
        }
        RunHandle::start(machine.runs(), &*id, spec).await
    };
    let started = async {
        if machine.is_here() {
            return start.await;
        }
        let started = unless_stopped(machine, &id, start).await;
        if local.upload.is_some()
            && let Err(error) = &started
        {
            give_up(&machine.runs(), &id, error).await;
        }
        started
    };
    let run = runtime.block_on(started).map_err(|error| {
        if is_refusal(&error) {
            exit_code::refused(error)
        } else {
            hints::usage(error)
        }
    })?;
    let accepted = run.accepted();
    // Else a repeated request has found it.
    if accepted.existed && local.run_id.is_some() {
        let id = run.id();
        return Err(exit_code::refused(anyhow!(
            "a run `{id}` exists already: give every run an id of its own"
        )));
    }
    let warnings = if local.output.quiet {
        &accepted.important
    } else {
        &accepted.warnings
    };
    let warnings: Vec<_> = warnings.iter().map(|it| hints::warning(it)).collect();
    crate::report::warn(&warnings);
    Ok(run)
}

/// Waits for the start of a run on another machine. If a signal ends this program before, what was sent for the run is
/// withdrawn; a run that was started all the same is reported.
async fn unless_stopped(
    machine: &Machine,
    id: &str,
    start: impl Future<Output = Result<RunHandle, ServiceError>>,
) -> Result<RunHandle, ServiceError> {
    let mut signals = Source::new().map_err(|error| {
        let error = format!("cannot listen for signals: {error}");
        ServiceError::new(ProblemCode::Internal, error)
    })?;
    tokio::select! {
        started = start => started,
        () = signals.next() => {
            if let Some(report) = withdrawn(&*machine.runs(), id).await {
                crate::report::note(&report);
            }
            std::process::exit(exit_code::ABORTED.into());
        }
    }
}

/// Withdraws what was sent for a run. Returns a report if the run was or may have been started. What cannot be withdrawn is
/// removed after a day.
async fn withdrawn(runs: &dyn RunService, id: &str) -> Option<String> {
    let teamster = crate::global::typed();
    let next = format!("`{teamster} attach {id}` shows it, `{teamster} cancel {id}` stops it");
    let error = match timeout(WITHDRAW_LIMIT, runs.withdraw(id)).await {
        Ok(Ok(())) => return None,
        Ok(Err(error)) if error.code == Some(ProblemCode::RunExists) => {
            return Some(format!("the run was started and continues: {next}"));
        }
        Ok(Err(error)) if error.code == Some(ProblemCode::Unsupported) => return None,
        Ok(Err(error)) => error.message,
        Err(_) => "no answer".to_owned(),
    };
    Some(format!(
        "it is not known whether the run was started ({error}): {next}"
    ))
}

/// Returns `true` if the description was refused, so that the command has to be changed.
fn is_refusal(error: &ServiceError) -> bool {
    matches!(
        error.code,
        Some(
            ProblemCode::InvalidParams
                | ProblemCode::BypassNotAllowed
                | ProblemCode::CommandNotAllowed
                | ProblemCode::RunExists
                | ProblemCode::SessionInUse
                | ProblemCode::BodyTooLarge
        )
    )
}

#[cfg(test)]
mod tests {
    use teamster_api::RunSpec;
    use teamster_testkit::run_service::MemoryService;

    use super::*;

    #[tokio::test]
    async fn started_run_is_reported_when_the_program_is_stopped() {
        let runs = MemoryService::new(["mock"], |_| Vec::new());
        assert_eq!(withdrawn(&runs, "r").await, None);
        let spec = RunSpec::new("mock", "hi");
        runs.start("r", spec.into()).await.unwrap();
        let report = withdrawn(&runs, "r").await;
        assert_eq!(
            report.as_deref(),
            Some(
                "the run was started and continues: `teamster attach r` shows it, `teamster cancel r` stops it"
            )
        );
    }
}
