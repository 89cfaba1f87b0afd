//! An editor, message by message.

use std::time::Duration;

use serde_json::{Value, json};
use teamster_acp_server::{Disconnect, EditorServer};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, ReadHalf, WriteHalf};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// The time limit of a message.
const LIMIT: Duration = Duration::from_secs(20);

/// Returns whether this is an update with commands of the agent. Those of the server are in every update.
pub(crate) fn is_agent_commands(message: &Value) -> bool {
    let update = &message["params"]["update"];
    let is_own = update["availableCommands"][0]["name"] == "status";
    update["sessionUpdate"] == "available_commands_update" && !is_own
}

pub(crate) struct Editor {
    lines: tokio::io::Lines<BufReader<ReadHalf<DuplexStream>>>,
    writer: WriteHalf<DuplexStream>,
    served: JoinHandle<Disconnect>,
    stop: oneshot::Sender<()>,
    pub(crate) seen: Vec<Value>,
    id: u64,
}

impl Editor {
    /// Connects to the server and initializes.
    pub(crate) async fn start(server: EditorServer) -> Self {
        Self::start_as(server, "test").await.0
    }

    /// The same with this name, and the answer.
    pub(crate) async fn start_as(server: EditorServer, name: &str) -> (Self, Value) {
        let (here, there) = tokio::io::duplex(1 << 16);
        let (reader, writer) = tokio::io::split(there);
        let (stop, stopped) = oneshot::channel();
        let served = tokio::spawn(async move {
            let stopped = async {
                if stopped.await.is_err() {
                    std::future::pending::<()>().await;
                }
            };
            server.serve(reader, writer, stopped).await
        });
        let (reader, writer) = tokio::io::split(here);
        let mut editor = Self {
            lines: BufReader::new(reader).lines(),
            writer,
            served,
            stop,
            seen: Vec::new(),
            id: 0,
        };
        let about = json!({"protocolVersion": 1, "clientInfo": {"name": name, "version": "1"}});
        let answer = editor.call("initialize", &about).await;
        (editor, answer)
    }

    pub(crate) async fn write(&mut self, message: &Value) {
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

    pub(crate) async fn answer(&mut self, id: u64) -> Value {
        self.wait("answer", |it| it["id"] == id && it["method"].is_null())
            .await
    }

    pub(crate) async fn call(&mut self, method: &str, params: &Value) -> Value {
        let id = self.send(method, params).await;
        self.answer(id).await
    }

    /// Begins a session in `/w` and returns its id.
    pub(crate) async fn begin(&mut self) -> String {
        self.begin_with(&json!({"cwd": "/w", "mcpServers": []}))
            .await
    }

    pub(crate) async fn begin_with(&mut self, params: &Value) -> String {
        let begun = self.call("session/new", params).await;
        let id = begun["result"]["sessionId"].as_str();
        id.unwrap_or_else(|| panic!("{begun}")).to_owned()
    }

    /// Loads a session of `/w`.
    pub(crate) async fn load(&mut self, session: &str) -> Value {
        let params = json!({"sessionId": session, "cwd": "/w", "mcpServers": []});
        self.call("session/load", &params).await
    }

    /// Returns the sessions of a list.
    pub(crate) async fn list(&mut self, params: &Value) -> Vec<Value> {
        let listed = self.call("session/list", params).await;
        let sessions = listed["result"]["sessions"].as_array();
        sessions.unwrap_or_else(|| panic!("{listed}")).clone()
    }

    pub(crate) async fn close(&mut self, session: &str) -> Value {
        let params = json!({"sessionId": session});
        self.call("session/close", &params).await
    }

    /// Cancels the turn in progress.
    pub(crate) async fn cancel(&mut self, session: &str) {
        let params = json!({"sessionId": session});
        self.notify("session/cancel", &params).await;
    }

    /// Waits for this text of the agent or the server.
    pub(crate) async fn said(&mut self, text: &str) {
        let shown = |it: &Value| it["params"]["update"]["content"]["text"] == text;
        self.wait(text, shown).await;
    }

    /// Waits for a request for permission.
    pub(crate) async fn request(&mut self) -> Value {
        let is_it = |it: &Value| it["method"] == "session/request_permission";
        self.wait("request", is_it).await
    }

    /// Answers a request for permission.
    pub(crate) async fn choose(&mut self, request: &Value, option: &str) {
        let outcome = json!({"outcome": {"outcome": "selected", "optionId": option}});
        let response = json!({"jsonrpc": "2.0", "id": request["id"], "result": outcome});
        self.write(&response).await;
    }

    pub(crate) async fn prompt(&mut self, session: &str, text: &str) -> u64 {
        let prompt = json!([{"type": "text", "text": text}]);
        self.send(
            "session/prompt",
            &json!({"sessionId": session, "prompt": prompt}),
        )
        .await
    }

    /// Sends a prompt and returns the reason for which its turn ended.
    pub(crate) async fn turn(&mut self, session: &str, text: &str) -> String {
        let id = self.prompt(session, text).await;
        self.stop_reason(id).await
    }

    pub(crate) async fn stop_reason(&mut self, id: u64) -> String {
        let answer = self.answer(id).await;
        let reason = answer["result"]["stopReason"].as_str();
        reason.unwrap_or_else(|| panic!("{answer}")).to_owned()
    }

    pub(crate) async fn set(&mut self, session: &str, option: &str, value: &str) {
        let params = json!({"sessionId": session, "configId": option, "value": value});
        let answer = self.call("session/set_config_option", &params).await;
        assert!(answer["result"].is_object(), "{answer}");
    }

    /// Returns the contents of the updates of this kind so far.
    pub(crate) fn texts(&self, kind: &str) -> Vec<&str> {
        let updates = self.seen.iter().map(|it| &it["params"]["update"]);
        let updates = updates.filter(|it| it["sessionUpdate"] == kind);
        updates
            .filter_map(|it| it["content"]["text"].as_str())
            .collect()
    }

    /// Closes the editor's output and waits for the end of the server.
    pub(crate) async fn end(mut self) -> Disconnect {
        self.writer.shutdown().await.unwrap();
        timeout(LIMIT, self.served).await.unwrap().unwrap()
    }

    /// Stops the server.
    pub(crate) async fn stop(self) -> Disconnect {
        self.stop.send(()).unwrap();
        timeout(LIMIT, self.served).await.unwrap().unwrap()
    }
}
