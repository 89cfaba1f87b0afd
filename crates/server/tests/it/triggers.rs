//! Runs that requests of other programs start.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::{Value, json};
use teamster_api::Spec;
use teamster_server::{Scope, Triggers};
use teamster_testkit::http::{Request, Response};

use super::document::Document;
use super::served::Served;

/// The body of a delivery, and its signature with the secret: `openssl dgst -sha256 -hmac`.
const BODY: &str = r#"{"action":"opened","title":"--x"}"#;
const SIGNATURE: &str = "e6bf0681e8b85cae84afae883fa680769a7f54483a42786b6ac9c469d439af95";

/// A server with a trigger for clients with a token, and one for a forge.
fn served() -> Served {
    let folder = tempfile::tempdir().unwrap();
    served_in(folder.path())
}

/// The same, with its configuration in this folder.
fn served_in(folder: &Path) -> Served {
    Served::with(|config| {
        let secret = folder.join("secret");
        fs::write(&secret, "a-secret-of-the-forge\n").unwrap();
        fs::set_permissions(&secret, fs::Permissions::from_mode(0o600)).unwrap();
        let run = json!({"provider": "claude", "prompt": "Look at {{body.title}}"});
        let triggers = json!({"triggers": [
            {"id": "ask", "run": run},
            {
                "id": "forge", "run": run, "when": {"body.action": "opened"},
                "sender": {"type": "github", "secretFile": "secret"},
            },
        ]});
        let file = folder.join("agents.config.json");
        fs::write(&file, triggers.to_string()).unwrap();
        config.triggers = Triggers::of_file(&file).unwrap();
    })
}

fn prompt(served: &Served, response: &Response) -> String {
    let id = response.json()["runId"].as_str().unwrap().to_owned();
    assert_eq!(
        response.header("location"),
        Some(&*format!("/v1/runs/{id}"))
    );
    match served.runs.spec(&id) {
        Some(Spec::Run(spec)) => spec.prompt,
        other => panic!("{other:?}"),
    }
}

/// A delivery of the forge.
fn delivered(served: &Served, id: &str, body: &str, signature: &str) -> Response {
    Request::new(&served.address, "POST", "/v1/triggers/forge")
        .header("X-GitHub-Delivery", id)
        .header("X-Hub-Signature-256", &format!("sha256={signature}"))
        .header("Content-Type", "application/json")
        .body(body)
        .send()
}

#[test]
fn token_that_may_only_trigger_starts_the_configured_run() {
    let served = served();
    let mut document = Document::of(&served);
    let token = served.add(&[Scope::Trigger]);
    let fire = |path: &str, body: &Value| served.request_of(&token, "POST", path).json(body).send();
    let started = fire(
        "/v1/triggers/ask",
        &json!({"title": "the page", "provider": "x"}),
    );
    assert_eq!(started.status, 201, "{}", started.body);
    document.has("POST", "/v1/triggers/{name}", &started);
    assert_eq!(prompt(&served, &started), "Look at the page");

    fire("/v1/triggers/ask", &json!({})).is_problem(422, "INVALID_PARAMS");
    fire("/v1/triggers/none", &json!({})).is_problem(404, "NOT_FOUND");
    let read = served.request_of(&token, "GET", "/v1/runs").send();
    read.is_problem(403, "INSUFFICIENT_SCOPE");
    let run = json!({"provider": "claude", "prompt": "x"});
    fire("/v1/runs", &run).is_problem(403, "INSUFFICIENT_SCOPE");
    let other = served.add(&[Scope::Run]);
    let other = served.request_of(&other, "POST", "/v1/triggers/ask");
    (other.json(&json!({"title": "x"})).send()).is_problem(403, "INSUFFICIENT_SCOPE");
    let none = Request::new(&served.address, "POST", "/v1/triggers/ask");
    (none.json(&json!({"title": "x"})).send()).is_problem(401, "UNAUTHORIZED");
    served.end();
}

#[test]
fn signed_delivery_starts_one_run_however_often_it_comes() {
    let served = served();
    let mut document = Document::of(&served);
    let first = delivered(&served, "d-1", BODY, SIGNATURE);
    assert_eq!(first.status, 201, "{}", first.body);
    assert_eq!(prompt(&served, &first), "Look at --x");
    let again = delivered(&served, "d-1", BODY, SIGNATURE);
    assert_eq!((again.status, again.json()), (200, first.json()));
    document.has("POST", "/v1/triggers/{name}", &again);
    let other = delivered(&served, "d-2", BODY, SIGNATURE);
    assert_eq!(other.status, 201, "{}", other.body);
    assert_ne!(other.json(), first.json());
    served.end();
}

#[test]
fn delivery_without_its_signature_starts_nothing() {
    let served = served();
    let wrong = SIGNATURE.replace('1', "2");
    let changed = BODY.replace("--x", "--y");
    for (body, signature) in [
        (BODY, &*wrong),
        (&*changed, SIGNATURE),
        ("no json", SIGNATURE),
    ] {
        delivered(&served, "d", body, signature).is_problem(401, "UNAUTHORIZED");
    }
    // Not even one with a token: the forge alone fires it.
    let token = served.request("POST", "/v1/triggers/forge");
    let body = json!({"action": "opened", "title": "x"});
    (token.json(&body).send()).is_problem(401, "UNAUTHORIZED");
    assert_eq!(served.get("/v1/runs").json()["runs"], json!([]));
    served.end();
}

#[test]
fn changed_configuration_holds_from_the_next_request_on() {
    let folder = tempfile::tempdir().unwrap();
    let served = served_in(folder.path());
    let file = folder.path().join("agents.config.json");
    let fire = |name: &str| served.post(&format!("/v1/triggers/{name}"), &json!({"title": "x"}));
    assert_eq!(fire("ask").status, 201);
    fire("other").is_problem(404, "NOT_FOUND");
    let run = json!({"provider": "claude", "prompt": "another: {{body.title}}"});
    let other = json!({"triggers": [{"id": "other", "run": run}]});
    fs::write(&file, other.to_string()).unwrap();
    let started = fire("other");
    assert_eq!(prompt(&served, &started), "another: x");
    fire("ask").is_problem(404, "NOT_FOUND");
    // What cannot be used changes nothing.
    for text in ["{", r#"{"triggers": [{"id": "other"}]}"#] {
        fs::write(&file, text).unwrap();
        assert_eq!(fire("other").status, 201, "{text}");
    }
    fs::remove_file(&file).unwrap();
    assert_eq!(fire("other").status, 201);
}
