//! Start of a thread's session, as in `teamster chat --detach`.

use std::path::Path;
use std::sync::Arc;

use teamster::AgentError;
use teamster_acp_server::Setup;
use teamster_host::{Answers, SessionOptions};
use uuid::Uuid;

use super::editor_input::EditorInput;
use super::thread::Live;
use super::{Shared, catalog, past};
use crate::words;

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
    // The thread's first log has the thread's id.
    let id = match earlier {
        None => session_id.to_owned(),
        Some(_) => Uuid::now_v7().to_string(),
    };
    let mut options = SessionOptions::new(&*id, Answers::clients(false));
    options.is_detached = true;
    options.history = Some(shared.history.clone());
    if resumed {
        spec.session_id = last.map(|(_, session)| session);
        // Another agent does not know the conversation.
        if spec.session_id.is_some() {
            spec.fallback.clear();
        }
    } else {
        options.conversation = Some(start_over(shared, agent, &setup.cwd));
    }
    let taken = EditorInput::new(&setup);
    let fitted = taken.clone();
    options.fit = Some(Box::new(move |info, can, params| {
        fitted.fit(info, can, params)
    }));
    let prepared = crate::global::host().prepare_session(spec, options).await;
    notices.extend(taken.left_out());
    let mut prepared = prepared?;
    if id != session_id {
        prepared.continues(session_id);
    }

    let run = prepared.accept(&shared.runs)?;
    let folder = run.folder.clone();
    let requests = prepared.requests().clone();
    let session = prepared.detached(run, None);
    let control = session.control();
    let work = tokio::spawn(async move {
        if let Err(error) = session.work().await.log {
            crate::report::fail(&anyhow::anyhow!(
                "the log of this run is not complete: {error}"
            ));
        }
    });
    Ok(Live::new(control, requests, folder, &setup, work))
}

/// Returns how the user starts the conversation of the key over, with the command for a terminal.
fn start_over(shared: &Shared, agent: &str, directory: &Path) -> String {
    let key = shared.served.session_key.as_deref().unwrap_or_default();
    let command = new_conversation(key, shared.served.store(), agent, directory);
    format!("start the conversation over with `{command}`")
}

/// Returns the command that starts a conversation over.
fn new_conversation(key: &str, store: Option<&str>, agent: &str, directory: &Path) -> String {
    let directory = directory.to_string_lossy();
    let words = ["teamster", "run", agent, "Hello", "--cwd", &directory];
    let words = words.into_iter().chain(["--session-key", key, "--new"]);
    // A URL may have a password. It is in a variable, not in an argument.
    let file = store.filter(|location| !location.contains("://"));
    let store = file.into_iter().flat_map(|file| ["--store", file]);
    let words = words.chain(store).map(words::shell_word);
    words.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use teamster::store::Conversation;

    use super::*;
    use crate::command_line::{Cli, Command};

    #[test]
    fn the_command_that_starts_a_conversation_over_is_complete() {
        let store = Some("/my files/store.db");
        let command = new_conversation("slack:it's me", store, "claude", Path::new("/my work"));
        let words = shell_words::split(&command).unwrap();
        let Command::Run(args) = Cli::try_parse_from(words).unwrap().command else {
            panic!("{command}");
        };
        assert_eq!(
            (&*args.provider, args.prompt.as_deref()),
            ("claude", Some("Hello"))
        );
        assert_eq!(args.process.cwd.as_deref(), Some(Path::new("/my work")));
        let key: Conversation = args.session.session_key.unwrap().parse().unwrap();
        assert_eq!(key, "slack:it's me".parse().unwrap());
        assert!(args.session.new);
        assert_eq!(args.store.url.as_deref(), Some("/my files/store.db"));
    }
}
