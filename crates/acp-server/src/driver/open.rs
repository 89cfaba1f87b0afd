//! The session of a thread: its description, and its start.

use std::sync::Arc;
use std::time::Duration;

use teamster_api::{ProblemCode, RunHandle, ServiceError, SessionSpec, Workspace};
use teamster_core::text::one_line;
use teamster_core::{AgentError, McpServer, McpTransport};
use tokio::time::{Instant, sleep};
use uuid::Uuid;

use super::{SentFolder, Shared, own, past};
use crate::Setup;

/// Time in which a session must be free again after the end of the thread's last process.
const FREE_LIMIT: Duration = Duration::from_secs(5);
const RETRY_INTERVAL: Duration = Duration::from_millis(50);

/// Checks that a session with this setup can begin, without starting a process.
pub(super) async fn check(shared: &Shared, setup: &Setup) -> Result<(), AgentError> {
    if let Some(folders) = &shared.folders {
        let checked = folders.check(&setup.cwd).await;
        checked.map_err(|error| shared.agent_error(error))?;
    }
    let spec = spec(shared, setup, &mut Vec::new());
    let checked = shared.runs.check(&spec.clone().into()).await;
    let checked = match checked {
        Err(error) => match without_servers(shared, &spec, &error) {
            Some((without, _)) => shared.runs.check(&without.into()).await,
            None => Err(error),
        },
        ok => ok,
    };
    checked.map_err(|error| shared.agent_error(error))
}

/// Opens the session of a thread, in the folder that was sent for it, if one was. With `resumed`, the thread's previous
/// agent session is resumed. What an agent does not take of what the editor sent is left out, and `notices` gets a line
/// for it.
pub(super) async fn open(
    shared: &Arc<Shared>,
    session_id: &str,
    setup: &Setup,
    sent: Option<&SentFolder>,
    resumed: bool,
    notices: &mut Vec<String>,
) -> Result<RunHandle, AgentError> {
    let earlier = past::thread(shared, session_id).await?;
    // A fallback may have taken over.
    let last = match &earlier {
        Some(thread) if resumed => thread.last_session(shared).await?,
        None if resumed => own::continued(shared, setup.agent.as_deref(), session_id).await,
        _ => None,
    };
    // Else an earlier prompt was refused before there was a session.
    let resumed = resumed && (earlier.is_some() || last.is_some());
    let mut setup = setup.clone();
    if let Some((provider, _)) = &last
        && setup.agent.as_ref() != Some(provider)
    {
        setup.agent = Some(provider.clone());
        // Models and efforts are those of another agent.
        setup.settings.model = model_of_fallback(&shared.session, provider);
        setup.settings.effort = None;
    }
    let mut spec = spec(shared, &setup, notices);
    // A later session works in what was sent for the first one.
    spec.workspace = match sent.filter(|_| earlier.is_none()) {
        Some(sent) => Some(sent.workspace.clone()),
        None => (shared.folders.as_ref()).map(|_| Workspace::Continued {}),
    };
    // The thread's first log has the thread's id.
    let mut id = session_id.to_owned();
    if earlier.is_some() {
        spec.continues = Some(id);
        id = Uuid::now_v7().to_string();
    }
    if resumed {
        spec.session_key = None;
        spec.session_id = last.map(|(_, session)| session);
        // Another agent does not know the conversation.
        if spec.session_id.is_some() {
            spec.fallback.clear();
        }
    }
    let until = Instant::now() + FREE_LIMIT;
    let mut left_out = None;
    loop {
        match RunHandle::start(shared.runs.clone(), &*id, spec.clone()).await {
            Ok(run) => {
                notices.extend(left_out);
                notices.extend_from_slice(&run.accepted().warnings);
                return Ok(run);
            }
            // The process before is about to end.
            Err(error)
                if resumed
                    && error.code == Some(ProblemCode::SessionInUse)
                    && Instant::now() < until =>
            {
                sleep(RETRY_INTERVAL).await;
            }
            Err(error) => match without_servers(shared, &spec, &error) {
                // Once: the error is about something else if it comes again.
                Some((without, notice)) if left_out.is_none() => {
                    (spec, left_out) = (without, Some(notice));
                }
                _ => return Err(shared.agent_error(error)),
            },
        }
    }
}

/// Returns the session with this setup, without its place in a thread.
pub(super) fn spec(shared: &Shared, setup: &Setup, notices: &mut Vec<String>) -> SessionSpec {
    let mut spec = shared.session.clone();
    spec.provider = setup.agent.clone().unwrap_or_default();
    spec.model.clone_from(&setup.settings.model);
    spec.effort.clone_from(&setup.settings.effort);
    spec.permission = setup.settings.mode;
    // One that goes along is not there by its path.
    spec.working_directory = shared.folders.is_none().then(|| setup.cwd.clone());
    let trusted = &mut spec.trusted;
    match &shared.refused_folders {
        Some(why) if !setup.add_dirs.is_empty() => {
            let folders = setup.add_dirs.iter().map(|it| it.display().to_string());
            let folders = folders.collect::<Vec<_>>().join(", ");
            notices.push(format!(
                "additional folders are left out ({folders}): {why}"
            ));
        }
        Some(_) => {}
        None => trusted.add_dirs.extend(setup.add_dirs.iter().cloned()),
    }
    let is_command = |server: &McpServer| matches!(server.transport, McpTransport::Stdio { .. });
    let is_elsewhere = shared.refused_folders.is_some();
    let (left_out, servers): (Vec<_>, Vec<_>) =
        (setup.mcp_servers.iter()).partition(|server| is_elsewhere && is_command(server));
    if !left_out.is_empty() {
        let names: Vec<_> = left_out.iter().map(|it| &*it.name).collect();
        notices.push(format!(
            "MCP servers of the editor are left out ({}): they are programs of this machine",
            one_line(&names.join(", "))
        ));
    }
    for server in servers {
        // The editor's servers override those of the caller.
        trusted
            .mcp_servers
            .retain(|known| known.name != server.name);
        trusted.mcp_servers.push(server.clone());
    }
    spec
}

/// Returns the spec without the editor's MCP servers and the notice about that, if the service is one of another machine:
/// its owner decides whether they may go along.
fn without_servers(
    shared: &Shared,
    spec: &SessionSpec,
    error: &ServiceError,
) -> Option<(SessionSpec, String)> {
    let own = &shared.session.trusted.mcp_servers;
    if shared.refused_folders.is_none()
        || spec.trusted.mcp_servers == *own
        || error.code != Some(ProblemCode::InvalidParams)
    {
        return None;
    }
    let sent = spec.trusted.mcp_servers.iter();
    let names: Vec<_> = sent
        .filter(|it| !own.contains(it))
        .map(|it| &*it.name)
        .collect();
    let notice = format!(
        "MCP servers of the editor are left out ({}): {}",
        one_line(&names.join(", ")),
        shared.agent_error(error.clone()).message
    );
    let mut spec = spec.clone();
    spec.trusted.mcp_servers.clone_from(own);
    Some((spec, notice))
}

/// Returns the model that the session's fallbacks name for this agent.
fn model_of_fallback(session: &SessionSpec, agent: &str) -> Option<String> {
    let mut fallbacks = session.fallback.iter();
    fallbacks.find_map(|fallback| match fallback.strip_prefix(agent)? {
        "" => Some(None),
        model => model.strip_prefix(':').map(|model| Some(model.to_owned())),
    })?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fallback_that_took_over_has_its_own_model() {
        let mut session = SessionSpec::new("claude");
        session.fallback = vec!["codex-x:a".into(), "codex:gpt:mini".into(), "pi".into()];
        assert_eq!(
            model_of_fallback(&session, "codex").as_deref(),
            Some("gpt:mini")
        );
        assert_eq!(model_of_fallback(&session, "pi"), None);
        assert_eq!(model_of_fallback(&session, "cod"), None);
    }
}
