//! Tool calls for unknown agents, by the names and JSON Schemas of the tools that a request offers.

use serde_json::{Map, Value, json};

use super::{Call, CallContext};
use crate::Part;
use crate::json::{items, text_of};

#[cfg(test)]
mod tests;

/// A tool that a request offers to the model.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Offer {
    pub(crate) name: String,
    /// The JSON Schema of its arguments; null if there is none.
    schema: Value,
}

/// Returns the tools of a request in any of the protocols.
pub(crate) fn offers(body: &Value) -> Vec<Offer> {
    let tools = items(body, "tools").iter();
    tools
        .flat_map(|tool| match tool["functionDeclarations"].as_array() {
            Some(functions) => functions.iter().collect(),
            None => vec![tool],
        })
        .filter_map(|tool| {
            // Chat Completions nests it in a field.
            let tool = if tool["function"].is_object() {
                &tool["function"]
            } else {
                tool
            };
            let schemas = ["input_schema", "parametersJsonSchema", "parameters"];
            let schema = schemas.iter().map(|key| &tool[*key]);
            let name = text_of(tool, "name");
            (!name.is_empty()).then(|| Offer {
                name: name.to_owned(),
                schema: schema
                    .into_iter()
                    .find(|schema| schema.is_object())
                    .cloned()
                    .unwrap_or_default(),
            })
        })
        .collect()
}

/// Returns the call of an offered tool for a part, or `None` if no known tool is offered.
pub(crate) fn call(part: &Part, context: &CallContext<'_>) -> Option<Call> {
    match part {
        Part::Shell(command) => shell(command, false, context),
        Part::BackgroundShell(command) => shell(command, true, context),
        Part::ReadFile(path) => {
            let (tool, mut input) = of_files(READ, "view", context)?;
            put(tool, &mut input, PATHS, &context.absolute(path).into())?;
            Some(tool.call(input))
        }
        Part::WriteFile { path, content } => {
            let Some((tool, mut input)) = of_files(WRITE, "create", context) else {
                return patch(&context.absolute(path), content, context);
            };
            put(tool, &mut input, PATHS, &context.absolute(path).into())?;
            put(tool, &mut input, CONTENTS, &content.as_str().into())?;
            Some(tool.call(input))
        }
        Part::EditFile { path, old, new } => {
            let (tool, mut input) = of_files(EDIT, "str_replace", context)?;
            put(tool, &mut input, PATHS, &context.absolute(path).into())?;
            put(tool, &mut input, OLD, &old.as_str().into())?;
            put(tool, &mut input, NEW, &new.as_str().into())?;
            Some(tool.call(input))
        }
        Part::Mcp {
            server,
            tool,
            arguments,
        } => mcp(server, tool, arguments, context),
        Part::Agent { prompt, .. } => {
            let tool = named(context, AGENT)?;
            let mut input = Map::new();
            put(tool, &mut input, PROMPTS, &prompt.as_str().into())?;
            Some(tool.call(input))
        }
        Part::Plan(entries) => {
            let tool = named(context, PLAN)?;
            let (list, schema) = tool.property(|schema| schema["type"] == "array")?;
            let entry = |(number, entry): (usize, &String)| {
                let item = &schema["items"];
                let mut fields = Map::new();
                let text = property(item, ENTRIES).unwrap_or("content");
                fields.insert(text.to_owned(), entry.as_str().into());
                // Entries of one id would be one entry.
                if let Some(id) = property(item, "id") {
                    fields.insert(id.to_owned(), (number + 1).to_string().into());
                }
                fill(item, &mut fields);
                Value::Object(fields)
            };
            let entries = entries.iter().enumerate().map(entry).collect();
            Some(tool.call(Map::from_iter([(list.to_owned(), entries)])))
        }
        Part::WebSearch(query) => {
            let tool = named(context, SEARCH)?;
            let mut input = Map::new();
            put(tool, &mut input, QUERIES, &query.as_str().into())?;
            Some(tool.call(input))
        }
        _ => None,
    }
}

// Names in lower case, reduced to letters and digits, in the order of preference, with white space between them.
const SHELL: &str = "
    bash shell runshellcommand runcommand runcommands executecommand executebash terminal
    runterminalcommand runterminalcmd developershell shellcommand exec execute
";
const READ: &str = "read readfile readtextfile readfiles viewfile view openfile cat";
const WRITE: &str = "
    write writefile writetextfile writetofile createfile savefile create save editor
";
const EDIT: &str = "edit editfile replace strreplace replaceinfile patch editor";
const AGENT: &str = "task agent subagent newtask spawnagent delegate";
const PLAN: &str = "todowrite writetodos todolist settodolist updatetodolist updateplan todo plan";
const SEARCH: &str = "websearch searchweb googlewebsearch search";

const COMMANDS: &str = "command commands cmd script code";
const PATHS: &str = "filepath absolutepath path filename file files paths filepaths";
const CONTENTS: &str = "content contents filetext newtext text";
const OLD: &str = "oldstring oldstr oldtext search old";
const NEW: &str = "newstring newstr newtext replace new";
const PROMPTS: &str = "prompt message task instructions description";
const ENTRIES: &str = "content description title step task text";
const QUERIES: &str = "query q search queries";

fn shell(command: &str, in_background: bool, context: &CallContext<'_>) -> Option<Call> {
    let by_argument = || {
        let takes = |offer: &&Offer| property(&offer.schema, "command commands cmd").is_some();
        context.offers.iter().find(takes)
    };
    let tool = named(context, SHELL).or_else(by_argument)?;
    let mut input = Map::new();
    put(tool, &mut input, COMMANDS, &command.into())?;
    if in_background {
        let (flag, _) = tool.property(|schema| schema["type"] == "boolean")?;
        input.insert(flag.to_owned(), true.into());
    }
    Some(tool.call(input))
}

/// Returns the tool with one of these names, or else one for all that is done with files, which has this command. The
/// arguments are those that choose it.
fn of_files<'p>(
    names: &str,
    command: &str,
    context: &CallContext<'p>,
) -> Option<(&'p Offer, Map<String, Value>)> {
    if let Some(tool) = named(context, names) {
        return Some((tool, Map::new()));
    }
    let has = |offer: &&Offer| {
        let choices = &offer.schema["properties"]["command"];
        items(choices, "enum").iter().any(|it| it == command)
    };
    let tool = context.offers.iter().find(has)?;
    let input = Map::from_iter([("command".to_owned(), command.into())]);
    Some((tool, input))
}

/// Returns a call that creates a file by a patch.
fn patch(path: &str, content: &str, context: &CallContext<'_>) -> Option<Call> {
    let tool = named(context, "applypatch")?;
    let lines: Vec<_> = content.lines().map(|line| format!("+{line}")).collect();
    let lines = lines.join("\n");
    let patch = format!("*** Begin Patch\n*** Add File: {path}\n{lines}\n*** End Patch");
    let mut input = Map::new();
    put(tool, &mut input, "input patch patchtext", &patch.into())?;
    Some(tool.call(input))
}

/// Returns a call of a server's tool. Its name combines those of the server and the tool in one of many ways.
fn mcp(server: &str, tool: &str, arguments: &Value, context: &CallContext<'_>) -> Option<Call> {
    let (server_name, tool_name) = (plain(server), plain(tool));
    let is_it = |offer: &&Offer| {
        let name = plain(&offer.name);
        let rest = name.strip_suffix(&tool_name);
        rest.is_some_and(|rest| rest.ends_with(&server_name))
    };
    let same = |offer: &&Offer| offer.name == tool;
    let mut offers = context.offers.iter();
    let found = offers.clone().find(is_it).or_else(|| offers.find(same));
    if let Some(offer) = found {
        let mut call = Call::new(&offer.name, arguments.clone());
        // OpenHands adds a field to the schemas of all tools, and requires it.
        complete(&mut call, context);
        return Some(call);
    }
    // One tool for the tools of all servers.
    let offer = named(context, "usemcptool mcpcalltool callmcptool")?;
    let input = json!({
        property(&offer.schema, "servername server")?: server,
        property(&offer.schema, "toolname tool name")?: tool,
        property(&offer.schema, "arguments args input")?: arguments,
    });
    Some(Call::new(&offer.name, input))
}

/// Returns the offered tool with the first of these names that occurs.
fn named<'p>(context: &CallContext<'p>, names: &str) -> Option<&'p Offer> {
    let offers = context.offers;
    let mut names = names.split_ascii_whitespace();
    names.find_map(|name| offers.iter().find(|offer| plain(&offer.name) == name))
}

/// Reduces a name to letters and digits in lower case.
fn plain(name: &str) -> String {
    let name = name.chars().filter(char::is_ascii_alphanumeric);
    name.map(|c| c.to_ascii_lowercase()).collect()
}

/// Returns the property of an object's schema with the first of these names that occurs.
fn property<'s>(schema: &'s Value, names: &str) -> Option<&'s str> {
    let properties = schema["properties"].as_object()?;
    let found = |name: &str| properties.keys().find(|key| plain(key) == name);
    let mut names = names.split_ascii_whitespace();
    names.find_map(found).map(String::as_str)
}

/// Adds an argument under the first of these names that the schema has, as a list or in an object if the
/// schema requires that.
fn put(tool: &Offer, input: &mut Map<String, Value>, names: &str, value: &Value) -> Option<()> {
    let name = property(&tool.schema, names)?;
    let schema = &tool.schema["properties"][name];
    input.insert(name.to_owned(), shaped(schema, names, value));
    Some(())
}

fn shaped(schema: &Value, names: &str, value: &Value) -> Value {
    let choices = ["anyOf", "oneOf"].map(|key| items(schema, key));
    let takes_text = |schema: &&Value| schema["type"] == "string";
    if choices
        .iter()
        .any(|them| them.iter().any(|it| takes_text(&it)))
    {
        return value.clone();
    }
    let schema = choices
        .iter()
        .find_map(|them| them.first())
        .unwrap_or(schema);
    match schema["type"].as_str() {
        Some("array") => json!([shaped(&schema["items"], names, value)]),
        Some("object") => {
            let mut fields = Map::new();
            if let Some(name) = property(schema, names) {
                fields.insert(name.to_owned(), value.clone());
            }
            fill(schema, &mut fields);
            Value::Object(fields)
        }
        _ => value.clone(),
    }
}

/// Adds the fields that the offered tool of a call requires and that the call lacks.
pub(super) fn complete(call: &mut Call, context: &CallContext<'_>) {
    let tool = context.offers.iter().find(|offer| offer.name == call.name);
    if let (Some(tool), Value::Object(input)) = (tool, &mut call.input) {
        fill(&tool.schema, input);
    }
}

/// Adds the other fields that a schema requires.
fn fill(schema: &Value, fields: &mut Map<String, Value>) {
    for name in items(schema, "required").iter().filter_map(Value::as_str) {
        if fields.contains_key(name) {
            continue;
        }
        let schema = &schema["properties"][name];
        let chosen = items(schema, "enum").first().cloned();
        let value = chosen.unwrap_or_else(|| match schema["type"].as_str() {
            Some("boolean") => false.into(),
            Some("integer" | "number") => 1.into(),
            Some("array") => json!([]),
            Some("object") => json!({}),
            _ => name.into(),
        });
        fields.insert(name.to_owned(), value);
    }
}

impl Offer {
    fn call(&self, mut input: Map<String, Value>) -> Call {
        fill(&self.schema, &mut input);
        Call::new(&self.name, Value::Object(input))
    }

    /// Returns the first property with a matching schema.
    fn property(&self, is_it: impl Fn(&Value) -> bool) -> Option<(&str, &Value)> {
        let properties = self.schema["properties"].as_object()?;
        let mut found = properties.iter().filter(|(_, schema)| is_it(schema));
        found.next().map(|(name, schema)| (name.as_str(), schema))
    }
}
