use teamster_core::McpServer;
use teamster_core::provider::Secrets;

use crate::client::Client;
use crate::error::ClientError;
use crate::options::{ConnectOptions, Protocol};
use crate::tool_list::ServerTool;

/// Answer of a server to a probe. Texts have the server's secrets hidden.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct ProbeAnswer {
    /// Name and version, if reported.
    pub server: Option<(String, String)>,
    /// The protocol version that was agreed on.
    pub protocol: Option<String>,
    /// Tools of the server. Their schemas are unchanged.
    pub tools: Vec<ServerTool>,
    /// The tools that were left out because their definition is malformed, each with the reason, in one line.
    pub left_out: Option<String>,
}

/// Result of a probe.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Probed {
    /// The answer, or the error.
    pub answer: Result<ProbeAnswer, ClientError>,
    /// The first line on stdout that was not a message.
    pub garbage: Option<String>,
    /// The last lines on stderr, if it failed.
    pub stderr: Vec<String>,
}

/// Starts a server, reads its name and tools, and ends it.
///
/// When this returns or is dropped, no process of the server's group remains.
///
/// ```no_run
/// use teamster_core::McpServer;
/// use teamster_mcp_client::{ConnectOptions, probe};
///
/// # async fn example() -> Result<(), teamster_mcp_client::ClientError> {
/// let server = McpServer::stdio("tracker", "tracker-mcp", ["--read-only"]);
/// let probed = probe(&server, &ConnectOptions::default()).await;
/// for tool in probed.answer?.tools {
///     println!("{}", tool.name);
/// }
/// # Ok(())
/// # }
/// ```
pub async fn probe(server: &McpServer, options: &ConnectOptions) -> Probed {
    let connected = match Client::connect(server, options).await {
        // Some servers end at a first request that they do not know.
        Err(failed) if options.protocol == Protocol::Newest && failed.error.is_of_discover() => {
            let older = options.clone().protocol(Protocol::Initialize);
            Client::connect(server, &older).await
        }
        connected => connected,
    };
    let client = match connected {
        Ok(client) => client,
        Err(failed) => {
            return Probed {
                answer: Err(failed.error),
                garbage: failed.garbage,
                stderr: failed.stderr,
            };
        }
    };
    let secrets = Secrets::of([server]);
    let tools = client.tools().iter().map(|tool| {
        let hide = |text: &String| secrets.hide(text.clone());
        ServerTool {
            name: hide(&tool.name),
            description: tool.description.as_ref().map(hide),
            input_schema: tool.input_schema.clone(),
        }
    });
    let answer = ProbeAnswer {
        server: client.server_info(),
        protocol: client.protocol_version(),
        tools: tools.collect(),
        left_out: client.left_out(),
    };
    let garbage = client.garbage();
    client.end().await;
    Probed {
        answer: Ok(answer),
        garbage,
        stderr: Vec::new(),
    }
}
