//! MCP servers of a run, and their tools.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};
use teamster_core::provider::{Secrets, mcp_content};
use teamster_core::text::{excerpt, one_line};
use teamster_core::{Image, McpServer, McpServerStatus, McpTool};
use teamster_mcp_client::{CallResult, Client, ConnectOptions};

use crate::conversation::Input;
use crate::tools::{Output, ToolContext, shortened};
use crate::wire::ToolSpec;

/// Maximum length of a tool's name that all services accept.
const LONGEST_NAME: usize = 64;

/// MCP servers of a run or session.
#[derive(Default)]
pub(crate) struct Servers {
    running: Vec<Client>,
    pub(crate) statuses: Vec<McpServerStatus>,
    pub(crate) tools: Vec<ServerTool>,
}

#[derive(Debug, Clone)]
pub(crate) struct ServerTool {
    pub(crate) spec: ToolSpec,
    pub(crate) mcp: McpTool,
    server: usize,
    timeout: Option<Duration>,
}

impl Servers {
    /// Starts all servers concurrently. A server that fails becomes a notice, and the run continues without it.
    pub(crate) async fn start(context: &ToolContext) -> (Self, Vec<String>) {
        let wanted = &context.params.mcp_servers;
        let started = wanted.iter().map(|server| {
            let (context, server) = (context.clone(), server.clone());
            tokio::spawn(async move { start(&context, &server).await })
        });
        let started: Vec<_> = started.collect();
        let (mut servers, mut notices) = (Self::default(), Vec::new());
        for (server, started) in wanted.iter().zip(started) {
            let started = started
                .await
                .unwrap_or_else(|_| Err("its task failed".to_owned()));
            let status = match started {
                Ok(client) => {
                    notices.extend(client.left_out().map(|tools| {
                        let name = &server.name;
                        format!(
                            "the MCP server {name} has malformed tools, which are left out: {tools}"
                        )
                    }));
                    servers.add(server, client);
                    "connected"
                }
                Err(problem) => {
                    let problem = Secrets::of([server]).hide(problem);
                    notices.push(format!(
                        "the MCP server {} cannot be used: {problem}",
                        server.name
                    ));
                    "failed"
                }
            };
            let status = McpServerStatus::new(server.name.clone(), status);
            servers.statuses.push(status);
        }
        (servers, notices)
    }

    fn add(&mut self, server: &McpServer, client: Client) {
        let only = &server.tools.only;
        let is_wanted = |name: &str| {
            only.as_ref()
                .is_none_or(|only| only.iter().any(|it| it == name))
                && !server.tools.except.iter().any(|it| it == name)
        };
        for tool in client.tools() {
            if !is_wanted(&tool.name) {
                continue;
            }
            let spec = ToolSpec {
                name: self.free_name(whole_name(&server.name, &tool.name)),
                description: tool.description.clone().unwrap_or_default(),
                schema: object_schema(&tool.input_schema),
            };
            self.tools.push(ServerTool {
                spec,
                mcp: McpTool::new(server.name.clone(), tool.name.clone()),
                server: self.running.len(),
                timeout: server.tool_timeout,
            });
        }
        self.running.push(client);
    }

    /// Returns the tool with this name, as the model sees it.
    pub(crate) fn tool(&self, name: &str) -> Option<&ServerTool> {
        self.tools.iter().find(|tool| tool.spec.name == name)
    }

    pub(crate) async fn call(&self, tool: &ServerTool, input: &Value) -> Output {
        let Some(client) = self.running.get(tool.server) else {
            return Output::error("its server is gone");
        };
        let arguments = input.as_object().cloned();
        let limit = tool.timeout.unwrap_or(Duration::MAX);
        let answer = tokio::select! {
            answer = client.call(&tool.mcp.tool, arguments) => answer,
            () = crate::request::sleep(limit) => {
                let server = &tool.mcp.server;
                return Output::error(format!("the MCP server {server} did not answer within {limit:?}"));
            }
        };
        match answer {
            Ok(result) => output(result),
            Err(error) => Output::error(error.to_string()),
        }
    }

    /// Stops all servers: closes their stdin, then sends SIGTERM, then SIGKILL.
    pub(crate) async fn end(&mut self) {
        let servers = std::mem::take(&mut self.running);
        let ends = servers.into_iter().map(|server| tokio::spawn(server.end()));
        for end in ends.collect::<Vec<_>>() {
            let _ = end.await;
        }
        self.tools.clear();
    }

    /// Returns the name, or one with a number if another tool has it: long names are cut.
    fn free_name(&self, name: String) -> String {
        let numbered = (2..).map(|n| {
            let end = format!("_{n}");
            let kept = name.len().min(LONGEST_NAME - end.len());
            format!("{}{end}", &name[..kept])
        });
        let mut names = std::iter::once(name.clone()).chain(numbered);
        let free = names.find(|name| self.tool(name).is_none());
        free.unwrap_or(name)
    }
}

fn whole_name(server: &str, tool: &str) -> String {
    let plain = |c: char| {
        if c.is_ascii_alphanumeric() || "_-".contains(c) {
            c
        } else {
            '_'
        }
    };
    let name: String = format!("mcp__{server}__{tool}")
        .chars()
        .map(plain)
        .collect();
    name[..name.len().min(LONGEST_NAME)].to_owned()
}

/// Returns a tool's schema in the form that every service takes: an object with properties, without alternatives at the
/// top. A property by which the alternatives differ takes the values of all of them, and one that not all require is
/// optional: the server checks the rest.
fn object_schema(schema: &Value) -> Value {
    let mut top = schema.as_object().cloned().unwrap_or_default();
    let mut properties = match top.remove("properties") {
        Some(Value::Object(properties)) => properties,
        _ => Map::new(),
    };
    let mut required = match top.remove("required") {
        Some(Value::Array(names)) => names,
        _ => Vec::new(),
    };
    for (word, joint) in [("anyOf", "anyOf"), ("oneOf", "anyOf"), ("allOf", "allOf")] {
        let Some(Value::Array(branches)) = top.remove(word) else {
            continue;
        };
        let branches = branches.iter().map(|branch| resolved(branch, schema));
        let branches: Vec<&Value> = branches.collect();
        let mut found: BTreeMap<&str, Vec<&Value>> = BTreeMap::new();
        for branch in &branches {
            let own = branch.get("properties").and_then(Value::as_object);
            for (name, value) in own.into_iter().flatten() {
                let values = found.entry(name.as_str()).or_default();
                if !values.contains(&value) {
                    values.push(value);
                }
            }
        }
        for (name, values) in found {
            let requires = |branch: &&Value| {
                let names = branch.get("required").and_then(Value::as_array);
                names.is_some_and(|names| names.iter().any(|it| it == name))
            };
            let is_required = if word == "allOf" {
                branches.iter().any(requires)
            } else {
                branches.iter().all(requires)
            };
            if is_required && !required.iter().any(|it| it == name) {
                required.push(name.into());
            }
            properties
                .entry(name)
                .or_insert_with(|| match values.as_slice() {
                    [one] => (*one).clone(),
                    all => json!({ joint: all }),
                });
        }
    }
    for word in ["enum", "not"] {
        top.remove(word);
    }
    if !required.is_empty() {
        top.insert("required".to_owned(), required.into());
    }
    top.insert("type".to_owned(), "object".into());
    top.insert("properties".to_owned(), properties.into());
    let mut whole = Value::Object(top);
    add_items(&mut whole);
    whole
}

/// Returns the definition in `whole` to which a schema refers, or else the schema itself.
fn resolved<'a>(schema: &'a Value, whole: &'a Value) -> &'a Value {
    let reference = schema.get("$ref").and_then(Value::as_str);
    let target = reference.and_then(|path| whole.pointer(path.strip_prefix('#')?));
    target.unwrap_or(schema)
}

/// Gives each list of a schema one schema for its items, which services require: any, where it has none, or that of any
/// position, where each has its own.
fn add_items(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            let is_list = |kind: &Value| {
                let mut kinds = kind.as_array().into_iter().flatten();
                kind == "array" || kinds.any(|kind| kind == "array")
            };
            let has_one = fields.get("items").is_some_and(Value::is_object);
            if !has_one && fields.get("type").is_some_and(is_list) {
                let items = match fields.remove("items") {
                    Some(Value::Array(each)) if !each.is_empty() => json!({ "anyOf": each }),
                    _ => json!({}),
                };
                fields.insert("items".to_owned(), items);
            }
            fields.values_mut().for_each(add_items);
        }
        Value::Array(values) => values.iter_mut().for_each(add_items),
        _ => {}
    }
}

fn output(result: CallResult) -> Output {
    let mut blocks = result.content;
    if blocks.is_empty()
        && let Some(structured) = &result.structured
    {
        blocks.push(json!({"type": "text", "text": structured.to_string()}));
    }
    let text = mcp_content(&blocks);
    let image = |block: &Value| {
        let field = |name: &str| block.get(name)?.as_str().map(str::to_owned);
        (field("type")? == "image").then_some(())?;
        let data = field("data")?;
        let start = data.get(..16).and_then(|start| STANDARD.decode(start).ok());
        let own = start.and_then(|bytes| Image::type_of(&bytes));
        Some(Input::Image {
            media_type: own.map(str::to_owned).or_else(|| field("mimeType"))?,
            data,
        })
    };
    let images: Vec<_> = blocks.iter().filter_map(image).collect();
    let for_model = (!images.is_empty()).then(|| {
        let text = Input::text(shortened(&text));
        std::iter::once(text).chain(images).collect()
    });
    Output {
        for_model,
        is_error: result.is_error,
        ..Output::text(text)
    }
}

async fn start(context: &ToolContext, server: &McpServer) -> Result<Client, String> {
    let mut options = ConnectOptions::default().directory(context.directory());
    options.environment = environment(context);
    if let Some(limit) = server.startup_timeout {
        options.limit = limit;
    }
    let failed = match Client::connect(server, &options).await {
        Ok(client) => return Ok(client),
        Err(failed) => failed,
    };
    let stderr = one_line(&failed.stderr.join("\n"));
    Err(if stderr.is_empty() {
        failed.error.to_string()
    } else {
        let stderr = excerpt(&stderr, 500);
        format!("{}; stderr: {stderr}", failed.error)
    })
}

/// Returns the environment of a server without its own variables. It is the same as that of commands.
fn environment(context: &ToolContext) -> BTreeMap<OsString, OsString> {
    let is_let_through =
        |name: &str| context.config.lets_through(name) && !context.hidden.contains(&name);
    let ours = std::env::vars_os().filter(|(name, _)| name.to_str().is_some_and(is_let_through));
    let mut set: BTreeMap<_, _> = ours.collect();
    let of_run = context.params.env.iter();
    let of_run = of_run.filter(|(name, _)| !context.hidden.contains(&name.as_str()));
    set.extend(of_run.map(|(name, value)| (name.into(), value.into())));
    set
}

#[cfg(test)]
mod tests {
    use super::*;

    // Made by hand: schemas of servers that one service or the other refuses, with each request.
    #[test]
    fn schemas_are_such_that_every_service_takes_them() {
        let empty = json!({"type": "object", "properties": {}});
        for schema in [
            json!({}),
            json!({"type": "object"}),
            json!({"type": ["object", "null"], "properties": null, "required": null}),
            Value::Null,
        ] {
            assert_eq!(object_schema(&schema), empty, "{schema}");
        }
        let lists = json!({"type": "object", "properties": {
            "a": {"type": "array"},
            "b": {"type": "array", "items": [{"type": "string"}, {"type": "number"}]},
            "n": {"type": ["array", "null"]},
            "c": {"type": "array", "items": {"type": "array"}},
        }});
        assert_eq!(
            object_schema(&lists)["properties"],
            json!({
                "a": {"type": "array", "items": {}},
                "b": {"type": "array", "items": {"anyOf": [{"type": "string"}, {"type": "number"}]}},
                "n": {"type": ["array", "null"], "items": {}},
                "c": {"type": "array", "items": {"type": "array", "items": {}}},
            })
        );
        let a = json!({"type": "string"});
        let one_of_two = json!({
            "$defs": {"B": {"properties": {"b": a}}},
            "anyOf": [{"properties": {"a": a}, "required": ["a"]}, {"$ref": "#/$defs/B"}],
            "properties": {"c": a},
            "required": ["c"],
        });
        assert_eq!(
            object_schema(&one_of_two),
            json!({
                "$defs": {"B": {"properties": {"b": a}}},
                "type": "object",
                "properties": {"a": a, "b": a, "c": a},
                "required": ["c"],
            })
        );
    }

    #[test]
    fn image_of_a_tool_has_the_type_of_its_bytes() {
        let png = STANDARD.encode(b"\x89PNG\r\n\x1a\n....");
        for (data, expected) in [(&*png, "image/png"), ("AAEC", "image/jpeg")] {
            let block = json!({"type": "image", "mimeType": "image/jpeg", "data": data});
            let content = output(CallResult::new(vec![block])).for_model.unwrap();
            let image = Input::Image {
                media_type: expected.to_owned(),
                data: data.to_owned(),
            };
            assert_eq!(content.last(), Some(&image));
        }
    }

    // Made by hand, as tools with several forms of arguments have them.
    #[test]
    fn property_of_alternatives_takes_the_values_of_each() {
        let (a, b) = (json!({"const": "a"}), json!({"const": "b"}));
        let text = json!({"type": "string"});
        let branches = json!([
            {"properties": {"kind": a, "path": text}, "required": ["kind", "path"]},
            {"properties": {"kind": b, "path": text}, "required": ["kind"]},
        ]);
        let schema = |word: &str| object_schema(&json!({ "not": {}, word: branches }));
        for word in ["anyOf", "oneOf"] {
            let expected = json!({
                "type": "object",
                "properties": {"kind": {"anyOf": [a, b]}, "path": text},
                "required": ["kind"],
            });
            assert_eq!(schema(word), expected, "{word}");
        }
        let expected = json!({
            "type": "object",
            "properties": {"kind": {"allOf": [a, b]}, "path": text},
            "required": ["kind", "path"],
        });
        assert_eq!(schema("allOf"), expected);
    }

    #[test]
    fn names_are_such_that_every_service_takes_them() {
        assert_eq!(whole_name("tiny", "echo"), "mcp__tiny__echo");
        assert_eq!(whole_name("a", "x.y/z é"), "mcp__a__x_y_z__");
        let long = whole_name("a", &"t".repeat(99));
        assert_eq!(long.len(), LONGEST_NAME);
        let mut servers = Servers::default();
        for expected in [long.clone(), format!("{}_2", &long[..LONGEST_NAME - 2])] {
            let name = servers.free_name(long.clone());
            assert_eq!(name, expected);
            servers.tools.push(ServerTool {
                spec: ToolSpec {
                    name,
                    description: String::new(),
                    schema: Value::Null,
                },
                mcp: McpTool::new("a", "t"),
                server: 0,
                timeout: None,
            });
        }
    }
}
