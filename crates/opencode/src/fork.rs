//! Kilo, a fork of OpenCode with the same command line and output.
//!
//! It differs in its name, the names of its folders, and the prefix of its environment variables.

use teamster_acp::SESSION_CAPABILITIES;
use teamster_core::provider::{
    CredentialFile, Credentials, Decoder, FileLocation, Launch, SessionProtocol, Sign,
};
use teamster_core::{
    AgentError, Capabilities, CliInfo, CliProvider, ExecuteParams, McpDelivery,
    SessionCapabilities, SessionOptions, SessionProvider,
};

use crate::dialect::OpenCodeDialect;
use crate::{OpenCodeDecoder, launch, session};

/// Kilo, run with `kilo run --format json`.
#[derive(Debug, Clone, Copy, Default)]
pub struct Kilo;

/// Prefixes of its variables and of OpenCode's.
const OWN: &str = "KILO_";
const ORIGINAL: &str = "OPENCODE_";

/// Variables that it sets for its own children.
const NESTED_SESSION_VARIABLES: &[&str] = &["KILO", "KILO_PID", "KILO_CLIENT", "KILO_WORKSPACE_ID"];

static INFO: CliInfo = {
    let mut info = CliInfo::new("kilo", "Kilo", "kilo");
    info.tested_versions = &["7.7.7"];
    info.oldest_version = Some("7.7.7");
    info.install = "npm install -g @kilocode/cli";
    info.login =
        "log in with `kilo auth login`, or set the model provider's key in the environment";
    info.credentials = {
        let mut credentials = Credentials::in_locations(
            &["KILO_API_KEY"],
            &[CredentialFile {
                location: FileLocation::user("XDG_DATA_HOME", ".local/share", "kilo/auth.json"),
                sign: Sign::AnyObject,
            }],
        );
        // Local and free models need no login.
        credentials.may_be_elsewhere = true;
        credentials
    };
    info
};

static CAPABILITIES: Capabilities = {
    let mut can = crate::CAPABILITIES;
    // Not measured.
    can.skills = false;
    can.sub_agents = false;
    // Its files have other names.
    can.mcp.deliveries = &[McpDelivery::Private];
    can
};

/// Returns the parameters for OpenCode, with variables of OpenCode's names.
fn as_original(params: &ExecuteParams) -> ExecuteParams {
    let mut params = params.clone();
    let own = |name: &str| Some(format!("{ORIGINAL}{}", name.strip_prefix(OWN)?));
    let inherited = std::env::vars_os().filter_map(|(name, value)| {
        let name = own(name.to_str()?)?;
        Some((name, value.into_string().ok()?))
    });
    let callers = params.env.iter();
    let callers = callers.filter_map(|(name, value)| Some((own(name)?, value.clone())));
    // The caller's have precedence.
    let all: Vec<_> = inherited.chain(callers).collect();
    params.env.extend(all);
    params
}

/// Converts OpenCode's launch into the fork's.
fn as_fork(mut launch: Launch) -> Launch {
    for (name, _) in launch.env.iter_mut().chain(&mut launch.env_merged) {
        if let Some(rest) = name.strip_prefix(ORIGINAL) {
            *name = format!("{OWN}{rest}");
        }
    }
    launch.env_remove = NESTED_SESSION_VARIABLES.to_vec();
    // Those are files of OpenCode.
    launch.names_taken.clear();
    launch
}

fn in_its_name(mut error: AgentError) -> AgentError {
    error.message = (error.message)
        .replace("OpenCode", INFO.name)
        .replace(ORIGINAL, OWN)
        .replace("`opencode ", "`kilo ");
    error
}

/// Refuses parameters that only OpenCode supports. The prompts of a session are sent with its turns.
fn check(params: &ExecuteParams, is_session: bool) -> Result<(), AgentError> {
    let mut params = params.clone();
    if is_session {
        "-".clone_into(&mut params.prompt);
        params.slash_commands = false;
    }
    params.check(&INFO, &CAPABILITIES)
}

impl CliProvider for Kilo {
    fn info(&self) -> &'static CliInfo {
        &INFO
    }

    fn capabilities(&self) -> &Capabilities {
        &CAPABILITIES
    }

    fn launch(&self, params: &ExecuteParams) -> Result<Launch, AgentError> {
        check(params, false)?;
        let launch = launch::launch(&as_original(params)).map_err(in_its_name)?;
        Ok(as_fork(launch))
    }

    fn recorded_params(&self, argv: &[String], params: &mut ExecuteParams) {
        crate::command_line::read(argv, params);
    }

    fn decoder(&self, params: &ExecuteParams) -> Box<dyn Decoder> {
        Box::new(OpenCodeDecoder::for_run(&as_original(params)))
    }
}

impl SessionProvider for Kilo {
    fn session_capabilities(&self) -> &SessionCapabilities {
        &SESSION_CAPABILITIES
    }

    fn launch_session(&self, options: &SessionOptions) -> Result<Launch, AgentError> {
        check(&options.params, true)?;
        let mut options = options.clone();
        options.params = as_original(&options.params);
        let launch = launch::launch_session(&options).map_err(in_its_name)?;
        Ok(as_fork(launch))
    }

    fn protocol(&self, options: &SessionOptions) -> Box<dyn SessionProtocol> {
        let params = as_original(&options.params);
        let dialect = OpenCodeDialect::new(&params).named(INFO.name);
        session::protocol(options, &params, dialect)
    }
}

#[cfg(test)]
mod tests {
    use teamster_core::PermissionMode;

    use super::*;

    #[test]
    fn variables_have_its_name() {
        let mut params = ExecuteParams::new("hi");
        params.permission = PermissionMode::Bypass;
        params
            .env
            .insert("KILO_CONFIG_CONTENT".into(), r#"{"model": "a/b"}"#.into());
        let launch = Kilo.launch(&params).unwrap();
        let names: Vec<_> = launch.env.iter().chain(&launch.env_merged).collect();
        assert!(
            names.iter().all(|(name, _)| !name.starts_with(ORIGINAL)),
            "{names:?}"
        );
        let merged = launch.env_merged.iter();
        let config = merged
            .clone()
            .find(|(name, _)| name == "KILO_CONFIG_CONTENT");
        let permission = merged.clone().find(|(name, _)| name == "KILO_PERMISSION");
        // The caller's setting is kept.
        assert!(config.is_none_or(|(_, value)| value.contains("a/b")));
        assert!(config.or(permission).is_some(), "{names:?}");
        assert_eq!(launch.args[0], "run");
    }

    #[test]
    fn files_of_the_other_are_not_written() {
        let mut params = ExecuteParams::new("hi");
        params.mcp_servers = vec![teamster_core::McpServer::stdio("a", "b", ["c"])];
        params.mcp_delivery = McpDelivery::ProjectConfig;
        let error = Kilo.launch(&params).unwrap_err();
        assert!(error.message.contains("Kilo"), "{error}");
        assert!(!error.message.contains("OpenCode"), "{error}");
    }
}
