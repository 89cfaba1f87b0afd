//! What the `OpenAPI` document forbids is what the server refuses.

use serde_json::{Value, json};

use super::document::Document;
use super::served::Served;

#[test]
fn the_document_forbids_the_bodies_that_the_server_refuses() {
    let served = Served::start();
    let document = Document::of(&served);
    let with = |mut body: Value, more: &Value| {
        (body.as_object_mut().unwrap()).extend(more.as_object().unwrap().clone());
        body
    };
    let run = |more: Value| with(json!({"provider": "claude", "prompt": "x"}), &more);
    let session = |more: Value| with(json!({"provider": "claude"}), &more);
    let text = "t";
    let runs = [
        json!({"provider": " "}),
        json!({"prompt": "\n"}),
        json!({"model": ""}),
        json!({"allowedTools": [""]}),
        json!({"maxTurns": 0}),
        json!({"maxBudgetUsd": 0}),
        json!({"retries": 1_u64 << 32}),
        json!({"outputSchema": []}),
        json!({"workingDirectory": "src"}),
        json!({"callback": "ftp://h"}),
        json!({"fork": true}),
        json!({"newSession": true, "sessionKey": null}),
        json!({"sessionId": text, "worktree": true}),
        json!({"sessionId": text, "sessionKey": text}),
        json!({"sessionId": text, "workspace": {"kind": "worktree"}}),
        json!({"worktree": true, "workspace": {"kind": "empty"}}),
        json!({"workspace": {"kind": "empty", "path": "/x"}}),
        json!({"workspace": {"kind": "worktree", "from": "-x"}}),
        json!({"systemPrompt": text, "appendSystemPrompt": text}),
    ];
    let sessions = [
        json!({"maxTokens": 0}),
        json!({"effort": " "}),
        json!({"fork": true}),
        json!({"sessionId": text, "worktree": text}),
        json!({"systemPrompt": text, "appendSystemPrompt": text}),
    ];
    let others = [
        ("PATCH", "/v1/runs/x", "RenameRun", json!({})),
        ("PATCH", "/v1/runs/x", "RenameRun", json!({"title": " "})),
        ("PATCH", "/v1/sessions/x", "ChangeSession", json!({})),
        (
            "PATCH",
            "/v1/sessions/x",
            "ChangeSession",
            json!({"model": " "}),
        ),
        (
            "POST",
            "/v1/sessions/x/turns",
            "StartTurn",
            json!({"prompt": " "}),
        ),
        ("POST", "/v1/sessions/x/steer", "Steer", json!({"text": ""})),
        ("POST", "/v1/agents/stop", "AgentSelection", json!({})),
        (
            "POST",
            "/v1/agents/stop",
            "AgentSelection",
            json!({"agents": [text], "all": true}),
        ),
        (
            "POST",
            "/v1/history/forget",
            "ForgetRuns",
            json!({"ids": [], "logsOver": null}),
        ),
        (
            "POST",
            "/v1/login",
            "Login",
            json!({"token": served.token, "path": "x"}),
        ),
    ];
    let runs = runs.map(|more| ("POST", "/v1/runs", "RunSpec", run(more)));
    let sessions = sessions.map(|more| ("POST", "/v1/sessions", "SessionSpec", session(more)));
    for (method, path, schema, body) in runs.into_iter().chain(sessions).chain(others) {
        let schema = json!({"$ref": format!("#/components/schemas/{schema}")});
        assert!(!document.validator(&schema).is_valid(&body), "{body}");
        let refused = served.request(method, path).json(&body).send();
        assert_eq!(refused.status, 422, "{body}: {}", refused.body);
        refused.is_problem(422, "INVALID_PARAMS");
    }
    // Next to those, bodies that are allowed.
    for (schema, body) in [
        (
            "RunSpec",
            run(json!({"fork": true, "sessionId": text, "worktree": false})),
        ),
        (
            "RunSpec",
            run(json!({"fork": false, "sessionKey": "slack:U42", "newSession": true})),
        ),
        (
            "RunSpec",
            run(json!({"systemPrompt": text, "appendSystemPrompt": null})),
        ),
        (
            "SessionSpec",
            session(json!({"worktree": true, "maxBudgetUsd": 0.01})),
        ),
        (
            "RunSpec",
            run(json!({"worktree": false, "workspace": {"kind": "worktree", "from": "main~1"}})),
        ),
        (
            "ChangeSession",
            json!({"model": null, "permission": "default"}),
        ),
        ("AgentSelection", json!({"all": true, "agents": []})),
        ("AgentSelection", json!({"agents": [text], "all": false})),
        ("ForgetRuns", json!({"logsOver": 0})),
    ] {
        let schema = json!({"$ref": format!("#/components/schemas/{schema}")});
        assert!(document.validator(&schema).is_valid(&body), "{body}");
    }
}

#[test]
fn the_document_forbids_the_parameters_that_the_server_refuses() {
    let served = Served::start();
    let document = Document::of(&served);
    let run = served.run("hello");
    for (path, parameter, value) in [
        ("/v1/runs", "state", "nonsense"),
        ("/v1/runs", "live", "yes"),
        ("/v1/runs", "limit", "-1"),
        ("/v1/runs", "since", "18446744073709551616"),
        ("/v1/runs", "cursor", "x"),
        ("/v1/sessions", "state", "live"),
        ("/v1/runs/{id}/events", "after", "-1"),
        ("/v1/runs/{id}/events", "wait", "-1"),
        ("/v1/runs/{id}/events", "Last-Event-ID", "+1"),
        ("/v1/history", "status", "nonsense"),
        ("/v1/history", "key", "_"),
        ("/v1/history", "cursor", "+1.x"),
        ("/v1/usage", "by", "hour"),
        ("/v1/agents/{id}/log", "lines", "-1"),
    ] {
        let parameters = document.document["paths"][path]["get"]["parameters"].as_array();
        let documented = parameters
            .unwrap()
            .iter()
            .find(|it| it["name"] == parameter);
        let documented = documented.unwrap_or_else(|| panic!("{path} has no {parameter}"));
        let schema = &documented["schema"];
        let typed = match schema["type"].as_str() {
            Some("integer" | "number") => serde_json::from_str(value).unwrap(),
            _ => Value::from(value),
        };
        assert!(
            !document.validator(schema).is_valid(&typed),
            "{path}: {parameter}={value}"
        );
        let request = path.replace("{id}", &run);
        let refused = match documented["in"].as_str() {
            Some("header") => served
                .request("GET", &request)
                .header(parameter, value)
                .send(),
            _ => served.get(&format!(
                "{request}?{parameter}={}",
                value.replace('+', "%2B")
            )),
        };
        refused.is_problem(422, "INVALID_PARAMS");
    }
    let key = &document.document["paths"]["/v1/runs"]["post"]["parameters"][0];
    assert_eq!(key["name"], "Idempotency-Key");
    let long = "k".repeat(257);
    let validator = document.validator(&key["schema"]);
    assert!(validator.is_valid(&long[1..].into()) && !validator.is_valid(&long.clone().into()));
    let refused = served
        .request("POST", "/v1/runs")
        .header("Idempotency-Key", &long)
        .json(&json!({"provider": "claude", "prompt": "x"}))
        .send();
    refused.is_problem(422, "INVALID_PARAMS");
    // A command of agents is part of the path.
    let refused = served.request("POST", "/v1/agents/a/dance").send();
    refused.is_problem(404, "NOT_FOUND");
    assert!(refused.body.contains("restart"), "{}", refused.body);
}
