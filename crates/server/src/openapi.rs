//! The `OpenAPI` document.

use axum::http::StatusCode;
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Map, Value, json};
use teamster_core::LogEntry;
use teamster_orchestrator::RunEvent;

use crate::operation::Operation;
use crate::{Problem, ProblemCode, routes};

/// Returns the `OpenAPI` 3.1 document of the API.
pub fn openapi() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.definitions_path = "/components/schemas".into();
        settings.meta_schema = None;
    });
    let mut generator = settings.into_generator();
    let mut paths = Map::new();
    for operation in routes::operations() {
        let path = paths.entry(operation.path).or_insert_with(|| json!({}));
        path[operation.method.as_str().to_ascii_lowercase()] = document(&operation, &mut generator);
    }
    let mut schemas = generator.take_definitions(true);
    schemas.values_mut().for_each(plain_descriptions);
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "teamster",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Runs of coding agents: start, follow, answer and stop them.",
            "license": {"name": "MIT OR Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {
                "token": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "A token of `teamster serve` or `teamster token add`. The page exchanges it for \
                    a cookie by POST /v1/login.",
                },
            },
        },
    })
}

fn document(operation: &Operation, generator: &mut SchemaGenerator) -> Value {
    let mut responses = Map::new();
    for reply in &operation.replies {
        let mut content = Map::new();
        for (media, schema) in &reply.content {
            content.insert((*media).to_owned(), json!({"schema": schema(generator)}));
        }
        let mut response = json!({"description": reply.description});
        if !content.is_empty() {
            response["content"] = Value::Object(content);
        }
        responses.insert(reply.status.as_u16().to_string(), response);
    }
    let problem = generator.subschema_for::<Problem>();
    for (status, codes) in problems(operation) {
        let names = codes.iter().map(|code| format!("`{}`", name_of(*code)));
        let description = format!("Code {}.", names.collect::<Vec<_>>().join(", "));
        responses.insert(
            status.as_u16().to_string(),
            json!({
                "description": description,
                "content": {"application/problem+json": {"schema": problem}},
            }),
        );
    }
    let mut document = json!({
        "operationId": operation.id,
        "summary": operation.summary,
        "responses": responses,
    });
    if !operation.description.is_empty() {
        document["description"] = operation.description.into();
    }
    let parameters = parameters(operation, generator);
    if !parameters.is_empty() {
        document["parameters"] = parameters.into();
    }
    if let Some((schema, required)) = operation.body {
        document["requestBody"] = json!({
            "required": required,
            "content": {"application/json": {"schema": schema(generator)}},
        });
    }
    document["security"] = match operation.scope {
        // Since OpenAPI 3.1, the list names required roles for schemes without scopes, such as bearer tokens.
        Some(scope) => json!([{"token": [scope.name()]}]),
        None => json!([]),
    };
    document
}

/// Returns the problem codes of an operation by status, including those common to all operations of its kind.
fn problems(operation: &Operation) -> Vec<(StatusCode, Vec<ProblemCode>)> {
    let mut codes = operation.problems.clone();
    if operation.scope.is_some() {
        codes.extend([
            ProblemCode::Unauthorized,
            ProblemCode::InsufficientScope,
            ProblemCode::TooManyConnections,
            ProblemCode::Internal,
        ]);
    }
    if operation.body.is_some() {
        codes.extend([
            ProblemCode::InvalidBody,
            ProblemCode::InvalidParams,
            ProblemCode::BodyTooLarge,
            ProblemCode::BodyTimeout,
            ProblemCode::UnsupportedMediaType,
        ]);
    }
    if operation.query.is_some() {
        codes.push(ProblemCode::InvalidParams);
    }
    if operation.method != axum::http::Method::GET {
        codes.push(ProblemCode::OriginNotAllowed);
    }
    codes.push(ProblemCode::HostNotAllowed);
    let mut by_status: Vec<(StatusCode, Vec<ProblemCode>)> = Vec::new();
    for code in codes {
        match by_status
            .iter_mut()
            .find(|(status, _)| *status == code.status())
        {
            Some((_, codes)) if codes.contains(&code) => {}
            Some((_, codes)) => codes.push(code),
            None => by_status.push((code.status(), vec![code])),
        }
    }
    by_status.sort_by_key(|(status, _)| *status);
    by_status
}

fn name_of(code: ProblemCode) -> String {
    let name = serde_json::to_value(code).ok();
    name.and_then(|name| name.as_str().map(str::to_owned))
        .unwrap_or_default()
}

fn parameters(operation: &Operation, generator: &mut SchemaGenerator) -> Vec<Value> {
    let mut parameters = Vec::new();
    for part in operation.path.split('/') {
        if let Some(name) = part
            .strip_prefix('{')
            .and_then(|part| part.strip_suffix('}'))
        {
            parameters.push(json!({
                "name": name,
                "in": "path",
                "required": true,
                "schema": {"type": "string"},
            }));
        }
    }
    if let Some(query) = operation.query {
        let schema = query(generator).to_value();
        for (name, mut schema) in schema["properties"]
            .as_object()
            .cloned()
            .unwrap_or_default()
        {
            plain_descriptions(&mut schema);
            let description = schema
                .as_object_mut()
                .and_then(|it| it.remove("description"));
            parameters.push(json!({
                "name": name,
                "in": "query",
                "description": description.unwrap_or_default(),
                "schema": schema,
            }));
        }
    }
    for (name, description) in operation.headers {
        parameters.push(json!({
            "name": name,
            "in": "header",
            "description": description,
            "schema": {"type": "string"},
        }));
    }
    parameters
}

/// An entry of a run's log.
pub(crate) struct Entry;

impl JsonSchema for Entry {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Entry".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let agent = generator.subschema_for::<LogEntry>();
        let run = generator.subschema_for::<RunEvent>();
        let schema = json!({
            "description": "An entry of a run's log: an event of the agent, or one of the run itself, whose `type` \
            has a colon (or is `reset`).",
            "anyOf": [
                agent,
                {
                    "allOf": [
                        {
                            "type": "object",
                            "required": ["seq", "atMs", "attempt"],
                            "properties": {
                                "seq": {"type": "integer", "minimum": 1},
                                "atMs": {"type": "integer", "minimum": 0},
                                "attempt": {"type": "integer", "minimum": 1},
                            },
                        },
                        run,
                    ],
                },
            ],
        });
        schema.try_into().unwrap_or_default()
    }
}

/// Removes rustdoc links and line breaks from descriptions.
fn plain_descriptions(schema: &mut Value) {
    match schema {
        Value::Object(object) => {
            for (key, value) in object {
                match value {
                    Value::String(text) if key == "description" => {
                        *text = text
                            .replace("[`", "`")
                            .replace("`]", "`")
                            .replace('\n', " ");
                    }
                    other => plain_descriptions(other),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(plain_descriptions),
        _ => {}
    }
}
