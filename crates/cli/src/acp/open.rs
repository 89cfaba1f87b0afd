//! Start of a thread's session, as in `teamster chat --detach`.

use std::sync::Arc;

use anyhow::anyhow;
use teamster::orchestrator::{Orchestrator, RunObserver};
use teamster::{AgentError, ErrorCode, ErrorKind, PermissionPolicy, SessionCapabilities};
use teamster_acp_server::Setup;
use teamster_api::{RunInfo, RunKind};
use teamster_runner::{DetachedSession, LogLimits, Requests, SessionPlan};
use uuid::Uuid;

use super::editor_input::EditorInput;
use super::thread::Live;
use super::{Shared, catalog, past};
use crate::run::request_policy::RequestPolicy;
use crate::turns::{self, PlanError};
use crate::{detached, params, runner};

/// Opens the session of a thread. With `resumed`, the thread's previous agent session is resumed. What an agent does
/// not take of what the editor sent is left out, and `notices` gets a line for it.
pub(super) async fn open(
    shared: &Arc<Shared>,
    session_id: &str,
    setup: &Setup,
    resumed: bool,
    notices: &mut Vec<String>,
) -> Result<Live, AgentError> {
    let earlier = past::thread(&shared.runs, session_id)?;
    // A fallback may have taken over.
    let last = earlier
        .as_ref()
        .and_then(past::Thread::last_session)
        .filter(|_| resumed);
    let mut setup = setup.clone();
    if let Some((provider, _)) = &last
        && setup.agent.as_ref() != Some(provider)
    {
        setup.agent = Some(provider.clone());
        // Models and efforts are those of another agent.
        let mut fallbacks = shared.served.fallbacks();
        let fallback = fallbacks.find(|it| it.provider == *provider);
        setup.settings.model = fallback.and_then(|it| it.model);
        setup.settings.effort = None;
    }
    catalog::ready(&shared.served, &setup)?;
    let agent = setup.agent.as_deref().unwrap_or_default();
    let invalid =
        |error: anyhow::Error| AgentError::invalid_params(crate::words::error_chain(&error));
    let provider = (crate::providers().get(agent))
        .ok_or_else(|| AgentError::invalid_params(format!("there is no agent `{agent}`")))?;
    let info = provider.info();

    let mut spec = shared.served.session(agent);
    spec.model.clone_from(&setup.settings.model);
    spec.effort.clone_from(&setup.settings.effort);
    spec.permission = setup.settings.mode;
    spec.working_directory = Some(setup.cwd.clone());
    let trusted = &mut spec.trusted;
    trusted.add_dirs.extend(setup.add_dirs.iter().cloned());
    for server in &setup.mcp_servers {
        // The editor's servers override those of the arguments.
        trusted
            .mcp_servers
            .retain(|known| known.name != server.name);
        trusted.mcp_servers.push(server.clone());
    }
    // A prompt that begins with `/` is a command of the agent, as in its own terminal, where it has such commands.
    trusted.slash_commands = true;
    let mut params = params::of_session(&spec)?;
    let mut lock = None;
    if resumed {
        params.session_id = last.map(|(_, session)| session);
        // Another agent does not know the conversation.
        if params.session_id.is_some() {
            spec.fallback.clear();
        }
    } else {
        let keyed = shared
            .history
            .session(shared.open_history.as_ref(), info.id, &setup.cwd)
            .await?;
        params.session_id = keyed.session_id;
        lock = keyed.lock;
    }

    // The thread's first log has the thread's id.
    let id = match earlier {
        None => session_id.to_owned(),
        Some(_) => Uuid::now_v7().to_string(),
    };
    let mut about = RunInfo::new(&*id, info.id);
    about.kind = RunKind::Session;
    about.model.clone_from(&setup.settings.model);
    about.directory = Some(setup.cwd.clone());
    about.grants = Some(turns::grants(&spec).map_err(invalid)?);
    about.continues = (id != session_id).then(|| session_id.to_owned());

    let (requests, request_events) = Requests::of(&id);
    let mut writer = detached::session_locks(Some(&id)).map(|locks| locks.writer(info.id));
    if let Some(writer) = &mut writer {
        writer.begin(&params)?;
    }
    let policy = RequestPolicy::new(spec.ask_timeout_ms.map(params::wait), requests.clone());
    let taken = EditorInput::new(&setup);
    let answers = |can: &SessionCapabilities| match &policy {
        Some(policy) if can.permissions => Ok(policy.policy(can)),
        _ => Ok(PermissionPolicy::Deny),
    };
    let planned = turns::plan(&id, &spec, info, &params, answers, |info, can, params| {
        taken.fit(info, can, params)
    });
    notices.extend(taken.left_out());
    let mut runs = planned.map_err(|error| match error {
        PlanError::Agent(error) => error,
        PlanError::Usage(error) => invalid(error),
    })?;
    runs.writer = writer;
    runs.observer = (shared.open_history.as_ref()).map(|open_history| {
        let mut recorder = open_history.recorder.clone().session_locks(lock);
        if let Some(session) = &params.session_id {
            recorder = recorder.resumed_session(info.id, session.as_str());
        }
        Arc::new(recorder) as Arc<dyn RunObserver>
    });

    let failed = |error: anyhow::Error| {
        AgentError::new(
            ErrorCode::Io,
            ErrorKind::Internal,
            crate::words::error_chain(&error),
        )
    };
    let kept = detached::kept(spec).map_err(invalid)?;
    let accepted = (shared.runs).accept_spec(&about, &kept, LogLimits::default());
    let run = accepted.map_err(|error| failed(error.into()))?;
    let folder = run.folder.clone();
    let orchestrator = Orchestrator::new(crate::estimates::orchestrator_config())
        .map_err(|error| failed(anyhow!("{error}")))?;
    let session = DetachedSession::new(
        run,
        orchestrator,
        SessionPlan::new(runs),
        requests.clone(),
        request_events,
    );
    let control = session.control();
    let work = tokio::spawn(async move {
        runner::report(&session.work().await);
    });
    Ok(Live::new(control, requests, folder, &setup, work))
}
