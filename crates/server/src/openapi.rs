//! The `OpenAPI` document.

use axum::http::StatusCode;
use schemars::generate::SchemaSettings;
use schemars::{Schema, SchemaGenerator};
use serde_json::{Map, Value, json};
use teamster_api::{Problem, ProblemCode};

use crate::operation::Operation;
use crate::problem::status_of;

/// Returns the `OpenAPI` 3.1 document of these operations.
pub(crate) fn document_of(operations: &[Operation]) -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.definitions_path = "/components/schemas".into();
        settings.meta_schema = None;
    });
    let mut generator = settings.into_generator();
    let mut paths = Map::new();
    for operation in operations {
        let path = paths
            .entry(operation.documented_path())
            .or_insert_with(|| json!({}));
        path[operation.method.as_str().to_ascii_lowercase()] = document(operation, &mut generator);
    }
    let schemas = generator.take_definitions(true);
    let mut document = json!({
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
    });
    finish(&mut document);
    document
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
        for (name, description) in &reply.headers {
            response["headers"][*name] = header(description);
        }
        responses.insert(reply.status.as_u16().to_string(), response);
    }
    let problem = generator.subschema_for::<Problem>();
    for (status, codes) in problems(operation) {
        let names = codes.iter().map(|code| format!("`{}`", name_of(*code)));
        let description = format!("Code {}.", names.collect::<Vec<_>>().join(", "));
        let mut response = json!({
            "description": description,
            "content": {"application/problem+json": {"schema": problem}},
        });
        if status == StatusCode::UNAUTHORIZED {
            response["headers"]["WWW-Authenticate"] = header("`Bearer`");
        }
        responses.insert(status.as_u16().to_string(), response);
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
    if let Some(body) = &operation.body {
        document["requestBody"] = json!({
            "required": body.required,
            "content": {body.media: {"schema": (body.content)(generator)}},
        });
    }
    document["security"] = match operation.scope {
        // Since OpenAPI 3.1, the list names required roles for schemes without scopes, such as bearer tokens.
        Some(scope) => json!([{"token": [scope.name()]}]),
        None => json!([]),
    };
    document
}

fn header(description: &str) -> Value {
    json!({"description": description, "required": true, "schema": {"type": "string"}})
}

/// Returns the problem codes of an operation by status, including those common to all operations of its kind.
pub(crate) fn problems(operation: &Operation) -> Vec<(StatusCode, Vec<ProblemCode>)> {
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
    let has_patterns = operation.headers.iter().any(|it| !it.pattern.is_empty());
    if operation.query.is_some() || has_patterns {
        codes.push(ProblemCode::InvalidParams);
    }
    if operation.path.contains('{') {
        codes.push(ProblemCode::NotFound);
    }
    if operation.method != axum::http::Method::GET {
        codes.push(ProblemCode::OriginNotAllowed);
    }
    codes.push(ProblemCode::HostNotAllowed);
    let mut by_status: Vec<(StatusCode, Vec<ProblemCode>)> = Vec::new();
    for code in codes {
        match by_status
            .iter_mut()
            .find(|(status, _)| *status == status_of(code))
        {
            Some((_, codes)) if codes.contains(&code) => {}
            Some((_, codes)) => codes.push(code),
            None => by_status.push((status_of(code), vec![code])),
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
    let fields = operation.path_fields.map(|fields| fields(generator));
    let fields = fields.map(Schema::to_value).unwrap_or_default();
    for part in operation.documented_path().split('/') {
        if let Some(name) = part
            .strip_prefix('{')
            .and_then(|part| part.strip_suffix('}'))
        {
            let id = || json!({"type": "string", "minLength": 1});
            let schema =
                (fields.pointer(&format!("/properties/{name}"))).map_or_else(id, Value::clone);
            parameters.push(parameter("path", name, schema, true));
        }
    }
    if let Some(query) = operation.query {
        let schema = query(generator).to_value();
        let fields = schema["properties"].as_object().cloned();
        for (name, schema) in fields.unwrap_or_default() {
            parameters.push(parameter("query", &name, without_null(schema), false));
        }
    }
    for header in operation.headers {
        let mut schema = json!({"type": "string", "description": header.description});
        if !header.pattern.is_empty() {
            schema["pattern"] = header.pattern.into();
        }
        if header.max_length > 0 {
            schema["maxLength"] = header.max_length.into();
        }
        parameters.push(parameter("header", header.name, schema, false));
    }
    parameters
}

/// Returns a parameter. Its description is that of the schema.
fn parameter(location: &str, name: &str, mut schema: Value, required: bool) -> Value {
    let fields = schema.as_object_mut();
    let description = fields.and_then(|fields| fields.remove("description"));
    let mut parameter =
        json!({"name": name, "in": location, "required": required, "schema": schema});
    if let Some(description) = description {
        parameter["description"] = description;
    }
    parameter
}

/// Removes `null` from the schema of an optional field: a query parameter is absent instead.
fn without_null(mut schema: Value) -> Value {
    let is_null = |value: &Value| *value == "null" || value["type"] == "null";
    if let Some(Value::Array(types)) = schema.get_mut("type") {
        types.retain(|it| !is_null(it));
        if let [only] = &**types {
            schema["type"] = only.clone();
        }
    }
    if let Some(Value::Array(values)) = schema.get_mut("enum") {
        values.retain(|value| !value.is_null());
    }
    if let Some(Value::Array(schemas)) = schema.get_mut("anyOf") {
        schemas.retain(|it| !is_null(it));
        if let [only] = &**schemas {
            let only = only.clone();
            if let Some(fields) = schema.as_object_mut() {
                fields.remove("anyOf");
                fields.extend(only.as_object().cloned().unwrap_or_default());
            }
        }
    }
    schema
}

/// Completes all schemas: descriptions have no links of rustdoc and no line breaks, and integers have the range of
/// their type.
fn finish(schema: &mut Value) {
    match schema {
        Value::Object(object) => {
            let most = match object.get("format").and_then(Value::as_str) {
                Some("uint8") => Some(u64::from(u8::MAX)),
                Some("uint16") => Some(u64::from(u16::MAX)),
                Some("uint32") => Some(u64::from(u32::MAX)),
                Some("uint" | "uint64") => Some(u64::MAX),
                _ => None,
            };
            if let Some(most) = most {
                object.entry("maximum").or_insert_with(|| most.into());
            }
            for (key, value) in object {
                match value {
                    Value::String(text) if key == "description" => {
                        *text = text
                            .replace("[`", "`")
                            .replace("`]", "`")
                            .replace('\n', " ");
                    }
                    other => finish(other),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(finish),
        _ => {}
    }
}
