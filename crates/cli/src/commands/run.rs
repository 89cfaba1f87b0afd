//! `teamster run`.

pub(crate) mod args;
pub(crate) mod prompt;
mod remote;
mod spec;

use teamster::{CliInfo, ErrorKind};
use teamster_api::RunSpec;
use teamster_host::{HostedRun, PreparedRun, RunOptions, write_output};
use uuid::Uuid;

use crate::exit_code::refused;
use crate::remote::Machine;
use crate::render::{TextIsFinal, resume_arguments};
use crate::runtime::tokio_runtime;
use crate::spec::Local;
use crate::{drive, start};
use args::RunArgs;

/// Runs the agent and returns the exit code.
pub(crate) fn main(args: RunArgs, machine: &Machine) -> anyhow::Result<u8> {
    let (spec, local) = spec::of_run(args).map_err(refused)?;
    spec.check().map_err(refused)?;
    if !machine.is_here() {
        return remote::main(spec, &local, machine);
    }
    local.check_here().map_err(refused)?;
    if local.detach {
        return start::detached(machine, spec, &local);
    }
    let id = local.run_id.clone();
    let id = id.unwrap_or_else(|| Uuid::now_v7().to_string());
    let mut options = RunOptions::new(id);
    options.is_chosen = local.run_id.is_some();
    options.native = local.output.native;
    options.ends_process = true;
    let starting = drive::starting(local.output, &spec.provider);
    let runtime = tokio_runtime()?;
    let prepared = runtime.block_on(crate::global::host().prepare_run(spec, options));
    drop(starting);
    let mut prepared = prepared.map_err(refused)?;
    crate::report::warn_of(&prepared.common.warnings, local.output.quiet);
    prepared.request.closing = prepared.closing(None);
    attached(runtime, prepared, &local)
}

fn attached(
    runtime: tokio::runtime::Runtime,
    prepared: PreparedRun,
    local: &Local,
) -> anyhow::Result<u8> {
    let PreparedRun {
        common,
        spec,
        orchestrator,
        request,
        history,
        output,
        recording,
        ..
    } = prepared;
    let info = common.agent;
    let mut view = drive::View::new(info, local.output);
    (view.directory, view.mcp) = (common.directory.clone(), common.mcp);
    view.permission = Some(spec.permission);
    view.allowed_tools.clone_from(&spec.allowed_tools);
    view.resume = resume(&spec).filter(|_| drive::keeps_sessions(&spec.trusted));
    let keep = spec.trusted.keep_background;
    let guarded = common.directory.as_deref();
    let sink = drive::sink(local.output, view, final_text(&spec, info));
    let start = async || {
        let kept = history.clone();
        Ok(if local.lifecycle {
            HostedRun::start(&orchestrator, request, kept)
        } else {
            HostedRun::start_log(&orchestrator, request, kept)
        })
    };
    let shown = drive::run(runtime, sink, guarded, keep, start);
    if let Some(recording) = recording
        && let Ok(runtime) = tokio_runtime()
    {
        runtime.block_on(recording.complete(info));
    }
    let (error, result) = match &shown {
        Ok(shown) => (shown.error.as_deref(), shown.result.as_deref()),
        Err(_) => (None, None),
    };
    let written = write_output(crate::global::host(), output, result);
    if let Some(key) = (spec.session_key.as_ref())
        .filter(|_| error.is_some_and(|error| error.kind == ErrorKind::SessionNotFound))
    {
        crate::report::warn(&[format!(
            "the session of `{key}` no longer exists and was forgotten: run the same command to start a new one"
        )]);
    }
    crate::report::warn_of(&history.take_warnings(), local.output.quiet);
    Ok(shown?.code_if(written))
}

/// Returns the point at which the run's text is final.
pub(crate) fn final_text(spec: &RunSpec, info: &CliInfo) -> TextIsFinal {
    let provider = crate::global::providers().get(info.id);
    if spec.allows_several_attempts() {
        TextIsFinal::WithRun
    } else if provider.is_some_and(|provider| provider.capabilities().final_text) {
        TextIsFinal::AtOnce
    } else {
        TextIsFinal::WithMessage
    }
}

/// Returns the arguments of the command that resumes the run's session; `None` if the session key does so.
pub(crate) fn resume(spec: &RunSpec) -> Option<String> {
    let directory = spec.working_directory.as_deref();
    (spec.session_key.is_none()).then(|| resume_arguments(directory, &spec.accounts))
}
