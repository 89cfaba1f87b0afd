//! Plays a scenario with a real CLI, through the public API.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use teamster::process::RecordTo;
use teamster::{
    EnvPolicy, EventStream, ExecuteParams, LogEntry, McpServer, PermissionMode, RuntimeConfig,
};
use teamster_core::sync::lock;
use teamster_mock_model::{Cli, MockModel, MockModelSettings, Part, Pointing, Request, Script};
use teamster_testkit::fixture::STDOUT;

use crate::accounts;
use crate::agent::Agent;
use crate::answer::answering;
use crate::bench::{Bench, COPILOT_PACKAGES};
use crate::conversation;
use crate::image;
use crate::install;
use crate::json::holds;
use crate::location::{self, Location, processes_of};
use crate::played::{Played, Which, denials_in, result_of};
use crate::scenario::{ANSWERS_AROUND, Abort, Permission, Resume, Run, Scenario, Service};

/// Maximum duration of a run. The slowest CLI needs about 80 s.
pub(crate) const LIMIT: Duration = Duration::from_mins(4);

/// A session id that no CLI knows.
const UNKNOWN_SESSION: &str = "0190aaaa-bbbb-7ccc-8ddd-eeeeffff0000";

/// A CLI in a separate home, with a separate model.
pub(crate) struct Stage {
    agent: Agent,
    pub(crate) location: Location,
    /// `None` if the server is stopped.
    pub(crate) model: Option<MockModel>,
    pub(crate) pointing: Pointing,
    /// Host and port of the service that the CLI uses.
    service: String,
    /// Number of lines of each recording that were taken.
    taken: Mutex<BTreeMap<PathBuf, usize>>,
}

impl Stage {
    /// Creates a home of this name with the scenario's files, and a model that plays this script.
    pub(crate) async fn new(
        bench: &Bench,
        agent: impl Into<Agent>,
        name: &str,
        scenario: &Scenario,
        script: Script,
    ) -> anyhow::Result<Self> {
        let agent = agent.into();
        let location = Location::new(bench, agent.id(), name)?;
        let has_hooks = scenario.test.run.iter().any(|run| run.hooks.is_some());
        let has_files = !(has_hooks && agent.capabilities()?.hooks);
        for (name, content) in scenario.test.files.iter().filter(|_| has_files) {
            let path = location.directory().join(name);
            if let Some(folder) = path.parent() {
                std::fs::create_dir_all(folder)?;
            }
            std::fs::write(path, content)?;
        }
        let mut settings = MockModelSettings::default();
        settings.directory = Some(location.directory());
        settings.cli = agent.cli();
        let model = MockModel::start_with(script, settings).await?;
        let url = model.url();
        let mut pointing = agent.point_at(&url);
        let args = scenario.test.args.get(agent.id()).into_iter().flatten();
        pointing.args.extend(args.cloned());
        if let Some(model) = scenario.test.models.get(agent.id()) {
            pointing.model = Some(model.clone());
        }
        pointing.write_files(&location.home())?;
        Ok(Self {
            agent,
            location,
            model: Some(model),
            pointing,
            service: url.trim_start_matches("http://").to_owned(),
            taken: Mutex::default(),
        })
    }

    /// Returns where the output of an ACP agent is recorded, as evidence.
    pub(crate) fn record_to(&self) -> Option<RecordTo> {
        let is_any = matches!(self.agent, Agent::Acp(_));
        is_any.then(|| RecordTo::Each(self.location.recordings()))
    }

    /// Takes the lines that were recorded there since the last call.
    fn printed(&self, record_to: Option<&RecordTo>) -> Vec<String> {
        let folders = match record_to {
            Some(RecordTo::Run(folder)) => vec![folder.clone()],
            Some(RecordTo::Each(folder)) => (1..=u16::MAX)
                .map(|number| folder.join(number.to_string()))
                .take_while(|folder| folder.exists())
                .collect(),
            _ => Vec::new(),
        };
        let mut taken = lock(&self.taken);
        let mut printed = Vec::new();
        for folder in folders {
            let bytes = std::fs::read(folder.join(STDOUT)).unwrap_or_default();
            let text = String::from_utf8_lossy(&bytes);
            // A last line without an end is still being written.
            let lines = text.split_inclusive('\n');
            let lines = lines.filter_map(|line| line.strip_suffix('\n'));
            let before = printed.len();
            let taken = taken.entry(folder).or_default();
            printed.extend(lines.skip(*taken).map(str::to_owned));
            *taken += printed.len() - before;
        }
        printed
    }

    /// Returns the requests to the model after the first `asked`.
    pub(crate) fn requests_from(&self, asked: usize) -> Vec<Request> {
        let model = self.model.as_ref();
        model.map_or_else(Vec::new, |model| model.requests_from(asked))
    }

    /// Returns the number of requests to the model until now.
    pub(crate) fn asked(&self) -> usize {
        self.model.as_ref().map_or(0, |it| it.requests().len())
    }
}

/// Plays all runs of a scenario with a CLI.
pub(crate) async fn play(
    bench: &Bench,
    agent: impl Into<Agent>,
    scenario: &Scenario,
) -> anyhow::Result<Vec<Played>> {
    let agent = agent.into();
    let script = scenario.script.clone();
    let mut stage = Stage::new(bench, agent, &scenario.name, scenario, script).await?;
    if scenario.test.service == Service::Nobody {
        stage.model = None;
    }
    let mut played: Vec<Played> = Vec::new();
    for (number, run) in scenario.test.run.iter().enumerate() {
        let before = match run.resume {
            Resume::First => played.first(),
            _ => played.last(),
        };
        let before = before.and_then(|played| played.result.session_id.as_deref());
        let session = match run.resume {
            Resume::New => None,
            Resume::Last | Resume::First => Some(
                before
                    .context("the run before reported no session")?
                    .to_owned(),
            ),
            Resume::Unknown => Some(unknown_session(agent)),
        };
        let mut params = params(bench, agent, run, &stage.location, &stage.pointing, session)?;
        let mut config = config(bench, agent);
        config.record_to = stage.record_to();
        if let Some(answer) = run.answer.as_deref().filter(|_| run.answers_cold) {
            params.permissions = Some(answering(answer));
        } else if let Some(folder) = &bench.record {
            let folder = folder.join(agent.id());
            let folder = folder.join(recorded_name(&scenario.name, number));
            config.record_to = Some(folder.into());
        }
        played.push(one(scenario, number, &stage, params, config).await?);
        let usage = accounts::of_session(
            &stage.location.home(),
            &stage.requests_from(0),
            scenario,
            &played,
        );
        if let Some(last) = played.last_mut() {
            last.usage_of_session = usage;
        }
    }
    Ok(played)
}

/// Returns the name of the recording of a scenario's run. The first has the scenario's name.
pub(crate) fn recorded_name(scenario: &str, run: usize) -> String {
    match run {
        0 => scenario.to_owned(),
        _ => format!("{scenario}_{}", run + 1),
    }
}

/// Returns an unknown session id in the CLI's format.
pub(crate) fn unknown_session(agent: impl Into<Agent>) -> String {
    match agent.into() {
        Agent::Cli(Cli::OpenCode) => "ses_000000000000000000000000ab".to_owned(),
        _ => UNKNOWN_SESSION.to_owned(),
    }
}

pub(crate) fn config(bench: &Bench, agent: impl Into<Agent>) -> RuntimeConfig {
    let mut config = RuntimeConfig::default();
    if let Agent::Cli(cli) = agent.into()
        && cli != Cli::Embedded
    {
        config.program = Some(bench.programs.join(cli.id()));
    }
    config.env_policy = EnvPolicy::Clean {
        allow: ["PATH", "LANG", "TERM"].map(str::to_owned).into(),
    };
    config.die_with_parent = true;
    config
}

pub(crate) fn params(
    bench: &Bench,
    agent: impl Into<Agent>,
    run: &Run,
    location: &Location,
    pointing: &Pointing,
    session: Option<String>,
) -> anyhow::Result<ExecuteParams> {
    let agent = agent.into();
    let mut params = ExecuteParams::new(run.prompt.repeat(run.prompt_times));
    params.working_directory = Some(location.directory());
    params.env = pointing.environment_for_root(&location.home());
    let temporary = location.temporary().display().to_string();
    params.env.insert("TMPDIR".to_owned(), temporary);
    // These need a newer Node.js than the machine may have: Pi needs 22.19, and Copilot before its native
    // program needs 24. It is installed next to them.
    let needs_node = |cli: Cli| matches!(cli, Cli::Pi | Cli::Copilot) || !install::is_pinned(cli);
    if agent.cli().is_none_or(needs_node) {
        let path = bench.search_path()?;
        params.env.insert("PATH".to_owned(), path);
    }
    if agent.cli() == Some(Cli::Copilot) {
        let packages = bench.copilot_packages().display().to_string();
        params.env.insert(COPILOT_PACKAGES.to_owned(), packages);
    }
    params.model.clone_from(&pointing.model);
    params.extra_args.clone_from(&pointing.args);
    params.permission = match run.permission {
        Permission::Bypass => PermissionMode::Bypass,
        Permission::Ask => PermissionMode::Default,
        Permission::ReadOnly => PermissionMode::ReadOnly,
    };
    params.session_id = session;
    params.fork = run.fork;
    let can = agent.capabilities()?;
    if can.cli_retries {
        params.cli_retries = run.cli_retries;
    }
    params.include_native = true;
    params.output_schema.clone_from(&run.output_schema);
    if can.hooks {
        params.hooks.clone_from(&run.hooks);
    }
    params.slash_commands = run.slash_commands;
    params.images = image::of_run(run);
    params.timeouts.idle = run.idle_timeout_ms.map(Duration::from_millis);
    if let Some(flags) = &run.mcp {
        let program = std::env::current_exe()?;
        let args = std::iter::once("fake-mcp").chain(flags.iter().map(String::as_str));
        params.mcp_servers.push(McpServer::stdio(
            "tiny",
            program.display().to_string(),
            args,
        ));
    }
    Ok(params)
}

async fn one(
    scenario: &Scenario,
    number: usize,
    stage: &Stage,
    params: ExecuteParams,
    config: RuntimeConfig,
) -> anyhow::Result<Played> {
    let run = &scenario.test.run[number];
    let before = Before {
        begun: Instant::now(),
        asked: stage.asked(),
        prompt: params.prompt.clone(),
        session: params.session_id.clone(),
        record_to: config.record_to.clone(),
    };
    let runtime = stage.agent.runtime(config)?;
    let stream = runtime.execute(params);
    let entries = read(stream, Some(run), stage, before.asked).await?;
    let mut played = played(stage, scenario, number, before, entries)?;
    played.processes_left = processes_of(&stage.location.home());
    Ok(played)
}

/// State before a run.
pub(crate) struct Before {
    pub(crate) begun: Instant,
    /// Number of earlier requests to the model.
    pub(crate) asked: usize,
    pub(crate) prompt: String,
    pub(crate) session: Option<String>,
    pub(crate) record_to: Option<RecordTo>,
}

/// Reads a stream to its end, and aborts it or kills the CLI's process if the run requires that.
pub(crate) async fn read(
    mut stream: EventStream,
    run: Option<&Run>,
    stage: &Stage,
    asked_before: usize,
) -> anyhow::Result<Vec<LogEntry>> {
    let handle = stream.abort_handle();
    let mut entries = Vec::new();
    let reading = async {
        while let Some(entry) = stream.next_entry().await {
            entries.push(entry);
        }
    };
    let interrupting = async {
        let abort = run.and_then(|run| run.abort.as_ref());
        if let (Some(when), Some(model)) = (abort, &stage.model) {
            wait_for(when, &stage.location, model, asked_before).await;
            handle.abort();
        }
        if let Some(name) = run.and_then(|run| run.crash_when_file.as_deref()) {
            wait_for_file(&stage.location, name).await;
            location::kill(&stage.location.home())?;
        }
        std::future::pending::<anyhow::Result<()>>().await
    };
    tokio::select! {
        () = reading => {}
        ended = interrupting => ended?,
        () = tokio::time::sleep(LIMIT) => bail!("it was not over after {} s", LIMIT.as_secs()),
    }
    Ok(entries)
}

/// Returns the record of a run from the entries of its stream.
pub(crate) fn played(
    stage: &Stage,
    scenario: &Scenario,
    number: usize,
    before: Before,
    entries: Vec<LogEntry>,
) -> anyhow::Result<Played> {
    let denials_by_cli = denials_in(&entries);
    let events: Vec<_> = entries.into_iter().map(|entry| entry.event).collect();
    let time = before.begun.elapsed();
    let run = &scenario.test.run[number];
    let result = result_of(&events)?;
    let requests = stage.requests_from(before.asked);
    let answers = scenario.answers(number);
    let texts: Vec<_> = answers
        .iter()
        .flat_map(|turn| &turn.parts)
        .filter_map(|part| match part {
            Part::Text(pieces) => Some(pieces),
            _ => None,
        })
        .collect();
    Ok(Played {
        which: Which::Run(number),
        process: None,
        sent_again: false,
        unasked: 0,
        warned_before: false,
        in_pieces: texts.iter().any(|pieces| pieces.0.len() > 1),
        messages: texts.len(),
        has_mcp: run.mcp.is_some(),
        directory: stage.location.directory(),
        session_before: before.session,
        prompt_arrived: prompt_arrived(&requests, &before.prompt),
        image_arrived: (run.image || run.story.contains_key("image")).then(|| {
            requests
                .iter()
                .any(|request| holds(&request.body, image::PNG))
        }),
        answered: run.story.contains_key("answered").then(|| {
            let answer = run.answer.as_deref().unwrap_or_default();
            conversation::results(&requests).contains(answer)
        }),
        remembered: run.story.contains_key("remembered").then(|| {
            let before = number.checked_sub(1).map(|it| &scenario.test.run[it]);
            let prompt = before.map_or("", |run| run.prompt.as_str());
            let last = conversation::of_the_conversation(&requests).pop();
            last.map_or(0, |last| {
                conversation::times(&conversation::texts(last), prompt)
            })
        }),
        processes_left: Vec::new(),
        texts_of_model: texts_of_model(scenario, number),
        is_in_background: scenario.is_in_background(),
        usage_of_session: None,
        denials_by_cli,
        files: files(run, &stage.location.directory()),
        events,
        result,
        requests,
        time,
        service: stage.service.clone(),
        printed: stage.printed(before.record_to.as_ref()),
        has_no_listener: stage.model.is_none(),
    })
}

/// Returns all that the script lets the model write, or `None` if the story of the run has a text that does not follow
/// from the script.
fn texts_of_model(scenario: &Scenario, number: usize) -> Option<String> {
    let run = &scenario.test.run[number];
    if run.story.contains_key("text") || run.hot.contains_key("text") {
        return None;
    }
    let script = &scenario.script;
    let of_agents = script.agents.iter().flat_map(|agent| &agent.turns);
    let parts = script
        .turns
        .iter()
        .chain(of_agents)
        .flat_map(|turn| &turn.parts);
    let texts = parts.filter_map(|part| match part {
        Part::Text(pieces) => Some(pieces.concat() + "\n"),
        _ => None,
    });
    // A CLI may be given those around it again, after a compaction.
    let around = ANSWERS_AROUND.iter().map(|text| (*text).to_owned() + "\n");
    Some(texts.chain(around).collect())
}

async fn wait_for(when: &Abort, location: &Location, model: &MockModel, asked_before: usize) {
    match when {
        Abort::AfterRequestMs(ms) => {
            let mut count = asked_before;
            while !model
                .requests_from(asked_before)
                .iter()
                .any(|asked| asked.turn.is_some())
            {
                count += 1;
                model.wait_for_requests(count).await;
            }
            tokio::time::sleep(Duration::from_millis(*ms)).await;
        }
        Abort::WhenFile(name) => {
            wait_for_file(location, name).await;
        }
    }
}

/// Waits for a file that a tool creates in the working directory, and for the CLI's report of the call.
async fn wait_for_file(location: &Location, name: &str) {
    while !location.directory().join(name).exists() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    // The CLI writes the call after it has started it.
    tokio::time::sleep(Duration::from_millis(700)).await;
}

/// Returns whether a request to a model contains the prompt, or `None` without requests. A request that only
/// checks the service (`HEAD /`) does not contain it.
fn prompt_arrived(requests: &[Request], prompt: &str) -> Option<bool> {
    let mut asked = requests
        .iter()
        .filter(|request| request.protocol.is_some())
        .peekable();
    asked.peek()?;
    Some(asked.any(|request| holds(&request.body, prompt)))
}

/// Returns the files that the story of a run requires.
fn files(run: &Run, directory: &Path) -> BTreeMap<String, String> {
    let names = run
        .story
        .keys()
        .filter_map(|fact| fact.strip_prefix("file."));
    names
        .filter_map(|name| {
            let content = std::fs::read_to_string(directory.join(name)).ok()?;
            Some((name.to_owned(), content))
        })
        .collect()
}
