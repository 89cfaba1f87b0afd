//! `teamster acp`, which serves an agent to an editor by the Agent Client Protocol on stdin and stdout.
//!
//! `teamster_acp_server` implements the protocol. A thread of the editor is a session as in `teamster chat --detach`: on
//! this machine, its runner is this process; with `--remote`, the server starts it, and with `--fleet` a worker.

pub(crate) mod args;
mod folders;
mod own;
mod spec;
mod start_over;

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail};
use teamster_acp_server::{AskOffers, Catalog, Disconnect, EditorServer, LogOut};
use teamster_api::{ServiceError, SessionSpec};
use teamster_core::Offers;
use teamster_core::time::millis;
use teamster_host::{Guard, LocalMachine, LocalRuns, SessionTasks};
use tokio::runtime::Runtime;

use crate::exit_code::{self, refused};
use crate::global::host;
use crate::hints;
use crate::remote::{self, Machine};
use crate::report;
use crate::runtime::tokio_runtime;
use crate::signals::Source;
use crate::spec::Local;
use args::AcpArgs;
use folders::Repositories;
use own::OfFiles;

/// Time without a turn after which a session on a server ends. It is longer than a pause, and ends the sessions of an
/// editor that is gone.
const REMOTE_IDLE: Duration = Duration::from_hours(1);

/// Input of an editor that a server does not take.
const NOT_OVER_HTTP: &str = "a server takes none from elsewhere; set them up for the agent on the server's machine, or \
                             run the editor there";
/// Input of an editor that a fleet does not take.
const NOT_IN_FLEET: &str =
    "a fleet takes none from elsewhere; set them up for the agent on the fleet's machines";

/// Serves the editor until it disconnects, and returns the exit code.
pub(crate) fn main(args: AcpArgs, machine: &Machine) -> anyhow::Result<u8> {
    let runtime = tokio_runtime()?;
    let prepared = spec::of_acp(args);
    let code = prepared.map_err(refused).and_then(|(session, local)| {
        if machine.is_here() {
            local.check_here().map_err(refused)?;
            here(&runtime, session)
        } else {
            there(&runtime, machine, session, &local)
        }
    });
    // A thread may still be blocked on stdin: do not wait for it.
    runtime.shutdown_background();
    code
}

/// Serves sessions of this machine.
fn here(runtime: &Runtime, mut session: SessionSpec) -> anyhow::Result<u8> {
    if !session.provider.is_empty() {
        host().check_session(&session).map_err(refused)?;
    }
    let store = session.trusted.store.clone();
    let key = session.session_key.clone();
    let history = runtime.block_on(host().history(store.as_deref(), key.as_deref()));
    let history = Arc::new(history.map_err(refused)?);
    // The editor may show what is printed: only what is important.
    report::warn_of(&history.take_warnings(), true);
    let machine = LocalMachine::new(host())
        .without_versions(Some(&*session.provider).filter(|agent| !agent.is_empty()))
        .with_store(history.store().cloned());
    let tasks =
        SessionTasks::new(history, start_over::of_session).requires(session.trusted.clone());
    let runs = LocalRuns::new(host())
        .map_err(refused)?
        .with_sessions_here(tasks.clone());
    // An editor may show a request for as long as it likes.
    session.ask_timeout_ms.get_or_insert(u64::MAX);
    // A prompt that begins with `/` is a command of the agent, as in its own terminal, where it has such commands.
    session.trusted.slash_commands = true;
    let agent = host().agent(&session.provider);
    // The command would remove the agent's own login, not that of an account.
    let has_logout =
        session.accounts.is_empty() && agent.is_ok_and(|info| !info.logout_args.is_empty());
    // Those of an account are in another home, and a session key has a session of its own.
    let has_own = session.accounts.is_empty() && session.session_key.is_none();
    let guard = Guard::start(host(), None);
    teamster_host::adopt_orphans();
    let served = runtime.block_on(async {
        let catalog = Catalog::of_machine(&machine, &session).await?;
        let mut server =
            EditorServer::new(Arc::new(runs), catalog, session).with_offers(Arc::new(ByCli));
        if has_own {
            server = server.with_cli_files(Arc::new(OfFiles));
        }
        if has_logout {
            server = server.with_log_out(Arc::new(ByCli));
        }
        let served = serve(server).await;
        report::warn_of(&tasks.end().await, true);
        served
    });
    teamster_host::end_orphans(guard.as_ref().map(Guard::pid));
    served
}

/// Asks the agents' CLIs, and logs out by them.
struct ByCli;

#[async_trait::async_trait]
impl AskOffers for ByCli {
    async fn ask(&self, session: SessionSpec) -> Option<Offers> {
        // An agent that cannot be started reports why after the first prompt.
        host().offers(&session).await.ok().flatten()
    }
}

#[async_trait::async_trait]
impl LogOut for ByCli {
    async fn log_out(&self, agent: &str) -> Result<(), ServiceError> {
        Ok(teamster_host::log_out(host(), agent).await?)
    }
}

/// Serves sessions of a server or a fleet.
fn there(
    runtime: &Runtime,
    machine: &Machine,
    mut session: SessionSpec,
    local: &Local,
) -> anyhow::Result<u8> {
    remote::prepare_session(&mut session, local, machine.flag()).map_err(refused)?;
    session.end_idle_ms = Some(millis(REMOTE_IDLE));
    let agents = machine.agents();
    if machine.is_fleet() && runtime.block_on(agents.agents())?.is_empty() {
        bail!("no worker of the fleet is there: start `teamster worker` on a machine");
    }
    let catalog = runtime.block_on(Catalog::of_machine(&*agents, &session));
    let catalog = catalog.map_err(exit_code::of_service)?;
    let mut server = EditorServer::new(machine.runs(), catalog, session)
        .of_other_machine(if machine.is_fleet() {
            NOT_IN_FLEET
        } else {
            NOT_OVER_HTTP
        })
        .with_hints(hints::of_problem);
    if let Some(directory) = &local.upload {
        server = server.with_folders(Arc::new(Repositories::new(machine, directory)));
    }
    runtime.block_on(serve(server))
}

async fn serve(server: EditorServer) -> anyhow::Result<u8> {
    let mut signals = Source::new().context("cannot listen for signals")?;
    let (stdin, stdout) = (tokio::io::stdin(), tokio::io::stdout());
    Ok(match server.serve(stdin, stdout, signals.next()).await {
        Disconnect::OutputClosed => exit_code::ABORTED,
        _ => exit_code::SUCCESS,
    })
}
