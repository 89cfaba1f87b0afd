use std::borrow::Cow;

use rmcp::RoleClient;
use rmcp::model::{
    ClientRequest, ListToolsRequest, ListToolsResult, PaginatedRequestParams, ServerResult,
};
use rmcp::service::Peer;
use serde_json::Value;

use crate::error::{ClientError, Method};

/// Maximum number of listed tools. A longer list is taken for an endless one.
const MOST_TOOLS: usize = 10_000;

/// A tool of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServerTool {
    /// Name of the tool, without the server's.
    pub name: String,
    /// Description, if the server has one.
    pub description: Option<String>,
    /// JSON Schema of the input.
    pub input_schema: Value,
}

impl ServerTool {
    /// Creates a tool whose input is any object.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            description: None,
            input_schema: serde_json::json!({"type": "object"}),
        }
    }
}

impl From<rmcp::model::Tool> for ServerTool {
    fn from(tool: rmcp::model::Tool) -> Self {
        Self {
            name: tool.name.into_owned(),
            description: tool.description.map(Cow::into_owned),
            input_schema: Value::Object((*tool.input_schema).clone()),
        }
    }
}

/// The tools of a server.
#[derive(Debug, Default)]
pub(crate) struct ToolList {
    pub(crate) tools: Vec<ServerTool>,
    /// Names of the malformed ones, each with what is wrong with it.
    pub(crate) left_out: Vec<String>,
}

/// Lists the tools of all pages. One that is malformed is left out, and the others can be used.
pub(crate) async fn list_tools(client: &Peer<RoleClient>) -> Result<ToolList, ClientError> {
    let mut list = ToolList::default();
    let mut cursor = None;
    loop {
        let params = PaginatedRequestParams::default().with_cursor(cursor.clone());
        let request = ListToolsRequest {
            params: Some(params),
            ..ListToolsRequest::default()
        };
        // The method of the SDK for this takes a page as a whole or not at all.
        let response = client.send_request(ClientRequest::ListToolsRequest(request));
        let response = response
            .await
            .map_err(|error| ClientError::of(Method::ListTools, &error))?;
        let next = match response {
            ServerResult::ListToolsResult(ListToolsResult {
                tools, next_cursor, ..
            }) => {
                list.tools.extend(tools.into_iter().map(ServerTool::from));
                next_cursor
            }
            ServerResult::CustomResult(page) => list.add_page(&page.0)?,
            _ => return Err(MALFORMED),
        };
        if next.is_none() {
            return Ok(list);
        }
        if list.tools.len() + list.left_out.len() > MOST_TOOLS || next == cursor {
            return Err(ClientError::EndlessTools);
        }
        cursor = next;
    }
}

const MALFORMED: ClientError = ClientError::Malformed {
    method: Method::ListTools,
};

impl ToolList {
    /// Adds the tools of a page that has a malformed one. Returns the cursor of the next page.
    fn add_page(&mut self, page: &Value) -> Result<Option<String>, ClientError> {
        let tools = page.get("tools").and_then(Value::as_array);
        for definition in tools.ok_or(MALFORMED)? {
            match read_tool(definition) {
                Ok(tool) => self.tools.push(tool),
                Err(problem) => {
                    let number = self.tools.len() + self.left_out.len() + 1;
                    let name = definition.get("name").and_then(Value::as_str);
                    let name = name.map_or_else(|| format!("number {number}"), str::to_owned);
                    self.left_out.push(format!("{name} ({problem})"));
                }
            }
        }
        match page.get("nextCursor") {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(cursor)) => Ok(Some(cursor.clone())),
            Some(_) => Err(MALFORMED),
        }
    }
}

/// Returns a tool, or what is wrong with its definition. What this client does not use may be anything.
fn read_tool(definition: &Value) -> Result<ServerTool, &'static str> {
    let text = |field: &str| definition.get(field).and_then(Value::as_str);
    let mut tool = ServerTool::new(text("name").ok_or("it has no `name`")?);
    tool.description = text("description").map(str::to_owned);
    match definition.get("inputSchema") {
        Some(schema @ Value::Object(_)) => tool.input_schema = schema.clone(),
        Some(_) => return Err("its `inputSchema` is not an object"),
        None => return Err("it has no `inputSchema`"),
    }
    Ok(tool)
}
