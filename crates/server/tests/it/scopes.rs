//! Which scope each operation needs, in one table.

use serde_json::Value;
use teamster_server::Scope;
use teamster_testkit::http::Request;

use super::served::Served;

/// Each operation and the least scope that it needs; `-` needs no token.
const TABLE: &[(&str, &str, &str)] = &[
    ("POST", "/v1/runs", "run"),
    ("GET", "/v1/runs", "read"),
    ("GET", "/v1/runs/{id}", "read"),
    ("PUT", "/v1/runs/{id}", "run"),
    ("GET", "/v1/runs/{id}/events", "read"),
    ("POST", "/v1/runs/{id}/cancel", "run"),
    ("POST", "/v1/sessions", "run"),
    ("GET", "/v1/sessions", "read"),
    ("GET", "/v1/sessions/{id}", "read"),
    ("PUT", "/v1/sessions/{id}", "run"),
    ("DELETE", "/v1/sessions/{id}", "run"),
    ("PATCH", "/v1/sessions/{id}", "run"),
    ("GET", "/v1/sessions/{id}/events", "read"),
    ("POST", "/v1/sessions/{id}/turns", "run"),
    ("POST", "/v1/sessions/{id}/interrupt", "run"),
    ("POST", "/v1/sessions/{id}/steer", "run"),
    ("POST", "/v1/sessions/{id}/clear", "run"),
    ("GET", "/v1/runs/{id}/diff", "read"),
    ("GET", "/v1/runs/{id}/bundle", "read"),
    ("GET", "/v1/runs/{id}/files", "read"),
    ("GET", "/v1/runs/{id}/files/{name}", "read"),
    ("GET", "/v1/sessions/{id}/diff", "read"),
    ("GET", "/v1/sessions/{id}/bundle", "read"),
    ("GET", "/v1/sessions/{id}/files", "read"),
    ("GET", "/v1/sessions/{id}/files/{name}", "read"),
    ("POST", "/v1/repositories/{root}/known", "run"),
    ("PUT", "/v1/uploads/{id}/{name}", "run"),
    ("DELETE", "/v1/uploads/{id}", "run"),
    ("POST", "/v1/runs/{id}/apply", "run"),
    ("POST", "/v1/runs/{id}/discard", "admin"),
    ("PATCH", "/v1/runs/{id}", "run"),
    ("GET", "/v1/runs/{id}/spec", "run"),
    ("PUT", "/v1/uploads/{id}/{name}/parts/{number}", "run"),
    ("GET", "/v1/requests", "read"),
    ("POST", "/v1/requests/{run}/{number}", "answer"),
    ("POST", "/v1/requests/{id}", "answer"),
    ("GET", "/v1/events", "read"),
    ("GET", "/v1/history", "read"),
    ("GET", "/v1/history/{id}", "read"),
    ("POST", "/v1/history/forget", "admin"),
    ("GET", "/v1/agents", "read"),
    ("GET", "/v1/agents/{id}/log", "read"),
    ("POST", "/v1/agents/{id}/{command}", "admin"),
    ("POST", "/v1/agents/{command}", "admin"),
    ("GET", "/v1/providers", "read"),
    ("GET", "/v1/usage", "read"),
    ("GET", "/v1/limits", "read"),
    ("GET", "/v1/fleet", "read"),
    ("GET", "/metrics", "read"),
    ("GET", "/v1/client", "read"),
    ("GET", "/v1/web-push", "read"),
    ("POST", "/v1/triggers/{name}", "trigger"),
    ("POST", "/v1/web-push/subscriptions", "read"),
    ("DELETE", "/v1/web-push/subscriptions/{id}", "read"),
    ("POST", "/v1/login", "-"),
    ("DELETE", "/v1/login", "-"),
    ("GET", "/healthz", "-"),
    ("GET", "/v1/openapi.json", "-"),
];

/// Whether a token with the one scope may do what needs the other.
fn allows(own: &str, needed: &str) -> bool {
    let reads = needed == "read" && own != "trigger";
    needed == "-" || reads || own == needed || own == "admin"
}

#[test]
fn every_operation_needs_its_scope_and_the_document_names_it() {
    let served = Served::start();
    let document = Request::new(&served.address, "GET", "/v1/openapi.json").send();
    let document = document.json();
    let mut documented = Vec::new();
    for (path, methods) in document["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            let scope = match operation["security"].as_array().map(Vec::as_slice) {
                Some([only]) => only["token"][0].as_str().unwrap_or("?").to_owned(),
                _ => "-".to_owned(),
            };
            documented.push((method.to_ascii_uppercase(), path.clone(), scope));
        }
    }
    let mut expected: Vec<_> = (TABLE.iter())
        .map(|(method, path, scope)| {
            (
                (*method).to_owned(),
                (*path).to_owned(),
                (*scope).to_owned(),
            )
        })
        .collect();
    documented.sort();
    expected.sort();
    assert_eq!(documented, expected);

    for scope in Scope::ALL {
        let (own, token) = (scope.name(), served.add(&[scope]));
        for (method, path, needed) in TABLE {
            // A body that no operation takes, and ids of nothing: what is allowed changes nothing.
            let concrete = path
                .replace("{command}", "dance")
                .replace("{id}", "nothing")
                .replace("{run}", "nothing")
                .replace("{number}", "1");
            let request = served.request_of(&token, method, &concrete);
            let response = match *method {
                "GET" | "DELETE" => request.open(),
                _ => request.json(&Value::from("nothing")).open(),
            };
            let is_refused = response.status == 403;
            assert_eq!(is_refused, !allows(own, needed), "{own}: {method} {path}");
            assert_ne!(response.status, 401, "{own}: {method} {path}");
            assert!(
                response.status < 500 || response.status == 503,
                "{own}: {method} {path}"
            );
        }
    }
}
