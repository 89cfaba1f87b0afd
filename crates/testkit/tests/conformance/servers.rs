//! Delivery of MCP servers to the toy CLI: in a private file or in the user's file, with variables.

use serde_json::{Map, Value, json};
use teamster_core::provider::{
    Args, ConfigEdit, ConfigFormat, ConfigLocation, ConfigTable, mcp_variable,
};
use teamster_core::{ExecuteParams, McpDelivery, McpServer, McpTransport};

use super::toy::Fault;

#[derive(Default)]
pub(crate) struct Servers {
    pub(crate) config: Option<ConfigEdit>,
    pub(crate) env: Vec<(String, String)>,
}

impl Servers {
    pub(crate) fn new(params: &ExecuteParams, fault: Fault, args: &mut Args) -> Self {
        let mut all = Self::default();
        if params.mcp_strict {
            args.add("--only-these");
        }
        if params.mcp_servers.is_empty() || fault == Fault::ServersDropped {
            return all;
        }
        let private = params.mcp_delivery == McpDelivery::Private;
        let hidden = !private && fault != Fault::SecretInFile;
        let entries: Vec<_> = params
            .mcp_servers
            .iter()
            .map(|server| (server.name.clone(), all.entry(server, hidden, fault)))
            .collect();
        if private {
            let object: Map<_, _> = entries.iter().cloned().collect();
            if fault == Fault::SecretInArguments {
                args.value("--servers", Value::Object(object).to_string());
            } else {
                args.private_file("--servers=", Value::Object(object).to_string());
            }
        }
        if !private || fault == Fault::LeaseUnasked {
            all.config = Some(ConfigEdit {
                table: ConfigTable {
                    file: "/home/me/toy.json".into(),
                    format: ConfigFormat::Json,
                    key: "servers",
                },
                entries: if private { Vec::new() } else { entries },
                new_file: "",
                location: ConfigLocation::Lease,
            });
        }
        all
    }

    fn entry(&mut self, server: &McpServer, hidden: bool, fault: Fault) -> Value {
        let McpTransport::Stdio {
            command, args, env, ..
        } = &server.transport
        else {
            return json!({});
        };
        let mut values = Map::new();
        for (key, value) in env {
            let mut shown = value.clone();
            if hidden {
                let variable = mcp_variable(&server.name, key);
                shown = format!("${variable}");
                self.env.push((variable, value.clone()));
            }
            values.insert(key.clone(), shown.into());
        }
        let mut entry = json!({"command": command, "args": args, "env": values});
        if let Some(limit) = server.startup_timeout
            && fault != Fault::TimeoutDropped
        {
            entry["timeout"] = limit.as_secs_f64().into();
        }
        entry
    }
}
