//! What the server refuses because of this machine: unknown agents, missing folders, and tricks in paths.

use serde_json::{Value, json};

use super::client::Served;
use crate::cli::Claude;

#[test]
fn unsupported_field_is_refused_with_its_name() {
    let claude = Claude::plays("text", 0);
    let served = Served::of(&claude, &[]);
    let with = |more: Value| {
        let mut body = json!({"provider": "claude", "prompt": "x"});
        (body.as_object_mut().unwrap()).extend(more.as_object().unwrap().clone());
        body
    };
    for (more, detail) in [
        (json!({"provider": "nobody"}), "nobody"),
        (json!({"provider": "--help"}), "--help"),
        (
            json!({"workingDirectory": "/no/such"}),
            "workingDirectory: no such directory: /no/such",
        ),
        (json!({"fallback": ["nobody"]}), "nobody"),
        (json!({"sessionKey": "_"}), "sessionKey: \\\"_\\\": "),
        (json!({"sessionKey": "a:b:c:d"}), "a:b:c:d"),
        (
            json!({"provider": "codex", "maxTurns": 3}),
            "maxTurns: Codex has no way to honour it",
        ),
        (
            json!({"provider": "pi", "permission": "plan"}),
            "permission: Pi has no mode plan",
        ),
    ] {
        let refused = served.post("/v1/runs", &with(more.clone()));
        refused.is_problem(422, "INVALID_PARAMS");
        assert!(refused.body.contains(detail), "{more}: {}", refused.body);
    }
    assert_eq!(served.get("/v1/runs").json(), json!({"runs": []}));
}

#[test]
fn an_id_is_no_path() {
    let claude = Claude::plays("text", 0);
    let served = Served::of(&claude, &[]);
    for id in [
        "..",
        "%2e%2e",
        "..%2f..%2fserver",
        "%2fetc%2fpasswd",
        ".new-x",
        "%00",
        "a%0ab",
        "%ff",
    ] {
        let found = served.get(&format!("/v1/runs/{id}"));
        assert_eq!(found.status, 404, "{id}: {}", found.body);
        let code = found.json()["code"].as_str().unwrap().to_owned();
        assert!(
            ["RUN_NOT_FOUND", "NOT_FOUND"].contains(&&*code),
            "{id}: {code}"
        );
        let events = served.get(&format!("/v1/runs/{id}/events"));
        assert_eq!(events.status, 404, "{id}: {}", events.body);
    }
    let long = served.get(&format!("/v1/runs/{}", "a".repeat(5000)));
    long.is_problem(404, "RUN_NOT_FOUND");
}
