//! Conversation of a run, or of all turns of a live session.

use std::sync::Arc;

use teamster_core::{
    AgentError, Capabilities, ErrorCode, ExecuteParams, NoticeLevel, PermissionMode, SessionStarted,
};

use crate::config::EmbeddedConfig;
use crate::conversation::Message;
use crate::emit::Emitter;
use crate::http::Http;
use crate::keys;
use crate::mcp::Servers;
use crate::prompt;
use crate::settings::{self, Settings};
use crate::store::SessionFile;
use crate::tools::{self, Roots, ToolContext};
use crate::wire::ToolSpec;

pub(crate) struct Context {
    pub(crate) settings: Settings,
    pub(crate) params: Arc<ExecuteParams>,
    pub(crate) config: Arc<EmbeddedConfig>,
    pub(crate) http: Http,
    pub(crate) file: SessionFile,
    pub(crate) messages: Vec<Message>,
    pub(crate) system: String,
    pub(crate) mode: PermissionMode,
    pub(crate) tools: ToolContext,
    pub(crate) servers: Servers,
    /// True once the MCP servers were started.
    begun: bool,
}

impl Context {
    /// Opens a conversation. Sends no request and starts no process.
    pub(crate) fn open(
        config: Arc<EmbeddedConfig>,
        can: &Capabilities,
        params: ExecuteParams,
    ) -> Result<Self, AgentError> {
        let settings = Settings::new(&config, can, &params)?;
        keys::protect_memory();
        let variable = |name: &str| config.variable(name, &params.env);
        let http = Http::new(variable).map_err(|failure| {
            AgentError::new(ErrorCode::CliError, failure.kind, failure.message)
        })?;
        let folder = &settings.sessions;
        let directory = settings.working_directory();
        let new_id = params.new_session_id.as_deref();
        let (file, messages) = match &params.session_id {
            Some(id) if params.fork => SessionFile::fork(folder, id, new_id, directory)?,
            Some(id) => SessionFile::resume(folder, id)?,
            None => (SessionFile::create(folder, new_id, directory)?, Vec::new()),
        };
        let params = Arc::new(params);
        let tools = ToolContext {
            config: config.clone(),
            roots: Arc::new(Roots::new(settings.directories.clone())),
            params: params.clone(),
            hidden: settings.target.service.key_variables,
            sandbox: settings.sandbox.clone(),
        };
        Ok(Self {
            system: prompt::system(&params, settings.working_directory()),
            mode: params.permission,
            settings,
            params,
            config,
            http,
            file,
            messages,
            tools,
            servers: Servers::default(),
            begun: false,
        })
    }

    /// Starts the MCP servers, unless they run already, and emits the `session` event.
    pub(crate) async fn begin(&mut self, emit: &mut Emitter) {
        let mut notices = Vec::new();
        if !self.begun {
            (self.servers, notices) = Servers::start(&self.tools).await;
            self.begun = true;
        }
        let names = self.specs().into_iter().map(|spec| spec.name);
        let session = SessionStarted::new(self.file.id())
            .model(self.settings.target.name())
            .tools(names.collect::<Vec<_>>())
            .mcp_servers(Some(self.servers.statuses.clone()).filter(|it| !it.is_empty()));
        emit.event(session).await;
        for notice in notices {
            emit.notice(NoticeLevel::Warning, notice).await;
        }
    }

    /// Returns the tools that the model is offered.
    pub(crate) fn specs(&self) -> Vec<ToolSpec> {
        let own = tools::specs().into_iter();
        let form = self
            .params
            .output_schema
            .as_ref()
            .map(tools::structured_output);
        let servers = self.servers.tools.iter().map(|tool| tool.spec.clone());
        own.chain(form)
            .chain(servers)
            .filter(|spec| !self.settings.rules.hides(&spec.name))
            .collect()
    }

    /// Appends a message to the conversation and its file.
    pub(crate) fn push(&mut self, message: Message) -> Result<(), AgentError> {
        let written = self.file.message(&message);
        self.messages.push(message);
        written
    }

    pub(crate) fn set_model(&mut self, model: &str) -> Result<(), AgentError> {
        let mut params = (*self.params).clone();
        params.model = Some(model.to_owned());
        let args = crate::args::ExtraArgs::parse(&params.extra_args)?;
        self.settings.target = settings::target(&self.config, &params, args.base_url.as_deref())?;
        self.params = Arc::new(params);
        self.tools.hidden = self.settings.target.service.key_variables;
        Ok(())
    }

    /// Returns the cost of this usage with the current model, in USD.
    pub(crate) fn cost(&self, usage: &teamster_core::Usage) -> Option<f64> {
        let prices = self.config.prices.as_ref()?;
        prices(&self.settings.target.name(), usage)
    }

    /// Stops the MCP servers.
    pub(crate) async fn end(&mut self) {
        self.servers.end().await;
        self.begun = false;
    }
}
