//! The `OpenAPI` document is true of the routes and of their responses.

use std::collections::BTreeSet;

use jsonschema::{Draft, Validator};
use serde_json::{Value, json};
use teamster_api::FileManifest;
use teamster_testkit::http::{Request, Response};

use super::served::Served;

/// The document of a server, and which of its responses were seen.
pub(super) struct Document {
    pub(super) document: Value,
    seen: BTreeSet<String>,
}

impl Document {
    pub(super) fn of(served: &Served) -> Self {
        let answer = Request::new(&served.address, "GET", "/v1/openapi.json").send();
        assert_eq!(answer.status, 200);
        Self {
            document: answer.json(),
            seen: BTreeSet::new(),
        }
    }

    fn operations(&self) -> Vec<(String, String)> {
        let mut operations = Vec::new();
        for (path, methods) in self.document["paths"].as_object().unwrap() {
            for method in methods.as_object().unwrap().keys() {
                operations.push((method.to_ascii_uppercase(), path.clone()));
            }
        }
        operations
    }

    pub(super) fn validator(&self, schema: &Value) -> Validator {
        let root = json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "components": self.document["components"],
            "allOf": [schema],
        });
        jsonschema::options()
            .with_draft(Draft::Draft202012)
            .build(&root)
            .unwrap()
    }

    /// Gets this path, whose response is one that the document has for this operation.
    #[track_caller]
    fn get(&mut self, served: &Served, operation: &str, path: &str) {
        self.has("GET", operation, &served.get(path));
    }

    /// The same of what is posted.
    #[track_caller]
    fn post(&mut self, served: &Served, operation: &str, path: &str, body: &Value) {
        self.has("POST", operation, &served.post(path, body));
    }

    /// The response is one that the document has for this operation, and its body is valid by the schema.
    #[track_caller]
    pub(super) fn has(&mut self, method: &str, path: &str, response: &Response) {
        let operation = &self.document["paths"][path][method.to_ascii_lowercase()];
        let documented = &operation["responses"][response.status.to_string()];
        assert!(
            documented.is_object(),
            "{method} {path}: {}",
            response.status
        );
        self.seen
            .insert(format!("{method} {path} {}", response.status));
        for name in documented["headers"]
            .as_object()
            .iter()
            .flat_map(|it| it.keys())
        {
            let name = name.to_ascii_lowercase();
            assert!(response.header(&name).is_some(), "{method} {path}: {name}");
        }
        let media = response.header("content-type");
        let Some(media) = media.map(|media| media.split(';').next().unwrap()) else {
            assert!(documented.get("content").is_none() && response.body.is_empty());
            return;
        };
        let mut schema = &documented["content"][media]["schema"];
        if media == "text/event-stream" {
            // That of an event, whose data is JSON.
            schema = &schema["properties"]["data"]["contentSchema"];
        }
        assert!(schema.is_object(), "{method} {path}: {media}");
        let validator = self.validator(schema);
        let bodies = match media {
            "application/x-ndjson" => response.body.lines().map(str::to_owned).collect(),
            "text/event-stream" => {
                let data = response
                    .body
                    .lines()
                    .filter_map(|line| line.strip_prefix("data: "));
                data.filter(|data| *data != "{}")
                    .map(str::to_owned)
                    .collect()
            }
            "application/octet-stream" | "text/plain" | "text/x-diff" => {
                vec![json!(response.body).to_string()]
            }
            _ => vec![response.body.clone()],
        };
        assert!(!bodies.is_empty());
        for body in bodies {
            let body: Value = serde_json::from_str(&body).unwrap();
            let errors: Vec<_> = validator
                .iter_errors(&body)
                .map(|error| error.to_string())
                .collect();
            assert!(errors.is_empty(), "{method} {path}: {errors:?} {body}");
        }
    }
}

#[test]
fn every_documented_operation_has_a_route_and_needs_a_token() {
    let served = Served::start();
    let document = Document::of(&served);
    let operations = document.operations();
    assert!(operations.len() > 14, "{operations:?}");
    for (method, path) in operations {
        let free = ["/healthz", "/v1/openapi.json", "/v1/login"].contains(&&*path);
        let concrete = path
            .replace("{id}", "x")
            .replace("{run}", "x")
            .replace("{number}", "1")
            .replace("{command}", "stop");
        let answer = Request::new(&served.address, &method, &concrete).send();
        if free {
            assert_ne!(answer.status, 404, "{method} {path}");
        } else {
            answer.is_problem(401, "UNAUTHORIZED");
        }
        assert_ne!(answer.status, 405, "{method} {path}");
    }
}

#[test]
fn real_responses_are_what_the_document_says() {
    let served = Served::start();
    let mut document = Document::of(&served);
    let started = served.post(
        "/v1/runs",
        &json!({"provider": "claude", "prompt": "write"}),
    );
    document.has("POST", "/v1/runs", &started);
    let id = started.json()["runId"].as_str().unwrap().to_owned();
    let run = format!("/v1/runs/{id}");
    served.until(&run, "waiting");
    document.get(&served, "/v1/runs/{id}", &run);
    document.get(&served, "/v1/requests", "/v1/requests");
    document.get(&served, "/v1/runs", "/v1/runs");
    document.get(
        &served,
        "/v1/runs/{id}/events",
        &format!("{run}/events?wait=10"),
    );
    let answer = format!("/v1/requests/{id}/1");
    let answers = "/v1/requests/{run}/{number}";
    document.post(&served, answers, &answer, &json!({"decision": "maybe"}));
    document.post(&served, answers, &answer, &json!({"decision": "allow"}));
    document.post(&served, answers, &answer, &json!({"decision": "allow"}));
    served.until(&run, "ended");
    document.get(&served, "/v1/runs/{id}", &run);
    document.get(&served, "/v1/runs/{id}/events", &format!("{run}/events"));
    let sse = served
        .request("GET", &format!("{run}/events"))
        .header("Accept", "text/event-stream");
    document.has("GET", "/v1/runs/{id}/events", &sse.send());
    document.get(
        &served,
        "/v1/runs/{id}/events",
        &format!("{run}/events?after=100000"),
    );
    document.has(
        "POST",
        "/v1/runs/{id}/cancel",
        &served.request("POST", &format!("{run}/cancel")).send(),
    );
    let put = |body: &Value| served.request("PUT", "/v1/runs/mine").json(body).send();
    let mine = json!({"provider": "claude", "prompt": "hello"});
    for status in [201, 200] {
        let started = put(&mine);
        assert_eq!(started.status, status);
        document.has("PUT", "/v1/runs/{id}", &started);
    }
    let other = put(&json!({"provider": "claude", "prompt": "other"}));
    document.has("PUT", "/v1/runs/{id}", &other);
    let failing = json!({"provider": "claude", "prompt": "fail"});
    let failed = served.post_and_wait("/v1/runs", &failing);
    assert_eq!(failed.json()["status"], "failed");
    document.has("POST", "/v1/runs", &failed);
    for path in [
        "/v1/runs",
        "/v1/agents",
        "/v1/providers",
        "/v1/usage",
        "/v1/limits",
        "/v1/fleet",
        "/v1/web-push",
        "/metrics",
        "/v1/history",
        "/healthz",
        "/v1/openapi.json",
    ] {
        document.get(&served, path, path);
    }
    document.get(&served, "/v1/runs/{id}", "/v1/runs/unknown");
    document.get(&served, "/v1/usage", "/v1/usage?by=x");
    document.get(&served, "/v1/history/{id}", "/v1/history/unknown");
    document.post(&served, "/v1/runs", "/v1/runs", &json!({}));
    document.has(
        "POST",
        "/v1/agents/{id}/{command}",
        &served.request("POST", "/v1/agents/a/stop").send(),
    );
    document.post(&served, "/v1/login", "/v1/login", &json!({"token": "x"}));
    document.post(
        &served,
        "/v1/login",
        "/v1/login",
        &json!({"token": served.token}),
    );
    let client = served.get("/v1/client");
    assert_eq!(client.json()["isOnMachine"], true);
    document.has("GET", "/v1/client", &client);
    let by_proxy = served.request("GET", "/v1/client");
    let by_proxy = by_proxy.header("X-Forwarded-For", "203.0.113.7").send();
    assert_eq!(by_proxy.json()["isOnMachine"], false);
    document.has(
        "DELETE",
        "/v1/login",
        &served.request("DELETE", "/v1/login").send(),
    );
    document.post(
        &served,
        "/v1/agents/{command}",
        "/v1/agents/stop",
        &json!({"all": true}),
    );
    let forget = |body: &Value| served.post("/v1/history/forget", body);
    document.has("POST", "/v1/history/forget", &forget(&json!({})));
    document.has(
        "POST",
        "/v1/history/forget",
        &forget(&json!({"logsOver": 1_u64 << 40})),
    );
    let trigger = served.post("/v1/triggers/none", &json!({}));
    document.has("POST", "/v1/triggers/{name}", &trigger);
    web_push_responses(&served, &mut document);
    session_responses(&served, &mut document);
    upload_responses(&served, &mut document);
    result_responses(&served, &mut document);
    let mut stream = served.request("GET", "/v1/events").open();
    let snapshot = stream.until("\n");
    let schema = &document.document["paths"]["/v1/events"]["get"]["responses"]["200"]["content"]["application/x-ndjson"]
        ["schema"];
    let value: Value = serde_json::from_str(&snapshot).unwrap();
    let errors: Vec<_> = document
        .validator(schema)
        .iter_errors(&value)
        .map(|error| error.to_string())
        .collect();
    assert!(errors.is_empty(), "{errors:?} {value}");
    // Each operation was seen in at least one response, but the one that is the same as another.
    for (method, path) in document.operations() {
        let own = format!("{method} {path} ");
        let seen = document.seen.iter().any(|seen| seen.starts_with(&own));
        assert!(
            seen || ["/v1/events", "/v1/requests/{id}", "/v1/agents/{id}/log"].contains(&&*path),
            "{own}"
        );
    }
}

/// Responses of a server that notifies no browsers.
fn web_push_responses(served: &Served, document: &mut Document) {
    let path = "/v1/web-push/subscriptions";
    let keys = json!({"p256dh": "A".repeat(87), "auth": "A".repeat(22)});
    let refused = served.post(
        path,
        &json!({"endpoint": "https://push.example/1", "keys": keys}),
    );
    refused.is_problem(409, "UNSUPPORTED");
    document.has("POST", path, &refused);
    let one = served.request("DELETE", &format!("{path}/1")).send();
    document.has("DELETE", "/v1/web-push/subscriptions/{id}", &one);
}

/// Responses about what a run or session brings back.
fn result_responses(served: &Served, document: &mut Document) {
    let spec =
        json!({"provider": "claude", "prompt": "create", "worktree": true, "artifacts": ["*"]});
    let started = served.post("/v1/runs", &spec).json();
    let session = json!({"provider": "claude", "worktree": true});
    let session = served.post("/v1/sessions", &session).json();
    for (kind, view) in [("runs", started), ("sessions", session)] {
        let id = view["runId"].as_str().unwrap();
        if kind == "sessions" {
            served
                .request("DELETE", &format!("/v1/sessions/{id}"))
                .send();
        }
        served.until(&format!("/v1/runs/{id}"), "ended");
        let mut has = |end: &str, documented: &str, accept: &str| {
            let request = served.request("GET", &format!("/v1/{kind}/{id}/{end}"));
            let response = request.header("Accept", accept).send();
            document.has("GET", &format!("/v1/{kind}/{{id}}/{documented}"), &response);
            response
        };
        let diff = has("diff?path=new.txt&stat=true", "diff", "*/*").json();
        assert_eq!(diff["filesChanged"], u64::from(kind == "runs"), "{diff}");
        let patch = has("diff", "diff", "text/x-diff");
        assert_eq!(patch.header("content-type"), Some("text/x-diff"));
        assert_eq!(patch.body.contains("\n+new\n"), kind == "runs");
        assert_eq!(has("diff?path=x", "diff", "text/x-diff").status, 422);
        assert_eq!(has("bundle", "bundle", "*/*").status, 404);
        let files = has("files", "files", "*/*").json();
        let file = "files/{name}";
        if kind == "runs" {
            assert_eq!(
                files["files"][0],
                json!({"name": "files/new.txt", "bytes": 4})
            );
            let manifest = has("files/files/new.txt?manifest=true", file, "*/*").json();
            assert_eq!(manifest, json!(FileManifest::of("files/new.txt", b"new\n")));
            for query in ["", "?part=0"] {
                let content = has(&format!("files/files/new.txt{query}"), file, "*/*");
                assert_eq!(
                    (&*content.body, content.header("content-disposition")),
                    ("new\n", Some("attachment"))
                );
            }
        }
        assert_eq!(has("files/files/none?part=0", file, "*/*").status, 404);
        if kind == "runs" {
            let (one, spec) = (format!("/v1/runs/{id}"), format!("/v1/runs/{id}/spec"));
            let renamed = served.request("PATCH", &one).json(&json!({"title": "x"}));
            document.has("PATCH", "/v1/runs/{id}", &renamed.send());
            document.get(served, "/v1/runs/{id}/spec", &spec);
            for (action, status, member) in [
                ("apply", 200, "filesChanged"),
                ("apply", 409, "detail"),
                ("discard", 200, "branch"),
                ("discard", 409, "detail"),
            ] {
                let done = served.post(&format!("/v1/runs/{id}/{action}"), &json!({}));
                assert_eq!(done.status, status, "{action}: {}", done.body);
                assert!(!done.json()[member].is_null(), "{action}: {}", done.body);
                document.has("POST", &format!("/v1/runs/{{id}}/{action}"), &done);
            }
        }
    }
}

/// Responses about a file that a run takes along.
fn upload_responses(served: &Served, document: &mut Document) {
    let known = "/v1/repositories/{root}/known";
    let commit = "0".repeat(40);
    let found = served.post(
        &known.replace("{root}", &commit),
        &json!({"commits": [commit]}),
    );
    assert_eq!(found.json(), json!({"commits": []}));
    document.has("POST", known, &found);
    let manifest = FileManifest::of("bundle", b"content");
    let offer = |id: &str, body: &Value| {
        let path = format!("/v1/uploads/{id}/bundle");
        served.request("PUT", &path).json(body).send()
    };
    let file = "/v1/uploads/{id}/{name}";
    let body = serde_json::to_value(&manifest).unwrap();
    let missing = offer("later", &body);
    assert_eq!(missing.json(), json!({"missing": [0]}));
    document.has("PUT", file, &missing);
    let mut other = body.clone();
    other["name"] = "other".into();
    assert_eq!(offer("later", &other).status, 422);
    let started = offer("mine", &body);
    assert_eq!(started.json()["code"], "RUN_EXISTS");
    document.has("PUT", file, &started);
    let part = "/v1/uploads/{id}/{name}/parts/{number}";
    let write = |number: u32, media: &str, content: &[u8]| {
        let path = format!("/v1/uploads/later/bundle/parts/{number}");
        let request = served.request("PUT", &path).header("Content-Type", media);
        request.body(content).send()
    };
    let bytes = "application/octet-stream";
    let damaged = write(0, bytes, b"c0ntent");
    assert_eq!(damaged.json()["code"], "FILE_DAMAGED");
    document.has("PUT", part, &damaged);
    let form = write(0, "text/plain", b"content");
    assert_eq!(form.json()["code"], "UNSUPPORTED_MEDIA_TYPE");
    document.has("PUT", part, &form);
    let kept = write(0, bytes, b"content");
    assert_eq!(kept.status, 204);
    document.has("PUT", part, &kept);
    assert_eq!(offer("later", &body).json(), json!({"missing": []}));
    for (id, status) in [("later", 204), ("mine", 409)] {
        let path = format!("/v1/uploads/{id}");
        let withdrawn = served.request("DELETE", &path).send();
        assert_eq!(withdrawn.status, status);
        document.has("DELETE", "/v1/uploads/{id}", &withdrawn);
    }
    assert_eq!(offer("later", &body).json(), json!({"missing": [0]}));
}

/// Responses about a session, from its start to its end.
fn session_responses(served: &Served, document: &mut Document) {
    let one = "/v1/sessions/{id}";
    let started = served.post("/v1/sessions", &json!({"provider": "claude"}));
    document.has("POST", "/v1/sessions", &started);
    let session = started.header("location").unwrap();
    let put = served.request("PUT", "/v1/sessions/my-session");
    let put = put.json(&json!({"provider": "claude"})).send();
    assert_eq!(put.header("location"), Some("/v1/sessions/my-session"));
    document.has("PUT", one, &put);
    document.get(served, "/v1/sessions", "/v1/sessions");
    document.get(served, one, session);
    document.get(served, one, "/v1/sessions/unknown");
    let turn = |prompt: &str, wait: &str| {
        served
            .request("POST", &format!("{session}/turns"))
            .header("Prefer", wait)
            .header("Idempotency-Key", prompt)
            .json(&json!({ "prompt": prompt }))
            .send()
    };
    let turns = "/v1/sessions/{id}/turns";
    document.has("POST", turns, &turn("hello", "wait=60"));
    document.has("POST", turns, &turn("hello", "wait=60"));
    document.has("POST", turns, &turn("wait", "wait=0"));
    document.has("POST", turns, &turn("more", "wait=0"));
    served.until(session, "running");
    let of = |command: &str| format!("/v1/sessions/{{id}}/{command}");
    let post = |command: &str| served.request("POST", &format!("{session}/{command}"));
    let steer = post("steer").json(&json!({"text": "x"})).send();
    document.has("POST", &of("steer"), &steer);
    document.has("POST", &of("interrupt"), &post("interrupt").send());
    served.until(session, "idle");
    document.has("POST", &of("interrupt"), &post("interrupt").send());
    document.has("POST", &of("clear"), &post("clear").send());
    let patch = |body: &Value| served.request("PATCH", session).json(body).send();
    document.has("PATCH", one, &patch(&json!({"model": "opus"})));
    document.has("PATCH", one, &patch(&json!({"permission": "bypass"})));
    document.has("DELETE", one, &served.request("DELETE", session).send());
    served.until(session, "ended");
    document.get(served, one, session);
    document.has("DELETE", one, &served.request("DELETE", session).send());
    let events = format!("{session}/events");
    document.get(served, &of("events"), &events);
    document.get(served, &of("events"), &format!("{events}?after=100000"));
}

#[test]
fn the_schemas_refuse_what_is_wrong() {
    let served = Served::start();
    let document = Document::of(&served);
    let of =
        |name: &str| document.validator(&json!({"$ref": format!("#/components/schemas/{name}")}));
    assert!(
        of("RunSpec").is_valid(&json!({"provider": "a", "prompt": "b", "permission": "read-only"}))
    );
    for wrong in [
        json!({"provider": "a"}),
        json!({"provider": "a", "prompt": "b", "permission": "readonly"}),
        json!({"provider": "a", "prompt": "b", "other": 1}),
    ] {
        assert!(!of("RunSpec").is_valid(&wrong), "{wrong}");
    }
    assert!(!of("Problem").is_valid(&json!({"code": "NO_SUCH_CODE"})));
    assert!(!of("Entry").is_valid(&json!({"type": "text"})));
}
