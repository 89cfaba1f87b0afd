//! Checks of the delivery of MCP servers to a CLI.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::time::Duration;

use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use proptest::sample::select;
use teamster_core::provider::{ConfigLocation, Launch};
use teamster_core::{
    ErrorCode, ErrorDetail, ExecuteParams, McpDelivery, McpServer, McpTransport, PermissionMode,
};

use super::launch::is_refusal;
use super::verdict::property;
use super::{Failures, Suite, Verdict};

const DELIVERIES: [McpDelivery; 3] = [
    McpDelivery::Private,
    McpDelivery::ProjectConfig,
    McpDelivery::UserConfig,
];

const MODES: [PermissionMode; 4] = [
    PermissionMode::Default,
    PermissionMode::ReadOnly,
    PermissionMode::AcceptEdits,
    PermissionMode::Bypass,
];

/// A unique value.
const SECRET: &str = "5ecret0b9d41c7";

/// Returns one server of each kind, with a secret in it.
fn servers() -> [McpServer; 3] {
    [
        McpServer::stdio("files", "files-mcp", ["--root", "/srv", "-v"]).env("TOKEN", SECRET),
        McpServer::http("web", "https://mcp.example.com/v1").header("Authorization", SECRET),
        McpServer::sse("old", "http://127.0.0.1:9/sse").header("X-Key", SECRET),
    ]
}

/// A feature of a server: the field's name, whether it is supported, and a function that requests it.
type Feature = (&'static str, bool, fn(&mut McpServer));

impl Suite {
    /// Checks that MCP servers are accepted as the capabilities declare, in each supported way and each
    /// permission mode, or refused by server and field.
    ///
    /// The prompt must stay unchanged. Secrets of a server must reach the CLI, but neither as an argument nor
    /// in a file of the user. Tries plain servers and runs a property test.
    pub fn mcp(&self) -> Verdict {
        let mut wrong = Failures::of("mcp");
        let can = self.provider.capabilities();
        for delivery in DELIVERIES {
            for mode in MODES {
                if !can.permission_modes.contains(&mode) {
                    continue;
                }
                for server in servers() {
                    let location = format!(
                        "a {} server by {}, {}",
                        server.transport.as_str(),
                        delivery.as_str(),
                        mode.as_str()
                    );
                    wrong.add_if_err(location, self.check_server(server, delivery, mode));
                }
            }
        }
        for (field, can, ask) in self.features() {
            wrong.add_if_err(field, self.check_feature(field, can, ask));
        }
        wrong.add_if_err("mcp_strict", self.check_strict());
        if !can.mcp.transports.is_empty() {
            let outcome = property(&any_server(), |server| self.check_any(server));
            wrong.add_if_err("any server", outcome);
        }
        wrong.verdict()
    }

    fn check_server(
        &self,
        server: McpServer,
        delivery: McpDelivery,
        mode: PermissionMode,
    ) -> Result<(), String> {
        let can = &self.provider.capabilities().mcp;
        let taken = can.transports.contains(&server.transport.as_str())
            && can.deliveries.contains(&delivery);
        let name = server.name.clone();
        let mut params = self.plain_params("hi");
        params.permission = mode;
        params.mcp_delivery = delivery;
        params.mcp_servers = vec![server];
        match self.provider.launch(&params) {
            Ok(launch) if taken => {
                keeps_secret(&launch, SECRET)?;
                is_delivered(&launch, SECRET)?;
                is_delivered(&launch, &name)?;
                let in_place = launch
                    .config
                    .as_ref()
                    .is_some_and(|config| config.location == ConfigLocation::Lease);
                if in_place != (delivery != McpDelivery::Private) {
                    return Err(format!("a file of the user's is changed: {in_place}"));
                }
                self.check_prompt(&params, &launch)
            }
            Ok(_) => Err("taken, though it cannot be honoured".to_owned()),
            Err(error) if taken => Err(format!("refused, though it can be honoured: {error}")),
            Err(error) => is_refusal(&error),
        }
    }

    fn check_prompt(&self, params: &ExecuteParams, launch: &Launch) -> Result<(), String> {
        let understood = self.understand(params, launch)?;
        let expected = (self.prompt_becomes)(params);
        if understood.prompt == expected {
            Ok(())
        } else {
            Err(format!("the prompt becomes {:?}", understood.prompt))
        }
    }

    fn features(&self) -> [Feature; 5] {
        let can = &self.provider.capabilities().mcp;
        [
            ("cwd", can.cwd, |server| {
                if let McpTransport::Stdio { cwd, .. } = &mut server.transport {
                    *cwd = Some("/srv".into());
                }
            }),
            ("startup_timeout", can.startup_timeout, |server| {
                server.startup_timeout = Some(Duration::from_secs(90));
            }),
            ("tool_timeout", can.tool_timeout, |server| {
                server.tool_timeout = Some(Duration::from_secs(90));
            }),
            ("tools.only", can.only_tools, |server| {
                server.tools.only = Some(vec!["read".into()]);
            }),
            ("tools.except", can.except_tools, |server| {
                server.tools.except = vec!["write".into()];
            }),
        ]
    }

    /// Checks that a property of a server changes the launch or is refused.
    fn check_feature(&self, field: &str, can: bool, ask: fn(&mut McpServer)) -> Result<(), String> {
        let [plain, ..] = servers();
        let launch = |server: McpServer| {
            let mut params = self.plain_params("hi");
            params.mcp_servers = vec![server];
            self.provider.launch(&params)
        };
        let mut asked = plain.clone();
        ask(&mut asked);
        match launch(asked) {
            Ok(with) if can => {
                let without = launch(plain).map_err(|error| error.to_string())?;
                if delivered(&with) == delivered(&without) {
                    return Err("it is taken and nothing comes of it".to_owned());
                }
                Ok(())
            }
            Ok(_) => Err("taken, though it cannot be honoured".to_owned()),
            Err(error) if can => Err(format!("refused, though it can be honoured: {error}")),
            Err(error) => {
                is_refusal(&error)?;
                let named = match error.detail.as_deref() {
                    Some(ErrorDetail::Parameter {
                        name,
                        item,
                        problem,
                        ..
                    }) => {
                        name == "mcp_servers"
                            && item.as_deref() == Some("files")
                            && problem.starts_with(&format!("{field}: "))
                    }
                    _ => false,
                };
                if named || self.provider.capabilities().mcp.transports.is_empty() {
                    Ok(())
                } else {
                    Err(format!("server and field are not named: {error}"))
                }
            }
        }
    }

    fn check_strict(&self) -> Result<(), String> {
        let can = self.provider.capabilities().mcp.strict;
        let mut params = self.plain_params("hi");
        params.mcp_strict = true;
        let [stdio, ..] = servers();
        for list in [Vec::new(), vec![stdio]] {
            params.mcp_servers = list;
            match self.provider.launch(&params) {
                Ok(launch) if can => self.check_prompt(&params, &launch)?,
                Ok(_) => return Err("taken, though it cannot be honoured".to_owned()),
                Err(error) if can => return Err(format!("refused: {error}")),
                Err(error) if error.parameter() == Some("mcp_strict") => {}
                Err(error) => return Err(format!("refused by another name: {error}")),
            }
        }
        Ok(())
    }

    /// Checks that any server is refused as invalid, or that none of its secrets is visible.
    fn check_any(&self, server: McpServer) -> Result<(), String> {
        let secrets: Vec<String> = secrets(&server).filter(|s| s.len() >= 8).cloned().collect();
        let mut params = self.plain_params("hi");
        params.mcp_servers = vec![server];
        for delivery in self.provider.capabilities().mcp.deliveries {
            params.mcp_delivery = *delivery;
            match self.provider.launch(&params) {
                Ok(launch) => {
                    for secret in &secrets {
                        keeps_secret(&launch, secret)?;
                    }
                    self.check_prompt(&params, &launch)?;
                }
                Err(error) => {
                    if error.code != ErrorCode::PromptTooLarge {
                        is_refusal(&error)?;
                    }
                    if let Some(secret) = secrets.iter().find(|s| error.message.contains(*s)) {
                        return Err(format!("the error has the secret {secret:?}"));
                    }
                }
            }
        }
        Ok(())
    }
}

fn secrets(server: &McpServer) -> impl Iterator<Item = &String> {
    let map: &BTreeMap<String, String> = match &server.transport {
        McpTransport::Stdio { env, .. } => env,
        McpTransport::Http { headers, .. } | McpTransport::Sse { headers, .. } => headers,
        other => panic!("a transport that this suite does not know: {other:?}"),
    };
    map.values()
}

fn any_server() -> impl Strategy<Value = McpServer> {
    // Long enough not to occur elsewhere by chance.
    let secret = "[ -~é\\n\"'$`{}\\\\]{0,4}5ecret[a-z${}\"'\\\\ ]{4,12}";
    let key = "[A-Za-z_][A-Za-z0-9_]{0,8}";
    let map = btree_map(key, secret, 0..4);
    let name = select(vec![
        "a",
        "srv",
        "my-srv",
        "my_srv",
        "a__b",
        "dot.ted",
        "blank srv",
        "",
    ]);
    let kind = select(vec!["stdio", "http", "sse"]);
    (name, kind, vec(any::<String>(), 0..3), map).prop_map(|(name, kind, args, map)| {
        let transport = match kind {
            "stdio" => McpTransport::Stdio {
                command: "server".into(),
                args,
                env: map,
                cwd: None,
            },
            "http" => McpTransport::Http {
                url: "https://example.com/mcp".into(),
                headers: map,
            },
            _ => McpTransport::Sse {
                url: "https://example.com/sse".into(),
                headers: map,
            },
        };
        McpServer::new(name, transport)
    })
}

/// Checks that the secret is neither in the process list nor in a file of the user.
fn keeps_secret(launch: &Launch, secret: &str) -> Result<(), String> {
    for arg in &launch.args {
        if holds(arg.as_bytes(), secret) {
            let arg = arg.to_string_lossy();
            return Err(format!("the secret {secret:?} is in the argument {arg}"));
        }
    }
    if let Some(config) = &launch.config
        && config.location == ConfigLocation::Lease
    {
        for (name, value) in &config.entries {
            if holds(value.to_string().as_bytes(), secret) {
                return Err(format!(
                    "a secret is in the user's file, at {name}: {value}"
                ));
            }
        }
    }
    Ok(())
}

/// Checks that the CLI can find this text.
fn is_delivered(launch: &Launch, text: &str) -> Result<(), String> {
    if delivered(launch).iter().any(|bytes| holds(bytes, text)) {
        Ok(())
    } else {
        Err(format!("{text:?} does not reach the CLI"))
    }
}

/// Returns everything that the CLI receives.
fn delivered(launch: &Launch) -> Vec<Vec<u8>> {
    let args = launch.args.iter().map(|arg| arg.as_bytes().to_vec());
    let variables = launch.env.iter().chain(&launch.env_merged);
    let variables = variables.map(|(name, value)| format!("{name}={value}").into_bytes());
    let files = launch.private_files.iter().map(|file| file.content.clone());
    let config = launch.config.iter().flat_map(|config| &config.entries);
    let config = config.map(|(name, value)| format!("{name}={value}").into_bytes());
    args.chain(variables).chain(files).chain(config).collect()
}

/// Returns whether the text is there, literally or escaped as in JSON.
fn holds(bytes: &[u8], text: &str) -> bool {
    let quoted = serde_json::Value::from(text).to_string();
    let as_json = &quoted[1..quoted.len() - 1];
    [text, as_json].iter().any(|text| {
        let text = OsStr::new(text).as_bytes();
        bytes.windows(text.len()).any(|window| window == text)
    })
}
