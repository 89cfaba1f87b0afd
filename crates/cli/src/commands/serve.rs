//! `teamster serve`: serves the HTTP API of `teamster-server` for the user's runs.

pub(crate) mod args;

use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, anyhow, bail};
use teamster::agent_loop::supervisor::FILE_NAME;
use teamster_api::{MachineService, RunService};
use teamster_host::limits::raise_descriptors;
use teamster_host::{LocalMachine, LocalRuns};
use teamster_server::{Bound, ListenAddress, OwnerToken, Server, ServerConfig, Tokens, Triggers};

use crate::remote::Machine;
use crate::report::note;
use crate::runtime::server_runtime;
use crate::signals::Source;
use crate::{exit_code, server_files};
use args::ServeArgs;

/// The requested limit of file descriptors: each watcher needs four.
const DESCRIPTORS: u64 = 65_536;

/// Serves until a signal and returns the exit code.
pub(crate) fn main(args: &ServeArgs, machine: &Machine) -> anyhow::Result<u8> {
    let (config, runs, machine) = prepare(args, machine).map_err(exit_code::misuse)?;
    let owner = config.owner.clone();
    let server = Server::new(config, runs, machine);
    raise_descriptors(DESCRIPTORS);
    let runtime = server_runtime()?;
    if args.stdio {
        let served = runtime.block_on(serve_stdio(&server));
        // Neither a disk that hangs nor the thread that reads stdin delays the end.
        runtime.shutdown_background();
        return served;
    }
    let served = runtime.block_on(async {
        // Before the addresses are printed, so that a signal after that ends the server cleanly.
        let mut signals = Source::new().context("cannot listen for signals")?;
        let mut bound = Vec::new();
        for address in &args.listen {
            bound.push(server.bind(address).await?);
        }
        if announce(&bound, owner.as_ref()).is_err() {
            return Ok(exit_code::ABORTED);
        }
        let serving: Vec<_> = (bound.into_iter())
            .map(|bound| tokio::spawn(bound.serve()))
            .collect();
        signals.next().await;
        server.end();
        let served = async {
            for serving in serving {
                // Ignore a panic of one listener, so that the others end cleanly.
                let _ = serving.await;
            }
        };
        tokio::select! {
            () = served => {}
            () = signals.next() => {}
        }
        Ok(exit_code::SUCCESS)
    });
    // A disk that hangs does not delay the end.
    runtime.shutdown_background();
    served
}

/// Serves the client at stdin and stdout until it is gone, or a signal, and returns the exit code.
async fn serve_stdio(server: &Server) -> anyhow::Result<u8> {
    let mut signals = Source::new().context("cannot listen for signals")?;
    let client = tokio::io::join(tokio::io::stdin(), tokio::io::stdout());
    let mut serving = std::pin::pin!(server.serve_stream(client));
    let served = tokio::select! {
        served = &mut serving => served,
        () = signals.next() => {
            server.end();
            tokio::select! {
                served = serving => served,
                () = signals.next() => Ok(()),
            }
        }
    };
    served.context("cannot write to stdout")?;
    Ok(exit_code::SUCCESS)
}

/// Front and services of a server.
type Prepared = (ServerConfig, Arc<dyn RunService>, Arc<dyn MachineService>);

/// Creates the configuration and the services from the arguments. Every error is a usage error.
fn prepare(args: &ServeArgs, machine: &Machine) -> anyhow::Result<Prepared> {
    if args.stdio && (io::stdin().is_terminal() || io::stdout().is_terminal()) {
        bail!(
            "--stdio serves a program: on another machine, `teamster --remote ssh:HOST runs list` starts it by itself"
        );
    }
    let remote = args.listen.iter().find(|address| !address.is_local());
    if let Some(ListenAddress::Tcp(address)) = remote
        && !args.insecure_http
    {
        bail!(
            "{address} can be reached from other machines without encryption: put a TLS proxy in front of \
            127.0.0.1, or add --insecure-http --token-file FILE"
        );
    }
    let folder = server_files::folder()?;
    let owner = match &args.token_file {
        Some(file) => Some(OwnerToken::read(file)?),
        None if args.stdio => None,
        None => Some(OwnerToken::read_or_make(&folder.join(server_files::TOKEN))?),
    };
    let mut config = ServerConfig::new(Tokens::at(folder));
    config.owner = owner;
    config.allow_callbacks = !args.stdio;
    config.hosts.clone_from(&args.allow_host);
    config.allow_bypass = args.allow_bypass;
    config.allow_commands = args.allow_commands;
    config.allow_mcp = args.allow_mcp;
    config.allow_push = args.allow_push;
    config.allow_env.clone_from(&args.allow_env);
    config.allow_containers.clone_from(&args.allow_in);
    config.callback.clone_from(&args.callback);
    config.allow_private_callbacks = args.allow_private_callbacks;
    config.web_push = args.web_push;
    #[cfg(feature = "otlp")]
    if !args.stdio {
        config.figures = crate::telemetry::figures();
    }
    config.on_warning = |text| crate::report::warn(&[text.to_owned()]);
    if !machine.is_here() {
        if args.agents.is_some() {
            bail!(
                "--agents: a fleet has no agents in loops, they are on one machine each: omit it"
            );
        }
        return Ok((config, machine.runs(), machine.agents()));
    }
    let agents = match &args.agents {
        Some(file) if !file.is_file() => {
            return Err(anyhow!("--agents: no such file: {}", file.display()));
        }
        Some(file) => Some(file.clone()),
        None => Some(PathBuf::from(FILE_NAME)).filter(|file| file.is_file()),
    };
    if let Some(file) = &agents {
        config.triggers = Triggers::of_file(file).map_err(|problem| anyhow!(problem))?;
    }
    let host = crate::global::host();
    let machine = LocalMachine::new(host).with_loops(agents);
    let runs = LocalRuns::new(host)?;
    Ok((config, Arc::new(runs), Arc::new(machine)))
}

/// Prints the addresses to stdout, for scripts, and login instructions to stderr if it is a terminal.
fn announce(bound: &[Bound], owner: Option<&OwnerToken>) -> io::Result<()> {
    let mut out = io::stdout().lock();
    for bound in bound {
        writeln!(out, "{}", bound.url())?;
    }
    out.flush()?;
    let Some(owner) = owner.filter(|_| io::stderr().is_terminal()) else {
        return Ok(());
    };
    let file = crate::words::one_line(&owner.path().display().to_string());
    note(&format!(
        "the token is in {file}; Ctrl-C ends the server, not the runs"
    ));
    for url in bound
        .iter()
        .map(Bound::url)
        .filter(|url| url.starts_with("http"))
    {
        // Browsers never send the part after `#`.
        note(&format!("open {url}/#token={}", owner.secret()));
    }
    Ok(())
}
