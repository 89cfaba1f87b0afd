//! `teamster loop`.

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::io::{self, Read};
use std::os::unix::fs::FileTypeExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use teamster::agent_loop::clock::SystemClock;
use teamster::agent_loop::{
    AgentFolder, AgentLoop, Control, Log, Prompts, Settings, dotenv, record_refusal,
};
use teamster::process::{LineObserver, StartObserver};
use teamster::usage::prices::PriceList;
use teamster::usage::{Places, TickMeter};
use teamster::{CliInfo, ErrorCode, RuntimeConfig};
use teamster_core::text::excerpt;
use tokio::signal::unix::{SignalKind, signal};

use crate::args::LoopArgs;
use crate::guard::Guard;
use crate::signals::Source;
use crate::{exit_code, params, tokio_runtime};

/// How long an agent may take to end by itself.
const EXIT_GRACE: Duration = Duration::from_secs(30);
/// So much of what the agent prints may wait, in bytes. The loop is never slow on purpose: an agent for which that
/// is not enough prints without end.
const WAITING_OUTPUT: u64 = 64 << 20;
/// How long the agent's files may take to be read before anything starts.
const READING: Duration = Duration::from_secs(10);

/// Runs a loop; the exit code.
pub(crate) fn main(args: &LoopArgs) -> anyhow::Result<u8> {
    let runtime = tokio_runtime().context("cannot start the runtime")?;
    // The loop goes there, so a relative path would lead elsewhere afterwards.
    let directory = std::path::absolute(&args.directory).unwrap_or_default();
    let code = runtime.block_on(async {
        // Before anything else: without a handler the signal that asks for a tick would end us.
        let control = Control::new();
        listen(&control).context("cannot listen for signals")?;
        let (agent_loop, log, _guard) = match prepared(args, control).await {
            Ok(Some(prepared)) => prepared,
            Ok(None) => return Ok(exit_code::SUCCESS),
            Err(error) => return Ok(refuse(&directory, &error)),
        };
        let ended = agent_loop.run().await;
        // An error is printed on stderr: there it is not wanted twice.
        log.end_copy();
        if let Err(error) = &ended {
            log.line(&error.message);
        }
        Ok(match ended {
            Ok(Some(error)) if error.code == ErrorCode::CliNotFound => exit_code::CLI_NOT_FOUND,
            Ok(Some(_)) => exit_code::AGENT_ERROR,
            Ok(None) => exit_code::SUCCESS,
            Err(error) => refuse(&directory, &anyhow!(error.message)),
        })
    });
    runtime.shutdown_background();
    code
}

/// Reports why the loop of this directory cannot run: to a person on stderr, and to the supervisor in a file.
fn refuse(directory: &Path, error: &anyhow::Error) -> u8 {
    crate::fail(error);
    let message = crate::words::printable(&format!("{error:#}"));
    // A directory that is no agent's has no place for it, and the exit code says enough.
    let _ = record_refusal(directory, &message);
    exit_code::USAGE
}

/// From now on, signals are what they are to a loop.
fn listen(control: &Control) -> io::Result<()> {
    let mut wake = signal(SignalKind::user_defined1())?;
    let woken = control.clone();
    tokio::spawn(async move {
        while wake.recv().await.is_some() {
            woken.wake();
        }
    });
    let mut ends = Source::new()?;
    let control = control.clone();
    tokio::spawn(async move {
        let signal = ends.name().await;
        control.stop_because(format!("received {signal}"));
        ends.next().await;
        // The kernel and the guard end what is left.
        std::process::exit(exit_code::ABORTED.into());
    });
    Ok(())
}

type Prepared = (AgentLoop, Log, Option<Guard>);

/// Everything that comes before the first start; `None` if the end was asked for meanwhile. It reads files of
/// the agent, and may be anything: a pipe without a writer is waited for only so long.
async fn prepared(args: &LoopArgs, control: Control) -> anyhow::Result<Option<Prepared>> {
    let directory = args.directory.clone();
    let ticks = args.ticks;
    let stop = control.clone();
    let prepared = tokio::task::spawn_blocking(move || prepare(&directory, ticks, control));
    tokio::select! {
        prepared = prepared => prepared.context("the agent's files cannot be read")?.map(Some),
        () = stop.stopping() => Ok(None),
        () = tokio::time::sleep(READING) => bail!(
            "the files in {} could not be read within {} s; is one of them a pipe?",
            args.directory.display(),
            READING.as_secs(),
        ),
    }
}

fn prepare(directory: &Path, ticks: Option<u64>, control: Control) -> anyhow::Result<Prepared> {
    let folder = AgentFolder::open(directory)?;
    env::set_current_dir(folder.directory())?;
    let file = variables(&folder.directory().join(".env"))?;
    // What is no UTF-8 cannot be any setting, and is reported.
    let environment = |name: &str| Some(env::var_os(name)?.to_string_lossy().into_owned());
    let settings = Settings::read(
        &environment,
        file.as_ref().unwrap_or(&BTreeMap::new()),
        &agent_of,
    )?;
    let clock = Arc::new(SystemClock::new());
    let path = folder.path("agent-loop.log");
    let log = Log::new(path.clone(), settings.log_max_bytes, clock.clone());
    if !is_stdout(&path) {
        log.copy_to(io::stdout());
    }
    let pace = settings.pace;
    log.line(format!(
        "agent-loop start pid={} cwd={} runtime={} adapter={} min={}s step={}s max={}s timeout={}s",
        std::process::id(),
        folder.directory().display(),
        settings.name(),
        settings.adapter_kind(),
        pace.min_sleep,
        pace.idle_step,
        pace.max_sleep,
        settings.turn_limit.as_secs(),
    ));
    if pace.max_sleep < pace.min_sleep {
        log.line("warning: MAX_SLEEP is less than MIN_SLEEP, which goes first");
    }
    let file = file.unwrap_or_else(|| {
        log.line("warning: there is no .env in the agent's directory");
        BTreeMap::new()
    });
    let instructions = &settings.instructions;
    if !instructions
        .iter()
        .any(|file| folder.directory().join(file).is_file())
    {
        log.line(format!(
            "warning: no instructions: there is neither {} in {}",
            instructions.join(" nor "),
            folder.directory().display()
        ));
    }
    let prompts = Prompts::read(&settings, folder.directory()).map_err(anyhow::Error::msg)?;
    let (params, _) =
        teamster::agent_loop::params(&settings, &folder, &file).map_err(anyhow::Error::msg)?;
    let config = config(&settings, &file, &log);
    let adapter = crate::providers()
        .loop_adapter(&settings, params, config)
        .map_err(|error| anyhow!(error.message))?;
    let places = Places::from_variables(|name| match file.get(name) {
        Some(value) => Some(value.into()),
        None => env::var_os(name),
    });
    let meter = settings.agent.id.parse().ok();
    let meter = meter.map(|provider| TickMeter::new(provider, places));
    let prices = PriceList::of_user(|name| match file.get(name) {
        Some(value) => Some(value.into()),
        None => env::var_os(name),
    })
    .context("the file of prices cannot be used")?;
    let guard = Guard::start(Some(folder.directory()));
    let agent_loop = AgentLoop::new(
        folder,
        settings,
        prompts,
        adapter,
        clock,
        control,
        log.clone(),
    )
    .variables(file)
    .meter(meter)
    .prices(prices)
    .ticks_limit(ticks);
    Ok((agent_loop, log, guard))
}

/// The variables of the agent's file; `None` if there is none.
fn variables(path: &Path) -> anyhow::Result<Option<BTreeMap<String, String>>> {
    match read_env(path) {
        Ok(text) => Ok(Some(dotenv::parse(&String::from_utf8_lossy(&text)))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| path.display().to_string()),
    }
}

/// The longest `.env`, in bytes.
const LONGEST_ENV: u64 = 1 << 20;
/// How long a pipe in the place of `.env` may take. A program that keeps secrets may write one.
const PIPE_LIMIT: Duration = Duration::from_secs(2);

/// The content of `.env`. Neither a pipe without a writer nor a file without an end is waited for.
fn read_env(path: &Path) -> io::Result<Vec<u8>> {
    let kind = fs::metadata(path)?.file_type();
    if !kind.is_file() && !kind.is_fifo() {
        return Err(io::Error::other("this is neither a file nor a pipe"));
    }
    let path = path.to_owned();
    let read = move || -> io::Result<Vec<u8>> {
        let mut text = Vec::new();
        let file = fs::File::open(path)?;
        file.take(LONGEST_ENV + 1).read_to_end(&mut text)?;
        if text.len() as u64 > LONGEST_ENV {
            return Err(io::Error::other(format!(
                "it is longer than {LONGEST_ENV} bytes"
            )));
        }
        Ok(text)
    };
    if kind.is_file() {
        return read();
    }
    let (tell, told) = std::sync::mpsc::sync_channel(1);
    // It stays behind if there is no writer. At the end of the program it goes.
    std::thread::spawn(move || tell.send(read()));
    told.recv_timeout(PIPE_LIMIT).unwrap_or_else(|_| {
        Err(io::Error::other(format!(
            "this is a pipe, and nothing has written to it within {} s: start its writer first, or put a \
             file there",
            PIPE_LIMIT.as_secs()
        )))
    })
}

/// The CLI of a runtime's name; the usual one where none is set.
pub(crate) fn agent_of(name: Option<&str>) -> Result<&'static CliInfo, String> {
    let providers = crate::providers();
    let provider = match name {
        Some(name) => providers.get(name),
        None => providers.usual(),
    };
    let name = name.unwrap_or_default();
    match provider {
        Some(provider) => Ok(provider.info()),
        None => match providers.runtime(name, RuntimeConfig::default()) {
            Err(error) => Err(error.message),
            Ok(_) => Err(format!("`{name}` cannot be used in a loop")),
        },
    }
}

fn config(settings: &Settings, file: &BTreeMap<String, String>, log: &Log) -> RuntimeConfig {
    let mut config = params::base_config();
    config.spill_limit_bytes = WAITING_OUTPUT;
    let info = settings.agent;
    let of_file = || file.get(&params::program_variable_name(info));
    let of_file = || of_file().filter(|path| !path.is_empty()).map(Into::into);
    config.program = params::program_variable(info).or_else(of_file);
    if settings.adapter_kind() == teamster::agent_loop::AdapterKind::Hot {
        config.exit_grace = Some(EXIT_GRACE);
    }
    let before = format!("{} stderr: ", settings.name());
    let log = log.clone();
    let of_starts = log.clone();
    config.observer = Some(LineObserver::new(move |line| log.lines(&before, line)));
    let name = settings.name().to_owned();
    // The arguments of a command of the user's own may be secret.
    let with_args = !name.starts_with("acp:");
    config.on_start = Some(StartObserver::new(move |process| {
        let args = if with_args {
            short(&process.args)
        } else {
            String::new()
        };
        let program = process.program.display();
        of_starts.line(format!("{name} pid={}: {program}{args}", process.pid));
    }));
    config
}

/// Arguments for the log, each on one line and with its beginning only: a prompt is long.
fn short(args: &[String]) -> String {
    const LONGEST: usize = 80;
    let words = args.iter().map(|arg| {
        let words: Vec<&str> = arg.split_whitespace().collect();
        let words = excerpt(&words.join(" "), LONGEST);
        format!(" {}", shell_words::quote(&words))
    });
    words.collect()
}

/// Whether stdout goes to this file: a supervisor may have it so, and then each line would be there twice.
fn is_stdout(path: &Path) -> bool {
    use std::os::fd::AsFd;
    let Ok(stdout) = nix::sys::stat::fstat(io::stdout().as_fd()) else {
        return true;
    };
    nix::sys::stat::stat(path)
        .is_ok_and(|file| (file.st_dev, file.st_ino) == (stdout.st_dev, stdout.st_ino))
}
