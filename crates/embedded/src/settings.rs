//! Validated settings of a run.

use std::path::{Path, PathBuf};

use teamster_core::provider::Secrets;
use teamster_core::{AgentError, Capabilities, ErrorKind, ExecuteParams, SystemPrompt, Timeouts};

use crate::args::ExtraArgs;
use crate::config::EmbeddedConfig;
use crate::limits::Limits;
use crate::model::{self, Target};
use crate::permission::Rules;
use crate::sandbox;
use crate::wire::Effort;
use crate::{INFO, store};

/// Default maximum tokens of an answer.
const MAX_TOKENS: u32 = 16_384;
/// Default for models that reject [`MAX_TOKENS`].
const OLD_MAX_TOKENS: u32 = 4_096;
/// Default number of retries of a request.
const RETRIES: u32 = 3;

pub(crate) struct Settings {
    pub(crate) target: Target,
    pub(crate) max_tokens: u32,
    pub(crate) effort: Option<Effort>,
    pub(crate) retries: u32,
    /// Working directory with symbolic links resolved, followed by the additional directories.
    pub(crate) directories: Vec<PathBuf>,
    pub(crate) rules: Rules,
    pub(crate) limits: Limits,
    pub(crate) sessions: PathBuf,
    pub(crate) secrets: Secrets,
    /// Program that confines commands, if they are to be confined.
    pub(crate) sandbox: Option<PathBuf>,
}

impl Settings {
    /// Validates the parameters of a run. Returns its settings.
    pub(crate) fn new(
        config: &EmbeddedConfig,
        can: &Capabilities,
        params: &ExecuteParams,
    ) -> Result<Self, AgentError> {
        if let Some(problem) = &config.problem {
            return Err(AgentError::invalid_params(problem));
        }
        params.check(&INFO, can)?;
        if config.process.program.is_some() {
            let problem = "the embedded agent starts no program; leave it out";
            return Err(AgentError::refused("program", problem));
        }
        if config.process.record_to.is_some() {
            let problem = "no CLI output to record; keep the events instead (--json)";
            return Err(AgentError::refused("record_to", problem));
        }
        let args = ExtraArgs::parse(&params.extra_args)?;
        let directories = directories(params)?;
        let sandbox = args.sandbox.then(sandbox::program).transpose();
        let sandbox = sandbox.map_err(|problem| {
            AgentError::refused("extra_args", format!("--sandbox: {problem}"))
        })?;
        let rules = Rules::new(&params.allowed_tools, &params.denied_tools)?;
        let effort = match &params.effort {
            None => None,
            Some(name) => Some(Effort::parse(name).ok_or_else(|| {
                let problem = format!("unknown; available: {}", Effort::NAMES);
                AgentError::refused("effort", problem)
            })?),
        };
        if let Some(SystemPrompt::Append(text) | SystemPrompt::Replace(text)) =
            &params.system_prompt
            && text.contains('\0')
        {
            return Err(AgentError::refused("system_prompt", "it holds a NUL byte"));
        }
        let sessions = store::folder(config, &params.env)?;
        let target = target(config, params, args.base_url.as_deref())?;
        if params.max_budget_usd.is_some() {
            check_price(config, &target)?;
        }
        let is_old = target.model.starts_with("claude-3");
        let usual = if is_old { OLD_MAX_TOKENS } else { MAX_TOKENS };
        let mut secrets = Secrets::of(&params.mcp_servers);
        if let Some(key) = &target.key {
            secrets = secrets.and(key);
        }
        Ok(Self {
            max_tokens: args.max_tokens.unwrap_or(usual),
            target,
            effort,
            retries: params.cli_retries.unwrap_or(RETRIES),
            directories,
            rules,
            limits: Limits::new(params.timeouts.or(config.process.timeouts)),
            sessions,
            secrets,
            sandbox,
        })
    }

    /// Returns the limits of a turn, which may override those of the session.
    pub(crate) fn limits(&self, turn: Timeouts) -> Limits {
        self.limits.with(turn)
    }

    pub(crate) fn working_directory(&self) -> &Path {
        // Never empty: the working directory is always the first.
        &self.directories[0]
    }
}

/// Resolves the model with its service's address and key.
pub(crate) fn target(
    config: &EmbeddedConfig,
    params: &ExecuteParams,
    base_url: Option<&str>,
) -> Result<Target, AgentError> {
    let keys = |name: &str| {
        let is_key = model::SERVICES
            .iter()
            .any(|service| service.key_variables.contains(&name));
        config.api_key.clone().filter(|_| is_key)
    };
    let variable = |name: &str| keys(name).or_else(|| config.variable(name, &params.env));
    let base_url = base_url.or(config.base_url.as_deref());
    let service = config.model_provider.as_deref().map(model::service);
    let service = service.transpose()?;
    model::resolve(params.model.as_deref(), service, base_url, &variable)
}

fn check_price(config: &EmbeddedConfig, target: &Target) -> Result<(), AgentError> {
    let mut one = teamster_core::Usage::default();
    one.input_tokens = Some(1_000_000);
    one.output_tokens = Some(1_000_000);
    let price = config
        .prices
        .as_ref()
        .and_then(|it| it(&target.name(), &one));
    if price.is_some() {
        return Ok(());
    }
    let problem = format!(
        "{} has no price, so a cost limit cannot be enforced; leave it out",
        target.name()
    );
    Err(AgentError::refused("max_budget_usd", problem))
}

fn directories(params: &ExecuteParams) -> Result<Vec<PathBuf>, AgentError> {
    let working = params
        .working_directory
        .clone()
        .unwrap_or_else(|| ".".into());
    let working = directory("working_directory", &working)?;
    let mut directories = vec![working];
    for other in &params.add_dirs {
        let other = directory("add_dirs", &directories[0].join(other))?;
        directories.push(other);
    }
    Ok(directories)
}

fn directory(parameter: &str, path: &Path) -> Result<PathBuf, AgentError> {
    let refused = |problem: String| AgentError::refused(parameter, problem);
    let real = path.canonicalize().map_err(|error| {
        let problem = format!("{} cannot be used: {error}", path.display());
        refused(problem).kind(ErrorKind::NotFound)
    })?;
    if real.is_dir() {
        Ok(real)
    } else {
        Err(refused(format!("{} is not a directory", path.display())))
    }
}
