//! A client of the server, message by message, and the machine of its agents.

use std::time::Duration;

use serde_json::{Value, json};
use teamster_api::usage::{Dimension, Figures, PriceSource, UsageQuery, UsageSummary};
use teamster_api::{MachineService, ProviderReport, ServiceError};
use teamster_core::Capabilities;
use teamster_mcp_server::AgentServer;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, ReadHalf, WriteHalf};
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// The time limit of a message, of a clock that may be paused.
const LIMIT: Duration = Duration::from_mins(5);

pub(crate) struct Peer {
    lines: tokio::io::Lines<BufReader<ReadHalf<DuplexStream>>>,
    writer: WriteHalf<DuplexStream>,
    served: JoinHandle<()>,
    pub(crate) server: AgentServer,
    pub(crate) seen: Vec<Value>,
    id: u64,
}

impl Peer {
    pub(crate) fn start(server: AgentServer) -> Self {
        let (here, there) = tokio::io::duplex(1 << 16);
        let (reader, writer) = tokio::io::split(there);
        let serving = server.clone();
        let served = tokio::spawn(async move { serving.serve(reader, writer).await });
        let (reader, writer) = tokio::io::split(here);
        Self {
            lines: BufReader::new(reader).lines(),
            writer,
            served,
            server,
            seen: Vec::new(),
            id: 0,
        }
    }

    /// Begins as a client of before 2026 does.
    pub(crate) async fn begin(&mut self) -> Value {
        let extensions = json!({"io.modelcontextprotocol/tasks": {}});
        let about = self
            .request(
                "initialize",
                &json!({
                    "protocolVersion": "2025-11-25",
                    "capabilities": {"extensions": extensions},
                    "clientInfo": {"name": "test", "version": "1"},
                }),
            )
            .await;
        assert_eq!(about["result"]["protocolVersion"], "2025-11-25", "{about}");
        self.notify("notifications/initialized", &json!({})).await;
        about
    }

    async fn write(&mut self, message: &Value) {
        let line = format!("{message}\n");
        self.writer.write_all(line.as_bytes()).await.unwrap();
    }

    pub(crate) async fn send(&mut self, method: &str, params: &Value) -> u64 {
        self.id += 1;
        let id = self.id;
        self.write(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))
            .await;
        id
    }

    pub(crate) async fn notify(&mut self, method: &str, params: &Value) {
        self.write(&json!({"jsonrpc": "2.0", "method": method, "params": params}))
            .await;
    }

    /// Waits for a message; it and those before it are in `seen`.
    pub(crate) async fn wait(&mut self, what: &str, is_it: impl Fn(&Value) -> bool) -> Value {
        loop {
            let line = timeout(LIMIT, self.lines.next_line()).await;
            let Ok(Ok(Some(line))) = line else {
                panic!("no {what}: {:#?}", self.seen);
            };
            let message: Value = serde_json::from_str(&line).unwrap();
            self.seen.push(message.clone());
            if is_it(&message) {
                return message;
            }
        }
    }

    pub(crate) async fn request(&mut self, method: &str, params: &Value) -> Value {
        let id = self.send(method, params).await;
        self.wait("response", |it| it["id"] == id).await
    }

    /// The data of a tool's answer.
    pub(crate) async fn tool(&mut self, name: &str, arguments: Value) -> Value {
        let call = super::call(name, &arguments);
        let answer = self.request("tools/call", &call).await;
        let result = answer["result"].clone();
        assert!(result["structuredContent"].is_object(), "{answer}");
        result["structuredContent"].clone()
    }

    /// The text of a tool's refusal.
    pub(crate) async fn problem(&mut self, name: &str, arguments: Value) -> String {
        let call = super::call(name, &arguments);
        let answer = self.request("tools/call", &call).await;
        assert_eq!(answer["result"]["isError"], true, "{answer}");
        let data = &answer["result"]["structuredContent"]["error"]["message"];
        assert_eq!(data, &answer["result"]["content"][0]["text"], "{answer}");
        data.as_str().unwrap().to_owned()
    }

    pub(crate) async fn start_run(&mut self, prompt: &str) -> String {
        let started = self
            .tool("start", json!({"agent": "mock", "prompt": prompt}))
            .await;
        started["runId"].as_str().unwrap().to_owned()
    }

    /// Disconnects and waits for the end of the server.
    pub(crate) async fn end(self) {
        drop((self.lines, self.writer));
        self.served.await.unwrap();
        self.server.end().await;
    }
}

/// The machine of the agents.
pub(crate) struct Machine;

#[async_trait::async_trait]
impl MachineService for Machine {
    async fn agents(&self) -> Result<Vec<ProviderReport>, ServiceError> {
        let agents = ["mock", "other"].map(|id| {
            let facts = json!({
                "id": id, "name": "Mock", "usable": true, "inProcess": false, "tested": true,
                "testedVersions": ["1"], "tooOld": false, "install": "-", "login": {"state": "yes"},
            });
            let facts = serde_json::from_value(facts).unwrap();
            let mut report = ProviderReport::new(facts, Capabilities::none());
            report.sessions = true;
            report
        });
        Ok(agents.into())
    }

    async fn usage(&self, query: UsageQuery) -> Result<UsageSummary, ServiceError> {
        let by = query.by.unwrap_or(Dimension::Day);
        let prices = PriceSource::new("a table", "2026-01-01");
        Ok(UsageSummary::new(by, Figures::default(), prices))
    }
}
